"""Statement text → sqlglot's tokens, by the rules of Spark's own lexer (`model/lexemes.py`).

sqlglot's tokenizer reads some literals otherwise than Spark does (`'it''s'`, `1BD`, `\\u00e9`), so the
parser gets its tokens from here.
"""

from __future__ import annotations

import re
import sys

from sqlglot.tokens import Token, TokenType

from skerry.model.lexemes import OPERATORS, Kind, lexemes
from skerry.model.limits import NUMBER_CHARS
from skerry.model.position import sql_error
from skerry.sql.policy import REFUSED_FUNCTIONS
from skerry.sql.words import KEYWORDS, PAIRS

_OPERATORS: dict[str, TokenType] = {
    "<=>": TokenType.NULLSAFE_EQ,
    "<=": TokenType.LTE,
    "!>": TokenType.LTE,
    ">=": TokenType.GTE,
    "!<": TokenType.GTE,
    "<>": TokenType.NEQ,
    "!=": TokenType.NEQ,
    "==": TokenType.EQ,
    "||": TokenType.DPIPE,
    "|>": TokenType.PIPE_GT,
    "->": TokenType.ARROW,
    "=>": TokenType.FARROW,
    "::": TokenType.DCOLON,
    "(": TokenType.L_PAREN,
    ")": TokenType.R_PAREN,
    "[": TokenType.L_BRACKET,
    "]": TokenType.R_BRACKET,
    "&": TokenType.AMP,
    "^": TokenType.CARET,
    ":": TokenType.COLON,
    ",": TokenType.COMMA,
    ".": TokenType.DOT,
    "-": TokenType.DASH,
    "=": TokenType.EQ,
    ">": TokenType.GT,
    "<": TokenType.LT,
    "%": TokenType.MOD,
    "!": TokenType.NOT,
    "|": TokenType.PIPE,
    "+": TokenType.PLUS,
    ";": TokenType.SEMICOLON,
    "/": TokenType.SLASH,
    "*": TokenType.STAR,
    "~": TokenType.TILDE,
    "?": TokenType.PLACEHOLDER,
}
assert _OPERATORS.keys() == OPERATORS
_KINDS: dict[Kind, TokenType] = {
    "name": TokenType.IDENTIFIER,
    "string": TokenType.STRING,
    "hex": TokenType.HEX_STRING,
    "number": TokenType.NUMBER,
    "hint": TokenType.HINT,
}
_OPENING = {TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.CASE}
_CLOSING = {TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.END}


def tokens_of(text: str, depth: int, most: int = sys.maxsize, *, has_hints: bool = False) -> list[Token]:
    """All tokens of `text`: more than `most`, or nesting deeper than `depth`, the parser does not meet."""
    return _checked(_tokens(text, most, has_hints), text, depth)


def _tokens(text: str, most: int, has_hints: bool) -> list[Token]:
    """Two-word keywords become one token, adjacent strings one string, as Spark has it."""
    made: list[Token] = []
    before = ""  # the word that the last token is, in capitals
    for kind, value, start, upto in lexemes(text, has_hints=has_hints):
        if len(made) >= most:
            message = f"the statement has more than {most} words and signs (limits.sql_tokens)"
            raise sql_error(message, text, start, upto - 1)
        if kind == "word":
            word = value.upper()
            pair = PAIRS.get((before, word))
            if pair is not None:
                made[-1] = Token(pair, f"{before} {word}", start=made[-1].start, end=upto - 1)
                before = ""
            else:
                made.append(Token(KEYWORDS.get(word, TokenType.VAR), value, start=start, end=upto - 1))
                before = word
            continue
        before = ""
        if kind == "hint" and not has_hints:
            _check_hint(value, text, start, upto)
        elif kind == "operator":
            made.append(Token(_OPERATORS[value], value, start=start, end=upto - 1))
        elif kind == "string" and made and made[-1].token_type == TokenType.STRING:
            made[-1] = Token(TokenType.STRING, made[-1].text + value, start=made[-1].start, end=upto - 1)
        else:
            made.append(Token(_KINDS[kind], value, start=start, end=upto - 1))
    return made


def _check_hint(hint: str, text: str, start: int, upto: int) -> None:
    """Hints of clients are left out: Skerry plans the joins, and no hint changes an answer.

    What has no business in one is refused all the same: who sends it means something else by it.
    """
    if hint.count("*/") > 1 or hint.count("/*") > 1:
        raise sql_error("a hint holds no comment, not in quotes either", text, start, upto - 1)
    if not REFUSED_FUNCTIONS.keys().isdisjoint(re.findall(r"\w+", hint.lower())):
        raise sql_error("a hint names joins and partitions, no function", text, start, upto - 1)


def _checked(tokens: list[Token], text: str, depth_max: int) -> list[Token]:
    depth = 0
    for token in tokens:
        if token.token_type == TokenType.NUMBER and len(token.text) > NUMBER_CHARS:
            raise sql_error(f"this number has more than {NUMBER_CHARS} characters", text, token.start, token.end)
        if token.token_type in _OPENING:
            depth += 1
            if depth > depth_max:
                raise sql_error(f"nested more than {depth_max} deep", text, token.start, token.end)
        elif token.token_type in _CLOSING:
            depth -= 1
    return tokens

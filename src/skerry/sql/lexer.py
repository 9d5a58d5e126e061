"""Statement text → sqlglot's tokens, by the rules of Spark's own lexer (`model/lexemes.py`).

sqlglot's tokenizer reads some literals otherwise than Spark does (`'it''s'`, `1BD`, `\\u00e9`), so the
parser gets its tokens from here.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping

from sqlglot.tokens import Token, TokenType

from skerry.model.errors import SqlError
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
# The word of IDENTIFIER('name'), and the mark of a token that is all of a name.
_CLAUSE, WHOLE = "IDENTIFIER", "whole"
_PLAIN = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_RELATION_STARTS = (TokenType.FROM, TokenType.JOIN)
_OPENING = {TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.CASE}
_CLOSING = {TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.END}


def tokens_of(
    text: str, depth: int, most: int = sys.maxsize, *, has_hints: bool = False, said: Mapping[str, str] | None = None
) -> list[Token]:
    """All tokens of `text`: more than `most`, or nesting deeper than `depth`, the parser does not meet.

    `said`: the strings that variables are, for IDENTIFIER(x).
    """
    tokens = _tokens(text, most, has_hints)
    if said:
        _say_names(tokens, said)
    return _checked(_with_names(tokens, text), text, depth)


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


def _say_names(tokens: list[Token], said: Mapping[str, str]) -> None:
    """`IDENTIFIER(x)` becomes `IDENTIFIER('orders')` where x is a variable: no column is seen there."""
    for at in range(len(tokens) - 3):
        word, opening, name, closing = tokens[at : at + 4]
        kinds = [word.token_type, opening.token_type, closing.token_type]
        is_clause = kinds == [TokenType.VAR, TokenType.L_PAREN, TokenType.R_PAREN] and word.text.upper() == _CLAUSE
        is_name = name.token_type in (TokenType.VAR, TokenType.IDENTIFIER)
        if is_clause and is_name and name.text.lower() in said:
            tokens[at + 2] = Token(TokenType.STRING, said[name.text.lower()], start=name.start, end=name.end)


def _with_names(tokens: list[Token], text: str) -> list[Token]:
    """`IDENTIFIER('oslo.orders')` becomes the name that it says, in backquotes: the gate knows names alone.

    Spark takes it for a name wherever one may stand. What has several parts or is computed, `'a' || 'b'`, stands only
    for a relation, a column or a function: such a token has the comment WHOLE, by which the grammar knows it.
    """
    made: list[Token] = []
    rest = iter(range(len(tokens)))
    for at in rest:
        token = tokens[at]
        upto = _name_upto(tokens, at) if token.token_type == TokenType.VAR and token.text.upper() == _CLAUSE else at
        if upto == at:
            made.append(token)
            continue
        strings = [each.text for each in tokens[at:upto] if each.token_type == TokenType.STRING]
        parts, end = _name_parts("".join(strings)), tokens[upto - 1].end
        is_prefix = upto < len(tokens) and tokens[upto].token_type == TokenType.DOT
        if not parts or not _may_be_named([each.token_type for each in made[-3:]], is_prefix):
            raise sql_error("IDENTIFIER takes a whole name as a string: IDENTIFIER('orders')", text, token.start, end)
        for place, part in enumerate(parts):
            if place:
                made.append(Token(TokenType.DOT, ".", start=token.start, end=end))
            comments = [WHOLE] if place == 0 and len(strings) + len(parts) > 2 else []
            made.append(Token(TokenType.IDENTIFIER, part, start=token.start, end=end, comments=comments))
        for _ in range(upto - at - 1):
            next(rest)
    return made


def _may_be_named(before: list[TokenType], is_prefix: bool) -> bool:
    """Whether Spark reads a name there. In an expression `t.IDENTIFIER('a')` calls a function of t, and what stands
    behind the dot of `IDENTIFIER('t').a` is a field; in FROM both are parts of a relation's name."""
    last = before[-1] if before else None
    if last == TokenType.DOT:
        return before[-2] == TokenType.R_PAREN or before[0] in _RELATION_STARTS
    return last != TokenType.COLON and (not is_prefix or last in _RELATION_STARTS)


def _name_upto(tokens: list[Token], at: int) -> int:
    """Where `IDENTIFIER('a' || 'b')` ends that begins at `at`; `at` itself if none does."""
    kinds = [token.token_type for token in tokens[at + 1 : at + 3]]
    if kinds != [TokenType.L_PAREN, TokenType.STRING]:
        return at
    end = at + 3
    while [token.token_type for token in tokens[end : end + 2]] == [TokenType.DPIPE, TokenType.STRING]:
        end += 2
    is_closed = end < len(tokens) and tokens[end].token_type == TokenType.R_PAREN
    return end + 1 if is_closed else at


def _name_parts(name: str) -> list[str]:
    """`a.b` of the string of IDENTIFIER; none where it is no name."""
    try:
        tokens = _tokens(name, sys.maxsize, has_hints=False)
    except SqlError:
        return []
    names, dots = tokens[::2], tokens[1::2]
    are_names = all(each.token_type == TokenType.IDENTIFIER or _PLAIN.fullmatch(each.text) for each in names)
    are_dots = len(tokens) % 2 == 1 and all(each.token_type == TokenType.DOT for each in dots)
    return [each.text for each in names] if are_names and are_dots else []


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

"""Statement text → sqlglot's tokens, by the rules of Spark's own lexer (`model/lexemes.py`).

sqlglot's tokenizer reads some literals otherwise than Spark does (`'it''s'`, `1BD`, `\\u00e9`), so the
parser gets its tokens from here.
"""

from __future__ import annotations

from sqlglot.tokens import Token, TokenType

from skerry.model.lexemes import OPERATORS, Kind, lexemes
from skerry.model.position import sql_error
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


def tokens_of(text: str, depth: int, *, has_hints: bool = False) -> list[Token]:
    """All tokens of `text`; nesting deeper than `depth` is refused before the parser meets it."""
    return _checked(_tokens(text, has_hints), text, depth)


def _tokens(text: str, has_hints: bool) -> list[Token]:
    """Two-word keywords become one token, adjacent strings one string, as Spark has it."""
    made: list[Token] = []
    before = ""  # the word that the last token is, in capitals
    for kind, value, start, upto in lexemes(text, has_hints=has_hints):
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
        if kind == "operator":
            made.append(Token(_OPERATORS[value], value, start=start, end=upto - 1))
        elif kind == "string" and made and made[-1].token_type == TokenType.STRING:
            made[-1] = Token(TokenType.STRING, made[-1].text + value, start=made[-1].start, end=upto - 1)
        else:
            made.append(Token(_KINDS[kind], value, start=start, end=upto - 1))
    return made


def _checked(tokens: list[Token], text: str, depth_max: int) -> list[Token]:
    depth = 0
    for token in tokens:
        if token.token_type in _OPENING:
            depth += 1
            if depth > depth_max:
                raise sql_error(f"nested more than {depth_max} deep", text, token.start, token.end)
        elif token.token_type in _CLOSING:
            depth -= 1
    return tokens

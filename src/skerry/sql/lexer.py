"""Statement text → tokens, by the rules of Spark's own lexer.

sqlglot's tokenizer reads some literals otherwise than Spark does (`'it''s'`, `1BD`, `\\u00e9`), so the
parser gets its tokens from here. Strings arrive decoded, numbers as they were written, comments not at all.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from sqlglot.tokens import Token, TokenType

from skerry.sql.position import sql_error
from skerry.sql.words import KEYWORDS, PAIRS

_SPACE = r"[ \t\n\f\r\u000b\u00a0\u1680\u2000-\u200a\u2028\u202f\u205f\u3000]+"
_LINE_COMMENT = r"--(?:\\\n|[^\r\n])*\r?\n?"
_SKIPPED = re.compile(rf"(?:{_SPACE}|{_LINE_COMMENT})+")
_DIGITS = r"(?:[0-9]+\.[0-9]*|\.[0-9]+)"
_NUMBER = re.compile(rf"(?:{_DIGITS}(?:[eE][+-]?[0-9]+)?(?:BD|[FD])?|[0-9]+(?:[eE][+-]?[0-9]+)?(?:BD|[FDLSY])?)", re.I)
_WORD = re.compile(r"[^\W]+")
# Most tokens: neither a number nor the X or R of a string.
_SURE_WORD = re.compile(r"[^\W\d]\w*+(?!\s*['\"])")
_SINGLE = r"'(?:[^'\\]|\\.|'')*'"
_DOUBLE = r'"(?:[^"\\]|\\.|"")*"'
_STRING = re.compile(rf"{_SINGLE}|{_DOUBLE}", re.S)
_RAW = re.compile(r"[rR](?:'[^']*'|\"[^\"]*\")")
_HEX = re.compile(rf"[xX]\s*(?:{_SINGLE}|{_DOUBLE})", re.S)
_QUOTED = re.compile(r"`(?:[^`]|``)*`", re.S)

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
_OPENING = {TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.CASE}
_CLOSING = {TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.END}


def tokens_of(text: str, depth: int) -> list[Token]:
    """All tokens of `text`; nesting deeper than `depth` is refused before the parser meets it."""
    return _checked(_joined(list(_scan(text))), text, depth)


def _scan(text: str) -> Iterator[Token]:
    at = 0
    while at < len(text):
        if match := _SKIPPED.match(text, at):
            at = match.end()
        elif text.startswith("/*", at):
            at = _comment_end(text, at)
        else:
            token = _token(text, at)
            yield token
            at = token.end + 1


def _comment_end(text: str, start: int) -> int:
    """Bracketed comments nest; `/*+` is a hint, which would be lost with them."""
    if text.startswith("/*+", start):
        raise sql_error(
            "hints (/*+ … */) are not admitted: Skerry plans the joins; remove the hint", text, start, start + 2
        )
    depth = 0
    for mark in re.finditer(r"/\*|\*/", text[start:]):
        depth += 1 if mark.group() == "/*" else -1
        if depth == 0:
            return start + mark.end()
    raise sql_error("this comment is never closed", text, start, start + 1)


def _token(text: str, at: int) -> Token:
    if match := _SURE_WORD.match(text, at):
        return _word(match)
    if match := _STRING.match(text, at):
        return _made(TokenType.STRING, unescape(match.group()), at, match.end())
    if match := _RAW.match(text, at):
        return _made(TokenType.STRING, match.group()[2:-1], at, match.end())
    if match := _HEX.match(text, at):
        digits = unescape(match.group()[1:].lstrip())
        if not re.fullmatch(r"[0-9a-fA-F]*", digits):
            raise sql_error("X'…' takes hexadecimal digits only", text, at, match.end() - 1)
        return _made(TokenType.HEX_STRING, digits, at, match.end())
    if match := _QUOTED.match(text, at):
        return _made(TokenType.IDENTIFIER, match.group()[1:-1].replace("``", "`"), at, match.end())
    if text[at] in "'\"`":
        raise sql_error("this quote is never closed", text, at)
    number = _number(text, at)
    if number:
        return _made(TokenType.NUMBER, text[at:number], at, number)
    if match := _WORD.match(text, at):
        return _word(match)
    return _operator(text, at)


def _word(match: re.Match[str]) -> Token:
    word = match.group()
    return _made(KEYWORDS.get(word.upper(), TokenType.VAR), word, match.start(), match.end())


def _number(text: str, at: int) -> int | None:
    """The end of the number at `at`; `1a` is a name, and so is what follows a dot as in `t.1`."""
    match = _NUMBER.match(text, at)
    if not match:
        return None
    word = _WORD.match(text, at)
    # Spark takes the longest match: `1a`, `1e`, `12_3` are identifiers, `1.a` is 1 then `.a`.
    if word and word.end() > match.end():
        return None
    end = match.end()
    if "." in match.group() and _WORD.match(text, end):
        # A decimal may not run into a name (`1.a`): Spark reads the whole part alone.
        whole = re.compile(r"[0-9]+").match(text, at)
        return whole.end() if whole else None
    return end


def _operator(text: str, at: int) -> Token:
    if text.startswith("|>", at):
        raise sql_error("the pipe syntax (|>) is not admitted; write it as nested SELECTs", text, at, at + 1)
    for size in (3, 2, 1):
        kind = _OPERATORS.get(text[at : at + size])
        if kind is not None:
            return _made(kind, text[at : at + size], at, at + size)
    raise sql_error(f"{text[at]!r} is no part of SQL here", text, at)


def _made(kind: TokenType, value: str, start: int, end: int) -> Token:
    return Token(kind, value, start=start, end=end - 1)


def _joined(tokens: list[Token]) -> list[Token]:
    """Two-word keywords become one token, adjacent strings one string, as Spark has it."""
    made: list[Token] = []
    for token in tokens:
        last = made[-1] if made else None
        if last is not None and last.token_type == token.token_type == TokenType.STRING:
            made[-1] = _made(TokenType.STRING, last.text + token.text, last.start, token.end + 1)
            continue
        pair = PAIRS.get((last.text.upper(), token.text.upper())) if last is not None else None
        if pair is not None and last is not None and _is_word(last, token):
            made[-1] = _made(pair, f"{last.text} {token.text}".upper(), last.start, token.end + 1)
        else:
            made.append(token)
    return made


def _is_word(*tokens: Token) -> bool:
    return all(
        token.token_type not in (TokenType.IDENTIFIER, TokenType.STRING, TokenType.HEX_STRING) for token in tokens
    )


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


_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-1][0-7]{2})|(.))", re.S)
_LETTERS = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": "\\%", "_": "\\_"}


def unescape(quoted: str) -> str:
    """The value of a quoted string literal, by Spark's rules."""
    quote, body = quoted[0], quoted[1:-1]
    pieces: list[str] = []
    at = 0
    while at < len(body):
        if body[at] == "\\" and (match := _ESCAPE.match(body, at)):
            pieces.append(_unescaped(match))
            at = match.end()
        elif body.startswith(quote * 2, at):
            pieces.append(quote)
            at += 2
        else:
            pieces.append(body[at])
            at += 1
    # Two escapes may make one character beyond the first plane.
    return "".join(pieces).encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _unescaped(match: re.Match[str]) -> str:
    short, long, octal, letter = match.groups()
    if short or long:
        code = int(short or long, 16)
        return chr(code) if code <= 0x10FFFF else "\ufffd"
    if octal:
        return chr(int(octal, 8))
    return _LETTERS.get(letter, letter)


def escape(value: str) -> str:
    """A string literal that Spark reads as `value`. `${` never stands in it: no substitution can see it."""
    body = value.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n").replace("\r", "\\r")
    body = body.replace("\0", "\\0").replace("${", "\\u0024{")
    return f"'{body}'"

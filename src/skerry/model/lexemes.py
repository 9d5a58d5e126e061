"""Statement text → lexemes, by the rules of Spark's own lexer: what both a client and a member can say of a text.

Strings arrive decoded, numbers as they were written, comments not at all. `sql/lexer.py` makes tokens of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

from skerry.model.position import sql_error

_SPACE = r"[ \t\n\f\r\u000b\u00a0\u1680\u2000-\u200a\u2028\u202f\u205f\u3000]+"
_LINE_COMMENT = r"--(?:\\\n|[^\r\n])*\r?\n?"
_BRACKET = re.compile(r"/\*|\*/")
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

OPERATORS = frozenset("<=> <= !> >= !< <> != == || |> -> => :: ( ) [ ] & ^ : , . - = > < % ! | + ; / * ~ ?".split())
_SIZES = sorted({len(each) for each in OPERATORS}, reverse=True)


# A name is what stands in backticks; a word may be a name as well.
Kind = Literal["word", "name", "string", "hex", "number", "operator", "hint"]

# The one hint that plans have, and how it is written.
_HINT = re.compile(r"/\*\+ BROADCAST\(((?:`\w+`|\w+)(?:, (?:`\w+`|\w+))*)\) \*/")
# Any hint, as clients write them: its strings may hold what ends a comment.
_ANY_HINT = re.compile(rf"/\*\+(?:[^*'\"`/]|\*(?!/)|/(?!\*)|(?>{_SINGLE}|{_DOUBLE}|`(?:[^`]|``)*`))*+\*/", re.S)


class Lexeme(NamedTuple):
    """`value` is without quotes and escapes; `text[start:upto]` is how it was written."""

    kind: Kind
    value: str
    start: int
    upto: int


def lexemes(text: str, *, has_hints: bool = False) -> Iterator[Lexeme]:
    """All of `text` in order; SqlError at what Spark's lexer would not take either.

    has_hints: it is a fragment's text, which may have the hints that planners make. Those of clients are any.
    """
    at = 0
    before = ""
    while at < len(text):
        if match := _SKIPPED.match(text, at):
            at = match.end()
        elif has_hints and (match := _HINT.match(text, at)):
            yield Lexeme("hint", match[1], at, match.end())
            at = match.end()
        elif not has_hints and before == "SELECT" and (match := _ANY_HINT.match(text, at)):
            yield Lexeme("hint", match.group(), at, match.end())
            at = match.end()
        elif text.startswith("/*", at):
            at = _comment_end(text, at)
        else:
            lexeme = _lexeme(text, at)
            yield lexeme
            at = lexeme.upto
            before = lexeme.value.upper() if lexeme.kind == "word" else ""


def _comment_end(text: str, start: int) -> int:
    """Bracketed comments nest; `/*+` is no comment but a hint, which has one place."""
    if text.startswith("/*+", start):
        raise sql_error("a hint (/*+ … */) stands right behind SELECT, and nowhere else", text, start, start + 2)
    depth = 0
    for mark in _BRACKET.finditer(text, start):
        depth += 1 if mark.group() == "/*" else -1
        if depth == 0:
            return mark.end()
    raise sql_error("this comment is never closed", text, start, start + 1)


def _lexeme(text: str, at: int) -> Lexeme:
    if match := _SURE_WORD.match(text, at):
        return Lexeme("word", match.group(), at, match.end())
    if match := _STRING.match(text, at):
        return Lexeme("string", unescape(match.group()), at, match.end())
    if match := _RAW.match(text, at):
        return Lexeme("string", match.group()[2:-1], at, match.end())
    if match := _HEX.match(text, at):
        digits = unescape(match.group()[1:].lstrip())
        if not re.fullmatch(r"[0-9a-fA-F]*", digits):
            raise sql_error("X'…' takes hexadecimal digits only", text, at, match.end() - 1)
        return Lexeme("hex", digits, at, match.end())
    if match := _QUOTED.match(text, at):
        return Lexeme("name", match.group()[1:-1].replace("``", "`"), at, match.end())
    if text[at] in "'\"`":
        raise sql_error("this quote is never closed", text, at)
    number = _number(text, at)
    if number:
        return Lexeme("number", text[at:number], at, number)
    if match := _WORD.match(text, at):
        return Lexeme("word", match.group(), at, match.end())
    return _operator(text, at)


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


def _operator(text: str, at: int) -> Lexeme:
    for size in _SIZES:
        if text[at : at + size] in OPERATORS:
            return Lexeme("operator", text[at : at + size], at, at + size)
    shown = text[at] if text[at].isprintable() else ascii(text[at])[1:-1]
    raise sql_error(f"'{shown}' is no part of SQL here", text, at)


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
    body = body.replace("\0", "\\u0000").replace("${", "\\u0024{")
    return f"'{body}'"

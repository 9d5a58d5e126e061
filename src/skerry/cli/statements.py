"""Where one SQL statement ends and the next begins, by Spark's rules for quotes and comments."""

from __future__ import annotations

import re

# A semicolon inside any of these ends nothing. Unfinished quotes and comments run to the end of the text.
_TOKEN = re.compile(
    r"""
      (?P<comment> --[^\n]* )
    | (?P<bracketed> /\* )
    | (?P<raw> (?<![A-Za-z0-9_]) [rR] (?: '[^']*(?:'|(?P<open_raw1>\Z)) | "[^"]*(?:"|(?P<open_raw2>\Z)) ) )
    | (?P<quoted>
          ' (?: [^'\\] | \\. )* (?: ' | (?P<open1>\\?\Z) )
        | " (?: [^"\\] | \\. )* (?: " | (?P<open2>\\?\Z) )
        | ` [^`]* (?: ` | (?P<open3>\Z) )
      )
    | (?P<end> ; )
    | (?P<other> [^-/rR'"`;]+ | . )
    """,
    re.VERBOSE | re.DOTALL,
)
_WORD = re.compile(r"\w+")
_BRACKET = re.compile(r"/\*|\*/")


def split(text: str) -> tuple[list[str], str]:
    """The statements that a semicolon ends, without it, and what follows the last one."""
    statements: list[str] = []
    begin = at = 0
    has_sql = False
    while at < len(text):
        token = _TOKEN.match(text, at)
        assert token is not None
        at = token.end()
        if token["bracketed"]:
            at = _after_bracketed(text, at)
        elif token["end"]:
            if has_sql:
                statements.append(text[begin : token.start()].strip())
            begin, has_sql = at, False
        elif not token["comment"] and not token[0].isspace():
            has_sql = True
    return statements, text[begin:].strip() if has_sql else ""


_DEFINING = ("CREATE", "DROP", "ALTER", "FLUSH", "DECLARE", "SET", "USE", "BEGIN", "START", "COMMIT", "ROLLBACK")


def done_text(statement: str) -> str:
    """What was done by a statement that is not about rows; "" for one that is."""
    word = first_word(statement)
    if word not in _DEFINING:
        return ""
    is_about_table = re.search(rf"\b{word}\s+TABLE\b", statement, re.IGNORECASE) is not None
    return f"{word} TABLE done" if is_about_table else f"{word} done"


_TEXTS = re.compile(r"\bSHOW\s+CREATE\s+TABLE\b", re.IGNORECASE)


def is_told_as_text(statement: str) -> bool:
    """Whether its rows are lines for a person, and no table."""
    word = first_word(statement)
    return word == "EXPLAIN" or (word == "SHOW" and _TEXTS.search(statement) is not None)


def first_word(statement: str) -> str:
    """In capitals, whatever comments stand before it."""
    at = 0
    while at < len(statement):
        token = _TOKEN.match(statement, at)
        assert token is not None
        at = token.end()
        if token["bracketed"]:
            at = _after_bracketed(statement, at)
        elif not token["comment"] and not token[0].isspace():
            word = _WORD.search(statement, token.start())
            return word[0].upper() if word is not None else ""
    return ""


def _after_bracketed(text: str, at: int) -> int:
    """Where a comment ends that began before `at`; Spark's bracketed comments nest."""
    depth = 1
    while depth:
        bracket = _BRACKET.search(text, at)
        if bracket is None:
            return len(text)
        depth += 1 if bracket[0] == "/*" else -1
        at = bracket.end()
    return at

"""What is seen from a statement's text: whether it orders its result, and how long its expressions are."""

from __future__ import annotations

import re
from collections.abc import Iterator

_TOKEN = re.compile(
    r"""(?P<quoted>'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*"|`(?:[^`]|``)*`)
      | (?P<open>\() | (?P<close>\))
      | (?P<order>\b(?:ORDER|SORT)\s+BY\b)""",
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)

_OPERATOR = re.compile(
    r"""(?P<quoted>'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*"|`(?:[^`]|``)*`|/\*.*?\*/)
      | (?P<open>\(|\bCASE\b) | (?P<close>\)|\bEND\b)
      | (?P<between>\bBETWEEN\b)
      | (?P<operator>\b(?:AND|OR|DIV)\b|\|\||[-+*/%&|^])
      | (?P<set>\b(?:UNION|INTERSECT|EXCEPT|MINUS)\b)
      | (?P<other>,|\b(?:SELECT|FROM|WHERE|ON|GROUP|HAVING|ORDER|SORT|WHEN|THEN|ELSE)\b)""",
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)


def operators_in_a_row(sql: str) -> int:
    """How deep a tree `a OR b OR …` makes, those in brackets within it included, or all UNIONs; rather too many."""
    most, enclosing, row, sets = 0, [0], 0, 0
    for match in _OPERATOR.finditer(sql):
        match match.lastgroup:
            case "open":
                enclosing.append(row)
            case "close" if len(enclosing) > 1:
                row = enclosing.pop()
            case "operator":
                row += 1
                most = max(most, row)
            case "between":
                row -= 1  # its AND is part of it
            case "set":
                sets, row = sets + 1, enclosing[-1]
            case "other":
                row = enclosing[-1]
    return max(most, sets)


def orders_result(sql: str) -> bool:
    """ORDER BY or SORT BY outside of all parentheses and quotes."""
    return next(_top_level(sql), None) is not None


def with_total_order(sql: str) -> str:
    """The result's SORT BY as ORDER BY: one sorted run instead of one per partition."""
    parts = []
    position = 0
    for match in _top_level(sql):
        parts += [sql[position : match.start()], "ORDER BY"]
        position = match.end()
    return "".join([*parts, sql[position:]])


def _top_level(sql: str) -> Iterator[re.Match[str]]:
    depth = 0
    for match in _TOKEN.finditer(sql):
        depth += (match.lastgroup == "open") - (match.lastgroup == "close")
        if match.lastgroup == "order" and depth == 0:
            yield match

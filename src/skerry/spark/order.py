"""Whether a statement orders its result, seen from its text."""

from __future__ import annotations

import re
from collections.abc import Iterator

_TOKEN = re.compile(
    r"""(?P<quoted>'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*"|`(?:[^`]|``)*`)
      | (?P<open>\() | (?P<close>\))
      | (?P<order>\b(?:ORDER|SORT)\s+BY\b)""",
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)


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

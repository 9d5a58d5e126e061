"""How many operators of a statement follow each other, seen from its text."""

from __future__ import annotations

import re

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

"""Values that surely cannot be compared with a column of a type: known without the statement. Pure.

Only what Spark certainly refuses is refused; what depends on the rows, or on Spark's finer rules, is Spark's.
"""

from __future__ import annotations

import calendar
import datetime as dt
import re
from decimal import Decimal
from typing import Any

_NUMBERS = frozenset({"tinyint", "smallint", "int", "bigint", "float", "double", "decimal"})
_TIMES = frozenset({"date", "timestamp", "timestamp_ntz"})
_FAMILIES = _NUMBERS | _TIMES | {"boolean", "string", "binary"}

# Generous: 'nan' and '1.5' are no bigints, but whether Spark takes them is for Spark to say.
_NUMBER = re.compile(r"[+-]?((\d+\.?\d*|\.\d+)(e[+-]?\d+)?[df]?|0x[0-9a-f.]+(p[+-]?\d+)?[df]?|nan|inf|infinity)")
_TRUTHS = frozenset({"t", "true", "y", "yes", "1", "f", "false", "n", "no", "0"})
_MOMENTS = frozenset({"epoch", "now", "today", "tomorrow", "yesterday"})

DATE = re.compile(r"[+-]?([0-9]{4,7})(?:-([0-9]{1,2})(?:-([0-9]{1,2})(?:[ T].*)?)?)?", re.DOTALL)
_DAYS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
BLANKS = "".join(map(chr, [*range(0x21), *range(0x7F, 0xA0)]))  # what Spark trims before it casts


def is_no_date(text: str) -> bool:
    """Whether a text that looks like a date, alone or before a time of day, is one that no calendar has."""
    match = DATE.fullmatch(text.strip(BLANKS))
    if match is None:
        return False
    year, month, day = (int(part or 1) for part in match.groups())
    if not 1 <= month <= 12:
        return True
    days = 29 if month == 2 and calendar.isleap(year) else _DAYS[month - 1]
    return not 1 <= day <= days


def said(value: Any) -> str:
    """A value in a message."""
    return repr(value) if len(repr(value)) <= 40 else f"a value of type {type(value).__name__}"


def may_compare(kind: str, value: Any) -> bool:
    """False when Spark surely refuses to compare a column of the type with the value, or to cast it."""
    family = re.split(r"[(<]", kind, maxsplit=1)[0].strip().lower()
    if family not in _FAMILIES or value is None:
        return True
    match value:
        case str():
            return _may_cast(family, value)
        case bool():
            return family in ("boolean", "string")
        case int() | float() | Decimal():
            return family in _NUMBERS or family == "string"
        case dt.date():  # a datetime is one
            return family in _TIMES or family == "string"
        case bytes():
            return family in ("binary", "string")
        case list() | tuple():
            return False
    return True


def _may_cast(family: str, value: str) -> bool:
    word = value.strip(BLANKS).lower()
    if family in _NUMBERS:
        return _NUMBER.fullmatch(word) is not None
    if family == "boolean":
        return word in _TRUTHS
    if family in _TIMES:
        return word in _MOMENTS or (any(letter.isdigit() for letter in word) and not is_no_date(value))
    return True

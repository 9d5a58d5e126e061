"""Statistics from outside this process, a file or another member: what cannot be so is not believed. Pure."""

from __future__ import annotations

import datetime
import math
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

import msgspec

from skerry.catalog.statistics import TEXT_CHARS
from skerry.model.table import Bound, Column, ColumnStats, PartStats, TablePart

_EPOCH_DAY = datetime.date(1970, 1, 1).toordinal()
_DAYS = (datetime.date.min.toordinal() - _EPOCH_DAY, datetime.date.max.toordinal() - _EPOCH_DAY)
_DAY_US = 86_400_000_000
_WHOLE = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}


def believed(part: TablePart) -> TablePart:
    """The part as far as it can be so: a number of rows below 0, or wrong statistics, are as if they were not told."""
    rows = part.rows if part.rows is not None and part.rows >= 0 else None
    stats = part.stats if part.stats is not None and are_sensible(part.stats, part.columns, rows) else None
    if part.size_bytes >= 0 and rows == part.rows and stats is part.stats:
        return part
    return msgspec.structs.replace(part, rows=rows, stats=stats, size_bytes=max(0, part.size_bytes))


def are_sensible(stats: PartStats, columns: Sequence[Column], rows: int | None) -> bool:
    """Whether statistics of these columns, in so many rows, can be as they are told."""
    types = {column.name: column.type for column in columns}
    return all(each.name in types and _is_sensible(each, types[each.name], rows) for each in stats.columns)


def _is_sensible(stats: ColumnStats, type_: str, rows: int | None) -> bool:
    if stats.nulls is not None and not 0 <= stats.nulls <= (rows if rows is not None else stats.nulls):
        return False
    if not all(number is None or (math.isfinite(number) and number >= 0) for number in (stats.ndv, stats.width_bytes)):
        return False
    try:
        low, high = _value(stats.low, type_), _value(stats.high, type_)
    except (ValueError, InvalidOperation):
        return False
    return low is None or high is None or bool(low <= high)


def _value(bound: Bound, type_: str) -> Any:
    """As values of the type compare; ValueError for what is none of them."""
    match bound:
        case None:
            return None
        case bool():
            pass
        case int() if type_ == "boolean" and bound in (0, 1):
            return bound
        case int() if type_ in _WHOLE and -(2 ** (_WHOLE[type_] - 1)) <= bound < 2 ** (_WHOLE[type_] - 1):
            return bound
        case int() if type_ == "date" and _DAYS[0] <= bound <= _DAYS[1]:
            return bound
        case int() if type_.startswith("timestamp") and _DAYS[0] <= bound // _DAY_US <= _DAYS[1]:
            return bound
        case float() if type_ in ("float", "double") and math.isfinite(bound):
            return bound
        case str() if type_ == "string" and len(bound) <= TEXT_CHARS:
            return bound
        case str() if type_.startswith("decimal") and len(bound) <= 2 * TEXT_CHARS and Decimal(bound).is_finite():
            return Decimal(bound)
    raise ValueError(bound)

"""How many bytes a scan is likely to send: rows × the width of its columns × a guess for its filters."""

from __future__ import annotations

import math
from collections.abc import Iterable

from skerry.catalog.table import Column, TablePart

_FIXED = {
    "boolean": 1,
    "tinyint": 1,
    "smallint": 2,
    "int": 4,
    "date": 4,
    "float": 4,
    "bigint": 8,
    "double": 8,
    "timestamp": 8,
    "timestamp_ntz": 8,
    "void": 1,
}
_DECIMAL = 16
_STRING = 24
_NESTED = 48
# Without statistics of values a filter is taken to keep a third of the rows.
_FILTER_KEEPS = 1 / 3


def width_bytes(column_type: str) -> int:
    """Arrow bytes a value of this type takes, roughly."""
    if column_type in _FIXED:
        return _FIXED[column_type]
    if column_type.startswith("decimal"):
        return _DECIMAL
    if column_type.startswith(("array", "map", "struct")):
        return _NESTED
    return _STRING


def row_bytes(columns: Iterable[Column]) -> int:
    return sum(width_bytes(column.type) for column in columns)


def scan_rows(part: TablePart, has_filter: bool) -> int:
    """Rows a scan of this part sends; a part nobody has counted is guessed from its bytes."""
    rows = part.rows if part.rows is not None else part.size_bytes // max(1, row_bytes(part.columns) // 2)
    return int(rows * _FILTER_KEEPS) if has_filter else rows


def held_row_bytes(part: TablePart) -> float:
    """Bytes of a row as its files hold it, on average; infinite for a part nobody has counted."""
    return math.inf if part.rows is None else part.size_bytes / max(1, part.rows)

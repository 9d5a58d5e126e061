"""One column of each type, a value and a NULL in it: the name of a column is that of its type in Spark."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

KINDS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "boolean": (pa.bool_(), [True, None]),
    "int": (pa.int32(), [-1, None]),
    "bigint": (pa.int64(), [2**40, None]),
    "double": (pa.float64(), [1.5, None]),
    "decimal": (pa.decimal128(10, 2), [Decimal("12.34"), None]),
    "string": (pa.string(), ["smørbrød", None]),
    "binary": (pa.binary(), [b"\x00\xff", None]),
    "date": (pa.date32(), [datetime.date(2024, 2, 29), None]),
    "timestamp": (
        pa.timestamp("us", "UTC"),
        [datetime.datetime(2024, 2, 29, 12, 30, tzinfo=datetime.UTC), None],
    ),
}

"""Values that a query gives, as a table's columns keep them: the same values, or an error. Pure.

Spark's own store assignment rounds decimals and widens times. What is not exact here is refused: a CAST says it.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from skerry.model.errors import UserError
from skerry.model.sharded import OwnColumn
from skerry.tables.columns import arrow_type


def stored(values: pa.Array, said: str, column: OwnColumn) -> pa.Array:
    """`said`: Spark's text for the type of the values. UserError for a value that the column does not take as it is."""
    wanted = arrow_type(column.type)
    if said != column.type and not _is_exact(values.type, wanted):
        raise UserError(
            f"column {column.name} is {column.type}, and the query gives {said}",
            suggestion=f"CAST it AS {column.type.upper()} in the query",
        )
    try:
        made = values.cast(wanted)
    except pa.ArrowException:
        raise UserError(
            f"column {column.name}: a value of type {said} does not fit into {column.type}",
            suggestion=f"CAST it AS {column.type.upper()} in the query",
        ) from None
    if made.null_count and not column.is_nullable:
        raise UserError(f"column {column.name} cannot be NULL", suggestion=f"give {column.name} a value")
    return made


def _is_exact(given: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether Arrow's safe cast gives the same value or fails."""
    types = pa.types
    if types.is_null(given):
        return True
    if types.is_integer(given):
        bits = given.bit_width
        return bool(
            types.is_integer(wanted)
            or types.is_decimal(wanted)
            or (types.is_float64(wanted) and bits <= 32)
            or (types.is_float32(wanted) and bits <= 16)
        )
    if types.is_decimal(given):
        return bool(types.is_decimal(wanted))
    return bool(types.is_float32(given) and types.is_float64(wanted))


def repeated(value: Any, column: OwnColumn, count: int) -> pa.Array:
    """A default, for each row."""
    return pa.array([value] * count, arrow_type(column.type))

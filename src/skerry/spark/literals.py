"""Parameters of a statement as Spark takes them: literals of exactly the types that wire/values gives them."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

from pyspark.sql.functions import array, expr, lit

from skerry.errors import UserError

INT_MAX = 2**31 - 1


def to_literal(name: str, value: Any) -> Any:
    """What `spark.sql` takes as the argument `name`. It wants literals: a cast is refused there."""
    match value:
        case dt.datetime() if value.tzinfo is None:
            # pyspark would take it for a timestamp in the zone of this process.
            return expr(f"TIMESTAMP_NTZ'{value.isoformat(sep=' ')}'")
        case Decimal():
            return expr(f"{value:f}BD")  # Spark Connect would widen it to ten digits
        case list() | tuple():
            return _array(name, list(value))
    return value


def _array(name: str, items: list[Any]) -> Any:
    """Spark binds an array only when all its elements are literals of one type."""
    if any(item is None for item in items):
        raise UserError(f"parameter {name}: a list with NULL in it cannot be a parameter")
    integers = [item for item in items if isinstance(item, int) and not isinstance(item, bool)]
    if len(integers) == len(items) and any(not -INT_MAX <= item <= INT_MAX for item in items):
        return array(*[expr(f"{item:d}L") for item in items])
    shapes = {_shape(item) for item in items if isinstance(item, Decimal)}
    if len(shapes) > 1:
        raise UserError(
            f"parameter {name}: the decimals of a list must have equally many digits before and after the point",
            suggestion="pass them as float, or as several parameters",
        )
    return array(*[lit(to_literal(name, item)) for item in items])  # `lit` leaves columns as they are


def _shape(value: Decimal) -> tuple[int, int]:
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)  # values.py refuses NaN and infinity
    scale = max(0, -exponent)
    return max(len(digits) + max(0, exponent), scale, 1), scale

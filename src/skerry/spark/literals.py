"""Parameters of a statement as Spark takes them: literals of exactly the types that wire/values gives them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from pyspark.sql import types
from pyspark.sql.functions import array, expr, lit

from skerry.model.errors import UserError

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
            return _array(name, list(value), _element_type(name, list(_leaves(value))))
    return value


def _array(name: str, items: list[Any], element: types.DataType | None) -> Any:
    """Spark binds an array only when all its elements are literals of one type, its NULLs among them."""
    literals = []
    for item in items:
        if isinstance(item, list | tuple):
            literals.append(_array(name, list(item), element))
        elif item is None and element is not None:
            literals.append(_null(_nested(element, _depth(items) - 1)))
        elif isinstance(element, types.LongType):
            literals.append(expr(f"{item:d}L"))
        else:
            literals.append(lit(to_literal(name, item)))  # `lit` leaves columns as they are
    return array(*literals)


def _leaves(items: list[Any] | tuple[Any, ...]) -> Iterator[Any]:
    for item in items:
        if isinstance(item, list | tuple):
            yield from _leaves(item)
        elif item is not None:
            yield item


def _depth(items: list[Any] | tuple[Any, ...]) -> int:
    return 1 + max((_depth(item) for item in items if isinstance(item, list | tuple)), default=0)


def _nested(element: types.DataType, depth: int) -> types.DataType:
    for _ in range(depth):
        element = types.ArrayType(element)
    return element


def _element_type(name: str, leaves: list[Any]) -> types.DataType | None:
    """The one type of all values in a list, however deep; None where there are none but NULL."""
    match leaves[0] if leaves else None:
        case None:
            return None
        case bool():
            return types.BooleanType()
        case int():
            return types.IntegerType() if all(-INT_MAX <= item <= INT_MAX for item in leaves) else types.LongType()
        case float():
            return types.DoubleType()
        case str():
            return types.StringType()
        case bytes():
            return types.BinaryType()
        case Decimal():
            return _decimal_type(name, leaves)
        case dt.datetime() as first:
            return types.TimestampNTZType() if first.tzinfo is None else types.TimestampType()
        case dt.date():
            return types.DateType()
    raise UserError(f"parameter {name}: a list of {type(leaves[0]).__name__} cannot be a parameter")


def _decimal_type(name: str, leaves: list[Any]) -> types.DecimalType:
    shapes = {_shape(item) for item in leaves}
    if len(shapes) > 1:
        raise UserError(
            f"parameter {name}: the decimals of a list must have equally many digits before and after the point",
            suggestion="pass them as float, or as several parameters",
        )
    return types.DecimalType(*shapes.pop())


def _null(kind: types.DataType) -> Any:
    """NULL of a type. Written as SQL it would be a cast."""
    if type(lit(None)).__module__.startswith("pyspark.sql.connect"):
        from pyspark.sql.connect.column import Column as ConnectColumn
        from pyspark.sql.connect.expressions import LiteralExpression

        return ConnectColumn(LiteralExpression(None, kind))
    from pyspark import SparkContext
    from pyspark.sql.classic.column import Column as ClassicColumn

    context = SparkContext._active_spark_context
    assert context is not None
    jvm: Any = context._jvm
    literal = jvm.org.apache.spark.sql.catalyst.expressions.Literal.create(
        None, jvm.org.apache.spark.sql.types.DataType.fromJson(kind.json())
    )
    return ClassicColumn(jvm.org.apache.spark.sql.classic.ExpressionUtils.column(literal))


def _shape(value: Decimal) -> tuple[int, int]:
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)  # values.py refuses NaN and infinity
    scale = max(0, -exponent)
    return max(len(digits) + max(0, exponent), scale, 1), scale

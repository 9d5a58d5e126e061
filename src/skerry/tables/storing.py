"""Which values a column takes: Spark's ANSI store assignment, and which of it needs no Spark. Pure."""

from __future__ import annotations

import math
from decimal import ROUND_HALF_UP, Context, Decimal
from itertools import starmap

import pyarrow as pa
from pyarrow import types

from skerry.model.columns import BadType
from skerry.model.errors import UserError
from skerry.tables.columns import arrow_type

# Digits of the largest number of each, before the point.
_DIGITS = {pa.int8(): 3, pa.int16(): 5, pa.int32(): 10, pa.int64(): 19}
_VOID = "void"
_REALS = ("double", "float")
_CONTEXT = Context(prec=400)  # the largest double has 309 digits before the point


def takes(target: str, source: str) -> bool:
    """Whether a column of type `target` takes values of type `source`; Spark refuses the others before it runs."""
    if source in (_VOID, target):
        return True
    try:
        given = arrow_type(source)
    except BadType:
        return target == "string"  # an interval has a text
    return _takes(arrow_type(target), given)


def is_exact(target: str, source: str) -> bool:
    """Whether each value is there in both types: then nobody can cast it otherwise than Arrow does."""
    if source in (_VOID, target):
        return True
    try:
        given = arrow_type(source)
    except BadType:
        return False
    return _is_wider(arrow_type(target), given)


def is_cast_here(target: str, source: str) -> bool:
    """Whether the member casts it: Sail multiplies floating point numbers, and gives other digits than Spark."""
    return source in _REALS and target.startswith("decimal(")


def hides_reals(target: str, source: str) -> bool:
    """Whether such values are inside of others, where only an engine could cast them."""
    return "decimal(" in target and not target.startswith("decimal(") and any(real in source for real in _REALS)


def stored_as(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """As a column of the type keeps them. Floating point numbers become decimals as Spark makes them: by their shortest
    text, rounded half up, NULL if they are no numbers. UserError for one that does not fit."""
    if not types.is_decimal(kind) or not types.is_floating(values.type):
        return values.cast(kind)
    unit = Decimal((0, (1,), -kind.scale))
    return pa.array([_exact(value, unit, kind) for value in values.cast(pa.float64()).to_pylist()], kind)


def _exact(value: float | None, unit: Decimal, kind: pa.DataType) -> Decimal | None:
    if value is None or not math.isfinite(value):
        return None
    exact = Decimal(repr(value)).quantize(unit, ROUND_HALF_UP, _CONTEXT)
    if exact and exact.adjusted() >= kind.precision - kind.scale:
        raise UserError(
            f"[NUMERIC_VALUE_OUT_OF_RANGE] {value!r} does not fit decimal({kind.precision},{kind.scale}); nothing was "
            "written"
        )
    return exact if exact else exact.copy_abs()


def _takes(target: pa.DataType, source: pa.DataType) -> bool:
    if target == source or (_is_number(target) and _is_number(source)):
        return True
    if types.is_string(target):
        return not types.is_nested(source)
    if _is_time(target):
        return _is_time(source)
    if target.id != source.id or target.num_fields != source.num_fields:
        return False
    if types.is_map(target):
        return _takes(target.key_type, source.key_type) and _takes(target.item_type, source.item_type)
    if types.is_list(target):
        return _takes(target.value_type, source.value_type)
    if not types.is_struct(target):
        return False
    pairs = [(target.field(place), source.field(place)) for place in range(target.num_fields)]
    return all(own.name.lower() == given.name.lower() for own, given in pairs) and all(
        starmap(_takes, ((own.type, given.type) for own, given in pairs))
    )


def _is_number(kind: pa.DataType) -> bool:
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind))


def _is_time(kind: pa.DataType) -> bool:
    return bool(types.is_date(kind) or types.is_timestamp(kind))


def _is_wider(target: pa.DataType, source: pa.DataType) -> bool:
    if target == source:
        return True
    if types.is_integer(source) and types.is_integer(target):
        return bool(target.bit_width >= source.bit_width)
    if types.is_floating(source) and types.is_floating(target):
        return bool(target.bit_width >= source.bit_width)
    if types.is_decimal(target):
        digits = target.precision - target.scale
        if types.is_decimal(source):
            return bool(target.scale >= source.scale and digits >= source.precision - source.scale)
        return source in _DIGITS and digits >= _DIGITS[source]
    return False

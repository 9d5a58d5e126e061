"""Parameters and errors as they travel: Python values ↔ `Value`, errors ↔ `Failure` (docs/protocol.md, 7)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

from skerry.model.errors import PeerError, SkerryError, UserError, from_code, quoting
from skerry.model.limits import WIRE_ERROR_CHARS
from skerry.model.results import Value
from skerry.wire.messages import Failure

_EPOCH_DATE = dt.date(1970, 1, 1)
_EPOCH = dt.datetime(1970, 1, 1)
_EPOCH_UTC = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MICROSECOND = dt.timedelta(microseconds=1)
_PRECISION_MAX = 38
_DEPTH_MAX = 16
_INTEGERS = ("int", "bigint")


def to_value(value: Any, parameter: str) -> Value:
    """A Python value with the type Spark gives it; `parameter` names it in errors (e.g. `parameter 2`)."""
    return quick_value(value) or _to_value(value, parameter, 0)


def quick_value(value: Any) -> Value | None:
    """The same for most values, about which nothing can be wrong; None for any other."""
    kind = type(value)
    if kind is float:
        return Value("double", value)
    if kind is int and -(2**31) <= value < 2**31:
        return Value("int", value)
    if kind is str and value.isascii():
        return Value("string", value)
    return None


def from_value(value: Value) -> Any:
    """The Python value; PeerError when type and value do not fit."""
    if type(value.value) is _SAME.get(value.type):
        return value.value
    return _from_wire(value.type, value.value, 0)


def from_values(values: Sequence[Value]) -> list[Any]:
    """The same of many."""
    return [
        value.value if type(value.value) is _SAME.get(value.type) else _from_wire(value.type, value.value, 0)
        for value in values
    ]


def failure_of(error: BaseException, member: str = "") -> Failure:
    """An error for the wire; what is not one of ours is an internal error and tells no details but its class."""
    if isinstance(error, SkerryError):
        return Failure(error.code, error.message, error.member or member, error.suggestion)
    return Failure(500, f"internal error: {type(error).__name__} (the log of the member says more)", member)


def error_of(failure: Failure) -> SkerryError:
    """The error a peer reported; it comes to logs and to memory, so a peer may not say more than so much."""
    message, member, suggestion = (
        text[:WIRE_ERROR_CHARS] for text in (failure.message, failure.member, failure.suggestion)
    )
    return from_code(failure.code, message, member=member, suggestion=suggestion)


def _to_value(value: Any, parameter: str, depth: int) -> Value:
    match value:
        case None:
            return Value("void")
        case bool():
            return Value("boolean", value)
        case int():
            return _integer(value, parameter)
        case float():
            return Value("double", value)
        case Decimal():
            return _decimal(value, parameter)
        case str():
            if not value.isascii() and any("\ud800" <= char <= "\udfff" for char in value):
                raise UserError(f"{parameter}: half of a surrogate pair is no Unicode text")
            return Value("string", str(value))
        case bytes() | bytearray() | memoryview():
            return Value("binary", bytes(value))
        case dt.datetime() if value.tzinfo is None:
            return Value("timestamp_ntz", (value - _EPOCH) // _MICROSECOND)
        case dt.datetime():
            return Value("timestamp", (value - _EPOCH_UTC) // _MICROSECOND)
        case dt.date():
            return Value("date", (value - _EPOCH_DATE).days)
        case list() | tuple() if depth < _DEPTH_MAX:
            return _array([_to_value(item, parameter, depth + 1) for item in value], parameter)
    raise UserError(
        f"{parameter}: a value of type {type(value).__name__} cannot be a parameter",
        suggestion="use None, bool, int, float, Decimal, str, bytes, date, datetime or a list of these",
    )


def _integer(value: int, parameter: str) -> Value:
    # As Spark binds Python's integers: the narrowest of int and bigint.
    if -(2**31) <= value < 2**31:
        return Value("int", int(value))
    if -(2**63) <= value < 2**63:
        return Value("bigint", int(value))
    return _decimal(Decimal(value), parameter)


def _decimal(value: Decimal, parameter: str) -> Value:
    _, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        raise UserError(f"{parameter}: {value} is not a decimal number", suggestion="pass it as float")
    scale = max(0, -exponent)
    precision = max(len(digits) + max(0, exponent), scale, 1)
    if precision > _PRECISION_MAX:
        raise UserError(f"{parameter}: {precision} digits are more than the {_PRECISION_MAX} a decimal can hold")
    return Value(f"decimal({precision},{scale})", f"{value:f}")


def _array(items: list[Value], parameter: str) -> Value:
    kinds = {item.type for item in items if item.type != "void"}
    if len(kinds) > 1 and kinds <= set(_INTEGERS):
        kinds = {"bigint"}
    elif len(kinds) > 1 and all(kind.startswith("decimal(") for kind in kinds):
        kinds = {_widest(kinds, parameter)}
    if len(kinds) > 1:
        raise UserError(f"{parameter}: a list must hold values of one type, this one holds {', '.join(sorted(kinds))}")
    element = kinds.pop() if kinds else "void"
    return Value(f"array<{element}>", [item.value for item in items])


def _widest(kinds: set[str], parameter: str) -> str:
    shapes = [tuple(map(int, kind[len("decimal(") : -1].split(","))) for kind in kinds]
    scale = max(scale for _, scale in shapes)
    precision = scale + max(precision - scale for precision, scale in shapes)
    if precision > _PRECISION_MAX:
        raise UserError(f"{parameter}: the decimals of the list need {precision} digits, {_PRECISION_MAX} is the most")
    return f"decimal({precision},{scale})"


def _expect(kind: type, convert: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def read(value: Any) -> Any:
        if type(value) is not kind:
            raise TypeError(f"{type(value).__name__} where {kind.__name__} was due")
        return convert(value)

    return read


def _exact(text: str) -> Decimal:
    """A few letters may say a number of a billion digits, which nobody writes out."""
    value = Decimal(text)
    _, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int) or max(len(digits), len(digits) + exponent, -exponent) > _PRECISION_MAX:
        raise ValueError(f"it has more than {_PRECISION_MAX} digits, or none")
    return value


# What is the same in Python: most values of most statements.
_SAME = {"boolean": bool, "int": int, "bigint": int, "double": float, "string": str, "binary": bytes}
_READERS: dict[str, Callable[[Any], Any]] = {
    "boolean": _expect(bool, bool),
    "int": _expect(int, int),
    "bigint": _expect(int, int),
    "double": _expect(float, float),
    "string": _expect(str, str),
    "binary": _expect(bytes, bytes),
    "date": _expect(int, lambda days: _EPOCH_DATE + dt.timedelta(days=days)),
    "timestamp_ntz": _expect(int, lambda micros: _EPOCH + dt.timedelta(microseconds=micros)),
    "timestamp": _expect(int, lambda micros: _EPOCH_UTC + dt.timedelta(microseconds=micros)),
    "decimal": _expect(str, _exact),
}


def _from_wire(kind: str, value: Any, depth: int) -> Any:
    if value is None:
        return None
    if kind.startswith("array<") and kind.endswith(">") and isinstance(value, list) and depth <= _DEPTH_MAX:
        element = kind[len("array<") : -1]
        return [_from_wire(element, item, depth + 1) for item in value]
    read = _READERS.get("decimal" if kind.startswith("decimal(") else kind)
    if read is None:
        raise PeerError(f"a parameter of unknown type {kind[:100]!r}")
    try:
        return read(value)
    except (TypeError, ValueError, OverflowError, InvalidOperation) as error:
        raise quoting(PeerError(f"a parameter of type {kind} holds something else: {error}")) from None

"""Constants that a write needs no Spark for: their exact values, and what they are in a column or beside a key.

Right or not at all: whatever Spark might see otherwise raises `Unsure`, and the write goes to Spark. Pure.
"""

from __future__ import annotations

import datetime as dt
import math
import re
import struct
from collections.abc import Mapping, Sequence
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any

from sqlglot import exp

from skerry.model.columns import decimal_digits
from skerry.model.limits import DECIMAL_DIGITS
from skerry.sql.nodes import TypedLiteral, UnaryPlus

_BITS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}
_OF_KIND = {**dict.fromkeys(_BITS, int), "double": float, "string": str, "binary": bytes, "boolean": bool}
_SUFFIXES = {"L": "bigint", "S": "smallint", "Y": "tinyint"}
_WHOLE = re.compile(r"([0-9]+)([LSY]?)", re.IGNORECASE)
_EXACT = re.compile(r"([0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[Bb]))([Bb][Dd])?")
_DOUBLE = re.compile(r"(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[Ee][+-]?[0-9]+)?[Dd]?")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_MOMENT = re.compile(rf"{_DATE.pattern}[ T][0-9]{{2}}:[0-9]{{2}}:[0-9]{{2}}(?:\.[0-9]{{1,6}})?")
_OFFSET = re.compile(r"(?:Z|[+-](?:0[0-9]|1[0-7]):[0-5][0-9]|[+-]18:00)")
_FLOAT_WHOLE = 2**53  # larger whole numbers would be rounded twice on their way to a float
_CONTEXT = Context(prec=100)  # more than two decimals have together: nothing here is rounded but to a column's scale


class Unsure(Exception):
    """Only Spark can say: `reason` is for EXPLAIN."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Misfit(Exception):
    """No value of the column: Spark refuses it as well."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


def is_plain(node: exp.Expr) -> bool:
    """Whether it is written as a constant or as a marker; `constant` may be unsure of it all the same."""
    while isinstance(node, exp.Paren | exp.Neg | UnaryPlus):
        node = node.this
    return isinstance(node, exp.Literal | exp.Boolean | exp.Null | exp.HexString | TypedLiteral | exp.Placeholder)


def constant(node: exp.Expr, parameters: Mapping[str, Any]) -> Any:
    """None, bool, int, float, Decimal, str, bytes, date, datetime (with a zone: TIMESTAMP) or a list of these."""
    match node:
        case exp.Paren():
            return constant(node.this, parameters)
        case exp.Neg() | UnaryPlus() if isinstance(node.this, exp.Literal) and not node.this.is_string:
            return _number(str(node.this.this), "-" if isinstance(node, exp.Neg) else "")
        case exp.Null():
            return None
        case exp.Boolean():
            return bool(node.this)
        case exp.Literal():
            return str(node.this) if node.is_string else _number(str(node.this), "")
        case exp.HexString():
            if len(node.name) % 2:
                raise Unsure("an odd number of hexadecimal digits is read by Spark")
            return bytes.fromhex(node.name)
        case TypedLiteral():
            return _moment(node.args["kind"].name.upper(), str(node.this.this))
        case exp.Placeholder():
            return parameters[node.name]
    raise Unsure("an expression is computed by Spark")


def _number(text: str, sign: str) -> int | float | Decimal:
    if found := _WHOLE.fullmatch(text):
        value, kind = int(sign + found[1]), _SUFFIXES.get(found[2].upper(), "bigint")
        if _fits(value, kind):
            return value
        if found[2]:
            raise Unsure(f"{text[:40]} is no {kind}: Spark says so")
        return _decimal(sign + found[1])
    if found := _EXACT.fullmatch(text):
        return _decimal(sign + found[1])
    if _DOUBLE.fullmatch(text) and math.isfinite(float(text.rstrip("Dd"))):
        return float(sign + text.rstrip("Dd"))
    raise Unsure("a number of this form is read by Spark")


def _decimal(text: str) -> Decimal:
    value = Decimal(text)
    if sum(_shape(value)) > DECIMAL_DIGITS:
        raise Unsure(f"a number of more than {DECIMAL_DIGITS} digits is read by Spark")
    return value


def _shape(value: Decimal) -> tuple[int, int]:
    """Digits before and behind the point, as Spark types a literal."""
    _, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        raise Unsure(f"{value} is no decimal")
    scale = max(0, -exponent)
    return max(0, len(digits) + exponent), scale


def _fits(value: int, kind: str) -> bool:
    most: int = 2 ** (_BITS[kind] - 1)
    return -most <= value < most


def _moment(kind: str, text: str) -> Any:
    """Whole dates and times alone, with an offset or without: what else Spark reads (`2024-1`, a zone's name, `epoch`)
    is left to it."""
    try:
        if kind == "DATE" and _DATE.fullmatch(text):
            return dt.date.fromisoformat(text)
        if kind in ("TIMESTAMP", "TIMESTAMP_LTZ", "TIMESTAMP_NTZ") and (begun := _MOMENT.match(text)):
            at, _, fraction = begun[0].partition(".")
            micros = int(fraction.ljust(6, "0")) if fraction else 0
            moment = dt.datetime.fromisoformat(at).replace(microsecond=micros)
            offset = text[begun.end() :]
            if kind == "TIMESTAMP_NTZ" and not offset:
                return moment
            if kind != "TIMESTAMP_NTZ" and (not offset or _OFFSET.fullmatch(offset)):
                zone = dt.datetime.strptime(offset, "%z").tzinfo if offset else dt.UTC  # all sessions are in UTC
                return moment.replace(tzinfo=zone).astimezone(dt.UTC)
    except (ValueError, OverflowError):
        pass  # the gate refuses a date that no calendar has; the rest is Spark's
    raise Unsure(f"{kind} '{text[:40]}' is read by Spark")


def check_together(values: Sequence[Any]) -> None:
    """Values of one column of VALUES: Spark brings them to one type before any column sees them.

    Numbers are the same afterwards if 38 digits hold them all. A number among texts is not the same.
    """
    found = {_family(value) for value in values if value is not None}
    if len(found) > 1:
        raise Unsure(f"{' and '.join(sorted(found))} in one column of VALUES are brought to one type by Spark")
    numbers = [value for value in values if isinstance(value, Decimal)]
    if numbers:
        wholes = [(20, 0)] if any(isinstance(value, int) for value in values) else []
        _check_digits([*map(_shape, numbers), *wholes])


def _family(value: Any) -> str:
    match value:
        case bool():
            return "booleans"
        case int() | float() | Decimal():
            return "numbers"
        case dt.datetime():
            return "moments" if value.tzinfo is not None else "moments without zone"
    return {str: "texts", bytes: "binaries", dt.date: "dates"}.get(type(value), "lists")


def _check_digits(shapes: Sequence[tuple[int, int]]) -> None:
    """A type that holds all of them has the most digits before the point and the most behind it."""
    if max(before for before, _ in shapes) + max(scale for _, scale in shapes) > DECIMAL_DIGITS:
        raise Unsure(f"numbers that need more than {DECIMAL_DIGITS} digits together are rounded by Spark")


# --- in a column ----------------------------------------------------------------------------------
def stays(values: Sequence[Any], kind: str) -> bool:
    """Whether a column of the type keeps each as it is, which is also its form in a tuple."""
    if len(values) == 1:  # the common one: a statement of one row
        found: type = type(values[0])
        return found is _OF_KIND.get(kind) and (kind not in _BITS or _fits(values[0], kind))
    kinds = set(map(type, values))
    kinds.discard(type(None))
    if kinds != {_OF_KIND.get(kind)}:
        return False
    if kind not in _BITS:
        return True
    known = values if None not in values else [value for value in values if value is not None]
    return _fits(min(known), kind) and _fits(max(known), kind)


def assigned(value: Any, kind: str) -> Any:
    """The value as a column of the type keeps it, as ANSI's store assignment has it; Misfit where it cannot."""
    match value:
        case None:
            return None
        case bool():
            if kind == "boolean":
                return value
        case int():
            return _assigned_whole(value, kind)
        case float():
            if kind == "double":
                return value
            if kind == "float":
                return _single(value)
        case Decimal():
            if kind.startswith("decimal("):
                return _rounded(value, kind)
            if kind == "double":
                _shape(value)
                return float(value) if value else 0.0  # Spark's decimals have no -0
        case str() | bytes():
            if kind == ("string" if isinstance(value, str) else "binary"):
                return value
        case dt.datetime():
            if kind == ("timestamp_ntz" if value.tzinfo is None else "timestamp"):
                return value
        case dt.date():
            if kind == "date":
                return value
        case list() | tuple():
            return _assigned_list(value, kind)
    raise Unsure(f"{_said(value)} for a column of type {kind} is cast by Spark")


def _assigned_whole(value: int, kind: str) -> Any:
    if kind in _BITS:
        if not _fits(value, kind):
            raise Misfit(f"{value} is no {kind}")
        return value
    if kind.startswith("decimal("):
        return _rounded(Decimal(value), kind)
    if kind == "double" and _fits(value, "bigint"):
        return float(value)
    if kind == "float" and abs(value) <= _FLOAT_WHOLE:
        return _single(float(value))
    if kind == "string" and _fits(value, "bigint"):
        return str(value)
    raise Unsure(f"a whole number for a column of type {kind} is cast by Spark")


def _assigned_list(value: list[Any] | tuple[Any, ...], kind: str) -> list[Any]:
    if not kind.startswith("array<") or len({type(each) for each in value if each is not None}) != 1:
        raise Unsure(f"a list for a column of type {kind} is cast by Spark")
    return [assigned(each, kind[len("array<") : -1]) for each in value]


def _single(value: float) -> float:
    try:
        found: float = struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        raise Unsure("a number beyond all floats is cast by Spark") from None
    return found


def _rounded(value: Decimal, kind: str) -> Decimal:
    _shape(value)
    before, scale = decimal_digits(kind)
    if value.adjusted() > 2 * DECIMAL_DIGITS:
        raise Misfit(f"{_said(value)} does not fit {kind}")
    rounded = value.quantize(Decimal((0, (1,), -scale)), ROUND_HALF_UP, _CONTEXT)
    if rounded and rounded.adjusted() >= before:
        raise Misfit(f"{_said(value)} does not fit {kind}")
    return rounded if rounded else rounded.copy_abs()


# --- beside a key ---------------------------------------------------------------------------------
def matched(values: Sequence[Any], kind: str) -> list[Any]:
    """Of all values of a column of the type those that equal one of these, by Spark's comparison; none equals NULL.

    Spark compares in a type that holds the column and all that it is compared with.
    """
    known = [value for value in values if value is not None]
    for value in known:
        is_number = isinstance(value, int | Decimal) and not isinstance(value, bool)
        if isinstance(value, float) or is_number != (kind in _BITS or kind.startswith("decimal(")):
            raise Unsure(f"{_said(value)} is compared with a key of type {kind} by Spark")
        if not is_number:
            assigned(value, kind)  # is of this type, or not sure
    if kind not in _BITS and not kind.startswith("decimal("):
        return known
    own = (20, 0) if kind in _BITS else decimal_digits(kind)
    _check_digits([own, *((20, 0) if isinstance(value, int) else _shape(value) for value in known)])
    numbers = (_matched_number(Decimal(value), kind) for value in known)
    return [number for number in numbers if number is not None]


def _matched_number(value: Decimal, kind: str) -> int | Decimal | None:
    if kind in _BITS:
        whole = int(value)
        return whole if whole == value and _fits(whole, kind) else None
    try:
        rounded = _rounded(value, kind)
    except Misfit:
        return None
    return rounded if rounded == value else None


def _said(value: Any) -> str:
    names = {bool: "a boolean", str: "a text", bytes: "a binary", float: "a double", dt.date: "a date"}
    if isinstance(value, int | Decimal) and not isinstance(value, bool):
        return f"{value:f}" if isinstance(value, Decimal) and abs(value.adjusted()) <= 80 else str(value)[:100]
    return names.get(type(value), f"a {type(value).__name__}")

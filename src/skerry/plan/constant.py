"""The value of an expression without columns, as far as an estimate needs it."""

from __future__ import annotations

import calendar
import datetime
import re
from decimal import Decimal, InvalidOperation

from sqlglot import exp

from skerry.model.table import Bound
from skerry.sql.functions import call_name
from skerry.sql.nodes import ColonCast, IntervalLiteral, TypedLiteral, UnaryPlus

Constant = bool | Decimal | str | datetime.date | datetime.datetime
_EPOCH = datetime.datetime(1970, 1, 1)
_SUFFIX = re.compile(r"(?i)(bd|[lsydf])$")
# Months and days of one unit of an interval.
_UNITS = {"YEAR": (12, 0.0), "QUARTER": (3, 0.0), "MONTH": (1, 0.0), "WEEK": (0, 7.0), "DAY": (0, 1.0)}
_SMALLER = {"HOUR": 3600, "MINUTE": 60, "SECOND": 1}


class _Interval:
    def __init__(self, months: int, days: float) -> None:
        self.months = months
        self.days = days


def constant(node: exp.Expr) -> Constant | None:
    """None when it has columns, or is of a form that nobody has taught this."""
    try:
        found = _value(node)
    except (ArithmeticError, InvalidOperation, ValueError, OverflowError):
        return None
    return None if isinstance(found, _Interval) else found


def _value(node: exp.Expr) -> Constant | _Interval | None:
    match node:
        case exp.Literal():
            return str(node.this) if node.is_string else Decimal(_SUFFIX.sub("", str(node.this)))
        case exp.Boolean():
            return bool(node.this)
        case exp.Paren() | UnaryPlus():
            return _value(node.this)
        case exp.Neg():
            value = _value(node.this)
            return -value if isinstance(value, Decimal) else None
        case TypedLiteral():
            return _converted(node.this.name, node.args["kind"].name)
        case IntervalLiteral():
            return _interval(node)
        case exp.Cast() | ColonCast():
            value = _value(node.this)
            return (
                None if value is None or isinstance(value, _Interval) else _converted(value, str(node.args["to"].this))
            )
        case exp.Add() | exp.Sub() | exp.Mul() | exp.Div():
            return _arithmetic(node)
    if call_name(node) in ("date", "to_date") and len(node.expressions) == 1:
        value = _value(node.expressions[0])
        return None if value is None or isinstance(value, _Interval) else _converted(value, "DATE")
    return None


def _converted(value: Constant, kind: str) -> Constant | None:
    match kind.upper():
        case "DATE":
            return datetime.date.fromisoformat(str(value).strip()[:10])
        case "TIMESTAMP" | "TIMESTAMP_NTZ" | "TIMESTAMP_LTZ":
            return datetime.datetime.fromisoformat(str(value).strip()).replace(tzinfo=None)
        case "INT" | "INTEGER" | "BIGINT" | "LONG" | "SMALLINT" | "TINYINT" | "DECIMAL" | "DEC" | "DOUBLE" | "FLOAT":
            return Decimal(str(value))
        case "STRING":
            return str(value)
    return None


def _interval(node: IntervalLiteral) -> _Interval | None:
    months, days = 0, 0.0
    for part in node.expressions:
        unit = part.args["unit"].name.upper().removesuffix("S")
        sign = -1 if part.args.get("sign") is not None and part.args["sign"].name == "-" else 1
        amount = sign * float(part.this.name)
        if part.args.get("to") is not None:
            return None
        if unit in _UNITS:
            months += int(amount * _UNITS[unit][0])
            days += amount * _UNITS[unit][1]
        elif unit in _SMALLER:
            days += amount * _SMALLER[unit] / 86400
        else:
            return None
    return _Interval(months, days)


def _arithmetic(node: exp.Expr) -> Constant | None:
    left, right = _value(node.this), _value(node.args["expression"])
    if isinstance(left, datetime.date) and isinstance(right, _Interval) and isinstance(node, exp.Add | exp.Sub):
        sign = 1 if isinstance(node, exp.Add) else -1
        moved = _add_months(left, sign * right.months)
        return moved + datetime.timedelta(days=sign * right.days)
    if not isinstance(left, Decimal) or not isinstance(right, Decimal):
        return None
    match node:
        case exp.Add():
            return left + right
        case exp.Sub():
            return left - right
        case exp.Mul():
            return left * right
    return left / right


def _add_months(day: datetime.date, months: int) -> datetime.date:
    count = day.year * 12 + day.month - 1 + months
    year, month = divmod(count, 12)
    return day.replace(year=year, month=month + 1, day=min(day.day, calendar.monthrange(year, month + 1)[1]))


def place(value: Constant, column_type: str) -> float | None:
    """Where a value stands on the line of a column's values; None when the two do not compare."""
    if isinstance(value, bool):
        return float(value) if column_type == "boolean" else None
    if column_type == "string":
        return text_place(value) if isinstance(value, str) else None
    if column_type in ("date", "timestamp", "timestamp_ntz"):
        return _time_place(value, column_type)
    if isinstance(value, datetime.date):
        return None
    try:
        return float(value)
    except ValueError:
        return None


def _time_place(value: Constant, column_type: str) -> float | None:
    if isinstance(value, str):
        try:
            value = datetime.datetime.fromisoformat(value.strip())
        except ValueError:
            return None
    if not isinstance(value, datetime.date):
        return None
    if not isinstance(value, datetime.datetime):
        value = datetime.datetime(value.year, value.month, value.day)
    seconds = (value.replace(tzinfo=None) - _EPOCH).total_seconds()
    return seconds / 86400 if column_type == "date" else seconds * 1e6


def bound_place(bound: Bound, column_type: str) -> float | None:
    """The same for a least or greatest value of the catalog."""
    if bound is None:
        return None
    if isinstance(bound, str) and column_type == "string":
        return text_place(bound)
    try:
        return float(bound)
    except ValueError:
        return None


def text_place(text: str) -> float:
    """Strings on a line, by their first bytes."""
    return float(int.from_bytes(text.encode()[:8].ljust(8, b"\0")))

"""Conditions that no row of a part can pass, going by the least and greatest values of its columns.

A proof, not an estimate: what is not surely so refutes nothing. Only comparisons of a column with a constant are
looked at, for types whose order here is Spark's own. Floating point numbers are left out: NaN hides from footers.
"""

from __future__ import annotations

import calendar
import datetime
import re
from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import Any

from sqlglot import exp

from skerry.model.table import ColumnStats, TablePart
from skerry.sql.nodes import IntervalLiteral, TypedLiteral, UnaryPlus
from skerry.sql.push import split
from skerry.sql.statement import render
from skerry.sql.types import decimal_of
from skerry.sql.walk import operands

_WHOLE = frozenset(("tinyint", "smallint", "int", "bigint"))
_TIMES = frozenset(("timestamp", "timestamp_ntz"))
# Files of an old Spark or of Hive may count days and time as the Julian calendar did; from here on both agree.
_SAME_CALENDAR = datetime.date(1900, 1, 1)
_EPOCH_DAY = datetime.date(1970, 1, 1)
_DAY_US = 86_400_000_000
_WHOLE_DIGITS = 20  # of a BIGINT, as Spark makes a decimal of it
_DIGITS_MAX = 38
_NUMBER = re.compile(r"(\d+)(?:[lsy]|bd)?|(\d*\.\d+|\d+\.)(?:bd)?", re.IGNORECASE)
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_TIME = re.compile(r"(\d{4}-\d{2}-\d{2})[ T](\d{2}:\d{2}:\d{2}(?:\.\d{1,6})?)")
_SWAPPED: dict[type[exp.Expr], type[exp.Expr]] = {
    exp.LT: exp.GT,
    exp.LTE: exp.GTE,
    exp.GT: exp.LT,
    exp.GTE: exp.LTE,
    exp.EQ: exp.EQ,
    exp.NullSafeEQ: exp.EQ,
}
_FAILS: dict[type[exp.Expr], Callable[[Any, Any, Any], bool]] = {
    exp.LT: lambda low, high, value: low >= value,
    exp.LTE: lambda low, high, value: low > value,
    exp.GT: lambda low, high, value: high <= value,
    exp.GTE: lambda low, high, value: high < value,
    exp.EQ: lambda low, high, value: value < low or value > high,
}


def refuted(conditions: Iterable[exp.Expr], part: TablePart) -> str | None:
    """Why no row of the part passes all of the conditions; None when one might. Columns are not qualified."""
    if part.stats is None:
        return None
    known = _Known(part)
    for condition in conditions:
        for conjunct in split(condition):
            why = known.refutes(conjunct)
            if why is not None:
                return f"no row there passes {render(conjunct)}: {why}"
    return None


class _Known:
    """The columns of one part."""

    def __init__(self, part: TablePart) -> None:
        assert part.stats is not None
        self._rows = part.rows
        self._types = {column.name.lower(): column.type for column in part.columns}
        self._stats = {column.name.lower(): column for column in part.stats.columns}

    def refutes(self, node: exp.Expr) -> str | None:
        """Why the condition is true of no row."""
        match node:
            case exp.Paren():
                return self.refutes(node.this)
            case exp.And():
                return next(filter(None, map(self.refutes, operands(node))), None)
            case exp.Or():
                return self._refutes_all(operands(node))
            case exp.Between() if not node.args.get("symmetric"):
                low, high = node.args["low"], node.args["high"]
                if not self._all_comparable(node.this, (low, high)):
                    return None
                return self._compared(exp.GTE, node.this, low) or self._compared(exp.LTE, node.this, high)
            case exp.In() if node.expressions and not node.args.get("query"):
                first = self._compared(exp.EQ, node.this, node.expressions[0])
                others = (self._compared(exp.EQ, node.this, each) for each in node.expressions[1:])
                return None if first is None or any(why is None for why in others) else first
            case exp.Is() if isinstance(node.expression, exp.Null):
                return self._never_null(node.this)
            case exp.Not() if isinstance(node.this, exp.Is) and isinstance(node.this.expression, exp.Null):
                return self._always_null(node.this.this)
        kind = type(node)
        if kind not in _SWAPPED:
            return None
        if isinstance(_open(node.this), exp.Column):
            return self._compared(exp.EQ if kind is exp.NullSafeEQ else kind, node.this, node.expression)
        return self._compared(_SWAPPED[kind], node.expression, node.this)

    def _refutes_all(self, nodes: Iterable[exp.Expr]) -> str | None:
        """Why each of them is true of no row."""
        found: dict[str, None] = {}
        for node in nodes:
            why = self.refutes(node)
            if why is None:
                return None
            found[why] = None
        return "; ".join(found)

    def _of(self, node: exp.Expr) -> ColumnStats | None:
        node = _open(node)
        return self._stats.get(node.name.lower()) if isinstance(node, exp.Column) else None

    def _all_comparable(self, column: exp.Expr, others: Iterable[exp.Expr]) -> bool:
        """One of another type may make Spark compare all of them as that."""
        stats = self._of(column)
        type_ = self._types.get(stats.name.lower(), "") if stats is not None else ""
        return all(comparable(each, type_) is not None for each in others)

    def _never_null(self, node: exp.Expr) -> str | None:
        stats = self._of(node)
        return f"{stats.name} is never NULL" if stats is not None and stats.nulls == 0 else None

    def _always_null(self, node: exp.Expr) -> str | None:
        stats = self._of(node)
        is_null = stats is not None and stats.nulls is not None and stats.nulls == self._rows
        return f"{stats.name} is always NULL" if stats is not None and is_null else None

    def _compared(self, kind: type[exp.Expr], column: exp.Expr, other: exp.Expr) -> str | None:
        stats = self._of(column)
        if stats is None:
            return None
        type_ = self._types.get(stats.name.lower(), "")
        value = comparable(other, type_)
        low, high = exact_bounds(stats, type_)
        if value is None:
            return None
        if low is None or high is None:
            # Equal to no constant, and neither less nor more.
            return self._always_null(column)
        if not _FAILS[kind](low, high, value):
            return None
        return f"{stats.name} is {_shown(low, type_)} to {_shown(high, type_)}"


def exact_bounds(stats: ColumnStats, type_: str) -> tuple[Any, Any]:
    """Values that compare as Spark compares them, and that no value of the column is outside of; else None, None."""
    low, high = stats.low, stats.high
    if not stats.is_exact or low is None or high is None:
        return None, None
    if type_ in _WHOLE or type_ == "boolean" or type_ == "string":
        return low, high
    if decimal_of(type_) is not None:
        return Decimal(str(low)), Decimal(str(high))
    if type_ == "date" or type_ in _TIMES:
        since = (_SAME_CALENDAR - _EPOCH_DAY).days * (1 if type_ == "date" else _DAY_US)
        return (low, high) if isinstance(low, int) and low >= since else (None, None)
    return None, None


def comparable(node: exp.Expr, type_: str) -> Any:
    """The constant as a column of that type is compared with it; None when that is not certain."""
    node = _open(node)
    if type_ in _WHOLE or decimal_of(type_) is not None:
        return _number(node, type_)
    if type_ == "boolean":
        return int(node.this) if isinstance(node, exp.Boolean) else None
    if type_ == "string":
        return str(node.this) if isinstance(node, exp.Literal) and node.is_string else None
    day = _day(node) if type_ == "date" or type_ in _TIMES else None
    if type_ == "date":
        return (day - _EPOCH_DAY).days if day is not None else None
    if type_ in _TIMES:
        return (day - _EPOCH_DAY).days * _DAY_US if day is not None else _instant(node)
    return None


def _open(node: exp.Expr) -> exp.Expr:
    while isinstance(node, exp.Paren | UnaryPlus):
        node = node.this
    return node


def _number(node: exp.Expr, type_: str) -> Decimal | None:
    """Whole and decimal numbers, if Spark's common type of both holds every digit. With an exponent it is a double."""
    if isinstance(node, exp.Neg):
        value = _number(_open(node.this), type_)
        return -value if value is not None else None
    if not isinstance(node, exp.Literal) or node.is_string:
        return None
    matched = _NUMBER.fullmatch(str(node.this))
    if matched is None:
        return None
    value = Decimal(matched[1] or matched[2])
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    precision, scale = decimal_of(type_) or (_WHOLE_DIGITS, 0)
    own_whole = max(_WHOLE_DIGITS, len(digits)) if matched[1] else len(digits) + exponent
    whole, fraction = max(precision - scale, own_whole), max(scale, -exponent)
    return value if whole + fraction <= _DIGITS_MAX else None


def _day(node: exp.Expr) -> datetime.date | None:
    """`DATE '…'` or such a string, and years, months or days more or less."""
    try:
        match node:
            case exp.Add() | exp.Sub() if isinstance(node.expression, IntervalLiteral):
                day = _day(_open(node.this)) if isinstance(_open(node.this), TypedLiteral | exp.Add | exp.Sub) else None
                return _moved(day, node.expression, 1 if isinstance(node, exp.Add) else -1) if day is not None else None
            case TypedLiteral() if node.args["kind"].name.upper() == "DATE":
                text = node.this.name
            case exp.Literal() if node.is_string:
                text = str(node.this)
            case _:
                return None
        return datetime.date.fromisoformat(text) if _DATE.fullmatch(text) else None
    except (ValueError, OverflowError):
        return None


def _moved(day: datetime.date, interval: IntervalLiteral, sign: int) -> datetime.date | None:
    if len(interval.expressions) != 1:
        return None
    (part,) = interval.expressions
    unit, count = part.args["unit"].name.upper().removesuffix("S"), part.this.name
    if part.args.get("sign") is not None or part.args.get("to") is not None or not re.fullmatch(r"\d{1,5}", count):
        return None
    if unit == "DAY":
        return day + datetime.timedelta(days=sign * int(count))
    if unit not in ("YEAR", "MONTH"):
        return None
    year, month = divmod(day.year * 12 + day.month - 1 + sign * int(count) * (12 if unit == "YEAR" else 1), 12)
    return day.replace(year=year, month=month + 1, day=min(day.day, calendar.monthrange(year, month + 1)[1]))


def _instant(node: exp.Expr) -> int | None:
    """`TIMESTAMP '…'` or such a string without a zone: sessions are in UTC."""
    text = ""
    if isinstance(node, TypedLiteral) and node.args["kind"].name.upper() in ("TIMESTAMP", "TIMESTAMP_NTZ"):
        text = node.this.name
    elif isinstance(node, exp.Literal) and node.is_string:
        text = str(node.this)
    text = f"{text} 00:00:00" if _DATE.fullmatch(text) else text
    matched = _TIME.fullmatch(text)
    try:
        value = datetime.datetime.fromisoformat(f"{matched[1]}T{matched[2]}") if matched is not None else None
    except ValueError:
        return None
    return (value - datetime.datetime(1970, 1, 1)) // datetime.timedelta(microseconds=1) if value is not None else None


def _shown(value: Any, type_: str) -> str:
    if type_ == "date":
        return (_EPOCH_DAY + datetime.timedelta(days=value)).isoformat()
    if type_ in _TIMES:
        return (datetime.datetime(1970, 1, 1) + datetime.timedelta(microseconds=value)).isoformat(" ")
    return repr(value) if type_ == "string" else str(bool(value)).lower() if type_ == "boolean" else str(value)

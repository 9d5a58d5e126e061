"""The bucket of a row as Spark computes it, as a tree: the number that `bucket.py` gives, on Spark and on Sail. Pure.

NULL leaves a hash as it is. So a value that is hashed in one of two forms is given in both, one of which is NULL.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from skerry.model.columns import decimal_digits
from skerry.sql.nodes import SparkType
from skerry.tables.bucket import DOUBLE_WHOLE_UPTO


def bucket_sql(columns: Sequence[tuple[exp.Expr, str]], buckets: int) -> exp.Expr:
    """Of columns with their types, in the order of DISTRIBUTED BY; the session's time zone is UTC, ANSI is on."""
    forms = [form for column, kind in columns for form in _forms(column, kind)]
    return _call("pmod", _call("xxhash64", *forms), exp.Literal.number(buckets))


def _forms(column: exp.Expr, kind: str) -> list[exp.Expr]:
    if kind in ("string", "binary"):
        return [column.copy()]
    if kind == "date":
        return [_cast(_call("unix_date", column.copy()), "BIGINT")]
    if kind in ("timestamp", "timestamp_ntz"):
        moment = column.copy() if kind == "timestamp" else _cast(column.copy(), "TIMESTAMP")
        return [_call("unix_micros", moment)]
    if kind.startswith("decimal"):
        return _decimal(column, kind)
    if kind in ("float", "double"):
        return _double(column)
    return [_cast(column.copy(), "BIGINT")]


def _decimal(column: exp.Expr, kind: str) -> list[exp.Expr]:
    """A whole number that fits, or else the shortest text."""
    before, scale = decimal_digits(kind)
    whole = exp.TryCast(this=column.copy(), to=SparkType(this="BIGINT"))
    text: exp.Expr = _cast(column.copy(), "STRING")
    if scale:
        text = _call("regexp_replace", text, exp.Literal.string("[.]?0+$"), exp.Literal.string(""))
    # Compared in the column's own type: a wider one would round a small fraction away.
    same = SparkType(this="DECIMAL", expressions=[exp.Literal.number(size) for size in (before + scale, scale)])
    back = exp.TryCast(this=whole.copy(), to=same)
    is_whole = exp.Paren(this=exp.NullSafeEQ(this=back, expression=column.copy()))
    return [_if(is_whole, whole), _if(exp.Not(this=is_whole.copy()), text)]


def _double(column: exp.Expr) -> list[exp.Expr]:
    """A whole number that fits, or else the double; one NaN."""
    value = _cast(column.copy(), "DOUBLE")
    upto = _cast(exp.Literal.number(int(DOUBLE_WHOLE_UPTO)), "DOUBLE")
    is_small = exp.LT(this=_call("abs", value.copy()), expression=upto)
    is_floor = exp.EQ(this=_call("floor", value.copy()), expression=value.copy())
    # Not AND: Spark 4.3 may look at both sides, and the floor of a large double is an error.
    is_whole = exp.Case(ifs=[exp.If(this=is_small, true=is_floor)], default=exp.false())
    nan = _cast(exp.Literal.string("NaN"), "DOUBLE")
    rest = exp.Case(ifs=[exp.If(this=_call("isnan", value.copy()), true=nan)], default=value.copy())
    whole = exp.TryCast(this=value.copy(), to=SparkType(this="BIGINT"))
    return [_if(is_whole, whole), _if(exp.Not(this=is_whole.copy()), rest)]


def _if(condition: exp.Expr, value: exp.Expr) -> exp.Expr:
    return exp.Case(ifs=[exp.If(this=condition, true=value)])


def _call(name: str, *arguments: exp.Expr) -> exp.Expr:
    return exp.Anonymous(this=name, expressions=list(arguments))


def _cast(value: exp.Expr, kind: str) -> exp.Expr:
    return exp.Cast(this=value, to=SparkType(this=kind))

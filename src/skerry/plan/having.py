"""Which share of groups a HAVING keeps: how many have so many rows, or so large a sum."""

from __future__ import annotations

import math
from decimal import Decimal

from sqlglot import exp

from skerry.plan.constant import constant
from skerry.plan.estimate import Estimate
from skerry.sql.functions import call_name
from skerry.sql.push import split
from skerry.sql.walk import bare

# Groups are never as much alike as the guess has them.
_LEAST = 1e-4
_SWAPPED = {exp.LT: exp.GT, exp.LTE: exp.GTE, exp.GT: exp.LT, exp.GTE: exp.LTE}


def having_share(condition: exp.Expr, rows: Estimate, groups: float) -> float:
    """The share of `rows`' groups that pass; a condition other than a sum or count beside a number keeps them all."""
    share = 1.0
    for conjunct in split(condition):
        share *= _share(conjunct, rows, rows.rows / max(1.0, groups))
    return max(_LEAST, share)


def _share(conjunct: exp.Expr, rows: Estimate, each: float) -> float:
    """`each`: rows of a group, on average."""
    conjunct = bare(conjunct)
    kind = type(conjunct)
    if kind not in _SWAPPED:
        return 1.0
    call, limit = conjunct.this, constant(conjunct.args["expression"])
    if limit is None:
        call, limit, kind = conjunct.args["expression"], constant(conjunct.this), _SWAPPED[kind]
    spread = _spread(call, rows, each)
    if spread is None or not isinstance(limit, Decimal):
        return 1.0
    mean, deviation = spread
    above = 0.5 * math.erfc((float(limit) - mean) / (max(deviation, 1e-9) * math.sqrt(2)))
    return above if kind in (exp.GT, exp.GTE) else 1.0 - above


def _spread(call: exp.Expr, rows: Estimate, each: float) -> tuple[float, float] | None:
    """Mean and deviation of a group's aggregate. Groups have about as many rows as if these had fallen by chance."""
    name = call_name(call)
    if name == "count":
        return each, math.sqrt(each)
    if name != "sum" or len(call.expressions) != 1:
        return None
    key = rows.key(call.expressions[0])
    column = rows.columns.get(key) if key is not None else None
    if column is None or column.low is None or column.high is None or column.type in ("string", "boolean"):
        return None
    mean = (column.low + column.high) / 2
    variance = (column.high - column.low) ** 2 / 12
    return each * mean, math.sqrt(each * (variance + mean * mean))

"""Rows whose key is outside of what another table has: its least and greatest key, one row, go to them first.

For keys that are too many to be sent themselves (`semijoin.py`). Rows outside of that range have no equal there; if the
other side has no row, its bounds are NULL, and no row is between them. Only where both columns are of one type: then
Spark's `=` and `BETWEEN` are of one order. It fires where what is known of both ranges says that it saves bytes.
"""

from __future__ import annotations

from skerry.plan.estimate import Estimate
from skerry.plan.mention import Mention, Pair
from skerry.plan.selectivity import ColumnEstimate

# Floating point numbers are no keys of other rules either; of two booleans there is nothing to save.
_ORDERED = frozenset("tinyint smallint int bigint string date timestamp timestamp_ntz".split())
_DISCRETE = frozenset("tinyint smallint int bigint date".split())
# Values are taken to be spread evenly, which they are not: what saves less than this is not worth the guess.
_KEEPS_MOST = 0.9


def range_pairs(mention: Mention, other: Mention) -> list[Pair]:
    """The pairs of equal columns whose bounds may go ahead."""
    return [pair for pair in mention.arcs.get(other.name, ()) if _is_ordered(mention, other, pair)]


def between(estimate: Estimate, other: Estimate, pair: Pair) -> Estimate | None:
    """What is left of the rows if their key has to be between the least and the greatest of the other's.

    None where nobody knows that, or where it is nearly all.
    """
    own_name, other_name = pair[0].lower(), pair[1].lower()
    own, theirs = estimate.columns.get(own_name), other.columns.get(other_name)
    if own is None or theirs is None:
        return None
    kept = _overlap(own, theirs)
    if kept is None or kept[0] > _KEEPS_MOST:
        return None
    share, low, high = kept
    rows = estimate.rows * share * (1.0 - own.nulls)
    columns = {
        name: _fewer(column, max(1.0, min(column.ndv, rows))) if name != own_name else column
        for name, column in estimate.columns.items()
    }
    ndv = max(1.0, min(own.ndv * share, rows))
    columns[own_name] = ColumnEstimate(
        own.type, own.width_bytes, ndv, max(1.0, own.domain * share), low, high, 0.0, own.is_guessed
    )
    return Estimate(rows, columns, estimate.base_rows, estimate.extra_bytes)


def _is_ordered(mention: Mention, other: Mention, pair: Pair) -> bool:
    own, theirs = mention.scan.table.column(pair[0]), other.scan.table.column(pair[1])
    if own is None or theirs is None or own.type != theirs.type:
        return False
    return own.type in _ORDERED or own.type.startswith("decimal(")


def _overlap(own: ColumnEstimate, theirs: ColumnEstimate) -> tuple[float, float, float] | None:
    """The share of `own` that is between the ends of `theirs`, and the ends of that share."""
    if own.low is None or own.high is None or theirs.low is None or theirs.high is None:
        return None
    low, high = max(own.low, theirs.low), min(own.high, theirs.high)
    if high < low:
        return 0.0, low, low
    step = 1.0 if own.type in _DISCRETE else 0.0
    width = own.high - own.low + step
    return (min(1.0, (high - low + step) / width) if width > 0 else 1.0), low, high


def _fewer(column: ColumnEstimate, ndv: float) -> ColumnEstimate:
    return ColumnEstimate(
        column.type, column.width_bytes, ndv, column.domain, column.low, column.high, column.nulls, column.is_guessed
    )

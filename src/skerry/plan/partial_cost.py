"""Do partial aggregates pay? Groups that would travel, against rows that would."""

from __future__ import annotations

import math
from collections.abc import Sequence

from sqlglot import exp

from skerry.catalog.table import Column, TablePart
from skerry.plan.estimate import Estimate, Estimator, row_bytes

# Of an expression nobody knows, there is one value for ten rows.
_UNKNOWN_SHARE = 0.1


def group_rows(keys: Sequence[exp.Expr], filters: Sequence[exp.Expr], part: TablePart) -> int:
    """Groups that one part is likely to have."""
    scan = Estimator().scan([part], filters)
    known = {column.name.lower() for column in part.columns}
    groups = math.prod(_values(key, scan, known) for key in keys)
    return max(1, int(min(groups, scan.rows)))


def _values(key: exp.Expr, scan: Estimate, known: set[str]) -> float:
    if isinstance(key, exp.Mod) and isinstance(key.expression, exp.Literal) and key.expression.is_int:
        return float(key.expression.this)
    if all(column.name.lower() in known for column in key.find_all(exp.Column)):
        return scan.distinct(key)
    return max(1.0, scan.rows * _UNKNOWN_SHARE)


def pays(
    partial: dict[str, int], columns: Sequence[Column], raw: dict[str, int], raw_columns: Sequence[Column]
) -> bool:
    """Rows by member, of partial aggregates and of the table: do fewer bytes leave the sites, but for the largest?"""
    return _travels(partial, row_bytes(columns)) < _travels(raw, row_bytes(raw_columns))


def _travels(rows: dict[str, int], width_bytes: int) -> int:
    """All but what the site that holds most of it keeps."""
    return (sum(rows.values()) - max(rows.values(), default=0)) * max(1, width_bytes)

"""How large a query's result is likely to be: joins, groups and limits over what is known of its tables."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec
from sqlglot import exp

from skerry.plan.estimate import Estimate, Estimator
from skerry.plan.having import having_share
from skerry.plan.relations import (
    Aggregate,
    Derived,
    Distinct,
    Filter,
    Join,
    Limit,
    Opaque,
    Project,
    Relation,
    Scan,
    SetOperation,
    Sort,
    Window,
    relation_of,
)
from skerry.plan.selectivity import ColumnEstimate
from skerry.sql.functions import call_name
from skerry.sql.push import split, unqualified

if TYPE_CHECKING:
    from skerry.plan.mentions import Mention

_RANKS = ("row_number", "rank", "dense_rank")
# What a computed column takes, and a relation that nothing is known of.
_COMPUTED_BYTES = 16.0
_UNKNOWN = Estimate(1000.0, {}, 1000.0, 64.0)


class Sizer:
    """Estimates of whole queries. Conditions on one table are known to its mention; others keep what they keep."""

    def __init__(self, mentions: Mapping[str, Mention], estimator: Estimator) -> None:
        self._mentions = mentions
        self._estimator = estimator
        self._blocks = {id(each.source.node): name for name, each in mentions.items() if each.block is not None}

    def of(self, tree: exp.Expr, given: Mapping[str, Estimate] | None = None) -> Estimate:
        """The result of a query; `given` are relations in it that are no tables, by name."""
        with_ = tree.args.get("with_")
        named = dict(given or {})
        if with_ is not None:
            for cte in with_.expressions:
                named[cte.alias.lower()] = self.of(cte.this, named)
            tree = tree.copy()
            tree.set("with_", None)
        try:
            return self._of(relation_of(tree, self._mentions), named)
        except RecursionError:  # a chain of a thousand UNIONs
            return _UNKNOWN

    def _of(self, relation: Relation, named: Mapping[str, Estimate]) -> Estimate:
        name = self._name(relation)
        if name:
            mention = self._mentions[name]
            filters = [unqualified(condition.filter) for condition in mention.conditions]
            return self._estimator.scan(mention.parts, filters, mention.scan.columns, name)
        match relation:
            case Opaque(tree):
                known = named.get(tree.name.lower()) if isinstance(tree, exp.Table) else None
                return known or _UNKNOWN
            case Join():
                return self._join(relation, named)
            case Filter(Aggregate(input, keys), condition):
                below = self._of(input, named)
                groups = self._group(below, keys)
                return self._estimator.limit(groups, groups.rows * having_share(condition, below, groups.rows))
            case Filter(input, condition):
                estimate = self._of(input, named)
                # What speaks of one table was counted with its scan; an equality of two is the join's.
                share = 0.5 ** sum(1 for each in split(condition) if each.find(exp.Query) is not None)
                return self._estimator.limit(estimate, estimate.rows * share)
            case Aggregate(input, keys):
                return self._group(self._of(input, named), keys)
            case Project(input, items):
                return self._project(self._of(input, named) if input is not None else None, items)
            case Limit(input, limit, _):
                count = limit.args["expression"] if limit is not None else None
                rows = float(count.this) if isinstance(count, exp.Literal) and str(count.this).isdecimal() else 1e18
                return self._estimator.limit(self._of(input, named), rows)
            case SetOperation(left, right, node):
                sides = [self._of(left, named), self._of(right, named)]
                if node.args.get("distinct"):
                    sides = [self._distinct(side, False) for side in sides]
                if isinstance(node, exp.Except | exp.Intersect):
                    rows = sides[0].rows if isinstance(node, exp.Except) else min(side.rows for side in sides)
                    return self._estimator.limit(sides[0], rows)
                return self._estimator.union(sides)
            case Distinct(input, _):
                is_constant = isinstance(input, Project) and all(isinstance(each, exp.Literal) for each in input.items)
                return self._distinct(self._of(input, named), is_constant)
            case Derived(input, _) | Sort(input, _) | Window(input, _):
                return self._of(input, named)
        raise AssertionError(relation)

    def _distinct(self, estimate: Estimate, is_constant: bool) -> Estimate:
        """Rows that differ, if all columns are known; of constants there is one."""
        if not is_constant and (estimate.extra_bytes or not estimate.columns):  # nobody knows the values
            return estimate
        return self._estimator.limit(estimate, math.prod(column.ndv for column in estimate.columns.values()))

    def _name(self, relation: Relation) -> str:
        """The mention that the relation is, if it is one."""
        if isinstance(relation, Derived):
            return self._blocks.get(id(relation.node), "")
        return relation.node_name if isinstance(relation, Scan) else ""

    def _join(self, join: Join, named: Mapping[str, Estimate]) -> Estimate:
        left, right = self._of(join.left, named), self._of(join.right, named)
        if join.kind in ("semi", "anti"):
            return self._estimator.limit(left, left.rows / 2)
        keys = self._keys(join, left)
        kind = join.kind if join.kind in ("left", "right", "full") else "inner"
        args = join.node.args
        is_equal = args.get("using") or args.get("method") or (join.on is not None and kind == "full")
        if not keys and (is_equal or not isinstance(join.right, Scan)):
            # By columns that a subquery made, or that nothing is reduced by: as many rows as the larger side has.
            rows = left.rows + right.rows if kind == "full" else max(left.rows, right.rows)
            both = self._estimator.join(left, right, [], kind)
            return self._estimator.limit(both, rows)
        return self._estimator.join(left, right, keys, kind)

    def _keys(self, join: Join, left: Estimate) -> list[tuple[str, str]]:
        """Pairs of columns that are equal between the scan on the right and one of those before it."""
        name = self._name(join.right)
        if not name:
            return []
        found: dict[str, tuple[str, str]] = {}
        for other, pairs in self._mentions[name].arcs.items():
            for own, theirs in pairs:
                key = f"{other.lower()}.{theirs.lower()}"
                if key in left.columns:
                    found.setdefault(own.lower(), (key, f"{name.lower()}.{own.lower()}"))
        return list(found.values())

    def _group(self, estimate: Estimate, keys: exp.Expr | None) -> Estimate:
        if keys is None:
            return Estimate(1.0, {}, 1.0)
        grouped = self._estimator.group(estimate, list(keys.expressions))
        return msgspec.structs.replace(grouped, columns=estimate.columns)

    def _project(self, estimate: Estimate | None, items: tuple[exp.Expr, ...]) -> Estimate:
        if estimate is None:
            return Estimate(1.0, {}, 1.0, _COMPUTED_BYTES * len(items))
        columns = {}
        extra_bytes = 0.0
        for item in items:
            if item.is_star:
                return estimate
            key = estimate.key(item.unalias())
            value = item.unalias()
            if isinstance(value, exp.Window) and item.alias and call_name(value.this) in _RANKS:
                columns[item.alias.lower()] = self._rank(estimate, value)
            elif key is None:
                extra_bytes += _COMPUTED_BYTES
            else:
                columns[item.alias_or_name.lower()] = estimate.columns[key]
        return Estimate(estimate.rows, columns, estimate.base_rows, extra_bytes)

    def _rank(self, estimate: Estimate, window: exp.Window) -> ColumnEstimate:
        """A row's place among its peers: each place is taken about once in each partition."""
        groups = self._estimator.group(estimate, list(window.args.get("partition_by") or ())).rows
        values = max(1.0, estimate.rows / max(1.0, groups))
        return ColumnEstimate("int", 4.0, values, values, 1.0, values)

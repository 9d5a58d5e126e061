"""How large a query's result is likely to be: joins, groups and limits over what is known of its tables."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import msgspec
from sqlglot import exp

from skerry.plan.estimate import Estimate, Estimator
from skerry.plan.having import having_share
from skerry.plan.mention import Mention
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
from skerry.plan.sides import Equal, Side, equal_between, equal_by_name
from skerry.sql.functions import call_name
from skerry.sql.push import split
from skerry.sql.walk import contains

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
        self._outputs: dict[str, frozenset[str] | None] = {}  # the columns of WITH queries

    def of(self, tree: exp.Expr, given: Mapping[str, Estimate] | None = None) -> Estimate:
        """The result of a query; `given` are relations in it that are no tables, by name."""
        with_ = tree.args.get("with_")
        named = dict(given or {})
        if with_ is not None:
            for cte in with_.expressions:
                named[cte.alias.lower()] = _renamed(self.of(cte.this, named), cte)
                self._outputs[cte.alias.lower()] = _outputs(cte)
            tree = tree.copy()
            tree.set("with_", None)
        try:
            return self._of(relation_of(tree, self._mentions), named)
        except RecursionError:  # a chain of a thousand UNIONs
            return _UNKNOWN

    def _of(self, relation: Relation, named: Mapping[str, Estimate], where: Sequence[exp.Expr] = ()) -> Estimate:
        """`where`: conjuncts over joins, which may be what joins them."""
        name = self._name(relation)
        if name:
            mention = self._mentions[name]
            filters = [condition.plain for condition in mention.conditions]
            return self._estimator.scan(mention.parts, filters, mention.scan.columns, name)
        match relation:
            case Opaque(tree):
                known = named.get(tree.name.lower()) if isinstance(tree, exp.Table) else None
                return _renamed(known, tree) if known is not None else _UNKNOWN
            case Join():
                return self._join(relation, named, where)
            case Filter(Aggregate(input, keys), condition):
                below = self._of(input, named)
                groups = self._group(below, keys)
                return self._estimator.limit(groups, groups.rows * having_share(condition, below, groups.rows))
            case Filter(input, condition):
                estimate = self._of(input, named, split(condition))
                # What speaks of one table was counted with its scan; an equality of two is the join's.
                share = 0.5 ** sum(1 for each in split(condition) if contains(each, exp.Query))
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
            case Derived(input, node):
                return _renamed(self._of(input, named), node)
            case Sort(input, _) | Window(input, _):
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

    def _join(self, join: Join, named: Mapping[str, Estimate], where: Sequence[exp.Expr]) -> Estimate:
        left, right = self._of(join.left, named, where), self._of(join.right, named)
        if join.kind in ("semi", "anti"):
            return self._estimator.limit(left, left.rows / 2)
        kind = join.kind if join.kind in ("left", "right", "full") else "inner"
        keys = self._keys(join, left)
        if keys:
            return self._estimator.join(left, right, keys, kind)
        equal = self._equal(join, where)
        keys = [(a, b) for a, b in equal.keys if a in left.columns and b in right.columns]
        if keys and not any(left.columns[a].is_guessed or right.columns[b].is_guessed for a, b in keys):
            return self._estimator.join(left, right, keys, kind)
        both = self._estimator.join(left, right, [], kind)
        # Only what nothing joins is a product. A relation that is not looked into may be made for each row of the left.
        if equal.connects or isinstance(join.right, Opaque) or (join.on and not isinstance(join.right, Scan)):
            return self._estimator.limit(both, _referring(left, right, kind, is_known=bool(keys)))
        return both

    def _equal(self, join: Join, where: Sequence[exp.Expr]) -> Equal:
        left, right = self._side(join.left), self._side(join.right)
        using = join.node.args.get("using")
        if using:
            return equal_by_name([each.name for each in using], left, right)
        if join.node.args.get("method"):  # NATURAL
            return equal_by_name(sorted(left.names & right.names), left, right)
        return equal_between([*(split(join.on) if join.on is not None else ()), *where], left, right)

    def _side(self, relation: Relation) -> Side:
        """The names that stand for the relations of a FROM."""
        match relation:
            case Join(left, right):
                return self._side(left) | self._side(right)
            case Scan(name, node):
                columns = self._mentions[name].scan.table.columns
                return Side(
                    {node.alias_or_name.lower(): (name.lower(), frozenset(each.name.lower() for each in columns))}
                )
            case Derived(input, node):
                prefix = self._blocks.get(id(node), "").lower() or node.alias.lower()
                return Side({node.alias.lower(): (prefix, _outputs(node) or self._behind_star(input))})
            case Opaque(tree) if isinstance(tree, exp.Table):
                alias = tree.alias_or_name.lower()
                return Side({alias: (alias, self._outputs.get(tree.name.lower()))})
            case Opaque(tree):
                return Side({tree.alias.lower(): (tree.alias.lower(), None)})
        return Side()

    def _behind_star(self, relation: Relation) -> frozenset[str] | None:
        """All columns that a query with a star can have; None if not all are known."""
        while isinstance(relation, Sort | Limit | Distinct):
            relation = relation.input
        if not isinstance(relation, Project):
            return None
        below = relation.input
        while isinstance(below, Filter | Window):
            below = below.input
        known = [names for _, names in self._side(below).seen.values()] if below is not None else []
        own = frozenset(item.alias_or_name.lower() for item in relation.items)
        return own.union(*(names for names in known if names)) if known and None not in known else None

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


def _referring(left: Estimate, right: Estimate, kind: str, *, is_known: bool) -> float:
    """Rows of a join by values that nobody has counted: one side refers to the other.

    Of columns that a subquery made it is not known either which rows the conditions on the other side leave.
    """
    if kind == "full":
        return left.rows + right.rows
    kept = [side.rows / max(1.0, side.base_rows) if is_known else 1.0 for side in (left, right)]
    rows = max(left.rows * kept[1], right.rows * kept[0])
    return max(rows, left.rows if kind == "left" else 0.0, right.rows if kind == "right" else 0.0)


def _outputs(node: exp.Expr) -> frozenset[str] | None:
    """The columns of a query under a name; None if a star hides them."""
    alias = node.args.get("alias")
    renamed = alias.args.get("columns") if isinstance(alias, exp.TableAlias) else None
    names = [each.name for each in renamed] if renamed else node.this.named_selects
    return None if "*" in names else frozenset(name.lower() for name in names)


def _renamed(estimate: Estimate, node: exp.Expr) -> Estimate:
    """Columns are those of the name that stands for the relation."""
    alias = node.args.get("alias")
    name = node.alias_or_name.lower()
    if not name:
        return estimate
    bare = [key.rpartition(".")[2] for key in estimate.columns]
    given = (alias.args.get("columns") if isinstance(alias, exp.TableAlias) else None) or ()
    if given:
        bare = [each.name.lower() for each in given] if len(given) == len(bare) else []
    columns = {f"{name}.{key}": each for key, each in zip(bare, estimate.columns.values(), strict=bool(bare))}
    return msgspec.structs.replace(estimate, columns=columns)

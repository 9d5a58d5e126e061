"""What a fragment does to the rows of each of its leaves before they are in its own: nothing, a condition, groups."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence

from sqlglot import exp

from skerry.model.config import Leaves
from skerry.model.fragment import Leaf
from skerry.model.table import Column
from skerry.plan.filtered import Conditions
from skerry.sql.functions import call_name, is_aggregate

# How far rows are from those of the table.
RANK = {Leaves.FREELY: 0, Leaves.FILTERED: 1, Leaves.AGGREGATED: 2, Leaves.NEVER: 3}
# Aggregates that hand out the very values: all of them, one row's, the most frequent, or a sketch that keeps some.
_WHOLE_VALUES = frozenset(
    "collect_list collect_set array_agg listagg string_agg first first_value last last_value any_value max_by min_by "
    "mode histogram_numeric approx_top_k approx_top_k_accumulate approx_top_k_combine bitmap_construct_agg "
    "kll_sketch_agg_bigint kll_sketch_agg_double kll_sketch_agg_float".split()
)
# The least and the greatest of one column are aggregates; of columns that these put together they are rows.
_EXTREMES = frozenset("min max".split())
_TOGETHER = frozenset(
    "struct named_struct array map concat concat_ws to_json to_csv to_xml format_string printf".split()
)


def treatment(tree: exp.Expr, leaves: Sequence[Leaf], columns: Mapping[str, tuple[Column, ...]]) -> tuple[Leaves, ...]:
    """FREELY (the rows as they are), FILTERED or AGGREGATED, for each leaf. `columns`: of leaves, by placeholder.

    Without the columns of tables a name counts for the one that it says, or for the only one there is.
    """
    whole = tree.copy()  # whose nodes surely know what is around them
    conditions = Conditions(whole, columns)
    return tuple(_Reading(leaf.placeholder, conditions).of(whole) for leaf in leaves)


class _Cte:
    """A WITH query; `ctes` are those that it sees, which are those before it."""

    def __init__(self, query: exp.Expr, ctes: Mapping[str, _Cte]) -> None:
        self.query = query
        self.ctes = ctes
        self.is_read = False
        self.state: Leaves | None = None


class _Reading:
    """What a query does to the rows of one relation before they are in its result."""

    def __init__(self, name: str, conditions: Conditions) -> None:
        self._name = name
        self._conditions = conditions
        self._ctes: Mapping[str, _Cte] = {}  # that the place which is read can see
        self._seen: set[int] = set()

    def of(self, whole: exp.Expr) -> Leaves:
        """Rows that are not found are somewhere all the same, and so are those of a mention that nobody came by."""
        state = self.state(whole)
        mentions = (table for table in whole.find_all(exp.Table) if table.name == self._name)
        if state is None or any(id(table) not in self._seen for table in mentions):
            return Leaves.FREELY
        return state

    def state(self, node: exp.Expr | None) -> Leaves | None:
        """FREELY for the rows as they are, FILTERED, AGGREGATED; None when they are not in it."""
        if node is None:
            return None
        around = self._ctes
        for cte in node.args["with_"].expressions if node.args.get("with_") else ():
            self._ctes = {**self._ctes, cte.alias.lower(): _Cte(cte.this, self._ctes)}
        try:
            return self._inside(node)
        finally:
            self._ctes = around

    def _inside(self, node: exp.Expr) -> Leaves | None:
        match node:
            case exp.Subquery() | exp.Paren():
                joined = [join.this for join in node.args.get("joins") or ()]
                return functools.reduce(_least, map(self.state, joined), self.state(node.this))
            case exp.SetOperation():
                return _least(self.state(node.this), self.state(node.args["expression"]))
            case exp.Select():
                return self._select(node)
            case exp.Table():
                return self._table(node)
        return Leaves.FREELY if self._mentions(node) else None

    def _table(self, node: exp.Table) -> Leaves | None:
        if node.name == self._name:
            self._seen.add(id(node))
            return Leaves.FREELY
        cte = self._ctes.get(node.name.lower())
        if cte is None:
            return None
        if not cte.is_read:
            around, self._ctes = self._ctes, cte.ctes
            cte.is_read, cte.state = True, self.state(cte.query)
            self._ctes = around
        return cte.state

    def _select(self, select: exp.Select) -> Leaves | None:
        from_ = select.args.get("from_")
        relations = [from_.this] if from_ is not None else []
        relations += [join.this for join in select.args.get("joins") or ()]
        aggregates = _aggregates(select)
        found: Leaves | None = None
        for relation in relations:
            state = self.state(relation)
            if state is Leaves.FREELY and self._conditions.on(select, relation):
                state = Leaves.FILTERED
            found = _least(found, Leaves.AGGREGATED if state is not None and aggregates else state)
        for query in _computed(select):
            found = _least(found, self.state(query))
        for query in _tested(select):
            # Whether a row is kept is all that the result has of it.
            found = _least(found, Leaves.AGGREGATED if self.state(query) is not None else None)
        if found is None and self._mentions(select):
            return Leaves.FREELY  # in a place that nobody has thought of
        return found

    def _mentions(self, node: exp.Expr) -> bool:
        return any(table.name == self._name for table in node.find_all(exp.Table))


def _least(one: Leaves | None, other: Leaves | None) -> Leaves | None:
    if one is None or other is None:
        return one or other
    return min(one, other, key=RANK.__getitem__)


def _own(roots: Iterable[exp.Expr], within: Callable[[exp.Expr], bool]) -> list[exp.Expr]:
    """Nodes below these that `within` wants, without looking inside subqueries and joined relations."""
    found: list[exp.Expr] = []
    stack: list[exp.Expr] = list(roots)
    while stack:
        node = stack.pop()
        if within(node):
            found.append(node)
        if isinstance(node, exp.Query):
            continue
        if isinstance(node, exp.Join):
            stack += [child for key in ("on", "using", "nearest") for child in _listed(node.args.get(key))]
            continue
        stack += list(node.iter_expressions())
    return found


def _subqueries(select: exp.Select) -> list[exp.Expr]:
    """Those of its own clauses, not those of WITH and FROM."""
    clauses = [child for child in select.iter_expressions() if not isinstance(child, exp.With | exp.From)]
    return _own(clauses, lambda node: isinstance(node, exp.Query))


def _listed(value: object) -> list[exp.Expr]:
    found = value if isinstance(value, list) else [value]
    return [each for each in found if isinstance(each, exp.Expr)]


def _aggregates(select: exp.Select) -> bool:
    """Are its rows aggregates? Keys of GROUP BY alone are DISTINCT values, and some aggregates give all values back."""
    calls = [
        node
        for node in _own(select.expressions, is_aggregate)
        if not isinstance(node.parent, exp.Window) and not isinstance(_above_filter(node), exp.Window)
    ]
    return bool(calls) and not any(_gives_values(node) for node in calls)


def _gives_values(call: exp.Expr) -> bool:
    name = call_name(call)
    if name not in _EXTREMES:
        return name in _WHOLE_VALUES
    nodes = _own([call], lambda node: True)
    columns = {node.sql().lower() for node in nodes if isinstance(node, exp.Column | exp.Star)}
    is_put = any(isinstance(node, exp.Tuple | exp.DPipe) or call_name(node) in _TOGETHER for node in nodes)
    return is_put and (len(columns) > 1 or any(isinstance(node, exp.Star) for node in nodes))


def _above_filter(node: exp.Expr) -> exp.Expr | None:
    """`sum(x) FILTER (WHERE …) OVER (…)` is a window too."""
    parent = node.parent
    return parent.parent if isinstance(parent, exp.Filter | exp.WithinGroup) else parent


def _computed(select: exp.Select) -> list[exp.Expr]:
    """Subqueries whose values are columns of the result, or its order."""
    tested = {id(query) for query in _tested(select)}
    return [query for query in _subqueries(select) if id(query) not in tested]


def _tested(select: exp.Select) -> list[exp.Expr]:
    """Subqueries in WHERE, ON and HAVING."""
    clauses = (exp.Where, exp.Having, exp.Join, exp.Select)
    return [query for query in _subqueries(select) if query.find_ancestor(*clauses) is not select]

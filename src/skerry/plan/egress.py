"""What may leave a site: a check of a finished plan against the marks of tables and the budgets of links.

It guards against plans and mistakes. Who may ask for what is another matter: a client of the table's own member gets
its rows, and a filter that keeps everything is a filter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise

import msgspec
from sqlglot import exp

from skerry.catalog.topology import Topology
from skerry.model.config import Config, Leaves
from skerry.model.errors import UserError
from skerry.model.fragment import EdgeLeaf, Fragment, Plan, TableLeaf
from skerry.model.table import Column
from skerry.plan.filtered import Conditions
from skerry.plan.reading import parse_fragment
from skerry.sql.functions import call_name, is_aggregate

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
_RANK = {Leaves.FREELY: 0, Leaves.FILTERED: 1, Leaves.AGGREGATED: 2, Leaves.NEVER: 3}
_WANTED = {
    Leaves.FILTERED: "without a condition on it",
    Leaves.AGGREGATED: "that are not aggregated",
    Leaves.NEVER: "",
}


# The columns of a table at a member; None when nobody knows them.
ColumnsOf = Callable[[str, str], tuple[Column, ...] | None]


class EgressRules(msgspec.Struct, frozen=True):
    """`marks`: of the tables that are not free, by (member, table) in lower case."""

    marks: Mapping[tuple[str, str], Leaves]
    topology: Topology

    @property
    def marked(self) -> frozenset[str]:
        """Members with such tables, in lower case."""
        return frozenset(member for member, _ in self.marks)

    @property
    def is_free(self) -> bool:
        return not self.marks and not self.topology.budgets


def egress_rules(config: Config, topology: Topology) -> EgressRules:
    """The rules that a configuration has."""
    tables = (table for member in config.members.values() for table in member.tables.values())
    marks = {(t.member.lower(), t.name.lower()): t.leaves for t in tables if t.leaves is not Leaves.FREELY}
    return EgressRules(marks, topology)


def check_egress(plan: Plan, rules: EgressRules, columns_of: ColumnsOf = lambda member, table: None) -> None:
    """UserError, naming the edge, for a plan that would break a rule.

    Without the columns of tables a name counts for the one that it says, or for the only one there is.
    """
    if rules.marks:
        _check_tables(plan, rules.marks, columns_of)
    if rules.topology.budgets:
        _check_budgets(plan, rules.topology)


# --- tables --------------------------------------------------------------------------------------
def _check_tables(plan: Plan, marks: Mapping[tuple[str, str], Leaves], columns_of: ColumnsOf) -> None:
    """Rows are looked at where they leave first: what has been allowed out is no longer the site's alone."""
    held: dict[int, dict[str, Leaves]] = {}  # by edge: what the rows of own tables are in it, before they leave
    for fragment in _in_order(plan):
        inside = _inside(fragment, marks, held, columns_of)
        if fragment.output.receiver == fragment.member:
            kept = held.setdefault(fragment.output.edge, {})
            for table, done in inside.items():
                kept[table] = min(done, kept.get(table, done), key=_RANK.__getitem__)
            continue
        for table, done in inside.items():
            mark = marks[fragment.member.lower(), table.lower()]
            if _RANK[done] < _RANK[mark]:
                raise _refused(fragment, table, mark)


def _in_order(plan: Plan) -> list[Fragment]:
    """Fragments after those whose rows they read."""
    by_edge: dict[int, list[Fragment]] = {}
    for fragment in plan.fragments:
        by_edge.setdefault(fragment.output.edge, []).append(fragment)
    found: dict[int, Fragment] = {}

    def visit(fragment: Fragment) -> None:
        if fragment.id in found:
            return
        for leaf in fragment.leaves:
            for feeding in by_edge.get(leaf.edge, ()) if isinstance(leaf, EdgeLeaf) else ():
                visit(feeding)
        found[fragment.id] = fragment

    for fragment in plan.fragments:
        visit(fragment)
    return list(found.values())


def _inside(
    fragment: Fragment,
    marks: Mapping[tuple[str, str], Leaves],
    held: Mapping[int, Mapping[str, Leaves]],
    columns_of: ColumnsOf,
) -> dict[str, Leaves]:
    """The marked tables of this member whose rows are in the fragment's, and what was done to them."""
    starts: dict[str, dict[str, Leaves]] = {}
    for leaf in fragment.leaves:
        match leaf:
            case TableLeaf(placeholder, table) if (fragment.member.lower(), table.lower()) in marks:
                starts[placeholder] = {table: Leaves.FREELY}
            case EdgeLeaf(placeholder, edge) if held.get(edge) and fragment.member in leaf.senders:
                starts[placeholder] = dict(held[edge])
    if not starts:
        return {}
    tree = parse_fragment(fragment.sql)
    conditions = Conditions(tree, _columns(fragment, columns_of)) if tree is not None else None
    found: dict[str, Leaves] = {}
    for placeholder, tables in starts.items():
        # Of text that cannot be read nothing is known: its rows are taken to be the table's own.
        done = _Reading(placeholder, conditions).state(tree) if conditions is not None else Leaves.FREELY
        for table, before in tables.items():
            after = max(before, done or Leaves.FREELY, key=_RANK.__getitem__)
            found[table] = min(after, found.get(table, after), key=_RANK.__getitem__)
    return found


def _columns(fragment: Fragment, columns_of: ColumnsOf) -> dict[str, tuple[Column, ...]]:
    """Of the leaves, by placeholder."""
    found = {}
    for leaf in fragment.leaves:
        columns = columns_of(fragment.member, leaf.table) if isinstance(leaf, TableLeaf) else leaf.columns
        if columns:
            found[leaf.placeholder] = columns
    return found


def _refused(fragment: Fragment, table: str, mark: Leaves) -> UserError:
    rows = f"rows of {table} {_WANTED[mark]}".rstrip()
    where = f"from {fragment.member} to {fragment.output.receiver}"
    edge = f"fragment {fragment.id}, edge {fragment.output.edge}"
    key = f"members.{fragment.member}.tables.{table}.leaves"
    advice = f"ask member {fragment.member} itself"
    if mark is not Leaves.NEVER:
        advice += ", or aggregate its rows" + (" or filter them" if mark is Leaves.FILTERED else "")
    return UserError(
        f"the query would send {rows} {where} ({edge}), and the table is marked leaves: {mark} ({key})",
        suggestion=advice,
    )


class _Reading:
    """What a query does to the rows of one relation before they are in its result."""

    def __init__(self, name: str, conditions: Conditions) -> None:
        self._name = name
        self._conditions = conditions
        self._ctes: dict[str, exp.Expr] = {}

    def state(self, node: exp.Expr | None) -> Leaves | None:
        """FREELY for the rows as they are, FILTERED, AGGREGATED; None when they are not in it."""
        if node is None:
            return None
        for cte in node.args["with_"].expressions if node.args.get("with_") else ():
            self._ctes[cte.alias.lower()] = cte.this
        match node:
            case exp.Subquery() | exp.Paren():
                return self.state(node.this)
            case exp.SetOperation():
                return _least(self.state(node.this), self.state(node.args["expression"]))
            case exp.Select():
                return self._select(node)
            case exp.Table():
                return self._table(node)
        return Leaves.FREELY if self._mentions(node) else None

    def _table(self, node: exp.Table) -> Leaves | None:
        if node.name == self._name:
            return Leaves.FREELY
        query = self._ctes.get(node.name.lower())
        return self.state(query) if query is not None else None

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
    return min(one, other, key=_RANK.__getitem__)


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
            stack += [child for key in ("on", "using") for child in _listed(node.args.get(key))]
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


# --- budgets -------------------------------------------------------------------------------------
def _check_budgets(plan: Plan, topology: Topology) -> None:
    """By the estimates: bytes of all edges whose rows pass a link, uncompressed."""
    passing: dict[tuple[str, str], list[Fragment]] = {}
    for fragment in plan.fragments:
        if fragment.output.receiver != fragment.member:
            route = topology.route(fragment.member, fragment.output.receiver)
            for hop in pairwise(route):
                passing.setdefault(hop, []).append(fragment)
    for (sender, receiver), fragments in passing.items():
        budget = topology.budgets.get((sender, receiver))
        total = sum(fragment.estimated_bytes for fragment in fragments)
        if budget is not None and total > budget:
            largest = max(fragments, key=lambda fragment: fragment.estimated_bytes)
            edge = f"edge {largest.output.edge} (fragment {largest.id} at {largest.member})"
            raise UserError(
                f"the query would send about {total} bytes over the link from {sender} to {receiver}, whose "
                f"query_bytes is {budget}; most of them on {edge} to {largest.output.receiver}",
                suggestion="filter or aggregate more, or run ANALYZE TABLE if the estimate is wrong",
            )

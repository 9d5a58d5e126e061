"""A query as relations: what is scanned, joined, filtered, grouped. From a bound tree, and back to the same tree.

Expressions stay trees, as they were written. What the algebra does not know is `Opaque`, a block that is not cut.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from sqlglot import exp

from skerry.sql.functions import is_aggregate
from skerry.sql.walk import contains


@dataclass(frozen=True)
class Scan:
    """One mention of a table: `node_name` is its scan's."""

    node_name: str
    node: exp.Expr = field(compare=False)


@dataclass(frozen=True)
class Derived:
    """A query in brackets, under a name."""

    input: Relation
    node: exp.Expr = field(compare=False)


@dataclass(frozen=True)
class Join:
    """kind: inner, cross, comma, left, right, full, semi, anti; with `natural` or `using` in `node`."""

    left: Relation
    right: Relation
    kind: str
    on: exp.Expr | None
    node: exp.Expr = field(compare=False)


@dataclass(frozen=True)
class Filter:
    """WHERE, or HAVING when it stands on an aggregate."""

    input: Relation
    condition: exp.Expr


@dataclass(frozen=True)
class Aggregate:
    """`keys` is the GROUP BY, None for one row; what is aggregated stands in the projection above."""

    input: Relation
    keys: exp.Expr | None


@dataclass(frozen=True)
class Window:
    """Windows named in the clause and those in the list above."""

    input: Relation
    names: tuple[exp.Expr, ...]


@dataclass(frozen=True)
class Project:
    input: Relation | None
    items: tuple[exp.Expr, ...]


@dataclass(frozen=True)
class Distinct:
    input: Relation
    node: exp.Expr = field(compare=False)


@dataclass(frozen=True)
class Sort:
    input: Relation
    order: exp.Expr


@dataclass(frozen=True)
class Limit:
    input: Relation
    limit: exp.Expr | None
    offset: exp.Expr | None


@dataclass(frozen=True)
class SetOperation:
    """UNION, EXCEPT or INTERSECT; `node` has its words."""

    left: Relation
    right: Relation
    node: exp.Expr = field(compare=False)


@dataclass(frozen=True)
class Opaque:
    """A block that no rule looks into."""

    tree: exp.Expr


Relation = (
    Scan | Derived | Join | Filter | Aggregate | Window | Project | Distinct | Sort | Limit | SetOperation | Opaque
)

# The clauses that the algebra has a word for; a SELECT with any other is opaque.
_CLAUSES = frozenset(
    "expressions from_ joins where group having windows distinct said_all order limit offset hint".split()
)

_SET_CLAUSES = frozenset("this expression distinct said_distinct by_name order limit offset".split())


def relation_of(tree: exp.Expr, scans: Collection[str]) -> Relation:
    """The relations of a query; `scans` are the names that stand for tables in it."""
    if isinstance(tree, exp.SetOperation):
        if set(_said(tree)) - {
            "this",
            "expression",
            "distinct",
            "said_distinct",
            "by_name",
            "order",
            "limit",
            "offset",
        }:
            return Opaque(tree)
        both = relation_of(tree.this, scans), relation_of(tree.args["expression"], scans)
        return _ending(SetOperation(*both, tree), tree)
    if isinstance(tree, exp.Subquery) and set(_said(tree)) == {"this"}:
        return Derived(relation_of(tree.this, scans), tree)
    if not isinstance(tree, exp.Select) or set(_said(tree)) - _CLAUSES:
        return Opaque(tree)
    return _ending(_select(tree, scans), tree)


def _said(node: exp.Expr) -> Iterator[str]:
    return (key for key, value in node.args.items() if value not in (None, [], False))


def _select(tree: exp.Select, scans: Collection[str]) -> Relation:
    from_ = tree.args.get("from_")
    relation: Relation | None = None
    if from_ is not None:
        relation = _source(from_.this, scans)
        for join in tree.args.get("joins") or []:
            if not isinstance(join, exp.Join):
                return Opaque(tree)
            relation = Join(relation, _source(join.this, scans), join_kind(join), join.args.get("on"), join)
        if tree.args.get("where"):
            relation = Filter(relation, tree.args["where"].this)
        if tree.args.get("group") is not None or aggregates(tree):
            relation = Aggregate(relation, tree.args.get("group"))
        if tree.args.get("having"):
            relation = Filter(relation, tree.args["having"].this)
        if tree.args.get("windows") or any(contains(item, exp.Window) for item in tree.expressions):
            relation = Window(relation, tuple(tree.args.get("windows") or ()))
    elif set(_said(tree)) - {"expressions", "order", "limit", "offset"}:
        return Opaque(tree)
    relation = Project(relation, tuple(tree.expressions))
    return Distinct(relation, tree.args["distinct"]) if tree.args.get("distinct") else relation


def _source(node: exp.Expr, scans: Collection[str]) -> Relation:
    if isinstance(node, exp.Table) and node.name in scans:
        return Scan(node.name, node)
    if isinstance(node, exp.Subquery) and not set(_said(node)) - {"this", "alias"} and isinstance(node.this, exp.Query):
        return Derived(relation_of(node.this, scans), node)
    return Opaque(node)


def join_kind(join: exp.Join) -> str:
    kind, side = str(join.args.get("kind") or "").lower(), str(join.args.get("side") or "").lower()
    return kind if kind in ("semi", "anti", "cross", "comma") else side or "inner"


def aggregates(tree: exp.Select) -> bool:
    stack: list[exp.Expr] = [*tree.expressions]
    stack += [tree.args[key] for key in ("having", "order") if tree.args.get(key) is not None]
    while stack:
        node = stack.pop()
        if is_aggregate(node) and node.find_ancestor(exp.Window) is None:
            return True
        if not isinstance(node, exp.Query):
            stack.extend(node.iter_expressions())
    return False


def _ending(relation: Relation, tree: exp.Expr) -> Relation:
    if isinstance(relation, Opaque):
        return relation
    if tree.args.get("order"):
        relation = Sort(relation, tree.args["order"])
    if tree.args.get("limit") or tree.args.get("offset"):
        relation = Limit(relation, tree.args.get("limit"), tree.args.get("offset"))
    return relation


def tree_of(relation: Relation) -> exp.Expr:
    """The relations as a tree again, of copies."""
    match relation:
        case Opaque(tree):
            return tree.copy()
        case Scan(_, node):
            return node.copy()
        case Derived(input, node):
            copy = node.copy()
            copy.set("this", tree_of(input))
            return copy
        case SetOperation(left, right, node):
            copy = node.copy()
            for key, each in (("this", left), ("expression", right)):
                copy.set(key, tree_of(each))
            for key in ("order", "limit", "offset"):
                copy.set(key, None)
            return copy
        case Project(input, items):
            select = _clauses(input) if input is not None else exp.Select()
            select.set("expressions", [item.copy() for item in items])
            return select
        case Distinct(input, node):
            return _with(input, distinct=node)
        case Sort(input, order):
            return _with(input, order=order)
        case Limit(input, limit, offset):
            return _with(input, limit=limit, offset=offset)
    raise AssertionError(f"{type(relation).__name__} stands under a projection only")


def _with(relation: Relation, **clauses: exp.Expr | None) -> exp.Expr:
    tree = tree_of(relation)
    for key, clause in clauses.items():
        if clause is not None:
            tree.set(key, clause.copy())
    return tree


def _clauses(relation: Relation) -> exp.Select:
    """A SELECT with all but its list."""
    match relation:
        case Window(input, names):
            select = _clauses(input)
            select.set("windows", [name.copy() for name in names] or None)
        case Filter(Aggregate() as input, condition):
            select = _clauses(input)
            select.set("having", exp.Having(this=condition.copy()))
        case Filter(input, condition):
            select = _clauses(input)
            select.set("where", exp.Where(this=condition.copy()))
        case Aggregate(input, keys):
            select = _clauses(input)
            select.set("group", keys.copy() if keys is not None else None)
        case Join(left, right, _, _, node):
            select = _clauses(left)
            join = node.copy()
            join.set("this", tree_of(right))
            select.set("joins", [*(select.args.get("joins") or []), join])
        case _:
            select = exp.Select(from_=exp.From(this=tree_of(relation)))
    return select


def scans_of(relation: Relation) -> Iterator[Scan]:
    """Every scan outside of opaque blocks and of subqueries in expressions."""
    match relation:
        case Scan():
            yield relation
        case Join(left, right) | SetOperation(left, right):
            yield from scans_of(left)
            yield from scans_of(right)
        case Project(None, _) | Opaque():
            return
        case _:
            assert relation.input is not None
            yield from scans_of(relation.input)

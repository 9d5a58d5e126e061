"""What a query computes from one table's columns alone is computed there, if the result is narrower than the columns.

`p_type LIKE 'PROMO%'` is one bit, `substring(c_phone, 1, 2)` two letters. Only what cannot fail: a row that the query
would have dropped must not raise an error at its site.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from sqlglot import exp

from skerry.model.table import Column
from skerry.plan.estimate import width_bytes
from skerry.sql.fields import names_field
from skerry.sql.functions import call_name, is_aggregate
from skerry.sql.nodes import SpokenCall, TypedLiteral
from skerry.sql.push import owner, resolve
from skerry.sql.scope import Scope, Scopes, Source
from skerry.sql.statement import render
from skerry.sql.types import Resolve, decimal_of, infer, widest
from skerry.sql.walk import contains, find_all, operands

# Functions that never fail on arguments of their own types: beside those, Spark casts, and a cast may fail.
_OF_STRINGS = frozenset("substring substr left right upper lower".split())
_OF_TIMES = frozenset("year quarter month day dayofmonth extract".split())
_TIMES = frozenset(("date", "timestamp", "timestamp_ntz"))
_COMPARED = exp.EQ | exp.NEQ | exp.LT | exp.LTE | exp.GT | exp.GTE
_LOGIC = exp.And | exp.Or | exp.Not | exp.Is | exp.Paren
_VALUES = exp.Like | exp.In | exp.Between | exp.Anonymous | SpokenCall | exp.Mul | exp.And | exp.Or
_WHOLE = frozenset(("tinyint", "smallint", "int", "bigint"))
_SHORT_STRING = 8


@dataclass(frozen=True)
class Computed:
    """A column that a mention sends in the place of others."""

    column: Column
    value: exp.Expr


def compute_at_source(scopes: Scopes, sent: Collection[str], prefix: str) -> dict[str, list[Computed]]:
    """Replaces expressions in the tree by columns named from `prefix`; `sent` are the mentions that travel."""
    found: dict[str, list[Computed]] = {}
    for scope in scopes.all:
        if not _is_inner(scope):
            continue
        for source in scope.sources:
            name = source.node.name if isinstance(source.node, exp.Table) else ""
            if source.table is None or source.renamed or name not in sent:
                continue
            computed = _of_source(scope, source, scopes, prefix, sum(map(len, found.values())))
            if computed:
                found[name] = computed
    return found


def _is_inner(scope: Scope) -> bool:
    """A column that an outer join supplied is NULL, whatever would have been computed from NULLs."""
    joins = scope.select.args.get("joins") or []
    return scope.plain and not any(
        join.args.get("side")
        or join.args.get("method")
        or join.args.get("using")
        or join.args.get("kind") in ("SEMI", "ANTI")
        for join in joins
    )


def _of_source(scope: Scope, source: Source, scopes: Scopes, prefix: str, count: int) -> list[Computed]:
    types = types_in(scope)
    places = [node for root in _roots(scope.select) for node in _values(root, scope, source, types)]
    inside = {id(column) for node in places for column in find_all(node, exp.Column)}
    pinned = {
        column.name.lower()
        for each in scopes.all
        if scope in each.chain()
        for column in each.columns
        if id(column) not in inside
    }
    if any(node.is_star for node in scope.select.expressions):
        return []
    by_text: dict[str, list[exp.Expr]] = {}
    for node in places:
        by_text.setdefault(render(_bare(node)), []).append(node)
    # Where a column has to travel all the same, nothing is won by what is computed from it alone.
    kept = {text: nodes for text, nodes in by_text.items() if _names(nodes[0]) - pinned}
    free = {name for nodes in kept.values() for name in _names(nodes[0])} - pinned
    assert source.table is not None
    widths = {column.name.lower(): width_bytes(column.type) for column in source.table.columns}
    values = [infer(nodes[0], types) or "" for nodes in kept.values()]
    if sum(_width(value) for value in values) >= sum(widths.get(name, 0) for name in free):
        return []
    found: list[Computed] = []
    for index, (nodes, type_) in enumerate(zip(kept.values(), values, strict=True), count):
        column = Column(f"{prefix}{index}", type_)
        found.append(Computed(column, nodes[0].copy()))
        alias = source.node.args["alias"].this
        for node in nodes:
            node.replace(exp.Column(this=exp.Identifier(this=column.name, quoted=False), table=alias.copy()))
    return found


def _width(type_: str) -> int:
    return _SHORT_STRING if type_ == "string" else width_bytes(type_)


def _names(node: exp.Expr) -> set[str]:
    return {column.name.lower() for column in find_all(node, exp.Column)}


def _bare(node: exp.Expr) -> exp.Expr:
    copy = node.copy()
    for column in find_all(copy, exp.Column):
        column.set("table", None)
    return copy


def _roots(select: exp.Select) -> Iterator[exp.Expr]:
    """Where a value may be replaced without any name or group of the result changing.

    In ORDER BY and HAVING an alias may come before the column; beside GROUP BY a value must stay what is grouped by.
    """
    items = [item for item in select.expressions if isinstance(item, exp.Alias)]
    if select.args.get("group") is not None or any(is_aggregate(node) for node in _own_nodes(select)):
        yield from (node for item in items for node in _own_nodes(item) if is_aggregate(node))
    else:
        yield from items
    if select.args.get("where") is not None:
        yield select.args["where"]
    for join in select.args.get("joins") or []:
        if join.args.get("on") is not None:
            yield join


def _own_nodes(root: exp.Expr) -> Iterator[exp.Expr]:
    """Nodes of a select list or an item of it, without windows and subqueries."""
    stack = [*root.expressions] if isinstance(root, exp.Select) else [root]
    while stack:
        node = stack.pop()
        yield node
        stack += [each for each in node.iter_expressions() if not isinstance(each, exp.Query | exp.Window)]


def _values(root: exp.Expr, scope: Scope, source: Source, types: Resolve) -> Iterator[exp.Expr]:
    """The largest expressions over the source alone that are safe to compute anywhere."""
    stack = [child for child in root.iter_expressions() if not isinstance(root, exp.Join) or child is root.args["on"]]
    rows: dict[int, bool] = {}
    while stack:
        node = stack.pop()
        # In a lambda a name may be that of its variable, whatever columns are called.
        if isinstance(node, exp.Query | exp.Window | exp.Lambda):
            continue
        is_value = _is_value(node) and not names_field(node)
        if is_value and isinstance(node, exp.Connector):
            if id(node) not in rows:
                rows |= _row(node, scope, source, types)
            is_value = rows[id(node)]
        elif is_value:
            is_value = owner(node, scope) is source and cannot_fail(node, types)
        if is_value:
            type_ = infer(node, types)
            if type_ not in (None, "void", "float", "double"):
                yield node
                continue
        # `NOT IN` and `LIKE … ESCAPE` are one form each: what stands in them is no value of its own.
        within = (
            node.this
            if isinstance(node, exp.Escape) or (isinstance(node, exp.Not) and node.args.get("infix"))
            else node
        )
        while isinstance(within, exp.Escape):
            within = within.this
        stack.extend(within.iter_expressions())


def _row(node: exp.Expr, scope: Scope, source: Source, types: Resolve) -> dict[int, bool]:
    """Of `a OR b OR c`, which may be thousands long: are `a OR b` and all of it over the source alone, and safe?"""
    first, *others = operands(node)
    spine = [node]
    while len(spine) < len(others):
        spine.append(spine[-1].this)
    owners = {id(each): owner(each, scope) for each in (first, *others)}

    def fits(each: exp.Expr) -> bool:
        is_alone = owners[id(each)] is source or not contains(each, exp.Column)
        return is_alone and infer(each, types) == "boolean" and cannot_fail(each, types)

    found: dict[int, bool] = {}
    is_safe, is_of_source = fits(first), owners[id(first)] is source
    for part, last in zip(reversed(spine), others, strict=True):
        is_safe = is_safe and fits(last)
        is_of_source = is_of_source or owners[id(last)] is source
        found[id(part)] = is_safe and is_of_source
    return found


def _is_value(node: exp.Expr) -> bool:
    if isinstance(node, exp.Not):
        return bool(node.args.get("infix"))
    return isinstance(node, _COMPARED | _VALUES)


def cannot_fail(node: exp.Expr, types: Resolve) -> bool:
    match node:
        case exp.Column():
            return True
        case exp.Literal() | exp.Boolean() | exp.Null() | TypedLiteral():
            return infer(node, types) is not None
        case exp.In():
            if node.args.get("query") is not None:
                return False
            return _alike([node.this, *node.expressions], types)
        case exp.Between():
            return _alike([node.this, node.args["low"], node.args["high"]], types)
        case exp.Like():
            return _is_pattern(node.args["expression"]) and infer(node.this, types) == "string"
        case exp.Is():
            return cannot_fail(node.this, types) and isinstance(node.args["expression"], exp.Null)
        case exp.Add() | exp.Sub() | exp.Mul():
            return _is_exact(node, types) and all(cannot_fail(each, types) for each in node.iter_expressions())
    if isinstance(node, _COMPARED):
        return _alike([node.this, node.args["expression"]], types)
    if isinstance(node, exp.Anonymous | SpokenCall):
        arguments = [each for each in node.expressions if not isinstance(each, exp.Var)]
        return _takes(call_name(node), arguments, types) and all(cannot_fail(each, types) for each in arguments)
    if isinstance(node, exp.Paren):
        return cannot_fail(node.this, types)
    if not isinstance(node, _LOGIC):
        return False
    joined = operands(node) if isinstance(node, exp.And | exp.Or) else node.iter_expressions()
    return all(infer(each, types) == "boolean" and cannot_fail(each, types) for each in joined)


def _takes(name: str | None, arguments: list[exp.Expr], types: Resolve) -> bool:
    found = [infer(each, types) for each in arguments]
    if name in _OF_STRINGS:
        return found[:1] == ["string"] and all(type_ in ("tinyint", "smallint", "int") for type_ in found[1:])
    return name in _OF_TIMES and len(found) == 1 and found[0] in _TIMES


def _is_pattern(node: exp.Expr) -> bool:
    """A pattern that no escape makes invalid."""
    return isinstance(node, exp.Literal) and node.is_string and "\\" not in node.this


def _alike(nodes: list[exp.Expr], types: Resolve) -> bool:
    """All have one type, or all are numbers: comparing a string with a number may fail."""
    found = {infer(node, types) for node in nodes}
    if None in found or not all(cannot_fail(node, types) for node in nodes):
        return False
    # Where not all digits of both fit into one decimal, a cast to it may overflow.
    numbers = all(type_ in _WHOLE or decimal_of(type_) is not None for type_ in found)
    return len(found) == 1 or (numbers and widest(found) is not None)


def _is_exact(node: exp.Expr, types: Resolve) -> bool:
    """A decimal result with all the digits that it may need never overflows."""
    result = decimal_of(infer(node, types))
    return result is not None and result[0] < 38


def types_in(scope: Scope) -> Resolve:
    def type_of(column: exp.Column) -> str | None:
        source = resolve(column, scope)
        found = source.table.column(column.name) if source is not None and source.table is not None else None
        return found.type if found is not None else None

    return type_of

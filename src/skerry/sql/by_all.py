"""GROUP BY ALL and ORDER BY ALL say what they mean: the places of a list, or a column that is called `all`."""

from __future__ import annotations

from sqlglot import exp

from skerry.sql.functions import has_aggregate, is_aggregate, is_generator
from skerry.sql.scope import Scope, Scopes
from skerry.sql.walk import children_of, contains, nodes_of


def spell_out_all(tree: exp.Expr, scopes: Scopes) -> bool:
    """Whether anything was changed; the scopes are those from before. What is not certain is left to the engine."""
    changed = False
    for scope in scopes.all:
        group = scope.select.args.get("group")
        if group is not None and group.args.get("all"):
            changed |= _spell_out(group, scope)
    around = {id(scope.select): scope for scope in scopes.all}
    for node in nodes_of(tree):
        order = node.args.get("order") if isinstance(node, exp.Query) else None
        if order is None or not isinstance(order.expressions[0].this, exp.Var):
            continue
        (item,) = order.expressions
        if _orders_by_column(node, around.get(id(node))):
            item.set("this", _column())
        elif count := _width(node):
            order.set("expressions", at_places(item, count))
        changed = True
    return changed


def at_places(item: exp.Expr, columns: int) -> list[exp.Expr]:
    """What ALL stands for in ORDER BY."""
    made = [item.copy() for _ in range(columns)]
    for place, key in enumerate(made, 1):
        key.set("this", exp.Literal.number(place))
    return made


def _width(query: exp.Expr) -> int:
    """How many columns a query has; 0 where that is not certain."""
    while isinstance(query, exp.SetOperation | exp.Subquery):
        query = query.this
    items = query.expressions
    is_certain = not any(item.is_star or contains(item, exp.Aliases) or _has_generator(item) for item in items)
    return len(items) if is_certain else 0


def _spell_out(group: exp.Expr, scope: Scope) -> bool:
    """Spark looks for a column first, then for an alias; else the items without an aggregate are what it groups by."""
    select = scope.select
    is_named = any(isinstance(item, exp.Alias) and item.alias.lower() == "all" for item in select.expressions)
    if _has_column(scope) or is_named:
        group.set("all", None)
        group.set("expressions", [_column()])
        return True
    if any(source.columns is None for source in scope.sources) or not all(map(_is_plain, select.expressions)):
        return False
    places = [place for place, item in enumerate(select.expressions, 1) if not has_aggregate(item)]
    if not places and any(map(_has_loose_column, select.expressions)):
        return False
    group.set("all", None)
    group.set("expressions", [exp.Literal.number(place) for place in places])
    if not places:
        select.set("group", None)
    return True


def _has_column(scope: Scope) -> bool:
    return any("all" in (source.columns or ()) for source in scope.sources)


def _orders_by_column(query: exp.Expr, scope: Scope | None) -> bool:
    """A column of the result comes before one of its relations."""
    if scope is not None and _has_column(scope) and not scope.select.args.get("distinct"):
        return True
    while isinstance(query, exp.SetOperation | exp.Subquery):
        query = query.this
    return any(isinstance(item, exp.Alias | exp.Column) and _name(item) == "all" for item in query.expressions)


def _name(item: exp.Expr) -> str:
    return (item.alias or item.name).lower()


def _is_plain(item: exp.Expr) -> bool:
    """One column, the same whether it is said once or twice."""
    return not item.is_star and not contains(item, exp.Window, exp.Aliases) and not _has_generator(item)


def _has_generator(item: exp.Expr) -> bool:
    return any(map(is_generator, nodes_of(item)))


def _has_loose_column(item: exp.Expr) -> bool:
    """Is a column outside of its aggregates?"""
    stack = [item]
    while stack:
        node = stack.pop()
        if isinstance(node, exp.Column):
            return True
        if not is_aggregate(node):
            stack += children_of(node)
    return False


def _column() -> exp.Column:
    return exp.Column(this=exp.Identifier(this="all", quoted=True))

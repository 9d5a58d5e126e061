"""GROUP BY ALL and ORDER BY ALL say what they mean: the places of a list, or a column that is called `all`."""

from __future__ import annotations

from sqlglot import exp

from skerry.sql.functions import is_aggregate, is_generator
from skerry.sql.pipes import has_aggregate
from skerry.sql.scope import Scope, Scopes
from skerry.sql.walk import children_of, nodes_of


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
        for item in order.expressions if order is not None else ():
            if isinstance(item.this, exp.Var) and _orders_by_column(node, around.get(id(node))):
                item.set("this", _column())
                changed = True
    return changed


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
    return not item.is_star and not any(
        isinstance(node, exp.Window | exp.Aliases) or is_generator(node) for node in nodes_of(item)
    )


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

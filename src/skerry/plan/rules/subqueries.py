"""Conditions with a subquery that may go where their table is, because all that they read is there too.

The subquery may be correlated with that one table, and with nothing else.
"""

from __future__ import annotations

from sqlglot import exp

from skerry.plan.condition import Subquery
from skerry.sql.functions import admitted, call_name
from skerry.sql.push import resolve
from skerry.sql.scope import Scope, Scopes, Source
from skerry.sql.walk import find_all, nodes_of


def movable(conjunct: exp.Expr, scope: Scope, scopes: Scopes) -> Subquery | None:
    """None unless every column is surely of the one table, or of the subqueries themselves."""
    if not any(isinstance(node, exp.Query) for node in nodes_of(conjunct)):
        return None
    inside = scopes_inside(conjunct, scope, scopes)
    if not inside or not _is_plain(conjunct):
        return None
    owners: list[Source] = []
    for column in _own_columns(conjunct):
        source = resolve(column, scope)
        if source is None:
            return None
        owners.append(source)
    names: list[str] = []
    for each in inside:
        for source in each.sources:
            # A WITH name, a lateral view or a function would need more than the tables.
            if not _is_derived(source):
                if source.table is None:
                    return None
                names.append(source.node.name)
        for column in each.columns:
            outer = looked_up(column, each, scope)
            if outer == "unknown":
                return None
            if isinstance(outer, Source):
                owners.append(outer)
    if not owners or any(owner is not owners[0] for owner in owners) or not names:
        return None
    return Subquery(owners[0], tuple(names))


def scopes_inside(node: exp.Expr, scope: Scope, scopes: Scopes) -> list[Scope]:
    """The scopes of the queries that stand in an expression of `scope`."""
    return [each for each in scopes.all if each is not scope and is_below(each.select, node)]


def is_closed(query: exp.Expr, scope: Scope, scopes: Scopes) -> bool:
    """Is every column in the query surely its own, and none of `scope`, in which it stands, or of one around?"""
    inside = scopes_inside(query, scope, scopes)
    seen = {id(column) for each in inside for column in each.columns}
    if any(id(column) not in seen or isinstance(column.this, exp.Star) for column in find_all(query, exp.Column)):
        return False
    return all(looked_up(column, each, scope) is None for each in inside for column in each.columns)


def is_below(node: exp.Expr, root: exp.Expr) -> bool:
    current: exp.Expr | None = node
    while current is not None and current is not root:
        current = current.parent
    return current is root


def _is_derived(source: Source) -> bool:
    return isinstance(source.node, exp.Subquery) and isinstance(source.node.this, exp.Query)


def _is_plain(conjunct: exp.Expr) -> bool:
    """Nothing that differs from call to call, and no WITH whose names would be needed."""
    for node in nodes_of(conjunct):
        if isinstance(node, exp.With | exp.Lambda | exp.Lateral | exp.Pivot | exp.Values):
            return False
        name = call_name(node)
        if name is not None:
            function = admitted().functions.get(name)
            if function is None or not function.deterministic or function.kind == "generator":
                return False
            # The first of a group is whichever comes first.
            if function.kind != "scalar" and name in ("first", "last", "first_value", "last_value", "any_value"):
                return False
        # A row's number among its peers may be another one each time.
        if isinstance(node, exp.Limit | exp.Offset | exp.Window):
            return False
    return True


def _own_columns(conjunct: exp.Expr) -> list[exp.Column]:
    """Columns outside the subqueries."""
    found: list[exp.Column] = []
    stack = [conjunct]
    while stack:
        node = stack.pop()
        if isinstance(node, exp.Query):
            continue
        if isinstance(node, exp.Column):
            found.append(node)
        stack.extend(node.iter_expressions())
    return found


def looked_up(column: exp.Column, scope: Scope, outermost: Scope) -> Source | str | None:
    """The table of the outermost scope that the column is of; None when it is of a scope inside."""
    if isinstance(column.this, exp.Star):
        return None
    parts = [part.name.lower() for part in column.parts]
    if len(parts) > 2:
        return "unknown"
    for around in scope.chain():
        if around is outermost:
            return resolve(column, around) or "unknown"
        if any(source.columns is None for source in around.sources):
            return "unknown"
        named = [source for source in around.sources if len(parts) == 2 and source.alias == parts[0]]
        if named:
            # A name that two scopes have, and a column that only the other one has: Spark finds it there.
            return None if all(parts[1] in (source.columns or ()) for source in named) else "unknown"
        if any(parts[0] in (source.columns or ()) for source in around.sources):
            return None if len(parts) == 1 else "unknown"
        if len(parts) == 1 and any(item.alias.lower() == parts[0] for item in around.select.expressions if item.alias):
            # Groups and what is above them know the alias; in WHERE Spark does not, and looks in the scope around.
            is_key = column.find_ancestor(exp.Group, exp.Query) is around.select.args.get("group")
            return None if is_key or not _may_be_around(parts[0], around) else "unknown"
    return "unknown"


def _may_be_around(name: str, scope: Scope) -> bool:
    return any(
        source.columns is None or name in source.columns
        for around in scope.chain()
        if around is not scope
        for source in around.sources
    )

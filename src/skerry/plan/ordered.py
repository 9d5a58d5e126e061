"""Correlated queries with ORDER BY … LIMIT: the order holds wherever their rows come from.

Spark 4.2 keeps the order of such a query only if all its sort keys are columns of its result: of
`(SELECT b FROM t WHERE t.k = u.k ORDER BY id LIMIT 1)` it takes whichever row comes first. Over several sites rows come
in another order than in one Spark. So the keys become columns of a query inside, which has the order and the limit.
"""

from __future__ import annotations

import dataclasses

from sqlglot import exp

from skerry.model.errors import SqlError
from skerry.plan.mentions import free_prefix, read_scopes
from skerry.plan.rules.aggregates import is_operand
from skerry.plan.rules.subqueries import is_closed
from skerry.sql.push import resolve
from skerry.sql.scope import Scope
from skerry.sql.statement import Query
from skerry.sql.walk import find_all

_DOUBLES = (
    "this correlated subquery with ORDER BY … LIMIT compares floating point numbers, and Spark takes 0.0 and -0.0 "
    "now for one, now for two: over several sites compare others, or sort by columns of its list"
)
_REFUSED = "the order of this correlated subquery would be lost over several sites: sort by columns of its list"


def with_orders_kept(query: Query) -> Query:
    """The same query, whose correlated subqueries sort by what they list; itself where all of them do."""
    if not any(_loses_order(select) for select in find_all(query.tree, exp.Select)):
        return query
    tree = query.tree.copy()
    scopes = read_scopes(tree, {scan.node_name: scan for scan in query.tables})
    prefix = free_prefix(tree, "key_")
    lost = [
        scope
        for scope in scopes.all
        if scope.parent is not None
        and _loses_order(scope.select)
        and not isinstance(scope.select.parent, exp.Exists)  # to which any row is as good
        and not is_closed(scope.select, scope.parent, scopes)
    ]
    for scope in lost:
        if any(_is_floating(column, scope) for column in find_all(scope.select, exp.Column)):
            raise SqlError(_DOUBLES)
        _keep(scope.select, prefix)
    return dataclasses.replace(query, tree=tree) if lost else query


def _loses_order(select: exp.Select) -> bool:
    order = select.args.get("order")
    if order is None or select.args.get("distinct") or not (select.args.get("limit") or select.args.get("offset")):
        return False
    return not all(_is_listed(key.this, select) for key in order.expressions)


def _is_floating(column: exp.Column, scope: Scope) -> bool:
    """Is it a column of such numbers in a condition?"""
    compared = column.find_ancestor(exp.Where, exp.Join, exp.Select)
    if isinstance(compared, exp.Select):
        return False
    source = next(filter(None, (resolve(column, around) for around in scope.chain())), None)
    found = source.table.column(column.name) if source is not None and source.table is not None else None
    return found is not None and any(word in found.type for word in ("float", "double"))


def _is_listed(key: exp.Expr, select: exp.Select) -> bool:
    """Is the sort key a column of the result, by its place or its name?"""
    if isinstance(key, exp.Literal):
        return True
    if not isinstance(key, exp.Column):
        return False
    items = select.expressions
    if len(key.parts) == 1:
        return any(item.is_star or item.alias_or_name.lower() == key.name.lower() for item in items)
    # `t.b` is another column than `id AS b` (and than `t.b AS c`), and `st.b` than `b`.
    is_column = len(key.parts) == 2 and key.table.lower() in _relations(select)
    return any(item == key or (is_column and _has(item, key)) for item in items)


def _has(item: exp.Expr, key: exp.Column) -> bool:
    """Is the item `*`, `t.*` or `b`, where the key is `t.b`?"""
    if item.is_star:
        return not isinstance(item, exp.Column) or item.table.lower() == key.table.lower()
    return isinstance(item, exp.Column) and len(item.parts) == 1 and item.name.lower() == key.name.lower()


def _relations(select: exp.Select) -> set[str]:
    """The names of its relations, in lower case."""
    joins = select.args.get("joins") or []
    found = [select.args["from_"].this, *(join.this for join in joins)] if select.args.get("from_") else []
    return {node.alias_or_name.lower() for node in found}


def _keep(select: exp.Select, prefix: str) -> None:
    """`SELECT b … ORDER BY id LIMIT 1` → `SELECT b FROM (SELECT b, id AS key_0 … ORDER BY key_0 LIMIT 1)`."""
    keeps_names = not is_operand(select)
    if keeps_names and not all(isinstance(item, exp.Alias | exp.Column) for item in select.expressions):
        raise SqlError(_REFUSED)  # nobody but Spark knows what it would call them
    inside = select.copy()
    with_ = inside.args.get("with_")
    inside.set("with_", None)
    names = [
        item.alias_or_name if keeps_names else f"{prefix}value_{place}" for place, item in enumerate(inside.expressions)
    ]
    items = [_named(item.unalias(), name) for item, name in zip(inside.expressions, names, strict=True)]
    for place, key in enumerate(inside.args["order"].expressions):
        if not isinstance(key.this, exp.Literal):
            items.append(_named(_sorted_by(key.this, select), f"{prefix}{place}"))
            key.set("this", _column(f"{prefix}{place}"))
    inside.set("expressions", items)
    outer = exp.Select(expressions=[_column(name) for name in names])
    alias = exp.TableAlias(this=exp.to_identifier(f"{prefix}rows"))
    outer.set("from_", exp.From(this=exp.Subquery(this=inside, alias=alias)))
    outer.set("with_", with_)
    select.replace(outer)


def _sorted_by(key: exp.Expr, select: exp.Select) -> exp.Expr:
    """What the key is where the list is: there a name does not mean another item."""
    aliases = {item.alias.lower(): item for item in select.expressions if isinstance(item, exp.Alias)}
    if isinstance(key, exp.Column) and len(key.parts) == 1 and key.name.lower() in aliases:
        return aliases[key.name.lower()].unalias().copy()
    if any(len(column.parts) == 1 and column.name.lower() in aliases for column in key.find_all(exp.Column)):
        raise SqlError(_REFUSED)
    return key.copy()


def _column(name: str) -> exp.Column:
    return exp.Column(this=exp.Identifier(this=name, quoted=True))


def _named(value: exp.Expr, name: str) -> exp.Expr:
    return exp.Alias(this=value, alias=exp.Identifier(this=name, quoted=True))

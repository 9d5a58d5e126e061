"""Does a SELECT have a condition on one of its relations? A name without one means what Spark would take it for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sqlglot import exp

from skerry.model.names import TableRef
from skerry.model.table import Column
from skerry.sql.push import split
from skerry.sql.scope import Scope, Scopes, Source

_ASKING = ("SEMI", "ANTI")


class Conditions:
    """The conditions of a whole fragment. `columns` has those of its leaves, by placeholder; others are not known."""

    def __init__(self, tree: exp.Expr, columns: Mapping[str, tuple[Column, ...]]) -> None:
        leaves = (node for node in tree.find_all(exp.Table) if node.name in columns)
        scopes = Scopes({id(node): TableRef(node.name, None, columns[node.name]) for node in leaves})
        scopes.read(tree, {}, None)
        self._scopes = {id(scope.select): scope for scope in scopes.all}
        self._around = {id(column): scope for scope in scopes.all for column in scope.columns}

    def on(self, select: exp.Select, relation: exp.Expr) -> bool:
        """Is there a conjunct on this relation's columns, and on no other's of the same FROM?

        A subquery in it may ask for anything; if all that it asks is of others, it is no condition on the relation.
        """
        scope = self._scopes.get(id(select))
        source = next((each for each in scope.sources if each.node is relation), None) if scope is not None else None
        if scope is None or source is None:
            return False
        return any(self._is_on(conjunct, scope, source, seen) for conjunct, seen in _conjuncts(scope))

    def _is_on(self, conjunct: exp.Expr, scope: Scope, source: Source, seen: list[Source]) -> bool:
        meant = [self._is_of(column, scope, source, seen) for column in conjunct.find_all(exp.Column)]
        return True in meant and False not in meant

    def _is_of(self, column: exp.Column, scope: Scope, source: Source, seen: list[Source]) -> bool | None:
        """None: it is a matter of a subquery, or no column. False: of another relation, or nobody knows."""
        names = [part.name.lower() for part in column.parts]
        if len(names) == 1 and _is_variable(column, names[0]):
            return None
        around = self._around.get(id(column))
        while around is not None and around is not scope:
            found = _is_found(names, around)
            if found is not False:
                return None if found else False
            around = around.parent
        if around is None:
            return False
        return _is_sources(names, scope, source, seen)


def _conjuncts(scope: Scope) -> Iterator[tuple[exp.Expr, list[Source]]]:
    """What rows have to fulfil to be in the result, with the relations that it can see."""
    select = scope.select
    joins = [join for join in select.args.get("joins") or () if isinstance(join, exp.Join)]
    asked = {id(join.this) for join in joins if join.args.get("kind") in _ASKING}
    where = select.args.get("where")
    if where is not None:
        seen = [source for source in scope.sources if id(source.node) not in asked]
        yield from ((each, seen) for each in split(where.this))
    for join in joins:
        # Rows that an outer join supplies, and those of an anti join, are there because it is not fulfilled.
        if not join.args.get("side") and join.args.get("kind") != "ANTI" and join.args.get("on") is not None:
            yield from ((each, scope.sources) for each in split(join.args["on"]))


def _is_sources(names: list[str], scope: Scope, source: Source, seen: list[Source]) -> bool:
    if source not in seen:
        return False
    if len(names) > 1 and any(each.alias == names[0] for each in scope.sources):
        return source.alias == names[0] and len(names) == 2
    name = names[0]  # of a column; what follows is a field of it
    is_alone = not scope.select.args.get("joins") and (scope.plain or isinstance(source.node, exp.Table))
    if is_alone and len(names) == 1 and (scope.parent is None or source.columns is None):
        return True
    if not scope.plain or source.columns is None or name not in source.columns or _is_shared(name, scope):
        return False
    others = [each for each in seen if each is not source]
    return all(each.columns is not None and name not in each.columns for each in others)


def _is_shared(name: str, scope: Scope) -> bool:
    """USING makes one column of two."""
    joins = scope.select.args.get("joins") or ()
    using = {each.name.lower() for join in joins for each in join.args.get("using") or ()}
    return name in using or any(join.args.get("method") for join in joins)


def _is_found(names: list[str], scope: Scope) -> bool | None:
    """Is it a name of this subquery's own? None: nobody knows."""
    if len(names) > 1 and any(source.alias == names[0] for source in scope.sources):
        return True
    if any(source.columns is not None and names[0] in source.columns for source in scope.sources):
        return True
    return False if scope.plain and all(source.columns is not None for source in scope.sources) else None


def _is_variable(column: exp.Column, name: str) -> bool:
    """Is it a lambda's variable, x in `x -> x > 3`?"""
    node = column.find_ancestor(exp.Lambda, exp.Query)
    while isinstance(node, exp.Lambda):
        if any(each.name.lower() == name for each in node.expressions):
            return True
        node = node.find_ancestor(exp.Lambda, exp.Query)
    return False

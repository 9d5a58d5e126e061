"""Which relations each name of a statement may mean: those it can see, from its own SELECT outwards.

Spark looks for a name in the SELECT where it stands, then in those around it. So a relation needs the names that
stand in its own SELECT or in a query inside of one of its clauses, unless they surely are found before. What it does
not need is in nobody's way: with any columns between these and all of them, every name means what it meant.
"""

from __future__ import annotations

from sqlglot import exp

from skerry.sql.nodes import VariantPath
from skerry.sql.scope import Scope, Scopes, Source, endings
from skerry.sql.walk import find_all

# Clauses that see all relations of FROM, and nothing of the SELECT's own list first. ON sees those before it alone,
# and what HAVING and ORDER BY do not find in the list or the groups may be a name of the query around.
_SEEING_ALL = frozenset(("expressions", "where", "group"))


class References:
    """Names in lower case."""

    def __init__(self, tree: exp.Expr, scopes: Scopes) -> None:
        self._of: dict[int, set[str]] = {id(source): set() for scope in scopes.all for source in scope.sources}
        for scope in scopes.all:
            for column in scope.columns:
                self._add(column, scope)
            for name in _using(scope):
                for source in scope.sources:
                    self._of[id(source)].add(name.name.lower())
        self._anywhere = _anywhere(tree, scopes)

    def of(self, source: Source) -> set[str]:
        """All names that may mean a column of this relation; others it has are of no use."""
        return self._of[id(source)] | self._anywhere

    def _add(self, column: exp.Column, scope: Scope) -> None:
        names = [part.name.lower() for part in column.parts]
        ways = _ways(column) if scope.parent is not None else {}
        for around in scope.chain():
            for source in around.sources:
                self._of[id(source)].update(_meant(names, source, around))
            if ways.get(id(around.select)) in _SEEING_ALL and _is_found(names, around):
                return


def _meant(names: list[str], source: Source, scope: Scope) -> list[str]:
    """`a.b` is column b of the relation a, or a field of a column a of any relation."""
    if len(names) == 2 and scope.plain and source.alias != names[0]:
        return names[:1]
    return names


def _is_found(names: list[str], scope: Scope) -> bool:
    """Does the name surely mean something in this SELECT, for a clause that sees all of its FROM?"""
    if not scope.plain or len(names) > 2:
        return False
    joins = [join for join in scope.select.args.get("joins") or () if join.args.get("kind") in ("SEMI", "ANTI")]
    hidden = {id(join.this) for join in joins}
    return any(
        source.columns is not None and names[-1] in source.columns
        for source in scope.sources
        if id(source.node) not in hidden and (len(names) == 1 or source.alias == names[0])
    )


def _using(scope: Scope) -> list[exp.Expr]:
    return [name for join in scope.select.args.get("joins") or () for name in join.args.get("using") or ()]


def _ways(node: exp.Expr) -> dict[int, str | None]:
    """By which clause one comes from the node to each SELECT around it."""
    found: dict[int, str | None] = {}
    while node.parent is not None:
        if isinstance(node.parent, exp.Select):
            found[id(node.parent)] = node.arg_key
        node = node.parent
    return found


def _anywhere(tree: exp.Expr, scopes: Scopes) -> set[str]:
    """Names that stand where no SELECT claims them: they may mean a column of any relation.

    The order of a query in brackets, `(SELECT a FROM t) ORDER BY b`, may be by what its list does not have.
    """
    claimed = {id(node) for scope in scopes.all for node in (*scope.columns, *_using(scope))}
    found: set[str] = set()
    for node in find_all(tree, exp.Identifier):
        around = node.parent
        is_alias = isinstance(around, exp.Table | exp.TableAlias | VariantPath) or node.arg_key == "alias"
        if not is_alias and id(around) not in claimed and id(node) not in claimed:
            found.add(node.name.lower())
    for query in find_all(tree, exp.SetOperation, exp.Subquery):
        found |= {name.name.lower() for each in endings(query) for name in find_all(each, exp.Identifier)}
    return found

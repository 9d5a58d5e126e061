"""Names in HAVING that are an alias of the list and a column as well: written so that they mean one thing.

To Spark the column is meant inside of an aggregate, and where it is grouped by; anywhere else the alias. Sail decides
otherwise, and loses groups.
"""

from __future__ import annotations

from sqlglot import exp

from skerry.plan.grouping import set_leaves
from skerry.sql.alike import form
from skerry.sql.functions import is_aggregate
from skerry.sql.scope import Scope, Scopes, Source
from skerry.sql.walk import bare, children_of, find_all


def has_hidden_names(select: exp.Select) -> bool:
    """Whether HAVING says a name that is an alias of the list: only then there is something to look at."""
    having = select.args.get("having")
    if having is None:
        return False
    names = {name for name, _ in _named_items(select)}
    return any(column.parts[0].name.lower() in names for column in find_all(having, exp.Column))


def _named_items(select: exp.Select) -> list[tuple[str, exp.Expr]]:
    """Items whose name is no column's: those with an alias, and strings, which are named after their text."""
    named = [(item.alias_or_name.lower(), item.unalias()) for item in select.expressions if _is_named(item)]
    return [(name, value) for name, value in named if name]


def _is_named(item: exp.Expr) -> bool:
    return isinstance(item, exp.Alias) or (isinstance(item, exp.Literal) and item.is_string)


def say_what_is_meant(scopes: Scopes) -> None:
    """Changes the tree of these scopes where it is certain what Spark would take a name for."""
    for scope in scopes.all:
        if scope.plain and has_hidden_names(scope.select):
            _Having(scope).rewrite()


class _Having:
    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._select = scope.select
        self._items: dict[str, exp.Expr | None] = {}
        for name, value in _named_items(self._select):
            self._items[name] = None if name in self._items else value
        self._keys = {form(self._said(key)) for key in self._grouped()}

    def rewrite(self) -> None:
        having = self._select.args["having"]
        for column in self._own_columns(having.this):
            name = column.parts[0].name.lower()
            if name not in self._items or self._owner(column) is None:
                continue
            item = self._items[name]
            if self._is_of_rows(column, having):
                column.replace(self._said(column))
            elif len(column.parts) == 1 and item is not None and not find_all(item, exp.Window, exp.Query):
                column.replace(exp.Paren(this=self._said(item)))

    def _is_of_rows(self, column: exp.Expr, having: exp.Expr) -> bool:
        """Inside of an aggregate, or of what is grouped by."""
        node: exp.Expr | None = column
        while node is not None and node is not having:
            if is_aggregate(node) or form(self._said(bare(node))) in self._keys:
                return True
            node = node.parent
        return False

    def _grouped(self) -> list[exp.Expr]:
        group = self._select.args.get("group")
        found: list[exp.Expr] = []
        for key in map(bare, set_leaves(group) if group is not None else ()):
            if isinstance(key, exp.Literal) and key.is_int and 0 < int(key.name) <= len(self._select.expressions):
                found.append(self._select.expressions[int(key.name) - 1].unalias())
            elif isinstance(key, exp.Column) and len(key.parts) == 1 and self._owner(key) is None:
                found.append(self._items.get(key.name.lower()) or key)
            else:
                found.append(key)
        return [bare(key) for key in found]

    def _said(self, node: exp.Expr) -> exp.Expr:
        """A copy whose columns say which relation they are of, where that is certain."""
        copy = node.copy()
        for column in self._own_columns(copy):
            source = self._owner(column) if len(column.parts) == 1 else None
            if source is not None:
                column.set("table", exp.Identifier(this=source.alias, quoted=True))
        return copy

    def _own_columns(self, tree: exp.Expr) -> list[exp.Column]:
        """Those of this SELECT: none of a query inside, nor where a lambda may have given the name."""
        found: list[exp.Column] = []
        queue = [tree]
        for node in queue:  # grows while it is read
            if isinstance(node, exp.Query | exp.Lambda):
                continue
            if isinstance(node, exp.Column) and not node.is_star:
                found.append(node)
            queue += children_of(node)
        return found

    def _owner(self, column: exp.Column) -> Source | None:
        """The relation that has the column, where no other may have it."""
        name, sources = column.parts[0].name.lower(), self._scope.sources
        if any(source.columns is None for source in sources):
            return None
        owners = [source for source in sources if name in (source.columns or ())]
        return owners[0] if len(owners) == 1 and owners[0].alias else None


__all__ = ["has_hidden_names", "say_what_is_meant"]

"""The columns that a query in brackets gives: their names and Spark types, when both are certain."""

from __future__ import annotations

from sqlglot import exp

from skerry.model.table import Column
from skerry.sql.scope import Scope, Scopes, Source
from skerry.sql.types import Resolve, infer, widest


class Outputs:
    """Asks the scopes of one tree."""

    def __init__(self, scopes: Scopes) -> None:
        self._scopes = {id(scope.select): scope for scope in scopes.all}
        self._known: dict[int, tuple[Column, ...] | None] = {}

    def of(self, query: exp.Expr, alias: exp.Expr | None = None) -> tuple[Column, ...] | None:
        """None when a name or a type is not known, or two columns share a name. `alias` may rename them."""
        try:
            columns = self._columns(query)
        except RecursionError:
            return None
        renamed = alias.args.get("columns") if alias is not None else None
        if columns is None:
            return None
        if renamed:
            if len(renamed) != len(columns):
                return None
            columns = tuple(Column(name.name, column.type) for name, column in zip(renamed, columns, strict=True))
        names = {column.name.lower() for column in columns}
        return columns if "" not in names and len(names) == len(columns) else None

    def types(self, query: exp.Expr) -> tuple[str, ...] | None:
        """The types of its columns, whatever they are called."""
        try:
            columns = self._columns(query)
        except RecursionError:
            return None
        return tuple(column.type for column in columns) if columns is not None else None

    def type(self, node: exp.Expr, scope: Scope) -> str | None:
        """The type of an expression in a SELECT."""
        found = infer(node, self._resolver(scope))
        return found if found != "void" else None

    def _columns(self, query: exp.Expr) -> tuple[Column, ...] | None:
        if id(query) not in self._known:
            self._known[id(query)] = self._read(query)
        return self._known[id(query)]

    def _read(self, query: exp.Expr) -> tuple[Column, ...] | None:
        if isinstance(query, exp.Subquery) and not query.args.get("joins") and not query.args.get("alias"):
            return self._columns(query.this)
        if isinstance(query, exp.SetOperation):
            return self._both(query)
        scope = self._scopes.get(id(query))
        if scope is None or not scope.plain or query.args.get("laterals"):
            return None
        found: list[Column] = []
        for item in query.expressions:
            type_ = infer(item, self._resolver(scope)) if not item.is_star else None
            if type_ is None or type_ == "void":
                return None
            found.append(Column(_name(item), type_))
        return tuple(found)

    def _both(self, query: exp.SetOperation) -> tuple[Column, ...] | None:
        left, right = self._columns(query.this), self._columns(query.args["expression"])
        if query.args.get("by_name") or left is None or right is None or len(left) != len(right):
            return None
        types = [widest((a.type, b.type)) for a, b in zip(left, right, strict=True)]
        if any(type_ is None for type_ in types):
            return None
        return tuple(Column(column.name, type_ or "") for column, type_ in zip(left, types, strict=True))

    def _resolver(self, scope: Scope) -> Resolve:
        def resolve(column: exp.Column) -> str | None:
            parts = [part.name.lower() for part in column.parts]
            if len(parts) > 2:
                return None
            sources = [source for source in scope.sources if len(parts) == 1 or source.alias == parts[0]]
            types: list[str] = []
            for source in sources:
                known = self._source(source)
                if known is None:
                    return None
                types += [each.type for each in known if each.name.lower() == parts[-1]]
            return types[0] if len(types) == 1 else None

        return resolve

    def _source(self, source: Source) -> tuple[Column, ...] | None:
        if source.table is not None:
            return source.table.columns if not source.renamed else None
        node = source.node
        if isinstance(node, exp.Subquery) and isinstance(node.this, exp.Query):
            return self.of(node.this, node.args.get("alias"))
        return None


def _name(item: exp.Expr) -> str:
    """Empty for what Spark would have to name."""
    if isinstance(item, exp.Alias):
        return str(item.alias)
    return str(item.name) if isinstance(item, exp.Column) else ""

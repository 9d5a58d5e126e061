"""Which relations each SELECT can see. Only what is certain is said: a column list may be None, unknown."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from sqlglot import exp

from skerry.model.names import TableRef
from skerry.sql.functions import is_generator
from skerry.sql.nodes import ColonCast, VariantPath
from skerry.sql.walk import children_of, nodes_of

_PLAIN = re.compile(r"\w+")
QUERIES = (exp.Select, exp.SetOperation, exp.Values)

Names = tuple[str, ...] | None
Env = dict[str, Names]


@dataclass(eq=False)
class Source:
    """One relation of a FROM. `table` is set for a base table; `columns` are lower case, or None."""

    alias: str
    node: exp.Expr
    columns: Names
    table: TableRef | None = None
    parts: tuple[str, ...] = ()
    said_alias: bool = False
    renamed: bool = False


@dataclass(eq=False)
class Scope:
    """A SELECT with its sources. `plain` says that FROM is a flat chain of joins, which rules may look into.

    `conjuncts`: what push.py found them to be, once somebody asked. Who changes the tree reads its scopes anew.
    """

    select: exp.Select
    parent: Scope | None
    sources: list[Source] = field(default_factory=list)
    columns: list[exp.Column] = field(default_factory=list)
    plain: bool = True
    conjuncts: list[tuple[exp.Expr, list[Source]]] | None = None

    def chain(self) -> Iterator[Scope]:
        scope: Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.parent


class Scopes:
    """All scopes of a statement, in the order of their SELECTs."""

    def __init__(self, tables: dict[int, TableRef]) -> None:
        self._tables = tables
        self.all: list[Scope] = []
        self.loose: list[exp.Column] = []

    def read(self, query: exp.Expr, env: Env, parent: Scope | None) -> Names:
        """Visit a query; answers its output columns when they are certain."""
        query, env = self._with(query, env, parent)
        if isinstance(query, exp.Select):
            return self._select(query, env, parent)
        if isinstance(query, exp.SetOperation):
            return self._set_operation(query, env, parent)
        if isinstance(query, exp.Subquery):
            self._expressions(endings(query), env, parent, None)
            return self.read(query.this, env, parent)
        if isinstance(query, exp.Values):
            self._expressions([query], env, parent, None)
            return _values_columns(query)
        return None

    def _with(self, query: exp.Expr, env: Env, parent: Scope | None) -> tuple[exp.Expr, Env]:
        with_ = query.args.get("with_")
        if with_ is not None:
            env = dict(env)
            for cte in with_.expressions:
                name, given = cte.alias.lower(), _alias_columns(cte.args.get("alias"))
                # A recursive query reads itself, under names that its first arm gives: these may be unknown here.
                inside = {**env, name: given} if with_.args.get("recursive") else env
                columns = self.read(cte.this, inside, parent)
                env[name] = given or columns
        return query, env

    def _set_operation(self, query: exp.SetOperation, env: Env, parent: Scope | None) -> Names:
        spine: list[tuple[exp.Expr, Env]] = []
        node: exp.Expr = query
        while isinstance(node, exp.SetOperation):
            if node is not query:
                node, env = self._with(node, env, parent)
            self._expressions(endings(node), env, parent, None)
            spine.append((node.args["expression"], env))
            node = node.args["this"]
        names = self.read(node, env, parent)
        for operand, around in reversed(spine):
            self.read(operand, around, parent)
        return None if query.args.get("by_name") else names

    def _select(self, select: exp.Select, env: Env, parent: Scope | None) -> Names:
        scope = Scope(select, parent)
        self.all.append(scope)
        from_ = select.args.get("from_")
        if from_ is not None:
            self._relation(from_.this, scope, env)
        for join in select.args.get("joins") or []:
            if isinstance(join, exp.Join):
                self._relation(join.this, scope, env)
                # Its right side's rows are chosen among all of them.
                scope.plain = scope.plain and not join.args.get("nearest")
            else:
                self._pivot(join, scope, env)
        for pivot in select.args.get("pivots") or []:
            self._pivot(pivot, scope, env)
        for view in select.args.get("laterals") or []:
            self._expressions([view.this], env, scope, scope)
            alias = view.args.get("alias")
            columns = _alias_columns(alias)
            scope.sources.append(Source(_name(alias), view, columns))
        inside = [*select.expressions, *endings(select)]
        inside += [select.args[key] for key in ("where", "group", "having", "qualify") if select.args.get(key)]
        joins = select.args.get("joins") or []
        inside += [join.args[key] for join in joins for key in ("on", "nearest") if join.args.get(key)]
        self._expressions(inside, env, scope, scope)
        return _output(select, scope)

    def _pivot(self, pivot: exp.Expr, scope: Scope, env: Env) -> None:
        scope.plain = False
        self._expressions([pivot], env, scope, scope)
        scope.sources.append(Source(_name(pivot.args.get("alias")), pivot, None))

    def _relation(self, node: exp.Expr, scope: Scope, env: Env) -> None:
        alias = node.args.get("alias")
        name, renamed = _name(alias), _alias_columns(alias)
        if isinstance(node, exp.Table):
            self._table(node, scope, env, name, renamed)
        elif isinstance(node, exp.Values):
            self._expressions(list(node.expressions), env, scope.parent, None)
            scope.sources.append(Source(name, node, _values_columns(node)))
        elif isinstance(node, exp.Lateral):
            columns: Names = None
            if isinstance(node.this, exp.Subquery):
                columns = self.read(node.this.this, env, scope)
            else:
                self._expressions([node.this], env, scope, scope)
            scope.sources.append(Source(name, node, renamed or columns))
        elif isinstance(node.this, (*QUERIES, exp.Subquery)) and not node.args.get("joins") and _is_query(node.this):
            columns = self.read(node.this, env, scope.parent)
            scope.sources.append(Source(name, node, renamed or columns))
        else:
            self._nested_join(node, scope, env)

    def _table(self, node: exp.Table, scope: Scope, env: Env, name: str, renamed: Names) -> None:
        if isinstance(node.this, exp.Anonymous):
            self._expressions([node.this], env, scope.parent, None)
            scope.sources.append(Source(name or node.this.name.lower(), node, renamed))
            return
        parts = tuple(part.name for part in node.parts)
        own = name or parts[-1].lower()
        table = self._tables.get(id(node))
        if table is not None:
            columns = renamed or tuple(column.name.lower() for column in table.columns)
            source = Source(own, node, columns, table, parts, bool(name), renamed is not None)
        else:
            source = Source(own, node, renamed or env.get(parts[-1].lower()))
        scope.sources.append(source)

    def _nested_join(self, node: exp.Expr, scope: Scope, env: Env) -> None:
        """`(a JOIN b ON …) [AS x]`: its tables are seen, but no rule looks into it."""
        scope.plain = False
        outside = len(scope.sources)
        self._relation(node.this, scope, env)
        for join in node.args.get("joins") or []:
            if isinstance(join, exp.Join):
                self._relation(join.this, scope, env)
                said = [join.args[key] for key in ("on", "nearest") if join.args.get(key)]
                self._expressions(said, env, scope, scope)
            else:
                self._pivot(join, scope, env)
        if node.args.get("alias"):
            if _alias_columns(node.args["alias"]) is not None:
                # `AS x(a, b)` counts the columns of all its tables.
                for source in scope.sources[outside:]:
                    source.renamed = True
            scope.sources.append(Source(_name(node.args["alias"]), node, None))

    def _expressions(self, roots: list[exp.Expr], env: Env, parent: Scope | None, own: Scope | None) -> None:
        """Columns below `roots` belong to `own`; queries below them are visited as children of `parent`."""
        stack = list(reversed(roots))
        while stack:
            node = stack.pop()
            if isinstance(node, exp.Subquery) or (isinstance(node, QUERIES) and node not in roots):
                self.read(node, env, parent)
                continue
            if isinstance(node, exp.Column):
                (own.columns if own is not None else self.loose).append(node)
            stack.extend(reversed(children_of(node)))


def passes(node: exp.Column, scope: Scope) -> bool:
    """Can the name be no column of this scope, so that Spark looks for it in the one around?"""
    names = {part.name.lower() for part in node.parts[:1]}
    return all(
        source.columns is not None and source.alias not in names and not names & set(source.columns)
        for source in scope.sources
    )


def tables_of(tree: exp.Expr) -> list[tuple[exp.Table, set[str]]]:
    """Every mention of a table with the WITH names that it can see, in the order of the text."""
    found: list[tuple[exp.Table, set[str]]] = []
    stack: list[tuple[exp.Expr, set[str]]] = [(tree, set())]
    while stack:
        node, seen = stack.pop()
        with_ = node.args.get("with_")
        if with_ is not None:
            seen = set(seen)
            for cte in with_.expressions:
                # A WITH query sees the names before it, and its own if it is recursive.
                own = {cte.alias.lower()}
                stack.append((cte.this, seen | own if with_.args.get("recursive") else set(seen)))
                seen |= own
        if isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier):
            found.append((node, seen))
        for child in children_of(node):
            if child is not with_:
                stack.append((child, seen))
    return sorted(found, key=lambda item: int(item[0].meta.get("start", 0)))


def _is_query(node: exp.Expr) -> bool:
    while isinstance(node, exp.Subquery):
        if node.args.get("joins") or node.args.get("alias"):
            return False
        node = node.this
    return isinstance(node, QUERIES)


def endings(node: exp.Expr) -> list[exp.Expr]:
    """What stands behind a SELECT, a set operation or brackets around one: its order, bounds and named windows."""
    found: list[exp.Expr] = []
    for key in ("order", "sort", "cluster", "distribute", "limit", "offset"):
        if node.args.get(key) is not None:
            found.append(node.args[key])
    return found + [window for key in ("windows", "late_windows") for window in node.args.get(key) or []]


def _name(alias: exp.Expr | None) -> str:
    return alias.name.lower() if alias is not None and alias.this is not None else ""


def _alias_columns(alias: exp.Expr | None) -> Names:
    columns = alias.args.get("columns") if alias is not None else None
    return tuple(column.name.lower() for column in columns) if columns else None


def _values_columns(node: exp.Values) -> Names:
    given = _alias_columns(node.args.get("alias"))
    if given is not None:
        return given
    first = node.expressions[0]
    width = len(first.expressions) if isinstance(first, exp.Tuple) else 1
    return None if width == 1 else tuple(f"col{index + 1}" for index in range(width))


def _output(select: exp.Select, scope: Scope) -> Names:
    names: list[str] = []
    for item in select.expressions:
        found = _item_names(item, scope)
        if found is None:
            return None
        names.extend(found)
    return tuple(names)


def _item_names(item: exp.Expr, scope: Scope) -> Names:
    """The plain-word names an item of a select list may give; anything else it is called cannot be mistaken."""
    if isinstance(item, exp.Alias):
        return (item.alias.lower(),)
    if item.is_star:
        columns: list[str] = []
        for source in scope.sources:
            if source.columns is None or item.args.get("table") is not None:
                return None
            columns.extend(source.columns)
        return tuple(columns)
    if isinstance(item, exp.Column):
        return (item.name.lower(),)
    if isinstance(item, exp.Cast | exp.TryCast | ColonCast):
        inner = item.this
        if isinstance(inner, VariantPath):
            return (inner.output_name.lower(),)
        return (inner.name.lower(),) if isinstance(inner, exp.Column) else None
    if isinstance(item, exp.Literal | exp.Boolean | exp.Null | exp.Dot | exp.Paren | exp.Placeholder | exp.Aliases):
        return None
    if isinstance(item, VariantPath):
        return (item.output_name.lower(),)
    if any(is_generator(part) for part in nodes_of(item)):
        return None
    return ()

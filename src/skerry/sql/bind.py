"""Tables' names → scans: every mention of a table becomes `scan_N AS name`."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from skerry.model.errors import SqlError
from skerry.model.names import Catalog, TableRef, older_name, unknown_table
from skerry.sql.asof import Said, moment_behind
from skerry.sql.position import error_at
from skerry.sql.scope import Scope, Scopes, Source, tables_of
from skerry.sql.walk import children_of, find_all

# What queries that read themselves are called in plans.
RECURSIVE = "skerry_recursive_"


def look_up(tree: exp.Expr, catalog: Catalog, text: str, said: Sequence[Said] = ()) -> dict[int, TableRef]:
    """The table of each mention that is no WITH name, by the identity of its node. `said`: which versions."""
    found: dict[int, TableRef] = {}
    for node, ctes in tables_of(tree):
        parts = tuple(part.name for part in node.parts)
        if len(parts) == 1 and parts[0].lower() in ctes:
            continue
        table = catalog.lookup(parts)
        at = moment_behind(node, said)
        if table is not None and not table.is_own and at is not None:
            table = catalog.lookup((*parts[:-1], older_name(parts[-1], at)))
        if table is None:
            raise error_at(unknown_table(parts, [*catalog.names(), *ctes]), text, _name_only(node))
        if not table.columns:
            raise error_at(f"table {'.'.join(parts)} has no columns", text, _name_only(node))
        found[id(node)] = table
    return found


def _name_only(node: exp.Table) -> exp.Expr:
    """Where the name stands, all parts of it, without the alias."""
    place = exp.Identifier(this=node.name)
    place.meta["start"] = node.meta.get("start")
    place.meta["end"] = node.meta.get("end")
    return place


def name_recursive(tree: exp.Expr) -> None:
    """Queries of a WITH RECURSIVE get names that no table of any site has; their mentions keep theirs as aliases.

    An engine that knows no recursion takes the name inside of such a query for a table of its own.
    """
    prefix = _free_prefix(tree, RECURSIVE)
    stack: list[tuple[exp.Expr, dict[str, str | None]]] = [(tree, {})]
    count = 0
    while stack:
        node, names = stack.pop()
        with_ = node.args.get("with_")
        if with_ is not None:
            is_recursive = bool(with_.args.get("recursive"))
            for cte in with_.expressions:
                old = cte.alias.lower()
                inside = names
                names = {**names, old: f"{prefix}{count}" if is_recursive else None}
                count += is_recursive
                stack.append((cte.this, names if is_recursive else inside))
                if is_recursive:
                    cte.args["alias"].set("this", exp.Identifier(this=names[old], quoted=False))
        if isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier) and not node.args.get("db"):
            new, own = names.get(node.name.lower()), node.this
            if new is not None:
                if node.args.get("alias") is None:
                    node.set("alias", exp.TableAlias(this=own))
                node.set("this", exp.Identifier(this=new, quoted=False))
        stack += [(child, names) for child in children_of(node) if child is not with_]


def shorten_names(scopes: Scopes, text: str) -> None:
    """`oslo.orders.o_orderkey` → `orders.o_orderkey`, the name its scan will have.

    Where another scan has that name, `FROM oslo.orders, bergen.orders`, this one gets a name of its own.
    """
    renamed: set[Source] = set()
    for scope in scopes.all:
        for column in scope.columns:
            _shorten(column, scope, scopes, renamed, text)


def _shorten(column: exp.Column, scope: Scope, scopes: Scopes, renamed: set[Source], text: str) -> None:
    parts = column.parts
    for around in scope.chain():
        for source in around.sources:
            size = len(source.parts)
            is_alias = source.said_alias and source not in renamed
            if source.table is None or is_alias or size < 2 or len(parts) <= size or not _says(parts, source.parts):
                continue
            if sum(each.alias == source.alias for each in around.sources) > 1:
                _rename(source, around, scopes, text)
                renamed.add(source)
            kept = parts[size - 1 :]
            if source in renamed:
                kept = [exp.Identifier(this=source.alias, quoted=False), *kept[1:]]
            for key in ("catalog", "db", "table"):
                column.set(key, None)
            for key, part in zip(("this", "table", "db", "catalog"), reversed(kept), strict=False):
                column.set(key, part)
            return


def _says(parts: Sequence[exp.Expr], names: Sequence[str]) -> bool:
    return [part.name.lower() for part in parts[: len(names)]] == [name.lower() for name in names]


def _rename(source: Source, scope: Scope, scopes: Scopes, text: str) -> None:
    """Nobody may mean it by the old name, and it is no table that stands there twice."""
    shown, old = ".".join(source.parts), source.alias
    assert isinstance(source.node, exp.Table)
    same = [each for each in scope.sources if each.table == source.table and each.alias == old]
    columns = [column for each in scopes.all for column in each.columns]
    if len(same) > 1 or any(len(each.parts) > 1 and each.parts[0].name.lower() == old for each in columns):
        advice = f"give it an alias, e.g. {shown} AS {old[:1]}2"
        message = f"{shown} stands next to another {old} in one FROM: {advice}"
        raise error_at(message, text, _name_only(source.node))
    prefix = _free_prefix(source.node.root(), "named_")
    source.alias, source.said_alias = f"{prefix}{source.node.meta.get('start', 0)}", True
    source.node.set("alias", exp.TableAlias(this=exp.Identifier(this=source.alias, quoted=False)))


def place_scans(tree: exp.Expr, scopes: Scopes, tables: dict[int, TableRef]) -> dict[str, Source]:
    """Put `scan_N` in the place of each table; answers the source of each scan, in the order of the text."""
    prefix = _free_prefix(tree, "scan_")
    sources = [source for scope in scopes.all for source in scope.sources if source.table is not None]
    sources.sort(key=lambda source: int(source.node.meta.get("start", 0)))
    if len(sources) != len(tables):
        raise SqlError("a table stands where Skerry cannot read it; put it into a subquery in FROM")
    placed: dict[str, Source] = {}
    for index, source in enumerate(sources):
        name = f"{prefix}{index}"
        node = source.node
        own = node.this
        if not source.said_alias:
            node.set("alias", exp.TableAlias(this=exp.Identifier(this=own.name, quoted=own.quoted)))
        node.set("this", exp.Identifier(this=name, quoted=False))
        node.set("db", None)
        node.set("catalog", None)
        placed[name] = source
    return placed


def _free_prefix(tree: exp.Expr, prefix: str) -> str:
    """The prefix, or more of it where the statement has such names of its own."""
    taken = {node.name.lower() for node in find_all(tree, exp.Identifier)}
    while any(name.startswith(prefix) for name in taken):
        prefix = f"skerry_{prefix}"
    return prefix


def wrap_values(tree: exp.Expr) -> None:
    """`FROM VALUES (1), (2) AS t` → `FROM (VALUES (1), (2)) AS t`.

    Spark may end the list of rows early and read what follows a comma as a relation of FROM; brackets leave it
    one reading.
    """
    for values in find_all(tree, exp.Values):
        if isinstance(values.parent, exp.From | exp.Join):
            alias = values.args.get("alias")
            values.set("alias", None)
            wrapper = exp.Subquery(alias=alias)
            values.replace(wrapper)
            wrapper.set("this", values)

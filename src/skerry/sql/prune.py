"""The columns each scan must bring: those that a name may mean, or that a star covers."""

from __future__ import annotations

from sqlglot import exp

from skerry.model.columns import FIXED_BYTES
from skerry.model.names import TableRef
from skerry.sql.references import References
from skerry.sql.scope import Scope, Scopes, Source
from skerry.sql.walk import find_all


def needed_columns(tree: exp.Expr, scopes: Scopes, placed: dict[str, Source]) -> dict[str, tuple[str, ...]]:
    """Per scan, in declared order, never none. Resolution cannot change: a name is kept wherever it may be found."""
    references = References(tree, scopes)
    covered = {id(source) for scope in scopes.all for source in _covered(scope)}
    needed: dict[str, tuple[str, ...]] = {}
    of_table: dict[tuple[str, str | None], set[str]] = {}
    for name, source in placed.items():
        table = source.table
        assert table is not None
        mentioned = references.of(source)
        everything = source.renamed or id(source) in covered
        needed[name] = tuple(column.name for column in table.columns if everything or column.name.lower() in mentioned)
        of_table.setdefault((table.name, table.member), set()).update(needed[name])
    for name, source in placed.items():
        if not needed[name] and source.table is not None:
            needed[name] = (_narrowest(source.table, of_table[source.table.name, source.table.member]),)
    return needed


def _narrowest(table: TableRef, needed: set[str]) -> str:
    """The narrowest column that other mentions of the table need, if they need any: its rows may travel with theirs."""
    return min(table.columns, key=lambda column: (bool(needed) and column.name not in needed, width(column.type))).name


def width(type_: str) -> int:
    """About how many bytes a value of this type takes."""
    if type_.startswith("decimal"):
        return 16
    return FIXED_BYTES.get(type_, 32 if type_ in ("string", "binary") or type_.startswith(("char", "varchar")) else 64)


def _covered(scope: Scope) -> list[Source]:
    """The sources of `scope` of which all columns are wanted."""
    joins = [join for join in scope.select.args.get("joins") or [] if isinstance(join, exp.Join)]
    natural = any(join.args.get("method") == "NATURAL" for join in joins)
    nested = any(join.args.get("method") == "NATURAL" for join in find_all(scope.select, exp.Join)) and not scope.plain
    pivots = any(isinstance(source.node, exp.Pivot) for source in scope.sources)
    if natural or nested or pivots:
        return scope.sources
    covered: list[Source] = []
    for star in stars(scope.select):
        qualifier = star.parts[-2].name.lower() if isinstance(star, exp.Column) else None
        if qualifier is None:
            return scope.sources
        owners = [source for around in scope.chain() for source in _named(around, qualifier)]
        covered.extend(owners or [source for around in scope.chain() for source in around.sources])
    return covered


def _named(scope: Scope, qualifier: str) -> list[Source]:
    """What `qualifier.*` covers of this scope; the alias of a join in brackets stands for all tables in them."""
    found = [source for source in scope.sources if source.alias == qualifier]
    return found if scope.plain or not found else scope.sources


def stars(select: exp.Select) -> list[exp.Expr]:
    """The stars of this SELECT alone that stand for columns: not `count(*)`, not the list of EXISTS."""
    listed = isinstance(select.parent, exp.Exists)
    found: list[exp.Expr] = []
    stack: list[exp.Expr] = [*select.expressions]
    stack += [
        select.args[key] for key in ("where", "group", "having", "qualify", "order", "sort") if select.args.get(key)
    ]
    while stack:
        node = stack.pop()
        if isinstance(node, exp.Query):
            continue
        if isinstance(node, exp.Column) and isinstance(node.this, exp.Star):
            found.append(node)
        elif isinstance(node, exp.Star):
            if not _counts_rows(node) and not (listed and node.parent is select):
                found.append(node)
        else:
            stack.extend(node.iter_expressions())
    return found


def _counts_rows(star: exp.Star) -> bool:
    call = star.parent
    return (
        isinstance(call, exp.Anonymous)
        and call.name.lower() == "count"
        and len(call.expressions) == 1
        and not star.args.get("except_")
    )

"""A SELECT that groups the rows of one table: the columns it sees, what it groups by, which aggregates it asks for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from sqlglot import exp

from skerry.model.names import TableRef
from skerry.sql.alike import Once, form
from skerry.sql.functions import call_name, is_aggregate, is_deterministic, is_generator
from skerry.sql.shape import named_after
from skerry.sql.types import infer
from skerry.sql.walk import bare, find_all

_CLAUSES = frozenset("expressions from_ joins where group having order limit offset said_all distinct".split())
_BELOW = frozenset("expressions from_ where said_all".split())
_ROWS = frozenset("expressions from_ joins where order limit offset said_all".split())
_SETS = exp.Rollup | exp.Cube | exp.GroupingSets
# Aggregates by their kind, but of the grouping itself: they have no partial result.
_OF_GROUPING = frozenset(("grouping", "grouping_id"))

Types = Mapping[str, str | None]
# Scans that each member of the one that is cut reads its own part of (rule `colocated`); None if there are none.
BesideOf = Callable[[exp.Select, str], frozenset[str] | None]


@dataclass(frozen=True)
class Seen:
    """A relation of FROM: its scan, its name in lower case, its columns' types, and what computes them, if that is
    not the table itself."""

    scan: str
    alias: str
    types: Types
    values: Mapping[str, exp.Expr] = field(default_factory=dict)


@dataclass(frozen=True)
class Block:
    """`keys` are what the block groups by, in the form of `plain`.

    scan: the table whose parts are grouped apart; the others of `seen` are joined with each of them, those `beside` it
    part by part. `asked`: scans of subqueries in WHERE.
    has_sets: GROUPING SETS, ROLLUP or CUBE. `aggregates` are the calls of its list, HAVING and ORDER BY.
    SELECT DISTINCT groups by all that it lists.
    """

    select: exp.Select
    scan: str
    seen: tuple[Seen, ...]
    keys: tuple[exp.Expr, ...] = ()
    has_sets: bool = False
    aggregates: tuple[exp.Expr, ...] = ()
    beside: frozenset[str] = frozenset()
    asked: tuple[str, ...] = ()

    @property
    def others(self) -> tuple[str, ...]:
        return (*(each.scan for each in self.seen if each.scan != self.scan), *self.asked)

    def owner(self, column: exp.Column) -> tuple[Seen, int] | None:
        """The relation that the column surely is of, and its place in the name; a field of a struct stands behind."""
        parts = [part.name.lower() for part in column.parts]
        if len(parts) > 1:
            # Spark looks for `alias.column` first.
            named = [each for each in self.seen if each.alias == parts[0]]
            if len(named) == 1 and parts[1] in named[0].types:
                return named[0], 1
        holders = [each for each in self.seen if parts[0] in each.types]
        return (holders[0], 0) if len(holders) == 1 else None

    def resolve(self, column: exp.Column) -> str | None:
        found = self.owner(column)
        is_whole = found is not None and found[1] == len(column.parts) - 1
        return found[0].types[column.name.lower()] if found is not None and is_whole else None

    def type_of(self, node: exp.Expr) -> str | None:
        return infer(node, self.resolve)

    def plain(self, node: exp.Expr) -> exp.Expr:
        """A copy in which equal columns look alike: qualified where there are several relations, and in HAVING.

        (There a bare name means something else to Sail: sql/having.py.)
        """
        is_qualified = len(self.seen) > 1 or self.select.find_ancestor(exp.Having) is not None
        node = bare(node)
        copy = node.copy()
        for column in find_all(copy, exp.Column):
            found = self.owner(column)
            if found is not None and found[1] == len(column.parts) - 1:
                column.set("table", exp.to_identifier(found[0].alias, quoted=True) if is_qualified else None)
        return copy

    def is_own(self, column: exp.Column) -> bool:
        return self.owner(column) is not None

    def has_column(self, name: str) -> bool:
        return any(name.lower() in each.types for each in self.seen)

    def key(self, node: exp.Expr) -> int | None:
        """Which key this expression is."""
        return self._key_places.get(form(self.plain(node))) if self.keys else None

    @cached_property
    def _key_places(self) -> dict[tuple[object, ...], int]:
        return {form(key): index for index, key in enumerate(self.keys)}


def block_of(
    select: exp.Expr, scans: Mapping[str, TableRef], sizes: Mapping[str, int], beside_of: BesideOf | None = None
) -> Block | None:
    """The block, if it has the one shape that partial aggregates are for, and everything in it is known.

    `sizes` has the rows of the scans whose tables have parts at several members; the largest is cut.
    """
    if not isinstance(select, exp.Select) or _said(select) - _CLAUSES or select.args.get("from_") is None:
        return None
    seen = _seen(select, scans, sizes, beside_of)
    if seen is None:
        return None
    cut, relations, beside = seen
    # Whoever says what is beside the table has looked into the subqueries of WHERE.
    asked = _asked(select, scans) if beside else ()
    if not _is_plain(select, asks=bool(asked)):
        return None
    aggregates = tuple(_calls(select))
    group = select.args.get("group")
    is_distinct = bool(select.args.get("distinct"))
    if is_distinct is bool(aggregates or group is not None or select.args.get("having") is not None):
        return None
    block = Block(select, cut, relations, aggregates=aggregates, beside=beside, asked=asked)
    keys = _keys(group, block) if group is not None else []
    if is_distinct:
        keys = _once(block, [item.unalias() for item in select.expressions])
    if keys is None or not all(_is_own(key, block) for key in keys):
        return None
    has_sets = group is not None and has_grouping_sets(group)
    if has_sets and not keys:
        return None  # of no rows, GROUPING SETS ((), ()) makes no group: partial rows would make one
    block = replace(block, keys=tuple(keys), has_sets=has_sets)
    return block if _is_resolved(block) else None


def rows_of(
    select: exp.Expr, scans: Mapping[str, TableRef], sizes: Mapping[str, int], beside_of: BesideOf | None = None
) -> Block | None:
    """A block that groups nothing: each of its rows has one row of the scan that is cut, which `sizes` has."""
    if not isinstance(select, exp.Select) or _said(select) - _ROWS or select.args.get("from_") is None:
        return None
    seen = _seen(select, scans, sizes, beside_of)
    if seen is None or not _is_plain(select, stars=True) or any(_calls(select)):
        return None
    cut, relations, beside = seen
    return Block(select, cut, relations, beside=beside)


def is_resolved(block: Block) -> bool:
    """Is every column outside of ORDER BY surely one of the block's relations?"""
    select = block.select
    clauses = [*select.expressions, select.args.get("where"), *(join.args.get("on") for join in _joins(select))]
    columns = [column for each in clauses if each is not None for column in find_all(each, exp.Column)]
    return all(block.is_own(column) for column in columns if not column.is_star)


def _joins(select: exp.Select) -> list[exp.Expr]:
    return list(select.args.get("joins") or ())


def _is_own(key: exp.Expr, block: Block) -> bool:
    """No constant, and no name of another item of the list."""
    columns = find_all(key, exp.Column)
    return bool(columns) and all(block.is_own(column) for column in columns)


def _seen(
    select: exp.Select, scans: Mapping[str, TableRef], sizes: Mapping[str, int], beside_of: BesideOf | None
) -> tuple[str, tuple[Seen, ...], frozenset[str]] | None:
    """The scan that is cut, all relations, and those beside it; None where its parts cannot be joined one by one."""
    joins = select.args.get("joins") or []
    if any(not isinstance(join, exp.Join) for join in joins):
        return None
    found = [_relation(node.this, scans) for node in (select.args["from_"], *joins)]
    seen = tuple(each for each in found if each is not None)
    if len(seen) < len(found) or len({each.alias for each in seen}) < len(seen):
        return None
    cut = max((each.scan for each in seen), key=lambda scan: (sizes.get(scan, -1), scan))
    if cut not in sizes:
        return None
    beside = beside_of(select, cut) if beside_of is not None and (joins or _asked(select, scans)) else None
    if beside is not None:
        return cut, seen, beside
    place = [each.scan for each in seen].index(cut)
    if any(join.args.get("method") or join.args.get("using") for join in joins):
        return None
    # A union is joined part by part where its own rows are kept or matched; what comes before it is whole.
    if place and _kind(joins[place - 1]) not in ("inner", "right"):
        return None
    is_cut = all(_kind(join) in ("inner", "left", "semi", "anti") for join in joins[place:])
    return (cut, seen, frozenset()) if is_cut else None


def _asked(select: exp.Select, scans: Mapping[str, TableRef]) -> tuple[str, ...]:
    """The scans of subqueries in WHERE."""
    where = select.args.get("where")
    return tuple(node.name for node in find_all(where, exp.Table) if node.name in scans) if where is not None else ()


def _kind(join: exp.Join) -> str:
    kind, side = str(join.args.get("kind") or ""), str(join.args.get("side") or "")
    if kind in ("SEMI", "ANTI"):
        return kind.lower()
    return side.lower() or "inner"


def outermost_aggregates(node: exp.Expr) -> Iterator[exp.Expr]:
    """Aggregate calls below `node`, each with its FILTER."""
    if is_aggregate(node) and call_name(node) not in _OF_GROUPING:
        yield node
        return
    if isinstance(node, exp.Filter | exp.WithinGroup | exp.IgnoreNulls | exp.RespectNulls):
        yield node
        return
    for child in node.iter_expressions():
        yield from outermost_aggregates(child)


def has_aggregate(node: exp.Expr) -> bool:
    return next(outermost_aggregates(node), None) is not None


def set_leaves(group: exp.Expr) -> Iterator[exp.Expr]:
    """What stands in GROUP BY, inside of ROLLUP, CUBE and GROUPING SETS too."""
    stack = [*(group.args.get("grouping_sets") or []), *reversed(group.expressions)]
    has_sets = has_grouping_sets(group)
    while stack:
        node = stack.pop()
        if isinstance(node, _SETS) or (has_sets and isinstance(node, exp.Tuple)):
            stack.extend(reversed(node.expressions))
        elif has_sets and isinstance(node, exp.Paren):
            stack.append(node.this)
        else:
            yield node


def has_grouping_sets(group: exp.Expr) -> bool:
    if any(group.args.get(key) for key in ("rollup", "cube", "grouping_sets")):
        return True
    return any(isinstance(node, _SETS) for node in group.expressions)


def _said(node: exp.Expr) -> set[str]:
    return {key for key, value in node.args.items() if value not in (None, [], False)}


def _is_plain(select: exp.Select, stars: bool = False, asks: bool = False) -> bool:
    """No window, generator, subquery or chance in it, and no star but count's, unless `stars` are allowed.

    `asks`: WHERE may have subqueries."""
    below = {id(node.this) for node in (select.args["from_"], *(select.args.get("joins") or ()))}
    if asks:
        below.add(id(select.args["where"]))
    for node in select.walk(prune=lambda node: id(node) in below):
        if node is select or id(node) in below:
            continue
        if isinstance(node, exp.Query | exp.Window | exp.Exists | exp.Lambda | exp.Aliases) or is_generator(node):
            return False
        if not stars and isinstance(node, exp.Star) and (node.parent is None or call_name(node.parent) != "count"):
            return False
    return is_deterministic(select)


def _calls(select: exp.Select) -> Iterator[exp.Expr]:
    for item in select.expressions:
        yield from outermost_aggregates(item)
    for clause in ("having", "order"):
        if select.args.get(clause) is not None:
            yield from outermost_aggregates(select.args[clause])


def _relation(node: exp.Expr, scans: Mapping[str, TableRef]) -> Seen | None:
    """A table, or a query in brackets that only filters and projects one."""
    alias = node.args.get("alias")
    if alias is not None and alias.args.get("columns"):
        return None
    name = alias.name.lower() if alias is not None else ""
    if isinstance(node, exp.Table) and node.name in scans and not _said(node) - {"this", "alias"}:
        return Seen(node.name, name, {column.name.lower(): column.type for column in scans[node.name].columns})
    if not isinstance(node, exp.Subquery) or _said(node) - {"this", "alias"}:
        return None
    inner = node.this
    if not isinstance(inner, exp.Select) or _said(inner) - _BELOW or inner.args.get("from_") is None:
        return None
    below = _relation(inner.args["from_"].this, scans)
    if below is None or not _is_plain(inner) or any(_calls(inner)):
        return None
    types = _projected(inner, Block(inner, below.scan, (below,)))
    # Nobody asks how the columns of a query in brackets inside another one are computed.
    values = {item.alias_or_name.lower(): item.unalias() for item in inner.expressions} if not below.values else {}
    return Seen(below.scan, name, types, values) if types is not None else None


def _projected(inner: exp.Select, below: Block) -> Types | None:
    types: dict[str, str | None] = {}
    for item in inner.expressions:
        value = item.unalias()
        if any(not below.is_own(column) for column in find_all(value, exp.Column)):
            return None
        name = item.alias_or_name.lower() if isinstance(item, exp.Alias | exp.Column) else ""
        if name in types:
            return None
        if name:
            types[name] = below.type_of(value)
    return types


def _keys(group: exp.Expr, block: Block) -> list[exp.Expr] | None:
    """Ordinals and aliases as what they stand for; each key once."""
    if group.args.get("all"):
        return None  # what it means is not certain: see sql/by_all.py
    found: list[exp.Expr] = []
    for leaf in set_leaves(group):
        key = _key(leaf, block, in_sets=has_grouping_sets(group))
        if key is None:
            return None
        found.append(key)
    return _once(block, found)


def _once(block: Block, found: list[exp.Expr]) -> list[exp.Expr]:
    return Once(map(block.plain, found)).values


def _key(leaf: exp.Expr, block: Block, in_sets: bool) -> exp.Expr | None:
    items = block.select.expressions
    if isinstance(leaf, exp.Tuple | exp.Star):
        return None
    if isinstance(leaf, exp.Literal):
        place = int(leaf.this) if not leaf.is_string and str(leaf.this).isdecimal() else 0
        item = items[place - 1].unalias() if 1 <= place <= len(items) and not in_sets else None
        return item if item is not None and not has_aggregate(item) else None
    if isinstance(leaf, exp.Column) and len(leaf.parts) == 1 and not block.has_column(leaf.name):
        # A column of the relation comes before an alias.
        named = [item for item in items if isinstance(item, exp.Alias) and item.alias.lower() == leaf.name.lower()]
        is_one = len(named) == 1 and not in_sets and not has_aggregate(named[0])
        return named[0].this if is_one else None
    return None if has_aggregate(leaf) else leaf


def _loose_columns(node: exp.Expr) -> list[exp.Column]:
    """Columns outside of aggregates."""
    if next(outermost_aggregates(node), None) is node:
        return []
    if isinstance(node, exp.Column):
        return [node]
    return [column for child in node.iter_expressions() for column in _loose_columns(child)]


def _own_columns(condition: exp.Expr) -> list[exp.Column]:
    """Without those of its subqueries."""
    nodes = condition.walk(prune=lambda node: isinstance(node, exp.Query))
    return [node for node in nodes if isinstance(node, exp.Column)]


def _is_resolved(block: Block) -> bool:
    """Every column is the relation's own, or surely an alias of the list that is no column below."""
    select = block.select
    aliases = [item.alias.lower() for item in select.expressions if isinstance(item, exp.Alias)]
    conditions = [select.args.get("where"), *(join.args.get("on") for join in select.args.get("joins") or ())]
    for condition in conditions:
        if condition is not None and not all(block.is_own(column) for column in _own_columns(condition)):
            return False
    inside = [column for call in block.aggregates for column in find_all(call, exp.Column)]
    if not all(block.is_own(column) for column in inside):
        return False
    for column in _outside(select):
        name = column.name.lower()
        is_alias = len(column.parts) == 1 and aliases.count(name) == 1 and not block.has_column(name)
        if not block.is_own(column) and not is_alias:
            return False
    # In HAVING and ORDER BY a name may mean an alias or a column: only where both are the same is it certain.
    for item in select.expressions:
        alias = item.alias.lower() if isinstance(item, exp.Alias) else named_after(item)
        if alias is not None and block.has_column(alias):
            value = block.plain(item.unalias())
            if not (isinstance(value, exp.Column) and value.name.lower() == alias):
                for clause in ("having", "order", "group") if isinstance(item, exp.Alias) else ("having", "order"):
                    mentioned = select.args.get(clause)
                    names = find_all(mentioned, exp.Column) if mentioned is not None else ()
                    if any(column.parts[0].name.lower() == alias for column in names):
                        return False
    return True


def _outside(select: exp.Select) -> Iterator[exp.Column]:
    for item in select.expressions:
        yield from _loose_columns(item)
    for clause in ("having", "order"):
        if select.args.get(clause) is not None:
            yield from _loose_columns(select.args[clause])

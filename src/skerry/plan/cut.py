"""Cut a bound query into fragments (the baseline): scans at the sites that hold the tables, the rest in one Spark.

Three shapes, tried in this order:
1. everything at one site: the query runs there whole;
2. one table with parts at several sites and nothing but projection, filter, order and limit: each site
   runs the query on its part, the initiator gathers or merges;
3. otherwise the rest runs at the site where the fewest bytes arrive.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec
import xxhash
from sqlglot import exp

from skerry.catalog.table import Column, TablePart
from skerry.limits import Limits
from skerry.plan.cache import fingerprint
from skerry.plan.estimate import row_bytes, scan_rows
from skerry.plan.fragment import EdgeLeaf, Finish, Fragment, Leaf, Output, Plan, SortKey, TableLeaf
from skerry.plan.place import fewest_arriving
from skerry.plan.sortable import keys_are_mergeable
from skerry.sql.names import TableRef
from skerry.sql.shape import Shape, result_shape, with_sort_by, without_limit
from skerry.sql.statement import Query, Scan, render


# What a column of a result takes, roughly, and how many a star may stand for.
_COLUMN_BYTES = 32
_MANY_COLUMNS = 16


class Parts(Protocol):
    """What the cut asks of a catalog."""

    def parts(self, table: TableRef) -> tuple[TablePart, ...]: ...


class Site(msgspec.Struct, frozen=True):
    """Who plans, and who may run fragments, in the configuration's order."""

    initiator: str
    data_members: tuple[str, ...]


class _Source(msgspec.Struct, frozen=True):
    """One table as the query needs it; every mention with the same filters shares it."""

    mentions: tuple[str, ...]
    table: TableRef
    columns: tuple[Column, ...]
    filters: tuple[exp.Expr, ...]
    parts: tuple[TablePart, ...]

    def estimated_rows(self, part: TablePart) -> int:
        return scan_rows(part, bool(self.filters))


def make_plan(query: Query, catalog: Parts, site: Site, limits: Limits) -> Plan:
    """The plan of a query that the gate admitted and bind has bound."""
    sources = _sources(query.tables, catalog)
    # A name that no text of this query holds: placeholders are then replaced without mistake.
    nonce = xxhash.xxh3_64_hexdigest(render(query.tree).encode())
    holders = {part.member for source in sources for part in source.parts}
    shape = result_shape(query)
    if len(holders) <= 1 and all(len(source.parts) == 1 for source in sources):
        member = next(iter(holders), site.initiator if site.initiator in site.data_members else site.data_members[0])
        builder = _Builder(nonce, site, limits, shape)
        builder.add_rest(query, sources, member, keys_are_mergeable(query, shape))
    elif len(sources) == 1 and shape.is_plain_scan and shape.bounds_known and (not shape.has_order or keys_are_mergeable(query, shape)):
        builder = _Builder(nonce, site, limits, shape)
        builder.add_parts(query, sources[0])
    else:
        builder = _Builder(nonce, site, limits, shape)
        builder.add_rest(query, sources, _rest_member(sources, site), keys_are_mergeable(query, shape))
    return builder.plan(sources, tuple(query.parameters))


def _sources(scans: Sequence[Scan], catalog: Parts) -> list[_Source]:
    """Scans of one table with equal filters are one source, with the columns that any of them needs."""
    grouped: dict[tuple[str, str | None, str], list[Scan]] = {}
    for scan in scans:
        wanted = " AND ".join(render(condition) for condition in scan.filters)
        grouped.setdefault((scan.table.name, scan.table.member, wanted), []).append(scan)
    sources = []
    for same in grouped.values():
        table = same[0].table
        needed = {name for scan in same for name in scan.columns}
        columns = tuple(column for column in table.columns if column.name in needed)
        mentions = tuple(scan.node_name for scan in same)
        sources.append(_Source(mentions, table, columns, tuple(same[0].filters), catalog.parts(table)))
    return sources


def _rest_member(sources: Sequence[_Source], site: Site) -> str:
    held: dict[str, int] = {}
    for source in sources:
        for part in source.parts:
            size = source.estimated_rows(part) * row_bytes(source.columns)
            held[part.member] = held.get(part.member, 0) + size
    return fewest_arriving(held, site.data_members)


class _Builder:
    """Collects fragments and edges of one plan."""

    def __init__(self, nonce: str, site: Site, limits: Limits, shape: Shape) -> None:
        self._nonce = nonce
        self._site = site
        self._limits = limits
        self._shape = shape
        self._fragments: list[Fragment] = []
        self._next_edge = 1
        self._leaves = 0
        self._finish: Finish | None = None

    def plan(self, sources: Sequence[_Source], parameters: tuple[str, ...]) -> Plan:
        assert self._finish is not None
        info = {f"{part.member}.{part.table}": part.schema_version for source in sources for part in source.parts}
        plan = Plan("", tuple(self._fragments), self._finish, info, parameters)
        return msgspec.structs.replace(plan, plan_id=fingerprint(plan))

    # --- the rest in one Spark -------------------------------------------------------------------
    def add_rest(self, query: Query, sources: Sequence[_Source], member: str, mergeable: bool) -> None:
        """The whole tree at `member`; what it does not hold itself arrives over edges."""
        tree = query.tree.copy()
        leaves: list[Leaf] = []
        small: set[str] = set()
        replacements: dict[str, list[str]] = {}
        for source in sources:
            names, edge_leaf = self._source_leaves(source, member, leaves)
            for mention in source.mentions:
                replacements[mention] = names
                if edge_leaf and self._is_small(source, member):
                    small.add(mention)
        _replace_tables(tree, replacements, {m: s.columns for s in sources for m in s.mentions}, small)
        order, keys = "any", ()
        if self._shape.has_order:
            order = "lanes"
            if mergeable and self._shape.limit is None and self._shape.order_keys:
                order, keys = "merge", tuple(self._shape.order_keys)
                tree = with_sort_by(tree)
        edge = self._edge()
        output = Output(edge, self._site.initiator, order, keys, self._is_bounded(self._shape.limit))
        self._add(member, tree, tuple(leaves), output, 0, 0)
        self._finish = Finish(edge, (member,))

    def _source_leaves(self, source: _Source, member: str, leaves: list[Leaf]) -> tuple[list[str], bool]:
        names = []
        local = [part for part in source.parts if part.member == member]
        remote = [part for part in source.parts if part.member != member]
        if local:
            names.append(self._placeholder())
            leaves.append(TableLeaf(names[-1], source.table.name))
        if remote:
            edge = self._edge()
            for part in remote:
                self._add_scan(source, part, edge, member)
            names.append(self._placeholder())
            leaves.append(EdgeLeaf(names[-1], edge, source.columns, tuple(part.member for part in remote)))
        return names, bool(remote)

    def _add_scan(self, source: _Source, part: TablePart, edge: int, receiver: str) -> None:
        leaf = TableLeaf(self._placeholder(), part.table)
        tree = exp.select(*(exp.column(column.name, quoted=True) for column in source.columns)).from_(
            exp.to_table(leaf.placeholder)
        )
        if source.filters:
            tree = tree.where(*source.filters)
        rows = source.estimated_rows(part)
        self._add(part.member, tree, (leaf,), Output(edge, receiver), rows, rows * row_bytes(source.columns))

    def _is_small(self, source: _Source, member: str) -> bool:
        rows = sum(source.estimated_rows(part) for part in source.parts if part.member != member)
        return rows * row_bytes(source.columns) <= self._limits.broadcast_bytes

    # --- the same at every part, finished by the initiator -----------------------------------------
    def add_parts(self, query: Query, source: _Source) -> None:
        shape = self._shape
        tree = query.tree
        if shape.limit is not None or shape.offset:
            # Each part may hold all of the rows that are skipped, so it sends those too.
            wanted = None if shape.limit is None else shape.limit + shape.offset
            tree = without_limit(tree)
            if wanted is not None:
                tree.set("limit", exp.Limit(expression=exp.Literal.number(wanted)))
            order = "lanes" if wanted is not None else "merge"
        else:
            order = "merge"
        if not shape.has_order:
            order = "any"
        elif order == "merge":
            tree = with_sort_by(tree)
        keys = tuple(shape.order_keys or ()) if shape.has_order else ()
        edge = self._edge()
        for part in source.parts:
            leaf = TableLeaf(self._placeholder(), part.table)
            own = tree.copy()
            _replace_tables(own, {source.mentions[0]: [leaf.placeholder]}, {}, set())
            bounded = self._is_bounded(None if shape.limit is None else shape.limit + shape.offset)
            merged = keys if order == "merge" else ()
            output = Output(edge, self._site.initiator, order, merged, bounded)
            rows = source.estimated_rows(part)
            self._add(part.member, own, (leaf,), output, rows, rows * row_bytes(source.columns))
        senders = tuple(part.member for part in source.parts)
        self._finish = Finish(edge, senders, keys, shape.offset, shape.limit)

    # --- pieces ------------------------------------------------------------------------------------
    def _is_bounded(self, limit: int | None) -> bool:
        """Does the plan bound this fragment's rows to one page?"""
        if self._shape.is_global_aggregate:
            return True
        if limit is None or limit > self._limits.driver_rows:
            return False
        # A star's columns are not counted here: taken as many.
        return limit * _COLUMN_BYTES * (self._shape.columns or _MANY_COLUMNS) <= self._limits.driver_bytes

    def _edge(self) -> int:
        self._next_edge += 1
        return self._next_edge - 1

    def _placeholder(self) -> str:
        self._leaves += 1
        return f"leaf_{self._leaves}_{self._nonce}"

    def _add(
        self, member: str, tree: exp.Expr, leaves: tuple[Leaf, ...], output: Output, rows: int, size_bytes: int
    ) -> None:
        fragment_id = len(self._fragments) + 1
        self._fragments.append(Fragment(fragment_id, member, render(tree), leaves, output, rows, size_bytes))


def _replace_tables(
    tree: exp.Expr,
    names: Mapping[str, list[str]],
    columns: Mapping[str, tuple[Column, ...]],
    small: set[str],
) -> None:
    """Put placeholders where the bound tree names its scans, and hint at small edges (they report no size)."""
    for node in list(tree.find_all(exp.Table)):
        mention = node.name
        if mention not in names:
            continue
        if mention in small:
            _hint_broadcast(node)
        if len(names[mention]) == 1:
            node.set("this", exp.to_identifier(names[mention][0]))
            continue
        # A local part and parts that arrive: their union stands where the table stood.
        wanted = [exp.column(column.name, quoted=True) for column in columns[mention]]
        selects = [exp.select(*(c.copy() for c in wanted)).from_(exp.to_table(name)) for name in names[mention]]
        union: exp.Query = selects[0]
        for select in selects[1:]:
            union = exp.union(union, select, distinct=False, copy=False)
        alias = node.args.get("alias")
        subquery = exp.Subquery(this=union, alias=alias.copy() if alias else None)
        for modifier in ("joins", "laterals", "pivots"):
            if node.args.get(modifier):
                subquery.set(modifier, [child.copy() for child in node.args[modifier]])
        node.replace(subquery)


def _hint_broadcast(node: exp.Table) -> None:
    select = node.parent_select
    if not isinstance(select, exp.Select) or not select.args.get("joins") or not node.alias:
        return
    broadcast = exp.Anonymous(this="BROADCAST", expressions=[exp.to_identifier(node.alias, quoted=True)])
    hint = select.args.get("hint")
    if hint is None:
        select.set("hint", exp.Hint(expressions=[broadcast]))
    else:
        hint.append("expressions", broadcast)


__all__ = ["Parts", "Site", "SortKey", "make_plan"]

"""Where rule `topn` is used in a query: by the member for its root, by Spark for any of its blocks."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from skerry.model.fragment import Plan
from skerry.model.names import TableRef
from skerry.model.table import TablePart
from skerry.plan.estimate import Estimator, part_rows, row_bytes
from skerry.plan.grouping import BesideOf, Block, rows_of
from skerry.plan.partial_cost import PartsOf, pays
from skerry.plan.partial_plan import AtSite, replaced, strewn
from skerry.plan.place import Cost, Costs, Rooms
from skerry.plan.rules.topn import rows_wanted, top_rows
from skerry.plan.site import Site
from skerry.plan.topn_sets import bounded_operands
from skerry.sql.shape import Shape
from skerry.sql.statement import Query, Scan
from skerry.sql.walk import contains


@dataclass(frozen=True)
class PartsJoined:
    """The root runs at every part of `scan`, each joined with all rows of the `others`, but for those `beside` it; the
    initiator finishes."""

    scan: str
    others: tuple[str, ...]
    beside: frozenset[str] = frozenset()


def at_parts(
    query: Query, parts: PartsOf, shape: Shape, mergeable: bool, beside_of: BesideOf | None = None
) -> PartsJoined | None:
    """A root that joins one table with parts with others, and has no order or one that members can merge by."""
    if not shape.bounds_known or (shape.has_order and not mergeable):
        return None
    if shape.limit is not None and rows_wanted(query.tree) is None:
        return None
    tables = {scan.node_name: scan.table for scan in query.tables}
    block = rows_of(query.tree, tables, strewn(parts), beside_of) if len(tables) > 1 else None
    if block is None or {each.scan for each in block.seen} != tables.keys():
        return None
    # Sites may spell a column differently; a star would then be named after whoever answers first.
    if any(not _is_spelt_alike(tables[name], parts[name]) for name in tables):
        return None
    return PartsJoined(block.scan, block.others, block.beside)


def _is_spelt_alike(table: TableRef, parts: Sequence[TablePart]) -> bool:
    spelt = [column.name for column in table.columns]
    return all([column.name for column in part.columns] == spelt for part in parts)


def bounded_at_sites(
    query: Query, parts: PartsOf, site: Site, rooms: Rooms | None = None, beside_of: BesideOf | None = None
) -> tuple[Query, list[AtSite]]:
    """The query over the first rows of parts, wherever that pays and members have room, and what they are."""
    if not contains(query.tree, exp.Limit):
        return query, []
    rooms = rooms or Rooms()
    scans = {scan.node_name: scan for scan in query.tables}
    sizes = strewn({name: parts[name] for name in scans})
    root = query.tree.copy()
    found: list[AtSite] = []
    for operand, cut in bounded_operands(query, root, parts, site.estimator):
        if rooms.take(cut.rows.keys()):
            found.append(cut)
            operand.replace(cut.merge.final)
    for select in list(root.find_all(exp.Select)) if sizes else ():
        bounded = _cut(select, scans, parts, sizes, site, beside_of) if rows_wanted(select) is not None else None
        if bounded is not None and rooms.take(bounded.rows.keys()):
            found.append(bounded)
            root = replaced(root, select, bounded.merge.final)
    return _over(query, root, found), found


def _cut(
    select: exp.Select,
    scans: Mapping[str, Scan],
    parts: PartsOf,
    sizes: Mapping[str, int],
    site: Site,
    beside_of: BesideOf | None,
) -> AtSite | None:
    block = rows_of(select, {name: scan.table for name, scan in scans.items()}, sizes, beside_of)
    merge = top_rows(block, scans) if block is not None else None
    if block is None or merge is None:
        return None
    rows = _rows(block, rows_wanted(select) or 0, scans, parts, site.estimator)
    width_bytes = row_bytes(merge.columns)
    is_worth = pays(block, rows, width_bytes, scans, parts, site)
    return AtSite(merge, rows, width_bytes, block.beside) if is_worth else None


def _rows(block: Block, wanted: int, scans: Mapping[str, Scan], parts: PartsOf, estimator: Estimator) -> dict[str, int]:
    """What each part sends: how many rows joins add or drop nobody knows, so no more than its own or the bound."""
    filters = scans[block.scan].filters
    return {
        part.member: min(wanted, int(estimator.scan([part], filters).rows) if not block.others else part_rows(part))
        for part in parts[block.scan]
    }


def _over(query: Query, root: exp.Expr, found: Sequence[AtSite]) -> Query:
    gone = {name for each in found for name in (each.merge.scan, *each.merge.others)}
    left = tuple(scan for scan in query.tables if scan.node_name not in gone)
    return dataclasses.replace(query, tree=root, tables=left) if found else query


def cheaper(one: Plan, other: Plan, site: Site) -> Plan:
    """The plan whose edges cost less by their estimates; the second if there is nothing in it."""
    costs = Costs(site.topology)

    def cost(plan: Plan) -> Cost:
        sent = [
            (each.member, receiver, each.estimated_bytes)
            for each in plan.fragments
            for receiver in each.output.receivers
        ]
        return Cost(sum(costs.ship_s(*each) for each in sent), sum(costs.sent_bytes(*each) for each in sent))

    return one if cost(one).is_less(cost(other)) else other

"""Where partial aggregates are used in a query: by the member for its root, by Spark for any of its blocks."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from skerry.catalog.table import Column, TablePart
from skerry.limits import Limits
from skerry.plan.estimate import row_bytes, scan_rows
from skerry.plan.grouping import Block, block_of
from skerry.plan.partial_cost import group_rows, pays
from skerry.plan.rules.partial_aggregate import MemberMerge, SiteMerge, member_merge, site_merge
from skerry.sql.shape import Shape
from skerry.sql.statement import Query, Scan

PartsOf = Mapping[str, Sequence[TablePart]]


@dataclass(frozen=True)
class InMember:
    """The root's groups of every part go to the initiator; `rows` of about `row_bytes` from each member."""

    merge: MemberMerge
    scan: Scan
    rows: dict[str, int]
    row_bytes: int


@dataclass(frozen=True)
class AtSite:
    """The partial rows of a scan, in the place of its own."""

    merge: SiteMerge
    scan: Scan
    rows: dict[str, int]


def in_member(query: Query, parts: PartsOf, shape: Shape, limits: Limits) -> InMember | None:
    """`parts` are those of each scan."""
    if len(query.tables) != 1:
        return None
    (scan,) = query.tables
    block = block_of(query.tree, {scan.node_name: scan.table})
    merge = member_merge(block, shape) if block is not None else None
    if block is None or merge is None:
        return None
    rows = _group_rows(block.keys, scan, parts[scan.node_name])
    if shape.limit is not None:
        rows = {member: min(count, shape.limit + shape.offset) for member, count in rows.items()}
    columns = _widths(block, merge)
    if sum(rows.values()) > limits.merge_groups:
        return None
    if not pays(rows, columns, _raw_rows(scan, parts[scan.node_name]), _needed(scan)):
        return None
    return InMember(merge, scan, rows, row_bytes(columns))


def at_sites(query: Query, parts: PartsOf, shape: Shape) -> tuple[Query, list[AtSite]]:
    """The query over partial rows, wherever that pays, and what they are; scans without them stay its tables."""
    tables = {scan.node_name: scan for scan in query.tables}
    refs = {name: scan.table for name, scan in tables.items()}
    root = query.tree.copy()
    found: list[AtSite] = []
    for select in list(root.find_all(exp.Select)):
        block = block_of(select, refs)
        if block is None or len({part.member for part in parts[block.scan]}) < 2:
            continue
        scan = tables[block.scan]
        merge = site_merge(block, scan.table, shape if select is root else None)
        if merge is None:
            continue
        keys = [item.this for item in merge.partial.expressions[: len(_grouped(merge))]]
        rows = _group_rows(keys, scan, parts[block.scan])
        if not pays(rows, merge.columns, _raw_rows(scan, parts[block.scan]), _needed(scan)):
            continue
        found.append(AtSite(merge, scan, rows))
        root = _replaced(root, select, merge.final)
    left = tuple(scan for scan in query.tables if all(scan is not each.scan for each in found))
    return dataclasses.replace(query, tree=root, tables=left) if found else query, found


def _grouped(merge: SiteMerge) -> list[exp.Expr]:
    group = merge.partial.args.get("group")
    return list(group.expressions) if group is not None else []


def _replaced(root: exp.Expr, select: exp.Expr, final: exp.Expr) -> exp.Expr:
    if select is root:
        return final
    # An operand of UNION that is itself one, or has an order, stands in brackets.
    select.replace(exp.Subquery(this=final) if isinstance(select.parent, exp.SetOperation) else final)
    return root


def _group_rows(keys: Sequence[exp.Expr], scan: Scan, parts: Sequence[TablePart]) -> dict[str, int]:
    return {part.member: group_rows(keys, scan.filters, part) for part in parts}


def _raw_rows(scan: Scan, parts: Sequence[TablePart]) -> dict[str, int]:
    return {part.member: scan_rows(part, bool(scan.filters)) for part in parts}


def _needed(scan: Scan) -> list[Column]:
    return [column for column in scan.table.columns if column.name in scan.columns]


def _widths(block: Block, merge: MemberMerge) -> list[Column]:
    """The partial row, as wide as its types are; what nobody knows the type of is taken for a string."""
    return [Column("", block.type_of(item.unalias()) or "string") for item in merge.tree.expressions]

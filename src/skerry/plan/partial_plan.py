"""Where partial aggregates are used in a query: by the member for its root, by Spark for any of its blocks."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from skerry.model.limits import Limits
from skerry.model.table import Column
from skerry.plan.estimate import Estimator, part_rows, row_bytes
from skerry.plan.grouping import BesideOf, Block, block_of
from skerry.plan.known import groups_key
from skerry.plan.partial_cost import PartsOf, group_rows, pays
from skerry.plan.partials import sketch_bytes
from skerry.plan.place import Rooms
from skerry.plan.rules.aggregates import MemberMerge, SiteMerge, member_merge, site_merge
from skerry.plan.rules.topn import first_distinct, rows_wanted
from skerry.plan.site import Site
from skerry.sql.dialect import render
from skerry.sql.shape import Shape
from skerry.sql.statement import Query, Scan
from skerry.sql.walk import find_all


@dataclass(frozen=True)
class InMember:
    """The root's groups of every part go to the initiator; `rows` of about `row_bytes` from each member.

    scan: the table whose parts are grouped, each joined with all rows of the `others`, but for those `beside` it.
    """

    merge: MemberMerge
    scan: str
    others: tuple[str, ...]
    rows: dict[str, int]
    row_bytes: int
    beside: frozenset[str] = frozenset()


@dataclass(frozen=True)
class AtSite:
    """The partial rows of a scan, in the place of its own; each of about `row_bytes`. `beside`: as in `Block`."""

    merge: SiteMerge
    rows: dict[str, int]
    row_bytes: int
    beside: frozenset[str] = frozenset()


def in_member(
    query: Query,
    parts: PartsOf,
    shape: Shape,
    limits: Limits,
    site: Site,
    is_forced: bool = False,
    beside_of: BesideOf | None = None,
) -> InMember | None:
    """`parts` are those of each scan. `is_forced`: rows may not leave, so groups do, whatever they cost."""
    scans = {scan.node_name: scan for scan in query.tables}
    sizes = strewn(parts)
    tables = {name: scan.table for name, scan in scans.items()}
    block = block_of(query.tree, tables, sizes, beside_of) if sizes else None
    merge = member_merge(block, shape) if block is not None else None
    if block is None or merge is None or {block.scan, *block.others} != scans.keys():
        return None
    rows = _group_rows(block, block.keys, merge.tree, scans, parts, site.estimator)
    if shape.limit is not None:
        rows = {member: min(count, shape.limit + shape.offset) for member, count in rows.items()}
    width_bytes = row_bytes(_columns(block, merge))
    if sum(rows.values()) > limits.merge_groups or not (
        is_forced or pays(block, rows, width_bytes, scans, parts, site)
    ):
        return None
    return InMember(merge, block.scan, block.others, rows, width_bytes, block.beside)


def at_sites(
    query: Query,
    parts: PartsOf,
    shape: Shape,
    site: Site,
    is_forced: bool = False,
    rooms: Rooms | None = None,
    is_bounded: bool = False,
    beside_of: BesideOf | None = None,
) -> tuple[Query, list[AtSite]]:
    """The query over partial rows, wherever that pays, and what they are; scans without them stay its tables.

    Where a member has no room for it, the table comes as it is, from all its parts. `is_bounded`: of SELECT DISTINCT
    with a limit first rows are enough (rule `topn`).
    """
    scans = {scan.node_name: scan for scan in query.tables}
    tables = {name: scan.table for name, scan in scans.items()}
    sizes = strewn(parts)
    if not sizes:
        return query, []
    root = query.tree.copy()
    found: list[AtSite] = []
    rooms = rooms or Rooms()
    within: set[int] = set()  # selects that are gone with those around them
    for select in list(root.find_all(exp.Select)):
        if id(select) in within:
            continue
        block = block_of(select, tables, sizes, beside_of)
        merge = site_merge(block, tables, shape if select is root else None) if block is not None else None
        if block is None or merge is None:
            continue
        group = merge.partial.args.get("group")
        keys = group.expressions if group is not None else ()
        if is_bounded:
            merge = first_distinct(block, merge)
        rows = _group_rows(block, keys, merge.partial, scans, parts, site.estimator)
        if merge.partial.args.get("limit") is not None:
            rows = {member: min(count, rows_wanted(select) or 0) for member, count in rows.items()}
        width_bytes = row_bytes(merge.columns) + sketch_bytes(merge.partial)
        is_worth = is_forced or pays(block, rows, width_bytes, scans, parts, site)
        if is_worth and rooms.take(rows.keys(), is_forced):
            found.append(AtSite(merge, rows, width_bytes, block.beside))
            within |= {id(each) for each in find_all(select, exp.Select)} if block.asked else set()
            root = replaced(root, select, merge.final)
    gone = {name for each in found for name in (each.merge.scan, *each.merge.others)}
    left = tuple(scan for scan in query.tables if scan.node_name not in gone)
    return (dataclasses.replace(query, tree=root, tables=left) if found else query), found


def strewn(parts: PartsOf) -> dict[str, int]:
    """The rows of the scans whose tables have parts at several members."""
    return {
        name: sum(part_rows(part) for part in each)
        for name, each in parts.items()
        if len({part.member for part in each}) > 1
    }


def replaced(root: exp.Expr, select: exp.Expr, final: exp.Expr) -> exp.Expr:
    if select is root:
        return final
    # An operand of UNION that is itself one, or has an order, stands in brackets.
    select.replace(exp.Subquery(this=final) if isinstance(select.parent, exp.SetOperation) else final)
    return root


def _group_rows(
    block: Block,
    keys: Sequence[exp.Expr],
    tree: exp.Expr,
    scans: Mapping[str, Scan],
    parts: PartsOf,
    estimator: Estimator,
) -> dict[str, int]:
    """By member; as many as were seen when the same was sent."""
    rows = {part.member: group_rows(block, keys, part, scans, parts, estimator) for part in parts[block.scan]}
    if estimator.observed:
        others, text = {name: parts[name] for name in block.others}, render(tree)
        for part in parts[block.scan]:
            seen = estimator.observed.size(groups_key(part, text, others))
            rows[part.member] = seen.rows if seen is not None else rows[part.member]
    return rows


def _columns(block: Block, merge: MemberMerge) -> list[Column]:
    """The partial row; what nobody knows the type of is taken for a string."""
    return [Column("", block.type_of(item.unalias()) or "string") for item in merge.tree.expressions]

"""Do partial aggregates pay? Groups that would travel, against rows that would."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from sqlglot import exp

from skerry.model.table import TablePart
from skerry.plan.estimate import Estimate, Estimator, row_bytes
from skerry.plan.grouping import Block
from skerry.plan.place import EDGE_BYTES, Costs
from skerry.plan.selectivity import ColumnEstimate
from skerry.plan.site import Site
from skerry.sql.statement import Scan

PartsOf = Mapping[str, Sequence[TablePart]]

# An expression that nobody knows is taken to have one value for ten rows.
_UNKNOWN_SHARE = 0.1


def group_rows(
    block: Block,
    keys: Sequence[exp.Expr],
    part: TablePart,
    scans: Mapping[str, Scan],
    parts: PartsOf,
    estimator: Estimator,
) -> int:
    """Groups that one part is likely to have."""
    columns: dict[str, ColumnEstimate] = {}
    rows = 0.0
    for seen in block.seen:
        scan = scans[seen.scan]
        own = [part] if seen.scan == block.scan else parts[seen.scan]
        if seen.scan in block.beside:
            own = [each for each in own if each.member == part.member] or own
        found = estimator.scan(own, scan.filters, alias=seen.alias if len(block.seen) > 1 else "")
        columns |= found.columns
        rows = found.rows if seen.scan == block.scan else rows
    relation = Estimate(rows, columns, rows)
    return max(1, int(min(math.prod(_values(_computed(key, block), relation) for key in keys), rows)))


def _computed(key: exp.Expr, block: Block) -> exp.Expr:
    """The key with columns of a query in brackets replaced by what they are computed from."""
    if isinstance(key, exp.Column):
        found = block.owner(key)
        return found[0].values.get(key.name.lower(), key) if found is not None else key
    return key


def _values(key: exp.Expr, relation: Estimate) -> float:
    if all(relation.key(column) is not None for column in key.find_all(exp.Column)):
        return relation.distinct(key)
    return max(1.0, relation.rows * _UNKNOWN_SHARE)


def pays(
    block: Block,
    groups: Mapping[str, int],
    width_bytes: int,
    scans: Mapping[str, Scan],
    parts: PartsOf,
    site: Site,
) -> bool:
    """Do fewer bytes travel than if rows did, by more than more jobs take? `groups` are those of each member, each of
    so many bytes.

    What the site keeps that holds most of them does not travel. Tables that the parts are joined with go to each of
    them; without partial aggregates they would go to one site.
    """
    is_one_row = not block.keys and not block.others and max(groups.values()) <= 1
    if is_one_row and width_bytes <= EDGE_BYTES:
        return True  # however few rows are expected, a short row of each part is worth what the guess may be wrong by
    estimator = site.estimator
    rows = {part.member: scan_bytes(scans[block.scan], part, estimator) for part in parts[block.scan]}
    most = max(rows, key=lambda member: (rows[member], member))
    stays = max(groups, key=groups.__getitem__)
    sent: float = sum(count * width_bytes for member, count in groups.items() if member != stays)
    raw: float = sum(size for member, size in rows.items() if member != most)
    more_jobs = 0  # to join at every part: each has the same job to do that the one site had
    for other in block.others:
        for part in parts[other]:
            size = scan_bytes(scans[other], part, estimator)
            raw += size if part.member != most else 0
            if other in block.beside:
                continue
            sent += size * sum(member != part.member for member in groups)
            more_jobs += any(member != part.member for member in groups) - (part.member != most)
    if more_jobs > 0:
        sent += more_jobs * Costs(site.topology).job_bytes({each.member for name in parts for each in parts[name]})
    return sent < raw


def scan_bytes(scan: Scan, part: TablePart, estimator: Estimator) -> float:
    """By the widths of types, as partial rows are counted."""
    needed = [column for column in scan.table.columns if column.name in scan.columns]
    return estimator.scan([part], scan.filters).rows * max(1, row_bytes(needed))

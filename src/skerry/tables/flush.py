"""A flush: which groups the overlay touches, and their files written anew. The plan is pure, the work for a thread."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from skerry.model.errors import InternalError
from skerry.model.limits import FLUSH_BYTES, FLUSH_ROWS, FLUSH_S, GROUP_ROWS
from skerry.model.points import reach
from skerry.model.sharded import OwnTable
from skerry.tables.bucket import Hashes, buckets_of, hashes_of
from skerry.tables.columns import arrow_schema, spread_by
from skerry.tables.files import name_of, read_file, sync_files, write_file
from skerry.tables.keys import encode_keys
from skerry.tables.layouts import ids_of
from skerry.tables.manifest import DataFile, Flush
from skerry.tables.overlay import Numbers, Seen

Range = tuple[int, int]  # of buckets: first, and exclusive upto


class Group(NamedTuple):
    """A range of buckets and the files that hold its rows."""

    first: int
    upto: int
    files: tuple[DataFile, ...]

    def has(self, buckets: Numbers) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        return (buckets >= self.first) & (buckets < self.upto)


class FlushPlan(NamedTuple):
    table: OwnTable
    folder: str
    generation: int
    upto_ts: int
    groups: tuple[Group, ...]
    seen: Seen


def is_due(rows: int, size_bytes: int, age_s: float) -> bool:
    """`age_s`: of the oldest commit that no file holds."""
    return rows >= FLUSH_ROWS or size_bytes >= FLUSH_BYTES or (rows > 0 and age_s >= FLUSH_S)


def groups_of(files: Sequence[DataFile], ranges: Sequence[Range]) -> tuple[Group, ...]:
    """All groups of the member's `ranges`, in order: those with files, and what lies between, without any."""
    by_range: dict[Range, list[DataFile]] = {}
    for file in files:
        by_range.setdefault((file.first, file.upto), []).append(file)
    groups = []
    for first, upto in ranges:
        at = first
        for inner in sorted(by_range):
            if first <= inner[0] < upto:
                if inner[0] < at or inner[1] > upto:
                    raise InternalError(f"files of buckets {inner} overlap with others, or with {(first, upto)}")
                groups += [Group(at, inner[0], ())] if at < inner[0] else []
                groups.append(Group(*inner, tuple(by_range.pop(inner))))
                at = inner[1]
        groups += [Group(at, upto, ())] if at < upto else []
    if by_range:
        raise InternalError(f"files of buckets {min(by_range)}, which are none of this member's")
    return tuple(groups)


def touched_groups(groups: Sequence[Group], buckets: Numbers) -> tuple[Group, ...]:
    """InternalError if a row is in none of them: the bucket map was not asked before it was written."""
    places = [group.has(buckets) for group in groups]
    if sum(int(place.sum()) for place in places) != len(buckets):
        raise InternalError("a row is in a bucket that is none of this member's")
    return tuple(group for group, place in zip(groups, places, strict=True) if place.any())


def carry_out(plan: FlushPlan) -> Flush:
    """Reads and writes files, for as long as it takes; nothing counts until the store has named them."""
    added: list[DataFile] = []
    for group in plan.groups:
        rows = merged(plan.table, plan.folder, group, plan.seen)
        for first, upto, part in pieces(plan.table, rows, group.first, group.upto):
            if part.num_rows:
                name = name_of(plan.generation, first, upto)
                added.append(write_file(plan.folder, name, first, upto, part, ids_of(plan.table)))
                reach("flush.file")
    if added:
        sync_files(plan.folder)
    removed = tuple(file.name for group in plan.groups for file in group.files)
    return Flush(plan.generation, plan.upto_ts, tuple(added), removed)


def merged(table: OwnTable, folder: str, group: Group, seen: Seen) -> pa.Table:
    """The group's rows: those of its files whose keys the overlay does not decide, then the overlay's own."""
    schema = arrow_schema(table)
    is_here = group.has(seen.buckets)
    touched = seen.touched.filter(pa.array(is_here, pa.bool_()))
    keys = {key for key, here in zip(seen.keys, is_here.tolist(), strict=True) if here}
    hashes = np.sort(hashes_of([touched.column(name) for name in table.primary_key]))
    parts = [without(table, read_file(folder, file, table), keys, hashes) for file in group.files]
    spread = [seen.rows.column(name) for name in spread_by(table)]
    own = seen.rows.filter(pa.array(group.has(buckets_of(spread, table.buckets)), pa.bool_()))
    return pa.concat_tables([*parts, pa.Table.from_batches([own], schema)])


def without(table: OwnTable, rows: pa.Table, keys: set[bytes], hashes: Hashes) -> pa.Table:
    """Rows whose key is not among `keys`. Hashes of these, sorted, find the few that may be; bytes decide."""
    if not len(hashes):
        return rows
    columns = [rows.column(name).combine_chunks() for name in table.primary_key]
    own = hashes_of(columns)
    nearest = hashes[np.minimum(np.searchsorted(hashes, own), len(hashes) - 1)]
    suspects = np.flatnonzero(nearest == own)
    if not len(suspects):
        return rows
    found = encode_keys(table.primary_key, [column.take(pa.array(suspects)) for column in columns])
    gone = suspects[np.fromiter((key in keys for key in found), np.bool_, len(found))]
    is_kept = np.ones(rows.num_rows, dtype=np.bool_)
    is_kept[gone] = False
    return rows.filter(pa.array(is_kept))


def pieces(table: OwnTable, rows: pa.Table, first: int, upto: int) -> Iterator[tuple[int, int, pa.Table]]:
    """The rows of a group, cut by buckets so that no piece is above the bound, if buckets allow it."""
    if rows.num_rows <= GROUP_ROWS or upto - first < 2:
        yield first, upto, rows
        return
    buckets = buckets_of([rows.column(name).combine_chunks() for name in spread_by(table)], table.buckets)
    ordered = np.sort(buckets)
    for low, high in cuts(ordered, first, upto):
        is_here = (buckets >= low) & (buckets < high)
        yield low, high, rows.filter(pa.array(is_here))


def cuts(ordered: Numbers, first: int, upto: int) -> list[Range]:
    """Ranges of at most GROUP_ROWS of these buckets each, halved where half of the rows are on each side."""
    if len(ordered) <= GROUP_ROWS or upto - first < 2:
        return [(first, upto)]
    cut = max(int(ordered[len(ordered) // 2]), first + 1)
    at = int(np.searchsorted(ordered, cut))
    return cuts(ordered[:at], first, cut) + cuts(ordered[at:], cut, upto)

"""Staged rows become files: keys are compared with each other and with those that are there. The work is for a thread.

The table is locked meanwhile, and its overlay is flushed: files hold all that is there. Nothing counts until a commit
names the files, as a flush at its moment.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from skerry.model.amounts import counted
from skerry.model.commits import Change, Policy, Staged
from skerry.model.errors import KeyExists, PeerError, UserError
from skerry.model.limits import GROUP_FILES, GROUP_ROWS, STAGED_UNIT_BYTES, STAGED_UNIT_ROWS
from skerry.model.points import reach
from skerry.model.sharded import OwnTable
from skerry.tables.bucket import Hashes, buckets_of, hashes_of
from skerry.tables.columns import CHANGE, arrow_schema, spread_by
from skerry.tables.files import LOADED, read_file, remove_files, sync_files, write_file
from skerry.tables.flush import Group, Range, pieces, without
from skerry.tables.keys import encode_keys
from skerry.tables.layouts import ids_of
from skerry.tables.lookup import FileKeys
from skerry.tables.manifest import DataFile, Laid
from skerry.tables.overlay import Numbers
from skerry.tables.rows import encode_rows
from skerry.tables.spool import Slice, Spool

_ALIKE_BITS = 18  # a megabyte of numbers stays in a processor's cache


class Counted(NamedTuple):
    """`rows` that are written; `newest_ts`: of all that was written to their keys after the statement's query read."""

    laid: Laid
    rows: int
    newest_ts: int


class Layout(NamedTuple):
    """What is there, while the table is locked. `since`: keys written after the statement's query read, and when.

    `loaded_ts`: of the last staged rows, if there was such a query, which read at `read_ts`. `name`: new files begin
    with it.
    """

    table: OwnTable
    folder: str
    name: str
    groups: tuple[Group, ...]
    files: FileKeys
    since: Mapping[bytes, int]
    loaded_ts: int
    read_ts: int = 0


def lay_out(spool: Spool, layout: Layout, staged: Staged) -> Counted:
    """Files are written and synced. KeyExists or UserError if a key stands in the way; then none is left."""
    kind = _Changing if staged.is_changes else _Laying
    work = kind(spool, layout, staged.policy, staged.is_ordered)
    try:
        removed = [file.name for group in layout.groups for file in work.lay(group)]
        if work.added:
            sync_files(layout.folder)
        reach("staged.laid")
    except BaseException:
        remove_files(layout.folder, [file.name for file in work.added])
        raise
    return Counted(Laid(tuple(work.added), tuple(removed)), work.rows, work.newest_ts)


class _Met(NamedTuple):
    """Rows whose key is in a file: which, their keys, and the keys' hashes."""

    places: Numbers
    keys: set[bytes]
    hashes: Hashes


class _Laying:
    def __init__(self, spool: Spool, layout: Layout, policy: Policy, is_ordered: bool) -> None:
        self.added: list[DataFile] = []
        self.rows = 0
        self.newest_ts = 0
        self._spool = spool
        self._layout = layout
        self._table = layout.table
        self._schema = arrow_schema(layout.table)
        self._policy = policy
        self._is_ordered = is_ordered

    def lay(self, group: Group) -> tuple[DataFile, ...]:
        """Writes what comes to the group; gives its files that are written anew, and no longer needed."""
        units = units_of(self._spool.slices, group)
        if len(units) == 1 and group.files:
            rows, met = self._new(group, *units[0])
            is_replaced = self._policy is Policy.REPLACE and len(met.keys) > 0
            size = rows.num_rows + sum(file.rows for file in group.files)
            if not rows.num_rows or (not is_replaced and size <= 2 * GROUP_ROWS and len(group.files) < GROUP_FILES):
                self._write(group.first, group.upto, rows)
                return ()
            self._cut(*units[0], self._merged(self._before(group), rows, met))
            return group.files
        before = self._before(group) if units else self._schema.empty_table()
        buckets = self._buckets(before)
        for first, upto in units:
            rows, met = self._new(group, first, upto)
            kept = before.filter(pa.array((buckets >= first) & (buckets < upto)))
            self._cut(first, upto, self._merged(kept, rows, met))
        return group.files if units else ()

    # --- rows -----------------------------------------------------------------------------------------------------
    def _new(self, group: Group, first: int, upto: int) -> tuple[pa.Table, _Met]:
        """The statement's rows of these buckets that are written, and those of them that replace another."""
        rows = self._staged(first, upto)
        rows, hashes = self._once(rows, group)
        met = self._met(group, rows, hashes)
        if len(met.places) and self._policy is Policy.FAIL:
            raise KeyExists(
                f"table {self._table.name}: {counted(len(met.places))} or more exist with the same primary key; "
                "nothing was written",
                suggestion="ON CONFLICT DO NOTHING or DO REPLACE",
            )
        if self._policy is Policy.NOTHING:
            rows = _left(rows, met.places)
        self.rows += rows.num_rows
        return rows, met

    def _staged(self, first: int, upto: int) -> pa.Table:
        """What was sent ahead for these buckets."""
        parts = [part for part in self._spool.slices if part.first < upto and part.upto > first]
        batches = [batch for part in parts for batch in self._spool.read(part)]
        rows = pa.Table.from_batches(batches, self._spool.schema).combine_chunks()
        if any(part.first < first or part.upto > upto for part in parts):
            buckets = self._buckets(rows)
            rows = rows.filter(pa.array((buckets >= first) & (buckets < upto))).combine_chunks()
        return rows

    def _once(self, rows: pa.Table, group: Group) -> tuple[pa.Table, Hashes]:
        """One row a key, and the keys' hashes, which nobody asks for if all of them are new."""
        if self._spool.is_ascending and not group.files:
            return rows, np.empty(0, dtype=np.uint64)
        hashes = hashes_of(self._key_of(rows))
        if self._spool.is_ascending:
            return rows, hashes
        suspects = alike(hashes)
        if not len(suspects):
            return rows, hashes
        by_key: dict[bytes, list[int]] = {}
        for place, key in zip(suspects.tolist(), self._keys(rows, suspects), strict=True):
            by_key.setdefault(key, []).append(place)
        twice = [places for places in by_key.values() if len(places) > 1]
        if twice and not self._is_ordered:
            self._refuse_different(rows, twice)
        if twice and self._policy is Policy.FAIL:
            raise KeyExists(
                f"table {self._table.name}: two rows of the statement have the same primary key; nothing was written",
                suggestion="ON CONFLICT DO NOTHING keeps the first, DO REPLACE the last",
            )
        is_last = self._policy is Policy.REPLACE
        gone = np.array([each for places in twice for each in (places[:-1] if is_last else places[1:])], dtype=np.int64)
        return _left(rows, gone), np.delete(hashes, gone)

    def _refuse_different(self, rows: pa.Table, twice: Sequence[list[int]]) -> None:
        places = [place for same in twice for place in same]
        (batch,) = rows.take(pa.array(places)).combine_chunks().to_batches()
        values = dict(zip(places, encode_rows(batch), strict=True))
        if self._policy is Policy.FAIL or any(len({values[each] for each in same}) > 1 for same in twice):
            raise KeyExists(
                f"table {self._table.name}: two rows of the query have the same primary key; nothing was written",
                suggestion="a query has no order, so none of them is the first: choose one by GROUP BY, or by "
                "row_number() OVER (PARTITION BY the key ORDER BY …)",
            )

    def _met(self, group: Group, rows: pa.Table, hashes: Hashes) -> _Met:
        found: set[int] = set()
        for file in group.files:
            found.update(self._layout.files.among(file, hashes, lambda places: self._keys(rows, places)))
        places = np.array(sorted(found), dtype=np.int64)
        if len(places):
            self.newest_ts = max(self.newest_ts, self._layout.loaded_ts)
        since = self._layout.since
        if since and rows.num_rows:
            every = self._keys(rows, np.arange(rows.num_rows))
            self.newest_ts = max(self.newest_ts, *(since.get(key, 0) for key in every))
        return _Met(places, set(self._keys(rows, places)) if len(places) else set(), np.sort(hashes[places]))

    def _before(self, group: Group) -> pa.Table:
        files = [read_file(self._layout.folder, file, self._table) for file in group.files]
        return pa.concat_tables([*files, self._schema.empty_table()])

    def _merged(self, before: pa.Table, rows: pa.Table, met: _Met) -> pa.Table:
        if self._policy is Policy.REPLACE:
            before = without(self._table, before, met.keys, met.hashes)
        return pa.concat_tables([before, rows])

    def _key_of(self, rows: pa.Table) -> list[pa.Array]:
        return [rows.column(name).combine_chunks() for name in self._table.primary_key]

    def _keys(self, rows: pa.Table, places: Numbers) -> list[bytes]:
        taken = rows.select(list(self._table.primary_key)).take(pa.array(places, pa.int64()))
        return encode_keys(self._table.primary_key, self._key_of(taken))

    def _buckets(self, rows: pa.Table) -> Numbers:
        return buckets_of([rows.column(name).combine_chunks() for name in spread_by(self._table)], self._table.buckets)

    # --- files ----------------------------------------------------------------------------------------------------
    def _cut(self, first: int, upto: int, rows: pa.Table) -> None:
        for low, high, part in pieces(self._table, rows, first, upto):
            self._write(low, high, part)

    def _write(self, first: int, upto: int, rows: pa.Table) -> None:
        if rows.num_rows:
            name = f"s{self._layout.name}-{len(self.added):05d}-{first:05d}-{upto:05d}.parquet"
            self.added.append(write_file(self._layout.folder, name, first, upto, rows, ids_of(self._table), LOADED))
            reach("staged.file")


class _Changing(_Laying):
    """Rows that say themselves what becomes of them: of the ones that are there, or of themselves."""

    def lay(self, group: Group) -> tuple[DataFile, ...]:
        units = units_of(self._spool.slices, group)
        before = self._before(group) if units else self._schema.empty_table()
        buckets = self._buckets(before)
        for first, upto in units:
            kept = before.filter(pa.array((buckets >= first) & (buckets < upto)))
            self._cut(first, upto, self._changed(group, kept, self._staged(first, upto)))
        return group.files if units else ()

    def _changed(self, group: Group, before: pa.Table, rows: pa.Table) -> pa.Table:
        """What is there afterwards. A row that is there may be meant once, and one that comes needs a free place."""
        hashes, keys = hashes_of(self._key_of(rows)), self._keys(rows, np.arange(rows.num_rows))
        changes = rows.column(CHANGE).to_numpy()
        met = self._met(group, rows, hashes)
        old, new = changes != Change.INSERT, changes <= Change.INSERT
        gone = self._once_each(keys, np.flatnonzero(old & (changes != Change.DELETE_AGAIN)), "are to be changed twice")
        gone |= {keys[place] for place in np.flatnonzero(changes == Change.DELETE_AGAIN).tolist()}
        comes = self._once_each(keys, np.flatnonzero(new), "would be there twice")
        # Staged rows may have deleted one that the query saw. Whatever is wrong then, the query runs again.
        self.newest_ts = max(self.newest_ts, self._layout.loaded_ts)
        is_sure = self.newest_ts <= self._layout.read_ts
        if is_sure and not gone <= met.keys:
            raise PeerError(f"table {self._table.name}: a change of a row that is not there")
        if is_sure and not (comes & met.keys) <= gone:
            raise KeyExists(f"table {self._table.name}: a row with the same primary key exists; nothing was written")
        is_deleted = (changes == Change.DELETE) | (changes == Change.DELETE_AGAIN)
        deleted = {keys[place] for place in np.flatnonzero(is_deleted).tolist()}
        self.rows += len(comes) + len(deleted - comes)
        left = without(self._table, before, gone, np.sort(hashes[old]))
        return pa.concat_tables([left, rows.filter(pa.array(new)).select(self._schema.names)])

    def _once_each(self, keys: Sequence[bytes], places: Numbers, what: str) -> set[bytes]:
        found = {keys[place] for place in places.tolist()}
        if len(found) < len(places):
            raise UserError(
                f"[MERGE_CARDINALITY_VIOLATION] table {self._table.name}: rows {what}; nothing was written",
                suggestion="group what the table is joined with, so that each of its rows has one match",
            )
        return found


def alike(hashes: Hashes) -> Numbers:
    """Places of those that are there more than once, in order.

    Nearly always there is none, which their values in order tell soonest: processors sort plain numbers by many at a
    time. Else, in a small table each hash writes its number to a place of its own; few share one by chance, and only
    these are looked at again. Sorting places takes three times as long.
    """
    in_order = np.sort(hashes)
    if not (in_order[1:] == in_order[:-1]).any():
        return np.empty(0, dtype=np.int64)
    places: Numbers = np.arange(len(hashes))
    bits = min(max(8, 2 + len(hashes).bit_length()), _ALIKE_BITS)
    for shift in (64 - bits, 64 - 2 * bits):
        slots = (hashes[places] >> np.uint64(shift)) & np.uint64((1 << bits) - 1)
        numbers = np.arange(len(places), dtype=np.uint32)
        last = np.empty(1 << bits, dtype=np.uint32)  # what nobody writes nobody reads
        last[slots] = numbers
        lost = slots[last[slots] != numbers]
        is_shared = np.zeros(1 << bits, dtype=np.bool_)
        is_shared[lost] = True
        places = places[is_shared[slots]]
    if not len(places):
        return places
    order = np.argsort(hashes[places], kind="stable")
    ordered = hashes[places[order]]
    is_same = ordered[1:] == ordered[:-1]
    return np.sort(places[order[np.append(is_same, False) | np.append(False, is_same)]])


def units_of(slices: Sequence[Slice], group: Group) -> list[Range]:
    """The group cut where slices end, so that a unit's new rows fit into memory; [] if there are none for it."""
    here = [part for part in slices if part.first < group.upto and part.upto > group.first]
    if not any(part.rows for part in here):
        return []
    cuts, rows, size_bytes = [group.first], 0, 0
    for part in here:
        is_full = rows + part.rows > STAGED_UNIT_ROWS or size_bytes + part.size_bytes > STAGED_UNIT_BYTES
        if rows and is_full and part.first > cuts[-1]:
            cuts.append(part.first)
            rows = size_bytes = 0
        rows += part.rows
        size_bytes += part.size_bytes
    return list(pairwise([*cuts, group.upto]))


def _left(rows: pa.Table, gone: Numbers) -> pa.Table:
    """The rows but for those at these places."""
    if not len(gone):
        return rows
    is_left = np.ones(rows.num_rows, dtype=np.bool_)
    is_left[gone] = False
    return rows.filter(pa.array(is_left)).combine_chunks()

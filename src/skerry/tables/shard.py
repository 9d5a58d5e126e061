"""What one member holds of one table: files and overlay, and how it reads at any moment that is kept. Pure.

It belongs to the member's loop. What it hands out never changes: threads may work with that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import msgspec
import numpy as np
import pyarrow as pa

from skerry.model.errors import InternalError
from skerry.model.limits import HISTORY_S, OVERLAY_ROWS_MAX, TIMESTAMP_MAX
from skerry.model.sharded import OwnTable, TableStatus
from skerry.tables.bucket import buckets_of
from skerry.tables.clock import COUNTER_BITS
from skerry.tables.columns import arrow_schema, spread_by
from skerry.tables.flush import FlushPlan, Group, Range, groups_of, is_due, merged, touched_groups
from skerry.tables.keys import encode_keys
from skerry.tables.layouts import is_fit
from skerry.tables.manifest import DataFile, Flush, Laid, Manifest
from skerry.tables.overlay import Overlay, Seen
from skerry.tables.writes import Pair

_63_BITS = (1 << 63) - 1


class Snapshot(NamedTuple):
    """The table at `read_ts`: all rows of `plain`, those of `touched` whose key is not in `keys`, and `rows`.

    `last_ts`: of the last commit that counts. Snapshots with the same files and the same `last_ts` are alike.
    """

    read_ts: int
    last_ts: int
    plain: tuple[DataFile, ...]
    touched: tuple[DataFile, ...]
    keys: pa.RecordBatch
    rows: pa.RecordBatch


class Changes(NamedTuple):
    """What a transaction has written here and not committed. `touched`: rows, of a deleted one only the key is set.

    `number` is no other's: it tells what queries have seen.
    """

    keys: list[bytes]
    touched: pa.RecordBatch
    is_live: list[bool]
    number: int


class Shard:
    """`ranges`: the member's buckets. `folder`: of this table alone."""

    def __init__(
        self, table: OwnTable, folder: str, manifest: Manifest | None = None, ranges: Sequence[Range] | None = None
    ) -> None:
        self.table = table
        self.folder = folder
        self.manifest = manifest or Manifest()
        self.ranges: tuple[Range, ...] = tuple(ranges) if ranges is not None else ((0, table.buckets),)
        self.overlay = Overlay(table)
        self.is_altered = False  # since the last flush: Delta's log does not tell of it yet
        self.is_gone = False  # its folder was removed: nothing is written there any more
        self._pins: Counter[int] = Counter()

    def alter(self, table: OwnTable) -> None:
        """Its next version. Files and what the store has stay as they are, and are read as its rows are now."""
        self.overlay.alter(table)
        self.table, self.is_altered = table, True

    def apply(self, commit_ts: int, writes: Sequence[Pair]) -> None:
        """A commit, which the store has or will have."""
        if commit_ts <= self.manifest.flushed_ts:
            raise InternalError(f"table {self.table.name}: a commit at {commit_ts}, after a flush of later ones")
        self.overlay.add(commit_ts, writes)

    # --- reading ------------------------------------------------------------------------------------------------------
    def snapshot(self, read_ts: int, changes: Changes | None = None) -> Snapshot:
        """SiteError if that moment is no longer kept. Whoever reads files pins the moment for as long."""
        groups, seen = self._at(read_ts)
        if changes is not None:
            seen = _with(changes, seen, self.table)
        touched = {file.name for group in touched_groups(groups, seen.buckets) for file in group.files}
        files = [file for group in groups for file in group.files]
        return Snapshot(
            read_ts,
            seen.last_ts,
            tuple(file for file in files if file.name not in touched),
            tuple(file for file in files if file.name in touched),
            seen.touched.select(list(self.table.primary_key)),
            seen.rows,
        )

    def read(self, read_ts: int) -> pa.Table:
        """All rows, without Spark; blocks on files."""
        groups, seen = self._at(read_ts)
        parts = [merged(self.table, self.folder, group, seen) for group in groups]
        return pa.concat_tables([*parts, arrow_schema(self.table).empty_table()])

    def _at(self, read_ts: int) -> tuple[tuple[Group, ...], Seen]:
        base_ts = self.manifest.base_of(read_ts, self.table.name)
        return groups_of(self.manifest.files_at(base_ts), self.ranges), self.overlay.at(read_ts, base_ts)

    def size(self) -> tuple[int, int]:
        """Rows and bytes now. A row that came since the last flush may count twice: in its file, and anew."""
        seen, files = self.overlay.at(self.overlay.last_ts, self.manifest.flushed_ts), self.manifest.live
        rows = seen.rows.num_rows + sum(file.rows for file in files)
        return rows, seen.touched.nbytes + sum(file.size_bytes for file in files)

    def status(self) -> TableStatus:
        """What is here now; `rows` as `size` has them."""
        overlay_rows, overlay_bytes, _ = self.overlay.unflushed(self.manifest.flushed_ts)
        files = self.manifest.live
        return TableStatus(
            self.table.id,
            buckets=sum(upto - first for first, upto in self.ranges),
            rows=self.size()[0],
            overlay_rows=overlay_rows,
            overlay_bytes=overlay_bytes,
            files=len(files),
            file_bytes=sum(file.size_bytes for file in files),
            flushed_us=self.manifest.flushed_ts >> COUNTER_BITS,
            history_us=self.manifest.kept_ts >> COUNTER_BITS,
        )

    def pin(self, read_ts: int) -> None:
        """Nothing that a read at this moment needs is removed until `unpin`."""
        self.manifest.base_of(read_ts, self.table.name)
        self._pins[read_ts] += 1

    @property
    def is_pinned(self) -> bool:
        return bool(self._pins)

    def unpin(self, read_ts: int) -> None:
        self._pins[read_ts] -= 1
        if self._pins[read_ts] <= 0:
            del self._pins[read_ts]

    # --- flushing -----------------------------------------------------------------------------------------------------
    def is_due(self, now_us: int) -> bool:
        rows, size_bytes, oldest_ts = self.overlay.unflushed(self.manifest.flushed_ts)
        return self.is_altered or is_due(rows, size_bytes, (now_us - (oldest_ts >> COUNTER_BITS)) / 1e6)

    def plan_flush(self, upto_ts: int, *, is_held: bool = False) -> FlushPlan | None:
        """`upto_ts`: no commit at or before it can still come. None if there is nothing to flush.

        Files with other columns than a reader of Delta would find there by name are written anew; not so while staged
        rows hold the table (`is_held`): if they are files already, these may be made of the ones that are there now.
        """
        if upto_ts <= self.manifest.flushed_ts:
            return None
        groups, seen = self._at(upto_ts)
        if is_held and not seen.keys:
            return None
        touched = touched_groups(groups, seen.buckets)
        unfit = [group for group in groups if not all(is_fit(file, self.table) for file in group.files)]
        if not seen.keys and not unfit and not self.is_altered:
            return None
        firsts = {group.first for group in (*touched, *unfit)}
        wanted = tuple(group for group in groups if group.first in firsts)
        return FlushPlan(self.table, self.folder, self.manifest.generation + 1, upto_ts, wanted, seen)

    def flushed(self, flush: Flush, table: OwnTable) -> None:
        """The store has it. `table`: as it was when the flush was planned."""
        self.manifest = self.manifest.after(flush)
        if table == self.table:
            self.is_altered = False

    def load(self, commit_ts: int, laid: Laid) -> None:
        """A commit of staged rows, which the store has or will have."""
        if commit_ts <= self.manifest.flushed_ts:
            raise InternalError(f"table {self.table.name}: staged rows at {commit_ts}, after a flush of later ones")
        assert not self.overlay.unflushed(self.manifest.flushed_ts)[0], "they were flushed before these were compared"
        flush = Flush(self.manifest.generation + 1, commit_ts, laid.added, laid.removed)
        self.manifest = self.manifest.loaded(flush)
        # They may have been voted for before it was altered.
        self.is_altered |= not all(is_fit(file, self.table) for file in laid.added)

    @property
    def is_unpublished(self) -> bool:
        """Whether readers of Delta do not see staged rows that are committed."""
        return self.manifest.loaded_at(TIMESTAMP_MAX) > self.manifest.published_ts

    def published(self, generation: int, upto_ts: int, delta_version: int) -> None:
        self.manifest = msgspec.structs.replace(
            self.manifest, published=generation, published_ts=upto_ts, delta_version=delta_version
        )

    def horizon(self, now_us: int) -> int:
        """Reads before it are not asked for any more: they are too old, or there is no room for them in memory."""
        oldest_ts = (now_us - int(HISTORY_S * 1e6)) << COUNTER_BITS
        if len(self.overlay) > OVERLAY_ROWS_MAX // 2:
            oldest_ts = self.manifest.flushed_ts
        return min([oldest_ts, *self._pins])

    def trim(self, horizon_ts: int) -> tuple[int, tuple[str, ...]] | None:
        """From now on reads begin at the first; the store is to be told, then the files of these names go.

        None if all is needed. Should the store fail, it still has all: who asks tells it again.
        """
        manifest, gone = self.manifest.trimmed(min([horizon_ts, *self._pins]))
        if manifest == self.manifest:
            return None
        self.manifest = manifest
        self.overlay.forget(manifest.kept_ts)
        return manifest.kept_ts, gone


def _with(changes: Changes, seen: Seen, table: OwnTable) -> Seen:
    """As if they had been committed after all that is seen."""
    gone = set(changes.keys)
    touched, rows, keys, buckets = seen.touched, seen.rows, seen.keys, seen.buckets
    if not gone.isdisjoint(keys):
        stays = [key not in gone for key in keys]
        touched, buckets = touched.filter(pa.array(stays, pa.bool_())), buckets[np.array(stays, dtype=np.bool_)]
        keys = [key for key in keys if key not in gone]
        of_rows = encode_keys(table.primary_key, [rows.column(name) for name in table.primary_key])
        rows = rows.filter(pa.array([key not in gone for key in of_rows], pa.bool_()))
    own = buckets_of([changes.touched.column(name) for name in spread_by(table)], table.buckets)
    return Seen(
        _both(touched, changes.touched),
        _both(rows, changes.touched.filter(pa.array(changes.is_live, pa.bool_()))),
        [*keys, *changes.keys],
        np.concatenate([buckets, own]),
        # It is told apart from all that was committed: no commit has such a number.
        -((seen.last_ts ^ changes.number) & _63_BITS) - 1,
    )


def _both(first: pa.RecordBatch, then: pa.RecordBatch) -> pa.RecordBatch:
    both = pa.Table.from_batches([first, then]).combine_chunks().to_batches()
    return both[0] if both else first

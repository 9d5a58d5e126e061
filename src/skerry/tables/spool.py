"""Rows of one statement that wait at a member to become files, cut by their buckets. For a thread, and its folder.

What is here is not durable, and need not be: nobody has voted for it. A member that starts removes all of it.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable

import numpy as np
import pyarrow as pa
from pyarrow import compute as pc
from pyarrow import ipc

from skerry.model.commits import Change
from skerry.model.errors import PeerError, SiteError
from skerry.model.limits import STAGED_CUT_BYTES, STAGED_MEMORY_BYTES, STAGED_PARTS
from skerry.model.sharded import OwnTable
from skerry.tables.bucket import buckets_of
from skerry.tables.columns import CHANGE, arrow_schema, change_schema, spread_by
from skerry.tables.flush import Range


class Slice:
    """A range of buckets, and how much there is of it; `rows` in the order in which they came."""

    def __init__(self, first: int, upto: int) -> None:
        self.first = first
        self.upto = upto
        self.rows = 0
        self.size_bytes = 0
        self.batches: list[pa.RecordBatch] = []
        self.is_on_disk = False


class Spool:
    """`ranges`: the member's buckets; a row of another one is refused. `memory_bytes`: what it may hold there now.

    `schema`: of what comes. `is_ascending`: each key is greater than the one that came before it, so none comes twice.
    """

    def __init__(
        self,
        table: OwnTable,
        folder: str,
        ranges: tuple[Range, ...],
        memory_bytes: Callable[[], int] = lambda: STAGED_MEMORY_BYTES,
        *,
        is_changes: bool = False,
    ) -> None:
        self.table = table
        self.rows = 0
        self.is_changes = is_changes
        self.changes: set[Change] = set()  # that came
        self.is_ascending = True
        self._last_key: pa.Scalar | None = None
        self.schema = change_schema(table) if is_changes else arrow_schema(table)
        self._folder = folder
        self._memory_bytes = memory_bytes
        self._waiting: list[pa.RecordBatch] = []
        self._waiting_bytes = 0
        self._cut_bytes = 0
        width = max(1, -(-sum(upto - first for first, upto in ranges) // STAGED_PARTS))
        self.slices = [
            Slice(at, min(at + width, upto)) for first, upto in sorted(ranges) for at in range(first, upto, width)
        ]
        # Of the smallest type: numbers of one byte are sorted in one go.
        self._places = np.full(table.buckets, len(self.slices), np.min_scalar_type(len(self.slices)))
        for place, part in enumerate(self.slices):
            self._places[part.first : part.upto] = place

    def add(self, batch: pa.RecordBatch) -> None:
        """PeerError for rows that are not the table's, or not this member's."""
        if not batch.num_rows:  # of a range of buckets that moves, and has none
            return
        table = self.table
        whole = self._whole(batch) if self.is_changes else batch
        for column in table.columns:
            if self.is_changes and column.name in table.primary_key and batch.column(column.name).null_count:
                raise PeerError(f"table {table.name}: column {column.name} cannot be NULL")
            is_required = not column.is_nullable or column.name in table.primary_key
            if is_required and whole.column(column.name).null_count:
                raise PeerError(f"table {table.name}: column {column.name} cannot be NULL")
        self.is_ascending = self.is_ascending and self._ascends(batch.column(table.primary_key[0]))
        self._waiting.append(batch)
        self._waiting_bytes += batch.nbytes
        self.rows += batch.num_rows
        if self._waiting_bytes >= STAGED_CUT_BYTES:
            self._cut()
        if self._cut_bytes >= self._memory_bytes():
            self._write()

    def _whole(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Those of the changes that are rows; of the others only the key counts."""
        said = batch.column(CHANGE)
        try:
            self.changes |= {Change(each) for each in pc.unique(said).to_pylist()}
        except ValueError as error:
            raise PeerError(f"table {self.table.name}: a change of no known kind ({error})") from None
        return batch.filter(pc.less_equal(said, Change.INSERT))

    def _ascends(self, keys: pa.Array) -> bool:
        """Of the key's first column: if that ascends, no other tells keys apart. NaN is greater than nothing here."""
        last, self._last_key = self._last_key, keys[-1]
        is_after = last is None or pc.greater(keys[0], last).as_py()
        return is_after and bool(pc.all(pc.greater(keys.slice(1), keys.slice(0, len(keys) - 1)), min_count=0).as_py())

    def end(self) -> None:
        """No more rows come."""
        self._cut()

    def read(self, part: Slice) -> list[pa.RecordBatch]:
        """Its rows, in the order in which they came."""
        if not part.is_on_disk:
            return part.batches
        source = pa.memory_map(self._path(part))
        batches = []
        while source.tell() < source.size():
            batches.append(ipc.read_record_batch(ipc.read_message(source), self.schema))
        return [*batches, *part.batches]

    def remove(self) -> None:
        self._waiting = []
        self.slices = []
        shutil.rmtree(self._folder, ignore_errors=True)

    def _cut(self) -> None:
        """What waits goes to its slices. Few rows at a time: a processor's cache holds them while they are moved."""
        if not self._waiting:
            return
        rows = pa.Table.from_batches(self._waiting, self.schema).combine_chunks()
        self._cut_bytes += self._waiting_bytes
        self._waiting, self._waiting_bytes = [], 0
        places = self._places[
            buckets_of([rows.column(name).combine_chunks() for name in spread_by(self.table)], self.table.buckets)
        ]
        counts = np.bincount(places, minlength=len(self.slices) + 1).tolist()
        if counts.pop():
            raise PeerError(f"table {self.table.name}: a row of a bucket that is not here")
        order = np.argsort(places, kind="stable")  # of small numbers: ten times as quick
        (sorted_rows,) = pc.take(rows, pa.array(order), boundscheck=False).combine_chunks().to_batches()
        at, row_bytes = 0, rows.nbytes / max(1, rows.num_rows)
        for part, count in zip(self.slices, counts, strict=True):
            if count:
                part.batches.append(sorted_rows.slice(at, count))
                part.rows += count
                part.size_bytes += int(count * row_bytes)
            at += count

    def _write(self) -> None:
        """What is in memory goes to disk."""
        try:
            os.makedirs(self._folder, 0o700, exist_ok=True)
            for part in self.slices:
                if part.batches:
                    with open(self._path(part), "ab") as file:
                        for batch in part.batches:
                            file.write(batch.serialize())
                    part.batches, part.is_on_disk = [], True
            self._cut_bytes = 0
        except OSError as error:
            raise SiteError(
                f"{self._folder} cannot be written ({error.strerror}); nothing of the statement is written",
                suggestion="make room on that disk, or let the member's user write there",
            ) from error

    def _path(self, part: Slice) -> str:
        return os.path.join(self._folder, f"{part.first:05d}")

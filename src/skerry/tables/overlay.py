"""Rows that no file holds yet: key → versions by commit time, each a row or a tombstone; read as Arrow. Pure.

A flushed version stays until `forget`, for those who read at an earlier moment.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from skerry.model.errors import InternalError
from skerry.model.limits import OVERLAY_BYTES_MAX, OVERLAY_ROW_BYTES, OVERLAY_ROWS_MAX
from skerry.model.sharded import OwnTable
from skerry.tables.bucket import buckets_of
from skerry.tables.columns import arrow_schema, spread_by
from skerry.tables.layouts import ids_of, relaid
from skerry.tables.rows import encode_rows
from skerry.tables.writes import Pair, batch_of

Numbers = np.ndarray[tuple[int], np.dtype[np.int64]]


class Seen(NamedTuple):
    """The overlay at one moment. Keys of `touched` are decided here, whatever files say: `rows` are those that exist.

    `touched` has all columns; of a deleted row only the key is set. `buckets` and `keys` go with `touched`.
    `last_ts`: of the last commit that counts. No other moment with the same has other rows.
    """

    touched: pa.RecordBatch
    rows: pa.RecordBatch
    keys: list[bytes]
    buckets: Numbers
    last_ts: int


class Version(NamedTuple):
    """`place` is for `encoded`, until the next `forget`."""

    commit_ts: int
    is_live: bool
    place: int


class _Alone:
    """Whoever comes while another is inside is refused: its numbers would point at another's rows, in silence."""

    def __init__(self, table: str) -> None:
        self._table = table
        self._is_taken = False

    def __enter__(self) -> None:
        if self._is_taken:
            raise InternalError(f"table {self._table}: a second thread at its overlay, which belongs to one loop")
        self._is_taken = True

    def __exit__(self, *_: object) -> None:
        self._is_taken = False


class Overlay:
    def __init__(self, table: OwnTable) -> None:
        self.table = table
        self._alone = _Alone(table.name)
        self.schema = arrow_schema(table)
        self.last_ts = 0
        self._clear()

    def _clear(self) -> None:
        self._ids: dict[bytes, int] = {}
        self._keys: list[bytes] = []
        self._versions: list[list[int]] = []  # by number of the key: places of its versions, the newest last
        # by place:
        self._ts = array("q")
        self._id = array("q")
        self._deleted = bytearray()
        self._sizes = array("q")
        self._size_bytes = 0
        # Rows become Arrow when they are read: many small commits at once, which is a hundred times as quick.
        self._batch = pa.RecordBatch.from_pylist([], self.schema)
        self._raw: list[Pair] = []  # behind those of the batch
        self._seen: tuple[tuple[int, int], Seen] | None = None

    def __len__(self) -> int:
        return len(self._ts)

    def add(self, commit_ts: int, writes: Sequence[Pair]) -> None:
        """A commit; those of one key come in the order of their times, as locks have it."""
        with self._alone:
            keys = [key for key, _ in writes]
            known = [] if self._ids.keys().isdisjoint(keys) else [self._ids[key] for key in keys if key in self._ids]
            if any(self._ts[self._versions[number][-1]] >= commit_ts for number in known):
                late = f"a key was committed at {commit_ts}, and later before"
                raise InternalError(f"table {self.table.name}: {late}")
            sizes = [len(key) + (len(row) if row else 0) + OVERLAY_ROW_BYTES for key, row in writes]
            self._put(keys, [commit_ts] * len(keys), [row is None for _, row in writes], sizes)
            self._raw += writes
            self.last_ts = max(self.last_ts, commit_ts)

    def alter(self, table: OwnTable) -> None:
        """The same rows, with the columns that the table has from now on."""
        rows = relaid(pa.Table.from_batches([self._rows()]), ids_of(self.table), table).combine_chunks()
        self.table, self.schema, self._seen = table, arrow_schema(table), None
        self._batch = rows.to_batches()[0] if rows.num_rows else pa.RecordBatch.from_pylist([], self.schema)

    def _put(self, keys: list[bytes], ts: list[int], deleted: list[bool], sizes: list[int]) -> None:
        """Versions, one for one."""
        ids, versions, numbers = self._ids, self._versions, list[int]()
        if ids.keys().isdisjoint(keys) and len(set(keys)) == len(keys):  # all at once, as nearly always
            numbers += range(len(versions), len(versions) + len(keys))
            ids.update(zip(keys, numbers, strict=True))
            self._keys += keys
            versions += [[place] for place in range(len(self._ts), len(self._ts) + len(keys))]
            keys = []
        for place, key in enumerate(keys, len(self._ts)):
            number = ids.get(key)
            if number is None:
                number = ids[key] = len(versions)
                self._keys.append(key)
                versions.append([place])
            else:
                versions[number].append(place)
            numbers.append(number)
        self._ts.extend(ts)
        self._id.extend(numbers)
        self._deleted.extend(deleted)
        self._sizes.extend(sizes)
        self._size_bytes += sum(sizes)

    def unflushed(self, flushed_ts: int) -> tuple[int, int, int]:
        """Versions later than the last flush: how many, their bytes, and the time of the oldest."""
        ts = np.array(self._ts, dtype=np.int64)
        places = np.flatnonzero(ts > flushed_ts)
        if not len(places):
            return 0, 0, flushed_ts
        return len(places), int(np.array(self._sizes, dtype=np.int64)[places].sum()), int(ts[places].min())

    def has_room(self, rows: int, size_bytes: int) -> bool:
        """Whether so much more may be prepared; what has been voted for is always taken."""
        return len(self._ts) + rows <= OVERLAY_ROWS_MAX and self._size_bytes + size_bytes <= OVERLAY_BYTES_MAX

    def find(self, key: bytes, read_ts: int, after_ts: int) -> Version | None:
        """The version of a key that counts at `read_ts`; None if that is what files at `after_ts` say."""
        number = self._ids.get(key)
        for place in reversed(self._versions[number] if number is not None else ()):
            if after_ts < self._ts[place] <= read_ts:
                return Version(self._ts[place], not self._deleted[place], place)
        return None

    def newest(self, keys: Sequence[bytes]) -> int:
        """When the last of these keys was committed; 0 if none of them is here."""
        if self._ids.keys().isdisjoint(keys):
            return 0
        return max(self._ts[self._versions[self._ids[key]][-1]] for key in keys if key in self._ids)

    def since(self, after_ts: int) -> dict[bytes, int]:
        """Keys that were committed later than that, and when last."""
        last = {key: self._ts[places[-1]] for key, places in zip(self._keys, self._versions, strict=True)}
        return {key: commit_ts for key, commit_ts in last.items() if commit_ts > after_ts}

    def at(self, read_ts: int, after_ts: int) -> Seen:
        """The last version of each key with `after_ts` < commit time ≤ `read_ts`."""
        # Nearly all read at the newest moment: it is put together once for each commit.
        state = (len(self._ts), after_ts)
        if self._seen is not None and self._seen[0] == state and read_ts >= self.last_ts:
            return self._seen[1]
        with self._alone:
            return self._put_together(read_ts, after_ts, state)

    def _put_together(self, read_ts: int, after_ts: int, state: tuple[int, int]) -> Seen:
        ts, numbers = np.array(self._ts, dtype=np.int64), np.array(self._id, dtype=np.int64)
        places = np.flatnonzero((ts > after_ts) & (ts <= read_ts))
        last = np.full(len(self._keys), -1, dtype=np.int64)
        last[numbers[places]] = places  # of several, numpy takes the last
        last = np.sort(last[last >= 0])
        touched = self._rows().take(pa.array(last, pa.int64()))
        is_there = ~np.frombuffer(bytes(self._deleted), dtype=np.bool_)[last]
        seen = Seen(
            touched,
            touched.filter(pa.array(is_there, pa.bool_())),
            [self._keys[number] for number in numbers[last].tolist()],
            buckets_of([touched.column(name) for name in spread_by(self.table)], self.table.buckets),
            int(ts[places].max(initial=after_ts)),
        )
        if read_ts >= self.last_ts:
            self._seen = (state, seen)
        return seen

    def forget(self, upto_ts: int) -> None:
        """Versions committed at or before `upto_ts`: files have what they said."""
        kept = np.flatnonzero(np.array(self._ts, dtype=np.int64) > upto_ts)
        if len(kept) == len(self._ts):
            return
        with self._alone:
            rows = self._rows().take(pa.array(kept, pa.int64()))
            ids, ts, deleted, sizes, keys = self._id, self._ts, self._deleted, self._sizes, self._keys
            self._clear()
            self._batch = rows
            places = kept.tolist()
            self._put(
                [keys[ids[place]] for place in places],
                [ts[place] for place in places],
                [bool(deleted[place]) for place in places],
                [sizes[place] for place in places],
            )

    def _rows(self) -> pa.RecordBatch:
        """All versions as one batch, by place."""
        if self._raw:
            later = batch_of(self.table, self._raw)
            whole = pa.Table.from_batches([self._batch, later], self.schema).combine_chunks()
            self._batch, self._raw = whole.to_batches()[0], []
        return self._batch

    def encoded(self, places: Sequence[int]) -> list[bytes]:
        """The rows of these versions, as commits carry them; none of them is deleted."""
        first = self._batch.num_rows
        old = iter(encode_rows(self._batch.take(pa.array([place for place in places if place < first], pa.int64()))))
        rows = [next(old) if place < first else self._raw[place - first][1] for place in places]
        return [row for row in rows if row is not None]

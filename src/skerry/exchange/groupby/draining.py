"""The rows that leave a state: those of a range for another worker, or all of them, merged, for the result."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

import pyarrow as pa

from skerry.exchange.groupby.buckets import BUCKETS, Buckets
from skerry.exchange.groupby.folding import Folding
from skerry.exchange.groupby.rows import PartialRows
from skerry.exchange.groupby.spill import OnDisk, Spill, Unspilled
from skerry.exchange.input import END, WAIT, Input, Polled, Signal
from skerry.exchange.merge import Merge, first_part
from skerry.exchange.order import Order
from skerry.model.fragment import SortKey

_LANE_BUCKETS = 8  # that are sorted together: many short lanes take longer to merge
_HEAD_LEAST_BYTES = 4096


class Counted:
    """Bytes that are held; whoever counts them is told how they change."""

    def __init__(self, count: Callable[[int], None] | None) -> None:
        self._count = count
        self.held_bytes = 0
        self.peak_bytes = 0

    def hold(self, size_bytes: int) -> None:
        change_bytes, self.held_bytes = size_bytes - self.held_bytes, size_bytes
        self.peak_bytes = max(self.peak_bytes, size_bytes)
        if self._count is not None and change_bytes:
            self._count(change_bytes)


class Sizes:
    """What a batch that leaves may have."""

    def __init__(self, rows: int, size_bytes: int) -> None:
        self.rows = rows
        self.size_bytes = size_bytes


class Taken:
    """Partial rows with their weights: input to another state. What is on disk comes after what is in memory."""

    def __init__(
        self,
        rows: PartialRows,
        in_memory: Sequence[pa.RecordBatch],
        on_disk: Sequence[OnDisk],
        sizes: Sizes,
        count: Callable[[int], None] | None,
    ) -> None:
        self._rows = rows
        self._pieces = deque(in_memory)
        self._disk = deque(on_disk)
        self._source: Input | None = None
        self._sizes = sizes
        self.weight = sum(map(rows.weight_of, in_memory)) + sum(each.weight for each in on_disk)
        self.rows = sum(piece.num_rows for piece in in_memory) + sum(each.rows for each in on_disk)
        self._counted = Counted(count)
        self._counted.hold(sum(piece.nbytes for piece in in_memory))

    def poll(self) -> Polled:
        """Small pieces are put together: each bucket has one."""
        while not self._pieces:
            if self._source is None:
                if not self._disk:
                    return END
                self._source = self._disk.popleft().read()
            polled = self._source.poll()
            if isinstance(polled, Signal):
                self._source = None
            else:
                self._add(polled)
        pieces: list[pa.RecordBatch] = []
        rows = size_bytes = 0
        while self._pieces and rows < self._sizes.rows and size_bytes < self._sizes.size_bytes:
            pieces.append(self._pieces.popleft())
            rows, size_bytes = rows + pieces[-1].num_rows, size_bytes + pieces[-1].nbytes
        whole = pieces[0] if len(pieces) == 1 else pa.concat_batches(pieces)
        part = first_part(whole, self._sizes.rows, self._sizes.size_bytes)
        rest = whole.slice(part.num_rows)
        self._counted.hold(self._counted.held_bytes - size_bytes)
        if rest.num_rows:
            self._add(rest, is_first=True)
        return self._rows.given(part)

    def _add(self, piece: pa.RecordBatch, *, is_first: bool = False) -> None:
        (self._pieces.appendleft if is_first else self._pieces.append)(piece)
        self._counted.hold(self._counted.held_bytes + piece.nbytes)

    def close(self) -> None:
        """Nobody will poll again."""
        self._pieces.clear()
        for each in self._disk:
            each.close()
        self._disk.clear()
        self._source = None
        self._counted.hold(0)


class Groups:
    """Whole groups, one row each and still partial: first those in memory, then those on disk."""

    def __init__(self, folding: Folding, buckets: Buckets, spill: Spill | None, allowed_bytes: int) -> None:
        buckets.deal()
        self._buckets = buckets
        self._numbers = deque(range(len(buckets.buckets)))
        self._spilled: Unspilled | None = None
        if spill is not None:
            self._spilled = Unspilled(folding, spill, allowed_bytes)
            for number, on_disk in spill.take_all().items():
                self._spilled.add(on_disk, buckets.buckets[number].take_all())
                self._numbers.remove(number)

    def in_memory(self) -> pa.RecordBatch | None:
        while self._numbers:
            rows = self._buckets.buckets[self._numbers.popleft()].take_all(is_last=True)
            self._buckets.count()
            if rows is not None:
                return rows
        return None

    def on_disk(self) -> pa.RecordBatch | None:
        return self._spilled.next() if self._spilled is not None else None


class Drain:
    """All rows of a state, merged: bucket by bucket, as `finished` makes them of one row a group."""

    def __init__(
        self,
        finished: Callable[[pa.RecordBatch], pa.RecordBatch],
        groups: Groups,
        buckets: Buckets,
        sizes: Sizes,
        counted: Counted,
    ) -> None:
        self._finished = finished
        self._groups = groups
        self._buckets = buckets
        self._sizes = sizes
        self._counted = counted
        self._ready: pa.RecordBatch | None = None

    def poll(self) -> Polled:
        if self._ready is None:
            self._ready = self._gathered()
            if self._ready is None:
                self._counted.hold(0)
                return END
        part = first_part(self._ready, self._sizes.rows, self._sizes.size_bytes)
        rest = self._ready.slice(part.num_rows)
        self._ready = rest if rest.num_rows else None
        self._counted.hold(self._buckets.size_bytes + rest.nbytes)
        return part

    def _gathered(self) -> pa.RecordBatch | None:
        """Small buckets are put together."""
        pieces: list[pa.RecordBatch] = []
        rows, size_bytes = 0, 0
        while rows < self._sizes.rows and size_bytes < self._sizes.size_bytes:
            piece = self._groups.in_memory()
            piece = piece if piece is not None else self._groups.on_disk()
            if piece is None:
                break
            rows, size_bytes = rows + piece.num_rows, size_bytes + piece.nbytes
            pieces.append(piece)
        if not pieces:
            return None
        self._counted.hold(self._buckets.size_bytes + size_bytes)
        return self._finished(pieces[0] if len(pieces) == 1 else pa.concat_batches(pieces))


class SortedDrain:
    """All rows of a state, merged, in the order of `keys`. The first poll sorts all that there is.

    A few buckets at a time are sorted together and stay in memory; each that was on disk is sorted and goes back there.
    """

    def __init__(
        self,
        folding: Folding,
        groups: Groups,
        buckets: Buckets,
        spill: Spill | None,
        keys: Sequence[SortKey],
        sizes: Sizes,
        counted: Counted,
        head_bytes: int,
    ) -> None:
        self._folding = folding
        self._groups = groups
        self._buckets = buckets
        self._spill = spill
        self._keys = tuple(keys)
        self._order = Order(folding.rows.kept, keys)
        self._sizes = sizes
        self._counted = counted
        self._head_bytes = head_bytes
        self._sorted: list[_Sorted] = []
        self._heads_bytes = 0
        self._merge: Merge | None = None

    def poll(self) -> Polled:
        if self._merge is None:
            self._merge = self._started()
        polled = self._merge.poll()
        assert polled is not WAIT
        self._hold()
        return polled if isinstance(polled, Signal) else self._folding.finished(polled)

    def _started(self) -> Merge:
        # Those on disk first: each takes memory while it is sorted.
        runs: list[OnDisk] = []
        while pieces := self._together(self._groups.on_disk, BUCKETS):
            self._counted.hold(self._buckets.size_bytes + sum(piece.nbytes for piece in pieces))
            assert self._spill is not None
            runs.append(self._spill.made())
            runs[-1].put(self._in_order(pieces), _HEAD_LEAST_BYTES)
        while pieces := self._together(self._groups.in_memory, _LANE_BUCKETS):
            self._sorted.append(_Sorted(self._in_order(pieces), self._sizes.rows))
            self._hold()
        lanes: list[Input] = [*self._sorted, *(run.read() for run in runs)]
        size_bytes = max(_HEAD_LEAST_BYTES, min(self._sizes.size_bytes, self._head_bytes // max(1, len(lanes))))
        for lane in self._sorted:
            lane.size_bytes = size_bytes
        return Merge(lanes, self._keys, self._folding.rows.kept, self._sizes.rows, size_bytes, self._count_heads)

    def _together(self, following: Callable[[], pa.RecordBatch | None], most: int) -> list[pa.RecordBatch]:
        """Pieces that are sorted together: no more bytes than all heads may have, but for one piece."""
        pieces: list[pa.RecordBatch] = []
        while len(pieces) < most and sum(piece.nbytes for piece in pieces) < self._head_bytes:
            if (piece := following()) is None:
                break
            pieces.append(piece)
        return pieces

    def _in_order(self, pieces: list[pa.RecordBatch]) -> pa.RecordBatch:
        rows = pieces[0] if len(pieces) == 1 else pa.concat_batches(pieces)
        return rows.take(self._order.sort_indices([self._order.keys_of(rows).columns]))

    def _count_heads(self, change_bytes: int) -> None:
        self._heads_bytes += change_bytes

    def _hold(self) -> None:
        lanes_bytes = sum(lane.held_bytes for lane in self._sorted)
        self._counted.hold(self._buckets.size_bytes + lanes_bytes + self._heads_bytes)


class _Sorted:
    """Sorted rows as an Input."""

    def __init__(self, rows: pa.RecordBatch, batch_rows: int) -> None:
        self._rows: pa.RecordBatch | None = rows
        self._batch_rows = batch_rows
        self.held_bytes = rows.nbytes  # whole until its end: what is left is a slice of it
        self.size_bytes = _HEAD_LEAST_BYTES

    def poll(self) -> Polled:
        if self._rows is None:
            self.held_bytes = 0
            return END
        part = first_part(self._rows, self._batch_rows, self.size_bytes)
        rest = self._rows.slice(part.num_rows)
        self._rows = rest if rest.num_rows else None
        return part

"""Partial rows in 256 buckets, by the highest eight bits of their hash."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from skerry.exchange.groupby.folding import Folding
from skerry.model.limits import FOLD_INTAKE_ROWS, FOLD_PENDING_ROWS

BUCKET_BITS = 8
BUCKETS = 1 << BUCKET_BITS
PREFIX_BITS = 32  # ranges of hashes are said by so many of their highest bits
PREFIXES = 1 << PREFIX_BITS
_BUCKET_PREFIXES = PREFIXES // BUCKETS


class Bucket:
    """Rows that were folded, and others that wait for it until they are about as many: so all work is a small multiple
    of the rows that came."""

    def __init__(self, folding: Folding) -> None:
        self._folding = folding
        self._folded: pa.RecordBatch | None = None
        self._pending: list[pa.RecordBatch] = []
        self.is_whole = True  # every folded group is one row
        self.pending_rows = 0
        self.pending_bytes = 0
        self.rows = 0
        self.size_bytes = 0

    def add(self, rows: pa.RecordBatch) -> None:
        size_bytes = held_bytes(rows)
        self._pending.append(rows)
        self.pending_rows += rows.num_rows
        self.pending_bytes += size_bytes
        self.rows += rows.num_rows
        self.size_bytes += size_bytes
        if self.pending_rows >= max(FOLD_PENDING_ROWS, self.rows - self.pending_rows):
            self.fold()

    def fold(self, *, is_last: bool = False) -> None:
        """`is_last`: no more rows come, so a sum that does not fit is an error."""
        if self.pending_rows or (is_last and not self.is_whole):
            pieces = [*([self._folded] if self._folded is not None else []), *self._pending]
            rows = pieces[0] if len(pieces) == 1 else pa.concat_batches(pieces)
            self._keep(*self._folding.folded(rows, is_last=is_last))

    def take_all(self, *, is_last: bool = False) -> pa.RecordBatch | None:
        """All its rows, one a group; the bucket is empty then."""
        self.fold(is_last=is_last)
        rows, self._folded = self._folded, None
        self.rows = self.size_bytes = 0
        self.is_whole = True
        return rows

    def take_between(self, first: int, upto: int) -> pa.RecordBatch | None:
        """The rows of these prefixes, one a group; the bucket keeps the others."""
        is_whole = self.is_whole
        rows = self.take_all()
        if rows is None:
            return None
        is_taken = between(self._folding.rows.hashes(rows), first, upto)
        if not is_taken.all():
            self._keep(rows.filter(pa.array(~is_taken)), is_whole)
        return rows.filter(pa.array(is_taken))

    def prefixes(self) -> npt.NDArray[np.uint64]:
        """Those of its groups."""
        self.fold()
        return prefixes(self._folding.rows.hashes(self._folded)) if self._folded is not None else np.zeros(0, np.uint64)

    def _keep(self, rows: pa.RecordBatch, is_whole: bool) -> None:
        self._folded, self.is_whole, self._pending = rows, is_whole, []
        self.pending_rows = self.pending_bytes = 0
        self.rows, self.size_bytes = rows.num_rows, held_bytes(rows)


class Buckets:
    """All rows of a state that are in memory. Batches wait until they are many, then all are dealt out at once."""

    def __init__(self, folding: Folding, intake_bytes: int) -> None:
        self._folding = folding
        self._intake_bytes = intake_bytes
        self._intake: list[pa.RecordBatch] = []
        self._waiting_rows = 0
        self._waiting_bytes = 0
        self.buckets = [Bucket(folding) for _ in range(BUCKETS)]
        self._dealt_rows = 0
        self._dealt_bytes = 0
        self._pending_bytes = 0

    @property
    def rows(self) -> int:
        return self._waiting_rows + self._dealt_rows

    @property
    def size_bytes(self) -> int:
        return self._waiting_bytes + self._dealt_bytes

    @property
    def pending_bytes(self) -> int:
        """Of rows that wait to be folded, in buckets or before that."""
        return self._waiting_bytes + self._pending_bytes

    @property
    def is_folded(self) -> bool:
        """Whether every group is one row."""
        return not self._intake and all(bucket.is_whole and not bucket.pending_rows for bucket in self.buckets)

    def add(self, rows: pa.RecordBatch) -> None:
        self._intake.append(rows)
        self._waiting_rows += rows.num_rows
        self._waiting_bytes += rows.nbytes
        if self._waiting_rows >= FOLD_INTAKE_ROWS or self._waiting_bytes >= self._intake_bytes:
            self.deal()

    def deal(self) -> None:
        """Waiting rows go to their buckets, in one pass by the highest bits of their hashes."""
        if not self._intake:
            return
        rows = pa.concat_batches(self._intake)
        self._intake, self._waiting_rows, self._waiting_bytes = [], 0, 0
        for number, part in dealt(rows, self._folding.rows.hashes(rows), 0):
            self.buckets[number].add(part)
        self.count()

    def fold(self) -> None:
        self.deal()
        for bucket in self.buckets:
            bucket.fold()
        self.count()

    def count(self) -> None:
        """To be called after a bucket was changed from outside."""
        self._dealt_rows = sum(bucket.rows for bucket in self.buckets)
        self._dealt_bytes = sum(bucket.size_bytes for bucket in self.buckets)
        self._pending_bytes = sum(bucket.pending_bytes for bucket in self.buckets)


def dealt(
    rows: pa.RecordBatch, hashes: npt.NDArray[np.uint64], bits: int, into_bits: int = BUCKET_BITS
) -> list[tuple[int, pa.RecordBatch]]:
    """The rows by the next `into_bits` of their hash after the first `bits`, each part in memory of its own."""
    numbers = ((hashes << np.uint64(bits)) >> np.uint64(64 - into_bits)).astype(np.uint8)
    # A stable sort of so small numbers is one pass over them.
    indices = np.argsort(numbers, kind="stable")
    ends = np.cumsum(np.bincount(numbers, minlength=1 << into_bits))
    begins = np.concatenate(([0], ends[:-1]))
    # Column by column, and then part by part, each is read in the order in which it lies: to take the rows of a part
    # from all columns at once misses every cache. Indices are ours, and need no look at their bounds.
    together = pc.take(rows, pa.array(indices), boundscheck=False)
    places = np.arange(rows.num_rows)
    return [
        (number, pc.take(together, pa.array(places[begins[number] : ends[number]]), boundscheck=False))
        for number in np.flatnonzero(ends > begins).tolist()
    ]


def held_bytes(rows: pa.RecordBatch) -> int:
    """Of rows in memory of their own; Arrow's `nbytes`, which minds slices, takes a hundred times as long."""
    return int(rows.get_total_buffer_size())


def prefixes(hashes: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    return hashes >> np.uint64(64 - PREFIX_BITS)


def between(hashes: npt.NDArray[np.uint64], first: int, upto: int) -> npt.NDArray[np.bool_]:
    found = prefixes(hashes)
    # The end of all prefixes has one bit more than they have, which is no matter to 64.
    return np.asarray((found >= np.uint64(first)) & (found < np.uint64(upto)))


def covered(first: int, upto: int) -> list[tuple[int, bool]]:
    """The buckets that prefixes from `first` to `upto` are in, and whether all of each."""
    if not 0 <= first < upto <= PREFIXES:
        raise ValueError(f"no range of hashes: {first} to {upto}")
    numbers = range(first // _BUCKET_PREFIXES, (upto - 1) // _BUCKET_PREFIXES + 1)
    return [
        (number, first <= number * _BUCKET_PREFIXES and (number + 1) * _BUCKET_PREFIXES <= upto) for number in numbers
    ]

"""Buckets of a group-by on disk: in spools of the query, within its budget of disk, folded one at a time at the end."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skerry.exchange.groupby.buckets import BUCKET_BITS, Bucket, between, dealt, prefixes
from skerry.exchange.groupby.folding import Folding
from skerry.exchange.groupby.rows import PartialRows
from skerry.exchange.input import END, Input
from skerry.exchange.merge import first_part
from skerry.exchange.reader import Decode, SpoolInput
from skerry.exchange.spool import Body, Budget, Entry, Spool
from skerry.model.errors import Overloaded
from skerry.model.limits import FOLD_SPILL_BYTES

Encode: TypeAlias = Callable[[pa.RecordBatch], Body]

_SPLIT_BITS = 4  # of the hash, by which a bucket is split that is too large when it comes back
_HASH_BITS = 64


class OnDisk:
    """Rows in the order in which they were put; read once, and let go of meanwhile."""

    def __init__(self, spool: Spool, rows: PartialRows, encode: Encode, decode: Decode) -> None:
        self._spool = spool
        self._rows = rows
        self._encode = encode
        self._decode = decode
        self.rows = 0
        self.size_bytes = 0
        self.weight = 0

    def put(self, rows: pa.RecordBatch, batch_bytes: int = FOLD_SPILL_BYTES) -> None:
        """Overloaded if the query may have no more disk."""
        self.rows += rows.num_rows
        self.weight += self._rows.weight_of(rows)
        while rows.num_rows:
            part = first_part(rows, rows.num_rows, batch_bytes)
            self._spool.append(Entry(self._encode(part), part.num_rows, part.nbytes))
            self.size_bytes += part.nbytes
            rows = rows.slice(part.num_rows)

    def read(self) -> Input:
        """Nothing is put after this."""
        self._spool.finish()
        return SpoolInput(self._spool, self._rows.kept, self._decode, release=True)

    def prefixes(self) -> npt.NDArray[np.uint64]:
        """Of the hashes of its rows; these stay where they are."""
        found = [
            prefixes(self._rows.hashes(self._decode(self._spool.read(index).body, self._rows.kept)))
            for index in range(self._spool.first, self._spool.length)
        ]
        return np.concatenate(found)

    def close(self) -> None:
        self._spool.close()


class Spill:
    """The rows of a state that are on disk, by bucket. Its files are those of the query's spools: unlinked, with
    checksums, and bounded by `budget`."""

    def __init__(
        self, rows: PartialRows, budget: Budget, directory: str, name: str, encode: Encode, decode: Decode
    ) -> None:
        self._rows = rows
        self._budget = budget
        self._directory = directory
        self.name = name
        self._encode = encode
        self._decode = decode
        self._made: list[OnDisk] = []
        self.buckets: dict[int, OnDisk] = {}
        self.written_bytes = 0

    @property
    def rows(self) -> int:
        return sum(each.rows for each in self.buckets.values())

    @property
    def size_bytes(self) -> int:
        return sum(each.size_bytes for each in self.buckets.values())

    def made(self) -> OnDisk:
        spool = Spool(self._budget, self._directory, self.name, disk_only=True)
        found = OnDisk(spool, self._rows, self._encode, self._decode)
        self._made.append(found)
        return found

    def put(self, number: int, rows: pa.RecordBatch) -> None:
        if number not in self.buckets:
            self.buckets[number] = self.made()
        self.buckets[number].put(rows)
        self.written_bytes += rows.nbytes

    def take(self, number: int) -> OnDisk | None:
        return self.buckets.pop(number, None)

    def take_all(self) -> dict[int, OnDisk]:
        """By bucket."""
        taken, self.buckets = self.buckets, {}
        return taken

    def take_between(self, number: int, first: int, upto: int) -> OnDisk | None:
        """The rows of these prefixes; those of the bucket that are left are written anew."""
        whole = self.take(number)
        if whole is None:
            return None
        taken, source = self.made(), whole.read()
        while isinstance(rows := source.poll(), pa.RecordBatch):
            is_taken = between(self._rows.hashes(rows), first, upto)
            taken.put(rows.filter(pa.array(is_taken)))
            left = rows.filter(pa.array(~is_taken))
            if left.num_rows:
                self.put(number, left)
        return taken

    def close(self) -> None:
        """Give all disk back, of what was taken too."""
        for each in self._made:
            each.close()
        self.buckets, self._made = {}, []


class _Part(NamedTuple):
    """Rows with the same first `bits` of their hash, on disk and in memory."""

    on_disk: OnDisk
    in_memory: pa.RecordBatch | None
    bits: int


class Unspilled:
    """Spilled buckets, one at a time, each folded in memory of `allowed_bytes`; or what one is split into."""

    def __init__(self, folding: Folding, spill: Spill, allowed_bytes: int) -> None:
        self._folding = folding
        self._spill = spill
        self._allowed_bytes = allowed_bytes
        self._left: list[_Part] = []

    def add(self, on_disk: OnDisk, in_memory: pa.RecordBatch | None) -> None:
        self._left.append(_Part(on_disk, in_memory, BUCKET_BITS))

    def next(self) -> pa.RecordBatch | None:
        """Rows of whole groups, one a group, of no group that came before; None: there are no more."""
        while self._left:
            bucket = self._loaded(self._left.pop())
            rows = bucket.take_all(is_last=True) if bucket is not None else None
            if rows is not None:
                return rows
        return None

    def _loaded(self, part: _Part) -> Bucket | None:
        """None: it was too large, and was split."""
        bucket, source = Bucket(self._folding), part.on_disk.read()
        rows = part.in_memory if part.in_memory is not None else source.poll()
        while rows is not END:
            bucket.add(rows)
            if bucket.size_bytes > self._allowed_bytes:
                bucket.fold()
                # Half of it, or the next rows would have it folded again at once.
                if bucket.size_bytes > self._allowed_bytes // 2:
                    self._split(bucket, source, part.bits)
                    return None
            rows = source.poll()
        return bucket

    def _split(self, bucket: Bucket, source: Input, bits: int) -> None:
        rows = bucket.take_all()
        assert rows is not None
        hashes = self._folding.rows.hashes(rows)
        if bits >= _HASH_BITS or (hashes == hashes[0]).all():
            raise Overloaded(
                f"{self._spill.name}: {rows.num_rows} groups have one hash and take {rows.nbytes} bytes, more than a "
                f"bucket that comes back from disk may ({self._allowed_bytes // 2} bytes)",
                suggestion="raise limits.group_by_memory_bytes, or group by fewer columns",
            )
        parts: dict[int, OnDisk] = {}
        while isinstance(rows, pa.RecordBatch):
            for number, piece in dealt(rows, self._folding.rows.hashes(rows), bits, _SPLIT_BITS):
                if number not in parts:
                    parts[number] = self._spill.made()
                parts[number].put(piece)
            rows = source.poll()
        self._left += [_Part(each, None, bits + _SPLIT_BITS) for each in parts.values()]

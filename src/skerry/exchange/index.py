"""Where the entries of a spool that are on disk lie. Small batches can be very many, so each takes a few bytes only."""

from __future__ import annotations

import bisect
import struct

import msgspec

from skerry.exchange.segment import Segment

# What an entry on disk costs in memory: its record, and what lists keep free to grow.
INDEX_BYTES = 48

_RECORD = struct.Struct("<QQQII")
_BLOCK_RECORDS = 1024
_NOWHERE = 2**64 - 1  # the offset of an entry that is not on disk


class Stored(msgspec.Struct, frozen=True):
    """An entry whose body is on disk."""

    segment: Segment
    offset: int
    length: int
    checksum: int
    rows: int
    decoded_bytes: int


class _Block(msgspec.Struct):
    """Entries from `first` on, as far as they follow each other and are in one segment, or not on disk."""

    segment: Segment
    first: int
    records: bytearray

    @property
    def end(self) -> int:
        return self.first + len(self.records) // _RECORD.size


class DiskIndex:
    """Entries are added at the end and forgotten from the start, as a spool does; some in between may not be here."""

    def __init__(self) -> None:
        self._blocks: list[_Block] = []

    def add(self, number: int, stored: Stored) -> None:
        block = self._blocks[-1] if self._blocks else None
        if block is None or block.segment is not stored.segment or number - block.first >= _BLOCK_RECORDS:
            block = _Block(stored.segment, number, bytearray())
            self._blocks.append(block)
        for _ in range(block.end, number):
            block.records += _RECORD.pack(_NOWHERE, 0, 0, 0, 0)
        block.records += _RECORD.pack(stored.offset, stored.checksum, stored.decoded_bytes, stored.length, stored.rows)

    def get(self, number: int) -> Stored | None:
        at = bisect.bisect_right(self._blocks, number, key=lambda block: block.first) - 1
        if at < 0 or number >= self._blocks[at].end:
            return None
        block = self._blocks[at]
        offset, checksum, decoded_bytes, length, rows = _RECORD.unpack_from(
            block.records, (number - block.first) * _RECORD.size
        )
        return None if offset == _NOWHERE else Stored(block.segment, offset, length, checksum, rows, decoded_bytes)

    def forget(self, number: int) -> Stored | None:
        """The entry, if it is on disk, for the last time: it and all before it are not asked for any more."""
        stored = self.get(number)
        while self._blocks and self._blocks[0].end <= number + 1:
            del self._blocks[0]
        return stored

"""A spool as an Input."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from skerry.exchange.entries import ReadableSpool
from skerry.exchange.input import END, WAIT, Polled
from skerry.exchange.spool import Body

Decode = Callable[[Body, pa.Schema], pa.RecordBatch]


def share(index: int, partition: int, partitions: int) -> bool:
    """Whether the source task `partition` of `partitions` reads the entry at `index` of an edge's spool."""
    assert 0 <= partition < partitions
    return index % partitions == partition


class SpoolInput:
    """Reads a spool from its first entry on. An error of the spool is raised at once, not after its entries.

    `release`: let go of each entry once its batch is done with, which is when the next one is asked for: a merge holds
    a batch of each lane, and the query's budget counts it. Only if nobody else reads the spool.
    `on_consumed` gets the decoded bytes of each entry, for the credits of the channel that fed it.
    """

    def __init__(
        self,
        spool: ReadableSpool,
        schema: pa.Schema,
        decode: Decode,
        *,
        release: bool = False,
        on_consumed: Callable[[int], None] | None = None,
    ) -> None:
        self._spool = spool
        self._schema = schema
        self._decode = decode
        self._release = release
        self._on_consumed = on_consumed
        self._next = spool.first

    def poll(self) -> Polled:
        if self._spool.failed is not None:
            raise self._spool.failed
        if self._release:
            self._spool.release(self._next)
        while self._next < self._spool.length:
            entry = self._spool.read(self._next)
            batch = self._decode(entry.body, self._schema) if entry.rows else None
            self._next += 1
            if self._on_consumed is not None:
                self._on_consumed(entry.decoded_bytes)
            if batch is not None:
                return batch
        return END if self._spool.finished else WAIT

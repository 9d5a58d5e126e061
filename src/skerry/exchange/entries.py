"""Encoded batches as a stream: taken from spools as they are, or encoded from an Input."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec
import pyarrow as pa

from skerry.exchange.input import END, WAIT, Input, Signal
from skerry.exchange.spool import Body, Entry
from skerry.model.errors import SkerryError


class ReadableSpool(Protocol):
    """What both a spool and a row of finished lanes offer."""

    @property
    def length(self) -> int: ...
    @property
    def first(self) -> int: ...
    @property
    def finished(self) -> bool: ...
    @property
    def failed(self) -> SkerryError | None: ...
    def read(self, index: int) -> Entry: ...
    def release(self, upto: int) -> None: ...
    def subscribe(self, callback: Callable[[], None]) -> Callable[[], None]: ...
    def fail(self, error: SkerryError) -> None: ...
    def close(self) -> None: ...


class EntryInput(Protocol):
    """A stream of encoded batches that never blocks."""

    def poll(self) -> Entry | Signal: ...


class Feed(msgspec.Struct):
    """A spool and what to tell the channel that fills it when bytes were taken from it."""

    spool: ReadableSpool
    on_consumed: Callable[[int], None]
    next_index: int = 0


class SpoolEntries:
    """The entries of several spools in fair turns, each let go once taken; nothing is decoded."""

    def __init__(self, feeds: Sequence[Feed]) -> None:
        self._feeds = list(feeds)

    def poll(self) -> Entry | Signal:
        for _ in range(len(self._feeds)):
            # A feed leaves its turn only after whatever may raise: an error is told again at the next poll.
            feed = self._feeds[0]
            if feed.spool.failed is not None:
                raise feed.spool.failed
            while feed.next_index < feed.spool.length:
                entry = feed.spool.read(feed.next_index)
                feed.next_index += 1
                feed.spool.release(feed.next_index)
                feed.on_consumed(entry.decoded_bytes)
                if entry.rows:
                    self._feeds.append(self._feeds.pop(0))
                    return entry
            self._feeds.pop(0)
            if not feed.spool.finished:
                self._feeds.append(feed)
        return WAIT if self._feeds else END


class EncodedInput:
    """Batches of an Input, encoded."""

    def __init__(self, source: Input, encode: Callable[[pa.RecordBatch], Body], size: Callable[[pa.RecordBatch], int]):
        self._source = source
        self._encode = encode
        self._size = size

    def poll(self) -> Entry | Signal:
        batch = self._source.poll()
        if isinstance(batch, Signal):
            return batch
        return Entry(self._encode(batch), batch.num_rows, self._size(batch))

"""Where a member keeps batches: memory first, then disk, within the budget of one query.

Spools are touched in one thread only; nothing here waits.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable
from typing import TypeAlias

import msgspec
import pyarrow as pa
import xxhash

from skerry.exchange.index import INDEX_BYTES, DiskIndex, Stored
from skerry.exchange.segment import Segment
from skerry.exchange.share import Callbacks, SpoolShare
from skerry.model.errors import InternalError, Overloaded, SiteError, SkerryError
from skerry.model.limits import ENTRY_BYTES, GIB, KIB, MIB

Body: TypeAlias = bytes | memoryview | pa.Buffer

# A query's spools share their files (a file a lane would exhaust file descriptors). A file is given back
# as a whole, so it is small against the budget of the disk, yet large against a batch.
SEGMENT_BYTES = 128 * MIB
_INDEX_BYTES_LEAST = 1 * MIB  # where spools may have next to no memory, they still have their disk


class Entry(msgspec.Struct, frozen=True):
    """One batch: an Arrow IPC message (empty when `rows` is 0) and what its sender said of it."""

    body: Body
    rows: int
    decoded_bytes: int


class Budget:
    """What all spools of one query at one member may hold together.

    It counts what is really held: the encoded body (`len(body)`, compressed or not) and ENTRY_BYTES an
    entry. Decoded sizes are the business of credits: a batch is decoded only when it is consumed. Disk
    counts a segment until it is closed, because a file keeps the space of entries that were let go. What is
    on disk takes a little memory too, INDEX_BYTES an entry: up to a quarter of `memory_bytes`, beside it.
    Merges hold a batch of each lane, beside it too.
    """

    def __init__(self, memory_bytes: int, disk_bytes: int, segment_bytes: int = SEGMENT_BYTES) -> None:
        self.memory_bytes = memory_bytes
        self.disk_bytes = disk_bytes
        self.floor_bytes = 0  # of free space on the disk, which is left to others
        self.memory_used = 0
        self.memory_peak = 0
        self.pages_bytes = 0  # of the memory, kept free for pages: a page may be made of what lies on disk
        self.pages_used = 0
        self.pages_peak = 0
        self.index_bytes = max(memory_bytes // 4, _INDEX_BYTES_LEAST)
        self.index_used = 0
        self.state_used = 0  # of merges: a batch a lane, whatever else is held
        self.disk_used = 0
        self.disk_peak = 0
        self.promised_bytes = 0  # to spools whose senders have credit: those that can wait leave it free
        self._segment_bytes = segment_bytes
        self._open: dict[tuple[str, bool], Segment] = {}
        self._shares: tuple[SpoolShare, ...] = ()
        self._room = Callbacks()

    def take_share(self, *shares: SpoolShare) -> None:
        """Its query is one of those that may hold so much together; the first who says so counts."""
        if not self._shares:
            self._shares = shares
            for share in shares:
                share.enter(self)

    def leave_share(self) -> None:
        for share in self._shares:
            share.leave(self)

    def subscribe(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call back whenever room was given back: for those who wait until `has_room`."""
        ends = [self._room.subscribe(callback), *(share.room.subscribe(callback) for share in self._shares)]

        def unsubscribe() -> None:
            for end in ends:
                end()

        return unsubscribe

    def has_room(self, size_bytes: int, *, gives_way: bool = False) -> bool:
        """Whether a body of this size can be appended to any spool of the query; or to one that gives way."""
        return self.fits_memory(size_bytes, gives_way=gives_way) or self.fits_disk(size_bytes, gives_way=gives_way)

    def fits_memory(self, size_bytes: int, *, gives_way: bool = False) -> bool:
        size = size_bytes + ENTRY_BYTES
        spools_used = self.memory_used - self.pages_used - self.index_used - self.state_used
        if spools_used == 0:  # the first may be larger than the spools' share: it is what the next page is made of
            return self.pages_used + size <= self.memory_bytes
        if not all(share.has_memory(size) for share in self._shares):
            return False
        share = self.memory_bytes - self.pages_bytes
        return spools_used + size + (self._left_free(share) if gives_way else 0) <= share

    def fits_disk(self, size_bytes: int, *, gives_way: bool = False) -> bool:
        left_free = self._left_free(self.disk_bytes) if gives_way else 0
        size = size_bytes + ENTRY_BYTES
        if self.index_is_full or not all(share.has_disk(size) for share in self._shares):
            return False
        return self.disk_used + size + left_free <= self.disk_bytes

    def _left_free(self, share_bytes: int) -> int:
        """Half at most: however many senders there are, whoever waits gets on in the end."""
        return min(self.promised_bytes, share_bytes // 2)

    @property
    def index_is_full(self) -> bool:
        """Whether no more entries can be on disk, however small: each of them takes a little memory."""
        return self.index_used + INDEX_BYTES > self.index_bytes

    def take_memory(self, size_bytes: int) -> None:
        self.memory_used += size_bytes + ENTRY_BYTES
        self.memory_peak = max(self.memory_peak, self.memory_used)

    def give_back_memory(self, size_bytes: int) -> None:
        self.memory_used -= size_bytes + ENTRY_BYTES
        assert self.memory_used >= 0

    def change_state(self, change_bytes: int) -> None:
        """A merge holds so much more, or less. It is counted and never refused: without its heads nothing moves."""
        self.state_used += change_bytes
        self.memory_used += change_bytes
        self.memory_peak = max(self.memory_peak, self.memory_used)
        assert self.state_used >= 0

    def take_page(self, size_bytes: int) -> None:
        self.pages_used += size_bytes + ENTRY_BYTES
        self.pages_peak = max(self.pages_peak, self.pages_used)
        self.take_memory(size_bytes)

    def give_back_page(self, size_bytes: int) -> None:
        self.pages_used -= size_bytes + ENTRY_BYTES
        self.give_back_memory(size_bytes)
        self.room_given_back()

    def write(self, directory: str, body: memoryview, *, gives_way: bool = False) -> tuple[Segment, int]:
        """Put a body on disk and return where; an OSError leaves everything as it was.

        Spools that give way have files of their own: bodies that wait there long keep no room from the others.
        """
        if self.floor_bytes and shutil.disk_usage(directory).free - len(body) < self.floor_bytes:
            raise OSError(errno.ENOSPC, f"less than {_size(self.floor_bytes)} are free (limits.buffer_floor_bytes)")
        key = directory, gives_way
        segment = self._open.get(key) or Segment(directory)
        try:
            offset = segment.write(body)
        except OSError:
            if not segment.live:
                self._close_segment(segment)
            raise
        charge = len(body) + ENTRY_BYTES
        segment.charged_bytes += charge
        self.disk_used += charge
        self.disk_peak = max(self.disk_peak, self.disk_used)
        self.index_used += INDEX_BYTES
        self.memory_used += INDEX_BYTES
        self.memory_peak = max(self.memory_peak, self.memory_used)
        if segment.size_bytes < self._segment_bytes:
            self._open[key] = segment
        else:
            self._open.pop(key, None)
        return segment, offset

    def let_go(self, segment: Segment) -> None:
        """One body of the segment is no longer needed."""
        segment.live -= 1
        self.index_used -= INDEX_BYTES
        self.memory_used -= INDEX_BYTES
        if segment.live == 0:
            self._close_segment(segment)

    def room_given_back(self) -> None:
        self._room.notify()
        for share in self._shares:
            share.room.notify()

    def full_share(self, size_bytes: int) -> SpoolShare | None:
        """The share that has no room for it, neither in memory nor on disk."""
        full = (share for share in self._shares if not (share.has_memory(size_bytes) or share.has_disk(size_bytes)))
        return next(full, None)

    def _close_segment(self, segment: Segment) -> None:
        segment.close()
        self.disk_used -= segment.charged_bytes
        assert self.disk_used >= 0
        self._open = {key: other for key, other in self._open.items() if other is not segment}


class Spool:
    """A list of entries that grows at its end, is read by index, and is released from its start.

    An entry may be read any number of times until it is released: Spark may read a source twice.
    `name` says in messages whose spool it is ("query oslo/1f… edge 3"). `gives_way`: those who fill it can wait, so
    it leaves free what others were promised. `disk_only`: it is there to make room in memory, so it takes none.
    """

    def __init__(
        self,
        budget: Budget,
        directory: str | os.PathLike[str],
        name: str,
        *,
        gives_way: bool = False,
        disk_only: bool = False,
    ) -> None:
        self.name = name
        self.budget = budget
        self._gives_way = gives_way
        self._disk_only = disk_only
        self._promised_bytes = 0
        self._promise_left = 0
        self._held_bytes = 0
        self._directory = os.fspath(directory)
        self._entries: dict[int, Entry] = {}  # in memory
        self._index = DiskIndex()
        self._first = 0
        self._length = 0
        self._finished = False
        self._error: SkerryError | None = None
        self._closed = False
        self._changes = Callbacks()

    @property
    def first(self) -> int:
        """The first entry that was not released."""
        return self._first

    @property
    def length(self) -> int:
        """Entries appended since the beginning, released ones too: the next index."""
        return self._length

    @property
    def finished(self) -> bool:
        """Nothing will be appended, and nothing went wrong."""
        return self._finished and self._error is None

    @property
    def failed(self) -> SkerryError | None:
        return self._error

    @property
    def closed(self) -> bool:
        return self._closed

    def subscribe(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call back after each append, finish, fail and close (room given back: `Budget.subscribe`)."""
        return self._changes.subscribe(callback)

    def has_room(self, size_bytes: int) -> bool:
        return self.fits_memory(size_bytes) or self.budget.fits_disk(size_bytes, gives_way=self._gives_way)

    def fits_memory(self, size_bytes: int) -> bool:
        return not self._disk_only and self.budget.fits_memory(size_bytes, gives_way=self._gives_way)

    def promise(self, size_bytes: int) -> None:
        """Its sender may send so much unasked: spools that give way keep it free."""
        if not (self._finished or self._closed or self._error):
            self._promised_bytes = size_bytes
            self._count_promise()

    def append(self, entry: Entry) -> int:
        """Keep an entry and return its index; Overloaded when neither memory nor disk has room."""
        if self._error is not None:
            raise self._error
        if self._finished or self._closed:
            raise InternalError(f"{self.name}: append to a spool that was {'closed' if self._closed else 'finished'}")
        size = len(entry.body)
        if self.fits_memory(size):
            self.budget.take_memory(size)
            self._entries[self._length] = entry
        elif self.budget.fits_disk(size, gives_way=self._gives_way):
            self._index.add(self._length, self._store(entry))
        else:
            raise Overloaded(self._full(size))
        self._length += 1
        self._held_bytes += size + ENTRY_BYTES
        self._count_promise()
        self._changes.notify()
        return self._length - 1

    def read(self, index: int) -> Entry:
        """The entry at `index`. Past the end of a spool that failed, its error."""
        if index >= self._length and self._error is not None:
            raise self._error
        entry = self._entries.get(index)
        if entry is not None:
            return entry
        stored = self._index.get(index) if self._first <= index < self._length else None
        if stored is None:
            state = "closed" if self._closed else f"entries {self._first} to {self._length} are held"
            raise InternalError(f"{self.name}: no entry {index} in the spool ({state})")
        return Entry(self._load(index, stored), stored.rows, stored.decoded_bytes)

    def release(self, upto: int) -> None:
        """Let go of all entries below `upto`; a repeat, or a smaller `upto`, does nothing."""
        assert upto <= self._length, f"{self.name}: release of {upto} of {self._length}"
        if self._drop(upto):
            self.budget.room_given_back()

    def finish(self) -> None:
        """No entry will follow."""
        if not (self._finished or self._closed):
            self._finished = True
            self._end_promise()
            self._changes.notify()

    def fail(self, error: SkerryError) -> None:
        """The entries end here with an error; the first error stays."""
        if self._error is None and not self._closed:
            self._error = error
            self._end_promise()
            self._changes.notify()

    def close(self) -> None:
        """Give everything back."""
        if self._closed:
            return
        self._closed = True
        self._end_promise()
        dropped = self._drop(self._length)
        self._changes.notify()
        if dropped:
            self.budget.room_given_back()

    def _drop(self, upto: int) -> bool:
        first = self._first
        while self._first < upto:
            entry, stored = self._entries.pop(self._first, None), self._index.forget(self._first)
            self._first += 1
            if stored is not None:
                self._held_bytes -= stored.length + ENTRY_BYTES
                self.budget.let_go(stored.segment)
            else:
                assert entry is not None
                self._held_bytes -= len(entry.body) + ENTRY_BYTES
                self.budget.give_back_memory(len(entry.body))
        self._count_promise()
        return self._first > first

    def _count_promise(self) -> None:
        """What is held was sent: as much less is still to come."""
        left = max(0, self._promised_bytes - self._held_bytes)
        self.budget.promised_bytes += left - self._promise_left
        self._promise_left = left

    def _end_promise(self) -> None:
        if self._promised_bytes:
            self._promised_bytes = 0
            self._count_promise()
            self.budget.room_given_back()

    def _store(self, entry: Entry) -> Stored:
        body = memoryview(entry.body)
        try:
            segment, offset = self.budget.write(self._directory, body, gives_way=self._gives_way)
        except OSError as error:
            raise Overloaded(
                f"{self.name}: cannot spool to {self._directory}: {error.strerror or error}",
                suggestion=f"free some space under {self._directory}, or let the spool use another directory",
            ) from error
        return Stored(segment, offset, len(body), xxhash.xxh3_64_intdigest(body), entry.rows, entry.decoded_bytes)

    def _load(self, index: int, stored: Stored) -> bytes:
        try:
            body = stored.segment.read(stored.offset, stored.length)
        except OSError as error:
            raise SiteError(f"{self.name}: cannot read the spool in {self._directory}: {error.strerror}") from error
        if len(body) != stored.length or xxhash.xxh3_64_intdigest(body) != stored.checksum:
            raise SiteError(
                f"{self.name}: entry {index} of the spool in {self._directory} is damaged: its checksum differs",
                suggestion="check that disk",
            )
        return body

    def _full(self, size_bytes: int) -> str:
        budget = self.budget
        if (share := budget.full_share(size_bytes + ENTRY_BYTES)) is not None:
            return f"{self.name}: spool full: {share.told()}"
        if budget.index_is_full:
            return (
                f"{self.name}: spool full: {budget.index_used // INDEX_BYTES} batches are on disk, more than "
                f"{_size(budget.index_bytes)} of memory can keep account of (a quarter of limits.spool_memory_bytes)"
            )
        return (
            f"{self.name}: spool full: {_size(budget.memory_used)} of memory and {_size(budget.disk_used)} of disk "
            f"are used, of {_size(budget.memory_bytes)} (limits.spool_memory_bytes) "
            f"and {_size(budget.disk_bytes)} (limits.spool_disk_bytes)"
        )


def _size(size_bytes: int) -> str:
    for unit, name in ((GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB")):
        if size_bytes >= unit:
            return f"{size_bytes / unit:.4g} {name}"
    return f"{size_bytes} bytes"

"""Rows of a large write at its initiator: routed by bucket and sent ahead to the members that keep them, in chunks.

Nothing counts before the commit, which names them (docs/adr/0054).
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from skerry.member.resources import Workers
from skerry.member.staging import RowsHere
from skerry.model.commits import Part, Policy, Staged, Versions
from skerry.model.errors import PeerError, SkerryError
from skerry.model.ids import QueryId
from skerry.model.limits import STAGED_AHEAD, STAGED_CHUNK_BYTES, STAGED_CHUNK_ROWS
from skerry.model.rights import Rights
from skerry.model.sharded import Definition
from skerry.tables.bucket import buckets_of
from skerry.tables.routing import Routed
from skerry.wire.codec import encode_batch
from skerry.wire.messages import Message
from skerry.wire.staging_messages import DropRows, RowsStaged, StageRows
from skerry.wire.values import error_of

_STAGE_DIGITS = 15  # of 4 bits: a number of a message has 64


class Moved(NamedTuple):
    """Where all rows of a move go, and the range of buckets that they are of."""

    target: str
    buckets: tuple[int, int]


class _Link:
    """To one member: `sent` chunks, of which those below `taken` have arrived and are kept."""

    def __init__(self) -> None:
        self.sent = 0
        self.taken = 0


class Bulk:
    """One run of a statement's rows. `finish` is for the commit; `drop` in any case at the end."""

    def __init__(
        self,
        owner: Bulks,
        definition: Definition,
        policy: Policy,
        query: QueryId,
        stage: int,
        is_changes: bool,
        moving: Moved | None = None,
    ) -> None:
        self.rows = 0
        self._is_changes = is_changes
        self._moving = moving
        self.definition = definition
        self._owner = owner
        self._policy = policy
        self._key = query, stage
        self._links: dict[str, _Link] = {}
        self._changed = asyncio.Event()
        self._error: SkerryError | None = None

    async def add(self, make: Callable[[], pa.RecordBatch], rights: Rights) -> None:
        """Whole rows of the table, or changes, which a thread makes. Returns when there is room for more; raises why
        they are not taken."""
        for chunk in await self._owner.workers.run(self._chunks, make):
            await self._send(chunk, rights)

    def _chunks(self, make: Callable[[], pa.RecordBatch]) -> list[Chunk]:
        rows = make()
        self.rows += rows.num_rows
        if self._moving is not None:
            return list(_pieces(self._moving.target, rows, self._owner.member))
        return list(chunks_of(self.definition, rows, self._owner.member))

    async def _send(self, chunk: Chunk, rights: Rights) -> None:
        link = self._links.setdefault(chunk.member, _Link())
        await self._wait(lambda: link.sent - link.taken < STAGED_AHEAD)
        table, of_map = self.definition.table, self.definition.buckets.version
        what = *self._key, link.sent, table.id, table.version, of_map, self._policy, rights.user, rights.roles
        if isinstance(chunk.rows, bytes):
            buckets = self._moving.buckets if self._moving is not None else None
            message = StageRows(*what, chunk.rows, self._is_changes, buckets)
        else:
            message = RowsHere(*what, b"", self._is_changes, batch=chunk.rows)
        self._owner.send(chunk.member, message)
        link.sent += 1

    async def arrived(self) -> None:
        """When all rows that were added are where they belong."""
        await self._wait(lambda: all(link.taken == link.sent for link in self._links.values()))

    async def finish(self, rights: Rights, *, is_ordered: bool) -> Routed:
        """When all rows are where they belong."""
        await self.arrived()
        table, buckets = self.definition.table, self.definition.buckets
        staged = Staged(table.id, (str(self._key[1]),), self._policy, is_ordered, is_changes=self._is_changes)
        versions = (Versions(table.id, table.version, buckets.version),)
        part = Part((), (staged,), versions, rights.user, rights.roles)
        copies = 1 if table.distributed_by else len(table.members)
        return Routed(dict.fromkeys(sorted(self._links), part), copies, table.name)

    def drop(self) -> None:
        """Members forget what they were sent; a commit has taken it by then."""
        self._owner.forget(self._key)
        for member in self._links:
            self._owner.send(member, DropRows(*self._key))

    async def _wait(self, is_there: Callable[[], bool]) -> None:
        while self._error is None and not is_there():
            self._changed.clear()
            await self._changed.wait()  # owner: the query's deadline; a member that is lost ends it
        if self._error is not None:
            raise self._error

    # --- what members say ---------------------------------------------------------------------------------------------
    def told(self, sender: str, message: RowsStaged) -> None:
        link = self._links.get(sender)
        if link is None:
            return
        if message.failure is not None:
            self.failed(error_of(message.failure))
        elif not link.taken <= message.upto <= link.sent:
            self.failed(PeerError(f"site {sender} has taken rows that it was not sent"))
        else:
            link.taken = message.upto
        self._changed.set()

    def lost(self, peer: str, error: SkerryError) -> None:
        if peer in self._links:
            self.failed(error)

    def failed(self, error: SkerryError) -> None:
        self._error = self._error or error
        self._changed.set()


class Bulks:
    """All that are under way at this member, as initiator. Belongs to its loop."""

    def __init__(self, member: str, send: Callable[[str, Message], None], workers: Workers) -> None:
        self.member = member
        self.send = send
        self.workers = workers
        self._open: dict[tuple[QueryId, int], Bulk] = {}

    def begin(self, definition: Definition, policy: Policy, query: QueryId, *, is_changes: bool = False) -> Bulk:
        """The stage is drawn: what members still say of the query's rows before these is not said of these."""
        stage = int(uuid.uuid4().hex[:_STAGE_DIGITS], 16)
        bulk = self._open[query, stage] = Bulk(self, definition, policy, query, stage, is_changes)
        return bulk

    def move(self, definition: Definition, query: QueryId, moving: Moved) -> Bulk:
        """Rows that were committed long ago, to the member that shall have them."""
        bulk = self._open[query, 0] = Bulk(self, definition, Policy.FAIL, query, 0, False, moving)
        return bulk

    def forget(self, key: tuple[QueryId, int]) -> None:
        self._open.pop(key, None)

    def receive(self, sender: str, message: RowsStaged) -> None:
        bulk = self._open.get((message.query, message.stage))
        if bulk is not None:
            bulk.told(sender, message)

    def peer_lost(self, peer: str, error: SkerryError) -> None:
        for bulk in list(self._open.values()):
            bulk.lost(peer, error)


class Chunk(NamedTuple):
    """`rows`: as they travel; for the member itself as they are."""

    member: str
    rows: bytes | pa.RecordBatch


def chunks_of(definition: Definition, rows: pa.RecordBatch, here: str) -> Iterator[Chunk]:
    """The rows, in their order for each member, in pieces that fit a message."""
    table, groups = definition.table, definition.buckets.groups
    if not rows.num_rows:
        return
    if not table.distributed_by or len({member for *_, member in groups}) == 1:
        for member in table.members if not table.distributed_by else (groups[0][2],):
            yield from _pieces(member, rows, here)
        return
    places = buckets_of([rows.column(name) for name in table.distributed_by], table.buckets)
    owner = np.searchsorted(np.array([upto for _, upto, _ in groups]), places, "right")
    names = np.array([member for *_, member in groups])[owner]
    for member in sorted(set(names.tolist())):
        yield from _pieces(member, rows.take(pa.array(np.flatnonzero(names == member))), here)


def _pieces(member: str, rows: pa.RecordBatch, here: str) -> Iterator[Chunk]:
    if member == here:
        yield Chunk(member, rows)
        return
    by_bytes = max(1, STAGED_CHUNK_BYTES * rows.num_rows // max(1, rows.nbytes))
    count = min(STAGED_CHUNK_ROWS, by_bytes)
    for at in range(0, max(1, rows.num_rows), count):
        yield Chunk(member, encode_batch(rows.slice(at, count)).to_pybytes())

"""Rows that were sent ahead of a large write, at the member that keeps them: taken in chunks, and kept aside."""

from __future__ import annotations

import asyncio
import os
import uuid
from collections.abc import Callable, Coroutine
from typing import Any

import pyarrow as pa

from skerry.member.resources import Workers
from skerry.model import trace
from skerry.model.errors import InternalError, Overloaded, PeerError, SiteError, SkerryError
from skerry.model.ids import QueryId
from skerry.model.limits import STAGED_AHEAD, STAGED_AT_ONCE, STAGED_CHUNK_BYTES, STAGED_MEMORY_BYTES
from skerry.tables.flushing import STAGING
from skerry.tables.shard import Shard
from skerry.tables.spool import Spool
from skerry.wire.codec import decode_batch
from skerry.wire.messages import Message
from skerry.wire.staging_messages import DropRows, RowsStaged, StageRows
from skerry.wire.values import failure_of

_DECODED_BYTES = 64 * STAGED_CHUNK_BYTES  # one row may be larger than a chunk


class RowsHere(StageRows, frozen=True, kw_only=True):
    """To the member itself, which has looked at each value before. `rows` is empty. It has no kind: it never leaves."""

    batch: pa.RecordBatch


class _Stage:
    """`upto`: chunks that came; `waiting` of them are not taken yet."""

    def __init__(self, spool: Spool) -> None:
        self.spool = spool
        self.upto = 0
        self.waiting = 0
        self.turn = asyncio.Lock()
        self.uses = 0
        self.is_dropped = False
        self.error: SkerryError | None = None


class Staging:
    """Belongs to the member's loop. `admit` gives the table's shard, or raises why the rows are not taken."""

    def __init__(
        self,
        member: str,
        folder: str,
        workers: Workers,
        send: Callable[[str, Message], None],
        own: Callable[[Coroutine[Any, Any, None], str], None],
        admit: Callable[[str, StageRows], Shard],
    ) -> None:
        self._member = member
        self._folder = os.path.join(folder, STAGING)
        self._workers = workers
        self._send = send
        self._own = own
        self._admit = admit
        self._stages: dict[tuple[QueryId, int], _Stage] = {}

    def receive(self, sender: str, message: StageRows | DropRows) -> None:
        """Only its initiator speaks of a query: `refuse_forged` has seen to that."""
        key = message.query, message.stage
        if isinstance(message, DropRows):
            self._drop(key)
            return
        try:
            stage = self._stages.get(key)
            if message.number == 0 and stage is None:
                stage = self._stages[key] = self._begun(sender, message)
            if stage is None or stage.error is not None:
                return  # it was told
            if message.number != stage.upto or stage.waiting >= STAGED_AHEAD:
                raise PeerError(f"query {message.query}: rows {message.number} where {stage.upto} were due")
            stage.upto += 1
            stage.waiting += 1
        except SkerryError as error:
            self._drop(key)
            self._send(sender, RowsStaged(*key, self._member, 0, failure_of(error, self._member)))
            return
        self._own(self._take(sender, key, stage, message), f"rows of query {message.query}")

    def _begun(self, sender: str, message: StageRows) -> _Stage:
        if len(self._stages) >= STAGED_AT_ONCE:
            raise Overloaded(
                f"site {self._member}: {len(self._stages)} large writes are under way; try again shortly",
                member=self._member,
            )
        shard = self._admit(sender, message)
        path = os.path.join(self._folder, uuid.uuid4().hex)
        ranges = shard.ranges if message.buckets is None else (message.buckets,)
        spool = Spool(shard.table, path, ranges, self._memory_bytes, is_changes=message.is_changes)
        return _Stage(spool)

    def _memory_bytes(self) -> int:
        """The share of each. Asked in a thread."""
        return STAGED_MEMORY_BYTES // max(1, len(self._stages))

    async def _take(self, sender: str, key: tuple[QueryId, int], stage: _Stage, message: StageRows) -> None:
        """In the order in which they came: whoever asks for a lock first has it first."""
        async with stage.turn:
            failure = None
            try:
                if stage.error is None and not stage.is_dropped:
                    await self._workers.run(_add, stage.spool, message)
            except SkerryError as error:
                stage.error = error
                failure = failure_of(error, self._member)
            except Exception as error:
                stage.error = InternalError(f"{type(error).__name__}: {error}", member=self._member)
                failure = failure_of(stage.error)
                trace.emit(trace.WorkFailed(f"rows of query {message.query}"), error)
            finally:
                stage.waiting -= 1
            if stage.error is None or failure is not None:
                self._send(sender, RowsStaged(*key, self._member, message.number + 1, failure))
            if stage.is_dropped:
                await self._workers.run(stage.spool.remove)

    # --- for the commit -----------------------------------------------------------------------------------------------
    async def ready(self, query: QueryId, number: int) -> Spool:
        """All rows that were sent; SiteError if they are not here any more. They stay until `done`."""
        stage = self._stages.get((query, number))
        if stage is None or stage.error is not None or stage.waiting:
            raise SiteError(
                f"site {self._member}: the rows of query {query} are not here any more; nothing was written",
                member=self._member,
                suggestion="run the statement again",
            )
        stage.uses += 1
        try:
            async with stage.turn:
                await self._workers.run(stage.spool.end)
        except BaseException:
            self.done(query, number)
            raise
        return stage.spool

    def done(self, query: QueryId, number: int) -> None:
        stage = self._stages.get((query, number))
        if stage is not None:
            stage.uses -= 1
            if stage.is_dropped and not stage.uses:
                self._remove((query, number), stage)

    def lost(self, peer: str) -> None:
        """Who sent them is gone."""
        for key in [key for key in self._stages if key[0].initiator == peer]:
            self._drop(key)

    def _drop(self, key: tuple[QueryId, int]) -> None:
        stage = self._stages.get(key)
        if stage is not None:
            stage.is_dropped = True
            if not stage.uses:
                self._remove(key, stage)

    def _remove(self, key: tuple[QueryId, int], stage: _Stage) -> None:
        del self._stages[key]
        if not stage.waiting:
            self._own(self._workers.run(stage.spool.remove), "staged rows")


def _add(spool: Spool, message: StageRows) -> None:
    if isinstance(message, RowsHere):
        spool.add(message.batch)
    else:
        spool.add(decode_batch(message.rows, spool.schema, _DECODED_BYTES))

"""Rows that a client sends for one statement: a few chunks wait here, and the client waits while they do."""

from __future__ import annotations

import asyncio
from collections import deque

import pyarrow as pa

from skerry.member.requests import TakeRows
from skerry.model.errors import PeerError, SiteError, SkerryError, UserError
from skerry.model.ids import QueryId
from skerry.model.limits import STAGED_AHEAD, Limits
from skerry.wire.codec import decode_batch, decode_schema


class Load:
    """`session`: of the client that sends. `is_asked_again`: it only wants to know what became of an earlier one."""

    def __init__(self, query: QueryId, session: str, limits: Limits, *, is_asked_again: bool) -> None:
        self.session = session
        self._query = query
        self._limits = limits
        self._is_asked_again = is_asked_again
        self._schema: pa.Schema | None = None
        self._waiting: deque[pa.RecordBatch] = deque()
        self._upto = 0
        self._is_whole = False
        self._error: SkerryError | None = None
        self._changed = asyncio.Condition()

    def begin(self) -> None:
        if self._is_asked_again:
            raise SiteError(
                f"query {self._query}: the connection was lost, and nothing was written", suggestion="load them again"
            )

    # --- from the client ----------------------------------------------------------------------------------------------
    async def put(self, request: TakeRows) -> None:
        """Returns when there is room for one more. Raises why there is none, and none will be."""
        async with self._changed:
            try:
                self._take(request)
            except SkerryError as error:
                self._error = self._error or error
                raise
            finally:
                self._changed.notify_all()
            # owner: the statement, which takes rows or ends
            await self._changed.wait_for(lambda: len(self._waiting) < STAGED_AHEAD or self._error is not None)
            if self._error is not None:
                raise self._error

    def _take(self, request: TakeRows) -> None:
        if self._error is not None:
            raise self._error
        if request.number != self._upto or self._is_whole or len(self._waiting) >= 2 * STAGED_AHEAD:
            raise PeerError(f"query {self._query}: rows {request.number} where {self._upto} were due")
        if self._schema is None:
            self._schema = decode_schema(request.schema)
        if request.rows:
            self._waiting.append(decode_batch(request.rows, self._schema, self._limits.frame_bytes))
        self._upto += 1
        self._is_whole = request.is_last

    async def gone(self) -> None:
        """The client's connection is lost: what has not come does not come any more."""
        async with self._changed:
            if not self._is_whole:
                self._error = self._error or SiteError(
                    f"query {self._query}: the connection was lost before all rows had come; nothing was written",
                    suggestion="load them again",
                )
            self._changed.notify_all()

    async def over(self, error: SkerryError | None) -> None:
        """The statement takes no more."""
        async with self._changed:
            self._error = self._error or error or UserError(f"query {self._query} takes no more rows")
            self._waiting.clear()
            self._changed.notify_all()

    # --- for the statement --------------------------------------------------------------------------------------------
    async def schema(self) -> pa.Schema:
        async with self._changed:
            await self._changed.wait_for(lambda: self._schema is not None or self._error is not None)
            return self._checked(self._schema)

    async def next(self) -> pa.RecordBatch | None:
        """None at the end. All must have come: an error counts, whatever still waits."""
        async with self._changed:
            await self._changed.wait_for(lambda: self._waiting or self._is_whole or self._error is not None)
            self._checked(self._schema)
            batch = self._waiting.popleft() if self._waiting else None
            self._changed.notify_all()
            return batch

    async def some(self, rows_max: int, bytes_max: int) -> tuple[pa.RecordBatch, bool]:
        """The first rows, until there are more than that; True if these are all."""
        batches: list[pa.RecordBatch] = []
        is_last = False
        while sum(batch.num_rows for batch in batches) <= rows_max and sum(b.nbytes for b in batches) <= bytes_max:
            batch = await self.next()
            if batch is None:
                is_last = True
                break
            batches.append(batch)
        whole = pa.Table.from_batches(batches, await self.schema()).combine_chunks().to_batches()
        return whole[0] if whole else pa.RecordBatch.from_pylist([], await self.schema()), is_last

    def _checked(self, schema: pa.Schema | None) -> pa.Schema:
        if self._error is not None:
            raise self._error
        return schema

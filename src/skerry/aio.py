"""Skerry for asyncio: `skerry.connect` with awaitable methods.

    async with skerry.aio.connect("skerry://host:port") as connection:
        async with connection.cursor() as cursor:
            await cursor.execute("SELECT …")
            async for row in cursor: …

A thread of the connection's own waits for each call that waits for the member; the event loop never does. A task that
is cancelled cancels the query it waits for, and is not held up by it.
"""

from __future__ import annotations

import asyncio
import functools
import threading
from collections.abc import AsyncIterator, Callable, Generator, Iterable
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from types import TracebackType
from typing import Any, ParamSpec, TypeVar

import pyarrow as pa

from skerry.client import dbapi
from skerry.client.arguments import Parameters
from skerry.client.pep249 import Description, Row
from skerry.client.prepared import PreparedStatement as SyncStatement
from skerry.client.status import QueryStatus
from skerry.model.ids import QueryId
from skerry.model.progress import MemberState, QueryInfo
from skerry.model.results import Parameter

__all__ = ["Connection", "Cursor", "PreparedStatement", "connect"]

# Calls of one connection that may wait at once, a thread each; threads are made when they are needed.
CALLS_AT_ONCE = 64

P = ParamSpec("P")
T = TypeVar("T")


_NO_TURN = nullcontext()


class _Threads:
    """Runs blocking calls. Cancelling the one who waits runs `stop`, and does not wait for the call to end."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(CALLS_AT_ONCE, thread_name_prefix="skerry-aio")

    async def run(
        self,
        call: Callable[[], T],
        stop: Callable[[], object] = lambda: None,
        turn: AbstractContextManager[object] = _NO_TURN,
    ) -> T:
        """`turn` is held by the call: one that nobody waits for any more may still be about to stop."""
        unwanted = threading.Event()

        def work() -> T:
            with turn:
                if unwanted.is_set():
                    raise CancelledError
                try:
                    return call()
                finally:
                    if unwanted.is_set():
                        stop()  # the first time may have come before there was anything to stop

        future = asyncio.get_running_loop().run_in_executor(self._pool, work)
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            unwanted.set()
            future.cancel()
            future.add_done_callback(_forget)
            stop()
            raise

    def close(self) -> None:
        self._pool.shutdown(wait=False)


def _forget(future: asyncio.Future[Any]) -> None:
    """Nobody is there for its error any more."""
    if not future.cancelled():
        future.exception()


class connect:
    """`await connect(url, …)` or `async with connect(url, …) as connection`; options as of `skerry.connect`."""

    def __init__(self, url: str, **options: Any) -> None:
        self._call = functools.partial(dbapi.connect, url, **options)
        self._connection: Connection | None = None

    def __await__(self) -> Generator[Any, None, Connection]:
        return self._open().__await__()

    async def __aenter__(self) -> Connection:
        self._connection = await self._open()
        return self._connection

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._connection is not None
        await self._connection.close()

    async def _open(self) -> Connection:
        threads = _Threads()
        opened: list[dbapi.Connection] = []

        def stop() -> None:
            for connection in opened:
                connection._links.close(wait=False)

        try:
            await threads.run(lambda: opened.append(self._call()), stop)
        except BaseException:
            threads.close()
            raise
        return Connection(opened[0], threads)


class Connection:
    """A `skerry.Connection` for one event loop; `sync` is the connection itself."""

    def __init__(self, connection: dbapi.Connection, threads: _Threads) -> None:
        self.sync = connection
        self._threads = threads

    @property
    def member(self) -> str:
        return self.sync.member

    @property
    def closed(self) -> bool:
        return self.sync.closed

    @property
    def usable(self) -> bool:
        return self.sync.usable

    @property
    def last_commit(self) -> int:
        return self.sync.last_commit

    @last_commit.setter
    def last_commit(self, commit: int) -> None:
        self.sync.last_commit = commit

    def cursor(self) -> Cursor:
        return Cursor(self.sync.cursor(), self._threads)

    async def attach(self, query_id: QueryId | str) -> Cursor:
        return Cursor(await self._threads.run(lambda: self.sync.attach(query_id)), self._threads)

    async def prepare(self, sql: str) -> PreparedStatement:
        return PreparedStatement(await self._threads.run(lambda: self.sync.prepare(sql)), self)

    @property
    def autocommit(self) -> bool:
        return self.sync.autocommit

    @autocommit.setter
    def autocommit(self, autocommit: bool) -> None:
        self.sync.autocommit = autocommit

    async def commit(self) -> None:
        await self._threads.run(self.sync.commit)

    async def rollback(self) -> None:
        await self._threads.run(self.sync.rollback)

    async def members(self) -> tuple[MemberState, ...]:
        return await self._threads.run(self.sync.members)

    async def queries(self, member: str | None = None) -> tuple[QueryInfo, ...]:
        return await self._threads.run(lambda: self.sync.queries(member))

    async def status(self, query_id: QueryId | str) -> QueryStatus:
        return await self._threads.run(lambda: self.sync.status(query_id))

    async def cancel(self, query_id: QueryId | str) -> None:
        await self._threads.run(lambda: self.sync.cancel(query_id))

    async def close(self) -> None:
        try:
            await self._threads.run(self.sync.close)
        finally:
            self._threads.close()

    async def __aenter__(self) -> Connection:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


class PreparedStatement:
    """A `skerry` prepared statement with an awaitable `execute`."""

    def __init__(self, statement: SyncStatement, connection: Connection) -> None:
        self.sync = statement
        self._connection = connection

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        return self.sync.parameters

    async def execute(self, parameters: Parameters | None = None, **options: Any) -> Cursor:
        """Run it with these values; the cursor is a new one."""
        self.sync.check(parameters)
        return await self._connection.cursor().execute(self.sync.sql, parameters, **options)


class Cursor:
    """A `skerry.Cursor` with awaitable methods; one task uses it at a time, but for `cancel`."""

    def __init__(self, cursor: dbapi.Cursor, threads: _Threads) -> None:
        self.sync = cursor
        self._threads = threads
        self._turn = threading.Lock()

    @property
    def query_id(self) -> Any:
        return self.sync.query_id

    @property
    def description(self) -> list[Description] | None:
        return self.sync.description

    @property
    def rowcount(self) -> int:
        return self.sync.rowcount

    @property
    def rownumber(self) -> int | None:
        return self.sync.rownumber

    @property
    def arraysize(self) -> int:
        return self.sync.arraysize

    @arraysize.setter
    def arraysize(self, rows: int) -> None:
        self.sync.arraysize = rows

    async def execute(self, operation: str, parameters: Parameters | None = None, **options: Any) -> Cursor:
        await self._wait(lambda: self.sync.execute(operation, parameters, **options))
        return self

    async def executemany(self, operation: str, seq_of_parameters: Iterable[Parameters], **options: Any) -> Cursor:
        await self._wait(lambda: self.sync.executemany(operation, seq_of_parameters, **options))
        return self

    async def load(self, table: str, rows: Any, **options: Any) -> Cursor:
        await self._wait(lambda: self.sync.load(table, rows, **options))
        return self

    async def fetchone(self) -> Row | None:
        return await self._wait(self.sync.fetchone)

    async def fetchmany(self, size: int | None = None) -> list[Row]:
        return await self._wait(lambda: self.sync.fetchmany(size))

    async def fetchall(self) -> list[Row]:
        return await self._wait(self.sync.fetchall)

    async def fetch_page(self) -> list[Row]:
        return await self._wait(self.sync.fetch_page)

    async def fetch_arrow_table(self) -> pa.Table:
        return await self._wait(self.sync.fetch_arrow_table)

    async def fetch_pandas(self) -> Any:
        return await self._wait(self.sync.fetch_pandas)

    async def fetch_polars(self) -> Any:
        return await self._wait(self.sync.fetch_polars)

    async def record_batches(self) -> AsyncIterator[pa.RecordBatch]:
        """The rest of the result as Arrow, batch by batch."""
        reader = await self._wait(self.sync.fetch_record_batch_reader)
        while (batch := await self._wait(functools.partial(_next_batch, reader))) is not None:
            yield batch

    async def status(self) -> QueryStatus:
        return await self._threads.run(self.sync.status)

    async def progress(self) -> QueryStatus:
        return await self._threads.run(self.sync.status)

    async def cancel(self) -> None:
        """At once: it only leaves word for the link's own thread."""
        self.sync.cancel()

    async def close(self) -> None:
        self.sync.close()

    def __aiter__(self) -> AsyncIterator[Row]:
        return self._rows()

    async def _rows(self) -> AsyncIterator[Row]:
        # A page at a time: a thread for each row would cost more than the row.
        while rows := await self._wait(self.sync.fetch_page):
            for row in rows:
                yield row

    async def __aenter__(self) -> Cursor:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _wait(self, call: Callable[[], T]) -> T:
        return await self._threads.run(call, self.sync.cancel, self._turn)


def _next_batch(reader: pa.RecordBatchReader) -> pa.RecordBatch | None:
    try:
        return reader.read_next_batch()
    except StopIteration:
        return None

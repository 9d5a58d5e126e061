"""A member's Spark side without the rest of the member: a task port on a real Unix socket, real spools, one engine."""

from __future__ import annotations

import asyncio
import itertools
import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa

from skerry.exchange.intake import Attempt, Intake
from skerry.exchange.spool import Budget, Entry, Spool
from skerry.member.jobs import fill_from_table
from skerry.member.stores import DirectStore, LaneStore
from skerry.member.taskport import Store, TaskPort
from skerry.model.ids import QueryId
from skerry.model.limits import GIB, MIB, Limits
from skerry.model.results import Schema
from skerry.model.table import Column
from skerry.spark.engine import EdgeInput, Engine, Job, JobResult, SinkOutput, TableFiles
from skerry.spark.recycled import RecycledSail
from skerry.spark.views import Views
from skerry.wire.codec import decode_batch, decode_schema, decoded_bytes, encode_batch
from skerry.wire.listener import Listener
from skerry.wire.session import Identity

CLUSTER = "test"
DEADLINE_S = 100.0  # nothing here takes long, but the machine may be busy; a test has 120 s
_numbers = itertools.count(1)


class Outcome(msgspec.Struct):
    """One job with a sink that ran to its end: what it announced and what the member holds."""

    schema: Schema
    result: JobResult
    winners: list[Attempt]
    spool: Spool

    @property
    def table(self) -> pa.Table:
        return table_of(self.spool, decode_schema(self.schema.arrow))

    @property
    def rows(self) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = self.table.to_pylist()
        return rows


class Site:
    """Use as `async with`; everything it opened is closed at the end, and nothing may be left in the engine."""

    def __init__(self, engine: Engine, limits: Limits | None = None) -> None:
        self.engine = engine
        self.limits = limits or Limits()
        self.port = TaskPort(self.limits)
        self.budget = Budget(64 * MIB, 16 * GIB)
        self._directory = tempfile.mkdtemp(prefix="s")
        self._listener: Listener | None = None
        self._queries: list[QueryId] = []

    async def __aenter__(self) -> Site:
        address = f"unix:{self._directory}/s" if self.engine.tasks_are_here else "tcp:127.0.0.1:0"
        self._listener = await self.port.listen(address, Identity(CLUSTER, "oslo", 1))
        return self

    async def __aexit__(self, *_: object) -> None:
        for query in self._queries:
            self.port.forget(query)
        assert self._listener is not None
        await self._listener.stop()
        shutil.rmtree(self._directory)

    @property
    def address(self) -> str:
        assert self._listener is not None
        return self._listener.address

    def query(self) -> QueryId:
        query = QueryId("oslo", f"{next(_numbers):032x}")
        self._queries.append(query)
        return query

    def spool(self, budget: Budget | None = None) -> Spool:
        return Spool(budget or self.budget, self._directory, "test")

    def edge(
        self, query: QueryId, number: int, columns: tuple[Column, ...], *spools: Spool, shares: int = 2
    ) -> EdgeInput:
        self.port.register_edge(query, number, f"token-{number}", spools)
        return EdgeInput(query, number, columns, self.address, f"token-{number}", shares, CLUSTER)

    def sink(self, query: QueryId, intake: Intake, store: Store, fragment: int = 1) -> SinkOutput:
        self.port.register_sink(query, fragment, "sink-token", intake, store)
        return SinkOutput(query, fragment, self.address, "sink-token", CLUSTER)

    def lanes(self) -> LaneStore:
        return LaneStore(self.budget, self._directory, "test")

    async def collect(
        self,
        sql: str,
        *,
        tables: Mapping[str, TableFiles] | None = None,
        edges: Mapping[str, EdgeInput] | None = None,
        parameters: Mapping[str, Any] | None = None,
        query: QueryId | None = None,
        tag: str = "",
        is_narrow: bool = False,
        gives_few: bool = False,
    ) -> Outcome:
        """Run a fragment whose rows leave through the sink, to its proven end; few may be its answer instead."""
        query = query or self.query()
        spool = self.spool()
        intake = Intake(1, self.engine.retries_tasks)
        output = self.sink(query, intake, DirectStore(spool, waits=False))
        schemas: list[Schema] = []
        job = Job(tag or query.local, sql, tables or {}, edges or {}, parameters or {}, output, is_narrow)
        result = await self.run(msgspec.structs.replace(job, gives_few=gives_few), schemas.append)
        winners = intake.settle(result.sink_rows)
        if result.table is not None:
            fill_from_table(spool, result.table, self.limits)
        else:
            spool.finish()
        return Outcome(schemas[0], result, winners, spool)

    async def drive(self, sql: str, **leaves: Any) -> tuple[Schema, pa.Table]:
        """Run a fragment whose rows return through the driver; without edges as a small one, if not told otherwise."""
        schemas: list[Schema] = []
        job = Job(
            self.query().local,
            sql,
            leaves.get("tables", {}),
            leaves.get("edges", {}),
            leaves.get("parameters", {}),
            None,
            is_small=leaves.get("is_small", not leaves.get("edges")),
        )
        result = await self.run(job, schemas.append)
        assert result.table is not None
        return schemas[0], result.table

    async def run(self, job: Job, on_schema: Callable[[Schema], None] = lambda schema: None) -> JobResult:
        async with asyncio.timeout(DEADLINE_S):
            return await asyncio.to_thread(self.engine.run, job, on_schema)

    async def cancel(self, query: QueryId, tag: str, running: asyncio.Task[Any]) -> BaseException:
        """As a member does it: refuse the tasks, and cancel again and again until the job's thread is back.

        Cancelled first: a task that is refused a moment earlier fails, and its job with it, for that reason.
        """
        async with asyncio.timeout(DEADLINE_S):
            while not running.done():
                await asyncio.to_thread(self.engine.cancel, tag)
                self.port.forget(query)
                await asyncio.wait({running}, timeout=0.05)
        error = running.exception()
        assert error is not None, "the job was cancelled, yet it answered"
        return error


def entries(table: pa.Table, batch_rows: int = 1000) -> Iterable[Entry]:
    for batch in table.combine_chunks().to_batches(max_chunksize=batch_rows):
        yield Entry(encode_batch(batch), batch.num_rows, decoded_bytes(batch))


def fill(spool: Spool, table: pa.Table, batch_rows: int = 1000) -> Spool:
    """Append all rows and finish."""
    for entry in entries(table, batch_rows):
        spool.append(entry)
    spool.finish()
    return spool


def table_of(spool: Spool, schema: pa.Schema) -> pa.Table:
    bodies = [spool.read(index) for index in range(spool.length)]
    return pa.Table.from_batches([decode_batch(entry.body, schema, GIB) for entry in bodies], schema=schema)


def files(folder: Path, name: str, *paths: Path, columns: tuple[Column, ...] = (), **more: Any) -> TableFiles:
    listing = TableFiles("oslo", name, "parquet", {}, str(folder), tuple(str(path) for path in paths), 1, columns)
    return msgspec.structs.replace(listing, **more)


def views_of(engine: Any) -> Views:
    views: Views = (engine.current if isinstance(engine, RecycledSail) else engine)._views
    return views


async def until(condition: Callable[[], bool]) -> None:
    """Wait for a condition that only polling shows, e.g. of Spark's own state."""
    async with asyncio.timeout(DEADLINE_S):
        while not condition():
            await asyncio.sleep(0.01)

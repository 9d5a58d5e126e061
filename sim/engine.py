"""A Spark in memory: jobs are coroutines whose tasks speak the task protocol to their member (docs/protocol.md, 6).

Its SQL is `SELECT '…'`, with words in the string: `make lanes=2 batches=3 rows=5` (a scan), `pass` (the rows of all
edges), `limit=4` (some of them) and `count`. `hashed`: with a hash of each row as the last column. Words like
`fail=0:1` plant a failure.
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
from collections.abc import Awaitable, Callable, Collection, Sequence
from random import Random
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa

from sim.loop import Process
from skerry.exchange.intake import SinkRow, body_hash, combine
from skerry.model.config import TableConfig
from skerry.model.errors import PeerError, SiteError, SkerryError
from skerry.model.limits import Limits
from skerry.model.names import Moment
from skerry.model.results import Schema
from skerry.model.sources import Told
from skerry.model.table import Column
from skerry.spark.engine import EdgeInput, Job, JobResult, SlotPool, TableFiles
from skerry.wire.codec import decode_batch, decoded_bytes, encode_batch, encode_schema
from skerry.wire.frames import BATCH, ConnectionLost, Frame, decode, encode_batch_frame, split_batch
from skerry.wire.messages import (
    PROTOCOL_VERSIONS,
    Batch,
    Hello,
    Refused,
    SinkEnd,
    SinkOpen,
    SinkTaken,
    SourceEnd,
    SourceOpen,
)
from skerry.wire.tcp import Connection, connect, login
from skerry.wire.values import error_of

if TYPE_CHECKING:
    from sim.cluster import Cluster

ARROW = pa.schema([("k", pa.int64()), ("lane", pa.int64()), ("n", pa.int64()), ("pad", pa.string())])
COLUMNS = (Column("k", "bigint"), Column("lane", "bigint"), Column("n", "bigint"), Column("pad", "string"))
SCHEMA = Schema(COLUMNS, encode_schema(ARROW))
HASHED_ARROW = ARROW.append(pa.field("h", pa.int64()))
HASHED_COLUMNS = (*COLUMNS, Column("h", "bigint"))
HASHED_SCHEMA = Schema(HASHED_COLUMNS, encode_schema(HASHED_ARROW))

Row = tuple[int, int, int]
Take = Callable[[Any, int, int], Awaitable[bool]]  # body, rows, decoded bytes; False: enough
Feed = Callable[[Take], Awaitable[None]]


@functools.lru_cache(maxsize=20_000)
def made_batch(lane: int, first: int, rows: int) -> tuple[Any, int]:
    """Rows `first` and on of a lane, encoded; keys of a lane never fall."""
    return encoded([(n // 2, lane, n) for n in range(first, first + rows)])


@functools.lru_cache(maxsize=20_000)
def hashed_batch(lane: int, first: int, rows: int) -> tuple[Any, int]:
    """The same rows with their hashes."""
    batch = decode_batch(made_batch(lane, first, rows)[0], ARROW, 1 << 26)
    numbers = [(lane * 1_000_003 + n) * 0x9E3779B97F4A7C15 & (1 << 64) - 1 for n in range(first, first + rows)]
    hashes = pa.array([number - (1 << 64) if number >> 63 else number for number in numbers], pa.int64())
    batch = pa.RecordBatch.from_arrays([*batch.columns, hashes], schema=HASHED_ARROW)
    return encode_batch(batch), decoded_bytes(batch)


def encoded(rows: list[Row]) -> tuple[Any, int]:
    columns = list(zip(*rows, strict=True)) or [(), (), ()]
    arrays = [pa.array(column, pa.int64()) for column in columns]
    arrays.append(pa.array(["x" * (n % 13) for n in columns[2]], pa.string()))
    batch = pa.RecordBatch.from_arrays(arrays, schema=ARROW)
    return encode_batch(batch), decoded_bytes(batch)


def rows_of(body: Any) -> list[Row]:
    batch = decode_batch(body, ARROW, 1 << 26)
    k, lane, n, pad = (column.to_pylist() for column in batch.columns)
    assert all(len(text) == number % 13 for text, number in zip(pad, n, strict=True))
    return list(zip(k, lane, n, strict=True))


class _Slots:
    def __init__(self, count: int) -> None:
        self.free = self.count = count

    def try_take(self, count: int) -> bool:
        if count > self.free:
            return False
        self.free -= count
        return True

    def give_back(self, count: int) -> None:
        self.free += count


class Temper(msgspec.Struct):
    """How the Sparks of a run behave."""

    retries_tasks: bool = False
    pipelined: bool = True
    slots: int = 16
    pause_s: float = 0.02  # between what a task does
    deaf_share: float = 0.0  # of the jobs: these ignore a cancel for a while


class SimEngine:
    """Dies with its member; is not paused with it."""

    cores = 2
    tasks_are_here = False

    def __init__(self, cluster: Cluster, process: Process, temper: Temper, limits: Limits, seed: str) -> None:
        self.cluster = cluster
        self.process = process
        self.temper = temper
        self.retries_tasks = temper.retries_tasks
        self.slots = _Slots(temper.slots // 2)
        self.source_slots: SlotPool | None = self.slots if temper.pipelined else None
        # A task waits as long as its member lets it (see spark/taskline.py).
        self.limits = msgspec.structs.replace(limits, wait_s=limits.query_timeout_s, login_s=limits.wait_s)
        self.jobs: dict[str, asyncio.Task[Any]] = {}
        self._seed = seed
        self._attempts = 0
        self._running = asyncio.Semaphore(temper.slots)
        self._queued: dict[str, int] = {}

    # --- what members call -----------------------------------------------------------------------
    def start(self) -> None: ...
    def stop(self) -> None: ...
    def warm_up(self) -> None: ...

    def look(self, table: TableConfig, at: Moment | None) -> Told:
        raise AssertionError("simulated tables are files")

    def tables_in(self, namespace: tuple[str, ...]) -> tuple[str, ...]:
        return ()

    def describe(self, table: TableFiles) -> tuple[Column, ...]:
        return COLUMNS

    def count_rows(self, table: TableFiles) -> int:
        return 0

    def run(self, job: Job, on_schema: Callable[[Schema], None]) -> JobResult:
        raise AssertionError("the loop runs jobs: see in_loop")

    def keeps(self, job: Job) -> bool:
        return job.sink is None and not job.edges and Random(f"{self._seed} keeps {job.tag}").random() < 0.8

    def run_together(
        self, jobs: Sequence[Job], on_schemas: Sequence[Callable[[Schema], None]]
    ) -> Sequence[JobResult | None]:
        raise AssertionError("the loop runs jobs: see in_loop")

    def cancel(self, tag: str) -> None:
        running = self.jobs.get(tag)
        if running is not None:
            running.cancel()

    def give_up(self, tag: str) -> None:
        pass

    def queued_tasks(self, besides: Collection[str] = ()) -> int:
        return sum(count for tag, count in self._queued.items() if tag not in besides)

    def is_held_up(self, tag: str) -> bool:
        return False

    def job_ids(self, tag: str) -> tuple[int, ...]:
        return ()

    def leftovers(self, *_arguments: object) -> list[str]:
        return []

    def in_loop(self, name: str, arguments: tuple[Any, ...], future: asyncio.Future[Any]) -> bool:
        """Blocking calls as tasks of Spark's own process; False for those that are quick."""
        works: dict[str, Callable[..., Any]] = {"run": self._run, "run_together": self._run_together}
        if name not in (*works, "cancel"):
            return False
        caller = contextvars.copy_context()
        work = works[name](caller, *arguments) if name in works else self._cancel(*arguments)
        asyncio.get_running_loop().create_task(_into(work, future), context=self.process.context.copy())
        return True

    async def _cancel(self, tag: str) -> None:
        random = Random(f"{self._seed} cancel {tag}")
        await asyncio.sleep(random.random() * 0.03)
        if random.random() >= self.temper.deaf_share:
            self.cancel(tag)

    # --- jobs ------------------------------------------------------------------------------------
    async def _run(self, caller: contextvars.Context, job: Job, on_schema: Callable[[Schema], None]) -> JobResult:
        random = Random(f"{self._seed} {job.tag}")
        schema = HASHED_SCHEMA if " hashed" in job.sql else SCHEMA
        running = asyncio.get_running_loop().create_task(
            self._job(job, lambda: caller.copy().run(on_schema, schema), random)
        )
        self.jobs[job.tag] = running
        try:
            return await running
        except asyncio.CancelledError:
            raise SiteError("the job was cancelled") from None
        except SkerryError as error:
            raise SiteError(f"a task failed: {error.message}") from None
        finally:
            del self.jobs[job.tag]

    async def _run_together(
        self, caller: contextvars.Context, jobs: Sequence[Job], on_schemas: Sequence[Callable[[Schema], None]]
    ) -> Sequence[JobResult | None]:
        """What ends one ends all. Some tell of their columns, and then are to be run by themselves in spite of that."""
        if len({job.query for job in jobs}) > 1 or len(jobs) < 2:
            self.cluster.violated(f"{[job.tag for job in jobs]} were run together")
        runs = [asyncio.ensure_future(self._run(caller, *each)) for each in zip(jobs, on_schemas, strict=True)]
        await asyncio.wait(runs, return_when=asyncio.FIRST_EXCEPTION)
        for job in jobs:
            self.cancel(job.tag)
        await asyncio.wait(runs)
        if [run for run in runs if run.exception() is not None]:
            return [None] * len(jobs)
        random = Random(f"{self._seed} together {jobs[0].tag}")
        return [None if random.random() < 0.2 else run.result() for run in runs]

    async def _job(self, job: Job, announce: Callable[[], None], random: Random) -> JobResult:
        words = dict(word.partition("=")[::2] for word in job.sql.split("'")[1].split())
        await asyncio.sleep(random.random() * self.temper.pause_s * 4)  # planning
        if "refuse" in words:
            raise SiteError("this statement cannot be planned")
        announce()
        if "count" in words:
            rows = [row for body in await self._bodies(job) for row in rows_of(body)]
            return await self._answer(job, [(len(rows), -1, sum(n for _, _, n in rows))], random)
        if "limit" in words:
            return await self._answer(job, await self._some(job, int(words["limit"]), random), random)
        if job.sink is None:
            made = [n for lane in range(int(words["lanes"])) for n in self._lane_rows(words, lane)]
            return await self._answer(job, made, random)
        lanes = list(self._shares_of(job)) if "pass" in words else list(range(int(words["lanes"])))
        work = [self._partition(job, words, number, lane, random) for number, lane in enumerate(lanes)]
        return JobResult(sink_rows=tuple(await _together(work)))

    async def _answer(self, job: Job, rows: list[Row], random: Random) -> JobResult:
        """Through the driver, or from one task."""
        if job.sink is None:
            table = pa.Table.from_pylist(
                [{"k": k, "lane": lane, "n": n, "pad": "x" * (n % 13)} for k, lane, n in rows], schema=ARROW
            )
            return JobResult(table=table)
        made = [encoded(rows)] if rows else []

        async def feed(take: Take) -> None:
            for body, size in made:
                await take(body, len(rows), size)

        return JobResult(sink_rows=(await self._hand_over(job, 0, self._attempt(), feed),))

    def _lane_rows(self, words: dict[str, str], lane: int) -> list[Row]:
        count = int(words["batches"]) * int(words["rows"])
        return [(n // 2, int(words["make"]) * 100 + lane, n) for n in range(count)]

    # --- sink tasks ------------------------------------------------------------------------------
    def _attempt(self) -> int:
        self._attempts += 1
        return self._attempts

    async def _partition(self, job: Job, words: dict[str, str], number: int, lane: Any, random: Random) -> SinkRow:
        """One partition of the job, in one of Spark's slots; tried again where this Spark does so."""
        self._queued[job.tag] = self._queued.get(job.tag, 0) + 1
        try:
            await self._running.acquire()
        finally:
            self._queued[job.tag] -= 1
        try:
            tries = 4 if self.retries_tasks else 1
            for attempt in range(tries):
                # Some attempts go away in the middle, where that is not the end.
                breaks_after = random.randrange(4) if attempt < tries - 2 and random.random() < 0.3 else None
                if breaks_after is None and words.get("fail", "").startswith(f"{number}:"):
                    breaks_after = int(words["fail"].split(":")[1])
                twin = self.retries_tasks and random.random() < 0.2
                try:
                    breaks = [breaks_after, None] if twin else [breaks_after]  # a twin: speculation
                    feeds = [functools.partial(self._feed, words, lane, random, each) for each in breaks]
                    runs = [self._hand_over(job, number, self._attempt(), feed) for feed in feeds]
                    done = await asyncio.gather(*runs, return_exceptions=True)
                    rows = [row for row in done if isinstance(row, SinkRow)]
                    if rows:
                        return random.choice(rows)
                    raise done[0]  # type: ignore[misc]
                except (SkerryError, OSError) as error:
                    if attempt == tries - 1:
                        raise SiteError(f"partition {number}: {type(error).__name__}: {error}") from None
            raise AssertionError("unreachable")
        finally:
            self._running.release()

    async def _feed(
        self, words: dict[str, str], lane: Any, random: Random, breaks_after: int | None, take: Take
    ) -> None:
        count = 0
        if "pass" in words:
            edge, part = lane
            await self._read(edge, part, take)
        else:
            size_rows = int(words["rows"])
            for number in range(int(words["batches"])):
                if count == breaks_after:
                    raise SiteError("this task broke")
                await asyncio.sleep(random.random() * self.temper.pause_s)
                make = hashed_batch if "hashed" in words else made_batch
                body, size = make(int(words["make"]) * 100 + lane, number * size_rows, size_rows)
                await take(body, size_rows, size)
                count += 1
        if breaks_after is not None:
            raise SiteError("this task broke at its end")

    async def _hand_over(self, job: Job, partition: int, attempt: int, feed: Feed) -> SinkRow:
        """As spark/sink.py does it."""
        sink = job.sink
        assert sink is not None
        count = rows = checksum = 0
        connection = await self._line(sink.address, sink.cluster, sink.token)

        async def take(body: Any, body_rows: int, size: int) -> bool:
            nonlocal count, rows, checksum
            connection.send_parts(encode_batch_frame(Batch(count, 0, False, body_rows, size, 0), body))
            await connection.drain()
            checksum = combine(checksum, body_hash(body))
            rows += body_rows
            count += 1
            return True

        try:
            connection.send(SinkOpen(sink.query, sink.fragment, partition, attempt))
            await feed(take)
            connection.send(SinkEnd(count, rows, checksum))
            taken = _expect(await _frame(connection), SinkTaken)
            if taken.batches != count:
                self.cluster.violated(f"{job.tag}: the member took {taken.batches} of {count} batches")
            return SinkRow(partition, attempt, count, rows, checksum)
        finally:
            connection.abort()

    async def _line(self, address: str, cluster: str, token: str) -> Connection:
        connection = await connect(address, self.limits)
        try:
            await login(connection, Hello("task", PROTOCOL_VERSIONS, cluster, "", 0, credentials=token))
        except BaseException:
            connection.abort()
            raise
        return connection

    # --- source tasks ----------------------------------------------------------------------------
    def _shares_of(self, job: Job) -> list[tuple[EdgeInput, int]]:
        return [(edge, part) for edge in job.edges.values() for part in range(edge.partitions)]

    async def _bodies(self, job: Job) -> list[Any]:
        """Every share of every edge, read at once."""

        bodies: list[Any] = []

        async def take(body: Any, _rows: int, _size: int) -> bool:
            bodies.append(body)
            return True

        await _together([self._read(edge, part, take) for edge, part in self._shares_of(job)])
        return bodies

    async def _some(self, job: Job, limit: int, random: Random) -> list[Row]:
        """A LIMIT: shares are read one by one until there is enough; the rest is left."""
        rows: list[Row] = []

        async def take(body: Any, _rows: int, _size: int) -> bool:
            rows.extend(rows_of(body))
            return len(rows) < limit

        for edge, part in self._shares_of(job):
            if len(rows) < limit:
                await self._read(edge, part, take)
        return rows[:limit]

    async def _read(self, edge: EdgeInput, partition: int, take: Take) -> None:
        """As spark/source.py does it, or from the plan, if they are few. Rows of one lane must come in their order."""
        if edge.bodies is not None:
            for body in edge.bodies if partition == 0 else ():
                if not await take(body, len(rows_of(body)), len(body)):
                    return
            return
        batches = rows = 0
        last: dict[int, int] = {}
        connection = await self._line(edge.address, edge.cluster, edge.token)
        try:
            connection.send(SourceOpen(edge.query, edge.edge, partition, edge.partitions))
            while (frame := await _frame(connection)).kind == BATCH:
                header, body = split_batch(frame)
                batches += 1
                rows += header.rows
                for _, lane, n in rows_of(body):
                    if n <= last.get(lane, -1):
                        self.cluster.violated(f"{edge.query} edge {edge.edge}: lane {lane}: row {n} after {last[lane]}")
                    last[lane] = n
                if not await take(body, header.rows, header.decoded_bytes):
                    return
            end = _expect(frame, SourceEnd)
            if (end.batches, end.rows) != (batches, rows):
                raise PeerError(f"edge {edge.edge}: {rows} of {end.rows} rows came from the member")
        finally:
            connection.abort()


async def _frame(connection: Connection) -> Frame:
    frame = await connection.receive()
    if frame is None:
        raise ConnectionLost("the member closed the connection of this task before its end")
    return frame


def _expect(frame: Frame, wanted: type[Any]) -> Any:
    message = decode(frame)
    if isinstance(message, Refused):
        raise error_of(message.error)
    if not isinstance(message, wanted):
        raise PeerError(f"{wanted.__name__} was due from the member, {type(message).__name__} came")
    return message


async def _together(work: list[Any]) -> list[Any]:
    """All results, or the first error with the others ended: a job ends as a whole."""
    tasks = [asyncio.ensure_future(each) for each in work]
    try:
        return list(await asyncio.gather(*tasks))
    except (SkerryError, OSError, asyncio.CancelledError):
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        raise


async def _into(work: Any, future: asyncio.Future[Any]) -> None:
    try:
        result = await work
    except Exception as error:
        if not future.done():
            future.set_exception(error)
        return
    if not future.done():
        future.set_result(result)

"""The tables of one member, with a Spark that is a thread: it answers when it is let. Listings and files are real."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import asynccontextmanager
from pathlib import Path

import pyarrow as pa

from skerry.config import parse
from skerry.member.keeping import Keeping
from skerry.member.lull import Lull
from skerry.member.resources import Workers
from skerry.member.sources import Sources
from skerry.member.tables import LocalTables
from skerry.model.config import TableConfig
from skerry.model.errors import Cancelled, SiteError, SkerryError
from skerry.model.names import Moment
from skerry.model.results import Schema
from skerry.model.sources import Storage, Told
from skerry.model.table import Column, ColumnStats, PartStats
from skerry.plan.observed import Observed
from skerry.spark.engine import Job, JobResult, OneByOne, SlotPool, TableFiles

COLUMNS = (Column("k", "int"), Column("s", "string"))
FOUND = {"k": {"nulls": 0, "ndv": 3, "low": "1", "high": "3"}, "s": {"nulls": 1, "ndv": 2, "low": "a", "high": "b"}}
ROWS = 3
DEADLINE_S = 60.0


class Spark(OneByOne):
    """Answers all jobs alike, once `gate` is open; a cancel ends those that wait for it."""

    cores = 1
    source_slots: SlotPool | None = None
    tasks_are_here = True
    retries_tasks = False

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.gate.set()
        self.columns = COLUMNS
        self.rows = ROWS
        self.counts = 0
        self.is_deaf = False  # takes a cancel, and does nothing for the time being
        self.error: Exception | None = None
        self.unread: Exception | None = None  # why no table can be described
        self.jobs: list[Job] = []
        self.running: set[str] = set()
        self.cancelled: set[str] = set()

    def run(self, job: Job, on_schema: Callable[[Schema], None]) -> JobResult:
        self.jobs.append(job)
        self.running.add(job.tag)
        try:
            while not self.gate.wait(0.005):
                if job.tag in self.cancelled and not self.is_deaf:
                    raise Cancelled(f"{job.tag} was cancelled")
            if self.error is not None:
                raise self.error
            asked = {
                each.name: FOUND.get(each.name, {"nulls": 0}) for each in self.columns if f"'{each.name}'" in job.sql
            }
            row = {"member": "oslo", "rows": self.rows, "bytes": 1, "columns": json.dumps(asked)}
            return JobResult(table=pa.Table.from_pylist([row]))
        finally:
            self.running.discard(job.tag)

    def cancel(self, tag: str) -> None:
        self.cancelled.add(tag)

    def start(self) -> None: ...
    def stop(self) -> None: ...
    def warm_up(self) -> None: ...

    def look(self, table: TableConfig, at: Moment | None) -> Told:
        raise SiteError(f"no engine knows {table.name}")

    def tables_in(self, namespace: tuple[str, ...]) -> tuple[str, ...]:
        return ()

    def describe(self, table: TableFiles) -> tuple[Column, ...]:
        if self.unread is not None:
            raise self.unread
        return self.columns

    def count_rows(self, table: TableFiles) -> int:
        self.counts += 1
        return ROWS

    def give_up(self, tag: str) -> None:
        pass

    def is_held_up(self, tag: str) -> bool:
        return False

    def queued_tasks(self, besides: Collection[str] = ()) -> int:
        return 0

    def job_ids(self, tag: str) -> tuple[int, ...]:
        return ()

    def leftovers(self) -> list[str]:
        return []


class World:
    """The tables of one member; another world of the same folder is the member started again."""

    def __init__(self, folder: Path, table: str = "", state: str = "", database: str = "", **limits: float) -> None:
        """`table`: more of it; with a `database`, all of it."""
        self.folder = folder
        if not (folder / "t").exists():
            (folder / "t").mkdir()
            self.write("a", "1,a\n2,b\n3,\n")
        config = parse(
            f"cluster: c\ndata_root: {folder}\nlimits: {json.dumps(limits)}\n{f'state: {state}' if state else ''}\n"
            f"members: {{oslo: {{address: 'h:1', {f'databases: {{shop: {{jdbc: {database}}}}},' if database else ''}"
            f" tables: {{t: {{{table if database else f'format: csv, path: t, {table}'}}}}}}}}}",
            base_dir=folder,
        )
        self.spark = Spark()
        self.lull = Lull()
        self.news = 0
        self.warnings: list[str] = []
        self.tasks: set[asyncio.Task[None]] = set()
        self.writer: asyncio.Future[None] | None = None
        self.workers = [Workers("test", 4), Workers("test-job", 4)]
        member = config.member("oslo")
        self.observed = Observed(config.limits.observed_edges)
        sources = Sources(config.data_root, Storage(), self.spark, config.limits, self.workers[0], self.workers[0])
        self.keeping = Keeping(config, "oslo", self.observed, self.workers[0], self.keep)
        self.tables = LocalTables(
            config, member, self.spark, sources, *self.workers, self.lull, self.own, self.on_stats, self.keeping
        )

    def write(self, name: str, text: str) -> None:
        (self.folder / "t" / f"{name}.csv").write_text(text)

    def own(self, work: Awaitable[None], what: str) -> None:
        """As a member does it."""

        async def run() -> None:
            try:
                await work
            except SkerryError as error:
                self.warnings.append(f"{what}: {error.message}")

        task = asyncio.ensure_future(run())
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    def keep(self, work: Awaitable[None], what: str) -> None:
        self.writer = asyncio.ensure_future(work)

    def on_stats(self) -> None:
        self.news += 1

    async def look(self) -> PartStats | None:
        """A query, or another member, asks for the table."""
        return (await self.tables.snapshot("t")).part.stats

    async def settle(self) -> PartStats | None:
        """What is known when nothing is under way any more."""
        while self.tasks:
            await asyncio.wait(self.tasks)
        return self.tables._known["t"].part.stats

    async def until(self, condition: Callable[[], object]) -> None:
        async with asyncio.timeout(DEADLINE_S):
            while not condition():
                await asyncio.sleep(0.002)

    async def stop(self) -> None:
        await self.keeping.close()
        for task in [*self.tasks, *([self.writer] if self.writer is not None else [])]:
            task.cancel()
            await asyncio.wait({task})
        for workers in self.workers:
            workers.stop()


@asynccontextmanager
async def world(folder: Path, table: str = "", state: str = "", **limits: float) -> AsyncIterator[World]:
    made = World(folder, table, state, **limits)
    try:
        async with asyncio.timeout(DEADLINE_S):
            await made.keeping.load()
            yield made
    finally:
        made.spark.gate.set()
        await made.stop()


def by_name(stats: PartStats | None) -> dict[str, ColumnStats]:
    assert stats is not None
    return {column.name: column for column in stats.columns}

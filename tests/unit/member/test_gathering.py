"""Statistics by a member's own Spark, in the background: when it is asked, how long, and what is kept of its answer.

The Spark is a thread that answers when it is let; tables, listings and files are real ones.
"""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from skerry.catalog.table import Column, ColumnStats, PartStats
from skerry.config import parse
from skerry.errors import Cancelled, SiteError, SkerryError
from skerry.member import gathering, lull
from skerry.member.lull import Lull
from skerry.member.resources import Workers
from skerry.member.tables import LocalTables
from skerry.spark.engine import Job, JobResult, SlotPool, TableFiles
from skerry.wire.messages import Schema

COLUMNS = (Column("k", "int"), Column("s", "string"))
FOUND = {"k": {"nulls": 0, "ndv": 3, "low": "1", "high": "3"}, "s": {"nulls": 1, "ndv": 2, "low": "a", "high": "b"}}
ROWS = 3
DEADLINE_S = 10.0


@pytest.fixture(autouse=True)
def short_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lull, "_MOMENT_S", 0.01)


class Spark:
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
        self.error: Exception | None = None
        self.jobs: list[Job] = []
        self.running: set[str] = set()
        self.cancelled: set[str] = set()

    def run(self, job: Job, on_schema: Callable[[Schema], None]) -> JobResult:
        self.jobs.append(job)
        self.running.add(job.tag)
        try:
            while not self.gate.wait(0.005):
                if job.tag in self.cancelled:
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

    def describe(self, table: TableFiles) -> tuple[Column, ...]:
        return self.columns

    def count_rows(self, table: TableFiles) -> int:
        return ROWS

    def queued_tasks(self, besides: Collection[str] = ()) -> int:
        return 0

    def job_ids(self, tag: str) -> tuple[int, ...]:
        return ()

    def leftovers(self) -> list[str]:
        return []


class World:
    """The tables of one member."""

    def __init__(self, folder: Path, table: str = "", **limits: float) -> None:
        self.folder = folder
        (folder / "t").mkdir()
        self.write("a", "1,a\n2,b\n3,\n")
        config = parse(
            f"cluster: c\ndata_root: {folder}\nlimits: {json.dumps(limits)}\n"
            f"members: {{oslo: {{address: 'h:1', tables: {{t: {{format: csv, path: t, {table}}}}}}}}}"
        )
        self.spark = Spark()
        self.lull = Lull()
        self.news = 0
        self.warnings: list[str] = []
        self.tasks: set[asyncio.Task[None]] = set()
        self.workers = [Workers("test", 4), Workers("test-job", 4)]
        member = config.member("oslo")
        self.tables = LocalTables(config, member, self.spark, *self.workers, self.lull, self.own, self.on_stats)

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
        for task in list(self.tasks):
            task.cancel()
            await asyncio.wait({task})
        for workers in self.workers:
            workers.stop()


@asynccontextmanager
async def world(folder: Path, table: str = "", **limits: float) -> AsyncIterator[World]:
    made = World(folder, table, **limits)
    try:
        async with asyncio.timeout(DEADLINE_S):
            yield made
    finally:
        made.spark.gate.set()
        await made.stop()


def by_name(stats: PartStats | None) -> dict[str, ColumnStats]:
    assert stats is not None
    return {column.name: column for column in stats.columns}


def run(test: Callable[[], Any]) -> None:
    asyncio.run(test())


def test_what_spark_found_is_kept_and_told(tmp_path: Path) -> None:
    async def test() -> None:
        async with world(tmp_path) as w:
            assert await w.look() is None
            stats = await w.settle()
            assert stats is not None
            assert stats.source == "spark"
            k, s = by_name(stats)["k"], by_name(stats)["s"]
            assert (k.low, k.high, k.nulls, k.ndv, k.is_exact) == (1, 3, 0, 3, True)
            assert (s.low, s.high, s.nulls, s.is_exact) == ("a", "b", 1, True)
            assert w.news == 1
            # Whoever asks again has it: Spark is not asked twice.
            assert await w.look() == stats
            assert not w.tasks
            assert len(w.spark.jobs) == 1
            # Other files are looked at anew.
            w.write("b", "4,c\n")
            assert await w.look() is None
            assert await w.settle() is not None
            assert (len(w.spark.jobs), w.news) == (2, 2)

    run(test)


def test_files_that_change_while_they_are_read(tmp_path: Path) -> None:
    async def test() -> None:
        async with world(tmp_path) as w:
            w.spark.gate.clear()
            await w.look()
            await w.until(lambda: w.spark.running)
            w.write("b", "4,c\n")
            await w.look()
            w.spark.gate.set()
            assert await w.settle() is not None
            first, second = (job.tables[gathering.PLACEHOLDER] for job in w.spark.jobs)
            assert (len(first.files), len(second.files)) == (1, 2)

    run(test)


def test_while_queries_run_it_waits(tmp_path: Path) -> None:
    async def test() -> None:
        async with world(tmp_path) as w:
            w.lull.running(1)
            await w.look()
            await w.until(lambda: w.tables._gathering._waiting)
            assert not w.spark.jobs
            w.lull.running(2)
            w.lull.running(1)
            assert w.tasks
            assert not w.spark.jobs
            w.lull.running(0)
            assert await w.settle() is not None

    run(test)


def test_it_does_not_wait_for_ever(tmp_path: Path) -> None:
    async def test() -> None:
        async with world(tmp_path, stats_lull_s=0.05) as w:
            w.lull.running(1)
            await w.look()
            assert await w.settle() is None
            assert (w.spark.jobs, w.news, w.warnings) == ([], 0, [])
            # It is asked for again in a better moment.
            w.lull.running(0)
            await w.look()
            assert await w.settle() is not None

    run(test)


def test_a_query_that_came_before_its_turn_goes_first(tmp_path: Path) -> None:
    async def test() -> None:
        async with world(tmp_path) as w:
            async with w.tables._gathering._turn:
                await w.look()
                await w.until(lambda: w.tables._gathering._turn._waiters)  # type: ignore[attr-defined]
                w.lull.running(1)
            await w.until(lambda: w.tables._gathering._waiting)
            assert not w.spark.jobs
            w.lull.running(0)
            assert await w.settle() is not None

    run(test)


@pytest.mark.parametrize(("bytes_max", "jobs"), [(5, 0), (0, 0), (1000, 1)])
def test_a_large_table_is_left_alone(tmp_path: Path, bytes_max: int, jobs: int) -> None:
    async def test() -> None:
        async with world(tmp_path, stats_scan_bytes=bytes_max) as w:
            await w.look()
            assert (await w.settle() is not None) == bool(jobs)
            assert len(w.spark.jobs) == jobs

    run(test)


def test_a_job_that_takes_too_long_is_cancelled(tmp_path: Path) -> None:
    async def test() -> None:
        async with world(tmp_path, stats_scan_s=0.05) as w:
            w.spark.gate.clear()
            await w.look()
            assert await w.settle() is None
            assert w.spark.cancelled == {job.tag for job in w.spark.jobs}
            assert not w.spark.running
            (line,) = w.warnings
            assert line.startswith("statistics of t: Spark has not read the table in 0.05 s")
            assert "ANALYZE TABLE t" in line
            # Nothing has changed: it is not tried again.
            await w.look()
            assert not w.tasks

    run(test)


def test_a_failure_is_one_line(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        async with world(tmp_path) as w:
            w.spark.error = SiteError("Spark failed: a.csv is no CSV")
            await w.look()
            assert await w.settle() is None
            assert w.warnings == ["statistics of t: Spark failed: a.csv is no CSV"]
            await w.look()
            assert not w.tasks
            w.spark.error = None
            w.write("a", "1,a\n")
            await w.look()
            assert await w.settle() is not None

    caplog.set_level(logging.INFO)
    run(test)
    assert not [record for record in caplog.records if record.exc_info]


def test_a_member_that_stops_ends_the_job(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        async with world(tmp_path) as w:
            w.spark.gate.clear()
            await w.look()
            await w.until(lambda: w.spark.running)
            await w.stop()
            assert w.spark.cancelled == {job.tag for job in w.spark.jobs}
            assert not w.spark.running
            assert (w.news, w.warnings) == (0, [])

    run(test)
    assert not caplog.records


def test_what_analyze_found_stays(tmp_path: Path) -> None:
    async def test() -> None:
        async with world(tmp_path) as w:
            w.spark.gate.clear()
            await w.look()
            await w.until(lambda: w.spark.running)
            version = w.tables._known["t"].files.version
            w.tables.analyzed("t", version, PartStats((ColumnStats("k", ndv=77.0),), "analyze"), ROWS)
            w.spark.gate.set()
            stats = await w.settle()
            assert by_name(stats)["k"].ndv == 77.0
            assert by_name(stats)["s"].ndv == 2.0
            assert stats is not None
            assert stats.source == "analyze"

    run(test)


def test_all_that_was_analyzed_is_not_asked_again(tmp_path: Path) -> None:
    async def test() -> None:
        async with world(tmp_path) as w:
            w.lull.running(1)
            await w.look()
            known = tuple(ColumnStats(column.name, ndv=9.0) for column in COLUMNS)
            w.tables.analyzed("t", w.tables._known["t"].files.version, PartStats(known, "analyze"), ROWS)
            w.lull.running(0)
            assert by_name(await w.settle())["k"].ndv == 9.0
            assert not w.spark.jobs

    run(test)


@pytest.mark.parametrize(
    ("table", "columns", "rows"),
    [
        ("options: {Mode: dropMalformed}", COLUMNS, ROWS),
        ("", (*COLUMNS, Column("_Corrupt_record", "string")), ROWS),
        ("options: {columnNameOfCorruptRecord: s}", COLUMNS, ROWS),
        ("", COLUMNS, ROWS - 1),
    ],
)
def test_nothing_is_proven_where_rows_depend_on_columns(
    tmp_path: Path, table: str, columns: tuple[Column, ...], rows: int
) -> None:
    """Seen in Spark: a record with one bad column is there for a query that does not read that column."""

    async def test() -> None:
        async with world(tmp_path, table) as w:
            w.spark.columns, w.spark.rows = columns, rows
            await w.look()
            k = by_name(await w.settle())["k"]
            assert (k.low, k.high, k.nulls, k.ndv, k.is_exact) == (1, 3, None, 3, False)

    run(test)


def test_values_that_may_not_leave_are_not_told(tmp_path: Path) -> None:
    async def test() -> None:
        async with world(tmp_path, "leaves: never") as w:
            await w.look()
            k = by_name(await w.settle())["k"]
            assert (k.low, k.high, k.ndv) == (None, None, 3)

    run(test)


def test_only_the_first_columns(tmp_path: Path) -> None:
    async def test() -> None:
        async with world(tmp_path, stats_columns=40) as w:
            w.spark.columns = tuple(Column(f"c{number}", "array<int>") for number in range(100))
            await w.look()
            assert list(by_name(await w.settle())) == [f"c{number}" for number in range(40)]
            assert "'c40'" not in w.spark.jobs[0].sql

    run(test)

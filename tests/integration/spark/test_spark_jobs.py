"""Jobs beside each other, and jobs that are cancelled: nothing waits for ever, nothing stays behind."""

from __future__ import annotations

import asyncio
import gc
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from skerry.exchange.intake import Intake
from skerry.exchange.spool import Budget, Spool
from skerry.member.jobs import fill_from_table
from skerry.member.stores import DirectStore
from skerry.model.errors import Cancelled
from skerry.model.fragment import SortKey
from skerry.model.ids import QueryId
from skerry.model.limits import MIB
from skerry.model.results import Schema
from skerry.model.table import Column
from skerry.spark.engine import Engine, Job, JobResult
from skerry.spark.recycled import RecycledSail
from skerry.wire.codec import decode_schema
from tests.integration.spark.harness import Site, files, table_of, until, views_of

COLUMNS = (Column("n", "bigint"),)
ROWS = "SELECT id, repeat('x', 100) AS s FROM range(0, 400000, 1, 2)"


def test_two_jobs_at_once(engine: Engine) -> None:
    async def run() -> None:
        async with Site(engine) as site:
            a, b = await asyncio.gather(
                site.collect("SELECT sum(id) AS t FROM range(200000)"),
                site.collect("SELECT id FROM range(100, 100100)"),
            )
            assert a.rows == [{"t": 199999 * 100000}]
            assert sorted(b.table.column(0).to_pylist()) == list(range(100, 100100))

    asyncio.run(run())


@pytest.mark.spark
def test_a_broadcast_of_few_rows_takes_little_of_the_heap(spark_engine: Any) -> None:
    """Spark 4.2 would take 64 MiB for each (ADR 42)."""
    frame = spark_engine.session.sql(
        "SELECT /*+ BROADCAST(b) */ count(*) AS n FROM range(9) AS a JOIN range(9) AS b ON a.id = b.id"
    )
    assert frame.toArrow().to_pylist() == [{"n": 9}]
    left = [frame._jdf.queryExecution().executedPlan()]
    while (node := left.pop()).nodeName() != "BroadcastExchange":
        if node.nodeName() == "AdaptiveSparkPlan":
            left.append(node.executedPlan())
        elif node.nodeName().endswith("QueryStage"):
            left.append(node.plan())
        left += [node.children().apply(index) for index in range(node.children().size())]
    assert 0 < node.metrics().apply("dataSize").value() < 2 * MIB


def daemons_of(jvm_pid: int) -> list[psutil.Process]:
    """Of Python workers: one for each environment that tasks came with. A JVM has other children, for moments."""
    daemons = []
    for child in psutil.Process(jvm_pid).children():
        with suppress(psutil.NoSuchProcess):  # ended meanwhile
            if any("daemon" in word for word in child.cmdline()):
                daemons.append(child)
    return daemons


@pytest.mark.spark
def test_a_daemon_of_python_workers_that_ends_takes_no_task_with_it(spark_engine: Any) -> None:
    """Spark 4.2 ends it when a task is interrupted while its worker starts, and the tasks of others were lost."""

    async def run() -> None:
        async with Site(spark_engine) as site:
            query = site.query()
            stalled = start_stalled(site, query)
            await until(lambda: site.port.waiting_s(query) > 0)
            daemons = daemons_of(spark_engine.jvm_pid)
            assert daemons
            for daemon in daemons:
                daemon.terminate()
            await until(lambda: not any(daemon in daemons for daemon in daemons_of(spark_engine.jvm_pid)))
            await stalled.finish()
            out = await site.collect("SELECT id FROM range(1000)")  # by a worker of the next daemon
            assert out.table.num_rows == 1000

    asyncio.run(run())


def test_a_stalled_sink_does_not_stop_another_job(engine: Engine) -> None:
    """D7: tasks that wait for their member hold slots, and there are slots to spare."""

    async def run() -> None:
        async with Site(engine) as site:
            query = site.query()
            stalled = start_stalled(site, query)
            await until(lambda: site.port.waiting_s(query) > 0)
            out = await site.collect("SELECT count(*) AS c FROM range(1000)")
            assert out.rows == [{"c": 1000}]
            assert not stalled.task.done()
            await stalled.finish()

    asyncio.run(run())


class Stalled(msgspec.Struct):
    spool: Spool
    intake: Intake
    task: asyncio.Task[JobResult]

    async def finish(self) -> None:
        """Somebody reads."""
        unsubscribe = self.spool.subscribe(lambda: self.spool.release(self.spool.length))
        self.spool.release(self.spool.length)
        result = await self.task
        unsubscribe()
        self.intake.settle(result.sink_rows)
        assert self.intake.rows == 400000


def start_stalled(site: Site, query: QueryId, tag: str = "stalled") -> Stalled:
    """A job whose sink has room for a tenth of its rows, and waits."""
    spool = site.spool(Budget(5 * MIB, 0))
    intake = Intake(1, site.engine.retries_tasks)
    sink = site.sink(query, intake, DirectStore(spool, waits=True))
    return Stalled(spool, intake, asyncio.create_task(site.run(Job(tag, ROWS, {}, {}, {}, sink))))


def test_cancel_ends_a_job_that_is_blocked_in_its_sink(engine: Engine) -> None:
    async def run() -> None:
        async with Site(engine) as site:
            query = site.query()
            task = start_stalled(site, query, "blocked sink").task
            await until(lambda: site.port.waiting_s(query) > 0)
            assert isinstance(await site.cancel(query, "blocked sink", task), Cancelled)
            assert site.port.connections() == 0

    asyncio.run(run())


def test_cancel_ends_a_job_that_waits_for_its_edge(engine: Engine) -> None:
    async def run() -> None:
        async with Site(engine) as site:
            query = site.query()
            edge = site.edge(query, 1, COLUMNS, site.spool())
            sink = site.sink(query, Intake(1, engine.retries_tasks), DirectStore(site.spool(), waits=False))
            job = Job("waiting source", "SELECT n FROM e", {}, {"e": edge}, {}, sink)
            task = asyncio.create_task(site.run(job))
            await until(lambda: site.port.connections(query) > 1)
            assert isinstance(await site.cancel(query, "waiting source", task), Cancelled)

    asyncio.run(run())


def test_cancel_ends_a_job_that_computes(engine: Engine) -> None:
    async def run() -> None:
        async with Site(engine) as site:
            query = site.query()
            started = threading.Event()
            sink = site.sink(query, Intake(1, engine.retries_tasks), DirectStore(site.spool(), waits=False))
            sql = "SELECT count(*) AS c FROM range(100000) a CROSS JOIN range(10000000) b WHERE a.id * b.id % 7 = 3"
            job = Job("busy", sql, {}, {}, {}, sink)
            task = asyncio.create_task(site.run(job, lambda schema: started.set()))
            await until(started.is_set)
            assert isinstance(await site.cancel(query, "busy", task), Cancelled)

    asyncio.run(run())


def test_cancel_during_planning_keeps_the_job_from_starting(engine: Engine) -> None:
    async def run() -> None:
        async with Site(engine) as site:
            query = site.query()
            sink = site.sink(query, Intake(1, engine.retries_tasks), DirectStore(site.spool(), waits=False))
            job = Job("planning", "SELECT 1 AS x", {}, {}, {}, sink)
            with pytest.raises(Cancelled):
                await site.run(job, lambda schema: engine.cancel("planning"))
            assert site.port.connections(query) == 0

    asyncio.run(run())


def test_a_cancelled_tag_is_refused_and_others_are_not(engine: Engine) -> None:
    async def run() -> None:
        async with Site(engine) as site:
            engine.cancel("never started")
            engine.cancel("never started")
            with pytest.raises(Cancelled):
                await site.collect("SELECT 1 AS x", tag="never started")
            assert (await site.collect("SELECT 1 AS x", tag="another")).rows == [{"x": 1}]

    asyncio.run(run())


@pytest.mark.spark
def test_threads_that_ran_a_job_leave_nothing_in_the_jvm(spark_engine: Engine) -> None:
    """py4j pins a JVM thread to each Python thread: a member's threads come and go."""

    def in_a_thread() -> None:
        job = Job("short", "SELECT 1 AS x", {}, {}, {}, None)
        thread = threading.Thread(target=spark_engine.run, args=(job, lambda schema: None))
        thread.start()
        thread.join()

    in_a_thread()
    before = gateway_threads(spark_engine)
    for _ in range(10):
        in_a_thread()
    asyncio.run(until(lambda: gateway_threads(spark_engine) <= before + 2))


def gateway_threads(engine: Any) -> int:
    """py4j names none of its threads."""
    gc.collect()
    threads = engine._running().context._jvm.java.lang.Thread.getAllStackTraces().keySet().toArray()
    return sum(thread.getName().startswith("Thread-") for thread in threads)


def test_a_small_job_gives_the_same_rows(engine: Engine, tmp_path: Path) -> None:
    """Beside others in a session of its own where the engine has one: same tables, same parameters, nothing left."""
    pq.write_table(pa.table({"n": list(range(100)), "k": [n % 7 for n in range(100)]}), tmp_path / "part.parquet")
    sql = "SELECT a.k, count(*) AS c, sum(b.n) AS s FROM t a JOIN u b ON a.n = b.n WHERE a.n < :most GROUP BY a.k"

    async def run() -> None:
        async with Site(engine) as site:
            found = files(tmp_path, "numbers", tmp_path / "part.parquet")
            rows = []
            for number, is_small in enumerate((False, True, True, False)):
                job = Job(f"small-{number}", sql, {"t": found, "u": found}, {}, {"most": 50}, None, is_small=is_small)
                result = await site.run(job)
                assert result.table is not None
                rows.append(sorted(tuple(row.values()) for row in result.table.to_pylist()))
            assert rows[0] == sorted((k, len(range(k, 50, 7)), sum(range(k, 50, 7))) for k in range(7))
            assert rows.count(rows[0]) == 4
            await until(lambda: engine.leftovers() == [])

    asyncio.run(run())


@pytest.mark.parametrize(("rows", "is_small"), [(0, True), (100, True), (100, False), (50_000, True)])
def test_few_rows_are_handed_over_in_their_order(engine: Engine, tmp_path: Path, rows: int, is_small: bool) -> None:
    """Few rows may be the job's answer; more than a batch of them leave from the tasks. All arrive once, in order."""
    pq.write_table(pa.table({"n": pa.array(range(rows), pa.int64())}), tmp_path / "part.parquet")

    async def run() -> None:
        async with Site(engine) as site:
            query, spool, intake = site.query(), site.spool(), Intake(1, engine.retries_tasks)
            sink = site.sink(query, intake, DirectStore(spool, waits=False))
            tables = {"t": files(tmp_path, "numbers", tmp_path / "part.parquet")}
            sql, keys = "SELECT 2 * n AS d, n FROM t SORT BY n", (SortKey(1, False, True),)
            job = Job(query.local, sql, tables, {}, {}, sink, False, is_small, True, order="merge", keys=keys)
            schemas: list[Schema] = []
            result = await site.run(job, schemas.append)
            intake.settle(result.sink_rows)
            if result.table is not None:
                assert rows < 50_000
                fill_from_table(spool, result.table, site.limits)
            else:
                spool.finish()
            found = table_of(spool, decode_schema(schemas[0].arrow)).to_pydict()
            assert sorted(found["n"]) == list(range(rows))
            assert found["d"] == [2 * n for n in found["n"]]
            if is_small:
                assert found["n"] == list(range(rows))
            await until(lambda: engine.leftovers() == [])

    asyncio.run(run())


def test_a_view_that_a_cancel_meets_is_made_all_the_same(sail_engine: Engine, tmp_path: Path) -> None:
    """Views are shared. Sail ends a command that is interrupted as if it had been carried out."""
    pq.write_table(pa.table({"n": [1, 2]}), tmp_path / "t.parquet")
    session: Any = sail_engine.current.session if isinstance(sail_engine, RecycledSail) else None
    views, is_over = views_of(sail_engine), threading.Event()

    def interrupt() -> None:
        while not is_over.is_set():
            session.interruptTag("unlucky")

    interrupting = threading.Thread(target=interrupt)
    interrupting.start()
    try:
        for version in range(120):
            table = files(tmp_path, "t", tmp_path / "t.parquet", columns=COLUMNS, version=version)
            session.addTag("unlucky")
            with views.lease({"t": table}) as names:  # drops the one before
                session.removeTag("unlucky")
                assert session.table(names["t"]).columns == ["n"], version
    finally:
        session.clearTags()
        is_over.set()
        interrupting.join()

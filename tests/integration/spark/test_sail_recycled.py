"""A Sail that has grown is replaced by a fresh one, and no job notices."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator
from pathlib import Path

import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from skerry.model import trace
from skerry.model.errors import Cancelled
from skerry.model.limits import MIB
from skerry.model.table import Column
from skerry.spark.engine import Job
from skerry.spark.recycled import RecycledSail
from skerry.spark.sail import SailEngine
from skerry.spark.sail_process import wanted_processor_s
from skerry.spark.settings import SparkSettings
from skerry.spark.waste import Waste
from tests.integration.spark.harness import Site, files, fill, until

pytestmark = pytest.mark.sail

# One task: the Sail that is to follow starts beside it.
SLOW = "SELECT count(*) AS n FROM range(0, 40000000000, 1, 1) WHERE id % 7 = id % 11"
ENDLESS = (
    "SELECT count(*) AS n FROM range(0, 300000, 1, 2) a JOIN range(0, 300000, 1, 2) b "
    "ON a.id % 10 = b.id % 10 WHERE sha2(cast(a.id AS string), 512) < sha2(cast(b.id AS string), 512)"
)
NEVER = 10**9


@pytest.fixture(scope="module")
def own_sail() -> Iterator[RecycledSail]:
    engine = RecycledSail(SparkSettings(sail=True, memory_bytes=768 * MIB))
    engine.start()
    yield engine
    engine.stop()


@pytest.fixture
def grown(own_sail: RecycledSail, monkeypatch: pytest.MonkeyPatch) -> Iterator[RecycledSail]:
    """Any Sail has grown after three looks. Nothing of a test is left, nor are its processes."""
    monkeypatch.setattr("skerry.spark.sail_process.SAIL_RECYCLE_SHARE", 0.0)
    monkeypatch.setattr("skerry.spark.sail_process.SAIL_RECYCLE_LOOKS", 3)
    yield own_sail
    assert own_sail.leftovers() == []


async def settled(engine: RecycledSail, monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on no Sail has grown, and the last one that had is gone."""
    monkeypatch.setattr("skerry.spark.sail_process.SAIL_RECYCLE_LOOKS", NEVER)
    await until(lambda: engine._recycler is None)


def is_gone(pid: int) -> bool:
    return not psutil.pid_exists(pid)


def test_jobs_run_right_while_one_sail_follows_the_other(
    grown: RecycledSail, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With tables, whose views each Sail has its own of, and edges; through the sink and through the driver."""
    pq.write_table(pa.table({"k": pa.array(range(1000), pa.int64())}), tmp_path / "1.parquet")
    table = files(tmp_path, "things", tmp_path / "1.parquet", columns=(Column("k", "bigint"),))
    few = pa.table({"k": pa.array([5, 500, 5000], pa.int64())})
    seen: dict[int, None] = {}

    async def ask(site: Site, number: int) -> None:
        query = site.query()
        edge = site.edge(query, 1, (Column("k", "bigint"),), fill(site.spool(), few))
        joined, (_, counted), rows = await asyncio.gather(
            site.collect(
                "SELECT l.k FROM leaf l JOIN e ON l.k = e.k", tables={"leaf": table}, edges={"e": edge}, query=query
            ),
            site.drive(f"SELECT count(*) AS n FROM leaf WHERE k >= {number % 1000}", tables={"leaf": table}),
            asyncio.to_thread(grown.count_rows, table),
        )
        assert sorted(row["k"] for row in joined.rows) == [5, 500]
        assert counted.to_pylist() == [{"n": 1000 - number % 1000}]
        assert rows == 1000

    async def keep_asking(site: Site, numbers: Iterator[int]) -> None:
        while len(seen) < 2:
            if (pid := grown.current.pid) is not None:
                seen[pid] = None
            await ask(site, next(numbers))

    async def one_follows(before: SailEngine) -> None:
        """A third would take as long to start, and show no more."""
        await until(lambda: grown.current is not before)
        monkeypatch.setattr("skerry.spark.sail_process.SAIL_RECYCLE_LOOKS", NEVER)

    async def run() -> None:
        async with Site(grown) as site, asyncio.timeout(100):
            numbers = itertools.count()
            await asyncio.gather(one_follows(grown.current), *(keep_asking(site, numbers) for _ in range(3)))
            await settled(grown, monkeypatch)
            assert [pid for pid in seen if not is_gone(pid)] in ([], [grown.current.pid])
            await ask(site, 0)

    asyncio.run(run())


def test_a_cancel_reaches_the_sail_that_the_job_runs_on(grown: RecycledSail, monkeypatch: pytest.MonkeyPatch) -> None:
    """And so does the end of its process, if that is to be; others go on."""

    async def run() -> None:
        async with Site(grown) as site:
            for ends in (grown.cancel, grown.give_up):
                monkeypatch.setattr("skerry.spark.sail_process.SAIL_RECYCLE_LOOKS", 3)
                tag, before = f"slow {ends.__name__}", grown.current
                pid = before.pid
                running = asyncio.create_task(site.run(Job(tag, SLOW, {}, {}, {}, None)))
                await until(lambda before=before, tag=tag: tag in before._tags.names())  # type: ignore[misc]
                while grown.current is before:
                    await site.drive("SELECT 1 AS n")
                monkeypatch.setattr("skerry.spark.sail_process.SAIL_RECYCLE_LOOKS", NEVER)
                after = grown.current.pid
                assert not running.done()
                assert pid is not None
                assert not is_gone(pid)
                grown.cancel(tag)
                ends(tag)
                with pytest.raises(Cancelled):
                    await running
                await until(lambda pid=pid: is_gone(pid))  # type: ignore[misc]
                await settled(grown, monkeypatch)
                assert grown.current.pid == after
                with pytest.raises(Cancelled):  # a tag that was cancelled never starts, on no Sail
                    await site.run(Job(tag, "SELECT 1 AS n", {}, {}, {}, None))

    asyncio.run(run())


def test_a_join_that_goes_on_after_its_cancel_is_ended_with_its_sail(
    own_sail: RecycledSail, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("skerry.spark.waste.SAIL_WASTE_AGE_S", 0.0)

    async def run() -> None:
        async with Site(own_sail) as site:
            before = own_sail.current
            pid = before.pid
            assert pid is not None
            before._process._waste = Waste(0.0)  # type: ignore[union-attr]  # it may be young
            used_s = wanted_processor_s(pid)
            running = asyncio.create_task(site.run(Job("endless", ENDLESS, {}, {}, {}, None)))
            await until(lambda: wanted_processor_s(pid) > used_s + 1.0)  # a cancel misses what is still being planned
            own_sail.cancel("endless")
            with pytest.raises(Cancelled):
                await running
            await until(lambda: is_gone(pid))
            monkeypatch.undo()
            await settled(own_sail, monkeypatch)
            _, table = await site.drive("SELECT 1 AS n")
            assert table.to_pylist() == [{"n": 1}]

    asyncio.run(run())
    assert own_sail.leftovers() == []


def test_if_no_fresh_one_starts_the_old_one_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[trace.Event] = []
    monkeypatch.setattr(trace, "listeners", [events.append])
    engine = RecycledSail(SparkSettings(sail=True, memory_bytes=768 * MIB))
    engine.start()
    try:
        before = engine.current.pid
        monkeypatch.setattr("skerry.spark.sail_process.SAIL_RECYCLE_SHARE", 0.0)
        monkeypatch.setattr("skerry.spark.sail_process.SAIL_RECYCLE_LOOKS", 1)
        monkeypatch.setattr("skerry.spark.sail_process.SAIL_START_S", 0.0)

        async def run() -> None:
            async with Site(engine) as site:
                while not any(isinstance(event, trace.RecycleFailed) for event in events):
                    _, table = await site.drive("SELECT 1 AS n")
                    assert table.to_pylist() == [{"n": 1}]
                await site.drive("SELECT 1 AS n")

        asyncio.run(run())
        assert engine.current.pid == before
    finally:
        engine.stop()
    assert engine._recycler is None

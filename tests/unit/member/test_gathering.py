"""Statistics by a member's own Spark, in the background: when it is asked, how long, and what is kept of its answer."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from skerry.member import gathering, lull
from skerry.model.errors import SiteError
from skerry.model.table import Column, ColumnStats, PartStats
from tests.unit.member.table_world import COLUMNS, ROWS, by_name, world


@pytest.fixture(autouse=True)
def short_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lull, "_MOMENT_S", 0.01)


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


def test_all_fragments_of_a_query_read_one_state_of_a_table(tmp_path: Path) -> None:
    async def test() -> None:
        async with world(tmp_path) as w:
            reading = w.tables.reading(["T"])
            first = asyncio.ensure_future(reading.snapshot("t"))
            await asyncio.sleep(0)
            first.cancel()  # its fragment is stopped: the next one lists
            before = await reading.snapshot("t")
            w.write("b", "4,c\n")
            assert (await reading.snapshot("T")).files.files == before.files.files
            assert len((await w.tables.snapshot("t")).files.files) == len(before.files.files) + 1

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
            # It is asked for again in a better moment; a busy machine may miss some.
            w.lull.running(0)
            while await w.settle() is None:
                await w.look()
            assert (len(w.spark.jobs), w.warnings) == (1, [])

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


def test_a_query_that_comes_ends_the_job(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        async with world(tmp_path) as w:
            w.spark.gate.clear()
            await w.look()
            await w.until(lambda: w.spark.running)
            w.lull.running(1)
            await w.until(lambda: w.tables._gathering._waiting)
            assert w.spark.cancelled == {job.tag for job in w.spark.jobs}
            assert not w.spark.running
            w.spark.gate.set()
            w.lull.running(0)
            assert await w.settle() is not None
            assert (len(w.spark.jobs), w.news, w.warnings) == (2, 1, [])

    run(test)
    assert not caplog.records


def test_a_job_gives_way_so_often_and_then_goes_on(tmp_path: Path) -> None:
    async def test() -> None:
        async with world(tmp_path, stats_put_off=2) as w:
            w.spark.gate.clear()
            await w.look()
            for number in (1, 2):
                await w.until(lambda: w.spark.running)
                w.lull.running(1)
                await w.until(lambda: w.tables._gathering._waiting)
                assert len(w.spark.cancelled) == number
                w.lull.running(0)
            await w.until(lambda: w.spark.running)
            w.lull.running(1)
            w.spark.gate.set()
            assert await w.settle() is not None
            assert (len(w.spark.jobs), len(w.spark.cancelled)) == (3, 2)
            # Other files have waited for nobody yet.
            w.write("b", "4,c\n")
            w.spark.gate.clear()
            w.lull.running(0)
            await w.look()
            await w.until(lambda: w.spark.running)
            w.lull.running(1)
            await w.until(lambda: len(w.spark.cancelled) == 3)

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


def test_a_member_that_stops_while_a_query_ends_the_job(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        async with world(tmp_path) as w:
            w.spark.gate.clear()
            w.spark.is_deaf = True
            await w.look()
            await w.until(lambda: w.spark.running)
            w.lull.running(1)
            await w.until(lambda: w.spark.cancelled)
            stopping = asyncio.ensure_future(w.stop())
            await asyncio.sleep(0)
            assert w.spark.running
            w.spark.is_deaf = False
            await stopping
            assert not w.spark.running
            assert w.warnings == []

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

"""Readers that stall, spools that fill, lanes that outnumber slots (D7)."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import skerry
from skerry.client.dbapi import Cursor
from skerry.model.errors import Overloaded
from skerry.model.limits import KIB, MIB
from skerry.testing.cluster import LocalCluster
from tests.integration.member.conftest import StartCluster
from tests.integration.member.member_sites import DEADLINE_S, FEW, large_query, nothing_left, wait_until

pytestmark = pytest.mark.spark

# A result that stalls gives way to others in one test only: on a slow machine these may take long.
PATIENCE = {"sink_stalled_s": 600.0}
LITTLE = {"spool_memory_bytes": MIB, "spool_disk_bytes": 2 * MIB, "first_credits_bytes": 256 * KIB} | PATIENCE
FILES = 40
ROWS = 50  # a file


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table of forty files."""
    folder = tmp_path_factory.mktemp("wide")
    for number in range(FILES):
        ids = [(each * FILES + number) * 7919 % (FILES * ROWS) for each in range(ROWS)]
        text = [f"{each:05} {'y' * 2000}" for each in ids]
        pq.write_table(pa.table({"id": ids, "text": text}), folder / f"{number:02}.parquet", compression="none")
    return folder


@pytest.fixture
def a_task_a_file(spark_engine: Any) -> Iterator[None]:
    """Scans of many tasks, as a large table or another Spark would have them."""
    conf = spark_engine._jvm.session.conf
    wanted = {"spark.sql.files.maxPartitionNum": str(FILES), "spark.sql.files.openCostInBytes": str(64 * MIB)}
    before = {key: conf.get(key) for key in wanted}
    for key, value in wanted.items():
        conf.set(key, value)
    yield
    for key, value in before.items():
        conf.set(key, value)


def waits(members: LocalCluster, name: str) -> bool:
    """Whether tasks at that member wait for the reader of their result."""

    async def ask() -> bool:
        member = members.members[name]
        return any(member.taskport.waiting_s(query) > 0 for query in member.participants)

    return members.call(ask())


def on_disk(cursor: Cursor, name: str) -> int:
    """Bytes of the query that the member last said it has on disk."""
    return sum(each.disk_bytes for each in cursor.status().memory if each.member == name)


@pytest.mark.parametrize("at", ["tromso", "oslo"], ids=["at the site", "at another"])
def test_a_reader_that_stalls_does_not_hold_up_others(start_members: StartCluster, at: str) -> None:
    members = start_members(limits=LITTLE)
    with members.connect(at) as connection, members.connect("bergen") as other:
        stalled = connection.cursor().execute(large_query("tromso"))
        wait_until(lambda: waits(members, "tromso"), "the spool is full")
        for number in range(10):
            small = (connection if number % 2 else other).cursor()
            assert small.execute("SELECT count(*) FROM tromso.few").fetchall() == [(FEW,)]
        # What waits at tromso has gone on as far as other members had room: the spool is full for good now.
        wait_until(lambda: waits(members, "tromso") and on_disk(stalled, "tromso"), "the spool is full again")
        status = stalled.status()
        assert status.state == "running"
        held = {each.member: each for each in status.memory}
        assert 0 < held["tromso"].disk_bytes <= held["tromso"].disk_peak_bytes <= LITTLE["spool_disk_bytes"]
        for each in held.values():
            assert each.memory_bytes <= each.memory_peak_bytes <= LITTLE["spool_memory_bytes"]
        # It goes on when its reader does.
        assert len(stalled.fetchmany(100_000)) == 100_000
        stalled.close()
        nothing_left(members)


def test_own_rows_leave_room_for_those_that_arrive(start_members: StartCluster, wide: Path) -> None:
    limits = {"spool_memory_bytes": 8 * MIB, "spool_disk_bytes": 8 * MIB, "first_credits_bytes": MIB}
    members = start_members(tables={"oslo": {"wide": wide}, "bergen": {"wide": wide}}, limits=limits | PATIENCE)
    with members.connect("oslo") as connection:
        cursor = connection.cursor().execute("SELECT id, repeat(text, 10) FROM wide")
        for name in ("oslo", "bergen"):
            wait_until(lambda name=name: waits(members, name), f"the spool of {name} is full")  # type: ignore[misc]
        ids = cursor.fetch_arrow_table().column("id").to_pylist()
    assert sorted(ids) == sorted(2 * list(range(FILES * ROWS)))


def test_more_sorted_lanes_than_slots(start_members: StartCluster, wide: Path, a_task_a_file: None) -> None:
    members = start_members(tables={"oslo": {"wide": wide}, "bergen": {"wide": wide}})
    with members.connect("bergen") as connection:
        cursor = connection.cursor().execute("SELECT id, text FROM wide ORDER BY id DESC, text")
        ids = cursor.fetch_arrow_table().column("id").to_pylist()
        nothing_left(members)  # then all counts are in
        fragments = cursor.status().fragments
    assert ids == sorted(2 * list(range(FILES * ROWS)), reverse=True)
    assert [fragment.rows for fragment in fragments] == [FILES * ROWS, FILES * ROWS]


def test_a_full_spool_of_an_edge_ends_its_query_alone(start_members: StartCluster) -> None:
    members = start_members(limits=LITTLE | {"spool_memory_bytes": 128 * KIB, "spool_disk_bytes": 128 * KIB})
    joined = "SELECT count(*) FROM oslo.ticks a JOIN tromso.ticks b ON a.note = b.note"
    for at in ("oslo", "bergen", "tromso"):
        with members.connect(at) as connection, connection.cursor() as cursor:
            with pytest.raises(skerry.OperationalError, match=r"spool full.*limits\.spool_memory_bytes") as caught:
                cursor.execute(joined, planning={"rules": "none"})  # by their notes alone no row would come
            assert caught.value.code == Overloaded.code
            assert caught.value.member in ("oslo", "tromso")
            nothing_left(members)
            assert cursor.execute("SELECT count(*) FROM oslo.few a CROSS JOIN tromso.few b").fetchall() == [
                (FEW * FEW,)
            ]


@pytest.mark.parametrize("at", ["oslo", "bergen"], ids=["at the site", "at another"])
def test_a_stalled_result_gives_way_to_queries_that_wait(
    start_members: StartCluster,
    fault_tables: Mapping[str, Mapping[str, Path]],
    wide: Path,
    a_task_a_file: None,
    at: str,
) -> None:
    tables = {"oslo": {"wide": wide}, "bergen": {"few": fault_tables["bergen"]["few"]}}
    limits = {"spool_memory_bytes": 256 * KIB, "spool_disk_bytes": 256 * KIB, "first_credits_bytes": 1}
    members = start_members(tables=tables, limits=limits | {"sink_stalled_s": 1.0})
    with members.connect(at) as connection, members.connect("bergen") as other:
        stalled = connection.cursor().execute("SELECT id, text FROM oslo.wide")
        wait_until(lambda: waits(members, "oslo"), "the spool is full")
        counted: list[object] = []

        def count() -> None:
            counted.extend(other.cursor().execute("SELECT count(*) FROM bergen.few").fetchall())

        waiting = threading.Thread(target=count)
        waiting.start()
        wait_until(lambda: stalled.status().state == "failed", "the query gives way")
        with pytest.raises(skerry.OperationalError, match=r"not read for 1 s, its spool is full") as caught:
            stalled.fetchall()
        waiting.join(DEADLINE_S)
        assert caught.value.code == Overloaded.code
        assert caught.value.member == "oslo"
        assert counted == [(FEW,)]
        nothing_left(members)


def test_jobs_that_wait_take_no_thread_from_planning(
    start_members: StartCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("skerry.member.server._THREADS", 1)
    members = start_members(limits=LITTLE)
    with members.connect("tromso") as connection:
        stalled = connection.cursor().execute(large_query("tromso"))
        wait_until(lambda: waits(members, "tromso"), "the spool is full")
        counted: list[object] = []
        small = connection.cursor()
        asking = threading.Thread(
            target=lambda: counted.extend(small.execute("SELECT count(*) FROM tromso.few").fetchall())
        )
        asking.start()
        wait_until(lambda: counted, "the small query is answered beside the stalled one")
        asking.join(DEADLINE_S)
        assert counted == [(FEW,)]
        wait_until(lambda: waits(members, "tromso"), "the stalled one still waits")
        stalled.close()


def test_a_row_larger_than_a_frame_ends_its_query_alone(start_members: StartCluster) -> None:
    members = start_members(limits={"frame_bytes": MIB})
    with members.connect("oslo") as connection:
        cursor = connection.cursor()
        with pytest.raises(skerry.OperationalError, match="over the limit of a frame") as caught:
            cursor.execute("SELECT repeat('x', 2000000)")
        assert caught.value.code == Overloaded.code
        nothing_left(members)
        assert cursor.execute("SELECT count(*) FROM oslo.few").fetchall() == [(FEW,)]

"""An engine that ends under its queries: the member lives, reads are asked again, whoever ended it is told."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

import skerry
from skerry.model import trace
from skerry.model.errors import EngineEnded
from skerry.model.limits import MIB
from skerry.spark.recycled import RecycledSail
from skerry.spark.sail_process import wanted_processor_s
from skerry.spark.settings import SparkSettings
from skerry.spark.waste import Waste
from skerry.testing.cluster import LocalCluster
from tests.integration.member.member_sites import PATIENT, TICKS, nothing_left, wait_until, write_sites

pytestmark = pytest.mark.sail

SLOW = "SELECT count(*) FROM oslo.ticks a JOIN oslo.ticks b ON a.kind = b.kind AND a.note <> b.note AND a.id < 4000"
LONG = (
    "SELECT count(*) FROM oslo.ticks a JOIN oslo.ticks b ON a.kind = b.kind "
    "WHERE sha2(concat(a.id, 'a'), 512) < sha2(concat(b.id, 'b'), 512)"
)
# Values of 70 MB, of which Sail holds those of many rows at once.
ENDLESS = "SELECT max(length(repeat(a.note, 2000000))) FROM oslo.ticks a"


@pytest.fixture(scope="module")
def own_sail() -> Iterator[RecycledSail]:
    """A Sail that tests may end, with little memory."""
    engine = RecycledSail(SparkSettings(sail=True, memory_bytes=1024 * MIB))
    engine.start()
    yield engine
    engine.stop()


@pytest.fixture
def cluster(
    own_sail: RecycledSail, fault_tables: Mapping[str, Mapping[str, Path]], tmp_path: Path
) -> Iterator[LocalCluster]:
    path = write_sites(tmp_path / "skerry.yaml", fault_tables, limits={**PATIENT, "stop_s": 1.0})
    with LocalCluster(str(path), engine=own_sail) as members:
        yield members
        nothing_left(members)


def is_running(cluster: LocalCluster, engine: RecycledSail, queries: int) -> bool:
    return len(cluster.members["oslo"].participants) == queries == len(engine.current._tags.names())


def test_a_read_is_asked_again_when_its_engine_ends(cluster: LocalCluster, own_sail: RecycledSail) -> None:
    with cluster.connect("bergen") as connection, ThreadPoolExecutor() as threads:
        asking = threads.submit(lambda: connection.cursor().execute(SLOW).fetchall())
        wait_until(lambda: is_running(cluster, own_sail, 1), "it runs")
        assert own_sail.current.pid is not None
        os.kill(own_sail.current.pid, signal.SIGKILL)
        ((count,),) = asking.result()
        assert count > TICKS


def test_who_ends_the_engine_is_told_and_others_get_their_rows(cluster: LocalCluster, own_sail: RecycledSail) -> None:
    with cluster.connect("bergen") as connection, ThreadPoolExecutor() as threads:
        beside = threads.submit(lambda: connection.cursor().execute(SLOW).fetchall())
        wait_until(lambda: is_running(cluster, own_sail, 1), "it runs")
        with pytest.raises(
            skerry.OperationalError, match=r"^site oslo: Sail ended \(its memory limit of 1.0 GiB was reached"
        ) as ended:
            connection.cursor().execute(ENDLESS)
        assert ended.value.code == EngineEnded.code
        with pytest.raises(skerry.OperationalError, match="ended 2 times while it ran this statement"):
            connection.cursor().execute(ENDLESS)
        ((count,),) = beside.result()
        assert count > TICKS
        assert connection.cursor().execute("SELECT count(*) FROM few").fetchall() != []


def test_a_read_that_is_held_up_by_what_was_cancelled_begins_anew(
    cluster: LocalCluster, own_sail: RecycledSail, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sail goes on with some joins after their cancel, and they may keep the threads that others wait for."""
    monkeypatch.setattr("skerry.spark.waste.SAIL_WASTE_AGE_S", 0.0)
    monkeypatch.setattr("skerry.spark.recycled.SAIL_HELD_UP_S", 0.0)
    old = own_sail.current
    pid = old.pid
    assert pid is not None
    old._process._waste = Waste(0.0)  # type: ignore[union-attr]  # it may be young
    events: list[trace.Event] = []
    monkeypatch.setattr(trace, "listeners", [events.append])
    with cluster.connect("bergen") as connection, ThreadPoolExecutor() as threads:
        wasted, held_up = connection.cursor(), connection.cursor()
        asking = [threads.submit(cursor.execute, LONG) for cursor in (wasted, held_up)]
        wanted_s = wanted_processor_s(pid)
        wait_until(lambda: is_running(cluster, own_sail, 2), "both run")
        wait_until(lambda: wanted_processor_s(pid) > wanted_s + 2.0, "they compute")
        wasted.cancel()
        wait_until(lambda: not psutil.pid_exists(pid), "the Sail that went on is gone")
        wait_until(lambda: is_running(cluster, own_sail, 1), "the other began anew, at a fresh one")
        assert [event.reason for event in events if isinstance(event, trace.QueryReplanned)] == [
            "Sail goes on with what was cancelled, and holds this up"
        ]
        monkeypatch.undo()
        held_up.cancel()
        for asked in asking:
            with pytest.raises(skerry.OperationalError, match="cancelled"):
                asked.result()

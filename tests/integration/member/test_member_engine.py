"""An engine that ends under its queries: the member lives, reads are asked again, whoever ended it is told."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import skerry
from skerry.model.errors import EngineEnded
from skerry.model.limits import MIB
from skerry.spark.sail import SailEngine
from skerry.spark.settings import SparkSettings
from skerry.testing.cluster import LocalCluster
from tests.integration.member.member_sites import PATIENT, TICKS, nothing_left, wait_until, write_sites

pytestmark = pytest.mark.sail

SLOW = "SELECT count(*) FROM oslo.ticks a JOIN oslo.ticks b ON a.kind = b.kind AND a.note <> b.note AND a.id < 4000"
# Values of 70 MB, of which Sail holds those of many rows at once.
ENDLESS = "SELECT max(length(repeat(a.note, 2000000))) FROM oslo.ticks a"


@pytest.fixture(scope="module")
def own_sail() -> Iterator[SailEngine]:
    """A Sail that tests may end, with little memory."""
    engine = SailEngine(SparkSettings(sail=True, memory_bytes=1024 * MIB))
    engine.start()
    yield engine
    engine.stop()


@pytest.fixture
def cluster(
    own_sail: SailEngine, fault_tables: Mapping[str, Mapping[str, Path]], tmp_path: Path
) -> Iterator[LocalCluster]:
    path = write_sites(tmp_path / "skerry.yaml", fault_tables, limits={**PATIENT, "stop_s": 1.0})
    with LocalCluster(str(path), engine=own_sail) as members:
        yield members
        nothing_left(members)


def is_running(cluster: LocalCluster, engine: SailEngine, queries: int) -> bool:
    return len(cluster.members["oslo"].participants) == queries == len(engine._tags.names())


def test_a_read_is_asked_again_when_its_engine_ends(cluster: LocalCluster, own_sail: SailEngine) -> None:
    with cluster.connect("bergen") as connection, ThreadPoolExecutor() as threads:
        asking = threads.submit(lambda: connection.cursor().execute(SLOW).fetchall())
        wait_until(lambda: is_running(cluster, own_sail, 1), "it runs")
        assert own_sail.pid is not None
        os.kill(own_sail.pid, signal.SIGKILL)
        ((count,),) = asking.result()
        assert count > TICKS


def test_who_ends_the_engine_is_told_and_others_get_their_rows(cluster: LocalCluster, own_sail: SailEngine) -> None:
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

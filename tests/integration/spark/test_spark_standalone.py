"""A standalone cluster whose workers die or fall behind, and members that share it or start again."""

from __future__ import annotations

import signal
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psutil
import pytest

import skerry
from skerry.testing.cluster import LocalCluster
from skerry.testing.ports import free_ports
from skerry.testing.sparks import Standalone
from tests.conftest import CLUSTER_CONF
from tests.e2e.processes import Site
from tests.integration.member.member_sites import TICKS, wait_until, write_sites
from tests.integration.spark.cluster_sites import SLOW, Asking, Placed, ask, is_whole, wait_for_rows

pytestmark = pytest.mark.standalone


@pytest.fixture(scope="module")
def kind() -> str:
    return "standalone"


def test_a_worker_that_is_killed_is_missed_by_nobody(
    standalone_cluster: Standalone,
    members: LocalCluster,
    asking: Asking,
    placed: Placed,
) -> None:
    wait_until(lambda: len(standalone_cluster.executors()) == 2, "two executors")
    answer = asking(members, SLOW)
    wait_for_rows(members)
    standalone_cluster.workers[0].kill()
    is_whole(answer.result(), placed)
    standalone_cluster.start_worker()


def all_rows(url: str, sql: str) -> list[tuple[Any, ...]]:
    with skerry.connect(url, timeout_s=60) as connection, connection.cursor() as cursor:
        return cursor.execute(sql).fetchall()


def test_two_members_share_a_cluster_and_one_starts_again(
    standalone_cluster: Standalone,
    executors_python: str,
    members: LocalCluster,
    placed: Placed,
    tmp_path: Path,
) -> None:
    """Each is a driver of its own, with a share of the cores. One that is killed takes its executors with it."""
    (port,) = free_ports(1)
    conf = {**CLUSTER_CONF, "spark.cores.max": "2", "spark.pyspark.python": executors_python}
    spark = {"master": standalone_cluster.url, "conf": conf}
    tables = {"oslo": {"ticks": placed["oslo"]["ticks"]}}
    file = write_sites(tmp_path / "skerry.yaml", tables, ports={"oslo": port}, spark=spark, cluster="another")
    temp = Path(tempfile.mkdtemp(prefix="e"))
    before = set(standalone_cluster.executors())

    def own() -> set[psutil.Process]:
        return set(standalone_cluster.executors()) - before

    site = Site(file, "oslo", tmp_path, temp)
    url = f"skerry://127.0.0.1:{port}"
    with site.running(), ThreadPoolExecutor() as pool:
        lost = pool.submit(all_rows, url, SLOW.replace("400", "4000"))
        wait_until(own, "executors of its own")
        assert ask(members, "SELECT count(*) AS n FROM ticks").to_pylist() == [{"n": 3 * TICKS}]
        site.end(signal.SIGKILL)
        assert isinstance(lost.exception(), skerry.OperationalError)
    wait_until(lambda: not own(), "its executors are gone")
    site = Site(file, "oslo", tmp_path, temp)
    with site.running():
        assert all_rows(url, "SELECT count(*), sum(id) FROM ticks") == [(TICKS, sum(range(TICKS)))]
        assert site.end(signal.SIGTERM) == 0
    wait_until(lambda: not own(), "its executors are gone")


def test_an_application_that_is_removed_is_begun_anew(members: LocalCluster, asking: Asking, placed: Placed) -> None:
    """Spark stops the context then, as is done here; the driver's JVM lives on, and would never answer again."""
    engine: Any = members.engine
    before = engine.jvm_pid
    answer = asking(members, SLOW)
    wait_for_rows(members)
    engine.session.sparkContext._jsc.sc().stop()
    is_whole(answer.result(), placed)  # it had given no row, so it is run once more
    assert engine.jvm_pid != before

"""A member that is told to stop takes no new query, and lets those that run end."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager

import pytest

import skerry
from skerry.model.errors import SiteStopping
from skerry.testing.cluster import LocalCluster
from tests.integration.member.conftest import StartCluster
from tests.integration.member.member_sites import FEW, TICKS, nothing_left, slow_query, wait_until

LONG_S = 100.0  # longer than any of these tests, and shorter than a call of the cluster may take
# More than a client asks for ahead of what it reads, however few rows each page has.
COPIES = 10
MANY_TICKS = f"SELECT t.id, t.note FROM oslo.ticks t CROSS JOIN oslo.few f WHERE f.id < {COPIES}"


class Draining:
    """A member in a cluster, told to stop; `end` waits for it, and for its own end."""

    def __init__(self, cluster: LocalCluster, name: str, drain_s: float, threads: ThreadPoolExecutor) -> None:
        self._cluster = cluster
        self._name = name
        self._member = cluster.members[name]
        self._hurry = asyncio.Event()
        self._waiting: Future[None] = threads.submit(cluster.call, self._member.drain(drain_s, self._hurry))
        wait_until(lambda: self._member._drain.has_begun, "it has been told")

    @property
    def runs(self) -> int:
        """How many queries it still waits for."""
        assert not self._waiting.done()
        return len(self._member._drain.running())

    def hurry(self) -> None:
        self._cluster._loop.call_soon_threadsafe(self._hurry.set)

    def end(self) -> None:
        self._waiting.result()
        self._cluster.stop_member(self._name)


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor() as pool:
        yield pool


@contextmanager
def half_read(connection: skerry.Connection, sql: str = MANY_TICKS) -> Iterator[skerry.Cursor]:
    """A cursor with more pages than the first."""
    with connection.cursor() as cursor:
        cursor.execute(sql)
        assert cursor.fetchone() is not None
        yield cursor


def refused_by(error: skerry.Error) -> str:
    """Who takes no new query."""
    assert error.code == SiteStopping.code
    return error.member


def test_rows_are_read_to_their_end_and_no_query_begins(start_sail: StartCluster, threads: ThreadPoolExecutor) -> None:
    cluster = start_sail()
    oslo, bergen = cluster.connect("oslo"), cluster.connect("bergen")
    with half_read(oslo) as begun_here, half_read(bergen) as takes_part:
        draining = Draining(cluster, "oslo", LONG_S, threads)
        assert draining.runs == 2
        with pytest.raises(skerry.OperationalError, match="site oslo is stopping; ask another member") as refused:
            oslo.cursor().execute("SELECT 1")
        assert refused_by(refused.value) == "oslo"
        with pytest.raises(skerry.OperationalError, match="site oslo is stopping") as refused:
            bergen.cursor().execute("SELECT count(*) FROM few")
        assert refused_by(refused.value) == "oslo"
        assert bergen.cursor().execute("SELECT count(*) FROM bergen.few").fetchall() == [(FEW,)]
        assert {each.name: each.state for each in oslo.members()}["oslo"] == "stopping"
        assert draining.runs == 2
        assert len(begun_here.fetchall()) == len(takes_part.fetchall()) == TICKS * COPIES - 1
    draining.end()
    nothing_left(cluster)


def test_a_query_that_is_computed_is_waited_for(start_sail: StartCluster, threads: ThreadPoolExecutor) -> None:
    cluster = start_sail()
    sql = (
        "SELECT count(*) FROM oslo.ticks t JOIN bergen.few a ON t.note <> a.name JOIN bergen.few b ON t.note <> b.name"
    )
    with cluster.connect("oslo") as connection, connection.cursor() as cursor:
        asking = threads.submit(lambda: cursor.execute(sql).fetchall())
        wait_until(lambda: cluster.members["oslo"].initiated, "it runs")
        Draining(cluster, "oslo", LONG_S, threads).end()
        assert asking.result() == [(TICKS * FEW * FEW,)]


def test_the_wait_is_bounded(start_sail: StartCluster, threads: ThreadPoolExecutor) -> None:
    cluster = start_sail()
    with cluster.connect("bergen") as connection, connection.cursor() as cursor:
        asking = threads.submit(cursor.execute, slow_query("oslo"))
        wait_until(lambda: cluster.members["oslo"].participants, "it runs")
        Draining(cluster, "oslo", 0.2, threads).end()
        with pytest.raises(skerry.OperationalError, match=r"^site oslo is stopping$"):
            asking.result()
    nothing_left(cluster)


def test_who_is_told_again_does_not_wait(start_sail: StartCluster, threads: ThreadPoolExecutor) -> None:
    cluster = start_sail()
    with half_read(cluster.connect("oslo")) as cursor:
        draining = Draining(cluster, "oslo", LONG_S, threads)
        assert draining.runs == 1
        draining.hurry()
        draining.end()
        with pytest.raises(skerry.OperationalError, match=r"site oslo is stopping|is gone"):
            cursor.fetchall()
    nothing_left(cluster)


def test_what_nobody_reads_is_not_waited_for(start_sail: StartCluster, threads: ThreadPoolExecutor) -> None:
    cluster = start_sail()
    idle = cluster.connect("oslo")
    assert idle.cursor().execute("SELECT count(*) FROM few").fetchall() == [(3 * FEW,)]
    query = idle.cursor().execute("SELECT name FROM oslo.few", detach=True).query_id
    wait_until(lambda: idle.status(query).state == "done", "the detached query")
    Draining(cluster, "oslo", LONG_S, threads).end()
    nothing_left(cluster)


def test_reads_go_to_another_member(start_sail: StartCluster, threads: ThreadPoolExecutor) -> None:
    cluster = start_sail()
    connection = cluster.connect("oslo", retry="reads")
    with half_read(connection) as cursor:
        draining = Draining(cluster, "oslo", LONG_S, threads)
        other = connection.cursor().execute("SELECT count(*) FROM bergen.few")
        assert other.fetchall() == [(FEW,)]
        assert other.query_id.initiator == connection.member != "oslo"
        assert draining.runs == 1
        assert len(cursor.fetchall()) == TICKS * COPIES - 1  # from where it began
    draining.end()

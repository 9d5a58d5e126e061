"""Connections that break, detached queries and retries, with members, Sail and a proxy that cuts."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import skerry
from skerry.client.dbapi import Connection, Cursor
from skerry.spark.engine import Engine
from skerry.testing.cluster import LocalCluster
from tests.integration.client.proxy import Proxy
from tests.integration.member.member_sites import (
    FEW,
    TICKS,
    large_query,
    make_sites,
    nothing_left,
    slow_query,
    wait_until,
    write_sites,
)

pytestmark = pytest.mark.sail

WAIT_S = 60.0
SQL = "SELECT id, note FROM ticks"
IDS = list(range(3 * TICKS))

FETCHES: dict[str, Callable[[Cursor], list[int]]] = {
    "fetchall": lambda cursor: [row[0] for row in cursor.fetchall()],
    "iterated": lambda cursor: [row[0] for row in cursor],
    "arrow": lambda cursor: cursor.fetch_arrow_table()["id"].to_pylist(),
    "reader": lambda cursor: cursor.fetch_record_batch_reader().read_all()["id"].to_pylist(),
}


def proxy_to(cluster: LocalCluster, member: str = "oslo", delay_s: float = 0.0) -> Proxy:
    return Proxy(cluster.config.member(member).address, delay_s)


@pytest.mark.parametrize("fetch", FETCHES.values(), ids=FETCHES)
def test_a_result_survives_many_cuts(cluster: LocalCluster, fetch: Callable[[Cursor], list[int]]) -> None:
    with proxy_to(cluster) as proxy, skerry.connect(proxy.url, resume_s=30) as connection:
        cursor = connection.cursor().execute(SQL)
        proxy.cut_after(1, 50_000, 3_000, 200_000, 100_000)
        assert sorted(fetch(cursor)) == IDS
        assert proxy.connections >= 4
        assert connection.usable
        cursor.close()
        wait_until(lambda: is_heard(connection), "the close has passed")  # see below


def test_execute_survives_a_cut_at_every_moment(cluster: LocalCluster) -> None:
    """Before the execute arrived, while it is planned, while it runs, while the first page comes."""
    with proxy_to(cluster, delay_s=0.001) as proxy, skerry.connect(proxy.url, resume_s=30) as connection:
        for moment_s in (0.0, 0.002, 0.004, 0.008, 0.016, 0.03, 0.06, 0.12):
            timer = threading.Timer(moment_s, proxy.cut)
            timer.start()
            rows = connection.cursor().execute("SELECT id FROM few ORDER BY id, name").fetchall()
            assert [row[0] for row in rows] == [n for n in range(FEW) for _ in range(3)]
            timer.join(WAIT_S)
        # The proxy's end drops what it still delays, the last close and the goodbye among it, and the query would stay
        # for its lease. An answer to something asked after that close says that it has passed.
        wait_until(lambda: is_heard(connection), "the last close has passed")


def is_heard(connection: Connection) -> bool:
    try:
        return bool(connection.members())
    except skerry.OperationalError:
        return False


def test_without_resume_a_cut_ends_the_query_everywhere(cluster: LocalCluster) -> None:
    with proxy_to(cluster) as proxy, skerry.connect(proxy.url) as connection:
        cursor = connection.cursor().execute(large_query("bergen"))
        proxy.cut()
        with pytest.raises(skerry.OperationalError, match="is gone"):
            cursor.fetchall()
    nothing_left(cluster)


def test_a_client_that_stays_away_too_long_has_lost_its_query(cluster: LocalCluster) -> None:
    with proxy_to(cluster) as proxy:
        connection = skerry.connect(proxy.url, resume_s=0.5)
        connection.cursor().execute(large_query("bergen"))
        proxy.stop()
        wait_until(lambda: not connection.usable, "the link gave up")
        connection.close()
    nothing_left(cluster)


def test_a_stall_is_waited_out(cluster: LocalCluster) -> None:
    """Nothing passes for some heartbeats: the client dials again, the newer connection wins."""
    with proxy_to(cluster) as proxy, skerry.connect(proxy.url, resume_s=30) as connection:
        cursor = connection.cursor().execute(SQL)
        first = cursor.fetchone()
        proxy.hold()
        wait_until(lambda: proxy.connections > 1, "dialled again")
        proxy.release()
        assert first is not None
        assert sorted([first[0], *(row[0] for row in cursor)]) == IDS


def test_detached_queries(cluster: LocalCluster) -> None:
    with cluster.connect("oslo") as connection:
        cursor = connection.cursor().execute(SQL, detach=True, lease_s=30)
        query = cursor.query_id
        with pytest.raises(skerry.InterfaceError, match="detached"):
            cursor.fetchone()
        cursor.close()
    with cluster.connect("bergen") as other:  # at another member: it is asked where it runs
        (info,) = [info for info in other.queries("oslo") if info.query == query]
        assert (info.sql, info.query.initiator) == (SQL, "oslo")
        assert other.status(query).state in ("planning", "running", "done")
        attached = other.attach(query)
        assert attached.description is not None
        assert sorted(attached.fetch_arrow_table()["id"].to_pylist()) == IDS
        with pytest.raises(skerry.OperationalError, match="all of its rows were given"):
            other.attach(query)


def test_a_detached_query_that_fails_says_so_to_whoever_attaches(cluster: LocalCluster) -> None:
    with cluster.connect("oslo") as connection:
        query = connection.cursor().execute("SELECT nothing FROM few", detach=True).query_id
        with pytest.raises(skerry.ProgrammingError, match="nothing"):
            connection.attach(query)


@pytest.mark.parametrize("how", ["cursor", "connection", "short id"])
def test_detached_queries_are_cancelled(cluster: LocalCluster, how: str) -> None:
    with cluster.connect("oslo") as connection, cluster.connect("tromso") as other:
        cursor = connection.cursor().execute(slow_query("bergen"), detach=True)
        wait_until(lambda: connection.status(cursor.query_id).state == "running", "it runs")
        match how:
            case "cursor":
                cursor.cancel()
            case "connection":
                other.cancel(cursor.query_id)
            case _:
                other.cancel(str(cursor.query_id))
        wait_until(lambda: connection.status(cursor.query_id).state == "cancelled", "it is cancelled")
        connection.cancel(cursor.query_id)  # a second time: always answered
    nothing_left(cluster)


def test_cancel_from_another_thread_while_execute_waits(cluster: LocalCluster) -> None:
    with cluster.connect("oslo") as connection, connection.cursor() as cursor:

        def cancel() -> None:
            wait_until(lambda: cursor.query_id is not None and cursor.progress.state == "running", "it runs")
            cursor.cancel()

        canceller = threading.Thread(target=cancel)
        canceller.start()
        with pytest.raises(skerry.OperationalError, match="was cancelled"):
            cursor.execute(slow_query("bergen"))
        canceller.join(WAIT_S)
        assert cursor.execute("SELECT max(id) FROM few").fetchone() == (FEW - 1,)


def test_progress(cluster: LocalCluster) -> None:
    with cluster.connect("oslo") as connection:
        cursor = connection.cursor().execute(SQL)
        cursor.fetchall()
        nothing_left(cluster)  # then all counts are in
        progress = cursor.progress
        assert progress.rows == 3 * TICKS
        assert {fragment.member for fragment in progress.fragments} == {"oslo", "bergen", "tromso"}
        assert {link.sender for link in progress.links} >= {"bergen", "tromso"}
        assert progress.size_bytes == sum(link.size_bytes for link in progress.links) > 0


def test_rows_as_frames(cluster: LocalCluster) -> None:
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    with cluster.connect("oslo") as connection:
        sql = "SELECT id, name FROM oslo.few ORDER BY id"
        frame = connection.cursor().execute(sql).fetch_pandas()
        assert isinstance(frame, pandas.DataFrame)
        assert list(frame["name"]) == [f"oslo {n}" for n in range(FEW)]
        cursor = connection.cursor().execute(sql)
        cursor.fetchmany(10)
        rest = cursor.fetch_polars()
        assert isinstance(rest, polars.DataFrame)
        assert rest["id"].to_list() == list(range(10, FEW))
        assert isinstance(connection.cursor().execute(sql).fetch_arrow_table(), pa.Table)
        some = "SELECT decimal, timestamp, array(1, NULL) AS list, named_struct('x', 1.5D) AS struct FROM kinds"
        assert dict(polars.read_database(some, connection).schema) == {
            "decimal": polars.Decimal(10, 2),
            "timestamp": polars.Datetime("us", "UTC"),
            "list": polars.List(polars.Int32()),
            "struct": polars.Struct({"x": polars.Float64()}),
        }


def test_reads_run_again_at_another_member(sail_engine: Engine, tmp_path: Path) -> None:
    path = write_sites(tmp_path / "skerry.yaml", make_sites(tmp_path / "sites"))
    with LocalCluster(str(path), engine=sail_engine) as members:
        connection = members.connect("oslo", retry="reads")
        sql = "SELECT max(id) FROM bergen.few"
        assert connection.cursor().execute(sql).fetchone() == (FEW - 1,)
        members.stop_member("oslo")
        cursor = connection.cursor().execute(sql)
        assert cursor.fetchone() == (FEW - 1,)
        assert cursor.query_id.initiator == connection.member != "oslo"

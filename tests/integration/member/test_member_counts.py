"""Queries that end in a count: real fragments run at real members, and the count reaches whoever asks."""

from __future__ import annotations

import asyncio
import threading
from typing import Any
from uuid import uuid4

import pytest
from click.testing import CliRunner

import skerry
import skerry.aio
from skerry.cli.main import main
from skerry.member.requests import CountAnswer, GivePage, RunStatement
from skerry.model.errors import Cancelled, PeerError, SiteError, SkerryError, SqlError, StaleSchema, UserError
from skerry.model.ids import QueryId
from skerry.model.limits import KIB
from skerry.spark.engine import Engine
from skerry.testing.cluster import LocalCluster
from skerry.wire.client_messages import ClientAttach, ClientExecute, ClientFetch, ClientPage, ClientResult, QueryInfo
from tests.integration.client.proxy import Proxy
from tests.integration.member.conftest import StartCluster
from tests.integration.member.counting import COUNT, STALE, WRITE, Counting
from tests.integration.member.member_sites import DEADLINE_S, FEW, TICKS, nothing_left, slow_query, wait_until
from tests.integration.member.test_member_clients import raw_client, receive
from tests.integration.member.test_member_service import ANN, BOB, Door, rows

ALL = f"{COUNT}SELECT id FROM few"  # 300 rows at three sites


@pytest.fixture
def counting() -> Counting:
    return Counting()


@pytest.fixture
def cluster(start_sail: StartCluster, counting: Counting) -> LocalCluster:
    return start_sail(plan=counting)


@pytest.fixture
def door(cluster: LocalCluster) -> Door:
    return Door(cluster)


def listed(door: Door, query: QueryId) -> QueryInfo:
    (found,) = [each for each in door.do(door.service.queries, BOB) if each.query == query]
    assert isinstance(found, QueryInfo)
    return found


def attached(door: Door, query: QueryId) -> Any:
    return door.wait(door.service.attach(BOB, GivePage(query, 0)))


def is_settled(door: Door, query: QueryId) -> bool:
    return listed(door, query).state == "done"


# --- at the service ------------------------------------------------------------------------------
def test_counts_of_all_that_fragments_do(door: Door) -> None:
    """Rows through tasks, through the driver, in lanes that are sorted, and with edges between the sites."""
    for sql, count in (
        ("SELECT id, note FROM ticks", 3 * TICKS),
        ("SELECT count(*) AS n FROM oslo.few", 1),
        ("SELECT id FROM bergen.ticks ORDER BY id DESC", TICKS),
        ("SELECT t.id FROM oslo.ticks t JOIN bergen.few f ON t.id = f.id", FEW),
        ("SELECT id FROM few WHERE id < 0", 0),
    ):
        query, answer = door.execute(COUNT + sql)
        assert answer == CountAnswer(count), sql
        wait_until(lambda query=query: is_settled(door, query), "the receipts")
        assert (listed(door, query).rows, listed(door, query).size_bytes) == (count, 0)
    assert door.service.open_cursors == 0


def test_rows_that_are_only_counted_stay_where_they_are(door: Door) -> None:
    query, answer = door.execute(f"{COUNT}SELECT id, note FROM ticks")
    assert answer == CountAnswer(3 * TICKS)
    wait_until(lambda: is_settled(door, query), "the receipts")
    assert sum(link.rows for link in listed(door, query).links) == 0


@pytest.mark.parametrize("retries_tasks", [False, True])
def test_counted_rows_need_no_room(
    start_sail: StartCluster,
    sail_engine: Engine,
    counting: Counting,
    monkeypatch: pytest.MonkeyPatch,
    retries_tasks: bool,
) -> None:
    """Far more than a spool holds, also where tasks may run twice and where their rows have an order."""
    monkeypatch.setattr(sail_engine, "retries_tasks", retries_tasks)
    door = Door(start_sail(limits={"spool_memory_bytes": 128 * KIB, "spool_disk_bytes": 128 * KIB}, plan=counting))
    for order in ("", " ORDER BY note"):
        _, answer = door.execute(f"{COUNT}SELECT id, kind, note FROM bergen.ticks{order}")
        assert answer == CountAnswer(TICKS)
    nothing_left(door.cluster)


def test_a_count_is_told_again_and_never_run_again(door: Door, counting: Counting) -> None:
    query, answer = door.execute(ALL)
    assert answer == CountAnswer(3 * FEW)
    assert attached(door, query) == answer
    with pytest.raises(UserError, match="was used before"):
        door.wait(door.service.execute(ANN, RunStatement(query, ALL)))
    assert attached(door, query) == answer
    with pytest.raises(Cancelled, match="has ended: 300 rows changed"):
        door.page(query, 0)
    with pytest.raises(Cancelled, match="has ended: 300 rows changed"):
        door.do(door.service.cancel, BOB, query)
    assert counting.planned == [ALL]


def test_a_detached_count_is_there_for_who_attaches(door: Door, counting: Counting) -> None:
    query = QueryId("oslo", uuid4().hex)
    statement = RunStatement(query, ALL, options={"detach": "1", "lease_s": "600"})
    assert door.wait(door.service.execute(ANN, statement)) is None
    door.do(door.service.gone, ANN, is_goodbye=True)
    assert attached(door, query) == CountAnswer(3 * FEW)
    assert (listed(door, query).state, listed(door, query).rows) == ("done", 3 * FEW)
    assert attached(door, query) == CountAnswer(3 * FEW)
    door.do(door.service.close, BOB, query)
    assert attached(door, query) == CountAnswer(3 * FEW)
    assert listed(door, query).state == "done"
    assert counting.planned == [ALL]


def test_a_count_is_kept_for_a_client_that_lost_its_connection(door: Door, counting: Counting) -> None:
    query, answer = door.execute(ALL, options={"resume_s": "600"})
    door.do(door.service.gone, ANN, is_goodbye=False)
    with pytest.raises(UserError, match="has changed 300 rows, and has none to fetch"):
        door.page(query, 0)
    door.do(door.service.arrived, BOB, query, 1)
    assert attached(door, query) == answer == CountAnswer(3 * FEW)
    door.do(door.service.close, BOB, query)
    assert listed(door, query).state == "done"
    assert counting.planned == [ALL]


def test_a_count_that_nobody_came_for_in_time_is_remembered(door: Door) -> None:
    query, answer = door.execute(ALL, options={"resume_s": "0.2"})
    door.do(door.service.gone, ANN, is_goodbye=False)
    wait_until(lambda: not door.service.open_cursors, "its lease ended")
    assert attached(door, query) == answer
    assert listed(door, query).state == "done"


def test_a_count_that_is_cancelled_or_fails_gives_none(door: Door) -> None:
    query, task = door.begin(COUNT + slow_query("bergen"))
    door.do(door.service.cancel, BOB, query)
    error = door.failed(task)
    assert isinstance(error, Cancelled)
    with pytest.raises(Cancelled, match="was cancelled by desk 8"):
        attached(door, query)
    query = QueryId("oslo", uuid4().hex)
    with pytest.raises((SqlError, SiteError)) as raised:
        door.wait(door.service.execute(ANN, RunStatement(query, f"{COUNT}SELECT 1 / (id - 7) AS x FROM tromso.few")))
    assert isinstance(raised.value, SkerryError)
    assert listed(door, query).state == "failed"
    nothing_left(door.cluster)


def test_what_may_be_half_done_is_not_planned_again(door: Door, counting: Counting) -> None:
    with pytest.raises(StaleSchema, match="have changed since the query was planned"):
        door.execute(f"{STALE}SELECT id FROM few")
    assert len(counting.planned) == 1


def test_a_client_may_say_what_it_expects(door: Door) -> None:
    assert door.execute(ALL, expected="count")[1] == CountAnswer(3 * FEW)
    with pytest.raises(UserError, match="changes rows and returns none, its client expects rows"):
        door.execute(ALL, expected="rows")
    for sql in ("SELECT id FROM few", "SHOW TABLES", f"{COUNT}EXPLAIN SELECT id FROM few"):
        with pytest.raises(UserError, match="returns rows, its client expects the number"):
            door.execute(sql, expected="count")
    nothing_left(door.cluster)


def test_a_count_is_explained(door: Door) -> None:
    _, answer = door.execute(f"{COUNT}EXPLAIN SELECT id FROM few")
    assert "finish at oslo: count the rows of fragments 1, 2, 3" in [line for (line,) in rows(answer)]
    query, answer = door.execute(f"{COUNT}EXPLAIN ANALYZE SELECT id FROM few")
    assert any(line.startswith("result: 300 rows in ") for (line,) in rows(answer))
    with pytest.raises(Cancelled, match="all of its rows were given"):
        attached(door, query)


def test_nothing_is_said_to_be_written_where_there_is_no_sink(door: Door) -> None:
    with pytest.raises(PeerError, match=r"site \w+ has no sink lake"):
        door.execute(f"{WRITE}SELECT id FROM few")
    nothing_left(door.cluster)


# --- at the native door ----------------------------------------------------------------------------
def test_on_the_wire_a_count_is_one_message_and_opens_no_cursor(cluster: LocalCluster) -> None:
    query = QueryId("oslo", uuid4().hex)
    with raw_client(cluster, "oslo") as connection:
        connection.send(ClientExecute(1, query, ALL, [], 0.0, 1, ""))
        assert receive(connection, ClientResult) == ClientResult(1, update_count=3 * FEW)
        assert cluster.members["oslo"].service.open_cursors == 0
        connection.send(ClientFetch(2, query, 0, 1))
        error = receive(connection, ClientPage).error
        assert error is not None
        assert error.message == f"query {query} has ended: 300 rows changed"
    with raw_client(cluster, "oslo") as connection:
        connection.send(ClientExecute(1, query, ALL, [], 0.0, 1, ""))
        assert receive(connection, ClientResult).error is not None
        connection.send(ClientAttach(2, query, 0, 1))
        assert receive(connection, ClientResult) == ClientResult(2, update_count=3 * FEW)


def test_a_cursor_has_a_rowcount_and_no_rows(cluster: LocalCluster) -> None:
    cursor = cluster.connect("oslo").cursor().execute(ALL)
    assert (cursor.rowcount, cursor.description, cursor.rownumber) == (3 * FEW, None, None)
    for fetch in (cursor.fetchone, cursor.fetchall, cursor.fetchmany, cursor.fetch_arrow_table, cursor.fetch_page):
        with pytest.raises(skerry.InterfaceError, match="no rows to fetch: the statement changed 300 rows"):
            fetch()
    again = cursor.connection.attach(cursor.query_id)  # type: ignore[attr-defined]
    assert (again.rowcount, again.description) == (3 * FEW, None)
    cursor.execute("SELECT id FROM oslo.few")
    assert len(cursor.fetchall()) == cursor.rowcount == FEW
    cursor.executemany(f"{COUNT}SELECT id FROM few WHERE id < ?", [[10]])
    assert (cursor.rowcount, cursor.description) == (30, None)
    with pytest.raises(skerry.ProgrammingError, match="executemany is for INSERT"):  # one statement, all or nothing
        cursor.executemany(f"{COUNT}SELECT id FROM few WHERE id < ?", [[1], [10]])


def test_a_count_whose_answer_was_lost_is_told_again_and_run_once(door: Door, counting: Counting) -> None:
    address = door.cluster.config.member("oslo").address
    with Proxy(address) as proxy, skerry.connect(proxy.url, resume_s=60) as connection:
        counting.on_planning = proxy.hold  # the execute has arrived, its answer will not
        cursor = connection.cursor()
        waiting = threading.Thread(target=cursor.execute, args=(ALL,))
        waiting.start()
        wait_until(lambda: any(is_settled(door, each) for each in kept(door)), "the count is there")
        proxy.cut()
        proxy.release()
        waiting.join(DEADLINE_S)
        assert (cursor.rowcount, cursor.description) == (3 * FEW, None)
        assert proxy.connections == 2
        assert connection.members()  # answered after the close of what was kept
    assert counting.planned == [ALL]


def kept(door: Door) -> list[QueryId]:
    return [each.query for each in door.do(door.service.queries, BOB)]


def test_a_count_for_asyncio(cluster: LocalCluster) -> None:
    async def run() -> None:
        async with skerry.aio.connect(f"skerry://{cluster.config.member('oslo').address}") as connection:
            cursor = await connection.cursor().execute(ALL)
            assert (cursor.rowcount, cursor.description) == (3 * FEW, None)
            with pytest.raises(skerry.InterfaceError, match="no rows to fetch"):
                await cursor.fetchall()
            with pytest.raises(skerry.InterfaceError, match="no rows to fetch"):
                async for _ in cursor:
                    pass

    asyncio.run(run())


def test_commands_tell_a_count(cluster: LocalCluster) -> None:
    url = f"skerry://{cluster.config.member('oslo').address}"

    def command(*words: str) -> str:
        result = CliRunner().invoke(main, list(words))
        assert result.exit_code == 0, result.output
        return result.output

    assert command("sql", url, ALL).startswith("(300 rows changed, ")
    query = command("submit", url, f"{COUNT}SELECT id FROM oslo.few WHERE id = 7").strip()
    assert command("attach", url, query).startswith("(1 row changed")
    assert command("attach", url, query).startswith("(1 row changed")
    listed = [line.split() for line in command("ps", url).splitlines()]
    (first,) = [words for words in listed if "300" in words]
    assert "done" in first or "running" in first  # its receipts may still be on their way

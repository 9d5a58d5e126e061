"""What clients do to their queries: cancel, close, time out, go away, or ask twice."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import TypeVar
from uuid import uuid4

import pytest

import skerry
from skerry.model.errors import Cancelled, Overloaded, TimedOut, UserError
from skerry.model.ids import QueryId
from skerry.testing.cluster import LocalCluster
from skerry.wire.blocking import BlockingConnection
from skerry.wire.client_messages import (
    ClientClose,
    ClientClosed,
    ClientExecute,
    ClientFetch,
    ClientResult,
    ClientStatus,
    ClientStatusReply,
)
from skerry.wire.frames import decode
from skerry.wire.messages import PROTOCOL_VERSIONS, Goodbye, Hello, Message, Ping, Pong, Refused
from tests.integration.member.conftest import StartCluster
from tests.integration.member.member_sites import (
    DEADLINE_S,
    FEW,
    held,
    large_query,
    nothing_left,
    slow_query,
    wait_until,
)

pytestmark = pytest.mark.spark

Answer = TypeVar("Answer", bound=Message)


@contextlib.contextmanager
def raw_client(members: LocalCluster, name: str) -> Iterator[BlockingConnection]:
    """A client's connection without the client."""
    with BlockingConnection.connect(f"tcp:{members.config.member(name).address}", DEADLINE_S) as connection:
        connection.login(Hello("client", PROTOCOL_VERSIONS, cluster="", member="", epoch=0), DEADLINE_S)
        yield connection


def receive(connection: BlockingConnection, kind: type[Answer]) -> Answer:
    """The next message but for heartbeats, which are answered."""
    while True:
        frame = connection.receive(DEADLINE_S)
        assert frame is not None
        message = decode(frame)
        if not isinstance(message, Ping):
            break
        connection.send(Pong(0))
    assert isinstance(message, kind)
    return message


def execute(number: int, query: QueryId, sql: str) -> ClientExecute:
    return ClientExecute(number, query, sql, [], timeout_s=0.0, page_rows=0, schema_name="")


def runs_at(members: LocalCluster, *names: str) -> bool:
    """Whether each of them has a Spark job under way."""

    async def ask() -> bool:
        participants = [members.members[name].participants.values() for name in names]
        states = [{f.state for part in parts for f in part.progress().fragments} for parts in participants]
        return all("running" in each for each in states)

    return members.call(ask())


@pytest.mark.parametrize("at", ["tromso", "oslo"], ids=["at the site", "at another"])
def test_cancel_from_another_thread(members: LocalCluster, at: str) -> None:
    connection = members.connect(at)
    cursor = connection.cursor()
    errors: list[skerry.Error] = []

    def run() -> None:
        with pytest.raises(skerry.OperationalError) as caught:
            cursor.execute(slow_query("tromso"))
        errors.append(caught.value)

    thread = threading.Thread(target=run)
    thread.start()
    wait_until(lambda: runs_at(members, "tromso"), "the query runs")
    cursor.cancel()
    thread.join(DEADLINE_S)
    assert [error.code for error in errors] == [Cancelled.code]
    nothing_left(members)
    assert connection.status(cursor.query_id).state == "cancelled"
    # The cursor and its connection are as good as new.
    assert cursor.execute("SELECT count(*) FROM tromso.few").fetchall() == [(FEW,)]


def test_close_before_the_result_is_read(members: LocalCluster) -> None:
    connection = members.connect("bergen")
    cursor = connection.cursor()
    cursor.execute("SELECT id, note FROM ticks")
    assert cursor.fetchone() is not None
    query = cursor.query_id
    cursor.close()
    nothing_left(members)
    assert connection.status(query).state == "cancelled"


def test_a_new_statement_ends_the_one_before(members: LocalCluster) -> None:
    cursor = members.connect("bergen").cursor()
    cursor.execute(large_query("bergen"))
    assert cursor.execute("SELECT count(*) FROM few").fetchall() == [(3 * FEW,)]
    nothing_left(members)


def test_timeout(members: LocalCluster) -> None:
    cursor = members.connect("oslo").cursor()
    with pytest.raises(skerry.OperationalError, match=r"ran longer than its 0\.5 s") as caught:
        cursor.execute(slow_query("bergen"), timeout_s=0.5)
    assert caught.value.code == TimedOut.code
    nothing_left(members)


def test_timeout_of_a_result_that_is_not_read(members: LocalCluster) -> None:
    cursor = members.connect("oslo").cursor()
    for timeout_s in (2, 8, 30):  # the first rows have to come before, which takes longer on a busy machine
        with contextlib.suppress(skerry.OperationalError):
            cursor.execute(large_query("bergen"), timeout_s=timeout_s)
            break
    # The cursor alone stays, to tell its client.
    wait_until(lambda: held(members) == ["oslo: 1 open cursors"], "the query is over", timeout_s + DEADLINE_S)
    assert cursor.status().state == "failed"
    with pytest.raises(skerry.OperationalError, match=f"ran longer than its {timeout_s} s"):
        cursor.fetchall()


def test_a_query_id_is_used_once(members: LocalCluster) -> None:
    query = QueryId("oslo", uuid4().hex)
    with raw_client(members, "oslo") as connection, raw_client(members, "oslo") as other:
        connection.send(execute(1, query, slow_query("oslo")))
        wait_until(lambda: query in members.members["oslo"].initiated, "the query runs")
        for number, client in ((2, connection), (3, other)):
            client.send(execute(number, query, "SELECT 1"))
            refused = receive(client, ClientResult)
            assert refused.request == number
            assert refused.error is not None
            assert refused.error.code == UserError.code
            assert "was used before" in refused.error.message
        assert query in members.members["oslo"].initiated  # and the first one is not harmed
        connection.send(ClientClose(4, query))
        answers = [receive(connection, Message), receive(connection, Message)]
        assert {type(answer) for answer in answers} == {ClientClosed, ClientResult}
        nothing_left(members)
        connection.send(execute(5, query, "SELECT 1"))
        again = receive(connection, ClientResult)
        assert again.error is not None
        assert "was used before" in again.error.message


def test_a_query_of_another_member_is_refused(members: LocalCluster) -> None:
    with raw_client(members, "oslo") as connection:
        connection.send(execute(1, QueryId("bergen", uuid4().hex), "SELECT 1"))
        refused = receive(connection, ClientResult)
        assert refused.error is not None
        assert "belongs to member bergen" in refused.error.message


def test_close_that_overtakes_execute(members: LocalCluster) -> None:
    query = QueryId("oslo", uuid4().hex)
    with raw_client(members, "oslo") as connection:
        connection.send(ClientClose(1, query))
        assert receive(connection, ClientClosed).request == 1
        connection.send(execute(2, query, slow_query("oslo")))
        refused = receive(connection, ClientResult)
        assert refused.error is not None
        assert refused.error.code == Cancelled.code
        assert "closed before it began" in refused.error.message
        assert members.members["oslo"].initiated == {}
        connection.send(ClientStatus(3, query))
        assert receive(connection, ClientStatusReply).state == "unknown"


@pytest.mark.parametrize("says_goodbye", [False, True])
def test_a_client_that_goes_ends_its_queries(members: LocalCluster, says_goodbye: bool) -> None:
    queries = [QueryId("oslo", uuid4().hex) for _ in range(2)]
    with raw_client(members, "oslo") as connection:
        connection.send(execute(1, queries[0], slow_query("bergen")))
        connection.send(execute(2, queries[1], slow_query("tromso")))
        wait_until(lambda: runs_at(members, "bergen", "tromso"), "both queries run")
        if says_goodbye:
            connection.send(Goodbye())
    nothing_left(members)
    with raw_client(members, "oslo") as connection:
        for number, query in enumerate(queries):
            connection.send(ClientStatus(number, query))
            assert receive(connection, ClientStatusReply).state == "cancelled"


def test_a_client_that_goes_while_its_query_is_planned(members: LocalCluster) -> None:
    for _ in range(5):
        with raw_client(members, "oslo") as connection:
            connection.send(execute(1, QueryId("oslo", uuid4().hex), slow_query("bergen")))
    nothing_left(members)


def test_a_message_that_no_client_sends(members: LocalCluster) -> None:
    with raw_client(members, "oslo") as connection:
        connection.send(ClientClosed(1))
        assert "a client does not send ClientClosed" in receive(connection, Refused).error.message
    with members.connect("oslo") as connection:
        assert connection.cursor().execute("SELECT 1").fetchall() == [(1,)]


def test_a_client_that_asks_without_end(start_members: StartCluster) -> None:
    members = start_members(limits={"client_requests": 10})
    query = QueryId("oslo", uuid4().hex)
    with raw_client(members, "oslo") as connection:
        connection.send(execute(0, query, slow_query("bergen")))
        wait_until(lambda: query in members.members["oslo"].initiated, "the query runs")
        for number in range(1, 12):
            connection.send(ClientFetch(number, query, 0, page_rows=1))  # which is long in coming
        refused = receive(connection, Refused)
    assert refused.error.code == Overloaded.code
    assert "10 requests wait on this connection" in refused.error.message
    nothing_left(members)


def test_a_member_stops_right_after_it_refused_someone(start_members: StartCluster) -> None:
    members = start_members()
    with raw_client(members, "oslo") as connection:
        connection.send(ClientClosed(1))
        assert connection.receive(DEADLINE_S) is not None
        members.stop()  # while the refused connection lingers, so that its peer can read why

"""Cursors that outlive their connection, windows of pages, heartbeats, and lists of queries, on the wire."""

from __future__ import annotations

import socket
from uuid import uuid4

import pytest

from skerry.model.ids import QueryId
from skerry.model.progress import QueryInfo
from skerry.model.results import Page
from skerry.testing.cluster import LocalCluster
from skerry.wire.blocking import BlockingConnection
from skerry.wire.client_messages import (
    ClientAttach,
    ClientClose,
    ClientClosed,
    ClientExecute,
    ClientFetch,
    ClientPage,
    ClientQueries,
    ClientQueriesReply,
    ClientResult,
    ClientStatus,
    ClientStatusReply,
)
from tests.integration.member.conftest import StartCluster
from tests.integration.member.member_sites import FEW, large_query, nothing_left, wait_until
from tests.integration.member.test_member_clients import raw_client, receive

pytestmark = pytest.mark.spark

SQL = "SELECT id, note FROM oslo.ticks"
PAGE_ROWS = 1  # a page holds whole batches: one


def new_query(member: str = "oslo") -> QueryId:
    return QueryId(member, uuid4().hex)


def begin(connection: BlockingConnection, query: QueryId, sql: str = SQL, **options: str) -> ClientResult:
    connection.send(ClientExecute(1, query, sql, [], 0.0, PAGE_ROWS, "", options=options))
    return receive(connection, ClientResult)


def state(connection: BlockingConnection, query: QueryId) -> ClientStatusReply:
    connection.send(ClientStatus(2, query))
    return receive(connection, ClientStatusReply)


def rest(connection: BlockingConnection) -> list[Page]:
    """The pages of a window up to the last."""
    pages: list[Page] = []
    while not pages or not pages[-1].is_last:
        page = receive(connection, ClientPage).page
        assert page is not None
        pages.append(page)
    return pages


def messages(page: Page) -> list[bytes]:
    """Its batches without what pads them: that depends on the message around the page."""
    return [bytes(batch).rstrip(b"\0") for batch in page.batches]


def close(connection: BlockingConnection, query: QueryId) -> None:
    connection.send(ClientClose(9, query))
    receive(connection, ClientClosed)


def test_a_client_that_lost_its_connection_goes_on_where_it_was(members: LocalCluster) -> None:
    query = new_query()
    with raw_client(members, "oslo") as connection:
        first = begin(connection, query, resume_s="30")
        assert first.page is not None
        connection.send(ClientFetch(3, query, 1, PAGE_ROWS, pages=2))
        sent = [receive(connection, ClientPage).page for _ in range(2)]
        connection._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")  # reset, no goodbye
    with raw_client(members, "oslo") as connection:
        # It had page 1, and not page 2.
        connection.send(ClientAttach(1, query, 2, PAGE_ROWS))
        again = receive(connection, ClientResult)
        assert again.schema == first.schema
        assert again.page is not None
        assert sent[1] is not None
        assert (again.page.number, messages(again.page)) == (2, messages(sent[1]))
        connection.send(ClientFetch(3, query, 1, PAGE_ROWS))
        gone = receive(connection, ClientPage)
        assert gone.error is not None, "page 1 has arrived, it said so"


def test_a_query_is_cancelled_when_its_client_does_not_come_back(members: LocalCluster) -> None:
    query = new_query()
    with raw_client(members, "oslo") as connection:
        begin(connection, query, large_query("tromso"), resume_s="0.5")
        connection._socket.shutdown(socket.SHUT_RDWR)
    with raw_client(members, "oslo") as connection:
        wait_until(lambda: state(connection, query).state == "cancelled", "its lease ended")
        connection.send(ClientAttach(1, query, 1, PAGE_ROWS))
        error = receive(connection, ClientResult).error
        assert error is not None
        assert error.message == f"nobody came for the result of query {query} within its lease (0.5 s)"
    nothing_left(members)


def test_a_window_of_pages_ends_with_the_last_page_which_can_be_had_again(members: LocalCluster) -> None:
    query = new_query()
    with raw_client(members, "oslo") as connection:
        begin(connection, query, "SELECT id FROM oslo.few", resume_s="30")
        connection.send(ClientFetch(3, query, 0, 0, pages=8))
        pages = rest(connection)
        assert sum(page.rows for page in pages) == FEW
        connection.send(ClientFetch(4, query, pages[-1].number, 0))
        again = receive(connection, ClientPage)
        assert (again.request, again.page) == (4, pages[-1])
        close(connection, query)


def test_detached_queries_run_alone_and_are_listed_and_attached_to(members: LocalCluster) -> None:
    query, wrong = new_query(), new_query()
    with raw_client(members, "oslo") as connection:
        assert begin(connection, query, "SELECT id FROM tromso.few", detach="1") == ClientResult(1)
        assert begin(connection, wrong, "SELECT nothing FROM tromso.few", detach="1") == ClientResult(1)
    with raw_client(members, "oslo") as connection:
        wait_until(lambda: state(connection, query).state == "done", "it runs without a client")
        wait_until(lambda: state(connection, wrong).state == "failed", "it fails without a client")

        def listed() -> QueryInfo:
            connection.send(ClientQueries(5))
            return {each.query: each for each in receive(connection, ClientQueriesReply).queries}[query]

        # Done is said before rows, and what links carried, are told.
        wait_until(lambda: listed().rows and listed().links, "its rows are here")
        known = listed()
        assert (known.sql, known.rows, known.members) == ("SELECT id FROM tromso.few", FEW, ("tromso",))
        assert known.links[0].sender == "tromso"
        connection.send(ClientAttach(6, wrong, 0, 0))
        error = receive(connection, ClientResult).error
        assert error is not None
        assert "nothing" in error.message
        connection.send(ClientAttach(7, query, 0, 0))
        page = receive(connection, ClientResult).page
        assert page is not None
        assert page.rows == FEW
        if not page.is_last:
            connection.send(ClientFetch(8, query, 1, 0))
            assert [each.rows for each in rest(connection)] == [0]
        close(connection, query)
        close(connection, wrong)
        assert state(connection, query).state == "done"


def test_another_connection_can_close_a_query(members: LocalCluster) -> None:
    query = new_query()
    with raw_client(members, "oslo") as one, raw_client(members, "oslo") as other:
        begin(one, query, large_query("tromso"))
        close(other, query)
        one.send(ClientFetch(3, query, 1, 0))
        assert receive(one, ClientPage).error is not None


def test_a_request_for_another_initiator_says_where_to_go(members: LocalCluster) -> None:
    query, cursors = new_query("tromso"), members.members["oslo"].service._cursors
    with raw_client(members, "oslo") as connection:
        error = begin(connection, query).error
        assert error is not None
        where = f"belongs to member tromso at {members.config.member('tromso').address}"
        assert where in error.message
        told = state(connection, query)
        assert told.state == "unknown"
        assert told.error is not None
        assert where in told.error.message
        connection.send(ClientClose(9, query))
        closed = receive(connection, ClientClosed)
        assert closed.error is not None
        assert where in closed.error.message
        assert query not in cursors._markers


def test_what_a_client_expects_is_one_of_three(members: LocalCluster) -> None:
    with raw_client(members, "oslo") as connection:
        connection.send(ClientExecute(1, new_query(), SQL, [], 0.0, PAGE_ROWS, "", "nonsense"))
        error = receive(connection, ClientResult).error
        assert error is not None
        assert error.message == "a client expects any, rows, count, not 'nonsense'"


def test_a_client_that_is_silent_is_dropped_and_one_that_only_answers_heartbeats_is_not(
    start_members: StartCluster,
) -> None:
    # Who answers must not be taken for silent because a busy machine let it wait for some seconds.
    members = start_members(limits={"heartbeat_s": 0.5, "heartbeats_missed": 12})
    silent, slow = new_query(), new_query()
    with raw_client(members, "oslo") as one:
        begin(one, silent, large_query("tromso"))
        with raw_client(members, "oslo") as other:
            begin(other, slow, large_query("tromso"))
            wait_until(lambda: state(other, silent).state == "cancelled", "the silent one is dropped")
            assert state(other, slow).state == "running"
            close(other, slow)


def test_a_detached_result_that_nobody_reads_is_let_go_of_when_it_is_closed(members: LocalCluster) -> None:
    query = new_query()
    with raw_client(members, "oslo") as connection:
        begin(connection, query, "SELECT id FROM tromso.ticks", detach="1")
        wait_until(lambda: state(connection, query).state == "done", "all of it is here")
        close(connection, query)
        assert state(connection, query).state == "cancelled"
    nothing_left(members)

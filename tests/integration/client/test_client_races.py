"""The orderings of `tests/unit/client/orderings.py` on real TCP, through a proxy that delays; then with no order."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from uuid import uuid4

import pytest

from skerry.model.ids import QueryId
from skerry.testing.cluster import LocalCluster
from skerry.wire.blocking import BlockingConnection
from skerry.wire.client_messages import (
    ClientAttach,
    ClientClose,
    ClientClosed,
    ClientExecute,
    ClientFetch,
    ClientPage,
    ClientResult,
)
from skerry.wire.frames import ConnectionLost, decode, encode_message
from skerry.wire.messages import PROTOCOL_VERSIONS, Goodbye, Hello, Message, Ping, Pong
from tests.integration.client.proxy import Proxy
from tests.integration.member.member_sites import DEADLINE_S, nothing_left, wait_until
from tests.unit.client.orderings import LEASED, PLAIN

pytestmark = pytest.mark.sail

SQL = "SELECT id, note FROM oslo.ticks"
REQUESTS = {"E": 1, "F": 2, "A": 3, "C": 4}


@pytest.fixture(scope="module")
def proxy(client_cluster: LocalCluster) -> Iterator[Proxy]:
    with Proxy(client_cluster.config.member("oslo").address, delay_s=0.002) as opened:
        yield opened


def connected(address: str) -> BlockingConnection:
    connection = BlockingConnection.connect(f"tcp:{address}", DEADLINE_S)
    connection.login(Hello("client", PROTOCOL_VERSIONS, cluster="", member="", epoch=0), DEADLINE_S)
    return connection


def request_of(event: str, query: QueryId, resume_s: str = "") -> Message:
    options = {"resume_s": resume_s} if resume_s else {}
    made: dict[str, Callable[[int], Message]] = {
        "E": lambda number: ClientExecute(number, query, SQL, [], 0.0, 1, "", options=options),
        "F": lambda number: ClientFetch(number, query, 1, 1),
        "A": lambda number: ClientAttach(number, query, 0, 1),
        "C": lambda number: ClientClose(number, query),
    }
    return made[event](REQUESTS[event])


def answer_to(event: str, connection: BlockingConnection) -> Message:
    while True:
        frame = connection.receive(DEADLINE_S)
        assert frame is not None, f"no answer to {event}"
        message = decode(frame)
        if isinstance(message, Ping):
            connection.send(Pong(0))
        elif message.request == REQUESTS[event]:  # type: ignore[attr-defined]
            return message


def outcome(answer: Message) -> str:
    assert isinstance(answer, ClientResult | ClientPage)
    if answer.page is not None:
        return "page"
    assert answer.error is not None
    return {103: "cancelled", 100: "not the next"}[answer.error.code]


def connections(cluster: LocalCluster) -> set[object]:
    async def look() -> set[object]:
        return {*cluster.members["oslo"].clients._connections}

    return cluster.call(look())


@pytest.mark.parametrize("ordering", [*PLAIN, *LEASED])
def test_each_ordering(cluster: LocalCluster, proxy: Proxy, ordering: str) -> None:
    query, is_leased = QueryId("oslo", uuid4().hex), "A" in ordering
    answers: dict[str, Message] = {}
    before = connections(cluster)  # those of other tests may end any time
    with ExitStack() as stack:
        first = stack.enter_context(connected(proxy.address))
        wait_until(lambda: connections(cluster) - before, "the member has begun to serve it")
        own = connections(cluster) - before
        second = stack.enter_context(connected(proxy.address))
        link = first
        for event in ordering:
            if event == "D":
                first.close()
                wait_until(lambda: not own & connections(cluster), "the member sees the end")
                link = second
                continue
            taker = second if event == "A" else link
            taker.send(request_of(event, query, "30" if is_leased else ""))
            answers[event] = answer_to(event, taker)
        expected = LEASED[ordering] if is_leased else PLAIN[ordering]
        assert (outcome(answers["E"]), outcome(answers["A" if is_leased else "F"])) == expected
        assert isinstance(answers["C"], ClientClosed)
        nothing_left(cluster)


def test_a_close_right_before_a_goodbye_counts(cluster: LocalCluster) -> None:
    """Who has read a detached result closes it and goes: both frames may arrive at once."""
    query = QueryId("oslo", uuid4().hex)
    with connected(cluster.config.member("oslo").address) as connection:
        connection.send(ClientExecute(1, query, SQL, [], 0.0, 1, "", options={"detach": "1", "lease_s": "600"}))
        answer_to("E", connection)
        connection.send_parts([*encode_message(ClientClose(2, query)), *encode_message(Goodbye())])
    nothing_left(cluster)


@pytest.mark.parametrize("seed", range(12))
def test_all_at_once(cluster: LocalCluster, seed: int) -> None:
    """Each event over a connection of its own, with a delay of its own: whatever comes first, all are answered.

    A fetch that overtakes the answer to execute asks for a page that is not the next one, and ends the query for that.
    """
    chance = random.Random(seed)
    is_leased = bool(seed % 2)
    events = ["E", "A" if is_leased else "F", "C"]
    query = QueryId("oslo", uuid4().hex)
    address = cluster.config.member("oslo").address
    answers: dict[str, Message | None] = {}
    with ExitStack() as stack:
        links = {}
        for event in events:
            delaying = stack.enter_context(Proxy(address, delay_s=chance.choice([0.0, 0.001, 0.005, 0.02])))
            links[event] = stack.enter_context(connected(delaying.address))

        def ask(event: str) -> None:
            try:
                links[event].send(request_of(event, query, "30" if is_leased else ""))
                answers[event] = answer_to(event, links[event])
            except (ConnectionLost, AssertionError):
                answers[event] = None

        threads = [threading.Thread(target=ask, args=(event,)) for event in events]
        chance.shuffle(threads)
        for thread in threads:
            thread.start()
        is_cut = chance.random() < 0.5
        if is_cut:
            links["E"].close()
        for thread in threads:
            thread.join(DEADLINE_S)
        assert isinstance(answers["C"], ClientClosed)
        for event in events[:2]:
            answer = answers[event]
            if answer is None:
                assert is_cut
                assert event == "E"
            else:
                assert outcome(answer) in ("page", "cancelled") if is_leased else outcome(answer)
    nothing_left(cluster)

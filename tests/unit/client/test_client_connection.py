"""The link on real sockets: members that answer, die, babble, refuse."""

from __future__ import annotations

import gc
import signal
import threading

import pyarrow as pa
import pytest

import skerry
from skerry.model.errors import VersionError
from skerry.testing.ports import free_ports
from skerry.wire.client_messages import ClientClose, ClientExecute, ClientFetch, ClientPage, ClientResult, ClientStatus
from skerry.wire.frames import encode_frame
from skerry.wire.kinds import KIND_OF
from skerry.wire.messages import Execute, Failure, Goodbye, Hello, Message, Ping, Pong, Refused, Welcome
from tests.unit.client.scripted_member import WAIT_S, Answers, Peer, Script, member_with, page_of, schema_of, welcome

NUMBERS = pa.table({"n": list(range(100))})


def welcoming(then: Script) -> Script:
    def script(peer: Peer, message: Message) -> None:
        if isinstance(message, Hello):
            peer.send(welcome())
        else:
            then(peer, message)

    return script


def test_says_hello_as_a_client_and_goodbye() -> None:
    with member_with(Answers({})) as member:
        connection = skerry.connect(member.url)
        assert connection.member == "oslo"
        assert "to oslo" in repr(connection)
        connection.close()
        connection.close()
        member.wait_for_ends(1)
    hello, goodbye = member.received
    assert isinstance(hello, Hello)
    assert (hello.kind, hello.cluster, hello.member, hello.epoch) == ("client", "", "", 0)
    assert isinstance(goodbye, Goodbye)


def test_nobody_listens() -> None:
    (port,) = free_ports(1)
    with pytest.raises(skerry.OperationalError, match=rf"no member answers at 127.0.0.1:{port} \(connection refused\)"):
        skerry.connect(f"skerry://127.0.0.1:{port}")


def test_a_member_that_never_welcomes_is_given_up() -> None:
    with member_with(lambda peer, message: None) as member:
        with pytest.raises(skerry.OperationalError, match=r"is gone \(no answer in time"):
            skerry.connect(member.url, timeout_s=0.05)
        member.wait_for_ends(1)


def test_a_wrong_version_is_refused_with_the_members_words() -> None:
    refusal = Refused(Failure(VersionError.code, "this member speaks 7 to 9", "oslo", "install skerry 9"))
    with (
        member_with(lambda peer, message: peer.send(refusal)) as member,
        pytest.raises(skerry.OperationalError, match=r"^this member speaks 7 to 9\nhint: install skerry 9$") as caught,
    ):
        skerry.connect(member.url)
    assert (caught.value.code, caught.value.member, caught.value.suggestion) == (201, "oslo", "install skerry 9")


@pytest.mark.parametrize(
    "answer",
    [
        b"".join(encode_frame(KIND_OF[Pong], b"\x91\x00")),
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        b"".join(encode_frame(KIND_OF[Welcome], b"\x94\x63\xa1c\xa1m\x01")),
    ],
    ids=["other message", "not Skerry", "a version nobody offered"],
)
def test_garbage_instead_of_a_welcome(answer: bytes) -> None:
    with member_with(lambda peer, message: peer.send_bytes(answer)) as member, pytest.raises(skerry.OperationalError):
        skerry.connect(member.url)


@pytest.mark.parametrize("end", [Peer.end, Peer.reset], ids=["end", "reset"])
@pytest.mark.parametrize("when", [ClientExecute, ClientFetch])
def test_a_member_that_dies_is_noticed(end: object, when: type[Message]) -> None:
    def script(peer: Peer, message: Message) -> None:
        if isinstance(message, when):
            end(peer)  # type: ignore[operator]
        elif isinstance(message, ClientExecute):
            peer.send(ClientResult(message.request, schema_of(NUMBERS), page_of(NUMBERS, 0, is_last=False)))

    with member_with(welcoming(script)) as member, skerry.connect(member.url) as connection:
        cursor = connection.cursor()
        with pytest.raises(skerry.OperationalError, match=f"member at 127.0.0.1:{member.port} is gone") as caught:
            cursor.execute("SELECT 1").fetchall()
        assert caught.value.code == 300
        with pytest.raises(skerry.OperationalError, match="is gone"):
            connection.cursor().execute("SELECT 1")
        assert not connection.usable
        assert not connection.closed
        cursor.close()


def test_a_member_that_says_goodbye_fails_what_waits() -> None:
    with (
        member_with(welcoming(lambda peer, message: peer.send(Goodbye()))) as member,
        skerry.connect(member.url) as connection,
        pytest.raises(skerry.OperationalError, match="it said goodbye"),
    ):
        connection.cursor().execute("SELECT 1")


def test_a_refusal_in_the_middle_is_the_error() -> None:
    def script(peer: Peer, message: Message) -> None:
        peer.send(Refused(Failure(400, "too many queries", "oslo")))
        peer.end()

    with (
        member_with(welcoming(script)) as member,
        skerry.connect(member.url) as connection,
        pytest.raises(skerry.OperationalError, match="too many queries") as caught,
    ):
        connection.cursor().execute("SELECT 1")
    assert caught.value.code == 400


@pytest.mark.parametrize(
    "garbage",
    [
        b"\xff" * 100,
        b"".join(encode_frame(KIND_OF[ClientResult], b"\xc1")),
        b"".join(encode_frame(KIND_OF[ClientResult], b"\x91\x07")),  # answers request 7
        b"".join(encode_frame(KIND_OF[ClientResult], b"\x91\x01")),  # no rows, no count, no error
        b"".join(encode_frame(KIND_OF[Execute], b"\x90")),
        b"".join(encode_frame(KIND_OF[Goodbye], b"\x90"))[:-1] + b"\x91",  # checksum
        b"".join(encode_frame(KIND_OF[Hello], b"\x95\xa6client\x91\x01\xa0\xa0\x00")),
        b"\xff\xff\xff\xff" + bytes([KIND_OF[ClientPage]]) + bytes(4),  # four gigabytes to come
    ],
)
def test_garbage_fails_what_waits_and_ends_the_connection(garbage: bytes) -> None:
    with (
        member_with(welcoming(lambda peer, message: peer.send_bytes(garbage))) as member,
        skerry.connect(member.url) as connection,
    ):
        with pytest.raises(skerry.OperationalError) as caught:
            connection.cursor().execute("SELECT 1")
        assert caught.value.code == 200
        member.wait_for_ends(1)
        assert not connection.usable


def test_a_page_with_a_broken_batch_is_an_error_and_closes_the_cursor() -> None:
    page = page_of(NUMBERS, 0, is_last=False)
    broken = type(page)(0, (page.batches[0][:-64],), page.rows, False)
    short = type(page)(0, page.batches, page.rows + 1, False)

    for wrong in (broken, short):

        def script(peer: Peer, message: Message, wrong: object = wrong) -> None:
            if isinstance(message, ClientExecute):
                peer.send(ClientResult(message.request, schema_of(NUMBERS), wrong))  # type: ignore[arg-type]

        with member_with(welcoming(script)) as member, skerry.connect(member.url) as connection:
            with connection.cursor() as cursor:
                cursor.execute("SELECT 1")
                with pytest.raises(skerry.OperationalError):
                    cursor.fetchall()
            member.wait_for(ClientClose)


def test_cursors_share_a_connection_and_answers_may_cross() -> None:
    """Two threads execute; the member answers the second first."""
    held: list[ClientExecute] = []
    table = {"a": pa.table({"v": ["a"]}), "b": pa.table({"v": ["b"]})}

    def script(peer: Peer, message: Message) -> None:
        if isinstance(message, ClientExecute):
            held.append(message)
        if len(held) == 2:
            for query in reversed(held):
                rows = table[query.sql]
                peer.send(ClientResult(query.request, schema_of(rows), page_of(rows, 0, is_last=True)))

    found: dict[str, object] = {}
    with member_with(welcoming(script)) as member, skerry.connect(member.url) as connection:

        def run(sql: str) -> None:
            found[sql] = connection.cursor().execute(sql).fetchall()

        threads = [threading.Thread(target=run, args=(sql,)) for sql in table]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(WAIT_S)
    assert found == {"a": [("a",)], "b": [("b",)]}


def test_status_and_cancel_from_another_thread_while_execute_waits() -> None:
    with member_with(Answers({"slow": None, "quick": NUMBERS})) as member, skerry.connect(member.url) as connection:
        cursor = connection.cursor()
        states: list[str] = []

        def watch() -> None:
            member.wait_for(ClientExecute)
            states.append(cursor.status().state)
            cursor.cancel()

        watcher = threading.Thread(target=watch)
        watcher.start()
        with pytest.raises(skerry.OperationalError, match="was cancelled") as caught:
            cursor.execute("slow")
        watcher.join(WAIT_S)
        assert caught.value.code == 103
        assert states == ["running"]
        (close,) = member.wait_for(ClientClose)
        assert close.query == member.of(ClientStatus)[0].query == cursor.query_id
        assert len(connection.cursor().execute("quick").fetchall()) == 100


def test_ctrl_c_closes_the_query_and_spares_the_connection() -> None:
    with member_with(Answers({"slow": None, "quick": NUMBERS})) as member, skerry.connect(member.url) as connection:

        def interrupt() -> None:
            member.wait_for(ClientExecute)
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

        interrupter = threading.Thread(target=interrupt)
        interrupter.start()
        with pytest.raises(KeyboardInterrupt):
            connection.cursor().execute("slow")
        interrupter.join(WAIT_S)
        assert member.wait_for(ClientClose)[0].query == member.of(ClientExecute)[0].query
        assert connection.usable
        assert len(connection.cursor().execute("quick").fetchall()) == 100


def test_closing_the_connection_ends_what_waits() -> None:
    with member_with(Answers({"slow": None})) as member:
        connection = skerry.connect(member.url)
        errors: list[skerry.Error] = []

        def run() -> None:
            try:
                connection.cursor().execute("slow")
            except skerry.Error as error:
                errors.append(error)

        runner = threading.Thread(target=run)
        runner.start()
        member.wait_for(ClientExecute)
        connection.close()
        runner.join(WAIT_S)
    assert "was closed" in str(errors[0])


def test_a_forgotten_cursor_is_closed_at_the_next_chance() -> None:
    with member_with(Answers({"q": NUMBERS}, page_rows=10)) as member, skerry.connect(member.url) as connection:
        connection.cursor().execute("q").fetchone()
        gc.collect()
        connection.cursor().execute("q").fetchall()
        (close,) = member.of(ClientClose)
        assert close.query == member.of(ClientExecute)[0].query


def test_a_forgotten_connection_says_goodbye() -> None:
    with member_with(Answers({})) as member:
        connection = skerry.connect(member.url)
        del connection
        gc.collect()
        member.wait_for(Goodbye)
        member.wait_for_ends(1)


def test_answers_a_ping() -> None:
    def script(peer: Peer, message: Message) -> None:
        match message:
            case ClientExecute():
                peer.send(Ping(0))
            case Pong():
                (query,) = member.of(ClientExecute)
                peer.send(ClientResult(query.request, update_count=1))

    with member_with(welcoming(script)) as member, skerry.connect(member.url) as connection:
        assert connection.cursor().execute("DELETE").rowcount == 1


def test_members() -> None:
    with member_with(Answers({})) as member, skerry.connect(member.url) as connection:
        assert [state.name for state in connection.members()] == ["oslo"]

"""Blocking connections against the real listener: both ways, bounds on waiting, and a close that wakes others."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from skerry.model.errors import PeerError, VersionError
from skerry.wire.blocking import BlockingConnection
from skerry.wire.frames import ConnectionLost, Frame, decode, encode_batch_frame, encode_frame, split_batch
from skerry.wire.greeting import make_hello
from skerry.wire.listener import Listener
from skerry.wire.messages import Batch, Failure, Goodbye, Hello, Ping, Refused
from skerry.wire.tcp import Connection
from tests.unit.wire.looping import BERGEN, GIVE_UP_S, OSLO, QUICK, run


async def echo(connection: Connection, hello: Hello) -> None:
    while (frame := await connection.receive()) is not None:
        if frame.kind == 4:
            return
        connection.send_parts(encode_frame(frame.kind, frame.payload))
        await connection.drain()


def against_listener(work: Callable[[str], None], address: str = "tcp:127.0.0.1:0") -> None:
    """Run `work(address)` in a thread beside a real listener."""

    async def main() -> None:
        listener = await Listener.start(address, QUICK, OSLO, {"client": echo})
        with ThreadPoolExecutor(1) as pool:
            await asyncio.get_running_loop().run_in_executor(pool, work, listener.address)
        await listener.stop()

    run(main())


@pytest.mark.parametrize("kind", ["tcp", "unix"])
def test_frames_travel_both_ways(kind: str, tmp_path: Path) -> None:
    def work(address: str) -> None:
        with BlockingConnection.connect(address, GIVE_UP_S) as connection:
            assert connection.login(make_hello(BERGEN, "client"), GIVE_UP_S).member == "oslo"
            for size in (1, 50_000, 2_000_000):
                body = os.urandom(size)
                connection.send_parts(encode_batch_frame(Batch(0, 0, False, 1, size, 0), body))
                frame = connection.receive(GIVE_UP_S)
                assert frame is not None
                assert split_batch(frame)[1] == body
            for number in range(3):
                connection.send(Ping(number))
            assert [decode(frame) for _ in range(3) if (frame := connection.receive(GIVE_UP_S))] == [
                Ping(0),
                Ping(1),
                Ping(2),
            ]
            connection.send(Goodbye())
            assert connection.receive(GIVE_UP_S) is None
            assert connection.bytes_sent > 2_000_000 < connection.bytes_received

    against_listener(work, "tcp:127.0.0.1:0" if kind == "tcp" else f"unix:{tmp_path}/s")


def test_a_refused_login_raises_the_reason() -> None:
    def work(address: str) -> None:
        with BlockingConnection.connect(address, GIVE_UP_S) as connection:
            hello = Hello("client", (99,), "fjords", "someone", 1)
            with pytest.raises(VersionError, match="someone speaks protocol versions 99"):
                connection.login(hello, GIVE_UP_S)

    against_listener(work)


def test_waiting_is_bounded_and_can_go_on() -> None:
    def work(address: str) -> None:
        with BlockingConnection.connect(address, GIVE_UP_S) as connection:
            connection.login(make_hello(BERGEN, "client"), GIVE_UP_S)
            with pytest.raises(TimeoutError):
                connection.receive(0.01)
            connection.send(Ping(1))
            assert connection.receive(GIVE_UP_S) is not None

    against_listener(work)


def test_close_wakes_another_thread() -> None:
    outcome: list[object] = []

    def work(address: str) -> None:
        connection = BlockingConnection.connect(address, GIVE_UP_S)
        connection.login(make_hello(BERGEN, "client"), GIVE_UP_S)
        waiting = threading.Event()

        def wait() -> None:
            waiting.set()
            try:
                outcome.append(connection.receive())
            except ConnectionLost:
                outcome.append(None)

        thread = threading.Thread(target=wait)
        thread.start()
        waiting.wait()
        connection.close()
        thread.join()
        with pytest.raises(ConnectionLost):
            connection.send(Ping(1))
        with pytest.raises(ConnectionLost):
            connection.receive(1.0)

    against_listener(work)
    assert outcome == [None]


@pytest.mark.parametrize(
    ("data", "kind", "reason"),
    [
        (b"", None, ""),
        (b"\x00\x00", ConnectionLost, "ended inside a frame"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", PeerError, "unknown kind"),
    ],
)
def test_ends_of_a_stream_are_told_apart(data: bytes, kind: type[PeerError] | None, reason: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        connection = BlockingConnection.connect(f"tcp:127.0.0.1:{server.getsockname()[1]}", GIVE_UP_S)
        with connection, server.accept()[0] as peer:
            peer.sendall(data)
            peer.shutdown(socket.SHUT_WR)
            if kind is None:
                assert connection.receive(GIVE_UP_S) is None
            else:
                with pytest.raises(kind, match=reason):
                    connection.receive(GIVE_UP_S)


def test_a_peer_that_reads_nothing_ends_a_write_in_time() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        connection = BlockingConnection.connect(f"tcp:127.0.0.1:{server.getsockname()[1]}", 0.1)
        with connection, pytest.raises(TimeoutError):
            connection.send_parts([bytes(50_000_000)])


def test_nobody_listening_is_a_refusal(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        BlockingConnection.connect(f"unix:{tmp_path}/none", 1.0)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        with pytest.raises(ConnectionRefusedError):
            BlockingConnection.connect(f"tcp:127.0.0.1:{taken.getsockname()[1]}", 1.0)


def sending_now(sock: socket.socket) -> BlockingConnection:
    return BlockingConnection(sock, "oslo", QUICK, sends_now=True)


def test_what_is_sent_at_once_is_whole_whatever_the_system_takes() -> None:
    """A line that is full takes a part of a frame, or nothing: the rest goes before all that follows."""
    ours, theirs = socket.socketpair()
    ours.settimeout(GIVE_UP_S)
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    with sending_now(ours) as sender, BlockingConnection(theirs, "bergen", QUICK) as receiver:
        sent = 0
        while sender.send_now(Refused(Failure(1, str(sent) * 700))) and not sender.has_rest:
            sent += 1
        sent += sender.has_rest
        assert sent
        assert not sender.send_now(Ping(0))  # it would be within, or before, another
        with ThreadPoolExecutor(1) as pool:
            sending = pool.submit(sender.send, Ping(7))
            for number in range(sent):
                frame = receiver.receive(GIVE_UP_S)
                assert frame is not None
                assert decode(frame) == Refused(Failure(1, str(number) * 700))
            frame = receiver.receive(GIVE_UP_S)
            assert frame is not None
            assert decode(frame) == Ping(7)
            sending.result(GIVE_UP_S)
        assert sender.send_now(Ping(8))
        sender.close()
        assert not sender.send_now(Ping(9))


def test_the_rest_of_a_frame_goes_before_all_that_follows() -> None:
    class Half(socket.socket):
        def send(self, data: Any, flags: int = 0, /) -> int:
            return super().send(data[: len(data) // 2], flags)

    ours, theirs = socket.socketpair()
    ours.settimeout(GIVE_UP_S)
    with sending_now(ours) as sender, BlockingConnection(theirs, "bergen", QUICK) as receiver:
        assert sender._quick is not None
        sender._quick = Half(fileno=sender._quick.detach())
        assert sender.send_now(Ping(1))
        assert sender.has_rest
        assert not sender.send_now(Ping(2))  # it would be within the other
        sender.send(Ping(3))
        assert not len(sender._rest)
        for number in (1, 3):
            frame = receiver.receive(GIVE_UP_S)
            assert frame is not None
            assert decode(frame) == Ping(number)


class _Interrupted(Exception):
    pass


def test_a_signal_leaves_no_frame_half_sent() -> None:
    """Its handler may raise at any moment, also when the system has taken the frame and nobody has heard of it."""

    def interrupt(*_: object) -> None:
        raise _Interrupted

    ours, theirs = socket.socketpair()
    ours.settimeout(GIVE_UP_S)
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        with sending_now(ours) as sender, BlockingConnection(theirs, "bergen", QUICK) as receiver:
            number = 0
            for _ in range(300):
                with contextlib.suppress(_Interrupted):
                    signal.setitimer(signal.ITIMER_REAL, 0.0003)
                    while True:
                        number += 1
                        if not sender.send_now(Ping(number)) or sender.has_rest:
                            signal.pause()
                heard: list[int] = []
                with ThreadPoolExecutor(1) as pool:
                    pool.submit(sender.send, Goodbye())
                    while isinstance(message := decode(receiver.receive(GIVE_UP_S) or Frame(0, b"")), Ping):
                        heard.append(message.received_upto)
                assert message == Goodbye()
                assert heard == sorted(set(heard))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)

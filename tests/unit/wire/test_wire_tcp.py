"""Connections and the listener, over real sockets: frames, bounds, and ends."""

from __future__ import annotations

import asyncio
import os
import socket
import struct
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
import uvloop

from skerry.model.errors import ConfigError, SiteError
from skerry.wire.frames import (
    BATCH,
    ConnectionLost,
    Frame,
    decode,
    encode_batch_frame,
    encode_frame,
    split_batch,
)
from skerry.wire.greeting import make_hello
from skerry.wire.listener import Listener
from skerry.wire.messages import Batch, Hello, Ping, Refused, Welcome
from skerry.wire.tcp import Connection, connect, login
from tests.unit.wire.echoing import start
from tests.unit.wire.looping import BERGEN, OSLO, QUICK, SECRET, run, until

LOOPS = [uvloop.new_event_loop, asyncio.new_event_loop]


@pytest.mark.parametrize("factory", LOOPS)
@pytest.mark.parametrize("kind", ["tcp", "unix"])
def test_frames_of_every_size_travel_both_ways(
    kind: str, factory: Callable[[], asyncio.AbstractEventLoop], tmp_path: Path
) -> None:
    async def main() -> None:
        listener = await start("tcp:127.0.0.1:0" if kind == "tcp" else f"unix:{tmp_path}/s")
        connection = await connect(listener.address, QUICK)
        welcome = await login(connection, make_hello(BERGEN, "data"), SECRET, "oslo")
        assert welcome == Welcome(3, "fjords", "oslo", 11)
        assert connection.version == 3
        bodies = [os.urandom(size) for size in (1, 100, 16_384, 40_000, 3_000_000, 5)]
        for seq, body in enumerate(bodies):
            connection.send_parts(encode_batch_frame(Batch(seq, 0, False, 1, len(body), 0), body))
        await connection.drain()
        for seq, body in enumerate(bodies):
            frame = await connection.receive()
            assert frame is not None
            header, received = split_batch(frame)
            assert (header.seq, bytes(received)) == (seq, body)
        total = sum(map(len, bodies))
        assert total < connection.bytes_sent < total + 1000
        assert total < connection.bytes_received < total + 1000
        connection.close()
        await connection.wait_closed()
        await until(lambda: listener.connections == 0)
        await listener.stop()

    run(main(), factory)


@pytest.mark.parametrize("factory", LOOPS)
def test_a_peer_that_was_reset_at_once_is_only_gone(factory: Callable[[], asyncio.AbstractEventLoop]) -> None:
    """Its address cannot be asked for any more."""

    async def main() -> None:
        wrong: list[object] = []
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: wrong.append(context))
        ours, theirs = socket.create_server(("127.0.0.1", 0)), socket.socket()
        theirs.connect(ours.getsockname())
        theirs.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        theirs.close()
        made: list[Connection] = []
        server = await loop.create_server(lambda: Connection(QUICK, QUICK.frame_bytes, on_made=made.append), sock=ours)
        await until(lambda: bool(made or wrong))
        assert not wrong
        await made[0].wait_closed()
        server.close()

    run(main(), factory)


def test_a_unix_socket_is_private_and_removed_and_a_dead_one_replaced(tmp_path: Path) -> None:
    path = tmp_path / "s"
    dead = socket.socket(socket.AF_UNIX)
    dead.bind(str(path))
    dead.close()

    async def main() -> None:
        listener = await start(f"unix:{path}")
        assert path.stat().st_mode & 0o777 == 0o600
        with pytest.raises(ConfigError, match=r"cannot listen at .*a process listens"):
            await start(f"unix:{path}")
        await listener.stop()
        assert not path.exists()

    run(main())


def test_a_port_in_use_is_a_clear_error() -> None:
    async def main() -> None:
        listener = await start()
        with pytest.raises(ConfigError, match=r"cannot listen at 127.0.0.1:\d+: .*in use"):
            await start(listener.address)
        await listener.stop()

    run(main())


def test_a_failing_handler_costs_only_its_connection() -> None:
    async def fail(connection: Connection, hello: Hello) -> None:
        raise SiteError("spark is away", member="oslo") if hello.kind == "data" else ZeroDivisionError("secret")

    async def main() -> None:
        listener = await Listener.start("tcp:127.0.0.1:0", QUICK, OSLO, {"data": fail, "task": fail})
        for kind, reason in (("data", "spark is away"), ("task", "internal error: ZeroDivisionError")):
            connection = await connect(listener.address, QUICK)
            await login(connection, make_hello(BERGEN, kind), SECRET, "oslo")
            frame = await connection.receive()
            assert frame is not None
            message = decode(frame)
            assert isinstance(message, Refused)
            assert message.error.message == reason
            assert await connection.receive() is None
            await connection.wait_closed()
        await listener.stop()

    run(main())


def test_stop_cancels_handlers_and_closes_connections() -> None:
    ended = []

    async def wait(connection: Connection, hello: Hello) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(hello.kind)

    async def main() -> None:
        listener = await Listener.start("tcp:127.0.0.1:0", QUICK, OSLO, {"data": wait})
        connections = [await connect(listener.address, QUICK) for _ in range(3)]
        for connection in connections[:2]:
            await login(connection, make_hello(BERGEN, "data"), SECRET, "oslo")
        await listener.stop()
        for connection in connections:
            assert await receive_end(connection)
        with pytest.raises(ConnectionRefusedError):
            await connect(listener.address, QUICK)

    run(main())
    assert ended == ["data", "data"]


async def receive_end(connection: Connection) -> bool:
    try:
        return await connection.receive() is None
    except ConnectionLost:
        return True


def test_a_stream_that_ends_inside_a_frame_is_lost_and_not_ended() -> None:
    outcome: list[object] = []

    async def record(connection: Connection, hello: Hello) -> None:
        try:
            while (frame := await connection.receive()) is not None:
                outcome.append(frame.kind)
            outcome.append("end")
        except ConnectionLost as error:
            outcome.append(error.message.split(": ", 1)[1])

    async def main() -> None:
        listener = await Listener.start("tcp:127.0.0.1:0", QUICK, OSLO, {"data": record})
        for cut in (0, 5):
            connection = await connect(listener.address, QUICK)
            await login(connection, make_hello(BERGEN, "data"), SECRET, "oslo")
            frame = b"".join(map(bytes, encode_frame(BATCH, bytes(100))))
            connection.send_parts([frame + frame[:cut]])
            connection.close()
            await until(lambda: listener.connections == 0)
        await listener.stop()

    run(main())
    assert outcome == [BATCH, "end", BATCH, "the connection ended inside a frame"]


def test_a_slow_reader_bounds_what_is_buffered_and_the_sender_waits(tmp_path: Path) -> None:
    limits = msgspec.structs.replace(QUICK, receive_bytes=200_000, wait_s=0.5)
    accepted: list[Connection] = []
    go_on = asyncio.Event()
    sizes: list[int] = []

    async def slow(connection: Connection, hello: Hello) -> None:
        accepted.append(connection)
        await go_on.wait()
        while (frame := await connection.receive()) is not None:
            sizes.append(len(frame.payload))

    async def main() -> None:
        # Not over TCP: there the system has the same bound (TCP_USER_TIMEOUT), and may be first.
        listener = await Listener.start(f"unix:{tmp_path}/s", limits, OSLO, {"data": slow})
        connection = await connect(listener.address, limits)
        await login(connection, make_hello(BERGEN, "data"), SECRET, "oslo")

        async def send_much() -> None:
            for _ in range(10_000):
                connection.send_parts(encode_frame(BATCH, bytes(100_000)))
                await connection.drain()

        with pytest.raises(ConnectionLost, match=r"nothing was read for 0\.5 s"):
            await send_much()
        assert connection.bytes_sent < 20_000_000  # the systems' socket buffers and our bounds, not a gigabyte
        assert accepted[0].queued_bytes <= 2 * limits.receive_bytes
        go_on.set()
        await until(lambda: listener.connections == 0)
        await listener.stop()

    run(main())
    assert set(sizes) == {100_000}


def test_floods_of_empty_frames_are_bounded_too() -> None:
    limits = msgspec.structs.replace(QUICK, receive_bytes=100_000)
    accepted: list[Connection] = []

    async def never(connection: Connection, hello: Hello) -> None:
        accepted.append(connection)
        await asyncio.Event().wait()

    async def main() -> None:
        listener = await Listener.start("tcp:127.0.0.1:0", limits, OSLO, {"data": never})
        connection = await connect(listener.address, limits)
        await login(connection, make_hello(BERGEN, "data"), SECRET, "oslo")
        empty = b"".join(map(bytes, encode_frame(4, b"\x90")))
        connection.send_parts([empty * 100_000])
        await until(lambda: accepted and accepted[0].queued_bytes >= limits.receive_bytes)
        seen = accepted[0].bytes_received
        await asyncio.sleep(0.05)
        assert accepted[0].bytes_received == seen  # reading has stopped
        assert seen < 200_000
        connection.abort()
        await listener.stop()

    run(main())


def test_a_peer_that_never_reads_cannot_delay_close() -> None:
    async def main() -> None:
        with socket.create_server(("127.0.0.1", 0)) as server:
            connection = await connect(f"tcp:127.0.0.1:{server.getsockname()[1]}", QUICK)
            connection.limits = msgspec.structs.replace(QUICK, login_s=0.2)
            connection.send_parts([bytes(50_000_000)])
            connection.close()
            await connection.wait_closed()
            with pytest.raises(ConnectionLost):
                connection.send(Ping(0))

    run(main())


def test_receive_times_out_and_can_be_called_again() -> None:
    async def main() -> None:
        listener = await start()
        connection = await connect(listener.address, QUICK)
        await login(connection, make_hello(BERGEN, "data"), SECRET, "oslo")
        with pytest.raises(TimeoutError):
            await connection.receive(0.01)
        connection.send(Ping(7))
        frame = await connection.receive()
        assert isinstance(frame, Frame)
        assert decode(frame) == Ping(7)
        connection.close()
        assert await connection.receive() is None
        await connection.wait_closed()
        await listener.stop()

    run(main())


def test_an_aborted_connection_holds_no_frames() -> None:
    async def main() -> None:
        arrived: list[Connection] = []

        async def keep(connection: Connection, hello: Hello) -> None:
            arrived.append(connection)
            await connection.wait_closed()

        listener = await Listener.start("tcp:127.0.0.1:0", QUICK, OSLO, {"data": keep})
        connection = await connect(listener.address, QUICK)
        await login(connection, make_hello(BERGEN, "data"), SECRET, "oslo")
        connection.send_parts(encode_batch_frame(Batch(0, 0, False, 1, 1000, 0), os.urandom(1000)))
        await until(lambda: bool(arrived) and arrived[0].queued_bytes > 1000)
        arrived[0].abort()
        assert arrived[0].queued_bytes == 0
        assert await arrived[0].receive() is None
        connection.abort()
        await listener.stop()

    run(main())

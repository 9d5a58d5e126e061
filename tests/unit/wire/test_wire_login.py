"""The first frames of a connection: logins, refusals with their reason, and bounds on who is let in."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from skerry.model.errors import Overloaded, PeerError, TimedOut, VersionError
from skerry.wire.frames import (
    BATCH,
    HEADER,
    ConnectionLost,
    encode_frame,
    encode_message,
)
from skerry.wire.greeting import make_hello
from skerry.wire.messages import Hello, Ping, Refused, Welcome
from skerry.wire.tcp import connect, login
from skerry.wire.values import failure_of
from tests.unit.wire.echoing import refusal, start
from tests.unit.wire.looping import BERGEN, QUICK, SECRET, run, until


@pytest.mark.parametrize(
    ("hello", "kind", "reason"),
    [
        (make_hello(msgspec.structs.replace(BERGEN, cluster="lakes"), "data"), PeerError, "cluster 'fjords'"),
        (msgspec.structs.replace(make_hello(BERGEN, "data"), versions=(99,)), VersionError, "versions 99 and oslo 2"),
        (msgspec.structs.replace(make_hello(BERGEN, "data"), versions=()), VersionError, "versions none"),
        (make_hello(BERGEN, "dance"), PeerError, "no connections of kind 'dance'"),
    ],
)
def test_a_wrong_hello_is_refused_with_the_reason(hello: Hello, kind: type[PeerError], reason: str) -> None:
    async def main() -> None:
        listener = await start()
        connection = await connect(listener.address, QUICK)
        with pytest.raises(kind, match=reason):
            await login(connection, hello, SECRET, "oslo")
        connection.abort()
        await listener.stop()

    run(main())


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"GET / HTTP/1.1\r\nHost: oslo\r\n\r\n" + bytes(100_000), "unknown kind"),
        (HEADER.pack(4097, 1, 0) + bytes(50_000), "a frame of 4097 bytes is over the limit of 4096"),
        (HEADER.pack(4, 1, 12345) + b"abcd", "checksum"),
        (b"".join(map(bytes, encode_message(Ping(0)))), "the first frame must be Hello"),
        (b"".join(map(bytes, encode_frame(1, b"\xc1"))), "Hello: not a message"),
    ],
)
def test_garbage_is_refused_and_the_listener_lives(data: bytes, reason: str) -> None:
    async def main() -> None:
        listener = await start()
        connection = await connect(listener.address, QUICK)
        connection.send_parts([data])
        assert reason in (await refusal(connection)).message
        healthy = await connect(listener.address, QUICK)
        await login(healthy, make_hello(BERGEN, "data"), SECRET, "oslo")
        healthy.close()
        await healthy.wait_closed()
        await listener.stop()

    run(main())


def test_frames_may_be_larger_after_login_but_a_client_s_not_as_large() -> None:
    limits = msgspec.structs.replace(QUICK, frame_bytes=100_000, frame_bytes_from_client=10_000)

    async def main() -> None:
        listener = await start(limits=limits)
        for kind, size in (("data", 100_000), ("client", 10_000)):
            connection = await connect(listener.address, limits)
            await login(connection, make_hello(BERGEN, kind), SECRET, "oslo")
            connection.send_parts(encode_frame(BATCH, bytes(size)))
            frame = await connection.receive()
            assert frame is not None
            assert len(frame.payload) == size
            connection.send_parts(encode_frame(BATCH, bytes(size + 1)))
            assert f"over the limit of {size}" in (await refusal(connection)).message
        await listener.stop()

    run(main())


def test_a_hello_that_came_too_late_is_tried_again_like_a_reset() -> None:
    async def main() -> None:
        # Who waited for it in vain, and says so while it is on its way.
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.writelines(map(bytes, encode_message(Refused(failure_of(TimedOut("no Hello within 5 s"))))))
            await reader.read()
            writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        connection = await connect(f"tcp:127.0.0.1:{port}", QUICK)
        with pytest.raises(ConnectionLost, match="no Hello within 5 s"):
            await login(connection, make_hello(BERGEN, "data"), SECRET, "oslo")
        connection.abort()
        await connection.wait_closed()
        server.close()

    run(main())


def test_a_connection_without_hello_is_dropped() -> None:
    limits = msgspec.structs.replace(QUICK, login_s=0.1)

    async def main() -> None:
        listener = await start(limits=limits)
        silent = await connect(listener.address, QUICK)
        trickling = await connect(listener.address, QUICK)
        trickling.send_parts([b"\x00\x00"])
        assert "no Hello within 0.1 s" in (await refusal(silent)).message
        assert "no Hello" in (await refusal(trickling)).message
        await until(lambda: listener.connections == 0)
        await listener.stop()

    run(main())


def test_connections_over_the_bound_are_refused() -> None:
    limits = msgspec.structs.replace(QUICK, connections=2)

    async def main() -> None:
        listener = await start(limits=limits)
        first, second, third = [await connect(listener.address, QUICK) for _ in range(3)]
        await login(first, make_hello(BERGEN, "client"))
        await login(second, make_hello(BERGEN, "client"))
        with pytest.raises(Overloaded, match="has 2 connections already"):
            await login(third, make_hello(BERGEN, "client"))
        third.abort()
        # A member has a place all the same.
        member = await connect(listener.address, QUICK)
        await login(member, make_hello(BERGEN, "data"), SECRET, "oslo")
        first.close()
        await until(lambda: listener.connections == 2)
        fourth = await connect(listener.address, QUICK)
        await login(fourth, make_hello(BERGEN, "client"))
        for connection in (second, fourth, member):
            connection.close()
            await connection.wait_closed()
        await listener.stop()

    run(main())


def test_login_says_what_went_wrong() -> None:
    async def main() -> None:
        for answer, kind, reason in (
            (b"", ConnectionLost, "ended before the answer"),
            (b"".join(map(bytes, encode_message(Ping(1)))), PeerError, "Ping is no answer to Hello"),
            (b"".join(map(bytes, encode_message(Welcome(5, "fjords", "oslo", 1)))), PeerError, "gives none"),
            (b"HTTP/1.1 400 Bad Request\r\n\r\n", PeerError, "unknown kind"),
        ):

            async def reply(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, answer: bytes = answer) -> None:
                await reader.read(10)
                writer.write(answer)
                writer.write_eof()
                await reader.read()
                writer.close()

            server = await asyncio.start_server(reply, "127.0.0.1", 0)
            connection = await connect(f"tcp:127.0.0.1:{server.sockets[0].getsockname()[1]}", QUICK)
            with pytest.raises(kind, match=reason):
                await login(connection, make_hello(BERGEN, "data"), SECRET, "oslo")
            connection.abort()
            await connection.wait_closed()
            server.close()
            await server.wait_closed()

    run(main())

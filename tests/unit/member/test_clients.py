"""A member's client connections, over a real socket, with clients that do not behave."""

from __future__ import annotations

import asyncio
import socket

import pytest

from skerry.config import parse
from skerry.member.server import Member
from skerry.testing.ports import free_ports
from skerry.wire.frames import encode_message
from skerry.wire.messages import PROTOCOL_VERSIONS, Hello, Message, Ping

DEADLINE_S = 60.0
RECEIVE_BYTES = 64 * 1024


def frame(message: Message) -> bytes:
    return b"".join(bytes(part) for part in encode_message(message))


@pytest.mark.slow
def test_a_client_that_pings_and_reads_nothing_fills_no_memory() -> None:
    """Its Pongs would wait for it without end, while every Ping says that it lives."""
    (port,) = free_ports(1)
    config = parse(
        f"cluster: c\nlimits: {{receive_bytes: {RECEIVE_BYTES}, stop_s: 0.5, login_s: 1}}\nmembers:\n"
        f"  oslo: {{address: '127.0.0.1:{port}', role: lite}}\n  bergen: {{address: '127.0.0.1:1'}}"
    )

    async def test() -> None:
        member = Member(config, "oslo", None)
        await member.start()
        dialled = socket.socket()
        dialled.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)  # the system reads little of it either
        dialled.connect(("127.0.0.1", port))
        reader, writer = await asyncio.open_connection(sock=dialled, limit=1024)
        try:
            writer.write(frame(Hello("client", PROTOCOL_VERSIONS, "c", "", 0)))
            while not member.clients._connections:
                await asyncio.sleep(0.005)
            (connection,) = member.clients._connections
            pings = frame(Ping(0)) * 5000
            most = 0
            for _ in range(200):
                writer.write(pings)
                await writer.drain()
                most = max(most, connection.unsent_bytes)
            while connection.queued_bytes:
                await asyncio.sleep(0.005)
            assert max(most, connection.unsent_bytes) <= 2 * RECEIVE_BYTES
            assert not reader.at_eof()
        finally:
            writer.transport.abort()
            await member.stop()

    asyncio.run(asyncio.wait_for(test(), DEADLINE_S))

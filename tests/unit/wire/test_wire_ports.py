"""Data ports: each channel at a port of its own, given back at its end; a full range costs nobody its rows."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path
from random import Random

import msgspec
import pytest

from skerry.exchange.spool import Budget, Entry, Spool
from skerry.model.errors import SiteError, SkerryError
from skerry.model.ids import ChannelId, QueryId
from skerry.model.limits import KIB, MIB, Limits
from skerry.testing.ports import free_ports
from skerry.wire.channel import ChannelEnd
from skerry.wire.channels import ChannelIn, ChannelOut, Gone, data_handler
from skerry.wire.frames import Buffer, decode
from skerry.wire.greeting import make_hello
from skerry.wire.listener import Listener
from skerry.wire.messages import Batch, ChannelGone, ChannelPort, OpenChannel
from skerry.wire.ports import DataPorts
from skerry.wire.tcp import Connection, connect, login
from tests.unit.wire.looping import BERGEN, OSLO, QUICK, SECRET, run, until

LIMITS = msgspec.structs.replace(QUICK, first_credits_bytes=64 * KIB)


def free_range(count: int) -> tuple[int, int]:
    """So many ports in a row that nobody uses now."""
    ports = free_ports(count, in_a_row=True)
    return ports[0], ports[-1]


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


class Oslo:
    """Receives channels 1, 2, … from bergen, with a range of data ports."""

    def __init__(self, ports: tuple[int, int], limits: Limits = LIMITS) -> None:
        self.limits = limits
        self.ports = DataPorts("127.0.0.1", ports, limits, OSLO)
        self.channels: dict[ChannelId, ChannelIn] = {}
        self.bodies: dict[ChannelId, list[bytes]] = {}
        self.errors: list[SkerryError] = []
        self.asked = 0
        self.listener: Listener | None = None

    def lookup(self, opening: OpenChannel) -> ChannelIn | Gone:
        self.asked += 1
        channel = opening.channel
        if channel not in self.channels:
            bodies = self.bodies[channel] = []

            def append(header: Batch, body: Buffer) -> None:
                bodies.append(bytes(body))

            self.channels[channel] = ChannelIn(
                channel, self.limits, append=append, finish=lambda: None, fail=self.errors.append
            )
        return self.channels[channel]

    async def start(self) -> str:
        handlers = {"data": data_handler(self.lookup, self.limits, self.ports)}
        self.listener = await Listener.start("tcp:127.0.0.1:0", self.limits, OSLO, handlers)
        return self.listener.address

    async def stop(self) -> None:
        assert self.listener is not None
        await self.listener.stop()
        await self.ports.stop()
        assert self.ports.used == 0


def channel_id(number: int) -> ChannelId:
    return ChannelId(QueryId("oslo", "0" * 32), number, "bergen", "oslo")


class Sent:
    """A channel of bergen that sends some random bodies."""

    def __init__(self, number: int, address: str, folder: Path, limits: Limits = LIMITS) -> None:
        self.channel = channel_id(number)
        self.spool = Spool(Budget(64 * MIB, 0), folder, "out")
        self.bodies = [Random(each).randbytes(20_000) for each in range(30)]
        for body in self.bodies:
            self.spool.append(Entry(body, 1, len(body)))
        self.out = ChannelOut(BERGEN, self.channel, address, b"", self.spool, limits, Random(1))


def test_each_channel_has_a_port_of_its_own_until_it_ends(tmp_path: Path) -> None:
    async def main() -> None:
        oslo = Oslo(free_range(3))
        address = await oslo.start()
        assert oslo.listener is not None
        sent = [Sent(number, address, tmp_path) for number in range(2)]
        running = [asyncio.ensure_future(each.out.run()) for each in sent]
        await until(lambda: all(oslo.bodies.get(each.channel) == each.bodies for each in sent))
        ports = {await oslo.ports.port_for(each.channel, no_one, lambda _callback: None) for each in sent}
        assert len(ports) == 2
        assert all(oslo.ports.first <= port <= oslo.ports.last for port in ports if port is not None)
        await until(lambda: oslo.listener is not None and oslo.listener.connections == 0)  # it only told
        for each in sent:
            each.spool.finish()
        assert await asyncio.gather(*running) == [ChannelEnd.FINISHED] * 2
        await until(lambda: oslo.ports.used == 0)
        assert all(is_free(port) for port in ports if port is not None)
        for each in sent:
            each.spool.close()
        await oslo.stop()

    run(main())


async def no_one(connection: Connection, hello: object) -> None:
    raise AssertionError("a channel that has a port keeps it")


def test_a_lost_connection_is_resumed_at_the_channel_s_port(tmp_path: Path) -> None:
    async def main() -> None:
        oslo = Oslo(free_range(2))
        sent = Sent(1, await oslo.start(), tmp_path)
        running = asyncio.ensure_future(sent.out.run())
        for _ in range(3):
            await until(lambda: oslo.ports.used == 1 and oslo.channels[sent.channel]._connection is not None)
            connection = oslo.channels[sent.channel]._connection
            assert connection is not None
            connection.abort()  # both ends see a reset
            await until(lambda old=connection: oslo.channels[sent.channel]._connection not in (None, old))
        assert oslo.asked >= 4, "each time the main port was asked"
        assert oslo.ports.used == 1
        sent.spool.finish()
        assert await running is ChannelEnd.FINISHED
        assert oslo.bodies[sent.channel] == sent.bodies
        assert not oslo.errors
        sent.spool.close()
        await oslo.stop()

    run(main())


def test_when_the_range_is_used_up_channels_share_the_main_port(tmp_path: Path) -> None:
    async def main() -> None:
        oslo = Oslo(free_range(1))
        address = await oslo.start()
        assert oslo.listener is not None
        sent = [Sent(number, address, tmp_path) for number in range(3)]
        running = [asyncio.ensure_future(each.out.run()) for each in sent]
        await until(lambda: all(oslo.bodies.get(each.channel) == each.bodies for each in sent))
        assert oslo.ports.used == 1
        assert oslo.listener.connections >= 2
        for each in sent:
            each.spool.finish()
        assert await asyncio.gather(*running) == [ChannelEnd.FINISHED] * 3
        for each in sent:
            each.spool.close()
        await oslo.stop()

    run(main())


def test_a_port_that_somebody_else_has_is_left_out(tmp_path: Path) -> None:
    async def main() -> None:
        first, last = free_range(2)
        with socket.create_server(("127.0.0.1", first)):
            oslo = Oslo((first, last))
            sent = Sent(1, await oslo.start(), tmp_path)
            sent.spool.finish()
            assert await sent.out.run() is ChannelEnd.FINISHED
            assert oslo.bodies[sent.channel] == sent.bodies
            sent.spool.close()
            await oslo.stop()

    run(main())


def test_a_port_serves_its_own_channel_only() -> None:
    async def main() -> None:
        oslo = Oslo(free_range(1))
        address = await oslo.start()

        async def ask(address: str, number: int) -> object:
            connection = await connect(address, LIMITS)
            await login(connection, make_hello(BERGEN, "data"), SECRET, "oslo")
            connection.send(OpenChannel(channel_id(number), b"", 0))
            frame = await connection.receive()
            connection.abort()
            await connection.wait_closed()
            assert frame is not None
            return decode(frame)

        answer = await ask(address, 1)
        assert answer == ChannelPort(oslo.ports.first)
        assert await ask(address, 1) == answer
        assert await ask(f"tcp:127.0.0.1:{oslo.ports.first}", 2) == ChannelGone()
        oslo.channels[channel_id(1)].close()
        await until(lambda: oslo.ports.used == 0)
        assert await ask(address, 1) == ChannelGone(), "what is over is answered at the main port"
        await oslo.stop()

    run(main())


def test_a_port_that_nothing_reaches_ends_the_channel_after_the_wait_and_is_named(tmp_path: Path) -> None:
    """As a firewall that is open for the main port alone."""

    async def main() -> None:
        port, _ = free_range(1)

        async def misdirect(connection: Connection, hello: object) -> None:
            await connection.receive()
            connection.send(ChannelPort(port))

        listener = await Listener.start("tcp:127.0.0.1:0", LIMITS, OSLO, {"data": misdirect})
        limits = msgspec.structs.replace(LIMITS, wait_s=0.3)
        sent = Sent(1, listener.address, tmp_path, limits)
        with pytest.raises(SiteError, match=rf"site oslo is down: no connection to 127\.0\.0\.1:{port} for 0\.3 s"):
            await sent.out.run()
        sent.spool.close()
        await listener.stop()

    run(main())

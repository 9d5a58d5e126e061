"""Dead peers are found by heartbeats alone, while a channel to them runs at full speed, and nothing is lost by it."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random

import msgspec
import pytest

from skerry.exchange.spool import Budget, Entry, Spool
from skerry.model.limits import MIB
from skerry.testing.ports import free_ports
from skerry.wire.address import TcpAddress, parse_address
from skerry.wire.channel import ChannelEnd
from skerry.wire.channels import ChannelOut
from skerry.wire.messages import Check
from skerry.wire.tcp import connect
from tests.unit.wire.loaded_site import BODY, CHANNEL, LIMITS, Site
from tests.unit.wire.looping import BERGEN, OSLO, run, until

PING_BYTES = 11  # a frame's header and [n]; larger numbers only make fewer of it


class Load:
    """bergen's channel to oslo, which never runs dry until it is told to."""

    def __init__(self, folder: Path, address: str) -> None:
        self.spool = Spool(Budget(256 * MIB, 0), folder, "out")
        self.put = 0
        self.is_on = True
        self.out = ChannelOut(BERGEN, CHANNEL, address, b"", self.spool, LIMITS, Random(1))
        self.feeding = asyncio.ensure_future(self._feed())
        self.running = asyncio.ensure_future(self.out.run())

    async def _feed(self) -> None:
        while self.is_on:
            if self.spool.length - self.spool.first < 64:
                self.spool.append(Entry(BODY, 1, len(BODY)))
                self.put += 1
            await asyncio.sleep(0)
        self.spool.finish()

    async def end(self) -> None:
        self.is_on = False
        await self.feeding
        assert await self.running is ChannelEnd.FINISHED
        self.spool.close()


class OneWay:
    """Links between bergen and oslo. What goes to one of them, or to both, can be stopped: bytes wait, none is lost."""

    def __init__(self) -> None:
        self.stopped: set[str] = set()  # whom nothing reaches
        self.links: list[dict[str, int]] = []  # bytes to each, by link
        self._tasks: set[asyncio.Task[None]] = set()
        self._writers: list[asyncio.StreamWriter] = []
        self._servers: list[asyncio.Server] = []

    async def front(self, target: str, to: str, dialler: str) -> str:
        where = parse_address(target)
        assert isinstance(where, TcpAddress)

        async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            far_reader, far_writer = await asyncio.open_connection(where.host, where.port)
            self._writers += [writer, far_writer]
            link = {to: 0, dialler: 0}
            self.links.append(link)
            for copy in (self._copy(reader, far_writer, to, link), self._copy(far_reader, writer, dialler, link)):
                task = asyncio.ensure_future(copy)
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)

        server = await asyncio.start_server(accept, "127.0.0.1", 0)
        self._servers.append(server)
        return f"tcp:127.0.0.1:{server.sockets[0].getsockname()[1]}"

    async def _copy(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, to: str, link: dict[str, int]
    ) -> None:
        try:
            while data := await reader.read(65536):
                while to in self.stopped:
                    await asyncio.sleep(0.01)
                if writer.transport.is_closing():  # the other way has ended; uvloop would not write
                    break
                writer.write(data)
                link[to] += len(data)
                await writer.drain()
        except OSError:
            pass
        while to in self.stopped:  # an end is as unseen as everything else
            await asyncio.sleep(0.01)
        writer.close()

    async def close(self) -> None:
        for server in self._servers:
            server.close()
        for task in list(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(list(self._tasks))
        for writer in self._writers:
            writer.transport.abort()
        await asyncio.sleep(0)


@pytest.mark.parametrize("deaf", [("bergen",), ("oslo",), ("bergen", "oslo")], ids=" and ".join)
def test_a_link_that_is_silent_is_found_under_load_and_nothing_is_lost(tmp_path: Path, deaf: tuple[str, ...]) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        ways, addresses = OneWay(), dict[str, str]()
        sites = {"oslo": Site(OSLO, addresses), "bergen": Site(BERGEN, addresses)}
        oslo, bergen = sites["oslo"], sites["bergen"]
        addresses["oslo"] = await ways.front(await oslo.start(), "oslo", "bergen")
        addresses["bergen"] = await ways.front(await bergen.start(), "bergen", "oslo")
        bergen.peers.send("oslo", Check(()))
        await until(lambda: bergen.peers.state("oslo") == oslo.peers.state("bergen") == "up")
        (control,) = ways.links
        load = Load(tmp_path, addresses["oslo"])
        # Under full load nobody is taken for dead: some heartbeats pass first.
        alive = control["oslo"] + 5 * PING_BYTES
        await until(lambda: oslo.received > 50 and control["oslo"] >= alive)
        assert len(ways.links) == 2, "the control connection and the channel's, no other"

        ways.stopped |= set(deaf)
        before = dict(control)
        other = {"bergen": "oslo", "oslo": "bergen"}
        stalls = 0
        for name in deaf:
            while sites[name].peers.state(other[name]) != "down":
                since = loop.time()
                await asyncio.sleep(0.002)
                stalls += loop.time() - since > LIMITS.heartbeat_s / 2
            # Heartbeats are the measure, not seconds: it said no more of them than may be missed, one under way, and
            # the answer to one that came last. A member that was itself away gives its peer the time to be heard.
            pings = (control[other[name]] - before[other[name]]) / PING_BYTES
            assert pings <= LIMITS.heartbeats_missed + 2 + 2 * stalls
            assert not sites[name].losses, "unlinked, not lost: it is waited for"

        ways.stopped.clear()
        await until(lambda: bergen.peers.state("oslo") == oslo.peers.state("bergen") == "up")
        await load.end()
        assert oslo.received == load.put
        assert not oslo.errors
        assert not oslo.losses
        assert not bergen.losses
        for site in sites.values():
            await site.stop()
        await ways.close()

    run(main())


@pytest.fixture
def bergen_address() -> str:
    """Known before bergen is up: oslo dials it when it wakes."""
    return f"tcp:127.0.0.1:{free_ports(1)[0]}"


@pytest.fixture
def oslo_process(bergen_address: str) -> Iterator[subprocess.Popen[str]]:
    """oslo as a process of its own."""
    child = subprocess.Popen(
        [sys.executable, "-m", "tests.unit.wire.loaded_site", bergen_address],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(["src", "."])},
        cwd=Path(__file__).parents[3],
    )
    with child:
        try:
            yield child
        finally:
            child.kill()


def test_a_process_that_is_stopped_is_found_under_load_and_goes_on_later(
    tmp_path: Path, oslo_process: subprocess.Popen[str], bergen_address: str
) -> None:
    """SIGSTOP: its system still acknowledges every byte, nobody answers."""
    assert oslo_process.stdin is not None
    assert oslo_process.stdout is not None
    address = oslo_process.stdout.readline().strip()
    sent = []

    async def main() -> None:
        bergen = Site(BERGEN, {"oslo": address})
        await bergen.start(bergen_address)
        bergen.peers.send("oslo", Check(()))
        await until(lambda: bergen.peers.state("oslo") == "up")
        load = Load(tmp_path, address)
        await until(lambda: load.put > 200)
        oslo_process.send_signal(signal.SIGSTOP)
        await until(lambda: bergen.peers.state("oslo") == "down")
        assert not bergen.losses
        oslo_process.send_signal(signal.SIGCONT)
        await until(lambda: bergen.peers.state("oslo") == "up")
        await load.end()
        sent.append(load.put)
        await bergen.stop()

    run(main())
    print(file=oslo_process.stdin, flush=True)
    assert oslo_process.stdout.readline().split() == [str(sent[0]), "0"]


def test_a_sender_that_restarted_is_fenced_by_its_epoch(tmp_path: Path) -> None:
    async def main() -> None:
        oslo = Site(OSLO, {})
        address = await oslo.start()
        spools = [Spool(Budget(MIB, 0), tmp_path, name) for name in ("before", "after")]
        for spool in spools:
            spool.append(Entry(BODY, 1, len(BODY)))
        outs = [
            ChannelOut(msgspec.structs.replace(BERGEN, epoch=epoch), CHANNEL, address, b"", spool, LIMITS, Random(1))
            for epoch, spool in zip((22, 23), spools, strict=True)
        ]
        before = asyncio.ensure_future(outs[0].run())
        await until(lambda: oslo.received == 1)
        # It knows nothing of what it sent before: its batch 0 may be another one.
        assert await outs[1].run() is ChannelEnd.GONE
        assert [error.message for error in oslo.errors] == ["site bergen restarted"]
        assert oslo.received == 1
        before.cancel()
        await asyncio.wait([before])
        for spool in spools:
            spool.close()
        await oslo.stop()

    run(main())


@pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="the system has no TCP_USER_TIMEOUT")
def test_bytes_that_nobody_acknowledges_end_a_connection_after_the_wait() -> None:
    """The host vanished: keep-alive is silent while bytes are under way, and TCP tries for very long."""

    async def main() -> None:
        oslo = Site(OSLO, {})
        connection = await connect(await oslo.start(), LIMITS)
        assert connection._transport is not None
        sock = connection._transport.get_extra_info("socket")
        assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == LIMITS.wait_s * 1000
        connection.abort()
        await connection.wait_closed()
        await oslo.stop()

    run(main())

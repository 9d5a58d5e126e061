"""Data connections that carry one channel after another: nothing of one is ever taken for the other's."""

from __future__ import annotations

import asyncio
from pathlib import Path
from random import Random

import msgspec
import pytest

from skerry.exchange.spool import Budget, Entry, Spool
from skerry.model.errors import PeerError, SkerryError
from skerry.model.ids import ChannelId, QueryId
from skerry.model.limits import MIB
from skerry.wire import greeting
from skerry.wire.channel import ChannelEnd, ChannelSender
from skerry.wire.channels import ChannelIn, ChannelOut, Gone, data_handler
from skerry.wire.frames import Buffer
from skerry.wire.listener import Listener
from skerry.wire.messages import Batch, ChannelOk, OpenChannel, Refused
from skerry.wire.ports import DataPorts
from skerry.wire.spares import Spares
from skerry.wire.tcp import receive_message
from skerry.wire.values import error_of
from tests.unit.wire.channel_ends import SMALL
from tests.unit.wire.looping import BERGEN, OSLO, Cutter, run, until
from tests.unit.wire.test_wire_ports import channel_id, free_range


class Oslo:
    """Receives channels 1, 2, … from bergen; those of `pending` are of a query that it does not know yet."""

    def __init__(self, pending: tuple[int, ...] = (), ports: DataPorts | None = None) -> None:
        self.pending = pending
        self.ports = ports
        self.channels: dict[int, ChannelIn] = {}
        self.bodies: dict[int, list[bytes]] = {}
        self.errors: list[SkerryError] = []
        self.gone: set[int] = set()
        self.listener: Listener | None = None

    def lookup(self, opening: OpenChannel) -> ChannelIn | Gone:
        number = opening.channel.edge
        if number in self.gone:
            return Gone.GONE
        if number not in self.channels:
            bodies = self.bodies[number] = []

            def append(header: Batch, body: Buffer) -> None:
                bodies.append(bytes(body))

            self.channels[number] = ChannelIn(
                opening.channel,
                SMALL,
                append=append,
                finish=lambda: None,
                fail=self.errors.append,
                pending=number in self.pending,
            )
        return self.channels[number]

    async def start(self) -> str:
        handlers = {"data": data_handler(self.lookup, SMALL, self.ports)}
        self.listener = await Listener.start("tcp:127.0.0.1:0", SMALL, OSLO, handlers)
        return self.listener.address

    @property
    def connections(self) -> int:
        assert self.listener is not None
        return self.listener.connections


class Bergen:
    """Sends channels 1, 2, … of three batches each, and keeps what connections they leave."""

    def __init__(self, address: str, folder: Path, spares: Spares | None = None) -> None:
        self.address = address
        self.folder = folder
        self.spares = spares or Spares()
        self.spools: list[Spool] = []

    def out(self, number: int, wait_s: float | None = None) -> ChannelOut:
        spool = Spool(Budget(64 * MIB, 0), self.folder, "out")
        self.spools.append(spool)
        for body in bodies_of(number):
            spool.append(Entry(body, 1, len(body)))
        spool.finish()
        channel, random = channel_id(number), Random(1)
        return ChannelOut(BERGEN, channel, self.address, b"", spool, SMALL, random, wait_s=wait_s, spares=self.spares)


def bodies_of(number: int) -> list[bytes]:
    return [Random(f"{number} {each}").randbytes(1000) for each in range(3)]


async def at_an_end(oslo: Oslo, bergen: Bergen) -> None:
    bergen.spares.close()
    for spool in bergen.spools:
        spool.close()
    await until(lambda: oslo.connections == 0)
    assert oslo.listener is not None
    await oslo.listener.stop()


def test_channels_follow_each_other_on_one_connection(tmp_path: Path) -> None:
    async def main() -> None:
        oslo = Oslo(pending=(2,))
        cutter = Cutter()
        address = await oslo.start()
        bergen = Bergen(await cutter.front(lambda: address), tmp_path)
        for number in range(1, 5):
            running = asyncio.ensure_future(bergen.out(number).run())
            if number == 2:  # complete before its query is known: its acks come late, and the next channel after them
                await until(lambda: len(oslo.bodies.get(2, ())) == 3)
                oslo.channels[2].activate()
            assert await running is ChannelEnd.FINISHED
            assert oslo.bodies[number] == bodies_of(number)
            oslo.channels[number].close()  # its query is over: the connection is not its own any more
            assert (bergen.spares.count("oslo"), oslo.connections) == (1, 1)
        assert cutter.accepted == 1
        # Several at once take as many connections.
        ends = await asyncio.gather(*(bergen.out(number).run() for number in range(5, 8)))
        assert ends == [ChannelEnd.FINISHED] * 3
        assert all(oslo.bodies[number] == bodies_of(number) for number in range(5, 8))
        assert oslo.connections == bergen.spares.count("oslo") == 3
        assert oslo.errors == []
        await at_an_end(oslo, bergen)
        await cutter.close()

    run(main())


@pytest.mark.parametrize("wait_s", [None, 0.0])
def test_a_connection_that_died_between_channels_is_no_loss_of_the_next(tmp_path: Path, wait_s: float | None) -> None:
    async def main() -> None:
        oslo = Oslo()
        cutter = Cutter()
        address = await oslo.start()
        bergen = Bergen(await cutter.front(lambda: address), tmp_path)
        await bergen.out(1).run()
        cutter.is_frozen = True  # nobody hears that it is cut
        running = asyncio.ensure_future(bergen.out(2, wait_s).run())
        await until(lambda: bergen.spares.count("oslo") == 0)
        await asyncio.sleep(0.01)
        cutter.cut()
        cutter.is_frozen = False
        assert await running is ChannelEnd.FINISHED
        assert oslo.bodies[2] == bodies_of(2)
        assert oslo.errors == []
        await at_an_end(oslo, bergen)
        await cutter.close()

    run(main())


def test_only_a_channel_that_is_acked_leaves_its_connection(tmp_path: Path) -> None:
    async def main() -> None:
        oslo = Oslo()
        bergen = Bergen(await oslo.start(), tmp_path)
        oslo.gone = {1}
        assert await bergen.out(1).run() is ChannelEnd.GONE
        oslo.lookup(OpenChannel(channel_id(2), b"", 0))
        oslo.channels[2].stop_sending()
        assert await bergen.out(2).run() is ChannelEnd.STOPPED
        assert bergen.spares.count("oslo") == 0
        await at_an_end(oslo, bergen)

    run(main())


def test_members_of_the_release_before_close_theirs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        oslo = Oslo()
        bergen = Bergen(await oslo.start(), tmp_path)
        monkeypatch.setattr(greeting, "DATA_VERSIONS", (2,))
        assert await bergen.out(1).run() is ChannelEnd.FINISHED
        assert bergen.spares.count("oslo") == 0
        await at_an_end(oslo, bergen)

    run(main())


def test_a_port_of_its_own_is_left_with_its_channel(tmp_path: Path) -> None:
    async def main() -> None:
        ports = DataPorts("127.0.0.1", free_range(2), SMALL, OSLO)
        oslo = Oslo(ports=ports)
        bergen = Bergen(await oslo.start(), tmp_path)
        for number in (1, 2):
            assert await bergen.out(number).run() is ChannelEnd.FINISHED
            assert oslo.bodies[number] == bodies_of(number)
            assert bergen.spares.count("oslo") == 0
        await until(lambda: ports.used == 0)
        await at_an_end(oslo, bergen)
        await ports.stop()

    run(main())


def test_spares_are_few_and_do_not_wait_for_ever(tmp_path: Path) -> None:
    async def main() -> None:
        oslo = Oslo()
        bergen = Bergen(await oslo.start(), tmp_path, Spares(idle_s=0.05, each_max=2))
        await asyncio.gather(*(bergen.out(number).run() for number in range(5)))
        assert bergen.spares.count("oslo") <= 2
        await until(lambda: bergen.spares.count("oslo") == oslo.connections == 0)
        await at_an_end(oslo, bergen)

    run(main())


def test_who_sends_is_asked_for_each_channel(tmp_path: Path) -> None:
    async def main() -> None:
        oslo = Oslo()
        bergen = Bergen(await oslo.start(), tmp_path)
        await bergen.out(1).run()
        spare = bergen.spares.take("oslo")
        assert spare is not None
        forged = ChannelId(QueryId("oslo", "0" * 32), 2, "tromso", "oslo")
        spare.connection.send(OpenChannel(forged, b"", 0))
        with pytest.raises(PeerError, match="'bergen' cannot send as 'tromso'"):
            raise error_in(await receive_message(spare.connection, SMALL.login_s))
        assert 2 not in oslo.channels
        spare.connection.abort()
        await at_an_end(oslo, bergen)

    run(main())


def error_in(message: object) -> SkerryError:
    assert isinstance(message, Refused)
    return error_of(message.error)


def test_a_batch_that_is_sent_again_does_not_become_the_last() -> None:
    sender = ChannelSender()
    sender.opened(ChannelOk(0, 1000))
    assert sender.may_end
    first = sender.send(1, 10)
    sender.unlinked()
    sender.opened(ChannelOk(0, 1000))
    assert not sender.may_end
    assert sender.send(1, 10) == msgspec.structs.replace(first, remaining_credits=990)
    assert sender.may_end
    last = sender.send(1, 10, last=True)
    sender.unlinked()
    sender.opened(ChannelOk(1, 1000))
    assert sender.may_end
    assert sender.send(1, 10, last=True) == last

"""Control connections between real members: one per pair, nothing lost or doubled, and losses noticed."""

from __future__ import annotations

import asyncio
from random import Random

import msgspec
import pytest

from skerry.errors import InternalError, PeerError, SiteError
from skerry.ids import QueryId
from skerry.limits import Limits
from skerry.wire.frames import encode_frame, encode_message
from skerry.wire.listener import Listener
from skerry.wire.messages import Check, Message
from skerry.wire.peers import Peers, backoff_s
from skerry.wire.session import Identity, make_hello
from skerry.wire.tcp import connect, login
from tests.unit.wire.looping import BERGEN, OSLO, QUICK, Cutter, run, until


def check(number: int) -> Check:
    return Check((QueryId("oslo", f"{number:032x}"),))


class Member:
    """A member with nothing but its control connections."""

    def __init__(self, identity: Identity, addresses: dict[str, str], limits: Limits = QUICK) -> None:
        self.identity = identity
        self.limits = limits
        self.addresses = addresses
        self.numbers: list[int] = []
        self.messages: list[tuple[str, Message]] = []
        self.ups: list[tuple[str, int]] = []
        self.backs: list[str] = []
        self.losses: list[str] = []
        self.listener: Listener | None = None
        self.peers: Peers | None = None

    async def start(self, address: str = "tcp:127.0.0.1:0") -> Member:
        self.peers = Peers(
            self.identity,
            self.addresses,
            self.limits,
            on_message=self.on_message,
            on_peer_lost=self.on_lost,
            on_peer_up=lambda peer, epoch: self.ups.append((peer, epoch)),
            on_peer_back=lambda peer, heard_at: self.backs.append(peer),
            random=Random(self.identity.epoch),
        )
        self.listener = await Listener.start(address, self.limits, self.identity, {"control": self.peers.serve})
        self.addresses[self.identity.member] = self.listener.address
        return self

    def on_message(self, peer: str, message: Message) -> None:
        assert isinstance(message, Check)
        self.messages.append((peer, message))
        self.numbers.append(int(message.suspected[0].local, 16))

    def on_lost(self, peer: str, error: SiteError) -> None:
        assert isinstance(error, SiteError)
        self.losses.append(error.message)

    def send(self, peer: str, number: int) -> None:
        assert self.peers is not None
        self.peers.send(peer, check(number))

    async def crash(self) -> None:
        """Like kill -9: connections reset, no Goodbye, nobody listens."""
        assert self.listener is not None
        assert self.peers is not None
        for pair in self.peers._pairs.values():
            pair.session = None
            pair._drop_link()
        await self.listener.stop()
        self.peers.is_stopping = True

    async def stop(self) -> None:
        assert self.listener is not None
        assert self.peers is not None
        await self.peers.stop()
        await self.listener.stop()


async def two(limits: Limits = QUICK) -> tuple[Member, Member]:
    addresses: dict[str, str] = {}
    return await Member(OSLO, addresses, limits).start(), await Member(BERGEN, addresses, limits).start()


async def behind_cutter(limits: Limits = QUICK) -> tuple[Member, Member, Cutter]:
    """Two members that reach each other only over links that can be cut."""
    cutter = Cutter()
    oslo, bergen = Member(OSLO, {}, limits), Member(BERGEN, {}, limits)
    oslo.addresses["bergen"] = await cutter.front(lambda: bergen.addresses["bergen"])
    bergen.addresses["oslo"] = await cutter.front(lambda: oslo.addresses["oslo"])
    return await oslo.start(), await bergen.start(), cutter


def test_messages_go_both_ways_over_one_connection_dialled_on_need() -> None:
    async def main() -> None:
        oslo, bergen = await two()
        assert oslo.peers is not None
        assert oslo.peers.state("bergen") == "unknown"
        for number in range(3):
            oslo.send("bergen", number)
        await until(lambda: len(bergen.numbers) == 3)
        bergen.send("oslo", 7)
        await until(lambda: oslo.numbers == [7])
        assert bergen.numbers == [0, 1, 2]
        assert (oslo.ups, bergen.ups) == ([("bergen", 22)], [("oslo", 11)])
        assert oslo.peers.state("bergen") == "up"
        assert oslo.listener is not None
        assert bergen.listener is not None
        assert oslo.listener.connections + bergen.listener.connections == 1
        await oslo.stop()
        await bergen.stop()
        assert bergen.losses == ["site oslo is stopping"]
        assert oslo.losses == []

    run(main())


@pytest.mark.parametrize("round_", range(5))
def test_both_dial_at_once_and_one_connection_remains(round_: int) -> None:
    async def main() -> None:
        oslo, bergen = await two()
        for number in range(50):
            oslo.send("bergen", number)
            bergen.send("oslo", number)
            if number % 10 == round_:
                await asyncio.sleep(0)
        await until(lambda: len(oslo.numbers) >= 50 and len(bergen.numbers) >= 50)
        assert oslo.listener is not None
        assert bergen.listener is not None
        listeners = (oslo.listener, bergen.listener)
        await until(lambda: sum(listener.connections for listener in listeners) == 1)
        for number in range(50, 60):
            oslo.send("bergen", number)
            bergen.send("oslo", number)
        await until(lambda: len(oslo.numbers) >= 60 and len(bergen.numbers) >= 60)
        assert oslo.numbers == bergen.numbers == list(range(60))
        assert (oslo.losses, bergen.losses, len(oslo.ups), len(bergen.ups)) == ([], [], 1, 1)
        await oslo.stop()
        await bergen.stop()

    run(main())


def test_nothing_is_lost_or_doubled_over_cuts() -> None:
    async def main() -> None:
        oslo, bergen, cutter = await behind_cutter()
        for number in range(400):
            oslo.send("bergen", number)
            bergen.send("oslo", number)
            if number % 40 == 17:
                cutter.cut_after_bytes = cutter.forwarded_bytes + number
            if number % 10 == 0:
                await asyncio.sleep(0.002)
        await until(lambda: len(oslo.numbers) >= 400 and len(bergen.numbers) >= 400)
        assert oslo.numbers == bergen.numbers == list(range(400))
        assert (oslo.losses, bergen.losses, oslo.ups, bergen.ups) == ([], [], [("bergen", 22)], [("oslo", 11)])
        await oslo.stop()
        await bergen.stop()
        await cutter.close()

    run(main())


def test_a_connection_that_comes_back_is_told_at_both_ends() -> None:
    async def main() -> None:
        oslo, bergen, cutter = await behind_cutter()
        oslo.send("bergen", 1)
        await until(lambda: oslo.ups and bergen.ups)
        assert (oslo.backs, bergen.backs) == ([], [])
        cutter.cut()
        await until(lambda: oslo.backs and bergen.backs)
        assert (set(oslo.backs), set(bergen.backs)) == ({"bergen"}, {"oslo"})
        assert (len(oslo.ups), len(bergen.ups)) == (1, 1)
        await oslo.stop()
        await bergen.stop()
        await cutter.close()

    run(main())


def test_a_refused_dial_is_a_loss_and_a_later_send_dials_anew() -> None:
    async def main() -> None:
        oslo, bergen = await two()
        assert bergen.listener is not None
        address = bergen.listener.address
        await bergen.stop()
        where = address.removeprefix("tcp:")
        oslo.send("bergen", 1)
        await until(lambda: len(oslo.losses) == 1)
        oslo.send("bergen", 1)
        await until(lambda: len(oslo.losses) == 2)
        assert oslo.losses == [f"site bergen is down: connection refused at {where}"] * 2
        assert oslo.peers is not None
        assert oslo.peers.state("bergen") == "down"
        await bergen.start(address)
        oslo.send("bergen", 2)
        await until(lambda: bergen.numbers)
        assert bergen.numbers == [2]  # what was queued for the lost peer is dropped
        assert len(oslo.losses) == 2
        await oslo.stop()
        await bergen.stop()

    run(main())


def test_a_killed_peer_is_noticed_at_once_and_welcome_when_it_returns() -> None:
    async def main() -> None:
        oslo, bergen = await two()
        oslo.send("bergen", 1)
        await until(lambda: bergen.numbers)
        assert bergen.listener is not None
        address = bergen.listener.address
        await bergen.crash()
        await until(lambda: oslo.losses)
        assert "connection refused" in oslo.losses[0]  # not waited out
        again = await Member(msgspec.structs.replace(BERGEN, epoch=23), bergen.addresses).start(address)
        again.send("oslo", 5)
        await until(lambda: oslo.numbers)
        assert oslo.ups == [("bergen", 22), ("bergen", 23)]
        assert len(oslo.losses) == 1
        await oslo.stop()
        await again.stop()

    run(main())


def test_a_peer_that_restarted_unnoticed_is_lost_by_its_epoch() -> None:
    async def main() -> None:
        oslo, bergen, cutter = await behind_cutter()
        oslo.send("bergen", 1)
        await until(lambda: bergen.numbers)
        assert bergen.listener is not None
        address = bergen.listener.address
        cutter.is_frozen = True  # oslo sees nothing of the change
        oslo.send("bergen", 2)
        await bergen.crash()
        again = await Member(msgspec.structs.replace(BERGEN, epoch=23), bergen.addresses).start(address)
        cutter.is_frozen = False
        cutter.cut()
        await until(lambda: oslo.losses)
        assert oslo.losses == ["site bergen is down: it restarted"]
        assert again.numbers == []
        oslo.send("bergen", 3)
        await until(lambda: again.numbers)
        assert (again.numbers, again.losses, again.ups) == ([3], [], [("oslo", 11)])
        await oslo.stop()
        await again.stop()
        await cutter.close()

    run(main())


def test_silence_shorter_than_the_wait_is_survived() -> None:
    async def main() -> None:
        oslo, bergen, cutter = await behind_cutter()
        oslo.send("bergen", 1)
        await until(lambda: bergen.numbers)
        assert oslo.peers is not None
        cutter.is_frozen = True
        await until(lambda: oslo.peers is not None and oslo.peers.state("bergen") == "down")
        oslo.send("bergen", 2)
        bergen.send("oslo", 3)
        cutter.is_frozen = False
        await until(lambda: len(bergen.numbers) == 2 and oslo.numbers)
        assert (bergen.numbers, oslo.numbers) == ([1, 2], [3])
        assert (oslo.losses, bergen.losses) == ([], [])
        await oslo.stop()
        await bergen.stop()
        await cutter.close()

    run(main())


def test_longer_silence_is_a_loss_for_both_and_a_fresh_start_later() -> None:
    limits = msgspec.structs.replace(QUICK, wait_s=1.0, login_s=0.5)  # time enough for the login on a busy machine

    async def main() -> None:
        oslo, bergen, cutter = await behind_cutter(limits)
        oslo.send("bergen", 1)
        bergen.send("oslo", 1)
        await until(lambda: bergen.numbers and oslo.numbers)
        cutter.is_frozen = True
        await until(lambda: oslo.losses and bergen.losses)
        assert oslo.losses == ["site bergen is down: no connection for 1 s"]
        assert bergen.losses == ["site oslo is down: no connection for 1 s"]
        cutter.is_frozen = False
        for number in (2, 3):
            oslo.send("bergen", number)
        await until(lambda: bergen.numbers == [1, 2, 3])
        bergen.send("oslo", 4)
        await until(lambda: oslo.numbers == [1, 4])
        assert (len(oslo.losses), len(bergen.losses)) == (1, 1)
        await oslo.stop()
        await bergen.stop()
        await cutter.close()

    run(main())


def test_one_side_that_gave_up_makes_the_other_start_afresh_too() -> None:
    async def main() -> None:
        # bergen waits long, oslo gives up soon.
        oslo, bergen, cutter = await behind_cutter()
        assert oslo.peers is not None
        oslo.send("bergen", 1)
        await until(lambda: bergen.numbers)
        cutter.is_frozen = True
        pair = oslo.peers._pairs["bergen"]
        session = pair.session
        assert session is not None
        pair._perform(session, session.refused("nowhere"))
        cutter.is_frozen = False
        cutter.cut()
        oslo.send("bergen", 2)
        await until(lambda: len(bergen.numbers) == 2)
        assert bergen.losses == ["site oslo is down: it gave up waiting"]
        assert bergen.ups == [("oslo", 11), ("oslo", 11)]
        await oslo.stop()
        await bergen.stop()
        await cutter.close()

    run(main())


def test_garbage_on_a_control_connection_loses_only_that_peer() -> None:
    async def main() -> None:
        bergen = await Member(BERGEN, {"oslo": "tcp:127.0.0.1:1", "tromso": "tcp:127.0.0.1:1"}).start()
        assert bergen.listener is not None
        oslo = await Member(OSLO, {"bergen": bergen.listener.address}).start()
        oslo.send("bergen", 1)
        tromso = await connect(bergen.listener.address, QUICK)
        await login(tromso, make_hello(Identity("fjords", "tromso", 33), "control"))
        await until(lambda: len(bergen.ups) == 2)
        tromso.send_parts(encode_frame(12, b"\x00" * 8 + b"\xc1"))
        await until(lambda: bergen.losses)
        assert bergen.losses[0].startswith("site tromso cannot be used: Execute: not a message")
        oslo.send("bergen", 2)
        await until(lambda: bergen.numbers == [1, 2])
        tromso.abort()
        await oslo.stop()
        await bergen.stop()

    run(main())


def test_strangers_and_oneself_are_no_peers() -> None:
    async def main() -> None:
        oslo, bergen = await two()
        assert oslo.listener is not None
        assert oslo.peers is not None
        for name in ("stranger", "oslo"):
            with pytest.raises(InternalError, match="no other member"):
                oslo.peers.send(name, check(1))
            connection = await connect(oslo.listener.address, QUICK)
            with pytest.raises(PeerError, match="is no other member"):
                await login(connection, make_hello(Identity("fjords", name, 5), "control"))
            connection.abort()
        await oslo.stop()
        await bergen.stop()

    run(main())


def test_another_version_is_told_as_a_loss() -> None:
    async def reply(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        from skerry.wire.messages import Failure, Refused

        await reader.read(10)
        for part in encode_message(Refused(Failure(201, "bergen speaks 7"))):
            writer.write(bytes(part))
        writer.write_eof()
        await reader.read()
        writer.close()

    async def main() -> None:
        server = await asyncio.start_server(reply, "127.0.0.1", 0)
        address = f"tcp:127.0.0.1:{server.sockets[0].getsockname()[1]}"
        oslo = await Member(OSLO, {"bergen": address}).start()
        assert oslo.peers is not None
        oslo.peers.reach("bergen")
        await until(lambda: oslo.losses)
        assert oslo.losses == ["site bergen cannot be used: bergen speaks 7"]
        await oslo.stop()
        server.close()
        await server.wait_closed()

    run(main())


def test_callbacks_may_send_and_fail() -> None:
    async def main() -> None:
        oslo, bergen = await two()

        def answer(peer: str, message: Message) -> None:
            assert bergen.peers is not None
            Member.on_message(bergen, peer, message)
            bergen.peers.send(peer, message)
            raise ZeroDivisionError

        assert bergen.peers is not None
        bergen.peers.on_message = answer
        bergen.peers.on_peer_up = lambda peer, epoch: bergen.send(peer, 100)
        for number in range(20):
            oslo.send("bergen", number)
        await until(lambda: len(oslo.numbers) == 21)
        assert oslo.numbers == [100, *range(20)]
        await oslo.stop()
        await bergen.stop()

    run(main())


def test_what_waited_for_the_link_goes_before_what_a_callback_sends() -> None:
    async def main() -> None:
        oslo, bergen = await two()
        assert bergen.peers is not None
        bergen.peers.on_peer_up = lambda peer, epoch: bergen.send(peer, 100)
        for number in range(5):
            bergen.send("oslo", number)
        await until(lambda: len(oslo.numbers) == 6)
        assert oslo.numbers == [0, 1, 2, 3, 4, 100]
        assert (oslo.losses, bergen.losses) == ([], [])
        await oslo.stop()
        await bergen.stop()

    run(main())


def test_links_that_end_as_soon_as_they_begin_are_not_dialled_without_pause() -> None:
    dials = 0

    async def slam(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal dials
        dials += 1
        await reader.read(10)
        writer.transport.abort()

    async def main() -> None:
        server = await asyncio.start_server(slam, "127.0.0.1", 0)
        oslo = await Member(OSLO, {"bergen": f"tcp:127.0.0.1:{server.sockets[0].getsockname()[1]}"}).start()
        oslo.send("bergen", 1)
        await until(lambda: oslo.losses)
        assert oslo.losses == [f"site bergen is down: no connection for {QUICK.wait_s:g} s"]
        assert 2 < dials < 50
        await oslo.stop()
        server.close()
        await server.wait_closed()

    run(main())


def test_back_off_doubles_with_jitter_up_to_its_bound() -> None:
    limits = Limits()
    for attempt, most in ((0, 0.05), (1, 0.1), (3, 0.4), (10, 2.0), (10_000, 2.0)):
        pauses = {backoff_s(attempt, limits, Random(seed)) for seed in range(50)}
        assert most / 2 <= min(pauses) < max(pauses) <= most

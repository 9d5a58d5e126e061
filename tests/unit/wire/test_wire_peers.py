"""Control connections between real members: one per pair, nothing lost or doubled, and who may have one."""

from __future__ import annotations

import asyncio

import pytest

from skerry.model.errors import InternalError, PeerError
from skerry.wire.frames import encode_frame
from skerry.wire.greeting import make_hello
from skerry.wire.messages import Message
from skerry.wire.session import Identity
from skerry.wire.tcp import connect, login
from tests.unit.wire.control_members import Member, behind_cutter, check, two
from tests.unit.wire.looping import BERGEN, OSLO, QUICK, SECRET, run, until


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


def test_garbage_on_a_control_connection_loses_only_that_peer() -> None:
    async def main() -> None:
        bergen = await Member(BERGEN, {"oslo": "tcp:127.0.0.1:1", "tromso": "tcp:127.0.0.1:1"}).start()
        assert bergen.listener is not None
        oslo = await Member(OSLO, {"bergen": bergen.listener.address}).start()
        oslo.send("bergen", 1)
        tromso = await connect(bergen.listener.address, QUICK)
        await login(tromso, make_hello(Identity("fjords", "tromso", 33), "control"), SECRET, "bergen")
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
                await login(connection, make_hello(Identity("fjords", name, 5), "control"), SECRET, "oslo")
            connection.abort()
        await oslo.stop()
        await bergen.stop()

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

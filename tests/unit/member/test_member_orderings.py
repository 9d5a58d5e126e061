"""Every ordering of what can reach one participant: a table of states and events, and a real member that follows it."""

from __future__ import annotations

import asyncio
import itertools
import socket
from collections.abc import Iterator

import pytest

from skerry.wire.channels import data_handler
from skerry.wire.listener import Listener
from skerry.wire.session import Identity
from tests.unit.member.member_samples import plan_of, rows_of
from tests.unit.member.ordering_table import TABLE, B, C, E, Event, K, L, State
from tests.unit.member.ordering_world import GIVE_UP_S, LIMITS, Walk, World, entries_of, spelled, until
from tests.unit.wire.looping import SECRET

# Thousands of steps: ten seconds on an idle machine, minutes on a busy one.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


def test_the_table_is_whole() -> None:
    assert set(TABLE) == set(itertools.product(State, Event))


def orderings() -> Iterator[tuple[Event, ...]]:
    """All up to three events, with repeats; all orders of those that end the query, with one that does not."""
    for length in (1, 2, 3):
        yield from itertools.product(Event, repeat=length)
    for other in (Event.ALIVE, Event.STRAY):
        yield from itertools.permutations((E, B, L, C, K, other))


@pytest.mark.parametrize("pipelined", [True, False], ids=["pipelined", "staged"])
def test_a_participant_follows_the_table_in_every_ordering(pipelined: bool) -> None:
    async def all_rows() -> None:
        async with asyncio.timeout(GIVE_UP_S):
            world = World(pipelined)
            await world.start()
            try:
                for number, events in enumerate(orderings()):
                    await Walk(world, number, events).run()
                    assert world.left() == [], f"{spelled(events)}: left behind"
            finally:
                await world.stop()

    asyncio.run(all_rows())


def test_a_plan_that_leaves_the_cache_stays_with_its_running_query() -> None:
    async def main() -> None:
        async with asyncio.timeout(GIVE_UP_S):
            world = World(False, plans=1)
            await world.start()
            walk = Walk(world, 0, ())
            (result,) = world.expect(walk.query)
            await walk._do(Event.EXECUTE)
            world.member.plans.put(plan_of("bergen", "tromso"), "oslo")
            assert world.member.plans.get(world.execute.plan_id, "oslo") is None
            for event in (Event.BATCH, Event.LAST):
                await walk._do(event)
            await until(lambda: result.spool.finished)
            assert [rows_of(entry.body) for entry in entries_of(result.spool)] == [[(0, "x")]]
            await until(lambda: walk.query not in world.member.participants)
            world.forget(walk.query)
            await walk.bergen.close()
            await world.stop()

    asyncio.run(main())


def test_rows_leave_as_soon_as_their_receiver_is_back() -> None:
    """Tromso's dial to oslo came to nothing, and the next would be days away."""

    async def main() -> None:
        async with asyncio.timeout(GIVE_UP_S):
            world = World(True, reconnect_first_s=1e5, reconnect_max_s=1e5, wait_s=1e6)
            await world.start()
            await world.listener.stop()
            address = world.member.config.addresses()["oslo"]
            with socket.create_server(("127.0.0.1", int(address.rpartition(":")[2]))) as void:
                void.setblocking(False)
                walk = Walk(world, 0, ())
                (result,) = world.expect(walk.query)
                for event in (Event.EXECUTE, Event.BATCH, Event.LAST):
                    await walk._do(event)
                dialled, _ = await asyncio.get_running_loop().sock_accept(void)
            dialled.close()
            handlers = {"data": data_handler(world.oslo.lookup, LIMITS)}
            world.listener = await Listener.start(address, LIMITS, Identity("c", "oslo", 1, secret=SECRET), handlers)
            (sending,) = world.member.participants[walk.query]._channels
            await until(lambda: sending._failures == 1)
            world.member.peers.on_peer_back("bergen", 0.0)
            assert sending._failures == 1, "another peer is no news"
            world.member.peers.on_peer_back("oslo", 0.0)
            await until(lambda: result.spool.finished)
            assert [rows_of(entry.body) for entry in entries_of(result.spool)] == [[(0, "x")]]
            await until(lambda: walk.query not in world.member.participants)
            world.forget(walk.query)
            await walk.bergen.close()
            await world.stop()

    asyncio.run(main())

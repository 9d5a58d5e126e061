"""What a member that is told to stop refuses and waits for; and what its service speaks in."""

from __future__ import annotations

import asyncio
from types import ModuleType

import pytest

from skerry.config import parse
from skerry.member import requests, service
from skerry.member.drain import Drain
from skerry.member.requests import RunStatement
from skerry.member.server import Member
from skerry.model.caller import Caller
from skerry.model.errors import SiteStopping
from skerry.model.ids import QueryId
from skerry.wire.messages import Message
from skerry.wire.tcp import Connection

OWN, THEIRS = QueryId("oslo", "a"), QueryId("bergen", "b")
LONG_S = 1000.0
DEADLINE_S = 20.0


def run_drain(drain: Drain, drain_s: float, *, is_hurried: bool = False) -> None:
    async def wait() -> None:
        hurry = asyncio.Event()
        if is_hurried:
            hurry.set()
        async with asyncio.timeout(DEADLINE_S):
            await drain.wait(drain_s, hurry)

    asyncio.run(wait())


def test_without_queries_there_is_no_wait() -> None:
    drain = Drain("oslo", set, {}, {})
    assert drain.refusal() is drain.refusal_of_part(THEIRS) is None
    run_drain(drain, LONG_S)
    refusal, of_part = drain.refusal(), drain.refusal_of_part(THEIRS)
    assert refusal is not None
    assert of_part is not None
    assert (refusal.message, refusal.member) == ("site oslo is stopping; ask another member", "oslo")
    assert (of_part.message, of_part.member) == ("site oslo is stopping", "oslo")


def test_it_waits_until_the_last_has_ended() -> None:
    """Own queries by what callers read, those of others by the parts; parts of own ones are not counted twice."""
    reading, parts = {OWN}, {OWN: 1, THEIRS: 2}
    drain = Drain("oslo", lambda: set(reading), {}, parts)
    assert drain.running() == {OWN, THEIRS}

    async def test() -> None:
        async with asyncio.timeout(DEADLINE_S):
            waiting = asyncio.ensure_future(drain.wait(LONG_S, asyncio.Event()))
            for left in (reading, parts):
                await asyncio.sleep(0)
                assert drain.has_begun
                assert not waiting.done()
                left.clear()
            await waiting

    asyncio.run(test())
    assert drain.running() == set()


@pytest.mark.parametrize(("drain_s", "is_hurried"), [(0.0, False), (0.1, False), (LONG_S, True)])
def test_the_wait_ends_with_its_time_or_at_a_second_word(drain_s: float, is_hurried: bool) -> None:
    drain = Drain("oslo", lambda: {OWN}, {}, {})
    run_drain(drain, drain_s, is_hurried=is_hurried)
    assert drain.running() == {OWN}


def test_a_member_that_stops_says_so() -> None:
    caller = Caller("", "test", "here", "test 1")

    async def test() -> None:
        member = Member(parse("cluster: c\nmembers: {oslo: {address: 'h:1'}}"), "oslo", None)
        try:
            (state,) = member.service.members(caller)
            assert state.state == "up"
            async with asyncio.timeout(DEADLINE_S):
                await member.drain(LONG_S, asyncio.Event())
            (state,) = member.service.members(caller)
            assert state.state == "stopping"
            with pytest.raises(SiteStopping, match="site oslo is stopping; ask another member"):
                await member.service.execute(caller, RunStatement(OWN, "SELECT 1"))
        finally:
            await member.stop()

    asyncio.run(test())


@pytest.mark.parametrize("module", [requests, service], ids=lambda module: module.__name__)
def test_the_service_speaks_of_no_message_and_no_connection(module: ModuleType) -> None:
    kinds = [each for each in vars(module).values() if isinstance(each, type)]
    assert Caller in kinds or RunStatement in kinds
    assert [kind for kind in kinds if issubclass(kind, Message | Connection)] == []

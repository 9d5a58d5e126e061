"""A real member, without its listener: messages of one query in orders that the wire should never give."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import msgspec

from skerry.config import parse
from skerry.ids import ChannelId, QueryId
from skerry.member.server import Member
from skerry.wire.channels import ChannelIn, Gone
from skerry.wire.messages import Cancel, CheckResponse, Failure, Message, OpenChannel, PlanReply, Receipt
from tests.unit.member.member_samples import QUERY, SCHEMA, execute_of, plan_of

CONFIG = parse("cluster: c\nmembers: {oslo: {address: 'h:1'}, bergen: {address: 'h:2'}, tromso: {address: 'h:3'}}")
PLAN = plan_of("bergen", "tromso")
EXECUTE = execute_of(PLAN, "tromso")
CANCEL = Cancel(QUERY, "oslo", Failure(103, "closed"))
OPEN = OpenChannel(ChannelId(QUERY, 1, "bergen", "tromso"), SCHEMA.arrow, 0)


def with_tromso(act: Callable[[Member, list[Message]], Awaitable[None]]) -> None:
    """Run `act` with the member tromso and what it sent to oslo."""

    async def run() -> None:
        member = Member(CONFIG, "tromso", None)
        sent: list[Message] = []
        deliver = member.peers.send
        member.peers.send = lambda peer, message: sent.append(message)  # type: ignore[method-assign]
        try:
            await act(member, sent)
        finally:
            member.peers.send = deliver  # type: ignore[method-assign]
            await member.stop()

    asyncio.run(run())


def test_a_cancel_that_overtakes_its_execute_leaves_nothing_running() -> None:
    async def act(member: Member, sent: list[Message]) -> None:
        member._receive("oslo", CANCEL)
        assert sent == [Receipt(QUERY, "tromso")]
        member._receive("oslo", EXECUTE)
        assert member.participants == {}
        assert sent == [Receipt(QUERY, "tromso")] * 2
        assert member.inputs.lookup(OPEN) is Gone.GONE
        assert member.resources.queries == 0

    with_tromso(act)


def test_rows_that_overtake_the_execute_and_a_cancel_that_does_too() -> None:
    async def act(member: Member, sent: list[Message]) -> None:
        assert isinstance(member.inputs.lookup(OPEN), ChannelIn)
        member._receive("oslo", CANCEL)
        member._receive("oslo", EXECUTE)
        assert member.participants == {}
        assert member.inputs.pending == []
        assert member.resources.queries == 0

    with_tromso(act)


def test_rows_of_a_query_that_its_initiator_does_not_know_are_dropped() -> None:
    async def act(member: Member, sent: list[Message]) -> None:
        assert isinstance(member.inputs.lookup(OPEN), ChannelIn)
        member._receive("oslo", CheckResponse((QUERY, QueryId("oslo", "other"))))
        assert member.inputs.pending == []
        assert member.resources.queries == 0

    with_tromso(act)


def test_an_execute_at_a_member_without_spark_is_answered_with_a_cancel_and_a_receipt() -> None:
    async def act(member: Member, sent: list[Message]) -> None:
        member._receive("oslo", EXECUTE)
        (participant,) = member.participants.values()
        await participant.wait_ended()
        kinds = [type(message) for message in sent]
        assert kinds[0] is Cancel
        assert kinds[-1] is Receipt
        assert kinds.count(Receipt) == 1
        assert member.participants == {}
        assert member.resources.queries == 0
        # What comes late changes nothing.
        member._receive("oslo", PlanReply(QUERY, QUERY.local, PLAN.plan_id, PLAN))
        member._receive("oslo", msgspec.structs.replace(CANCEL, error=Failure(0, "complete")))
        assert member.participants == {}

    with_tromso(act)

"""A real member, without its listener: messages of one query in orders that the wire should never give."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import cast

import msgspec

from skerry.config import parse
from skerry.member import clock
from skerry.member.server import Member
from skerry.model.ids import ChannelId, QueryId
from skerry.spark.engine import Engine
from skerry.wire.channels import ChannelIn, Gone
from skerry.wire.messages import (
    Cancel,
    Check,
    CheckResponse,
    Failure,
    Message,
    OpenChannel,
    PlanReply,
    PlanRequest,
    Receipt,
)
from skerry.wire.session import LinkState
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
        unasked = CheckResponse((QUERY, QueryId("oslo", "other")))
        member._receive("oslo", unasked)
        assert member.inputs.pending == [QUERY]
        member.rounds.tick(clock.now() + member.limits.orphan_check_s)
        assert sent == [Check((QUERY,))]
        member._receive("oslo", unasked)
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


def test_queries_that_lack_the_same_plan_ask_once_and_all_run() -> None:
    async def act(member: Member, sent: list[Message]) -> None:
        member.engine = cast(Engine, object())  # it would run fragments; none arrives
        others = [msgspec.structs.replace(EXECUTE, query=QueryId("oslo", name)) for name in ("b", "c")]
        for execute in (EXECUTE, *others):
            member._receive("oslo", execute)
        assert [type(message) for message in sent] == [PlanRequest]
        member._receive("oslo", PlanReply(QUERY, QUERY.local, PLAN.plan_id, None))
        assert [message.query for message in sent if isinstance(message, Cancel)] == [
            execute.query for execute in (EXECUTE, *others)
        ]

    with_tromso(act)


def test_a_plan_is_given_for_a_query_that_is_over() -> None:
    async def act(member: Member, sent: list[Message]) -> None:
        request = PlanRequest(QUERY, "r", PLAN.plan_id)
        member._receive("oslo", request)
        member.plans.put(PLAN, "tromso")
        member._receive("oslo", request)
        assert sent == [PlanReply(QUERY, "r", PLAN.plan_id, plan) for plan in (None, PLAN)]

    with_tromso(act)


def test_a_participant_that_does_not_wait_for_its_initiator_tells_it() -> None:
    async def act(member: Member, sent: list[Message]) -> None:
        member.engine = cast(Engine, object())  # it would run fragments; no plan arrives
        member._receive("oslo", msgspec.structs.replace(EXECUTE, options={"fault_policy": "fail"}))
        (participant,) = member.participants.values()
        links = iter([LinkState(True, 1, 0.0), LinkState(True, 2, 0.0)])
        member.peers.link = lambda peer: next(links)  # type: ignore[method-assign]
        member.rounds.look_at_links(clock.now())
        assert not any(isinstance(message, Cancel) for message in sent)
        member.rounds.look_at_links(clock.now())  # the initiator may have seen the second link only
        await participant.wait_ended()
        (cancel,) = [message for message in sent if isinstance(message, Cancel)]
        assert "site oslo is down: its connection was lost" in cancel.error.message
        assert isinstance(sent[-1], Receipt)

    with_tromso(act)

"""Control messages of a member that was taken over, at a real member: about queries, rows and tables of others."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import cast

import msgspec
import pytest

from skerry.config import parse
from skerry.member.server import Member
from skerry.model import trace
from skerry.model.errors import PeerError
from skerry.model.events.event import Event
from skerry.model.fragment import Output, Plan, Rows, SparkFragment
from skerry.model.ids import ChannelId, QueryId
from skerry.model.results import Value
from skerry.model.table import Column, TablePart
from skerry.plan.cache import fingerprint
from skerry.spark.engine import Engine
from skerry.wire.messages import Cancel, Execute, Failure, Message, PlanReply, PlanRequest, Receipt, Tables
from skerry.wire.values import from_value

CONFIG = parse("cluster: c\nmembers: {oslo: {address: 'h:1'}, bergen: {address: 'h:2'}, tromso: {address: 'h:3'}}")
QUERY = QueryId("oslo", "0123456789abcdef0123456789abcdef")


def plan(sql: str) -> Plan:
    """What oslo has tromso run."""
    made = Plan("", (SparkFragment(1, "tromso", sql, (), Output(1, ("oslo",))),), Rows(1, ("tromso",)), {})
    return msgspec.structs.replace(made, plan_id=fingerprint(made))


def execute(plan: Plan, query: QueryId = QUERY, sender: str = "oslo", relays: tuple[ChannelId, ...] = ()) -> Execute:
    return Execute(query, "r", plan.plan_id, sender, (1,), {}, {}, {}, {}, ("tromso",), 100.0, relays)


def with_tromso(act: Callable[[Member, list[Message], list[Event]], Awaitable[None]]) -> None:
    """Run `act` with the member tromso, what it sent to others, and what happened."""

    async def run() -> None:
        member = Member(CONFIG, "tromso", None)
        member.engine = cast(Engine, object())  # whoever asks it for anything has gone too far
        sent: list[Message] = []
        seen: list[Event] = []
        deliver = member.peers.send
        member.peers.send = lambda peer, message: sent.append(message)  # type: ignore[method-assign]
        trace.listeners.append(seen.append)
        try:
            await act(member, sent, seen)
        finally:
            trace.listeners.remove(seen.append)
            member.peers.send = deliver  # type: ignore[method-assign]
            await member.stop()

    asyncio.run(run())


def refusals(seen: list[Event]) -> list[trace.MessageRefused]:
    return [event for event in seen if isinstance(event, trace.MessageRefused)]


@pytest.mark.parametrize(
    "message",
    [
        execute(plan("SELECT 1")),
        execute(plan("SELECT 1"), sender="bergen"),
        execute(plan("SELECT 1"), QueryId("bergen", "x")),
        execute(plan("SELECT 1"), QueryId("tromso", "x"), "bergen"),
    ],
    ids=["in another's name", "of another's query", "a sender that is another", "of this member's own query"],
)
def test_nobody_begins_a_query_of_another(message: Execute) -> None:
    async def act(member: Member, sent: list[Message], seen: list[Event]) -> None:
        member._receive("bergen", message)
        assert (member.participants, sent) == ({}, [])
        assert [each.reason.code for each in refusals(seen)] == [PeerError.code]

    with_tromso(act)


@pytest.mark.parametrize(
    "channel",
    [
        ChannelId(QueryId("oslo", "other"), 1, "oslo", "bergen"),
        ChannelId(QUERY, 1, "oslo", "bergen"),
        ChannelId(QUERY, 1, "oslo", "tromso"),
        ChannelId(QUERY, 1, "nobody", "oslo"),
    ],
    ids=["of another query", "that does not pass here", "that ends here", "of nobody"],
)
def test_rows_are_passed_on_only_where_links_lead(channel: ChannelId) -> None:
    async def act(member: Member, sent: list[Message], seen: list[Event]) -> None:
        member._receive("oslo", execute(plan("SELECT 1"), relays=(channel,)))
        assert (member.participants, sent) == ({}, [])
        assert len(refusals(seen)) == 1

    with_tromso(act)


def test_nobody_ends_a_query_of_another() -> None:
    async def act(member: Member, sent: list[Message], seen: list[Event]) -> None:
        member._receive("oslo", execute(plan("SELECT 1")))
        for by in ("bergen", "oslo"):
            member._receive("bergen", Cancel(QUERY, by, Failure(103, "closed")))
        assert [type(each) for each in sent] == [PlanRequest]
        assert len(refusals(seen)) == 2
        (participant,) = member.participants.values()
        member._receive("oslo", Cancel(QUERY, "oslo", Failure(103, "closed")))
        await participant.wait_ended()
        assert isinstance(sent[-1], Receipt)

    with_tromso(act)


def test_a_plan_is_taken_from_whom_it_was_asked_and_once() -> None:
    wanted, other = plan("SELECT 1"), plan("SELECT 2")

    async def act(member: Member, sent: list[Message], seen: list[Event]) -> None:
        member._receive("oslo", execute(wanted))
        (participant,) = member.participants.values()
        for peer in ("bergen", "oslo"):  # another's answer, and one that nobody asked for
            member._receive(peer, PlanReply(QUERY, "r", other.plan_id, other))
        member._receive("bergen", PlanReply(QUERY, "r", wanted.plan_id, wanted))
        assert len(member.plans) == 0
        for _ in range(3):
            member._receive("oslo", PlanReply(QUERY, "r", wanted.plan_id, other))
        await participant.wait_ended()
        (cancel,) = [each for each in sent if isinstance(each, Cancel)]
        assert cancel.error.code == PeerError.code
        assert len([each for each in seen if isinstance(each, trace.PlanRefused)]) == 1
        assert len(member.plans) == 0

    with_tromso(act)


def test_a_plan_that_is_not_admitted_ends_every_query_that_waits_for_it() -> None:
    hostile = plan("SELECT java_method('java.lang.System', 'exit')")
    queries = [QueryId("oslo", name) for name in "abc"]

    async def act(member: Member, sent: list[Message], seen: list[Event]) -> None:
        for query in queries:
            member._receive("oslo", execute(hostile, query))
        waits = [each.wait_ended() for each in member.participants.values()]
        member._receive("oslo", PlanReply(queries[0], "r", hostile.plan_id, hostile))
        await asyncio.gather(*waits)
        told = [each for each in sent if isinstance(each, Cancel)]
        assert [each.query for each in told] == queries
        assert all("java_method is not admitted: it runs Java code" in each.error.message for each in told)
        assert all("member oslo" in each.error.message for each in told)
        (refused,) = [each for each in seen if isinstance(each, trace.PlanRefused)]
        assert (refused.initiator, refused.plan_id) == ("oslo", hostile.plan_id)
        assert "java_method" not in str(refused)  # the log does not quote statements
        assert (len(member.plans), member.participants) == (0, {})

    with_tromso(act)


def test_nobody_tells_of_the_tables_of_another() -> None:
    part = TablePart("t", "oslo", (Column("a", "int"),), 1, 1, 1, 1)

    async def act(member: Member, sent: list[Message], seen: list[Event]) -> None:
        member._receive("bergen", Tables("x", "bergen", (part,), {}))
        assert len(refusals(seen)) == 1

    with_tromso(act)


@pytest.mark.parametrize("text", ["1E+999999999", "1E-999999999", "NaN", "Infinity", "9" * 39, "x"])
def test_a_parameter_is_no_number_of_any_size(text: str) -> None:
    with pytest.raises(PeerError):
        from_value(Value("decimal(1,0)", text))

"""Queries that wait for a place: told so, in turns, within their time, and gone as soon as nobody wants them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import msgspec
import pytest

from skerry.config import parse
from skerry.member.planning import Planned, Planner, Understood
from skerry.member.requests import Answer, CountAnswer, GivePage, RunStatement
from skerry.member.server import Member
from skerry.model.caller import Caller
from skerry.model.errors import Cancelled, Overloaded, PeerError, TimedOut
from skerry.model.fragment import Count
from skerry.model.ids import QueryId
from skerry.wire.messages import FragmentDone, Receipt, Started
from tests.unit.member.member_samples import SCHEMA, plan_of, sealed

CONFIG = """
cluster: c
members: {oslo: {address: 'h:1'}, bergen: {address: 'h:2'}, tromso: {address: 'h:3'}}
limits: {running_queries: 2, running_queries_of_user: 1, queued_queries: 4, %s}
"""
COUNTS = sealed(msgspec.structs.replace(plan_of("bergen", "tromso"), ends_in=Count((1,))))
ANN = Caller("ann", "test", "desk:7", "test 1")
BOB = Caller("", "test", "desk:8", "test 2")


class World:
    def __init__(self, limit: str) -> None:
        self.member = Member(parse(CONFIG % limit), "oslo", None, plan=self._plan)
        self.service = self.member.service
        self.planned: list[str] = []
        self.stuck: set[str] = set()
        self.given_up: list[str] = []
        self.tasks: list[asyncio.Task[Answer | None]] = []

    async def _plan(self, planner: Planner, statement: RunStatement) -> Understood:
        self.planned.append(statement.query.local)
        if statement.query.local in self.stuck:
            try:
                await asyncio.Event().wait()
            finally:
                self.given_up.append(statement.query.local)
        return Planned(COUNTS, {})

    async def begin(self, caller: Caller, local: str, timeout_s: float = 0.0) -> asyncio.Task[Answer | None]:
        statement = RunStatement(QueryId("oslo", local), "DELETE FROM orders", timeout_s=timeout_s)
        task = asyncio.ensure_future(self.service.execute(caller, statement))
        self.tasks.append(task)
        while local not in self.planned or (local not in self.stuck and self.state(local) == "planning"):
            await asyncio.sleep(0)
        return task

    def state(self, local: str) -> str:
        return self.service.status(ANN, QueryId("oslo", local)).state

    def end(self, local: str) -> None:
        query = QueryId("oslo", local)
        initiated = self.member.initiated[query]
        initiated.receive("tromso", Started(query, "tromso", 1, SCHEMA))
        initiated.receive("tromso", FragmentDone(query, "tromso", 1, 3, 24, 0.5))
        self.let_go(query)

    def let_go(self, query: QueryId) -> None:
        for member in ("bergen", "tromso"):
            self.member.initiated[query].receive(member, Receipt(query, member))


def with_member(test: Callable[[World], Awaitable[None]], limit: str = "spark_s: 0") -> None:
    async def run() -> None:
        world = World(limit)
        try:
            await test(world)
        finally:
            for query, initiated in list(world.member.initiated.items()):
                initiated.cancel(Cancelled("the test is over"))
                world.let_go(query)
            for task in world.tasks:
                task.cancel()
            await asyncio.gather(*world.tasks, return_exceptions=True)
            await world.member.stop()

    asyncio.run(run())


def test_a_query_waits_for_its_users_other_and_says_so() -> None:
    async def test(world: World) -> None:
        first, second = await world.begin(ANN, "a0"), await world.begin(ANN, "a1")
        third = await world.begin(ANN, "a2")
        assert [world.state(each) for each in ("a0", "a1", "a2")] == ["running", "queued (1st)", "queued (2nd)"]
        assert [info.state for info in world.service.queries(ANN)] == ["running", "queued (1st)", "queued (2nd)"]
        other = await world.begin(BOB, "b0")
        assert world.state("b0") == "running"
        assert len(world.service.running) == 4
        for local, task in (("a0", first), ("a1", second), ("a2", third), ("b0", other)):
            while QueryId("oslo", local) not in world.member.initiated:
                await asyncio.sleep(0)
            world.end(local)
            assert await task == CountAnswer(3)
        # What had to wait was planned again: its tables may have changed.
        assert sorted(world.planned) == ["a0", "a1", "a1", "a2", "a2", "b0"]

    with_member(test)


def test_a_full_queue_says_whose_it_is() -> None:
    async def test(world: World) -> None:
        tasks = [await world.begin(ANN, f"a{number}") for number in range(4)]
        with pytest.raises(Overloaded, match=r"2 queries of ann wait already \(limits.queued_queries\)"):
            await tasks[-1]
        await world.begin(BOB, "b0")
        assert world.state("b0") == "running"

    with_member(test)


@pytest.mark.parametrize("where", ["queue", "planning"])
def test_a_close_reaches_a_query_that_waits_or_is_planned(where: str) -> None:
    async def test(world: World) -> None:
        await world.begin(ANN, "a0")
        if where == "planning":
            world.stuck.add("a1")
        waits = await world.begin(ANN, "a1")
        assert world.state("a1") == ("planning" if where == "planning" else "queued (1st)")
        world.service.close(ANN, QueryId("oslo", "a1"))
        with pytest.raises(Cancelled):
            await waits
        assert world.given_up == (["a1"] if where == "planning" else [])
        await world.begin(ANN, "a2")
        assert world.state("a2") == "queued (1st)"

    with_member(test)


def test_nobody_waits_longer_than_its_time() -> None:
    async def test(world: World) -> None:
        await world.begin(ANN, "a0")
        late = await world.begin(ANN, "a1", timeout_s=0.05)
        with pytest.raises(TimedOut, match=r"query oslo/a1 was in the queue longer than its 0.05 s"):
            await late
        world.stuck.add("b0")
        late = await world.begin(BOB, "b0", timeout_s=0.05)
        with pytest.raises(TimedOut, match=r"was planned longer than its 0.05 s"):
            await late

    with_member(test)


def test_an_id_that_cannot_be_is_kept_by_no_request() -> None:
    async def test(world: World) -> None:
        query = QueryId("oslo", "a" * 1_000_000)
        for ask in (world.service.attach, world.service.fetch):
            with pytest.raises(PeerError):
                await ask(ANN, GivePage(query, 0))
        with pytest.raises(PeerError):
            world.service.close(ANN, query)
        with pytest.raises(PeerError):
            world.service.cancel(ANN, query)
        assert world.service._cursors.markers == 0

    with_member(test)


def test_seconds_of_spark_are_bounded() -> None:
    async def test(world: World) -> None:
        task = await world.begin(ANN, "a0")
        query = QueryId("oslo", "a0")
        initiated = world.member.initiated[query]
        initiated.receive("tromso", Started(query, "tromso", 1, SCHEMA))
        initiated.tick(initiated.core.started_at + 59.0)
        assert not task.done()
        initiated.tick(initiated.core.started_at + 61.0)
        with pytest.raises(Overloaded, match=r"more than 60 s of Spark, all sites together \(spark_s\)"):
            await task

    with_member(test, "spark_s: 60")


@pytest.mark.parametrize(
    ("limit", "told"), [("spark_s_of_user: 0.6", "1 s of Spark"), ("result_rows_of_user: 5", "6 rows")]
)
def test_a_user_that_had_its_share_waits_and_others_do_not(limit: str, told: str) -> None:
    async def test(world: World) -> None:
        for local in ("a0", "a1"):  # half a second and three rows each
            task = await world.begin(ANN, local)
            world.end(local)
            assert await task == CountAnswer(3)
        with pytest.raises(Overloaded, match=f"the queries of ann have taken {told} in the last 3600 s"):
            await world.service.execute(ANN, RunStatement(QueryId("oslo", "a2"), "DELETE FROM orders"))
        await world.begin(BOB, "b0")
        assert world.state("b0") == "running"

    with_member(test, limit)

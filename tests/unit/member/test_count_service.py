"""Queries at the service, above all counts: no id runs twice, no count is lost, no stray request ends one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import msgspec
import pytest

from skerry.config import parse
from skerry.member.initiator import Initiated
from skerry.member.planning import Planned, Planner, Understood
from skerry.member.requests import Answer, CountAnswer, GivePage, PrepareStatement, RunStatement
from skerry.member.server import Member
from skerry.member.service import Service
from skerry.model import trace
from skerry.model.caller import Caller
from skerry.model.config import AccessConfig
from skerry.model.errors import AccessDenied, Cancelled, PeerError, SqlError, StaleSchema, UserError
from skerry.model.fragment import Count
from skerry.model.ids import QueryId
from skerry.model.limits import REASON_CHARS, Limits
from skerry.model.rights import Rights
from skerry.wire.messages import Cancel, Failure, FragmentDone, Receipt, Started
from tests.unit.member.member_samples import QUERY, SCHEMA, plan_of, sealed

# Nobody is there to be waited for.
CONFIG = parse(
    "cluster: c\nmembers: {oslo: {address: 'h:1'}, bergen: {address: 'h:2'}, tromso: {address: 'h:3'}}\n"
    "limits: {login_s: 0.1}"
)
ROWS = plan_of("bergen", "tromso")  # tromso scans (1), bergen runs the rest (2); oslo has asked
COUNTS = sealed(msgspec.structs.replace(ROWS, ends_in=Count((1,))))
WARNING = "'x' is a string"
ANN = Caller("ann", "test", "desk 7", "test 1")
BOB = Caller("", "test", "desk 8", "test 2")
SQL = "DELETE FROM orders"


class World:
    """A member whose every statement is the same change at tromso, or as the test says."""

    def __init__(self, limits: Limits, access: AccessConfig) -> None:
        config = msgspec.structs.replace(CONFIG, limits=limits, access=access)
        self.member = Member(config, "oslo", None, plan=self._plan)
        self.service = self.member.service
        self.planned = 0
        self.understand: Callable[[int], Understood] = lambda _planned: Planned(COUNTS, {}, (WARNING,))

    async def _plan(self, planner: Planner, statement: RunStatement) -> Understood:
        self.planned += 1
        return self.understand(self.planned)

    async def begin(self, **options: str) -> asyncio.Task[Answer | None]:
        statement = RunStatement(QUERY, SQL, options=options)
        task = asyncio.ensure_future(self.service.execute(ANN, statement))
        while QUERY not in self.member.initiated and not task.done():
            await asyncio.sleep(0)
        return task

    @property
    def initiated(self) -> Initiated:
        return self.member.initiated[QUERY]

    def count(self, rows: int) -> None:
        """Tromso tells what it has done. Whoever waits for it learns of it with the next turn of the loop."""
        self.initiated.receive("tromso", Started(QUERY, "tromso", 1, SCHEMA))
        self.initiated.receive("tromso", FragmentDone(QUERY, "tromso", 1, rows, 8 * rows, 0.5))

    async def let_go(self) -> None:
        initiated = self.initiated
        for member in ("bergen", "tromso"):
            initiated.receive(member, Receipt(QUERY, member))
        await initiated.wait_ended()

    async def attached(self) -> Answer:
        return await self.service.attach(BOB, GivePage(QUERY, 0))


def with_member(
    test: Callable[[World], Awaitable[None]], limits: Limits | None = None, access: AccessConfig | None = None
) -> None:
    async def run() -> None:
        world = World(limits or Limits(), access or AccessConfig())
        try:
            await test(world)
        finally:
            for initiated in list(world.member.initiated.values()):
                initiated.cancel(Cancelled("the test is over"))
                await world.let_go()
            await world.member.stop()

    asyncio.run(run())


def test_an_id_that_the_history_knows_is_refused_though_the_cursors_forgot_it() -> None:
    async def test(world: World) -> None:
        task = await world.begin()
        world.count(3)
        assert await task == CountAnswer(3, (WARNING,))
        await world.let_go()
        again = await world.begin()
        assert world.planned == 1
        with pytest.raises(UserError, match="was used before"):
            await again

    with_member(test, Limits(marker_s=0.0))


@pytest.mark.parametrize("end", ["close", "cancel", "lost"])
def test_a_count_that_is_made_is_kept_though_its_cursor_ends_before_it_is_told(end: str) -> None:
    async def test(world: World) -> None:
        task = await world.begin()
        world.count(3)
        match end:
            case "close":
                world.service.close(ANN, QUERY)
            case "cancel":
                world.service.cancel(BOB, QUERY)
            case _:
                world.service.gone(ANN, is_goodbye=False)
        assert world.service.status(BOB, QUERY).state == "done"
        assert await world.attached() == CountAnswer(3, (WARNING,))
        assert await task == CountAnswer(3, (WARNING,))

    with_member(test)


def test_a_count_that_somebody_else_attached_to_is_kept() -> None:
    """Whoever executed it is gone, and nobody but the one that attached waits for the count."""

    async def test(world: World) -> None:
        task = await world.begin()
        attached = asyncio.ensure_future(world.attached())
        await asyncio.sleep(0)
        task.cancel()
        world.service.gone(ANN, is_goodbye=False)
        await asyncio.sleep(0)
        world.count(3)
        assert await attached == CountAnswer(3, (WARNING,))
        assert await world.attached() == CountAnswer(3, (WARNING,))

    with_member(test)


@pytest.mark.parametrize("options", [{}, {"resume_s": "60"}, {"detach": "1"}], ids=["plain", "resume_s", "detach"])
def test_a_stray_fetch_does_not_end_a_count(options: dict[str, str]) -> None:
    async def test(world: World) -> None:
        task = await world.begin(**options)
        while QUERY not in world.member.initiated:
            await asyncio.sleep(0)
        with pytest.raises(UserError, match="ends in a count of rows, and has none to fetch"):
            await world.service.fetch(BOB, GivePage(QUERY, 0))
        assert world.service.status(BOB, QUERY).state == "running"
        world.count(3)
        assert await task in (None, CountAnswer(3, (WARNING,)))
        assert await world.attached() == CountAnswer(3, (WARNING,))

    with_member(test)


@pytest.mark.slow
def test_a_query_that_cannot_be_planned_again_is_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[trace.Event] = []
    monkeypatch.setattr(trace, "listeners", [heard.append])

    def understand(planned: int) -> Understood:
        if planned > 1:
            raise SqlError("no column amount")
        return Planned(ROWS, {})

    async def test(world: World) -> None:
        world.understand = understand
        task = await world.begin()
        stale = Failure(StaleSchema.code, "the columns of t have changed", "tromso")
        world.initiated.receive("tromso", Cancel(QUERY, "tromso", stale))
        await world.let_go()
        with pytest.raises(SqlError, match="no column amount"):
            await task
        told = [type(event).__name__ for event in heard]
        assert told.index("QueryReplanned") < told.index("QueryRefused")
        assert world.service.status(BOB, QUERY).state == "failed"

    with_member(test, Limits(login_s=0.1))


LONG = QueryId("oslo", "x" * 65)


@pytest.mark.parametrize(
    "ask",
    [
        lambda service: service.close(ANN, LONG),
        lambda service: service.cancel(ANN, LONG),
        lambda service: service.status(ANN, LONG),
        lambda service: service.close(ANN, QueryId("oslo", "../a\n")),
    ],
)
def test_an_id_that_no_query_can_have_is_not_remembered(ask: Callable[[Service], None]) -> None:
    """A close that overtakes its execute leaves a mark, ten thousand of them at most: each must be small."""

    async def test(world: World) -> None:
        with pytest.raises(PeerError, match="1 to 64 letters"):
            ask(world.service)
        assert world.service._cursors.markers == 0

    with_member(test)


def test_an_error_about_an_id_is_short() -> None:
    async def test(world: World) -> None:
        with pytest.raises(UserError) as error:
            world.service.close(ANN, QueryId("o" * 1_000_000, "1"))
        assert len(error.value.message) < 1000

    with_member(test)


def test_what_is_remembered_of_a_query_is_bounded() -> None:
    """A statement may be long, and so its plan and what is said of it: of many that are remembered."""

    async def test(world: World) -> None:
        world.understand = lambda _planned: too_long()
        with pytest.raises(SqlError):
            await (await world.begin())
        assert len(world.service._history.why_ended(QUERY)) == REASON_CHARS

    with_member(test)


def too_long() -> Understood:
    raise SqlError("x" * 1_000_000)


# --- whose queries they are --------------------------------------------------------------------------
USERS = AccessConfig(users="users")
EVE = Caller("eve", "test", "desk 9", "test 3")


async def unknown_to(world: World, caller: Caller) -> list[str]:
    """What is told of the query, and of one that never was."""
    service, told = world.service, []
    for query in (QUERY, QueryId("oslo", "f" * 32)):
        said = [service.status(caller, query).state, str(query in [info.query for info in service.queries(caller)])]
        service.arrived(caller, query, 10)
        for ask in (service.attach, service.fetch):
            with pytest.raises(Cancelled) as caught:
                await ask(caller, GivePage(query, 0))
            said.append(caught.value.message)
        with pytest.raises(Cancelled) as caught:
            service.cancel(caller, query)
        service.close(caller, query)
        told.append(" ".join([*said, caught.value.message]).replace(str(query), "ID"))
    return told


def test_another_user_s_query_is_like_one_that_never_was() -> None:
    async def test(world: World) -> None:
        task = await world.begin(resume_s="60")
        running, never = await unknown_to(world, EVE)
        assert running == never
        assert not task.done()
        assert world.service.status(ANN, QUERY).state == "running"
        world.count(3)
        assert await task == CountAnswer(3, (WARNING,))
        await world.let_go()
        world.service.close(ANN, QUERY)
        assert await unknown_to(world, EVE) == [never, never]
        assert await world.service.attach(ANN, GivePage(QUERY, 0)) == CountAnswer(3, (WARNING,))

    with_member(test, access=USERS)


def test_rights_are_to_see_and_to_end_but_never_to_have_the_rows() -> None:
    async def test(world: World) -> None:
        service = world.service
        task = await world.begin()
        world.member.access.rights_of = lambda caller: Rights(may_see_queries=caller is EVE)  # type: ignore[method-assign]
        assert service.status(EVE, QUERY).state == "running"
        assert [info.client for info in service.queries(EVE)] == [ANN.logged]
        with pytest.raises(Cancelled, match="is not open here"):
            await service.attach(EVE, GivePage(QUERY, 0))
        with pytest.raises(Cancelled, match="is not open here"):
            service.cancel(EVE, QUERY)
        assert not task.done()
        world.member.access.rights_of = lambda caller: Rights(may_end_queries=caller is EVE)  # type: ignore[method-assign]
        assert service.queries(EVE) == ()
        service.close(EVE, QUERY)
        with pytest.raises(Cancelled, match="was cancelled by eve"):
            await task

    with_member(test, access=USERS)


def test_a_user_keeps_no_other_from_an_id() -> None:
    async def test(world: World) -> None:
        world.service.close(EVE, QUERY)
        task = await world.begin()
        world.count(3)
        assert await task == CountAnswer(3, (WARNING,))

    with_member(test, access=USERS)


def test_who_closes_its_own_before_it_began_ends_it() -> None:
    async def test(world: World) -> None:
        world.service.close(msgspec.structs.replace(ANN, session="test 9"), QUERY)
        with pytest.raises(Cancelled, match="was closed before it began"):
            await (await world.begin())

    with_member(test, access=USERS)


def test_who_has_expired_begins_nothing_and_keeps_what_runs() -> None:
    async def test(world: World) -> None:
        task = await world.begin(resume_s="60")
        late = msgspec.structs.replace(ANN, until=asyncio.get_running_loop().time())
        for asking in (
            world.service.execute(late, RunStatement(QueryId("oslo", "2"), SQL)),
            world.service.prepare(late, PrepareStatement(SQL)),
            world.service.attach(late, GivePage(QUERY, 0)),
        ):
            with pytest.raises(AccessDenied, match="the token of ann has expired; connect again with a new one"):
                await asking
        assert world.service.status(late, QUERY).state == "running"
        world.count(3)
        assert await task == CountAnswer(3, (WARNING,))
        world.service.close(late, QUERY)

    with_member(test, access=USERS)


def test_another_connection_of_the_same_user_cancels_and_does_not_close() -> None:
    async def test(world: World) -> None:
        task = await world.begin()
        world.service.close(msgspec.structs.replace(ANN, session="another"), QUERY)
        with pytest.raises(Cancelled, match="was cancelled by ann"):
            await task

    with_member(test, access=USERS)

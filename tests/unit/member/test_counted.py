"""A query that ends in a count, at its initiator: whoever waits gets the number or the error; there are no rows."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import msgspec
import pytest

from skerry.config import parse
from skerry.member.initiator import Initiated
from skerry.member.server import Member
from skerry.model.errors import Cancelled, UserError
from skerry.model.fragment import Count, Ending, Written
from skerry.model.limits import Limits
from skerry.wire.messages import Cancel, FragmentDone, Message, Receipt, Started
from tests.unit.member.member_samples import QUERY, SCHEMA, TIMEOUT_S, plan_of, sealed

CONFIG = parse("cluster: c\nmembers: {oslo: {address: 'h:1'}, bergen: {address: 'h:2'}, tromso: {address: 'h:3'}}")
ROWS = plan_of("bergen", "oslo", "tromso")  # oslo scans (1), tromso scans (2), bergen runs the rest (3)
COUNTS: tuple[Ending, ...] = (Count((1, 2)), Written("lake", (1, 2)))


class Told:
    """A query at its initiator, and what it sent."""

    def __init__(self, member: Member, ends_in: Ending) -> None:
        self.member = member
        self.sent: list[tuple[str, Message]] = []
        plan = sealed(msgspec.structs.replace(ROWS, ends_in=ends_in))
        self.initiated = Initiated(
            QUERY, plan, {}, TIMEOUT_S, Limits(), member.inputs, self._send, lambda _initiated: None
        )
        self.initiated.start()

    def _send(self, member: str, message: Message) -> None:
        self.sent.append((member, message))

    def done(self, fragment: int, member: str, rows: int) -> None:
        self.initiated.receive(member, Started(QUERY, member, fragment, SCHEMA))
        self.initiated.receive(member, FragmentDone(QUERY, member, fragment, rows, 8 * rows, 0.5))

    async def let_go(self) -> None:
        for member in ("oslo", "bergen", "tromso"):
            self.initiated.receive(member, Receipt(QUERY, member))
        await self.initiated.wait_ended()
        assert self.member.resources.queries == 0


def with_query(ends_in: Ending, test: Callable[[Told], Awaitable[None]]) -> None:
    async def run() -> None:
        member = Member(CONFIG, "oslo", None)
        try:
            await test(Told(member, ends_in))
        finally:
            await member.stop()

    asyncio.run(run())


@pytest.mark.parametrize("ends_in", COUNTS)
def test_all_who_wait_get_the_count(ends_in: Ending) -> None:
    async def test(told: Told) -> None:
        waiting = [asyncio.ensure_future(told.initiated.count()) for _ in range(2)]
        await asyncio.sleep(0)
        told.done(1, "oslo", 30)
        assert (told.initiated.result.is_made, told.initiated.result.rows) == (False, 0)
        told.done(2, "tromso", 12)
        assert await asyncio.gather(*waiting, told.initiated.count()) == [42, 42, 42]
        assert (told.initiated.result.is_made, told.initiated.result.rows) == (True, 42)
        assert [member for member, message in told.sent if isinstance(message, Cancel)] == ["bergen", "oslo", "tromso"]
        told.initiated.cancel(Cancelled("too late"))
        assert await told.initiated.count() == 42
        await told.let_go()

    with_query(ends_in, test)


@pytest.mark.parametrize("ends_in", COUNTS)
def test_all_who_wait_get_the_error(ends_in: Ending) -> None:
    async def test(told: Told) -> None:
        waiting = [asyncio.ensure_future(told.initiated.count()) for _ in range(2)]
        await asyncio.sleep(0)
        told.done(1, "oslo", 30)
        told.initiated.cancel(Cancelled("not wanted"))
        told.done(2, "tromso", 12)
        assert [str(each) for each in await asyncio.gather(*waiting, return_exceptions=True)] == ["not wanted"] * 2
        assert not told.initiated.result.is_made
        await told.let_go()

    with_query(ends_in, test)


@pytest.mark.parametrize("ends_in", COUNTS)
def test_a_count_has_no_rows(ends_in: Ending) -> None:
    async def test(told: Told) -> None:
        for asked in (told.initiated.schema(), told.initiated.page(0, 1, 1)):
            with pytest.raises(UserError, match="ends in a count of rows, and has none to fetch"):
                await asked
        told.initiated.arrived(1)
        told.initiated.drop_result()
        told.done(1, "oslo", 1)
        told.done(2, "tromso", 1)
        assert await told.initiated.count() == 2
        await told.let_go()

    with_query(ends_in, test)

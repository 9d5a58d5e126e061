"""Who runs together with whom at one member, and who waits for nobody."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import msgspec
import pyarrow as pa
import pytest

from skerry.member.together import Together, may_share
from skerry.model.fragment import EdgeLeaf, Finish, OperatorFragment, Output, SparkFragment, TableLeaf, VirtualLeaf
from skerry.model.results import Schema
from skerry.spark.engine import Job, JobResult

FEW = Output(1, ("oslo",), through_driver=True)
SCAN = SparkFragment(1, "oslo", "SELECT * FROM leaf_0", (TableLeaf("leaf_0", "t"),), FEW)


def scans(count: int) -> list[SparkFragment]:
    return [msgspec.structs.replace(SCAN, id=number) for number in range(1, count + 1)]


def job(number: int) -> Job:
    return Job(f"tag-{number}", "", {}, {}, {}, None)


class Ran:
    """What was run together, by tag; the second of those has to be run by itself."""

    def __init__(self) -> None:
        self.tags: list[list[str]] = []
        self.held = asyncio.Event()
        self.held.set()
        self.is_over = asyncio.Event()

    async def __call__(
        self, jobs: Sequence[Job], on_schemas: Sequence[Callable[[Schema], None]]
    ) -> Sequence[JobResult | None]:
        self.tags.append([each.tag for each in jobs])
        await self.held.wait()
        return [None if place == 1 else JobResult(table=pa.table({"n": [each.tag]})) for place, each in enumerate(jobs)]


async def run(together: Together, number: int) -> Any:
    """As a participant does it: what came of it, or why it is run by itself."""
    with together.awaited(number):
        if not await together.come(number, job(number), lambda schema: None, is_kept=True):
            return "alone"
        found = await together.result(number)
        return None if found is None else found.table.column(0).to_pylist()  # type: ignore[union-attr]


async def stay_alone(together: Together, number: int, until: asyncio.Event) -> None:
    """Its own run takes long."""
    with together.awaited(number):
        assert not await together.come(number, job(number), lambda schema: None, is_kept=False)
        await until.wait()


async def leave(together: Together, number: int) -> str:
    with together.awaited(number):
        await asyncio.sleep(0)
    return "left"


def in_loop(work: Callable[[Ran], Coroutine[Any, Any, None]]) -> None:
    async def main() -> None:
        async with asyncio.timeout(20):
            await work(Ran())

    asyncio.run(main())


def test_all_that_come_are_one_run() -> None:
    async def work(ran: Ran) -> None:
        together = Together(scans(3), 60, ran, asyncio.ensure_future)
        assert await asyncio.gather(*(run(together, n) for n in (1, 2, 3))) == [["tag-1"], None, ["tag-3"]]
        assert ran.tags == [["tag-1", "tag-2", "tag-3"]]

    in_loop(work)


def test_who_does_not_come_is_not_awaited() -> None:
    async def work(ran: Ran) -> None:
        together = Together(scans(4), 60, ran, asyncio.ensure_future)
        alone = asyncio.create_task(stay_alone(together, 2, ran.is_over))
        assert await asyncio.gather(run(together, 1), run(together, 3), leave(together, 4)) == [["tag-1"], None, "left"]
        assert ran.tags == [["tag-1", "tag-3"]]
        ran.is_over.set()
        await alone

    in_loop(work)


def test_one_alone_is_not_shared() -> None:
    async def work(ran: Ran) -> None:
        together = Together(scans(2), 60, ran, asyncio.ensure_future)
        assert await asyncio.gather(run(together, 1), leave(together, 2)) == ["alone", "left"]
        assert await run(Together(scans(1), 60, ran, asyncio.ensure_future), 1) == "alone"
        # Its output would hold more than a page.
        assert await run(Together([], 60, ran, asyncio.ensure_future), 1) == "alone"
        assert ran.tags == []

    in_loop(work)


def test_nobody_waits_long() -> None:
    async def work(ran: Ran) -> None:
        together = Together(scans(3), 0.01, ran, asyncio.ensure_future)
        assert await asyncio.gather(run(together, 1), run(together, 2)) == [["tag-1"], None]
        assert await run(together, 3) == "alone"
        assert ran.tags == [["tag-1", "tag-2"]]

    in_loop(work)


def test_one_that_ends_meanwhile_neither_runs_nor_ends_the_others() -> None:
    async def work(ran: Ran) -> None:
        together = Together(scans(4), 60, ran, asyncio.ensure_future)
        ran.held.clear()
        first, second, third = (asyncio.create_task(run(together, n)) for n in (1, 2, 3))
        await asyncio.sleep(0)
        second.cancel()  # it waits for the fourth
        with pytest.raises(asyncio.CancelledError):
            await second
        together.leave(4)
        while not ran.tags:
            await asyncio.sleep(0)
        assert ran.tags == [["tag-1", "tag-3"]]
        first.cancel()  # it is run
        with pytest.raises(asyncio.CancelledError):
            await first
        ran.held.set()
        assert await third is None

    in_loop(work)


@pytest.mark.parametrize(
    ("changed", "shares"),
    [
        ({}, True),
        ({"leaves": ()}, True),
        ({"leaves": (TableLeaf("leaf_0", "t"), TableLeaf("leaf_1", "u"))}, True),
        ({"output": Output(1, ("oslo",))}, False),
        ({"leaves": (EdgeLeaf("leaf_0", 2, (), ("bergen",)),)}, False),
        ({"leaves": (TableLeaf("leaf_0", "t"), VirtualLeaf("tmp_0", ()))}, False),
        ({"analyzes": "t"}, False),
    ],
)
def test_the_plan_says_who_may(changed: dict[str, Any], shares: bool) -> None:
    assert may_share(msgspec.structs.replace(SCAN, **changed)) is shares
    assert not may_share(OperatorFragment(1, "oslo", Finish(), (), FEW))

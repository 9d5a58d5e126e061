"""A small write in its request's own task: what ends it, and what whoever asked is told."""

from __future__ import annotations

import asyncio

import pytest

from skerry.member.clientoptions import read_options
from skerry.member.history import ClientCursor
from skerry.member.runs import _Wanted
from skerry.model.errors import Cancelled, TimedOut, UserError
from skerry.model.ids import QueryId
from skerry.model.limits import Limits
from tests.unit.wire.looping import run

QUERY = QueryId("oslo", "0" * 32)


def a_cursor(timeout_s: float = 60.0) -> ClientCursor:
    return ClientCursor("INSERT INTO t VALUES (1)", "ada", read_options({}, Limits(), timeout_s))


async def _forever(wanted: _Wanted) -> None:
    with wanted:
        await asyncio.get_running_loop().create_future()


async def _begun(wanted: _Wanted) -> asyncio.Task[None]:
    task = asyncio.ensure_future(_forever(wanted))
    await asyncio.sleep(0)
    return task


def test_a_close_ends_it_and_only_it() -> None:
    async def main() -> None:
        cursor = a_cursor()
        wanted = _Wanted(cursor, QUERY)

        async def work() -> str:
            with pytest.raises(Cancelled, match="was closed"):
                await _forever(wanted)
            await asyncio.sleep(0)  # the task itself goes on
            return "answered"

        task = asyncio.ensure_future(work())
        await asyncio.sleep(0)
        cursor.close()
        cursor.close()
        assert await task == "answered"
        assert wanted.was_ended
        assert not task.cancelling()
        with pytest.raises(Cancelled, match="was closed"):
            await _forever(_Wanted(cursor, QUERY))  # closed before it began
        assert not cursor.on_closed

    run(main())


@pytest.mark.parametrize("place", [0, 3])
def test_its_time_ends_it(place: int) -> None:
    async def main() -> None:
        cursor = a_cursor(0.01)
        cursor.place = lambda: place
        wanted = _Wanted(cursor, QUERY)
        with pytest.raises(TimedOut, match="in the queue" if place else "being carried out"):
            await _forever(wanted)
        assert wanted.was_ended

    run(main())


@pytest.mark.parametrize("is_closed", [False, True])
def test_whoever_else_cancels_the_task_ends_it(is_closed: bool) -> None:
    async def main() -> None:
        cursor = a_cursor()
        wanted = _Wanted(cursor, QUERY)
        task = await _begun(wanted)
        task.cancel()
        if is_closed:  # as when its connection is gone
            cursor.close()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not wanted.was_ended

    run(main())


def test_what_comes_of_it_is_told_as_it_is() -> None:
    async def main() -> None:
        cursor = a_cursor()
        wanted = _Wanted(cursor, QUERY)
        with pytest.raises(UserError, match="no"), wanted:
            raise UserError("no")
        assert not wanted.was_ended
        cursor.close()  # nobody hears of it any more
        await asyncio.sleep(0)

    run(main())

"""skerry.aio on a real event loop and a real socket."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pyarrow as pa
import pytest

import skerry
import skerry.aio
from skerry.wire.client_messages import ClientClose, ClientExecute, ClientFetch
from skerry.wire.messages import Goodbye, Message
from tests.unit.client.scripted_member import WAIT_S, Answers, Peer, ScriptedMember, member_with

ROWS = 500
NUMBERS = pa.table({"n": list(range(ROWS))})
EVERY = [(n,) for n in range(ROWS)]


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(work, WAIT_S))


def answers() -> Answers:
    return Answers({"numbers": NUMBERS, "slow": None, "change": 3}, page_rows=64)


async def came(member: ScriptedMember, kind: type[Message], count: int = 1) -> None:
    await asyncio.to_thread(member.wait_for, kind, count)


def test_every_way_to_fetch() -> None:
    async def work(url: str) -> None:
        async with skerry.aio.connect(url) as connection:
            assert (connection.member, connection.closed, connection.usable) == ("oslo", False, True)
            async with connection.cursor() as cursor:
                assert await cursor.execute("numbers") is cursor
                assert [row async for row in cursor] == EVERY
                assert (cursor.rowcount, cursor.rownumber) == (ROWS, ROWS)
                await cursor.execute("numbers", timeout_s=5)
                assert cursor.description is not None
                assert await cursor.fetchone() == (0,)
                cursor.arraysize = 2
                assert await cursor.fetchmany() == EVERY[1:3]
                assert await cursor.fetch_page() == EVERY[3:64]
                assert await cursor.fetchall() == EVERY[64:]
                assert (await (await cursor.execute("numbers")).fetch_arrow_table()).equals(NUMBERS)
                await cursor.execute("numbers")
                batches = [batch async for batch in cursor.record_batches()]
                assert pa.Table.from_batches(batches).equals(NUMBERS)
                await cursor.executemany("change", [[1], [2]])
                assert cursor.rowcount == 3
                assert (await cursor.status()).state == (await cursor.progress()).state == "running"
        assert connection.closed

    with member_with(answers()) as member:
        run(work(member.url))
        member.wait_for(Goodbye)


def test_connect_can_be_awaited() -> None:
    async def work(url: str) -> None:
        connection = await skerry.aio.connect(url, resume_s=1)
        assert [state.name for state in await connection.members()] == ["oslo"]
        cursor = await connection.cursor().execute("numbers", detach=True)
        (info,) = await connection.queries()
        assert info.query == cursor.query_id
        assert await (await connection.attach(cursor.query_id)).fetchall() == EVERY
        await connection.cancel(cursor.query_id)
        await connection.commit()
        with pytest.raises(skerry.NotSupportedError):
            await connection.rollback()
        async with connection:
            pass
        with pytest.raises(skerry.InterfaceError):
            connection.cursor()

    with member_with(answers()) as member:
        run(work(member.url))


def test_errors_are_the_same() -> None:
    async def work(url: str) -> None:
        with pytest.raises(skerry.OperationalError, match="no member answers"):
            await skerry.aio.connect("skerry://127.0.0.1:1")
        async with skerry.aio.connect(url) as connection:
            with pytest.raises(skerry.ProgrammingError, match="cannot parse"):
                await connection.cursor().execute("nonsense")
            with pytest.raises(skerry.InterfaceError, match="execute a query first"):
                await connection.cursor().fetchall()

    with member_with(answers()) as member:
        run(work(member.url))


def test_cursors_of_one_connection_wait_side_by_side() -> None:
    """More cursors wait than the loop has threads of its own, and another still gets its rows."""

    async def work(member: ScriptedMember) -> None:
        async with skerry.aio.connect(member.url) as connection:
            waiting = [asyncio.ensure_future(connection.cursor().execute("slow")) for _ in range(40)]
            await came(member, ClientExecute, 40)
            assert await (await connection.cursor().execute("numbers")).fetchall() == EVERY
            for task in waiting:
                task.cancel()
            results = await asyncio.gather(*waiting, return_exceptions=True)
            assert {type(result) for result in results} == {asyncio.CancelledError}
            await came(member, ClientClose, 40)

    with member_with(answers()) as member:
        run(work(member))


@pytest.mark.parametrize("when", [ClientExecute, ClientFetch])
def test_a_cancelled_task_cancels_its_query_and_spares_the_connection(when: type[Message]) -> None:
    script = answers()

    def holds(peer: Peer, message: Message) -> None:
        if not isinstance(message, ClientFetch) or len(member.of(ClientExecute)) > 1:
            script(peer, message)

    async def work(member: ScriptedMember) -> None:
        async with skerry.aio.connect(member.url) as connection:

            async def query() -> None:
                cursor = await connection.cursor().execute("slow" if when is ClientExecute else "numbers")
                await cursor.fetchall()

            task = asyncio.ensure_future(query())
            await came(member, when)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await came(member, ClientClose)
            assert member.of(ClientClose)[0].query == member.of(ClientExecute)[0].query
            assert await (await connection.cursor().execute("numbers")).fetchall() == EVERY

    with member_with(holds) as member:
        run(work(member))


def test_a_cursor_can_be_used_at_once_after_its_task_was_cancelled() -> None:
    """The call that nobody waits for any more stops its own query, not the next one."""

    async def work(member: ScriptedMember) -> None:
        async with skerry.aio.connect(member.url) as connection:
            cursor = connection.cursor()
            for number in range(1, 6):
                task = asyncio.ensure_future(cursor.execute("slow"))
                await came(member, ClientExecute, 2 * number - 1)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
                assert await (await cursor.execute("numbers")).fetchall() == EVERY

    with member_with(answers()) as member:
        run(work(member))


def test_cancel_from_another_task() -> None:
    async def work(member: ScriptedMember) -> None:
        async with skerry.aio.connect(member.url) as connection:
            cursor = connection.cursor()
            task = asyncio.ensure_future(cursor.execute("slow"))
            await came(member, ClientExecute)
            await cursor.cancel()
            with pytest.raises(skerry.OperationalError, match="was cancelled"):
                await task

    with member_with(answers()) as member:
        run(work(member))


def test_a_cancelled_connect_leaves_no_connection() -> None:
    async def work(member: ScriptedMember) -> None:
        task = asyncio.ensure_future(skerry.aio.connect(member.url, timeout_s=0.5)._open())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with member_with(lambda peer, message: None) as member:
        run(work(member))

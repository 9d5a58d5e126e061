"""skerry.aio with members that are real: rows, two queries at once, cancels, errors, ends of blocks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pyarrow as pa
import pytest

import skerry
import skerry.aio
from skerry.model.errors import Cancelled
from skerry.testing.cluster import LocalCluster
from tests.integration.member.member_sites import DEADLINE_S, FEW, TICKS, large_query, nothing_left, slow_query

pytestmark = pytest.mark.sail


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(work, 2 * DEADLINE_S))


def url_of(cluster: LocalCluster, member: str = "oslo") -> str:
    return f"skerry://{cluster.config.member(member).address}"


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(DEADLINE_S):
        while not condition():
            await asyncio.sleep(0.01)


def runs_at(cluster: LocalCluster, site: str) -> bool:
    engine = cluster.members[site].engine
    return engine is not None and any(each.startswith("job ") for each in engine.leftovers())


def test_rows_one_by_one_as_batches_and_as_a_table(cluster: LocalCluster) -> None:
    async def work() -> None:
        async with skerry.aio.connect(url_of(cluster)) as connection, connection.cursor() as cursor:
            await cursor.execute("SELECT id FROM ticks WHERE id >= ?", [0])
            assert sorted([row async for row in cursor]) == [(n,) for n in range(3 * TICKS)]
            assert cursor.rowcount == 3 * TICKS
            await cursor.execute("SELECT id, note FROM oslo.ticks")
            batches = [batch async for batch in cursor.record_batches()]
            assert sum(batch.num_rows for batch in batches) == TICKS
            await cursor.execute("SELECT id, note FROM oslo.ticks")
            table = await cursor.fetch_arrow_table()
            assert table.sort_by("id").equals(pa.Table.from_batches(batches).sort_by("id"))
            assert (await connection.status(cursor.query_id)).state == "done"
            statement = await connection.prepare("SELECT name FROM bergen.few WHERE id = :id")
            assert [(each.name, each.type) for each in statement.parameters] == [("id", "bigint")]
            assert await (await statement.execute({"id": 7})).fetchall() == [("bergen 7",)]
            with pytest.raises(skerry.ProgrammingError, match="bigint is expected"):
                await statement.execute({"id": "abc"})
        assert connection.closed

    run(work())


def test_two_queries_at_once_on_one_connection(cluster: LocalCluster) -> None:
    async def count(connection: skerry.aio.Connection, site: str) -> list[tuple[Any, ...]]:
        async with connection.cursor() as cursor:
            await cursor.execute(f"SELECT id, name FROM {site}.few")
            return [row async for row in cursor]

    async def work() -> None:
        async with await skerry.aio.connect(url_of(cluster)) as connection, connection.cursor() as slow:
            waits = asyncio.create_task(slow.execute(slow_query("tromso")))
            await until(lambda: slow.query_id is not None)
            # The slow one holds nobody up: these begin and end while it runs.
            oslo, bergen = await asyncio.gather(count(connection, "oslo"), count(connection, "bergen"))
            assert sorted(oslo) == [(n, f"oslo {n}") for n in range(FEW)]
            assert sorted(bergen) == [(n, f"bergen {n}") for n in range(FEW)]
            assert not waits.done()
            await slow.cancel()
            with pytest.raises(skerry.OperationalError) as caught:
                await waits
            assert caught.value.code == Cancelled.code

    run(work())


def test_a_cancelled_task_cancels_its_query_and_leaves_the_connection_usable(cluster: LocalCluster) -> None:
    async def work() -> None:
        async with skerry.aio.connect(url_of(cluster, "bergen")) as connection, connection.cursor() as cursor:
            waits = asyncio.create_task(cursor.execute(slow_query("oslo")))
            await until(lambda: runs_at(cluster, "oslo"))
            query = cursor.query_id
            waits.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waits
            await asyncio.to_thread(nothing_left, cluster)
            assert (await connection.status(query)).state == "cancelled"
            async with connection.cursor() as other:
                assert await (await other.execute("SELECT count(*) FROM oslo.few")).fetchall() == [(FEW,)]

    run(work())


def test_what_is_left_in_the_middle_of_its_rows_ends_everywhere(cluster: LocalCluster) -> None:
    async def leave(cursor: skerry.aio.Cursor) -> None:
        async with cursor:
            await cursor.execute(large_query("bergen"))
            async for _row in cursor:
                raise LookupError("enough")

    async def work() -> None:
        async with skerry.aio.connect(url_of(cluster)) as connection:
            cursor = connection.cursor()
            with pytest.raises(LookupError, match="enough"):
                await leave(cursor)
            await asyncio.to_thread(nothing_left, cluster)
            with pytest.raises(skerry.InterfaceError):
                await cursor.fetchone()
        # The end of the connection's block is the end of its queries too.
        async with skerry.aio.connect(url_of(cluster)) as connection:
            left = connection.cursor()
            await left.execute(large_query("bergen"))
            assert await left.fetchone() is not None
        await asyncio.to_thread(nothing_left, cluster)

    run(work())


def test_errors_are_pep_249_s_and_carry_their_code(cluster: LocalCluster) -> None:
    async def work() -> None:
        async with skerry.aio.connect(url_of(cluster)) as connection, connection.cursor() as cursor:
            with pytest.raises(skerry.ProgrammingError, match="unknown table nowhere"):
                await cursor.execute("SELECT * FROM nowhere")
            with pytest.raises(skerry.ProgrammingError, match="column id is a bigint"):
                await cursor.execute("SELECT * FROM few WHERE id = ?", ["abc"])
            with pytest.raises(skerry.NotSupportedError):
                await connection.rollback()
            assert await (await cursor.execute("SELECT 1 AS one")).fetchall() == [(1,)]
        with pytest.raises(skerry.OperationalError):
            await skerry.aio.connect("skerry://127.0.0.1:1", timeout_s=5)

    run(work())

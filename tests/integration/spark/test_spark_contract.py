"""What a member may rely on, whichever Spark it has: rows out, rows in, names, parameters, errors."""

from __future__ import annotations

import asyncio
import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from skerry.exchange.intake import Intake
from skerry.member.stores import DirectStore
from skerry.model.errors import SiteError, SkerryError, SqlError
from skerry.model.table import Column
from skerry.spark.engine import Engine, Job
from skerry.spark.recycled import RecycledSail
from skerry.wire.codec import decode_schema
from tests.integration.spark.harness import Site, entries, files, fill, until

NUMBERS = (Column("n", "bigint"), Column("s", "string"))


def numbers(count: int, start: int = 0) -> pa.Table:
    values = range(start, start + count)
    return pa.table({"n": pa.array(values, pa.int64()), "s": pa.array([f"row {n}" for n in values])})


def test_rows_leave_through_the_sink_and_are_proven(engine: Engine) -> None:
    async def run() -> None:
        async with Site(engine) as site:
            out = await site.collect("SELECT id AS n, id % 7 AS m FROM range(0, 100000, 1, 3)")
            assert out.schema.columns == (Column("n", "bigint"), Column("m", "bigint"))
            assert sorted(out.table.column("n").to_pylist()) == list(range(100000))
            assert sum(row.rows for row in out.result.sink_rows) == 100000
            assert len({row.attempt for row in out.result.sink_rows}) == len(out.winners)

    asyncio.run(run())


@pytest.mark.parametrize("count", [0, 10, 100_000])
def test_more_rows_than_were_expected_are_all_there(engine: Engine, count: int) -> None:
    async def run() -> None:
        async with Site(engine) as site:
            out = await site.collect(f"SELECT id AS n FROM range(0, {count}, 1, 3)", gives_few=True)
            assert sorted(out.table.column("n").to_pylist()) == list(range(count))
            is_few = isinstance(engine, RecycledSail) and count < 4096
            assert (out.result.table is not None) == is_few

    asyncio.run(run())


def test_a_small_result_returns_through_the_driver(engine: Engine) -> None:
    async def run() -> None:
        async with Site(engine) as site:
            schema, table = await site.drive("SELECT count(*) AS c, max(id) AS m FROM range(1000)")
            assert schema.columns == (Column("c", "bigint"), Column("m", "bigint"))
            assert table.schema == decode_schema(schema.arrow)
            assert table.to_pylist() == [{"c": 1000, "m": 999}]

    asyncio.run(run())


def test_an_edge_is_a_relation_like_any_other(engine: Engine) -> None:
    async def run() -> None:
        async with Site(engine) as site:
            query = site.query()
            left = site.edge(
                query, 1, NUMBERS, fill(site.spool(), numbers(5000)), fill(site.spool(), numbers(10, 5000))
            )
            right = site.edge(query, 2, NUMBERS, fill(site.spool(), numbers(3, 4)), shares=3)
            sql = "SELECT l.n, r.s FROM e_left AS l JOIN e_right AS r ON l.n = r.n WHERE l.n <> 5"
            out = await site.collect(sql, edges={"e_left": left, "e_right": right}, query=query)
            assert sorted(out.table.column("s").to_pylist()) == ["row 4", "row 6"]
            total = await site.collect("SELECT count(*) AS c, sum(n) AS t FROM e", edges={"e": left}, query=query)
            assert total.rows == [{"c": 5010, "t": sum(range(5010))}]

    asyncio.run(run())


def test_an_edge_can_be_read_while_it_is_still_being_fed(engine: Engine) -> None:
    async def run() -> None:
        async with Site(engine) as site:
            query = site.query()
            feed = site.spool()
            edge = site.edge(query, 1, NUMBERS, feed)
            parts = list(entries(numbers(3000), 500))
            feed.append(parts[0])
            out = site.spool()
            intake = Intake(1, engine.retries_tasks)
            sink = site.sink(query, intake, DirectStore(out, waits=False))
            job = Job("pipelined", "SELECT n FROM e WHERE n >= 0", {}, {"e": edge}, {}, sink)
            running = asyncio.create_task(site.run(job))
            await until(lambda: site.port.connections(query) >= 2)
            for part in parts[1:]:
                feed.append(part)
            await asyncio.sleep(0)
            assert not running.done()  # nobody said that this was all
            feed.finish()
            result = await running
            intake.settle(result.sink_rows)
            assert intake.rows == 3000

    asyncio.run(run())


def test_order_by_may_read_an_edge_twice(engine: Engine) -> None:
    async def run() -> None:
        async with Site(engine) as site:
            query = site.query()
            edge = site.edge(query, 1, NUMBERS, fill(site.spool(), numbers(2000), 100))
            lanes = site.lanes()
            intake = Intake(1, engine.retries_tasks)
            sink = site.sink(query, intake, lanes)
            schemas: list[Any] = []
            job = Job("sorted", "SELECT n FROM e ORDER BY n DESC", {}, {"e": edge}, {}, sink, order="lanes")
            result = await site.run(job, schemas.append)
            schema = decode_schema(schemas[0].arrow)
            found = []
            for attempt in intake.settle(result.sink_rows):
                spool = lanes.lanes[attempt]
                assert spool.finished
                for index in range(spool.length):
                    found += (
                        pa.ipc.read_record_batch(pa.py_buffer(spool.read(index).body), schema).column(0).to_pylist()
                    )
            assert found == list(range(1999, -1, -1))
            lanes.close()

    asyncio.run(run())


def test_batches_are_bounded_in_bytes_or_by_the_number_of_short_rows(engine: Engine) -> None:
    async def run() -> None:
        async with Site(engine) as site:
            wide = await site.collect("SELECT id, repeat('x', 100000) AS s FROM range(0, 300, 1, 1)")
            assert len(wide.rows) == 300
            bound = 2 * 4 * site.limits.batch_bytes  # Spark looks after each row, and counts offsets differently
            assert max(wide.spool.read(index).decoded_bytes for index in range(wide.spool.length)) <= bound
            narrow = await site.collect("SELECT id FROM range(0, 5000, 1, 1)", is_narrow=True)
            assert len(narrow.rows) == 5000
            if engine.source_slots is not None:  # others cut all jobs alike
                rows = {narrow.spool.read(index).rows for index in range(narrow.spool.length)}
                assert max(rows) == site.limits.narrow_batch_rows

    asyncio.run(run())


def test_batches_of_one_row(engine: Engine) -> None:
    async def run() -> None:
        async with Site(engine) as site:
            query = site.query()
            edge = site.edge(query, 1, NUMBERS, fill(site.spool(), numbers(50), 1), shares=3)
            out = await site.collect("SELECT n, s FROM e", edges={"e": edge}, query=query)
            assert sorted(out.rows, key=lambda row: row["n"]) == numbers(50).to_pylist()

    asyncio.run(run())


def test_nothing_is_a_result_too(engine: Engine) -> None:
    async def run() -> None:
        async with Site(engine) as site:
            query = site.query()
            empty = site.edge(query, 1, NUMBERS, fill(site.spool(), numbers(0)))
            out = await site.collect("SELECT n, s FROM e", edges={"e": empty}, query=query)
            assert (out.schema.columns, out.spool.length) == (NUMBERS, 0)
            out = await site.collect("SELECT id FROM range(10) WHERE id > 20")
            assert out.rows == []
            schema, table = await site.drive("SELECT id, 'x' AS x FROM range(10) WHERE id > 20")
            assert (len(schema.columns), table.num_rows, table.num_columns) == (2, 0, 2)

    asyncio.run(run())


def test_column_names_are_spark_s_even_odd_ones(engine: Engine) -> None:
    async def run() -> None:
        async with Site(engine) as site:
            sql = (
                "SELECT a.x, b.x, 1 AS `a.b`, 2 AS `c``d`, 3 AS `` FROM (SELECT 7 AS x) a CROSS JOIN (SELECT 8 AS x) b"
            )
            sql = sql.replace(", 3 AS ``", ", 3 AS ` `")
            out = await site.collect(sql)
            assert [column.name for column in out.schema.columns] == ["x", "x", "a.b", "c`d", " "]
            assert [column.to_pylist() for column in out.table.columns] == [[7], [8], [1], [2], [3]]
            _, table = await site.drive(sql)
            assert table.column_names == ["x", "x", "a.b", "c`d", " "]
            # and back in, as an edge whose columns have such names
            query = site.query()
            columns = (Column("a.b", "int"), Column("c`d", "string"))
            rows = pa.table({"a.b": pa.array([1], pa.int32()), "c`d": ["z"]})
            edge = site.edge(query, 1, columns, fill(site.spool(), rows))
            back = await site.collect("SELECT `c``d`, `a.b` FROM e", edges={"e": edge}, query=query)
            assert back.rows == [{"c`d": "z", "a.b": 1}]

    asyncio.run(run())


PARAMETERS: list[tuple[Any, str]] = [
    (5, "int"),
    (2**40, "bigint"),
    (1.5, "double"),
    (True, "boolean"),
    ("it's", "string"),
    (b"\x00\xff", "binary"),
    (Decimal("-12.30"), "decimal(4,2)"),
    (dt.date(2024, 2, 29), "date"),
    (dt.datetime(2024, 2, 29, 1, 2, 3, 456789, tzinfo=dt.UTC), "timestamp"),
    (dt.datetime(2024, 2, 29, 1, 2, 3, 456789), "timestamp_ntz"),
    (None, "void"),
    ([1, 2], "array<int>"),
    ([1, 2**40], "array<bigint>"),
    (["a", "b"], "array<string>"),
    ([1, None], "array<int>"),
    ([None, 2**40], "array<bigint>"),
    (["a", None], "array<string>"),
    ([True, None], "array<boolean>"),
    ([1.5, None], "array<double>"),
    ([b"x", None], "array<binary>"),
    ([Decimal("1.50"), None], "array<decimal(3,2)>"),
    ([dt.date(2024, 2, 29), None], "array<date>"),
    ([dt.datetime(2024, 2, 29, 1, 2), None], "array<timestamp_ntz>"),
    ([dt.datetime(2024, 2, 29, 1, 2, tzinfo=dt.UTC), None], "array<timestamp>"),
    ([[1, None], [None]], "array<array<int>>"),
]


def test_parameters_keep_their_types(engine: Engine) -> None:
    async def run() -> None:
        async with Site(engine) as site:
            values = {f"p{number}": value for number, (value, _) in enumerate(PARAMETERS)}
            sql = "SELECT " + ", ".join(f":{name} AS {name}" for name in values)
            schema, table = await site.drive(sql, parameters=values)
            assert [column.type for column in schema.columns] == [text for _, text in PARAMETERS]
            assert table.to_pylist() == [values]
            out = await site.collect(
                "SELECT id FROM range(100) WHERE id < :top LIMIT :k", parameters={"top": 9, "k": 3}
            )
            assert len(out.rows) == 3

    asyncio.run(run())


ERRORS = [
    ("SELECT nope FROM range(3)", "nope"),
    ("SELECT 1 +", None),
    ("SELECT 1 / (id - 1) AS q FROM range(3)", "(?i)zero"),
    ("SELECT CAST(concat('x', id) AS INT) AS i FROM range(3)", "(?i)cast"),
    ("SELECT id + 9223372036854775807L AS o FROM range(3)", "(?i)overflow"),
    ("SELECT (SELECT id FROM range(2)) AS s", "(?i)scalar|subquery|more than one row"),
]


@pytest.mark.parametrize(("sql", "says"), ERRORS)
def test_a_wrong_statement_is_the_statement_s_fault(
    engine: Engine, request: pytest.FixtureRequest, sql: str, says: str | None
) -> None:
    if "overflow" in (says or "") and "sail" in request.node.callspec.id:
        request.applymarker(pytest.mark.xfail(reason="Sail lets integers wrap around, in ANSI mode too", strict=True))

    async def run() -> None:
        async with Site(engine) as site:
            with pytest.raises(SqlError, match=says) as caught:
                await site.collect(sql)
            message = caught.value.message
            assert "\n" not in message
            assert not any(mark in message for mark in ("at org.", "java.", "Traceback", "JVM", "spark.sql.ansi"))

    asyncio.run(run())


def test_messages_name_tables_as_the_user_does(engine: Engine, tmp_path: Path) -> None:
    async def run() -> None:
        path = tmp_path / "orders.parquet"
        pq.write_table(pa.table({"id": [1]}), path)
        async with Site(engine) as site:
            tables = {"leaf_orders": files(tmp_path, "orders", path)}
            with pytest.raises(SqlError) as caught:
                await site.collect("SELECT leaf_orders.nope FROM leaf_orders", tables=tables)
            assert "skerry_" not in caught.value.message
            assert "leaf_orders" not in caught.value.message

    asyncio.run(run())


def test_a_source_that_ends_early_is_an_error_never_an_end(engine: Engine) -> None:
    async def run() -> None:
        async with Site(engine) as site:
            query = site.query()
            feed = site.spool()
            for entry in entries(numbers(1000), 100):
                feed.append(entry)
            edge = site.edge(query, 1, NUMBERS, feed)
            running = asyncio.create_task(site.collect("SELECT sum(n) AS t FROM e", edges={"e": edge}, query=query))
            await until(lambda: site.port.connections(query) >= 2)
            feed.fail(SiteError("bergen went away"))
            with pytest.raises(SkerryError, match="bergen went away"):
                await running

    asyncio.run(run())


def test_a_task_with_a_wrong_token_is_refused(engine: Engine) -> None:
    async def run() -> None:
        async with Site(engine) as site:
            query = site.query()
            edge = site.edge(query, 1, NUMBERS, fill(site.spool(), numbers(10)))
            site.port.register_edge(query, 1, "another token", [])
            with pytest.raises(SkerryError, match=r"edge 1 of query .* is not open to this task"):
                await site.collect("SELECT n FROM e", edges={"e": edge}, query=query)

    asyncio.run(run())


def test_a_limit_stops_reading_an_edge_that_never_ends(engine: Engine) -> None:
    async def run() -> None:
        async with Site(engine) as site:
            query = site.query()
            feed = site.spool()
            # Spark's Python workers hold back the first 64 KiB they write, so there is more than that.
            for entry in entries(numbers(50000), 10000):
                feed.append(entry)
            edge = site.edge(query, 1, NUMBERS, feed, shares=1)
            driving = asyncio.create_task(site.drive("SELECT n FROM e LIMIT 5", edges={"e": edge}))
            # Sail reads in a thread that may have the rows it read before to hand on: there, rows go on coming.
            while isinstance(engine, RecycledSail) and not driving.done():
                feed.append(*entries(numbers(1)))
                await asyncio.wait({driving}, timeout=0.1)
            _, table = await driving
            assert table.num_rows == 5
            # A worker that waits for its edge does not see that Spark has enough: the member tells it.
            site.port.close_edge(query, edge.edge)
            await until(lambda: site.port.connections(query) == 0)

    asyncio.run(run())

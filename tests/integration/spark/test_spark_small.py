"""Small jobs of Apache Spark: one task each, and statements that are kept planned but never answered from memory."""

from __future__ import annotations

import itertools
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from py4j.clientserver import ClientServerConnection
from py4j.protocol import MEMORY_COMMAND_NAME

from metamorphic.reading import parse_fragment
from skerry.access.sight import view_of
from skerry.model.errors import Cancelled, SqlError
from skerry.model.limits import KEPT_STATEMENTS
from skerry.model.rights import Seen, Sight
from skerry.model.table import Column
from skerry.spark.engine import Job, TableFiles
from skerry.spark.session import ClassicEngine
from skerry.spark.small import Statements
from skerry.sql.functions import is_deterministic
from tests.integration.spark.harness import files

pytestmark = pytest.mark.spark

COLUMNS = (Column("k", "bigint"), Column("v", "string"))
_tags = itertools.count(1)


@pytest.fixture
def table(tmp_path: Path) -> TableFiles:
    """Two files, so that a scan could have two tasks."""
    for number in (0, 1):
        keys = [4 * number + each for each in range(4)]
        pq.write_table(pa.table({"k": keys, "v": [f"v{key % 3}" for key in keys]}), tmp_path / f"{number}.parquet")
    return files(tmp_path, f"small_{tmp_path.name}", *sorted(tmp_path.iterdir()), columns=COLUMNS)


def ask(engine: ClassicEngine, sql: str, table: TableFiles, parameters: dict[str, Any] | None = None) -> list[Any]:
    tree = parse_fragment(sql)
    assert tree is not None
    more = {"is_small": True, "is_repeatable": is_deterministic(tree)}
    job = Job(f"small-{next(_tags)}", sql, {"leaf": table}, {}, parameters or {}, None, **more)
    result = engine.run(job, lambda schema: None).table
    assert result is not None
    return [tuple(row.values()) for row in result.to_pylist()]


def kept(engine: ClassicEngine) -> int:
    assert engine._small is not None
    return len(engine._small.statements)


def test_a_statement_is_planned_once_and_reads_its_files_each_time(
    spark_engine: ClassicEngine, table: TableFiles, tmp_path: Path
) -> None:
    grouped = "SELECT v, count(*) AS n, sum(k) AS s FROM leaf GROUP BY v ORDER BY v"
    joined = "SELECT a.k FROM leaf AS a JOIN leaf AS b ON a.k = b.k + 4 ORDER BY a.k DESC LIMIT 2"
    before = kept(spark_engine)
    for _ in range(3):
        assert ask(spark_engine, grouped, table) == [("v0", 3, 9), ("v1", 3, 12), ("v2", 2, 7)]
        assert ask(spark_engine, joined, table) == [(7,), (6,)]
        for key in (3, "3", 3.0):  # equal in Python, not in Spark
            found = ask(spark_engine, "SELECT typeof(:p), v FROM leaf WHERE k = :p", table, {"p": key})
            assert found == [({int: "int", str: "string", float: "double"}[type(key)], "v0")]
    assert kept(spark_engine) == before + 5

    # The same files, written again: a plan that is kept must read them.
    pq.write_table(pa.table({"k": [4, 5, 6, 7], "v": ["w", "w", "w", "w"]}), tmp_path / "1.parquet")
    assert ask(spark_engine, grouped, table) == [("v0", 2, 3), ("v1", 1, 1), ("v2", 1, 2), ("w", 4, 22)]
    # Another listing, and what somebody else may see.
    first = msgspec.structs.replace(table, files=table.files[:1], version=2)
    assert ask(spark_engine, grouped, first) == [("v0", 2, 3), ("v1", 1, 1), ("v2", 1, 2)]
    for user, rows in (("v0", [("v0", 2, 3)]), ("v1", [("v1", 1, 1)])) * 3:
        seen = view_of(Seen((Sight(where="v = session_user()"),)), COLUMNS, user)
        assert ask(spark_engine, grouped, msgspec.structs.replace(first, seen=seen)) == rows


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT rand() FROM leaf",
        "SELECT uuid() FROM leaf LIMIT 1",
        "SELECT hex(aes_encrypt('a', '1234567890abcdef')) FROM leaf LIMIT 1",
        "SELECT CAST(concat('no', :w) AS TIMESTAMP) FROM leaf LIMIT 1",
        "SELECT max(t) FROM (SELECT TIMESTAMP_MICROS(k) AS t FROM leaf UNION SELECT to_timestamp(:now)) AS u",
    ],
)
def test_what_differs_each_time_is_planned_each_time(spark_engine: ClassicEngine, table: TableFiles, sql: str) -> None:
    before = kept(spark_engine)
    found = [ask(spark_engine, sql, table, {"w": "w", "now": "now"})[0] for _ in range(3)]
    assert len(set(found)) == 3
    assert kept(spark_engine) == before


def test_plans_that_hold_rows_are_not_kept(spark_engine: ClassicEngine, table: TableFiles, tmp_path: Path) -> None:
    before = kept(spark_engine)
    texts = ("SELECT (SELECT max(k) FROM leaf) AS m", "SELECT max(k) FROM leaf WHERE k NOT IN (SELECT -k FROM leaf)")
    for number in range(3):
        pq.write_table(pa.table({"k": [10 + number], "v": ["v"]}), tmp_path / "1.parquet")
        assert [ask(spark_engine, text, table) for text in texts] == [[(10 + number,)]] * 2
    assert kept(spark_engine) == before


def test_a_statement_that_is_kept_costs_few_calls_of_the_jvm(
    spark_engine: ClassicEngine, table: TableFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    sql = "SELECT v, count(*) AS n FROM leaf WHERE k > 2 GROUP BY v"
    for _ in range(3):
        ask(spark_engine, sql, table)
    calls: list[str] = []
    send = ClientServerConnection.send_command

    def count(self: Any, command: str, *more: Any) -> Any:
        if not command.startswith(MEMORY_COMMAND_NAME):  # an object of some test before was let go of
            calls.append(command)
        return send(self, command, *more)

    monkeypatch.setattr(ClientServerConnection, "send_command", count)
    ask(spark_engine, sql, table)
    # Two for its tag, two for the job, four for its rows: how large, how many, and the first of them after a look.
    assert len(calls) <= 8, calls


def test_a_few_rows_may_be_large(spark_engine: ClassicEngine, table: TableFiles) -> None:
    for _ in range(3):
        found = ask(spark_engine, "SELECT repeat(v, 1000000) AS r FROM leaf", table)
        assert sorted({len(row[0]) for row in found}) == [2_000_000]


def test_a_cancel_ends_one_that_runs(spark_engine: ClassicEngine) -> None:
    long = Job("small-long", "SELECT count(id * id % 7) FROM range(1000000000000)", {}, {}, {}, None, is_small=True)
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(spark_engine.run, long, lambda schema: None)
        while not spark_engine.job_ids(long.tag):
            assert not running.done()
            time.sleep(0.01)
        spark_engine.cancel(long.tag)
        with pytest.raises(Cancelled):
            running.result(60)


def test_an_error_is_told_each_time(spark_engine: ClassicEngine, table: TableFiles) -> None:
    for _ in range(4):
        with pytest.raises(SqlError, match=r"\[DIVIDE_BY_ZERO\] Division by zero"):
            ask(spark_engine, "SELECT 1 / (k - k) FROM leaf", table)
    assert ask(spark_engine, "SELECT count(*) FROM leaf", table) == [(8,)]


def test_statements_are_bounded() -> None:
    statements: Any = Statements()
    assert not statements.is_asked_again(("a", ""))
    assert statements.is_asked_again(("a", ""))
    for number in range(KEPT_STATEMENTS + 1):
        statements.find(("0", ""))
        statements.keep((str(number), ""), number)
    assert len(statements) == KEPT_STATEMENTS
    assert statements.find(("0", "")) == 0
    assert statements.find(("1", "")) is None

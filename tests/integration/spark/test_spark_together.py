"""Small jobs of Apache Spark that are kept planned, run as one job of Spark: the same tables, errors and cancels."""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from skerry.access.sight import view_of
from skerry.model.errors import Cancelled, SkerryError
from skerry.model.results import Schema
from skerry.model.rights import Seen, Sight
from skerry.model.table import Column
from skerry.spark.engine import Job, TableFiles
from skerry.spark.session import ClassicEngine
from tests.integration.spark.harness import files

pytestmark = pytest.mark.spark

COLUMNS = (
    Column("k", "bigint"),
    Column("d e.f`g", "decimal(38,10)"),
    Column("n", "struct<a:int,b:array<string>>"),
    Column("m", "map<string,double>"),
    Column("K2", "binary"),
)
ROWS = pa.table(
    {
        "k": pa.array([1, None, 3, 4, 5], pa.int64()),
        "d e.f`g": pa.array(
            [None, Decimal("12345678901234567890123456.7890123456"), 0, -1, None], pa.decimal128(38, 10)
        ),
        "n": pa.array(
            [{"a": 1, "b": ["x", None]}, None, {"a": None, "b": None}, {"a": 2, "b": []}, None],
            pa.struct([("a", pa.int32()), ("b", pa.list_(pa.string()))]),
        ),
        "m": pa.array([[("a", 1.5)], None, [], [("b", None)], None], pa.map_(pa.string(), pa.float64())),
        "K2": pa.array([b"", None, b"\x00\xff", b"x", None], pa.binary()),
    }
)
TEXTS = [
    "SELECT * FROM leaf",
    "SELECT NULL AS k, k AS k, `d e.f``g` AS `a``b.c` FROM leaf WHERE k = :p",
    "SELECT n, m, K2 FROM leaf WHERE k > 100",
    "SELECT CAST(NULL AS STRUCT<r: INT>) AS s, struct(NULL AS a) AS t FROM leaf LIMIT 2",
    "SELECT k FROM leaf WHERE k < 4 UNION ALL SELECT -k FROM leaf WHERE k > 3",
    "SELECT typeof(:p) AS kind, count(*) AS n FROM leaf",
]
_numbers = itertools.count(1)


@pytest.fixture
def table(tmp_path: Path) -> TableFiles:
    (tmp_path / "t").mkdir()
    for number in (0, 1):
        pq.write_table(ROWS.slice(3 * number, 3), tmp_path / "t" / f"{number}.parquet")
    folder = tmp_path / "t"
    return files(folder, f"shared_{tmp_path.name}", *sorted(folder.iterdir()), columns=COLUMNS)


def job(sql: str, table: TableFiles, parameters: dict[str, Any] | None = None) -> Job:
    tag = f"together-{next(_numbers)}"
    return Job(tag, sql, {"leaf": table}, {}, parameters or {}, None, is_small=True, is_repeatable=True)


def again(jobs: Sequence[Job]) -> list[Job]:
    return [msgspec.structs.replace(each, tag=f"together-{next(_numbers)}") for each in jobs]


def by_itself(engine: ClassicEngine, job: Job) -> pa.Table:
    told: list[Schema] = []
    rows = engine.run(job, told.append).table
    assert rows is not None
    assert len(told) == 1
    return rows


def kept(engine: ClassicEngine, jobs: Sequence[Job]) -> list[pa.Table]:
    """What each gives by itself, run so often that it is kept."""
    assert not any(map(engine.keeps, jobs))
    tables = [[by_itself(engine, each) for each in again(jobs)] for _ in range(2)]
    assert all(map(engine.keeps, jobs))
    return tables[-1]


def together(engine: ClassicEngine, jobs: Sequence[Job]) -> tuple[list[pa.Table | None], list[list[Schema]]]:
    told: list[list[Schema]] = [[] for _ in jobs]
    results = engine.run_together(jobs, [each.append for each in told])
    return [None if result is None else result.table for result in results], told


def test_each_has_the_table_that_it_has_by_itself(spark_engine: ClassicEngine, table: TableFiles) -> None:
    jobs = [*(job(sql, table, {"p": 3}) for sql in TEXTS), job(TEXTS[-1], table, {"p": "3"})]
    alone = kept(spark_engine, jobs)
    assert alone[2].num_rows == 0
    assert [rows.num_rows for rows in alone[3:5]] == [2, 4]
    found, told = together(spark_engine, jobs)
    for rows, known, schemas in zip(found, alone, told, strict=True):
        assert rows is not None
        assert rows.schema == known.schema
        assert rows.to_pylist() == known.to_pylist()
        assert len(schemas) == 1
    assert {spark_engine.job_ids(each.tag) for each in jobs} == {spark_engine.job_ids(jobs[0].tag)}
    assert len(spark_engine.job_ids(jobs[0].tag)) == 1
    assert not [tag for tag in spark_engine.leftovers() if "together" in tag]


def test_files_are_read_again_and_users_see_their_own(spark_engine: ClassicEngine, table: TableFiles) -> None:
    seen = [view_of(Seen((Sight(where=f"k > length(session_user()) - {n}"),)), COLUMNS, "ann") for n in (0, 1, 9)]
    jobs = [job("SELECT k FROM leaf", msgspec.structs.replace(table, seen=each)) for each in (None, *seen)]
    kept(spark_engine, jobs)

    def keys() -> list[list[int | None]]:
        found, _ = together(spark_engine, again(jobs))
        return [rows.column(0).to_pylist() for rows in found if rows is not None]

    assert keys() == [[1, None, 3, 4, 5], [4, 5], [3, 4, 5], [1, 3, 4, 5]]
    pq.write_table(ROWS.slice(0, 1), table.files[1])
    assert keys() == [[1, None, 3, 1], [], [3], [1, 3, 1]]


def test_rows_that_are_too_large_for_a_call_go_by_themselves(spark_engine: ClassicEngine, table: TableFiles) -> None:
    jobs = [job("SELECT repeat('x', 1000000 * k) AS r FROM leaf", table), job("SELECT k FROM leaf", table)]
    kept(spark_engine, jobs)
    (large, small), _ = together(spark_engine, jobs)
    assert large is None
    assert small is not None
    assert small.num_rows == 5


def test_one_that_fails_lets_each_say_what_is_wrong(
    spark_engine: ClassicEngine, table: TableFiles, tmp_path: Path
) -> None:
    (tmp_path / "broken").mkdir()
    pq.write_table(ROWS, tmp_path / "broken" / "0.parquet")
    broken = files(tmp_path / "broken", f"broken_{tmp_path.name}", tmp_path / "broken" / "0.parquet", columns=COLUMNS)
    jobs = [job("SELECT k FROM leaf", table), job("SELECT k FROM leaf", broken), job("SELECT K2 FROM leaf", table)]
    kept(spark_engine, jobs)
    (tmp_path / "broken" / "0.parquet").write_bytes(b"no file of this kind")
    jobs = again(jobs)
    assert together(spark_engine, jobs)[0] == [None, None, None]
    with pytest.raises(SkerryError, match=r"broken/0\.parquet"):
        by_itself(spark_engine, jobs[1])
    assert [by_itself(spark_engine, each).num_rows for each in (jobs[0], jobs[2])] == [5, 5]


def test_a_cancel_of_one_ends_all(spark_engine: ClassicEngine, table: TableFiles) -> None:
    # Quick, until its file has another row.
    few = "SELECT k, explode(sequence(1, k)) AS a FROM leaf"
    long = f"SELECT count(b % 7) AS n FROM (SELECT explode(sequence(a - a + 1, k)) AS b FROM ({few}))"
    jobs = [job("SELECT k FROM leaf", table), job(long, table)]
    kept(spark_engine, jobs)
    slow = ROWS.slice(0, 1).set_column(0, "k", pa.array([1_000_000], pa.int64()))
    pq.write_table(slow, table.files[0])
    jobs = again(jobs)
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(together, spark_engine, jobs)
        while not spark_engine.job_ids(jobs[0].tag):
            assert not running.done()
            time.sleep(0.01)
        spark_engine.cancel(jobs[0].tag)
        assert running.result(60)[0] == [None, None]
    with pytest.raises(Cancelled):
        by_itself(spark_engine, jobs[0])
    assert spark_engine.run_together(jobs, [lambda schema: None] * 2) == [None, None]

"""Least and greatest keys that go ahead of rows change no answer: many keys, few that meet, NULLs, no key at all."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from skerry.spark.engine import Engine
from skerry.testing.checkers import same_table
from skerry.testing.cluster import LocalCluster
from skerry.testing.nasty import SITES, SampleTable
from skerry.testing.oracle import SparkOracle
from skerry.testing.sites import write_config
from tests.integration.member.member_sites import stats_of, wait_until

ROWS = 3000
KEYS: dict[str, tuple[pa.DataType, Any]] = {
    "i": (pa.int64(), lambda n: n),
    "d": (pa.date32(), lambda n: date(1990, 1, 1) + timedelta(days=n)),
    "t": (pa.timestamp("us", "UTC"), lambda n: datetime(2024, 1, 1, tzinfo=UTC) + timedelta(minutes=n)),
    "c": (pa.decimal128(12, 2), lambda n: Decimal(n) / 4),
    "s": (pa.string(), lambda n: chr(65 + n // 250) + f"{n % 250:03d}é"),
    "f": (pa.float64(), lambda n: float(n)),
}
PLACES = {"early": "bergen", "late": "tromso"}
STATEMENTS = [
    *(f"SELECT early.n AS a, late.n AS b FROM early JOIN late ON early.{k} = late.{k}" for k in KEYS),
    *(f"SELECT early.n FROM early LEFT SEMI JOIN late ON early.{k} = late.{k}" for k in "ids"),
    "SELECT early.n AS a, late.n AS b FROM early LEFT JOIN late ON early.i = late.i",
    "SELECT early.n AS a, late.n AS b FROM early RIGHT JOIN late ON early.s = late.s",
    "SELECT early.n AS a, late.n AS b FROM early FULL JOIN late ON early.d = late.d",
    "SELECT n FROM early LEFT ANTI JOIN late ON early.i = late.i",
    "SELECT n FROM early WHERE i NOT IN (SELECT i FROM late WHERE i IS NOT NULL)",
    "SELECT n FROM early WHERE EXISTS (SELECT * FROM late WHERE late.t = early.t AND late.n <> early.n)",
    "SELECT early.n AS a, late.n AS b FROM early JOIN late ON early.i = late.i AND early.s = late.s",
    # No row on one side: bounds are NULL.
    "SELECT early.n AS a, late.n AS b FROM early JOIN late ON early.i = late.i WHERE late.note LIKE 'none%'",
    "SELECT early.n AS a, late.n AS b FROM early LEFT JOIN late ON early.i = late.i AND late.note LIKE 'none%'",
    "SELECT count(*), sum(early.i) FROM early JOIN late ON early.c = late.c WHERE late.note LIKE 'none%'",
]


def rows(first: int) -> pa.Table:
    numbers = [None if not n % 17 else n for n in range(first, first + ROWS)]
    columns = {
        name: pa.array([None if n is None else make(n) for n in numbers], kind) for name, (kind, make) in KEYS.items()
    }
    columns["n"] = pa.array(range(first, first + ROWS), pa.int32())
    columns["note"] = pa.array([f"a note that is long enough to be worth it {n}" for n in range(ROWS)])
    return pa.table(columns)


def make_tables(root: Path) -> tuple[SampleTable, ...]:
    found = []
    for place, (name, site) in enumerate(PLACES.items()):
        folder = root / site / name
        folder.mkdir(parents=True)
        pq.write_table(rows(place * (ROWS - 250)), folder / "a.parquet")
        found.append(SampleTable(name, site, str(folder)))
    return tuple(found)


def start(engine: Engine, root: Path, tables: tuple[SampleTable, ...], spark: dict[str, Any]) -> LocalCluster:
    links = [{"between": [one, other], "mbit": 0.01} for one in SITES for other in SITES if one < other]
    cluster = LocalCluster(
        str(write_config(root / "skerry.yaml", root, tables, spark=spark, links=links)), engine=engine
    )
    cluster.start()
    for name in SITES:
        ask(cluster, "SELECT 1 FROM early JOIN late ON early.i = late.i LIMIT 0", name)  # who has no table asks nobody
    for at in cluster.members:
        wait_until(lambda at=at: all(stats_of(cluster, at, site, name) for name, site in PLACES.items()), "statistics")
    return cluster


def ask(cluster: LocalCluster, sql: str, at: str = "oslo", rules: str = "all") -> pa.Table:
    with cluster.connect(at) as connection, connection.cursor() as cursor:
        return cursor.execute(sql, planning={"rules": rules}).fetch_arrow_table()


def has_bounds(cluster: LocalCluster, sql: str, rules: str) -> bool:
    lines = ask(cluster, f"EXPLAIN {sql}", "tromso", rules).column(0).to_pylist()
    return any("is outside of" in line for line in lines)


@pytest.mark.sail
@pytest.mark.timeout(600)  # many statements, each of them several times
def test_on_sail(sail_engine: Engine, tmp_path: Path) -> None:
    cluster = start(sail_engine, tmp_path, make_tables(tmp_path), {"sail": True})
    try:
        fired = 0
        for sql in STATEMENTS:
            plain = ask(cluster, sql, rules="none")
            for rules in ("ranges", "all"):
                same_table(ask(cluster, sql, "tromso", rules), plain, ordered=False)
            fired += has_bounds(cluster, sql, "ranges")
        assert fired >= 12, fired
        by_key = {k: has_bounds(cluster, sql, "ranges") for k, sql in zip(KEYS, STATEMENTS, strict=False)}
        assert by_key == {"i": True, "d": True, "t": True, "c": True, "s": True, "f": False}
    finally:
        cluster.stop()


@pytest.fixture(scope="module")
def spark_cluster(
    spark_engine: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[LocalCluster, SparkOracle]]:
    root = tmp_path_factory.mktemp("ranges")
    tables = make_tables(root)
    oracle = SparkOracle(spark_engine.session)
    for table in tables:
        oracle.add_table(table.name, [table.path], "parquet", "", {})
    cluster = start(spark_engine, root, tables, {"master": "local[*]"})
    yield cluster, oracle
    cluster.stop()


@pytest.mark.spark
@pytest.mark.timeout(600)  # many statements, each of them several times
def test_on_spark(spark_cluster: tuple[LocalCluster, SparkOracle]) -> None:
    cluster, oracle = spark_cluster
    for sql in STATEMENTS:
        expected = oracle.run(sql)
        same_table(ask(cluster, sql, "tromso", "ranges"), expected, ordered=False)
    assert has_bounds(cluster, STATEMENTS[0], "ranges")

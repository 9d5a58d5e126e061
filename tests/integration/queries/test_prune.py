"""Parts that statistics refute are left out: the answer is that of all parts, also when files came a moment ago."""

from __future__ import annotations

import json
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

ROWS = 40
# Who does not answer in this time is taken to have other files, and its part is read.
PATIENT = {"login_s": 60}
_DAY = date(2024, 1, 1)
_MOMENT = datetime(2024, 1, 1, tzinfo=UTC)
# Of each column: the value of row n. Sites have the rows 0 to 39, 40 to 79 and 80 to 119.
VALUES: dict[str, tuple[pa.DataType, Any]] = {
    "id": (pa.int64(), lambda n: n),
    "small": (pa.int8(), lambda n: n % 128),
    "at": (pa.date32(), lambda n: _DAY + timedelta(days=n)),
    "ts": (pa.timestamp("us", "UTC"), lambda n: _MOMENT + timedelta(hours=n, microseconds=n)),
    "cost": (pa.decimal128(15, 2), lambda n: Decimal(n) / 2),
    "word": (pa.string(), lambda n: f"w{n:03d}"),
    "long": (pa.string(), lambda n: "x" * 40 + f"{n:03d}"),
    "load": (pa.float64(), lambda n: float("nan") if n == 5 else -0.0 if n == 45 else float(n)),
    "flag": (pa.bool_(), lambda n: n >= 80),
    "maybe": (pa.int32(), lambda n: None if n < 80 else n),
    "old": (pa.date32(), lambda n: date(1500 + n, 1, 1)),
}
CONDITIONS = """
id < 40
id >= 80
id = 39
id IN (39, 200)
id > 119
id BETWEEN 35 AND 45
id < 10 OR id > 110
id < 39.5
id < 1e1
id < '10'
small > 100
at < DATE '2024-02-10'
at >= '2024-03-21'
at < DATE '2024-01-11' + INTERVAL '1' MONTH
at > DATE '2024-04-29'
ts < TIMESTAMP '2024-01-02 16:00:00'
ts >= '2024-01-04 08:00:00.000080'
ts > DATE '2024-01-05'
cost < 20
cost = 19.5
cost > 59.50
word < 'w040'
word = 'w119'
word > 'x'
long < 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx040'
load > 1000
load < 0e0
load = 0e0
flag = true
flag
maybe IS NULL
maybe IS NOT NULL
maybe = 100
old < DATE '1510-01-01'
id < 40 AND word >= 'w040'
NOT id < 40
""".strip().split("\n")
STATEMENTS = [
    *(f"SELECT * FROM spans WHERE {condition}" for condition in CONDITIONS),
    *(f"SELECT count(*), sum(cost), max(word), min(at) FROM spans WHERE {condition}" for condition in CONDITIONS[:12]),
    "SELECT count(*) FROM spans WHERE id > 500",
    "SELECT word, count(*) AS n FROM spans WHERE id > 500 GROUP BY word",
    "SELECT flag, avg(cost) AS c, collect_set(small) IS NULL AS s FROM spans WHERE id >= 40 GROUP BY flag",
    "SELECT a.id, b.word FROM spans AS a LEFT JOIN spans AS b ON a.id = b.id AND b.id < 40 WHERE a.id < 80",
    "SELECT a.id, b.word FROM spans AS a LEFT JOIN spans AS b ON a.id = b.id AND a.id < 40",
    "SELECT a.id, b.id AS b FROM spans AS a FULL JOIN spans AS b ON a.id = b.id + 100 AND a.id < 40 AND b.id > 90",
    "SELECT id FROM spans WHERE id NOT IN (SELECT id FROM spans WHERE id > 5)",
    "SELECT id FROM spans AS a WHERE id < 45 AND EXISTS (SELECT * FROM spans AS b WHERE b.id = a.id AND b.id > 30)",
    "SELECT id FROM spans WHERE id < 5 UNION ALL SELECT id FROM spans WHERE id > 115",
    "SELECT id FROM spans WHERE id > 70 ORDER BY id DESC LIMIT 3",
    "SELECT id, row_number() OVER (ORDER BY id) AS r FROM spans WHERE id >= 80",
]


def rows(first: int, count: int = ROWS) -> pa.Table:
    numbers = range(first, first + count)
    return pa.table({name: pa.array([make(n) for n in numbers], kind) for name, (kind, make) in VALUES.items()})


def make_spans(root: Path) -> tuple[SampleTable, ...]:
    tables = []
    for place, site in enumerate(SITES):
        folder = root / site / "spans"
        folder.mkdir(parents=True)
        # Two files and several row groups: bounds are those of all.
        pq.write_table(rows(place * ROWS, ROWS // 2), folder / "a.parquet", row_group_size=7)
        pq.write_table(rows(place * ROWS + ROWS // 2, ROWS // 2), folder / "b.parquet")
        tables.append(SampleTable("spans", site, str(folder)))
    return tuple(tables)


def start(engine: Engine, root: Path, tables: tuple[SampleTable, ...], spark: dict[str, Any]) -> LocalCluster:
    path = write_config(root / "skerry.yaml", root, tables, spark=spark, limits=PATIENT)
    cluster = LocalCluster(str(path), engine=engine)
    cluster.start()
    wait_for_statistics(cluster)
    return cluster


def wait_for_statistics(cluster: LocalCluster) -> None:
    for at in cluster.members:
        wait_until(lambda at=at: all(stats_of(cluster, at, site, "spans") for site in SITES), "statistics")


def ask(cluster: LocalCluster, sql: str, at: str = "oslo", rules: str = "all") -> pa.Table:
    with cluster.connect(at) as connection, connection.cursor() as cursor:
        return cursor.execute(sql, planning={"rules": rules}).fetch_arrow_table()


def left_out(cluster: LocalCluster, sql: str, at: str = "oslo") -> list[str]:
    told = ask(cluster, f"EXPLAIN FORMAT JSON {sql}", at)
    return [each["member"] for each in json.loads(told.column(0)[0].as_py()).get("left_out", ())]


@pytest.fixture(scope="module")
def sail_spans(sail_engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    root = tmp_path_factory.mktemp("spans")
    cluster = start(sail_engine, root, make_spans(root), {"sail": True})
    yield cluster
    cluster.stop()


@pytest.fixture(scope="module")
def spark_spans(
    spark_engine: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[LocalCluster, SparkOracle]]:
    root = tmp_path_factory.mktemp("spans")
    tables = make_spans(root)
    oracle = SparkOracle(spark_engine.session)
    oracle.add_table("spans", [table.path for table in tables], "parquet", "", {})
    cluster = start(spark_engine, root, tables, {"master": "local[*]"})
    yield cluster, oracle
    cluster.stop()


def is_ordered(sql: str) -> bool:
    return "ORDER BY id DESC" in sql


@pytest.mark.sail
@pytest.mark.timeout(600)  # many statements, each of them several times
def test_on_sail(sail_spans: LocalCluster) -> None:
    pruned = 0
    for sql in STATEMENTS:
        plain = ask(sail_spans, sql, rules="-prune")
        for at in ("oslo", "tromso"):
            same_table(ask(sail_spans, sql, at), plain, is_ordered(sql))
        pruned += bool(left_out(sail_spans, sql))
    # Not by floating point numbers, long strings, old dates, and other types than the column's.
    assert pruned >= 40, pruned


@pytest.mark.spark
@pytest.mark.timeout(600)  # many statements, each of them several times
def test_on_spark(spark_spans: tuple[LocalCluster, SparkOracle]) -> None:
    cluster, oracle = spark_spans
    for sql in STATEMENTS:
        same_table(ask(cluster, sql, "bergen"), oracle.run(sql), is_ordered(sql))


@pytest.mark.sail
def test_which_parts_are_left_out(sail_spans: LocalCluster) -> None:
    expected = {
        "id < 40": ["bergen", "tromso"],
        "id BETWEEN 35 AND 45": ["tromso"],
        "id > 119": ["bergen", "tromso"],
        "maybe IS NOT NULL": ["oslo", "bergen"],
        "flag = true": ["oslo", "bergen"],
        "load > 1000": [],
        "old < DATE '1510-01-01'": [],
        "long < 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx040'": [],
        "id < 1e1": [],
    }
    for condition, members in expected.items():
        assert left_out(sail_spans, f"SELECT id FROM spans WHERE {condition}") == members, condition


@pytest.mark.sail
def test_a_file_that_came_later_is_read(sail_engine: Engine, tmp_path: Path) -> None:
    """Statistics are older than the files: whoever planned by them asks before the plan is run."""
    tables = make_spans(tmp_path)
    cluster = start(sail_engine, tmp_path, tables, {"sail": True})
    try:
        sql = "SELECT id FROM spans WHERE id > 79"
        assert left_out(cluster, sql) == ["oslo", "bergen"]
        assert ask(cluster, sql).num_rows == ROWS
        # One that was left out, the initiator's own, and one that was read anyway.
        for place, (at, site) in enumerate((("oslo", "bergen"), ("oslo", "oslo"), ("bergen", "tromso"))):
            folder = next(Path(table.path) for table in tables if table.site == site)
            pq.write_table(rows(1000 + place, 1), folder / "c.parquet")
            found = ask(cluster, sql, at).column("id").to_pylist()
            assert 1000 + place in found, site
            assert len(found) == ROWS + place + 1
        wait_for_statistics(cluster)
        assert left_out(cluster, sql) == []
        assert left_out(cluster, "SELECT id FROM spans WHERE id > 1001") == ["oslo", "bergen"]
    finally:
        cluster.stop()


@pytest.mark.sail
def test_a_site_that_cannot_be_asked_is_an_error(sail_engine: Engine, tmp_path: Path) -> None:
    cluster = start(sail_engine, tmp_path, make_spans(tmp_path), {"sail": True})
    try:
        assert ask(cluster, "SELECT id FROM spans WHERE id < 5").num_rows == 5
        cluster.stop_member("bergen")
        with pytest.raises(Exception, match="bergen"):
            ask(cluster, "SELECT id FROM spans WHERE id < 5")
    finally:
        cluster.stop()

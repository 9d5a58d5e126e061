"""Groups that members fold between them, by keys and values of all types: what one Apache Spark says of all rows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from skerry.spark.engine import Engine
from skerry.testing.checkers import same_table
from skerry.testing.cluster import LocalCluster
from tests.integration.queries.test_partials import COLUMNS, NUMBERS

pytestmark = pytest.mark.spark

SITES = ("oslo", "bergen", "tromso")
ROWS = 700
OF_NUMBERS = "sum avg min max".split()
# Of values that are all the same, what rounding leaves is any number near zero.
OF_SEVERAL = "var_pop var_samp stddev_pop stddev_samp".split()
WHOLE = ("i8", "i32", "i64")


def queries() -> Iterator[str]:
    """A key of each type; over each value all aggregates that members merge."""
    for number, key in enumerate(COLUMNS):
        value = NUMBERS[number % len(NUMBERS)]
        listed = ", ".join(f"{name}({value})" for name in OF_NUMBERS)
        yield f"SELECT {key}, count(*), count({value}), {listed} FROM t GROUP BY {key} HAVING count(*) > 0"
    listed = ", ".join(f"max({name}), min({name})" for name in COLUMNS)
    yield f"SELECT i64 % 300 AS m, {listed}, bool_and(flag), bool_or(flag) FROM t GROUP BY i64 % 300"
    listed = ", ".join(f"{name}({value})" for name in OF_SEVERAL for value in NUMBERS)
    yield f"SELECT i64 % 60 AS m, count(*), {listed} FROM t GROUP BY i64 % 60 HAVING count(*) > 3"
    bits = ", ".join(f"bit_xor({name}), bit_and({name}), bit_or({name})" for name in WHOLE)
    yield f"SELECT i32, s, {bits}, count_if(flag), sum(i8) FILTER (WHERE flag) FROM t GROUP BY i32, s"
    yield "SELECT i64 % 150 AS m, count(DISTINCT s), count(DISTINCT d18, flag), sum(DISTINCT i8) FROM t GROUP BY 1"
    yield "SELECT DISTINCT d27, wild, ts FROM t"
    yield "SELECT i64, sum(i32) / count(*) AS q FROM t GROUP BY i64 ORDER BY q DESC, i64 LIMIT 9 OFFSET 3"
    yield "SELECT d18, max(s) FROM t GROUP BY d18 ORDER BY d18"


@pytest.fixture(scope="module")
def cluster(spark_engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    root, random = tmp_path_factory.mktemp("elastic"), Random("keys of all types")
    members: dict[str, Any] = {}
    parts: list[pa.Table] = []
    for index, site in enumerate(SITES):
        columns: dict[str, pa.Array] = {}
        for name, (type_, value) in COLUMNS.items():
            found = [None if random.random() < 0.1 else value(random) for _ in range(ROWS)]
            # Some keys are at every site.
            columns[name] = pa.array(found[: ROWS // 2] + found[: ROWS // 2] if index == 0 else found, type_)
        parts.append(pa.table(columns))
        members[site] = {"address": f"127.0.0.1:{7101 + index}", "spark": {"master": "local[2]"}, "tables": {}}
    parts = [pa.concat_tables([part, parts[0].slice(0, ROWS // 2)]) for part in parts]
    for site, table, found_rows in (
        *((site, "t", part) for site, part in zip(SITES, parts, strict=True)),
        ("oslo", "whole", pa.concat_tables(parts)),
    ):
        path: Path = root / site / table
        path.mkdir(parents=True)
        pq.write_table(found_rows, path / "1.parquet")
        members[site]["tables"][table] = {"format": "parquet", "path": f"{site}/{table}"}
    text = {"cluster": "c", "data_root": str(root), "members": members, "limits": {"group_by_groups": 100}}
    (root / "skerry.yaml").write_text(yaml.safe_dump(text))
    with LocalCluster(str(root / "skerry.yaml"), engine=spark_engine) as made:
        yield made


@pytest.mark.parametrize("query", list(queries()))
def test_members_fold_what_one_spark_answers(cluster: LocalCluster, query: str) -> None:
    with cluster.connect("oslo") as connection, connection.cursor() as cursor:
        told = cursor.execute(f"EXPLAIN {query}", planning={"group_by": "elastic"}).fetch_arrow_table()
        assert any("group, elastic" in line for line in told.column(0).to_pylist())
        found = cursor.execute(query, planning={"group_by": "elastic"}).fetch_arrow_table()
        wanted = cursor.execute(query.replace("FROM t", "FROM whole AS t"), planning={"rules": "none"})
        same_table(found, wanted.fetch_arrow_table(), "ORDER BY" in query)

"""Rows that several fragments of one member read come there once: on Sail, over links where each byte counts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from skerry.cli.demo import QUERY
from skerry.spark.engine import Engine
from skerry.testing.checkers import same_table
from skerry.testing.cluster import LocalCluster
from skerry.testing.nasty import SITES, SampleTable
from skerry.testing.sites import write_config
from tests.integration.queries.conftest import started

pytestmark = pytest.mark.sail

# The second query has its row long before the first, which reads the same customers, has read them all.
LIMITED = """
SELECT s_suppkey, a.k, a.o FROM supplier
JOIN (SELECT c_nationkey AS k, o_orderkey AS o FROM orders JOIN customer ON o_custkey = c_custkey
ORDER BY c_nationkey DESC, o_orderkey LIMIT 5) AS a ON s_nationkey = a.k
JOIN (SELECT c_nationkey - c_nationkey AS z FROM orders JOIN customer ON o_custkey = c_custkey LIMIT 1) AS b
ON s_suppkey >= b.z
"""


@pytest.fixture(scope="module")
def slow_sail(sail_engine: Engine, data_root: Path, sample_tables: tuple[SampleTable, ...]) -> Iterator[LocalCluster]:
    links = [{"between": [one, other], "mbit": 0.01} for one in SITES for other in SITES if one < other]
    path = write_config(data_root / "shared-sail.yaml", data_root, sample_tables, spark={"sail": True}, links=links)
    with started(path, sail_engine) as cluster:
        yield cluster


def ask(cluster: LocalCluster, at: str, sql: str, rules: str = "all") -> pa.Table:
    with cluster.connect(at) as connection, connection.cursor() as cursor:
        return cursor.execute(sql, planning={"rules": rules, "root": "initiator"}).fetch_arrow_table()


@pytest.mark.parametrize(("at", "sql"), [("oslo", QUERY), ("tromso", LIMITED)])
def test_an_edge_that_two_fragments_read_is_whole_for_both(at: str, sql: str, slow_sail: LocalCluster) -> None:
    explained = "\n".join(ask(slow_sail, at, f"EXPLAIN {sql}").column(0).to_pylist())
    heads = [line for line in explained.split("\n") if line.startswith("fragment ")]
    readers = Counter(edge for head in heads for edge in set(re.findall(r"edge (\d+) from", head)))
    assert max(readers.values()) == 2, explained
    found = ask(slow_sail, at, sql)
    assert found.num_rows > 0
    same_table(found, ask(slow_sail, at, sql, "none"), ordered=False)

"""Queries that a member answers of tables that others have, over links so slow that each byte saved pays: on Sail."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest

from skerry.spark.engine import Engine
from skerry.testing.checkers import same_table
from skerry.testing.cluster import LocalCluster
from skerry.testing.corpus import read_corpus
from skerry.testing.nasty import SITES, SampleTable
from skerry.testing.sites import write_config
from tests.integration.queries.conftest import started

pytestmark = pytest.mark.sail

CORPUS = read_corpus(Path(__file__).parent / "corpus.sql")
APART = [name for name in CORPUS if name.startswith("rules_apart_")]


@pytest.fixture(scope="module")
def slow_sail(sail_engine: Engine, data_root: Path, sample_tables: tuple[SampleTable, ...]) -> Iterator[LocalCluster]:
    links = [{"between": [one, other], "mbit": 0.01} for one in SITES for other in SITES if one < other]
    path = write_config(data_root / "slow-sail.yaml", data_root, sample_tables, spark={"sail": True}, links=links)
    with started(path, sail_engine) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def full_sail(sail_engine: Engine, data_root: Path, sample_tables: tuple[SampleTable, ...]) -> Iterator[LocalCluster]:
    """A chain whose first member has room for one query."""
    links = [{"between": list(pair), "mbit": 0.01} for pair in pairwise(SITES)]
    path = data_root / "full-sail.yaml"
    write_config(path, data_root, sample_tables, spark={"sail": True}, links=links, capacity={"oslo": 1})
    with started(path, sail_engine) as cluster:
        yield cluster


def ask(cluster: LocalCluster, sql: str, rules: str = "all", **planning: str) -> pa.Table:
    with cluster.connect("tromso") as connection, connection.cursor() as cursor:
        return cursor.execute(sql, planning={"rules": rules, **planning}).fetch_arrow_table()


@pytest.mark.parametrize("name", APART)
def test_the_answer_is_that_without_rules(name: str, slow_sail: LocalCluster) -> None:
    entry = CORPUS[name]
    explained = "\n".join(ask(slow_sail, f"EXPLAIN {entry.sql}").column(0).to_pylist())
    # By statistics the sets are so small that keys go ahead instead.
    assert "a query over" in explained or name == "rules_apart_sets", explained
    found = ask(slow_sail, entry.sql)
    assert found.num_rows > 0
    same_table(found, ask(slow_sail, entry.sql, "none"), ordered=False)


FULL = """
SELECT s_suppkey, a.n, b.m, b.v FROM supplier
JOIN (SELECT l_suppkey, count(*) AS n FROM lineitem GROUP BY l_suppkey) AS a ON a.l_suppkey = s_suppkey
JOIN (SELECT o_custkey, max(o_orderdate) AS m, avg(o_totalprice) AS v FROM orders GROUP BY o_custkey) AS b
ON b.o_custkey = s_suppkey
"""


@pytest.mark.parametrize("planning", [{"root": "initiator"}, {"strategy": "bottom-up"}])
def test_a_full_member_passes_a_query_on(planning: dict[str, str], full_sail: LocalCluster) -> None:
    explained = "\n".join(ask(full_sail, f"EXPLAIN {FULL}", **planning).column(0).to_pylist())
    assert "answered at bergen, on the way to tromso" in explained, explained
    found = ask(full_sail, FULL, **planning)
    assert found.num_rows > 0
    same_table(found, ask(full_sail, FULL, "none"), ordered=False)

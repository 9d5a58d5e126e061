"""Queries over several sites that one of them answers, over links so slow that each byte saved pays: on Sail."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from skerry.spark.engine import Engine
from skerry.testing.checkers import same_table
from skerry.testing.cluster import LocalCluster
from skerry.testing.corpus import read_corpus
from skerry.testing.nasty import SITES, SampleTable
from skerry.testing.sites import write_config

pytestmark = pytest.mark.sail

CORPUS = read_corpus(Path(__file__).parent / "corpus.sql")
APART = [name for name in CORPUS if name.startswith("rules_apart_")]


@pytest.fixture(scope="module")
def slow_sail(sail_engine: Engine, data_root: Path, sample_tables: tuple[SampleTable, ...]) -> Iterator[LocalCluster]:
    links = [{"between": [one, other], "mbit": 0.01} for one in SITES for other in SITES if one < other]
    path = write_config(data_root / "slow-sail.yaml", data_root, sample_tables, spark={"sail": True}, links=links)
    with LocalCluster(str(path), engine=sail_engine) as cluster:
        yield cluster


def ask(cluster: LocalCluster, sql: str, rules: str = "all") -> pa.Table:
    with cluster.connect("tromso") as connection, connection.cursor() as cursor:
        return cursor.execute(sql, planning={"rules": rules}).fetch_arrow_table()


@pytest.mark.parametrize("name", APART)
def test_the_answer_is_that_without_rules(name: str, slow_sail: LocalCluster) -> None:
    entry = CORPUS[name]
    explained = "\n".join(ask(slow_sail, f"EXPLAIN {entry.sql}").column(0).to_pylist())
    # By statistics the sets are so small that keys go ahead instead.
    assert "a query over" in explained or name == "rules_apart_sets", explained
    found = ask(slow_sail, entry.sql)
    assert found.num_rows > 0
    same_table(found, ask(slow_sail, entry.sql, "none"), ordered=False)

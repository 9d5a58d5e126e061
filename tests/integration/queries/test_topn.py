"""First rows of tables with parts, with the rule and without: the rows, types, names and order of one plain Spark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import skerry
from skerry.spark.engine import Engine
from skerry.testing.checkers import same_table
from skerry.testing.cluster import LocalCluster
from skerry.testing.corpus import Entry, read_corpus
from skerry.testing.nasty import SampleTable
from skerry.testing.oracle import SparkOracle
from skerry.testing.sites import write_config
from tests.integration.queries.conftest import SLOW_LINKS, started

pytestmark = pytest.mark.spark

CORPUS = read_corpus(Path(__file__).parent / "topn.sql")
EACH = pytest.mark.parametrize("entry", CORPUS.values(), ids=lambda entry: entry.name)
# The types of its columns forbid it; the rule `aggregates` has to be on as well.
WHOLE = {"union_rounded", "union_types", "distinct_in_from"}


@pytest.fixture(scope="module")
def slow_sail_cluster(
    sail_engine: Engine, data_root: Path, sample_tables: tuple[SampleTable, ...]
) -> Iterator[LocalCluster]:
    path = write_config(data_root / "topn_sail.yaml", data_root, sample_tables, links=SLOW_LINKS, spark={"sail": True})
    with started(path, sail_engine) as cluster:
        yield cluster


@EACH
def test_answer_is_sparks(entry: Entry, slow_cluster: LocalCluster, oracle: SparkOracle) -> None:
    with slow_cluster.connect("bergen") as connection, connection.cursor() as cursor:
        if entry.error:
            with pytest.raises(skerry.Error, match=entry.error):
                cursor.execute(entry.sql).fetchall()
            return
        found = cursor.execute(entry.sql).fetch_arrow_table()
    same_table(found, oracle.run(entry.oracle), entry.ordered, keys=[int(key) for key in entry.keys])


# Sail's first rows by a column with NaN miss some of them where it reads files, with the rule or without.
UNKNOWN_TO_SAIL = {"in_from", "union_numbers", "union_rounded"}


@pytest.mark.sail
@pytest.mark.parametrize(
    "entry", [each for each in CORPUS.values() if each.name not in UNKNOWN_TO_SAIL], ids=lambda entry: entry.name
)
def test_sail_gives_the_same_with_the_rule_and_without(entry: Entry, slow_sail_cluster: LocalCluster) -> None:
    with slow_sail_cluster.connect("oslo") as connection, connection.cursor() as cursor:
        if entry.error:
            return
        whole = cursor.execute(entry.sql, planning={"rules": "none"}).fetch_arrow_table()
        for rules in ("topn", "all"):
            found = cursor.execute(entry.sql, planning={"rules": rules}).fetch_arrow_table()
            same_table(found, whole, entry.ordered, keys=[int(key) for key in entry.keys])


@pytest.mark.sail
@EACH
def test_the_rule_fires(entry: Entry, slow_sail_cluster: LocalCluster) -> None:
    """Else the comparison above would compare the baseline with itself."""
    with slow_sail_cluster.connect("oslo") as connection, connection.cursor() as cursor:
        rows = cursor.execute(f"EXPLAIN {entry.sql}", planning={"rules": "topn"}).fetchall()
    told = [str(row[0]) for row in rows]
    is_finished = "merge" in told[-1] or "limit" in told[-1]
    is_bounded = sum(line.strip().startswith(("SELECT", "WITH")) and "LIMIT" in line for line in told) > 1
    assert (is_finished or is_bounded) is (entry.name not in WHOLE), told

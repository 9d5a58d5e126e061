"""A share of `make metamorphic`: generated queries have one answer on four clusters, with rules and without."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from metamorphic.check import World, check, check_partition, world
from skerry.spark.engine import Engine

pytestmark = pytest.mark.spark

# Not the first seeds: those are the ones that `make metamorphic` always sees.
QUERIES = range(1000, 1007)
# The last one: a table without rows that travels is no reason to plan as if the statement said so.
PARTITIONS = (*range(1000, 1007), 276)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory, spark_engine: Engine) -> Iterator[World]:
    with world(Path(tmp_path_factory.mktemp("metamorphic")), spark_engine) as found:
        yield found


@pytest.mark.parametrize("seed", QUERIES)
def test_one_answer_everywhere(small: World, seed: int) -> None:
    outcome = check(small, seed)
    assert not outcome.refusal
    assert outcome.unlike == [], outcome.sql
    assert outcome.runs >= len(small.clusters)


@pytest.mark.parametrize("seed", PARTITIONS)
def test_true_false_and_null_are_those_of_one_spark(small: World, seed: int) -> None:
    outcome = check_partition(small, seed)
    assert not outcome.refusal
    assert outcome.unlike == [], outcome.sql

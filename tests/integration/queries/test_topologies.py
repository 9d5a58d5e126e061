"""TPC-H's 22 queries on six clusters, placed by cost and bottom-up: the known answers each time.

Sail runs all of it; Apache Spark runs every query on one of the clusters, each cluster and strategy in its turn.
`make metamorphic` runs all of it on Spark, at scale 0.1.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pyarrow as pa
import pytest

from metamorphic.tpch import STRATEGIES, ask, initiator
from skerry.spark.engine import Engine
from skerry.testing.cluster import LocalCluster
from skerry.testing.oracle import same_answer, tpch_answers, tpch_queries
from skerry.testing.topologies import SHAPES, Files, clusters, make_files

NUMBERS = range(1, 23)
PLACED = [(shape, strategy) for shape in SHAPES for strategy in STRATEGIES]
# Sail does not plan a scalar subquery over a union of files and arriving rows ("No field named …"): Spark's then.
SAIL_GAPS = {(11, "five", strategy) for strategy in STRATEGIES}
ON_SAIL = [(number, *placed) for number in NUMBERS for placed in PLACED if (number, *placed) not in SAIL_GAPS]
ON_SPARK = [*((number, *PLACED[number % len(PLACED)]) for number in NUMBERS), *sorted(SAIL_GAPS)]


@pytest.fixture(scope="module")
def queries() -> dict[int, str]:
    return tpch_queries()


@pytest.fixture(scope="module")
def answers() -> dict[int, pa.Table]:
    return tpch_answers(0.01)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    return make_files(Path(tmp_path_factory.mktemp("topologies")), 0.01, with_nasty=False)


@pytest.fixture(scope="module")
def on_sail(files: Files, sail_engine: Engine) -> Iterator[Mapping[str, LocalCluster]]:
    with clusters(files, SHAPES.values(), sail_engine) as found:
        yield found


@pytest.fixture(scope="module")
def on_spark(files: Files, spark_engine: Engine) -> Iterator[Mapping[str, LocalCluster]]:
    with clusters(files, SHAPES.values(), spark_engine) as found:
        yield found


@pytest.mark.sail
@pytest.mark.parametrize(("number", "shape", "strategy"), ON_SAIL)
def test_known_answer_on_sail(
    number: int,
    shape: str,
    strategy: str,
    on_sail: Mapping[str, LocalCluster],
    queries: dict[int, str],
    answers: dict[int, pa.Table],
) -> None:
    cluster = on_sail[shape]
    same_answer(ask(cluster, initiator(cluster, number), queries[number], strategy), answers[number])


@pytest.mark.spark
@pytest.mark.parametrize(("number", "shape", "strategy"), ON_SPARK)
def test_known_answer_on_spark(
    number: int,
    shape: str,
    strategy: str,
    on_spark: Mapping[str, LocalCluster],
    queries: dict[int, str],
    answers: dict[int, pa.Table],
) -> None:
    cluster = on_spark[shape]
    same_answer(ask(cluster, initiator(cluster, number), queries[number], strategy), answers[number])

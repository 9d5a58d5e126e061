"""TPC-H's 22 queries on six clusters, placed by cost and bottom-up: the known answers each time."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

import skerry
from skerry.spark.engine import Engine
from skerry.testing.cluster import LocalCluster
from skerry.testing.oracle import same_answer, tpch_answers, tpch_queries
from skerry.testing.topologies import SHAPES, clusters, make_files

STRATEGIES = ("cost", "bottom-up")


def check_all(root: Path, scale: float, engine: Engine, say: Callable[[str], None]) -> list[str]:
    """What differs, as it is said."""
    began = time.monotonic()
    queries, answers = tpch_queries(), tpch_answers(scale)
    wrong: list[str] = []
    runs = 0
    with clusters(make_files(root, scale, with_nasty=False), SHAPES.values(), engine) as found:
        for number, text in queries.items():
            for name, cluster in found.items():
                for strategy in STRATEGIES:
                    runs += 1
                    at = initiator(cluster, number)
                    try:
                        same_answer(ask(cluster, at, text, strategy), answers[number])
                    except (AssertionError, skerry.Error) as error:
                        wrong.append(f"Q{number} on {name}, {strategy}, asked at {at}: {error}")
                        say(f"WRONG: {wrong[-1]}")
            say(f"… Q{number} of {len(queries)}, {time.monotonic() - began:.0f} s")
    say(
        f"TPC-H at scale {scale:g}: {runs} runs on {len(found)} clusters, {len(wrong)} wrong,"
        f" {time.monotonic() - began:.0f} s"
    )
    return wrong


def initiator(cluster: LocalCluster, number: int) -> str:
    """Every member is asked for some of the queries, those without tables too."""
    names = list(cluster.members)
    return names[number % len(names)]


def ask(cluster: LocalCluster, at: str, text: str, strategy: str) -> pa.Table:
    with cluster.connect(at) as connection, connection.cursor() as cursor:
        return cursor.execute(text, planning={"strategy": strategy}).fetch_arrow_table()

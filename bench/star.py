"""A star schema whose tables have parts at several sites, beside one plain engine over the same files.

All members share one engine, and the plain side is a session of that same engine: both sides have the same machine.
"""

from __future__ import annotations

import logging
import statistics
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from bench.frame import SKERRY, Bar, Options, Report, Samples, interleaved, ratio, seconds
from bench.star_schema import QUERIES, STAR, star_files
from bench.wan import ask
from skerry.member.knownplans import planned_anew
from skerry.member.planning import Planned, plan_statement
from skerry.member.requests import RunStatement
from skerry.model.ids import QueryId
from skerry.spark.engine import Engine
from skerry.testing.checkers import same_table
from skerry.testing.cluster import LocalCluster
from skerry.testing.nasty import SITES
from skerry.testing.sites import write_config

PLAIN = "plain"
BOUNDS = {"sail": 3.0, "spark": 2.5}
PLANNED = 7  # times each query is planned, warm


@dataclass(frozen=True)
class Found:
    """What one query was, beside its times."""

    fragments: int
    sent_bytes: int
    planning_ms: float


def run(options: Options) -> Report:
    """Bars: the median over the queries of each one's ratio, for each engine."""
    logging.getLogger("skerry").setLevel(logging.ERROR)
    samples: Samples = {}
    bars: list[Bar] = []
    found: dict[str, Found] = {}
    for name in options.engines:
        with tempfile.TemporaryDirectory() as scratch, _cluster(name, options, Path(scratch)) as cluster:
            taken, more = _measured(cluster, options)
        ratios = {case: ratio(each, base=PLAIN) for case, each in taken.items()}
        _print(name, taken, ratios, more)
        bars.append(Bar(name, statistics.median(ratios.values()), BOUNDS[name]))
        samples |= {f"{case} {name}": each for case, each in taken.items()}
        found |= {f"{case} {name}": each for case, each in more.items()}
    other: Samples = {
        "fragments": {case: [float(each.fragments)] for case, each in found.items()},
        "bytes over links": {case: [float(each.sent_bytes)] for case, each in found.items()},
        "planning ms": {case: [each.planning_ms] for case, each in found.items()},
    }
    title = f"a fact in three parts, dimensions in two, scale {options.scale:g}"
    return Report("star", title, "seconds", samples, bars, options, more={"queries": other})


@contextmanager
def _cluster(name: str, options: Options, scratch: Path) -> Iterator[LocalCluster]:
    files = star_files(options.scale)
    spark = {"sail": True} if name == "sail" else {"conf": {"spark.driver.memory": options.heap}}
    path = write_config(scratch / "skerry.yaml", files.root, files.placed(STAR), sites=SITES, spark=spark)
    with LocalCluster(str(path), has_planners=True) as cluster:
        for table, folders in files.slices.items():
            _session(cluster.engine).read.parquet(*folders).createOrReplaceTempView(table)
        yield cluster


def _session(engine: Engine | None) -> Any:
    """The engine without Skerry; no view of Skerry's has the name of a table."""
    return engine.session  # type: ignore[union-attr]


def _measured(cluster: LocalCluster, options: Options) -> tuple[Samples, dict[str, Found]]:
    samples: Samples = {}
    found: dict[str, Found] = {}
    session = _session(cluster.engine)
    with cluster.connect(SITES[0]) as connection, connection.cursor() as cursor:
        for case, text in QUERIES.items():
            # A quick wrong answer is no answer.
            first = ask(cursor, text, {})
            same_table(first.rows, session.sql(text).toArrow(), ordered=True)
            assert first.rows.num_rows, f"{case} finds nothing"
            works = {
                PLAIN: lambda text=text: session.sql(text).toArrow(),
                SKERRY: lambda text=text: cursor.execute(text).fetch_arrow_table(),
            }
            samples[case] = interleaved(works, options.rounds)
            found[case] = _found(cluster, text, ask(cursor, text, {}).sent_bytes)
    return samples, found


def _found(cluster: LocalCluster, text: str, sent_bytes: int) -> Found:
    planner = planned_anew(cluster.members[SITES[0]].planner)
    statement = RunStatement(QueryId(SITES[0], "planned"), text)
    planned = cluster.call(plan_statement(planner, statement))
    assert isinstance(planned, Planned)
    taken_s = [seconds(lambda: cluster.call(plan_statement(planner, statement))) for _ in range(PLANNED)]
    return Found(len(planned.plan.fragments), sent_bytes, 1000 * statistics.median(taken_s))


def _print(engine: str, taken: Samples, ratios: dict[str, float], more: dict[str, Found]) -> None:
    table = Table(title=f"star on {engine}: medians of {max(len(each[SKERRY]) for each in taken.values())} rounds")
    for heading in ("query", "plain ms", "Skerry ms", "ratio", "fragments", "bytes over links", "planning ms"):
        table.add_column(heading, justify="left" if heading == "query" else "right")
    for case, each in taken.items():
        times = [f"{1000 * statistics.median(each[side]):.0f}" for side in (PLAIN, SKERRY)]
        own = more[case]
        table.add_row(
            case, *times, f"{ratios[case]:.2f}", str(own.fragments), f"{own.sent_bytes:,}", f"{own.planning_ms:.0f}"
        )
    medians = [
        1000 * statistics.median(statistics.median(each[side]) for each in taken.values()) for side in (PLAIN, SKERRY)
    ]
    table.add_row("median", *(f"{each:.0f}" for each in medians), f"{statistics.median(ratios.values()):.2f}")
    Console().print(table)

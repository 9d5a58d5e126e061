"""Planning alone, without Spark: TPC-H's queries on three sites, and those of `star` over tables with parts, from text
to plan, by their tables' statistics.

What counts is this process's own processor time: on a machine that others use, a clock counts their work too.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping

from bench.frame import CACHE, Bar, Options, Report, Samples, tpch_files
from bench.star_schema import QUERIES, STAR, STAR_SCALE, star_files
from bench.wan import PLANNING_MS
from metamorphic.planned import Planner, planner
from skerry.plan.rules import Rules
from skerry.testing.long_statements import LONG
from skerry.testing.nasty import SITES
from skerry.testing.oracle import tpch_queries
from skerry.testing.topologies import THREE, Files

PLANNED = "planned"
GROWS = 15.0  # of ten times the text
LONGEST = {
    "ORs": 10_000,
    "IN": 100_000,
    "comments": 250_000,
    "UNIONs": 100,
    "brackets": 500,
    "columns": 5_000,
    "CTEs": 1_000,
    "aggregates": 2_000,
    "keys": 1_000,
    "pairs": 3_000,
    "concatenations": 5_000,
}


def run(options: Options) -> Report:
    """The bar is for the least time of the query that takes longest: what is above it, others took."""
    folders = tpch_files(options.scale)
    planned = planner(Files(CACHE, {table: (str(folder),) for table, folder in folders.items()}), THREE)
    samples = _planned(planned, {f"Q{number}": text for number, text in tpch_queries().items()}, options.rounds)
    of_star = _planned(planner(star_files(STAR_SCALE), STAR), QUERIES, options.rounds)
    bars, notes = [], []
    for bar, taken in (("largest_ms", samples), ("star", of_star)):
        least_ms = {case: min(each[PLANNED]) for case, each in taken.items()}
        largest = max(least_ms, key=lambda case: least_ms[case])
        bars.append(Bar(bar, least_ms[largest], PLANNING_MS))
        notes.append(
            f"planning takes longest for {largest}; all {len(taken)} take {sum(least_ms.values()):.0f} ms (least times)"
        )
    for kind, most in LONGEST.items():
        bars.append(
            Bar(f"grows_{kind}", _growth(lambda text: planned.plan(text, SITES[0], Rules()), kind, most), GROWS)
        )
    title = f"three sites, TPC-H scale {options.scale:g}"
    return Report("planning", title, "milliseconds of processor time", samples | of_star, bars, options, notes)


def _planned(planned: Planner, texts: Mapping[str, str], rounds: int) -> Samples:
    samples: Samples = {case: {PLANNED: []} for case in texts}
    for turn in range(rounds + 1):
        for case, text in texts.items():
            taken_ms = _processor_ms(lambda text=text: planned.plan(text, SITES[0], Rules()))  # type: ignore[misc]
            if turn:  # the first is a warm-up
                samples[case][PLANNED].append(taken_ms)
    return samples


def _growth(plan: Callable[[str], object], kind: str, most: int) -> float:
    """How many times as long ten times the text takes, without garbage collection, as members plan."""
    gc.disable()
    try:
        texts = [LONG[kind](size, "lineitem", "l_orderkey") for size in (most // 10, most)]
        once, tenfold = (min(_processor_ms(lambda text=text: plan(text)) for _ in range(3)) for text in texts)  # type: ignore[misc]
    finally:
        gc.enable()
    return tenfold / once


def _processor_ms(work: Callable[[], object]) -> float:
    started = time.process_time()
    work()
    return 1000 * (time.process_time() - started)

"""Planning alone, without Spark: TPC-H's queries on three sites from text to plan, by their tables' statistics.

What counts is this process's own processor time: on a machine that others use, a clock counts their work too.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from bench.frame import CACHE, Bar, Options, Report, Samples, tpch_files
from bench.wan import PLANNING_MS
from metamorphic.planned import planner
from skerry.plan.rules import Rules
from skerry.testing.nasty import SITES
from skerry.testing.oracle import tpch_queries
from skerry.testing.topologies import THREE, Files

PLANNED = "planned"


def run(options: Options) -> Report:
    """The bar is for the least time of the query that takes longest: what is above it, others took."""
    folders = tpch_files(options.scale)
    planned = planner(Files(CACHE, {table: (str(folder),) for table, folder in folders.items()}), THREE)
    texts = tpch_queries()
    samples: Samples = {f"Q{number}": {PLANNED: []} for number in texts}
    for turn in range(options.rounds + 1):
        for number, text in texts.items():
            taken_ms = _processor_ms(lambda text=text: planned.plan(text, SITES[0], Rules()))  # type: ignore[misc]
            if turn:  # the first is a warm-up
                samples[f"Q{number}"][PLANNED].append(taken_ms)
    least_ms = {case: min(taken[PLANNED]) for case, taken in samples.items()}
    largest = max(least_ms, key=lambda case: least_ms[case])
    bars = [Bar("largest_ms", least_ms[largest], PLANNING_MS)]
    notes = [f"planning takes longest for {largest}; all 22 take {sum(least_ms.values()):.0f} ms (least times)"]
    title = f"three sites, TPC-H scale {options.scale:g}"
    return Report("planning", title, "milliseconds of processor time", samples, bars, options, notes)


def _processor_ms(work: Callable[[], object]) -> float:
    started = time.process_time()
    work()
    return 1000 * (time.process_time() - started)

"""Runs benchmarks by name and ends with a line for each bar that one has to clear."""

from __future__ import annotations

import argparse
import importlib
import os
import sys

from bench.frame import ENGINES, Options, Report, publish
from bench.star_schema import STAR_SCALE

NAMES = (
    "overhead",
    "fetch",
    "neighbours",
    "channel",
    "cancel",
    "clients",
    "client",
    "large",
    "wan",
    "star",
    "together",
    "planning",
    "store",
    "writes",
    "fold",
)
SCALE = 1.0


def main() -> int:
    """Exit status 1 when a bar was missed."""
    parser = argparse.ArgumentParser(prog="python -m bench", description="Ratios against bare PySpark, in one run.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one or more of {', '.join(NAMES)} (default: all)")
    parser.add_argument("--scale", type=float, help=f"TPC-H scale (default: {SCALE:g}; star, together {STAR_SCALE:g})")
    parser.add_argument("--rounds", type=int, default=7, help="measured rounds, at least 5 for a median (default: 7)")
    parser.add_argument("--heap", default="2g", help="Spark's heap (default: 2g)")
    parser.add_argument("--shaped", action="store_true", help="wan: times on links of 100 Mbit/s too (needs root)")
    parser.add_argument("--locked", action="store_true", help="overhead, clients, fetch: with users and rights")
    parser.add_argument("--engine", choices=ENGINES, help="star, together: on this engine only (default: on both)")
    parser.add_argument(
        "--only", nargs="+", default=(), metavar="SECTION", help="writes: these sections (default: all)"
    )
    chosen = parser.parse_args()
    if unknown := set(chosen.names) - set(NAMES):
        parser.error(f"no benchmark {', '.join(sorted(unknown))}; there are {', '.join(NAMES)}")
    # Spark must start this very interpreter, also where its virtual environment is not activated.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    engines = (chosen.engine,) if chosen.engine else ENGINES
    reports: list[Report] = []
    for name in chosen.names or NAMES:
        scale = chosen.scale or (STAR_SCALE if name in ("star", "together") else SCALE)
        options = Options(scale, chosen.rounds, chosen.heap, chosen.shaped, chosen.locked, engines, tuple(chosen.only))
        report = importlib.import_module(f"bench.{name}").run(options)
        publish(report)
        reports.append(report)
    bars = [(report.name, bar) for report in reports for bar in report.bars]
    for name, bar in bars:
        print(bar.line(name))
    for report in reports:
        for skipped in report.skipped:
            print(skipped.line(report.name))
    return 0 if all(bar.cleared for _, bar in bars) else 1


if __name__ == "__main__":
    sys.exit(main())

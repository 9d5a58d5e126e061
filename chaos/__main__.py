"""Runs the rounds and ends with `N rounds, 0 violations`; exit status 1 when there was one.

`--own CRASHES`: tables of our own instead, while so many members die.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from fnmatch import fnmatch
from pathlib import Path
from random import Random
from types import FrameType

from chaos import own
from chaos.cluster import Cluster
from chaos.links import LinkRound, ResetRound, link_rounds
from chaos.net import Net, why_not
from chaos.rounds import HANGS_ON_SPARK_S, HANGS_S, Outcome, Round, Runner, fault_rounds, spark_rounds
from chaos.shapes import SITES, make_tables, right_answers

AnyRound = Round | LinkRound | ResetRound


def _show(outcome: Outcome) -> None:
    action, point, shape = outcome.name.split("@")
    print(
        f"{action:<10} {point:<26} {shape:<17} {outcome.victim:<7} {outcome.seconds:5.1f} s  {outcome.result[:110]}",
        flush=True,
    )
    for violation in outcome.violations:
        print(f"    VIOLATION {violation}", flush=True)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m chaos", description=__doc__)
    parser.add_argument("--tenth", action="store_true", help="a tenth of the rounds, as `make test` runs them")
    parser.add_argument("--only", metavar="PATTERN", help="rounds of this name, as in 'kill@first batch sent@*'")
    parser.add_argument("--seed", type=int, default=0, help="other rounds in the tenth, other members hit (default: 0)")
    parser.add_argument("--own", type=int, metavar="CRASHES", help="writes to tables of our own, while members die")
    parser.add_argument("--looks", action="store_true", help="with --own: engines, queries and partitions as well")
    parser.add_argument("--point", default="", help="with --own: members die at this point, such as table.made")
    parser.add_argument("--minutes", type=float, default=60.0, help="with --own: no longer than this (default: 60)")
    parser.add_argument("--keep", action="store_true", help="keep the members' logs also when nothing was wrong")
    chosen = parser.parse_args()
    if reason := why_not():
        print(f"skipped: {reason}")
        return 0
    for number in (signal.SIGTERM, signal.SIGINT):  # a shell's background jobs ignore Ctrl-C
        signal.signal(number, _interrupt)
    folder = Path(tempfile.mkdtemp(prefix="chaos"))
    if chosen.own is not None:
        return _own(chosen, folder)
    outcomes: list[Outcome] = []
    try:
        _run(chosen, folder, outcomes)
    except KeyboardInterrupt:
        if not (chosen.keep or any(outcome.violations for outcome in outcomes)):
            shutil.rmtree(folder)
        print("interrupted", file=sys.stderr)
        return 130
    violations = sum(len(outcome.violations) for outcome in outcomes)
    if violations:
        print(f"\nthe members' logs are in {folder}; one round alone:")
        for outcome in outcomes:
            if outcome.violations and outcome.victim != "all":
                print(f"  python -m chaos --seed {chosen.seed} --only '{outcome.name}'")
    elif not chosen.keep:
        shutil.rmtree(folder)
    print(f"{len(outcomes)} rounds, {violations} violations")
    return 1 if violations else 0


def _own(chosen: argparse.Namespace, folder: Path) -> int:
    try:
        verdict = own.run(
            folder, chosen.own, chosen.minutes * 60, chosen.seed, has_engines=chosen.looks, point=chosen.point
        )
    except KeyboardInterrupt:
        print(f"interrupted; logs and tables are in {folder}", file=sys.stderr)
        return 130
    for violation in verdict.violations:
        print(f"    VIOLATION {violation}", flush=True)
    if verdict.violations:
        print(f"logs and tables are in {folder}")
    elif not chosen.keep:
        shutil.rmtree(folder)
    print(verdict)
    return 1 if verdict.violations else 0


def _chosen_rounds(tenth: bool, seed: int, only: str | None) -> list[AnyRound]:
    faults = fault_rounds()
    Random(seed).shuffle(faults)
    links = link_rounds(6 if tenth else 60)
    if tenth:
        faults = _points_in_turn(faults)[: len(faults) // 10]
        links = [each for each in links if each.in_tenth]
    return _matching([*links, *faults], only)


def _points_in_turn(faults: list[Round]) -> list[Round]:
    """Each point once before any comes again: a tenth sees as many of them as it can."""
    seen: Counter[str] = Counter()
    turns: list[tuple[int, Round]] = []
    for each in faults:
        seen[each.point.name] += 1
        turns.append((seen[each.point.name], each))
    return [each for _, each in sorted(turns, key=lambda turn: turn[0])]


def _matching(rounds: Sequence[AnyRound], only: str | None) -> list[AnyRound]:
    return [each for each in rounds if only is None or fnmatch(each.name, only)]


def _run(chosen: argparse.Namespace, folder: Path, outcomes: list[Outcome]) -> None:
    tables = make_tables(folder / "data")
    answers = right_answers(tables)
    on_sail = _chosen_rounds(chosen.tenth, chosen.seed, chosen.only)
    on_spark: list[AnyRound] = [] if chosen.tenth else [*_matching(spark_rounds(), chosen.only)]
    if on_spark and "JAVA_HOME" not in os.environ and shutil.which("java") is None:
        print(f"{len(on_spark)} rounds with Apache Spark are skipped: there is no Java")
        on_spark = []
    spark = {"bergen": {"master": "local[2]", "conf": {"spark.driver.memory": "1g"}}}
    for name, rounds, sparks in (("sail", on_sail, {}), ("spark", on_spark, spark)):
        if not rounds:
            continue
        started = time.monotonic()
        with Net(SITES) as net, Cluster(net, folder / name, tables, sparks) as cluster:
            runner = Runner(cluster, answers, chosen.seed, HANGS_ON_SPARK_S if sparks else HANGS_S)
            runner.warm_up()
            print(f"three members are up and warm after {time.monotonic() - started:.1f} s ({name})", flush=True)
            for each in rounds:
                outcomes.append(each.run(runner))
                _show(outcomes[-1])
            outcomes.append(runner.end())
            _show(outcomes[-1])


if __name__ == "__main__":
    sys.exit(main())

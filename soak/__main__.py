"""Runs the soak and ends with what the members held; exit status 1 when something grew, stalled or was wrong."""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import statistics
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path
from types import FrameType

import psutil

from soak.clients import Crowd
from soak.members import Held, Members
from soak.samples import Samples, above_idle
from soak.statements import make_tables, right_answers

RESULTS = Path(__file__).parent / "results"
SAMPLE_S = 2.0
DUMPS = 5  # more would say the same
QUIET_S = 30.0  # for the last receipts, and for idle connections and threads to go
PAUSE_EVERY_S, PAUSE_S = 45.0, 8.0  # longer than `login_s`, shorter than `stop_s`


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=30.0, help="how long clients come and go (default: 30)")
    parser.add_argument("--sail", action="store_true", help="on Sail instead of Apache Spark")
    parser.add_argument("--clients", type=int, default=6, help="at once (default: 6)")
    parser.add_argument("--deadline", type=float, default=0.0, help="seconds a query has (default: 180, on Sail 90)")
    parser.add_argument("--stall", type=float, default=30.0, help="seconds without an end before stacks are written")
    parser.add_argument("--no-pauses", action="store_true", help="stop no engine's process for a while now and then")
    parser.add_argument("--seed", type=int, default=0, help="other clients (default: 0)")
    chosen = parser.parse_args()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _interrupt)
    results = RESULTS / ("sail" if chosen.sail else "spark")
    shutil.rmtree(results, ignore_errors=True)
    results.mkdir(parents=True)
    with tempfile.TemporaryDirectory(prefix="soak") as scratch:
        try:
            return _run(chosen, Path(scratch), results)
        finally:
            for path in [*Path(scratch).glob("*.log"), *Path(scratch).glob("stacks/dump-*")]:
                shutil.move(path, results)


def _run(chosen: argparse.Namespace, folder: Path, results: Path) -> int:
    deadline_s = chosen.deadline or (90.0 if chosen.sail else 180.0)
    tables = make_tables(folder)
    statements = right_answers(tables)
    failures: list[str] = []
    with Members(folder, tables, chosen.sail) as members:
        time.sleep(SAMPLE_S)
        idle = members.held()
        print(f"three members are up; {chosen.clients} clients for {chosen.minutes:g} minutes", flush=True)
        samples = Samples(chosen.sail)  # its time begins here: the start of the members is not warm-up
        crowd = Crowd(members.urls, statements, chosen.clients, deadline_s, chosen.seed)
        ends = threading.Event()
        pauser = threading.Thread(target=_pause, args=(members, ends, chosen.seed), daemon=True)
        if not chosen.no_pauses:
            pauser.start()
        try:
            _watch(chosen, members, crowd, samples)
        finally:
            ends.set()
        if not chosen.no_pauses:
            pauser.join(2 * PAUSE_S)
        crowd.leave()
        left = above_idle(idle, _when_quiet(members, idle, chosen.sail), chosen.sail)
        failures += [f"{name} has ended" for name in members.have_ended]
        if left:
            members.dump("what is left")
    samples.write(results / "samples.csv")
    engine = "Sail" if chosen.sail else "Spark"
    asked = sum(crowd.ended.values())
    samples.draw(results / "samples.png", f"{chosen.minutes:g} minutes on {engine}: {asked} queries")
    failures += [*crowd.violations, *left]
    failures += [f"{each.name} grows" for each in samples.judged() if not each.is_flat]
    _show(samples, crowd)
    for failure in failures:
        print(f"FAILED {failure[:300]}")
    print(f"{asked} queries, {len(failures)} failures; see {os.path.relpath(results)}")
    return 1 if failures else 0


def _watch(chosen: argparse.Namespace, members: Members, crowd: Crowd, samples: Samples) -> None:
    ends, dumps = time.monotonic() + 60 * chosen.minutes, 0
    while time.monotonic() < ends and not members.have_ended:
        samples.add({**members.held(), "ended queries": sum(crowd.ended.values()), "open queries": len(crowd.asked)})
        for each in crowd.stuck(chosen.stall):
            print(f"    no end after {chosen.stall:g} s: {each.kind}: {each.sql[:200]}", flush=True)
            dumps += 1
            if dumps <= DUMPS:
                print(f"    stacks are in {members.dump(f'{each.kind}: {each.sql}').name}", flush=True)
        time.sleep(SAMPLE_S)


def _when_quiet(members: Members, idle: Held, on_sail: bool) -> Held:
    give_up = time.monotonic() + QUIET_S
    while above_idle(idle, held := members.held(), on_sail) and time.monotonic() < give_up:
        time.sleep(SAMPLE_S)
    return held


def _pause(members: Members, ends: threading.Event, seed: int) -> None:
    """Now and then Sail's process, or a Python worker of Spark, stands still: no query may end by that."""
    choice = random.Random(seed)
    while not ends.wait(PAUSE_EVERY_S):
        everybody = list(members.groups())
        workers = [process for group, process in everybody if group == "worker"]
        engines = [process for group, process in everybody if group == "engine" and process.name() != "java"]
        if not (found := workers or engines):
            continue
        process = choice.choice(found)
        with suppress(psutil.Error):
            process.suspend()
            try:
                ends.wait(PAUSE_S)
            finally:
                process.resume()


def _show(samples: Samples, crowd: Crowd) -> None:
    print(f"{'':20} {'earlier':>9} {'later':>9} {'highest':>9} {'an hour':>9}")
    for each in samples.judged():
        word = "flat" if each.is_flat else "GROWS"
        print(f"{each.name:20} {each.earlier:9.1f} {each.later:9.1f} {each.highest:9.1f} {each.per_hour:+9.1f}  {word}")
    print(f"\n{'':20} {'queries':>9} {'median s':>9} {'longest':>9}")
    for kind, seconds in sorted(crowd.seconds.items()):
        print(f"{kind:20} {len(seconds):9} {statistics.median(seconds):9.2f} {max(seconds):9.2f}")


if __name__ == "__main__":
    sys.exit(main())

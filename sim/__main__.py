"""`python -m sim --seeds 500`: runs seeds, prints the violations and the slowest seed. `--seed 7` replays one.

`--tables` runs commits to tables of our own (sim/tables, sim/staged) instead of queries, `--groupby` elastic group-bys
(sim/groupby).
"""

from __future__ import annotations

import argparse
import functools
import gc
import logging
import multiprocessing
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator

import sim.groupby.world
import sim.tables.seeds
from sim.loop import OWNER
from sim.world import COMPLAINTS, Outcome, run_seed

_COLLECT_EVERY = 25
Run = Callable[[int], Outcome]
# What a seed is of: the option that asks for it, and what it counts.
WORLDS: dict[Run, tuple[str, str]] = {
    run_seed: ("", "queries answered"),
    sim.tables.seeds.run_seed: (" --tables", "commits"),
    sim.groupby.world.run_seed: (" --groupby", "group-bys complete"),
}


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m sim", description=__doc__)
    parser.add_argument("--seeds", type=int, default=500, help="how many seeds (default 500)")
    parser.add_argument("--first", type=int, default=0, help="the first of them (default 0)")
    parser.add_argument("--seed", type=int, nargs="+", help="run these alone, twice each, and tell their story")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes (default: one per core)")
    parser.add_argument("--stop-at-first", action="store_true", help="end with the first violation")
    parser.add_argument("--log", action="store_true", help="with --seed: what the members log")
    worlds = parser.add_mutually_exclusive_group()
    worlds.add_argument("--tables", action="store_true", help="commits to tables of our own, instead of queries")
    worlds.add_argument("--groupby", action="store_true", help="elastic group-bys, instead of queries")
    options = parser.parse_args(arguments)
    run = sim.tables.seeds.run_seed if options.tables else run_seed
    run = sim.groupby.world.run_seed if options.groupby else run
    if options.seed is not None:
        return max(replay(run, seed, with_log=options.log) for seed in options.seed)
    return run_all(run, range(options.first, options.first + options.seeds), options.jobs, options.stop_at_first)


def replay(run: Run, seed: int, *, with_log: bool) -> int:
    """The seed's story; a second run must be the same."""
    with private_files():
        quiet()
        if with_log:
            printing = logging.StreamHandler(sys.stdout)
            printing.setFormatter(VirtualTime())
            logging.getLogger("skerry").addHandler(printing)
            logging.getLogger("skerry").setLevel(logging.DEBUG)
        outcome = run(seed)
        quiet()
        again = run(seed)
    print("\n".join(outcome.story))
    print(f"seed {seed}: {outcome.steps} steps, {outcome.virtual_s:.1f} s of virtual time, digest {outcome.digest:08x}")
    if (again.digest, again.steps) != (outcome.digest, outcome.steps):
        print(f"seed {seed}: VIOLATION: a second run differs (digest {again.digest:08x}, {again.steps} steps)")
        return 1
    if outcome.violation:
        print(f"seed {seed}: VIOLATION: {outcome.violation}")
        return 1
    print(f"seed {seed}: no violation")
    return 0


def run_all(run: Run, seeds: range, jobs: int, stop_at_first: bool) -> int:
    began, ran, violations, complete, failed = time.monotonic(), 0, 0, 0, 0
    slowest, slowest_s = 0, 0.0
    option, what = WORLDS[run]
    for outcome, seconds in outcomes(run, seeds, jobs):
        ran += 1
        complete, failed = complete + outcome.complete, failed + outcome.failed
        if seconds > slowest_s:
            slowest, slowest_s = outcome.seed, seconds
        if outcome.violation:
            violations += 1
            print(f"seed {outcome.seed}: {outcome.violation}")
            print(f"  replay it with: python -m sim{option} --seed {outcome.seed}", flush=True)
            if stop_at_first:
                break
    print(f"{complete} {what}, {failed} ended with an error; {time.monotonic() - began:.1f} s")
    print(f"slowest seed: {slowest}, {slowest_s:.3f} s")
    print(f"{ran} seeds, {violations} violations")
    return 1 if violations or not ran else 0


def outcomes(run: Run, seeds: range, jobs: int) -> Iterator[tuple[Outcome, float]]:
    with private_files():
        if jobs <= 1:
            quiet()
            yield from map(functools.partial(timed, run), seeds)
            return
        context = multiprocessing.get_context("fork")
        with context.Pool(jobs, initializer=quiet) as pool:
            yield from pool.imap(functools.partial(timed, run), seeds, chunksize=4)


def timed(run: Run, seed: int) -> tuple[Outcome, float]:
    if seed % _COLLECT_EVERY == 0:
        gc.collect()
    began = time.monotonic()
    return run(seed), time.monotonic() - began


def quiet() -> None:
    """Members log their errors to the simulation and nothing else; rubbish is collected between seeds."""
    logger = logging.getLogger("skerry")
    logger.setLevel(logging.ERROR)
    logger.handlers = [COMPLAINTS]
    logger.propagate = False
    gc.disable()


class VirtualTime(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        process = OWNER.get()
        now = COMPLAINTS.cluster.loop.now - 1000 if COMPLAINTS.cluster is not None else 0.0
        return f"{now:9.4f} {process}: {record.getMessage()}"


class private_files:
    """Members keep their files in a folder of this run, in memory where the system offers that."""

    def __enter__(self) -> None:
        self._usual = tempfile.tempdir
        memory = "/dev/shm"
        self._folder = tempfile.mkdtemp(prefix="sim-", dir=memory if os.access(memory, os.W_OK) else None)
        tempfile.tempdir = self._folder

    def __exit__(self, *_: object) -> None:
        tempfile.tempdir = self._usual
        shutil.rmtree(self._folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Tables of our own, written end to end: a client, two members as processes on Sail; beside delta-rs, Spark, SQLite.

All sides write to the same disk and take turns. SQLite (WAL, FULL) is what durability costs at least; delta-rs never
calls fsync. Every count is looked at: a benchmark of writes that were lost would be quick.
"""

from __future__ import annotations

import functools
import itertools
import multiprocessing
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from bench.crowd import crowd
from bench.delta_spark import DeltaOnSpark, NoDelta
from bench.frame import SKERRY, Bar, Options, Report, Samples, Skipped, interleaved, ratio
from bench.slow_disk import SYNC_S, NoCompiler, slow_disk
from bench.syncs import NoTrace, syncs_of
from bench.writers import (
    LARGE,
    SITES,
    UPDATE,
    Delta,
    Skerry,
    Sqlite,
    loops_s,
    members,
    processor_s,
    processor_s_of,
    rows_of,
    spent_by,
)
from skerry.model.limits import FLUSH_ROWS

DELTA, SQLITE, TWO, FLUSHED, OVERLAID = "delta-rs", "sqlite, WAL, FULL", "two members", "flushed", "overlaid"
SPARK = "Delta on Spark"
ROWS = 20  # one-row statements a round
UPSERT = 1000
KEPT = 100_000  # rows of a table that is read
LOADED = 1_000_000
PARTITIONS = 16
CLIENTS = 32
WINDOW_S = 4.0


class Bench:
    """Two members, and what is written beside them. Each section makes its own tables, samples and bars."""

    def __init__(self, options: Options, scratch: Path, url: str) -> None:
        keys = itertools.count(10**9)
        self.options, self.scratch, self.url = options, scratch, url
        self.ours, self.plain = Skerry(url, keys), Sqlite(os.path.join(scratch, "plain.sqlite"), keys)
        self.delta = Delta(scratch, keys)
        self.pairs = _pairs()
        self.samples: Samples = {}
        self.bars: list[Bar] = []
        self.skipped: list[Skipped] = []
        self.notes: list[str] = []
        self.rates: dict[str, list[float]] = {}
        self._made: set[str] = set()

    def define(self, name: str, members: str = SITES[0], keys: range | None = None) -> str:
        """The table, made and filled once for all sections."""
        if name not in self._made:
            self._made.add(name)
            self.ours.define(name, members)
            if keys is not None:
                self.ours.fill(name, keys)
        return name

    def close(self) -> None:
        self.ours.close()
        self.plain.close()


def run(options: Options) -> Report:
    """All sections, or those that `options.only` names."""
    if unknown := set(options.only) - set(SECTIONS):
        raise SystemExit(f"writes has no section {', '.join(sorted(unknown))}; there are {', '.join(SECTIONS)}")
    with tempfile.TemporaryDirectory(prefix="bench-writes") as scratch, members(Path(scratch)) as url:
        bench = Bench(options, Path(scratch), url)
        try:
            for name in options.only or SECTIONS:
                SECTIONS[name](bench)
        finally:
            bench.close()
    rows = f"processes of two members; {KEPT} rows where a table is read, {LARGE} where rows are replaced"
    more = {"statements/s": {"rates": bench.rates}}
    title, notes = "Writes to tables of our own", [rows, *bench.notes]
    return Report("writes", title, "seconds", bench.samples, bench.bars, options, notes, bench.skipped, more)


def _one_row(bench: Bench) -> None:
    name = bench.define("one")
    works: dict[str, Callable[[], None]] = {
        SKERRY: lambda: bench.ours.insert(name),
        DELTA: bench.delta.append,
        SQLITE: bench.plain.insert,
    }
    taken = bench.samples["one row"] = interleaved(works, bench.options.rounds * ROWS)
    bench.bars.append(Bar("insert_delta", ratio(taken, SKERRY, DELTA), 0.5))
    bench.bars.append(Bar("insert_sqlite", ratio(taken, SKERRY, SQLITE), 6.0))


def _two_members(bench: Bench) -> None:
    one, two = bench.define("one"), bench.define("two", ", ".join(SITES))
    works = {SKERRY: lambda: bench.ours.insert(one), TWO: lambda: bench.ours.insert_two(two, bench.pairs)}
    taken = bench.samples["two members"] = interleaved(works, bench.options.rounds * ROWS)
    bench.bars.append(Bar("two_members", ratio(taken, TWO, SKERRY), 2.5))


def _clients(bench: Bench) -> None:
    bench.define("one")
    bench.rates |= _many(bench, bench.url, "clients", "")


def _clients_of_a_slow_disk(bench: Bench) -> None:
    """The same with members whose syncs take their time."""
    folder = bench.scratch / "slow"
    folder.mkdir()
    try:
        with slow_disk(folder), members(folder) as url:
            ours = Skerry(url, itertools.count())
            ours.define("one", SITES[0])
            ours.close()
            bench.rates |= _many(bench, url, "clients_slow_disk", f", a sync takes {SYNC_S * 1e3:.0f} ms")
    except NoCompiler as error:
        bench.skipped.append(Skipped("clients_slow_disk", str(error)))


def _many(bench: Bench, url: str, bar: str, where: str) -> dict[str, list[float]]:
    rates = _rates(bench, url, where)
    bench.notes += [
        f"statements/s of {name}: {', '.join(f'{rate:.0f}' for rate in each)}" for name, each in rates.items()
    ]
    few, many = rates
    bench.bars.append(Bar(bar, ratio(rates, many, few), 4.0, at_most=False))
    return rates


def _upsert(bench: Bench) -> None:
    name, starts = bench.define("large", keys=range(LARGE)), itertools.count()
    works: dict[str, Callable[[], None]] = {
        SKERRY: lambda: bench.ours.upsert(name, _spread(next(starts))),
        DELTA: lambda: bench.delta.merge(_spread(next(starts))),
    }
    taken = bench.samples[f"upsert of {UPSERT}"] = interleaved(works, bench.options.rounds)
    bench.bars.append(Bar("upsert", ratio(taken, DELTA, SKERRY), 20.0, at_most=False))
    # Not in the rounds that are timed: to look at the threads of all processes takes as long as our upsert.
    spent = {each: min(processor_s_of(work) for _ in range(3)) for each, work in works.items()}
    bench.notes += [f"upsert of {UPSERT}, least processor ms of {each}: {s * 1e3:.0f}" for each, s in spent.items()]


def _scan(bench: Bench) -> None:
    taken = bench.samples["scan"] = _scans(bench)
    bench.bars.append(Bar("scan", ratio(taken, OVERLAID, FLUSHED), 1.7))


def _bulk(bench: Bench) -> None:
    spent = bench.samples[f"load of {LOADED}, processor time"] = _loads(bench)
    bench.bars.append(Bar("bulk", min(spent[DELTA]) / min(spent[SKERRY]), 1.0, at_most=False))


def _syncs(bench: Bench) -> None:
    two = bench.define("two", ", ".join(SITES))
    try:
        in_sequence = syncs_of("--member", SITES, lambda: bench.ours.insert_two(two, bench.pairs))
        bench.bars.append(Bar("syncs_in_sequence", in_sequence, 2.0))
    except NoTrace as error:
        bench.skipped.append(Skipped("syncs_in_sequence", str(error)))


def _update(bench: Bench) -> None:
    bench.define("large", keys=range(LARGE))
    try:
        updates = bench.samples["update by key"] = _updates(bench)
        bench.bars.append(Bar("update", ratio(updates, SPARK, SKERRY), 20.0, at_most=False))
    except NoDelta as error:
        bench.skipped.append(Skipped("update", str(error)))


SECTIONS: dict[str, Callable[[Bench], None]] = {
    "one": _one_row,
    "two": _two_members,
    "clients": _clients,
    "disk": _clients_of_a_slow_disk,
    "upsert": _upsert,
    "scan": _scan,
    "bulk": _bulk,
    "syncs": _syncs,
    "update": _update,
}


def _spread(start: int) -> range:
    """Keys from all over the large table."""
    step = LARGE // UPSERT
    return range(start * 7 % step, LARGE, step)


def _updates(bench: Bench) -> dict[str, list[float]]:
    """One row of the large table by its key, other ones each time; Spark has run the statement before."""
    keys = itertools.count(1, 9973)
    with DeltaOnSpark(bench.options, bench.delta.copy(bench.scratch / "updated")) as spark:
        works: dict[str, Callable[[], None]] = {
            SKERRY: lambda: bench.ours.update("large", next(keys) % LARGE),
            SPARK: lambda: spark.run(UPDATE.format(spark.table, next(keys) % LARGE)),
        }
        return interleaved(works, bench.options.rounds)


def _pairs() -> Iterator[tuple[int, int]]:
    """Keys of which one is at each member, for ever: found by where a table of both would put them."""
    from skerry.tables.bucket import buckets_of

    numbers = itertools.count(2 * 10**9)
    while True:
        some = list(itertools.islice(numbers, 512))
        buckets = buckets_of([pa.array(some, pa.int64())], 16384)
        low = [key for key, bucket in zip(some, buckets.tolist(), strict=True) if bucket < 8192]
        high = [key for key, bucket in zip(some, buckets.tolist(), strict=True) if bucket >= 8192]
        yield from zip(low, high, strict=False)


def _scans(bench: Bench) -> dict[str, list[float]]:
    """The same rows in files, and with the last of them still in memory."""
    for name in (FLUSHED, OVERLAID):
        bench.define(name, keys=range(KEPT))
    touched = FLUSH_ROWS - UPSERT  # one more, and they would be flushed
    for first in range(0, touched, UPSERT):
        bench.ours.upsert(OVERLAID, range(first * 5, first * 5 + UPSERT))
    works = {name: (lambda name=name: bench.ours.scan(name, KEPT)) for name in (FLUSHED, OVERLAID)}
    return interleaved(works, bench.options.rounds)


class Writing:
    """One of many clients, with keys of its own."""

    def __init__(self, url: str, number: int) -> None:
        self._skerry = Skerry(url, itertools.count((3 * 10**9) + number * 10**7))

    def work(self, _number: int) -> None:
        self._skerry.insert("one")

    def close(self) -> None:
        self._skerry.close()


def _loads(bench: Bench) -> dict[str, list[float]]:
    """Seconds of processor time, of the client and all members, for rows that are new in a table that is new.

    Skerry makes as many files of so many rows as delta-rs gets partitions, and syncs them.
    """
    rows, spent = rows_of(range(LOADED)), dict[str, list[float]]({SKERRY: [], DELTA: []})
    parted = rows.append_column("part", pa.array([key % PARTITIONS for key in range(LOADED)], pa.int32()))
    for turn in range(max(3, bench.options.rounds // 2)):
        name = bench.define(f"loaded{turn}")
        spent[SKERRY].append(processor_s_of(functools.partial(bench.ours.load, name, rows)))
        spent[DELTA].append(processor_s_of(functools.partial(bench.delta.load, turn, parted)))
    return spent


def _rates(bench: Bench, url: str, where: str) -> dict[str, list[float]]:
    """Statements a second of one client, and of many at once, each with a connection."""
    counts = {f"1 client{where}": 1, f"{CLIENTS} clients{where}": CLIENTS}
    rates: dict[str, list[float]] = {name: [] for name in counts}
    costs: dict[str, list[Cost]] = {name: [] for name in counts}
    with crowd(functools.partial(Writing, url), CLIENTS) as clients:
        clients.run(CLIENTS, WINDOW_S / 2)
        for _ in range(max(2, bench.options.rounds // 2)):
            for name, count in counts.items():
                started, spent, of_clients, loops = time.perf_counter(), processor_s(), _of_clients(), loops_s()
                done = len(clients.run(count, WINDOW_S))
                rates[name].append(done / (time.perf_counter() - started))
                of_clients = _of_clients() - of_clients
                of_loop = max(ran - loops.get(pid, 0.0) for pid, ran in loops_s().items())
                of_members = processor_s() - spent - of_clients
                costs[name].append(Cost(*(each / done * 1e3 for each in (of_clients, of_members, of_loop))))
    for name, each in costs.items():
        least = Cost(*(min(column) for column in zip(*each, strict=True)))
        bench.notes.append(
            f"{name}, least processor ms of a statement: client {least.client:.2f}, members {least.members:.2f}, "
            f"the busiest loop {least.loop:.2f} of it"
        )
    few, many = counts
    bench.notes.append(_ceiling(many, costs[many], statistics.median(rates[few])))
    return rates


class Cost(NamedTuple):
    """Processor ms of a statement; `loop` is the busiest member's, and part of `members`."""

    client: float
    members: float
    loop: float


def _ceiling(name: str, costs: list[Cost], of_one: float) -> str:
    """What such code cannot exceed, however well it shares the cores: these are full, or the loop's one core is."""
    cores = os.cpu_count() or 1
    by_cores = cores / min(each.client + each.members for each in costs) * 1e3
    by_loop = 1e3 / min(each.loop for each in costs)
    return (
        f"{name}: {cores} cores are full at {by_cores:.0f} statements/s, the loop at {by_loop:.0f}: "
        f"at most {min(by_cores, by_loop) / of_one:.2f} x one client's {of_one:.0f}"
    )


def _of_clients() -> float:
    """The seconds of processor time of the crowd's processes."""
    return sum(spent_by(each.pid) for each in multiprocessing.active_children() if each.pid is not None)

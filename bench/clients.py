"""Many clients of short queries at one site: queries a second and their p99, beside the same through Spark Connect.

Clients are threads, each with a connection (a Spark Connect session) of its own, in as many processes as there are
cores: in one process all clients would wait for one interpreter, and more processes than cores add nothing but starts.
Both sides have the same, and the same Spark settings; they take turns, the other side idle meanwhile.
"""

from __future__ import annotations

import math
import multiprocessing
import os
import statistics
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from multiprocessing.connection import Connection

from bench.frame import SKERRY, Bar, Options, Report, Samples, one_site, ratio, tpch_files
from bench.servers import connect_server
from bench.sides import ConnectSide, Folders, MakeSide, Side, SkerrySide

CONNECT = "Spark Connect"
TEXTS = (
    "SELECT count(*) AS n FROM region",
    "SELECT n_regionkey, count(*) AS n FROM nation GROUP BY n_regionkey",
    "SELECT * FROM nation WHERE n_nationkey = 7",
    "SELECT r_name, count(*) AS n FROM nation JOIN region ON n_regionkey = r_regionkey GROUP BY r_name",
    "SELECT s_suppkey, s_name FROM supplier WHERE s_nationkey = 3 ORDER BY s_acctbal DESC, s_suppkey LIMIT 10",
)
TABLES = ("region", "nation", "supplier")
ROWS = (1, 5, 1, 5, 10)
COUNTS = (1, 8, 32)
BOUND = 2.5

WARM_UP_S = 20.0
WINDOW_S = {1: 10.0, 8: 5.0, 32: 5.0}  # one client alone asks little: more time for the same certainty
START_S = 300.0


class Crowd:
    """The clients of one side, in their processes."""

    def __init__(self, pipes: Sequence[Connection]) -> None:
        self._pipes = pipes

    def run(self, clients: int, work_s: float) -> list[float]:
        """Seconds of each query that so many clients began within `work_s`."""
        shares = [clients // len(self._pipes) + (n < clients % len(self._pipes)) for n in range(len(self._pipes))]
        for pipe, share in zip(self._pipes, shares, strict=True):
            pipe.send((share, work_s))
        return [taken for pipe in self._pipes for taken in _answer(pipe, work_s + START_S)]

    def ready(self) -> None:
        for pipe in self._pipes:
            _answer(pipe, START_S)


def _answer(pipe: Connection, wait_s: float) -> list[float]:
    if not pipe.poll(wait_s):
        raise TimeoutError(f"the clients said nothing for {wait_s:.0f} s")
    answer = pipe.recv()
    if isinstance(answer, str):
        raise RuntimeError(f"a client failed: {answer}")
    taken: list[float] = answer
    return taken


def serve(make: MakeSide, address: str, folders: Folders, clients: int, pipe: Connection) -> None:
    """A process of clients: (how many, seconds) comes in, the seconds of every query go out; None ends it."""
    try:
        sides = [make(address, folders) for _ in range(clients)]
        pipe.send([])
        while (asked := pipe.recv()) is not None:
            count, work_s = asked
            pipe.send(_together(sides[:count], work_s))
        for side in sides:
            side.close()
    except Exception as error:
        pipe.send(f"{type(error).__name__}: {error}")


def _together(sides: Sequence[Side], work_s: float) -> list[float]:
    taken: list[float] = []
    errors: list[BaseException] = []

    def work(number: int, side: Side) -> None:
        try:
            until = time.perf_counter() + work_s
            while (started := time.perf_counter()) < until:
                which = number % len(TEXTS)
                rows = side.fetch(TEXTS[which])
                if rows != ROWS[which]:
                    raise AssertionError(f"{rows} rows, not {ROWS[which]}: {TEXTS[which]}")
                taken.append(time.perf_counter() - started)
                number += 1
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number, side)) for number, side in enumerate(sides)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return taken


@contextmanager
def crowd(make: MakeSide, address: str, folders: Folders) -> Iterator[Crowd]:
    context = multiprocessing.get_context("spawn")
    count = min(os.cpu_count() or 1, max(COUNTS))
    ends = [context.Pipe() for _ in range(count)]
    each = math.ceil(max(COUNTS) / count)
    processes = [
        context.Process(target=serve, args=(make, address, dict(folders), each, theirs), daemon=True)
        for _, theirs in ends
    ]
    for process in processes:
        process.start()
    try:
        made = Crowd([ours for ours, _ in ends])
        made.ready()
        yield made
    finally:
        for process, (ours, _) in zip(processes, ends, strict=True):
            if process.is_alive():
                ours.send(None)
            process.join(START_S)
            process.kill()


def run(options: Options) -> Report:
    folders = {table: str(tpch_files(options.scale)[table]) for table in TABLES}
    rates: Samples = {_case(count): {SKERRY: [], CONNECT: []} for count in COUNTS}
    waits: Samples = {_case(count): {SKERRY: [], CONNECT: []} for count in COUNTS}
    with one_site(options) as site, connect_server(options) as server, ExitStack() as stack:
        crowds = {
            SKERRY: stack.enter_context(crowd(SkerrySide, site.address, folders)),
            CONNECT: stack.enter_context(crowd(ConnectSide, server.address, folders)),
        }
        for each in crowds.values():
            each.run(8, WARM_UP_S)
        for number in range(options.rounds):
            for count in COUNTS:
                for name in list(crowds) if number % 2 == 0 else reversed(list(crowds)):
                    started = time.perf_counter()
                    taken = crowds[name].run(count, WINDOW_S[count])
                    rates[_case(count)][name].append(len(taken) / (time.perf_counter() - started))
                    waits[_case(count)][name] += taken
    return Report(
        "clients",
        f"{len(TEXTS)} short queries in turn at one site, TPC-H scale {options.scale:g}",
        "queries/s",
        rates,
        [Bar(f"rate_{count}", ratio(rates[_case(count)], SKERRY, CONNECT), BOUND, at_most=False) for count in COUNTS],
        options,
        [
            f"p99 with {case}: "
            + ", ".join(
                f"{name} {_p99(many):.3f} s (median {statistics.median(many):.3f})" for name, many in by.items()
            )
            for case, by in waits.items()
        ],
    )


def _case(count: int) -> str:
    return "1 client" if count == 1 else f"{count} clients"


def _p99(many: list[float]) -> float:
    return statistics.quantiles(many, n=100, method="inclusive")[98]

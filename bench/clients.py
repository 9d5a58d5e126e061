"""Many clients of short queries at one site: queries a second and their p99, beside the same through Spark Connect.

Both sides have the same clients (`crowd`) and the same Spark settings; they take turns, the other side idle meanwhile.
"""

from __future__ import annotations

import functools
import statistics
import time
from contextlib import ExitStack

from bench.crowd import crowd
from bench.frame import SKERRY, Bar, Options, Report, Samples, one_site, ratio, tpch_files
from bench.servers import connect_server
from bench.sides import ConnectSide, Folders, MakeSide, SkerrySide

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


class Asking:
    """A client that asks one text after the other."""

    def __init__(self, make: MakeSide, address: str, folders: Folders, _number: int) -> None:
        self._side = make(address, folders)

    def work(self, number: int) -> None:
        which = number % len(TEXTS)
        rows = self._side.fetch(TEXTS[which])
        if rows != ROWS[which]:
            raise AssertionError(f"{rows} rows, not {ROWS[which]}: {TEXTS[which]}")

    def close(self) -> None:
        self._side.close()


def run(options: Options) -> Report:
    folders = {table: str(tpch_files(options.scale)[table]) for table in TABLES}
    rates: Samples = {_case(count): {SKERRY: [], CONNECT: []} for count in COUNTS}
    waits: Samples = {_case(count): {SKERRY: [], CONNECT: []} for count in COUNTS}
    with one_site(options) as site, connect_server(options) as server, ExitStack() as stack:
        crowds = {
            name: stack.enter_context(crowd(functools.partial(Asking, make, address, folders), max(COUNTS)))
            for name, make, address in ((SKERRY, SkerrySide, site.address), (CONNECT, ConnectSide, server.address))
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

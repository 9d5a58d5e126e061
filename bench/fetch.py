"""How fast a whole table reaches a Python client: Skerry on Spark and on Sail, toArrow(), Spark Connect, Thrift.

All in one run and on the same files, in turns: never two of them at once.
"""

from __future__ import annotations

import importlib.util
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial

import skerry
from bench.frame import (
    BARE,
    SKERRY,
    Bar,
    Options,
    Report,
    Skipped,
    interleaved,
    one_site,
    ratio,
    sail_site,
    tpch_files,
)
from bench.servers import connect_server, thrift_server
from bench.sides import Client, ConnectSide, Side, SkerrySide, ThriftSide, client_process

TABLE = "orders"
TEXT = f"SELECT * FROM {TABLE}"
SAIL, CONNECT, THRIFT = "Skerry on Sail", "Spark Connect", "Thrift"

NO_IMPYLA = "impyla is not installed (pip install impyla)"

# name, series, its base, bound
BARS = (
    ("ratio", SKERRY, BARE, 0.85),
    ("connect", SKERRY, CONNECT, 0.9),
    ("thrift", SKERRY, THRIFT, 5.0),
    ("sail", SAIL, CONNECT, 5.0),
)


def run(options: Options) -> Report:
    """All of `orders`, in megabytes of Arrow a second; and the seconds until its first row."""
    folders = {TABLE: str(tpch_files(options.scale)[TABLE])}
    missing: dict[str, str] = {}
    with one_site(options) as site, ExitStack() as stack:
        bare = site.session.sql(TEXT).toArrow()
        size_mb, rows = bare.nbytes / 1e6, bare.num_rows
        del bare
        clients = {SKERRY: stack.enter_context(client_process(SkerrySide, site.address, folders))}
        for name, start in _others(options, folders).items():
            try:
                clients[name] = stack.enter_context(start())
            except (ImportError, RuntimeError, TimeoutError, OSError) as error:
                missing[name] = str(error).strip().splitlines()[-1]
        for name, client in clients.items():
            if client.fetch(TEXT) != rows:
                raise AssertionError(f"{name}: not the {rows} rows that Spark has")
        works: dict[str, Callable[[], object]] = {BARE: lambda: site.session.sql(TEXT).toArrow()}
        works |= {name: partial(client.fetch, TEXT) for name, client in clients.items()}
        taken = interleaved(works, options.rounds, {THRIFT: 1})
        firsts = interleaved({name: partial(each.first, TEXT) for name, each in clients.items()}, options.rounds, 1)
        inside = _inside(site.url)
    speeds = {name: [size_mb / seconds for seconds in many] for name, many in taken.items()}
    return Report(
        "fetch",
        f"{TEXT}, {size_mb:.0f} MB of Arrow, TPC-H scale {options.scale:g}",
        "MB/s",
        {TABLE: speeds},
        [
            Bar(bar, ratio(speeds, series, base), bound, at_most=False)
            for bar, series, base, bound in BARS
            if series in speeds and base in speeds
        ],
        options,
        [
            "seconds to the first row: "
            + ", ".join(f"{name} {statistics.median(many):.2f}" for name, many in firsts.items()),
            f"with the client inside the member's process: {size_mb / inside:.0f} MB/s",
        ],
        [
            Skipped(bar, missing.get(series) or missing[base])
            for bar, series, base, _ in BARS
            if series not in speeds or base not in speeds
        ],
    )


def _others(options: Options, folders: dict[str, str]) -> dict[str, Callable[[], AbstractContextManager[Client]]]:
    """What starts each of the other sides; the clients of the servers end before their servers."""

    @contextmanager
    def connect() -> Iterator[Client]:
        with connect_server(options) as server, _client(ConnectSide, server.address) as client:
            yield client

    @contextmanager
    def thrift() -> Iterator[Client]:
        if importlib.util.find_spec("impala") is None:
            raise ImportError(NO_IMPYLA)
        with thrift_server(options) as server, _client(ThriftSide, server.address) as client:
            yield client

    @contextmanager
    def sail() -> Iterator[Client]:
        with sail_site(options) as address, _client(SkerrySide, address) as client:
            yield client

    def _client(make: type[Side], address: str) -> AbstractContextManager[Client]:
        return client_process(make, address, folders)

    return {SAIL: sail, CONNECT: connect, THRIFT: thrift}


def _inside(url: str) -> float:
    """Seconds with a client in this process; told beside, not judged."""
    with skerry.connect(url) as connection, connection.cursor() as cursor:
        started = time.perf_counter()
        cursor.execute(TEXT).fetch_arrow_table()
        return time.perf_counter() - started

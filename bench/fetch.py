"""How fast a whole table reaches a Python client as Arrow, beside toArrow() in the same Spark.

The client is a process of its own, as users have it: in the member's process the two would share one interpreter.
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection

import skerry
from bench.frame import BARE, SKERRY, Bar, Options, Report, interleaved, one_site, ratio

TEXT = "SELECT * FROM orders"
BOUND = 0.85
START_S = 60.0
FETCH_S = 600.0


class Client:
    """Another process that fetches the table whenever it is asked."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe

    def fetch(self) -> int:
        """Rows of the table, once all of them arrived."""
        self._pipe.send(TEXT)
        return self._answer(FETCH_S)

    def ready(self) -> None:
        self._answer(START_S)

    def _answer(self, wait_s: float) -> int:
        if not self._pipe.poll(wait_s):
            raise TimeoutError(f"the client said nothing for {wait_s:.0f} s")
        answer = self._pipe.recv()
        if isinstance(answer, str):
            raise RuntimeError(f"the client failed: {answer}")
        rows: int = answer
        return rows


def serve(url: str, pipe: Connection) -> None:
    """The client's process: a text comes in, the number of rows goes out; None ends it."""
    try:
        with skerry.connect(url) as connection, connection.cursor() as cursor:
            pipe.send(0)
            while (text := pipe.recv()) is not None:
                pipe.send(cursor.execute(text).fetch_arrow_table().num_rows)
    except Exception as error:
        pipe.send(f"{type(error).__name__}: {error}")


@contextmanager
def client_process(url: str) -> Iterator[Client]:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=serve, args=(url, theirs), daemon=True)
    process.start()
    client = Client(ours)
    try:
        client.ready()
        yield client
    finally:
        if process.is_alive():
            ours.send(None)
        process.join(START_S)
        process.kill()


def run(options: Options) -> Report:
    """All of `orders`, in megabytes of Arrow a second."""
    with one_site(options) as site, client_process(site.url) as client:
        bare = site.session.sql(TEXT).toArrow()
        size_mb, rows = bare.nbytes / 1e6, bare.num_rows
        del bare
        if client.fetch() != rows:
            raise AssertionError(f"the client did not get the {rows} rows that Spark has")
        taken = interleaved({BARE: lambda: site.session.sql(TEXT).toArrow(), SKERRY: client.fetch}, options.rounds)
        inside = _inside(site.url)
    speeds = {name: [size_mb / seconds for seconds in many] for name, many in taken.items()}
    return Report(
        "fetch",
        f"SELECT * FROM orders, {size_mb:.0f} MB of Arrow, TPC-H scale {options.scale:g}",
        "MB/s",
        {"orders": speeds},
        [Bar("ratio", ratio(speeds), BOUND, at_most=False)],
        options,
        [f"with the client inside the member's process: {size_mb / inside:.0f} MB/s"],
    )


def _inside(url: str) -> float:
    """Seconds with a client in this process; told beside, not judged."""
    with skerry.connect(url) as connection, connection.cursor() as cursor:
        started = time.perf_counter()
        cursor.execute(TEXT).fetch_arrow_table()
        return time.perf_counter() - started

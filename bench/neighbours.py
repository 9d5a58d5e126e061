"""What small queries feel of a client beside them: one that asked for a large table and stopped reading it, on Spark;
one that sends the worst statements that it can think of, on Sail.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import skerry
from bench.frame import Bar, Options, Report, Samples, Site, one_site, ratio, sail_site, seconds
from skerry.client.dbapi import Connection

LARGE = "SELECT * FROM lineitem"
SMALL = "SELECT n_regionkey, count(*) AS n FROM nation GROUP BY n_regionkey"
BOUND = 3.0

ALONE, BESIDE = "alone", "beside"
QUERIES = 3  # times the rounds
WARM_UPS = 20  # a small query's time falls for longer than a large one's

# With so little room the large query's tasks have to wait for the reader, and hold Spark's slots meanwhile.
LITTLE_ROOM = {"spool_memory_bytes": 8 * 2**20, "spool_disk_bytes": 32 * 2**20}
STILL_S = 2.0
STALL_S = 60.0

# By themselves these take minutes. Each is sent again as soon as it ends.
WORST = {
    "collect": "SELECT l_shipmode, collect_list(l_comment), collect_list(l_orderkey) FROM lineitem GROUP BY l_shipmode",
    "literals": f"SELECT count(*) FROM lineitem WHERE l_comment <> '{'x' * 900_000}'",
    "planning": " ".join(
        ["SELECT 1 FROM nation AS t0"]
        + [f"JOIN nation AS t{n} ON t{n}.n_nationkey = t{n - 1}.n_nationkey" for n in range(1, 1500)]
    ),
    # The last, for Sail works on for a while at what was cancelled.
    "cross join": "SELECT count(*) FROM lineitem AS a, lineitem AS b WHERE a.l_comment < b.l_comment",
}
SENDERS = 1


def run(options: Options) -> Report:
    """Once with room to spool the large result, once without."""
    samples: Samples = {
        "spooled": _measure(options, {}),
        "stalled": _measure(options, LITTLE_ROOM),
        **_measure_worst(options),
    }
    return Report(
        "neighbours",
        f"small queries beside a client that stopped reading, TPC-H scale {options.scale:g}",
        "seconds",
        samples,
        [Bar(case, ratio(taken, BESIDE, ALONE), BOUND) for case, taken in samples.items()],
        options,
        [
            "spooled: measured from the moment the client stops; stalled: once nothing moves any more",
            f"on Sail: {', '.join(WORST)}, each sent by {SENDERS} connections of the same host without a pause",
        ],
    )


def _measure(options: Options, limits: dict[str, int]) -> dict[str, list[float]]:
    with one_site(options, limits) as site, site.cluster.connect("oslo") as connection, connection.cursor() as cursor:

        def small() -> None:
            rows = cursor.execute(SMALL).fetchall()
            if sum(row[1] for row in rows) != 25:
                raise AssertionError(f"nation has 25 rows, the groups say {rows}")

        count = QUERIES * options.rounds
        for _ in range(WARM_UPS):
            small()
        alone = [seconds(small) for _ in range(count)]
        beside = _beside(site, small, count, wait_until_still=bool(limits))
        # Spark grows quicker with every query: alone is measured on both sides, or `beside` would look too good.
        alone += [seconds(small) for _ in range(count)]
    return {ALONE: alone, BESIDE: beside}


def _measure_worst(options: Options) -> Samples:
    """Small queries alone and beside each of the worst, on one member."""
    samples: Samples = {}
    with sail_site(options) as address, skerry.connect(f"skerry://{address}") as connection:
        cursor = connection.cursor()

        def small() -> None:
            cursor.execute(SMALL).fetchall()

        count = QUERIES * options.rounds
        for _ in range(WARM_UPS):
            small()
        for case, worst in WORST.items():
            alone = [seconds(small) for _ in range(count)]
            with _sent(address, worst):
                beside = [seconds(small) for _ in range(count)]
            samples[case] = {ALONE: alone, BESIDE: beside}
    return samples


@contextmanager
def _sent(address: str, sql: str) -> Iterator[None]:
    """Connections that send a statement again and again, until the body ends."""
    ends = threading.Event()
    connections = [skerry.connect(f"skerry://{address}") for _ in range(SENDERS)]

    def send(connection: Connection) -> None:
        cursor = connection.cursor()
        while not ends.is_set():
            try:
                cursor.execute(sql).fetchall()
            except skerry.Error:
                ends.wait(0.05)  # it was refused, or is over

    senders = [threading.Thread(target=send, args=(connection,), daemon=True) for connection in connections]
    for sender in senders:
        sender.start()
    time.sleep(STILL_S)
    try:
        yield
    finally:
        ends.set()
        for connection, sender in zip(connections, senders, strict=True):
            connection.close()
            sender.join(STALL_S)


def _beside(site: Site, small: Any, count: int, wait_until_still: bool) -> list[float]:
    with site.cluster.connect("oslo") as connection, connection.cursor() as cursor:
        cursor.execute(LARGE)
        if cursor.fetchone() is None:
            raise AssertionError("lineitem is empty")
        if wait_until_still:
            _until_still(cursor)
        return [seconds(small) for _ in range(count)]


def _until_still(cursor: Any) -> None:
    """Returns once the large query's rows have stopped growing."""
    seen, since, give_up = -1, time.monotonic(), time.monotonic() + STALL_S
    while time.monotonic() - since < STILL_S:
        if time.monotonic() > give_up:
            raise TimeoutError(f"lineitem still moves after {STALL_S:.0f} s")
        rows = sum(fragment.rows for fragment in cursor.status().fragments)
        if rows != seen:
            seen, since = rows, time.monotonic()
        time.sleep(0.1)

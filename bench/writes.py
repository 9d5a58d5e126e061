"""Tables of our own, written end to end: a client, members as processes on Sail, beside delta-rs and plain SQLite.

All sides write to the same disk and take turns. SQLite (WAL, FULL) is what durability costs at least; delta-rs never
calls fsync. Every count is looked at: a benchmark of writes that were lost would be quick.
"""

from __future__ import annotations

import itertools
import os
import sqlite3
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import yaml
from rich.console import Console

import skerry
from bench.frame import SKERRY, Bar, Options, Report, Samples, interleaved, ratio
from skerry.cli.processes import Members
from skerry.cli.screen import Screen
from skerry.cli.secret import ensure_secret
from skerry.config import load
from skerry.model.limits import FLUSH_ROWS
from skerry.testing.ports import free_ports

SITES = ("oslo", "bergen")
DELTA, SQLITE, TWO, FLUSHED, OVERLAID = "delta-rs", "sqlite, WAL, FULL", "two members", "flushed", "overlaid"
ROWS = 20  # one-row statements a round
UPSERT = 1000
KEPT = 100_000  # rows of a table that is read, or written to
LOADED = 1_000_000
PARTITIONS = 16
CLIENTS = 32
WINDOW_S = 4.0
COLUMNS = "(k BIGINT, a INT, b DOUBLE, c STRING, d DATE, e DECIMAL(12,2)) PRIMARY KEY (k) DISTRIBUTED BY (k)"
SCHEMA = pa.schema(
    [
        ("k", pa.int64()),
        ("a", pa.int32()),
        ("b", pa.float64()),
        ("c", pa.string()),
        ("d", pa.date32()),
        ("e", pa.decimal128(12, 2)),
    ]
)
INSERT = "INSERT INTO {} VALUES (?, ?, ?, ?, DATE'2024-02-29', 1.25)"
SCAN = "SELECT count(*) AS n, sum(a) AS a, max(c) AS c FROM {}"


def rows_of(keys: range) -> pa.Table:
    count = len(keys)
    columns: list[Any] = [
        pa.array(keys, pa.int64()),
        pa.array([key % 1000 for key in keys], pa.int32()),
        pa.array([key / 7 for key in keys]),
        pa.array([f"text {key}" for key in keys]),
        pa.array([19000] * count, pa.int32()).cast(pa.date32()),
        pa.array([125] * count, pa.int32()).cast(pa.decimal128(12, 2)),
    ]
    return pa.Table.from_arrays(columns, schema=SCHEMA)


@contextmanager
def members(folder: Path) -> Iterator[str]:
    """Two members with a folder for their tables. Answers the URL of the first."""
    ports = free_ports(len(SITES))
    sites = {
        site: {"address": f"127.0.0.1:{port}", "spark": {"sail": True}, "tables": {}}
        for site, port in zip(SITES, ports, strict=True)
    }
    file = folder / "skerry.yaml"
    text = {"cluster": "writes", "data_root": str(folder), "members": sites, "state": str(folder / "state")}
    file.write_text(yaml.safe_dump(text, sort_keys=False), encoding="utf-8")
    config = load(file)
    ensure_secret(config, all_start_here=True)
    with Members(file, config, Screen(SITES, out=Console(quiet=True)), log_dir=folder) as running:
        running.wait_ready()
        yield f"skerry://{config.member(SITES[0]).address}"


class Skerry:
    """`keys` are new ones for ever."""

    def __init__(self, url: str, keys: Iterator[int]) -> None:
        self._connection = skerry.connect(url)
        self._cursor = self._connection.cursor()
        self._keys = keys

    def define(self, name: str, members: str) -> None:
        self._cursor.execute(f"CREATE TABLE {name} {COLUMNS} IN ({members})")

    def insert(self, name: str) -> None:
        key = next(self._keys)
        self._check(self._cursor.execute(INSERT.format(name), [key, key % 1000, key / 7, f"text {key}"]).rowcount, 1)

    def insert_two(self, name: str, pairs: Iterator[tuple[int, int]]) -> None:
        """Two rows, one at each member."""
        values = ", ".join(f"({key}, 1, 0.5D, 'text', DATE'2024-02-29', 1.25)" for key in next(pairs))
        self._check(self._cursor.execute(f"INSERT INTO {name} VALUES {values}").rowcount, 2)

    def upsert(self, name: str, keys: range) -> None:
        values = [(key, key % 1000, key / 7, f"text {key}") for key in keys]
        cursor = self._cursor.executemany(f"{INSERT.format(name)} ON CONFLICT DO REPLACE", values)
        self._check(cursor.rowcount, len(keys))

    def update(self, name: str, key: int) -> None:
        self._check(self._cursor.execute(f"UPDATE {name} SET a = 7, c = 'new' WHERE k = ?", [key]).rowcount, 1)

    def fill(self, name: str, keys: range) -> None:
        for first in range(keys.start, keys.stop, UPSERT * 4):
            self.upsert(name, range(first, min(first + UPSERT * 4, keys.stop)))
        self.flush(name)

    def load(self, name: str, rows: pa.Table) -> None:
        self._check(self._cursor.load(name, rows).rowcount, rows.num_rows)

    def flush(self, name: str) -> None:
        self._cursor.execute(f"FLUSH TABLE {name}")

    def scan(self, name: str, rows: int) -> None:
        self._check(self._cursor.execute(SCAN.format(name)).fetchall()[0][0], rows)

    def close(self) -> None:
        self._connection.close()

    @staticmethod
    def _check(found: int, expected: int) -> None:
        if found != expected:
            raise AssertionError(f"{found} rows, not {expected}")


class Sqlite:
    def __init__(self, path: str, keys: Iterator[int]) -> None:
        self._plain = sqlite3.connect(path, isolation_level=None)
        for pragma in ("journal_mode = WAL", "synchronous = FULL"):
            self._plain.execute(f"PRAGMA {pragma}")
        self._plain.execute("CREATE TABLE t (k INTEGER PRIMARY KEY, a, b, c, d, e)")
        self._keys = keys

    def insert(self) -> None:
        key = next(self._keys)
        self._plain.execute("INSERT INTO t VALUES (?, ?, ?, ?, ?, ?)", (key, 1, key / 7, f"text {key}", 19000, "1.25"))

    def close(self) -> None:
        self._plain.close()


class Delta:
    """Two tables: one that is appended to, one of as many rows as Skerry's that is merged into."""

    def __init__(self, folder: Path, keys: Iterator[int]) -> None:
        self._appended, self._merged = str(folder / "appended"), str(folder / "merged")
        self._keys = keys
        deltalake.write_deltalake(self._appended, rows_of(range(1)))
        deltalake.write_deltalake(self._merged, rows_of(range(KEPT)))

    def append(self) -> None:
        key = next(self._keys)
        deltalake.write_deltalake(self._appended, rows_of(range(key, key + 1)), mode="append")

    def merge(self, keys: range) -> None:
        table = deltalake.DeltaTable(self._merged)
        merge = table.merge(rows_of(keys), "t.k = s.k", source_alias="s", target_alias="t")
        merge.when_matched_update_all().when_not_matched_insert_all().execute()

    def load(self, turn: int, rows: pa.Table) -> None:
        path = f"{self._appended}{turn}"
        deltalake.write_deltalake(path, rows, partition_by=["part"])
        if deltalake.DeltaTable(path).count() != rows.num_rows:
            raise AssertionError("rows are missing")


def run(options: Options) -> Report:
    keys = itertools.count(10**9)
    with tempfile.TemporaryDirectory(prefix="bench-writes") as scratch, members(Path(scratch)) as url:
        ours, plain = Skerry(url, keys), Sqlite(os.path.join(scratch, "plain.sqlite"), keys)
        delta = Delta(Path(scratch), keys)
        try:
            return _measured(options, url, ours, plain, delta)
        finally:
            ours.close()
            plain.close()


def _measured(options: Options, url: str, ours: Skerry, plain: Sqlite, delta: Delta) -> Report:
    ours.define("one", SITES[0])
    ours.define("two", ", ".join(SITES))
    samples: Samples = {}
    works: dict[str, Callable[[], None]] = {
        SKERRY: lambda: ours.insert("one"),
        DELTA: delta.append,
        SQLITE: plain.insert,
    }
    samples["one row"] = interleaved(works, options.rounds * ROWS)

    pairs = _pairs(ours)
    works = {SKERRY: lambda: ours.insert("one"), TWO: lambda: ours.insert_two("two", pairs)}
    samples["two members"] = interleaved(works, options.rounds * ROWS)

    ours.fill("one", range(KEPT))
    starts = itertools.cycle(range(0, KEPT, UPSERT * 7))
    works = {
        SKERRY: lambda: ours.upsert("one", _block(next(starts))),
        DELTA: lambda: delta.merge(_block(next(starts))),
    }
    samples[f"upsert of {UPSERT}"] = interleaved(works, options.rounds)

    samples["scan"] = _scans(options, ours)
    loads = samples[f"load of {LOADED}, processor time"] = _loads(options, ours, delta)
    rates = _rates(options, url)
    samples["statements/s"] = rates
    bars = [
        Bar("insert_delta", ratio(samples["one row"], SKERRY, DELTA), 0.5),
        Bar("insert_sqlite", ratio(samples["one row"], SKERRY, SQLITE), 6.0),
        Bar("upsert", ratio(samples[f"upsert of {UPSERT}"], DELTA, SKERRY), 20.0, at_most=False),
        Bar("scan", ratio(samples["scan"], OVERLAID, FLUSHED), 1.7),
        Bar("two_members", ratio(samples["two members"], TWO, SKERRY), 2.5),
        Bar("bulk", min(loads[DELTA]) / min(loads[SKERRY]), 1.0, at_most=False),
        Bar("clients", ratio(rates, f"{CLIENTS} clients", "1 client"), 4.0, at_most=False),
    ]
    notes = [f"processes of two members, one client; {KEPT} rows where a table is read or merged into"]
    return Report("writes", "Writes to tables of our own", "seconds", samples, bars, options, notes)


def _block(first: int) -> range:
    return range(first, min(first + UPSERT, KEPT))


def _pairs(ours: Skerry) -> Iterator[tuple[int, int]]:
    """Keys of which one is at each member, for ever: found by where a table of both would put them."""
    from skerry.tables.bucket import buckets_of

    numbers = itertools.count(2 * 10**9)
    while True:
        some = list(itertools.islice(numbers, 512))
        buckets = buckets_of([pa.array(some, pa.int64())], 16384)
        low = [key for key, bucket in zip(some, buckets.tolist(), strict=True) if bucket < 8192]
        high = [key for key, bucket in zip(some, buckets.tolist(), strict=True) if bucket >= 8192]
        yield from zip(low, high, strict=False)


def _scans(options: Options, ours: Skerry) -> dict[str, list[float]]:
    """The same rows in files, and with the last of them still in memory."""
    for name in (FLUSHED, OVERLAID):
        ours.define(name, SITES[0])
        ours.fill(name, range(KEPT))
    touched = FLUSH_ROWS - UPSERT  # one more, and they would be flushed
    for first in range(0, touched, UPSERT):
        ours.upsert(OVERLAID, range(first * 5, first * 5 + UPSERT))
    works = {name: (lambda name=name: ours.scan(name, KEPT)) for name in (FLUSHED, OVERLAID)}
    return interleaved(works, options.rounds)


def _loads(options: Options, ours: Skerry, delta: Delta) -> dict[str, list[float]]:
    """Seconds of processor time, of the client and all members, for rows that are new in a table that is new.

    Skerry makes as many files of so many rows as delta-rs gets partitions, and syncs them.
    """
    rows, spent = rows_of(range(LOADED)), dict[str, list[float]]({SKERRY: [], DELTA: []})
    parted = rows.append_column("part", pa.array([key % PARTITIONS for key in range(LOADED)], pa.int32()))
    for turn in range(max(3, options.rounds // 2)):
        ours.define(f"loaded{turn}", SITES[0])
        before = processor_s()
        ours.load(f"loaded{turn}", rows)
        between = processor_s()
        delta.load(turn, parted)
        spent[SKERRY].append(between - before)
        spent[DELTA].append(processor_s() - between)
    return spent


def processor_s() -> float:
    """Of this process and those that it started, until now."""
    pids, ticks = [os.getpid()], 0
    while pids:
        pid = pids.pop()
        try:
            fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
            for task in Path(f"/proc/{pid}/task").iterdir():
                pids += map(int, (task / "children").read_text(encoding="utf-8").split())
        except OSError:
            pass  # it has ended
    return ticks / os.sysconf("SC_CLK_TCK")


def _rates(options: Options, url: str) -> dict[str, list[float]]:
    """Statements a second of one client, and of many at once, each with a connection."""
    rates: dict[str, list[float]] = {"1 client": [], f"{CLIENTS} clients": []}
    keys = itertools.count(3 * 10**9)
    clients = [Skerry(url, keys) for _ in range(CLIENTS)]
    try:
        for _ in range(max(2, options.rounds // 2)):
            rates["1 client"].append(_rate(clients[:1]))
            rates[f"{CLIENTS} clients"].append(_rate(clients))
    finally:
        for client in clients:
            client.close()
    return rates


def _rate(clients: list[Skerry]) -> float:
    counts: list[int] = []
    errors: list[BaseException] = []
    until = time.perf_counter() + WINDOW_S

    def work(client: Skerry) -> None:
        done = 0
        try:
            while time.perf_counter() < until:
                client.insert("one")
                done += 1
        except BaseException as error:
            errors.append(error)
        counts.append(done)

    threads = [threading.Thread(target=work, args=(client,)) for client in clients]
    started = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return sum(counts) / (time.perf_counter() - started)

"""A member's tables on its disk: one-row commits beside plain SQLite, 32 at once, and a flush of 20,000 rows.

Without Spark and without other members: this is what is below them. Processor and wall time; least of all rounds.
"""

from __future__ import annotations

import asyncio
import functools
import os
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Callable

import numpy as np
import pyarrow as pa

from bench.frame import Options, Report
from skerry.model.commits import Committed, TransactionId
from skerry.model.ids import QueryId
from skerry.model.limits import FLUSH_ROWS
from skerry.model.sharded import OwnColumn, OwnTable
from skerry.tables.columns import arrow_schema
from skerry.tables.flushing import Flusher, open_shards
from skerry.tables.store import Store
from skerry.tables.writes import writes_of

MEMBER = "oslo"
COMMITS = 128
TOGETHER = 32
ROWS = 1_000_000
KINDS = {"k": "bigint", "a": "int", "b": "double", "c": "string", "d": "date", "e": "decimal(12,2)"}
TABLE = OwnTable(
    1, "t", 1, tuple(OwnColumn(name, kind, name != "k") for name, kind in KINDS.items()), ("k",), ("k",), (MEMBER,)
)
SQLITE, STORE, GATHERED, FLUSH = "sqlite, WAL, FULL", "store", f"store, {TOGETHER} at once", "flush"


def rows_of(keys: np.ndarray[tuple[int], np.dtype[np.int64]]) -> pa.RecordBatch:
    columns = {
        "k": pa.array(keys),
        "a": pa.array(keys % 1000).cast(pa.int32()),
        "b": pa.array(keys / 7),
        "c": pa.array([f"text {key}" for key in keys.tolist()]),
        "d": pa.array((keys % 20000).astype(np.int32)).cast(pa.date32()),
        "e": pa.array((keys % 10**9).astype(np.int32)).cast(pa.decimal128(12, 2)),
    }
    return pa.RecordBatch.from_pydict(columns, arrow_schema(TABLE))


class Disk:
    """One member's folder, and a plain SQLite beside it on the same disk."""

    def __init__(self, folder: str) -> None:
        self.store = Store(os.path.join(folder, "member"), MEMBER)
        self.store.put_table(TABLE).result()
        self.store.close()
        self.store = Store(os.path.join(folder, "member"), MEMBER)
        self.shard = open_shards(self.store, MEMBER).shards[1]
        self.flusher = Flusher(self.store, MEMBER)
        self.plain = sqlite3.connect(os.path.join(folder, "plain.sqlite"), isolation_level=None)
        self.plain.execute("PRAGMA journal_mode = WAL")
        self.plain.execute("PRAGMA synchronous = FULL")
        self.plain.execute("CREATE TABLE t (k INTEGER PRIMARY KEY, a, b, c, d, e)")
        self.plain.execute("CREATE TABLE ids (id TEXT PRIMARY KEY, time)")
        self.number = 0

    def record(self, keys: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Committed:
        self.number += 1
        writes = writes_of(TABLE, rows_of(keys))
        txn = TransactionId(QueryId(MEMBER, f"{self.number:032x}"))
        return Committed(txn, self.number, self.number, len(writes), tuple(writes))

    def apply(self, record: Committed) -> None:
        self.shard.apply(record.commit_ts, [(write.key, write.row) for write in record.writes])

    def sqlite_commits(self) -> None:
        for _ in range(COMMITS):
            self.number += 1
            self.plain.execute("BEGIN IMMEDIATE")
            self.plain.execute(
                "INSERT INTO t VALUES (?, ?, ?, ?, ?, ?)", (self.number, 1, 0.5, f"text {self.number}", 7, "1.00")
            )
            self.plain.execute("INSERT INTO ids VALUES (?, ?)", (f"{self.number:032x}", self.number))
            self.plain.execute("COMMIT")

    def store_commits(self, records: list[Committed], at_once: int = 1) -> None:
        """From a row's bytes to a row that is durable and can be read."""
        for first in range(0, len(records), at_once):
            some = records[first : first + at_once]
            waiting = [self.store.persist([record]) for record in some]
            for call, record in zip(waiting, some, strict=True):
                call.result()
                self.apply(record)

    def one_row_records(self) -> list[Committed]:
        return [self.record(np.array([10**9 + self.number])) for _ in range(COMMITS)]

    def flush(self) -> None:
        asyncio.run(self.flusher.flush(self.shard, self.number))

    def load(self) -> None:
        for first in range(0, ROWS, 100_000):
            self.apply(self.record(np.arange(first, first + 100_000)))
        self.flush()
        asyncio.run(self.flusher.trim(self.shard, self.number))

    def close(self) -> None:
        self.plain.close()
        self.store.close()


def timed(work: Callable[[], None], times: int) -> tuple[float, float]:
    """Milliseconds of one: wall and processor."""
    wall, processor = time.perf_counter(), time.process_time()
    work()
    return (time.perf_counter() - wall) * 1e3 / times, (time.process_time() - processor) * 1e3 / times


def run(options: Options) -> Report:
    folder = tempfile.mkdtemp(prefix="bench-store")
    disk = Disk(folder)
    samples: dict[str, dict[str, list[float]]] = {"wall": {}, "processor": {}}
    try:
        for _ in range(options.rounds):
            one, many = disk.one_row_records(), disk.one_row_records()
            _keep(samples, SQLITE, timed(disk.sqlite_commits, COMMITS))
            _keep(samples, STORE, timed(functools.partial(disk.store_commits, one), COMMITS))
            _keep(samples, GATHERED, timed(functools.partial(disk.store_commits, many, TOGETHER), COMMITS))
        disk.load()
        rng = np.random.default_rng(1)
        for _ in range(max(2, options.rounds // 2)):
            disk.apply(disk.record(rng.choice(ROWS, FLUSH_ROWS, replace=False)))
            _keep(samples, FLUSH, timed(disk.flush, 1))
            asyncio.run(disk.flusher.trim(disk.shard, disk.number))
        files = len(disk.shard.manifest.live)
    finally:
        disk.close()
        shutil.rmtree(folder, ignore_errors=True)
    least = {unit: {name: min(values) for name, values in series.items()} for unit, series in samples.items()}
    notes = [
        f"{unit}: one row {least[unit][STORE] / least[unit][SQLITE]:.2f} x sqlite, one of {TOGETHER} together"
        f" {least[unit][GATHERED] / least[unit][STORE]:.2f} x one alone;"
        f" flush of {FLUSH_ROWS} rows over {ROWS} in {files} files {least[unit][FLUSH]:.0f} ms"
        for unit in samples
    ]
    return Report("store", "A member's tables on its disk", "ms", samples, [], options, notes)


def _keep(samples: dict[str, dict[str, list[float]]], name: str, found: tuple[float, float]) -> None:
    for unit, value in zip(("wall", "processor"), found, strict=True):
        samples[unit].setdefault(name, []).append(value)

"""Who writes in the benchmark of writes: a client of two members, SQLite, delta-rs; and what all of them spend."""

from __future__ import annotations

import os
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pyarrow.compute as pc
import yaml
from rich.console import Console

import skerry
from skerry.cli.processes import Members
from skerry.cli.screen import Screen
from skerry.cli.secret import ensure_secret
from skerry.config import load
from skerry.testing.ports import free_ports

SITES = ("oslo", "bergen")
LARGE = 1_000_000  # rows of a table whose rows are replaced: one file of delta-rs'
IDLE_S, IDLE_SHARE, IDLE_WAIT_S = 1.0, 0.1, 60.0
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
ROW = "(?, ?, ?, ?, DATE'2024-02-29', 1.25)"
INSERT = f"INSERT INTO {{}} VALUES {ROW}"
UPDATE = "UPDATE {} SET a = 7, c = 'new' WHERE k = {}"
SCAN = "SELECT count(*) AS n, sum(a) AS a, max(c) AS c FROM {}"


def rows_of(keys: range) -> pa.Table:
    numbers = pa.array(keys, pa.int64())
    texts = pc.binary_join_element_wise("text", numbers.cast(pa.string()), " ")
    small = pc.subtract(numbers, pc.multiply(pc.divide(numbers, 1000), 1000))
    columns: list[Any] = [
        numbers,
        small.cast(pa.int32()),
        pc.divide(numbers.cast(pa.float64(), safe=False), 7.0),
        texts,
        pa.repeat(19000, len(keys)).cast(pa.int32()).cast(pa.date32()),
        pa.repeat(125, len(keys)).cast(pa.decimal128(19, 0)).cast(pa.decimal128(12, 2)),
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
        _wait_idle()
        yield f"skerry://{config.member(SITES[0]).address}"


def _wait_idle() -> None:
    """Until members and engines have warmed up: else that work counts as that of whoever is measured first."""
    until, before = time.perf_counter() + IDLE_WAIT_S, processor_s()
    while time.perf_counter() < until:
        time.sleep(IDLE_S)
        before, since = processor_s(), processor_s() - before
        if since <= IDLE_SHARE * IDLE_S:
            return


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
        values = [value for key in next(pairs) for value in (key, key % 1000, key / 7, f"text {key}")]
        self._check(self._cursor.execute(f"{INSERT.format(name)}, {ROW}", values).rowcount, 2)

    def upsert(self, name: str, keys: range) -> None:
        values = [(key, key % 1000, key / 7, f"text {key}") for key in keys]
        cursor = self._cursor.executemany(f"{INSERT.format(name)} ON CONFLICT DO REPLACE", values)
        self._check(cursor.rowcount, len(keys))

    def update(self, name: str, key: int) -> None:
        self._check(self._cursor.execute(UPDATE.format(name, "?"), [key]).rowcount, 1)

    def fill(self, name: str, keys: range) -> None:
        self.load(name, rows_of(keys))
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
    """Two tables: one that is appended to, one of as many rows as Skerry's, in one file, that is merged into."""

    def __init__(self, folder: Path, keys: Iterator[int]) -> None:
        self._appended, self._merged = str(folder / "appended"), str(folder / "merged")
        self._keys = keys
        deltalake.write_deltalake(self._appended, rows_of(range(1)))
        deltalake.write_deltalake(self._merged, rows_of(range(LARGE)))

    def append(self) -> None:
        key = next(self._keys)
        deltalake.write_deltalake(self._appended, rows_of(range(key, key + 1)), mode="append")

    def copy(self, folder: Path) -> str:
        """Of the large table, as it is."""
        shutil.copytree(self._merged, folder)
        return str(folder)

    def merge(self, keys: range) -> None:
        table = deltalake.DeltaTable(self._merged)
        merge = table.merge(rows_of(keys), "t.k = s.k", source_alias="s", target_alias="t")
        merge.when_matched_update_all().when_not_matched_insert_all().execute()

    def load(self, turn: int, rows: pa.Table) -> None:
        path = f"{self._appended}{turn}"
        deltalake.write_deltalake(path, rows, partition_by=["part"])
        if deltalake.DeltaTable(path).count() != rows.num_rows:
            raise AssertionError("rows are missing")


def processor_s() -> float:
    """Of this process and those that it started, until now, to the nanosecond: a tick of /proc is ten milliseconds."""
    return time.process_time() + _started_s()


def processor_s_of(work: Callable[[], object]) -> float:
    """What the work takes of them. To look at all threads takes milliseconds, which are not its own."""
    started, own = _started_s(), time.process_time()
    work()
    own = time.process_time() - own
    return own + _started_s() - started


def loops_s() -> dict[int, float]:
    """What the first thread of each process that was started has run: a member's loop."""
    ran: dict[int, float] = {}
    for pid in _started():
        with suppress(OSError):  # it has ended
            ran[pid] = int(Path(f"/proc/{pid}/task/{pid}/schedstat").read_text(encoding="utf-8").split()[0]) / 1e9
    return ran


def _started_s() -> float:
    return sum(spent_by(pid) for pid in _started())


def _started() -> Iterator[int]:
    """Processes that this one started, and those that they did."""
    pids = [os.getpid()]
    while pids:
        pid = pids.pop()
        if pid != os.getpid():
            yield pid
        with suppress(OSError):  # it has ended
            for task in Path(f"/proc/{pid}/task").iterdir():
                pids += map(int, (task / "children").read_text(encoding="utf-8").split())


def spent_by(pid: int) -> float:
    with suppress(OSError):  # it has ended
        return time.clock_gettime(~pid << 3 | 2)  # the clock of all its threads, as Linux numbers these
    return 0.0

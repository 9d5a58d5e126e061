"""Disks that are full, read-only or damaged under tables of our own: errors say it, nothing is lost, reads go on."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path

import pytest
import yaml

import skerry
from skerry.client.dbapi import Cursor
from skerry.model.ids import QueryId
from skerry.testing.points import VARIABLE
from skerry.testing.ports import free_ports
from tests.e2e.processes import CONNECT_S, START_S, Site
from tests.integration.member.member_sites import wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.sail, pytest.mark.timeout(1200)]

PAD = "x" * 2000
ROWS = 3  # of a statement, at both members
MAKE = "CREATE TABLE made PRIMARY KEY (id) DISTRIBUTED BY (id) AS SELECT id FROM range(5)"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 3 MB, where bergen's tables are."""
    folder = tmp_path / "state" / "_c.bergen.tables"
    folder.mkdir(mode=0o700, parents=True)
    mount = ["mount", "-t", "tmpfs", "-o", "size=3m,mode=0700", "tables", folder]
    if os.geteuid() or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("needs root: a small disk of its own is mounted for a member")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


class Cluster:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._temp = Path(tempfile.mkdtemp(prefix="d"))  # short: it holds sockets
        self._ports = dict(zip(("oslo", "bergen"), free_ports(2), strict=True))
        members = {
            name: {"address": f"127.0.0.1:{port}", "spark": {"sail": True}} for name, port in self._ports.items()
        }
        text = {"cluster": "c", "data_root": ".", "state": "state", "members": members, "limits": {"drain_s": 0.1}}
        self.file = folder / "skerry.yaml"
        self.file.write_text(yaml.safe_dump(text, sort_keys=False))
        self.sites: dict[str, Site] = {}

    def start(self, *names: str) -> None:
        for name in names:
            self.sites[name] = Site(self.file, name, self._folder, self._temp, self.chaos_of(name))
        for name in names:
            self.sites[name].wait_ready()

    def chaos_of(self, name: str) -> Path:
        """The file that says when it is killed."""
        return self._folder / f"{name}.chaos"

    def end(self, name: str, number: signal.Signals = signal.SIGTERM) -> None:
        self.sites.pop(name).end(number)

    def refuses_to_start(self, name: str) -> str:
        """Without a Spark, which would be started first."""
        command = [sys.executable, "-m", "tests.e2e.tables_member", self.file, name]
        env = {**os.environ, VARIABLE: str(self.chaos_of(name))}
        member = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=START_S, env=env
        )
        assert member.returncode != 0
        return member.stderr

    def stop(self) -> None:
        for site in self.sites.values():
            if site.process.poll() is None:
                site.end(signal.SIGKILL)
        shutil.rmtree(self._temp)

    def connect(self, name: str) -> skerry.Connection:
        return skerry.connect(f"skerry://127.0.0.1:{self._ports[name]}", timeout_s=CONNECT_S)


@contextmanager
def running(folder: Path) -> Iterator[Cluster]:
    cluster = Cluster(folder)
    try:
        cluster.start("oslo", "bergen")
        yield cluster
    finally:
        cluster.stop()


class Ledger:
    """Statements of rows at both members, and which of them were acknowledged."""

    def __init__(self, cursor: Cursor) -> None:
        self._cursor = cursor
        self._said = 0
        self.acknowledged: set[int] = set()
        create = "CREATE TABLE ledger (said INT, number INT, pad STRING) PRIMARY KEY (said, number)"
        cursor.execute(f"{create} DISTRIBUTED BY (number)")

    def write(self) -> None:
        self._said += 1
        values = [value for number in range(ROWS) for value in (self._said, number, PAD)]
        self._cursor.execute("INSERT INTO ledger VALUES (?, ?, ?), (?, ?, ?), (?, ?, ?)", values)
        self.acknowledged.add(self._said)

    def refusal(self) -> str:
        """The error of the first statement that is not carried out."""
        while True:
            try:
                self.write()
            except skerry.OutcomeUnknown:
                raise
            except skerry.OperationalError as refused:
                return refused.message

    def is_written(self) -> bool:
        with suppress(skerry.OperationalError):
            self.write()
            return True
        return False

    def check(self, cursor: Cursor) -> None:
        found = cursor.execute("SELECT said, count(*) FROM ledger GROUP BY said").fetchall()
        assert dict(found) == dict.fromkeys(self.acknowledged, ROWS)


def error_of(cursor: Cursor, sql: str) -> str:
    with pytest.raises(skerry.OperationalError) as refused:
        cursor.execute(sql).fetchall()
    return refused.value.message


def test_disks_that_fail(tmp_path: Path, small_disk: Path) -> None:
    with running(tmp_path) as cluster, ExitStack() as opened:
        cursor = opened.enter_context(cluster.connect("oslo")).cursor()
        ledger = Ledger(cursor)
        cursor.execute("CREATE TABLE here (k INT) PRIMARY KEY (k) DISTRIBUTED BY (k) IN (oslo)")
        cursor.execute("CREATE TABLE there (k INT) PRIMARY KEY (k) DISTRIBUTED BY (k) IN (bergen)")
        cursor.execute("INSERT INTO there VALUES (1)")
        ledger.write()
        cursor.execute("FLUSH TABLE ledger")
        ledger.write()
        made = _half_made(cluster, cursor)
        _unstartable(cluster, cursor, small_disk)
        _fill(small_disk)
        cluster.start("bergen")
        ledger.check(cursor)
        assert "no room on the disk" in ledger.refusal()
        _make_room(small_disk, ledger)
        with cluster.connect("bergen") as connection:  # its table is gone by now, or goes now, and is made again
            assert connection.cursor().execute(MAKE, query_id=made).rowcount == 5
        assert cursor.execute("SELECT count(*) FROM made").fetchall() == [(5,)]
        _full(cursor, ledger, small_disk)
        _damaged(cursor, ledger, small_disk)
        _foreign(cursor, ledger, small_disk)


def _half_made(cluster: Cluster, cursor: Cursor) -> QueryId:
    """CREATE TABLE … AS, whose member is killed when the table is made and has no rows yet."""
    cluster.chaos_of("bergen").write_text("table.made|kill|1")
    with cluster.connect("bergen") as connection, connection.cursor() as making:
        with pytest.raises(skerry.OutcomeUnknown):
            making.execute(MAKE)
        query = making.query_id
    cluster.end("bergen", signal.SIGKILL)
    assert "made" not in str(cursor.execute("SHOW TABLES").fetchall())
    return query


def _unstartable(cluster: Cluster, cursor: Cursor, disk: Path) -> None:
    subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
    assert "cannot be written" in (why := cluster.refuses_to_start("bergen")), why
    subprocess.run(["mount", "-o", "remount,rw", disk], check=True)
    file = disk / "tables.sqlite"
    with closing(sqlite3.connect(file)) as opened:  # all of it is in the file itself then
        opened.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    right = file.read_bytes()
    file.write_bytes(right[:100] + bytes(4000) + right[4100:])
    assert "tables.sqlite is damaged" in (why := cluster.refuses_to_start("bergen")), why
    assert "bergen" in error_of(cursor, "SELECT count(*) FROM ledger")
    assert cursor.execute("INSERT INTO here VALUES (1)").rowcount == 1
    assert cursor.execute("SELECT k FROM here").fetchall() == [(1,)]
    file.write_bytes(right)


def _fill(disk: Path) -> None:
    with (disk / "else").open("wb", buffering=0) as much, suppress(OSError):
        while True:
            much.write(bytes(4096))


def _make_room(disk: Path, ledger: Ledger) -> None:
    (disk / "else").unlink()
    wait_until(ledger.is_written, "there is room again", every_s=0.2)


def _full(cursor: Cursor, ledger: Ledger, disk: Path) -> None:
    _fill(disk)
    assert "site bergen: " in (why := ledger.refusal()), why
    assert "no room on the disk" in why
    ledger.check(cursor)
    assert "no room" in error_of(cursor, "INSERT INTO there VALUES (2)")
    assert cursor.execute("SELECT k FROM there").fetchall() == [(1,)]
    assert cursor.execute("INSERT INTO here VALUES (2)").rowcount == 1
    error_of(cursor, "FLUSH TABLE ledger")
    _make_room(disk, ledger)
    cursor.execute("FLUSH TABLE ledger")
    ledger.check(cursor)


def _damaged(cursor: Cursor, ledger: Ledger, disk: Path) -> None:
    files = [each for each in disk.glob("*/*.parquet") if each.stat().st_size > 1000]
    right = {file: file.read_bytes() for file in files}
    for file, content in right.items():
        file.write_bytes(content[:500] + bytes([content[500] ^ 1]) + content[501:])
    assert "is damaged: its bytes have changed" in (why := error_of(cursor, "SELECT count(*) FROM ledger")), why
    assert "bergen" in why
    assert "is damaged" in ledger.refusal()  # whether such keys are there cannot be known
    assert cursor.execute("INSERT INTO there VALUES (2)").rowcount == 1
    assert cursor.execute("SELECT k FROM there ORDER BY k").fetchall() == [(1,), (2,)]
    for file, content in right.items():
        file.write_bytes(content)
    ledger.check(cursor)


def _foreign(cursor: Cursor, ledger: Ledger, disk: Path) -> None:
    log = max(disk.glob("1/_delta_log/*.json"))
    foreign = log.with_name(f"{int(log.stem) + 1:020}.json")
    foreign.write_text('{"commitInfo": {"operation": "WRITE"}}\n')
    ledger.write()
    why = error_of(cursor, "FLUSH TABLE ledger")
    assert why == f"site bergen: {foreign} was not written by this member: nothing is published over it"
    ledger.write()
    ledger.check(cursor)
    foreign.unlink()
    cursor.execute("FLUSH TABLE ledger")
    ledger.check(cursor)

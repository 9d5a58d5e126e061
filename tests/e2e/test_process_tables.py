"""Members that are killed while they write to tables of our own, or whose clocks are wrong: all that was acknowledged
is there, once."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pytest
import yaml

import skerry
from skerry.tables.flushing import open_shards
from skerry.tables.store import Store
from skerry.testing.points import VARIABLE
from skerry.testing.ports import free_ports
from tests.e2e.processes import CONNECT_S, STOP_S
from tests.integration.member.member_sites import wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

NAMES = ("oslo", "bergen")
ROWS = 6  # of a statement, at both members
LOADED = 4200  # of every second statement while the client's own member lives; they are staged
# Who is killed, when, and at which time that it comes there: one that has voted, that decides, that is about to vote.
KILLS = (("bergen", "store.committed", 8), ("oslo", "store.committing", 8), ("bergen", "staged.laid", 1))


class Members:
    def __init__(self, folder: Path, names: tuple[str, ...] = NAMES) -> None:
        self.folder = folder
        self.ports: dict[str, int] = {}
        self.running: dict[str, subprocess.Popen[bytes]] = {}
        self.add(*names)

    def add(self, *names: str) -> None:
        """To the file: who runs does not know of them."""
        self.ports |= zip(names, free_ports(len(names)), strict=True)
        spark = {"master": "local[1]"}  # which is not started
        members = {name: {"address": f"127.0.0.1:{port}", "spark": spark} for name, port in self.ports.items()}
        text = {"cluster": "c", "data_root": ".", "state": "state", "members": members}
        (self.folder / "skerry.yaml").write_text(yaml.safe_dump(text, sort_keys=False))

    def start(self, *names: str, clock_s: float = 0.0) -> None:
        """`clock_s`: how far their clocks are ahead."""
        for name in names:
            with (self.folder / f"{name}.log").open("ab") as log:
                self.running[name] = subprocess.Popen(
                    [sys.executable, "-m", "tests.e2e.tables_member", self.folder / "skerry.yaml", name],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    env={**os.environ, VARIABLE: str(self.folder / f"{name}.chaos"), "CLOCK_S": str(clock_s)},
                )
        for name in names:
            assert (out := self.running[name].stdout) is not None
            assert out.readline() == b"ready\n"

    def end(self, *names: str) -> None:
        for name in names:
            process = self.running.pop(name)
            process.communicate(timeout=STOP_S)

    def kill(self) -> None:
        for process in self.running.values():
            process.kill()
            process.communicate()

    def connect(self, name: str) -> skerry.Connection:
        return skerry.connect(f"skerry://127.0.0.1:{self.ports[name]}", timeout_s=CONNECT_S)


def rows_found(folder: Path) -> list[int]:
    """Whose rows of the ledger there are, on both disks."""
    found: list[int] = []
    for name in NAMES:
        store = Store(str(folder / "state" / f"_c.{name}.tables"), name)
        try:
            shards = open_shards(store, name).shards.values()
            (ledger,) = (each for each in shards if each.table.name == "ledger")
            found += ledger.read((1 << 63) - 1).column("said").to_pylist()
        finally:
            store.close()
    return found


def test_members_that_are_killed_while_they_write(tmp_path: Path) -> None:
    members, acknowledged, refused, loads, told, said = Members(tmp_path), set[int](), set[int](), set[int](), 0, 0
    try:
        members.start(*NAMES)
        with members.connect("oslo") as connection:
            create = "CREATE TABLE ledger (said INT, number INT) PRIMARY KEY (said, number) DISTRIBUTED BY (number)"
            connection.cursor().execute(create)
        for victim, point, count in KILLS:
            (tmp_path / f"{victim}.chaos").write_text(f"{point}|kill|{count}")
            with members.connect("oslo") as connection, connection.cursor() as cursor:
                while members.running[victim].poll() is None:
                    said += 1
                    rows = ", ".join(f"({said}, {number})" for number in range(ROWS))
                    insert, unknown = f"INSERT INTO ledger VALUES {rows}", None
                    many = pa.table({"said": pa.repeat(said, LOADED), "number": range(LOADED)})
                    try:
                        if said % 2 or victim == "oslo":
                            assert cursor.execute(insert).rowcount == ROWS
                        else:
                            loads.add(said)
                            assert cursor.load("ledger", many).rowcount == LOADED
                        acknowledged.add(said)
                    except skerry.OutcomeUnknown:
                        unknown = cursor.query_id if said not in loads else None
                        members.running[victim].wait(STOP_S)
                    except skerry.Error:
                        refused.add(said)
                        members.running[victim].wait(STOP_S)
                    with suppress(skerry.Error):
                        if said % 3 == 0 and victim != "oslo":
                            cursor.execute("FLUSH TABLE ledger")
            members.end(victim)
            members.start(victim)
            if unknown is not None:  # the statement is told by its id: its rows are there now, and once
                with members.connect("oslo") as connection:
                    assert connection.cursor().execute(insert, query_id=unknown).rowcount == ROWS
                acknowledged.add(said)
                told += 1
        with members.connect("bergen") as connection:
            connection.cursor().execute("FLUSH TABLE ledger")  # waits for what is in doubt
        members.end(*NAMES)
    finally:
        members.kill()
    found = rows_found(tmp_path)
    # All rows of a statement or none, whatever its client was told, and none twice.
    assert {each: count for each, count in Counter(found).items() if count != (LOADED if each in loads else ROWS)} == {}
    assert acknowledged <= set(found) <= set(range(1, said + 1))
    assert refused.isdisjoint(found)  # every other error says that nothing was written
    assert len(acknowledged) >= said - len(KILLS) - 1
    assert told  # the member that the client asked was killed once


def test_clocks_that_are_apart(tmp_path: Path) -> None:
    """Ten seconds, where five are allowed: errors and logs say so; nothing that was acknowledged is lost."""
    members, acknowledged, said = Members(tmp_path), set[int](), 0
    error: dict[tuple[str, str], str] = {}
    try:
        members.start("oslo")
        members.start("bergen", clock_s=10.0)
        connections = {name: members.connect(name) for name in NAMES}
        cursors = {name: connection.cursor() for name, connection in connections.items()}
        create = "CREATE TABLE ledger (said INT, number INT) PRIMARY KEY (said, number) DISTRIBUTED BY (number)"
        cursors["oslo"].execute(create)
        for name in NAMES:
            cursors["oslo"].execute(f"CREATE TABLE at_{name} (k INT) PRIMARY KEY (k) DISTRIBUTED BY (k) IN ({name})")
        for name, cursor in cursors.items():
            said += 1
            for table in ("ledger", "at_oslo", "at_bergen"):
                rows = ", ".join(f"({said}, {number})" for number in range(ROWS)) if table == "ledger" else f"({said})"
                try:
                    cursor.execute(f"INSERT INTO {table} VALUES {rows}")
                except skerry.OperationalError as refused:
                    error[name, table] = refused.message
        # At one member alone times need no comparing. Who is ahead of the others can tell them nothing.
        assert set(error) == {("oslo", "ledger"), ("bergen", "ledger"), ("bergen", "at_oslo")}
        for why in error.values():
            # Less by as long as the message was on its way, which a busy machine makes a while.
            assert re.search(r"the clock of bergen is (9\.\d|10\.0) s ahead; at most 5 s are allowed", why)
        for connection in connections.values():
            connection.close()
        members.end("bergen")
        members.start("bergen")  # its clock is right, and goes on where it was until the time has come

        def is_written() -> bool:
            nonlocal said
            said += 1
            rows = ", ".join(f"({said}, {number})" for number in range(ROWS))
            with suppress(skerry.OperationalError), members.connect("oslo") as connection:
                connection.cursor().execute(f"INSERT INTO ledger VALUES {rows}")
                acknowledged.add(said)
            return bool(acknowledged)

        wait_until(is_written, "the time has come", every_s=0.5)
        members.end(*NAMES)
    finally:
        members.kill()
    for name in NAMES:
        assert "are too far apart to commit" in (tmp_path / f"{name}.log").read_text()
    assert Counter(rows_found(tmp_path)) == dict.fromkeys(acknowledged, ROWS)

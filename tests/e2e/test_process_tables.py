"""Members that are killed while they write to tables of our own: all that was acknowledged is there, once."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
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

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

NAMES = ("oslo", "bergen")
ROWS = 6  # of a statement, at both members
LOADED = 4200  # of every second one, which is staged
# Who is killed, when, and at which time that it comes there: one that has voted, that decides, that is about to vote.
KILLS = (("bergen", "store.committed", 8), ("oslo", "store.committing", 8), ("bergen", "staged.laid", 1))


class Members:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ports = dict(zip(NAMES, free_ports(2), strict=True))
        spark = {"master": "local[1]"}  # which is not started
        members = {name: {"address": f"127.0.0.1:{port}", "spark": spark} for name, port in self.ports.items()}
        text = {"cluster": "c", "data_root": ".", "state": "state", "members": members}
        (folder / "skerry.yaml").write_text(yaml.safe_dump(text, sort_keys=False))
        self.running: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, *names: str) -> None:
        for name in names:
            self.running[name] = subprocess.Popen(
                [sys.executable, "-m", "tests.e2e.tables_member", self.folder / "skerry.yaml", name],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env={**os.environ, VARIABLE: str(self.folder / f"{name}.chaos")},
            )
        for name in names:
            assert (out := self.running[name].stdout) is not None
            assert out.readline() == b"ready\n"

    def end(self, *names: str) -> None:
        for name in names:
            process = self.running.pop(name)
            process.communicate(timeout=STOP_S)

    def connect(self, name: str) -> skerry.Connection:
        return skerry.connect(f"skerry://127.0.0.1:{self.ports[name]}", timeout_s=CONNECT_S)


def test_members_that_are_killed_while_they_write(tmp_path: Path) -> None:
    members, acknowledged, said = Members(tmp_path), set[int](), 0
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
                    many = pa.table({"said": pa.repeat(said, LOADED), "number": range(LOADED)})
                    try:
                        if said % 2:
                            assert cursor.execute(f"INSERT INTO ledger VALUES {rows}").rowcount == ROWS
                        else:
                            assert cursor.load("ledger", many).rowcount == LOADED
                        acknowledged.add(said)
                        if said % 3 == 0:
                            cursor.execute("FLUSH TABLE ledger")
                    except skerry.Error:
                        members.running[victim].wait(STOP_S)
            members.end(victim)
            members.start(victim)
        with members.connect("bergen") as connection:
            connection.cursor().execute("FLUSH TABLE ledger")  # waits for what is in doubt
        members.end(*NAMES)
    finally:
        for process in members.running.values():
            process.kill()
            process.communicate()

    found: list[int] = []
    for name in NAMES:
        store = Store(str(tmp_path / "state" / f"_c.{name}.tables"), name)
        try:
            (shard,) = open_shards(store, name).shards.values()
            found += shard.read((1 << 63) - 1).column("said").to_pylist()
        finally:
            store.close()
    # All rows of a statement or none, whatever its client was told, and none twice.
    assert {each: count for each, count in Counter(found).items() if count != (ROWS if each % 2 else LOADED)} == {}
    assert acknowledged <= set(found) <= set(range(1, said + 1))
    assert len(acknowledged) >= said - len(KILLS) - 1

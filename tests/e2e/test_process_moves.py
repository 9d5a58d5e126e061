"""Groups of rows that move while they are written, at members that are killed meanwhile: every row is there, once."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import deltalake
import pyarrow as pa
import pytest

import skerry
from skerry.tables.flushing import open_shards
from skerry.tables.store import Store
from tests.e2e.processes import STOP_S
from tests.e2e.test_process_tables import Members
from tests.integration.member.member_sites import wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

LOADED = 20_000
# Who is killed, and where: the source, which keeps the definitions too, when it has sent the rows; the target before it
# votes; the keeper when the move is decided; the other source before it votes. Then the one that goes, as it votes.
KILLS = (
    ("oslo", "move.sent", 1),
    ("tromso", "staged.laid", 1),
    ("oslo", "move.decided", 1),
    ("bergen", "move.parted", 1),
)
AWAY = (("bergen", "store.committed", 2),)


def rebalanced(members: Members, kills: Sequence[tuple[str, str, int]], *leaving: str) -> list[tuple[object, ...]]:
    """Until nothing is left. A step that fails, because a member was killed, is said again when that is back."""
    moved: list[tuple[object, ...]] = []
    without, armed = f" WITHOUT ({', '.join(leaving)})" if leaving else "", list(kills)
    while True:
        if armed and not list(members.folder.glob("*.chaos")):
            victim, point, count = armed.pop(0)
            (members.folder / f"{victim}.chaos").write_text(f"{point}|kill|{count}")
        with suppress(skerry.Error), members.connect("tromso") as connection:
            steps = connection.cursor().execute(f"REBALANCE TABLES{without}").fetchall()
            moved += [step for step in steps if step[0] == "moved"]
            if not steps:
                return moved
        for name in [name for name, process in members.running.items() if process.poll() is not None]:
            members.end(name)
            members.start(name)


class Writer:
    """Inserts one row after the other, at any member that is up, until it is told to stop."""

    def __init__(self, members: Members) -> None:
        self._members = members
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.acknowledged: set[int] = set()
        self.unknown: set[int] = set()
        self._thread.start()

    def _run(self) -> None:
        number = LOADED
        while not self._is_over.is_set():
            with suppress(skerry.Error), self._members.connect("bergen") as connection:
                cursor = connection.cursor()
                while not self._is_over.is_set():
                    number += 1
                    self.unknown.add(number)
                    cursor.execute(f"INSERT INTO ledger VALUES ({number}, 'w')")
                    self.unknown.discard(number)
                    self.acknowledged.add(number)
            self._is_over.wait(0.05)

    def end(self) -> None:
        self._is_over.set()
        self._thread.join(STOP_S)


def knows_the_table(members: Members, name: str) -> bool:
    """Members that have only just met learn of tables a moment later."""
    with members.connect(name) as connection:
        return "ledger" in {row[0] for row in connection.cursor().execute("SHOW TABLES").fetchall()}


def rows_of(folder: Path, names: tuple[str, ...]) -> dict[str, list[int]]:
    """By member, the numbers of its rows, from its disk alone; nothing else lies in its folder."""
    found = {}
    for name in names:
        store = Store(str(folder / "state" / f"_c.{name}.tables"), name)
        try:
            shards = open_shards(store, name).shards.values()
            (ledger,) = (each for each in shards if each.table.name == "ledger")
            found[name] = ledger.read((1 << 63) - 1).column("number").to_pylist()
        finally:
            store.close()
    return found


def test_rows_move_to_a_member_that_came_and_away_from_one_that_goes(tmp_path: Path) -> None:
    members = Members(tmp_path, ("oslo", "bergen"))
    writer = None
    try:
        members.start("oslo", "bergen")
        with members.connect("oslo") as connection:
            cursor = connection.cursor()
            cursor.execute(
                "CREATE TABLE ledger (number BIGINT, said STRING) PRIMARY KEY (number) DISTRIBUTED BY (number)"
            )
            wait_until(lambda: knows_the_table(members, "bergen"), "bergen knows the table", STOP_S)
            cursor.load("ledger", pa.table({"number": range(LOADED), "said": pa.repeat("l", LOADED)}))
        members.end("oslo", "bergen")
        members.add("tromso")
        members.start("oslo", "bergen", "tromso")
        writer = Writer(members)
        there = rebalanced(members, KILLS)
        away = rebalanced(members, AWAY, "bergen")
        writer.end()
        with members.connect("oslo") as connection:
            status = connection.cursor().execute("SHOW TABLE STATUS ledger").fetchall()
            connection.cursor().execute("FLUSH TABLE ledger")
        members.end("oslo", "bergen", "tromso")
    finally:
        if writer is not None:
            writer.end()
        members.kill()
    assert {step[3] for step in there} == {"tromso"}
    assert {step[2] for step in away} == {"bergen"}
    assert [(line[1], line[2]) for line in status] == [("oslo", 8192), ("tromso", 8192)]
    found = rows_of(tmp_path, ("oslo", "bergen", "tromso"))
    for name in ("oslo", "tromso"):  # what Delta's readers see, at both ends of the moves
        delta = deltalake.DeltaTable(str(tmp_path / "state" / f"_c.{name}.tables" / "1")).to_pyarrow_table()
        assert sorted(delta.column("number").to_pylist()) == sorted(found[name])
    assert found["bergen"] == []
    counts = Counter(number for numbers in found.values() for number in numbers)
    assert {number for number, count in counts.items() if count > 1} == set()
    assert set(range(LOADED)) | writer.acknowledged <= counts.keys()
    assert counts.keys() <= set(range(LOADED)) | writer.acknowledged | writer.unknown
    assert writer.acknowledged

"""A member that ends at any point of its work: what was acknowledged is there, the rest is whole or not there."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from skerry.model import points
from skerry.tables.changes import changes_of, deletes_of, writes_of
from skerry.tables.flushing import Flusher, open_shards
from skerry.tables.shard import Shard
from skerry.tables.store import Store
from tests.unit.tables.table_samples import MEMBER, SECOND, a_table, batch_of, committed, in_memory

TABLE = a_table()
# Where a member may end, and how often the story below passes there at least.
POINTS = {
    "store.committing": 10,
    "store.committed": 10,
    "file.written": 4,
    "flush.file": 2,
    "flush.written": 2,
    "flush.named": 2,
    "delta.committed": 2,
    "flush.published": 2,
    "trim.forgotten": 1,
}


class Crash(BaseException):
    """No `except Exception` of ours may see it: nobody sees a power cut."""


class Member:
    """Opens what is there, and goes on. `acked` and `asked`: rows by key, as far as it knows."""

    def __init__(self, folder: str) -> None:
        self.store = Store(folder, MEMBER)
        try:
            if not self.store.loaded.tables:
                self.store.put_table(TABLE).result()
                self.store.close()
                self.store = Store(folder, MEMBER)
            opened = open_shards(self.store, MEMBER)
        except BaseException:
            self.store.close()
            raise
        assert opened.faults == {}
        self.shard: Shard = opened.shards[1]
        self.flusher = Flusher(self.store, MEMBER)

    def commit(self, number: int) -> None:
        """Key `number` is new, the one before it changes, the one before that is gone."""
        ts = SECOND + number
        batch = batch_of(TABLE, [{"k": number, "v": f"new {number}"}, {"k": number - 1, "v": f"changed {number}"}])
        writes = writes_of(TABLE, batch) + deletes_of(TABLE, pa.RecordBatch.from_pydict({"k": [number - 2]}))
        self.store.persist([committed(number, ts, writes)]).result()
        self.shard.apply(ts, changes_of(TABLE, [(write.key, write.row) for write in writes]))

    def rows(self) -> dict[int, str]:
        return {row["k"]: row["v"] for row in self.shard.read(SECOND * 2).to_pylist()}

    def flush(self, number: int) -> None:
        asyncio.run(self.flusher.flush(self.shard, SECOND + number))

    def trim(self, number: int) -> None:
        asyncio.run(self.flusher.trim(self.shard, SECOND + number))


def after(number: int) -> dict[int, str]:
    """What a dict holds after so many commits."""
    rows: dict[int, str] = {}
    for each in range(1, number + 1):
        rows.update({each: f"new {each}", each - 1: f"changed {each}"})
        rows.pop(each - 2, None)
    return rows


def story(folder: str, said: list[str]) -> None:
    """Four commits, a flush after every second, a trim at the end. `said`: what was acknowledged."""
    member = Member(folder)
    try:
        for number in range(1, 5):
            said.append(f"begin {number}")
            member.commit(number)
            said.append(f"done {number}")
            if number % 2 == 0:
                member.flush(number)
        member.trim(4)
    finally:
        member.store.close()


def check(folder: str, said: list[str]) -> None:
    """Starts again, reads, goes on where it ended, and reads again; no file is left that nobody names."""
    acked = max([0, *(int(line.split()[1]) for line in said if line.startswith("done"))])
    begun = max([0, *(int(line.split()[1]) for line in said if line.startswith("begin"))])
    member = Member(folder)
    try:
        found = member.rows()
        assert found in (after(acked), after(begun))
        number = next(number for number in (begun, acked) if after(number) == found)
        for more in range(number + 1, 7):
            member.commit(more)
        assert member.rows() == after(6)
        member.flush(6)
        member.trim(6)
        assert member.rows() == after(6)
        named = {each.file.name for each in member.shard.manifest.named}
        assert {name for name in os.listdir(member.shard.folder) if name != "_delta_log"} == named
        log = os.listdir(os.path.join(member.shard.folder, "_delta_log"))
        assert sorted(log) == [f"{version:020d}.json" for version in range(member.shard.manifest.delta_version + 1)]
        assert member.shard.manifest.published == member.shard.manifest.generation
    finally:
        member.store.close()


@pytest.fixture
def watched() -> Iterator[list[str]]:
    """All points that are reached from here on."""
    seen: list[str] = []
    points.watch = seen.append
    yield seen
    points.watch = None


def test_the_story_passes_every_point(watched: list[str]) -> None:
    with in_memory() as folder:
        story(folder, [])
    assert {point: watched.count(point) >= least for point, least in POINTS.items()} == dict.fromkeys(POINTS, True)
    assert set(watched) == set(POINTS)


def test_a_crash_anywhere_leaves_what_was_acknowledged(watched: list[str]) -> None:
    with in_memory() as folder:
        story(folder, [])
    for place in range(len(watched)):
        left = place

        def crash(point: str) -> None:
            nonlocal left
            left -= 1
            if left < 0:
                raise Crash(point)

        said: list[str] = []
        with in_memory() as folder:
            points.watch = crash
            # In the store's thread it ends the thread: whoever waits gets an error instead.
            with pytest.raises(BaseException, match=r"|".join(POINTS)):
                story(folder, said)
            points.watch = None
            check(folder, said)


CHILD = """
import os, signal, sys
from skerry.model import points
from tests.unit.tables.test_tables_crashes import story

class Said(list):
    def append(self, line):
        print(line, flush=True)

wanted, left = sys.argv[2], int(sys.argv[3])

def kill(point):
    global left
    left -= point == wanted
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)

points.watch = kill
story(sys.argv[1], Said())
"""


def test_a_killed_member_leaves_what_was_acknowledged(tmp_path: Path) -> None:
    """On a real disk, with the process gone. At once: each takes a second to start."""
    root = Path(__file__).parents[3]
    children = {}
    for point, count in {"store.committing": 4, "flush.written": 2, "delta.committed": 1}.items():
        folder = tmp_path / point
        command = [sys.executable, "-c", CHILD, str(folder), point, str(count)]
        children[folder] = subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, text=True)
    for folder, child in children.items():
        said, _ = child.communicate(timeout=300)
        assert child.returncode == -signal.SIGKILL, folder.name
        check(str(folder), said.splitlines())

"""A short story of one member's table, which can be cut off anywhere and told to its end, and members that are.

`python -m tests.unit.tables.crash_story FOLDER` lets members end badly, each in a process of its own, and prints what
they said, a line each: `how|line`.
"""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import sys

import msgspec
import numpy as np
import pyarrow as pa

from skerry.model import points
from skerry.model.commits import Committed, Policy, Prepared
from skerry.model.errors import SiteError
from skerry.model.sharded import OwnColumn, numbered
from skerry.tables.catalogue import altered
from skerry.tables.columns import arrow_schema
from skerry.tables.flushing import Flusher, open_shards
from skerry.tables.layouts import ids_of, is_fit, relaid_pairs
from skerry.tables.manifest import laid_of
from skerry.tables.shard import Shard
from skerry.tables.store import Store
from skerry.tables.writes import deletes_of, writes_of
from tests.unit.tables.table_samples import MEMBER, SECOND, a_table, batch_of, committed, laid, prepared, txn

TABLE = a_table()
# Points at which a member is killed, and at which time that it is there.
KILLED = {"store.committing": 4, "store.committed": 5, "flush.written": 2, "delta.committed": 1, "staged.laid": 1}
LOADED = 3  # the commit that is one of staged files
ALTERED = (2, 3)  # the commits that the table is altered within
DISK_BYTES = 300_000  # of a file on a disk that fails beyond


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

    def commit(self, number: int, *, alters: bool = False) -> None:
        """Key `number` is new, the one before it changes, the one before that is gone, if rows were not loaded.

        `alters`: between prepare and commit.
        """
        ts, table = SECOND + number, self.shard.table
        gone = pa.RecordBatch.from_pydict({"k": pa.array([number - 2] if number != LOADED else [], pa.int64())})
        writes = writes_of(table, self.batch(number)) + deletes_of(table, gone)
        layouts = ((table.id, ids_of(table)),) if table.next_column else ()
        if alters:
            vote = msgspec.structs.replace(prepared(number, ts, writes), layouts=layouts)
            self.store.persist([vote]).result()
            self.alter()
            self.decide(vote)
        else:
            self.store.persist([msgspec.structs.replace(committed(number, ts, writes), layouts=layouts)]).result()
            self.shard.apply(ts, [(write.key, write.row) for write in writes])

    def batch(self, number: int) -> pa.RecordBatch:
        table = self.shard.table
        key, *others, value = arrow_schema(table).names
        rows = [(number, f"new {number}"), (number - 1, f"changed {number}")]
        return batch_of(table, [{key: k, value: v} | dict.fromkeys(others, "fresh") for k, v in rows])

    def alter(self) -> None:
        """The column has another name, and a new one has its name, and its place."""
        table = numbered(self.shard.table)
        key, *_, value = table.columns
        version = table.version + 1
        columns = (key, OwnColumn("v", "string", False, "'fresh'"), msgspec.structs.replace(value, name=f"w{version}"))
        table = altered(table, msgspec.structs.replace(table, columns=columns))
        table = msgspec.structs.replace(table, version=version)
        self.store.put_table(table).result()
        self.shard.alter(table)

    def load(self, number: int, *, alters: bool = False) -> None:
        """Key `number` is new, the one before it changes: by staged files, which are voted for and committed."""
        staged, counted = laid(self.shard, self.flusher, self.batch(number), SECOND + number - 1, Policy.REPLACE)
        vote = Prepared(txn(number), SECOND, "bergen", SECOND + number, counted.rows, (), (staged,))
        self.store.persist([vote]).result()
        if alters:
            self.alter()
        self.decide(vote)

    def decide(self, vote: Prepared) -> None:
        self.store.persist([Committed(vote.txn, SECOND, vote.prepare_ts, vote.rows)]).result()
        for staged in vote.staged:
            self.shard.load(vote.prepare_ts, laid_of(staged))
        if vote.writes:
            pairs = [(write.key, write.row) for write in vote.writes]
            table = self.shard.table
            self.shard.apply(vote.prepare_ts, relaid_pairs(pairs, dict(vote.layouts).get(table.id, ()), table))

    def rows(self) -> dict[int, str]:
        """By the first and the last column; the one between has its default everywhere."""
        found = [tuple(row.values()) for row in self.shard.read(SECOND * 2).to_pylist()]
        assert all(row[1:-1] in ((), ("fresh",)) for row in found)
        rows = {row[0]: row[-1] for row in found}
        assert len(rows) == len(found), "a key is there twice"
        return rows

    def flush(self, number: int) -> None:
        asyncio.run(self.flusher.flush(self.shard, SECOND + number))

    def trim(self, number: int) -> None:
        asyncio.run(self.flusher.trim(self.shard, SECOND + number))


def after(number: int) -> dict[int, str]:
    """What a dict holds after so many commits."""
    rows: dict[int, str] = {}
    for each in range(1, number + 1):
        rows.update({each: f"new {each}", each - 1: f"changed {each}"})
        if each != LOADED:
            rows.pop(each - 2, None)
    return rows


def story(folder: str, said: list[str]) -> None:
    """Four commits, one of staged files; a flush after every second, a trim at the end.

    The table is altered within two of them, that of files among them. `said`: what was answered.
    """
    member = Member(folder)
    try:
        for number in range(1, 5):
            said.append(f"begin {number}")
            (member.load if number == LOADED else member.commit)(number, alters=number in ALTERED)
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
        for vote in [each for each in member.store.loaded.records if isinstance(each, Prepared)]:
            member.decide(vote)  # it has voted: the decider may have said so
        found = member.rows()
        assert found in (after(acked), after(begun))
        number = next(number for number in (begun, acked) if after(number) == found)
        last = number + 2
        for more in range(number + 1, last + 1):
            (member.load if more == LOADED else member.commit)(more)
        assert member.rows() == after(last)
        member.flush(last)
        member.trim(last)
        assert member.rows() == after(last)
        named = {each.file.name for each in member.shard.manifest.named}
        assert {name for name in os.listdir(member.shard.folder) if name != "_delta_log"} == named
        log = os.listdir(os.path.join(member.shard.folder, "_delta_log"))
        assert sorted(log) == [f"{version:020d}.json" for version in range(member.shard.manifest.delta_version + 1)]
        assert member.shard.manifest.published == member.shard.manifest.generation
        assert all(is_fit(file, member.shard.table) for file in member.shard.manifest.live)
    finally:
        member.store.close()


# --- members that end badly -------------------------------------------------------------------------------------------
class Said(list[str]):
    """Told at once: who says it may be gone in a moment."""

    def __init__(self, how: str) -> None:
        super().__init__()
        self.how = how

    def append(self, line: str) -> None:
        os.write(1, f"{self.how}|{line}\n".encode())


def be_killed(folder: str, point: str, count: int) -> None:
    left = count

    def kill(reached: str) -> None:
        nonlocal left
        left -= reached == point
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    points.watch = kill
    story(folder, Said(point))


def meet_a_bad_disk(folder: str) -> None:
    """Commits until the disk fails; then says why, and what the next one is told."""
    said = Said("disk")
    member = Member(folder)
    resource.setrlimit(resource.RLIMIT_FSIZE, (DISK_BYTES, DISK_BYTES))
    try:
        for number in range(1, 1000):
            said.append(f"begin {number}")
            member.commit(number)
            said.append(f"done {number}")
    except SiteError as error:
        said.append(error.message)
    assert member.store.trouble is not None
    try:
        member.commit(1000)
    except SiteError as error:
        said.append(error.suggestion)
    member.store.close()


def main(folder: str) -> None:
    """One process reads the modules; each member is a copy of it."""
    pa.array([1]).to_numpy()  # reads pandas too
    pa.array(np.zeros(1))
    children = {}
    for point, count in KILLED.items():
        if not (child := os.fork()):
            be_killed(os.path.join(folder, point), point, count)
            os._exit(0)
        children[child] = point
    if not (child := os.fork()):
        meet_a_bad_disk(os.path.join(folder, "disk"))
        os._exit(0)
    children[child] = "disk"
    for child, how in children.items():
        _, status = os.waitpid(child, 0)
        Said(how).append(f"ended {os.waitstatus_to_exitcode(status)}")


if __name__ == "__main__":
    main(sys.argv[1])

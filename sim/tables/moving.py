"""A table whose buckets move between members while clients write and scan it: what a member holds of it, who moves it.

Rows of a move travel as a message and wait in memory, as staged rows do; all else goes through the cores of commits.
"""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import TYPE_CHECKING

import msgspec

from sim.loop import Violation
from skerry.model.commits import (
    Aborted,
    Committed,
    Decision,
    Moving,
    Part,
    Policy,
    Prepared,
    Record,
    Staged,
    TransactionId,
    Versions,
    Write,
)
from skerry.model.errors import Overloaded, SiteError
from skerry.model.ids import QueryId
from skerry.model.sharded import BucketMap
from skerry.tables.instructions import Found, Looked
from skerry.tables.mapping import check_moving, is_followed, moved_map
from skerry.wire.commit_messages import Outcome, State

if TYPE_CHECKING:
    from sim.tables.site import Site
    from sim.tables.world import World

MOVED = 6
BUCKETS = 8
KEYS = tuple(f"moved {n}".encode() for n in range(10))
FROZEN_S = 1.5
_STAGED = msgspec.msgpack.Decoder(list[tuple[bytes, bytes, int]])


class AskRows(msgspec.Struct, frozen=True):
    """From the keeper to the source: `SendGroup`."""

    moving: Moving
    version: int


class MoveRows(msgspec.Struct, frozen=True):
    """From the source to the target: rows as they were at `read_ts`."""

    moving: Moving
    version: int
    read_ts: int
    rows: tuple[tuple[bytes, bytes], ...]


class RowsTaken(msgspec.Struct, frozen=True):
    """The target has them: `GroupSent`."""

    moving: Moving
    version: int
    read_ts: int


class MapTold(msgspec.Struct, frozen=True):
    """From the keeper: `Definitions`."""

    buckets: BucketMap


class ReadMoved(msgspec.Struct, frozen=True):
    """All rows of the table that a member has, for a query that was planned with this version of the map."""

    read: str
    read_ts: int
    version: int


MoveMessage = AskRows | MoveRows | RowsTaken | MapTold | ReadMoved


class Commit(msgspec.Struct, frozen=True):
    commit_ts: int
    row: bytes | None


def bucket_of(key: bytes) -> int:
    return int(key.split()[-1]) % BUCKETS


def first_map(members: tuple[str, ...]) -> BucketMap:
    ends = [BUCKETS * place // len(members) for place in range(len(members) + 1)]
    return BucketMap(MOVED, 1, tuple((ends[at], ends[at + 1], name) for at, name in enumerate(members)))


class MovedShard:
    """What one member holds. `told` is on its disk at once, all else comes from its records."""

    def __init__(self, member: str, first: BucketMap) -> None:
        self.member = member
        self.first = first
        self.told = first
        self.buckets = first
        self.rows: dict[bytes, list[Commit]] = {}
        self.staged: dict[QueryId, tuple[tuple[bytes, bytes], ...]] = {}  # sent ahead, in memory
        self.asked: set[QueryId] = set()
        self.sent: dict[QueryId, int] = {}  # the moment of what was sent
        self.frozen: dict[QueryId, tuple[int, int, float]] = {}

    def rebuild(self, records: Iterable[Record]) -> None:
        self.buckets, self.rows, self.staged, self.sent, self.frozen = self.first, {}, {}, {}, {}
        self.asked = set()
        prepared: dict[TransactionId, Prepared] = {}
        decided = [self.told]
        self.told = self.first  # moves of its own come first: a range may have gone and come back
        for record in records:
            match record:
                case Prepared():
                    prepared[record.txn] = record
                case Aborted():
                    prepared.pop(record.txn, None)
                case Committed():
                    source = prepared.pop(record.txn) if record.txn in prepared else record
                    self.apply(record.commit_ts, source.writes, source.staged)
                case Decision() if record.moved is not None:
                    decided.append(record.moved)
                case _:
                    pass
        self.told = max(decided, key=lambda each: each.version)
        self.follow(self.told)

    def follow(self, told: BucketMap) -> None:
        if told.version > self.told.version:
            self.told = told
        if is_followed(self.buckets, self.told, self.member):
            self.buckets = self.told

    def apply(self, commit_ts: int, writes: Iterable[Write], staged: Iterable[Staged]) -> None:
        for write in writes:
            if write.table == MOVED:
                self._put(write.key, commit_ts, write.row)
        for each in staged:
            if each.moving is not None:
                self._moved(commit_ts, each, each.moving)

    def _put(self, key: bytes, commit_ts: int, row: bytes | None) -> None:
        if not self._has(key):
            raise Violation(f"{self.member} commits {key!r}, which is in none of its buckets")
        self.rows.setdefault(key, []).append(Commit(commit_ts, row))

    def _moved(self, commit_ts: int, staged: Staged, moving: Moving) -> None:
        if moving.buckets.version <= self.buckets.version:
            raise Violation(f"{self.member} moves to {moving.buckets}, and has {self.buckets}")
        for key in [key for key in self.rows if moving.first <= bucket_of(key) < moving.upto]:
            del self.rows[key]
        self.buckets = msgspec.structs.replace(moving.buckets, since=commit_ts)
        for key, row, _ in _STAGED.decode(staged.body) if staged.body else []:
            self._put(key, commit_ts, row)
        self.follow(self.told)

    def _has(self, key: bytes) -> bool:
        return any(first <= bucket_of(key) < upto for first, upto in self.buckets.ranges(self.member))

    # --- reading ----------------------------------------------------------------------------------
    def at(self, read_ts: int) -> dict[bytes, bytes]:
        """The rows at that moment."""
        found = {}
        for key, commits in self.rows.items():
            seen = [each for each in commits if each.commit_ts <= read_ts]
            if seen and seen[-1].row is not None:
                found[key] = seen[-1].row
        return found

    def read(self, asked: ReadMoved) -> dict[bytes, bytes] | None:
        """None: the query is planned again, or its moment is gone."""
        if asked.version != self.buckets.version or asked.read_ts < self.buckets.since:
            return None
        return self.at(asked.read_ts)

    # --- votes ------------------------------------------------------------------------------------
    def look(self, part: Part, now: float) -> Looked | None:
        """None: nothing of it is this table's."""
        versions = [each for each in part.versions if each.table == MOVED]
        if not versions:
            return None
        if versions[0].bucket_map != self.buckets.version:
            return Looked(stale=f"site {self.member}: another map")
        if part.staged:
            return self._look_moving(part.staged[0])
        for write in part.writes:
            if any(a <= bucket_of(write.key) < b and now < until for a, b, until in self.frozen.values()):
                return Looked(error=Overloaded(f"site {self.member}: rows are moving"))
        return Looked(tuple(self._found(write.key) for write in part.writes), kept_from=self.buckets.since)

    def _found(self, key: bytes) -> Found:
        last = self.rows.get(key, [Commit(0, None)])[-1]
        return Found(last.commit_ts, last.row is not None)

    def _look_moving(self, staged: Staged) -> Looked:
        moving = staged.moving
        assert moving is not None
        check_moving(moving, self.buckets, self.member)
        if moving.source == self.member:
            if moving.rows not in self.sent:
                return Looked(error=SiteError(f"site {self.member}: it was not sent"))
            within = [each for key, each in self.rows.items() if moving.first <= bucket_of(key) < moving.upto]
            newest = max((commit.commit_ts for commits in within for commit in commits), default=0)
            found = Found(newest if newest > self.sent[moving.rows] else 0, rows=0)
            return Looked((), (found,), kept_from=self.buckets.since, laid=(staged,))
        rows = self.staged.get(moving.rows)
        if rows is None:
            return Looked(error=SiteError(f"site {self.member}: the rows are not here any more"))
        body = msgspec.msgpack.encode([(key, row, 0) for key, row in rows])
        laid = msgspec.structs.replace(staged, body=body)
        return Looked((), (Found(0, rows=len(rows)),), kept_from=self.buckets.since, laid=(laid,))

    # --- moves ------------------------------------------------------------------------------------
    def begin(self, asked: AskRows, now: float, freezes: bool) -> bool:
        """Whether the source may send."""
        if asked.version != self.buckets.version or asked.moving.rows in self.asked:
            return False
        self.asked.add(asked.moving.rows)
        if freezes:
            self.frozen[asked.moving.rows] = (asked.moving.first, asked.moving.upto, now + FROZEN_S)
        return True

    def send(self, asked: AskRows, read_ts: int, life: int) -> MoveRows | None:
        """Under an id of its own: no other rows are ever sent under it."""
        if asked.version != self.buckets.version:
            return None
        own = QueryId(self.member, f"{asked.moving.rows.local} of life {life}")
        moving = msgspec.structs.replace(asked.moving, rows=own)
        self.sent[moving.rows] = read_ts
        rows = {key: row for key, row in self.at(read_ts).items() if moving.first <= bucket_of(key) < moving.upto}
        return MoveRows(moving, asked.version, read_ts, tuple(rows.items()))


class Mover:
    """The keeper's: one random move after the other, until the faults are over."""

    def __init__(self, world: World, random: Random) -> None:
        self.moves = 0
        self._world = world
        self._random = random
        self._life = -1
        self._number = 0
        self._wanted = first_map(world.disks)  # as the definitions shall be
        self._asked: Moving | None = None
        self._until = 0.0
        self._first_start = 0
        self._txn: TransactionId | None = None
        self._doubt: QueryId | None = None
        self.freezes = random.random() < 0.7
        world.timeline.after(random.uniform(0, 0.5), self._tick)

    @property
    def keeper(self) -> Site:
        return self._world.sites[self._world.disks[0]]

    def _tick(self) -> None:
        world, keeper = self._world, self.keeper
        world.timeline.after(self._random.uniform(0.05, 0.5), self._tick)
        if not keeper.is_up:
            return
        if keeper.crashes != self._life:  # all that it knew of a move is gone, but for what is on its disk
            self._life, self._asked, self._txn, self._doubt = keeper.crashes, None, None, None
            self._wanted = keeper.moved.told
        for name in world.disks[1:]:
            world.carry(keeper.name, name, MapTold(keeper.moved.told))
        for name in set(world.sites) - set(world.disks):
            world.carry(keeper.name, name, MapTold(keeper.moved.told))
        if self._doubt is not None and self._txn is None:
            self._submit(TransactionId(self._doubt, 1 << 30), {}, 0)
        elif self._txn is None and (self._asked is None or world.timeline.now > self._until):
            self._asked = None
            if not world.are_faults_over:
                self._ask()

    def _ask(self) -> None:
        random, before = self._random, self._wanted
        first, upto, source = random.choice(before.groups)
        begin = random.randint(first, upto - 1)
        end = random.randint(begin + 1, upto)
        target = random.choice([name for name in self._world.disks if name != source])
        self._number += 1
        rows = QueryId(source, f"rows {self._life} {self._number}")
        moving = Moving(moved_map(before, begin, end, target), begin, end, source, target, rows)
        self._asked, self._until = moving, self._world.timeline.now + self._random.choice((0.3, 2.0))
        # Who writes the table waits for what began earlier.
        self._first_start = self.keeper.commits.clock.tick(self.keeper.at)
        self._world.carry(self.keeper.name, source, AskRows(moving, before.version))

    def taken(self, message: RowsTaken) -> None:
        """The target has the rows: commit it."""
        keeper = self.keeper
        asked = self._asked
        if asked is None or keeper.crashes != self._life or self._txn is not None:
            return
        if msgspec.structs.replace(message.moving, rows=asked.rows) != asked:
            return
        if message.moving.buckets.version != self._wanted.version + 1:
            return
        moving, self._asked = message.moving, None
        part = Part((), (Staged(MOVED, ("0",), Policy.FAIL, moving=moving),), (Versions(MOVED, 1, message.version),))
        query = QueryId(keeper.name, f"move {self._life} {self._number}")
        self._submit(TransactionId(query), {moving.source: part, moving.target: part}, message.read_ts)

    def _submit(self, txn: TransactionId, parts: dict[str, Part], read_ts: int) -> None:
        keeper = self.keeper
        self._txn = txn
        keeper.do(keeper.commits.submit(txn, self._first_start, read_ts, parts, keeper.at, keeper.name))

    def answered(self, key: str, outcome: object) -> bool:
        if self._txn is None or key != f"commit {self._txn}" or not isinstance(outcome, Outcome):
            return False
        self._doubt = self._txn.query if outcome.state is State.UNKNOWN or self._is_asked_again(outcome) else None
        self._txn = None
        if outcome.state is State.COMMITTED:
            self.moves += 1
        return True

    def _is_asked_again(self, outcome: Outcome) -> bool:
        assert self._txn is not None
        return self._txn.attempt == 1 << 30 and outcome.state is State.ABORTED and outcome.is_retryable

    def moved(self, buckets: BucketMap) -> None:
        """Decided, and on disk; the definitions have it a little later, and after a start from the decision."""
        self._wanted = buckets if buckets.version > self._wanted.version else self._wanted
        keeper, life = self.keeper, self.keeper.crashes

        def keep() -> None:
            if keeper.is_up and keeper.crashes == life:
                keeper.moved.follow(buckets)

        self._world.timeline.after(self._random.uniform(0, 0.1), keep)


# --- what must hold at the end ------------------------------------------------------------------------------------
def truth(records: Iterable[Record]) -> dict[bytes, dict[int, bytes | None]]:
    """All commits to the table, of all members, by key and time."""
    found: dict[bytes, dict[int, bytes | None]] = {}
    prepared: dict[TransactionId, Prepared] = {}
    for record in records:
        if isinstance(record, Prepared):
            prepared[record.txn] = record
        elif isinstance(record, Committed):
            for write in prepared[record.txn].writes if record.txn in prepared else record.writes:
                if write.table == MOVED:
                    found.setdefault(write.key, {})[record.commit_ts] = write.row
    return found


def rows_then(commits: dict[bytes, dict[int, bytes | None]], read_ts: int) -> dict[bytes, bytes]:
    found = {}
    for key, by_time in commits.items():
        last = max((ts for ts in by_time if ts <= read_ts), default=None)
        if last is not None and (row := by_time[last]) is not None:
            found[key] = row
    return found


def check_moved(world: World, disks: dict[str, list[Record]]) -> None:
    """Each row is at one member, the last that was committed; every scan was what its moment shows."""
    commits: dict[bytes, dict[int, bytes | None]] = {}
    for records in disks.values():
        for key, by_time in truth(records).items():
            for ts, row in by_time.items():
                if commits.setdefault(key, {}).setdefault(ts, row) != row:
                    raise Violation(f"{key!r} was committed twice at {ts}")
    for client, read_ts, rows in world.scans:
        if rows != (due := rows_then(commits, read_ts)):
            raise Violation(f"{client} scanned {rows} at {read_ts}, and it was {due}")
    last = world.sites[world.disks[0]].moved.told
    there: dict[bytes, bytes] = {}
    for name in world.disks:
        shard = world.sites[name].moved
        if shard.buckets != last:
            raise Violation(f"{name} has map {shard.buckets}, the keeper {last}")
        for key, row in shard.at(1 << 62).items():
            if key in there or not shard._has(key):
                raise Violation(f"{key!r} is at {name}, and at another member or where it does not belong")
            there[key] = row
    if there != (due := rows_then(commits, 1 << 62)):
        raise Violation(f"in the end there is {there}, and should be {due}")
    for key, row in there.items():
        elements = row.split()
        if len(set(elements)) < len(elements):
            raise Violation(f"{key!r} has an element twice: {elements}")
    acknowledged = [(txn, key, element) for txn, key, element in world.appended if txn in world.acknowledged]
    lost = [each for each in acknowledged if each[2] not in there.get(each[1], b"").split()]
    if lost:
        raise Violation(f"lost updates: {lost}")

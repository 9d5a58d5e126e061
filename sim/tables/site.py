"""A member's shell for commits, in memory: a disk that loses what was not synced, a clock that jumps, rows by time."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from random import Random

import msgspec

from sim.loop import Violation
from sim.tables.altering import WIDE, relaid_row
from sim.tables.moving import MOVED, AskRows, MapTold, MovedShard, Mover, MoveRows, ReadMoved, RowsTaken
from sim.tables.time import Timeline
from skerry.model.commits import (
    Aborted,
    Committed,
    Decision,
    Fence,
    Layouts,
    Policy,
    Prepared,
    Record,
    Staged,
    TransactionId,
    Write,
)
from skerry.model.errors import PeerError, SiteError
from skerry.model.ids import QueryId
from skerry.model.limits import CommitLimits
from skerry.model.sharded import OwnTable
from skerry.tables.clock import At
from skerry.tables.commits import Commits
from skerry.tables.instructions import (
    Answer,
    Apply,
    Discard,
    Found,
    Instruction,
    Look,
    Looked,
    Moved,
    Persist,
    ReadReady,
    ReadRefused,
    Send,
    Tell,
    Unsent,
)
from skerry.tables.layouts import ids_of
from skerry.wire.commit_messages import CommitMessage, Decided, Done, Outcome, OutcomeOf, State, Submit, Vote

EPOCH_US = 1_700_000_000_000_000
TICK_S = 0.1
LAZY_S = 0.5
ROOM_S = 0.5
Place = tuple[int, bytes]  # a table and a key
Fact = tuple[str, TransactionId | QueryId, int]  # that somebody may be told of
_RECORDS = msgspec.msgpack.Decoder(list[Record])


class Version(msgspec.Struct, frozen=True):
    commit_ts: int
    row: bytes | None
    policy: Policy
    txn: TransactionId


class ReadRows(msgspec.Struct, frozen=True):
    """What the simulation reads with: rows of these places as of `read_ts`. Members will read by queries."""

    read: str
    read_ts: int
    places: tuple[Place, ...]


class RowsRead(msgspec.Struct, frozen=True):
    """`failure` empty: these are the rows."""

    read: str
    member: str
    rows: tuple[tuple[Place, bytes | None], ...] = ()
    failure: str = ""


class SendRows(msgspec.Struct, frozen=True):
    """A read of the source of a move, whose rows go to the target."""

    read: str
    read_ts: int
    asked: AskRows


class Served(msgspec.Struct, frozen=True):
    """A read that was answered: it must still be right at the very end."""

    member: str
    read_ts: int
    rows: tuple[tuple[Place, bytes | None], ...]


class Site:
    """`send` hands a message to the network, `answer` an outcome or rows to a client here."""

    def __init__(
        self,
        name: str,
        timeline: Timeline,
        random: Random,
        limits: CommitLimits,
        send: Callable[[str, str, object], None],
        answer: Callable[[str, object], None],
        *,
        has_disk: bool,
    ) -> None:
        self.name = name
        self.has_disk = has_disk
        self.is_up = False
        self.crashes = 0
        self.version = 1  # of its tables and their bucket map
        self.wide: OwnTable  # as its disk has it
        self.moved: MovedShard
        self.mover: Mover | None = None
        self.keeper = ""  # who begins moves
        self.reach: Callable[[str], bool] = lambda _: True  # whether a member has a link, as far as this one knows
        self.is_full = False  # its disk takes nothing
        self._was_full = False  # in this life
        self.unkept_ts = 0  # up to which reads were answered that no mark on its disk knows of
        self.wall_offset_s = 0.0
        self.wall_rate = 1.0
        self.sync_s = random.choice((0.001, 0.005, 0.03, 0.2))
        self.look_s = random.choice((0.001, 0.005, 0.3))
        self.fuse: int | None = None  # instructions until it loses its power
        self.sync_fuse: int | None = None  # syncs until it loses its power in the middle of one
        self.blow: Callable[[], None] = lambda: None
        self.served: list[Served] = []
        self.versions: dict[Place, list[Version]] = {}
        self.disk: list[bytes] = []  # a group of records each, as it was synced
        self.commits_on_disk: set[Fact] = set()  # of all members: a participant knows them from the decider
        self._on_disk: set[Fact] = set()
        self.commits: Commits
        self._timeline = timeline
        self._random = random
        self._limits = limits
        self._send = send
        self._answer = answer
        self._queue: list[Persist] = []
        self._syncing: list[Persist] = []
        self._sync_due: float | None = None
        self._reads: dict[str, tuple[str, ReadRows | ReadMoved | SendRows, float]] = {}

    @property
    def at(self) -> At:
        wall_s = self._timeline.now * self.wall_rate + self.wall_offset_s
        return At(self._timeline.now, EPOCH_US + int(wall_s * 1e6))

    @property
    def may_be_set_back(self) -> bool:
        """Not a clock that alone keeps reads in their order: those that no mark on disk knows of."""
        clock = self.commits.clock
        return not self.unkept_ts if not self.is_up else not clock.is_unkept and clock.last >= self.unkept_ts

    # --- power -----------------------------------------------------------------------------------
    def start(self) -> None:
        records = [record for group in self.disk for record in _RECORDS.decode(group)]
        self.versions = rebuilt(records, self.wide)
        self.moved.rebuild(records)
        self.is_up, self._was_full = True, False
        self.commits = Commits(self.name, self._limits, self.at, records, has_disk=self.has_disk)
        self._later(self._random.uniform(0.01, TICK_S), self._tick)

    def crash(self) -> None:
        """What was not synced is gone. A sync that was under way has happened as a whole, or not."""
        if self._syncing and self._random.random() < 0.5 and not self.is_full:
            self._make_durable(self._syncing)
        self.is_up = False
        self.crashes += 1
        self.fuse = self.sync_fuse = None
        self._queue, self._syncing, self._sync_due, self._reads = [], [], None, {}
        self.versions = {}

    def learn(self, wide: OwnTable) -> None:
        """It is on disk at once; rows that are there are read with its columns."""
        if wide.version > self.wide.version:
            before, self.wide = ids_of(self.wide), wide
            for (table, key), chain in self.versions.items():
                if table == WIDE:
                    chain[:] = [
                        msgspec.structs.replace(each, row=relaid_row(key, each.row, before, wide)) for each in chain
                    ]

    def _later(self, delay_s: float, happen: Callable[[], None]) -> None:
        """Unless the member crashes before."""
        life = self.crashes

        def if_alive() -> None:
            if self.is_up and self.crashes == life:
                happen()

        self._timeline.after(delay_s, if_alive)

    def _tick(self) -> None:
        self._later(TICK_S, self._tick)
        for _, asked, until in self._reads.values():
            if self._timeline.now > until:
                raise Violation(f"{self.name}: read {asked.read} has waited longer than it may")
        self.do(self.commits.tick(self.at))

    # --- instructions ----------------------------------------------------------------------------
    def do(self, instructions: Iterable[Instruction]) -> None:
        for instruction in instructions:
            if self.fuse is not None:
                self.fuse -= 1
                if self.fuse <= 0:
                    self.blow()
                    return
            self._obey(instruction)
            if not self.is_up:
                return

    def _obey(self, instruction: Instruction) -> None:
        match instruction:
            case Persist():
                if not self.has_disk:
                    raise Violation(f"{self.name} has no disk, and is told to write {instruction}")
                self._queue.append(instruction)
                self._sync_within(self._random.uniform(0, 0.003) if instruction.is_urgent else LAZY_S)
            case Send(to, Submit(txn)) if not self.reach(to):
                self.commits.withheld(txn)
            case Send(to, message):
                if not self._may_say(message):
                    raise Violation(f"{self.name} says what is not on its disk: {message}")
                self._send(self.name, to, message)
            case Look():
                self._later(self._random.uniform(0, self.look_s), lambda: self._look(instruction))
            case Apply():
                for write in (*instruction.writes, *rows_in(instruction.staged)):
                    write = as_now(write, instruction.layouts, self.wide)
                    apply(self.versions, instruction.txn, instruction.commit_ts, write)
                self.moved.apply(instruction.commit_ts, instruction.writes, instruction.staged)
            case Moved(buckets):
                assert self.mover is not None
                self.mover.moved(buckets)
            case Answer(outcome):
                self._answer(f"commit {outcome.txn}", outcome)
            case Unsent(txn, failure):
                self._answer(f"commit {txn}", Outcome(txn, State.ABORTED, failure=failure))
            case Tell():
                self._answer(f"outcome {instruction.query}", instruction)
            case ReadReady(read):
                self._read(read)
            case ReadRefused(read, failure):
                asker, asked, _ = self._reads.pop(read)
                if not isinstance(asked, SendRows):
                    self._send(self.name, asker, RowsRead(asked.read, self.name, failure=failure.message))
            case Discard():
                pass
            case _:
                raise Violation(f"{self.name}: {instruction} is nothing for a shell")

    def _look(self, look: Look) -> None:
        if (moved := self.moved.look(look.part, self._timeline.now)) is not None:
            self._tell_look(look, moved)
            return
        known = {each.table: self.wide.version if each.table == WIDE else self.version for each in look.part.versions}
        if any(each.version != known[each.table] for each in look.part.versions):
            looked = Looked(stale=f"site {self.name}: table {look.part.versions[0].table} has changed")
        else:
            staged = tuple(self._found(rows_in((each,))) for each in look.part.staged)
            layouts = ((WIDE, ids_of(self.wide)),) if WIDE in known and self.wide.next_column else ()
            looked = Looked(tuple(self._found((write,)) for write in look.part.writes), staged, layouts=layouts)
        self._tell_look(look, looked)

    def _tell_look(self, look: Look, looked: Looked) -> None:
        """What it has seen may be told late: whoever wants to know must still hold the locks."""
        answer = functools.partial(self.commits.looked, look.txn, look.number, looked)
        self._later(self._random.uniform(0, self.look_s), lambda: self.do(answer(self.at)))

    def _found(self, writes: tuple[Write, ...]) -> Found:
        newest = [version for write in writes for version in self.versions.get((write.table, write.key), [])[-1:]]
        commit_ts = max((version.commit_ts for version in newest), default=0)
        return Found(commit_ts, any(version.row is not None for version in newest), len(writes))

    # --- disk ------------------------------------------------------------------------------------
    def _sync_within(self, delay_s: float) -> None:
        due = self._timeline.now + delay_s
        if self._syncing or (self._sync_due is not None and self._sync_due <= due):
            return
        self._sync_due = due
        self._later(delay_s, lambda: self._sync(due))

    def _sync(self, due: float) -> None:
        if self._sync_due != due or self._syncing:
            return
        self._sync_due, self._syncing, self._queue = None, self._queue, []
        takes_s = self._random.uniform(0.3, 1.7) * self.sync_s
        if self.sync_fuse is not None:
            self.sync_fuse -= 1
            if self.sync_fuse <= 0:
                self._later(self._random.random() * takes_s, self.blow)
        self._later(takes_s, self._synced)

    def _synced(self) -> None:
        written, self._syncing = self._syncing, []
        unwritten: list[Persist] = []
        if self.is_full and written:  # some of them may have found room
            room = self._random.randint(0, len(written) - 1)
            written, unwritten = written[:room], written[room:]
        self._make_durable(written)
        if unwritten:
            self._do_without(written, unwritten)
            return
        if self._queue:
            self._sync_within(0.0 if any(each.is_urgent for each in self._queue) else LAZY_S)
        for persist in written:
            if self.is_up:
                self.do(self.commits.persisted(persist.then, self.at))

    def _do_without(self, written: list[Persist], unwritten: list[Persist]) -> None:
        """What has gathered since is not written either: it may be the Prepared of what is given up now."""
        self._was_full = True
        for persist in written:
            if self.is_up:
                self.do(self.commits.persisted(persist.then, self.at))
        later, self._queue = self._queue, []
        for persist in (*unwritten, *later):
            if self.is_up:
                self.do(self.commits.unwritten(persist, SiteError(f"site {self.name}: no room"), self.at))
        if self.is_up:
            self._sync_within(ROOM_S)

    def _make_durable(self, written: list[Persist]) -> None:
        records = [record for persist in written for record in persist.records]
        self.disk.append(msgspec.msgpack.encode(records))
        facts = [fact for record in records for fact in facts_in(record)]
        self._on_disk.update(facts)
        self.commits_on_disk.update(fact for fact in facts if fact[0] == "commit")

    def _may_say(self, message: CommitMessage) -> bool:
        """A vote, a decision, an outcome: who hears it relies on it, whatever becomes of this member.

        An abort for which there is no room is said all the same: nobody can turn it, but for the same request in the
        member's next life, and there none of this life's messages comes.
        """
        if self._was_full and isinstance(message, Decided | Outcome) and not message.commit_ts:
            return True
        match message:
            case Vote():
                return ("prepared", message.txn, message.prepare_ts) in self._on_disk
            case Decided():
                return ("decided", message.txn, message.commit_ts) in self._on_disk
            case Done():
                return ("committed", message.txn, 0) in self._on_disk
            case Outcome(txn, State.ABORTED):
                return ("decided", txn, 0) in self._on_disk
            case Outcome(txn, State.COMMITTED) | OutcomeOf(txn, _, State.COMMITTED):
                query = txn.query if isinstance(txn, TransactionId) else txn
                return ("commit", query, message.commit_ts) in self.commits_on_disk
            case OutcomeOf(query, _, State.ABORTED):
                return ("fence", query, 0) in self._on_disk
            case _:
                return True

    # --- messages --------------------------------------------------------------------------------
    def receive(self, sender: str, message: object) -> None:
        match message:
            case ReadRows():
                name = f"{sender} {message.read}"
                if name not in self._reads:
                    until = self._timeline.now + self._limits.read_wait_s + 3 * TICK_S
                    self._reads[name] = (sender, message, until)
                    tables = frozenset(table for table, _ in message.places)
                    self.do(self.commits.read(name, message.read_ts, tables, self.at))
            case RowsRead():
                self._answer(f"read {message.read}", message)
            case ReadMoved():
                name = f"{sender} {message.read}"
                if name not in self._reads:
                    until = self._timeline.now + self._limits.read_wait_s + 3 * TICK_S
                    self._reads[name] = (sender, message, until)
                    self.do(self.commits.read(name, message.read_ts, frozenset({MOVED}), self.at))
            case AskRows():
                self._begin_send(message)
            case MoveRows():
                if message.version == self.moved.buckets.version:
                    self.moved.staged[message.moving.rows] = message.rows
                    assert self.keeper
                    self._send(self.name, self.keeper, RowsTaken(message.moving, message.version, message.read_ts))
            case RowsTaken():
                assert self.mover is not None
                self.mover.taken(message)
            case MapTold(buckets):
                self.moved.follow(buckets)
            case _:
                try:
                    self.do(self.commits.receive(sender, as_commit(message), self.at))
                except PeerError as error:
                    raise Violation(f"{self.name} accuses {sender}: {error}") from error

    def _begin_send(self, asked: AskRows) -> None:
        """The source of a move: those in doubt are waited for, then its rows are sent as they are."""
        assert self.mover is not None
        name = f"move {asked.moving.rows}"
        if name not in self._reads and self.moved.begin(asked, self._timeline.now, self.mover.freezes):
            until = self._timeline.now + self._limits.read_wait_s + 3 * TICK_S
            read_ts = self.commits.clock.tick(self.at)
            self._reads[name] = (self.name, SendRows(name, read_ts, asked), until)
            self.do(self.commits.read(name, read_ts, frozenset({MOVED}), self.at))

    def _read(self, name: str) -> None:
        asker, asked, _ = self._reads.pop(name)
        if isinstance(asked, SendRows):
            moving = self.moved.send(asked.asked, asked.read_ts, self.crashes)
            if moving is not None:
                self._send(self.name, moving.moving.target, moving)
            return
        if isinstance(asked, ReadMoved):
            found = self.moved.read(asked)
            if found is None:
                self._send(self.name, asker, RowsRead(asked.read, self.name, failure="another map"))
            else:
                there = tuple(((MOVED, key), row) for key, row in found.items())
                self._send(self.name, asker, RowsRead(asked.read, self.name, there))
            return
        rows = tuple((place, row_at(self.versions, place, asked.read_ts)) for place in asked.places)
        self.served.append(Served(self.name, asked.read_ts, rows))
        self._send(self.name, asker, RowsRead(asked.read, self.name, rows))


def as_commit(message: object) -> CommitMessage:
    """The message as it comes off the wire."""
    assert isinstance(message, CommitMessage)
    kind: type[CommitMessage] = type(message)
    again = msgspec.msgpack.decode(msgspec.msgpack.encode(message), type=kind)
    assert again == message or isinstance(message, Outcome)
    return again


def facts_in(record: Record) -> list[Fact]:
    match record:
        case Prepared():
            return [("prepared", record.txn, record.prepare_ts)]
        case Committed():
            return [("committed", record.txn, 0), ("commit", record.txn.query, record.commit_ts)]
        case Decision():
            commit: list[Fact] = [("commit", record.txn.query, record.commit_ts)] if record.commit_ts else []
            return [("decided", record.txn, record.commit_ts), *commit]
        case Fence():
            return [("fence", record.query, 0)]
        case _:
            return []


def file_of(rows: dict[bytes, bytes]) -> str:
    """A staged file: its name is all it holds."""
    return ";".join(f"{key.decode()}={row.decode()}" for key, row in rows.items())


def rows_in(staged: tuple[Staged, ...]) -> tuple[Write, ...]:
    """Of files; rows that move are in `moving.py`."""
    return tuple(
        Write(each.table, key.encode(), row.encode(), each.policy)
        for each in staged
        if each.moving is None
        for file in each.files
        for key, _, row in (text.partition("=") for text in file.split(";"))
    )


def apply(versions: dict[Place, list[Version]], txn: TransactionId, commit_ts: int, write: Write) -> None:
    if write.table == MOVED:
        return
    chain = versions.setdefault((write.table, write.key), [])
    if chain and chain[-1].commit_ts >= commit_ts:
        raise Violation(f"{txn} writes at {commit_ts}, before {chain[-1].txn} at {chain[-1].commit_ts}")
    chain.append(Version(commit_ts, write.row, write.policy, txn))


def row_at(versions: dict[Place, list[Version]], place: Place, read_ts: int) -> bytes | None:
    seen = [version for version in versions.get(place, []) if version.commit_ts <= read_ts]
    return seen[-1].row if seen else None


def as_now(write: Write, layouts: Layouts, wide: OwnTable) -> Write:
    """With the columns that its table has by now: it may have been prepared before that was altered."""
    if write.table != WIDE:
        return write
    ids = dict(layouts).get(WIDE, ())
    return msgspec.structs.replace(write, row=relaid_row(write.key, write.row, ids, wide))


def rebuilt(records: list[Record], wide: OwnTable) -> dict[Place, list[Version]]:
    """As a store does it when it starts: from what is on disk, alone."""
    versions: dict[Place, list[Version]] = {}
    prepared: dict[TransactionId, Prepared] = {}
    for record in records:
        match record:
            case Prepared():
                prepared[record.txn] = record
            case Aborted():
                prepared.pop(record.txn, None)  # its Prepared may have found no room
            case Committed():
                source = prepared.pop(record.txn) if record.txn in prepared else record
                for write in (*source.writes, *rows_in(source.staged)):
                    apply(versions, record.txn, record.commit_ts, as_now(write, source.layouts, wide))
            case _:
                pass
    return versions

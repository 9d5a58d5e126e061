"""Clients: bank transfers, lists that are appended to, rows that only one may insert, files of such rows.

A client is a generator: it yields what it waits for, and goes on with the answer, or with None when there is none.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from random import Random
from typing import TYPE_CHECKING

import msgspec

from sim.loop import Violation
from sim.tables.altering import row_of
from sim.tables.moving import KEYS, MOVED, bucket_of
from sim.tables.site import Place, RowsRead, file_of, rows_in
from skerry.model.commits import FoundAt, Part, Policy, Staged, TransactionId, Versions, Write
from skerry.model.errors import SiteError
from skerry.model.ids import QueryId
from skerry.model.sharded import BucketMap, OwnTable
from skerry.tables.instructions import Tell
from skerry.tables.transaction import Transaction
from skerry.tables.writes import decode_body
from skerry.wire.commit_messages import Outcome, State

if TYPE_CHECKING:
    from sim.tables.world import World

ACCOUNTS, LEDGER, LISTS, CLAIMS = 1, 2, 3, 4
ATTEMPTS = 4


class Rows(msgspec.Struct, frozen=True):
    """Waits for rows of these places, from the members that have them, as of `read_ts`."""

    member: str
    read_ts: int
    places: tuple[Place, ...]


class Scan(msgspec.Struct, frozen=True):
    """Waits for all rows of the table that moves, planned with this map."""

    member: str
    read_ts: int
    buckets: BucketMap


class Commit(msgspec.Struct, frozen=True):
    """Waits for the outcome."""

    member: str
    txn: TransactionId
    first_start: int
    read_ts: int
    parts: dict[str, Part]


class Inquire(msgspec.Struct, frozen=True):
    """Waits for what all members say of a query."""

    member: str
    query: QueryId
    first_start: int


class Pause(msgspec.Struct, frozen=True):
    seconds: float


Wish = Rows | Scan | Commit | Inquire | Pause
Waiting = Generator[Wish, object, None]
Snapshot = dict[Place, bytes | None]


class Gathered:
    """What a client's statements have gathered. One that reads nothing is a statement alone: it is sent as it is."""

    def __init__(self, query: QueryId, read_ts: int, rows: Snapshot, reads: bool) -> None:
        self.query = query
        self._rows = rows
        self._held = Transaction(read_ts, 1000, 1_000_000) if reads else None
        self._parts: dict[str, Part] = {}

    def add(self, member: str, part: Part) -> None:
        if self._held is not None:
            found = tuple(FoundAt(self._rows.get((write.table, write.key)) is not None) for write in part.writes)
            self._held.apply({member: part}, {member: found}, _TABLE, 1_000_000)
            return
        before = self._parts.get(member, Part())
        self._parts[member] = Part(
            before.writes + part.writes,
            before.staged + part.staged,
            tuple(dict.fromkeys(before.versions + part.versions)),
        )

    def row(self, member: str, place: Place) -> bytes | None:
        """As its queries see it: its own writes are laid over the snapshot."""
        told = self._held.changes(lambda table: table == place[0]) if self._held is not None else {}
        own = {key: row for changed in told.get(member, ()) for key, row in decode_body(changed.body)[1]}
        return own[place[1]] if place[1] in own else self._rows.get(place)

    def parts(self) -> dict[str, Part]:
        return self._parts if self._held is None else self._held.parts("", ())


_TABLE = OwnTable(1, "any", 1, (), (), (), ())
# Reads a snapshot, adds to what is gathered.
Statement = Callable[[Snapshot, Gathered], None]


class Attempt(msgspec.Struct):
    """One attempt to commit, as its client knows it; `state` None: nobody has told."""

    txn: TransactionId
    client: str
    first_start: int
    reads: Snapshot
    writes: dict[Place, Write]
    state: State | None = None
    commit_ts: int = 0
    rows: int = 0


class Client:
    """Its transactions follow each other, and each sees what those before saw: it carries the last timestamp along."""

    def __init__(self, name: str, world: World, random: Random, *, alters: bool = False, moves: bool = False) -> None:
        """`alters`: it writes the table whose columns change, and changes them; `moves`: that whose rows move."""
        self.name = name
        self._moves = moves
        self._alters = alters
        self.seen = 0
        self.is_over = False
        self.told: dict[QueryId, State] = {}  # what all members together said of a query
        self._world = world
        self._random = random
        self._number = 0

    def run(self) -> Waiting:
        yield Pause(self._random.uniform(0, 0.5))
        while not self._world.are_faults_over:
            kind = (
                self._widen
                if self._alters
                else self._random.choice((self._scan, self._append_moved, self._append_moved, self._put_moved))
                if self._moves
                else self._random.choice(
                    (
                        *(self._transfer, self._transfer, self._append, self._append),
                        *(self._audit, self._lists, self._claim, self._load),
                    )
                )
            )
            yield from kind()
            if self._random.random() < 0.3:
                yield Pause(self._random.expovariate(8))
        yield from self._settle()
        self.is_over = True

    def _settle(self) -> Waiting:
        """What is still open can be asked for by its id, now that all members run; then nothing is unknown."""
        for attempt in self._world.attempts:
            query = attempt.txn.query
            if attempt.client != self.name or attempt.state in (State.COMMITTED, State.ABORTED) or query in self.told:
                continue
            for _ in range(1 if self._world.forgets else 20):
                yield from self._ask(query, attempt.first_start)
                if query in self.told:
                    break
                yield Pause(1.0)

    # --- what clients do -------------------------------------------------------------------------
    def _transfer(self) -> Waiting:
        world, random = self._world, self._random
        one, other = random.sample(world.accounts, 2)
        amount = random.randint(1, 5)

        def statement(rows: Snapshot, transaction: Gathered) -> None:
            for place, change in ((one, -amount), (other, amount)):
                balance = int(rows[place] or b"0") + change
                self._add(transaction, place, str(balance).encode())
            ledger = (LEDGER, f"{transaction.query.initiator} {transaction.query.local}".encode())
            self._add(transaction, ledger, f"{amount}".encode(), Policy.FAIL)

        yield from self._transact((one, other), (statement,))

    def _append(self) -> Waiting:
        """To one list or several, in one statement or two; lists that it only reads as well."""
        random, world = self._random, self._world
        places = random.sample(world.lists, random.randint(1, min(3, len(world.lists))))
        written = places[: random.randint(1, len(places))]

        def appending(mark: str) -> Statement:
            def statement(_: Snapshot, transaction: Gathered) -> None:
                for place in written:
                    before = transaction.row(world.home(place), place) or b""
                    element = f"{transaction.query.initiator}.{transaction.query.local}{mark} ".encode()
                    self._add(transaction, place, before + element)

            return statement

        statements = (appending(""),) if random.random() < 0.7 else (appending("a"), appending("b"))
        yield from self._transact(tuple(places), statements)

    def _claim(self) -> Waiting:
        """Rows that only the first may insert, without a look before; sometimes one is given back."""
        random, world = self._random, self._world
        places = random.sample(world.claims, random.randint(1, 2))
        policy = random.choice((Policy.FAIL, Policy.NOTHING, Policy.NOTHING, Policy.REPLACE))
        is_delete = random.random() < 0.4

        def statement(_: Snapshot, transaction: Gathered) -> None:
            for place in places:
                row = None if is_delete else f"{transaction.query.initiator}.{transaction.query.local}".encode()
                self._add(transaction, place, row, Policy.REPLACE if is_delete else policy)

        yield from self._transact((), (statement,))

    def _load(self) -> Waiting:
        """The same rows as files, one a member."""
        random, world = self._random, self._world
        places = random.sample(world.claims, random.randint(1, len(world.claims)))
        policy = random.choice((Policy.FAIL, Policy.REPLACE))

        def statement(_: Snapshot, transaction: Gathered) -> None:
            row = f"{transaction.query.initiator}.{transaction.query.local}".encode()
            for member in sorted({world.home(place) for place in places}):
                file = file_of({key: row for table, key in places if world.home((table, key)) == member})
                transaction.add(member, Part(staged=(Staged(CLAIMS, (file,), policy),)))

        yield from self._transact((), (statement,))

    def _widen(self) -> Waiting:
        """Rows of a table that is altered now and then, before a statement, or by another client in its middle."""
        random, world = self._random, self._world
        if random.random() < 0.3:
            world.alter(random)
        places = random.sample(world.wides, random.randint(1, 2))

        def statement(_: Snapshot, transaction: Gathered) -> None:
            for table, key in places:
                row = row_of(key, transaction.query.local, world.wide)
                versions = Versions(table, world.wide.version, 1)
                part = Part((Write(table, key, row),), versions=(versions,))
                transaction.add(world.home((table, key)), part)

        yield from self._transact((), (statement,))

    def _map_at(self, member: str) -> BucketMap:
        """As the member that is asked knows it."""
        return self._world.sites[member].moved.buckets

    def _scanned(self, member: str) -> Generator[Wish, object, tuple[int, BucketMap, Snapshot] | None]:
        """All rows of the table that moves, at one moment; None if that failed."""
        buckets = self._map_at(member)
        self.seen = max(self.seen, buckets.since)
        read_ts = self._begin(member)
        if read_ts is None:
            yield Pause(0.2)
            return None
        rows = yield Scan(member, read_ts, buckets)
        if not isinstance(rows, dict):
            return None
        self._world.scans.append((self.name, read_ts, {key: row for (_, key), row in rows.items() if row is not None}))
        return read_ts, buckets, rows

    def _scan(self) -> Waiting:
        self._number += 1
        yield from self._scanned(self._random.choice(list(self._world.sites)))

    def _append_moved(self) -> Waiting:
        """An element more for one or two rows, by what was read of them."""
        yield from self._write_moved(self._random.sample(KEYS[::2], self._random.randint(1, 2)), reads=True)

    def _put_moved(self) -> Waiting:
        yield from self._write_moved(self._random.sample(KEYS[1::2], self._random.randint(1, 2)), reads=False)

    def _write_moved(self, keys: list[bytes], *, reads: bool) -> Waiting:
        self._number += 1
        member, first_start = self._random.choice(list(self._world.sites)), 0
        query = QueryId(member, f"{self.name}-{self._number}")
        for number in range(1, ATTEMPTS + 1):
            txn = TransactionId(query, number)
            buckets, read_ts, rows = self._map_at(member), 0, Snapshot()
            if reads:
                scanned = yield from self._scanned(member)
                if scanned is None:
                    return
                read_ts, buckets, rows = scanned
            now = self._begin(member)
            if now is None:
                yield Pause(0.2)
                return
            first_start = first_start or now
            parts: dict[str, Part] = {}
            element = f"{txn.query.initiator}.{txn.query.local}.{number}".encode()
            for key in keys:
                home = next(name for first, upto, name in buckets.groups if first <= bucket_of(key) < upto)
                row = (rows.get((MOVED, key)) or b"") + element + b" " if reads else element
                before = parts.get(home, Part(versions=(Versions(MOVED, 1, buckets.version),)))
                parts[home] = msgspec.structs.replace(before, writes=(*before.writes, Write(MOVED, key, row)))
                if reads:
                    self._world.appended.append((txn, key, element))
            outcome = yield Commit(member, txn, first_start, read_ts, parts)
            if not isinstance(outcome, Outcome) or outcome.state is State.UNKNOWN:
                return
            if outcome.state is State.COMMITTED:
                self.seen = max(self.seen, outcome.commit_ts)
                self._world.acknowledged.add(txn)
                self._world.complete += 1
                return
            self._world.failed += 1
            if not outcome.is_retryable:
                return
            yield Pause(self._random.uniform(0, 0.1 * number))

    def _audit(self) -> Waiting:
        """All accounts at one moment: the sum is always the same."""
        rows = yield from self._read_only(tuple(self._world.accounts))
        if rows is not None:
            self._world.check_total(self.name, rows)

    def _lists(self) -> Waiting:
        rows = yield from self._read_only(tuple(self._world.lists))
        if rows is not None:
            self._world.looks.append((self.name, self._number, rows))

    # --- how -------------------------------------------------------------------------------------
    def _add(self, transaction: Gathered, place: Place, row: bytes | None, policy: Policy = Policy.REPLACE) -> None:
        table, key = place
        versions = Versions(table, self._world.planned_version, 1)
        transaction.add(self._world.home(place), Part((Write(table, key, row, policy),), versions=(versions,)))

    def _begin(self, member: str) -> int | None:
        """A snapshot; None if the member is down, or its clock is behind what the client has seen."""
        site = self._world.sites[member]
        if not site.is_up:
            return None
        try:
            self.seen = site.commits.snapshot(self.seen, site.at)
        except SiteError:
            return None
        return self.seen

    def _read_only(self, places: tuple[Place, ...]) -> Generator[Wish, object, Snapshot | None]:
        self._number += 1
        member = self._random.choice(list(self._world.sites))
        read_ts = self._begin(member)
        if read_ts is None:
            yield Pause(0.2)
            return None
        rows = yield Rows(member, read_ts, places)
        assert rows is None or isinstance(rows, dict)
        return rows

    def _transact(self, places: tuple[Place, ...], statements: tuple[Statement, ...]) -> Waiting:
        """At most `ATTEMPTS` times: only one that certainly came to nothing is tried again."""
        self._number += 1
        member = self._random.choice(list(self._world.sites))
        query = QueryId(member, f"{self.name}-{self._number}")
        first_start = 0
        for number in range(1, ATTEMPTS + 1):
            read_ts = self._begin(member)
            if read_ts is None:
                yield Pause(0.2)
                return
            first_start = first_start or read_ts
            rows: Snapshot = {}
            if places:
                answer = yield Rows(member, read_ts, places)
                if not isinstance(answer, dict):
                    return
                rows = answer
            attempt = self._attempt(TransactionId(query, number), read_ts, first_start, rows, statements)
            outcome = yield self._commit(attempt, member, read_ts if places else 0)
            if not self._take(attempt, outcome):
                break
            yield Pause(self._random.uniform(0, 0.1 * number))
        if attempt.state is None and self._random.random() < 0.7:
            yield Pause(self._random.uniform(0, 2.0))
            yield from self._ask(query, first_start)

    def _attempt(
        self, txn: TransactionId, read_ts: int, first_start: int, rows: Snapshot, statements: tuple[Statement, ...]
    ) -> Attempt:
        transaction = Gathered(txn.query, read_ts, rows, bool(rows))
        for statement in statements:
            statement(rows, transaction)
        parts = transaction.parts()
        writes = {
            (write.table, write.key): write
            for part in parts.values()
            for write in (*part.writes, *rows_in(part.staged))
        }
        self._world.wide_of[txn] = self._world.wide
        attempt = Attempt(txn, self.name, first_start, rows, writes)
        self._world.attempts.append(attempt)
        self._parts = parts
        return attempt

    def _commit(self, attempt: Attempt, member: str, read_ts: int) -> Commit:
        return Commit(member, attempt.txn, attempt.first_start, read_ts, self._parts)

    def _take(self, attempt: Attempt, outcome: object) -> bool:
        """Whether to try again."""
        if not isinstance(outcome, Outcome) or outcome.state is State.UNKNOWN:
            return False
        attempt.state = outcome.state
        if outcome.state is State.COMMITTED:
            attempt.commit_ts, attempt.rows = outcome.commit_ts, outcome.rows
            self.seen = max(self.seen, outcome.commit_ts)
            self._world.complete += 1
        else:
            self._world.failed += 1
        return outcome.is_retryable

    def _ask(self, query: QueryId, first_start: int) -> Waiting:
        members = [name for name, site in self._world.sites.items() if site.is_up]
        if not members:
            return
        told = yield Inquire(self._random.choice(members), query, first_start)
        if isinstance(told, Tell) and told.state is not State.UNKNOWN:
            self._world.check_agrees(self.told.setdefault(query, told.state), told)
            self.seen = max(self.seen, told.commit_ts)


def rows_of(replies: list[RowsRead]) -> Snapshot:
    places = [place for reply in replies for place, _ in reply.rows]
    if len(set(places)) < len(places):
        raise Violation(f"a row is at two members: {replies}")
    return {place: row for reply in replies for place, row in reply.rows}

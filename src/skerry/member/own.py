"""Tables of our own at one member: what is known of all of them, and what of them is here, to be read and written."""

from __future__ import annotations

import asyncio
import os
import time
import uuid
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from typing import Any, TypeVar

import msgspec
import pyarrow as pa

from skerry.config import Config, Role
from skerry.member.bulk import Bulks
from skerry.member.claims import refuse_unfit
from skerry.member.committing import Committing
from skerry.member.defining import Defining
from skerry.member.moving import Moves
from skerry.member.resources import Workers
from skerry.member.staging import Staging
from skerry.model import trace
from skerry.model.commits import Changed, FoundAt, Layouts, Moving, Part, Staged, TransactionId, Versions, Write
from skerry.model.errors import ClocksApart, PeerError, SiteError, SkerryError, StaleSchema, UserError, unsure
from skerry.model.ids import QueryId
from skerry.model.limits import (
    CHANGE_PAUSE_MAX_S,
    COMPUTED_BYTES,
    FORGET_ROUNDS,
    STAGED_AHEAD,
    UPKEEP_PAUSE_ROUNDS,
    UPKEEP_S,
    WRITE_TUPLES,
    CommitLimits,
)
from skerry.model.rights import Action, Rights
from skerry.model.sharded import BucketMap, Catalogue, Definition, Drop, Fill, Making, OwnTable, TableStatus
from skerry.tables.catalogue import Kept
from skerry.tables.checks import (
    actions_of_all,
    actions_of_changes,
    actions_of_rows,
    changes_of,
    check_room,
    check_writes,
    found_of,
)
from skerry.tables.clock import COUNTER_BITS
from skerry.tables.files import remove_files
from skerry.tables.flush import groups_of
from skerry.tables.flushing import Flusher, Upkeep, open_shards
from skerry.tables.instructions import Found, Looked
from skerry.tables.laying import Counted, Layout, lay_out
from skerry.tables.layouts import ids_of, relaid_pairs
from skerry.tables.lookup import LATEST, FileKeys, FoundRow, ask, ask_blind
from skerry.tables.manifest import laid_of
from skerry.tables.mapping import is_followed, refuse_earlier
from skerry.tables.outcomes import Known
from skerry.tables.shard import Changes, Shard, Snapshot
from skerry.tables.store import Store
from skerry.wire.commit_messages import CommitMessage, Outcome, State
from skerry.wire.messages import Message
from skerry.wire.staging_messages import DropRows, StageRows
from skerry.wire.values import error_of

_T = TypeVar("_T")
_ACTIONS: tuple[Action, ...] = ("insert", "update", "delete")
_STOP_S = 2.0  # for commits under way, when the member stops
NOBODY = Rights()  # who settles a table that nobody sees has no rights, and needs none
RECALL_ATTEMPT = (1 << 31) - 1  # of no statement: it only asks


async def _aside(work: Callable[..., _T], count: int, *args: Any) -> _T:
    """In a thread, if it is about so many writes that everybody else would wait for it."""
    return await asyncio.to_thread(work, *args) if count > WRITE_TUPLES else work(*args)


class OwnTables:
    """Belongs to the member's loop. A lite member keeps nothing: it only asks."""

    def __init__(
        self,
        member: str,
        config: Config,
        send: Callable[[str, Message], None],
        own: Callable[[Coroutine[Any, Any, None], str], None],
        workers: Workers,
        rights_of: Callable[[str, tuple[str, ...]], Rights],
        up: Callable[[], Iterable[str]],
        on_write: Callable[[QueryId, Part, list[str]], None],
        limits: CommitLimits | None = None,
        reach: Callable[[str], bool] = lambda _: True,
    ) -> None:
        """`up`: the members that have a connection. `on_write` is told of writes, and raises if none may be now.

        `reach`: whether another member has a connection; one that has none is dialled, and `peer_up`, `peer_back` or
        `peer_lost` follows.
        """
        self._catalogue = Catalogue()
        self._member = member
        self._config = config
        self._folder = config.tables_path(member)
        self._rights_of = rights_of
        self._up = up
        self._on_write = on_write
        self._send = send
        self._reach = reach
        self._own = own
        self._workers = workers
        self._limits = limits or CommitLimits()
        self._kept = Kept()
        self._maps: dict[int, BucketMap] = {}  # that count here, of tables that are or were here
        self._definitions: Mapping[str, Definition] = {}
        self._tables: Mapping[str, OwnTable] = {}
        self._by_id: dict[int, Definition] = {}
        self._making: set[QueryId] = set()  # of this life: those that make tables now, and those that are settled
        self._shards: dict[int, Shard] = {}
        self._leaving: dict[int, Shard] = {}  # dropped, but still read
        self._faults: dict[int, SiteError] = {}
        self._troubles: dict[int, str] = {}  # of upkeep, until it is well again
        self._keys: dict[int, tuple[FileKeys, asyncio.Lock]] = {}
        self._late: dict[tuple[QueryId, int], list[tuple[str, StageRows | DropRows]]] = {}  # wait for their table
        self._routed: dict[QueryId, Part] = {}  # by this member, to itself; being committed
        self.on_flushed: Callable[[], None] = lambda: None  # how large a table is was learned
        # A role with a rule that names one of these columns of a table; "" if there is none.
        self.named_by: Callable[[str, frozenset[str]], str] = lambda *_: ""
        self._store: Store | None = None
        self._flusher: Flusher | None = None
        self._committing: Committing | None = None
        self._defining: Defining | None = None
        self._staging: Staging | None = None
        self._moves: Moves | None = None
        self.bulks = Bulks(member, send, workers)

    # --- life ---------------------------------------------------------------------------------------------------------
    async def start(self) -> None:
        """Reads what is on disk; SiteError if that cannot be."""
        records: tuple[Any, ...] = ()
        if self._folder:
            # Arrow loads pandas, if that is there, for its first array: seconds that the loop does not have.
            await self._workers.run(pa.array, [0])
            self._store = store = await self._workers.run(Store, self._folder, self._member)
            opened = await self._workers.run(open_shards, store, self._member)
            self._shards, self._faults = opened.shards, opened.faults
            self._flusher = Flusher(store, self._member)
            self._maps = {buckets.table: buckets for buckets in store.loaded.maps}
            self._show(store.loaded.kept)
            records = store.loaded.records
        self._committing = Committing(
            self._member,
            self._limits,
            records,
            self._store.hand if self._store is not None else None,
            self._look,
            self._apply,
            self._discard,
            self._send,
            self._own,
            self._moved,
            self._reach,
        )
        self._staging = Staging(self._member, self._folder, self._workers, self._send, self._own, self._admit)
        self._defining = Defining(
            self._member,
            self._config,
            self.kept,
            self.keep,
            self._send,
            self._own,
            self._up,
            self._rights_of,
            self.now,
            self._reach,
        )
        self._defining.named_by = self.named_by
        if self._store is not None and self._flusher is not None:
            self._moves = Moves(self._member, self, self.bulks, self._staging, self._flusher)
            self._own(self._keep_up(), "upkeep of tables")
            for buckets in self._store.loaded.moved if self.keeper == self._member else ():
                self._moved(buckets)

    def meet(self) -> None:
        """The member can be reached: its keeper and it look for each other."""
        if self.defining.keeper and len(self._config.members) > 1:
            self.defining.meet(name for name in self._config.members if name != self._member)

    def peer_up(self, peer: str) -> None:
        if self._defining is not None:
            self._defining.peer_up(peer)
        self.peer_back(peer)

    def peer_back(self, peer: str) -> None:
        """It has a connection, of whatever session: what waited for one is sent."""
        if self._defining is not None:
            self._defining.linked(peer)
        if self._committing is not None:
            self._committing.up(peer)

    def peer_lost(self, peer: str, error: SiteError) -> None:
        if self._defining is not None:
            self._defining.peer_lost(peer, error)
        if self._committing is not None:
            self._committing.lost(peer, error)
        for (query, _), late in self._late.items():
            if query.initiator == peer:
                late.clear()
        if self._staging is not None:
            self._staging.lost(peer)
        if self._moves is not None and peer == self.keeper:
            self._moves.release_all()

    @property
    def moves(self) -> Moves:
        """SiteError at a member without tables."""
        if self._moves is None:
            raise SiteError(f"site {self._member} has no tables", member=self._member)
        return self._moves

    @property
    def defining(self) -> Defining:
        if self._defining is None:
            raise SiteError(f"site {self._member} has not started", member=self._member)
        return self._defining

    async def stop(self) -> None:
        if self._committing is not None:
            await self._committing.settle(_STOP_S)
            self._committing.stop()
        if self._store is not None:
            await self._workers.run(self._store.close)

    # --- what is known ------------------------------------------------------------------------------------------------
    @property
    def definitions(self) -> Mapping[str, Definition]:
        """By name in lower case."""
        return self._definitions

    @property
    def tables(self) -> Mapping[str, OwnTable]:
        """The same without their buckets."""
        return self._tables

    def definition_of(self, table_id: int) -> Definition | None:
        """Also of a table that nobody sees yet."""
        return self._by_id.get(table_id)

    def made_by(self, query: QueryId) -> Definition | None:
        """The table of a CREATE TABLE … AS, whether it is filled or not."""
        made = (each for each in self._by_id.values() if each.making is not None and each.making.query == query)
        return next(made, None)

    def makes(self, query: QueryId) -> AbstractContextManager[None]:
        """While a statement makes a table, nobody else settles it."""
        self._making.add(query)
        return _leaving(self._making, query)

    def folder_of(self, table_id: int) -> str:
        """Names of a snapshot's files are relative to it."""
        return os.path.join(self._folder, str(table_id))

    def size_of(self, table_id: int) -> tuple[int | None, int]:
        """Rows and bytes of the table here, now, as far as that is known without reading: keys may count twice."""
        shard = self._shards.get(table_id)
        return shard.size() if shard is not None else (None, 0)

    def status_of(self, table_id: int) -> TableStatus:
        """What is here of it, and what upkeep did last."""
        shard, fault = self._shards.get(table_id), self._faults.get(table_id)
        if fault is not None or shard is None:
            gone = fault.message if fault is not None else f"site {self._member} has no part of it"
            return TableStatus(table_id, problem=gone)
        assert self._flusher is not None
        done = self._flusher.done.get(table_id, Upkeep())._asdict()
        status, since = shard.status(), self._by_id[table_id].buckets.since >> COUNTER_BITS
        leaving = self.moves.under_way.get(table_id)
        return msgspec.structs.replace(
            status,
            **done,
            history_us=max(status.history_us, since),
            problem=self._troubles.get(table_id, ""),
            moving=f"buckets {leaving[0]} to {leaving[1] - 1} are leaving" if leaving is not None else "",
        )

    @property
    def keeper(self) -> str:
        """The member that keeps all definitions; "" if nobody does, or this member has not started."""
        return self._defining.keeper if self._defining is not None else ""

    async def catch_up(self) -> None:
        """Learn what was defined elsewhere and is not known here. A keeper that is away is not waited for."""
        await self.defining.catch_up()

    @property
    def version(self) -> int:
        """Of all definitions."""
        return self._catalogue.version

    @property
    def tables_upto(self) -> int:
        """The number of the next table, as far as it is known here: no table has had it."""
        return self._catalogue.next_id

    @property
    def kept(self) -> Kept:
        """What was on disk at the start."""
        return self._store.loaded.kept if self._store is not None else Kept()

    async def keep(self, kept: Kept) -> None:
        """Definitions from whoever keeps them: on disk, then seen by all that runs here."""
        if self._store is not None:
            await asyncio.wrap_future(self._store.keep(kept))
        if kept.catalogue.version > self._catalogue.version:
            self._show(kept)
            since = max((each.buckets.since for each in kept.catalogue.definitions), default=0)
            with suppress(SiteError):  # the clocks are apart, which every statement that reads them says
                self.now(since)  # a transaction that begins here from now on can read new tables

    def _show(self, kept: Kept) -> None:
        self._kept = kept
        catalogue = self._catalogue = kept.catalogue
        definitions = [self._followed(each) for each in catalogue.definitions]
        self._definitions = {each.table.name.lower(): each for each in definitions if each.is_seen}
        self._tables = {name: each.table for name, each in self._definitions.items()}
        self._by_id = {each.table.id: each for each in definitions}
        for table_id in self._maps.keys() - self._by_id.keys():
            del self._maps[table_id]
        for table_id in [number for number in self._shards if number not in self._by_id]:
            self._leaving[table_id] = self._shards.pop(table_id)
            self._keys.pop(table_id, None)
        for table_id in [number for number in self._faults if number not in self._by_id]:
            del self._faults[table_id]
        holders = {each.table.id: each.table.members for each in catalogue.definitions}
        for table_id, (table, buckets) in (
            (number, (each.table, each.buckets)) for number, each in self._by_id.items()
        ):
            is_here = self._folder and self._member in holders[table_id]
            if is_here and (table.made or table.version) <= kept.lost_upto:
                self._faults[table_id] = self._lost(table)
                self._shards.pop(table_id, None)
            shard = self._shards.get(table_id)
            if shard is not None and shard.table != table:
                if msgspec.structs.replace(shard.table, members=table.members) == table:
                    shard.table = table
                else:
                    shard.alter(table)
                    self._keys.pop(table_id, None)
            if is_here and shard is None and table_id not in self._faults:
                ranges = buckets.ranges(self._member) if table.distributed_by else None
                self._shards[table_id] = Shard(table, self.folder_of(table_id), None, ranges)

    def _followed(self, definition: Definition) -> Definition:
        """With the map that counts here: that of a move of this member's own comes with its commit."""
        told, now, table = definition.buckets, self._maps.get(definition.table.id), definition.table
        if not self._folder or (now is None and self._member not in table.members):
            now = told
        elif now is None or is_followed(now, told, self._member):
            now = self._maps[table.id] = told
        if now.members:  # others may hold some of it, but their copies do not count
            table = msgspec.structs.replace(table, members=now.members)
        return msgspec.structs.replace(definition, table=table, buckets=now)

    def _moved(self, buckets: BucketMap) -> None:
        """The keeper's: a move is decided."""
        self.defining.moved(buckets)

    def _lost(self, table: OwnTable) -> SiteError:
        return SiteError(
            f"site {self._member}: rows of table {table.name} are gone: the folder of its tables is not the one that "
            "it had, or an older copy of it",
            member=self._member,
            suggestion=f"stop {self._member} and restore the newest copy of that folder; or drop the table",
        )

    # --- reading ------------------------------------------------------------------------------------------------------
    def now(self, at_least: int = 0) -> int:
        """A moment to read at: all commits that anybody was told of here are before it."""
        return self._core.now(at_least)

    async def open(self, definition: Definition, read_ts: int, changed: Changed | None = None) -> Snapshot:
        """The member's rows of a table as of `read_ts`; nothing of it goes away before `close`.

        `definition`: what the query was planned with. `changed`: what a transaction has written, for its own query.
        StaleSchema if the table, or where its buckets are, is another here; TimedOut if a commit stays in doubt.
        """
        table_id, version, bucket_map = definition.table.id, definition.table.version, definition.buckets.version
        _, shard = self.held(table_id, version, bucket_map)
        changes = await self._changes(shard, changed) if changed is not None else None
        await self._core.read(read_ts, frozenset({table_id}))
        # A move that was waited for is another map: its rows are not where the query looks for them.
        now, again = self.held(table_id, version, bucket_map)
        if again is not shard:
            raise self._stale(table_id)
        refuse_earlier(now.buckets, read_ts, now.table.name)
        shard.pin(read_ts)
        try:
            return shard.snapshot(read_ts, changes)
        except BaseException:
            shard.unpin(read_ts)
            raise

    async def _changes(self, shard: Shard, changed: Changed) -> Changes:
        """PeerError if these are not such as a transaction can have."""
        if changed.version != shard.table.version:
            raise UserError(
                f"table {shard.table.name} has changed since the transaction wrote to it: it cannot be committed",
                suggestion="ROLLBACK, and begin it again",
            )
        return await self._workers.run(changes_of, shard, changed.body)

    async def find(self, query: QueryId, part: Part, read_ts: int) -> tuple[FoundAt, ...]:
        """What the writes of a transaction meet here, at its snapshot; errors are why they cannot be written."""
        if not self._folder:
            raise PeerError(f"site {self._member} has no tables")
        by_table: dict[int, list[Write]] = {}
        for write in part.writes:
            by_table.setdefault(write.table, []).append(write)
        self._check_part(part)
        for table_id, writes in by_table.items():
            self._check_rights(part.user, part.roles, self._shards[table_id].table.name, actions_of_all(writes))
            await _aside(check_writes, len(writes), self._shards[table_id], writes)
        await self._core.read(read_ts, frozenset(by_table))
        self._check_part(part)
        for table_id in by_table:
            refuse_earlier(self._by_id[table_id].buckets, read_ts, self._by_id[table_id].table.name)
        met: dict[int, Iterator[Found]] = {}
        for table_id, writes in by_table.items():
            shard = self._shards[table_id]
            rows = await self._rows(shard, writes, read_ts)
            met[table_id] = iter(await _aside(found_of, len(writes), shard.table, writes, rows))
        self._check_part(part)
        found = [next(met[write.table]) for write in part.writes]
        if sum(len(each.row or b"") for each in found) > COMPUTED_BYTES:
            raise UserError(
                f"the rows that the statement changes have more than {COMPUTED_BYTES} bytes at {self._member}",
                suggestion="change fewer rows in one statement",
            )
        return tuple(FoundAt(each.is_live, each.row) for each in found)

    def _check_part(self, part: Part) -> None:
        if (stale := self._stale_part(part)) is not None:
            raise StaleSchema(stale, member=self._member)

    def close(self, table_id: int, read_ts: int) -> None:
        shard = self._shards.get(table_id) or self._leaving.get(table_id)
        if shard is not None:
            shard.unpin(read_ts)

    @property
    def _core(self) -> Committing:
        if self._committing is None:
            raise SiteError(f"site {self._member} has not started", member=self._member)
        return self._committing

    def _shard(self, table_id: int, version: int) -> Shard:
        definition = self._by_id.get(table_id)
        if definition is None or definition.table.version != version:
            raise self._stale(table_id)
        if (fault := self._faults.get(table_id)) is not None:
            raise fault
        shard = self._shards.get(table_id)
        if shard is None:
            raise self._stale(table_id)
        return shard

    def held(self, table_id: int, version: int, bucket_map: int) -> tuple[Definition, Shard]:
        """The table as it is here. StaleSchema unless these are the versions that count."""
        shard = self._shard(table_id, version)
        if self._by_id[table_id].buckets.version != bucket_map:
            raise self._stale(table_id)
        return self._by_id[table_id], shard

    async def settled(self, table_id: int, read_ts: int) -> None:
        """Until all commits to the table up to `read_ts` are here."""
        await self._core.read(read_ts, frozenset({table_id}))

    async def written(self) -> None:
        """Until all commits that are here are on disk."""
        await self._core.written()

    def _stale(self, table_id: int) -> StaleSchema:
        known = self._by_id.get(table_id)
        name = f"table {known.table.name}" if known is not None else f"table number {table_id}"
        return StaleSchema(f"site {self._member}: {name} has changed, or is gone", member=self._member)

    # --- writing ------------------------------------------------------------------------------------------------------
    def receive(self, sender: str, message: CommitMessage) -> None:
        """PeerError if the sender may not say this."""
        refuse_unfit(sender, message, self._member, self._config)
        if self._committing is not None:
            self._committing.receive(sender, message)

    def receive_rows(self, sender: str, message: StageRows | DropRows) -> None:
        """Rows may come before their table is known here: that is waited for, and so do those that follow them."""
        if self._staging is None:
            return
        key = message.query, message.stage
        if (late := self._late.get(key)) is not None:
            if len(late) <= STAGED_AHEAD + 1:  # more than may come; one that is missing is noticed
                late.append((sender, message))
        elif isinstance(message, StageRows) and not message.number and self._is_behind((_versions_of(message),)):
            self._late[key] = [(sender, message)]
            self._own(self._receive_late(key, _versions_of(message)), f"rows of query {message.query}")
        else:
            self._staging.receive(sender, message)

    async def _receive_late(self, key: tuple[QueryId, int], versions: Versions) -> None:
        assert self._staging is not None
        try:
            await self._follow((versions,))
        finally:
            for sender, message in self._late.pop(key):
                self._staging.receive(sender, message)

    def _is_behind(self, versions: Iterable[Versions]) -> bool:
        """Whether another member has heard of a table, or of what it is now, before this one."""
        for each in versions:
            known = self._by_id.get(each.table)
            if known is None:
                if each.table >= self._catalogue.next_id:
                    return True
            elif each.version > known.table.version or each.bucket_map > known.buckets.version:
                return True
        return False

    async def _follow(self, versions: Sequence[Versions]) -> None:
        """Until the keeper has told what it knows, and moves that were voted for here are over. A while at most."""
        await self.catch_up()
        known = frozenset(each.table for each in versions if each.table in self._by_id)
        if known and self._is_behind(versions):
            with suppress(SkerryError):  # what is still wrong is said by whoever looks next
                await self._core.read(self.now(), known)

    def _admit(self, sender: str, message: StageRows) -> Shard:
        """The table that rows are sent ahead for; raises why they are not taken."""
        if not self._folder:
            raise PeerError(f"site {self._member} has no tables")
        definition, shard = self.held(message.table, message.version, message.bucket_map)
        if message.buckets is not None:  # they count if the keeper commits a move that names them
            first, upto = message.buckets
            ranges = definition.buckets.ranges(sender)
            if sender in definition.buckets.members:
                ranges = ((0, shard.table.buckets),)
            if not any(begin <= first < upto <= end for begin, end in ranges):
                raise PeerError(f"buckets {first} to {upto} of table {shard.table.name}, which {sender} does not have")
            return shard
        if message.is_changes:  # which there are is known when all have come: `_lay` looks again
            rights = self._rights_of(message.user, message.roles)
            if not any(rights.may(action, self._member, shard.table.name) for action in _ACTIONS):
                raise UserError(f"user {message.user} may not change table {shard.table.name}", member=self._member)
        else:
            self._check_rights(message.user, message.roles, shard.table.name, actions_of_rows(message.policy))
        return shard

    @property
    def has_disk(self) -> bool:
        """Whether it decides what it commits, and knows what it has decided."""
        return bool(self._folder)

    def committed(self, query: QueryId) -> Known | None:
        """How many rows this query wrote, and when, as far as it is known here that it did."""
        return self._core.committed(query)

    async def recall(self, query: QueryId) -> Known | None:
        """The same of a statement that was sent before, whose rows a query or a client gave, for certain: who decides
        it is asked, which is another member where this one has no disk. OutcomeUnknown if that one does not answer."""
        decider = self._decider()
        while True:
            txn, first_start = TransactionId(query, RECALL_ATTEMPT), self._core.now()
            try:
                outcome = await self._core.submit(txn, first_start, {}, 0, decider)
            except SkerryError as error:  # nobody was asked
                raise unsure(query, error) from error
            if outcome.state is State.COMMITTED:
                return Known(first_start, outcome.commit_ts, outcome.rows)
            if outcome.state is State.UNKNOWN:
                assert outcome.failure is not None
                raise unsure(query, error_of(outcome.failure))
            if not outcome.is_retryable:
                return None
            await asyncio.sleep(CHANGE_PAUSE_MAX_S)  # owner: the query's deadline; an attempt is being decided

    def seen(self, commit_ts: int) -> Awaitable[None] | None:
        """Until reads that begin here are later than this commit, which a client was told of elsewhere; None: they are.

        By waiting, and not by putting the clock forward: a client has no say in that. SiteError if it is far ahead.
        """
        ahead_s = (commit_ts >> COUNTER_BITS) / 1e6 - time.time()
        if ahead_s > self._limits.clock_ahead_s or commit_ts < 0:
            raise SiteError(
                f"site {self._member}: the client has seen a commit that is {ahead_s:.0f} s ahead of the clock here",
                member=self._member,
                suggestion="set the members' clocks (NTP)",
            )
        return asyncio.sleep(ahead_s) if ahead_s > 0 else None  # owner: the query's deadline

    async def submit(
        self,
        txn: TransactionId,
        first_start: int,
        parts: dict[str, Part],
        read_ts: int | None = None,
        is_routed: bool = False,
    ) -> Outcome:
        """How this attempt ended. Reads that begin here afterwards see it. `is_routed`: `tables/routing.py` has made
        the parts from constants, so this member need not look at every byte of its own.

        `read_ts`: of a query that gave the rows. Such a statement has one decider, whatever its rows are: said again,
        it must not be run again.
        """
        decider = "" if read_ts is None else self._decider()
        if is_routed and self._member in parts:
            self._routed[txn.query] = parts[self._member]
        try:
            outcome = await self._core.submit(txn, first_start, parts, read_ts or 0, decider)
        finally:
            self._routed.pop(txn.query, None)
        if outcome.state is State.COMMITTED:
            # Who was told of a commit and asks any member reads by its clock: it must not be before the commit.
            try:
                self._core.now(outcome.commit_ts)
            except ClocksApart as error:
                # It is committed, whatever the clocks say. Who reads here what it wrote is told why that cannot be.
                self._core.tell_apart("who decided a commit", error.message)
            ahead_s = (outcome.commit_ts >> COUNTER_BITS) / 1e6 - time.time()
            if ahead_s > 0:
                await asyncio.sleep(min(ahead_s, self._limits.clock_ahead_s))
        return outcome

    async def move(self, txn: TransactionId, first_start: int, parts: dict[str, Part], read_ts: int) -> Outcome:
        """A move of a group, which this member, the keeper, decides."""
        return await self._core.submit(txn, first_start, parts, read_ts, self._member)

    def _decider(self) -> str:
        """Of statements whose rows were computed or loaded here: they may be others when it is said again."""
        data = [name for name, each in self._config.members.items() if each.role is Role.DATA]
        return self._member if self._member in data else min(data)

    def _look(self, query: QueryId, part: Part, read_ts: int) -> Looked | Awaitable[Looked]:
        """What the writes meet here; errors are why they cannot be written. At once, unless files have to be read."""
        if (stale := self._stale_part(part)) is not None:
            return self._look_behind(query, part, read_ts) if self._is_behind(part.versions) else Looked(stale=stale)
        if part.staged and (moving := part.staged[0].moving) is not None:
            return self._look_moving(part, part.staged[0], moving)
        self.moves.refuse_frozen(part, self._shards)
        self._on_write(query, part, sorted([self._by_id[number].table.name for number in _tables(part)]))
        by_table = _by_table(part.writes)
        for table_id, writes in by_table.items():
            self._check_rights(part.user, part.roles, self._shards[table_id].table.name, actions_of_all(writes))
            check_room(self._shards[table_id], writes)
        # The very part that was made here: what a message says is always checked.
        checked = () if part is self._routed.get(query) else by_table.items()
        if part.staged or len(part.writes) > WRITE_TUPLES:
            return self._look_aside(query, part, read_ts, by_table, bool(checked))
        for table_id, writes in checked:
            check_writes(self._shards[table_id], writes)
        met: dict[int, list[Found]] = {}
        for table_id, writes in by_table.items():
            found = self._met_in_memory(self._shards[table_id], writes)
            if found is None:
                return self._look_aside(query, part, read_ts, by_table, False)
            met[table_id] = found
        return self._looked(part, met)

    def _met_in_memory(self, shard: Shard, writes: list[Write]) -> list[Found] | None:
        """What writes to one table meet; None if a file has to be read for that."""
        if (blind := ask_blind(shard, writes)) is not None:
            return [Found(blind.commit_ts)] * len(writes)
        asked = ask(shard, writes, LATEST)
        if not asked.needs_files:
            return found_of(shard.table, writes, asked.found)
        files, turn = self.file_keys(shard)
        found = files.find_absent(asked) if not turn.locked() else None  # else a thread is at the indexes
        return found_of(shard.table, writes, found) if found is not None else None

    async def _look_behind(self, query: QueryId, part: Part, read_ts: int) -> Looked:
        """This member may have only just met the keeper: then whoever asks knows more, and has nothing to plan anew."""
        await self._follow(part.versions)
        if self._is_behind(part.versions) and (stale := self._stale_part(part)) is not None:
            return Looked(stale=stale)
        looked = self._look(query, part, read_ts)
        return looked if isinstance(looked, Looked) else await looked

    async def _look_moving(self, part: Part, staged: Staged, moving: Moving) -> Looked:
        looked = await self.moves.look(part, staged, moving)
        if (stale := self._stale_part(part)) is not None:
            self._discard(looked.laid)
            return Looked(stale=stale)
        return looked

    async def _look_aside(
        self, query: QueryId, part: Part, read_ts: int, by_table: dict[int, list[Write]], is_checked: bool
    ) -> Looked:
        """The same with files, and with so many writes that all others would wait for them: in threads."""
        met, laid = dict[int, list[Found]](), list[tuple[Staged, Counted]]()
        try:
            for table_id, writes in by_table.items():
                shard = self._shards[table_id]
                if is_checked:
                    await asyncio.to_thread(check_writes, shard, writes)
                rows = await self._rows(shard, writes)
                met[table_id] = await _aside(found_of, len(writes), shard.table, writes, rows)
            for staged in part.staged:
                laid.append((staged, await self._lay(query, part, staged, read_ts)))
        except Exception:
            self._discard(_as_files(laid))
            if (stale := self._stale_part(part)) is not None:  # the table was altered: what seems wrong is not
                return Looked(stale=stale)
            raise
        # Definitions may have changed while files were read.
        if (stale := self._stale_part(part)) is not None:
            self._discard(_as_files(laid))
            return Looked(stale=stale)
        try:
            self.moves.refuse_frozen(part, self._shards)  # a group may have begun to leave
        except SkerryError:
            self._discard(_as_files(laid))
            raise
        return self._looked(part, met, laid)

    def _looked(
        self,
        part: Part,
        met: dict[int, list[Found]],
        laid: Sequence[tuple[Staged, Counted]] = (),
    ) -> Looked:
        """In the order of the part."""
        if len(met) == 1:
            (found_here,) = met.values()
        else:
            found = {table_id: iter(each) for table_id, each in met.items()}
            found_here = [next(found[write.table]) for write in part.writes]
        shards = [self._shards[each.table] for each in part.versions]
        return Looked(
            tuple(found_here),
            tuple([Found(each.newest_ts, rows=each.rows) for _, each in laid]),
            kept_from=max(
                [max(shard.manifest.kept_ts, self._by_id[shard.table.id].buckets.since) for shard in shards], default=0
            ),
            laid=_as_files(laid) if laid else (),
            layouts=tuple([(shard.table.id, ids_of(shard.table)) for shard in shards if shard.table.next_column]),
        )

    async def _lay(self, query: QueryId, part: Part, staged: Staged, read_ts: int) -> Counted:
        """Files of the rows that were sent ahead. The table is locked."""
        assert self._flusher is not None
        assert self._staging is not None
        shard, number = self._shards[staged.table], int(staged.files[0])
        spool = await self._staging.ready(query, number)
        upto_ts = self.now()
        shard.pin(upto_ts)
        try:
            if spool.is_changes != staged.is_changes:
                raise PeerError(f"query {query}: its rows are not what its commit takes them for")
            actions = actions_of_changes(spool.changes) if spool.is_changes else actions_of_rows(staged.policy)
            self._check_rights(part.user, part.roles, shard.table.name, actions)
            await self._core.read(upto_ts, frozenset({staged.table}))
            await self._core.written()
            files, turn = self.file_keys(shard)
            async with turn:
                return await self._flusher.beside(
                    shard, upto_ts, lambda: partial(lay_out, spool, _layout(shard, files, read_ts), staged)
                )
        finally:
            shard.unpin(upto_ts)
            self._staging.done(query, number)

    def _check_rights(self, user: str, roles: tuple[str, ...], table: str, actions: Iterable[Action]) -> None:
        """UserError unless the user may do so, by this member's own rules."""
        rights = self._rights_of(user, roles)
        if rights.is_open:
            return
        for action in sorted(set(actions)):
            if not rights.may(action, self._member, table):
                raise UserError(f"user {user} may not {action} rows of table {table}", member=self._member)

    def _stale_part(self, part: Part) -> str | None:
        """Why the part was made for other tables than there are here."""
        for each in part.versions:
            known = self._by_id.get(each.table)
            if known is None or (known.table.version, known.buckets.version) != (each.version, each.bucket_map):
                return self._stale(each.table).message
        for table_id in _tables(part):
            if table_id not in {each.table for each in part.versions}:
                return f"site {self._member}: writes of table number {table_id}, without its version"
            if (fault := self._faults.get(table_id)) is not None:
                raise fault
            if table_id not in self._shards:
                return self._stale(table_id).message
        return None

    async def _rows(self, shard: Shard, writes: list[Write], read_ts: int = LATEST) -> list[FoundRow]:
        """The version of each write's key at that moment: the newest, which locks keep the newest."""
        files, turn = self.file_keys(shard)
        asked = ask(shard, writes, read_ts)
        if not asked.needs_files:
            return asked.found
        pinned_ts = min(read_ts, shard.manifest.flushed_ts)
        shard.pin(pinned_ts)  # a flush may come meanwhile, but these files stay
        try:
            async with turn:
                return await asyncio.to_thread(files.find, asked)
        finally:
            shard.unpin(pinned_ts)

    def file_keys(self, shard: Shard) -> tuple[FileKeys, asyncio.Lock]:
        """Whoever asks for keys has the lock. They go when the table is altered."""
        return self._keys.setdefault(shard.table.id, (FileKeys(shard.table, shard.folder), asyncio.Lock()))

    def _apply(
        self, commit_ts: int, writes: tuple[Write, ...], staged: tuple[Staged, ...], layouts: Layouts = ()
    ) -> None:
        for each in staged:
            if (shard := self._shards.get(each.table)) is not None:
                laid = laid_of(each)
                shard.load(commit_ts, laid)
                if laid.buckets is not None:
                    self._place(shard, msgspec.structs.replace(laid.buckets, since=commit_ts))
                self.on_flushed()
            if each.moving is not None and self._moves is not None:
                self._moves.release(each.moving.rows)
        for table_id in {write.table for write in writes}:
            shard = self._shards.get(table_id)
            if shard is not None:  # else the table was dropped meanwhile
                pairs = [(write.key, write.row) for write in writes if write.table == table_id]
                # They may have been prepared before it was altered.
                shard.apply(commit_ts, relaid_pairs(pairs, dict(layouts).get(table_id, ()), shard.table))

    def _place(self, shard: Shard, buckets: BucketMap) -> None:
        """A move of this member's own is committed: from now on its buckets are others."""
        self._maps[shard.table.id] = buckets
        if shard.table.distributed_by:
            shard.ranges = buckets.ranges(self._member)
        self._show(self._kept)

    def _discard(self, staged: tuple[Staged, ...]) -> None:
        """Files of a transaction that came to nothing. What was sent ahead stays for its next attempt, but for a move,
        which is another one then."""
        for each in staged:
            if each.moving is not None and self._moves is not None:
                self._moves.release(each.moving.rows)
            if each.body:
                names = [file.name for file in laid_of(each).added]
                self._own(asyncio.to_thread(remove_files, self.folder_of(each.table), names), "staged files")

    # --- upkeep -------------------------------------------------------------------------------------------------------
    async def flush(self, table_id: int) -> None:
        """All commits until now are in files when it returns, and readers of Delta see them."""
        assert self._flusher is not None
        if (fault := self._faults.get(table_id)) is not None:
            raise fault
        upto_ts = self.now()
        await self._core.read(upto_ts, frozenset({table_id}))
        # A flush of a commit must not be on disk before the commit is: it would come again after a start.
        await self._core.written()
        shard = self._shards.get(table_id)
        if shard is not None:
            held = partial(self._core.is_held, table_id)
            await self._flusher.flush(shard, upto_ts, held, partial(self._core.named, table_id))
            self.on_flushed()

    async def _forget(self) -> None:
        """Ids that are too old to be asked about."""
        assert self._store is not None
        with suppress(SkerryError):
            while await asyncio.wrap_future(self._store.forget()):
                pass

    async def _keep_up(self) -> None:
        """Flushes what is due, and removes what no reader needs any more."""
        rounds, paused = 0, dict[int, int]()  # by table: no sooner than in this round
        while True:
            await asyncio.sleep(UPKEEP_S)  # owner: the member's background
            rounds += 1
            for shard in (*self._leaving.values(), *self._shards.values()):
                if rounds >= paused.get(shard.table.id, 0):
                    try:
                        await self._tend(shard)
                        self._troubles.pop(shard.table.id, None)
                    except Exception as error:  # of one table: the others are tended
                        paused[shard.table.id] = rounds + UPKEEP_PAUSE_ROUNDS
                        self._troubles[shard.table.id] = f"site {self._member}: upkeep failed: {error}"
                        what = f"upkeep of table {shard.table.name}"
                        if isinstance(error, SkerryError):
                            trace.emit(trace.WorkGivenUp(what, trace.cause_of(error)))
                        else:
                            trace.emit(trace.WorkFailed(what), error)
            self._core.tick()
            self._settle_unfilled()
            if rounds % FORGET_ROUNDS == 0:
                await self._forget()

    def _settle_unfilled(self) -> None:
        """Tables whose CREATE TABLE … AS came to its end without a word: who decides its commit knows what to do."""
        for definition in self._by_id.values():
            making = definition.making
            if making is None or making.is_filled or making.query in self._making:
                continue
            initiator = self._config.members.get(making.query.initiator)
            is_lite = initiator is None or initiator.role is not Role.DATA
            data = [name for name, each in self._config.members.items() if each.role is Role.DATA]
            age_s = (self.now() - making.since >> COUNTER_BITS) / 1e6
            is_gone = making.query.initiator not in self._up() or age_s > self._config.limits.query_timeout_s
            if making.query.initiator == self._member or (is_lite and self._member == min(data) and is_gone):
                self._own(self._settle(definition, making), f"table {definition.table.name}, which was never filled")

    async def _settle(self, definition: Definition, making: Making) -> None:
        """Its rows were written, and it is shown; or they never will be, and it goes."""
        with self.makes(making.query):
            if making.query.initiator == self._member:
                is_written = await self.recall(making.query) is not None
            else:
                told = await self._core.inquire(making.query, making.since, frozenset({self._member}))
                if told.state is State.UNKNOWN:
                    return
                is_written = told.state is State.COMMITTED
            table = definition.table
            wish = Fill(table.id) if is_written else Drop(table.id, table.name)
            await self.defining.define(QueryId(self._member, uuid.uuid4().hex), wish, NOBODY)

    async def _tend(self, shard: Shard) -> None:
        assert self._flusher is not None
        table_id, now_us = shard.table.id, time.time_ns() // 1000
        if table_id in self._leaving:
            if not shard.is_pinned:
                await self._flusher.remove(shard)
                self._leaving.pop(table_id, None)
            return
        if self._flusher.is_busy(shard):  # other tables are not to wait for it
            return
        if shard.is_due(now_us) or shard.is_unpublished:
            await self.flush(table_id)
        await self._flusher.trim(shard, shard.horizon(now_us))


@contextmanager
def _leaving(members: set[QueryId], query: QueryId) -> Iterator[None]:
    try:
        yield
    finally:
        members.discard(query)


def _versions_of(message: StageRows) -> Versions:
    return Versions(message.table, message.version, message.bucket_map)


def _tables(part: Part) -> set[int]:
    tables = {write.table for write in part.writes}
    return tables | {staged.table for staged in part.staged} if part.staged else tables


def _by_table(writes: tuple[Write, ...]) -> dict[int, list[Write]]:
    """In their order; nearly always they are of one."""
    tables = {write.table for write in writes}
    if len(tables) == 1:
        return {tables.pop(): [*writes]}
    found: dict[int, list[Write]] = {}
    for write in writes:
        found.setdefault(write.table, []).append(write)
    return found


def _as_files(laid: Sequence[tuple[Staged, Counted]]) -> tuple[Staged, ...]:
    return tuple(msgspec.structs.replace(staged, body=msgspec.msgpack.encode(each.laid)) for staged, each in laid)


def _layout(shard: Shard, files: FileKeys, read_ts: int) -> Layout:
    """What is there, as the loop sees it: the overlay belongs to it."""
    since, loaded_ts = {}, 0
    if read_ts:
        since, loaded_ts = shard.overlay.since(read_ts), shard.manifest.loaded_at(LATEST)
    groups = groups_of(shard.manifest.live, shard.ranges)
    return Layout(shard.table, shard.folder, uuid.uuid4().hex[:16], groups, files, since, loaded_ts, read_ts)

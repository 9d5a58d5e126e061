"""Tables of our own at one member: what is known of all of them, and what of them is here, to be read and written."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping
from contextlib import suppress
from typing import Any, TypeVar

import msgspec
import pyarrow as pa

from skerry.config import Config, Role
from skerry.member.claims import refuse_unfit
from skerry.member.committing import Committing
from skerry.member.defining import Defining
from skerry.member.resources import Workers
from skerry.model import trace
from skerry.model.commits import Layouts, Part, Staged, TransactionId, Write
from skerry.model.errors import SiteError, SkerryError, StaleSchema, UserError
from skerry.model.ids import QueryId
from skerry.model.limits import FORGET_ROUNDS, UPKEEP_PAUSE_ROUNDS, UPKEEP_S, WRITE_TUPLES, CommitLimits
from skerry.model.rights import Rights
from skerry.model.sharded import Catalogue, Definition, OwnTable, TableStatus
from skerry.tables.catalogue import Kept
from skerry.tables.checks import actions_of, check_room, check_writes, found_of
from skerry.tables.clock import COUNTER_BITS
from skerry.tables.flushing import Flusher, Upkeep, open_shards
from skerry.tables.instructions import Found, Looked
from skerry.tables.layouts import ids_of, relaid_pairs
from skerry.tables.lookup import FileKeys, FoundRow, ask
from skerry.tables.outcomes import Known
from skerry.tables.shard import Shard, Snapshot
from skerry.tables.store import Store
from skerry.wire.commit_messages import CommitMessage, Outcome, State
from skerry.wire.messages import Message

_T = TypeVar("_T")
_STOP_S = 2.0  # for commits under way, when the member stops
_LATEST = (1 << 63) - 1  # a moment after all commits


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
    ) -> None:
        """`up`: the members that have a connection. `on_write` is told of writes, and raises if none may be now."""
        self._catalogue = Catalogue()
        self._member = member
        self._config = config
        self._folder = config.tables_path(member)
        self._rights_of = rights_of
        self._up = up
        self._on_write = on_write
        self._send = send
        self._own = own
        self._workers = workers
        self._limits = limits or CommitLimits()
        self._definitions: Mapping[str, Definition] = {}
        self._by_id: dict[int, Definition] = {}
        self._shards: dict[int, Shard] = {}
        self._leaving: dict[int, Shard] = {}  # dropped, but still read
        self._faults: dict[int, SiteError] = {}
        self._troubles: dict[int, str] = {}  # of upkeep, until it is well again
        self._keys: dict[int, tuple[FileKeys, asyncio.Lock]] = {}
        self.on_flushed: Callable[[], None] = lambda: None  # how large a table is was learned
        self._store: Store | None = None
        self._flusher: Flusher | None = None
        self._committing: Committing | None = None
        self._defining: Defining | None = None

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
            self._show(store.loaded.kept)
            records = store.loaded.records
        self._committing = Committing(
            self._member,
            self._limits,
            records,
            self._store.persist if self._store is not None else None,
            self._look,
            self._apply,
            self._send,
            self._own,
        )
        self._defining = Defining(
            self._member, self._config, self.kept, self.keep, self._send, self._own, self._up, self._rights_of
        )
        if self._store is not None:
            self._own(self._keep_up(), "upkeep of tables")

    def meet(self) -> None:
        """The member can be reached: its keeper and it look for each other."""
        if self.defining.keeper and len(self._config.members) > 1:
            self.defining.meet(name for name in self._config.members if name != self._member)

    def peer_up(self, peer: str) -> None:
        if self._defining is not None:
            self._defining.peer_up(peer)

    def peer_lost(self, peer: str, error: SiteError) -> None:
        if self._defining is not None:
            self._defining.peer_lost(peer, error)
        if self._committing is not None:
            self._committing.lost(peer, error)

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
        return msgspec.structs.replace(shard.status(), **done, problem=self._troubles.get(table_id, ""))

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
    def kept(self) -> Kept:
        """What was on disk at the start."""
        return self._store.loaded.kept if self._store is not None else Kept()

    async def keep(self, kept: Kept) -> None:
        """Definitions from whoever keeps them: on disk, then seen by all that runs here."""
        if self._store is not None:
            await asyncio.wrap_future(self._store.keep(kept))
        if kept.catalogue.version > self._catalogue.version:
            self._show(kept)

    def _show(self, kept: Kept) -> None:
        catalogue = self._catalogue = kept.catalogue
        self._definitions = {each.table.name.lower(): each for each in catalogue.definitions}
        self._by_id = {each.table.id: each for each in catalogue.definitions}
        for table_id in [number for number in self._shards if number not in self._by_id]:
            self._leaving[table_id] = self._shards.pop(table_id)
            self._keys.pop(table_id, None)
        for table_id in [number for number in self._faults if number not in self._by_id]:
            del self._faults[table_id]
        for table_id, (table, buckets) in (
            (number, (each.table, each.buckets)) for number, each in self._by_id.items()
        ):
            is_here = self._folder and self._member in table.members
            if is_here and (table.made or table.version) <= kept.lost_upto:
                self._faults[table_id] = self._lost(table)
                self._shards.pop(table_id, None)
            shard = self._shards.get(table_id)
            if shard is not None and shard.table != table:
                shard.alter(table)
                self._keys.pop(table_id, None)
            if is_here and shard is None and table_id not in self._faults:
                ranges = [(first, upto) for first, upto, name in buckets.groups if name == self._member]
                self._shards[table_id] = Shard(
                    table, self.folder_of(table_id), None, ranges if table.distributed_by else None
                )

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

    async def open(self, table_id: int, version: int, read_ts: int) -> Snapshot:
        """The member's rows of a table as of `read_ts`; nothing of it goes away before `close`.

        StaleSchema if the table is not of this version here; TimedOut if a commit stays in doubt.
        """
        shard = self._shard(table_id, version)
        await self._core.read(read_ts, frozenset({table_id}))
        if self._shard(table_id, version) is not shard:
            raise self._stale(table_id)
        shard.pin(read_ts)
        try:
            return shard.snapshot(read_ts)
        except BaseException:
            shard.unpin(read_ts)
            raise

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

    def committed(self, query: QueryId) -> Known | None:
        """How many rows this query wrote, and when, as far as it is known here that it did."""
        return self._core.committed(query)

    async def seen(self, commit_ts: int) -> None:
        """Until reads that begin here are later than this commit, which a client was told of elsewhere.

        By waiting, and not by putting the clock forward: a client has no say in that. SiteError if it is far ahead.
        """
        ahead_s = (commit_ts >> COUNTER_BITS) / 1e6 - time.time()
        if ahead_s > self._limits.clock_ahead_s or commit_ts < 0:
            raise SiteError(
                f"site {self._member}: the client has seen a commit that is {ahead_s:.0f} s ahead of the clock here",
                member=self._member,
                suggestion="set the members' clocks (NTP)",
            )
        if ahead_s > 0:
            await asyncio.sleep(ahead_s)  # owner: the query's deadline

    async def submit(
        self, txn: TransactionId, first_start: int, parts: dict[str, Part], read_ts: int | None = None
    ) -> Outcome:
        """How this attempt ended. Reads that begin here afterwards see it.

        `read_ts`: of a query that gave the rows. Such a statement has one decider, whatever its rows are: said again,
        it must not be run again.
        """
        data = [name for name, each in self._config.members.items() if each.role is Role.DATA]
        decider = "" if read_ts is None else self._member if self._member in data else min(data)
        outcome = await self._core.submit(txn, first_start, parts, read_ts or 0, decider)
        if outcome.state is State.COMMITTED:
            # Who was told of a commit and asks any member reads by its clock: it must not be before the commit.
            self._core.now(outcome.commit_ts)
            ahead_s = (outcome.commit_ts >> COUNTER_BITS) / 1e6 - time.time()
            await asyncio.sleep(min(max(0.0, ahead_s), self._limits.clock_ahead_s))
        return outcome

    async def _look(self, query: QueryId, part: Part) -> Looked:
        """What the writes meet here; errors are why they cannot be written."""
        if (stale := self._stale_part(part)) is not None:
            return Looked(stale=stale)
        self._on_write(query, part, sorted({self._by_id[write.table].table.name for write in part.writes}))
        try:
            looked = await self._found(part)
        except Exception:
            if (stale := self._stale_part(part)) is not None:  # the table was altered: what seems wrong is not
                return Looked(stale=stale)
            raise
        # Definitions may have changed while files were read.
        return looked if (stale := self._stale_part(part)) is None else Looked(stale=stale)

    async def _found(self, part: Part) -> Looked:
        found: dict[tuple[int, bytes], Found] = {}
        for table_id in {write.table for write in part.writes}:
            writes = [write for write in part.writes if write.table == table_id]
            shard = self._shards[table_id]
            self._check_rights(part, shard.table.name, writes)
            check_room(shard, writes)
            await _aside(check_writes, len(writes), shard, writes)
            rows = await self._rows(shard, [write.key for write in writes])
            met = await _aside(found_of, len(writes), shard.table, writes, rows)
            found |= {(table_id, write.key): each for write, each in zip(writes, met, strict=True)}
        shards = [self._shards[each.table] for each in part.versions]
        kept_from = max((shard.manifest.kept_ts for shard in shards), default=0)
        layouts = tuple((shard.table.id, ids_of(shard.table)) for shard in shards if shard.table.next_column)
        met_all = tuple(found[write.table, write.key] for write in part.writes)
        return Looked(met_all, kept_from=kept_from, layouts=layouts)

    def _check_rights(self, part: Part, table: str, writes: list[Write]) -> None:
        """UserError unless the user may do so, by this member's own rules."""
        rights = self._rights_of(part.user, part.roles)
        for action in sorted({action for write in writes for action in actions_of(write)}):
            if not rights.may(action, self._member, table):
                raise UserError(f"user {part.user} may not {action} rows of table {table}", member=self._member)

    def _stale_part(self, part: Part) -> str | None:
        """Why the part was made for other tables than there are here."""
        for each in part.versions:
            known = self._by_id.get(each.table)
            if known is None or (known.table.version, known.buckets.version) != (each.version, each.bucket_map):
                return self._stale(each.table).message
        for table_id in {write.table for write in part.writes}:
            if table_id not in {each.table for each in part.versions}:
                return f"site {self._member}: writes of table number {table_id}, without its version"
            if (fault := self._faults.get(table_id)) is not None:
                raise fault
            if table_id not in self._shards:
                return self._stale(table_id).message
        return None

    async def _rows(self, shard: Shard, keys: list[bytes]) -> list[FoundRow]:
        """The newest version of each key. Locks keep it the newest."""
        table_id = shard.table.id
        if table_id not in self._keys:
            self._keys[table_id] = FileKeys(shard.table, shard.folder), asyncio.Lock()
        files, turn = self._keys[table_id]
        asked = ask(shard, keys, _LATEST)
        if all(asked.known) or not any(group.files for group in asked.groups):
            return files.find(asked)
        flushed_ts = shard.manifest.flushed_ts
        shard.pin(flushed_ts)  # a flush may come meanwhile, but these files stay
        try:
            async with turn:
                return await asyncio.to_thread(files.find, asked)
        finally:
            shard.unpin(flushed_ts)

    def _apply(
        self, commit_ts: int, writes: tuple[Write, ...], staged: tuple[Staged, ...], layouts: Layouts = ()
    ) -> None:
        assert not staged, "nothing stages files yet"
        for table_id in {write.table for write in writes}:
            shard = self._shards.get(table_id)
            if shard is not None:  # else the table was dropped meanwhile
                pairs = [(write.key, write.row) for write in writes if write.table == table_id]
                # They may have been prepared before it was altered.
                shard.apply(commit_ts, relaid_pairs(pairs, dict(layouts).get(table_id, ()), shard.table))

    # --- upkeep -------------------------------------------------------------------------------------------------------
    async def flush(self, table_id: int) -> None:
        """All commits until now are in files when it returns, and readers of Delta see them."""
        assert self._flusher is not None
        if (fault := self._faults.get(table_id)) is not None:
            raise fault
        upto_ts = self.now()
        await self._core.read(upto_ts, frozenset({table_id}))
        shard = self._shards.get(table_id)
        if shard is not None:
            await self._flusher.flush(shard, upto_ts)
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
            if rounds % FORGET_ROUNDS == 0:
                await self._forget()

    async def _tend(self, shard: Shard) -> None:
        assert self._flusher is not None
        table_id, now_us = shard.table.id, time.time_ns() // 1000
        if table_id in self._leaving:
            if not shard.is_pinned:
                await self._flusher.remove(shard)
                self._leaving.pop(table_id, None)
            return
        if shard.is_due(now_us):
            await self.flush(table_id)
        await self._flusher.trim(shard, shard.horizon(now_us))

"""Groups of buckets that leave this member, or come: rows are sent ahead, and both sides vote for the move.

The keeper of definitions begins a move and decides it (`member/rebalancing.py`). What is promised here is checked under
the lock of the table, when the source votes: nothing was written to the group since its rows were sent. Writes to it
wait meanwhile, so that this is so.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import NamedTuple, Protocol

import msgspec
import pyarrow as pa

from skerry.member.bulk import Bulk, Bulks, Moved
from skerry.member.staging import Staging
from skerry.model.commits import Moving, Part, Staged, Write
from skerry.model.errors import Overloaded, SiteError, SkerryError
from skerry.model.ids import QueryId
from skerry.model.limits import MOVE_BYTES, MOVE_KEPT_S
from skerry.model.points import reach
from skerry.model.rights import Rights
from skerry.model.sharded import Definition
from skerry.tables.flush import Group
from skerry.tables.flushing import Flusher
from skerry.tables.instructions import Found, Looked
from skerry.tables.laying import Layout, lay_out
from skerry.tables.lookup import FileKeys
from skerry.tables.manifest import Laid
from skerry.tables.mapping import check_moving
from skerry.tables.parting import at_once, buckets_of_keys, changed_since, groups_within, part_with, rows_within
from skerry.tables.shard import Shard
from skerry.wire.moving_messages import GroupSent, SendGroup
from skerry.wire.values import failure_of


class Here(Protocol):
    """What a move needs of the member's tables."""

    def held(self, table_id: int, version: int, bucket_map: int) -> tuple[Definition, Shard]:
        """StaleSchema unless these are the versions that count here."""

    def now(self, at_least: int = 0) -> int: ...

    async def settled(self, table_id: int, read_ts: int) -> None:
        """Until all commits up to `read_ts` are here."""

    async def written(self) -> None:
        """Until all of them are on disk."""

    def file_keys(self, shard: Shard) -> tuple[FileKeys, asyncio.Lock]: ...


class _Sending(NamedTuple):
    """`bulk` has sent the rows of these buckets as they were at `read_ts`, which is pinned."""

    shard: Shard
    first: int
    upto: int
    read_ts: int
    bulk: Bulk


class _Frozen(NamedTuple):
    table: int
    first: int
    upto: int


class Moves:
    """Belongs to the member's loop."""

    def __init__(self, member: str, here: Here, bulks: Bulks, staging: Staging, flusher: Flusher) -> None:
        self._member = member
        self._here = here
        self._bulks = bulks
        self._staging = staging
        self._flusher = flusher
        self._frozen: dict[QueryId, _Frozen] = {}
        self._sendings: dict[QueryId, _Sending] = {}
        self._timers: dict[QueryId, asyncio.TimerHandle] = {}

    # --- the source ---------------------------------------------------------------------------------------------------
    async def send(self, message: SendGroup) -> GroupSent:
        """The rows are at the target when it returns, and wait there for the commit."""
        query = QueryId(self._member, uuid.uuid4().hex)
        try:
            return await self._sent(query, message)
        except SkerryError as error:
            self.release(query)
            return GroupSent(message.request_id, self._member, failure=failure_of(error, self._member))
        except BaseException:
            self.release(query)
            raise

    async def _sent(self, query: QueryId, message: SendGroup) -> GroupSent:
        definition, shard = self._here.held(message.table, message.version, message.bucket_map)
        if not any(begin <= message.first < message.upto <= end for begin, end in shard.ranges):
            raise SiteError(f"site {self._member}: buckets {message.first} to {message.upto} are not here")
        first, upto = message.first, message.upto
        if definition.table.distributed_by:  # a copy is made at once: there is no half of one
            first, upto = at_once(shard, first, upto, MOVE_BYTES, is_top=message.is_top)
        self._frozen[query] = _Frozen(message.table, first, upto)
        # Who has voted before may commit later than now: that is waited for. Nobody votes from now on.
        await self._here.settled(message.table, self._here.now())
        read_ts = self._here.now()
        await self._here.settled(message.table, read_ts)
        if self._here.held(message.table, message.version, message.bucket_map)[1] is not shard:
            raise SiteError(f"site {self._member}: table {definition.table.name} was dropped")
        shard.pin(read_ts)
        bulk = self._bulks.move(definition, query, Moved(message.target, (first, upto)))
        self._sendings[query] = _Sending(shard, first, upto, read_ts, bulk)
        groups, seen = groups_within(shard, read_ts, first, upto)
        sizes = [0]
        for group in groups:
            make = partial(rows_within, shard.table, shard.folder, group, seen, first, upto)
            await bulk.add(partial(_counted, make, sizes), Rights())
        await bulk.arrived()
        reach("move.sent")
        later = asyncio.get_running_loop().call_later(MOVE_KEPT_S, self.release, query)
        self._timers[query] = later
        return GroupSent(message.request_id, self._member, first, upto, read_ts, query, bulk.rows, sum(sizes))

    def release(self, query: QueryId) -> None:
        """The move is over, or nobody asks for it any more: writes go on, the target forgets the rows."""
        self._frozen.pop(query, None)
        if (timer := self._timers.pop(query, None)) is not None:
            timer.cancel()
        if (sending := self._sendings.pop(query, None)) is not None:
            sending.shard.unpin(sending.read_ts)
            sending.bulk.drop()

    def release_all(self) -> None:
        """Who would commit them is gone. What has voted is locked by its vote."""
        for query in {*self._sendings, *self._frozen}:
            self.release(query)

    @property
    def under_way(self) -> dict[int, tuple[int, int]]:
        """By table, the buckets that are leaving now."""
        return {each.table: (each.first, each.upto) for each in self._frozen.values()}

    def refuse_frozen(self, part: Part, shards: dict[int, Shard]) -> None:
        """Overloaded for a write to a group that is leaving: it is tried again, and then goes where the group is."""
        for each in self._frozen.values():
            is_staged = any(staged.table == each.table and staged.moving is None for staged in part.staged)
            if is_staged or _is_within(each, part.writes, shards):
                name = shards[each.table].table.name
                raise Overloaded(
                    f"site {self._member}: rows of table {name} are moving to another member; try again shortly",
                    member=self._member,
                )

    # --- votes --------------------------------------------------------------------------------------------------------
    async def look(self, part: Part, staged: Staged, moving: Moving) -> Looked:
        """Of the source or of the target, under the lock of its table."""
        (versions,) = part.versions
        definition, shard = self._here.held(versions.table, versions.version, versions.bucket_map)
        check_moving(moving, definition.buckets, self._member)
        kept_from = max(shard.manifest.kept_ts, definition.buckets.since)
        is_source, copies = moving.source == self._member, moving.buckets.members
        comes = moving.target not in definition.buckets.members  # of a copy; else it goes
        if is_source or (copies and not comes):
            sending = self._sent_as(moving, shard) if is_source and (not copies or comes) else None
            laid = await self._part(shard, moving, stays=self._member in copies)
            found = Found(self._changed(shard, moving, sending), rows=0)
        else:
            laid, rows = await self._take(shard, staged, moving)
            found = Found(0, rows=rows)
        body = msgspec.msgpack.encode(msgspec.structs.replace(laid, buckets=moving.buckets))
        laid_as = msgspec.structs.replace(staged, body=body)
        return Looked((), (found,), kept_from=kept_from, laid=(laid_as,))

    async def _part(self, shard: Shard, moving: Moving, *, stays: bool) -> Laid:
        """Files without the group; `stays`: those that are there, for a copy that goes on to count."""
        with _pinned(shard, self._here.now()) as upto_ts:
            await self._here.settled(shard.table.id, upto_ts)
            await self._here.written()

            def work() -> Callable[[], Laid]:
                if stays:
                    return partial(Laid, (), ())
                groups, _ = groups_within(shard, upto_ts, moving.first, moving.upto)
                name = uuid.uuid4().hex[:16]
                return partial(part_with, shard.table, shard.folder, name, groups, moving.first, moving.upto)

            return await self._flusher.beside(shard, upto_ts, work)

    def _changed(self, shard: Shard, moving: Moving, sending: _Sending | None) -> int:
        """When somebody wrote to the group last since it was sent; 0 if nobody did, or nothing was sent."""
        if sending is None:
            return 0
        if self._sendings.get(moving.rows) is not sending:  # its moment is not pinned any more
            return self._here.now()
        return changed_since(shard, moving.first, moving.upto, sending.read_ts)

    def _sent_as(self, moving: Moving, shard: Shard) -> _Sending:
        sending = self._sendings.get(moving.rows)
        if (
            sending is None
            or sending.shard is not shard
            or (sending.first, sending.upto) != (moving.first, moving.upto)
        ):
            raise SiteError(
                f"site {self._member}: buckets {moving.first} to {moving.upto} of table {shard.table.name} were not "
                "sent, or too long ago; nothing has moved",
                member=self._member,
            )
        return sending

    async def _take(self, shard: Shard, staged: Staged, moving: Moving) -> tuple[Laid, int]:
        """Files of the rows that the source has sent."""
        spool = await self._staging.ready(moving.rows, 0)
        try:
            with _pinned(shard, self._here.now()) as upto_ts:
                await self._here.settled(shard.table.id, upto_ts)
                await self._here.written()
                files, turn = self._here.file_keys(shard)
                name, groups = uuid.uuid4().hex[:16], (Group(moving.first, moving.upto, ()),)
                layout = Layout(shard.table, shard.folder, name, groups, files, {}, 0)
                async with turn:
                    counted = await self._flusher.beside(
                        shard, upto_ts, lambda: partial(lay_out, spool, layout, staged)
                    )
            return counted.laid, counted.rows
        finally:
            self._staging.done(moving.rows, 0)


@contextmanager
def _pinned(shard: Shard, read_ts: int) -> Iterator[int]:
    shard.pin(read_ts)
    try:
        yield read_ts
    finally:
        shard.unpin(read_ts)


def _counted(make: Callable[[], pa.RecordBatch], sizes: list[int]) -> pa.RecordBatch:
    rows = make()
    sizes.append(rows.nbytes)
    return rows


def _is_within(frozen: _Frozen, writes: tuple[Write, ...], shards: dict[int, Shard]) -> bool:
    keys = [write.key for write in writes if write.table == frozen.table]
    if not keys or frozen.table not in shards:
        return False
    try:
        places = buckets_of_keys(shards[frozen.table].table, keys)
    except (ValueError, pa.ArrowException):
        return False  # no keys at all: `check_writes` says so
    return bool(((places >= frozen.first) & (places < frozen.upto)).any())

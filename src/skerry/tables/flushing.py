"""Shell of flushes: files are written in a thread, the store names them, Delta's log tells of them.

A crash anywhere leaves what `open_shards` puts right: files without a name are removed, a flush that is not published
yet is published by the next one.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Any, NamedTuple, TypeVar

from skerry.model.commits import Prepared
from skerry.model.errors import SiteError
from skerry.model.points import reach
from skerry.model.sharded import OwnTable
from skerry.tables import delta, files
from skerry.tables.flush import Range, carry_out
from skerry.tables.layouts import is_fit, relaid_pairs
from skerry.tables.manifest import Flush, Manifest, laid_of
from skerry.tables.shard import Shard
from skerry.tables.store import Store, Unwritten

STAGING = "staging"  # the folder of rows that nobody has voted for

_T = TypeVar("_T")


class Opened(NamedTuple):
    """`faults`: tables that cannot be read, and why; the others can."""

    shards: dict[int, Shard]
    faults: dict[int, SiteError]


def open_shards(store: Store, member: str) -> Opened:
    """Everything that the store loaded, as it is on the disk; blocks on files."""
    loaded = store.loaded
    files.remove_folder(os.path.join(store.folder, STAGING))
    for table_id in loaded.dropped:
        files.remove_folder(_folder(store, table_id))
        store.folder_gone(table_id).result()
    maps = {buckets.table: buckets for buckets in loaded.maps}
    shards: dict[int, Shard] = {}
    faults: dict[int, SiteError] = {}
    staged = [each for record in loaded.records if isinstance(record, Prepared) for each in record.staged]
    for table in loaded.tables:
        ranges: list[Range] | None = None
        if table.id in maps and table.distributed_by:
            ranges = [(first, upto) for first, upto, name in maps[table.id].groups if name == member]
        manifest, folder = loaded.manifests[table.id], _folder(store, table.id)
        shard = Shard(table, folder, manifest, ranges)
        try:
            laid = [file.name for each in staged if each.table == table.id for file in laid_of(each).added]
            _look(folder, member, manifest, laid)
            for commit in loaded.commits:
                if commit.table == table.id:
                    shard.overlay.add(commit.commit_ts, relaid_pairs(commit.writes, commit.ids, table))
            shard.overlay.at(0, 0)  # reads all: rows that cannot be are found now
            shard.is_altered = table.next_column > 0 and delta.version_of(folder) not in (None, table.version)
            shards[table.id] = shard
        except SiteError as error:
            faults[table.id] = error
    return Opened(shards, faults)


def _look(folder: str, member: str, manifest: Manifest, laid: list[str]) -> None:
    """Nothing is removed before it is clear that this manifest is the last one. `laid`: files of who has voted."""
    newest = delta.newest_of(folder)
    if newest is not None and newest > manifest.generation:
        raise delta.ahead(folder, member, newest, manifest.generation)
    for each in manifest.named:
        fault = files.fault_of(folder, each.file)
        if fault is not None:
            raise fault
    files.sweep(folder, [*laid, *(each.file.name for each in manifest.named)])


def _folder(store: Store, table: int) -> str:
    return os.path.join(store.folder, str(table))


async def _whole(work: Coroutine[Any, Any, _T]) -> _T:
    """To its end, even if whoever waits is cancelled: no thread can be stopped, and no other may write beside it."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        while not task.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait({task})
        if not task.cancelled():
            task.exception()  # nobody waits for it any more: whoever comes next goes on from there
        raise


def _refuse_gone(shard: Shard) -> None:
    """Whoever writes there would make its folder again."""
    if shard.is_gone:
        raise SiteError(f"table {shard.table.name} was dropped")


async def _named() -> None:
    """Where nothing is staged."""


class Upkeep(NamedTuple):
    """What was done last for a table since the member started: files written and replaced, files removed, and when."""

    files_written: int = 0
    files_replaced: int = 0
    cleaned_us: int = 0
    files_removed: int = 0


class _Done(NamedTuple):
    """`table`: as it was when the flush was planned."""

    flush: Flush
    table: OwnTable


class Flusher:
    """One flush or trim of a table at a time."""

    def __init__(self, store: Store, member: str) -> None:
        self._store = store
        self._member = member
        self._turns: dict[int, asyncio.Lock] = {}
        self._untrimmed: dict[int, tuple[str, ...]] = {}  # files that the store could not forget yet
        self.done: dict[int, Upkeep] = {}

    async def flush(
        self,
        shard: Shard,
        upto_ts: int,
        is_held: Callable[[], bool] = lambda: False,
        named: Callable[[], Awaitable[None]] = _named,
    ) -> Flush | None:
        """Commits up to `upto_ts` are in files when it returns, and readers of Delta see them.

        `is_held`: whether staged rows, which may be files already, have locked the table. `named`: until the store has
        all that the manifest has.

        No commit at or before `upto_ts` may come later. SiteError if files cannot be written, or cannot be published:
        then all rows are where they were, or in files; the next call goes on from there.
        """
        async with self._turn(shard):
            _refuse_gone(shard)
            return await _whole(self._flush(shard, upto_ts, is_held, named))

    async def _flush(
        self, shard: Shard, upto_ts: int, is_held: Callable[[], bool], named: Callable[[], Awaitable[None]]
    ) -> Flush | None:
        await named()
        planned = await self._into_files(shard, upto_ts, is_held())
        table = planned.table if planned is not None else shard.table  # it may be altered meanwhile
        is_told = shard.manifest.published >= shard.manifest.generation
        if not is_told:  # a load may have come meanwhile: Delta is not to tell of what a power cut would take back
            await named()
        # Files that the table was altered under, and that are to be written anew yet, would be misread there.
        if not is_told and all(is_fit(file, table) for file in shard.manifest.live):
            await self._publish(shard, table)
        return planned.flush if planned is not None else None

    async def _into_files(self, shard: Shard, upto_ts: int, is_held: bool) -> _Done | None:
        plan = shard.plan_flush(upto_ts, is_held=is_held)
        if plan is None:
            return None
        flush = await asyncio.to_thread(carry_out, plan)
        reach("flush.written")
        try:
            await asyncio.wrap_future(self._store.flushed(shard.table.id, flush))
        except Unwritten:  # surely not named; the next flush may have other groups, and so other names
            await asyncio.to_thread(files.remove_files, shard.folder, [file.name for file in flush.added])
            raise
        reach("flush.named")
        shard.flushed(flush, plan.table)
        self._note(shard, files_written=len(flush.added), files_replaced=len(flush.removed))
        return _Done(flush, plan.table)

    async def beside(self, shard: Shard, upto_ts: int, work: Callable[[], Callable[[], _T]]) -> _T:
        """Files hold all commits up to `upto_ts`: then what `work` makes is done in a thread, and nothing is trimmed.

        The table is locked: no commit comes meanwhile.
        """
        async with self._turn(shard):
            _refuse_gone(shard)
            return await _whole(self._beside(shard, upto_ts, work))

    async def _beside(self, shard: Shard, upto_ts: int, work: Callable[[], Callable[[], _T]]) -> _T:
        await self._into_files(shard, upto_ts, is_held=False)
        return await asyncio.to_thread(work())

    async def _publish(self, shard: Shard, table: OwnTable) -> None:
        done = await asyncio.to_thread(delta.publish, shard.folder, table, self._member, shard.manifest)
        reach("flush.published")
        shard.published(done.generation, done.upto_ts, done.version)
        await asyncio.wrap_future(self._store.published(shard.table.id, done.generation, done.upto_ts, done.version))

    async def trim(self, shard: Shard, horizon_ts: int) -> None:
        """Removes what only reads before `horizon_ts` need, and no pinned one."""
        async with self._turn(shard):
            await _whole(self._trim(shard, horizon_ts))

    async def _trim(self, shard: Shard, horizon_ts: int) -> None:
        trimmed, names = shard.trim(horizon_ts), self._untrimmed.pop(shard.table.id, ())
        if trimmed is not None or names:
            kept_ts, more = trimmed or (shard.manifest.kept_ts, ())
            names += more
            try:
                await asyncio.wrap_future(self._store.trim(shard.table.id, kept_ts, names))
            except BaseException:
                # On a full disk above all: they are tried again, and not kept until the next start.
                self._untrimmed[shard.table.id] = names
                raise
            reach("trim.forgotten")
            await asyncio.to_thread(files.remove_files, shard.folder, names)
            self._note(shard, cleaned_us=time.time_ns() // 1000, files_removed=len(names))

    def _note(self, shard: Shard, **done: int) -> None:
        self.done[shard.table.id] = self.done.get(shard.table.id, Upkeep())._replace(**done)

    async def remove(self, shard: Shard) -> None:
        """The folder of a table that the store has dropped; one that stays goes when the member starts anew."""
        async with self._turn(shard):
            shard.is_gone = True
            await asyncio.to_thread(files.remove_folder, shard.folder)
            await asyncio.wrap_future(self._store.folder_gone(shard.table.id))
        self.done.pop(shard.table.id, None)
        self._untrimmed.pop(shard.table.id, None)

    def is_busy(self, shard: Shard) -> bool:
        """Something is done with its files, which may take minutes."""
        return self._turn(shard).locked()

    def _turn(self, shard: Shard) -> asyncio.Lock:
        return self._turns.setdefault(shard.table.id, asyncio.Lock())

"""Statistics of a member's own tables, found in the background: from Parquet files, or by the member's Spark."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Protocol

import msgspec

from skerry.catalog.statistics import ANALYZED, SCANNED, gather
from skerry.member import clock
from skerry.member.lull import Lull
from skerry.member.resources import Workers
from skerry.model import trace
from skerry.model.errors import SiteError, SkerryError
from skerry.model.limits import Limits
from skerry.model.table import Column, PartStats, TablePart
from skerry.plan.analyze import PLACEHOLDER, analysis_of, read_found
from skerry.spark.engine import Engine, Job, JobResult, TableFiles

# A table that changes faster than its statistics can be gathered goes without, until it changes again.
_GATHER_AGAIN = 3
_CANCEL_AGAIN_S = 0.05


class Snapshot(msgspec.Struct, frozen=True):
    """A table as of one listing."""

    files: TableFiles
    part: TablePart
    is_scanned: bool = True  # whether Spark may read all of it for statistics: not where nobody knows how much it is


class Found(msgspec.Struct, frozen=True):
    """What a look at all rows said of some columns, and how many rows that were."""

    rows: int
    stats: PartStats


class Learn(Protocol):
    """Keeps statistics of that version of a table's files; False when it has changed since."""

    def __call__(self, name: str, files_version: int, stats: PartStats, rows: int | None = None) -> bool: ...


def found_in(result: JobResult, columns: Sequence[Column], source: str) -> Found | None:
    """The row of `analysis_of`; None if there is none."""
    if result.table is None or result.table.num_rows != 1:
        return None
    _, rows, _, text = (column[0].as_py() for column in result.table.columns)
    return Found(rows, read_found(str(text), columns, source))


class Gathering:
    """`current` gives the newest snapshot of a table; `on_stats` is called when some of them have been seen to."""

    def __init__(
        self,
        limits: Limits,
        engine: Engine | None,
        workers: Workers,
        jobs: Workers,
        lull: Lull,
        current: Callable[[str], Snapshot],
        learn: Learn,
        own: Callable[[Awaitable[None], str], None],
        on_stats: Callable[[], None],
    ) -> None:
        self._limits = limits
        self._engine = engine
        self._workers = workers
        self._jobs = jobs
        self._lull = lull
        self._current = current
        self._learn = learn
        self._own = own
        self._on_stats = on_stats
        # One table after the other: queries need the threads more.
        self._turn = asyncio.Lock()
        self._under_way: set[str] = set()
        self._waiting: set[str] = set()  # of these, for a moment without queries
        self._put_off: dict[str, tuple[int, int]] = {}  # for which version of the files, and how often
        self._done: dict[str, int] = {}  # the version of the files that was looked at, for better or worse
        self._is_news = False

    def begin(self, name: str) -> None:
        """See to it that the table has statistics, if it is to have any. Asked with every snapshot of it."""
        if name not in self._under_way and self._is_wanted(name):
            self._under_way.add(name)
            self._own(self._gather(name), f"statistics of {name}")

    def _is_wanted(self, name: str) -> bool:
        snapshot = self._current(name)
        if self._done.get(name) == snapshot.files.version:
            return False
        if not snapshot.is_scanned or (snapshot.part.stats is not None and snapshot.files.pinned is not None):
            return False  # its source has told them
        return snapshot.files.format == "parquet" or bool(self._to_scan(snapshot))

    def _to_scan(self, snapshot: Snapshot) -> Sequence[Column]:
        """The columns that Spark is to look at; none of a table that is too large."""
        part, limits = snapshot.part, self._limits
        if not limits.stats_scan_bytes or part.size_bytes > limits.stats_scan_bytes:
            return ()
        is_known = part.stats is not None and part.stats.source in (ANALYZED, SCANNED)  # or kept from before
        known = {column.name for column in part.stats.columns} if part.stats is not None and is_known else set()
        return [column for column in part.columns[: limits.stats_columns] if column.name not in known]

    async def _gather(self, name: str) -> None:
        is_over = False
        try:
            is_over = await self._see_to(name)
        except SkerryError:
            is_over = True
            raise
        except Exception as error:
            # Files of others may hold what nobody thought of; queries do without.
            is_over = True
            trace.emit(trace.StatisticsFailed(name), error)
        finally:
            self._under_way.discard(name)
            if is_over:
                self._done[name] = self._current(name).files.version
                self._is_news = True
            self._tell()

    async def _see_to(self, name: str) -> bool:
        """False when it is to be tried again with the same files."""
        for _ in range(_GATHER_AGAIN):
            is_parquet = self._current(name).files.format == "parquet"
            is_found = await (self._read(name) if is_parquet else self._scan(name))
            if is_found is not False:
                return bool(is_found)
        return True

    def _tell(self) -> None:
        """Once for many tables; what waits for queries to end is not waited for."""
        if self._is_news and self._under_way <= self._waiting:
            self._is_news = False
            self._on_stats()

    async def _read(self, name: str) -> bool:
        """From the files themselves. False: they have changed meanwhile."""
        async with self._turn:
            files = self._current(name).files
            stats = await self._workers.run(gather, files.files, files.columns, self._limits, files.storage)
            return self._learn(name, files.version, stats)

    # --- by Spark --------------------------------------------------------------------------------
    async def _scan(self, name: str) -> bool | None:
        """By Spark, while no query runs. False: the files have changed meanwhile; None: there was no such moment."""
        left_s = self._limits.stats_lull_s
        while True:
            since = clock.now()
            if not await self._wait(name, left_s):
                trace.emit(trace.StatisticsPutOff(name))
                return None
            left_s -= clock.now() - since
            async with self._turn:
                if not self._lull.is_now:  # others have had their turn first
                    continue
                snapshot = self._current(name)
                columns = self._to_scan(snapshot)
                if not columns:
                    return True
                times = self._times_put_off(name, snapshot)
                found = await self._run(snapshot, columns, may_be_put_off=times < self._limits.stats_put_off)
                if found is None:
                    self._put_off[name] = snapshot.files.version, times + 1
                    continue
                return self._learn(name, snapshot.files.version, found.stats, found.rows)

    def _times_put_off(self, name: str, snapshot: Snapshot) -> int:
        version, times = self._put_off.get(name, (0, 0))
        return times if version == snapshot.files.version else 0

    async def _wait(self, name: str, wait_s: float) -> bool:
        self._waiting.add(name)
        self._tell()
        try:
            return await self._lull.wait(wait_s)
        finally:
            self._waiting.discard(name)

    async def _run(self, snapshot: Snapshot, columns: Sequence[Column], *, may_be_put_off: bool) -> Found | None:
        """None: a query came, which has Spark for itself; a job that has given way often enough goes on beside it."""
        assert self._engine is not None, "lite members have no tables"
        files, part = snapshot.files, snapshot.part
        job = Job(
            tag=f"skerry-{part.member}-statistics-{uuid.uuid4().hex}",  # a member may start again on the same Spark
            sql=analysis_of(part, columns),
            tables={PLACEHOLDER: files},
            edges={},
            parameters={},
            sink=None,
            is_small=part.size_bytes <= self._limits.small_job_bytes,
            is_optional=True,
        )
        work = asyncio.ensure_future(self._jobs.run(self._engine.run, job, lambda schema: None))
        query = asyncio.ensure_future(self._lull.over())
        ends = {work, query} if may_be_put_off else {work}
        try:
            await asyncio.wait(ends, timeout=self._limits.stats_scan_s, return_when=asyncio.FIRST_COMPLETED)
            is_late, is_query = not work.done(), query.done() and may_be_put_off
        finally:  # the time is up, a query came, or the member stops
            query.cancel()
            ending = asyncio.ensure_future(self._end(job.tag, work))
            try:
                await asyncio.shield(ending)
            except asyncio.CancelledError:  # the member stops while a job is ended: it has its time for that
                await ending
                raise
        if is_late and is_query:
            return None
        if is_late:
            raise SiteError(
                f"Spark has not read the table in {self._limits.stats_scan_s:g} s (limits.stats_scan_s); "
                f"ANALYZE TABLE {part.table} takes as long as it needs"
            )
        found = found_in(work.result(), columns, SCANNED)
        if found is None:
            raise SiteError("Spark gave no answer")
        return found

    async def _end(self, tag: str, work: asyncio.Task[JobResult]) -> None:
        """A cancel misses a job that is still planning: repeat it until the job's thread has returned."""
        assert self._engine is not None
        deadline = clock.now() + self._limits.stop_s
        is_asked = not work.done()
        while not work.done() and clock.now() < deadline:
            with suppress(TimeoutError):  # a Spark that hangs must not hang the member's end as well
                cancel = self._workers.run(self._engine.cancel, tag)
                await asyncio.wait_for(cancel, max(0.0, deadline - clock.now()))
            await asyncio.wait({work}, timeout=_CANCEL_AGAIN_S)
        if not work.done():
            trace.emit(trace.ScanLeft(tag))
            work.cancel()
        elif is_asked and not work.cancelled():
            work.exception()  # that it was cancelled is no news

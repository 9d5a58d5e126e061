"""A Sail that has grown, or goes on after a cancel, is replaced by a fresh one, unnoticed by its queries (ADR 39)."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession

from skerry.model import trace
from skerry.model.config import TableConfig
from skerry.model.errors import SiteError
from skerry.model.limits import RESTART_MAX_S, SAIL_HELD_UP_S
from skerry.model.names import Moment
from skerry.model.results import Schema
from skerry.model.sources import Told
from skerry.model.table import Column
from skerry.spark.engine import Job, JobResult, OneByOne, SlotPool, TableFiles
from skerry.spark.sail import SailEngine
from skerry.spark.settings import SparkSettings
from skerry.spark.suspects import Suspects
from skerry.spark.tags import Tags


class RecycledSail(OneByOne):
    """An Engine over the current Sail, and at most one before it whose last jobs still run.

    A job stays with the Sail that it began with, whose process, session, views and tags are its own. Statements under
    suspicion and cancelled tags outlive each of them.
    """

    tasks_are_here = SailEngine.tasks_are_here
    retries_tasks = SailEngine.retries_tasks

    def __init__(self, settings: SparkSettings) -> None:
        self.settings = settings
        self.source_slots: SlotPool | None = None
        self._suspects = Suspects(SailEngine.name)
        self._tags = Tags(settings.limits.cancelled_tags)
        self._changed = threading.Condition()  # guards all below
        self._current = SailEngine(settings, self._suspects, self._wastes)
        self._draining: SailEngine | None = None
        self._wastes_since: float | None = None  # the draining one, as far as it is known
        self._users: Counter[SailEngine] = Counter()
        self._recycler: threading.Thread | None = None
        self._is_stopped = False
        self.cores = self._current.cores

    @property
    def current(self) -> SailEngine:
        return self._current

    @property
    def session(self) -> SparkSession:
        """For oracles and benchmarks, see SessionEngine."""
        return self._current.session

    def start(self) -> None:
        with self._changed:
            self._is_stopped = False
        self._current.start()

    def stop(self) -> None:
        with self._changed:
            self._is_stopped = True
            self._changed.notify_all()
            recycler = self._recycler
        if recycler is not None:
            recycler.join()
        self._current.stop()

    def warm_up(self) -> None:
        self._current.warm_up()

    def look(self, table: TableConfig, at: Moment | None) -> Told:
        with self._in_use() as sail:
            return sail.look(table, at)

    def tables_in(self, namespace: tuple[str, ...]) -> tuple[str, ...]:
        with self._in_use() as sail:
            return sail.tables_in(namespace)

    def describe(self, table: TableFiles) -> tuple[Column, ...]:
        with self._in_use() as sail:
            return sail.describe(table)

    def count_rows(self, table: TableFiles) -> int:
        with self._in_use() as sail:
            return sail.count_rows(table)

    def run(self, job: Job, on_schema: Callable[[Schema], None]) -> JobResult:
        with self._in_use() as sail:
            # A cancel that came before is known here. One that comes now reaches this Sail, which is in use.
            self._tags.refuse_cancelled(job.tag)
            return sail.run(job, on_schema)

    def cancel(self, tag: str) -> None:
        self._tags.cancel(tag)
        for sail in self._all():
            sail.cancel(tag)

    def give_up(self, tag: str) -> None:
        for sail in self._all():
            sail.give_up(tag)

    def queued_tasks(self, besides: Collection[str] = ()) -> int:
        return self._current.queued_tasks(besides)

    def is_held_up(self, tag: str) -> bool:
        with self._changed:
            old, since = self._draining, self._wastes_since
            if old is None or since is None or time.monotonic() < since + SAIL_HELD_UP_S:
                return False
        return old.runs(tag)

    def job_ids(self, tag: str) -> tuple[int, ...]:
        return self._current.job_ids(tag)

    def leftovers(self) -> list[str]:
        return [what for sail in self._all() for what in sail.leftovers()]

    def _all(self) -> list[SailEngine]:
        with self._changed:
            return [self._current] if self._draining is None else [self._current, self._draining]

    @contextmanager
    def _in_use(self) -> Iterator[SailEngine]:
        """The Sail for a job that begins now. Nobody waits: a query's next job may be what its first one waits for."""
        with self._changed:
            sail = self._current
            self._users[sail] += 1
            if sail.has_grown:
                self._begin_recycling()
        try:
            yield sail
        finally:
            with self._changed:
                self._users[sail] -= 1
                if not self._users[sail]:
                    del self._users[sail]
                    self._changed.notify_all()

    def _wastes(self, sail: SailEngine) -> None:
        with self._changed:
            if sail is self._current:
                self._begin_recycling()
            elif sail is self._draining and self._wastes_since is None:
                self._wastes_since = time.monotonic()

    def _begin_recycling(self) -> None:
        if self._recycler is None and not self._is_stopped:
            self._recycler = threading.Thread(target=self._recycle, name="skerry-recycle", daemon=True)
            self._recycler.start()

    def _recycle(self) -> None:
        try:
            fresh = SailEngine(self.settings, self._suspects, self._wastes)
            try:
                fresh.start()
                fresh.warm_up()
            except (SiteError, OSError) as error:
                trace.emit(trace.RecycleFailed(trace.cause_of(error), RESTART_MAX_S))
                with self._changed:
                    self._changed.wait_for(lambda: self._is_stopped, RESTART_MAX_S)
                return
            self._replace_by(fresh)
        finally:
            with self._changed:
                self._recycler = None

    def _replace_by(self, fresh: SailEngine) -> None:
        with self._changed:
            old, self._current = self._current, fresh
            self._draining = old
        trace.emit(trace.SailRecycled(fresh.pid))
        with self._changed:  # as long as the jobs' own deadlines let them run
            self._changed.wait_for(lambda: self._is_stopped or not self._users[old])
        old.stop()
        with self._changed:
            self._draining = self._wastes_since = None

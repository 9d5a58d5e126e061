"""Apache Spark with its driver beside the member: embedded (`local[*]`) or on a cluster."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from skerry.model import trace
from skerry.model.errors import SiteError, SkerryError
from skerry.model.results import Schema
from skerry.model.table import Column
from skerry.spark.base import SessionEngine, agreed
from skerry.spark.engine import Job, JobResult
from skerry.spark.failures import SPARK_ERRORS
from skerry.spark.jvm import Jvm, new_directory, remove_directory, worker_conf
from skerry.spark.settings import SparkSettings, batch_conf, cluster_conf, embedded_conf, slot_count
from skerry.spark.shipping import package_zip
from skerry.spark.sink import SinkSpec
from skerry.spark.slots import Slots
from skerry.spark.small import SmallJobs, rows_frame
from skerry.spark.source import SourceSpec, source_function
from skerry.spark.types import struct_of
from skerry.spark.views import Views
from skerry.wire.codec import decode_schema


class ClassicEngine(SessionEngine):
    """A JVM of our own, driven through py4j."""

    def __init__(self, settings: SparkSettings) -> None:
        super().__init__(settings)
        slots = slot_count(settings)
        self.source_slots = None if slots is None else Slots(slots // 2)
        self.tasks_are_here = settings.is_embedded
        self.retries_tasks = not settings.is_embedded
        self._jvm: Jvm | None = None
        self.directory = ""
        self._numbers: dict[int, DataFrame] = {}
        self._numbers_lock = threading.Lock()
        self._small: SmallJobs | None = None
        self._properties: dict[tuple[bool, bool], Any] = {}  # of jobs, by whether they are small and narrow
        self._thread = threading.local()  # `set`: the JVM and the job's kind that the thread's properties are for

    @property
    def jvm_pid(self) -> int | None:
        return None if self._jvm is None else self._jvm.pid

    def _open(self) -> SparkSession:
        is_embedded = self.settings.is_embedded
        self.directory = new_directory()
        try:
            conf = embedded_conf(self.settings, self.directory) if is_embedded else cluster_conf(self.settings)
            if is_embedded:
                conf = worker_conf(self.directory) | conf
            secrets = self._read_secrets()
            self._jvm = Jvm(conf, self.directory, is_embedded=is_embedded, secrets=secrets)
            if not is_embedded:
                self._jvm.context.addPyFile(package_zip(self.directory))
        except BaseException:
            self._close()
            raise
        self._jvm.watch(self._ended)
        self._small = SmallJobs(self._jvm.session)
        self._properties = {
            (is_small, is_narrow): self._properties_of(is_small, is_narrow)
            for is_small in (False, True)
            for is_narrow in (False, True)
        }
        return self._jvm.session

    def _properties_of(self, is_small: bool, is_narrow: bool) -> Any:
        """What a job's thread carries, in the JVM. A session's settings would be those of every job beside this one."""
        told = {
            **(self._small_jobs().properties() if is_small else {}),
            **batch_conf(self.settings.limits, is_narrow),
            # Tasks are interrupted, not only marked: one may wait for a Python worker that waits for its member.
            "spark.job.interruptOnCancel": "true",
        }
        context: Any = self._running().context
        properties = context._jvm.java.util.Properties()
        for key, value in told.items():
            properties.setProperty(key, value)
        return properties

    def _small_jobs(self) -> SmallJobs:
        if self._small is None:
            raise SiteError("this member's Spark is not running")
        return self._small

    def _views_of(self, job: Job) -> Views:
        return self._small_jobs().views if job.is_small else super()._views_of(job)

    def _views_in_use(self) -> set[str]:
        return super()._views_in_use() | (set() if self._small is None else self._small.views.in_use())

    def _frame(self, job: Job, sql: str, arguments: dict[str, Any], edges: Mapping[str, DataFrame]) -> DataFrame:
        if job.is_small:
            return self._small_jobs().frame(job, sql, arguments)
        return super()._frame(job, sql, arguments, edges)

    def _rows_frame(self, is_small: bool, columns: Sequence[Column], rows: pa.Table) -> DataFrame:
        session = self._small_jobs().session if is_small else self._spark()
        return rows_frame(session, columns, rows)

    def _close(self) -> None:
        if self._jvm is not None:
            self._jvm.stop()
            self._jvm = None
        self._small = None
        self._numbers.clear()
        remove_directory(self.directory)

    def _engine_process(self) -> Jvm | None:
        return self._jvm

    def _is_alive(self) -> bool:
        return self._jvm is not None and self._jvm.is_alive

    @contextmanager
    def _settings_of(self, job: Job) -> Iterator[None]:
        running = self._running()
        context: Any = running.context
        wanted = (running, job.is_small, job.is_narrow)
        # Threads keep their properties and run many jobs: each call of the JVM that can be spared is a millisecond.
        if getattr(self._thread, "set", None) != wanted:
            context._jsc.sc().setLocalProperties(self._properties[job.is_small, job.is_narrow].clone())
            sessions: Any = context._jvm.org.apache.spark.sql.classic.SparkSession
            sessions.setActiveSession((self._small_jobs() if job.is_small else running).session._jsparkSession)
            self._thread.set = wanted
        context.addJobTag(job.tag)
        try:
            yield
        finally:
            if self._jvm is running and running.is_alive:
                context.removeJobTag(job.tag)

    def _interrupt(self, tag: str) -> None:
        self._running().context.cancelJobsWithTag(tag)

    def _edge_frame(self, spec: SourceSpec) -> DataFrame:
        shares = self._shares(spec.edge.partitions)
        return shares.mapInArrow(source_function(spec), struct_of(spec.edge.columns))

    def _fetch(self, job: Job, sql: str, frame: DataFrame, schema: Schema) -> pa.Table:
        if job.is_small and (table := self._small_jobs().fetch(job, sql, frame, schema)) is not None:
            return table
        # Not toArrow: it casts a struct that may be null to one whose fields may not, and fails. Without numbers for
        # names, which Arrow does not need: for a small query they would be an eighth of its time.
        collect: Any = frame._collect_as_arrow
        return pa.Table.from_batches(collect(empty_list_if_zero_records=False))

    def _deliver(self, job: Job, frame: DataFrame, spec: SinkSpec) -> JobResult:
        """Few rows of a small job are its answer: tasks of Python would take longer than all else of it."""
        if job.is_small and job.gives_few:
            rows = self._small_jobs().few_rows(job, frame, spec.schema)
            if rows is not None:
                return JobResult(table=rows)
        return super()._deliver(job, frame, spec)

    def keeps(self, job: Job) -> bool:
        return self._small is not None and self._small.keeps(job)

    def run_together(
        self, jobs: Sequence[Job], on_schemas: Sequence[Callable[[Schema], None]]
    ) -> Sequence[JobResult | None]:
        is_narrow = all(job.is_narrow for job in jobs)  # it is one thread that runs them
        try:
            with ExitStack() as stack:
                for job in jobs:
                    stack.enter_context(self._tags.running(job.tag))
                    stack.enter_context(self._settings_of(msgspec.structs.replace(job, is_narrow=is_narrow)))
                planned = [self._planned(*each, {}, stack) for each in zip(jobs, on_schemas, strict=True)]
                tables = self._small_jobs().fetch_together(jobs, planned)
            return [
                None if table is None else JobResult(table=agreed(table, decode_schema(schema.arrow)))
                for table, (_, _, schema) in zip(tables, planned, strict=True)
            ]
        except (SkerryError, AssertionError, AttributeError, *SPARK_ERRORS) as error:
            trace.emit(trace.NotTogether(tuple(job.tag for job in jobs), type(error).__name__))
            return [None] * len(jobs)

    def _shares(self, count: int) -> DataFrame:
        """The numbers 0 to `count`, one a partition, as an RDD: Spark does not know an RDD's size (D3).

        Over `range` it would take the edge for some bytes and broadcast it.
        """
        with self._numbers_lock:
            if count not in self._numbers:
                session = self._running().session
                numbers = session.range(0, count, 1, count)
                frame = session._jsparkSession.createDataFrame(numbers._jdf.toDF().javaRDD(), numbers._jdf.schema())
                self._numbers[count] = DataFrame(frame, session)
            return self._numbers[count]

    def queued_tasks(self, besides: Collection[str] = ()) -> int:
        context = self._running().context
        tracker = context.statusTracker()
        by_tag = context._jsc.sc().statusTracker()  # pyspark's own tracker finds jobs by group only
        jobs = [tracker.getJobInfo(job) for tag in besides for job in by_tag.getJobIdsForTag(tag)]
        own = {stage for job in jobs if job is not None for stage in job.stageIds}
        stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds() if stage not in own]
        return sum(
            max(0, stage.numTasks - stage.numActiveTasks - stage.numCompletedTasks)
            for stage in stages
            if stage is not None
        )

    def job_ids(self, tag: str) -> tuple[int, ...]:
        try:
            return tuple(sorted(self._running().context._jsc.sc().statusTracker().getJobIdsForTag(tag)))
        except SPARK_ERRORS:  # Spark ended meanwhile
            return ()

    def leftovers(self) -> list[str]:
        if self._jvm is None:
            return []
        jobs = self._jvm.context.statusTracker().getActiveJobsIds()
        return [*super().leftovers(), *(f"Spark job {job}" for job in sorted(jobs))]

    def _running(self) -> Jvm:
        if self._jvm is None:
            raise SiteError("this member's Spark is not running")
        return self._jvm

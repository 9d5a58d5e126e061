"""What every kind of Spark does alike: tables, fragments, tags. Kinds differ in how they cancel and read edges."""

from __future__ import annotations

import itertools
import threading
import time
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from functools import partial
from typing import Any, Protocol

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from skerry.catalog.stores import spark_secrets, store_fault
from skerry.exchange.intake import SinkRow
from skerry.model import trace
from skerry.model.config import TableConfig
from skerry.model.errors import EngineEnded, SiteError, SkerryError, SqlError
from skerry.model.limits import ENGINE_GONE_S, ERROR_CHAIN, RESTART_FIRST_S, RESTART_MAX_S, SPARK_SCHEMAS
from skerry.model.names import Moment
from skerry.model.results import Schema
from skerry.model.sources import JdbcTable, Told
from skerry.model.table import Column
from skerry.spark.catalogs import hidden, secret_conf
from skerry.spark.engine import EdgeInput, Job, JobResult, OneByOne, SlotPool, TableFiles
from skerry.spark.failures import SPARK_ERRORS, condition_of, first_words, is_lost, silence_spark, translate
from skerry.spark.jdbc import database_fault, job_fault
from skerry.spark.literals import to_literal
from skerry.spark.relations import look, tables_in
from skerry.spark.settings import SparkSettings, core_count
from skerry.spark.sink import SINK_COLUMNS, SinkSpec, as_announced, sink_function
from skerry.spark.source import SourceSpec
from skerry.spark.suspects import Suspects
from skerry.spark.tags import Tags
from skerry.spark.types import arrow_schema, columns_of, schema_of, struct_of
from skerry.spark.views import EDGE_PREFIX, Views, escape_glob, numbered, read_overlaid, read_table, with_views
from skerry.wire.codec import decode_batch, decode_schema, encode_schema
from skerry.wire.values import to_value

# Parsed here: Spark Connect would ask its server.
SINK_STRUCT = struct_of([Column(name, kind) for name, kind in (each.split() for each in SINK_COLUMNS.split(", "))])


class Process(Protocol):
    """An engine's process, which may end by itself."""

    @property
    def is_alive(self) -> bool: ...
    def how_ended(self, wait_s: float) -> str:
        """Why it is no more, e.g. "signal 11, SIGSEGV"; "" if it is alive after so long."""
        ...


class SessionEngine(OneByOne, ABC):
    """An Engine over one SparkSession."""

    name = "Spark"  # in messages
    tasks_are_here = True
    retries_tasks = False
    checks_decimals = False  # before they are handed over: the engine itself does not

    def __init__(self, settings: SparkSettings) -> None:
        self.settings = settings
        self.cores = core_count(settings)
        self.source_slots: SlotPool | None = None
        self._session: SparkSession | None = None
        self._tags = Tags(settings.limits.cancelled_tags)
        self._views = Views(self._spark, self._read_whole, self._shielded)
        self._edge_numbers = itertools.count(1)
        self._edge_views: set[str] = set()
        self._schemas: dict[object, Schema] = {}
        self._lifecycle = threading.Lock()
        self._suspects = Suspects(self.name)
        self._secrets: tuple[str, ...] = ()

    # --- what kinds of Spark do differently ------------------------------------------------------
    @abstractmethod
    def _open(self) -> SparkSession:
        """Start or reach Spark; raises SiteError."""

    @abstractmethod
    def _close(self) -> None:
        """End what `_open` started."""

    def _engine_process(self) -> Process | None:
        """The process that `_open` started, if it did."""
        return None

    def _is_alive(self) -> bool:
        """Whether what `_open` started still runs."""
        return True

    def _is_full(self) -> bool:
        """Whether its process is near a memory limit: if that is reached, no job that begins now is to blame."""
        return False

    @abstractmethod
    def _settings_of(self, job: Job) -> AbstractContextManager[None]:
        """A block whose Spark jobs carry the job's tag, and cut batches as the job wants them where that can be."""

    def _shielded(self) -> AbstractContextManager[None]:
        """A block whose commands end with an error if a cancel reached them, or are reached by none."""
        return nullcontext()

    @abstractmethod
    def _interrupt(self, tag: str) -> None:
        """End the running Spark jobs that carry the tag; harmless when there are none."""

    @abstractmethod
    def _edge_frame(self, spec: SourceSpec) -> DataFrame:
        """An edge as a relation whose size Spark does not presume to know."""

    def _views_of(self, job: Job) -> Views:
        """The views of the session that the job runs in."""
        return self._views

    @abstractmethod
    def _rows_frame(self, is_small: bool, columns: Sequence[Column], rows: pa.Table) -> DataFrame:
        """Few rows as a relation of their own, which is a part of the plan of a job, small or not."""

    def _frame(self, job: Job, sql: str, arguments: dict[str, Any], edges: Mapping[str, DataFrame]) -> DataFrame:
        """The query, which runs when its rows are asked for. `edges`: by the names that it has for them."""
        return self._spark().sql(sql, args=arguments or None)

    def _read_whole(self, table: TableFiles) -> DataFrame:
        """The rows of a table."""
        if table.overlaid is None:
            return self._read(table)
        return read_overlaid(table, self._read, partial(self._rows_frame, False))

    def _read(self, table: TableFiles) -> DataFrame:
        """The rows of its files."""
        return read_table(self._spark(), table, escape_glob)

    def _numbered(self, frame: DataFrame, schema: Schema) -> DataFrame:
        return numbered(frame, len(schema.columns))

    def _fetch(self, job: Job, sql: str, frame: DataFrame, schema: Schema) -> pa.Table:
        """A small result, through the driver; what its columns are called does not matter."""
        return self._numbered(frame, schema).toArrow()

    def _deliver(self, job: Job, frame: DataFrame, spec: SinkSpec) -> JobResult:
        """Have the tasks hand their rows to the member; its answer is one row a partition."""
        rows = frame.mapInArrow(sink_function(spec), SINK_STRUCT).collect()
        return JobResult(sink_rows=tuple(SinkRow(*row) for row in rows))

    # --- Engine ----------------------------------------------------------------------------------
    def start(self) -> None:
        with self._lifecycle:
            if self._session is None:
                silence_spark()
                self._session = self._open()

    def _read_secrets(self) -> dict[str, str]:
        """Settings that nobody is shown, read anew for each start; no message of this engine has them."""
        found = secret_conf(self.settings.catalogs) | spark_secrets(self.settings.storage)
        self._secrets = tuple(found.values())
        return found

    def _hidden(self, told: SkerryError) -> SkerryError:
        """The same error, with no secret in it: a Spark may quote what it was given."""
        if self._secrets:
            told.message = hidden(told.message, self._secrets)
            told.args = (told.message,)
        return told

    def _revive(self) -> Process | None:
        """Start a Spark again that has died, e.g. for want of memory; its jobs have failed, others need not.

        Returns the process that runs now. Whoever asked for it later might get one that was started meanwhile, and take
        the end of this one for an error.
        """
        with self._lifecycle:
            if self._session is not None and not self._is_alive():
                process = self._engine_process()
                if process is not None:  # none: it has been told, and could not be started
                    trace.emit(trace.SparkRestarted(self.name, process.how_ended(0)))
                self._close()
                self._views.reset()
                self._edge_views.clear()
                self._session = self._open()
            return self._engine_process()

    def _ended(self) -> None:
        """Called in a thread of its own when the engine's process is gone: no query need wait for its start."""
        pause_s = RESTART_FIRST_S
        while self._session is not None:
            try:
                self._revive()
                return
            except SiteError as error:
                trace.emit(trace.RestartFailed(self.name, trace.cause_of(error), pause_s))
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, RESTART_MAX_S)

    def stop(self) -> None:
        with self._lifecycle:
            if self._session is not None:
                self._session = None
                self._views.reset()
                self._close()

    def warm_up(self) -> None:
        """Run what a first query would have to wait for: code generation, Python workers. Failures do not matter."""
        try:
            frame = self._spark().range(0, self.cores, 1, self.cores)
            frame.selectExpr("id + 1 AS n").mapInArrow(_pass_through, "n bigint").toArrow()
        except (SkerryError, *SPARK_ERRORS) as error:  # e.g. of a member that is stopped at once: no trace for that
            trace.emit(trace.WarmUpEnded(first_words(error)))

    def look(self, table: TableConfig, at: Moment | None) -> Told:
        try:
            self._revive()
            return look(self._spark(), table, at)
        except SPARK_ERRORS as error:
            told = self._unread(table.name, error, f"site {table.member}: ")
            raise (database_fault(told, table) if isinstance(table.source, JdbcTable) else told) from self._cause(error)

    def tables_in(self, namespace: tuple[str, ...]) -> tuple[str, ...]:
        try:
            self._revive()
            return tables_in(self._spark(), namespace)
        except SPARK_ERRORS as error:
            raise self._unread(f"{'.'.join(namespace)}.*", error) from self._cause(error)

    def describe(self, table: TableFiles) -> tuple[Column, ...]:
        try:
            self._revive()
            with self._views.lease({"t": table}) as names:
                return columns_of(self._spark().table(names["t"]).schema)
        except SqlError as error:  # a column's type: nobody wrote a statement
            raise SiteError(f"table {table.table}: {error.message}", suggestion=error.suggestion) from None
        except SPARK_ERRORS as error:
            raise _store_told(self._unread(table.table, error), table) from self._cause(error)

    def count_rows(self, table: TableFiles) -> int:
        try:
            self._revive()
            with self._views.lease({"t": table}) as names:
                return self._spark().table(names["t"]).count()
        except SPARK_ERRORS as error:
            raise _store_told(self._unread(table.table, error), table) from self._cause(error)

    def run(self, job: Job, on_schema: Callable[[Schema], None]) -> JobResult:
        names: dict[str, str] = {}
        process: Process | None = None
        was_full = False
        statement = (job.sql, repr(sorted(job.parameters.items())))
        with (
            self._tags.running(job.tag),
            self._suspects.turn(statement, job.query, partial(self._tags.refuse_cancelled, job.tag)),
        ):
            try:
                process = self._revive()
                was_full = self._is_full()
                with self._settings_of(job):
                    result = self._run(job, on_schema, names)
                self._suspects.acquit(statement)
                return result
            except AssertionError:  # PySpark's own, where a cancel leaves a call without an answer
                self._tags.refuse_cancelled(job.tag)
                raise
            except (SkerryError, AttributeError, *SPARK_ERRORS) as error:
                _clear_frames(error)
                self._tags.refuse_cancelled(job.tag)
                if process is not None and (how := process.how_ended(ENGINE_GONE_S if is_lost(error) else 0)):
                    self._suspects.ran_at_end(statement, was_full)
                    raise EngineEnded(f"{self.name} ended ({how}) while it ran the query") from error
                self._suspects.acquit(statement)
                if isinstance(error, AttributeError):  # else PySpark's own, of a session closed as its JVM was gone
                    raise
                if not job.is_optional and not isinstance(error, SkerryError):
                    trace.emit(_failed(job, error), self._cause(error))
                told = self._hidden(translate(error, names, engine=self.name))
                for table in job.tables.values():
                    told = _store_told(told, table)
                raise job_fault(told, job.tables.values()) from self._cause(error)

    def cancel(self, tag: str) -> None:
        self._tags.cancel(tag)
        if self._session is not None and tag in self._tags.names():
            try:
                self._interrupt(tag)
            except SPARK_ERRORS as error:  # the job's own thread reports what is wrong with this Spark
                trace.emit(trace.CancelFailed(tag, trace.cause_of(error)))

    def runs(self, tag: str) -> bool:
        return tag in self._tags.names()

    def give_up(self, tag: str) -> None:
        """Nothing, but where a process is quickly started again: a JVM takes longer than most jobs to end."""
        return

    def queued_tasks(self, besides: Collection[str] = ()) -> int:
        return 0

    def is_held_up(self, tag: str) -> bool:
        return False

    def job_ids(self, tag: str) -> tuple[int, ...]:
        return ()

    def leftovers(self) -> list[str]:
        views = sorted(self._edge_views | self._views_in_use())
        return [*(f"job {tag}" for tag in self._tags.names()), *(f"view {name}" for name in views)]

    def _cause(self, error: BaseException) -> BaseException | None:
        """Of an error that is told: a log may print it."""
        return None if self._secrets else error

    def _unread(self, table: str, error: BaseException, where: str = "") -> SkerryError:
        process = self._engine_process()
        if process is not None:  # an error may be the first to show that it has ended: the next job needs another
            process.how_ended(0)
        # It is asked for again and again, and each time its member says so in a line.
        trace.emit(trace.TableUnread(table, type(error).__name__), self._cause(error))
        return self._hidden(translate(error, {}, what=f"{where}table {table}"))

    # --- one job ---------------------------------------------------------------------------------
    def _run(self, job: Job, on_schema: Callable[[Schema], None], names: dict[str, str]) -> JobResult:
        with ExitStack() as stack:
            text, frame, schema = self._planned(job, on_schema, names, stack)
            if job.sink is None:
                rows = self._fetch(job, text, frame, schema)
                return JobResult(table=agreed(rows, decode_schema(schema.arrow)))
            spec = SinkSpec(job.sink, schema.arrow, self.settings.limits, self.checks_decimals)
            return self._deliver(job, self._numbered(frame, schema), spec)

    def _planned(
        self, job: Job, on_schema: Callable[[Schema], None], names: dict[str, str], stack: ExitStack
    ) -> tuple[str, DataFrame, Schema]:
        """The job's text, and the query, which reads its tables until the stack is unwound. Its columns are told."""
        views = dict(stack.enter_context(self._views_of(job).lease(job.tables)))
        names |= {view: job.tables[placeholder].table for placeholder, view in views.items()}
        over_tables = with_views(job.sql, views)
        edges: dict[str, DataFrame] = {}
        for placeholder, edge in job.edges.items():
            views[placeholder] = name = f"{EDGE_PREFIX}{next(self._edge_numbers)}"
            names[name] = f"edge {edge.edge}" if edge.edge else "VALUES"
            edges[name] = self._edge(job, edge)
            stack.enter_context(self._known_as(name, edges[name]))
        self._tags.refuse_cancelled(job.tag)
        arguments = {name: to_literal(name, value) for name, value in job.parameters.items()}
        text = with_views(job.sql, views)
        frame = self._frame(job, text, arguments, edges)
        schema = self._schema_of(job, over_tables, frame)
        on_schema(schema)
        self._tags.refuse_cancelled(job.tag)
        return text, frame, schema

    def _schema_of(self, job: Job, text: str, frame: DataFrame) -> Schema:
        """Asked for once a text: a view's name stands for one listing for ever, and asking is a round trip or two.

        `text`: with the placeholders of its edges, which are known by their columns.
        """
        if any(isinstance(value, list | tuple) for value in job.parameters.values()):  # types that only Spark knows
            return schema_of(frame.schema)
        types = tuple((name, to_value(value, name).type) for name, value in job.parameters.items())
        columns = tuple((placeholder, edge.columns) for placeholder, edge in job.edges.items())
        key = (job.is_small, text, types, columns)
        schema = self._schemas.get(key)
        if schema is None:
            schema = schema_of(frame.schema)
            if len(self._schemas) >= SPARK_SCHEMAS:
                self._schemas.clear()
            self._schemas[key] = schema
        return schema

    def _edge(self, job: Job, edge: EdgeInput) -> DataFrame:
        """Made afresh for each job: Spark keeps what it learned about a source with it."""
        schema, limits = arrow_schema(struct_of(edge.columns)), self.settings.limits
        if edge.bodies is None:
            return self._edge_frame(SourceSpec(edge, encode_schema(schema), limits))
        batches = [decode_batch(body, schema, limits.frame_bytes) for body in edge.bodies]
        return self._rows_frame(job.is_small, edge.columns, pa.Table.from_batches(batches, schema))

    def _known_as(self, name: str, edge: DataFrame) -> AbstractContextManager[None]:
        """The job's text may use this name while the block runs."""
        return self._edge_view(name, edge)

    @contextmanager
    def _edge_view(self, name: str, edge: DataFrame) -> Iterator[None]:
        edge.createOrReplaceTempView(name)
        self._edge_views.add(name)
        try:
            yield
        finally:
            self._edge_views.discard(name)
            if self._is_alive():
                edge.sparkSession.catalog.dropTempView(name)

    @property
    def session(self) -> SparkSession:
        """The session itself, for oracles and benchmarks that run beside Skerry in the same Spark."""
        return self._spark()

    def _views_in_use(self) -> set[str]:
        return self._views.in_use()

    def _spark(self) -> SparkSession:
        if self._session is None:
            raise SiteError("this member's Spark is not running")
        return self._session


def _store_told(told: SkerryError, table: TableFiles) -> SkerryError:
    return told if table.storage is None else store_fault(told, table.table, table.member, table.root)


def _failed(job: Job, error: BaseException) -> trace.SparkFailed:
    return trace.SparkFailed(job.query, job.fragment, type(error).__name__, condition_of(error))


def _clear_frames(error: BaseException) -> None:
    """gRPC's errors hold themselves by their tracebacks, and with them the batches and threads of the whole call."""
    chain: BaseException | None = error
    for _ in range(ERROR_CHAIN):
        if chain is None:
            return
        traceback.clear_frames(chain.__traceback__)
        chain = chain.__cause__ or chain.__context__


def agreed(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """With the types that were announced."""
    return pa.Table.from_arrays(as_announced(table.columns, schema), schema=schema)


def _pass_through(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches

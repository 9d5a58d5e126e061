"""A Spark behind Spark Connect (sc://…): its slots are unknown, its tasks may be retried."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.connect.dataframe import DataFrame as ConnectFrame
from pyspark.sql.connect.functions import lit
from pyspark.sql.connect.plan import SQL, LocalRelation, SubqueryAlias

from skerry.exchange.intake import SinkRow
from skerry.model import trace
from skerry.model.errors import SiteError
from skerry.model.results import Schema
from skerry.model.table import Column
from skerry.spark.base import SINK_STRUCT, SessionEngine
from skerry.spark.engine import Job, JobResult
from skerry.spark.failures import SPARK_ERRORS, translate
from skerry.spark.settings import SparkSettings, batch_conf, sql_conf
from skerry.spark.sink import SinkSpec, sink_function
from skerry.spark.source import EdgeSource, SourceSpec, encode_spec
from skerry.spark.types import struct_of


def place_of(url: str) -> str:
    """The URL without its parameters: one of them may be a token, and errors are logged."""
    return url.partition("/;")[0]


class ConnectEngine(SessionEngine):
    """`skerry` and what it needs must be importable where that Spark runs its Python workers."""

    tasks_are_here = False
    retries_tasks = True

    def __init__(self, settings: SparkSettings) -> None:
        super().__init__(settings)
        self._remote: SparkSession | None = None

    def _open(self) -> SparkSession:
        url = self.settings.remote
        session = self._connect(f"Spark Connect at {place_of(url)}", SparkSession.builder.remote(url).create)
        session.dataSource.register(EdgeSource)
        return session

    def _connect(self, what: str, create: Callable[[], SparkSession]) -> SparkSession:
        try:
            self._remote = create()
            conf = batch_conf(self.settings.limits, is_narrow=False) | sql_conf(self.settings) | self._read_secrets()
            for key, value in conf.items():
                self._set(self._remote, key, value)
        except SPARK_ERRORS as error:
            trace.emit(trace.SparkFailed(None, None, type(error).__name__), error)
            raise SiteError(f"{what}: {translate(error, {}).message}") from error
        return self._remote

    def _set(self, session: SparkSession, key: str, value: str) -> None:
        """What answers depend on must be taken; other settings may be unknown to this Spark, or fixed at its start."""
        if session.conf.get(key, None) == value:
            return
        if (
            key in ("spark.sql.ansi.enabled", "spark.sql.session.timeZone")
            or key in self.settings.conf
            or key.startswith("spark.sql.catalog.")
        ):
            session.conf.set(key, value)
            return
        with suppress(*SPARK_ERRORS):
            session.conf.set(key, value)

    def _close(self) -> None:
        if self._remote is not None:
            with suppress(*SPARK_ERRORS):
                self._remote.stop()
            self._remote = None

    @contextmanager
    def _settings_of(self, job: Job) -> Iterator[None]:
        session = self._spark()
        session.addTag(job.tag)
        try:
            yield
        finally:
            session.removeTag(job.tag)

    @contextmanager
    def _shielded(self) -> Iterator[None]:
        # Sail ends a command that is interrupted as if it had been carried out.
        session = self._spark()
        tags = tuple(session.getTags())
        session.clearTags()
        try:
            yield
        finally:
            for tag in tags:
                session.addTag(tag)

    # Each of these spares a small query a round trip or two. Their results are checked like any others'.
    def _frame(self, job: Job, sql: str, arguments: dict[str, Any], edges: Mapping[str, DataFrame]) -> DataFrame:
        # `session.sql` would send the text at once, to learn whether it is a command: it never is (D4).
        named = {name: lit(value) for name, value in arguments.items()}
        session: Any = self._spark()
        plans: Mapping[str, Any] = {name: edge._plan for name, edge in edges.items()}
        aliases = [SubqueryAlias(plan, name) for name, plan in plans.items()]
        return ConnectFrame(SQL(sql, [], named, aliases), session)

    def _known_as(self, name: str, edge: DataFrame) -> AbstractContextManager[None]:
        return nullcontext()  # the query brings its edges with it

    def _rows_frame(self, is_small: bool, columns: Sequence[Column], rows: pa.Table) -> DataFrame:
        session: Any = self._spark()
        if rows.num_rows:
            return ConnectFrame(LocalRelation(rows), session)
        # Sail finds no columns in a stream without rows.
        return self._no_rows(ConnectFrame(LocalRelation(rows, struct_of(columns).json()), session))

    def _no_rows(self, frame: DataFrame) -> DataFrame:
        """As `small.rows_frame` has it."""
        return frame.localCheckpoint(eager=False)

    def _numbered(self, frame: DataFrame, schema: Schema) -> DataFrame:
        found: Any = super()._numbered(frame, schema)
        found._cached_schema = struct_of([Column(f"c{index}", each.type) for index, each in enumerate(schema.columns)])
        return found  # type: ignore[no-any-return]

    def _fetch(self, job: Job, sql: str, frame: DataFrame, schema: Schema) -> pa.Table:
        return _table(self._numbered(frame, schema))  # toArrow() would ask for the columns a second time

    def _deliver(self, job: Job, frame: DataFrame, spec: SinkSpec) -> JobResult:
        rows = _table(frame.mapInArrow(sink_function(spec), SINK_STRUCT)).to_pylist()
        # collect() would ask for a setting, while the last page waits
        return JobResult(sink_rows=tuple(SinkRow(**row) for row in rows))

    def _interrupt(self, tag: str) -> None:
        self._spark().interruptTag(tag)

    def _edge_frame(self, spec: SourceSpec) -> DataFrame:
        reader = self._spark().read.format(EdgeSource.name())
        return reader.schema(struct_of(spec.edge.columns)).option("spec", encode_spec(spec)).load()


def _table(frame: Any) -> pa.Table:
    try:
        table, _ = frame._to_table()
    except AssertionError:  # an interrupt may end the stream before it has any rows, not even none
        raise SiteError("Spark ended the query without an answer") from None
    return table

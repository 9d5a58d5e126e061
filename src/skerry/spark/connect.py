"""A Spark behind Spark Connect (sc://…): its slots are unknown, its tasks may be retried."""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.connect.client import DefaultChannelBuilder
from pyspark.sql.connect.client.retries import DefaultPolicy
from pyspark.sql.connect.dataframe import DataFrame as ConnectFrame
from pyspark.sql.connect.functions import lit
from pyspark.sql.connect.plan import SQL, LocalRelation, SubqueryAlias
from pyspark.sql.connect.session import SparkSession as ConnectSession

from skerry.exchange.intake import SinkRow
from skerry.model import trace
from skerry.model.errors import SiteError
from skerry.model.limits import CONNECT_FIRST_MS, CONNECT_MAX_MS, CONNECT_TRIES
from skerry.model.results import Schema
from skerry.model.table import Column
from skerry.spark.base import SINK_STRUCT, Process, SessionEngine
from skerry.spark.engine import Job, JobResult
from skerry.spark.failures import SPARK_ERRORS, first_words, translate
from skerry.spark.settings import SparkSettings, batch_conf, sql_conf
from skerry.spark.shipping import package_zip
from skerry.spark.sink import SinkSpec, sink_function
from skerry.spark.source import EdgeSource, SourceSpec, encode_spec
from skerry.spark.types import struct_of


def place_of(url: str) -> str:
    """The URL without its parameters: one of them may be a token, and errors are logged."""
    return url.partition("/;")[0]


class ServerSession:
    """A session as its engine sees it: it may end by itself, with its server or because the server closed it.

    Several jobs may ask at once.
    """

    def __init__(self, session: SparkSession, place: str) -> None:
        self._session = session
        self._place = place
        self._ended = ""

    @property
    def is_alive(self) -> bool:
        return not self._ended

    def how_ended(self, wait_s: float) -> str:
        """Asks the server, whatever `wait_s`: it alone knows, and answers at once if it is there."""
        if not self._ended:
            client: Any = self._session.client
            client.set_retry_policies([])  # its job has asked again and again
            try:
                self._session.conf.get("spark.sql.session.timeZone")
            except SPARK_ERRORS as error:
                self._ended = f"{self._place}: {first_words(error)}"
            client.set_retry_policies([_patience()])
        return self._ended


class ConnectEngine(SessionEngine):
    """Its Python workers must have what `skerry` depends on; `skerry` itself comes with the session."""

    tasks_are_here = False
    retries_tasks = True

    def __init__(self, settings: SparkSettings) -> None:
        super().__init__(settings)
        self._remote: SparkSession | None = None
        self._server: ServerSession | None = None

    def _open(self) -> SparkSession:
        url = self.settings.remote
        place = f"Spark Connect at {place_of(url)}"
        session = self._connect(place, partial(_new_session, url), _equip)
        self._server = ServerSession(session, place)
        return session

    def _engine_process(self) -> Process | None:
        return self._server

    def _is_alive(self) -> bool:
        return self._server is not None and self._server.is_alive

    def _connect(
        self, what: str, create: Callable[[], SparkSession], equip: Callable[[SparkSession], None] = lambda _: None
    ) -> SparkSession:
        try:
            self._remote = create()
            conf = batch_conf(self.settings.limits, is_narrow=False) | sql_conf(self.settings) | self._read_secrets()
            for key, value in conf.items():
                self._set(self._remote, key, value)
            equip(self._remote)
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
            remote: Any = self._remote
            remote.client.set_retry_policies([])
            with suppress(*SPARK_ERRORS):
                remote.stop()
            self._remote = None
        self._server = None

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


def _new_session(url: str) -> SparkSession:
    # PySpark's functions look here for what a column is made of; its own builder takes no options of gRPC.
    os.environ["SPARK_CONNECT_MODE_ENABLED"] = "1"
    # gRPC's channels share what they know of a server: a new one would not try one that was gone for up to two minutes.
    options: list[tuple[str, Any]] = [
        ("grpc.use_local_subchannel_pool", 1),
        ("grpc.max_reconnect_backoff_ms", CONNECT_MAX_MS),
    ]
    session: Any = ConnectSession.Builder().channelBuilder(DefaultChannelBuilder(url, options)).create()
    session.client.set_retry_policies([_patience()])
    warnings.filterwarnings("ignore", r"\[RETRIES_EXCEEDED\]")  # the error says it
    return session  # type: ignore[no-any-return]


def _patience() -> DefaultPolicy:
    """PySpark tries for ten minutes and more to reach a server; a query is to end within seconds, and says why."""
    return DefaultPolicy(CONNECT_TRIES, 2.0, CONNECT_FIRST_MS, CONNECT_MAX_MS, jitter=0)


def _equip(session: SparkSession) -> None:
    """What its Python workers import, and the source that edges are read by."""
    with tempfile.TemporaryDirectory(prefix="skerry-ship-") as directory:
        session.addArtifacts(package_zip(directory), pyfile=True)
    session.dataSource.register(EdgeSource)


def _table(frame: Any) -> pa.Table:
    try:
        table, _ = frame._to_table()
    except AssertionError:  # an interrupt may end the stream before it has any rows, not even none
        raise SiteError("Spark ended the query without an answer") from None
    return table

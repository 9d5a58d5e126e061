"""Sail: a Spark Connect server without Java, inside the member's own process."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import quote

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.connect.functions import col

from skerry.catalog.listing import unread_by_sail
from skerry.exchange.intake import SinkRow
from skerry.model.errors import SiteError, SqlError
from skerry.model.fragment import SortKey
from skerry.spark.connect import ConnectEngine
from skerry.spark.engine import Job, JobResult, TableFiles
from skerry.spark.settings import SparkSettings
from skerry.spark.sink import SinkSpec, hand_over, random_attempt
from skerry.spark.source import SourceSpec, source_function
from skerry.spark.types import struct_of
from skerry.spark.views import read_table
from skerry.wire.messages import Schema

# Its parser and planner recurse: at somewhat less than 500 their stack is full, and that ends the member's process.
_OPERATORS_MAX = 300


class SailEngine(ConnectEngine):
    """Runs tasks once, in threads of this process; has no task context, so partitions have no numbers."""

    tasks_are_here = True
    tasks_are_inside = True
    retries_tasks = False

    def __init__(self, settings: SparkSettings) -> None:
        super().__init__(settings)
        self._server: Any = None

    def _open(self) -> SparkSession:
        try:
            from pysail.spark import SparkConnectServer
        except ImportError:
            raise SiteError("Sail is not installed", suggestion="pip install 'skerry[sail]'") from None
        os.environ.setdefault("RUST_LOG", "error")  # its log goes to the terminal
        # Queries compute in the threads that also answer requests: with one a core, a busy Sail hears no cancel.
        os.environ.setdefault("TOKIO_WORKER_THREADS", str(4 * (os.cpu_count() or 2)))
        self._server = SparkConnectServer("127.0.0.1", 0)
        self._server.start(background=True)
        host, port = self._server.listening_address
        try:
            session: Any = self._connect(f"sc://{host}:{port}")
            # Within a process no connection is lost. A client that reattaches asks to have each part of a result
            # released, and begins an execution anew that was interrupted before its first row.
            session.client.disable_reattachable_execute()
            return session  # type: ignore[no-any-return]
        except BaseException:
            self._close()
            raise

    def _close(self) -> None:
        super()._close()
        if self._server is not None:
            self._server.stop()
            self._server = None

    def _run(self, job: Job, on_schema: Callable[[Schema], None], names: dict[str, str]) -> JobResult:
        """The job's own word is taken for its depth: a peer that said less than there is would end this process."""
        if job.operator_depth > _OPERATORS_MAX:
            raise SqlError(
                f"more than {_OPERATORS_MAX} operators in a row (a OR b OR …, UNION), which Sail cannot run",
                suggestion="write x IN (…) instead of x = 1 OR x = 2 OR …, or use Apache Spark at this site",
            )
        return super()._run(job, on_schema, names)

    def _deliver(self, job: Job, frame: DataFrame, spec: SinkSpec) -> list[SinkRow]:
        """Below `mapInArrow` Sail drops a sort, since nothing there asks for one: ordered rows leave from here.

        Lanes that are sorted runs are one here: partitions have no numbers, and the rows of all come in one stream.
        """
        if job.order == "any":
            return super()._deliver(job, frame, spec)
        if job.keys:
            frame = frame.orderBy(*map(_sorted_by, job.keys))
        return [hand_over(spec, 0, random_attempt(), _stream(frame))]

    def _edge_frame(self, spec: SourceSpec) -> DataFrame:
        count = spec.edge.partitions
        shares = self._spark().range(0, count, 1, count)
        return shares.mapInArrow(source_function(spec), struct_of(spec.edge.columns))

    def _read(self, table: TableFiles) -> DataFrame:
        for file in table.files:
            if not os.path.exists(file):  # Sail would read the other files and say nothing
                raise SiteError(f"table {table.table}: {file} is gone")
        if how := unread_by_sail(table.root, table.files):
            raise SiteError(f"table {table.table}: {how}")
        return read_table(self._spark(), table, lambda file: "file://" + quote(os.path.abspath(file)))


def _sorted_by(key: SortKey) -> Column:
    """Columns are numbered by now (`numbered`)."""
    column = col(f"c{key.index}")
    if key.descending:
        return column.desc_nulls_first() if key.nulls_first else column.desc_nulls_last()
    return column.asc_nulls_first() if key.nulls_first else column.asc_nulls_last()


def _stream(frame: Any) -> Iterator[pa.RecordBatch]:
    """The result in its order, as it comes: `toArrow` would hold all of it."""
    client = frame._session.client
    for part in client.to_table_as_iterator(frame._plan.to_proto(client), frame._plan.observations):
        if isinstance(part, pa.Table):
            yield from part.to_batches()

"""Small jobs on an Apache Spark: tables of some kilobytes, where starting takes longer than reading.

Each is one stage of one task: a table is one partition, so Spark needs no exchange to group, join or sort its rows. A
statement that was asked for before is kept planned (ADR 30): to run it again is to read its files again, no more.
"""

from __future__ import annotations

import itertools
import re
import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import reduce
from typing import Any

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.errors.exceptions.captured import UnknownException, convert_exception
from pyspark.sql import DataFrame, SparkSession

from skerry.model.limits import ASKED_STATEMENTS, CALL_BYTES, KEPT_STATEMENT_CHARS, KEPT_STATEMENTS
from skerry.model.results import Schema
from skerry.model.table import Column
from skerry.spark.engine import Job, TableFiles
from skerry.spark.types import struct_of
from skerry.spark.views import Views, escape_glob, read_overlaid, read_table, with_views
from skerry.wire.codec import decode_schema

SMALL = {
    # Stages that one task does need nobody to look at their sizes in between.
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.leafNodeDefaultParallelism": "1",
    "spark.sql.files.maxPartitionNum": "1",
    # A broadcast is a job of its own, while tables of one partition are joined where they lie.
    "spark.sql.autoBroadcastJoinThreshold": "-1",
}
# Parts of a plan that hold what they found when it first ran: rows of another job, the value of a subquery. Each has a
# line of its own in the plan's text, after the lines that draw the tree: `:  +- *(2) BroadcastExchange …`
HOLDING = re.compile(r"^[\W\d]*\w*(Exchange|Subquery|AdaptiveSparkPlan|InMemoryTableScan)", re.MULTILINE)

Key = tuple[str, str]
Planned = tuple[str, DataFrame, Schema]  # a job's text, its query and its columns


class Statements:
    """Frames that Spark has planned, by statement; one is kept from the second time on that it is asked for.

    Thread-safe. The names of views are part of a statement, and each stands for one listing of files for ever.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._asked: OrderedDict[int, None] = OrderedDict()  # hashes: to take one for another keeps it a turn too early
        self._kept: OrderedDict[Key, DataFrame] = OrderedDict()

    def find(self, key: Key) -> DataFrame | None:
        with self._lock:
            frame = self._kept.get(key)
            if frame is not None:
                self._kept.move_to_end(key)
            return frame

    def is_asked_again(self, key: Key) -> bool:
        """Whether it has been asked for lately; from now on it has."""
        with self._lock:
            was_asked = hash(key) in self._asked
            self._asked[hash(key)] = None
            if len(self._asked) > ASKED_STATEMENTS:
                self._asked.popitem(last=False)
            return was_asked

    def keep(self, key: Key, frame: DataFrame) -> None:
        with self._lock:
            self._kept[key] = frame
            if len(self._kept) > KEPT_STATEMENTS:
                self._kept.popitem(last=False)

    def drop(self, key: Key) -> None:
        with self._lock:
            self._kept.pop(key, None)

    def __len__(self) -> int:
        return len(self._kept)


class SmallJobs:
    """The session that a JVM's small jobs run in. Its views have one partition each."""

    def __init__(self, session: SparkSession) -> None:
        self.session = session.newSession()
        for key, value in SMALL.items():
            self.session.conf.set(key, value)
        self.views = Views(lambda: self.session, self._read)
        self.statements = Statements()
        jvm: Any = session._jvm
        self._size_of = jvm.org.apache.spark.util.SizeEstimator.estimate

    def frame(self, job: Job, sql: str, arguments: dict[str, Any]) -> DataFrame:
        key = _key(job, sql)
        # What an edge brings is another query's next time.
        frame = self.statements.find(key) if not job.edges else None
        if frame is None:
            frame = self.session.sql(sql, args=arguments or None)
            if (
                job.sink is None
                and not job.edges
                and job.is_repeatable
                and sum(map(len, key)) <= KEPT_STATEMENT_CHARS
                and self.statements.is_asked_again(key)
                and plans_hold_nothing(frame)
            ):
                self.statements.keep(key, frame)
        return frame

    def fetch(self, job: Job, sql: str, frame: DataFrame, schema: Schema) -> pa.Table | None:
        """The rows; None if they are too large for the answer to a call. They come by a plain job: Spark would describe
        the plan of an SQL execution each time it runs."""
        try:
            with _converted():
                found: Any = frame._jdf.toArrowBatchRdd().collect()
                if self._size_of(found) > CALL_BYTES:
                    return None
                bodies = [found[index] for index in range(len(found))]
        except BaseException:
            self.statements.drop(_key(job, sql))  # a plan remembers why it failed
            raise
        return _table(bodies, decode_schema(schema.arrow))

    def keeps(self, job: Job) -> bool:
        """Whether no more is left to do than to run its one stage, whose rows go through the driver."""
        names = self.views.made(job.tables) if job.is_small and job.sink is None and not job.edges else None
        return names is not None and self.statements.find(_key(job, with_views(job.sql, names))) is not None

    def fetch_together(self, jobs: Sequence[Job], planned: Sequence[Planned]) -> list[pa.Table | None]:
        """The rows of each, by one job of Spark that has the tasks of all; None if they are too large for a call."""
        try:
            with _converted():
                parts: list[Any] = [frame._jdf.toArrowBatchRdd() for _, frame, _ in planned]
                counts = [part.getNumPartitions() for part in parts]
                # One array of batches for each partition, in their order.
                found: Any = reduce(lambda before, part: before.union(part), parts).glom().collect()
                arrays = iter([found[index] for index in range(sum(counts))])
                return [
                    self._rows_in(list(itertools.islice(arrays, count)), schema)
                    for count, (_, _, schema) in zip(counts, planned, strict=True)
                ]
        except BaseException:
            for job, (text, _, _) in zip(jobs, planned, strict=True):
                self.statements.drop(_key(job, text))
            raise

    def _rows_in(self, arrays: Sequence[Any], schema: Schema) -> pa.Table | None:
        if sum(map(self._size_of, arrays)) > CALL_BYTES:
            return None
        bodies = [array[index] for array in arrays for index in range(len(array))]
        return _table(bodies, decode_schema(schema.arrow))

    def few_rows(self, job: Job, frame: DataFrame, schema: bytes) -> pa.Table | None:
        """All rows, in the order of their one lane; None if they are more than a batch, or of several lanes.

        No more than two batches are ever made, so the driver holds no more.
        """
        with _converted():
            rdd: Any = frame._jdf.toArrowBatchRdd()
            if job.order != "any" and rdd.getNumPartitions() > 1:
                return None
            found = rdd.take(2)
            if len(found) > 1 or self._size_of(found) > CALL_BYTES:
                return None
            bodies = [found[index] for index in range(len(found))]
        return _table(bodies, decode_schema(schema))

    def properties(self) -> dict[str, str]:
        """What Spark's tasks have to know of the session, as an SQL execution would tell them."""
        settings: dict[str, str] = self.session.conf.getAll
        return {
            key: value for key, value in settings.items() if not key.startswith(("spark.driver.", "spark.executor"))
        }

    def _read(self, table: TableFiles) -> DataFrame:
        if table.overlaid is not None:
            return read_overlaid(table, self._read, self._rows).coalesce(1)
        return read_table(self.session, table, escape_glob).coalesce(1)

    def _rows(self, columns: Sequence[Column], rows: pa.Table) -> DataFrame:
        return rows_frame(self.session, columns, rows).coalesce(1)


def rows_frame(session: SparkSession, columns: Sequence[Column], rows: pa.Table) -> DataFrame:
    """That there are none is data, and Spark's optimizer is not to know it: it would plan as if the statement said so.
    Of files it does not know it, and `x IN (SELECT …)` beside an OR is to Spark NULL by one plan and false by another.
    """
    frame = session.createDataFrame(rows, struct_of(columns))
    return frame if rows.num_rows else frame.localCheckpoint(eager=False)


@contextmanager
def _converted() -> Iterator[None]:
    """What a job failed of. PySpark's own unwrap_spark_exception falls over an error without a cause, such as that of a
    subquery with two rows."""
    try:
        yield
    except Py4JJavaError as error:
        thrown: Any = error.java_exception
        converted = convert_exception(thrown.getCause() or thrown)
        if isinstance(converted, UnknownException):
            raise
        raise converted from None


def _table(bodies: Sequence[bytes], schema: pa.Schema) -> pa.Table:
    batches = [pa.ipc.read_record_batch(pa.py_buffer(body), schema) for body in bodies]
    return pa.Table.from_batches(batches, schema=schema)


def _key(job: Job, sql: str) -> Key:
    return sql, repr(sorted(job.parameters.items()))


def plans_hold_nothing(frame: DataFrame) -> bool:
    """Whether Spark's plan of it gives the same answer at any time, and keeps no rows. Spark's own rules say so.

    They put the time in the place of now(), and of strings like 'today' that a cast makes a time of.
    """
    spark: Any = frame.sparkSession
    rules = spark._jvm.org.apache.spark.sql.catalyst.optimizer
    patterns = spark._jvm.org.apache.spark.sql.catalyst.trees.TreePattern
    execution: Any = frame._jdf.queryExecution()
    plan = rules.ReplaceExpressions.apply(execution.analyzed())
    if plan.containsPattern(patterns.PLAN_EXPRESSION()):  # the rules leave a subquery's plan alone
        return False
    if not rules.SpecialDatetimeValues.apply(rules.ComputeCurrentTime.apply(plan)).fastEquals(plan):
        return False
    return not HOLDING.search(execution.executedPlan().toString())

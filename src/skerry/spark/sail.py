"""Sail: a Spark Connect server without Java, in a process of its own beside the member (ADR 25)."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial, reduce
from typing import Any
from urllib.parse import quote

import grpc
import msgspec
import pyarrow as pa
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.connect.client import ChannelBuilder
from pyspark.sql.connect.session import SparkSession as ConnectSession
from pyspark.sql.functions import col, lit
from pyspark.sql.types import ArrayType, MapType, NullType, StringType, StructField, StructType

from skerry.catalog.agreement import Group, fits, groups_of
from skerry.catalog.headers import separator_of
from skerry.catalog.listing import unread_by_sail
from skerry.catalog.stores import sail_environment
from skerry.model import trace
from skerry.model.errors import EngineEnded, SiteError, SqlError
from skerry.model.fragment import SortKey
from skerry.model.limits import (
    ENGINE_GONE_S,
    SAIL_FILES_ASKED,
    SAIL_GROUPS_MAX,
    SAIL_MEMORY_SHARE,
    SAIL_OPERATORS_MAX,
    Limits,
)
from skerry.model.results import Schema
from skerry.model.table import Column
from skerry.spark.base import agreed
from skerry.spark.connect import ConnectEngine
from skerry.spark.engine import Job, JobResult, TableFiles
from skerry.spark.sail_process import SailProcess, machine_memory_bytes
from skerry.spark.settings import SparkSettings
from skerry.spark.sink import SinkSpec, check_decimals, hand_over, random_attempt
from skerry.spark.source import SourceSpec, source_function
from skerry.spark.suspects import Suspects
from skerry.spark.types import columns_of, struct_of
from skerry.spark.views import numbered, read_table
from skerry.wire.codec import decode_schema

# Sail's words for files whose columns it cannot merge.
_UNMERGED = re.compile("Fail to merge schema|Ambiguous case-insensitive column match")

# Sail finds columns in the first 1,000 rows of a file unless it is told otherwise, Apache Spark in all of them.
_ALL_ROWS = str(10**12)
# Types of which one may hold the values of all; no other type of JSON holds another's on Sail.
_NUMBERS = re.compile(r"bigint|double|decimal\([0-9,]+\)")


class SailEngine(ConnectEngine):
    """Runs tasks once, in threads of its process; has no task context, so partitions have no numbers."""

    name = "Sail"
    tasks_are_here = True
    retries_tasks = False
    checks_decimals = True

    def __init__(
        self,
        settings: SparkSettings,
        suspects: Suspects | None = None,
        on_waste: Callable[[SailEngine], None] = lambda _: None,
    ) -> None:
        """`on_waste`: told, by a thread, while this one seems to compute for jobs that were cancelled."""
        super().__init__(settings)
        self._suspects = suspects or self._suspects
        self._on_waste = on_waste
        self._process: SailProcess | None = None

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    def _open(self) -> SparkSession:
        memory_bytes = self.settings.memory_bytes or int(machine_memory_bytes() * SAIL_MEMORY_SHARE)
        process = self._process = SailProcess(
            memory_bytes, self._ended, partial(self._on_waste, self), sail_environment(self.settings.storage)
        )
        try:
            return self._connect("Sail", partial(_new_session, process.target))
        except SiteError as error:
            how = process.how_ended(ENGINE_GONE_S)
            self._close()
            raise EngineEnded(f"{self.name} ended ({how}) while it started") if how else error from error
        except BaseException:
            self._close()
            raise

    def _no_rows(self, frame: DataFrame) -> DataFrame:
        return frame  # it plans `IN` alike, whatever it knows

    def _close(self) -> None:
        super()._close()
        if self._process is not None:
            self._process.stop()
            self._process = None

    def _engine_process(self) -> SailProcess | None:
        return self._process

    def _is_alive(self) -> bool:
        return self._process is not None and self._process.is_alive

    def _is_full(self) -> bool:
        process = self._process
        return process is not None and process.is_full

    @property
    def has_grown(self) -> bool:
        process = self._process
        return process is not None and process.has_grown

    def _interrupt(self, tag: str) -> None:
        super()._interrupt(tag)
        if (process := self._process) is not None:
            process.job_cancelled()

    def give_up(self, tag: str) -> None:
        process = self._process
        if process is not None and tag in self._tags.names():
            trace.emit(trace.JobsKilled(self.name, tag))
            process.kill("a job did not end after its cancel")
            process.how_ended(ENGINE_GONE_S)  # whoever comes next finds it gone, and starts it again

    def _run(self, job: Job, on_schema: Callable[[Schema], None], names: dict[str, str]) -> JobResult:
        """The job's own word is taken for its depth: one that said less than there is could end Sail."""
        if job.operator_depth > SAIL_OPERATORS_MAX:
            raise SqlError(
                f"more than {SAIL_OPERATORS_MAX} operators in a row (a OR b OR …, UNION, joins), which Sail cannot run",
                suggestion="write x IN (…) instead of x = 1 OR x = 2 OR …, or use Apache Spark at this site",
            )
        return super()._run(job, on_schema, names)

    def _deliver(self, job: Job, frame: DataFrame, spec: SinkSpec) -> JobResult:
        """Below `mapInArrow` Sail drops a sort, since nothing there asks for one: ordered rows leave from here. So do
        few rows, which take a third of the time without Python in Sail; if they are as few as the plan expects, they
        are the job's own answer, as though the plan had bounded them.

        Lanes that are sorted runs are one here: partitions have no numbers, and the rows of all come in one stream.
        """
        if job.order == "any" and not job.gives_few:
            return super()._deliver(job, frame, spec)
        if job.keys:
            frame = frame.orderBy(*map(_sorted_by, job.keys))
        rows, first = _stream(frame), list[pa.RecordBatch]()
        if job.gives_few:
            first, is_all = _at_most(rows, self.settings.limits)
            if is_all and first:
                table = pa.Table.from_batches(first)
                check_decimals(table)
                return JobResult(table=agreed(table, decode_schema(spec.schema)))
        return JobResult(sink_rows=(hand_over(spec, 0, random_attempt(), itertools.chain(first, rows)),))

    def _fetch(self, job: Job, sql: str, frame: DataFrame, schema: Schema) -> pa.Table:
        batches = list(_stream(self._numbered(frame, schema)))
        if not batches:  # an interrupt may end the stream before it has any rows, not even none
            raise SiteError("Sail ended the query without an answer")
        table = pa.Table.from_batches(batches)
        check_decimals(table)
        return table

    def _edge_frame(self, spec: SourceSpec) -> DataFrame:
        count = spec.edge.partitions
        shares = self._spark().range(0, count, 1, count)
        return shares.mapInArrow(source_function(spec), struct_of(spec.edge.columns))

    def describe(self, table: TableFiles) -> tuple[Column, ...]:
        try:
            columns = super().describe(table)
        except SiteError as error:
            if table.format != "parquet" and _UNMERGED.search(error.message):
                raise self._named(table) or error from None
            raise
        if len({column.name.lower() for column in columns}) < len(columns):
            raise self._named(table) or SiteError(f"table {table.table}: columns whose names differ in case only")
        if table.format != "json" or table.columns:
            return columns
        inferred = struct_of(columns)
        if _has_twins(inferred) and (named := self._named(table)):
            raise named
        return columns_of(_as_inferred(inferred))

    def _named(self, table: TableFiles) -> SiteError | None:
        """Two files whose columns differ, for Sail names none; None when they are not among the first ones."""
        known: dict[str, tuple[Column, str]] = {}
        for file in table.files[:SAIL_FILES_ASKED]:
            shown = os.path.relpath(file, table.root)
            for column in super().describe(msgspec.structs.replace(table, files=(file,), columns=())):
                other, where = known.setdefault(column.name.lower(), (column, shown))
                key = f"members.{table.member}.tables.{table.table}.columns"
                if other.name != column.name:
                    return SiteError(
                        f"table {table.table}: {other.name} in {where} is {column.name} in {shown}, which Sail does "
                        "not read as one column; write one of them anew, or use Apache Spark at this member"
                    )
                if other.type != column.type and not table.columns:
                    advice = (
                        f"declare its type in {key}"
                        if table.format == "csv" or _NUMBERS.sub("", other.type) == _NUMBERS.sub("", column.type)
                        else "write one of them anew, or use Apache Spark at this member"
                    )
                    return SiteError(
                        f"table {table.table}: {column.name} is {other.type} in {where} and {column.type} in {shown}; "
                        f"{advice}"
                    )
        return None

    def _read(self, table: TableFiles) -> DataFrame:
        for file in table.files:
            if table.storage is None and not os.path.exists(file):  # Sail would read the other files and say nothing
                raise SiteError(f"table {table.table}: {file} is gone")
        if how := unread_by_sail(table.root, table.files):
            raise SiteError(f"table {table.table}: {how}")
        if table.format == "parquet" and table.files:
            try:
                groups = groups_of(table.files, table.storage)
            except SiteError as error:
                raise SiteError(f"table {table.table}: {error.message}") from None
            if len(groups) > 1 or not all(group.gives(column) for group in groups for column in table.columns):
                return self._read_apart(table, groups)
        return self._read_files(table)

    def _read_files(self, table: TableFiles) -> DataFrame:
        # Sail knows no other spelling of a tab.
        options = {
            key: separator_of(table.options) if key.lower() in ("sep", "delimiter") else value
            for key, value in table.options.items()
        }
        finds_types = any(key.lower() == "inferschema" and value.lower() == "true" for key, value in options.items())
        if not table.columns and (table.format == "json" or (table.format == "csv" and finds_types)):
            options["schemaInferMaxRecords"] = _ALL_ROWS
        table = msgspec.structs.replace(table, options=options)
        return read_table(self._spark(), table, url_for_sail if table.storage is not None else _url_here)

    def _read_apart(self, table: TableFiles, groups: Sequence[Group]) -> DataFrame:
        """Each group as its files have it, made into the table's columns as Apache Spark makes them."""
        if len(groups) > SAIL_GROUPS_MAX:
            raise SiteError(
                f"table {table.table}: its files have columns of more than {SAIL_GROUPS_MAX} different sorts, "
                "which Sail cannot read at once"
            )
        bare = msgspec.structs.replace(table, columns=())
        frames = [self._read_files(msgspec.structs.replace(bare, files=tuple(group.files))) for group in groups]
        wanted = struct_of(table.columns) if table.columns else _merged(groups, frames)
        for index, (group, frame) in enumerate(zip(groups, frames, strict=True)):
            aligned = _aligned(frame.schema, wanted)
            if aligned.simpleString() != frame.schema.simpleString():
                files = tuple(group.files)
                frames[index] = self._read_files(
                    msgspec.structs.replace(table, files=files, columns=columns_of(aligned))
                )
        return reduce(DataFrame.unionAll, [_with_columns(frame, wanted) for frame in frames])


def _url_here(file: str) -> str:
    return "file://" + quote(os.path.abspath(file))


def url_for_sail(url: str) -> str:
    """As Sail calls a file of a store: its name's own letters, no pattern."""
    scheme, _, rest = url.partition("://")
    return f"{'s3' if scheme == 's3a' else scheme}://{quote(rest)}"


def _merged(groups: Sequence[Group], frames: Sequence[DataFrame]) -> StructType:
    """All columns, in the order and spelled as they come first; of Apache Spark's types, if these are known."""
    fields: dict[str, StructField] = {}
    for group, frame in zip(groups, frames, strict=True):
        for column in group.columns():
            field = struct_of((column,)).fields[0] if column.type else frame.schema[column.name]
            known = fields.setdefault(column.name.lower(), field)
            fields[column.name.lower()] = StructField(known.name, _holding(known.dataType, field.dataType))
    return StructType(list(fields.values()))


def _holding(known: Any, other: Any) -> Any:
    """One type for the values of both, of files that agree: the first group may lack types and fields."""
    if isinstance(known, StructType) and isinstance(other, StructType):
        kinds = {field.name: field.dataType for field in known.fields}
        for field in other.fields:
            kinds[field.name] = _holding(kinds.get(field.name, field.dataType), field.dataType)
        return StructType([StructField(name, kind) for name, kind in kinds.items()])
    if isinstance(known, ArrayType) and isinstance(other, ArrayType):
        return ArrayType(_holding(known.elementType, other.elementType))
    if isinstance(known, MapType) and isinstance(other, MapType):
        return MapType(_holding(known.keyType, other.keyType), _holding(known.valueType, other.valueType))
    if isinstance(known, NullType):
        return other
    return known if fits(known.simpleString(), other.simpleString()) or isinstance(other, NullType) else other


def _as_inferred(kind: Any) -> Any:
    """As Apache Spark finds types out from JSON: fields in the order of their names, strings where no value was."""
    if isinstance(kind, StructType):
        fields = [StructField(field.name, _as_inferred(field.dataType)) for field in kind.fields]
        return StructType(sorted(fields, key=lambda field: field.name.encode("utf-16-be")))
    if isinstance(kind, ArrayType):
        return ArrayType(_as_inferred(kind.elementType))
    return StringType() if isinstance(kind, NullType) else kind


def _has_twins(kind: Any) -> bool:
    """Whether two fields of a struct inside are one name in SQL."""
    if isinstance(kind, StructType):
        names = {field.name.lower() for field in kind.fields}
        return len(names) < len(kind.fields) or any(_has_twins(field.dataType) for field in kind.fields)
    return isinstance(kind, ArrayType) and _has_twins(kind.elementType)


def _aligned(own: StructType, wanted: StructType) -> StructType:
    """The columns of files with the wanted fields inside: Sail reads fields by name, but casts by position."""
    inside = {field.name.lower(): field.dataType for field in wanted.fields}
    kinds = [_aligned_type(field.dataType, inside.get(field.name.lower())) for field in own.fields]
    return StructType(
        [StructField(field.name, kind, field.nullable) for field, kind in zip(own.fields, kinds, strict=True)]
    )


def _aligned_type(own: Any, wanted: Any) -> Any:
    """Types stay those of the files, which Sail's reader does not change inside."""
    if isinstance(own, StructType) and isinstance(wanted, StructType):
        known = {field.name: field.dataType for field in own.fields}
        return StructType(
            [StructField(w.name, _aligned_type(known.get(w.name, w.dataType), w.dataType)) for w in wanted.fields]
        )
    if isinstance(own, ArrayType) and isinstance(wanted, ArrayType):
        return ArrayType(_aligned_type(own.elementType, wanted.elementType), own.containsNull)
    if isinstance(own, MapType) and isinstance(wanted, MapType):
        key, value = _aligned_type(own.keyType, wanted.keyType), _aligned_type(own.valueType, wanted.valueType)
        return MapType(key, value, own.valueContainsNull)
    return own


def _with_columns(frame: DataFrame, wanted: StructType) -> DataFrame:
    """The columns that are wanted, by name in any case; one that is not there is NULL."""
    places = {name.lower(): f"c{index}" for index, name in enumerate(frame.columns)}
    rows = numbered(frame, len(frame.columns))
    values = [col(places[name]) if (name := each.name.lower()) in places else lit(None) for each in wanted.fields]
    return rows.select(*[value.cast(f.dataType).alias(f.name) for value, f in zip(values, wanted.fields, strict=True)])


def _sorted_by(key: SortKey) -> SparkColumn:
    """Columns are numbered by now (`numbered`)."""
    column = col(f"c{key.index}")
    if key.descending:
        return column.desc_nulls_first() if key.nulls_first else column.desc_nulls_last()
    return column.asc_nulls_first() if key.nulls_first else column.asc_nulls_last()


def _new_session(target: str) -> SparkSession:
    # PySpark's functions look here for what a column is made of. Its own builder sets it, but takes URLs alone.
    os.environ["SPARK_CONNECT_MODE_ENABLED"] = "1"
    channel: Any = _SocketFile(target)
    session: Any = ConnectSession.Builder().channelBuilder(channel).create()
    # On one machine no connection is lost, unless Sail is. A client that reattaches asks to have each part of a result
    # released, and begins an execution anew that was interrupted before its first row.
    session.client.disable_reattachable_execute()
    session.client.set_retry_policies([])
    return session  # type: ignore[no-any-return]


class _SocketFile(ChannelBuilder):
    """How PySpark's client reaches a socket file: its URLs name hosts and ports alone."""

    def __init__(self, target: str) -> None:
        options: list[tuple[str, Any]] = [
            ("grpc.default_authority", "localhost"),  # Sail refuses a path for a host
            # Sail packs with gzip whatever goes to a client that can unpack it: most of the work of sorted rows.
            ("grpc.compression_enabled_algorithms_bitset", 1 << grpc.Compression.NoCompression),
            # Whoever reads a result waits for it: gRPC would have a thread do so, and start one for nearly every job.
            (grpc.experimental.ChannelOptions.SingleThreadedUnaryStream, 1),
        ]
        super().__init__(options)
        self._target = target

    def toChannel(self) -> Any:
        return self._insecure_channel(self._target)

    @property
    def host(self) -> str:
        return self._target


def _stream(frame: Any) -> Iterator[pa.RecordBatch]:
    """The result in its order, as it comes: `toArrow` would hold all of it.

    PySpark's own iterators look at each answer for twenty kinds of content and translate the columns' types; for a scan
    of some kilobytes that takes longer than the rows do.
    """
    client = frame._session.client
    request = client._execute_plan_request_with_metadata()
    del request.request_options[:]  # a batch comes whole
    request.plan.CopyFrom(frame._plan.to_proto(client))
    call: Any = None
    try:
        call = client._stub.ExecutePlan(request, metadata=client._builder.metadata())
        for answer in call:
            client._verify_response_integrity(answer)
            if answer.HasField("arrow_batch"):
                yield from _batches_in(answer.arrow_batch)
    except (grpc.RpcError, ValueError) as error:  # gRPC says so of a channel that was closed
        client._handle_error(error)
    finally:
        if call is not None:
            call.cancel()  # nobody reads on; an answer that is whole stays whole


def _at_most(rows: Iterator[pa.RecordBatch], limits: Limits) -> tuple[list[pa.RecordBatch], bool]:
    """Batches until there are more than small results have, and whether they are all."""
    found: list[pa.RecordBatch] = []
    count = size_bytes = 0
    for batch in rows:
        found.append(batch)
        count, size_bytes = count + batch.num_rows, size_bytes + batch.nbytes
        if count > limits.driver_rows or size_bytes > limits.driver_bytes:
            return found, False
    return found, True


def _batches_in(part: Any) -> list[pa.RecordBatch]:
    with pa.ipc.open_stream(part.data) as reader:
        batches = list(reader)
    rows = sum(batch.num_rows for batch in batches)
    if rows != part.row_count:
        raise SiteError(f"Sail announced {part.row_count} rows and sent {rows}")
    return batches

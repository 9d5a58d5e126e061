"""NetworkSink: the function that Spark's tasks run over a fragment's rows (D3). It hands them to the member.

Runs in Spark's Python workers: it imports neither pandas nor pyspark.sql, which would cost each worker a second.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec
import pyarrow as pa
from pyspark import TaskContext

from skerry.exchange.intake import UNKNOWN_PARTITION, SinkRow, body_hash, combine
from skerry.model.errors import Overloaded, SqlError
from skerry.model.limits import KIB, MIB, Limits
from skerry.spark.engine import SinkOutput
from skerry.spark.taskline import Outbox, TaskLine
from skerry.wire.codec import decode_schema, decoded_bytes
from skerry.wire.messages import Batch, SinkEnd, SinkOpen

SINK_COLUMNS = "partition int, attempt bigint, batches bigint, rows bigint, checksum bigint"
_SINK_SCHEMA = pa.schema(
    [("partition", pa.int32()), *((name, pa.int64()) for name in ("attempt", "batches", "rows", "checksum"))]
)
_HEADER_BYTES = 4 * KIB  # room in a frame for what precedes the Arrow message

Batches = Iterator[pa.RecordBatch]


class SinkSpec(msgspec.Struct, frozen=True):
    """What a sink task has to know; it travels with the function."""

    output: SinkOutput
    schema: bytes
    limits: Limits
    checks_decimals: bool = False


def sink_function(spec: SinkSpec) -> Callable[[Batches], Batches]:
    """The function for `mapInArrow`: swallows a partition, gives one row of `SINK_COLUMNS`."""

    def sink(batches: Batches) -> Batches:
        context = TaskContext.get()
        if context is None:  # Sail has no task context
            row = hand_over(spec, UNKNOWN_PARTITION, random_attempt(), batches)
        else:
            row = hand_over(spec, context.partitionId(), context.taskAttemptId(), batches)
        yield encode_row(row)

    return sink


def random_attempt() -> int:
    """The number of an attempt, for engines that do not number them; they run each task once."""
    return random.SystemRandom().getrandbits(62)


def hand_over(spec: SinkSpec, partition: int, attempt: int, batches: Batches) -> SinkRow:
    """Send all batches to the member, and return what it took."""
    schema = decode_schema(spec.schema)
    count = rows = checksum = 0
    with _outbox(spec, SinkOpen(spec.output.query, spec.output.fragment, partition, attempt)) as outbox:
        types = schema.types
        for batch in batches:
            agreed = _as_agreed(batch, schema, types)
            if spec.checks_decimals:
                check_decimals(agreed)
            for piece, size in sized_pieces(agreed, spec.limits):
                body = piece.serialize()  # of the types agreed on, so no others need be looked for
                outbox.put(Batch(count, 0, False, piece.num_rows, size, 0), body)
                checksum = combine(checksum, body_hash(body))
                rows += piece.num_rows
                count += 1
        outbox.end(SinkEnd(count, rows, checksum))
    return SinkRow(partition, attempt, count, rows, checksum)


def _outbox(spec: SinkSpec, opening: SinkOpen) -> Outbox:
    output = spec.output
    line = TaskLine(output.address, output.cluster, output.token, spec.limits, output.fingerprint)
    line.send(opening)
    return Outbox(line)


def _as_agreed(batch: pa.RecordBatch, schema: pa.Schema, types: list[pa.DataType]) -> pa.RecordBatch:
    """The batch with the types that were announced; names do not travel, and an Apache Spark's types agree."""
    if batch.schema.types == types:
        return batch
    return pa.RecordBatch.from_arrays(as_announced(batch.columns, schema), schema=schema)


def as_announced(columns: Sequence[Any], schema: pa.Schema) -> list[Any]:
    """Sail announces the first type of a UNION or a CASE, and gives the widest: a value may not fit."""
    cast = []
    for place, (column, field) in enumerate(zip(columns, schema, strict=True), 1):
        try:
            cast.append(column.cast(field.type))
        except pa.ArrowException:
            raise SqlError(
                f"Sail announced column {place} as {field.type} and gave {column.type}, which does not fit: "
                "CAST the operands of UNION, or the branches of CASE, to one type"
            ) from None
    return cast


def check_decimals(batch: pa.RecordBatch | pa.Table) -> None:
    """Sail's sums of decimals wrap around in silence; a value that its type cannot hold shows that one did."""
    for place, (field, column) in enumerate(zip(batch.schema, batch.columns, strict=True), 1):
        if not pa.types.is_decimal(field.type):
            continue
        try:
            column.validate(full=True)
        except pa.ArrowInvalid:
            raise SqlError(
                f"arithmetic overflow: column {place} has a value that decimal({field.type.precision},"
                f"{field.type.scale}) cannot hold"
            ) from None


def sized_pieces(batch: pa.RecordBatch, limits: Limits) -> Iterator[tuple[pa.RecordBatch, int]]:
    """The batch in slices near `batch_bytes` and their decoded bytes; all fit a frame, none is without rows."""
    if batch.num_rows == 0:
        return
    size = decoded_bytes(batch)
    if size <= limits.piece_bytes:
        yield batch, size
    elif batch.num_rows == 1:
        yield _one_row(batch, size, limits), size
    else:
        # Rows may differ much in size: cut by number, then look at each slice again.
        rows = max(1, min(batch.num_rows // 2, batch.num_rows * min(limits.batch_bytes, limits.piece_bytes) // size))
        for offset in range(0, batch.num_rows, rows):
            yield from sized_pieces(batch.slice(offset, rows), limits)


def _one_row(batch: pa.RecordBatch, size: int, limits: Limits) -> pa.RecordBatch:
    if size > limits.frame_bytes - _HEADER_BYTES:
        raise Overloaded(
            f"one row takes {size / MIB:.1f} MiB, more than a frame's {limits.frame_bytes / MIB:g} MiB "
            f"(limits.frame_bytes)"
        )
    return batch


def encode_row(row: SinkRow) -> pa.RecordBatch:
    """One row of `SINK_COLUMNS`. Built from bytes: `pa.array` of a Python list would import pandas."""
    values = (row.partition, row.attempt, row.batches, row.rows, row.checksum)
    arrays = [
        pa.Array.from_buffers(field.type, 1, [None, pa.py_buffer(struct.pack(kind, value))])
        for field, kind, value in zip(_SINK_SCHEMA, "<i <q <q <q <q".split(), values, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=_SINK_SCHEMA)

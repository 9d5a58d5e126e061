"""NetworkSource: how Spark's tasks read an edge from their member (D3).

`read_share` runs in Spark's Python workers. Two operators carry it: `mapInArrow` over the numbers of the shares,
which needs no planning in Python, and the Python data source `skerry_edge`, for Sparks where the first one would be
taken for a small table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec
import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from skerry.model.errors import PeerError
from skerry.model.limits import Limits
from skerry.spark.engine import EdgeInput
from skerry.spark.taskline import TaskLine, expect
from skerry.wire.codec import decode_batch, decode_schema
from skerry.wire.frames import BATCH, split_batch
from skerry.wire.messages import SourceEnd, SourceOpen

Batches = Iterator[pa.RecordBatch]


class SourceSpec(msgspec.Struct, frozen=True):
    """What a source task has to know; it travels with the function."""

    edge: EdgeInput
    schema: bytes
    limits: Limits


def read_share(spec: SourceSpec, partition: int) -> Batches:
    """The share `partition` of an edge's batches, from the edge's start. Only SourceEnd is an end."""
    edge = spec.edge
    schema = decode_schema(spec.schema)
    batches = rows = 0
    with TaskLine(edge.address, edge.cluster, edge.token, spec.limits, edge.fingerprint) as line:
        line.send(SourceOpen(edge.query, edge.edge, partition, edge.partitions))
        while (frame := line.receive_frame()).kind == BATCH:
            header, body = split_batch(frame)
            batches += 1
            rows += header.rows
            if header.rows:
                yield decode_batch(body, schema, max(header.decoded_bytes, len(body), spec.limits.frame_bytes))
        end = expect(frame, SourceEnd)
        if (end.batches, end.rows) != (batches, rows):
            raise PeerError(f"edge {edge.edge}: {rows} of {end.rows} rows came from the member")


def source_function(spec: SourceSpec) -> Callable[[Batches], Batches]:
    """The function for `mapInArrow` over a column with the numbers of the shares to read."""

    def source(numbers: Batches) -> Batches:
        for batch in numbers:
            for number in batch.column(0):
                yield from read_share(spec, number.as_py())

    return source


class EdgeSource(DataSource):
    """`spark.read.format("skerry_edge").schema(…).option("spec", …)`."""

    @classmethod
    def name(cls) -> str:
        return "skerry_edge"

    def reader(self, schema: StructType) -> EdgeReader:
        return EdgeReader(decode_spec(self.options["spec"]))


class EdgeReader(DataSourceReader):
    def __init__(self, spec: SourceSpec) -> None:
        self.spec = spec

    def partitions(self) -> list[InputPartition]:
        return [InputPartition(number) for number in range(self.spec.edge.partitions)]

    def read(self, partition: InputPartition) -> Batches:
        return read_share(self.spec, partition.value)


def encode_spec(spec: SourceSpec) -> str:
    """A spec as the text of a data source's option."""
    return msgspec.msgpack.encode(spec).hex()


def decode_spec(text: str) -> SourceSpec:
    return msgspec.msgpack.decode(bytes.fromhex(text), type=SourceSpec)

"""Small decisions around a Spark job: how many tasks read an edge, how its rows become a spool."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence

import pyarrow as pa

from skerry.exchange.entries import Feed, ReadableSpool
from skerry.exchange.finishing import Finished
from skerry.exchange.input import END, Signal
from skerry.exchange.lanes import Lanes
from skerry.exchange.spool import Body, Entry, Spool
from skerry.member.inputs import Inflow
from skerry.model.fragment import Finish, Output
from skerry.model.limits import MIB, Limits
from skerry.model.results import Schema
from skerry.model.table import Column
from skerry.wire.codec import decode_schema, decoded_bytes, encode_batch

# What rows in a plan may be made of. Others take the way that is known to keep them as they are.
_PLAIN = frozenset(
    "boolean tinyint smallint int bigint float double string binary date timestamp timestamp_ntz".split()
)
# One task reads what is small: a task costs more than it saves below this.
_BYTES_WORTH_A_TASK = 8 * MIB


def partitions_for(arriving: Sequence[Inflow], cores: int) -> int:
    """Tasks that read an edge. What still arrives may become large: one per core."""
    if not all(each.spool.finished for each in arriving):
        return cores
    size = sum(each.received_bytes for each in arriving)
    return max(1, min(cores, size // _BYTES_WORTH_A_TASK + 1))


def is_plain(column: Column) -> bool:
    return column.type in _PLAIN or column.type.startswith("decimal(")


def small_bodies(arriving: Sequence[Inflow], columns: Sequence[Column], limits: Limits) -> tuple[Body, ...] | None:
    """All batches of an edge whose rows have arrived, if they are few and of types that every engine takes as rows."""
    if not all(each.spool.finished for each in arriving):
        return None
    if sum(each.received_bytes for each in arriving) > limits.small_edge_bytes:
        return None
    if not all(map(is_plain, columns)):
        return None
    entries = (each.spool.read(index) for each in arriving for index in range(each.spool.length))
    return tuple(entry.body for entry in entries if entry.rows)


def fill_from_table(spool: Spool, table: pa.Table, limits: Limits) -> tuple[int, int]:
    """Rows that came through Spark's driver, as batches of a spool; returns rows and bytes."""
    size = 0
    for whole in table.to_batches(max_chunksize=limits.batch_rows):
        for batch in _pieces(whole, min(limits.batch_bytes, limits.piece_bytes)):
            entry = Entry(encode_batch(batch), batch.num_rows, decoded_bytes(batch))
            size += entry.decoded_bytes
            spool.append(entry)
    spool.finish()
    return table.num_rows, size


def _pieces(batch: pa.RecordBatch, bytes_max: int) -> Iterator[pa.RecordBatch]:
    """The rows in batches of at most so many bytes, unless one row has more; none without rows."""
    if batch.num_rows > 1 and decoded_bytes(batch) > bytes_max:
        half = batch.num_rows // 2
        yield from _pieces(batch.slice(0, half), bytes_max)
        yield from _pieces(batch.slice(half), bytes_max)
    elif batch.num_rows:
        yield batch


async def merge_lanes(lanes: list[Spool], output: Output, schema: Schema, run: Spool, limits: Limits) -> ReadableSpool:
    """Lanes in their order, or merged into one sorted `run`; the loop is let go of between batches."""
    lanes = [lane for lane in lanes if lane.length]
    if output.order != "merge" or len(lanes) < 2:
        return Lanes(lanes)
    feeds = [Feed(lane, lambda _consumed: None) for lane in lanes]
    arrow = decode_schema(schema.arrow)
    merged = Finished(Finish(output.keys), feeds, arrow, limits, run.budget.change_state)
    try:
        while not isinstance(entry := merged.poll(), Signal):
            run.append(entry)
            await asyncio.sleep(0)
    finally:
        merged.close()
    assert entry is END, "lanes are complete before they are merged"
    run.finish()
    return run

"""The finishing operators of a member, wired in one place: gather or merge, then aggregate, offset and limit (D6)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa

from skerry.exchange.aggregate import Aggregate
from skerry.exchange.entries import EncodedInput, EntryInput, Feed, SpoolEntries
from skerry.exchange.gather import Gather
from skerry.exchange.input import Input, Signal
from skerry.exchange.limit import Limit
from skerry.exchange.merge import Merge
from skerry.exchange.reader import SpoolInput
from skerry.exchange.spool import Body, Entry
from skerry.model.fragment import Finish
from skerry.model.limits import Limits
from skerry.model.results import Schema
from skerry.wire.codec import decode_batch, decode_schema, decoded_bytes, encode_batch, encode_schema


def finished_schema(finish: Finish, schema: Schema) -> Schema:
    """The columns that come out: of partial aggregates those that the steps make."""
    if not finish.aggregate:
        return schema
    shown, arriving = [step.index for step in finish.aggregate], decode_schema(schema.arrow)
    arrow = pa.schema([arriving.field(index) for index in shown])
    return Schema(tuple(schema.columns[index] for index in shown), encode_schema(arrow))


class Finished:
    """Rows of several spools, each let go of once taken, as `finish` says.

    `count_state` is told what a merge or an aggregate holds meanwhile, until `close`.
    """

    def __init__(
        self,
        finish: Finish,
        feeds: Sequence[Feed],
        schema: pa.Schema,
        limits: Limits,
        count_state: Callable[[int], None],
    ) -> None:
        self._holding: list[Merge | Aggregate] = []
        self._entries = self._wire(finish, feeds, schema, limits, count_state)

    def poll(self) -> Entry | Signal:
        return self._entries.poll()

    def close(self) -> None:
        """No more rows are asked for."""
        for each in self._holding:
            each.close()

    def _wire(
        self,
        finish: Finish,
        feeds: Sequence[Feed],
        schema: pa.Schema,
        limits: Limits,
        count_state: Callable[[int], None],
    ) -> EntryInput:
        if not (finish.keys or finish.offset or finish.aggregate) and finish.limit is None:
            return SpoolEntries(feeds)  # nothing to do with the rows: they pass as they are

        def decode(body: Body, schema: pa.Schema) -> pa.RecordBatch:
            return decode_batch(body, schema, limits.frame_bytes * 4)

        inputs: list[Input] = [
            SpoolInput(feed.spool, schema, decode, release=True, on_consumed=feed.on_consumed) for feed in feeds
        ]
        rows: Input
        if finish.keys:
            size_bytes = min(limits.batch_bytes, limits.piece_bytes)
            rows = merge = Merge(inputs, finish.keys, schema, limits.batch_rows, size_bytes, count_state)
            self._holding.append(merge)
        else:
            rows = Gather(inputs)
        if finish.aggregate:
            rows = aggregate = Aggregate(rows, finish.keys, finish.aggregate, schema, count_state)
            self._holding.append(aggregate)
        if finish.offset or finish.limit is not None:
            rows = Limit(rows, finish.offset, finish.limit)
        return EncodedInput(rows, encode_batch, decoded_bytes)

"""The result edge at the initiator: gather or merge what the sites send, cut it into pages."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from skerry.exchange.aggregate import Aggregate
from skerry.exchange.entries import EncodedInput, EntryInput, Feed, ReadableSpool, SpoolEntries
from skerry.exchange.gather import Gather
from skerry.exchange.input import WAIT, Input, Signal
from skerry.exchange.limit import Limit
from skerry.exchange.merge import Merge
from skerry.exchange.reader import SpoolInput
from skerry.exchange.spool import Body, Budget, Entry
from skerry.member.pages import Pages
from skerry.model.errors import SkerryError
from skerry.model.fragment import Finish
from skerry.model.limits import Limits
from skerry.wire.codec import decode_batch, decode_schema, decoded_bytes, encode_batch, encode_schema
from skerry.wire.messages import Schema


class Result:
    """Rows of one query, from one spool a sender. Rows can be taken once every sender and the schema are known."""

    def __init__(self, finish: Finish, limits: Limits, wakeup: Callable[[], None]) -> None:
        self._finish = finish
        self._limits = limits
        self._wakeup = wakeup
        self._feeds: dict[str, Feed] = {}
        self._entries: EntryInput | None = None
        self._error: SkerryError | None = None
        self._arriving: pa.Schema | None = None
        self._holding: list[Merge | Aggregate] = []
        self._budget: Budget | None = None
        self.schema: Schema | None = None
        self.pages = Pages(self)

    def count_in(self, budget: Budget) -> None:
        """What pages and merges hold is the query's, as its spools are."""
        self._budget = budget
        self.pages.count_in(budget, self._limits)

    def close(self) -> None:
        """The query is over: nothing of this counts any more, and no more rows are made."""
        self.pages.close()
        for each in self._holding:
            each.close()
        self._budget = None

    def attach(self, sender: str, spool: ReadableSpool, on_consumed: Callable[[int], None]) -> None:
        """This sender's rows will be in this spool."""
        if sender not in self._feeds:
            self._feeds[sender] = Feed(spool, on_consumed)
            spool.subscribe(self._wakeup)
            self._wakeup()

    def schema_known(self, schema: Schema) -> None:
        """What the senders send; of partial aggregates the client sees the first columns only."""
        self._arriving = decode_schema(schema.arrow)
        if self._finish.aggregate:
            shown = [step.index for step in self._finish.aggregate]
            arrow = pa.schema([self._arriving.field(index) for index in shown])
            schema = Schema(tuple(schema.columns[index] for index in shown), encode_schema(arrow))
        self.schema = schema
        self._wakeup()

    def fail(self, error: SkerryError) -> None:
        """Whoever asks for rows gets this error from now on."""
        self._error = self._error or error
        self._wakeup()

    @property
    def error(self) -> SkerryError | None:
        return self._error

    def poll(self) -> Entry | Signal:
        if self._error is not None:
            raise self._error
        if self._entries is None:
            if self._arriving is None or set(self._feeds) != set(self._finish.senders):
                return WAIT
            self._entries = self._build(self._arriving)
        return self._entries.poll()

    def _count_state(self, change_bytes: int) -> None:
        if self._budget is not None:
            self._budget.change_state(change_bytes)

    def _build(self, schema: pa.Schema) -> EntryInput:
        finish = self._finish
        feeds = [self._feeds[sender] for sender in finish.senders]
        if not (finish.keys or finish.offset or finish.aggregate) and finish.limit is None:
            return SpoolEntries(feeds)  # nothing to do with the rows: they pass as they are

        def decode(body: Body, schema: pa.Schema) -> pa.RecordBatch:
            return decode_batch(body, schema, self._limits.frame_bytes * 4)

        inputs: list[Input] = [
            SpoolInput(feed.spool, schema, decode, release=True, on_consumed=feed.on_consumed) for feed in feeds
        ]
        rows: Input
        if finish.keys:
            limits = self._limits
            size_bytes = min(limits.batch_bytes, limits.piece_bytes)
            rows = merge = Merge(inputs, finish.keys, schema, limits.batch_rows, size_bytes, self._count_state)
            self._holding.append(merge)
        else:
            rows = Gather(inputs)
        if finish.aggregate:
            rows = aggregate = Aggregate(rows, finish.keys, finish.aggregate, schema, self._count_state)
            self._holding.append(aggregate)
        if finish.offset or finish.limit is not None:
            rows = Limit(rows, finish.offset, finish.limit)
        return EncodedInput(rows, encode_batch, decoded_bytes)

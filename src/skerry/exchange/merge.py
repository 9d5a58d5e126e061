"""Ordered merge of sorted inputs in Spark's order: stable, vectorised, one batch an input in memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

import pyarrow as pa

from skerry.exchange.input import END, WAIT, Input, Polled, Signal
from skerry.exchange.order import Keys, Order, RowKey
from skerry.model.errors import SiteError
from skerry.model.fragment import SortKey

_STEP_MAX = 1 << 31


class Merge:
    """Rows of all inputs in the order of `keys`; equal rows in the order of the inputs, then as they came.

    Holds about one batch an input, and a few batches of output: `count` is told by how many bytes that changes.
    An input that turns out not to be sorted is a SiteError: a wrong order is never passed on.
    """

    def __init__(
        self,
        inputs: Sequence[Input],
        keys: Sequence[SortKey],
        schema: pa.Schema,
        batch_rows: int,
        batch_bytes: int,
        count: Callable[[int], None] = lambda change_bytes: None,
    ) -> None:
        self._count = count
        self._counted_bytes = 0
        self._order = Order(schema, keys)
        self._lanes = [_Lane(number, source, self._order, schema) for number, source in enumerate(inputs)]
        self._schema = schema
        self._batch_rows = batch_rows
        self._batch_bytes = batch_bytes
        self._output = _Output(batch_rows, batch_bytes)
        # Rows a lane may give in one round: many lanes give little each, so that a round is no more than
        # a few batches. It follows what rounds really give, since runs may overlap or lie apart.
        self._step = max(1, 2 * batch_rows // max(1, len(inputs)))

    def poll(self) -> Polled:
        polled = self._poll()
        self._count_held(sum(lane.size_bytes for lane in self._lanes) + self._output.size_bytes)
        return polled

    def close(self) -> None:
        """Nobody will poll again: what is held goes with the merge."""
        self._count_held(0)

    def _count_held(self, held_bytes: int) -> None:
        change_bytes, self._counted_bytes = held_bytes - self._counted_bytes, held_bytes
        self._count(change_bytes)

    def _poll(self) -> Polled:
        waiting = False
        while not self._output.full and not waiting:
            # Every lane is asked, also after one that waits: all those who feed them go on meanwhile.
            states = [lane.fill(self._batch_rows, self._batch_bytes) for lane in self._lanes]
            self._lanes = [lane for lane, state in zip(self._lanes, states, strict=True) if state is not END]
            if not self._lanes:
                break
            waiting = WAIT in states
            if not waiting:
                self._merge_heads()
        if self._output.rows:
            return self._output.take()
        return WAIT if self._lanes else END

    def _merge_heads(self) -> None:
        """Move rows to the output that none of the others, and none still to come, can precede.

        Rows are ordered by (key, lane, place in the lane). Each lane with more behind the next `step` rows
        of its head probes with the last of these: what remains of it is not before (that key, lane). So the
        smallest such pair bounds what is safe: of the lanes up to that one the rows not after its key, of
        the lanes behind it the rows before its key. The probed rows of that lane go, so a round never
        comes out empty. If no lane has more, all that the heads hold is safe.
        """
        probes = [(lane.probe(self._step), lane.number) for lane in self._lanes if lane.has_more_than(self._step)]
        bound, bound_lane = min(probes) if probes else (None, 0)
        rows: list[pa.RecordBatch] = []
        keys: list[pa.RecordBatch] = []
        for lane in self._lanes:
            count = lane.count_upto(bound, inclusive=lane.number <= bound_lane)
            if count:
                lane_rows, lane_keys = lane.take(count)
                rows.append(lane_rows)
                keys.append(lane_keys)
        merged = rows[0] if len(rows) == 1 else pa.concat_batches(rows).take(self._order.sort_indices(keys))
        self._adapt_step(max(merged.num_rows / self._batch_rows, merged.nbytes / self._batch_bytes))
        self._output.put(_conform(merged, self._schema))

    def _adapt_step(self, batches: float) -> None:
        if batches < 1:
            self._step = min(2 * self._step, _STEP_MAX)
        elif batches > 4:
            self._step = max(1, self._step // 2)


class _Lane:
    """One input and its head: the rows that were polled and have not left yet."""

    def __init__(self, number: int, source: Input, order: Order, schema: pa.Schema) -> None:
        self.number = number
        self._source = source
        self._order = order
        self._schema = _without_views(schema)
        self._rows: pa.RecordBatch | None = None
        self._keys: Keys | None = None
        self._start = 0
        self._last: RowKey | None = None
        self._ended = False
        self.size_bytes = 0  # of the head, whole until its last row has left

    def fill(self, batch_rows: int, batch_bytes: int) -> Signal | None:
        """Get a new head if there is none: None when there is one now."""
        if self._rows is not None:
            return None
        # Small batches are put together, as far as they are there: the work of a round is one a lane.
        parts: list[pa.RecordBatch] = []
        signal: Signal | None = None
        while batch_rows > 0 and batch_bytes > 0 and signal is None:
            polled = self._source.poll()
            if isinstance(polled, Signal):
                signal = polled
            elif polled.num_rows:
                batch_rows -= polled.num_rows
                batch_bytes -= polled.nbytes
                parts.append(_conform(polled, self._schema))
        self._ended = signal is END
        if not parts:
            return signal
        self._begin(parts[0] if len(parts) == 1 else pa.concat_batches(parts))
        return None

    def has_more_than(self, step: int) -> bool:
        """Whether rows follow, in the head or still to come, after the next `step`."""
        assert self._rows is not None
        return not self._ended or self._start + step < self._rows.num_rows

    def probe(self, step: int) -> RowKey:
        """The key of the last of the next `step` rows of the head."""
        assert self._rows is not None
        assert self._keys is not None
        return self._keys.row(min(self._start + step, self._rows.num_rows) - 1)

    def count_upto(self, bound: RowKey | None, inclusive: bool) -> int:
        """How many rows of the head are before the bound (None: all)."""
        assert self._rows is not None
        assert self._keys is not None
        end = self._rows.num_rows if bound is None else self._keys.upto(bound, self._start, inclusive)
        return int(end - self._start)

    def take(self, count: int) -> tuple[pa.RecordBatch, pa.RecordBatch]:
        """The next rows of the head, and their keys."""
        assert self._rows is not None
        assert self._keys is not None
        taken = self._rows.slice(self._start, count), self._keys.columns.slice(self._start, count)
        self._start += count
        if self._start == self._rows.num_rows:
            self._rows = self._keys = None
            self.size_bytes = 0
        return taken

    def _begin(self, rows: pa.RecordBatch) -> None:
        keys = self._order.keys_of(rows)
        first, last = keys.row(0), keys.row(rows.num_rows - 1)
        # Looks at the ends of heads only, which is nearly free.
        if last < first or (self._last is not None and first < self._last):
            raise SiteError(f"lane {self.number} is not sorted: its rows cannot be merged in order")
        self._rows, self._keys, self._start, self._last = rows, keys, 0, last
        self.size_bytes = rows.nbytes + keys.columns.nbytes


class _Output:
    """Merged rows, cut or put together to batches of a good size."""

    def __init__(self, batch_rows: int, batch_bytes: int) -> None:
        self._batch_rows = batch_rows
        self._batch_bytes = batch_bytes
        self._pieces: deque[pa.RecordBatch] = deque()
        self.rows = 0
        self.size_bytes = 0

    @property
    def full(self) -> bool:
        return self.rows >= self._batch_rows or self.size_bytes >= self._batch_bytes

    def put(self, batch: pa.RecordBatch) -> None:
        self._pieces.append(batch)
        self.rows += batch.num_rows
        self.size_bytes += batch.nbytes

    def take(self) -> pa.RecordBatch:
        """At most `batch_rows` rows and, unless one row has more, `batch_bytes`; half of it is enough."""
        parts: list[pa.RecordBatch] = []
        rows, size_bytes = self._batch_rows, self._batch_bytes
        while self._pieces and rows > 0 and size_bytes > self._batch_bytes // 2:
            part = first_part(self._pieces[0], rows, size_bytes)
            rows -= part.num_rows
            size_bytes -= part.nbytes
            parts.append(part)
            rest = self._pieces.popleft().slice(part.num_rows)
            if rest.num_rows:
                self._pieces.appendleft(rest)
        batch = parts[0] if len(parts) == 1 else pa.concat_batches(parts)
        self.rows -= batch.num_rows
        self.size_bytes = sum(piece.nbytes for piece in self._pieces)
        return batch


def first_part(piece: pa.RecordBatch, rows: int, size_bytes: int) -> pa.RecordBatch:
    """The first rows, at most so many and, unless one row has more, so many bytes."""
    fair = piece.num_rows * size_bytes // max(1, piece.nbytes)
    part = piece.slice(0, max(1, min(rows, fair)))
    # Rows differ in size: halve until the bytes are really within bounds.
    while part.nbytes > size_bytes and part.num_rows > 1:
        part = part.slice(0, max(1, part.num_rows // 2))
    return part


def _conform(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    if batch.schema.equals(schema, check_metadata=True):
        return batch
    columns = [
        column if column.type == field.type else column.cast(field.type)
        for column, field in zip(batch.columns, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _without_views(schema: pa.Schema) -> pa.Schema:
    """Arrow cannot take rows of view types (string_view): they are plain strings while they are merged."""
    return pa.schema([field.with_type(_without_view(field.type)) for field in schema], schema.metadata)


def _without_view(type: pa.DataType) -> pa.DataType:
    types = pa.types
    if types.is_string_view(type):
        return pa.string()
    if types.is_binary_view(type):
        return pa.binary()
    if types.is_list(type):
        return pa.list_(type.value_field.with_type(_without_view(type.value_type)))
    if types.is_map(type):
        item = type.item_field.with_type(_without_view(type.item_type))
        return pa.map_(type.key_field.with_type(_without_view(type.key_type)), item)
    if types.is_struct(type):
        return pa.struct([field.with_type(_without_view(field.type)) for field in type])
    return type

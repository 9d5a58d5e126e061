"""The merge of partial aggregates: rows of all sites, sorted by their group, one row a group out.

Because its input is sorted, it holds a batch and one group, however many groups there are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skerry.exchange.input import Input, Polled, Signal
from skerry.exchange.kernels import Starts, merged
from skerry.exchange.order import Order
from skerry.model.fragment import MergeStep, SortKey


class Aggregate:
    """Rows that are equal in `keys` become one, made by `steps`: one step a column of the result.

    `source` is sorted by `keys`; without keys all its rows are one group. No rows are no group.
    `count_state` is told how the bytes change that the open group holds.
    """

    def __init__(
        self,
        source: Input,
        keys: Sequence[SortKey],
        steps: Sequence[MergeStep],
        schema: pa.Schema,
        count_state: Callable[[int], None] | None = None,
    ) -> None:
        self._source = source
        self._steps = tuple(steps)
        self._order = Order(schema, keys) if keys else None
        # Rows of the group that may go on; a site sends each group once, so they are few.
        self._open: list[pa.RecordBatch] = []
        self._held_bytes = 0
        self._count_state = count_state
        self._names = [schema.names[step.index] for step in steps]
        self._types = [schema.types[step.index] for step in steps]

    def poll(self) -> Polled:
        polled = self._next()
        self._count_held(sum(batch.get_total_buffer_size() for batch in self._open))
        return polled

    def close(self) -> None:
        """No more rows are asked for."""
        self._open = []
        self._count_held(0)

    def _count_held(self, held_bytes: int) -> None:
        change_bytes, self._held_bytes = held_bytes - self._held_bytes, held_bytes
        if self._count_state is not None and change_bytes:
            self._count_state(change_bytes)

    def _next(self) -> Polled:
        while True:
            batch = self._source.poll()
            if isinstance(batch, Signal):
                if batch is Signal.END and self._open:
                    rows, self._open = self._together(), []
                    return self._merged(rows, self._starts(rows))
                return batch
            if batch.num_rows == 0:
                continue
            self._open.append(batch)
            if self._order is None:
                continue
            rows = self._together()
            starts = self._starts(rows)
            last = int(starts[-1])
            self._open = [rows.slice(last)]
            if last:
                return self._merged(rows.slice(0, last), starts[:-1])

    def _together(self) -> pa.RecordBatch:
        return self._open[0] if len(self._open) == 1 else pa.concat_batches(self._open)

    def _starts(self, rows: pa.RecordBatch) -> Starts:
        """Where each group begins. Keys are compared as Spark groups them: one NaN, one zero, NULL equals NULL."""
        begins = np.zeros(rows.num_rows, np.bool_)
        begins[0] = True
        if self._order is not None:
            for column in self._order.keys_of(rows).columns.columns:
                begins[1:] |= _differs(column)
        return np.flatnonzero(begins)

    def _merged(self, rows: pa.RecordBatch, starts: Starts) -> pa.RecordBatch:
        columns = [
            merged(step.kind, [rows.column(place) for place in step.inputs or (step.index,)], starts, type)
            for step, type in zip(self._steps, self._types, strict=True)
        ]
        fields = [pa.field(name, type) for name, type in zip(self._names, self._types, strict=True)]
        return pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields))


def _differs(column: pa.Array) -> np.ndarray:
    """Which rows differ from the one before them; key columns have no NULLs."""
    if pa.types.is_large_binary(column.type):
        found: np.ndarray = pc.not_equal(column.slice(1), column.slice(0, len(column) - 1)).to_numpy(
            zero_copy_only=False
        )
        return found
    values = column.to_numpy(zero_copy_only=False)
    return np.asarray(values[1:] != values[:-1])

"""Rows of equal keys become one: found by their hash, decided by their keys, merged by the exact kernels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from skerry.exchange.groupby.rows import PartialRows
from skerry.exchange.kernels import Starts, centre, merged
from skerry.exchange.order import Order
from skerry.model.errors import SqlError
from skerry.model.fragment import MergeStep, SortKey

Indices: TypeAlias = npt.NDArray[np.int64]

_ALONE = frozenset(("any", "sum", "min", "max", "bit_and", "bit_or", "bit_xor"))


def _joined(column: pa.Array, alone: Indices, found: pa.Array) -> pa.Array:
    """The values at `alone`, then those that were found."""
    is_plain = pa.types.is_integer(column.type) or pa.types.is_floating(column.type)
    if not is_plain or column.null_count or found.null_count:
        return pa.concat_arrays([column.take(pa.array(alone)), found])
    values = column.to_numpy()
    made = np.empty(len(alone) + len(found), values.dtype)
    np.take(values, alone, out=made[: len(alone)], mode="clip")  # otherwise it makes a copy first
    made[len(alone) :] = found.to_numpy()
    return pa.array(made, column.type)


class Folded(NamedTuple):
    """`is_whole`: every group is one row."""

    rows: pa.RecordBatch
    is_whole: bool


class Folding:
    """How rows of one group-by are folded; it holds none of them."""

    def __init__(self, rows: PartialRows) -> None:
        self.rows = rows
        self._order = Order(rows.kept, rows.keys)
        self._orders = [Order(pa.schema([rows.kept.field(key.index)]), [SortKey(0, False, True)]) for key in rows.keys]

    def folded(self, rows: pa.RecordBatch, *, is_last: bool = False) -> Folded:
        """One row a group, still partial, in any order.

        A group whose sum overflows stays as several rows: with others that are still to come it may fit, as it would
        if all came at once. `is_last`: no others come, so it is an error.
        """
        indices, starts = self._groups(rows)
        sizes = np.diff(np.append(starts, len(indices)))
        several = sizes > 1
        if not several.any():
            return Folded(rows, True)
        alone = indices[starts[~several]]
        together = indices[np.repeat(several, sizes)]
        begins = np.zeros(int(several.sum()), np.int64)
        np.cumsum(sizes[several][:-1], out=begins[1:])
        try:
            return Folded(self._whole(rows, alone, together, begins), True)
        except SqlError:
            if is_last:
                raise
        parts = self._split(rows.take(pa.array(together)), begins)
        made = pa.concat_batches([rows.take(pa.array(alone)), *parts])
        return Folded(made, made.num_rows == len(starts))

    def _whole(self, rows: pa.RecordBatch, alone: Indices, together: Indices, begins: Starts) -> pa.RecordBatch:
        """The rows at `alone` as they are, then one for each group of those at `together`; none is copied twice."""
        firsts = pa.array(np.concatenate([alone, together[begins]]))
        places = pa.array(together)
        sorted_columns: dict[int, pa.Array] = {}
        columns: list[pa.Array] = []
        for step, type in zip(self.rows.merges, self.rows.kept.types, strict=True):
            if step.kind == "any":
                columns.append(rows.column(step.index).take(firsts))
                continue
            for place in step.inputs:
                if place not in sorted_columns:
                    sorted_columns[place] = rows.column(place).take(places)
            found = self._column(step, [sorted_columns[place] for place in step.inputs], begins, type)
            columns.append(_joined(rows.column(step.index), alone, found))
        return pa.RecordBatch.from_arrays(columns, schema=self.rows.kept)

    def finished(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """The columns of the result, of rows that are one a group."""
        starts = np.arange(rows.num_rows)
        columns = [
            self._result(step, [rows.column(place) for place in step.inputs], starts, type)
            for step, type in zip(self.rows.steps, self.rows.result.types, strict=True)
        ]
        return pa.RecordBatch.from_arrays(columns, schema=self.rows.result)

    def _result(self, step: MergeStep, columns: Sequence[pa.Array], starts: Starts, type: pa.DataType) -> pa.Array:
        if step.kind in _ALONE:
            return columns[0] if columns[0].type == type else columns[0].cast(type)
        return merged(step.kind, columns, starts, type)

    def _split(self, rows: pa.RecordBatch, starts: Starts) -> list[pa.RecordBatch]:
        """`rows` are sorted by group. Groups that overflow are searched for by halves, and stay as they are."""
        try:
            return [self._whole(rows, starts[:0], np.arange(rows.num_rows), starts)]
        except SqlError:
            if len(starts) == 1:
                return [rows]
        middle = len(starts) // 2
        cut = int(starts[middle])
        halves = (rows.slice(0, cut), starts[:middle]), (rows.slice(cut), starts[middle:] - cut)
        return [each for half, begins in halves for each in self._split(half, begins)]

    @staticmethod
    def _column(step: MergeStep, columns: Sequence[pa.Array], starts: Starts, type: pa.DataType) -> pa.Array:
        if step.kind == "centre":
            return centre(columns, starts, type)
        return merged("var_pop" if step.kind == "spread" else step.kind, columns, starts, type)

    def _groups(self, rows: pa.RecordBatch) -> tuple[Indices, Starts]:
        """The rows in an order in which groups are together, and where each begins.

        As many bits of the hash as there is room for, and the number of the row, are one number: numpy sorts these
        several times as fast as it sorts places. The highest eight are left out: rows of a bucket have the same.
        """
        size = rows.num_rows
        places = np.uint64((1 << max(1, (size - 1).bit_length())) - 1)
        packed = ((self.rows.hashes(rows) << np.uint64(8)) & ~places) | np.arange(size, dtype=np.uint64)
        packed.sort()
        indices = (packed & places).view(np.int64)
        is_like = (packed[1:] ^ packed[:-1]) <= places
        likes = np.flatnonzero(is_like)
        # A hash decides nothing: rows are of one group if their keys are equal.
        if len(likes) and self._differ(rows, indices[likes], indices[likes + 1]):
            return self._groups_by_keys(rows)
        return indices, np.flatnonzero(np.concatenate(([True], ~is_like)))

    def _differ(self, rows: pa.RecordBatch, left: Indices, right: Indices) -> bool:
        """Whether the keys of any two rows do. They are compared as Spark groups: one NaN, one zero, NULL is NULL."""
        return any(self._column_differs(rows, place, left, right) for place in range(len(self.rows.keys)))

    def _column_differs(self, rows: pa.RecordBatch, place: int, left: Indices, right: Indices) -> bool:
        column = rows.column(place)
        if pa.types.is_integer(column.type) and not column.null_count:
            values = column.to_numpy()
            return bool((values[left] != values[right]).any())
        key = rows.select([place])
        sides = [self._orders[place].keys_of(key.take(pa.array(places))).columns for places in (left, right)]
        return not sides[0].equals(sides[1])

    def _groups_by_keys(self, rows: pa.RecordBatch) -> tuple[Indices, Starts]:
        """Where other keys have the same hash: rows are sorted by their keys, which takes longer."""
        keys = self._order.keys_of(rows).columns
        indices = self._order.sort_indices([keys])
        begins = np.zeros(rows.num_rows, np.bool_)
        begins[0] = True
        for column in keys.take(indices).columns:
            begins[1:] |= pc.not_equal(column.slice(1), column.slice(0, len(column) - 1)).to_numpy(zero_copy_only=False)
        return indices.to_numpy().astype(np.int64), np.flatnonzero(begins)

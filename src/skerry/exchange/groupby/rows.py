"""The partial rows of a group-by: keys, partial aggregates, a hash of the keys, and a weight.

The hash has 64 bits, taken without a sign; the sender makes it, and keys that Spark calls equal must have the same. The
weight is the number of sent rows that a row is made of, so that nothing is lost or doubled unseen.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from skerry.exchange import order
from skerry.model.errors import InternalError, PeerError
from skerry.model.fragment import MERGED_FROM, MergeStep, SortKey

_MOMENTS = ("count", "centre", "spread")
# How the columns that an aggregate is made from are merged while more rows may come; others are merged as themselves.
_PARTS = {
    **dict.fromkeys(("avg", "mean"), ("sum", "count")),
    **dict.fromkeys(("var_pop", "var_samp", "stddev_pop", "stddev_samp"), _MOMENTS),
}


def _is_ordered(type: pa.DataType) -> bool:
    # Rows that travelled have no views, and Arrow cannot take rows of them.
    return order.supports(type) and not (pa.types.is_string_view(type) or pa.types.is_binary_view(type))


def _is_summed(type: pa.DataType) -> bool:
    return bool(pa.types.is_int64(type) or pa.types.is_float64(type) or pa.types.is_decimal128(type))


# The types that each kind has a proven kernel for.
_PROVEN: dict[str, Callable[[pa.DataType], bool]] = {
    **dict.fromkeys(("any", "min", "max"), _is_ordered),
    "sum": _is_summed,
    "count": pa.types.is_int64,
    **dict.fromkeys(("bit_and", "bit_or", "bit_xor"), pa.types.is_signed_integer),
    **dict.fromkeys(("centre", "spread"), pa.types.is_float64),
}


def total(weights: pa.Array) -> int:
    # Halves apart: a peer's weights may be anything.
    numbers = weights.to_numpy()
    return (int((numbers >> 32).sum()) << 32) + int((numbers & 0xFFFFFFFF).sum())


class PartialRows:
    """Rows of `schema`, grouped by the columns `keys`, from which `steps` make a column each of the result.

    `hash` (int64 or uint64) and `weight` (int64) are places of columns too. A key or an aggregate whose type has no
    proven kernel is refused here. What no step is made from is not kept, and handed on as NULL.
    """

    def __init__(
        self, schema: pa.Schema, keys: Sequence[int], steps: Sequence[MergeStep], hash: int, weight: int
    ) -> None:
        is_hash = pa.types.is_int64(schema.types[hash]) or pa.types.is_uint64(schema.types[hash])
        if not (keys and is_hash and pa.types.is_int64(schema.types[weight])):
            raise InternalError("a group-by of partial rows needs keys, a hash of 64 bits and a weight of type int64")
        self.schema = schema
        self._kinds: dict[int, str] = {}
        self._moments: dict[int, tuple[int, ...]] = {}
        for key in keys:
            self._keep(key, "any")
        for step in steps:
            self._keep_inputs(step)
        self._kinds[hash] = "any"
        self._keep(weight, "sum")
        self._places = {index: place for place, index in enumerate(self._kinds)}
        self.kept = pa.schema([schema.field(index) for index in self._kinds])
        # One a column that is kept: how rows of a group become one that is still partial.
        self.merges = tuple(self._placed(MergeStep(at, kind, self._inputs(at))) for at, kind in self._kinds.items())
        # One a column of the result.
        self.steps = tuple(
            self._placed(MergeStep(each.index, each.kind, each.inputs or (each.index,))) for each in steps
        )
        self.result = pa.schema([pa.field(schema.names[step.index], schema.types[step.index]) for step in steps])
        self._keys = tuple(dict.fromkeys(keys))
        self.keys = self.sort_keys(())
        self.hash, self.weight = self._places[hash], self._places[weight]

    def own(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The columns that are kept, of rows that came; PeerError if no state can be made of them."""
        if batch.schema.types != self.schema.types:
            raise PeerError(f"partial rows have the columns {batch.schema.types}, not {self.schema.types}")
        rows = pa.RecordBatch.from_arrays([batch.column(index) for index in self._kinds], schema=self.kept)
        hashes, weights = rows.column(self.hash), rows.column(self.weight)
        if hashes.null_count or weights.null_count or (rows.num_rows and pc.min(weights).as_py() < 1):
            raise PeerError("a partial row has no hash, or no weight of 1 or more")
        return rows

    def given(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Rows of the state as they would come in."""
        columns = [
            rows.column(self._places[index]) if index in self._places else pa.nulls(rows.num_rows, type)
            for index, type in enumerate(self.schema.types)
        ]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def hashes(self, rows: pa.RecordBatch) -> npt.NDArray[np.uint64]:
        found: npt.NDArray[np.uint64] = rows.column(self.hash).to_numpy().view(np.uint64)
        return found

    def weight_of(self, rows: pa.RecordBatch) -> int:
        return total(rows.column(self.weight))

    def sort_keys(self, order: Sequence[SortKey]) -> tuple[SortKey, ...]:
        """Of the kept columns: those of `order`, which are keys in the rows that come, then all other keys."""
        asked = {key.index for key in order}
        if not asked <= set(self._keys):
            raise InternalError(f"groups are sorted by their keys {self._keys}, not by {sorted(asked)}")
        rest = (SortKey(index, False, True) for index in self._keys if index not in asked)
        return tuple(SortKey(self._places[key.index], key.descending, key.nulls_first) for key in (*order, *rest))

    def _keep(self, index: int, kind: str) -> None:
        if self._kinds.setdefault(index, kind) != kind:
            raise InternalError(f"column {index} is merged both as {self._kinds[index]} and as {kind}")
        type = self.schema.types[index]
        if not _PROVEN[kind](type):
            name = self.schema.names[index]
            raise InternalError(f"column {name} of type {type}: no proven kernel merges it as {kind}; Spark has to")

    def _keep_inputs(self, step: MergeStep) -> None:
        inputs = step.inputs or (step.index,)
        if MERGED_FROM.get(step.kind) != len(inputs):
            raise InternalError(f"{step.kind} is not made from {len(inputs)} columns")
        parts = _PARTS.get(step.kind, (step.kind,))
        for index, kind in zip(inputs, parts, strict=True):
            self._keep(index, kind)
            if parts is _MOMENTS and self._moments.setdefault(index, inputs) != inputs and kind != "count":
                raise InternalError(f"column {index} belongs to two variances")
        if step.kind == "avg" and not self._is_decimal(inputs[0], step.index):
            raise InternalError("avg merges sums of decimals")
        if parts is _MOMENTS or step.kind == "mean":
            others = (step.index,) if parts is _MOMENTS else (step.index, inputs[0])
            if not all(pa.types.is_float64(self.schema.types[index]) for index in others):
                raise InternalError(f"{step.kind} merges doubles")

    def _is_decimal(self, *indices: int) -> bool:
        return all(pa.types.is_decimal128(self.schema.types[index]) for index in indices)

    def _inputs(self, index: int) -> tuple[int, ...]:
        match self._kinds[index]:
            case "centre":
                return self._moments[index][:2]
            case "spread":
                return self._moments[index]
            case _:
                return (index,)

    def _placed(self, step: MergeStep) -> MergeStep:
        """Of the kept columns; the index of a result that is made from others stays that of the rows that come."""
        inputs = tuple(self._places[index] for index in step.inputs)
        return MergeStep(self._places.get(step.index, step.index), step.kind, inputs)

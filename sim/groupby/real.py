"""The state that members have, in the place of the simulation's own: its rows are Arrow's, its answer is the same."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from sim.groupby.rows import GROUP_BYTES, Group, SimRows, hash_of
from skerry.exchange.groupby.arrow import GroupRows, GroupState
from skerry.exchange.groupby.rows import PartialRows
from skerry.exchange.groupby.spill import Spill
from skerry.exchange.input import Input
from skerry.exchange.spool import Body, Budget
from skerry.model.fragment import MergeStep
from skerry.model.limits import GIB, GroupByLimits, Limits
from skerry.wire.codec import decode_batch, encode_batch

_SCHEMA = pa.schema([(name, pa.int64()) for name in ("key", "sum", "least", "greatest", "hash", "weight")])
_STEPS = (MergeStep(1, "sum"), MergeStep(2, "min"), MergeStep(3, "max"))
_LIMITS = Limits()


class RealState:
    """As `SimState`, but that a state in memory is never so large that it has to go to disk unasked."""

    def __init__(self, limits: GroupByLimits) -> None:
        self._budget = Budget(GIB, GIB)
        bounds = GroupByLimits(limits.split_groups, GIB, GIB)
        self._state = GroupState([0], _STEPS, _LIMITS, bounds, self._new_spill)
        self.is_spilled = False

    @property
    def groups(self) -> int:
        return self._state.groups

    @property
    def size_bytes(self) -> int:
        """By the measure of the simulation."""
        return 0 if self.is_spilled else self._state.groups * GROUP_BYTES

    @property
    def weight(self) -> int:
        return self._state.weight

    @property
    def held(self) -> dict[int, Group]:
        return {group.key: group for part in _read(self._state.drain(), is_narrow=True) for group in part.groups}

    def fold(self, rows: SimRows) -> None:
        if rows.groups:
            self._state.fold(GroupRows(_batch(rows.groups), is_sent=False))

    def middle(self) -> int | None:
        return self._state.middle()

    def take(self, first: int, upto: int) -> list[SimRows]:
        return _read(self._state.take(first, upto), is_narrow=False)

    def spill(self) -> None:
        self.is_spilled = True
        self._state.spill()

    def clear(self) -> None:
        self._state.clear()

    def _new_spill(self, rows: PartialRows) -> Spill:
        return Spill(rows, self._budget, tempfile.gettempdir(), "sim", encode_batch, _decode)


def _decode(body: Body, schema: pa.Schema) -> pa.RecordBatch:
    return decode_batch(body, schema, GIB)


def _batch(groups: Sequence[Group]) -> pa.RecordBatch:
    hashes = np.array([hash_of(each.key) for each in groups], np.uint64).view(np.int64)
    columns = [[getattr(each, name) for each in groups] for name in ("key", "sum", "least", "greatest")]
    return pa.RecordBatch.from_arrays(
        [*map(pa.array, columns), pa.array(hashes), pa.array([each.weight for each in groups])], schema=_SCHEMA
    )


def _read(source: Input, *, is_narrow: bool) -> list[SimRows]:
    """What is drained has no weights any more; every group is whole."""
    found: list[SimRows] = []
    while isinstance(batch := source.poll(), pa.RecordBatch):
        rows = batch.to_pydict()
        weights = [0] * batch.num_rows if is_narrow else rows["weight"]
        parts = zip(rows["key"], rows["sum"], rows["least"], rows["greatest"], weights, strict=True)
        found.append(SimRows([Group(*each) for each in parts]))
    return found

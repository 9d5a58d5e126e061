"""Arrow's rows and the state of them, as the cores of a group-by ask for them (contract.py). Pure.

Rows that were sent have a column each of the partial row, and the hash of the keys last. What is forwarded or handed
over has its weight behind that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from skerry.exchange.groupby.draining import Drain, Taken
from skerry.exchange.groupby.rows import PartialRows, total
from skerry.exchange.groupby.spill import Spill
from skerry.exchange.groupby.state import Halves, State
from skerry.exchange.input import END, Input, Polled, Signal
from skerry.exchange.merge import first_part
from skerry.model.errors import PeerError
from skerry.model.fragment import MergeStep
from skerry.model.limits import GroupByLimits, Limits
from skerry.model.ranges import PLACE_SHIFT

_WEIGHT = pa.field("weight", pa.int64())
# So much more of what may be groups is looked at again: to count them exactly is to fold all that waits.
_RECOUNT = 1.2
_PIECES = 8  # of the memory: more of one batch is not folded at once


class GroupRows:
    """A batch of partial rows. `is_sent`: as a sender made it, each of weight 1."""

    def __init__(self, batch: pa.RecordBatch, *, is_sent: bool) -> None:
        """PeerError for rows that no honest member sends."""
        least = 2 if is_sent else 3
        if batch.num_columns < least or batch.schema.types[1 - least] != pa.int64():
            raise PeerError(f"partial rows have the columns {batch.schema.types}, and no hash where it is due")
        if batch.column(1 - least).null_count:
            raise PeerError("a partial row has no hash")
        if not is_sent:
            weights = batch.column(-1)
            if weights.type != pa.int64() or weights.null_count or (len(weights) and pc.min(weights).as_py() < 1):
                raise PeerError("a partial row has no weight of 1 or more")
        self.batch = batch
        self.is_sent = is_sent

    @property
    def weight(self) -> int:
        return self.batch.num_rows if self.is_sent else total(self.batch.column(-1))

    @property
    def hashes(self) -> npt.NDArray[np.uint64]:
        found: npt.NDArray[np.uint64] = self.batch.column(-1 if self.is_sent else -2).to_numpy().view(np.uint64)
        return found

    def parts(self, bounds: Sequence[int]) -> list[GroupRows]:
        if len(bounds) == 2:
            return [self]
        inner = np.array(bounds[1:-1], np.uint64)
        numbers = np.searchsorted(inner, self.hashes >> np.uint64(PLACE_SHIFT), side="right")
        return [self._of(numbers == number) for number in range(len(bounds) - 1)]

    def weighed(self) -> pa.RecordBatch:
        """With a column of weights, as a state holds them."""
        if not self.is_sent:
            return self.batch
        ones = pa.array(np.ones(self.batch.num_rows, np.int64))
        return pa.RecordBatch.from_arrays([*self.batch.columns, ones], schema=self.batch.schema.append(_WEIGHT))

    def _of(self, is_in: npt.NDArray[np.bool_]) -> GroupRows:
        part = self.batch if is_in.all() else self.batch.filter(pa.array(is_in))
        return GroupRows(part, is_sent=self.is_sent)


class GroupState:
    """The state of a worker. It is made when its first rows come: they say of which types it is."""

    def __init__(
        self,
        keys: Sequence[int],
        steps: Sequence[MergeStep],
        limits: Limits,
        bounds: GroupByLimits,
        new_spill: Callable[[PartialRows], Spill],
        count_state: Callable[[int], None] | None = None,
    ) -> None:
        self._keys, self._steps = keys, steps
        self._limits = limits
        self._bounds = bounds
        self._new_spill = new_spill
        self._count_state = count_state
        self._rows: PartialRows | None = None
        self._state: State | None = None
        self._spill: Spill | None = None
        self._may_spill = False
        self._counted = (0, 0)  # groups at the last exact count, and the most that there could have been
        self._taken: list[Taken] = []

    @property
    def groups(self) -> int:
        """Exact, or a fifth too few: to count is to fold all rows that wait."""
        if self._state is None:
            return 0
        size = self._state.size()
        if size.is_exact or size.groups <= self._bounds.split_groups:
            return size.groups
        if size.groups > self._counted[1] * _RECOUNT:
            self._state.settle()
            counted = self._state.size().groups
            self._counted = counted, counted
        return self._counted[0]

    @property
    def size_bytes(self) -> int:
        return self._state.size().size_bytes if self._state is not None else 0

    @property
    def weight(self) -> int:
        return self._state.weight if self._state is not None else 0

    @property
    def schema(self) -> pa.Schema:
        """Of rows with weights, once there are any."""
        assert self._rows is not None
        return self._rows.schema

    @property
    def spilled_bytes(self) -> int:
        """Ever written to disk."""
        return self._spill.written_bytes if self._spill is not None else 0

    def fold(self, rows: GroupRows) -> None:
        batch = rows.weighed()
        if self._state is None:
            self._begin(batch.schema)
        assert self._state is not None
        most_bytes = self._bounds.memory_bytes // _PIECES
        while batch.num_rows:
            piece = first_part(batch, batch.num_rows, most_bytes)
            if self.size_bytes + piece.nbytes > self._bounds.memory_bytes:
                self.spill()  # before its worker can say so: one batch may be as large as all that it may have
            self._state.fold(piece)
            batch = batch.slice(piece.num_rows)

    def middle(self) -> int | None:
        found = self._state.split() if self._state is not None else None
        return found.point if isinstance(found, Halves) else None

    def take(self, first: int, upto: int) -> Input:
        """Pieces of rows with weights."""
        if self._state is None:
            return _Nothing()
        taken = self._state.take(first, upto)
        self._counted = 0, 0
        self._taken.append(taken)
        return taken

    def spill(self) -> None:
        self._may_spill = True
        if self._state is not None and self._spill is None:
            assert self._rows is not None
            self._spill = self._new_spill(self._rows)
            self._state.spill(self._spill)

    def drain(self) -> Input:
        """All groups, one row each, without hash and weight. SqlError, at a poll, where a sum does not fit its type."""
        if self._state is None:
            return _Nothing()
        return _Narrowed(self._state.drain_partial())

    def clear(self) -> None:
        if self._state is not None:
            self._state.close()
        for each in self._taken:
            each.close()

    def _begin(self, schema: pa.Schema) -> None:
        last = len(schema) - 1
        self._rows = PartialRows(schema, self._keys, self._steps, last - 1, last)
        budget_bytes = self._bounds.memory_bytes
        sizes = self._limits.batch_rows, min(self._limits.batch_bytes, self._limits.piece_bytes)
        self._state = State(self._rows, budget_bytes, *sizes, self._count_state)
        if self._may_spill:
            self.spill()


class _Nothing:
    """No rows."""

    def poll(self) -> Polled:
        return END


class _Narrowed:
    """Partial rows as a sender's fragment gave them, but for the hash."""

    def __init__(self, drain: Drain) -> None:
        self._drain = drain

    def poll(self) -> Polled:
        polled = self._drain.poll()
        return polled if isinstance(polled, Signal) else polled.select(range(polled.num_columns - 2))

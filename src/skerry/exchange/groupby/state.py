"""The state of a group-by at one member: partial rows in hash buckets, within a budget of memory.

It grows until its owner takes a range of it away for another member, or says that it may go to disk.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skerry.exchange.groupby.buckets import PREFIXES, Buckets, covered
from skerry.exchange.groupby.draining import Counted, Drain, Groups, Sizes, SortedDrain, Taken
from skerry.exchange.groupby.folding import Folding
from skerry.exchange.groupby.rows import PartialRows
from skerry.exchange.groupby.spill import OnDisk, Spill
from skerry.model.errors import InternalError, Overloaded
from skerry.model.fragment import SortKey
from skerry.model.limits import (
    FOLD_BACK_SHARE,
    FOLD_FULL_SHARE,
    FOLD_INTAKE_SHARE,
    FOLD_OVER_SHARE,
    FOLD_PENDING_SHARE,
    FOLD_ROOMY_SHARE,
)


class Size(msgspec.Struct, frozen=True):
    """groups: at most so many; exactly, if `is_exact`. Bytes are those in memory, `spilled_bytes` those on disk."""

    groups: int
    is_exact: bool
    size_bytes: int
    spilled_bytes: int


class Halves(msgspec.Struct, frozen=True):
    """Hash prefixes below `point` have `below` groups, the others `above`: about as many."""

    point: int
    below: int
    above: int


class OneKey(msgspec.Struct, frozen=True):
    """The range cannot be split: all its groups (of one key, but for collisions; or none) have one hash prefix."""

    groups: int


class State:
    """Folds partial rows. `count_state` is told how the bytes change that it holds in memory."""

    def __init__(
        self,
        rows: PartialRows,
        budget_bytes: int,
        batch_rows: int,
        batch_bytes: int,
        count_state: Callable[[int], None] | None = None,
    ) -> None:
        self._rows = rows
        self._budget_bytes = budget_bytes
        self._sizes = Sizes(batch_rows, batch_bytes)
        self._count_state = count_state
        self._counted = Counted(count_state)
        self._folding = Folding(rows)
        self._buckets = Buckets(self._folding, int(budget_bytes * FOLD_INTAKE_SHARE))
        self._spill: Spill | None = None
        self._is_drained = False
        self.weight = 0  # of all that it holds

    @property
    def needs_room(self) -> bool:
        """Whether a part of it should go to another member soon, or to disk."""
        folded_bytes = self._buckets.size_bytes - self._buckets.pending_bytes
        return self._spill is None and folded_bytes > self._budget_bytes * FOLD_FULL_SHARE

    @property
    def peak_bytes(self) -> int:
        return self._counted.peak_bytes

    def fold(self, batch: pa.RecordBatch) -> None:
        """Overloaded, and nothing changed, if the batch finds no room: `take` a range, or `spill`, before that."""
        self._refuse_after_drain()
        rows = self._rows.own(batch)
        if not rows.num_rows:
            return
        self._make_room(rows.nbytes)
        self._buckets.add(rows)
        self.weight += self._rows.weight_of(rows)
        self._hold()

    def size(self) -> Size:
        spilled = self._spill
        groups = self._buckets.rows + (spilled.rows if spilled is not None else 0)
        is_exact = self._buckets.is_folded and not (spilled is not None and spilled.buckets)
        return Size(groups, is_exact, self._buckets.size_bytes, spilled.size_bytes if spilled is not None else 0)

    def settle(self) -> None:
        """Folds all that waits for it: the number of groups in memory is exact then."""
        self._buckets.fold()
        self._hold()

    def spill(self, spill: Spill) -> None:
        """Nobody is left to take a part of it: from now on whole buckets go to disk when memory is short."""
        self._refuse_after_drain()
        self._spill = spill
        if self._buckets.size_bytes > self._budget_bytes * FOLD_ROOMY_SHARE:
            self._buckets.fold()
            self._spill_buckets(spill)
            self._hold()

    def split(self, first: int = 0, upto: int = PREFIXES) -> Halves | OneKey:
        """Where a range of hash prefixes has as many groups on one side as on the other."""
        self.settle()
        parts = covered(first, upto)
        numbers = [number for number, _ in parts]
        counts = np.array(
            [
                self._rows_of(number) if is_whole else len(self._prefixes(number, first, upto))
                for number, is_whole in parts
            ]
        )
        before = np.cumsum(counts) - counts
        total = int(counts.sum())
        middle = int(np.searchsorted(before, total / 2, "right")) - 1
        # The bucket with the middle, and the nearest others with rows: a point between two buckets may be the only one.
        held = np.flatnonzero(counts)
        near = {middle, *held[held < middle][-1:].tolist(), *held[held > middle][:1].tolist()}
        found = np.concatenate([self._prefixes(numbers[place], first, upto) for place in near])
        values, sizes = np.unique(found, return_counts=True)
        if len(values) < 2:
            return OneKey(int(sizes.sum()))
        below = int(before[min(near)]) + np.cumsum(sizes) - sizes
        best = 1 + int(np.argmin(np.abs(below[1:] - total / 2)))
        return Halves(int(values[best]), int(below[best]), total - int(below[best]))

    def take(self, first: int, upto: int) -> Taken:
        """Removes the groups of a range of hash prefixes, and gives them as rows that another state can fold."""
        self._refuse_after_drain()
        self._buckets.deal()
        in_memory: list[pa.RecordBatch] = []
        on_disk: list[OnDisk] = []
        for number, is_whole in covered(first, upto):
            bucket, spilled = self._buckets.buckets[number], None
            rows = bucket.take_all() if is_whole else bucket.take_between(first, upto)
            if self._spill is not None:
                spilled = self._spill.take(number) if is_whole else self._spill.take_between(number, first, upto)
            in_memory += [rows] if rows is not None and rows.num_rows else []
            on_disk += [spilled] if spilled is not None else []
        self._buckets.count()
        self._hold()
        taken = Taken(self._rows, in_memory, on_disk, self._sizes, self._count_state)
        self.weight -= taken.weight
        return taken

    def drain(self, order: Sequence[SortKey] | None = None) -> Drain | SortedDrain:
        """The result, once: merged rows; in `order` (of keys, by their places in the rows that came) if there is one.

        SqlError, at a poll, where a sum does not fit its type.
        """
        groups = self._all_groups()
        if order is None:
            return Drain(self._folding.finished, groups, self._buckets, self._sizes, self._counted)
        keys, head_bytes = self._rows.sort_keys(order), int(self._budget_bytes * FOLD_INTAKE_SHARE)
        parts = self._folding, groups, self._buckets, self._spill
        return SortedDrain(*parts, keys, self._sizes, self._counted, head_bytes)

    def drain_partial(self) -> Drain:
        """The result, once, as rows that another state could fold: one a group. Raises as `drain`."""
        return Drain(self._rows.given, self._all_groups(), self._buckets, self._sizes, self._counted)

    def _all_groups(self) -> Groups:
        self._refuse_after_drain()
        self._is_drained = True
        return Groups(self._folding, self._buckets, self._spill, int(self._budget_bytes * FOLD_BACK_SHARE))

    def close(self) -> None:
        """Give back all that it holds, in memory and on disk; of what was taken, the part on disk."""
        self._is_drained = True
        self._buckets = Buckets(self._folding, 0)
        if self._spill is not None:
            self._spill.close()
        self._counted.hold(0)

    def _refuse_after_drain(self) -> None:
        if self._is_drained:
            raise InternalError("the state of a group-by is used after it was drained or closed")

    def _hold(self) -> None:
        self._counted.hold(self._buckets.size_bytes)

    def _make_room(self, size_bytes: int) -> None:
        """Folds what waits, if that is much; if it is not enough, buckets go to disk, if they may."""
        wanted_bytes = self._buckets.size_bytes + size_bytes
        is_much = self._buckets.pending_bytes >= self._budget_bytes * FOLD_PENDING_SHARE
        if wanted_bytes <= self._budget_bytes * (1 if is_much else FOLD_OVER_SHARE):
            return
        self._buckets.fold()
        if self._spill is not None and self._buckets.size_bytes + size_bytes > self._budget_bytes * FOLD_FULL_SHARE:
            self._spill_buckets(self._spill)
        self._hold()
        if self._buckets.size_bytes + size_bytes > self._budget_bytes * FOLD_OVER_SHARE:
            raise Overloaded(
                f"the state of a group-by holds {self._buckets.rows} groups in {self._buckets.size_bytes} bytes, "
                f"and {size_bytes} more have no room in its budget of {self._budget_bytes}",
                suggestion="raise limits.group_by_memory_bytes",
            )

    def _spill_buckets(self, spill: Spill) -> None:
        """Those first that have rows on disk already, so that as many others as can be stay whole in memory."""
        by_size = sorted(
            range(len(self._buckets.buckets)),
            key=lambda number: (number in spill.buckets, self._buckets.buckets[number].size_bytes),
        )
        while by_size and self._buckets.size_bytes > self._budget_bytes * FOLD_ROOMY_SHARE:
            number = by_size.pop()
            rows = self._buckets.buckets[number].take_all()
            if rows is not None:
                spill.put(number, rows)
            self._buckets.count()

    def _rows_of(self, number: int) -> int:
        on_disk = self._spill.buckets.get(number) if self._spill is not None else None
        return self._buckets.buckets[number].rows + (on_disk.rows if on_disk is not None else 0)

    def _prefixes(self, number: int, first: int, upto: int) -> npt.NDArray[np.uint64]:
        on_disk = self._spill.buckets.get(number) if self._spill is not None else None
        parts = [self._buckets.buckets[number].prefixes()]
        found = np.concatenate([*parts, *([on_disk.prefixes()] if on_disk is not None else [])])
        return found[(found >= np.uint64(first)) & (found < np.uint64(upto))]

"""Where the rows of a fragment's sink tasks go at their member."""

from __future__ import annotations

import os
from collections.abc import Callable

from skerry.exchange.intake import Attempt
from skerry.exchange.spool import Budget, Entry, Spool
from skerry.model.errors import SiteError
from skerry.model.limits import ENTRY_BYTES


class DirectStore:
    """All tasks append to one outgoing spool, as they come (policy direct, any order).

    `waits`: tasks wait while the spool is full (the result edge); else a full spool is an error (D7).
    """

    def __init__(self, spool: Spool, *, waits: bool) -> None:
        self.spool = spool
        self._waits = waits

    def open(self, attempt: Attempt) -> None: ...

    def has_room(self, size_bytes: int) -> bool:
        return not self._waits or self.spool.closed or _has_room(self.spool, size_bytes)

    def would_spill(self, size_bytes: int) -> bool:
        """Once something is on disk nobody waits: whoever reads is slow, and tasks shall end."""
        spool = self.spool
        if not self._waits or spool.closed or spool.budget.disk_used:
            return False
        return spool.has_room(size_bytes) and not spool.fits_memory(size_bytes)

    def subscribe_room(self, callback: Callable[[], None]) -> Callable[[], None]:
        return self.spool.budget.subscribe(callback)

    def append(self, attempt: Attempt, entry: Entry) -> None:
        self.spool.append(entry)

    def end(self, attempt: Attempt) -> None: ...

    def drop(self, attempt: Attempt) -> None: ...


class LaneStore:
    """A spool for each attempt: lanes that will be merged or put in order, or attempts that may lose (committed).

    No task waits here: lanes make room only when the job has ended, so a full spool is an error.
    """

    def __init__(self, budget: Budget, directory: str | os.PathLike[str], name: str) -> None:
        self.lanes: dict[Attempt, Spool] = {}
        self._budget = budget
        self._directory = directory
        self._name = name

    def open(self, attempt: Attempt) -> None:
        self.lanes[attempt] = Spool(self._budget, self._directory, f"{self._name} partition {attempt.partition}")

    def has_room(self, size_bytes: int) -> bool:
        return True

    def would_spill(self, size_bytes: int) -> bool:
        return False

    def subscribe_room(self, callback: Callable[[], None]) -> Callable[[], None]:
        return self._budget.subscribe(callback)

    def append(self, attempt: Attempt, entry: Entry) -> None:
        self._lane(attempt).append(entry)

    def end(self, attempt: Attempt) -> None:
        self._lane(attempt).finish()

    def _lane(self, attempt: Attempt) -> Spool:
        lane = self.lanes.get(attempt)
        if lane is None:
            # A speculative attempt may still deliver when the job has ended without it.
            raise SiteError(f"{self._name} partition {attempt.partition}: another attempt has won")
        return lane

    def drop(self, attempt: Attempt) -> None:
        """A lost attempt is dropped when its connection ends, and again with the losers when the job has ended."""
        lane = self.lanes.pop(attempt, None)
        if lane is not None:
            lane.close()

    def close(self) -> None:
        """Give everything back."""
        for lane in self.lanes.values():
            lane.close()


class NoStore:
    """For rows that are only counted: the intake's books suffice, also where tasks may run twice."""

    def open(self, attempt: Attempt) -> None: ...

    def has_room(self, size_bytes: int) -> bool:
        return True

    def would_spill(self, size_bytes: int) -> bool:
        return False

    def subscribe_room(self, callback: Callable[[], None]) -> Callable[[], None]:
        return lambda: None

    def append(self, attempt: Attempt, entry: Entry) -> None: ...

    def end(self, attempt: Attempt) -> None: ...

    def drop(self, attempt: Attempt) -> None: ...


RowStore = DirectStore | LaneStore | NoStore


def _has_room(spool: Spool, size_bytes: int) -> bool:
    """Also true for a batch that can never fit: waiting would not end, the append says what is wrong."""
    budget = spool.budget
    can_ever = size_bytes + ENTRY_BYTES <= max(budget.memory_bytes, budget.disk_bytes)
    return not can_ever or spool.has_room(size_bytes)

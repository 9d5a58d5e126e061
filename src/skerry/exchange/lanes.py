"""A fragment's lanes, each complete, as one spool: what a channel sends when lanes leave in their order."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate

from skerry.exchange.share import Callbacks
from skerry.exchange.spool import Entry, Spool
from skerry.model.errors import SkerryError


class Lanes:
    """Finished spools, one after another, read as one spool."""

    def __init__(self, spools: Sequence[Spool]) -> None:
        self._spools = tuple(spools)
        self._ends = list(accumulate(spool.length for spool in self._spools))
        self._released = 0
        self._changes = Callbacks()
        self._error: SkerryError | None = None

    @property
    def first(self) -> int:
        return self._released

    @property
    def length(self) -> int:
        return self._ends[-1] if self._ends else 0

    @property
    def finished(self) -> bool:
        return self._error is None

    @property
    def failed(self) -> SkerryError | None:
        return self._error

    def subscribe(self, callback: Callable[[], None]) -> Callable[[], None]:
        return self._changes.subscribe(callback)

    def read(self, index: int) -> Entry:
        at = bisect_right(self._ends, index)
        return self._spools[at].read(index - (self._ends[at] - self._spools[at].length))

    def release(self, upto: int) -> None:
        self._released = max(self._released, upto)
        for spool, end in zip(self._spools, self._ends, strict=True):
            begin = end - spool.length
            if upto > begin:
                spool.release(min(upto - begin, spool.length))

    def fail(self, error: SkerryError) -> None:
        self._error = self._error or error
        self._changes.notify()

    def close(self) -> None:
        for spool in self._spools:
            spool.close()
        self._changes.notify()

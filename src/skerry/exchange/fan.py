"""One spool for several readers: an entry is let go of when the slowest of them has it."""

from __future__ import annotations

from collections.abc import Callable

from skerry.exchange.entries import ReadableSpool
from skerry.exchange.spool import Entry
from skerry.model.errors import SkerryError


class Fan:
    """`readers` are as many spools with the rows of one: each is read and released as if it were the only one."""

    def __init__(self, spool: ReadableSpool, readers: int) -> None:
        self.spool = spool
        self.readers = tuple(FanReader(self) for _ in range(readers))
        self._is_dropping = False

    def let_go(self) -> None:
        """Of what all readers have; of everything, as it comes, when none of them wants more."""
        wanted = [reader.first for reader in self.readers if not reader.is_closed]
        self.spool.release(min(wanted, default=self.spool.length))
        if not wanted and not self._is_dropping:
            self._is_dropping = True
            self.spool.subscribe(self.let_go)


class FanReader:
    """One reader's view of the spool."""

    def __init__(self, fan: Fan) -> None:
        self._fan = fan
        self.first = 0
        self.is_closed = False

    @property
    def length(self) -> int:
        return self._fan.spool.length

    @property
    def finished(self) -> bool:
        return self._fan.spool.finished

    @property
    def failed(self) -> SkerryError | None:
        return self._fan.spool.failed

    def read(self, index: int) -> Entry:
        return self._fan.spool.read(index)

    def subscribe(self, callback: Callable[[], None]) -> Callable[[], None]:
        return self._fan.spool.subscribe(callback)

    def release(self, upto: int) -> None:
        """This reader has all entries below `upto`; the others may not."""
        if upto > self.first:
            self.first = upto
            self._fan.let_go()

    def fail(self, error: SkerryError) -> None:
        """The rows end here for all readers."""
        self._fan.spool.fail(error)

    def close(self) -> None:
        """This reader wants no more."""
        if not self.is_closed:
            self.is_closed = True
            self._fan.let_go()

"""How many source partitions may wait inside one Spark at once (D7)."""

from __future__ import annotations

import threading

from skerry.model.errors import InternalError


class Slots:
    """A counter that never blocks; shared by all members that use one Spark."""

    def __init__(self, count: int) -> None:
        self.count = count
        self._free = count
        self._lock = threading.Lock()

    @property
    def free(self) -> int:
        return self._free

    def try_take(self, count: int) -> bool:
        """Take all of `count` or none. More than there are can never be had: receive staged."""
        with self._lock:
            if count > self._free:
                return False
            self._free -= count
            return True

    def give_back(self, count: int) -> None:
        with self._lock:
            if self._free + count > self.count:
                raise InternalError(f"{count} source slots given back, but only {self.count - self._free} were taken")
            self._free += count

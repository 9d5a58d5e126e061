"""Virtual time: what is to happen when, in one order that a seed decides."""

from __future__ import annotations

import heapq
import itertools
import zlib
from collections.abc import Callable

from sim.loop import Violation

STEPS_MAX = 200_000


class Timeline:
    def __init__(self) -> None:
        self.now = 0.0
        self.steps = 0
        self.digest = 0
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = itertools.count()

    def after(self, delay_s: float, happen: Callable[[], None]) -> None:
        heapq.heappush(self._due, (self.now + delay_s, next(self._numbers), happen))

    def run(self, is_over: Callable[[], bool], until: float) -> bool:
        """False if time is up first."""
        while not is_over():
            if not self._due or self._due[0][0] > until:
                return False
            self.now, number, happen = heapq.heappop(self._due)
            self.steps += 1
            self.digest = zlib.crc32(f"{self.now:.6f} {number}".encode(), self.digest)
            if self.steps > STEPS_MAX:
                raise Violation(f"an endless loop: {self.steps} steps at {self.now:.3f} s")
            happen()
        return True

"""An input made of several inputs, without an order between their rows."""

from __future__ import annotations

from collections.abc import Sequence

from skerry.exchange.input import END, WAIT, Input, Polled, Signal


class Gather:
    """Batches of all inputs as they come, in fair turns."""

    def __init__(self, inputs: Sequence[Input]) -> None:
        self._inputs = list(inputs)
        self._next = 0

    def poll(self) -> Polled:
        remaining = len(self._inputs)
        while remaining:
            self._next %= len(self._inputs)
            polled = self._inputs[self._next].poll()
            if not isinstance(polled, Signal):
                self._next += 1
                return polled
            if polled is END:
                del self._inputs[self._next]
            else:
                self._next += 1
            remaining -= 1
        return WAIT if self._inputs else END

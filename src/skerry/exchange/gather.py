"""Inputs made of several inputs, without an order between rows: one by one, or one after another."""

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


class Concat:
    """All of the first input, then all of the second, and so on."""

    def __init__(self, inputs: Sequence[Input]) -> None:
        self._inputs = list(reversed(inputs))

    def poll(self) -> Polled:
        while self._inputs:
            polled = self._inputs[-1].poll()
            if polled is not END:
                return polled
            self._inputs.pop()
        return END

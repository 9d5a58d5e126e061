"""An input that gives fewer rows than it gets."""

from __future__ import annotations

from skerry.exchange.input import END, Input, Polled, Signal


class Limit:
    """Leaves out the first `offset` rows and ends after `limit` more (None: all)."""

    def __init__(self, source: Input, offset: int, limit: int | None) -> None:
        self._source = source
        self._to_skip = offset
        self._to_give = limit

    @property
    def satisfied(self) -> bool:
        """The limit is full: whoever feeds the input may stop."""
        return self._to_give == 0

    def poll(self) -> Polled:
        while not self.satisfied:
            batch = self._source.poll()
            if isinstance(batch, Signal):
                return batch
            skipped = min(self._to_skip, batch.num_rows)
            self._to_skip -= skipped
            taken = batch.slice(skipped, self._to_give)
            if taken.num_rows == 0:
                continue
            if self._to_give is not None:
                self._to_give -= taken.num_rows
            return taken
        return END

"""Which jobs run and which were cancelled, by tag. A cancelled tag never starts."""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager

from skerry.model.errors import Cancelled


class Tags:
    """Thread-safe. `remembered` bounds the cancelled tags that are kept."""

    def __init__(self, remembered: int) -> None:
        self._remembered = remembered
        self._lock = threading.Lock()
        self._running: Counter[str] = Counter()
        self._cancelled: OrderedDict[str, None] = OrderedDict()

    @contextmanager
    def running(self, tag: str) -> Iterator[None]:
        with self._lock:
            self._refuse(tag)
            self._running[tag] += 1
        try:
            yield
        finally:
            with self._lock:
                self._running[tag] -= 1
                if not self._running[tag]:
                    del self._running[tag]

    def cancel(self, tag: str) -> None:
        with self._lock:
            self._cancelled[tag] = None
            self._cancelled.move_to_end(tag)
            while len(self._cancelled) > self._remembered:
                self._cancelled.popitem(last=False)

    def refuse_cancelled(self, tag: str) -> None:
        """Raises Cancelled if so."""
        with self._lock:
            self._refuse(tag)

    def names(self) -> list[str]:
        """Tags of the jobs that run."""
        with self._lock:
            return sorted(self._running)

    def _refuse(self, tag: str) -> None:
        if tag in self._cancelled:
            raise Cancelled(f"{tag} was cancelled")

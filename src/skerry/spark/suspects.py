"""Statements that ran when an engine's process ended by itself: one of them may be why.

A suspect's next run waits until no other suspect runs, so that a second end has one suspect, which is then refused for
a while. Whoever only ran beside it is acquitted by its first run that ends otherwise.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager

from skerry.model.errors import SiteError
from skerry.model.limits import SUSPECT_ENDS, SUSPECT_REFUSED_S, SUSPECT_WAIT_S, SUSPECTS

_LOOK_S = 0.1


class Suspects:
    """Thread-safe. Statements are told apart by a key of their engine's choice."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._changed = threading.Condition()  # guards all below
        self._ends: dict[Hashable, tuple[int, float]] = {}  # by statement: how many, and when the last
        self._owner: Hashable = None  # whose turn it is; several jobs of one query share it
        self._holders = 0

    @contextmanager
    def turn(self, statement: Hashable, query: Hashable, check: Callable[[], None]) -> Iterator[None]:
        """A block in which the statement runs. Raises SiteError if it is refused; `check` may end the wait."""
        if not self._is_suspect(statement):
            yield
            return
        has_turn = self._take(query, check)
        try:
            yield
        finally:
            if has_turn:
                self._give_back()

    def ran_at_end(self, statement: Hashable, was_full: bool = False) -> None:
        """The engine's process ended while the statement ran.

        `was_full`: most of its memory was in use before. Such an end says nothing of the statement, for or against it;
        if the fault is its own, its next run ends a fresh process.
        """
        if was_full:
            return
        with self._changed:
            count, _ = self._ends.pop(statement, (0, 0.0))
            self._ends[statement] = (count + 1, time.monotonic())
            while len(self._ends) > SUSPECTS:
                del self._ends[next(iter(self._ends))]

    def acquit(self, statement: Hashable) -> None:
        with self._changed:
            self._ends.pop(statement, None)

    def _is_suspect(self, statement: Hashable) -> bool:
        with self._changed:
            count, last = self._ends.get(statement, (0, 0.0))
            if not count or time.monotonic() - last > SUSPECT_REFUSED_S:
                self._ends.pop(statement, None)
                return False
        if count >= SUSPECT_ENDS:
            raise SiteError(
                f"{self._name} ended {count} times while it ran this statement, which is refused for "
                f"{SUSPECT_REFUSED_S / 60:g} minutes",
                suggestion="ask for less at once, or give this member's engine more memory",
            )
        return True

    def _take(self, query: Hashable, check: Callable[[], None]) -> bool:
        """False after a long wait: who has the turn may be waiting for rows of this very query at another site."""
        give_up = time.monotonic() + SUSPECT_WAIT_S
        while True:
            check()
            with self._changed:
                if self._changed.wait_for(lambda: not self._holders or self._owner == query, _LOOK_S):
                    self._owner = query
                    self._holders += 1
                    return True
            if time.monotonic() > give_up:
                return False

    def _give_back(self) -> None:
        with self._changed:
            self._holders -= 1
            self._changed.notify_all()

"""What the spools of several queries may hold together: those of one user, or all at a member. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class Callbacks:
    """Who wants to know of a change; each is called in the order of subscription, in the same thread."""

    def __init__(self) -> None:
        self._callbacks: dict[int, Callable[[], None]] = {}
        self._next = 0

    def subscribe(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Return the function that ends the subscription; it may be called twice."""
        number = self._next
        self._next += 1
        self._callbacks[number] = callback

        def unsubscribe() -> None:
            self._callbacks.pop(number, None)

        return unsubscribe

    def notify(self) -> None:
        # A callback may end its own subscription or another's: look each one up again.
        for number in list(self._callbacks):
            callback = self._callbacks.get(number)
            if callback is not None:
                callback()


class Used(Protocol):
    """The budget of one query."""

    memory_used: int
    disk_used: int


class SpoolShare:
    """`whose`: for errors. `limits`: how skerry.yaml calls the bounds of memory and disk; 0 bounds nothing.

    It adds up what its queries hold whenever somebody asks: there are some hundreds at most, and nothing to go wrong.
    """

    def __init__(self, whose: str, memory_bytes: int, disk_bytes: int, limits: tuple[str, str]) -> None:
        self.memory_bytes = memory_bytes
        self.disk_bytes = disk_bytes
        self.room = Callbacks()
        self._whose = whose
        self._limits = limits
        self._of: dict[int, Used] = {}

    @property
    def queries(self) -> int:
        return len(self._of)

    def enter(self, budget: Used) -> None:
        self._of[id(budget)] = budget

    def leave(self, budget: Used) -> None:
        self._of.pop(id(budget), None)
        self.room.notify()

    def has_memory(self, size_bytes: int) -> bool:
        return not self.memory_bytes or self._memory_used() + size_bytes <= self.memory_bytes

    def has_disk(self, size_bytes: int) -> bool:
        return not self.disk_bytes or self._disk_used() + size_bytes <= self.disk_bytes

    def told(self) -> str:
        """For the error of whoever found no room."""
        memory, disk = self._limits
        return (
            f"the queries of {self._whose} hold {self._memory_used()} bytes of memory and {self._disk_used()} of disk "
            f"together (limits.{memory}, limits.{disk})"
        )

    def _memory_used(self) -> int:
        return sum(budget.memory_used for budget in self._of.values())

    def _disk_used(self) -> int:
        return sum(budget.disk_used for budget in self._of.values())

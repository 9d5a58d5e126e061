"""Which connections a listener has room for (docs/protocol.md, 2.2). Pure: visitors are whatever stands for them.

Nobody keeps others out by saying nothing: when all places before the login are taken, the oldest visitor of the address
that has most of them goes. Members that have proven themselves have places of their own.
"""

from __future__ import annotations

from collections import Counter
from typing import Generic, TypeVar

from skerry.model.errors import Overloaded
from skerry.model.limits import Limits

V = TypeVar("V")


class Admission(Generic[V]):
    """`address` is the visitor's host; "" for one that came over a Unix socket, whose host is this one."""

    def __init__(self, member: str, limits: Limits) -> None:
        self._member = member
        self._limits = limits
        self._address: dict[V, str] = {}
        self._waiting: dict[str, dict[V, None]] = {}  # by address, each in the order in which they came
        self._waiting_count = 0
        self._members: set[V] = set()
        self._others: set[V] = set()
        self._others_of: Counter[str] = Counter()

    def arrived(self, visitor: V, address: str) -> V | None:
        """Who has to go for the new one: a visitor that has not logged in."""
        self._address[visitor] = address
        self._waiting.setdefault(address, {})[visitor] = None
        self._waiting_count += 1
        if self._waiting_count <= self._limits.connections_before_login:
            return None
        # The first of those that have equally many: they stand in the order in which they came to have any.
        most = max(self._waiting.values(), key=len)
        gone = next(iter(most))
        self.left(gone)
        return gone

    def logged_in(self, visitor: V, *, is_member: bool) -> None:
        """Overloaded when there is no place for it."""
        address = self._address[visitor]
        self._wait_no_more(visitor, address)
        bound, taken = self._limits.connections, len(self._members if is_member else self._others)
        if taken >= bound:
            raise self._full(f"{taken} connections", "connections")
        if is_member:
            self._members.add(visitor)
            return
        bound, taken = self._limits.connections_per_address, self._others_of[address]
        if address and taken >= bound:
            raise self._full(f"{taken} connections from {address}", "connections_per_address")
        self._others.add(visitor)
        self._others_of[address] += 1

    def left(self, visitor: V) -> None:
        """It is gone, whatever it was."""
        address = self._address.pop(visitor, None)
        if address is None or self._wait_no_more(visitor, address):
            return
        self._members.discard(visitor)
        if visitor in self._others:
            self._others.discard(visitor)
            self._others_of[address] -= 1
            if not self._others_of[address]:
                del self._others_of[address]

    def _wait_no_more(self, visitor: V, address: str) -> bool:
        waiting = self._waiting.get(address, {})
        if visitor not in waiting:
            return False
        del waiting[visitor]
        self._waiting_count -= 1
        if not waiting:
            del self._waiting[address]
        return True

    def _full(self, what: str, limit: str) -> Overloaded:
        return Overloaded(f"{self._member} has {what} already", suggestion=f"close some, or raise limits.{limit}")

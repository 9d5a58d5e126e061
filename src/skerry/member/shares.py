"""Who may begin, and who waits: so many at once in all and of one user, and a queue that is fair to users. Pure."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

from skerry.model.errors import Overloaded

T = TypeVar("T", bound=Hashable)


class Shares(Generic[T]):
    """Places of one kind. Whoever waits stands in its user's row; users take turns, those with fewest places first."""

    def __init__(self, what: str, limit: str, in_all: int, per_user: int, waiting_max: int, waiting_limit: str) -> None:
        """`what` has the places, for errors; `limit` and `waiting_limit` are how skerry.yaml calls their bounds."""
        self._what = what
        self._limit = limit
        self._in_all = in_all
        self._per_user = min(per_user, in_all)
        self._waiting_max = waiting_max
        self._waiting_limit = waiting_limit
        self._running: dict[T, str] = {}
        self._places: Counter[str] = Counter()
        self._rows: OrderedDict[str, OrderedDict[T, None]] = OrderedDict()  # the user whose turn is next stands first

    @property
    def running(self) -> int:
        return len(self._running)

    @property
    def waiting(self) -> int:
        return sum(map(len, self._rows.values()))

    def ask(self, one: T, user: str) -> list[T]:
        """A place, now or later. Returns who may begin now. Overloaded when too many wait already."""
        # A user that fills the queue alone leaves half of it to the others.
        row = len(self._rows.get(user, ()))
        is_full = self.waiting >= self._waiting_max or (row and row >= self._waiting_max // 2)
        if is_full and not self._has_room(user):
            whose = f"of {user}" if row else "here"
            raise Overloaded(
                f"{row or self.waiting} {self._what} {whose} wait already ({self._waiting_limit})",
                suggestion=f"wait for others to end, or close some ({self._limit} run at once)",
            )
        self._rows.setdefault(user, OrderedDict())[one] = None
        return self._next()

    def leave(self, one: T) -> list[T]:
        """It has ended, or waits no longer. Returns who may begin now."""
        user = self._running.pop(one, None)
        if user is not None:
            self._places[user] -= 1
            if not self._places[user]:
                del self._places[user]
        for name, row in list(self._rows.items()):
            row.pop(one, None)
            if not row:
                del self._rows[name]
        return self._next()

    def place(self, one: T) -> int:
        """How many begin before it, and it: 1 for the next. 0 if it does not wait. As if nobody else came."""
        rows = list(self._rows.values())
        turn = next((turn for turn, row in enumerate(rows) if one in row), None)
        if turn is None:
            return 0
        ahead = list(rows[turn]).index(one)
        return 1 + sum(min(len(row), ahead + (other < turn)) for other, row in enumerate(rows))

    def _has_room(self, user: str) -> bool:
        return len(self._running) < self._in_all and self._places[user] < self._per_user and user not in self._rows

    def _next(self) -> list[T]:
        begun: list[T] = []
        while len(self._running) < self._in_all:
            able = [user for user in self._rows if self._places[user] < self._per_user]
            if not able:
                break
            user = min(able, key=lambda each: self._places[each])  # of equals the one whose turn it is
            row = self._rows[user]
            one, _ = row.popitem(last=False)
            if row:
                self._rows.move_to_end(user)
            else:
                del self._rows[user]
            self._running[one] = user
            self._places[user] += 1
            begun.append(one)
        return begun

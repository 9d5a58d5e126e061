"""Client cursors of one member: which query ids are open, used, or closed before they began, and whose. Pure."""

from __future__ import annotations

from collections import OrderedDict
from typing import TypeVar

import msgspec

from skerry.model.errors import Cancelled, Overloaded, UserError
from skerry.model.ids import QueryId
from skerry.model.limits import Limits

T = TypeVar("T")


class Lease(msgspec.Struct, frozen=True):
    """How long a cursor is kept without a connection, in seconds: not at all, for a client that may come back, or

    (`is_detached`) for anybody who attaches, also after a Goodbye.
    """

    seconds: float = 0.0
    is_detached: bool = False

    @property
    def outlives(self) -> bool:
        """Whether the query goes on without the connection that began it."""
        return self.is_detached or self.seconds > 0


NO_LEASE = Lease()


class _Open(msgspec.Struct):
    """`owner` is None while nobody is connected; then `until` says when that is too long, once there is something.

    `share`: of whom it is one of so many.
    """

    owner: object | None
    lease: Lease
    until: float = 0.0
    is_ready: bool = True
    share: str = ""


class Cursors:
    """An owner is whatever stands for one session of a client; no two sessions are equal."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._open: dict[QueryId, _Open] = {}
        self._used: OrderedDict[QueryId, float] = OrderedDict()  # ended ids, until nobody can mean them any more
        # Closed before execute, and by which user: none can keep another from an id.
        self._markers: OrderedDict[tuple[str, QueryId], float] = OrderedDict()

    def __len__(self) -> int:
        return len(self._open)

    @property
    def markers(self) -> int:
        return len(self._markers)

    def open(
        self,
        query: QueryId,
        owner: object,
        now: float,
        lease: Lease = NO_LEASE,
        user: str = "",
        share: str = "",
        *,
        is_again: bool = False,
    ) -> None:
        """Admit an `execute` of a user, or say why not. `is_again`: its id may have been used before."""
        self.expire(now)
        if is_again:
            self._used.pop(query, None)
        if self._markers.pop((user, query), None) is not None:
            self._keep(self._used, query, now)
            raise Cancelled(f"query {query} was closed before it began")
        if query in self._open or query in self._used:
            raise used_before(query)
        self._check_room(share)
        is_detached = lease.is_detached
        until = now + lease.seconds
        self._open[query] = _Open(None if is_detached else owner, lease, until, not is_detached, share)

    def _check_room(self, share: str) -> None:
        """The last tenth is for those who have less than a tenth: nobody alone keeps the others out."""
        limit, tenth = self._limits.queries, self._limits.queries // 10
        count = len(self._open)
        if count >= limit:
            raise Overloaded(f"{count} queries are open here (limits.queries); close some and try again")
        if count >= limit - tenth and sum(each.share == share for each in self._open.values()) >= tenth:
            raise Overloaded(
                f"{count} queries are open here, most of them of few; the last {tenth} are for others (limits.queries)",
                suggestion="close some and try again",
            )

    def ready(self, query: QueryId, now: float) -> None:
        """A detached query has its first rows, or an error: from now on they are kept for its lease."""
        found = self._open.get(query)
        if found is not None and not found.is_ready:
            found.is_ready, found.until = True, now + found.lease.seconds

    def attach(self, query: QueryId, owner: object) -> None:
        """A connection takes the cursor over. An older one may be dead and not know it: the newer one wins."""
        found = self._open.get(query)
        if found is None:
            raise Cancelled(f"query {query} is not open here: it ended, was closed, or nobody came for it in time")
        found.owner = owner

    def is_owned(self, query: QueryId) -> bool:
        """Whether somebody is there for the cursor's rows."""
        found = self._open.get(query)
        return found is not None and found.owner is not None

    def is_owned_by(self, query: QueryId, owner: object) -> bool:
        found = self._open.get(query)
        return found is not None and found.owner == owner

    def keeps(self, query: QueryId) -> bool:
        """Whether the cursor outlives its connection, and so its last page: that may have to be sent again."""
        found = self._open.get(query)
        return found is not None and found.lease.seconds > 0

    def close(self, query: QueryId, now: float, user: str = "") -> bool:
        """True if there was a cursor. If there never was, an `execute` may still be on its way: leave a marker."""
        self.expire(now)
        if self._open.pop(query, None) is not None:
            self._keep(self._used, query, now)
            return True
        self.mark(query, now, user)
        return False

    def mark(self, query: QueryId, now: float, user: str) -> None:
        """The user wants none of that query, should an `execute` of its own still come."""
        if query not in self._used:
            self._keep(self._markers, (user, query), now)
            while len(self._markers) > 10 * self._limits.queries:
                self._markers.popitem(last=False)

    def of(self, owner: object) -> list[QueryId]:
        """The cursors of a connection."""
        return [query for query, found in self._open.items() if found.owner == owner]

    def gone(self, owner: object, now: float, *, is_goodbye: bool) -> list[QueryId]:
        """A connection has ended. Returns the cursors that end with it; the others wait for somebody to attach."""
        ending = []
        for query in self.of(owner):
            found = self._open[query]
            found.owner, found.until = None, now + found.lease.seconds
            if not found.lease.seconds or (is_goodbye and not found.lease.is_detached):
                ending.append(query)
        return ending

    def expired(self, now: float) -> list[QueryId]:
        """Cursors that nobody came for in time: close them."""
        unwanted = ((query, found) for query, found in self._open.items() if found.owner is None and found.is_ready)
        return [query for query, found in unwanted if found.until <= now]

    def expire(self, now: float) -> None:
        _expire(self._used, now)
        _expire(self._markers, now)

    def _keep(self, kept: OrderedDict[T, float], key: T, now: float) -> None:
        """At the end, even if it was kept before: the first to expire stands first."""
        kept.pop(key, None)
        kept[key] = now + self._limits.marker_s


def _expire(kept: OrderedDict[T, float], now: float) -> None:
    while kept and next(iter(kept.values())) <= now:
        kept.popitem(last=False)


def used_before(query: QueryId) -> UserError:
    return UserError(f"query id {query} was used before; every execute needs a new one")

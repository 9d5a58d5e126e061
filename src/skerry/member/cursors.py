"""Client cursors of one member: which query ids are open, used, or closed before they began. Pure."""

from __future__ import annotations

from collections import OrderedDict

from skerry.errors import Cancelled, Overloaded, UserError
from skerry.ids import QueryId
from skerry.limits import Limits


class Cursors:
    """`owner` is any hashable that stands for the client's connection."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._owner: dict[QueryId, object] = {}
        self._used: OrderedDict[QueryId, float] = OrderedDict()  # ended ids, until nobody can mean them any more
        self._markers: OrderedDict[QueryId, float] = OrderedDict()  # closed before execute

    def __len__(self) -> int:
        return len(self._owner)

    @property
    def markers(self) -> int:
        return len(self._markers)

    def open(self, query: QueryId, owner: object, now: float) -> None:
        """Admit an `execute`, or say why not."""
        self.expire(now)
        if self._markers.pop(query, None) is not None:
            self._keep(self._used, query, now)
            raise Cancelled(f"query {query} was closed before it began")
        if query in self._owner or query in self._used:
            raise UserError(f"query id {query} was used before; every execute needs a new one")
        if len(self._owner) >= self._limits.queries:
            raise Overloaded(f"{len(self._owner)} queries are open here (limits.queries); close some and try again")
        self._owner[query] = owner

    def close(self, query: QueryId, now: float) -> bool:
        """True if there was a cursor. If there never was, an `execute` may still be on its way: leave a marker."""
        self.expire(now)
        if query in self._owner:
            del self._owner[query]
            self._keep(self._used, query, now)
            return True
        if query not in self._used:
            self._keep(self._markers, query, now)
            while len(self._markers) > 10 * self._limits.queries:
                self._markers.popitem(last=False)
        return False

    def of(self, owner: object) -> list[QueryId]:
        """What a client that went away leaves behind."""
        return [query for query, who in self._owner.items() if who is owner]

    def expire(self, now: float) -> None:
        for kept in (self._used, self._markers):
            while kept and next(iter(kept.values())) <= now:
                kept.popitem(last=False)

    def _keep(self, kept: OrderedDict[QueryId, float], query: QueryId, now: float) -> None:
        """At the end, even if it was kept before: the first to expire stands first."""
        kept.pop(query, None)
        kept[query] = now + self._limits.marker_s

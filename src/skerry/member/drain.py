"""A member that is told to stop takes no new query, and lets those that run end first, within a bound."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Mapping

from skerry.member import clock
from skerry.member.initiator import Initiated
from skerry.member.query import Phase
from skerry.model import trace
from skerry.model.errors import SiteStopping
from skerry.model.ids import QueryId

_LOOK_EVERY_S = 0.05  # cursors, receipts and releases all may be the last: none of them has to remember to say so


class Drain:
    """`reading`: the queries of callers that go on; `participants`: all that the member takes part in."""

    def __init__(
        self,
        name: str,
        reading: Callable[[], set[QueryId]],
        initiated: Mapping[QueryId, Initiated],
        participants: Iterable[QueryId],
    ) -> None:
        self._name = name
        self._reading = reading
        self._initiated = initiated
        self._participants = participants
        self.has_begun = False

    def refusal(self) -> SiteStopping | None:
        """Why no query of a caller may begin here now."""
        if not self.has_begun:
            return None
        return SiteStopping(f"site {self._name} is stopping; ask another member", member=self._name)

    def refusal_of_part(self, query: QueryId) -> SiteStopping | None:
        """Why the member may not take part in a query now. One that runs for its own callers was admitted before."""
        own = self._initiated.get(query)
        if not self.has_begun or (own is not None and own.core.phase is Phase.RUNNING):
            return None
        return SiteStopping(f"site {self._name} is stopping", member=self._name)

    def running(self) -> set[QueryId]:
        """Queries that would break if the member stopped. Its own parts of its own queries end with these."""
        ending = {query for query, each in self._initiated.items() if each.core.phase is not Phase.RUNNING}
        return self._reading() | ending | {query for query in self._participants if query.initiator != self._name}

    async def wait(self, drain_s: float, hurry: asyncio.Event) -> None:
        """Until nothing runs, the time is up, or `hurry` is set."""
        self.has_begun = True
        begun, queries = clock.now(), len(self.running())
        trace.emit(trace.DrainBegun(self._name, queries, drain_s))
        give_up = begun + drain_s
        while (left := self.running()) and not hurry.is_set() and (rest_s := give_up - clock.now()) > 0:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(hurry.wait(), min(_LOOK_EVERY_S, rest_s))
        if left:
            trace.emit(trace.DrainGivenUp(self._name, tuple(sorted(left))))
        elif queries:
            trace.emit(trace.DrainDone(self._name, clock.now() - begun))

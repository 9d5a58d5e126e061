"""What a member looks at again and again: deadlines, links, and queries that nobody may know any more."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Collection, Mapping

from skerry.member import clock
from skerry.member.initiator import Initiated
from skerry.member.inputs import Inputs
from skerry.member.orphans import Orphans
from skerry.member.participant import Participant
from skerry.model import trace
from skerry.model.errors import SiteError
from skerry.model.ids import QueryId
from skerry.wire.messages import Check, Message
from skerry.wire.peers import Peers

_PROGRESS_EVERY_S = 0.25


class Rounds:
    """`start` begins them; they go on until `stop`. Each calls `on_tick` at its end."""

    def __init__(
        self,
        name: str,
        members: Collection[str],
        orphans: Orphans,
        initiated: Mapping[QueryId, Initiated],
        participants: Mapping[QueryId, Participant],
        inputs: Inputs,
        peers: Peers,
        send: Callable[[str, Message], None],
        on_tick: Callable[[float], None],
    ) -> None:
        self.orphans = orphans
        self._name = name
        self._members = members
        self._initiated = initiated
        self._participants = participants
        self._inputs = inputs
        self._peers = peers
        self._send = send
        self._on_tick = on_tick
        self._ticking: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._ticking = asyncio.ensure_future(self._tick_forever())

    async def stop(self) -> None:
        if self._ticking is not None:
            self._ticking.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._ticking

    def _send_progress(self, participant: Participant) -> None:
        """Not while its initiator is away: what is queued for a peer is bounded, and only the latest counts."""
        initiator = participant.query.initiator
        if initiator == self._name or self._peers.state(initiator) == "up":
            self._send(initiator, participant.progress())

    def look_at_links(self, now: float) -> None:
        """Each query decides by its fault policy how long a peer may be away; a session outlasts the longest."""
        waits_s: dict[str, float] = {}
        for initiated in list(self._initiated.values()):
            for peer in initiated.core.owing:
                if peer != self._name and (reason := initiated.watch.look(peer, self._peers.link(peer), now)):
                    initiated.peer_lost(peer, SiteError(f"site {peer} is down: {reason}", member=self._name))
                waits_s[peer] = max(waits_s.get(peer, 0.0), initiated.watch.patience.wait_s)
        for participant in list(self._participants.values()):
            peer = participant.query.initiator
            if peer != self._name and (reason := participant.watch.look(peer, self._peers.link(peer), now)):
                # Told, too: the session may be linked again, and the initiator not have noticed that it was not.
                participant.fail(SiteError(f"site {peer} is down: {reason}", member=self._name))
            waits_s[peer] = max(waits_s.get(peer, 0.0), participant.watch.patience.wait_s)
        self._peers.be_patient(waits_s)

    def orphaned(self, query: QueryId) -> None:
        participant = self._participants.get(query)
        if participant is not None:
            participant.do(participant.core.cancelled("the initiator does not know the query"))
        elif query in self._inputs.pending:
            self.forget(query)

    def forget(self, query: QueryId) -> None:
        self.orphans.forget(query)
        self._inputs.forget(query, clock.now())

    def _check_orphans(self, now: float) -> None:
        for initiator, queries in self.orphans.due(now).items():
            if initiator in self._members:
                self._send(initiator, Check(queries))
            else:
                for query in queries:
                    self.forget(query)

    async def _tick_forever(self) -> None:
        while True:
            await asyncio.sleep(_PROGRESS_EVERY_S)
            try:
                self.tick(clock.now())
            except Exception as error:
                trace.emit(trace.WorkFailed(f"member {self._name}: tick"), error)

    def tick(self, now: float) -> None:
        for initiated in list(self._initiated.values()):
            initiated.tick(now)
        for participant in list(self._participants.values()):
            participant.do(participant.core.tick(now))
            participant.check_stalled()
            participant.check_spent()
            self._send_progress(participant)
        self.look_at_links(now)
        self._inputs.expire(now)
        self._check_orphans(now)
        self._on_tick(now)

"""What a member looks at again and again: deadlines, links, and queries that nobody may know any more."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import TYPE_CHECKING

from skerry.member import clock
from skerry.member.orphans import Orphans
from skerry.member.participant import Participant
from skerry.model.errors import SiteError
from skerry.model.ids import QueryId
from skerry.wire.messages import Check

if TYPE_CHECKING:
    from skerry.member.server import Member

log = logging.getLogger("skerry.member")

_PROGRESS_EVERY_S = 0.25


class Rounds:
    """`start` begins them; they go on until `stop`."""

    def __init__(self, member: Member) -> None:
        self._member = member
        self.orphans = Orphans(member.limits.orphan_check_s)
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
        member = self._member
        initiator = participant.query.initiator
        if initiator == member.name or member.peers.state(initiator) == "up":
            member.send(initiator, participant.progress())

    def look_at_links(self, now: float) -> None:
        """Each query decides by its fault policy how long a peer may be away; a session outlasts the longest."""
        member = self._member
        waits_s: dict[str, float] = {}
        for initiated in list(member.initiated.values()):
            for peer in initiated.core.owing:
                if peer != member.name and (reason := initiated.watch.look(peer, member.peers.link(peer), now)):
                    initiated.peer_lost(peer, SiteError(f"site {peer} is down: {reason}", member=member.name))
                waits_s[peer] = max(waits_s.get(peer, 0.0), initiated.watch.patience.wait_s)
        for participant in list(member.participants.values()):
            peer = participant.query.initiator
            if peer != member.name and (reason := participant.watch.look(peer, member.peers.link(peer), now)):
                # Told, too: the session may be linked again, and the initiator not have noticed that it was not.
                participant.fail(SiteError(f"site {peer} is down: {reason}", member=member.name))
            waits_s[peer] = max(waits_s.get(peer, 0.0), participant.watch.patience.wait_s)
        member.peers.be_patient(waits_s)

    def suspect(self, query: QueryId) -> None:
        """Rows came for a query that nobody began here: ask its initiator after a while."""
        self.orphans.watch(query, clock.now())

    def orphaned(self, query: QueryId) -> None:
        member = self._member
        participant = member.participants.get(query)
        if participant is not None:
            participant.do(participant.core.cancelled("the initiator does not know the query"))
        elif query in member.inputs.pending:
            self.forget(query)

    def forget(self, query: QueryId) -> None:
        self.orphans.forget(query)
        self._member.inputs.forget(query, clock.now())

    def _check_orphans(self, now: float) -> None:
        member = self._member
        for initiator, queries in self.orphans.due(now).items():
            if initiator in member.config.members:
                member.send(initiator, Check(queries))
            else:
                for query in queries:
                    self.forget(query)

    async def _tick_forever(self) -> None:
        while True:
            await asyncio.sleep(_PROGRESS_EVERY_S)
            try:
                self.tick(clock.now())
            except Exception:
                log.exception("member %s: tick failed", self._member.name)

    def tick(self, now: float) -> None:
        member = self._member
        for initiated in list(member.initiated.values()):
            initiated.tick(now)
        for participant in list(member.participants.values()):
            participant.do(participant.core.tick(now))
            participant.check_stalled()
            self._send_progress(participant)
        self.look_at_links(now)
        member.inputs.expire(now)
        self._check_orphans(now)
        member.requests.tick(now)

"""The queries that a member takes part in: how each begins here, gets its plan, and ends."""

from __future__ import annotations

from collections.abc import Callable

from skerry.member import clock
from skerry.member.inputs import Inputs
from skerry.member.lull import Lull
from skerry.member.orphans import Orphans
from skerry.member.participant import Participant
from skerry.member.planasks import PlanAsks
from skerry.member.running import Surroundings
from skerry.model import trace
from skerry.model.errors import PeerError, SiteError
from skerry.model.ids import QueryId
from skerry.model.points import reach
from skerry.plan.cache import PlanCache
from skerry.wire.messages import Execute, PlanReply, Receipt


class TakingPart:
    """`refusal`: why a query may not begin here now; `around`: what a participant needs, once the member has begun."""

    def __init__(
        self,
        inputs: Inputs,
        plans: PlanCache,
        orphans: Orphans,
        lull: Lull,
        around: Callable[[], Surroundings],
        refusal: Callable[[Execute], SiteError | None],
    ) -> None:
        self.participants: dict[QueryId, Participant] = {}
        self._inputs = inputs
        self._plans = plans
        self._orphans = orphans
        self._lull = lull
        self._around = around
        self._refusal = refusal
        self._plan_asks = PlanAsks()

    def execute(self, message: Execute) -> None:
        reach("execute received")
        if message.query in self.participants:
            return
        around = self._around()
        if self._inputs.is_gone(message.query):
            # Its cancel came first: the marker stands, nothing is started.
            around.send(message.sender, Receipt(message.query, around.identity.member))
            return
        self._orphans.watch(message.query, clock.now())
        participant = Participant(message, around, self._released)
        self.participants[message.query] = participant
        self._lull.running(len(self.participants))
        trace.emit(trace.QueryBegun(message.query, around.identity.member, message.fragments))
        if (refusal := self._refusal(message)) is not None:
            participant.fail(refusal)
            return
        plan = self._plans.get(message.plan_id)
        # A member that only passes rows on needs no plan.
        is_asked = plan is None and bool(message.fragments) and self._plan_asks.wait(message.query, message.plan_id)
        participant.do(participant.core.begin(plan, is_asked=is_asked))
        if plan is None:
            reach("plan requested")

    def plan_arrived(self, sender: str, message: PlanReply) -> None:
        waiting = self._plan_asks.answered(sender, message.plan_id)
        if not waiting:
            return  # nobody asked for it, or has ended since: what others send unasked fills no cache
        participants = [self.participants[query] for query in waiting if query in self.participants]
        try:
            if message.plan is not None:
                self._plans.put(message.plan)
        except PeerError as error:
            # They wait for their plan, and no other will come.
            for participant in participants:
                participant.fail(error)
            return
        for participant in participants:
            participant.do(participant.core.plan_arrived(message.plan))

    def peer_back(self, peer: str, heard_at: float) -> None:
        for participant in list(self.participants.values()):
            participant.peer_back(peer, heard_at)

    def peer_lost(self, peer: str) -> None:
        """Queries that the peer began end here."""
        for participant in list(self.participants.values()):
            if participant.query.initiator == peer:
                participant.do(participant.core.initiator_lost())
        self._plan_asks.lost(peer)

    def _released(self, participant: Participant) -> None:
        self.participants.pop(participant.query, None)
        self._lull.running(len(self.participants))
        self._orphans.forget(participant.query)
        trace.emit(trace.ReceiptGiven(participant.query, self._around().identity.member))

"""The queries that a member takes part in: how each begins here, gets its plan, and ends."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from skerry.exchange.groupby.strangers import answer
from skerry.member import clock
from skerry.member.inputs import Inputs
from skerry.member.lull import Lull
from skerry.member.orphans import Orphans
from skerry.member.participant import Participant
from skerry.member.planasks import PlanAsks
from skerry.member.running import Surroundings
from skerry.member.task import TaskPhase
from skerry.model import trace
from skerry.model.errors import PeerError, SiteError
from skerry.model.fragment import Plan
from skerry.model.ids import QueryId
from skerry.model.points import reach
from skerry.model.table import TablePart
from skerry.plan.admission import admit, own_tables
from skerry.plan.cache import PlanCache
from skerry.wire.groupby_messages import GroupByMessage, Recruit, Recruited
from skerry.wire.messages import Execute, PlanReply, Receipt


class TakingPart:
    """`refusal`: why a query may not begin here now; `around`: what a participant needs, once the member has begun.

    The member's own plans are in `plans` as its planner made them; those of others when they have been admitted.
    """

    def __init__(
        self,
        inputs: Inputs,
        plans: PlanCache,
        orphans: Orphans,
        lull: Lull,
        around: Callable[[], Surroundings],
        refusal: Callable[[Execute], SiteError | None],
        own: Callable[[Awaitable[None], str], None],
    ) -> None:
        self.participants: dict[QueryId, Participant] = {}
        self._inputs = inputs
        self._plans = plans
        self._orphans = orphans
        self._lull = lull
        self._around = around
        self._refusal = refusal
        self._own = own
        self._plan_asks = PlanAsks()

    def execute(self, message: Execute) -> None:
        reach("execute received")
        if not all(each.query == message.query and self._inputs.is_between(each) for each in message.relays):
            raise PeerError(f"Execute of query {message.query}: rows that do not pass here are to be passed on")
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
        me = around.identity.member
        caller = message.user if message.query.initiator != me else None  # its own service has told who it is
        trace.emit(trace.QueryBegun(message.query, me, message.fragments, caller or None))
        if (refusal := self._refusal(message)) is not None:
            participant.fail(refusal)
            return
        plan = self._plans.get(message.plan_id, message.query.initiator)
        # A member that only passes rows on needs no plan.
        is_asked = plan is None and bool(message.fragments) and self._plan_asks.wait(message.query, message.plan_id)
        participant.do(participant.core.begin(plan, is_asked=is_asked))
        if plan is None:
            reach("plan requested")

    def group_by(self, sender: str, message: GroupByMessage) -> None:
        """About a query that has not begun here it is said again; one that is over has an end to be told."""
        participant = self.participants.get(message.group.query)
        if participant is not None and participant.core.phase not in (TaskPhase.STOPPING, TaskPhase.GONE):
            participant.group_by(sender, message)
        elif participant is not None or self._inputs.is_gone(message.group.query):
            around = self._around()
            is_recruit = isinstance(message, Recruit)
            reply = Recruited(message.group, False) if is_recruit else answer(around.identity.member, message)
            if reply is not None:
                around.send(sender, reply)

    def plan_arrived(self, sender: str, message: PlanReply) -> None:
        if message.plan is None:
            self._answer(sender, message.plan_id, lambda each: each.do(each.core.plan_arrived(None)))
        elif self._plan_asks.arrived(sender, message.plan_id):
            self._own(self._admit(sender, message.plan_id, message.plan), "a plan that arrived")

    async def _admit(self, initiator: str, plan_id: str, plan: Plan) -> None:
        """Queries that wait for the plan run by it, or end: no other will come."""
        try:
            admitted = await self._admitted(initiator, plan_id, plan)
        except Exception as error:  # whatever a plan may do to the code that reads it
            reason = error
            trace.emit(trace.PlanRefused(initiator, plan_id, trace.cause_of(reason)))
            self._answer(initiator, plan_id, lambda each: each.fail(reason))
        else:
            self._plans.put(admitted, initiator)
            self._answer(initiator, plan_id, lambda each: each.do(each.core.plan_arrived(admitted)))

    async def _admitted(self, initiator: str, plan_id: str, plan: Plan) -> Plan:
        if plan.plan_id != plan_id:
            raise PeerError(f"member {initiator} sent another plan than the one asked for")
        around = self._around()
        parts = {table: await self._part(table, plan) for table in own_tables(plan, around.home.member)}
        return await around.workers.run(admit, plan, initiator, around.home, parts)

    async def _part(self, table: str, plan: Plan) -> TablePart:
        """The table with the columns that it was planned with, if it has them: its files are listed when it is read."""
        around = self._around()
        if not around.tables.has(table):
            return around.own_reads.part(await around.own_reads.current(table, plan.schema_info))
        known = around.tables.known(table)
        if known is not None and plan.schema_info.get(f"{known.member}.{known.table}") == known.schema_version:
            return known
        return (await around.tables.snapshot(table)).part

    def _answer(self, initiator: str, plan_id: str, tell: Callable[[Participant], None]) -> None:
        for query in self._plan_asks.answered(initiator, plan_id):
            if query in self.participants:
                tell(self.participants[query])

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

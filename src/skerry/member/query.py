"""The life of a query at its initiator: whom to tell what, and when it is over. Pure (docs/protocol.md, 3)."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping

import msgspec

from skerry.member.caps import Caps, crowded
from skerry.member.ending import Awaited
from skerry.model.commits import Changed
from skerry.model.errors import Overloaded, PeerError, SiteError, SkerryError, TimedOut
from skerry.model.fragment import Fragment, Plan
from skerry.model.ids import ChannelId, QueryId
from skerry.model.limits import Limits
from skerry.model.progress import FragmentProgress, LinkBytes, Memory
from skerry.model.results import Schema, Value
from skerry.model.transitions import Machine, staying
from skerry.wire.groupby_messages import Grown
from skerry.wire.messages import (
    Cancel,
    Execute,
    Failure,
    FragmentDone,
    Message,
    PlanReply,
    PlanRequest,
    Progress,
    Receipt,
    Started,
)
from skerry.wire.values import error_of, failure_of

# Code 0 in a Cancel: the result is complete, nothing failed.
COMPLETE = Failure(0, "complete")
# In Execute.options: participants are to tell what only EXPLAIN ANALYZE wants to know.
TRACE_OPTION = "trace"


class Phase(enum.Enum):
    RUNNING = "running"
    ENDING = "ending"  # the result is delivered or failed; receipts are awaited
    ENDED = "ended"


class Event(enum.Enum):
    PLAN_ASKED = "PlanRequest came"
    STARTED = "Started came"
    DONE = "FragmentDone came"
    PROGRESSED = "Progress came"
    LET_GO = "a Receipt came"
    PEER_LOST = "a participant is lost"
    COMPLETED = "the result is complete"
    FAILED = "it failed, was cancelled or ran out of time"
    ALL_LET_GO = "no receipt is outstanding"
    WAITED_OUT = "receipts took longer than stop_s"


NEXT: dict[tuple[Phase, Event], Phase] = {
    # What participants say comes at any time, also late; a plan is given for a query that is over, too.
    **staying(Phase, Event.PLAN_ASKED, Event.STARTED, Event.DONE, Event.PROGRESSED, Event.LET_GO, Event.PEER_LOST),
    (Phase.RUNNING, Event.COMPLETED): Phase.ENDING,
    (Phase.RUNNING, Event.FAILED): Phase.ENDING,
    # The first end counts.
    **staying((Phase.ENDING, Phase.ENDED), Event.COMPLETED, Event.FAILED),
    (Phase.ENDING, Event.ALL_LET_GO): Phase.ENDED,
    (Phase.ENDING, Event.WAITED_OUT): Phase.ENDED,
}


class Send(msgspec.Struct, frozen=True):
    member: str
    message: Message


class SchemaKnown(msgspec.Struct, frozen=True):
    """The result's columns: the client can be answered."""

    schema: Schema


class RowsCounted(msgspec.Struct, frozen=True):
    """The query ends in a number, and this is it."""

    rows: int


class QueryFailed(msgspec.Struct, frozen=True):
    """The client gets this error; what came of the result is worthless."""

    error: SkerryError


class QueryEnded(msgspec.Struct, frozen=True):
    """Every participant gave its receipt (or is lost, or took too long: `missing`).

    `left` names what receipts say could not be let go in time.
    """

    missing: tuple[str, ...]
    left: tuple[str, ...] = ()


Instruction = Send | SchemaKnown | RowsCounted | QueryFailed | QueryEnded


def overspent(links: Iterable[LinkBytes], budgets: Mapping[tuple[str, str], int]) -> Overloaded | None:
    """Why a query ends that has sent so much over these links; None if it may go on."""
    for link in links:
        budget = budgets.get((link.sender, link.receiver))
        if budget is not None and link.size_bytes > budget:
            over = f"the query sent {link.size_bytes} bytes over the link from {link.sender} to {link.receiver}"
            return Overloaded(f"{over}, whose query_bytes is {budget}")
    return None


class QueryCore:
    """One query, started at once at fixed participants; ends with a receipt from each."""

    def __init__(
        self,
        query: QueryId,
        plan: Plan,
        parameters: dict[str, Value],
        timeout_s: float,
        limits: Limits,
        now: float,
        options: dict[str, int | str] | None = None,
        relays: Mapping[str, tuple[ChannelId, ...]] | None = None,
        budgets: Mapping[tuple[str, str], int] | None = None,
        user: str = "",
        roles: tuple[str, ...] = (),
        read_ts: int = 0,
        changes: Mapping[str, tuple[Changed, ...]] | None = None,
        caps: Caps | None = None,
    ) -> None:
        """`relays`: members that channels only pass, and which (member/relay.py). They take part like any other.

        `budgets`: bytes that a query may send over a link, by sender and receiver. `user`, `roles`: whose query it is.
        `read_ts`: the moment at which tables of our own are read; `changes`: of its transaction, by member.
        `caps`: what it may take, which each participant is told, too.
        """
        self.query = query
        self.plan = plan
        self.error: SkerryError | None = None
        self.started_at = now
        self.ended_at: float | None = None
        self._parameters = parameters
        self._limits = limits
        self._timeout_s = timeout_s
        self._caps = caps or Caps()
        self._options = (options or {}) | self._caps.options()
        self._deadline = now + timeout_s
        self._relays = relays or {}
        self._budgets = budgets or {}
        self._user, self._roles, self.read_ts = user, roles, read_ts
        self._changes = changes or {}
        self.participants = tuple(sorted({fragment.member for fragment in plan.fragments} | set(self._relays)))
        self._owing = set(self.participants)  # participants whose receipt is outstanding
        self._awaited = Awaited(plan)
        self._fragments = {
            fragment.id: FragmentProgress(fragment.id, fragment.member, "waiting", 0, 0) for fragment in plan.fragments
        }
        self._links: dict[tuple[str, str], LinkBytes] = {}
        self._memory: dict[str, Memory] = {}
        self._left: list[str] = []
        self.grown: dict[int, Grown] = {}  # what elastic group-bys came to, by fragment
        self._life = Machine("query", query, NEXT, Phase.RUNNING)

    @property
    def phase(self) -> Phase:
        return self._life.phase

    @property
    def deadline(self) -> float:
        """When tick() has something to do."""
        return self._deadline

    @property
    def owing(self) -> tuple[str, ...]:
        """Participants whose receipt is outstanding."""
        return tuple(sorted(self._owing))

    def start(self) -> list[Instruction]:
        self._life.note(f"execute at {', '.join(self.participants)}")
        return [
            Send(
                member,
                Execute(
                    query=self.query,
                    request_id=self.query.local,
                    plan_id=self.plan.plan_id,
                    sender=self.query.initiator,
                    fragments=tuple(f.id for f in self.plan.fragments if f.member == member),
                    parameters=self._parameters,
                    virtual_tables=self.plan.virtual_tables(member),
                    schema_info={k: v for k, v in self.plan.schema_info.items() if k.startswith(f"{member}.")},
                    options=self._options,
                    participants=self.participants,
                    timeout_s=self._timeout_s,
                    relays=self._relays.get(member, ()),
                    user=self._user,
                    roles=self._roles,
                    read_ts=self.read_ts,
                    changes=self._changes.get(member, ()),
                ),
            )
            for member in self.participants
        ]

    def receive(self, sender: str, message: Message, now: float) -> list[Instruction]:
        """A control message about this query from a participant."""
        if sender not in self.participants:
            raise PeerError(f"{type(message).__name__} from {sender}, which takes no part in query {self.query}")
        match message:
            case PlanRequest():
                # Also when this query is over: others at that member may wait for the same plan.
                self._life.move(Event.PLAN_ASKED)
                return [Send(sender, PlanReply(self.query, message.request_id, message.plan_id, self._asked(message)))]
            case Started():
                self._life.move(Event.STARTED)
                return self._started(sender, message, now)
            case FragmentDone():
                self._life.move(Event.DONE)
                return self._done(sender, message, now)
            case Progress():
                self._life.move(Event.PROGRESSED)
                self._progress(sender, message)
                return self._spent(now)
            case Grown():
                self._life.move(Event.PROGRESSED)
                if any(each.id == message.fragment and each.member == sender for each in self.plan.fragments):
                    self.grown[message.fragment] = message
                return []
            case Receipt():
                self._life.move(Event.LET_GO)
                self._left += [f"{sender}: {what}" for what in message.left]
                return self._receipt(sender, now)
            case Cancel():
                return self.cancel(error_of(message.error), now)
            case other:
                raise PeerError(f"{type(other).__name__} from {sender} says nothing about query {self.query}")

    def result_complete(self, now: float) -> list[Instruction]:
        """All that the query ends in is there: let go of whatever participants still hold."""
        return self._end(COMPLETE, now) if self._life.move(Event.COMPLETED) else []

    def cancel(self, error: SkerryError, now: float) -> list[Instruction]:
        """The first error counts; every participant is told once (two-step cancel)."""
        if not self._life.move(Event.FAILED):
            return []
        self._life.note(error.message)
        self.error = error
        return [QueryFailed(error), *self._end(failure_of(error, self.query.initiator), now)]

    def peer_lost(self, member: str, error: SiteError, now: float) -> list[Instruction]:
        self._life.move(Event.PEER_LOST)
        if member not in self._owing:
            return []
        self._owing.discard(member)
        if self.phase is Phase.RUNNING:
            return self.cancel(error, now)
        return self._maybe_ended(now)

    def tick(self, now: float) -> list[Instruction]:
        if now < self._deadline:
            return []
        if self.phase is Phase.RUNNING:
            return self.cancel(TimedOut(f"query {self.query} ran longer than its {self._timeout_s:g} s"), now)
        if self.phase is Phase.ENDING:
            return self._ended(Event.WAITED_OUT, now)
        return []

    def progress(self) -> tuple[tuple[FragmentProgress, ...], tuple[LinkBytes, ...]]:
        return tuple(self._fragments.values()), tuple(self._links.values())

    @property
    def memory(self) -> tuple[Memory, ...]:
        """What each participant last said that it holds."""
        return tuple(self._memory.values())

    # --- inside ----------------------------------------------------------------------------------
    def _asked(self, request: PlanRequest) -> Plan | None:
        return self.plan.to_run() if request.plan_id == self.plan.plan_id else None

    def _started(self, sender: str, message: Started, now: float) -> list[Instruction]:
        known = self._note(sender, message.fragment, "running", 0, 0)
        if known is None or self.phase is not Phase.RUNNING:
            return []
        try:
            schema = self._awaited.started(known.id, message.schema)
        except SiteError as error:
            return self.cancel(error, now)
        return [SchemaKnown(schema)] if schema is not None else []

    def _done(self, sender: str, message: FragmentDone, now: float) -> list[Instruction]:
        known = self._note(sender, message.fragment, "done", message.rows, message.size_bytes)
        self._tell(message)
        if known is None or self.phase is not Phase.RUNNING:
            return []
        if over := self._spent(now):
            return over
        count = self._awaited.done(known.id, message.rows)
        return [RowsCounted(count), *self.result_complete(now)] if count is not None else []

    def _receipt(self, sender: str, now: float) -> list[Instruction]:
        self._owing.discard(sender)
        if self.phase is Phase.RUNNING:
            undone = [
                each.fragment for each in self._fragments.values() if each.member == sender and each.state != "done"
            ]
            if undone:
                # It let go on its own, without a Cancel that would say why: its rows will never come.
                return self.cancel(SiteError(f"site {sender} gave up the query", member=sender), now)
        return self._maybe_ended(now)

    def _note(self, sender: str, fragment: int, state: str, rows: int, size_bytes: int) -> Fragment | None:
        """The fragment, if it is the sender's; what is done stays so."""
        known = next((f for f in self.plan.fragments if f.id == fragment and f.member == sender), None)
        if known is not None and self._fragments[fragment].state != "done":
            self._fragments[fragment] = FragmentProgress(fragment, sender, state, rows, size_bytes)
        return known

    def _tell(self, done: FragmentDone) -> None:
        known = self._fragments.get(done.fragment)
        if known is not None and known.member == done.member and known.state == "done":
            told = msgspec.structs.replace(known, seconds=done.seconds, jobs=done.jobs)
            self._fragments[done.fragment] = told

    def _progress(self, sender: str, message: Progress) -> None:
        for seen in message.fragments:
            # Done is said by FragmentDone alone: the receipt is checked against it.
            state = "running" if seen.state == "done" else seen.state
            self._note(sender, seen.fragment, state, seen.rows, seen.size_bytes)
        if message.memory is not None:
            self._memory[sender] = message.memory
        for link in message.links:
            if link.sender == sender:
                self._links[(link.sender, link.receiver)] = link

    def _spent(self, now: float) -> list[Instruction]:
        """End a query that has sent more over a link, or an edge, than it may."""
        over = overspent(self._links.values(), self._budgets) or crowded(self._caps, self.plan, self._fragments)
        return [] if over is None else self.cancel(over, now)

    def _end(self, why: Failure, now: float) -> list[Instruction]:
        self._deadline = now + self._limits.stop_s
        cancels = [Send(member, Cancel(self.query, self.query.initiator, why)) for member in sorted(self._owing)]
        return [*cancels, *self._maybe_ended(now)]

    def _maybe_ended(self, now: float) -> list[Instruction]:
        is_last = self.phase is Phase.ENDING and not self._owing
        return self._ended(Event.ALL_LET_GO, now) if is_last else []

    def _ended(self, event: Event, now: float) -> list[Instruction]:
        self._life.move(event)
        self.ended_at = now
        return [QueryEnded(tuple(sorted(self._owing)), tuple(self._left))]

    # --- for tests -------------------------------------------------------------------------------
    def validate(self) -> None:
        """What always holds, whatever came in which order."""
        assert self._owing <= set(self.participants)
        assert (self.error is None) or self.phase is not Phase.RUNNING
        assert (self.ended_at is not None) == (self.phase is Phase.ENDED)
        assert {each.fragment for each in self._fragments.values()} == {f.id for f in self.plan.fragments}

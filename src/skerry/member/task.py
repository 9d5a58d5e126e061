"""The life of one query at one participant: plan, fragments, channels, receipt. Pure (docs/protocol.md, 3)."""

from __future__ import annotations

import enum
from typing import assert_never

import msgspec

from skerry.member.query import Send
from skerry.model.errors import PeerError, SkerryError, TimedOut
from skerry.model.fragment import Count, Ending, Fragment, Plan, Rows, VirtualLeaf, Written, virtual_name
from skerry.model.ids import ChannelId, QueryId
from skerry.model.results import Schema
from skerry.model.transitions import Machine, staying
from skerry.wire.messages import Cancel, Execute, FragmentDone, PlanRequest, Receipt, Started
from skerry.wire.values import failure_of


class TaskPhase(enum.Enum):
    PLANNING = "planning"  # the plan was asked for
    RUNNING = "running"
    STOPPING = "stopping"  # jobs, channels and files are being let go
    GONE = "gone"


class TaskEvent(enum.Enum):
    PLANNED = "the plan arrived, or none is needed"
    STARTED = "a fragment's columns are known"
    DONE = "a fragment is done"
    TAKEN = "a receiver has all rows of a fragment"
    STOPPED = "a receiver of a fragment has enough"
    RELAYED = "a channel has passed"
    COMPLETED = "nothing is left to do"
    FAILED = "something failed here, or time is up"
    CANCELLED = "Cancel came, or the initiator is lost"
    RELEASED = "all is let go of"


_OVER = (TaskPhase.STOPPING, TaskPhase.GONE)
_PLANNED = (TaskPhase.RUNNING, *_OVER)

NEXT: dict[tuple[TaskPhase, TaskEvent], TaskPhase] = {
    (TaskPhase.PLANNING, TaskEvent.PLANNED): TaskPhase.RUNNING,
    # A plan that several queries waited for comes to each of them, and one may be over.
    **staying(_PLANNED, TaskEvent.PLANNED),
    # What fragments tell while the query is let go of is late.
    **staying(_PLANNED, TaskEvent.STARTED, TaskEvent.DONE, TaskEvent.TAKEN, TaskEvent.STOPPED),
    # Relays wait for no plan.
    **staying(TaskPhase, TaskEvent.RELAYED),
    (TaskPhase.RUNNING, TaskEvent.COMPLETED): TaskPhase.STOPPING,
    (TaskPhase.PLANNING, TaskEvent.FAILED): TaskPhase.STOPPING,
    (TaskPhase.RUNNING, TaskEvent.FAILED): TaskPhase.STOPPING,
    (TaskPhase.PLANNING, TaskEvent.CANCELLED): TaskPhase.STOPPING,
    (TaskPhase.RUNNING, TaskEvent.CANCELLED): TaskPhase.STOPPING,
    # The first end counts.
    **staying(_OVER, TaskEvent.FAILED, TaskEvent.CANCELLED),
    (TaskPhase.STOPPING, TaskEvent.RELEASED): TaskPhase.GONE,
    (TaskPhase.GONE, TaskEvent.RELEASED): TaskPhase.GONE,
}


class RunFragment(msgspec.Struct, frozen=True):
    fragment: Fragment


class Release(msgspec.Struct, frozen=True):
    """Stop every job and channel of the query, drop its spools and views; then call released()."""

    why: str


class StopFragment(msgspec.Struct, frozen=True):
    """All its receivers have enough: end its job, and let its own senders know that no more is wanted."""

    fragment: int


class RelayChannel(msgspec.Struct, frozen=True):
    """Rows of this channel pass here: take them and send them on; then call relayed()."""

    channel: ChannelId


TaskInstruction = Send | RunFragment | RelayChannel | StopFragment | Release


class TaskCore:
    """All fragments of one query at one member. Every path ends in Release, then a Receipt."""

    def __init__(self, execute: Execute, member: str, now: float) -> None:
        self.query: QueryId = execute.query
        self.execute = execute
        self.plan: Plan | None = None
        self.deadline = now + execute.timeout_s
        self._member = member
        self._running: set[int] = set(execute.fragments)  # fragments not done
        self.readers: dict[int, tuple[str, ...]] = {}  # who takes the rows of each fragment of the plan
        # Who has not all rows yet, of each fragment here; nobody is known before the plan is.
        self._sending: dict[int, set[str]] = {fragment: set() for fragment in execute.fragments}
        self._relaying: set[ChannelId] = set(execute.relays)  # channels that have not all passed
        self._initiator_gone = False
        self._life = Machine("task of query", execute.query, NEXT, TaskPhase.PLANNING)

    @property
    def phase(self) -> TaskPhase:
        return self._life.phase

    def begin(self, plan: Plan | None, *, is_asked: bool = False) -> list[TaskInstruction]:
        """`plan` as the cache has it; without it the initiator is asked, unless another query has done that.

        Relays need no plan: a member that runs no fragment asks for none.
        """
        relays = [RelayChannel(channel) for channel in self.execute.relays]
        if not self.execute.fragments and relays:
            self._life.move(TaskEvent.PLANNED)
            return [*relays]
        if plan is None and is_asked:
            return [*relays]
        if plan is None:
            request = PlanRequest(self.query, self.execute.request_id, self.execute.plan_id)
            return [*relays, Send(self.query.initiator, request)]
        return [*relays, *self.plan_arrived(plan)]

    def plan_arrived(self, plan: Plan | None) -> list[TaskInstruction]:
        if self.phase is TaskPhase.PLANNING and (wrong := self._mistake_in(plan)):
            return self.failed(PeerError(f"query {self.query}: {wrong}"))
        if plan is None or not self._life.move(TaskEvent.PLANNED):
            return []
        self.plan, self.readers = plan, plan.readers()
        self._sending = {fragment: {*self.readers[fragment]} for fragment in self.execute.fragments}
        mine = {fragment.id: fragment for fragment in plan.fragments if fragment.member == self._member}
        return [*(RunFragment(mine[f]) for f in self.execute.fragments), *self._maybe_release()]

    def fragment_started(self, fragment: int, schema: Schema) -> list[TaskInstruction]:
        self._life.move(TaskEvent.STARTED)
        if self.phase is not TaskPhase.RUNNING:
            return []
        return [Send(self.query.initiator, Started(self.query, self._member, fragment, schema))]

    def fragment_done(
        self, fragment: int, rows: int, size_bytes: int, seconds: float, jobs: tuple[int, ...] = ()
    ) -> list[TaskInstruction]:
        self._life.move(TaskEvent.DONE)
        if self.phase is not TaskPhase.RUNNING:
            return []
        self._running.discard(fragment)
        done = FragmentDone(self.query, self._member, fragment, rows, size_bytes, seconds, jobs)
        return [Send(self.query.initiator, done), *self._maybe_release()]

    def output_taken(self, fragment: int, receiver: str) -> list[TaskInstruction]:
        """This receiver has all rows of the fragment (or wants no more)."""
        self._life.move(TaskEvent.TAKEN)
        self._sending[fragment].discard(receiver)
        return self._maybe_release()

    def relayed(self, channel: ChannelId) -> list[TaskInstruction]:
        """The next member on its way has all rows of this channel (or wants no more)."""
        self._life.move(TaskEvent.RELAYED)
        self._relaying.discard(channel)
        return self._maybe_release()

    def output_stopped(
        self, fragment: int, receiver: str, rows: int, size_bytes: int, seconds: float
    ) -> list[TaskInstruction]:
        """This receiver wants no more (a LIMIT is full): a fragment that still runs, for nobody else, is done with."""
        self._life.move(TaskEvent.STOPPED)
        is_unwanted = self._sending[fragment] <= {receiver}
        runs = fragment in self._running and self.phase is TaskPhase.RUNNING
        stops = [StopFragment(fragment)] if is_unwanted and runs else []
        done = self.fragment_done(fragment, rows, size_bytes, seconds) if stops else []
        return [*stops, *done, *self.output_taken(fragment, receiver)]

    def failed(self, error: SkerryError) -> list[TaskInstruction]:
        """Something here went wrong: the initiator cancels the whole query, this member stops at once."""
        if not self._life.move(TaskEvent.FAILED):
            return []
        cancel = Cancel(self.query, self._member, failure_of(error, self._member))
        return [Send(self.query.initiator, cancel), Release(error.message)]

    def cancelled(self, why: str) -> list[TaskInstruction]:
        """The initiator says that it is over."""
        return [Release(why)] if self._life.move(TaskEvent.CANCELLED) else []

    def initiator_lost(self) -> list[TaskInstruction]:
        """Nobody is left to tell: stop on our own."""
        self._initiator_gone = True
        return self.cancelled("the initiator is lost")

    def tick(self, now: float) -> list[TaskInstruction]:
        # The initiator enforces the same timeout; this one holds when it cannot reach us.
        if now < self.deadline + 1.0:
            return []
        return self.failed(TimedOut(f"query {self.query} ran longer than its {self.execute.timeout_s:g} s"))

    def released(self, left: tuple[str, ...] = ()) -> list[TaskInstruction]:
        """Nothing of the query is left here, but for what `left` names."""
        if not self._life.move(TaskEvent.RELEASED) or self._initiator_gone:
            return []
        return [Send(self.query.initiator, Receipt(self.query, self._member, left))]

    def _mistake_in(self, plan: Plan | None) -> str:
        """Why the query cannot run by this plan; "" if it can."""
        if plan is None:
            return "its plan is no longer known to the initiator"
        if plan.plan_id != self.execute.plan_id:
            return "another plan arrived than the one asked for"
        mine = {fragment.id for fragment in plan.fragments if fragment.member == self._member}
        unknown = [fragment for fragment in self.execute.fragments if fragment not in mine]
        if len(self._running) != len(self.execute.fragments):
            return "it is to run a fragment twice"
        told = self.execute.schema_info
        if any(told.get(name) != version for name, version in plan.schema_info.items() if self._is_own(name)):
            return "its tables are others than those of its plan"
        for fragment in plan.fragments:
            for leaf in fragment.leaves if fragment.id in self._running and fragment.member == self._member else ():
                if isinstance(leaf, VirtualLeaf) and not self._has_rows(leaf):
                    return "it came with other rows than those of its plan"
        return f"fragments {unknown} are not in its plan" if unknown else self._unwritten(plan.ends_in)

    def _has_rows(self, leaf: VirtualLeaf) -> bool:
        rows = self.execute.virtual_tables.get(leaf.placeholder)
        return rows is not None and virtual_name(leaf.columns, rows) == leaf.placeholder

    def _is_own(self, table: str) -> bool:
        return table.startswith(f"{self._member}.")

    def _unwritten(self, ends_in: Ending) -> str:
        """Members have no sinks yet: rows are not said to be written that nobody would write."""
        match ends_in:
            case Written(sink, fragments):
                return f"site {self._member} has no sink {sink}" if {*fragments} & {*self.execute.fragments} else ""
            case Rows() | Count():
                return ""
            case never:
                assert_never(never)

    def _maybe_release(self) -> list[TaskInstruction]:
        if self.phase is not TaskPhase.RUNNING or self._running or any(self._sending.values()) or self._relaying:
            return []
        self._life.move(TaskEvent.COMPLETED)
        return [Release("complete")]

    # --- for tests -------------------------------------------------------------------------------
    def validate(self) -> None:
        """What always holds, whatever came in which order."""
        assert self._running | self._sending.keys() <= set(self.execute.fragments)
        assert all(left <= {*self.readers.get(fragment, ())} for fragment, left in self._sending.items())
        assert self._relaying <= set(self.execute.relays)
        assert self.plan is not None or self.phase is not TaskPhase.RUNNING or not self.execute.fragments
        if self.phase is TaskPhase.RUNNING:
            assert self._running or any(self._sending.values()) or self._relaying

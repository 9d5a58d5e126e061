"""A sender of rows to an elastic group-by: to whom each row goes, by the table in force here. Pure.

Rows that went by an older table are not called back: whoever has them forwards them.
"""

from __future__ import annotations

from collections import Counter

from skerry.exchange.groupby.contract import Deliver, Instruction, LetGo, Rows, Send
from skerry.exchange.groupby.sayings import Sayings
from skerry.model.errors import SiteError, SkerryError
from skerry.model.ids import GroupById
from skerry.model.limits import GroupByLimits
from skerry.model.ranges import RoutingTable, first_table
from skerry.model.transitions import Machine, Step, staying
from skerry.wire.groupby_messages import (
    Dismiss,
    End,
    Ended,
    Failed,
    FromManager,
    Redirect,
    Redirected,
    SenderDone,
)
from skerry.wire.values import error_of, failure_of


class RouterPhase(Step):
    SENDING = "sending"
    DONE = "done"  # all rows are on their channels; the end is awaited
    GONE = "gone"


class RouterEvent(Step):
    ROWS = "rows are sent"
    REDIRECTED = "a table came"
    DONE = "no more rows"
    ENDED = "End came"
    BROKE = "something failed here, or the manager is lost or silent"


_P, _E = RouterPhase, RouterEvent
NEXT: dict[tuple[RouterPhase, RouterEvent], RouterPhase] = {
    (_P.SENDING, _E.ROWS): _P.SENDING,
    **staying((_P.SENDING, _P.DONE), _E.REDIRECTED),
    (_P.SENDING, _E.DONE): _P.DONE,
    **{(phase, event): _P.GONE for phase in _P for event in (_E.ENDED, _E.BROKE)},
}


def routed(table: RoutingTable, rows: Rows) -> list[tuple[str, Rows]]:
    """Who gets which of the rows, in the order of places; nobody gets none."""
    parts = rows.parts(table.bounds)
    return [(each.member, part) for each, part in zip(table.ranges, parts, strict=True) if part.weight]


class RouterCore:
    """Begins with the table that has the manager alone, and counts what it sends to whom."""

    def __init__(self, group: GroupById, manager: str, limits: GroupByLimits, now: float) -> None:
        self.group = group
        self.manager = manager
        self.table = first_table(manager)
        self.rows_sent: Counter[str] = Counter()
        self.error: SkerryError | None = None
        self._limits = limits
        self._heard_at = now
        self._sayings = Sayings(limits.repeat_s, limits.alive_s)
        self._life = Machine("sender of", group, NEXT, RouterPhase.SENDING)

    def __repr__(self) -> str:
        return str(self._life)

    @property
    def phase(self) -> RouterPhase:
        return self._life.phase

    @property
    def deadline(self) -> float | None:
        if self.phase is RouterPhase.GONE:
            return None
        lease = self._heard_at + self._limits.lease_s
        repeat = self._sayings.deadline
        return lease if repeat is None else min(lease, repeat)

    def send(self, rows: Rows) -> list[Instruction]:
        """Rows of the fragment, each of weight 1."""
        self._life.move(RouterEvent.ROWS)
        parts = routed(self.table, rows)
        for member, part in parts:
            self.rows_sent[member] += part.weight
        return [Deliver(member, part) for member, part in parts]

    def done(self, now: float) -> list[Instruction]:
        """The fragment has no more rows."""
        self._life.move(RouterEvent.DONE)
        return [self._sayings.say(self.manager, SenderDone(self.group, dict(self.rows_sent)), now)]

    def received(self, message: FromManager, now: float) -> list[Instruction]:
        """From the manager. What is meant for a worker says nothing here."""
        if isinstance(message, Dismiss):
            return []
        if self.phase is RouterPhase.GONE:
            return self._received_late(message)
        self._heard_at = now
        match message:
            case Redirect(table=table):
                table.check()
                self._life.move(RouterEvent.REDIRECTED)
                if table.epoch > self.table.epoch:
                    self.table = table
                return [Send(self.manager, Redirected(self.group, self.table.epoch, is_sender=True))]
            case End(failure=failure):
                self._life.move(RouterEvent.ENDED)
                self._sayings.clear()
                self.error = error_of(failure) if failure is not None else None
                return [LetGo(self.error), Send(self.manager, Ended(self.group))]
        return []

    def _received_late(self, message: FromManager) -> list[Instruction]:
        match message:
            case End():
                return [Send(self.manager, Ended(self.group))]
            case Redirect() if self.error is not None:
                return [Send(self.manager, Failed(self.group, failure_of(self.error)))]
        return []

    def lost(self, member: str, error: SkerryError) -> list[Instruction]:
        """No session with that member any more. Its channels tell of themselves."""
        return self.failed(error) if member == self.manager else []

    def failed(self, error: SkerryError) -> list[Instruction]:
        """Something failed here: a channel, the fragment."""
        if not self._life.move(RouterEvent.BROKE):
            return []
        self.error = error
        self._sayings.clear()
        return [LetGo(error), Send(self.manager, Failed(self.group, failure_of(error)))]

    def tick(self, now: float) -> list[Instruction]:
        if self.phase is RouterPhase.GONE:
            return []
        if now >= self._heard_at + self._limits.lease_s:
            return self.failed(stranded(self.group, self.manager, self._limits))
        return self._sayings.again(now)


def stranded(group: GroupById, member: str, limits: GroupByLimits) -> SkerryError:
    """A manager that says nothing any more, or one that no longer answers it."""
    return SiteError(
        f"{group}: nothing was heard of {member} for {limits.lease_s:g} s",
        member=member,
        suggestion=f"check that {member} runs and can be reached, then ask again",
    )

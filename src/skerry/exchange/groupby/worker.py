"""A worker of an elastic group-by: folds the keys of its range, forwards all others, gives half of its range away when
it has grown, and says how much it holds. Pure (docs/protocol.md, 16.3)."""

from __future__ import annotations

from skerry.exchange.groupby.contract import Deliver, DeliverShare, GiveOn, Instruction, LetGo, Rows, Send, State
from skerry.exchange.groupby.router import routed, stranded
from skerry.exchange.groupby.sayings import Sayings
from skerry.model.errors import PeerError, SiteError, SkerryError
from skerry.model.ids import GroupById
from skerry.model.limits import GroupByLimits
from skerry.model.ranges import RoutingTable
from skerry.model.transitions import Machine, Step, staying
from skerry.wire.groupby_messages import (
    Count,
    Dismiss,
    Dismissed,
    End,
    Ended,
    Failed,
    Finish,
    FromManager,
    Give,
    Given,
    HandOver,
    Online,
    Recruit,
    Recruited,
    Redirect,
    Redirected,
    Spill,
    Split,
)
from skerry.wire.values import error_of, failure_of


class WorkerPhase(Step):
    JOINING = "joining"  # its share is awaited
    WORKING = "working"
    COUNTED = "counted"  # it was asked how much it holds; rows may still come
    GIVING = "giving"
    GIVEN = "given"
    GONE = "gone"


class WorkerEvent(Step):
    SHARE = "a part of its share came"
    WHOLE = "its share is whole"
    ROWS = "rows came"
    TABLE = "Redirect or Spill came"
    HAND_OVER = "HandOver came"
    FINISH = "Finish came"
    GIVE = "Give came"
    GIVEN = "its groups are given on"
    ENDED = "End or Dismiss came"
    BROKE = "something failed here, or the manager is lost or silent"


_P, _E = WorkerPhase, WorkerEvent
_LIVE = (_P.JOINING, _P.WORKING, _P.COUNTED, _P.GIVING, _P.GIVEN)
_HOLDING = (_P.WORKING, _P.COUNTED)
# Rows or a share where there is no row are a mistake of whoever sent them: the weights had agreed, or nothing was due.
NEXT: dict[tuple[WorkerPhase, WorkerEvent], WorkerPhase] = {
    (_P.JOINING, _E.SHARE): _P.JOINING,
    (_P.JOINING, _E.WHOLE): _P.WORKING,
    **staying(_HOLDING, _E.ROWS),
    **staying(_LIVE, _E.TABLE),
    (_P.WORKING, _E.HAND_OVER): _P.WORKING,
    (_P.COUNTED, _E.HAND_OVER): _P.WORKING,
    (_P.WORKING, _E.FINISH): _P.COUNTED,
    **staying((_P.COUNTED, _P.GIVING, _P.GIVEN), _E.FINISH),
    (_P.COUNTED, _E.GIVE): _P.GIVING,
    **staying((_P.GIVING, _P.GIVEN), _E.GIVE),
    (_P.GIVING, _E.GIVEN): _P.GIVEN,
    **{(phase, event): _P.GONE for phase in _P for event in (_E.ENDED, _E.BROKE)},
}


class WorkerCore:
    """The manager's own begins with all keys (`table`); a recruit with the share of `epoch` that `giver` sends.

    A recruit needs no table before it gives something away: until then all that comes to it is its own.
    """

    def __init__(
        self,
        group: GroupById,
        me: str,
        manager: str,
        state: State,
        limits: GroupByLimits,
        now: float,
        *,
        epoch: int,
        giver: str = "",
        table: RoutingTable | None = None,
    ) -> None:
        self.group = group
        self.me = me
        self.manager = manager
        self.state = state
        self.epoch = epoch  # the newest that is known here
        self.table = table
        self.is_spilling = False
        self.rows_forwarded = 0
        self.error: SkerryError | None = None
        self._share = (giver, epoch)
        self._limits = limits
        self._heard_at = now
        self._splits = 0  # wishes to split, so far
        self._wish: Split | None = None  # the one that has no answer
        self._is_alone = False  # nobody is left to recruit
        self._whole_groups = 0  # so many there were when no cut would have helped
        self._groups_given = 0
        self._sayings = Sayings(limits.repeat_s, limits.alive_s)
        first = WorkerPhase.WORKING if table is not None else WorkerPhase.JOINING
        self._life = Machine("worker of", group, NEXT, first)

    def __repr__(self) -> str:
        return str(self._life)

    @property
    def phase(self) -> WorkerPhase:
        return self._life.phase

    @property
    def deadline(self) -> float | None:
        if self.phase is WorkerPhase.GONE:
            return None
        lease = self._heard_at + self._limits.lease_s
        repeat = self._sayings.deadline
        return lease if repeat is None else min(lease, repeat)

    # --- rows ------------------------------------------------------------------------------------
    def rows(self, rows: Rows, now: float) -> list[Instruction]:
        """Rows of a sender, or forwarded by a worker with an older table. None is ever dropped."""
        self._move(WorkerEvent.ROWS)
        if self.table is None:
            self.state.fold(rows)
            return self._grown(now)
        instructions: list[Instruction] = []
        for member, part in routed(self.table, rows):
            if member == self.me:
                self.state.fold(part)
            else:
                self.rows_forwarded += part.weight
                instructions.append(Deliver(member, part))
        return instructions + self._grown(now)

    def share(self, sender: str, epoch: int, rows: Rows | None, now: float) -> list[Instruction]:
        """A part of what another worker hands over to this one; None says that this was all of it."""
        if (sender, epoch) != self._share:
            raise PeerError(f"{self!r}: a share of epoch {epoch} came from {sender}; due was {self._share}")
        if rows is not None:
            self._move(WorkerEvent.SHARE)
            self.state.fold(rows)
            self._bound_memory()
            return []
        self._move(WorkerEvent.WHOLE)
        online = self._sayings.say(self.manager, Online(self.group, epoch), now)
        return [online, *self._grown(now)]

    def _grown(self, now: float) -> list[Instruction]:
        """Ask for a split if the state is large; whatever becomes of that, memory is bounded."""
        self._bound_memory()
        state, limits = self.state, self._limits
        is_large = state.groups > limits.split_groups or state.size_bytes > limits.split_bytes
        if not is_large or self._is_alone or self._wish is not None or state.groups < 2 * self._whole_groups:
            return []
        at = state.middle()
        if at is None:
            # One key fills the range: wherever it is cut, all of it stays together. Many more keys may change that.
            self._whole_groups = state.groups
            self._spill()
            return []
        self._splits += 1
        self._wish = Split(self.group, self._splits, at, state.groups, state.size_bytes)
        return [self._sayings.say(self.manager, self._wish, now)]

    def _bound_memory(self) -> None:
        if self.state.size_bytes > self._limits.memory_bytes:
            self._spill()

    def _spill(self) -> None:
        if not self.is_spilling:
            self.is_spilling = True
            self._life.note("spills")
            self.state.spill()

    # --- messages --------------------------------------------------------------------------------
    def received(self, message: FromManager, now: float) -> list[Instruction]:
        """From the manager."""
        if self.phase is WorkerPhase.GONE:
            return self._received_late(message)
        self._heard_at = now
        match message:
            case Recruit():
                return [Send(self.manager, Recruited(self.group, is_taken=True))]
            case Redirect(table=table):
                self._move(WorkerEvent.TABLE)
                self._know(table)
                return [Send(self.manager, Redirected(self.group, self.epoch, is_sender=False))]
            case HandOver():
                return self._hand_over(message, now)
            case Spill(number=number):
                self._move(WorkerEvent.TABLE)
                self._answered(number)
                self._is_alone = True
                self._spill()
            case Finish(round=round, table=table):
                self._move(WorkerEvent.FINISH)
                self._know(table)
                return [Send(self.manager, Count(self.group, round, self.state.weight))]
            case Give():
                return self._give()
            case Dismiss():
                return [*self._end(None), Send(self.manager, Dismissed(self.group))]
            case End(failure=failure):
                error = error_of(failure) if failure is not None else None
                return [*self._end(error), Send(self.manager, Ended(self.group))]
        return []

    def _received_late(self, message: FromManager) -> list[Instruction]:
        """It is over here, and stays so."""
        match message:
            case End():
                return [Send(self.manager, Ended(self.group))]
            case Dismiss():
                return [Send(self.manager, Dismissed(self.group))]
            case Recruit():
                return [Send(self.manager, Recruited(self.group, is_taken=False))]
            case Redirect() if self.error is None:
                return []  # for rows that this member sends, which may go on without this part of it
        error = self.error or SiteError(f"{self.group} is over at {self.me}", member=self.me)
        return [Send(self.manager, Failed(self.group, failure_of(error)))]

    def _know(self, table: RoutingTable) -> None:
        """A newer table wins. The one that brought this worker in says that the manager knows it to be online."""
        table.check()
        if table.epoch >= self._share[1]:
            self._sayings.answered(Online, self.manager)
        if table.epoch > self.epoch or (self.table is None and table.epoch == self.epoch):
            self.epoch, self.table = table.epoch, table

    def _hand_over(self, message: HandOver, now: float) -> list[Instruction]:
        """Its shares go first on their channels: what comes for the new ones from now on waits behind them."""
        message.table.check()
        if message.table.epoch <= self.epoch:
            return []
        self._move(WorkerEvent.HAND_OVER)
        self._answered(message.number)
        self._know(message.table)
        shares: list[Instruction] = []
        for each in message.table.ranges:
            if each.member in message.to:
                parts = self.state.take(each.first, each.upto)
                shares.append(DeliverShare(each.member, self.epoch, parts))
        return shares + self._grown(now)

    def _answered(self, number: int) -> None:
        if self._wish is not None and self._wish.number <= number:
            self._wish = None
            self._sayings.answered(Split, self.manager)

    def _give(self) -> list[Instruction]:
        if self._move(WorkerEvent.GIVE):
            self._sayings.clear()
            self._groups_given = self.state.groups
            return [GiveOn()]
        return [self._given()] if self.phase is WorkerPhase.GIVEN else []

    def given(self) -> list[Instruction]:
        """What follows has all groups."""
        if self.phase is WorkerPhase.GONE:
            return []
        self._life.move(WorkerEvent.GIVEN)
        return [self._given()]

    def _move(self, event: WorkerEvent) -> bool:
        """For what a peer can cause: without a row in the table it is the peer's mistake."""
        if not self._life.takes(event):
            raise PeerError(f"{self!r} at {self.me}: {event.value}, which was not due")
        return self._life.move(event)

    # --- ends ------------------------------------------------------------------------------------
    def _end(self, error: SkerryError | None) -> list[Instruction]:
        self._life.move(WorkerEvent.ENDED)
        return [self._let_go(error)]

    def _let_go(self, error: SkerryError | None) -> Instruction:
        self.error = error
        self._wish = None
        self._sayings.clear()
        self.state.clear()
        return LetGo(error)

    def lost(self, member: str, error: SkerryError) -> list[Instruction]:
        """No session with that member any more. Its channels tell of themselves."""
        return self.failed(error) if member == self.manager else []

    def failed(self, error: SkerryError) -> list[Instruction]:
        """Something failed here: a channel, the disk, a peer that broke the protocol."""
        if not self._life.move(WorkerEvent.BROKE):
            return []
        return [self._let_go(error), Send(self.manager, Failed(self.group, failure_of(error)))]

    def tick(self, now: float) -> list[Instruction]:
        if self.phase is WorkerPhase.GONE:
            return []
        if now >= self._heard_at + self._limits.lease_s:
            return self.failed(stranded(self.group, self.manager, self._limits))
        return self._sayings.again(now)

    def _given(self) -> Instruction:
        return Send(self.manager, Given(self.group, self._groups_given))

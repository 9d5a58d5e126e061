"""The manager of an elastic group-by: tells all the table in force, proves that no row is missing, and ends it for all.
Pure (docs/protocol.md, 16).

It holds no rows: the first worker is its own member's. How it grows is in `growth.py`, the proof in `counting.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from skerry.exchange.groupby.contract import Conclude, Forget, Instruction, Send
from skerry.exchange.groupby.counting import Counting, Sum
from skerry.exchange.groupby.growth import Growth
from skerry.exchange.groupby.router import stranded
from skerry.exchange.groupby.sayings import Sayings
from skerry.model.errors import PeerError, SiteError, SkerryError
from skerry.model.ids import GroupById
from skerry.model.limits import GroupByLimits
from skerry.model.ranges import RoutingTable
from skerry.model.transitions import Machine, Step, staying
from skerry.wire.groupby_messages import (
    Count,
    Dismissed,
    End,
    Ended,
    Failed,
    Finish,
    Give,
    Given,
    Online,
    Recruited,
    Redirect,
    Redirected,
    SenderDone,
    Split,
    ToManager,
)
from skerry.wire.values import error_of, failure_of


class ManagerPhase(Step):
    GROWING = "growing"  # rows come, or a split is under way
    COUNTING = "counting"  # all senders are done
    GIVING = "giving"  # all rows are there
    ENDING = "ending"
    OVER = "over"


class ManagerEvent(Step):
    HEARD = "Recruited, Dismissed, Online, Redirected, SenderDone, Split, Count or Given came"
    SPLITS = "a split is under way"
    ALL_DONE = "all senders are done, and no split is under way"
    EQUAL = "the weights are what was sent"
    COMPLETE = "all workers have given their groups on"
    BROKE = "it failed, was cancelled, or one that is needed is lost"
    ENDED = "all have ended"
    SILENT = "ends took longer than end_s"


_P, _E = ManagerPhase, ManagerEvent
_LIVE = (_P.GROWING, _P.COUNTING, _P.GIVING)
NEXT: dict[tuple[ManagerPhase, ManagerEvent], ManagerPhase] = {
    **staying(_P, _E.HEARD),
    (_P.GROWING, _E.SPLITS): _P.GROWING,
    # A count that was taken before a split says nothing after it.
    (_P.COUNTING, _E.SPLITS): _P.GROWING,
    (_P.GROWING, _E.ALL_DONE): _P.COUNTING,
    (_P.COUNTING, _E.EQUAL): _P.GIVING,
    (_P.GIVING, _E.COMPLETE): _P.ENDING,
    **{(phase, _E.BROKE): _P.ENDING for phase in _LIVE},
    **staying((_P.ENDING, _P.OVER), _E.BROKE),
    (_P.ENDING, _E.ENDED): _P.OVER,
    (_P.ENDING, _E.SILENT): _P.OVER,
}


class ManagerCore:
    """`candidates`: members that may be recruited, with how much they can take; the greatest is asked first."""

    def __init__(
        self,
        group: GroupById,
        me: str,
        senders: Sequence[str],
        candidates: Mapping[str, int],
        limits: GroupByLimits,
        now: float,
    ) -> None:
        self.group = group
        self.me = me
        self.senders = tuple(senders)
        self.error: SkerryError | None = None
        self._limits = limits
        self._sayings = Sayings(limits.repeat_s, limits.alive_s)
        self._growth = Growth(group, me, candidates, limits, self._sayings)
        self._known: dict[tuple[str, bool], int] = {}  # newest epoch of each sender (True) and worker, as told
        self._heard_at: dict[tuple[str, bool], float] = {}  # when it last told one
        self._count = Counting(limits)
        self._given: set[str] = set()
        self._unended: set[str] = set()
        self._alive_at = now + limits.alive_s
        self._end_at = 0.0
        self._life = Machine("manager of", group, NEXT, ManagerPhase.GROWING)

    def __repr__(self) -> str:
        return str(self._life)

    @property
    def phase(self) -> ManagerPhase:
        return self._life.phase

    @property
    def table(self) -> RoutingTable:
        return self._growth.table

    @property
    def splits(self) -> int:
        return self._growth.splits

    @property
    def recruits(self) -> int:
        return len(self._growth.workers) - 1

    @property
    def unended(self) -> frozenset[str]:
        """Who is being told of the end."""
        return frozenset(self._unended)

    @property
    def deadline(self) -> float | None:
        """When `tick` has something to do."""
        if self.phase is ManagerPhase.OVER:
            return None
        if self.phase is ManagerPhase.ENDING:
            times = [self._sayings.deadline, self._end_at]
        else:
            times = [self._sayings.deadline, self._alive_at, self._growth.deadline]
        if self.phase is ManagerPhase.COUNTING:
            times.append(self._count.deadline)
        return min(time for time in times if time is not None)

    # --- messages --------------------------------------------------------------------------------
    def received(self, sender: str, message: ToManager, now: float) -> list[Instruction]:
        """Who sends it is known by its connection; what it says of itself need not be believed."""
        match message:
            case Ended() | Failed():
                return self._broken(sender, message, now)
        self._life.move(ManagerEvent.HEARD)
        if self.phase not in _LIVE:
            return [] if isinstance(message, Dismissed) else [Send(sender, self._end())]
        match message:
            case Recruited() | Online() | Split():
                return self._grow(sender, message, now)
            case Dismissed():
                self._growth.left(sender)
            case Redirected(epoch=epoch, is_sender=is_sender):
                self._known[sender, is_sender] = max(epoch, self._known.get((sender, is_sender), 0))
                self._heard_at[sender, is_sender] = now
                if self._is_up_to_date(sender):
                    self._sayings.answered(Redirect, sender)
            case SenderDone(rows=rows):
                if sender not in self.senders:
                    raise PeerError(f"{self!r}: {sender} is done, and is no sender")
                self._count.sent[sender] = sum(rows.values())
                return self._count_if_due(now)
            case Count():
                return self._counted(sender, message, now)
            case Given():
                return self._has_given(sender, now)
        return []

    def _is_up_to_date(self, member: str) -> bool:
        return all(self._known.get(part, 0) >= self.table.epoch for part in self._parts() if part[0] == member)

    def _parts(self) -> list[tuple[str, bool]]:
        """A member may send rows and be a worker, too."""
        return [*((name, True) for name in self.senders), *((name, False) for name in self._growth.workers)]

    # --- growing ---------------------------------------------------------------------------------
    def _grow(self, sender: str, message: Recruited | Online | Split, now: float) -> list[Instruction]:
        """A wish that comes when all rows are there is late, or needless."""
        epoch = self.table.epoch
        match message:
            case Recruited(is_taken=is_taken):
                said = self._growth.recruited(sender, is_taken, now)
            case Online():
                said = self._growth.online(sender, message.epoch, now)
            case Split():
                said = self._growth.wished(sender, message, now) if self.phase is not ManagerPhase.GIVING else []
        return self._grown(said, epoch, now)

    def _grown(self, said: list[Instruction], epoch: int, now: float) -> list[Instruction]:
        """What follows for all others when something has changed since the table of `epoch`."""
        if self.table.epoch > epoch:
            redirect = Redirect(self.group, self.table)
            said += [self._sayings.say(member, redirect, now) for member in self._all()]
        if self._growth.split is None:
            return said + self._count_if_due(now)
        if self._life.move(ManagerEvent.SPLITS):
            for member in self.table.members:
                self._sayings.answered(Finish, member)
        return said

    def _all(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*self.senders, *self._growth.workers)))

    # --- the end of rows -------------------------------------------------------------------------
    def _count_if_due(self, now: float) -> list[Instruction]:
        is_done = len(self._count.sent) == len(self.senders)
        if not is_done or self._growth.split is not None or self.phase is not ManagerPhase.GROWING:
            return []
        self._life.move(ManagerEvent.ALL_DONE)
        self._count.begin(self.table.members, now)
        return self._ask_counts(now)

    def _ask_counts(self, now: float) -> list[Instruction]:
        finish = Finish(self.group, self._count.round, self.table)
        return [self._sayings.say(member, finish, now) for member in self.table.members]

    def _counted(self, sender: str, count: Count, now: float) -> list[Instruction]:
        if self.phase is not ManagerPhase.COUNTING or count.round != self._count.round:
            return []
        self._sayings.answered(Finish, sender)
        match self._count.counted(sender, count.weight, now):
            case Sum.EQUAL:
                self._life.move(ManagerEvent.EQUAL)
                return [self._sayings.say(member, Give(self.group), now) for member in self.table.members]
            case Sum.EXCESS:
                return self._fail(self._count.doubled(self.group), now)
        return []

    def _has_given(self, sender: str, now: float) -> list[Instruction]:
        if self.phase is not ManagerPhase.GIVING or sender not in self.table.members:
            return []
        self._given.add(sender)
        self._sayings.answered(Give, sender)
        if len(self._given) < len(self.table.members):
            return []
        self._life.move(ManagerEvent.COMPLETE)
        return [Conclude(None), *self._end_all(now)]

    # --- failures and the end --------------------------------------------------------------------
    def lost(self, member: str, error: SkerryError, now: float) -> list[Instruction]:
        """There is no session with that member any more, or it has restarted."""
        self._growth.left(member)
        return self._ended(member) if self.phase not in _LIVE else self._missing(member, error, now)

    def _broken(self, sender: str, message: Ended | Failed, now: float) -> list[Instruction]:
        if self.phase not in _LIVE:
            return self._ended(sender) if isinstance(message, Ended) else []
        over = SiteError(f"{self.group} is over at {sender}", member=sender)
        return self._missing(sender, error_of(message.failure) if isinstance(message, Failed) else over, now)

    def _missing(self, member: str, error: SkerryError, now: float) -> list[Instruction]:
        """One that nothing is needed of may go. In the place of one that has no rows yet another is asked."""
        if member in self._needed():
            return self._fail(error, now)
        return self._grown(self._growth.strike(member, now), self.table.epoch, now)

    def _needed(self) -> set[str]:
        """Without these it cannot be complete."""
        workers = {member for member in self.table.members if member not in self._given}
        if self.phase is ManagerPhase.GIVING:
            return workers
        # The manager's own worker forwards what still comes to it.
        return {*workers, *self._growth.handed, *self.senders, self.me}

    def cancel(self, error: SkerryError, now: float) -> list[Instruction]:
        """Nobody wants the answer any more, or something else of the query failed."""
        return self._fail(error, now) if self.phase in _LIVE else []

    def _fail(self, error: SkerryError, now: float) -> list[Instruction]:
        self._life.move(ManagerEvent.BROKE, str(error))
        self.error = error
        return [Conclude(error), *self._end_all(now)]

    def _end_all(self, now: float) -> list[Instruction]:
        self._sayings.clear()
        self._unended = {*self._all(), *self._growth.asked, *self._growth.dismissed}
        self._end_at = now + self._limits.end_s
        return [self._sayings.say(member, self._end(), now) for member in sorted(self._unended)]

    def _end(self) -> End:
        return End(self.group, failure_of(self.error, self.me) if self.error is not None else None)

    def _ended(self, member: str) -> list[Instruction]:
        self._unended.discard(member)
        self._sayings.answered(End, member)
        if self._unended or self.phase is not ManagerPhase.ENDING:
            return []
        self._life.move(ManagerEvent.ENDED)
        return [Forget(())]

    # --- time ------------------------------------------------------------------------------------
    def tick(self, now: float) -> list[Instruction]:
        if self.phase not in _LIVE:
            return self._tick_ending(now)
        if self.phase is ManagerPhase.COUNTING and self._count.is_stuck(now):
            return self._fail(self._count.stuck(self.group), now)
        said = self._grown(self._growth.tick(now), self.table.epoch, now)
        if self.phase is ManagerPhase.COUNTING and self._count.is_due(now):
            self._count.next_round(self.table.members)
            said += self._ask_counts(now)
        said += self._sayings.again(now)
        return said + self._keep_alive(now) if now >= self._alive_at else said

    def _keep_alive(self, now: float) -> list[Instruction]:
        """Whoever does not answer for as long as it would wait itself is lost, though its member may be there."""
        self._alive_at = now + self._limits.alive_s
        said: list[Instruction] = [Send(member, Redirect(self.group, self.table)) for member in self._all()]
        for part in self._parts():
            if now - self._heard_at.setdefault(part, now) >= self._limits.lease_s and self.phase in _LIVE:
                said += self._missing(part[0], stranded(self.group, part[0], self._limits), now)
        return said

    def _tick_ending(self, now: float) -> list[Instruction]:
        if self.phase is ManagerPhase.OVER:
            return []
        if now < self._end_at:
            return self._sayings.again(now)
        self._life.move(ManagerEvent.SILENT)
        self._sayings.clear()
        return [Forget(tuple(sorted(self._unended)))]

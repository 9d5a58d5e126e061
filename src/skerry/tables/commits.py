"""Commits at one member: its clock, its part in transactions, its decisions, and what it asks of others. Pure.

A shell hands in messages and the time, and does what comes out, in that order (instructions.py). It calls `tick` about
ten times a second.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import assert_never

from skerry.model.commits import (
    Aborted,
    ClockMark,
    Committed,
    Decision,
    Expired,
    Fence,
    Finished,
    Part,
    Prepared,
    Record,
    TransactionId,
)
from skerry.model.errors import PeerError, SiteError, SkerryError
from skerry.model.ids import QueryId
from skerry.model.limits import CommitLimits
from skerry.tables.asking import Asking
from skerry.tables.clock import At, HybridClock, seconds
from skerry.tables.decider import HERE, Decider
from skerry.tables.instructions import (
    After,
    AloneWritten,
    CommitWritten,
    DecisionWritten,
    EndedAlone,
    FenceWritten,
    Instruction,
    Looked,
    MarkWritten,
    Persist,
    PrepareAlone,
    PrepareWritten,
    Send,
)
from skerry.tables.outcomes import Known, Outcomes
from skerry.tables.participant import Participant
from skerry.wire.commit_messages import (
    AskOutcome,
    CommitMessage,
    Decided,
    Done,
    Outcome,
    OutcomeOf,
    Prepare,
    Refusal,
    State,
    Submit,
    Vote,
)
from skerry.wire.values import failure_of


class Commits:
    """`records` are what the member's store holds, in the order in which they were written.

    A member without a disk takes no part and decides nothing: it only asks.
    """

    def __init__(
        self, member: str, limits: CommitLimits, at: At, records: Iterable[Record] = (), *, has_disk: bool = True
    ) -> None:
        self.member = member
        self._limits = limits
        self._has_disk = has_disk
        kept = list(records)
        mark = max((record.upto for record in kept if isinstance(record, ClockMark)), default=0)
        self.clock = HybridClock(limits, mark)
        self._outcomes = Outcomes(self.clock, limits)
        self._participant = Participant(member, self.clock, self._outcomes, limits)
        self._decider = Decider(member, self.clock, self._outcomes, limits)
        self._asking = Asking(limits)
        self._expired_upto = 0
        for record in kept:
            self._restore(record, at)
        self._participant.restored()

    def _restore(self, record: Record, at: At) -> None:
        match record:
            case Prepared() | Committed() | Aborted():
                self._participant.restore(record)
            case Decision() | Finished() | Fence():
                self._decider.restore(record, at)
            case Expired():
                self._outcomes.expire(record.before, self._decider.unfinished)
            case ClockMark():
                pass
            case _:
                assert_never(record)

    @property
    def is_idle(self) -> bool:
        """Nothing is prepared, decided or awaited."""
        return self._participant.is_idle and self._decider.is_idle and self._asking.is_idle

    # --- what the member itself begins -----------------------------------------------------------
    def snapshot(self, seen: int, at: At) -> int:
        """A timestamp to read at, and the first start of what begins now.

        `seen`: the last commit or snapshot that the client was told of, through any member: it sees no less than then.
        """
        self.clock.observe(seen, at, "the member that the client asked before")
        return self.clock.tick(at)

    def read(self, read: str, read_ts: int, tables: frozenset[int], at: At) -> list[Instruction]:
        return self._settle(self._participant.read(read, read_ts, tables, at), at)

    def submit(
        self, txn: TransactionId, first_start: int, read_ts: int, parts: dict[str, Part], at: At, decider: str = ""
    ) -> list[Instruction]:
        """An Answer follows. One participant decides for itself, with one message and one fsync.

        `decider`: who decides in any case. What a query wrote may be elsewhere when it is said again, and whoever
        decided then is to be found.
        """
        request = Submit(txn, first_start, read_ts, parts, self.clock.tick(at))
        decider = decider or (self.member if self._has_disk and len(parts) > 1 else min(parts))
        if decider == self.member:
            return self._settle(self._decider.submit(request, HERE, at), at)
        return self._asking.submit(request, decider, at)

    def committed(self, query: QueryId) -> Known | None:
        """A commit of this query that the member decided, or took part in."""
        return self._outcomes.commit_of(query)

    def is_in_doubt(self, read_ts: int, tables: frozenset[int]) -> bool:
        """Whether a commit at or before that time may be missing here."""
        return self._participant.is_in_doubt(read_ts, tables)

    def is_held(self, table: int) -> bool:
        """Whether staged rows have locked the table here, and are not committed yet."""
        return self._participant.is_held(table)

    def is_named_late(self, table: int) -> bool:
        """Whether readers see staged rows whose commit is still on its way to disk."""
        return self._participant.is_named_late(table)

    def inquire(self, query: QueryId, first_start: int, members: frozenset[str], at: At) -> list[Instruction]:
        """A Tell follows: how the client's statement ended. `members`: all that have a disk."""
        return self._settle(self._asking.inquire(query, first_start, members, at), at)

    # --- what others tell ------------------------------------------------------------------------
    def receive(self, sender: str, message: CommitMessage, at: At) -> list[Instruction]:
        """PeerError if the sender may not say this."""
        return self._settle(self._received(sender, message, at), at)

    def _received(self, sender: str, message: CommitMessage, at: At) -> list[Instruction]:
        match message:
            case Submit():
                try:
                    self.clock.observe(message.clock, at, sender)
                except SkerryError as error:
                    # It may have come before, and run: nobody knows here.
                    failure = failure_of(error, self.member)
                    return [Send(sender, Outcome(message.txn, State.UNKNOWN, failure=failure))]
                return self._decider.submit(message, sender, at)
            case Prepare():
                try:
                    self.clock.observe(message.clock, at, sender)
                except SkerryError as error:
                    return [Send(sender, Refusal(message.txn, self.member, failure_of(error, self.member), False))]
                return self._participant.prepare(sender, message, at)
            case Vote() | Refusal() | Done():
                if message.member != sender:
                    raise PeerError(f"transaction {message.txn}: {sender} speaks for {message.member}")
                return self._counted(message, at)
            case Decided():
                return self._participant.decided(sender, message)
            case Outcome():
                self._saw(message.commit_ts, sender, at)
                return self._asking.answered(sender, message)
            case AskOutcome():
                return self._decider.asked_outcome(message, sender)
            case OutcomeOf():
                self._saw(message.commit_ts, sender, at)
                return self._asking.told(sender, message)
        assert_never(message)

    def _saw(self, commit_ts: int, sender: str, at: At) -> None:
        """Whoever wrote through this member reads what it wrote; a time too far ahead is no commit's."""
        with suppress(SiteError):
            self.clock.observe(commit_ts, at, sender)

    def _counted(self, message: Vote | Refusal | Done, at: At) -> list[Instruction]:
        match message:
            case Vote():
                return self._decider.voted(message, at)
            case Refusal():
                return self._decider.refused(message)
            case Done():
                return self._decider.done(message)

    def lost(self, member: str, error: SkerryError, at: At) -> list[Instruction]:
        """Nobody can reach that member now. It may be back any time: only what waits for its vote need not wait, nor
        what was never sent to it."""
        return self._settle([*self._decider.lost(member, error), *self._asking.lost(member, error)], at)

    def up(self, member: str, at: At) -> list[Instruction]:
        """There is a connection to that member, again or for the first time."""
        return self._settle(self._asking.up(member, at), at)

    # --- what the shell has done -----------------------------------------------------------------
    def withheld(self, txn: TransactionId) -> None:
        """A Submit of it was not sent, for its decider has no connection. That is dialled; `up` or `lost` tells."""
        self._asking.withheld(txn)

    def looked(self, txn: TransactionId, number: int, looked: Looked, at: At) -> list[Instruction]:
        return self._settle(self._participant.looked(txn, number, looked, at), at)

    def persisted(self, then: tuple[After, ...], at: At) -> list[Instruction]:
        return self._settle([each for after in then for each in self._after(after, at)], at)

    def unwritten(self, persist: Persist, error: SkerryError, at: At) -> list[Instruction]:
        """Surely nothing of it is on disk. What nobody was told of is given up; what is decided is to be written when
        there is room, before all that follows it."""
        given_up: list[Instruction] = []
        kept = [after for after in persist.then if isinstance(after, CommitWritten | FenceWritten)]
        records = tuple(record for record in persist.records if not isinstance(record, ClockMark))
        for after in persist.then:
            match after:
                case MarkWritten():
                    self.clock.mark_failed()
                    given_up += self._participant.reads_ready()
                case PrepareWritten(txn, prepare_ts):
                    records = ()
                    given_up += self._participant.unwritten(txn, prepare_ts, error)
                case AloneWritten(txn):
                    records = ()
                    given_up += self._participant.unwritten(txn, None, error)
                case DecisionWritten(txn):
                    records = ()
                    given_up += self._decider.unwritten(txn, error)
                case CommitWritten() | FenceWritten():
                    pass
                case _:
                    assert_never(after)
        again = [Persist(records, tuple(kept), is_urgent=False)] if records else []
        return self._settle([*again, *given_up], at)

    def _after(self, after: After, at: At) -> list[Instruction]:
        match after:
            case MarkWritten(upto):
                self.clock.mark_written(upto)
                return self._participant.reads_ready()
            case PrepareWritten():
                return self._participant.prepare_written(after, at)
            case AloneWritten(txn):
                return self._participant.alone_written(txn)
            case CommitWritten(txn):
                return self._participant.commit_written(txn)
            case DecisionWritten(txn):
                return self._decider.decision_written(txn)
            case FenceWritten():
                return self._decider.fence_written(after)
        assert_never(after)

    def tick(self, at: At) -> list[Instruction]:
        told = [*self._decider.tick(at), *self._participant.tick(at), *self._asking.tick(at)]
        return self._settle([*told, *self._expire()], at)

    def _expire(self) -> list[Instruction]:
        """Now and then: a hundredth of the time that ids are kept."""
        before = self._outcomes.oldest_kept()
        if before - self._expired_upto < seconds(self._limits.ids_kept_s / 100):
            return []
        self._expired_upto = before
        gone = self._outcomes.expire(before, self._decider.unfinished)
        return [Persist((Expired(before),), is_urgent=False)] if gone else []

    # --- what is for this member itself ----------------------------------------------------------
    def _settle(self, instructions: list[Instruction], at: At) -> list[Instruction]:
        """Messages to itself are obeyed here; the clock's mark goes to disk with what is written anyway."""
        settled: list[Instruction] = []
        todo = list(reversed(instructions))
        while todo:
            instruction = todo.pop()
            match instruction:
                case Send(self.member, message):
                    more = self._received(self.member, message, at)
                case PrepareAlone():
                    more = self._participant.prepare_alone(instruction, at)
                case EndedAlone():
                    more = self._decider.ended_alone(instruction)
                case _:
                    settled.append(instruction)
                    continue
            todo += reversed(more)
        return self._with_mark(settled, at)

    def _with_mark(self, instructions: list[Instruction], at: At) -> list[Instruction]:
        mark = self.clock.next_mark(at) if self._has_disk else None
        if mark is None:
            return instructions
        written = MarkWritten(mark.upto)
        for place, each in enumerate(instructions):
            if isinstance(each, Persist):
                with_mark = Persist((*each.records, mark), (written, *each.then), each.is_urgent)
                return [*instructions[:place], with_mark, *instructions[place + 1 :]]
        return [*instructions, Persist((mark,), (written,))]

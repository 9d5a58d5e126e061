"""The decider of transactions: collects votes, writes its decision, then says it. Pure (docs/protocol.md, 11.3).

Nothing is said before it is on disk. Who asks about a transaction without a record makes the decider write an abort
first: so no vote that comes later can turn it.
"""

from __future__ import annotations

from collections import Counter

import msgspec

from skerry.model.commits import Decision, Fence, Finished, TransactionId
from skerry.model.errors import Overloaded, PeerError, SkerryError, TimedOut, UserError
from skerry.model.ids import QueryId
from skerry.model.limits import CommitLimits
from skerry.model.sharded import BucketMap
from skerry.model.transitions import Machine, Step, staying
from skerry.tables.clock import At, HybridClock
from skerry.tables.instructions import (
    Answer,
    DecisionWritten,
    EndedAlone,
    FenceWritten,
    Instruction,
    Moved,
    Persist,
    PrepareAlone,
    Send,
)
from skerry.tables.outcomes import Known, Outcomes
from skerry.wire.commit_messages import (
    AskOutcome,
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
from skerry.wire.messages import Failure
from skerry.wire.values import failure_of

HERE = ""  # who asked for the commit, when that was at the decider itself


class DecidingPhase(Step):
    COLLECTING = "collecting"  # votes are awaited
    COMMITTING = "committing"  # the commit is on its way to disk
    ABORTING = "aborting"  # the abort is
    COMMITTED = "committed"  # answered; participants are told
    ENDED = "ended"


class DecidingEvent(Step):
    VOTED = "all have voted"
    REFUSED = "one refused, time is up, or nobody knows of it"
    WRITTEN = "the decision is on disk"
    UNWRITTEN = "the disk had no room for it"
    ALONE = "its only participant, here, has committed"
    DONE = "all participants have it on disk"


_P, _E = DecidingPhase, DecidingEvent
NEXT: dict[tuple[DecidingPhase, DecidingEvent], DecidingPhase] = {
    (_P.COLLECTING, _E.VOTED): _P.COMMITTING,
    (_P.COLLECTING, _E.REFUSED): _P.ABORTING,
    # Once a decision is on its way to disk nothing changes it.
    **staying((_P.COMMITTING, _P.ABORTING, _P.COMMITTED), _E.REFUSED),
    (_P.COMMITTING, _E.WRITTEN): _P.COMMITTED,
    (_P.ABORTING, _E.WRITTEN): _P.ENDED,
    # A decision that is nowhere is an abort, whoever asks and after any restart.
    (_P.COMMITTING, _E.UNWRITTEN): _P.ENDED,
    (_P.ABORTING, _E.UNWRITTEN): _P.ENDED,
    (_P.COLLECTING, _E.ALONE): _P.ENDED,
    (_P.COMMITTED, _E.DONE): _P.ENDED,
}


class _Deciding:
    """One transaction. `origins` are still to be answered, `askers` are in doubt and told when it is decided."""

    def __init__(self, txn: TransactionId, first_start: int, now: float, limits: CommitLimits) -> None:
        self.txn = txn
        self.first_start = first_start
        self.request: Submit | None = None
        self.origins: list[str] = []
        self.askers: set[str] = set()
        self.votes: dict[str, Vote] = {}
        self.unacked: set[str] = set()
        self.commit_ts = 0
        self.rows = 0
        self.moved: BucketMap | None = None
        self.failure: Failure | None = None
        self.is_retryable = False
        self.is_alone = False
        self.wait_s = limits.vote_wait_s
        self.until = now + self.wait_s
        self.pause_s = limits.repeat_s
        self.repeat_at = now + limits.repeat_s
        self.life = Machine("decision of", txn, NEXT, DecidingPhase.COLLECTING)

    @property
    def participants(self) -> tuple[str, ...]:
        return tuple(sorted(self.request.parts)) if self.request is not None else ()


class Decider:
    """All decisions of one member. `outcomes` holds those on disk."""

    def __init__(self, member: str, clock: HybridClock, outcomes: Outcomes, limits: CommitLimits) -> None:
        self._member = member
        self._clock = clock
        self._outcomes = outcomes
        self._limits = limits
        self._deciding: dict[TransactionId, _Deciding] = {}
        self._undecided: Counter[QueryId] = Counter()  # attempts whose decision is not on disk

    @property
    def is_idle(self) -> bool:
        return not self._deciding

    @property
    def unfinished(self) -> frozenset[TransactionId]:
        return frozenset(self._deciding)

    # --- after a start ---------------------------------------------------------------------------
    def restore(self, record: Decision | Finished | Fence, at: At) -> None:
        match record:
            case Decision():
                known = Known(record.first_start, record.commit_ts, record.rows)
                self._outcomes.add(record.txn, known)
                self._clock.raise_to(record.commit_ts)
                if record.participants:
                    deciding = _Deciding(record.txn, record.first_start, at.s, self._limits)
                    deciding.life.phase = DecidingPhase.COMMITTED
                    deciding.commit_ts, deciding.rows = record.commit_ts, record.rows
                    deciding.unacked = set(record.participants)
                    deciding.repeat_at = at.s
                    self._deciding[record.txn] = deciding
            case Finished():
                self._deciding.pop(record.txn, None)
            case Fence():
                self._outcomes.fence(record.query, record.first_start)

    # --- requests --------------------------------------------------------------------------------
    def submit(self, request: Submit, origin: str, at: At) -> list[Instruction]:
        """`origin` is answered once the outcome is on disk. The same request said again runs once."""
        txn = request.txn
        if (known := self._outcomes.of(txn) or self._outcomes.commit_of(txn.query)) is not None:
            # Why it was aborted is forgotten, or was said to an earlier life of who asks: the next attempt tells.
            return [_answer(origin, _outcome_of(txn, known, is_retryable=True))]
        if (deciding := self._deciding.get(txn)) is not None:
            deciding.origins += [origin] if origin not in deciding.origins else []
            return []
        if txn.query in self._undecided:
            # Of an earlier life of who asks; this one has not begun, and is not to be known as aborted.
            failure = failure_of(Overloaded(f"transaction {txn}: an earlier attempt is still being decided"))
            return [_answer(origin, Outcome(txn, State.ABORTED, failure=failure, is_retryable=True))]
        if not request.parts:  # who has no disk asks whether the query was committed before; it has not been
            return [_answer(origin, Outcome(txn, State.ABORTED))]
        if not self._outcomes.is_kept(request.first_start):
            text = f"transaction {txn}: its id is too old for {self._member} to know whether it was committed before"
            return [_answer(origin, Outcome(txn, State.UNKNOWN, failure=failure_of(UserError(text))))]
        is_full = len(self._deciding) >= self._limits.transactions
        deciding = self._begin(txn, request.first_start, at)
        deciding.request, deciding.origins = request, [origin]
        deciding.wait_s += longer_s(request, self._limits)
        deciding.until = at.s + deciding.wait_s
        if self._outcomes.is_fenced(txn.query):
            return self._abort(
                deciding, UserError(f"transaction {txn}: it was asked about before it came, and given up")
            )
        if is_full:
            text = f"site {self._member}: {self._limits.transactions} transactions are being decided; try again shortly"
            return self._abort(deciding, Overloaded(text), is_retryable=True)
        if deciding.participants == (self._member,):
            deciding.is_alone = True
            part = request.parts[self._member]
            return [PrepareAlone(txn, request.first_start, request.read_ts, part)]
        return self._prepares(deciding, at)

    def _begin(self, txn: TransactionId, first_start: int, at: At) -> _Deciding:
        deciding = self._deciding[txn] = _Deciding(txn, first_start, at.s, self._limits)
        self._undecided[txn.query] += 1
        return deciding

    def _is_decided(self, deciding: _Deciding, known: Known) -> None:
        """Its decision is on disk."""
        self._outcomes.add(deciding.txn, known)
        self._undecided[deciding.txn.query] -= 1
        if not self._undecided[deciding.txn.query]:
            del self._undecided[deciding.txn.query]
        if deciding.life.phase is DecidingPhase.ENDED:
            del self._deciding[deciding.txn]

    def _prepares(self, deciding: _Deciding, at: At) -> list[Instruction]:
        """To those that have not voted: to others first, whose way is longer, then to this member itself."""
        request = deciding.request
        assert request is not None
        clock = self._clock.tick(at)
        return [
            Send(member, Prepare(deciding.txn, request.first_start, request.read_ts, request.parts[member], clock))
            for member in sorted(deciding.participants, key=self._member.__eq__)
            if member not in deciding.votes
        ]

    # --- votes -----------------------------------------------------------------------------------
    def voted(self, vote: Vote, at: At) -> list[Instruction]:
        """A vote, or one in doubt that asks."""
        deciding = self._deciding.get(vote.txn)
        if deciding is None:
            return self._asked(vote, at)
        if deciding.life.phase is DecidingPhase.COMMITTED:
            return [Send(vote.member, Decided(vote.txn, deciding.commit_ts, deciding.rows))]
        if deciding.life.phase is not DecidingPhase.COLLECTING:
            deciding.askers.add(vote.member)
            return []
        if deciding.is_alone or vote.member not in deciding.participants:
            raise PeerError(f"transaction {vote.txn}: {vote.member} votes, and takes no part")
        try:
            # The commit must be later than every vote: all that a reader may have seen without it is earlier.
            self._clock.observe(vote.prepare_ts, at, vote.member)
        except SkerryError as error:
            return self._abort(deciding, error)
        deciding.votes[vote.member] = vote
        if len(deciding.votes) < len(deciding.participants):
            return []
        deciding.life.move(DecidingEvent.VOTED)
        deciding.until = at.s + self._limits.vote_wait_s  # for the disk
        deciding.commit_ts = self._clock.tick(at)
        deciding.rows = sum(vote.rows for vote in deciding.votes.values())
        deciding.unacked = set(deciding.participants)
        deciding.moved = _moved(deciding.request, deciding.commit_ts)
        decision = Decision(
            vote.txn,
            deciding.first_start,
            deciding.commit_ts,
            deciding.rows,
            tuple(sorted(deciding.unacked)),
            deciding.moved,
        )
        return [Persist((decision,), (DecisionWritten(vote.txn),))]

    def _asked(self, vote: Vote, at: At) -> list[Instruction]:
        known = self._outcomes.of(vote.txn)
        if known is not None:
            return [Send(vote.member, Decided(vote.txn, known.commit_ts, known.rows))]
        # Commits are kept until all participants have them: no record means that there was none, however old it is.
        deciding = self._begin(vote.txn, vote.first_start, at)
        deciding.askers.add(vote.member)
        # Whoever submits it again meanwhile, after a restart of this member, may make another attempt.
        failure = UserError(f"transaction {vote.txn}: {self._member} knows nothing of it")
        return self._abort(deciding, failure, is_retryable=True)

    def refused(self, refusal: Refusal) -> list[Instruction]:
        deciding = self._deciding.get(refusal.txn)
        if deciding is None or refusal.member not in deciding.participants:
            return []
        return self._abort(deciding, refusal.failure, is_retryable=refusal.is_retryable)

    def _abort(
        self, deciding: _Deciding, failure: SkerryError | Failure, *, is_retryable: bool = False
    ) -> list[Instruction]:
        if not deciding.life.move(DecidingEvent.REFUSED):
            return []
        deciding.failure = failure if isinstance(failure, Failure) else failure_of(failure, self._member)
        deciding.is_retryable = is_retryable
        return [Persist((Decision(deciding.txn, deciding.first_start, 0),), (DecisionWritten(deciding.txn),))]

    def lost(self, member: str, error: SkerryError) -> list[Instruction]:
        """A participant is gone: what still needs its vote is given up at once."""
        return [
            each
            for deciding in list(self._deciding.values())
            if deciding.life.phase is DecidingPhase.COLLECTING
            and member in deciding.participants
            and member not in deciding.votes
            for each in self._abort(deciding, error)
        ]

    # --- decisions -------------------------------------------------------------------------------
    def decision_written(self, txn: TransactionId) -> list[Instruction]:
        deciding = self._deciding[txn]
        deciding.life.move(DecidingEvent.WRITTEN)
        known = Known(deciding.first_start, deciding.commit_ts, deciding.rows)
        self._is_decided(deciding, known)
        answers = self._answers(deciding, _outcome_of(txn, known, deciding.failure, deciding.is_retryable))
        told = set() if deciding.is_alone else {*deciding.participants, *deciding.askers}
        decided = Decided(txn, deciding.commit_ts, deciding.rows)
        moved = [Moved(deciding.moved)] if deciding.moved is not None else []
        return [*moved, *answers, *(Send(member, decided) for member in sorted(told))]

    def unwritten(self, txn: TransactionId, error: SkerryError) -> list[Instruction]:
        """The decision is surely not on disk, for want of room. It is an abort, and its record follows when it can:
        until then this life remembers it, and no message of this life reaches the next one."""
        deciding = self._deciding[txn]
        if deciding.life.phase is DecidingPhase.COMMITTING:
            deciding.failure, deciding.is_retryable = failure_of(error, self._member), False
        deciding.life.move(DecidingEvent.UNWRITTEN)
        known = Known(deciding.first_start, 0)
        self._is_decided(deciding, known)
        answers = self._answers(deciding, _outcome_of(txn, known, deciding.failure, deciding.is_retryable))
        told = set() if deciding.is_alone else {*deciding.participants, *deciding.askers}
        aborts = [Send(member, Decided(txn, 0, 0)) for member in sorted(told)]
        return [Persist((Decision(txn, deciding.first_start, 0),), is_urgent=False), *answers, *aborts]

    def ended_alone(self, ended: EndedAlone) -> list[Instruction]:
        deciding = self._deciding[ended.txn]
        deciding.life.move(DecidingEvent.ALONE)
        known = Known(deciding.first_start, ended.commit_ts, ended.rows)
        self._is_decided(deciding, known)
        return self._answers(deciding, _outcome_of(ended.txn, known))

    def done(self, done: Done) -> list[Instruction]:
        deciding = self._deciding.get(done.txn)
        if deciding is None or deciding.life.phase is not DecidingPhase.COMMITTED:
            return []
        deciding.unacked.discard(done.member)
        if deciding.unacked:
            return []
        deciding.life.move(DecidingEvent.DONE)
        del self._deciding[done.txn]
        return [Persist((Finished(done.txn),), is_urgent=False)]

    @staticmethod
    def _answers(deciding: _Deciding, outcome: Outcome) -> list[Instruction]:
        origins, deciding.origins = deciding.origins, []
        return [_answer(origin, outcome) for origin in origins]

    # --- outcomes by id --------------------------------------------------------------------------
    def asked_outcome(self, ask: AskOutcome, asker: str) -> list[Instruction]:
        """Silent while an attempt is being decided: who asks asks again."""
        query = ask.query
        if (known := self._outcomes.commit_of(query)) is not None:
            return [Send(asker, OutcomeOf(query, self._member, State.COMMITTED, known.commit_ts, known.rows))]
        if query in self._undecided:
            return []
        if not self._outcomes.can_be_asked(ask.first_start):
            return [Send(asker, OutcomeOf(query, self._member, State.UNKNOWN))]
        self._outcomes.fence(query, ask.first_start)
        return [Persist((Fence(query, ask.first_start),), (FenceWritten(query, asker),))]

    def fence_written(self, written: FenceWritten) -> list[Instruction]:
        return [Send(written.asker, OutcomeOf(written.query, self._member, State.ABORTED))]

    # --- time ------------------------------------------------------------------------------------
    def tick(self, at: At) -> list[Instruction]:
        instructions: list[Instruction] = []
        for deciding in list(self._deciding.values()):
            phase = deciding.life.phase
            if phase is DecidingPhase.COLLECTING and not deciding.is_alone and at.s >= deciding.until:
                deciding.until = at.s + self._limits.vote_wait_s  # for the disk
                instructions += self._abort(deciding, self._too_late(deciding))
            elif phase is not DecidingPhase.COMMITTED and deciding.origins and at.s >= deciding.until:
                # On its way to disk, and the disk is slow: it may become a commit, so nobody may say that it is none.
                late = TimedOut(f"site {self._member}: transaction {deciding.txn} takes long to be written")
                instructions += self._answers(deciding, Outcome(deciding.txn, State.UNKNOWN, failure=failure_of(late)))
            elif at.s >= deciding.repeat_at:
                instructions += self._repeat(deciding, at)
        return instructions

    def _repeat(self, deciding: _Deciding, at: At) -> list[Instruction]:
        deciding.repeat_at = at.s + deciding.pause_s
        deciding.pause_s = min(2 * deciding.pause_s, self._limits.answer_wait_s)
        if deciding.life.phase is DecidingPhase.COMMITTED:
            decided = Decided(deciding.txn, deciding.commit_ts, deciding.rows)
            return [Send(member, decided) for member in sorted(deciding.unacked)]
        if deciding.life.phase is DecidingPhase.COLLECTING and not deciding.is_alone:
            return self._prepares(deciding, at)
        return []

    def _too_late(self, deciding: _Deciding) -> SkerryError:
        silent = ", ".join(member for member in deciding.participants if member not in deciding.votes)
        return TimedOut(
            f"transaction {deciding.txn}: no vote of {silent} in {deciding.wait_s:g} s; nothing was written",
            member=self._member,
            suggestion=f"check that {silent} runs and can be reached, then try again",
        )


def longer_s(request: Submit, limits: CommitLimits) -> float:
    """What a large transaction takes longer: to be looked at, and to be written."""
    parts = request.parts.values()
    writes = limits.write_wait_s * max([len(part.writes) for part in parts], default=0)
    return writes + (limits.staged_wait_s if any(part.staged for part in parts) else 0.0)


def _moved(request: Submit | None, commit_ts: int) -> BucketMap | None:
    """The bucket map that it makes."""
    parts = request.parts.values() if request is not None else ()
    moving = [staged.moving for part in parts for staged in part.staged if staged.moving is not None]
    return msgspec.structs.replace(moving[0].buckets, since=commit_ts) if moving else None


def _answer(origin: str, outcome: Outcome) -> Instruction:
    return Answer(outcome) if origin == HERE else Send(origin, outcome)


def _outcome_of(
    txn: TransactionId, known: Known, failure: Failure | None = None, is_retryable: bool = False
) -> Outcome:
    if known.commit_ts:
        return Outcome(txn, State.COMMITTED, known.commit_ts, known.rows)
    failure = failure or failure_of(UserError(f"transaction {txn} was aborted"))
    return Outcome(txn, State.ABORTED, failure=failure, is_retryable=is_retryable)

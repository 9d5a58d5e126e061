"""Who asks another member for a commit, or how one ended: says it again until it is answered or time is up. Pure.

A commit whose request was never sent, because nobody could reach its decider, is none: that is told soon, and for
certain. Once it may have been sent, only an answer tells.
"""

from __future__ import annotations

import msgspec

from skerry.model.commits import TransactionId
from skerry.model.errors import Overloaded, SiteError, SkerryError, TimedOut
from skerry.model.ids import QueryId
from skerry.model.limits import CommitLimits
from skerry.tables.clock import At
from skerry.tables.decider import longer_s
from skerry.tables.instructions import Answer, Instruction, Send, Tell, Unsent
from skerry.wire.commit_messages import AskOutcome, Outcome, OutcomeOf, State, Submit
from skerry.wire.values import failure_of


class _Submission(msgspec.Struct):
    request: Submit
    decider: str
    wait_s: float
    until: float
    repeat_at: float
    pause_s: float  # until it is said again: doubled each time, for a request may be large
    reach_until: float  # for a connection, if it was never sent
    sends: int = 1  # those that the shell has not withheld: it may have been sent so often
    is_withheld: bool = False  # the last of them
    losses: int = 0  # of connections that were dialled for it


class _Inquiry(msgspec.Struct):
    ask: AskOutcome
    silent: set[str]  # whose answer is awaited
    forgetful: set[str]  # whose answer was that they do not know
    until: float
    repeat_at: float


class Asking:
    """Commits that others decide, and outcomes that somebody asks for by id."""

    def __init__(self, limits: CommitLimits) -> None:
        self._limits = limits
        self._submissions: dict[TransactionId, _Submission] = {}
        self._inquiries: dict[QueryId, _Inquiry] = {}

    @property
    def is_idle(self) -> bool:
        return not self._submissions and not self._inquiries

    def submit(self, request: Submit, decider: str, at: At) -> list[Instruction]:
        if len(self._submissions) >= self._limits.transactions:
            full = Overloaded(f"{len(self._submissions)} transactions wait for an answer here; try again shortly")
            outcome = Outcome(request.txn, State.ABORTED, failure=failure_of(full), is_retryable=True)
            return [Answer(outcome)]
        pause_s = self._limits.repeat_s
        wait_s = self._limits.answer_wait_s + longer_s(request, self._limits)
        self._submissions[request.txn] = _Submission(
            request, decider, wait_s, at.s + wait_s, at.s + pause_s, pause_s, at.s + self._limits.reach_wait_s
        )
        return [Send(decider, request)]

    def withheld(self, txn: TransactionId) -> None:
        """One Send of it was not carried out: its decider has no connection, and is being dialled."""
        if (submission := self._submissions.get(txn)) is not None:
            submission.sends -= 1
            submission.is_withheld = True

    def up(self, member: str, at: At) -> list[Instruction]:
        """It has a connection: what was withheld goes out."""
        instructions: list[Instruction] = []
        for submission in self._submissions.values():
            if submission.decider == member and submission.is_withheld:
                if not submission.sends:
                    submission.until = at.s + submission.wait_s
                instructions.append(self._send(submission))
        return instructions

    def lost(self, member: str, error: SkerryError) -> list[Instruction]:
        """Dialled once more: the connection may have been that of the member's earlier life."""
        instructions: list[Instruction] = []
        for submission in list(self._submissions.values()):
            if submission.decider == member and not submission.sends:
                submission.losses += 1
                is_first = submission.losses == 1
                instructions.append(self._send(submission) if is_first else self._unsent(submission, error))
        return instructions

    @staticmethod
    def _send(submission: _Submission) -> Instruction:
        submission.sends += 1
        submission.is_withheld = False
        return Send(submission.decider, submission.request)

    def _unsent(self, submission: _Submission, error: SkerryError) -> Instruction:
        del self._submissions[submission.request.txn]
        failure = SiteError(
            f"{error.message}; nothing was written",
            member=submission.decider,
            suggestion=f"try again when {submission.decider} can be reached",
        )
        return Unsent(submission.request.txn, failure_of(failure))

    def answered(self, sender: str, outcome: Outcome) -> list[Instruction]:
        submission = self._submissions.get(outcome.txn)
        if submission is None or submission.decider != sender:
            return []
        del self._submissions[outcome.txn]
        return [Answer(outcome)]

    def inquire(self, query: QueryId, first_start: int, members: frozenset[str], at: At) -> list[Instruction]:
        """`members`: all that may have been the decider. Each that does not know the query will never decide it."""
        if query in self._inquiries:
            return []
        if len(self._inquiries) >= self._limits.transactions:
            return [Tell(query, State.UNKNOWN, unknown_to=tuple(sorted(members)))]
        ask = AskOutcome(query, first_start)
        until = at.s + self._limits.answer_wait_s
        self._inquiries[query] = _Inquiry(ask, set(members), set(), until, at.s + self._limits.repeat_s)
        return [Send(member, ask) for member in sorted(members)]

    def told(self, sender: str, outcome: OutcomeOf) -> list[Instruction]:
        inquiry = self._inquiries.get(outcome.query)
        if inquiry is None or sender not in inquiry.silent:
            return []
        inquiry.silent.discard(sender)
        if outcome.state is State.UNKNOWN:
            inquiry.forgetful.add(sender)
        if outcome.state is State.COMMITTED:
            del self._inquiries[outcome.query]
            return [Tell(outcome.query, State.COMMITTED, outcome.commit_ts, outcome.rows)]
        return [] if inquiry.silent else [self._tell(outcome.query)]

    def _tell(self, query: QueryId) -> Instruction:
        """Aborted only if all have said so: any other may have committed it."""
        inquiry = self._inquiries.pop(query)
        unknown = tuple(sorted(inquiry.silent | inquiry.forgetful))
        return Tell(query, State.UNKNOWN if unknown else State.ABORTED, unknown_to=unknown)

    def tick(self, at: At) -> list[Instruction]:
        instructions: list[Instruction] = []
        for txn, submission in list(self._submissions.items()):
            if not submission.sends and at.s >= submission.reach_until:
                instructions.append(self._unsent(submission, self._unreached(submission)))
            elif at.s >= submission.until:
                del self._submissions[txn]
                instructions.append(Answer(Outcome(txn, State.UNKNOWN, failure=failure_of(self._unheard(submission)))))
            elif at.s >= submission.repeat_at:
                submission.pause_s *= 2
                submission.repeat_at = at.s + submission.pause_s
                instructions.append(self._send(submission))
        for query, inquiry in list(self._inquiries.items()):
            if at.s >= inquiry.until:
                instructions.append(self._tell(query))
            elif at.s >= inquiry.repeat_at:
                inquiry.repeat_at = at.s + self._limits.repeat_s
                instructions += [Send(member, inquiry.ask) for member in sorted(inquiry.silent)]
        return instructions

    def _unreached(self, submission: _Submission) -> SiteError:
        return SiteError(f"site {submission.decider} is down: no connection within {self._limits.reach_wait_s:g} s")

    def _unheard(self, submission: _Submission) -> TimedOut:
        return TimedOut(
            f"whether transaction {submission.request.txn} was committed is unknown: {submission.decider} has not "
            f"answered within {submission.wait_s:g} s",
            suggestion=f"ask again by its id when {submission.decider} can be reached",
        )

"""Who asks another member for a commit, or how one ended: says it again until it is answered or time is up. Pure."""

from __future__ import annotations

import msgspec

from skerry.model.commits import TransactionId
from skerry.model.errors import Overloaded, TimedOut
from skerry.model.ids import QueryId
from skerry.model.limits import CommitLimits
from skerry.tables.clock import At
from skerry.tables.decider import longer_s
from skerry.tables.instructions import Answer, Instruction, Send, Tell
from skerry.wire.commit_messages import AskOutcome, Outcome, OutcomeOf, State, Submit
from skerry.wire.values import failure_of


class _Submission(msgspec.Struct):
    request: Submit
    decider: str
    wait_s: float
    until: float
    repeat_at: float
    pause_s: float  # until it is said again: doubled each time, for a request may be large


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
        self._submissions[request.txn] = _Submission(request, decider, wait_s, at.s + wait_s, at.s + pause_s, pause_s)
        return [Send(decider, request)]

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
            if at.s >= submission.until:
                del self._submissions[txn]
                instructions.append(Answer(Outcome(txn, State.UNKNOWN, failure=failure_of(self._unheard(submission)))))
            elif at.s >= submission.repeat_at:
                submission.pause_s *= 2
                submission.repeat_at = at.s + submission.pause_s
                instructions.append(Send(submission.decider, submission.request))
        for query, inquiry in list(self._inquiries.items()):
            if at.s >= inquiry.until:
                instructions.append(self._tell(query))
            elif at.s >= inquiry.repeat_at:
                inquiry.repeat_at = at.s + self._limits.repeat_s
                instructions += [Send(member, inquiry.ask) for member in sorted(inquiry.silent)]
        return instructions

    def _unheard(self, submission: _Submission) -> TimedOut:
        return TimedOut(
            f"whether transaction {submission.request.txn} was committed is unknown: {submission.decider} has not "
            f"answered within {submission.wait_s:g} s",
            suggestion=f"ask again by its id when {submission.decider} can be reached",
        )

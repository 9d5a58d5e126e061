"""The messages by which members commit to tables of their own (docs/protocol.md, 11).

Each may be lost, doubled and late: who waits for an answer says the same again.
"""

from __future__ import annotations

import enum

from skerry.model.commits import Part, TransactionId
from skerry.model.ids import QueryId
from skerry.wire.messages import Failure, Message


class State(enum.IntEnum):
    """How a transaction ended; UNKNOWN when nobody who can be asked knows, or knows any more."""

    COMMITTED = 0
    ABORTED = 1
    UNKNOWN = 2


class Submit(Message, frozen=True):
    """To the decider: commit this. `parts` by member; `read_ts` 0 if nothing was read. `clock` is the sender's."""

    txn: TransactionId
    first_start: int
    read_ts: int
    parts: dict[str, Part]
    clock: int


class Outcome(Message, frozen=True):
    """The decider's answer to Submit, after it is durable. `is_retryable`: another attempt may succeed."""

    txn: TransactionId
    state: State
    commit_ts: int = 0
    rows: int = 0
    failure: Failure | None = None
    is_retryable: bool = False


class Prepare(Message, frozen=True):
    """From the decider to a participant."""

    txn: TransactionId
    first_start: int
    read_ts: int
    part: Part
    clock: int


class Vote(Message, frozen=True):
    """The writes are durable and wait. Said again it is the question of one in doubt: how was it decided?"""

    txn: TransactionId
    member: str
    first_start: int
    prepare_ts: int
    rows: int


class Refusal(Message, frozen=True):
    """Nothing was prepared."""

    txn: TransactionId
    member: str
    failure: Failure
    is_retryable: bool


class Decided(Message, frozen=True):
    """`commit_ts` 0 is an abort. `rows`: of all participants together."""

    txn: TransactionId
    commit_ts: int
    rows: int = 0


class Done(Message, frozen=True):
    """This participant has its commit on disk: it never asks again."""

    txn: TransactionId
    member: str


class AskOutcome(Message, frozen=True):
    """Has any attempt of this query been committed by you? `first_start`: about when it began."""

    query: QueryId
    first_start: int


class OutcomeOf(Message, frozen=True):
    """ABORTED means: not committed here, and never will be."""

    query: QueryId
    member: str
    state: State
    commit_ts: int = 0
    rows: int = 0


CommitMessage = Submit | Outcome | Prepare | Vote | Refusal | Decided | Done | AskOutcome | OutcomeOf

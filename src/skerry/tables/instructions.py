"""What the cores of commits ask of their shell, and what the shell tells them when it is done.

Records of one Persist become durable together, and every Persist after all that were asked for before it. So the shell
may gather as many as it likes into one transaction of its store, and one fsync. If the disk has no room for a Persist,
none that was asked for after it is written either, and the shell calls `unwritten` for each of them. One that fails
otherwise ends commits at the member until it starts anew: what is on disk then decides.
"""

from __future__ import annotations

import msgspec

from skerry.model.commits import Layouts, Part, Record, Staged, TransactionId, Write
from skerry.model.errors import SkerryError
from skerry.model.ids import QueryId
from skerry.model.sharded import BucketMap
from skerry.wire.commit_messages import CommitMessage, Outcome, State
from skerry.wire.messages import Failure


# --- what follows when a Persist is durable ----------------------------------------------------------------------
class MarkWritten(msgspec.Struct, frozen=True):
    upto: int


class PrepareWritten(msgspec.Struct, frozen=True):
    """`prepare_ts` says which of its records: one that was given up may still have been on its way."""

    txn: TransactionId
    prepare_ts: int


class AloneWritten(msgspec.Struct, frozen=True):
    txn: TransactionId


class CommitWritten(msgspec.Struct, frozen=True):
    txn: TransactionId


class DecisionWritten(msgspec.Struct, frozen=True):
    txn: TransactionId


class FenceWritten(msgspec.Struct, frozen=True):
    query: QueryId
    asker: str


After = MarkWritten | PrepareWritten | AloneWritten | CommitWritten | DecisionWritten | FenceWritten


# --- instructions ------------------------------------------------------------------------------------------------
class Persist(msgspec.Struct, frozen=True):
    """Write these, then call `persisted(then)`. If it is not urgent it may wait for one that is, up to a second."""

    records: tuple[Record, ...]
    then: tuple[After, ...] = ()
    is_urgent: bool = True


class Send(msgspec.Struct, frozen=True):
    """May be lost: nothing waits for it that does not say it again.

    A Submit to a member without a connection is not sent: the shell dials it, and calls `withheld`.
    """

    to: str
    message: CommitMessage


class Look(msgspec.Struct, frozen=True):
    """The transaction has its locks: compare versions, find each key's newest row; then call `looked`.

    `number` says which look: what was seen under locks that were let go of since is worth nothing.
    """

    txn: TransactionId
    number: int
    part: Part
    read_ts: int = 0


class Apply(msgspec.Struct, frozen=True):
    """Readers at `commit_ts` and later see these from now on. A Persist that came before has their record."""

    txn: TransactionId
    commit_ts: int
    writes: tuple[Write, ...]
    staged: tuple[Staged, ...]
    layouts: Layouts = ()


class Discard(msgspec.Struct, frozen=True):
    """The transaction came to nothing: the files that its staged rows came to can go. Another attempt may follow."""

    txn: TransactionId
    staged: tuple[Staged, ...]


class Moved(msgspec.Struct, frozen=True):
    """A move is decided, and on disk: all members are to be told of this map."""

    buckets: BucketMap


class Answer(msgspec.Struct, frozen=True):
    """To who asked for the commit, here. At most one for each `submit`."""

    outcome: Outcome


class Unsent(msgspec.Struct, frozen=True):
    """To who asked for the commit, here, instead of an Answer: this attempt was never sent, and never will be.

    What became of an earlier one of the same statement it does not say.
    """

    txn: TransactionId
    failure: Failure


class Tell(msgspec.Struct, frozen=True):
    """To who asked by id, here. `unknown_to`: the members that did not answer, or know no longer."""

    query: QueryId
    state: State
    commit_ts: int = 0
    rows: int = 0
    unknown_to: tuple[str, ...] = ()


class ReadReady(msgspec.Struct, frozen=True):
    """All commits up to its `read_ts` are here, and no other will come: read now."""

    read: str


class ReadRefused(msgspec.Struct, frozen=True):
    read: str
    failure: Failure


class PrepareAlone(msgspec.Struct, frozen=True):
    """Between the cores: the transaction has no other participant than its decider."""

    txn: TransactionId
    first_start: int
    read_ts: int
    part: Part


class EndedAlone(msgspec.Struct, frozen=True):
    """Between the cores: such a transaction is committed, on disk."""

    txn: TransactionId
    commit_ts: int
    rows: int


Instruction = (
    Persist
    | Send
    | Look
    | Apply
    | Discard
    | Moved
    | Answer
    | Unsent
    | Tell
    | ReadReady
    | ReadRefused
    | PrepareAlone
    | EndedAlone
)


# --- what the store found ----------------------------------------------------------------------------------------
class Found(msgspec.Struct, frozen=True, gc=False):
    """The newest row of a key, deleted or not (0: there was none); of staged files the newest of all their keys.

    `row`: what a patch makes of it.
    """

    commit_ts: int = 0
    is_live: bool = False
    rows: int = 1  # that staged files would write
    row: bytes | None = None


class Looked(msgspec.Struct, frozen=True):
    """In the order of the part. `stale`: the table or its bucket map is another than planned with.

    `kept_from`: what was deleted before is forgotten, so a snapshot older than this cannot be checked.
    `error`: why it cannot be written here, whatever is there. `laid`: the staged rows again, as the files that they
    came to. `layouts`: of the tables as they are now.
    """

    writes: tuple[Found, ...] = ()
    staged: tuple[Found, ...] = ()
    stale: str = ""
    kept_from: int = 0
    error: SkerryError | None = None
    laid: tuple[Staged, ...] = ()
    layouts: Layouts = ()

"""Transactions on tables of our own: what they write, and the records that make them durable.

Timestamps are those of hybrid logical clocks: one number of 64 bits, microseconds << 11 | counter.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable

import msgspec

from skerry.model.ids import QueryId
from skerry.model.sharded import BucketMap


class TransactionId(msgspec.Struct, frozen=True, array_like=True, order=True, gc=False):
    """`query` is the client's: at most one attempt of it commits."""

    query: QueryId
    attempt: int = 1

    def __str__(self) -> str:
        return f"{self.query}" if self.attempt == 1 else f"{self.query} (attempt {self.attempt})"


class Policy(enum.IntEnum):
    """When a row with this key exists: the statement fails, the row stays, or the row is replaced."""

    FAIL = 0
    NOTHING = 1
    REPLACE = 2


class Change(enum.IntEnum):
    """What becomes of a row that was sent ahead by an UPDATE, DELETE or MERGE: of the one with its key, or of itself.

    LEAVE is the old place of a row that moves, and not counted. Several DELETE_AGAIN may mean one row.
    """

    PUT = 0
    INSERT = 1
    DELETE = 2
    LEAVE = 3
    DELETE_AGAIN = 4


class Write(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """`row` None deletes the row. Key and row are bytes whose meaning only the store knows.

    `is_patch`: `row` changes the row that is there, and nothing if there is none. `is_counted`: not the old place of a
    row that moves.
    """

    table: int
    key: bytes
    row: bytes | None
    policy: Policy = Policy.REPLACE
    is_patch: bool = False
    is_counted: bool = True


def is_blind(writes: Iterable[Write]) -> bool:
    """Whether all of them do the same whatever rows are there."""
    return all(write.policy is Policy.REPLACE and not write.is_patch and write.row is not None for write in writes)


class Moving(msgspec.Struct, frozen=True, array_like=True):
    """A move of the buckets from `first` to `upto`. `buckets`: the map as it shall be, but for `since`.

    `rows`: the id under which the source has sent their rows ahead to the target.
    """

    buckets: BucketMap
    first: int
    upto: int
    source: str
    target: str
    rows: QueryId


class Staged(msgspec.Struct, frozen=True, array_like=True):
    """Rows that were sent ahead, to become rows of the table. They lock the whole table at their member.

    `files`: the names under which they were sent. `is_ordered`: of two rows with one key the first is kept, or the last
    replaces it; rows of a query have no order. `body`: the files that they came to, which only the participant knows.
    `is_changes`: each row says itself what becomes of it (`Change`). `moving`: they come from another member, or go to
    it.
    """

    table: int
    files: tuple[str, ...]
    policy: Policy = Policy.REPLACE
    is_ordered: bool = False
    body: bytes = b""
    is_changes: bool = False
    moving: Moving | None = None


class Versions(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What the plan knew of a table. The store compares."""

    table: int
    version: int
    bucket_map: int


class Part(msgspec.Struct, frozen=True, array_like=True):
    """All that a transaction writes at one member; no key stands twice. `user` and `roles`: of whoever asks."""

    writes: tuple[Write, ...] = ()
    staged: tuple[Staged, ...] = ()
    versions: tuple[Versions, ...] = ()
    user: str = ""
    roles: tuple[str, ...] = ()


class FoundAt(msgspec.Struct, frozen=True, array_like=True):
    """What a write meets at a transaction's snapshot. `row`: of a patch, the row that it makes."""

    is_live: bool
    row: bytes | None = None


class Changed(msgspec.Struct, frozen=True, array_like=True):
    """Rows that a transaction has written to a table and not committed: its own queries see them.

    `version`: of the table. `body`: keys and rows (`tables/writes.encode_body`).
    """

    table: int
    version: int
    body: bytes


Layouts = tuple[tuple[int, tuple[int, ...]], ...]  # tables, and the numbers of their columns


# --- records: what a member's store keeps, and gives back in the same order when the member starts -----------------
class ClockMark(msgspec.Struct, frozen=True, array_like=True, tag=0):
    """No timestamp above this was given or obeyed before the next mark was durable."""

    upto: int


class Prepared(msgspec.Struct, frozen=True, array_like=True, tag=1):
    """A participant's vote. `writes` are those that take effect, `rows` how many rows that is.

    `layouts`: of tables that were altered, the numbers of the columns that rows have (`model/sharded.py`).
    """

    txn: TransactionId
    first_start: int
    decider: str
    prepare_ts: int
    rows: int
    writes: tuple[Write, ...]
    staged: tuple[Staged, ...]
    layouts: Layouts = ()


class Committed(msgspec.Struct, frozen=True, array_like=True, tag=2):
    """A participant's commit, with the rows of all participants. Without a Prepared before it, the writes are here."""

    txn: TransactionId
    first_start: int
    commit_ts: int
    rows: int
    writes: tuple[Write, ...] = ()
    staged: tuple[Staged, ...] = ()
    layouts: Layouts = ()


class Aborted(msgspec.Struct, frozen=True, array_like=True, tag=3):
    """A participant's Prepared that came to nothing."""

    txn: TransactionId


class Decision(msgspec.Struct, frozen=True, array_like=True, tag=4):
    """The decider's word, and who must hear it. `commit_ts` 0 is an abort, which nobody needs to be told.

    `moved`: the bucket map that this commit makes.
    """

    txn: TransactionId
    first_start: int
    commit_ts: int
    rows: int = 0
    participants: tuple[str, ...] = ()
    moved: BucketMap | None = None


class Finished(msgspec.Struct, frozen=True, array_like=True, tag=5):
    """All participants have their commit on disk: from now on the decision is kept for its id alone."""

    txn: TransactionId


class Fence(msgspec.Struct, frozen=True, array_like=True, tag=6):
    """This member will decide no attempt of the query: somebody was told that it has not."""

    query: QueryId
    first_start: int


class Expired(msgspec.Struct, frozen=True, array_like=True, tag=7):
    """Ids of transactions that first started before this are forgotten, if they are finished."""

    before: int


Record = ClockMark | Prepared | Committed | Aborted | Decision | Finished | Fence | Expired

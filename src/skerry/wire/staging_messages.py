"""The messages by which rows of a large write go ahead to the members that keep them (docs/protocol.md, 13)."""

from __future__ import annotations

from skerry.model.commits import Policy
from skerry.model.ids import QueryId
from skerry.wire.messages import Failure, Message


class StageRows(Message, frozen=True):
    """From the initiator: some rows, an Arrow batch of all columns of the table. Numbers begin with 0, without gaps.

    `stage` says which rows of the query these are: those of its next run have another one. `is_changes`: one column
    more tells what becomes of each row (`model/commits.Change`). `buckets`: the range that the rows of a move come
    with; it is the sender's until the move is committed.
    """

    query: QueryId
    stage: int
    number: int
    table: int
    version: int
    bucket_map: int
    policy: Policy
    user: str
    roles: tuple[str, ...]
    rows: bytes
    is_changes: bool = False
    buckets: tuple[int, int] | None = None


class RowsStaged(Message, frozen=True):
    """All rows below `upto` are taken, and as many more may follow; or why no more are."""

    query: QueryId
    stage: int
    member: str
    upto: int
    failure: Failure | None = None


class DropRows(Message, frozen=True):
    """From the initiator: it is over, what was sent ahead can go."""

    query: QueryId
    stage: int


StagingMessage = StageRows | RowsStaged | DropRows

"""The messages by which groups of buckets move from member to member (docs/protocol.md, 15)."""

from __future__ import annotations

import msgspec

from skerry.model.ids import QueryId
from skerry.wire.messages import Failure, Message


class SendGroup(Message, frozen=True):
    """From the keeper to the source: send the rows of these buckets, or of as many as go at once, to the target.

    `is_top`: the upper ones of them.
    """

    request_id: str
    table: int
    version: int
    bucket_map: int
    first: int
    upto: int
    target: str
    is_top: bool


class GroupSent(Message, frozen=True):
    """The target has the rows of buckets `first` to `upto`, as they were at `read_ts`, under the id `rows`."""

    request_id: str
    member: str
    first: int = 0
    upto: int = 0
    read_ts: int = 0
    rows: QueryId = QueryId("", "")
    count: int = 0
    size_bytes: int = 0
    failure: Failure | None = None


class Step(msgspec.Struct, frozen=True, array_like=True):
    """What moved, or is to move: `buckets` of a table. `rows` and `size_bytes` are 0 where it did not move yet."""

    table: str
    source: str
    target: str
    first: int
    upto: int
    rows: int = 0
    size_bytes: int = 0


class Rebalance(Message, frozen=True):
    """To the keeper: move the next group, and say what is left; or only that (`is_plan`)."""

    request_id: str
    leaving: tuple[str, ...] = ()
    is_plan: bool = False
    user: str = ""
    roles: tuple[str, ...] = ()


class Rebalanced(Message, frozen=True):
    """`moved`: what has moved now, nothing if there was nothing to move; `left`: what is still to move."""

    request_id: str
    moved: tuple[Step, ...] = ()
    left: tuple[Step, ...] = ()
    failure: Failure | None = None


MovingMessage = SendGroup | GroupSent | Rebalance | Rebalanced

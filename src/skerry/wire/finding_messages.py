"""The messages by which a statement of a transaction learns what its writes meet (docs/protocol.md, 14)."""

from __future__ import annotations

from skerry.model.commits import FoundAt, Part
from skerry.model.ids import QueryId
from skerry.wire.messages import Failure, Message


class FindRows(Message, frozen=True):
    """What these writes meet at `read_ts`, at the member that is asked. Nothing is locked, and nothing written."""

    request_id: str
    query: QueryId
    part: Part
    read_ts: int


class RowsFound(Message, frozen=True):
    """In the order of the writes; or why they cannot be written."""

    request_id: str
    member: str
    found: tuple[FoundAt, ...] = ()
    failure: Failure | None = None

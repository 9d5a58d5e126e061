"""Names of queries and channels, unique in the whole cluster."""

from __future__ import annotations

import msgspec

AGAIN = "~"  # parts a client's id from the number of the attempt; no client's id has it


class QueryId(msgspec.Struct, frozen=True, array_like=True, order=True, gc=False):
    """`local` is made by the client (32 hex digits), so a query can be closed before it is answered.

    Members remember those of writes for a day: Python's collector, which could free none, need not look at them.
    """

    initiator: str
    local: str

    def __str__(self) -> str:
        return f"{self.initiator}/{self.local[:12]}"


class ChannelId(msgspec.Struct, frozen=True, array_like=True, order=True):
    """One edge's stream from one sending member to one receiving member."""

    query: QueryId
    edge: int
    sender: str
    receiver: str

    def __str__(self) -> str:
        return f"{self.query} edge {self.edge} {self.sender}→{self.receiver}"


class GroupById(msgspec.Struct, frozen=True, array_like=True, order=True):
    """One elastic group-by of a query: the one that takes the rows of `edge`."""

    query: QueryId
    edge: int

    def __str__(self) -> str:
        return f"{self.query} group-by {self.edge}"

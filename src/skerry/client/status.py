"""How a query does, as its client sees it."""

from __future__ import annotations

import msgspec

from skerry.model.progress import FragmentProgress, LinkBytes, Memory
from skerry.wire.client_messages import ClientStatusReply
from skerry.wire.messages import Failure


class QueryStatus(msgspec.Struct, frozen=True):
    """state: "unknown", "planning", "queued (3rd)", "running", "done", "failed" or "cancelled"."""

    state: str
    seconds: float
    fragments: tuple[FragmentProgress, ...] = ()
    links: tuple[LinkBytes, ...] = ()
    plan: str = ""
    memory: tuple[Memory, ...] = ()
    error: Failure | None = None

    @classmethod
    def of(cls, reply: ClientStatusReply) -> QueryStatus:
        return cls(reply.state, reply.seconds, reply.fragments, reply.links, reply.plan, reply.memory, reply.error)

    @property
    def rows(self) -> int:
        """Rows that the fragments have made so far."""
        return sum(fragment.rows for fragment in self.fragments)

    @property
    def size_bytes(self) -> int:
        """Bytes that crossed links between sites so far."""
        return sum(link.size_bytes for link in self.links)

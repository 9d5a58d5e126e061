"""How queries and members do, as clients are told, whichever protocol carries it."""

from __future__ import annotations

import msgspec

from skerry.model.ids import QueryId


class LinkBytes(msgspec.Struct, frozen=True, array_like=True):
    """Bytes that crossed one link, as frames, and their rows. `stalled_s`: how long channels waited for credit."""

    sender: str
    receiver: str
    size_bytes: int
    rows: int
    stalled_s: float = 0.0


class FragmentProgress(msgspec.Struct, frozen=True, array_like=True):
    """state: "waiting", "running", "held up" (by an engine that is to end), "done" or "failed".

    What FragmentDone says stands in the last two.
    """

    fragment: int
    member: str
    state: str
    rows: int
    size_bytes: int
    seconds: float = 0.0
    jobs: tuple[int, ...] = ()


class Memory(msgspec.Struct, frozen=True, array_like=True):
    """What a query holds at one member, now and at most: its one counter for spools, pending rows and merges."""

    member: str
    memory_bytes: int
    memory_peak_bytes: int
    disk_bytes: int
    disk_peak_bytes: int


class QueryInfo(msgspec.Struct, frozen=True, array_like=True):
    """A query of this initiator. `client` is where it came from, `rows` those given so far, `members` who take part."""

    query: QueryId
    sql: str
    client: str
    state: str
    seconds: float
    rows: int
    size_bytes: int
    links: tuple[LinkBytes, ...]
    members: tuple[str, ...]


class MemberState(msgspec.Struct, frozen=True, array_like=True):
    """state: "up", "down" or "unknown"; of the member that answers "up" or "stopping"."""

    name: str
    address: str
    role: str
    state: str
    detail: str = ""


def is_live(state: str) -> bool:
    """A query in this state has not ended; nor has a transaction."""
    return state in ("planning", "running", "committing") or state.startswith(("queued", "in transaction"))

"""The two options of document 002: rows that an edge may carry, and Spark's time for a query. Pure (protocol.md, 10.8).

Each participant keeps to them while it runs; the initiator does for what all of them do together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from skerry.model.errors import Overloaded
from skerry.model.fragment import Plan, Rows
from skerry.model.limits import Limits
from skerry.model.progress import FragmentProgress

# In Execute.options. A release that does not know them runs without.
ROW_CAP, WORK_CAP = "row_cap", "work_cap"


class Caps(msgspec.Struct, frozen=True):
    """`rows` of one edge, and `work_ms`, milliseconds of Spark. 0: no cap."""

    rows: int = 0
    work_ms: int = 0

    @classmethod
    def of(cls, limits: Limits) -> Caps:
        """What the configuration admits."""
        return cls(limits.edge_rows, round(limits.spark_s * 1000))

    def within(self, other: Caps) -> Caps:
        """The stricter of both, each by itself."""
        return Caps(_stricter(self.rows, other.rows), _stricter(self.work_ms, other.work_ms))

    def options(self) -> dict[str, int | str]:
        """For Execute: a cap that is off is left out."""
        return {name: cap for name, cap in ((ROW_CAP, self.rows), (WORK_CAP, self.work_ms)) if cap}


def caps_of(options: Mapping[str, int | str]) -> Caps:
    """Those that an initiator's Execute tells. What is no cap tells none: the member's own hold in any case."""
    rows, work_ms = options.get(ROW_CAP, 0), options.get(WORK_CAP, 0)
    return Caps(*(cap if isinstance(cap, int) and cap > 0 else 0 for cap in (rows, work_ms)))


def _stricter(one: int, other: int) -> int:
    return min(one, other) if one and other else one or other


def too_many_rows(caps: Caps, rows: int, member: str, fragment: int) -> Overloaded | None:
    """Why a fragment ends that has given so many rows; None if it may go on."""
    if not caps.rows or rows <= caps.rows:
        return None
    return _rows_error(f"site {member}: fragment {fragment} gave more than {caps.rows} rows to its edge", member)


def crowded(caps: Caps, plan: Plan, fragments: Mapping[int, FragmentProgress]) -> Overloaded | None:
    """Why a query ends one of whose edges has got so many rows, of all who send on it; None if it may go on."""
    if not caps.rows:
        return None
    rows: dict[int, int] = {}
    readers = plan.readers()
    for fragment in plan.fragments:
        if not readers[fragment.id]:  # its rows are only counted
            continue
        edge = fragment.output.edge
        rows[edge] = rows.get(edge, 0) + fragments[fragment.id].rows
        if rows[edge] > caps.rows:
            return _crowd(caps, plan, edge)
    return None


def crowded_result(caps: Caps, plan: Plan, rows: int) -> Overloaded | None:
    """The same for the edge that a result of so many rows has come by: what its senders tell may be late."""
    if not caps.rows or rows <= caps.rows or not isinstance(plan.ends_in, Rows):
        return None
    return _crowd(caps, plan, plan.ends_in.edge)


def _crowd(caps: Caps, plan: Plan, edge: int) -> Overloaded:
    senders = [f"fragment {each.id} at {each.member}" for each in plan.fragments if each.output.edge == edge]
    return _rows_error(f"edge {edge} got more than {caps.rows} rows, from {' and '.join(senders)}", "")


def too_much_work(caps: Caps, seconds: Iterable[float], member: str) -> Overloaded | None:
    """Why a member's part of a query ends whose jobs have taken so long; None if it may go on."""
    if not caps.work_ms or sum(seconds) * 1000 <= caps.work_ms:
        return None
    return Overloaded(
        f"site {member}: its jobs for the query took more than {caps.work_ms / 1000:g} s of Spark (spark_s)",
        member=member,
        suggestion="ask for less at once, or allow more with spark_s, up to limits.spark_s",
    )


def _rows_error(what: str, member: str) -> Overloaded:
    return Overloaded(
        f"{what} (edge_rows)",
        member=member,
        suggestion="ask for fewer rows, or allow more with edge_rows, up to limits.edge_rows",
    )

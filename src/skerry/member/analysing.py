"""EXPLAIN ANALYZE of a write: what was done, in lines. The write happens, once."""

from __future__ import annotations

from skerry.member.planning import Planner
from skerry.model.amounts import counted, size_text
from skerry.model.commits import Part
from skerry.model.fragment import Plan
from skerry.model.sharded import OwnTable
from skerry.plan.explain import Actual, explain
from skerry.plan.reasons import with_reasons
from skerry.tables.routing import Routed


class Analysis:
    """Filled in while the statement runs."""

    def __init__(self, now: float) -> None:
        self._started_at = now
        self._attempts = 0
        self._routed: Routed | None = None
        self._query: tuple[OwnTable, str] | None = None
        self.runs = 0
        self.ran: tuple[Plan, Actual] | None = None

    def needs_query(self, table: OwnTable, reason: str) -> None:
        self._query = table, reason

    def tried(self, routed: Routed) -> None:
        """These rows are handed over for a commit; those of the last time are the ones that count."""
        self._routed = routed
        self._attempts += 1

    def lines(self, rows: int, now: float, planner: Planner) -> list[str]:
        lines, routed = [], self._routed
        if self._query is not None:
            table, reason = self._query
            runs = "" if self.runs == 1 else f" ({self.runs} runs of the query)"
            lines.append(f"wrote table {table.name} by Spark: {reason}{runs}")
        elif routed is not None:
            lines.append(f"wrote table {routed.table} as tuples, without Spark: {routed.reason}")
        if routed is not None:
            lines += [f"  {planner.name} → {member}: {_part(part)}" for member, part in routed.parts.items()]
        tries = "" if self._attempts <= 1 else f", at attempt {self._attempts}"
        lines.append(f"  {counted(rows)} changed in {1000 * (now - self._started_at):.0f} ms{tries}")
        if self.ran is not None:
            plan, actual = self.ran
            lines += explain(with_reasons(plan), planner.name, planner.topology, actual)
        return lines


def _part(part: Part) -> str:
    if part.staged:
        return "rows sent ahead, which became files there"
    size_bytes = sum(len(write.key) + len(write.row or b"") for write in part.writes)
    return f"{counted(len(part.writes))}, {size_text(size_bytes)}"

"""EXPLAIN ANALYZE of a write: what was done, in lines or as JSON. The write happens, once."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from skerry.member.answers import told_rows
from skerry.member.planning import Planner
from skerry.member.requests import RowsAnswer
from skerry.model.amounts import counted, size_text
from skerry.model.commits import Part
from skerry.model.fragment import Plan
from skerry.model.sharded import OwnTable
from skerry.plan.explain import Actual, describe, explain
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

    def answer(self, rows: int, now: float, planner: Planner, *, is_json: bool) -> RowsAnswer:
        return (
            told_json(self._described(rows, now, planner))
            if is_json
            else told_rows({"plan": self._lines(rows, now, planner)})
        )

    def _described(self, rows: int, now: float, planner: Planner) -> dict[str, Any]:
        routed, write = self._routed, dict[str, Any]()
        if self._query is not None:
            write |= {"table": self._query[0].name, "by": "spark", "reason": self._query[1], "runs": self.runs}
        elif routed is not None:
            write |= {"table": routed.table, "by": "tuples", "reason": routed.reason}
        write["members"] = [{"member": name, **_sent(part)} for name, part in routed.parts.items()] if routed else []
        write |= {"rows": rows, "attempts": self._attempts, "seconds": round(now - self._started_at, 6)}
        if self.ran is None:
            return {"write": write}
        plan, actual = self.ran
        return {"write": write, "query": describe(with_reasons(plan), planner.name, planner.topology, actual)}

    def _lines(self, rows: int, now: float, planner: Planner) -> list[str]:
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


def told_json(found: Mapping[str, Any]) -> RowsAnswer:
    return told_rows({"plan": [json.dumps(found, ensure_ascii=False, indent=2)]})


def _part(part: Part) -> str:
    sent = _sent(part)
    if sent["is_staged"]:
        return "rows sent ahead, which became files there"
    return f"{counted(sent['rows'])}, {size_text(sent['bytes'])}"


def _sent(part: Part) -> dict[str, Any]:
    """Of rows that were sent ahead nobody counted which went where."""
    if part.staged:
        return {"is_staged": True}
    size_bytes = sum(len(write.key) + len(write.row or b"") for write in part.writes)
    return {"is_staged": False, "rows": len(part.writes), "bytes": size_bytes}

"""Which queries of this member to ask their initiators about, and when. Pure (docs/protocol.md, 3).

A query that its initiator does not know is nobody's: its rows came before an Execute that will never come, or its
initiator gave up waiting for a receipt. An initiator knows a query before it sends anything about it, so a query
that lives is never taken for an orphan.
"""

from __future__ import annotations

from collections.abc import Iterable

from skerry.model.ids import QueryId


class Orphans:
    """Asks about each watched query once a period; at most one question to an initiator is open."""

    def __init__(self, period_s: float) -> None:
        self._period_s = period_s
        self._ask_at: dict[QueryId, float] = {}
        self._asked: dict[str, frozenset[QueryId]] = {}

    def watch(self, query: QueryId, now: float) -> None:
        """Something of this query is here."""
        self._ask_at.setdefault(query, now + self._period_s)

    def forget(self, query: QueryId) -> None:
        """Nothing of it is here any more."""
        self._ask_at.pop(query, None)

    def due(self, now: float) -> dict[str, tuple[QueryId, ...]]:
        """The questions to send now, by initiator."""
        found: dict[str, list[QueryId]] = {}
        for query, at in self._ask_at.items():
            if now >= at and query.initiator not in self._asked:
                found.setdefault(query.initiator, []).append(query)
        for initiator, queries in found.items():
            self._asked[initiator] = frozenset(queries)
            self._ask_at |= dict.fromkeys(queries, now + self._period_s)
        return {initiator: tuple(queries) for initiator, queries in found.items()}

    def answered(self, initiator: str, inactive: Iterable[QueryId]) -> list[QueryId]:
        """Those that are orphans: asked about, not known there, and still here."""
        asked = self._asked.pop(initiator, frozenset())
        return [query for query in inactive if query in asked and query in self._ask_at]

    def lost(self, initiator: str) -> None:
        """No answer will come; its queries end for that reason."""
        self._asked.pop(initiator, None)

    @property
    def watched(self) -> tuple[QueryId, ...]:
        return tuple(self._ask_at)

"""Queries that wait for a plan: however many begin at once, one of them asks its initiator. Pure (docs/protocol.md, 3).

The initiator answers whether or not the asking query still lives, so nobody waits for one that has ended.
"""

from __future__ import annotations

from skerry.model.ids import QueryId


class PlanAsks:
    """By initiator and plan: the same plan of another initiator is asked for again, for either may be lost."""

    def __init__(self) -> None:
        self._waiting: dict[tuple[str, str], list[QueryId]] = {}
        self._read: set[tuple[str, str]] = set()  # the plan is here, and is being looked at

    def wait(self, query: QueryId, plan_id: str) -> bool:
        """The query waits from now on; True when another one has asked already."""
        waiting = self._waiting.setdefault((query.initiator, plan_id), [])
        waiting.append(query)
        return len(waiting) > 1

    def arrived(self, initiator: str, plan_id: str) -> bool:
        """False for a plan that nobody waits for, or that has come before."""
        key = (initiator, plan_id)
        is_new = key in self._waiting and key not in self._read
        self._read |= {key} if is_new else set()
        return is_new

    def answered(self, initiator: str, plan_id: str) -> list[QueryId]:
        """Everyone who waited, in the order they came."""
        self._read.discard((initiator, plan_id))
        return self._waiting.pop((initiator, plan_id), [])

    def lost(self, initiator: str) -> None:
        """No answer will come; its queries end for that reason."""
        self._waiting = {key: queries for key, queries in self._waiting.items() if key[0] != initiator}

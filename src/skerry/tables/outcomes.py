"""How transactions ended, by their id, for as long as somebody may ask or say the same again. Pure."""

from __future__ import annotations

import msgspec

from skerry.model.commits import TransactionId
from skerry.model.ids import QueryId
from skerry.model.limits import CommitLimits
from skerry.tables.clock import HybridClock, seconds


class Known(msgspec.Struct, frozen=True, gc=False):
    """`commit_ts` 0 is an abort."""

    first_start: int
    commit_ts: int
    rows: int = 0


class Outcomes:
    """What a member has on disk of decisions of its own, and of commits of others that it took part in.

    Ages are differences of this member's hybrid clock, which never goes back: an id that was too old stays so.
    """

    def __init__(self, clock: HybridClock, limits: CommitLimits) -> None:
        self._clock = clock
        self._kept, self._asked = seconds(limits.ids_kept_s), seconds(limits.ids_asked_s)
        self._known: dict[TransactionId, Known] = {}
        self._commits: dict[QueryId, TransactionId] = {}
        self._fences: dict[QueryId, int] = {}

    def add(self, txn: TransactionId, known: Known) -> None:
        self._known[txn] = known
        if known.commit_ts:
            self._commits[txn.query] = txn

    def of(self, txn: TransactionId) -> Known | None:
        return self._known.get(txn)

    def commit_of(self, query: QueryId) -> Known | None:
        """The attempt that committed, if one has."""
        txn = self._commits.get(query)
        return None if txn is None else self._known[txn]

    def fence(self, query: QueryId, first_start: int) -> None:
        self._fences[query] = first_start

    def is_fenced(self, query: QueryId) -> bool:
        return query in self._fences

    def is_kept(self, first_start: int) -> bool:
        """Whether all ids of that time are still known: only then does "no record" mean anything."""
        return self._clock.last - first_start < self._kept

    def can_be_asked(self, first_start: int) -> bool:
        return self._clock.last - first_start < self._asked

    def oldest_kept(self) -> int:
        return self._clock.last - self._kept

    def expire(self, before: int, unfinished: frozenset[TransactionId]) -> int:
        """How many were forgotten. Unfinished decisions stay, however old: a participant will ask for them."""
        old = [txn for txn, known in self._known.items() if known.first_start < before and txn not in unfinished]
        for txn in old:
            del self._known[txn]
            if self._commits.get(txn.query) == txn:
                del self._commits[txn.query]
        fences = [query for query, first_start in self._fences.items() if first_start < before]
        for query in fences:
            del self._fences[query]
        return len(old) + len(fences)

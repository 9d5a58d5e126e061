"""The proof that a group-by is complete: workers together hold as many rows as senders have sent. Pure.

Within a round nothing is handed over, so what a worker holds only grows. If the counts of one round sum to all that was
sent, whenever each was taken, then each was final (docs/protocol.md, 16.4).
"""

from __future__ import annotations

from enum import Enum

from skerry.model.errors import InternalError, SiteError, SkerryError
from skerry.model.ids import GroupById
from skerry.model.limits import GroupByLimits


class Sum(Enum):
    OPEN = "some have not answered"
    SHORT = "rows are on their way"
    EQUAL = "all rows are there"
    EXCESS = "there are more rows than were sent"


class Counting:
    """Rounds have numbers that only rise; a count of another round says nothing."""

    def __init__(self, limits: GroupByLimits) -> None:
        self.round = 0
        self.sent: dict[str, int] = {}  # by each sender that is done
        self._limits = limits
        self._awaited: set[str] = set()
        self._weights: dict[str, int] = {}
        self._best = -1  # the greatest sum that a round had
        self._progress_at = 0.0
        self._pause_s = limits.recount_s
        self._again_at: float | None = None  # when the next round is due

    @property
    def expected(self) -> int:
        return sum(self.sent.values())

    @property
    def deadline(self) -> float:
        stuck_at = self._progress_at + self._limits.count_s
        return stuck_at if self._again_at is None else min(stuck_at, self._again_at)

    def is_due(self, now: float) -> bool:
        return self._again_at is not None and now >= self._again_at

    def is_stuck(self, now: float) -> bool:
        """Whether no round has found more than the one before, for too long."""
        return now >= self._progress_at + self._limits.count_s

    def begin(self, workers: tuple[str, ...], now: float) -> None:
        """Counting starts, anew if the workers have changed."""
        self._best, self._progress_at, self._pause_s = -1, now, self._limits.recount_s
        self.next_round(workers)

    def next_round(self, workers: tuple[str, ...]) -> None:
        self.round += 1
        self._again_at = None
        self._awaited = set(workers)
        self._weights = {}

    def counted(self, worker: str, weight: int, now: float) -> Sum:
        """In this round; the first count of each worker."""
        if worker not in self._awaited:
            return Sum.OPEN
        self._awaited.discard(worker)
        self._weights[worker] = weight
        if self._awaited:
            return Sum.OPEN
        total = sum(self._weights.values())
        if total == self.expected:
            return Sum.EQUAL
        if total > self.expected:
            return Sum.EXCESS
        # While more rows come it is worth to ask often.
        self._pause_s = min(2 * self._pause_s, self._limits.alive_s)
        if total > self._best:
            self._best, self._progress_at, self._pause_s = total, now, self._limits.recount_s
        self._again_at = now + self._pause_s
        return Sum.SHORT

    def doubled(self, group: GroupById) -> SkerryError:
        return InternalError(
            f"{group}: {self.expected} rows were sent and {sum(self._weights.values())} came ({_by(self._weights)})"
        )

    def stuck(self, group: GroupById) -> SkerryError:
        silent = f"; no answer of {', '.join(sorted(self._awaited))}" if self._awaited else ""
        return SiteError(
            f"{group}: {max(self._best, 0)} of {self.expected} rows came, and no more for {self._limits.count_s:g} s "
            f"(sent: {_by(self.sent)}; held: {_by(self._weights)}{silent})",
            suggestion="check the links between these members, then ask again",
        )


def _by(counts: dict[str, int]) -> str:
    return ", ".join(f"{member} {count}" for member, count in sorted(counts.items())) or "nothing"

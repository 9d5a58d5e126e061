"""Whether a Sail computes what nobody wants any more. Nothing ends some of its joins once they have begun."""

from __future__ import annotations

from skerry.model.limits import SAIL_WASTE_AGE_S, SAIL_WASTE_LOOK_S, SAIL_WASTE_SHARE


class Waste:
    """Told of cancels, and of the processor time that the process has wanted.

    For whom it computes cannot be told: one that is as busy after a cancel is taken to go on with what was cancelled.
    A mistake costs a fresh process, so a young one is not suspected.
    """

    def __init__(self, now: float) -> None:
        self._young_until = now + SAIL_WASTE_AGE_S
        self._cancelled: tuple[float, float] | None = None  # when a job was, and the time wanted until then
        self.is_seen = False

    def cancelled(self, now: float, wanted_s: float) -> None:
        if self._cancelled is None and now >= self._young_until:
            self._cancelled = now, wanted_s

    def is_due(self, now: float) -> bool:
        """Whether a look would tell anything."""
        return self._cancelled is not None and now >= self._cancelled[0] + SAIL_WASTE_LOOK_S

    def look(self, now: float, wanted_s: float) -> None:
        if self._cancelled is None or not self.is_due(now):
            return
        began, before_s = self._cancelled
        self._cancelled = None
        self.is_seen = self.is_seen or wanted_s - before_s >= SAIL_WASTE_SHARE * (now - began)

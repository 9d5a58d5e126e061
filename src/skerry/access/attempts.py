"""How soon somebody may try to log in again, after attempts that failed. Pure."""

from __future__ import annotations

from collections import OrderedDict

import msgspec

from skerry.model.limits import (
    LOGIN_FAILURES,
    LOGIN_FAILURES_KEPT,
    LOGIN_FAILURES_S,
    LOGIN_WAIT_FIRST_S,
    LOGIN_WAIT_MAX_S,
)


class _Failed(msgspec.Struct):
    times: int = 0
    at: float = 0.0

    @property
    def wait_s(self) -> float:
        over = self.times - LOGIN_FAILURES
        # No power of two that no float holds.
        return 0.0 if over < 0 else min(LOGIN_WAIT_FIRST_S * 2.0 ** min(over, 30), LOGIN_WAIT_MAX_S)


class Attempts:
    """Failures by address and user: one who guesses does not shut out the same user elsewhere."""

    def __init__(self) -> None:
        self._failed: OrderedDict[tuple[str, str], _Failed] = OrderedDict()  # the latest failure last

    def __len__(self) -> int:
        return len(self._failed)

    def wait_s(self, address: str, user: str, now: float) -> float:
        """0 when the next attempt may come now."""
        self._expire(now)
        failed = self._failed.get((address, user))
        return max(0.0, failed.at + failed.wait_s - now) if failed is not None else 0.0

    def failed(self, address: str, user: str, now: float) -> float:
        """One more. Returns how long the next has to wait."""
        self._expire(now)
        failed = self._failed.setdefault((address, user), _Failed())
        failed.times, failed.at = failed.times + 1, now
        self._failed.move_to_end((address, user))
        while len(self._failed) > LOGIN_FAILURES_KEPT:
            self._failed.popitem(last=False)
        return failed.wait_s

    def succeeded(self, address: str, user: str) -> None:
        self._failed.pop((address, user), None)

    def _expire(self, now: float) -> None:
        while self._failed and next(iter(self._failed.values())).at + LOGIN_FAILURES_S <= now:
            self._failed.popitem(last=False)

"""A hybrid logical clock: time that never goes back, not even over a restart. Pure (docs/protocol.md, 11.1)."""

from __future__ import annotations

import datetime as dt

import msgspec

from skerry.model.commits import ClockMark
from skerry.model.errors import ClocksApart
from skerry.model.limits import CommitLimits

# Microseconds since 1970 and the counter fit in one signed number of 64 bits, as SQLite has them, until 2112. If a
# microsecond has more timestamps than the counter, they run on into the next one.
COUNTER_BITS = 11
_US = 1_000_000
_EPOCH = dt.datetime(1970, 1, 1)  # all is in UTC


class At(msgspec.Struct, frozen=True, gc=False):
    """What the shell's clocks say: seconds that never go back, and microseconds since 1970, which may jump."""

    s: float
    wall_us: int


def timestamp_of(wall_us: int) -> int:
    return wall_us << COUNTER_BITS


def seconds(span_s: float) -> int:
    """A span of time as a difference of timestamps."""
    return timestamp_of(int(span_s * _US))


def moment_text(timestamp: int) -> str:
    """For people, in UTC."""
    return (_EPOCH + dt.timedelta(microseconds=timestamp >> COUNTER_BITS)).isoformat(" ")


class HybridClock:
    """`last` is the newest timestamp given or seen; after a restart the clock begins at its durable mark."""

    def __init__(self, limits: CommitLimits, mark: int = 0) -> None:
        self.last = mark
        self.durable = mark
        self.is_unkept = False  # the disk takes no mark now: reads rely on the clock of this life alone
        self._reserved = mark  # a mark that is on its way to disk
        self._limits = limits
        self._ahead, self._renew = seconds(limits.clock_ahead_s), seconds(limits.clock_renew_s)

    def tick(self, at: At) -> int:
        """A timestamp greater than all before it."""
        self.last = max(self.last + 1, timestamp_of(at.wall_us))
        return self.last

    def observe(self, timestamp: int, at: At, peer: str) -> None:
        """A peer's timestamp. One too far ahead is refused: obeyed, it would set all clocks wrong for good."""
        ahead = timestamp - timestamp_of(at.wall_us)
        if ahead > self._ahead:
            raise ClocksApart(
                f"the clock of {peer} is {(ahead >> COUNTER_BITS) / _US:.1f} s ahead; "
                f"at most {self._limits.clock_ahead_s:g} s are allowed",
                suggestion="set the clocks of all members by NTP, and wait until the time has come",
            )
        self.raise_to(timestamp)

    def raise_to(self, timestamp: int) -> None:
        """For what is decided, and must be obeyed."""
        self.last = max(self.last, timestamp)

    def next_mark(self, at: At) -> ClockMark | None:
        """A mark to be written, when the clock nears the one before.

        It is set ahead of the time, not of the clock: else each restart, which begins at the mark, would push it on.
        """
        if self._reserved - self.last > self._renew:
            return None
        by_time = timestamp_of(at.wall_us) + seconds(self._limits.clock_reserve_s)
        self._reserved = max(by_time, self.last + seconds(self._limits.clock_least_s))
        return ClockMark(self._reserved)

    def mark_written(self, upto: int) -> None:
        self.durable = max(self.durable, upto)
        self.is_unkept = False

    def mark_failed(self) -> None:
        """There was no room for it. The next one is due when the clock nears this one."""
        self.is_unkept = True

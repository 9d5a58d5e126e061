"""The hybrid clock: forwards only, within bounds, and over restarts."""

from __future__ import annotations

import pytest

from skerry.model.errors import SiteError
from skerry.model.limits import CommitLimits
from skerry.tables.clock import At, HybridClock, seconds, timestamp_of

US = 1_800_000_000_000_000
LIMITS = CommitLimits()


def test_it_never_goes_back_when_the_time_does() -> None:
    clock = HybridClock(LIMITS)
    first = clock.tick(At(0, US))
    assert first == timestamp_of(US)
    assert clock.tick(At(1, US - 5_000_000)) == first + 1
    assert first.bit_length() <= 63


def test_it_follows_others_but_not_too_far() -> None:
    clock = HybridClock(LIMITS)
    near = timestamp_of(US) + seconds(LIMITS.clock_ahead_s)
    clock.observe(near, At(0, US), "oslo")
    assert clock.tick(At(0, US)) == near + 1
    with pytest.raises(SiteError, match=r"the clock of oslo is 5\.1 s ahead; at most 5 s are allowed"):
        clock.observe(near + seconds(0.1), At(0, US), "oslo")
    assert clock.last == near + 1


def test_its_mark_is_written_ahead_and_seldom() -> None:
    clock = HybridClock(LIMITS)
    clock.tick(At(0, US))
    mark = clock.next_mark(At(0, US))
    assert mark is not None
    assert mark.upto == timestamp_of(US) + seconds(LIMITS.clock_reserve_s)
    assert clock.next_mark(At(0, US)) is None
    assert clock.durable == 0
    clock.mark_written(mark.upto)
    assert clock.durable == mark.upto
    clock.tick(At(0, US + 960_000))
    assert clock.next_mark(At(0, US + 960_000)) is not None


def test_restarts_in_a_row_do_not_drive_it_away_from_the_time() -> None:
    mark = 0
    for _ in range(40):
        clock = HybridClock(LIMITS, mark)
        clock.tick(At(0, US))
        written = clock.next_mark(At(0, US))
        assert written is not None
        assert written.upto > clock.last > mark
        mark = written.upto
    assert mark - timestamp_of(US) < seconds(LIMITS.clock_ahead_s)

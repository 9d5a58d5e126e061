"""When a Sail is taken to compute what nobody wants any more."""

from __future__ import annotations

import pytest

from skerry.spark.waste import Waste

OLD = 1000.0


@pytest.mark.parametrize(
    ("cancelled_at", "wanted_s", "is_seen"),
    [
        (OLD, 2.0, True),
        (OLD, 0.8, True),
        (OLD, 0.3, False),  # it has little to do
        (5.0, 2.0, False),  # it is young
    ],
)
def test_one_that_is_as_busy_after_a_cancel_goes_on(cancelled_at: float, wanted_s: float, is_seen: bool) -> None:
    waste = Waste(0.0)
    waste.cancelled(cancelled_at, 50.0)
    waste.look(cancelled_at + 0.5, 50.0 + wanted_s)
    assert not waste.is_seen  # a cancel takes its time
    waste.cancelled(cancelled_at + 0.6, 60.0)  # the first of several counts
    waste.look(cancelled_at + 1.1, 50.0 + wanted_s)
    assert waste.is_seen is is_seen
    waste.look(cancelled_at + 9.0, 50.0 + wanted_s)
    assert waste.is_seen is is_seen


def test_without_a_cancel_it_may_be_busy() -> None:
    waste = Waste(0.0)
    for at in range(100):
        waste.look(OLD + at, 2.0 * at)
    assert not waste.is_seen

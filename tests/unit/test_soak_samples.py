"""How a soak judges what it saw: flat or growing, and what is left at its end."""

from __future__ import annotations

import pytest

from soak.samples import SLACK, above_idle, judge

TIMES = [2.0 * number for number in range(300)]


@pytest.mark.parametrize(
    ("values", "is_flat"),
    [
        ([200.0] * 300, True),
        ([200.0 + (number % 40) * 5 for number in range(300)], True),  # it comes and goes
        ([min(900.0, 200.0 + number * 10) for number in range(300)], True),  # a heap that finds its size
        ([200.0 + number * 2 for number in range(300)], False),
        ([200.0] * 200 + [500.0] * 100, False),
    ],
)
def test_what_goes_on_growing_is_found(values: list[float], is_flat: bool) -> None:
    judged = judge("member MB", TIMES, values, SLACK["member MB"])
    assert judged.is_flat is is_flat
    assert judged.highest == max(values)


def test_what_is_left_when_all_have_gone() -> None:
    before = {"member sockets": 20.0, "spool MB": 0.0, "member MB": 300.0}
    assert above_idle(before, before | {"member MB": 900.0}, True) == []
    assert above_idle(before, before | {"spool MB": 0.5}, True) == [
        "spool MB: 0.5 when all have gone, 0.0 before they came"
    ]
    busy = before | {"member sockets": 60.0}
    assert (len(above_idle(before, busy, True)), len(above_idle(before, busy, False))) == (1, 0)

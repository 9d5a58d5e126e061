"""Queries that begin at once and lack the same plan ask for it once."""

from __future__ import annotations

from skerry.member.planasks import PlanAsks
from skerry.model.ids import QueryId

ONE, TWO, THREE = (QueryId("oslo", name) for name in ("1", "2", "3"))
OTHER = QueryId("bergen", "1")


def test_concurrent_misses_ask_once() -> None:
    asks = PlanAsks()
    assert [asks.wait(query, "p") for query in (ONE, TWO, THREE)] == [False, True, True]
    assert asks.answered("oslo", "p") == [ONE, TWO, THREE]
    assert asks.answered("oslo", "p") == []
    # The next miss is another one: the plan may have been evicted since.
    assert not asks.wait(ONE, "p")


def test_plans_and_initiators_are_told_apart() -> None:
    asks = PlanAsks()
    assert [asks.wait(ONE, "p"), asks.wait(TWO, "q"), asks.wait(OTHER, "p")] == [False] * 3
    assert asks.answered("bergen", "p") == [OTHER]
    asks.lost("oslo")
    assert not asks.wait(THREE, "p")
    assert asks.answered("oslo", "p") == [THREE]

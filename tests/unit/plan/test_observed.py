"""What edges carried is remembered by what makes their rows."""

from __future__ import annotations

import pytest

from skerry.model.fragment import Plan
from skerry.model.names import TableRef
from skerry.plan.cache import fingerprint
from skerry.plan.estimate import Estimator
from skerry.plan.observed import Observed, Size
from tests.plans.plan_cases import CATALOG, bound, planned

JOIN = "SELECT c_name, sum(o_total) AS total FROM orders JOIN customer ON o_cust = c_id WHERE {} GROUP BY c_name"
OLD = JOIN.format("o_date < DATE '1995-01-01' AND c_nation = 3")


def version(_member: str, _table: str) -> int | None:
    return 1


def sizes(plan: Plan) -> dict[int, Size]:
    return {fragment.id: Size(10 + fragment.id, 1000 + fragment.id) for fragment in plan.fragments}


def estimates(plan: Plan) -> list[tuple[int, int]]:
    return [(fragment.estimated_rows, fragment.estimated_bytes) for fragment in plan.fragments]


def test_the_same_plan_is_estimated_as_it_was_seen() -> None:
    observed, plan = Observed(100), planned(OLD)
    assert observed.estimate(plan, version) is plan
    observed.learn(plan, sizes(plan), version)
    known = observed.estimate(planned(OLD), version)
    assert estimates(known) == [(11, 1001), (12, 1002)]
    # What is run is the same, so sites need not be sent another plan.
    assert known.plan_id == plan.plan_id == fingerprint(known)


def test_other_files_or_another_condition_are_something_else() -> None:
    observed, plan = Observed(100), planned(OLD)
    observed.learn(plan, sizes(plan), version)
    assert observed.estimate(plan, lambda _member, _table: 2) is plan
    assert observed.estimate(plan, lambda _member, _table: None) is plan
    other = planned(JOIN.format("o_date < DATE '1995-01-02' AND c_nation = 3"))
    # The scan of customer is the same, what is made of it is not.
    assert estimates(observed.estimate(other, version))[0] == (11, 1001)
    assert estimates(observed.estimate(other, version))[1] == estimates(other)[1]


def test_a_scan_in_another_query_is_known_too() -> None:
    observed, plan = Observed(100), planned(OLD)
    observed.learn(plan, sizes(plan), version)
    parts = CATALOG.parts(TableRef("customer", None, ()))
    filters = bound("SELECT c_name, c_id FROM customer WHERE `C_Nation` = 3").tables[0].filters
    assert observed.seen(observed.scan_keys(parts, filters), [1.0]) == 11
    assert Estimator(observed).scan(parts, filters).rows == 11
    others = bound("SELECT c_name FROM customer WHERE c_nation = 4").tables[0].filters
    assert observed.seen(observed.scan_keys(parts, others), [1.0]) is None
    assert Estimator(observed).scan(parts, others).rows > 11


@pytest.mark.parametrize(
    ("condition", "parameters", "rows"), [("c_name < '10:30'", None, 11), ("c_name < ?", ["x"], None)]
)
def test_a_parameter_is_told_from_a_text_that_looks_like_one(
    condition: str, parameters: list[str] | None, rows: int | None
) -> None:
    observed, plan = Observed(100), planned(JOIN.format(condition), parameters=parameters)
    observed.learn(plan, sizes(plan), version)
    filters = bound(f"SELECT c_id FROM customer WHERE {condition}", parameters).tables[0].filters
    assert filters
    assert observed.seen(observed.scan_keys(CATALOG.parts(TableRef("customer", None, ())), filters), [1.0]) == rows


@pytest.mark.parametrize(
    ("sql", "parameters"),
    [
        (JOIN.format("c_nation = ?"), [3]),
        ("SELECT o_id FROM orders JOIN customer ON o_cust = c_id LIMIT 5", None),
    ],
)
def test_what_depends_on_a_value_or_may_have_been_stopped_is_not_remembered(sql: str, parameters: object) -> None:
    observed, plan = Observed(100), planned(sql, parameters=parameters)
    observed.learn(plan, sizes(plan), version)
    assert observed.estimate(plan, version) is plan


def test_memory_is_bounded() -> None:
    observed = Observed(4)
    for nation in range(10):
        plan = planned(JOIN.format(f"c_nation = {nation}"))
        observed.learn(plan, sizes(plan), version)
    assert len(observed) == 4
    assert estimates(observed.estimate(plan, version)) == [(11, 1001), (12, 1002)]

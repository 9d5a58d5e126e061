"""What looks as if a rule were for it, and would have another answer, or an error, if the rule were used."""

from __future__ import annotations

import pytest

from skerry.plan.cut import make_plan
from skerry.plan.fragment import Plan
from skerry.plan.rules import Rules
from tests.plans.plan_cases import CATALOG, LIMITS, bound
from tests.plans.test_plans_executed import site

JOINED = "FROM orders JOIN customer ON o_cust = c_id"


def plans(sql: str) -> list[Plan]:
    """Of each initiator, with all rules and links so slow that every byte counts."""
    return [make_plan(bound(sql), CATALOG, site(0.001, at, Rules()), LIMITS) for at in ("oslo", "bergen", "tromso")]


@pytest.mark.parametrize(
    "value",
    [
        "year(c_name)",
        "extract(year FROM c_name)",
        "substring('abc', c_name)",
        "substring(c_name, c_name, 1)",
        "left(c_name, '1')",
        "c_name LIKE c_name",
        r"c_name LIKE 'x\\y'",
        "c_name AND c_name = 'y'",
        "c_name OR c_name = 'x'",
        "c_nation = 0.00000000000000000000000000000000000001",
    ],
)
def test_what_may_fail_is_not_computed_before_its_join(value: str) -> None:
    """Spark casts a string to the date, number or boolean that is wanted: of a row without partner it never does."""
    for plan in plans(f"SELECT o_id, {value} AS v {JOINED}"):
        assert not any("value_0" in fragment.sql for fragment in plan.fragments), plan.fragments


@pytest.mark.parametrize("value", ["substring(c_name, 1, 2)", "c_name LIKE 'x%'", "c_name = 'x' AND c_nation IS NULL"])
def test_what_cannot_fail_is(value: str) -> None:
    found = plans(f"SELECT o_id, {value} AS v {JOINED}")
    assert any("value_0" in fragment.sql for plan in found for fragment in plan.fragments)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 1 AS one, count(*) AS n FROM sales GROUP BY ALL",
        "SELECT 1, count(*) + 1 FROM sales GROUP BY ALL",
        "SELECT count(*) AS n FROM sales GROUP BY GROUPING SETS ((), ())",
    ],
)
def test_groups_by_constants_are_not_made_of_partial_rows(sql: str) -> None:
    """They have no row when the table has none, and a count at each site always has one."""
    for plan in plans(sql):
        assert not plan.finish.aggregate
        assert sum("count(" in fragment.sql for fragment in plan.fragments) == 1, plan.fragments


def test_group_by_all_of_nothing_is_no_clause() -> None:
    for plan in plans("SELECT count(*) + 1 AS n FROM sales GROUP BY ALL"):
        assert sum("count(*)" in fragment.sql for fragment in plan.fragments) == 2
        assert not any("GROUP BY" in fragment.sql for fragment in plan.fragments), plan.fragments


def test_an_alias_of_a_subquery_is_not_seen_in_its_where() -> None:
    """There `o_cust` is the column of orders, which is not where customer is."""
    inner = "SELECT n_id AS o_cust FROM nation WHERE n_id = o_cust"
    for plan in plans(f"SELECT o_id FROM orders, customer WHERE c_id = o_id AND c_nation IN ({inner})"):
        asking = [fragment for fragment in plan.fragments if "AS nation WHERE" in fragment.sql]
        assert asking
        assert all("AS orders" in fragment.sql for fragment in asking), plan.fragments

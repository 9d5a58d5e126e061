"""What a user took of late, and when it has had its share."""

from __future__ import annotations

import pytest

from skerry.member.spending import Spending
from skerry.model.errors import Overloaded
from skerry.model.limits import SPENDERS, Limits


def test_who_took_its_seconds_waits_until_they_are_forgotten() -> None:
    spending = Spending(Limits(spark_s_of_user=100.0, spending_s=600.0))
    spending.add("ann", 60.0, 5, now=1000.0)
    spending.check("ann", 1001.0)
    spending.add("ann", 50.0, 5, now=1300.0)
    with pytest.raises(Overloaded, match=r"ann have taken 110 s of Spark in the last 600 s \(limits.spark_s_of_user\)"):
        spending.check("ann", 1301.0)
    spending.check("bob", 1301.0)
    spending.check("ann", 1610.0)  # the first 60 are forgotten


def test_it_says_when_to_try_again() -> None:
    spending = Spending(Limits(result_rows_of_user=10, spending_s=600.0))
    spending.add("ann", 0.0, 10, now=1000.0)
    with pytest.raises(Overloaded) as refused:
        spending.check("ann", 1300.0)
    assert refused.value.suggestion == "try again in 300 s"
    spending.check("ann", 1600.0)


def test_without_a_bound_nothing_is_remembered() -> None:
    spending = Spending(Limits())
    spending.add("ann", 1e9, 10**12, now=0.0)
    spending.check("ann", 0.0)
    assert not spending._spent


def test_only_so_many_users_are_remembered() -> None:
    spending = Spending(Limits(result_rows_of_user=1))
    for number in range(SPENDERS + 10):
        spending.add(f"user {number}", 0.0, 1, now=float(number) / 100)
    assert len(spending._spent) == SPENDERS

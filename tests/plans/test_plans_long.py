"""What planning does grows as the statement does; and a statement has so many words."""

from __future__ import annotations

import gc
import sys

import msgspec
import pytest

from skerry.model.errors import SqlError
from skerry.testing.long_statements import LONG
from tests.plans.plan_cases import LIMITS, planned

pytestmark = pytest.mark.slow

# One that looks back over the whole row takes 100 x for ten times the text.
SIZES = {"brackets": 4, "UNIONs": 5}
GROWS_MOST = 15


def steps(sql: str) -> int:
    """Calls that planning makes, those of C included: the same on every machine."""
    count = 0

    def called(frame: object, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    gc.disable()  # what is collected meanwhile is no work of the planner's
    sys.setprofile(called)
    try:
        planned(sql, rules="all")
    finally:
        sys.setprofile(None)
        gc.enable()
    return count


# WITH queries are looked at in pairs; there are few enough of them, and other rules for few than for many.
@pytest.mark.parametrize("kind", sorted(LONG.keys() - {"CTEs"}))
def test_work_grows_as_the_text_does(kind: str) -> None:
    size = SIZES.get(kind, 60)
    planned(LONG[kind](2, "logs", "id"), rules="all")
    once, tenfold = (steps(LONG[kind](n, "logs", "id")) for n in (size, 10 * size))
    assert tenfold <= GROWS_MOST * once


def test_a_row_of_conditions_is_not_too_deep() -> None:
    assert planned(LONG["ORs"](3000, "logs", "id"), rules="all")


@pytest.mark.parametrize("chain", [" + 1", " || 'a'"])
def test_a_row_of_operators_that_sorts_is_not_too_deep(chain: str) -> None:
    assert planned(f"SELECT id{chain * 400} AS x FROM logs ORDER BY x", rules="all")


def test_a_statement_has_so_many_words() -> None:
    limits = msgspec.structs.replace(LIMITS, sql_tokens=10)
    assert planned("SELECT id FROM logs WHERE id IN (1)", limits=limits)
    with pytest.raises(SqlError, match=r"more than 10 words and signs \(limits.sql_tokens\)"):
        planned("SELECT id FROM logs WHERE id IN (1);;", limits=limits)

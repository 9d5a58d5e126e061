"""SHOW's patterns against a plain definition of them, and with more stars than can be tried in turn."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from skerry.model.errors import SqlError
from skerry.model.limits import PATTERN_CHOICES
from skerry.sql.patterns import Pattern
from tests.unit.sql.sql_cases import statement


def plainly(pattern: str, name: str) -> bool:
    """By trying everything."""
    if "|" in pattern:
        return any(plainly(choice.strip(), name) for choice in pattern.split("|"))
    if not pattern:
        return not name
    if pattern[0] == "*":
        return any(plainly(pattern[1:], name[at:]) for at in range(len(name) + 1))
    return bool(name) and pattern[0].lower() == name[0].lower() and plainly(pattern[1:], name[1:])


@example("*a*a*", "ba")
@example("a*ab*b", "ab")
@given(st.text("ab*|B.", max_size=8), st.text("aAb.", max_size=6))
def test_a_pattern_means_what_trying_everything_finds(pattern: str, name: str) -> None:
    assert Pattern(pattern).matches(name) == plainly(pattern, name)


def test_no_pattern_matches_every_name() -> None:
    assert Pattern(None).matches("orders")


@pytest.mark.parametrize("stars", [40, 10_000])
def test_stars_are_not_tried_in_every_combination(stars: int) -> None:
    names = ["a" * 60, "a" * 59 + "x"]
    assert [Pattern("*" * stars + "x").matches(name) for name in names] == [False, True]
    assert not Pattern("a*" * stars + "x").matches(names[0])


def test_a_pattern_has_so_many_choices() -> None:
    most = "|".join(f"t{n}*" for n in range(PATTERN_CHOICES))
    assert statement(f"SHOW TABLES LIKE '{most}'")
    with pytest.raises(SqlError, match=f"{PATTERN_CHOICES + 1} choices"):
        statement(f"SHOW SCHEMAS LIKE '{most}|x'")

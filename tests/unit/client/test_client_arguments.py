"""What a caller says wrongly is refused before anything is sent."""

from __future__ import annotations

import math
from typing import Any

import pytest

import skerry
from skerry.client.arguments import planning_options, seconds, statement_text
from skerry.errors import UserError
from skerry.wire.values import to_value


@pytest.mark.parametrize("wrong", [5, None, b"SELECT 1", "SELECT '\ud800'"])
def test_a_statement_is_text(wrong: Any) -> None:
    with pytest.raises(skerry.InterfaceError, match="a statement is"):
        statement_text(wrong, (), 10_000)
    assert statement_text("SELECT 'å'", (), 10_000) == "SELECT 'å'"


def test_a_statement_is_no_larger_than_a_member_takes() -> None:
    with pytest.raises(skerry.InterfaceError, match="have 9000 bytes, a member takes 10000"):
        statement_text("x" * 9000, (), 10000)
    with pytest.raises(skerry.InterfaceError, match="a member takes 10000"):
        statement_text("SELECT ?", [to_value("x" * 9000, "parameter 1")], 10000)
    assert statement_text("x" * 5000, (), 10000)


@pytest.mark.parametrize("wrong", ["5", 0, -1, math.nan, math.inf, True])
def test_a_duration_is_a_number_of_seconds(wrong: Any) -> None:
    with pytest.raises(skerry.InterfaceError, match="timeout_s is a number of seconds above 0"):
        seconds(wrong, "timeout_s")
    assert seconds(2, "timeout_s") == 2.0
    assert seconds(None, "timeout_s") == 0.0


@pytest.mark.parametrize("wrong", ["x", {"rules": 3}, {1: "x"}])
def test_planning_is_a_mapping_of_texts(wrong: Any) -> None:
    with pytest.raises(skerry.InterfaceError, match="planning is a mapping of texts"):
        planning_options(wrong)
    assert planning_options({"rules": "none"}) == {"rules": "none"}
    assert planning_options(None) == {}


def test_a_parameter_is_unicode() -> None:
    with pytest.raises(UserError, match="parameter 1: half of a surrogate pair"):
        to_value("\ud800", "parameter 1")
    assert to_value("😀", "parameter 1").value == "😀"

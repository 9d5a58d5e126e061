"""What a caller says wrongly is refused before anything is sent."""

from __future__ import annotations

import math
from typing import Any

import pytest

import skerry
from skerry.client.arguments import planning_options, rows, seconds, statement_text
from skerry.model.errors import UserError
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


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"url": None}, "a URL is text, not None"),
        ({"url": 5}, "a URL is text, not 5"),
        ({"fault_policy": "x"}, "fault_policy is one of fail, wait, buffer, not 'x'"),
        ({"fault_policy": 5}, "fault_policy is one of"),
        ({"retry": "always"}, "retry is one of never, reads, not 'always'"),
        ({"retry": []}, "retry is one of"),
        ({"timeout_s": 0}, "timeout_s is a number of seconds above 0, not 0"),
        ({"timeout_s": "5"}, "timeout_s is a number"),
        ({"timeout_s": 1e12}, "timeout_s is at most a year"),
        ({"resume_s": -1}, "resume_s is a number of seconds, not -1"),
        ({"resume_s": None}, "resume_s is a number of seconds, not None"),
        ({"resume_s": math.nan}, "resume_s is a number of seconds, not nan"),
        ({"tls": 5}, "tls is a mapping of texts"),
        ({"tls": {"authority": 5}}, "tls is a mapping of texts"),
    ],
)
def test_wrong_settings_of_a_connection(options: dict[str, Any], says: str) -> None:
    with pytest.raises(skerry.InterfaceError, match=says):
        skerry.connect(**{"url": "skerry://127.0.0.1:1"} | options)


@pytest.mark.parametrize("wrong", [-1, "5", 1.5, None, True])
def test_a_number_of_rows(wrong: Any) -> None:
    with pytest.raises(skerry.InterfaceError, match="size is a number of rows, 0 or more"):
        rows(wrong, "size")
    assert [rows(0, "size"), rows(5, "size")] == [0, 5]


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
    with pytest.raises(skerry.InterfaceError, match="fault_policy is no option for the planner"):
        planning_options({"fault_policy": "fail"})


def test_a_parameter_is_unicode() -> None:
    with pytest.raises(UserError, match="parameter 1: half of a surrogate pair"):
        to_value("\ud800", "parameter 1")
    assert to_value("😀", "parameter 1").value == "😀"

"""A prepared statement checks its values before it sends anything."""

from __future__ import annotations

from typing import Any

import pytest

import skerry
from skerry.client.prepared import PreparedStatement
from skerry.model.results import Parameter
from skerry.wire.messages import Goodbye, Hello
from tests.unit.client.scripted_member import Answers, member_with

BY_PLACE = (Parameter("", "bigint"), Parameter("", ""))
BY_NAME = (Parameter("id", "bigint"), Parameter("day", "date"))


@pytest.mark.parametrize(
    ("parameters", "values", "says"),
    [
        (BY_PLACE, None, "has 2 parameters \\(\\?\\); values given: 0"),
        (BY_PLACE, [1], "has 2 parameters \\(\\?\\); values given: 1"),
        (BY_PLACE, ["abc", 1], "parameter 1: 'abc' has a wrong type: bigint is expected"),
        (BY_PLACE, {"id": 1}, "has these parameters: \\?, \\?"),
        (BY_NAME, {"id": 1}, "has these parameters: :id, :day"),
        (BY_NAME, {"id": 1, "day": "2024-02-29", "more": 1}, "has these parameters: :id, :day"),
        (BY_NAME, {"id": 1, "day": 5}, "parameter :day: 5 has a wrong type: date is expected"),
        ((), [1], "has 0 parameters \\(\\?\\); values given: 1"),
    ],
)
def test_what_does_not_fit_is_never_sent(parameters: tuple[Parameter, ...], values: Any, says: str) -> None:
    with member_with(Answers({})) as member:
        with skerry.connect(member.url) as connection:
            statement = PreparedStatement(connection, "numbers", parameters)
            with pytest.raises(skerry.ProgrammingError, match=says):
                statement.execute(values)
        member.wait_for(Goodbye)
        assert {type(message) for message in member.received} <= {Hello, Goodbye}


@pytest.mark.parametrize(
    ("parameters", "values"),
    [
        (BY_PLACE, ["5", object]),
        (BY_PLACE, (None, None)),
        (BY_NAME, {"day": "2024", "id": 2.5}),
        ((), None),
        ((), {}),
    ],
)
def test_what_may_fit_is_left_to_the_member(parameters: tuple[Parameter, ...], values: Any) -> None:
    with member_with(Answers({})) as member, skerry.connect(member.url) as connection:
        PreparedStatement(connection, "numbers", parameters).check(values)

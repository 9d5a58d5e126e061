"""Parameters and errors survive the wire with the types Spark gives them."""

from __future__ import annotations

import datetime as dt
import math
import uuid
from decimal import Decimal
from typing import Any

import msgspec
import pytest

from skerry.model.errors import BY_CODE, Overloaded, PeerError, SqlError, UserError
from skerry.model.results import Value
from skerry.wire.messages import Failure
from skerry.wire.values import error_of, failure_of, from_value, to_value

OSLO = dt.timezone(dt.timedelta(hours=2))


def over_the_wire(value: Any) -> Any:
    return from_value(msgspec.msgpack.decode(msgspec.msgpack.encode(to_value(value, "p")), type=Value))


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (None, "void"),
        (True, "boolean"),
        (2**31 - 1, "int"),
        (-(2**31) - 1, "bigint"),
        (2**63, "decimal(19,0)"),
        (0.1, "double"),
        (-math.inf, "double"),
        (Decimal("1.50"), "decimal(3,2)"),
        (Decimal("0.001"), "decimal(3,3)"),
        (Decimal("1E+3"), "decimal(4,0)"),
        (Decimal("-0"), "decimal(1,0)"),
        ("it's", "string"),
        (b"\x00\xff", "binary"),
        (dt.date(1582, 10, 4), "date"),
        (dt.date.max, "date"),
        (dt.datetime(1, 1, 1, 0, 0, 0, 1), "timestamp_ntz"),
        (dt.datetime(2024, 6, 1, 12, 30, 15, 999999, OSLO), "timestamp"),
        ([], "array<void>"),
        ([1, None, 2**40], "array<bigint>"),
        ([Decimal("1.5"), Decimal("22.25")], "array<decimal(4,2)>"),
        ([["a"], ["b", None]], "array<array<string>>"),
    ],
)
def test_values_arrive_equal(value: Any, kind: str) -> None:
    assert to_value(value, "p").type == kind
    assert over_the_wire(value) == value


def test_tuples_arrive_as_lists_and_nan_as_nan() -> None:
    assert over_the_wire((1, 2)) == [1, 2]
    assert math.isnan(over_the_wire(math.nan))


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (uuid.UUID(int=1), "a value of type UUID cannot be a parameter"),
        (dt.time(1), "a value of type time"),
        ({"a": 1}, "a value of type dict"),
        ([1, "a"], "one type, this one holds int, string"),
        (Decimal("NaN"), "not a decimal number"),
        (10**38, "39 digits"),
        ([Decimal("1e-30"), Decimal(10**20)], "need 51 digits"),
    ],
)
def test_other_values_are_refused_by_the_parameter_s_name(value: Any, reason: str) -> None:
    with pytest.raises(UserError, match=f"^parameter 2: .*{reason}"):
        to_value(value, "parameter 2")


def test_an_endless_list_is_refused() -> None:
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(UserError, match="parameter 1"):
        to_value(endless, "parameter 1")


@pytest.mark.parametrize(
    "value",
    [
        Value("int", "1"),
        Value("boolean", 1),
        Value("decimal(3,2)", "one"),
        Value("date", 10**9),
        Value("timestamp", 2**70),
        Value("string", b"x"),
        Value("array<int>", "x"),
        Value("array<int>", [1, "x"]),
        Value("struct<a:int>", {"a": 1}),
        Value("array<" * 40 + "int" + ">" * 40, [[]]),
    ],
)
def test_values_that_do_not_fit_their_type_are_refused(value: Value) -> None:
    with pytest.raises(PeerError):
        from_value(value if value.type[:12] != "array<array<" else Value(value.type, _nested(40)))


def _nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


def test_errors_arrive_with_class_place_and_advice() -> None:
    error = error_of(failure_of(SqlError("no table orders", member="oslo", suggestion="try oslo.orders")))
    assert type(error) is SqlError
    assert (error.message, error.member, error.suggestion) == ("no table orders", "oslo", "try oslo.orders")
    for kind in BY_CODE.values():
        assert type(error_of(failure_of(kind("x"), "bergen"))) is kind


def test_an_unknown_code_maps_to_its_hundred() -> None:
    failure = msgspec.structs.replace(failure_of(Overloaded("x")), code=499)
    assert type(error_of(failure)) is Overloaded


def test_what_is_not_our_error_tells_no_details() -> None:
    failure = failure_of(ValueError("/secret/path"), "oslo")
    assert (failure.code, failure.member) == (500, "oslo")
    assert "secret" not in failure.message


def test_an_error_of_a_peer_is_no_longer_than_it_may_be() -> None:
    """It comes to the log, and is remembered."""
    long = "x" * 1_000_000
    error = error_of(Failure(400, long, long, long))
    assert max(map(len, (error.message, error.member, error.suggestion))) == 100_000

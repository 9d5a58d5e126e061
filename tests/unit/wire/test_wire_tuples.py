"""Tuples: the msgpack form of every type, its code, and what is refused."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import msgspec
import pyarrow as pa
import pytest

from skerry.model.errors import PeerError
from skerry.model.table import Column
from skerry.spark.types import arrow_type as arrow_of_spark
from skerry.spark.types import parse_type
from skerry.testing.nasty import NASTY, VALUES
from skerry.wire.execution import TypeCode
from skerry.wire.tuples import checked_values, decode_tuples, encode_tuples
from skerry.wire.tupletypes import arrow_type, kind_of, type_code, types_of

NASTY_TYPES = (
    "bigint boolean tinyint smallint int bigint float double decimal(5,2) decimal(18,4) decimal(38,0) decimal(38,18)"
    " string binary date timestamp timestamp_ntz array<int> array<string> map<string,int>"
    " struct<x:int,y:string,z:double> array<struct<k:string,v:array<double>>> int string"
).split()

# A type, its code, a value as Arrow takes it, and its msgpack form.
FORMS: list[tuple[str, TypeCode, Any, Any]] = [
    ("boolean", TypeCode.BOOLEAN, True, True),
    ("tinyint", TypeCode.INTEGER, -128, -128),
    ("smallint", TypeCode.INTEGER, 32767, 32767),
    ("int", TypeCode.INTEGER, 7, 7),
    ("bigint", TypeCode.INTEGER, -(2**63), -(2**63)),
    ("float", TypeCode.DOUBLE, 0.1, 0.10000000149011612),
    ("double", TypeCode.DOUBLE, 0.1, 0.1),
    ("decimal(5,2)", TypeCode.DECIMAL, Decimal("1.5"), "1.50"),
    ("decimal(38,0)", TypeCode.DECIMAL, Decimal(10**38 - 1), "9" * 38),
    ("decimal(38,38)", TypeCode.DECIMAL, Decimal("-1e-38"), "-0." + "0" * 37 + "1"),
    ("string", TypeCode.STRING, "123e4567-e89b-12d3-a456-426614174000", "123e4567-e89b-12d3-a456-426614174000"),
    ("binary", TypeCode.SCALAR, b"\x00\xff", b"\x00\xff"),
    ("date", TypeCode.DATETIME, -719_162, -719_162),
    ("timestamp", TypeCode.DATETIME, 1_700_000_000_000_001, 1_700_000_000_000_001),
    ("timestamp_ntz", TypeCode.DATETIME, -1, -1),
    ("time(6)", TypeCode.SCALAR, 86_399_999_999_000, 86_399_999_999_000),
    ("interval day to second", TypeCode.SCALAR, -1_500_000, -1_500_000),
    ("array<date>", TypeCode.ARRAY, [1, None], [1, None]),
    ("map<string,decimal(3,1)>", TypeCode.MAP, [("b", Decimal(2)), ("a", None)], [["b", "2.0"], ["a", None]]),
    ("struct<x:int,`odd name`:array<string>>", TypeCode.ARRAY, {"x": 1, "odd name": ["ø"]}, [1, ["ø"]]),
    ("void", TypeCode.ANY, None, None),
]


@pytest.mark.parametrize(("text", "code", "value", "form"), FORMS, ids=[each[0] for each in FORMS])
def test_every_type_has_a_code_and_a_form(text: str, code: TypeCode, value: Any, form: Any) -> None:
    kind = kind_of(text)
    assert type_code(text) == code
    assert kind.word in types_of(code)
    assert arrow_type(kind) == arrow_of_spark(parse_type(text))
    column = pa.array([value, None], arrow_type(kind))
    tuples = encode_tuples([column], [text])
    assert [msgspec.msgpack.decode(each) for each in tuples] == [[form], [None]]
    assert decode_tuples(tuples, [Column("a", text)]).column(0).equals(column)


def test_every_code_stands_for_a_type() -> None:
    assert types_of(TypeCode.UUID) == ("string",)
    assert set(types_of(TypeCode.ANY)) == {kind_of(text).word for text, *_ in FORMS}
    assert all(types_of(code) for code in TypeCode)


def test_awkward_rows_come_back() -> None:
    rows = {}
    for name in NASTY.names:
        values = VALUES.get(name, [1])
        rows[name] = [values[place % len(values)] for place in range(300)]
    batch = pa.RecordBatch.from_pydict(rows, schema=NASTY).slice(7)
    columns = [Column(name, text) for name, text in zip(NASTY.names, NASTY_TYPES, strict=True)]
    again = decode_tuples(encode_tuples(batch.columns, NASTY_TYPES), columns)
    assert repr(again.to_pylist()) == repr(batch.to_pylist())  # tells -0.0 from 0.0, and NaN equals itself
    assert decode_tuples([], columns).schema == again.schema


REFUSED: list[tuple[str, Any, str]] = [
    ("bigint", 2**63, "tuple 0: column a (bigint): Expected `int` <= 9223372036854775807"),
    ("tinyint", 128, "tuple 0: column a (tinyint): Expected `int` <= 127"),
    ("int", True, "column a (int): Expected `int | null`, got `bool`"),
    ("int", 1.0, "column a (int): Expected `int | null`, got `float`"),
    ("string", b"x", "column a (string): Expected `str | null`, got `bytes`"),
    ("binary", "x", "column a (binary): Expected `bytes | null`, got `str`"),
    ("float", 0.1, "column a: not float: a number has more digits than a float holds"),
    ("float", 1e300, "column a: not float: a number has more digits than a float holds"),
    ("decimal(5,2)", "1.5", "column a (decimal(5,2)): Expected `str` matching regex"),
    ("decimal(5,2)", "1234.50", "Expected `str` matching regex"),
    ("decimal(5,2)", "NaN", "Expected `str` matching regex"),
    ("decimal(5,0)", "1E9", "Expected `str` matching regex"),
    ("decimal(5,0)", "1\n", "Expected `str` matching regex"),
    ("decimal(2,2)", "1.00", "Expected `str` matching regex"),
    ("decimal(5,0)", "\u0661", "Expected `str` matching regex"),
    ("date", 2**31, "Expected `int` <= 2147483647"),
    ("time(6)", 86_400 * 10**9, "Expected `int` <= 86399999999999"),
    ("time(6)", 1, "Expected `int` that's a multiple of 1000"),
    ("map<string,int>", [[None, 1]], "Expected `str`, got `"),
    ("map<string,int>", {"a": 1}, "Expected `array | null`, got `object`"),
    ("struct<x:int>", [1, 2], "Expected `array` of length 1, got 2"),
    ("void", 1, "Expected `null`, got `int`"),
]


@pytest.mark.parametrize(("text", "value", "message"), REFUSED, ids=[f"{text}-{value!r}" for text, value, _ in REFUSED])
def test_a_value_of_another_type_is_refused(text: str, value: Any, message: str) -> None:
    with pytest.raises(PeerError) as caught:
        decode_tuples([msgspec.msgpack.encode([value])], [Column("a", text)])
    assert message in caught.value.message
    with pytest.raises(PeerError) as caught:
        checked_values([[value]], [Column("a", text)])
    assert message.removeprefix("tuple 0: ") in caught.value.message


def test_a_tuple_has_as_many_values_as_the_table_columns() -> None:
    columns = [Column("a", "int"), Column("b", "int")]
    for row in ([1], [1, 2, 3], 5, {"a": 1}):
        with pytest.raises(PeerError, match="tuple 1: Expected `array`"):
            decode_tuples([b"\x92\x01\x02", msgspec.msgpack.encode(row)], columns)

"""Types as text: what `type_text` writes, `parse_type` reads."""

from __future__ import annotations

import pyarrow as pa
import pyspark.sql.types as st
import pytest
from hypothesis import given
from hypothesis import strategies as some

from skerry.model.errors import InternalError, SqlError
from skerry.model.table import Column
from skerry.spark.types import PLAIN, arrow_schema, arrow_type, columns_of, parse_type, schema_of, struct_of, type_text
from skerry.wire.codec import decode_schema

SIMPLE = some.one_of(
    some.sampled_from([spark for spark, _ in PLAIN.values()]),
    some.builds(lambda p, s: st.DecimalType(p, min(p, s)), some.integers(1, 38), some.integers(0, 38)),
    some.sampled_from([st.DayTimeIntervalType(0, 3), st.DayTimeIntervalType(1, 1), st.TimeType(6)]),
)
NAMES = some.text(min_size=1, max_size=8)
TYPES = some.recursive(
    SIMPLE,
    lambda inner: some.one_of(
        some.builds(st.ArrayType, inner),
        some.builds(st.MapType, inner.filter(lambda key: not isinstance(key, st.NullType)), inner),
        some.builds(
            lambda fields: st.StructType([st.StructField(name, kind) for name, kind in fields]),
            some.lists(some.tuples(NAMES, inner), max_size=3),
        ),
    ),
    max_leaves=8,
)


@given(TYPES)
def test_every_type_reads_back_from_its_text(kind: st.DataType) -> None:
    assert parse_type(type_text(kind)) == kind


@given(TYPES)
def test_every_type_has_an_arrow_type_that_travels(kind: st.DataType) -> None:
    schema = pa.schema([pa.field("c", arrow_type(kind))])
    assert decode_schema(schema_of(st.StructType([st.StructField("c", kind)])).arrow) == schema


def test_a_map_without_a_key_type_is_refused_by_name() -> None:
    with pytest.raises(SqlError, match="map<void,void>"):
        columns_of(st.StructType([st.StructField("c", st.MapType(st.NullType(), st.NullType()))]))


@given(some.text(max_size=40))
def test_any_text_is_a_type_or_refused(text: str) -> None:
    try:
        kind = parse_type(text)
    except InternalError:
        return
    assert type_text(kind) == text


def test_plain_struct_names_are_written_as_spark_does() -> None:
    kind = st.StructType([st.StructField("a", st.IntegerType()), st.StructField("b", st.ArrayType(st.StringType()))])
    assert type_text(kind) == kind.simpleString() == "struct<a:int,b:array<string>>"


def test_char_and_varchar_are_strings() -> None:
    struct = st.StructType([st.StructField("c", st.CharType(3)), st.StructField("v", st.VarcharType(9))])
    assert columns_of(struct) == (Column("c", "string"), Column("v", "string"))
    assert arrow_schema(struct).types == [pa.string(), pa.string()]


@pytest.mark.parametrize(
    "kind",
    [
        st.VariantType(),
        st.CalendarIntervalType(),
        st.YearMonthIntervalType(),
        st.StringType("UTF8_LCASE"),
        st.ArrayType(st.VariantType()),
        st.MapType(st.NullType(), st.IntegerType()),
        st.GeometryType(4326),
    ],
)
def test_what_cannot_travel_is_refused_by_name(kind: st.DataType) -> None:
    with pytest.raises(SqlError, match="column odd has type"):
        columns_of(st.StructType([st.StructField("fine", st.LongType()), st.StructField("odd", kind)]))


def test_columns_become_a_schema_that_allows_null_everywhere() -> None:
    struct = struct_of((Column("k", "bigint"), Column("a", "array<int>")))
    assert [field.nullable for field in struct.fields] == [True, True]
    assert arrow_schema(struct).field("a").type.value_field.nullable

"""Packets and tuples come back as they were sent; any bytes are one or are refused."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.model.commits import Policy
from skerry.model.errors import PeerError
from skerry.model.table import Column
from skerry.wire import execution as packets
from skerry.wire.execution_codec import (
    decode_miss,
    decode_miss_reply,
    decode_request,
    encode_miss,
    encode_request,
)
from skerry.wire.tuples import checked_values, decode_tuples, encode_tuples
from skerry.wire.tupletypes import TypeCode, arrow_type, kind_of, type_code

U32, U64, U8 = st.integers(0, 2**32 - 1), st.integers(0, 2**64 - 1), st.integers(0, 255)
NAMES = st.text(min_size=1, max_size=5)
PLAIN = st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats() | st.text(max_size=5) | st.binary()
VALUES = st.recursive(PLAIN, lambda inner: st.lists(inner, max_size=3), max_leaves=5)
ROW = st.lists(VALUES, min_size=1, max_size=3).map(tuple)
TUPLES = st.lists(st.binary(max_size=9), max_size=4).map(tuple)
POSITIONS = st.lists(U8, min_size=1, max_size=4, unique=True).map(tuple)


@st.composite
def queries(draw: st.DrawFn) -> packets.Dql:
    params = tuple(draw(st.lists(VALUES, max_size=3)))
    query = packets.Dql(
        draw(st.dictionaries(U32, U64, max_size=3)),
        draw(U64),
        draw(U64),
        draw(st.dictionaries(NAMES, TUPLES, max_size=3)),
        packets.Options(draw(U64), draw(U64)),
        params,
    )
    if draw(st.booleans()):
        return query
    fingerprint, sender = draw(st.binary(min_size=16, max_size=16)), draw(NAMES)
    return msgspec.structs.replace(
        query,
        plan_id=packets.plan_number(fingerprint),
        sender_id=packets.member_number(sender),
        exact=packets.Exact(fingerprint, sender, tuple("int" for _ in params)),
    )


SHARED = st.builds(packets.SharedItem, ROW, st.binary(max_size=9))
LOCAL = st.builds(
    lambda pk, positions, value: packets.LocalItem(pk, tuple((value, each) for each in positions)),
    *(ROW, POSITIONS, VALUES),
)
POLICIES = st.sampled_from(Policy)
TARGETS = st.lists(st.builds(packets.Reference, U64) | st.builds(packets.Fixed, VALUES), max_size=3).map(tuple)
MAPPINGS = st.dictionaries(U64, U64, min_size=1, max_size=3)
BODIES: st.SearchStrategy[packets.Body] = st.one_of(
    queries(),
    st.builds(packets.Insert, U32, U64, POLICIES, TUPLES),
    st.builds(packets.SharedUpdate, U32, U64, st.lists(SHARED, max_size=3).map(tuple)),
    st.builds(packets.LocalUpdate, U32, U64, st.lists(LOCAL, max_size=3).map(tuple)),
    st.builds(packets.Delete, U32, U64, TUPLES | st.just(msgspec.UNSET)),
    st.builds(packets.DeleteSelected, U32, U64, queries()),
    st.builds(packets.InsertSelected, U32, U64, POSITIONS, POLICIES, TARGETS, queries()),
    st.builds(packets.UpdateSelected, U32, U64, MAPPINGS, POSITIONS, queries()),
)
REQUESTS = st.builds(packets.Request, st.text(min_size=1, max_size=64), BODIES)


@given(request=REQUESTS)
def test_a_request_comes_back_as_it_was_sent(request: packets.Request) -> None:
    assert repr(decode_request(encode_request(request))) == repr(request)  # NaN equals nothing


@given(request=REQUESTS, changes=st.lists(st.tuples(st.integers(0, 2**16), U8), min_size=1, max_size=4), cut=U8)
def test_a_damaged_request_is_refused_or_one(
    request: packets.Request, changes: list[tuple[int, int]], cut: int
) -> None:
    data = bytearray(encode_request(request))
    for at, value in changes:
        data[at % len(data)] = value
    del data[len(data) - cut % 3 :]
    try:
        found = decode_request(bytes(data))
    except PeerError:
        return
    assert repr(decode_request(encode_request(found))) == repr(found)


@given(data=st.binary(max_size=80))
def test_any_bytes_are_a_packet_or_refused(data: bytes) -> None:
    for read in (decode_request, decode_miss, decode_miss_reply):
        try:
            assert read(data) is not None
        except PeerError:
            continue


@given(request_id=st.text(min_size=1, max_size=64), plan_id=U64)
def test_a_miss_comes_back(request_id: str, plan_id: int) -> None:
    miss = packets.CacheMiss(request_id, plan_id)
    assert decode_miss(encode_miss(miss)) == miss


# --- tuples ---------------------------------------------------------------------------------------
def whole(bits: int) -> st.SearchStrategy[int]:
    return st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def decimals(precision: int, scale: int) -> st.SearchStrategy[Decimal]:
    most = 10**precision - 1
    ends = st.sampled_from([most, -most, 0, 1, -1])
    return (ends | st.integers(-most, most)).map(lambda unscaled: Decimal(f"{unscaled}E-{scale}"))


FLOATS = st.sampled_from([math.nan, -0.0, 0.0, math.inf, -math.inf, 5e-324])
# Values as Arrow takes them: times of all sorts as the numbers that they are stored as.
LEAVES: dict[str, st.SearchStrategy[Any]] = {
    "boolean": st.booleans(),
    "tinyint": whole(8),
    "smallint": whole(16),
    "int": whole(32),
    "bigint": whole(64),
    "float": FLOATS.filter(lambda each: each != 5e-324) | st.floats(width=32),
    "double": FLOATS | st.floats(),
    "string": st.text(max_size=6) | st.uuids().map(str),
    "binary": st.binary(max_size=6),
    "date": whole(32),
    "timestamp": whole(64),
    "timestamp_ntz": whole(64),
    "time(6)": st.integers(0, 86_400 * 10**6 - 1).map(lambda micros: micros * 1000),
    "time(0)": st.integers(0, 86_399).map(lambda seconds: seconds * 10**9),
    "interval day to second": whole(64),
    "interval hour": whole(64),
    "decimal(38,18)": decimals(38, 18),
    "decimal(38,0)": decimals(38, 0),
    "decimal(5,5)": decimals(5, 5),
    "decimal(1,0)": decimals(1, 0),
    "void": st.nothing(),
}


def nested(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    keys = inner.filter(lambda text: text != "void")
    return st.one_of(
        inner.map(lambda item: f"array<{item}>"),
        st.builds(lambda key, value: f"map<{key},{value}>", keys, inner),
        st.builds(lambda one, other: f"struct<x:{one},`it``s odd`:{other}>", inner, inner),
    )


TYPES = st.recursive(st.sampled_from(sorted(LEAVES)), nested, max_leaves=4)


def values_of(text: str) -> st.SearchStrategy[Any]:
    kind = kind_of(text)

    def made(each: Any, is_key: bool = False) -> st.SearchStrategy[Any]:
        match each.word:
            case "array":
                found: st.SearchStrategy[Any] = st.lists(made(each.items[0]), max_size=3)
            case "map":
                found = st.lists(st.tuples(made(each.items[0], True), made(each.items[1])), max_size=3)
            case "struct":
                names = each.names
                found = st.tuples(*map(made, each.items)).map(lambda row: dict(zip(names, row, strict=True)))
            case "decimal":
                found = decimals(*each.sizes)
            case "time":
                found = LEAVES[f"time({each.sizes[0]})"]
            case "interval":
                found = whole(64)
            case _:
                found = LEAVES[each.word]
        return found if is_key else st.none() | found

    return made(kind)


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[str], pa.RecordBatch]:
    types = draw(st.lists(TYPES, min_size=1, max_size=2))
    rows = draw(st.integers(0, 4))
    columns = [
        pa.array(draw(st.lists(values_of(text), min_size=rows, max_size=rows)), arrow_type(kind_of(text)))
        for text in types
    ]
    return types, pa.RecordBatch.from_arrays(columns, names=[f"c{place}" for place in range(len(types))])


def stored(batch: pa.RecordBatch) -> list[str]:
    """By Arrow's own words: Python has no dates before the year 1. They tell what stands behind a null struct, too."""
    return [str(column) for column in batch.columns if "struct" not in str(column.type)]


@given(table=tables(), skip=st.integers(0, 2))
def test_rows_come_back_as_they_were_sent(table: tuple[list[str], pa.RecordBatch], skip: int) -> None:
    types, batch = table
    batch = batch.slice(min(skip, batch.num_rows))
    columns = [Column(name, text) for name, text in zip(batch.schema.names, types, strict=True)]
    tuples = encode_tuples(batch.columns, types)
    assert len(tuples) == batch.num_rows
    again = decode_tuples(tuples, columns)
    again.validate(full=True)
    assert again.schema.types == batch.schema.types
    assert stored(again) == stored(batch)
    unpacked = checked_values([msgspec.msgpack.decode(each) for each in tuples], columns)
    assert stored(unpacked) == stored(batch)
    assert encode_tuples(again.columns, types) == tuples


@given(types=st.lists(TYPES, min_size=1, max_size=3), row=st.lists(VALUES, max_size=4))
def test_any_tuple_is_a_row_or_refused(types: list[str], row: list[Any]) -> None:
    columns = [Column(f"c{place}", text) for place, text in enumerate(types)]
    try:
        batch = decode_tuples([msgspec.msgpack.encode(row)], columns)
    except PeerError:
        return
    batch.validate(full=True)
    assert batch.num_rows == 1
    assert all(code in TypeCode for code in map(type_code, types))


@given(data=st.binary(max_size=40))
def test_any_bytes_are_a_tuple_or_refused(data: bytes) -> None:
    columns = [Column("a", "array<map<string,decimal(4,2)>>"), Column("b", "float")]
    try:
        batch = decode_tuples([data], columns)
    except PeerError:
        return
    batch.validate(full=True)
    assert batch.num_rows == 1


@pytest.mark.parametrize("text", ["", "in", "decimal(39,0)", "array<int", "map<void,int>", "array<" * 30, "variant"])
def test_no_other_text_is_a_type(text: str) -> None:
    with pytest.raises(PeerError, match=r"^columns: "):
        decode_tuples([b"\x91\xc0"], [Column("a", text)])

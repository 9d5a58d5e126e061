"""Keys, rows and buckets of all types: bytes that compare as values do, and come back as they were."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import hypothesis.strategies as st
import msgspec
import numpy as np
import pyarrow as pa
import pytest
import xxhash
from hypothesis import given, settings

from skerry.model.commits import Write
from skerry.model.errors import SiteError, UserError
from skerry.model.sharded import OwnColumn, OwnTable
from skerry.tables.bucket import SEED, buckets_of, hashes_of
from skerry.tables.checks import check_by_columns
from skerry.tables.columns import arrow_type, fault_of
from skerry.tables.keys import decode_keys, encode_keys
from skerry.tables.rows import decode_rows, encode_rows
from skerry.tables.single import are_sound, bucket_of, key_of
from skerry.tables.writes import batch_of as rows_of
from skerry.tables.writes import deletes_of, writes_of
from tests.unit.tables.table_samples import KEY_TYPES, MEMBER, TYPES, a_table, all_types, batch_of

DECIMALS = st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**18), max_value=10**18, places=2)


def keys_of(kind: str, values: list[Any]) -> list[bytes]:
    return encode_keys(["k"], [pa.array(values, arrow_type(kind))])


@pytest.mark.parametrize("kind", KEY_TYPES)
def test_a_key_comes_back_and_compares_as_its_value(kind: str) -> None:
    values = TYPES[kind]
    keys = keys_of(kind, values)
    (back,) = decode_keys([arrow_type(kind)], keys)
    assert [repr(value) for value in back.to_pylist()] == [
        repr(value + 0.0 if isinstance(value, float) else value)
        for value in pa.array(values, arrow_type(kind)).to_pylist()
    ]
    numbers = [value for value in values if value == value]
    assert [numbers[at] for at in np.argsort(keys_of(kind, numbers), kind="stable")] == sorted(numbers)


@given(st.lists(DECIMALS, min_size=2, max_size=5), st.lists(st.tuples(st.text(), st.binary()), min_size=2, max_size=5))
@settings(max_examples=60)
def test_keys_sort_as_their_parts(numbers: list[Decimal], pairs: list[tuple[str, bytes]]) -> None:
    assert sorted(keys_of("decimal(20,2)", numbers)) == keys_of("decimal(20,2)", sorted(numbers))
    assert keys_of("decimal(20,2)", numbers) == keys_of("decimal(38,10)", numbers)

    def both(some: list[tuple[str, bytes]]) -> list[bytes]:
        return encode_keys(["a", "b"], [pa.array([a for a, _ in some]), pa.array([b for _, b in some], pa.binary())])

    assert sorted(both(pairs)) == both(sorted(pairs, key=lambda pair: (pair[0].encode(), pair[1])))
    assert len(set(both(pairs))) == len(set(pairs))


def test_numbers_have_one_key_and_one_bucket_in_every_type() -> None:
    for kinds in (["tinyint", "smallint", "int", "bigint"], ["float", "double"]):
        assert len({tuple(keys_of(kind, [5, -7])) for kind in kinds}) == 1
    numbers = ["tinyint", "bigint", "float", "double", "decimal(38,0)", "decimal(20,2)", "decimal(38,20)"]
    columns = [pa.array([5, -7], pa.int8()).cast(arrow_type(kind)) for kind in numbers]
    assert len({tuple(hashes_of([column]).tolist()) for column in columns}) == 1
    assert keys_of("double", [0.0, float("nan")]) == keys_of("double", [-0.0, -float("nan")])


@pytest.mark.parametrize("kind", KEY_TYPES)
def test_a_hash_is_chained_and_the_same_for_a_slice(kind: str) -> None:
    values = pa.array([None, *TYPES[kind], None], arrow_type(kind))
    alone, first = hashes_of([values]), pa.array(range(len(values)))
    assert alone[0] == SEED
    assert hashes_of([values.slice(1, 1)])[0] == alone[1]
    chained = hashes_of([first, values])
    assert chained[0] == hashes_of([first])[0]
    assert hashes_of([first.slice(1), values.slice(1)]).tolist() == chained[1:].tolist()


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1), st.lists(DECIMALS, min_size=1))
@settings(max_examples=60)
def test_many_at_once_are_hashed_as_one_by_one(numbers: list[int], decimals: list[Decimal]) -> None:
    wanted = [xxhash.xxh64_intdigest(number.to_bytes(8, "little", signed=True), 42) for number in numbers]
    assert hashes_of([pa.array(numbers, pa.int64())]).tolist() == wanted
    signed = [digest - (1 << 64) if digest >> 63 else digest for digest in wanted]
    assert buckets_of([pa.array(numbers, pa.int64())], 3000).tolist() == [digest % 3000 for digest in signed]
    texts = [format(value, "f").rstrip("0").rstrip(".") if value % 1 else str(int(value)) for value in decimals]
    bodies = [int(text).to_bytes(8, "little", signed=True) if "." not in text else text.encode() for text in texts]
    columns = [pa.array(decimals, pa.decimal128(20, 2)), pa.array(decimals, pa.decimal128(38, 19))]
    for column in columns:
        assert hashes_of([column]).tolist() == [xxhash.xxh64_intdigest(body, 42) for body in bodies]


def test_rows_of_all_types_come_back() -> None:
    table = all_types()
    most = max(map(len, TYPES.values()))
    rows = [
        {"a": "x", "b": float(at), "c": Decimal(at)}
        | {f"v{number}": [*values, None][min(at, len(values))] for number, values in enumerate(TYPES.values())}
        for at in range(most + 1)
    ]
    batch = batch_of(table, rows)
    for part in (batch, batch.slice(1, 3), batch.slice(0, 0)):
        back = decode_rows(batch.schema, encode_rows(part))
        back.validate(full=True)
        assert [repr(row) for row in back.to_pylist()] == [repr(row) for row in part.to_pylist()]
    writes = writes_of(table, batch)
    gone = deletes_of(table, batch.select(["a", "b", "c"]))
    assert [write.key for write in writes] == [write.key for write in gone]
    mixed = rows_of(table, [(write.key, write.row) for write in (gone[0], writes[1], gone[2], writes[3])])
    assert repr(mixed.select(["a", "b", "c"]).to_pylist()) == repr(
        batch.slice(0, 4).select(["a", "b", "c"]).to_pylist()
    )
    assert repr(mixed.slice(1, 1).to_pylist()) == repr(batch.slice(1, 1).to_pylist())
    assert mixed.column("v3").to_pylist()[::2] == [None, None]


def test_nulls_and_foreign_bytes_are_refused() -> None:
    table = a_table()
    for row in ({"k": None, "v": "x"}, {"v": "x"}):
        with pytest.raises(UserError, match="column k cannot be NULL"):
            writes_of(table, batch_of(table, [row]))
    with pytest.raises(UserError, match="primary key: it cannot be NULL"):
        deletes_of(table, batch_of(table, [{"k": None}]))
    good = writes_of(table, batch_of(table, [{"k": 1, "v": "x"}]))[0]
    for bad in (Write(1, good.key, b"\xc1"), Write(1, good.key, b"\x91\x01"), Write(1, b"short", None)):
        with pytest.raises(SiteError, match="table t1: rows that were kept cannot be read"):
            rows_of(table, [(bad.key, bad.row)])


@pytest.mark.parametrize(
    ("columns", "key", "by", "fault"),
    [
        ("k bigint", "k", "k", ""),
        ("k bigint", "", "", "no PRIMARY KEY"),
        ("k bigint,K int", "k", "k", "named twice"),
        ("k bigint", "x", "", "column x of the PRIMARY KEY is not one of its columns"),
        ("k array<int>", "k", "", "keys are single values"),
        ("k bigint,v interval", "k", "", "no file holds values of type interval"),
        ("k bigint,v int", "k", "v", "column v of DISTRIBUTED BY is not in the PRIMARY KEY"),
        ("k bigint,v int", "k k", "k", "twice"),
    ],
)
def test_what_cannot_be_a_table_is_said(columns: str, key: str, by: str, fault: str) -> None:
    made = tuple(OwnColumn(*column.split(" ", 1)) for column in columns.split(","))
    table = OwnTable(1, "t", 1, made, tuple(key.split()), tuple(by.split()), (MEMBER,))
    assert fault in fault_of(table)
    assert bool(fault_of(table)) == bool(fault)


FEW_TABLE = OwnTable(
    1,
    "few",
    1,
    tuple(
        OwnColumn(f"c{place}", kind, is_nullable=place > 1 and kind != "double")
        for place, kind in enumerate(("int", "string", *(each for each in TYPES if "<" not in each)))
    ),
    ("c1", "c0"),
    ("c1",),
    (MEMBER,),
    buckets=3000,
)
# What a peer may say that is or is no value of a column, in msgpack's form.
ODD = [None, True, 0, -1, 127, 128, -129, 2**31, -(2**31), 2**63 - 1, 2**63, 2**64 - 1, 1.5, 2.0**60, float("nan")]
ODD += ["", "x", "a\0b", "1", "1.00", "-0.50", "1.0", "1.000", "1e3", " 1.00", "1.00\n", "١.00", "9" * 38, "9" * 39]
ODD += ["123456789012345678.90", "1234567890123456789.00", "0." + "9" * 38, "1." + "0" * 38, b"", b"\xff", [1], {}]


def few_row(number: int, text: str) -> list[Any]:
    return [number, text, *[0.5 if column.type == "double" else None for column in FEW_TABLE.columns[2:]]]


@given(st.integers(-(2**31), 2**31 - 1), st.text(max_size=5), st.binary())
@settings(max_examples=60)
def test_a_row_that_is_let_through_alone_is_let_through_by_columns(number: int, text: str, noise: bytes) -> None:
    table, good = FEW_TABLE, few_row(number, text)
    (key,) = encode_keys(["t", "n"], [pa.array([text]), pa.array([number], pa.int32())])
    (bucket,) = buckets_of([pa.array([text])], table.buckets).tolist()
    assert key_of([text, number]) == key
    assert bucket_of([text], table.buckets) == bucket
    assert key_of([number]) == keys_of("int", [number])[0]
    assert bucket_of([text, number], 16384) == buckets_of([pa.array([text]), pa.array([number])], 16384)[0]
    here, away = [(bucket, bucket + 1)], [(0, bucket), (bucket + 1, table.buckets)]
    raw = msgspec.msgpack.encode(good)
    write = Write(1, key, raw)
    assert are_sound(table, here, [write, write])
    assert not are_sound(table, away, [write])
    assert not are_sound(table, here, [write, Write(1, key + b"\0", raw)])
    for other in (noise, raw + noise, msgspec.msgpack.encode(good[:-1]), msgspec.msgpack.encode([*good, None])):
        if are_sound(table, here, [Write(1, key, other)]):
            check_by_columns(table, here, [Write(1, key, other)])


def test_a_value_that_is_let_through_alone_is_let_through_by_columns() -> None:
    table, sound = FEW_TABLE, 0
    (key,), everywhere = encode_keys(["t", "n"], [pa.array(["a"]), pa.array([7], pa.int32())]), [(0, table.buckets)]
    for place in range(len(table.columns)):
        for odd in ODD:
            row = few_row(7, "a")
            row[place] = odd
            write = Write(1, key, msgspec.msgpack.encode(row))
            if are_sound(table, everywhere, [write]):
                check_by_columns(table, everywhere, [write])
                sound += 1
    assert sound > 70


@pytest.mark.parametrize("kind", [kind for kind in TYPES if "<" not in kind and kind != "float"])
def test_values_of_plain_types_need_no_columns(kind: str) -> None:
    table = a_table(value=kind)
    for write in writes_of(table, batch_of(table, [{"k": 1, "v": value} for value in [*TYPES[kind], None]])):
        assert are_sound(table, [(0, table.buckets)], [write])
        assert not are_sound(table, [(0, table.buckets)], [Write(1, write.key, None)])
        assert not are_sound(table, [(0, table.buckets)], [Write(1, write.key, write.row, is_patch=True)])

"""The merge of sorted runs equals a stable sort in Spark's order, however the runs are cut into batches."""

from __future__ import annotations

import decimal
import functools
import math
from typing import Any, TypeAlias

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skerry.exchange.input import END, WAIT, Polled
from skerry.exchange.merge import Merge
from skerry.model.fragment import SortKey

pytestmark = pytest.mark.slow

INT64 = st.integers(-(2**63), 2**63 - 1) | st.integers(-2, 2)


@functools.cache
def decimals(precision: int, scale: int) -> st.SearchStrategy[decimal.Decimal]:
    most = 10**precision - 1
    unscaled = st.integers(-most, most) | st.integers(-3, 3) | st.sampled_from([2**63, -(2**63), 2**64, -(2**64)])
    return unscaled.filter(lambda value: abs(value) <= most).map(
        lambda value: decimal.Decimal((int(value < 0), tuple(map(int, str(abs(value)))), -scale))
    )


FLOATS = st.sampled_from([0.0, -0.0, 0.0, -0.0, math.nan, -math.nan, math.inf, -math.inf, 1.5, -1.5, 5e-324])
TEXT = st.text(max_size=4) | st.sampled_from(["", "a", "a\x00", "ab", "é", "z", "\U0001f600", "\uffff"])
BYTES = st.binary(max_size=3) | st.sampled_from([b"", b"\x00", b"\x7f", b"\x80", b"\xff", b"\xff\x00"])

TYPES: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.bool_(): st.booleans(),
    pa.int8(): st.integers(-128, 127),
    pa.int16(): st.integers(-(2**15), 2**15 - 1) | st.integers(-2, 2),
    pa.int32(): st.integers(-(2**31), 2**31 - 1) | st.integers(-2, 2),
    pa.int64(): INT64,
    pa.float32(): FLOATS.filter(lambda value: value != 5e-324) | st.floats(width=32),
    pa.float64(): FLOATS | st.floats(),
    pa.decimal128(5, 2): decimals(5, 2),
    pa.decimal128(18, 0): decimals(18, 0),
    pa.decimal128(19, 4): decimals(19, 4),
    pa.decimal128(38, 10): decimals(38, 10),
    pa.string(): TEXT,
    pa.large_string(): TEXT,
    pa.string_view(): TEXT,
    pa.binary(): BYTES,
    pa.large_binary(): BYTES,
    pa.binary_view(): BYTES,
    pa.date32(): st.integers(-(2**31), 2**31 - 1) | st.integers(-2, 2),
    pa.timestamp("us"): INT64,
    pa.timestamp("us", "UTC"): INT64,
    pa.duration("us"): INT64,
    pa.time64("ns"): st.integers(0, 86_400 * 10**9 - 1),
    pa.null(): st.none(),
}
# Few different values make many ties, across batches and lanes.
POOLS = {type: st.lists(st.none() | values, min_size=1, max_size=4) for type, values in TYPES.items()}


def compare_values(left: Any, right: Any) -> int:
    if isinstance(left, float):
        left, right = (1, 0.0) if math.isnan(left) else (0, left), (1, 0.0) if math.isnan(right) else (0, right)
    elif isinstance(left, str):
        left, right = left.encode(), right.encode()
    return int(left > right) - int(left < right)


def compare_rows(keys: list[SortKey], left: tuple[Any, ...], right: tuple[Any, ...]) -> int:
    """Spark's order, said as plainly as can be: the reference."""
    for key in keys:
        a, b = left[key.index], right[key.index]
        if a is None or b is None:
            found = (a is None) - (b is None)
            found = -found if key.nulls_first else found
        else:
            found = compare_values(a, b)
            found = -found if key.descending else found
        if found:
            return found
    return 0


class Script:
    """An Input that says what is written down."""

    def __init__(self, answers: list[Polled]) -> None:
        self.answers = answers

    def poll(self) -> Polled:
        return self.answers.pop(0) if self.answers else END


def batch_of(rows: list[tuple[Any, ...]], schema: pa.Schema) -> pa.RecordBatch:
    # Some batches are slices: kernels and buffers must mind the offset.
    padded = [rows[0], *rows] if rows else rows
    columns = [pa.array([row[number] for row in padded], field.type) for number, field in enumerate(schema)]
    batch = pa.RecordBatch.from_arrays(columns, schema=schema)
    return batch.slice(1) if rows else batch


SOME_TYPES = st.lists(st.sampled_from(list(TYPES)), min_size=1, max_size=3)
World: TypeAlias = tuple[pa.Schema, list[SortKey], list[list[tuple[Any, ...]]], list[Script]]


@st.composite
def worlds(draw: st.DrawFn) -> World:
    return draw(worlds_of(draw(SOME_TYPES)))


@st.composite
def worlds_of(draw: st.DrawFn, types: list[pa.DataType]) -> World:
    # The last two columns say where a row came from: they show whether ties keep their order.
    schema = pa.schema([*((f"c{n}", type) for n, type in enumerate(types)), ("lane", pa.int32()), ("row", pa.int32())])
    indices = draw(st.permutations(range(len(types))))
    keys = [SortKey(index, draw(st.booleans()), draw(st.booleans())) for index in indices]
    pools = [draw(POOLS[type]) for type in types]
    values = st.tuples(*(st.sampled_from(pool) for pool in pools))
    by_spark = functools.cmp_to_key(functools.partial(compare_rows, keys))
    lanes: list[list[tuple[Any, ...]]] = []
    scripts: list[Script] = []
    for lane in range(draw(st.integers(0, 5))):
        rows = sorted(draw(st.lists(values, max_size=12)), key=by_spark)
        numbered = [(*row, lane, number) for number, row in enumerate(rows)]
        cuts = sorted(draw(st.lists(st.integers(0, len(rows)), max_size=5)))
        answers: list[Polled] = []
        for start, end in zip([0, *cuts], [*cuts, len(rows)], strict=True):
            answers += [WAIT] * draw(st.integers(0, 1)) + [batch_of(numbered[start:end], schema)]
        lanes.append(numbered)
        scripts.append(Script(answers))
    return schema, keys, lanes, scripts


def drain(merge: Merge, polls_max: int = 1000) -> list[pa.RecordBatch]:
    batches: list[pa.RecordBatch] = []
    for _ in range(polls_max):
        polled = merge.poll()
        if polled is END:
            assert merge.poll() is END
            return batches
        if polled is not WAIT:
            batches.append(polled)
    raise AssertionError("the merge does not end")


def check(world: World, batch_rows: int, batch_bytes: int) -> None:
    schema, keys, lanes, scripts = world
    batches = drain(Merge(scripts, keys, schema, batch_rows, batch_bytes))
    by_spark = functools.cmp_to_key(functools.partial(compare_rows, keys))
    expected = sorted((row for lane in lanes for row in lane), key=by_spark)
    assert all(0 < batch.num_rows <= batch_rows for batch in batches)
    assert all(batch.nbytes <= batch_bytes or batch.num_rows == 1 for batch in batches)
    merged = pa.Table.from_batches(batches, schema)
    merged.validate(full=True)
    places = [row[-2:] for row in expected]
    assert list(zip(*(merged.column(name).to_pylist() for name in ("lane", "row")), strict=True)) == places
    # Every other column moved with its row, bit by bit: -0.0 stays what it was.
    for number, field in enumerate(schema):
        column = pa.chunked_array([pa.array([row[number] for row in expected], field.type)], field.type)
        moved = merged.column(number)
        if pa.types.is_floating(field.type):
            assert repr(moved.to_pylist()) == repr(column.to_pylist())
        else:
            assert moved.equals(column)


@settings(max_examples=250, deadline=None)
@given(worlds(), st.integers(1, 20), st.sampled_from([1, 100, 1 << 20]))
def test_merge_is_a_stable_sort_in_sparks_order(world: World, batch_rows: int, batch_bytes: int) -> None:
    check(world, batch_rows, batch_bytes)


@pytest.mark.parametrize("type", TYPES, ids=str)
def test_each_supported_type_is_merged(type: pa.DataType) -> None:
    @settings(max_examples=25, deadline=None)
    @given(worlds_of([type]))
    def merge_is_a_sort(
        world: World,
    ) -> None:
        check(world, 1000, 1 << 20)

    merge_is_a_sort()

"""Merged partial aggregates equal a naive model of Spark's, however groups lie in batches."""

from __future__ import annotations

import decimal
import itertools
import math
import statistics
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skerry.exchange.aggregate import Aggregate
from skerry.exchange.input import END, WAIT, Polled
from skerry.exchange.merge import Merge
from skerry.model.errors import SqlError
from skerry.model.fragment import MergeStep, SortKey
from tests.property.exchange.test_exchange_merge_properties import TYPES, decimals

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True, scope="module")
def exact_decimals() -> Iterator[None]:
    with decimal.localcontext(prec=100):
        yield


# Cases times types are many already.
FEW = settings(max_examples=25)


class Scripted:
    """Batches in turn, with a WAIT before each."""

    def __init__(self, batches: list[pa.RecordBatch]) -> None:
        self._left = [each for batch in batches for each in (WAIT, batch)]

    def poll(self) -> Polled:
        return self._left.pop(0) if self._left else END


def drained(source: Any) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    while (polled := source.poll()) is not END:
        if polled is not WAIT:
            assert polled.num_rows
            rows += polled.to_pylist()
    assert source.poll() is END
    return rows


def merged(rows: list[tuple[int, Any]], type: pa.DataType, kind: str, cut: int) -> dict[int, Any]:
    """The merge of rows (group, value), which arrive `cut` a batch."""
    schema = pa.schema([("g", pa.int64()), ("v", type)])
    ordered = sorted(rows, key=lambda row: row[0])
    batches = [
        pa.RecordBatch.from_pydict({"g": [g for g, _ in part], "v": pa.array([v for _, v in part], type)}, schema)
        for part in (ordered[at : at + cut] for at in range(0, len(ordered), cut))
    ]
    steps = [MergeStep(0, "any"), MergeStep(1, kind)]
    found = drained(Aggregate(Scripted(batches), [SortKey(0, False, True)], steps, schema))
    assert [row["g"] for row in found] == sorted({g for g, _ in rows})
    return {row["g"]: row["v"] for row in found}


def model(rows: list[tuple[int, Any]], fold: Callable[[list[Any]], Any]) -> dict[int, Any]:
    """`fold` of the values of each group that are not NULL."""
    groups: dict[int, list[Any]] = {}
    for group, value in rows:
        groups.setdefault(group, []).append(value)
    folded = {group: [value for value in values if value is not None] for group, values in groups.items()}
    return {group: fold(values) if values else None for group, values in folded.items()}


@cache  # a strategy that is made anew for each example is also checked anew
def rows_of(values: st.SearchStrategy[Any], most: int = 30) -> st.SearchStrategy[list[tuple[int, Any]]]:
    return st.lists(st.tuples(st.integers(0, 4), st.none() | values), min_size=1, max_size=most)


@cache
def senders_of(values: st.SearchStrategy[Any]) -> st.SearchStrategy[list[list[Any]]]:
    return st.lists(st.lists(st.none() | values, max_size=10), min_size=1, max_size=3)


CUTS = st.integers(1, 8)


@given(rows_of(st.integers(-(2**63), 2**63 - 1) | st.integers(-5, 5)), CUTS)
def test_sums_of_bigints_are_exact_or_an_error(rows: list[tuple[int, int]], cut: int) -> None:
    expected = model(rows, sum)
    if any(value is not None and not -(2**63) <= value < 2**63 for value in expected.values()):
        with pytest.raises(SqlError, match="ARITHMETIC_OVERFLOW"):
            merged(rows, pa.int64(), "sum", cut)
    else:
        assert merged(rows, pa.int64(), "sum", cut) == expected


@pytest.mark.parametrize(("precision", "scale"), [(12, 2), (19, 0), (28, 4), (38, 0), (38, 10)])
@FEW
@given(data=st.data())
def test_sums_of_decimals_are_exact_or_an_error(precision: int, scale: int, data: st.DataObject) -> None:
    rows = data.draw(rows_of(decimals(precision, scale)))
    cut = data.draw(CUTS)
    expected = model(rows, lambda values: sum(values, decimal.Decimal(0)))
    type = pa.decimal128(precision, scale)
    if any(value is not None and abs(value).scaleb(scale) >= 10**precision for value in expected.values()):
        with pytest.raises(SqlError, match="NUMERIC_VALUE_OUT_OF_RANGE"):
            merged(rows, type, "sum", cut)
    else:
        assert merged(rows, type, "sum", cut) == expected


@given(rows_of(st.floats(width=64)), CUTS)
def test_sums_of_doubles(rows: list[tuple[int, float]], cut: int) -> None:
    found = merged(rows, pa.float64(), "sum", cut)
    for group, expected in model(rows, sum).items():
        value = found[group]
        if expected is None:
            assert value is None
        else:
            biggest = max(abs(v) for g, v in rows if g == group and v is not None)
            assert value == expected or math.isnan(value) == math.isnan(expected) or biggest > 1e300
            if not math.isnan(expected) and biggest < 1e300:
                assert math.isclose(value, expected, rel_tol=1e-9, abs_tol=1e-9 * biggest)


@given(rows_of(st.integers(0, 10**9)), CUTS)
def test_counts(rows: list[tuple[int, int]], cut: int) -> None:
    assert merged(rows, pa.int64(), "count", cut) == {g: v or 0 for g, v in model(rows, sum).items()}


def rank(value: Any) -> Any:
    """Spark's order of two values that are not NULL."""
    if isinstance(value, float):
        return (1, 0.0) if math.isnan(value) else (0, value)
    return value.encode() if isinstance(value, str) else value


def same(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return rank(one) == rank(other)
    return bool(one == other)


# Spark's rows come without views; times are compared as numbers below.
_OTHERS = (pa.types.is_temporal, pa.types.is_null, pa.types.is_string_view, pa.types.is_binary_view)
TESTED = [type for type in TYPES if not any(is_other(type) for is_other in _OTHERS)]


@pytest.mark.parametrize("kind", ["min", "max"])
@pytest.mark.parametrize("type", TESTED, ids=str)
@FEW
@given(data=st.data())
def test_least_and_greatest_are_in_sparks_order(kind: str, type: pa.DataType, data: st.DataObject) -> None:
    rows = data.draw(rows_of(TYPES[type], 12))
    if pa.types.is_float32(type):
        rows = [(g, None if v is None else pa.scalar(v, type).as_py()) for g, v in rows]
    fold = min if kind == "min" else max
    found = merged(rows, type, kind, data.draw(CUTS))
    expected = model(rows, lambda values: fold(values, key=rank))
    assert found.keys() == expected.keys()
    assert all(same(found[group], expected[group]) for group in found), (found, expected)


@pytest.mark.parametrize(
    "type", [pa.date32(), pa.timestamp("us"), pa.timestamp("us", "UTC"), pa.duration("us")], ids=str
)
@given(data=st.data())
def test_least_and_greatest_of_times(type: pa.DataType, data: st.DataObject) -> None:
    rows = data.draw(rows_of(TYPES[type], 12))
    schema = pa.schema([("v", type), ("w", type)])
    column = pa.array([v for _, v in rows], type)
    batch = pa.RecordBatch.from_arrays([column, column], schema=schema)
    steps = [MergeStep(0, "min"), MergeStep(1, "max")]
    source = Aggregate(Scripted([batch]), (), steps, schema)
    assert source.poll() is WAIT
    found = source.poll()
    assert isinstance(found, pa.RecordBatch)
    width = pa.int32() if pa.types.is_date32(type) else pa.int64()
    values = [v for _, v in rows if v is not None]
    assert found.column(0).cast(width).to_pylist() == [min(values) if values else None]
    assert found.column(1).cast(width).to_pylist() == [max(values) if values else None]


BITS: dict[str, Callable[[int, int], int]] = {
    "bit_and": lambda a, b: a & b,
    "bit_or": lambda a, b: a | b,
    "bit_xor": lambda a, b: a ^ b,
}


@pytest.mark.parametrize("kind", BITS)
@pytest.mark.parametrize("type", [pa.int8(), pa.int32(), pa.int64()], ids=str)
@FEW
@given(data=st.data())
def test_bits(kind: str, type: pa.DataType, data: st.DataObject) -> None:
    rows = data.draw(rows_of(TYPES[type], 12))

    def fold(values: list[int]) -> int:
        found = values[0]
        for value in values[1:]:
            found = BITS[kind](found, value)
        return found

    assert merged(rows, type, kind, data.draw(CUTS)) == model(rows, fold)


def merged_of(columns: dict[str, pa.Array], kind: str, result: pa.DataType) -> Any:
    """One group; the result's own column stands first, the others are its inputs."""
    rows = len(next(iter(columns.values())))
    batch = pa.RecordBatch.from_pydict({"v": pa.nulls(rows, result), **columns})
    steps = [MergeStep(0, kind, tuple(range(1, 1 + len(columns))))]
    (row,) = drained(Aggregate(Scripted([batch]), (), steps, batch.schema))
    assert list(row) == ["v"]
    return row["v"]


@pytest.mark.parametrize(("precision", "scale"), [(5, 2), (15, 2), (18, 0), (28, 6), (34, 18)])
@FEW
@given(data=st.data())
def test_averages_of_decimals_round_half_up_at_sparks_scale(precision: int, scale: int, data: st.DataObject) -> None:
    values = data.draw(st.lists(decimals(precision, scale), min_size=1, max_size=6))
    counts = data.draw(st.lists(st.integers(1, 10**6), min_size=len(values), max_size=len(values)))
    sums = pa.array(values, pa.decimal128(min(38, precision + 10), scale))
    found = merged_of({"s": sums, "c": pa.array(counts)}, "avg", pa.decimal128(min(38, precision + 4), scale + 4))
    exact = sum(values) / decimal.Decimal(sum(counts))
    assert found == exact.quantize(decimal.Decimal(1).scaleb(-scale - 4), rounding=decimal.ROUND_HALF_UP)


def test_averages_without_values_are_null() -> None:
    nothing = pa.array([None, None], pa.decimal128(25, 2))
    assert merged_of({"s": nothing, "c": pa.array([0, 0])}, "avg", pa.decimal128(19, 6)) is None
    assert merged_of({"s": pa.array([None], pa.float64()), "c": pa.array([0])}, "mean", pa.float64()) is None


@given(st.lists(st.lists(st.floats(-1e6, 1e6), max_size=5), min_size=1, max_size=6))
def test_averages_of_doubles(parts: list[list[float]]) -> None:
    sums = pa.array([math.fsum(part) if part else None for part in parts], pa.float64())
    found = merged_of({"s": sums, "c": pa.array([len(part) for part in parts])}, "mean", pa.float64())
    values = [value for part in parts for value in part]
    if values:
        assert math.isclose(found, math.fsum(values) / len(values), rel_tol=1e-9, abs_tol=1e-6)
    else:
        assert found is None


@given(st.lists(st.lists(st.integers(-(10**12), 10**12), min_size=1, max_size=60), min_size=1, max_size=6))
def test_averages_of_whole_numbers_are_exact(parts: list[list[int]]) -> None:
    sums = pa.array([float(sum(part)) for part in parts], pa.float64())
    found = merged_of({"s": sums, "c": pa.array([len(part) for part in parts])}, "mean", pa.float64())
    assert found == float(sum(map(sum, parts))) / sum(map(len, parts))


NUMBERS = st.floats(-1e6, 1e6).map(lambda value: value + 1e6)
SPREADS: dict[str, Callable[[list[float]], float]] = {
    "var_pop": statistics.pvariance,
    "var_samp": statistics.variance,
    "stddev_pop": statistics.pstdev,
    "stddev_samp": statistics.stdev,
}


@pytest.mark.parametrize("kind", SPREADS)
@FEW
@given(parts=st.lists(st.lists(NUMBERS, max_size=5), min_size=1, max_size=4))
def test_variances_come_from_moments_around_the_mean(kind: str, parts: list[list[float]]) -> None:
    columns = {
        "n": pa.array([len(part) for part in parts]),
        "mean": pa.array([statistics.fmean(part) if part else None for part in parts], pa.float64()),
        "var": pa.array([float(statistics.pvariance(part)) if part else None for part in parts], pa.float64()),
    }
    found = merged_of(columns, kind, pa.float64())
    values = [value for part in parts for value in part]
    if len(values) < (2 if kind.endswith("samp") else 1):
        assert found is None
    else:
        # The values are about 1e6 from zero: what a sum of squares would lose is kept.
        assert math.isclose(found, SPREADS[kind](values), rel_tol=1e-9, abs_tol=1e-3)


KEYED = [pa.float64(), pa.string(), pa.decimal128(19, 4), pa.bool_(), pa.int8(), pa.binary()]


@pytest.mark.parametrize("type", KEYED, ids=str)
@FEW
@given(data=st.data())
def test_groups_of_all_senders_meet_whatever_the_key(type: pa.DataType, data: st.DataObject) -> None:
    """One NaN, one zero, NULL equals NULL: groups are those of Spark's GROUP BY."""

    def key(value: Any) -> Any:
        return (value is not None, rank(value) if value is not None else None)

    senders = data.draw(senders_of(TYPES[type]))
    schema = pa.schema([("k", type), ("n", pa.int64())])
    keys = [SortKey(0, False, True)]
    inputs = []
    for values in senders:
        ordered = sorted(values, key=lambda value: (value is not None, rank(value) if value is not None else 0))
        column = pa.array(ordered, type)
        batch = pa.RecordBatch.from_arrays([column, pa.array([1] * len(values), pa.int64())], schema=schema)
        inputs.append(Scripted([batch.slice(at, 2) for at in range(0, len(values), 2)]))
    source = Aggregate(
        Merge(inputs, keys, schema, 3, 1 << 20), keys, [MergeStep(0, "any"), MergeStep(1, "count")], schema
    )
    expected: dict[Any, int] = {}
    for value in itertools.chain(*senders):
        expected[key(value)] = expected.get(key(value), 0) + 1
    found = drained(source)
    assert {key(row["k"]): row["n"] for row in found} == expected
    assert len(found) == len(expected)


def test_columns_of_the_result_may_stand_anywhere() -> None:
    schema = pa.schema([("n", pa.int64()), ("k", pa.string()), ("h", pa.int64())])
    batch = pa.RecordBatch.from_pydict({"n": [1, 2, 3], "k": ["a", "a", "b"], "h": [0, 0, 0]}, schema)
    steps = [MergeStep(0, "sum"), MergeStep(1, "any")]
    assert drained(Aggregate(Scripted([batch]), [SortKey(1, False, True)], steps, schema)) == [
        {"n": 3, "k": "a"},
        {"n": 3, "k": "b"},
    ]


def test_no_rows_are_no_group() -> None:
    schema = pa.schema([("n", pa.int64())])
    assert drained(Aggregate(Scripted([]), (), [MergeStep(0, "sum")], schema)) == []

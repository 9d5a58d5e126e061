"""The checker must find every difference that matters and none that does not."""

from __future__ import annotations

import math
from decimal import Decimal

import pyarrow as pa
import pytest

from skerry.testing.checkers import same_table


def table(**columns: object) -> pa.Table:
    return pa.table(columns)


def test_equal_tables_are_the_same():
    one = table(a=[1, None, 3], b=["x", None, ""])
    same_table(one, one.combine_chunks(), ordered=True)
    assert one.num_rows == 3


@pytest.mark.parametrize(
    ("actual", "expected", "said"),
    [
        (table(a=[1]), table(b=[1]), "column names differ"),
        (table(a=[1]), table(a=["1"]), "column types differ"),
        (table(a=pa.array([1], pa.int32())), table(a=[1]), "a: int32, expected int64"),
        (table(a=[1, 1]), table(a=[1]), "2 rows, expected 1"),
        (table(a=[1, 1, 2]), table(a=[1, 2, 2]), "only in actual: 1 rows"),
        (table(a=[1.0]), table(a=[1.0 + 1e-8]), "only in expected: 1 rows"),
        (table(a=[None]), table(a=pa.nulls(0)), "1 rows, expected 0"),
        (table(a=[math.nan]), table(a=pa.array([None], pa.float64())), "rows differ"),
        (table(a=[""]), table(a=pa.array([None], pa.string())), "rows differ"),
        (table(a=[[1, 2]]), table(a=[[2, 1]]), "rows differ"),
        (table(a=[{"x": 1}]), table(a=[{"y": 1}]), "column types differ"),
        (table(a=[Decimal("1.00")]), table(a=[Decimal("1.01")]), "rows differ"),
        (table(a=[Decimal("1.0")]), table(a=[Decimal("1.00")]), "column types differ"),
    ],
)
def test_differences_are_found(actual: pa.Table, expected: pa.Table, said: str):
    with pytest.raises(AssertionError, match=said):
        same_table(actual, expected, ordered=False)


def test_order_counts_only_when_asked():
    left, right = table(a=[1, 2], b=["x", "y"]), table(a=[2, 1], b=["y", "x"])
    same_table(left, right, ordered=False)
    with pytest.raises(AssertionError, match="out of order, first at 0"):
        same_table(left, right, ordered=True)


def test_ties_may_come_in_any_order_but_keys_may_not():
    left = table(key=[1, 1, 2], value=["a", "b", "c"])
    same_table(left, table(key=[1, 1, 2], value=["b", "a", "c"]), ordered=True, keys=["key"])
    with pytest.raises(AssertionError, match="sort keys are right but out of order"):
        same_table(left, table(key=[2, 1, 1], value=["c", "a", "b"]), ordered=True, keys=[0])
    with pytest.raises(AssertionError, match="rows differ"):
        same_table(left, table(key=[1, 1, 2], value=["a", "a", "c"]), ordered=True, keys=["key"])


@pytest.mark.parametrize("ordered", [True, False])
def test_doubles_compare_relatively(ordered: bool):
    left = table(a=[math.nan, -0.0, math.inf, 1e20, 0.1 + 0.2], b=[1, 2, 3, 4, 5])
    right = table(a=[math.nan, 0.0, math.inf, 1e20 * (1 + 1e-12), 0.3], b=[1, 2, 3, 4, 5])
    same_table(left, right, ordered=ordered)
    with pytest.raises(AssertionError, match="rows differ"):
        same_table(left, right.set_column(0, "a", pa.array([math.nan, 0.0, -math.inf, 1e20, 0.3])), ordered=ordered)


def test_near_doubles_pair_even_where_sorting_would_misplace_them():
    left = table(a=[1.0, 1.0 + 1e-12], b=[2.0, 1.0])
    right = table(a=[1.0 + 1e-12, 1.0], b=[2.0, 1.0])
    same_table(left, right, ordered=False)
    assert left != right


def test_layouts_of_one_type_are_the_same():
    left = table(
        a=pa.array(["x"], pa.string_view()), b=pa.array([["y"]], pa.large_list(pa.large_string())), c=pa.array([b"z"])
    )
    right = table(a=["x"], b=[["y"]], c=pa.array([b"z"], pa.large_binary()))
    same_table(left, right, ordered=True)
    assert left.schema != right.schema


def test_nested_values_with_doubles_and_maps():
    kind = pa.struct([("m", pa.map_(pa.string(), pa.float64())), ("l", pa.list_(pa.float64()))])
    left = pa.table({"a": pa.array([{"m": [("x", 1.0), ("y", math.nan)], "l": [0.0, None]}, None], kind)})
    right = pa.table({"a": pa.array([{"m": [("y", math.nan), ("x", 1.0 + 1e-13)], "l": [-0.0, None]}, None], kind)})
    same_table(left, right, ordered=True)
    wrong = pa.table({"a": pa.array([{"m": [("x", 2.0), ("y", math.nan)], "l": [0.0, None]}, None], kind)})
    with pytest.raises(AssertionError, match="rows differ"):
        same_table(wrong, right, ordered=False)


def test_times_beyond_pythons_range():
    far = pa.array([2**62, -(2**62)], pa.timestamp("us", tz="UTC"))
    days = pa.array([-5_000_000, 5_000_000], pa.date32())
    same_table(table(t=far, d=days), table(t=far.take([1, 0]), d=days.take([1, 0])), ordered=False)
    with pytest.raises(AssertionError, match="rows differ"):
        same_table(table(t=far, d=days), table(t=far.take([0, 0]), d=days), ordered=False)


def test_no_columns_and_duplicate_names():
    same_table(pa.table({}), pa.table({}), ordered=False)
    twice = pa.table([pa.array([1]), pa.array(["x"])], names=["a", "a"])
    same_table(twice, twice, ordered=True)
    with pytest.raises(AssertionError, match="rows differ"):
        same_table(twice, pa.table([pa.array([1]), pa.array(["y"])], names=["a", "a"]), ordered=True)


def test_a_hundred_thousand_rows():
    numbers = list(range(100_000))
    left = table(a=numbers, b=[value * 0.1 for value in numbers])
    right = table(a=numbers[::-1], b=[value * 0.1 * (1 + 1e-14) for value in numbers[::-1]])
    same_table(left, right, ordered=False)
    assert left.num_rows == 100_000

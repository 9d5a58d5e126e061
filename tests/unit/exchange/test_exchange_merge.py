from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest

from skerry.exchange.input import END, WAIT, Polled, Signal
from skerry.exchange.merge import Merge
from skerry.exchange.order import supports
from skerry.model.errors import InternalError, SiteError
from skerry.model.fragment import SortKey

SCHEMA = pa.schema([("key", pa.int64()), ("name", pa.string())], metadata={"origin": "oslo"})
ASCENDING = [SortKey(0, False, True)]


class Script:
    def __init__(self, *answers: Polled) -> None:
        self.answers = list(answers)

    def poll(self) -> Polled:
        return self.answers.pop(0) if self.answers else END


def batch(keys: list[int | None], name: str = "x") -> pa.RecordBatch:
    return pa.record_batch([pa.array(keys, pa.int64()), pa.array([name] * len(keys))], SCHEMA)


def rows(polled: Polled) -> list[tuple[Any, ...]] | Signal:
    if isinstance(polled, Signal):
        return polled
    return list(zip(*(column.to_pylist() for column in polled.columns), strict=True))


def drain(merge: Merge) -> list[pa.RecordBatch]:
    """All batches of a merge whose inputs never wait."""
    batches: list[pa.RecordBatch] = []
    while (polled := merge.poll()) is not END:
        assert not isinstance(polled, Signal)
        batches.append(polled)
    return batches


# A head is put together from what is there, so the first WAIT of a script only ends its first head.
def test_ties_come_in_the_order_of_inputs_even_across_batches() -> None:
    # Input 0 ends a batch with a 2 and goes on with a 2: input 1's 2 must wait for it.
    inputs = [Script(batch([1, 2], "a"), WAIT, WAIT, batch([2, 3], "b")), Script(batch([2, 2], "c"), batch([2], "d"))]
    merge = Merge(inputs, ASCENDING, SCHEMA, 100, 1 << 20)
    assert rows(merge.poll()) == [(1, "a"), (2, "a")]
    assert rows(merge.poll()) == [(2, "b"), (2, "c"), (2, "c"), (2, "d"), (3, "b")]
    assert rows(merge.poll()) is END


def test_a_merge_holds_a_batch_of_each_lane_and_tells_how_much_that_is() -> None:
    lanes, batches, batch_rows = 10, 20, 100
    one = batch(list(range(batch_rows)))
    # Runs that overlap: every lane's rows go through the whole range.
    runs = [
        [batch([lanes * (b * batch_rows + n) + lane for n in range(batch_rows)]) for b in range(batches)]
        for lane in range(lanes)
    ]
    held: list[int] = [0]
    merge = Merge(
        [Script(*run) for run in runs], ASCENDING, SCHEMA, batch_rows, 1 << 20, lambda by: held.append(held[-1] + by)
    )
    merged = [key for each in drain(merge) for key, _ in rows(each)]  # type: ignore[union-attr]
    assert merged == list(range(lanes * batches * batch_rows))
    assert lanes * one.nbytes <= max(held) <= 2 * lanes * one.nbytes + 5 * one.nbytes  # with keys; and its output
    assert held[-1] == 0


def test_a_merge_that_is_given_up_holds_nothing() -> None:
    held: list[int] = []
    merge = Merge([Script(batch([1, 2]), WAIT), Script(batch([5]), WAIT)], ASCENDING, SCHEMA, 1, 1 << 20, held.append)
    merge.poll()
    assert sum(held) > 0
    merge.close()
    merge.close()
    assert sum(held) == 0


def test_what_is_safe_is_not_held_back_while_an_input_waits() -> None:
    inputs = [Script(batch([1, 5]), WAIT, WAIT), Script(batch([2, 9]))]
    merge = Merge(inputs, ASCENDING, SCHEMA, 100, 1 << 20)
    assert rows(merge.poll()) == [(1, "x"), (2, "x"), (5, "x")]
    assert rows(merge.poll()) == [(9, "x")]
    assert merge.poll() is END


def test_an_input_that_has_given_nothing_holds_all_back() -> None:
    merge = Merge([Script(batch([1])), Script(WAIT, WAIT, batch([0]))], ASCENDING, SCHEMA, 100, 1 << 20)
    assert [rows(merge.poll()) for _ in range(4)] == [WAIT, WAIT, [(0, "x"), (1, "x")], END]


def test_no_input_and_empty_inputs_end() -> None:
    assert Merge([], ASCENDING, SCHEMA, 10, 10).poll() is END
    assert Merge([Script(), Script(batch([]))], ASCENDING, SCHEMA, 10, 10).poll() is END


@pytest.mark.parametrize("answers", [[batch([2, 1])], [batch([1, 3]), WAIT, batch([2])]])
def test_an_input_that_is_not_sorted_is_refused(answers: list[Polled]) -> None:
    merge = Merge([Script(*answers)], ASCENDING, SCHEMA, 100, 1 << 20)
    with pytest.raises(SiteError, match="lane 0 is not sorted"):
        [merge.poll() for _ in range(3)]


def test_batches_have_the_declared_schema() -> None:
    views = pa.schema([("key", pa.int64()), ("name", pa.string_view()), ("many", pa.list_(pa.string_view()))])
    columns = [pa.array([1, 2]), pa.array(["a", "b"], pa.string_view()), pa.array([["x"], None])]
    given = pa.RecordBatch.from_arrays(columns[:2], names=["k", "n"])
    declared = pa.schema([("key", pa.int64()), ("name", pa.string())], metadata={"origin": "oslo"})
    merge = Merge([Script(given), Script(batch([1]))], ASCENDING, declared, 10, 1 << 20)
    (merged,) = drain(merge)
    assert merged.schema.equals(declared, check_metadata=True)
    assert rows(merged) == [(1, "a"), (1, "x"), (2, "b")]
    nested = pa.RecordBatch.from_arrays([*columns[:2], columns[2].cast(views.field("many").type)], schema=views)
    merge = Merge([Script(nested), Script(nested)], [SortKey(1, False, False)], views, 10, 1 << 20)
    (merged,) = drain(merge)
    assert merged.schema.equals(views)
    assert rows(merged) == [(1, "a", ["x"]), (1, "a", ["x"]), (2, "b", None), (2, "b", None)]


@pytest.mark.parametrize("type", [pa.float32(), pa.float64()], ids=str)
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("nulls_first", [False, True])
def test_zeros_are_one_and_nans_are_one_above_all(type: pa.DataType, descending: bool, nulls_first: bool) -> None:
    numbers = [-math.inf, -1.0, -0.0, 0.0, 1.0, math.inf, math.nan, -math.nan]
    # Ties within a lane lie one way, across lanes the other: neither may be sorted by its bits.
    swapped = [-math.inf, -1.0, 0.0, -0.0, 1.0, math.inf, -math.nan, math.nan]
    schema = pa.schema([("key", type), ("lane", pa.int8()), ("row", pa.int8())])

    def lane(number: int, values: list[float]) -> Script:
        ordered: list[float | None] = [*(reversed(values) if descending else values)]
        ordered = [None, *ordered] if nulls_first else [*ordered, None]
        columns = [pa.array(ordered, type), pa.array([number] * 9, pa.int8()), pa.array(range(9), pa.int8())]
        return Script(pa.record_batch(columns, schema))

    lanes = [lane(0, numbers), lane(1, swapped)]
    (merged,) = drain(Merge(lanes, [SortKey(0, descending, nulls_first)], schema, 100, 1 << 20))
    # Places in a lane with one value: alone, or the two zeros, or the two NaNs.
    ties = [[0], [1], [2, 3], [4], [5], [6, 7]]
    groups = [sorted(7 - place for place in tie) for tie in reversed(ties)] if descending else ties
    groups = [[0], *([place + 1 for place in group] for group in groups)] if nulls_first else [*groups, [8]]
    expected = [(number, place) for group in groups for number in (0, 1) for place in group]
    assert rows(merged.select([1, 2])) == expected


def test_large_rows_make_small_batches() -> None:
    names = ["s" * 10] * 50 + ["l" * 1000] * 50
    given = pa.record_batch([pa.array(range(100), pa.int64()), pa.array(names)], SCHEMA)
    merge = Merge([Script(given), Script(given)], ASCENDING, SCHEMA, 1000, 5000)
    batches = drain(merge)
    assert all(batch.nbytes <= 5000 for batch in batches)
    assert sum(batch.num_rows for batch in batches) == 200
    assert len(batches) < 60


def test_runs_that_lie_apart_are_merged_too() -> None:
    def lane(first: int) -> Script:
        return Script(*(batch(list(range(start, start + 50))) for start in range(first, first + 200, 50)))

    parts = [lane(first) for first in reversed(range(0, 6000, 200))]
    merge = Merge(parts, ASCENDING, SCHEMA, 64, 1 << 20)
    assert [key for part in drain(merge) for key in part.column(0).to_pylist()] == list(range(6000))


@pytest.mark.parametrize(
    "type",
    [
        pa.struct([("a", pa.int32())]),
        pa.list_(pa.int32()),
        pa.map_(pa.string(), pa.int32()),
        pa.month_day_nano_interval(),
        pa.dictionary(pa.int32(), pa.string()),
        pa.uint64(),
        pa.float16(),
        pa.decimal256(40, 0),
    ],
    ids=str,
)
def test_types_without_a_proven_order_are_not_merged(type: pa.DataType) -> None:
    assert not supports(type)
    with pytest.raises(InternalError, match="use ORDER BY"):
        Merge([], ASCENDING, pa.schema([("key", type)]), 10, 10)

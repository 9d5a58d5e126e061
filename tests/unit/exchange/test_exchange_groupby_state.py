"""The state of a group-by: what it is, what it refuses, and how much it holds."""

from __future__ import annotations

import math
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from skerry.exchange.groupby.buckets import PREFIXES
from skerry.exchange.groupby.rows import PartialRows
from skerry.exchange.groupby.spill import Spill
from skerry.exchange.groupby.state import Halves, OneKey, State
from skerry.exchange.input import END, Input
from skerry.exchange.spool import Budget
from skerry.model.errors import InternalError, Overloaded, PeerError, SqlError
from skerry.model.fragment import MergeStep, SortKey
from skerry.wire.codec import decode_batch, encode_batch

SCHEMA = pa.schema([("k", pa.int64()), ("s", pa.int64()), ("hash", pa.uint64()), ("weight", pa.int64())])
SUMS = PartialRows(SCHEMA, [0], [MergeStep(0, "any"), MergeStep(1, "sum")], 2, 3)
MIX = np.uint64(0x9E3779B97F4A7C15)


def state_of(rows: PartialRows = SUMS, budget_bytes: int = 1 << 24, count: Any = None) -> State:
    return State(rows, budget_bytes, 1000, 1 << 16, count)


def keyed(keys: np.ndarray[Any, Any], values: Any = 1, hashes: Any = None) -> pa.RecordBatch:
    size = len(keys)
    mixed = keys.astype(np.uint64) * MIX if hashes is None else np.broadcast_to(np.uint64(hashes), size)
    columns = [keys.astype(np.int64), np.broadcast_to(np.int64(values), size).copy(), mixed.copy(), np.ones(size, int)]
    return pa.RecordBatch.from_arrays([pa.array(each) for each in columns], schema=SCHEMA)


def rows_of(source: Input) -> list[tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = []
    while (polled := source.poll()) is not END:
        assert isinstance(polled, pa.RecordBatch)
        assert polled.num_rows <= 1000
        assert polled.nbytes <= 1 << 16
        found += zip(*(column.to_pylist() for column in polled.columns), strict=True)
    return found


def fold_all(state: State, keys: int) -> None:
    for first in range(0, keys, 500):
        state.fold(keyed(np.arange(first, first + 500)))


def decode(body: Any, schema: pa.Schema) -> pa.RecordBatch:
    return decode_batch(body, schema, 1 << 28)


def spill_to(folder: Path, disk_bytes: int = 1 << 26, rows: PartialRows = SUMS) -> tuple[Budget, Spill]:
    budget = Budget(1 << 20, disk_bytes)
    return budget, Spill(rows, budget, str(folder), "query oslo/1 group-by", encode_batch, decode)


def test_keys_decide_and_not_their_hash() -> None:
    schema = pa.schema([("k", pa.float64()), ("n", pa.int64()), ("hash", pa.int64()), ("weight", pa.int64())])
    rows = PartialRows(schema, [0], [MergeStep(1, "count"), MergeStep(0, "any")], 2, 3)
    keys = [0.0, None, -0.0, math.nan, 1.0, None, -math.nan, 2.0, 1.0]
    columns = [pa.array(keys, pa.float64()), *(pa.array([number] * 9) for number in (1, -7, 5))]
    state = state_of(rows)
    state.fold(pa.RecordBatch.from_arrays(columns, schema=schema))
    state.settle()
    assert (state.size().groups, state.size().is_exact, state.weight) == (5, True, 45)
    assert state.split() == OneKey(5)
    found = {str(key): count for count, key in rows_of(state.drain([SortKey(0, True, False)]))}
    assert found == {"nan": 2, "2.0": 1, "1.0": 2, "0.0": 2, "None": 2}


def test_a_sum_that_fits_in_the_end_is_no_overflow() -> None:
    state = state_of()
    for value in (2**63 - 1, 2**63 - 1, -(2**63), 5):
        state.fold(keyed(np.array([1, 2]), value))
        state.settle()
    assert not state.size().is_exact
    with pytest.raises(SqlError, match="ARITHMETIC_OVERFLOW"):
        rows_of(state.drain())
    state = state_of()
    for value in (2**63 - 1, 2, -4):
        state.fold(keyed(np.array([1]), value))
        state.settle()
    assert rows_of(state.drain()) == [(1, 2**63 - 3)]


def test_a_range_may_begin_and_end_within_buckets() -> None:
    state = state_of()
    state.fold(keyed(np.arange(10_000)))
    taken = state.take(12_345_678, 3_000_000_000)
    assert 6000 < taken.rows == taken.weight == 10_000 - state.size().groups
    # The same again: nothing is left.
    assert state.take(12_345_678, 3_000_000_000).rows == 0
    other = state_of()
    while (polled := taken.poll()) is not END:
        other.fold(polled)
    assert sorted(rows_of(state.drain()) + rows_of(other.drain())) == [(key, 1) for key in range(10_000)]


def test_distinct_values_are_groups_without_aggregates() -> None:
    schema = pa.schema([("k", pa.string()), ("hash", pa.int64()), ("weight", pa.int64())])
    state = state_of(PartialRows(schema, [0], [MergeStep(0, "any")], 1, 2))
    texts = [f"{number % 700}" for number in range(3000)]
    hashes = [hash(text) % 2**62 for text in texts]
    state.fold(pa.RecordBatch.from_arrays([pa.array(texts), pa.array(hashes), pa.array([1] * 3000)], schema=schema))
    assert sorted(rows_of(state.drain())) == sorted({(text,) for text in texts})


def test_a_range_is_split_by_groups_and_one_key_cannot_be() -> None:
    state = state_of()
    state.fold(keyed(np.arange(10_000)))
    halves = state.split()
    assert isinstance(halves, Halves)
    assert abs(halves.below - halves.above) <= 1
    taken = state.take(0, halves.point)
    assert (taken.rows, taken.weight, state.size().groups) == (halves.below, halves.below, halves.above)
    within = state.split(halves.point, PREFIXES)
    assert isinstance(within, Halves)
    assert abs(within.below - within.above) <= 1
    one = state_of()
    one.fold(keyed(np.zeros(1000)))
    assert one.split() == OneKey(1)
    assert one.split(0, 1) == OneKey(1)
    assert one.split(1, 2) == OneKey(0)


@pytest.mark.parametrize("order", [None, [SortKey(0, False, True)]], ids=["any", "sorted"])
def test_a_bucket_too_large_for_memory_is_split_when_it_comes_back(order: Any, tmp_path: Path) -> None:
    budget, spill = spill_to(tmp_path)
    held: list[int] = [0]
    most = 1_200_000
    state = state_of(budget_bytes=1_000_000, count=lambda change: held.append(held[-1] + change))
    state.spill(spill)
    # All in one of the 256 buckets: 90,000 groups of 32 bytes are three times the memory.
    for first in range(0, 90_000, 5000):
        keys = np.arange(first, first + 5000)
        batch = keyed(keys).set_column(2, "hash", pa.array((keys.astype(np.uint64) * MIX) >> np.uint64(8)))
        state.fold(batch)
        state.fold(batch)
    assert state.size().spilled_bytes > 2_000_000
    assert (state.weight, max(held) <= most) == (180_000, True)
    found = rows_of(state.drain(order))
    assert sorted(found) == [(key, 2) for key in range(90_000)]
    assert order is None or found == sorted(found)
    assert max(held) <= most
    state.close()
    assert (held[-1], budget.disk_used, budget.memory_used) == (0, 0, 0)


def test_groups_of_one_hash_that_need_too_much_memory_are_a_clear_error(tmp_path: Path) -> None:
    budget, spill = spill_to(tmp_path)
    state = state_of(budget_bytes=100_000)
    state.spill(spill)
    for first in range(0, 5000, 500):
        state.fold(keyed(np.arange(first, first + 500), hashes=7))
    with pytest.raises(Overloaded, match=r"group-by: \d+ groups have one hash"):
        rows_of(state.drain())
    state.close()
    assert budget.disk_used == 0


def test_disk_that_is_full_says_whose_budget_it_is(tmp_path: Path) -> None:
    _, spill = spill_to(tmp_path, disk_bytes=50_000)
    state = state_of(budget_bytes=100_000)
    state.spill(spill)
    with pytest.raises(Overloaded, match=r"group-by: spool full.*spool_disk_bytes"):
        fold_all(state, 20_000)
    state.close()


def test_rows_that_find_no_room_change_nothing() -> None:
    state = state_of(budget_bytes=100_000)
    fold_all(state, 2000)
    state.settle()
    assert not state.needs_room
    fold_all(state, 3000)
    state.settle()
    assert state.needs_room
    with pytest.raises(Overloaded, match="have no room in its budget of 100000"):
        fold_all(state, 20_000)
    assert state.weight > 6000
    assert state.weight % 500 == 0
    assert 90_000 < state.peak_bytes <= 120_000
    weight, groups = state.weight, state.size().groups
    with pytest.raises(Overloaded):
        state.fold(keyed(np.arange(10_000, 15_000)))
    assert (state.weight, state.size().groups) == (weight, groups)
    # Whoever takes a half of it makes room.
    state.take(0, PREFIXES // 2)
    state.fold(keyed(np.arange(20_000, 20_500)))
    assert state.size().size_bytes < 80_000


def test_one_key_stays_one_row_however_often_it_comes() -> None:
    state = state_of(budget_bytes=1 << 20)
    for _ in range(100):
        state.fold(keyed(np.full(5000, 3)))
    assert state.peak_bytes <= 1 << 20
    assert state.weight == 500_000
    assert rows_of(state.drain()) == [(3, 500_000)]


def test_memory_is_what_is_told() -> None:
    """Of Arrow and numpy together, beside what one bucket takes while it is folded."""
    budget_bytes = 6 << 20
    batches = [keyed(np.arange(first, first + 8192) % 150_000) for first in range(0, 250_000, 8192)]
    arrow = pa.total_allocated_bytes()
    tracemalloc.start()
    try:
        state = state_of(budget_bytes=budget_bytes)
        most = 0
        for batch in batches:
            state.fold(batch)
            most = max(most, tracemalloc.get_traced_memory()[0] + pa.total_allocated_bytes() - arrow)
        assert budget_bytes * 0.5 < most <= budget_bytes * 1.2
    finally:
        tracemalloc.stop()
    state.close()


REFUSED = [
    (pa.list_(pa.int64()), "any", "any"),
    (pa.string_view(), "any", "any"),
    (pa.float16(), "any", "any"),
    (pa.int32(), "sum", "sum"),
    (pa.float32(), "sum", "sum"),
    (pa.string(), "sum", "sum"),
    (pa.struct([("a", pa.int64())]), "max", "max"),
    (pa.float64(), "bit_or", "bit_or"),
    (pa.int32(), "count", "count"),
    (pa.float64(), "avg", "columns"),
]


@pytest.mark.parametrize(("type", "kind", "said"), REFUSED, ids=str)
def test_a_type_without_a_proven_kernel_is_refused_when_the_state_is_made(
    type: pa.DataType, kind: str, said: str
) -> None:
    schema = SCHEMA.append(pa.field("v", type))
    with pytest.raises(InternalError, match=said):
        PartialRows(schema, [4] if kind == "any" else [0], [MergeStep(4, kind)], 2, 3)


@pytest.mark.parametrize("kind", ["avg", "mean", "var_pop"])
def test_averages_of_other_types_are_refused(kind: str) -> None:
    schema = pa.schema([("k", pa.int64()), ("n", pa.int64()), ("m", pa.int64()), ("v", pa.int64()), ("r", pa.int64())])
    inputs = (1, 2, 3) if kind == "var_pop" else (2, 1)
    with pytest.raises(InternalError, match=r"merges|no proven kernel"):
        PartialRows(schema, [0], [MergeStep(4, kind, inputs)], 1, 2)


def test_rows_of_a_peer_without_hash_or_weight_are_refused() -> None:
    state, good = state_of(), keyed(np.arange(3))
    for column, values in ((2, pa.nulls(3, pa.uint64())), (3, pa.array([1, None, 1])), (3, pa.array([1, 0, 1]))):
        with pytest.raises(PeerError, match="no hash, or no weight"):
            state.fold(good.set_column(column, SCHEMA.field(column), values))
    with pytest.raises(PeerError, match="have the columns"):
        state.fold(good.select([0, 1, 2]))
    assert (state.weight, state.size().groups) == (0, 0)


def test_a_state_is_drained_once() -> None:
    state = state_of()
    state.fold(keyed(np.arange(3)))
    assert len(rows_of(state.drain())) == 3
    for use in (lambda: state.fold(keyed(np.arange(3))), state.drain, lambda: state.take(0, 1)):
        with pytest.raises(InternalError, match="after it was drained"):
            use()

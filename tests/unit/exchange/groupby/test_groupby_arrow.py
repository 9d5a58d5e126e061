"""Arrow's rows and state as the cores of a group-by ask for them: parts by hash, weights, what is refused."""

from __future__ import annotations

import tempfile
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

from skerry.exchange.groupby.arrow import GroupRows, GroupState
from skerry.exchange.groupby.rows import PartialRows
from skerry.exchange.groupby.spill import Spill
from skerry.exchange.input import Input
from skerry.exchange.spool import Body, Budget
from skerry.model.errors import PeerError
from skerry.model.fragment import MergeStep
from skerry.model.limits import GIB, MIB, GroupByLimits, Limits
from skerry.model.ranges import PLACES
from skerry.wire.codec import decode_batch, encode_batch

SCHEMA = pa.schema([("k", pa.int64()), ("n", pa.int64()), ("hash", pa.int64())])


def sent(keys: list[int]) -> GroupRows:
    hashes = (np.array(keys, np.uint64) * np.uint64(0x9E3779B97F4A7C15)).view(np.int64)
    batch = pa.RecordBatch.from_arrays([pa.array(keys), pa.array([1] * len(keys)), pa.array(hashes)], schema=SCHEMA)
    return GroupRows(batch, is_sent=True)


def state(budget: Budget | None = None, split_groups: int = 10, memory_bytes: int = MIB) -> GroupState:
    def spill(rows: PartialRows) -> Spill:
        return Spill(rows, budget or Budget(MIB, GIB), tempfile.gettempdir(), "test", encode_batch, decode)

    bounds = GroupByLimits(split_groups=split_groups, memory_bytes=memory_bytes)
    return GroupState([0], [MergeStep(1, "count")], Limits(), bounds, spill)


def decode(body: Body, schema: pa.Schema) -> pa.RecordBatch:
    return decode_batch(body, schema, GIB)


def read(source: Input) -> list[pa.RecordBatch]:
    found: list[pa.RecordBatch] = []
    while isinstance(batch := source.poll(), pa.RecordBatch):
        found.append(batch)
    return found


def counts(batches: list[pa.RecordBatch]) -> Counter[int]:
    return Counter({row["k"]: row["n"] for batch in batches for row in batch.to_pylist()})


def test_parts_are_by_the_highest_bits_of_the_hash_and_lose_no_row() -> None:
    rows = sent(list(range(1000)))
    bounds = [0, 1 << 30, 1 << 31, PLACES]
    parts = rows.parts(bounds)
    assert sum(part.weight for part in parts) == 1000
    for part, first, upto in zip(parts, bounds, bounds[1:], strict=False):
        places = part.hashes >> np.uint64(32)
        assert ((places >= first) & (places < upto)).all()
    assert rows.parts([0, PLACES]) == [rows]
    place = int(rows.hashes[500] >> np.uint64(32))
    (_, at, _) = rows.parts([0, place, place + 1, PLACES])
    assert 500 in at.batch.column(0).to_pylist()


def test_a_state_that_is_split_and_spilled_has_each_row_once() -> None:
    budget = Budget(MIB, GIB)
    one, other = state(budget), state()
    assert (one.groups, one.weight, one.middle(), read(one.drain())) == (0, 0, None, [])
    for first in range(0, 600, 50):
        one.fold(sent([number % 97 for number in range(first, first + 50)]))
    assert one.groups == 97
    at = one.middle()
    assert at is not None
    for batch in read(one.take(at, PLACES)):
        other.fold(GroupRows(batch, is_sent=False))
    one.spill()
    assert one.weight + other.weight == 600
    assert 30 < one.groups < 67
    kept, given = counts(read(one.drain())), counts(read(other.drain()))
    assert not kept.keys() & given.keys()
    assert kept + given == Counter(number % 97 for number in range(600))
    for each in (one, other):
        each.clear()
    assert budget.disk_used == 0


def test_a_batch_may_be_larger_than_all_that_a_state_may_have() -> None:
    budget = Budget(MIB, GIB)
    found = state(budget, memory_bytes=30_000)
    found.fold(sent([number % 3000 for number in range(9000)]))
    assert found.spilled_bytes > 30_000
    assert found.size_bytes <= 36_000
    assert counts(read(found.drain())) == Counter(number % 3000 for number in range(9000))
    found.clear()
    assert budget.disk_used == 0


@pytest.mark.parametrize(
    ("columns", "is_sent"),
    [
        ({"k": pa.array([1]), "hash": pa.array([1.0])}, True),
        ({"k": pa.array([1]), "hash": pa.array([None], pa.int64())}, True),
        ({"hash": pa.array([1])}, True),
        ({"k": pa.array([1]), "hash": pa.array([1])}, False),
        ({"k": pa.array([1]), "hash": pa.array([1]), "weight": pa.array([0])}, False),
        ({"k": pa.array([1]), "hash": pa.array([1]), "weight": pa.array([None], pa.int64())}, False),
        ({"k": pa.array([1]), "hash": pa.array([1]), "weight": pa.array([1.0])}, False),
    ],
)
def test_rows_that_no_honest_member_sends_are_refused(columns: dict[str, pa.Array], is_sent: bool) -> None:
    with pytest.raises(PeerError):
        GroupRows(pa.RecordBatch.from_pydict(columns), is_sent=is_sent)

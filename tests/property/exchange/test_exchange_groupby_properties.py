"""The state of a group-by equals a plain fold, however rows are folded, taken, spilled and drained."""

from __future__ import annotations

import decimal
import functools
import itertools
import math
import operator
import tempfile
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
import xxhash
from hypothesis import given, settings
from hypothesis import strategies as st

from skerry.exchange.groupby import buckets
from skerry.exchange.groupby.buckets import PREFIXES
from skerry.exchange.groupby.rows import PartialRows
from skerry.exchange.groupby.spill import Spill
from skerry.exchange.groupby.state import Halves, State
from skerry.exchange.input import END, Input
from skerry.exchange.spool import Budget
from skerry.model.errors import SqlError
from skerry.model.fragment import MergeStep, SortKey
from skerry.wire.codec import decode_batch, encode_batch
from tests.property.exchange.test_exchange_merge_properties import TYPES, compare_rows, decimals

slow = pytest.mark.slow
TOO_LARGE = r"NUMERIC_VALUE_OUT_OF_RANGE|ARITHMETIC_OVERFLOW"
BUDGET_BYTES = 1 << 20


@pytest.fixture(autouse=True, scope="module")
def small_steps() -> Iterator[None]:
    """Few rows are dealt out and folded; decimals of the model are exact."""
    with pytest.MonkeyPatch.context() as patched, decimal.localcontext(prec=100):
        patched.setattr(buckets, "FOLD_INTAKE_ROWS", 8)
        patched.setattr(buckets, "FOLD_PENDING_ROWS", 3)
        yield


# --- the model ----------------------------------------------------------------------------------------------------
def normal(value: Any) -> Any:
    """What Spark groups by: one NaN, one zero."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0
    return value


def rank(value: Any) -> Any:
    if isinstance(value, float):
        return (1, 0.0) if math.isnan(value) else (0, value)
    return value.encode() if isinstance(value, str) else value


class Overflow(Exception):
    pass


def summed(bound: int, scale: int = 0) -> Callable[[list[Any]], Any]:
    def fold(values: list[Any]) -> Any:
        total = sum(values[1:], values[0])
        whole = total.scaleb(scale) if isinstance(total, decimal.Decimal) else total
        if not -bound - (bound == 2**63 - 1) <= whole <= bound:
            raise Overflow
        return total

    return fold


class Kind(NamedTuple):
    """An aggregate: the types and values of the columns that it is made from, and what one of all rows is."""

    kind: str
    types: tuple[pa.DataType, ...]
    values: st.SearchStrategy[tuple[Any, ...]]
    fold: Callable[[list[tuple[Any, ...]]], Any]
    result: pa.DataType | None = None


def of_one(
    kind: str, type: pa.DataType, fold: Callable[[list[Any]], Any], values: st.SearchStrategy[Any] | None = None
) -> Kind:
    """NULL only where all are."""

    def whole(rows: list[tuple[Any, ...]]) -> Any:
        found = [value for (value,) in rows if value is not None]
        return fold(found) if found else (0 if kind == "count" else None)

    drawn = st.none() | (values if values is not None else TYPES[type])
    return Kind(kind, (type,), st.tuples(drawn), whole)


def averaged(rows: list[tuple[Any, ...]]) -> Any:
    sums, count = [total for total, _ in rows if total is not None], sum(count for _, count in rows)
    if not count or not sums:
        return None
    unit = decimal.Decimal(1).scaleb(-6)
    return (summed(10**25 - 1, 2)(sums) / count).quantize(unit, rounding=decimal.ROUND_HALF_UP)


def mean(rows: list[tuple[Any, ...]]) -> Any:
    count = sum(count for _, count in rows)
    return sum(total for total, _ in rows if total is not None) / count if count else None


def spread(kind: str) -> Callable[[list[tuple[Any, ...]]], Any]:
    def fold(rows: list[tuple[Any, ...]]) -> Any:
        total = sum(count for count, _, _ in rows)
        least = 2 if kind.endswith("samp") else 1
        if total < least:
            return None
        mean = sum(count * mean for count, mean, _ in rows if count) / total
        moment = sum(count * (variance + (own - mean) ** 2) for count, own, variance in rows if count)
        value = moment / (total - 1 if kind.endswith("samp") else total)
        return math.sqrt(value) if kind.startswith("stddev") else value

    return fold


WHOLE_FLOATS = st.integers(-1000, 1000).map(float) | st.sampled_from([math.nan, math.inf, -math.inf, -0.0])
COUNTS = st.integers(0, 3)
MOMENTS = COUNTS.flatmap(
    lambda count: (
        st.tuples(st.just(count), st.floats(-1000, 1000), st.floats(0, 100)) if count else st.just((0, None, None))
    )
)
# Views never travel.
KEY_TYPES = [type for type in TYPES if not (pa.types.is_string_view(type) or pa.types.is_binary_view(type))]
ORDERED = [type for type in KEY_TYPES if not pa.types.is_null(type)]
BITS = {"bit_and": operator.and_, "bit_or": operator.or_, "bit_xor": operator.xor}
KINDS = [
    of_one("sum", pa.int64(), summed(2**63 - 1)),
    of_one("sum", pa.decimal128(5, 2), summed(10**5 - 1, 2)),
    of_one("sum", pa.decimal128(38, 10), summed(10**38 - 1, 10)),
    of_one("sum", pa.decimal128(38, 10), summed(10**38 - 1, 10), decimals(20, 10)),
    of_one("sum", pa.int64(), summed(2**63 - 1), st.integers(-5, 5)),
    of_one("sum", pa.float64(), lambda values: sum(values), WHOLE_FLOATS),
    of_one("count", pa.int64(), sum, st.integers(0, 10**9)),
    *(of_one("min", type, functools.partial(min, key=rank)) for type in ORDERED),
    *(of_one("max", type, functools.partial(max, key=rank)) for type in ORDERED),
    *(
        of_one(kind, type, functools.partial(functools.reduce, fold))
        for kind, fold in BITS.items()
        for type in (pa.int8(), pa.int16(), pa.int32(), pa.int64())
    ),
    Kind(
        "avg",
        (pa.decimal128(25, 2), pa.int64()),
        st.tuples(st.none() | decimals(15, 2), st.integers(1, 100)),
        averaged,
        pa.decimal128(25, 6),
    ),
    Kind("mean", (pa.float64(), pa.int64()), st.tuples(WHOLE_FLOATS, COUNTS), mean, pa.float64()),
    *(
        Kind(kind, (pa.int64(), pa.float64(), pa.float64()), MOMENTS, spread(kind), pa.float64())
        for kind in ("var_pop", "var_samp", "stddev_pop", "stddev_samp")
    ),
]


# --- how a state is made of it ------------------------------------------------------------------------------------
class World:
    """Keys of some types and some aggregates; rows are tuples of keys, then the columns of each aggregate."""

    def __init__(self, keys: list[pa.DataType], kinds: list[Kind]) -> None:
        self.keys, self.kinds = keys, kinds
        fields = [(f"k{place}", type) for place, type in enumerate(keys)]
        steps = [MergeStep(place, "any") for place in range(len(keys))]
        for number, each in enumerate(kinds):
            inputs = tuple(range(len(fields), len(fields) + len(each.types)))
            fields += [(f"a{number}.{place}", type) for place, type in enumerate(each.types)]
            if each.result is None:
                steps.append(MergeStep(inputs[0], each.kind))
            else:
                steps.append(MergeStep(len(fields), each.kind, inputs))
                fields.append((f"a{number}", each.result))
        fields += [("hash", pa.int64()), ("weight", pa.int64())]
        self.schema = pa.schema(fields)
        self.rows = PartialRows(self.schema, range(len(keys)), steps, len(fields) - 2, len(fields) - 1)

    def batch(self, rows: list[tuple[Any, ...]], hash_of: Callable[[Any], int], weight: int = 1) -> pa.RecordBatch:
        columns: list[list[Any]] = [[] for _ in self.schema]
        for row in rows:
            keys, parts = row[: len(self.keys)], row[len(self.keys) :]
            values = list(keys)
            for each, part in zip(self.kinds, parts, strict=True):
                values += [*part, *([None] if each.result is not None else [])]
            hashed = hash_of(tuple(map(normal, keys)))
            for column, value in zip(columns, [*values, hashed - 2**63, weight], strict=True):
                column.append(value)
        arrays = [pa.array(column, type) for column, type in zip(columns, self.schema.types, strict=True)]
        batch = pa.RecordBatch.from_arrays(arrays, schema=self.schema)
        # A slice: kernels must mind the offset.
        return pa.concat_batches([batch.slice(0, 1), batch]).slice(1) if rows else batch

    def folded(self, rows: list[tuple[Any, ...]]) -> dict[Any, list[Any]]:
        groups: dict[Any, list[tuple[Any, ...]]] = {}
        for row in rows:
            groups.setdefault(self.key(row), []).append(row[len(self.keys) :])
        return {
            key: [each.fold([row[at] for row in some]) for at, each in enumerate(self.kinds)]
            for key, some in groups.items()
        }

    def key(self, row: tuple[Any, ...]) -> Any:
        return tuple(normal(_plain(value, type)) for value, type in zip(row[: len(self.keys)], self.keys, strict=True))


def _plain(value: Any, type: pa.DataType) -> Any:
    """As a float32 is read back."""
    return pa.scalar(value, type).as_py() if pa.types.is_float32(type) else value


def _read(column: pa.Array) -> list[Any]:
    """Times as the numbers that they are: Python's have fewer years."""
    if pa.types.is_temporal(column.type):
        column = column.view(pa.int32() if column.type.bit_width == 32 else pa.int64())
    values: list[Any] = column.to_pylist()
    return values


def drained(source: Input, most_rows: int = 5) -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = []
    while (polled := source.poll()) is not END:
        assert isinstance(polled, pa.RecordBatch)
        assert 0 < polled.num_rows <= most_rows
        polled.validate(full=True)
        rows += zip(*map(_read, polled.columns), strict=True)
    assert source.poll() is END
    return rows


def same(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return rank(one) == rank(other) or math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-6)
    return bool(one == other)


def hashed(values: Any) -> int:
    return xxhash.xxh64_intdigest(repr(values).encode())


HASHES: dict[str, Callable[[Any], int]] = {
    "good": hashed,
    "one": lambda values: 2**64 - 1,
    "two": lambda values: (hashed(values) % 2) << 63,
    "short": lambda values: hashed(values) % 4,  # in the lowest bits, which no range can tell apart
}


class Counting:
    def __init__(self) -> None:
        self.held = self.peak = 0

    def __call__(self, change: int) -> None:
        self.held += change
        self.peak = max(self.peak, self.held)
        assert self.held >= 0


def decode(body: Any, schema: pa.Schema) -> pa.RecordBatch:
    return decode_batch(body, schema, 1 << 28)


class Cluster:
    """A state, and those that took parts of it; all rows of one group-by."""

    def __init__(self, world: World, directory: str, budget_bytes: int = BUDGET_BYTES) -> None:
        self.world = world
        self.directory = directory
        self.counting = Counting()
        self.budget = Budget(0, 1 << 26, segment_bytes=2000)
        self.budget_bytes = budget_bytes
        self.states = [self.made()]
        self.spills: list[Spill] = []
        self.weight = 0

    def made(self) -> State:
        return State(self.world.rows, self.budget_bytes, 5, 1 << 20, self.counting)

    def spill(self, state: State) -> None:
        if state._spill is None:
            name = "query oslo/1 group-by"
            self.spills.append(Spill(self.world.rows, self.budget, self.directory, name, encode_batch, decode))
            state.spill(self.spills[-1])
        # What is told when memory is short.
        state.settle()
        state._budget_bytes, kept = 0, state._budget_bytes
        state._spill_buckets(state._spill)  # type: ignore[arg-type]
        state._budget_bytes = kept
        state._hold()

    def hand_over(self, state: State, first: int, upto: int) -> None:
        taken, to = state.take(first, upto), self.made()
        rows = 0
        while (polled := taken.poll()) is not END:
            assert isinstance(polled, pa.RecordBatch)
            assert polled.schema.equals(self.world.schema)
            assert polled.num_rows
            top = (polled.column("hash").to_numpy().view("uint64") >> 32).tolist()
            assert all(first <= each < upto for each in top)
            rows += polled.num_rows
            to.fold(polled)
        assert (rows, to.weight) == (taken.rows, taken.weight)
        self.states.append(to)

    def check(self) -> None:
        assert sum(state.weight for state in self.states) == self.weight
        assert self.counting.held == sum(state.size().size_bytes for state in self.states)

    def close(self) -> None:
        for state in self.states:
            state.close()
        assert self.counting.held == 0
        assert (self.budget.disk_used, self.budget.memory_used) == (0, 0)


@functools.cache
def worlds() -> st.SearchStrategy[World]:
    keys = st.lists(st.sampled_from(KEY_TYPES), min_size=1, max_size=2)
    return st.builds(World, keys, st.lists(st.sampled_from(KINDS), max_size=3))


@functools.cache
def pool(type: pa.DataType) -> st.SearchStrategy[list[Any]]:
    return st.lists(st.none() | TYPES[type], min_size=1, max_size=4)


@st.composite
def rows_of(draw: st.DrawFn, world: World, most: int = 30) -> list[tuple[Any, ...]]:
    """Keys of few values, so that groups meet."""
    pools = [st.sampled_from(draw(pool(type))) for type in world.keys]
    return draw(st.lists(st.tuples(*pools, *(each.values for each in world.kinds)), min_size=1, max_size=most))


def compared(world: World, rows: list[tuple[Any, ...]], found: list[tuple[Any, ...]]) -> None:
    expected = world.folded(rows)
    given = {world.key(row): row[len(world.keys) :] for row in found}
    assert len(found) == len(given) == len(expected)
    assert given.keys() == expected.keys()
    for key, values in expected.items():
        wanted = [
            _plain(value, each.types[0]) if each.result is None else value
            for value, each in zip(values, world.kinds, strict=True)
        ]
        assert all(map(same, given[key], wanted)), (key, given[key], wanted)


def overflows(world: World, rows: list[tuple[Any, ...]]) -> bool:
    try:
        world.folded(rows)
    except Overflow:
        return True
    return False


# --- whatever happens to rows -------------------------------------------------------------------------------------
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["fold", "fold", "fold", "settle", "take", "half", "spill"]),
        st.integers(1, 12),
        st.integers(0, PREFIXES - 1) | st.sampled_from([0, 1 << 24, 1 << 31]),
        st.integers(0, PREFIXES - 1) | st.sampled_from([1 << 24, PREFIXES - 1]),
    ),
    max_size=10,
)


def told(cluster: Cluster, steps: list[tuple[str, int, int, int]], rows: list[tuple[Any, ...]], hash: str) -> None:
    """Rows go to the first state, or to whichever it is the turn of; what is left of them at the end."""
    left = list(rows)
    for step, number, one, other in [*steps, ("fold", len(rows), 0, 0)]:
        state = cluster.states[number % len(cluster.states)]
        first, upto = min(one, other), max(one, other) + 1
        match step:
            case "fold":
                some, left = left[:number], left[number:]
                cluster.weight += 3 * len(some)
                state.fold(cluster.world.batch(some, HASHES[hash], weight=3))
            case "settle":
                state.settle()
                if state._spill is None and all(bucket.is_whole for bucket in state._buckets.buckets):
                    assert state.size().is_exact
            case "take":
                cluster.hand_over(state, first, upto)
            case "half":
                found = state.split(first, upto)
                if isinstance(found, Halves):
                    assert found.below > 0 < found.above
                    assert first < found.point < upto
                    cluster.hand_over(state, found.point, upto)
            case "spill":
                cluster.spill(state)
        cluster.check()
    assert not left


@slow
@settings(max_examples=400)
@given(data=st.data(), steps=STEPS, hash=st.sampled_from(sorted(HASHES)))
def test_whatever_happens_to_rows_each_group_comes_out_once_and_whole(
    data: st.DataObject, steps: list[tuple[str, int, int, int]], hash: str
) -> None:
    """Rows of one key may be in several states here: they meet when all have been handed to one."""
    world = data.draw(worlds())
    rows = data.draw(rows_of(world))
    with tempfile.TemporaryDirectory() as directory:
        cluster = Cluster(world, directory)
        told(cluster, steps, rows, hash)
        last = cluster.states[0]
        for state in cluster.states[1:]:
            taken = state.take(0, PREFIXES)
            while (polled := taken.poll()) is not END:
                last.fold(polled)
        cluster.check()
        assert last.weight == 3 * len(rows)
        if overflows(world, rows):
            with pytest.raises(SqlError, match=TOO_LARGE):
                drained(last.drain())
        else:
            compared(world, rows, drained(last.drain()))
        cluster.close()


@slow
@settings(max_examples=150)
@given(data=st.data(), steps=STEPS, hash=st.sampled_from(sorted(HASHES)))
def test_an_order_that_is_asked_for_is_sparks(
    data: st.DataObject, steps: list[tuple[str, int, int, int]], hash: str
) -> None:
    world = data.draw(worlds())
    rows = data.draw(rows_of(world))
    places = data.draw(st.lists(st.integers(0, len(world.keys) - 1), unique=True))
    order = [SortKey(place, data.draw(st.booleans()), data.draw(st.booleans())) for place in places]
    kept = [step for step in steps if step[0] in ("fold", "settle", "spill")]
    with tempfile.TemporaryDirectory() as directory:
        cluster = Cluster(world, directory)
        told(cluster, kept, rows, hash)
        drain = cluster.states[0].drain(order)
        if overflows(world, rows):
            with pytest.raises(SqlError, match=TOO_LARGE):
                drained(drain)
        else:
            found = drained(drain)
            compared(world, rows, found)
            assert all(compare_rows(order, one, other) <= 0 for one, other in itertools.pairwise(found))
        cluster.close()


@pytest.mark.parametrize("hash", HASHES)
@pytest.mark.parametrize("kind", KINDS, ids=lambda each: f"{each.kind}-{each.types[0]}")
@slow
@settings(max_examples=5)
@given(data=st.data())
def test_every_kind_has_its_exact_meaning(kind: Kind, hash: str, data: st.DataObject) -> None:
    world = World([pa.int8()], [kind])
    rows = data.draw(rows_of(world))
    state = State(world.rows, BUDGET_BYTES, 5, 1 << 20)
    cut = data.draw(st.integers(1, 10))
    for at in range(0, len(rows), cut):
        state.fold(world.batch(rows[at : at + cut], HASHES[hash]))
    if overflows(world, rows):
        with pytest.raises(SqlError, match=TOO_LARGE):
            drained(state.drain())
    else:
        compared(world, rows, drained(state.drain()))

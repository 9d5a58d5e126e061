"""Partial aggregates of random groups, merged by the member's kernels and by SQL: what one Spark says of all rows."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from sqlglot import exp

from skerry.exchange.aggregate import Aggregate
from skerry.exchange.input import END, Polled
from skerry.model.fragment import MergeStep, SortKey
from skerry.plan.partials import call_of, distinct_of, kernel_of, split_of
from skerry.spark.types import type_text
from skerry.sql.dialect import render
from skerry.sql.lexer import tokens_of
from skerry.sql.parse import parse_query
from skerry.sql.types import infer
from skerry.testing.checkers import same_table
from skerry.testing.oracle import SparkOracle

pytestmark = pytest.mark.spark

ROWS, GROUPS, PARTS = 1500, 120, 3
# Of one sign: a sum that cancels depends on its order, in Spark too.
FLOATS = (0.0, -0.0, 1.5, 2.25, 1e-9, 12345.678, 1e15)

# Other bits than those of math.nan, and to SQL the same.
(ODD_NAN,) = struct.unpack("<d", struct.pack("<Q", 0xFFF8_DEAD_BEEF_0001))


def decimals(precision: int, scale: int) -> Callable[[Random], Decimal]:
    return lambda random: Decimal(random.randrange(-(10**precision) + 1, 10**precision)).scaleb(-scale)


COLUMNS: dict[str, tuple[pa.DataType, Callable[[Random], Any]]] = {
    "i8": (pa.int8(), lambda random: random.randrange(-128, 128)),
    "i32": (pa.int32(), lambda random: random.randrange(-(2**31), 2**31)),
    "i64": (pa.int64(), lambda random: random.randrange(-(2**40), 2**40)),
    "f32": (pa.float32(), lambda random: random.choice(FLOATS)),
    "f64": (pa.float64(), lambda random: random.choice(FLOATS)),
    "wild": (pa.float64(), lambda random: random.choice((math.nan, ODD_NAN, math.inf, -math.inf, -0.0, 0.0, 1.0))),
    "d5": (pa.decimal128(5, 2), decimals(5, 2)),
    "d15": (pa.decimal128(15, 2), decimals(15, 2)),
    "d18": (pa.decimal128(18, 4), decimals(18, 4)),
    "d27": (pa.decimal128(27, 10), decimals(25, 10)),
    "flag": (pa.bool_(), lambda random: random.random() < 0.5),
    "s": (pa.string(), lambda random: random.choice(("", "a", "A", "é", "日本", "\U0001f600", "\uffff", "a\x00"))),
    "b": (pa.binary(), lambda random: bytes(random.randrange(256) for _ in range(random.randrange(3)))),
    "d": (pa.date32(), lambda random: date(1, 1, 1) + timedelta(days=random.randrange(3_000_000))),
    "ts": (pa.timestamp("us", "UTC"), lambda random: datetime(1, 1, 1, tzinfo=UTC) + timedelta(random.random() * 3e6)),
}
NUMBERS = ("i8", "i32", "i64", "f32", "f64", "d5", "d15", "d18", "d27")
CALLS = [
    "count(*)",
    *(f"{name}({column})" for name in ("count", "min", "max") for column in COLUMNS),
    *(f"{name}({column})" for name in ("sum", "avg") for column in (*NUMBERS, "wild")),
    *(f"{name}({column})" for name in ("var_pop", "stddev", "variance", "stddev_pop") for column in NUMBERS),
    *(f"{name}({column})" for name in ("bit_and", "bit_or", "bit_xor") for column in ("i8", "i32", "i64")),
    *(f"{name}(flag)" for name in ("bool_and", "bool_or", "every", "some", "any", "count_if")),
    "sum(d15) FILTER (WHERE flag)",
    "avg(d5) FILTER (WHERE i8 > 0)",
    "avg(d15 * (1 - d5))",
    "sum(d15 * d5)",
    "max(DISTINCT d18)",
]

# Merged in SQL alone: the bytes are those of one pass.
SKETCHES = [
    "bitmap_construct_agg(bitmap_bit_position(CAST(abs(CAST(i8 AS INT)) AS BIGINT)))",
    "bitmap_construct_agg(bitmap_bit_position(i64)) FILTER (WHERE flag)",
    "bitmap_or_agg(b)",
    "bitmap_and_agg(b)",
    *(f"theta_sketch_agg({column})" for column in ("i32", "i64", "f64", "s", "b")),
    "theta_sketch_agg(i64, 5)",
    "theta_sketch_agg(s, 4) FILTER (WHERE i8 > 100)",
]


@pytest.fixture(scope="module")
def oracle(spark_engine: Any) -> SparkOracle:
    random = Random(7)

    def value(make: Callable[[Random], Any]) -> Any:
        return None if random.random() < 0.2 else make(random)

    columns = {name: pa.array([value(make) for _ in range(ROWS)], type) for name, (type, make) in COLUMNS.items()}
    # Groups of one row, groups that one part has, groups without a value.
    columns["g"] = pa.array([None if not row % 50 else row % GROUPS for row in range(ROWS)], pa.int32())
    columns["part"] = pa.array([random.randrange(PARTS) for _ in range(ROWS)], pa.int32())
    oracle = SparkOracle(spark_engine.session)
    oracle.session.createDataFrame(pa.table(columns)).createOrReplaceTempView("t")
    return oracle


@pytest.fixture(scope="module")
def resolve(oracle: SparkOracle) -> Callable[[exp.Column], str | None]:
    types = {field.name: type_text(field.dataType) for field in oracle.session.table("t").schema.fields}
    return lambda column: types.get(column.name)


def expression(text: str) -> exp.Expr:
    said = f"SELECT {text}"
    (item,) = parse_query(tokens_of(said, 50), said).expressions
    assert isinstance(item, exp.Expr)
    return item


class Batches:
    def __init__(self, table: pa.Table) -> None:
        self._left = table.to_batches(max_chunksize=64)

    def poll(self) -> Polled:
        return self._left.pop(0) if self._left else END


def same_answer(found: pa.Table, expected: pa.Table, keys: tuple[str, ...]) -> None:
    """Averages of whole numbers are no estimates: they are the same in every digit."""
    same_table(found, expected, ordered=False)
    exact = [f"c{len(keys) + CALLS.index(f'avg({column})')}" for column in ("i8", "i32", "i64")]
    spelled = [
        sorted(map(str, zip(*(table[name].to_pylist() for name in exact), strict=True))) for table in (found, expected)
    ]
    assert spelled[0] == spelled[1]


@pytest.mark.parametrize("keys", [(), ("g",), ("g", "wild")], ids=["all", "by g", "by g and wild"])
def test_the_members_kernels(keys: tuple[str, ...], oracle: SparkOracle, resolve: Callable[..., str | None]) -> None:
    listed, hidden = [*keys, *CALLS], list[str]()
    steps = [MergeStep(place, "any") for place in range(len(keys))]
    for place, text in enumerate(CALLS, len(keys)):
        call = call_of(expression(text))
        assert call is not None
        kernel = kernel_of(call, lambda node: infer(node, resolve))
        assert kernel is not None, text
        first = len(listed) + len(hidden)
        hidden += [render(each) for each in kernel.hidden]
        steps.append(MergeStep(place, kernel.kind, tuple(range(first, first + len(kernel.hidden)))))
    group = ", ".join(("part", *keys))
    named = ", ".join(f"{text} AS c{place}" for place, text in enumerate([*listed, *hidden]))
    sorting = f" ORDER BY {', '.join(keys)}" if keys else ""
    partial = oracle.run(f"SELECT {named} FROM t GROUP BY {group}{sorting}").combine_chunks()
    sort_keys = [SortKey(place, False, True) for place in range(len(keys))]
    source, found = Aggregate(Batches(partial), sort_keys, steps, partial.schema), []
    while not isinstance(batch := source.poll(), type(END)):
        found.append(batch)
    shown = ", ".join(f"{text} AS c{place}" for place, text in enumerate(listed))
    grouped = f" GROUP BY {', '.join(keys)}" if keys else ""
    same_answer(pa.Table.from_batches(found), oracle.run(f"SELECT {shown} FROM t{grouped}"), keys)


@pytest.mark.parametrize("keys", [(), ("g",)], ids=["all", "by g"])
def test_merging_in_sql(keys: tuple[str, ...], oracle: SparkOracle, resolve: Callable[..., str | None]) -> None:
    listed, merged = [*keys], [f"p{place} AS c{place}" for place in range(len(keys))]
    for place, text in enumerate([*CALLS, *SKETCHES], len(keys)):
        call = call_of(expression(text))
        assert call is not None
        split = split_of(call, lambda node: infer(node, resolve))
        assert split is not None, text
        columns = [exp.column(f"p{len(listed) + index}") for index in range(len(split.partials))]
        listed += [render(each) for each, _ in split.partials]
        merged.append(f"{render(split.merged(columns))} AS c{place}")
    group = ", ".join(("part", *keys))
    named = ", ".join(f"{text} AS p{place}" for place, text in enumerate(listed))
    oracle.session.sql(f"SELECT {named} FROM t GROUP BY {group}").createOrReplaceTempView("partial")
    again = f" GROUP BY {', '.join(f'p{place}' for place in range(len(keys)))}" if keys else ""
    found = oracle.run(f"SELECT {', '.join(merged)} FROM partial{again}")
    shown = ", ".join(f"{text} AS c{place}" for place, text in enumerate([*keys, *CALLS, *SKETCHES]))
    grouped = f" GROUP BY {', '.join(keys)}" if keys else ""
    same_answer(found, oracle.run(f"SELECT {shown} FROM t{grouped}"), keys)


@pytest.mark.parametrize("keys", [(), ("g",)], ids=["all", "by g"])
def test_about_how_many_of_distinct_values(
    keys: tuple[str, ...], oracle: SparkOracle, resolve: Callable[..., str | None]
) -> None:
    """The answer of one pass over all rows, for every type that is made distinct first."""
    for column in (*COLUMNS, "wild * i8", "CAST(wild AS FLOAT)", "d15 * d5", "upper(s)"):
        precision = ", 0.2" if column < "d" else ""
        text = f"approx_count_distinct({column}{precision})"
        call = call_of(expression(text))
        assert call is not None
        values = distinct_of(call, lambda node: infer(node, resolve))
        assert values is not None, text
        (value,) = map(render, values)
        group, listed = ", ".join(("part", *keys, value)), ", ".join((*keys, f"{value} AS v"))
        oracle.session.sql(f"SELECT {listed} FROM t GROUP BY {group}").createOrReplaceTempView("partial")
        grouped = f" GROUP BY {', '.join(keys)}" if keys else ""
        shown = ", ".join((*keys, f"{text} AS n"))
        merged = ", ".join((*keys, f"approx_count_distinct(v{precision}) AS n"))
        found = oracle.run(f"SELECT {merged} FROM partial{grouped}")
        same_table(found, oracle.run(f"SELECT {shown} FROM t{grouped}"), ordered=False)

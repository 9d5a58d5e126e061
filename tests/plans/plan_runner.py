"""Runs plans without Spark: fragments in DuckDB, edges as tables, the finish by the member's own operators.

What is compared is one plan with another.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from functools import cache
from random import Random
from typing import Any

import duckdb
import pyarrow as pa
import sqlglot

from skerry.catalog.table import Column
from skerry.exchange.aggregate import Aggregate
from skerry.exchange.gather import Gather
from skerry.exchange.input import END, Input, Polled
from skerry.exchange.limit import Limit
from skerry.exchange.merge import Merge
from skerry.plan.fragment import EdgeLeaf, Fragment, Plan, TableLeaf
from tests.plans.plan_cases import CONFIG, STATS

Tables = Mapping[tuple[str, str], pa.Table]

_TEXTS = ("x", "NORWAY", "y", "")
_HINT = re.compile(r"/\*\+ .*? \*/ ")
_ARROW = {
    "bigint": pa.int64(),
    "int": pa.int32(),
    "double": pa.float64(),
    "string": pa.string(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
    "decimal(15,2)": pa.decimal128(15, 2),
    "array<int>": pa.list_(pa.int32()),
    "struct<id:array<int>,city:string>": pa.struct([("id", pa.list_(pa.int32())), ("city", pa.string())]),
}


def made_up(random: Random) -> Tables:
    """Every table of the fixtures' cluster with a few rows, NULLs and keys that meet now and then."""
    return {
        (name, table): pa.table(
            {
                column.name: _values(column, random, rows, STATS.get((name, table), {}).get(column.name))
                for column in each.columns
            }
        )
        for name, member in CONFIG.members.items()
        for table, each in member.tables.items()
        for rows in [random.choice((0, 3, 8, 20))]
    }


def _values(column: Column, random: Random, rows: int, known: tuple[Any, Any] | None = None) -> pa.Array:
    if column.type.startswith(("array", "struct")):
        some: list[Any] = [[1, 2], [], None, [2, None]]
        nested = [some[row % 4] for row in range(rows)]
        if column.type.startswith("struct"):
            nested = [{"id": each, "city": _TEXTS[row % 3]} for row, each in enumerate(nested)]
        return pa.array(nested, _ARROW[column.type])

    def one() -> Any:
        if known is not None and known[0] is None:
            return None
        if known is not None:
            if column.type == "string":
                return random.choice([text for text in _TEXTS if known[0] <= text <= known[1]])
            low, high = int(float(known[0])), int(float(known[1]))
            return random.randrange(low, high + 1, 100_000 if high - low > 1000 else 1)
        if random.random() < 0.15:
            return None
        if column.type == "string":
            return random.choice(_TEXTS)
        if column.type == "timestamp":
            return random.randrange(5)
        return random.randrange(12)

    values = [one() for _ in range(rows)]
    if column.type.startswith("decimal"):
        return pa.array(values, pa.int64()).cast(pa.decimal128(21, 2)).cast(_ARROW[column.type])
    return pa.array(values, pa.int32() if column.type == "date" else _ARROW[column.type]).cast(_ARROW[column.type])


class Runner:
    """One DuckDB for many plans; `tables` are the sites'."""

    def __init__(self) -> None:
        self._connection = duckdb.connect()
        self._connection.execute("SET threads = 1")

    def run(self, plan: Plan, tables: Tables) -> Counter[tuple[Any, ...]]:
        """The rows of the result, in no order."""
        return Counter(self.rows(plan, tables))

    def rows(self, plan: Plan, tables: Tables) -> list[tuple[Any, ...]]:
        """The rows of the result, in its order."""
        edges: dict[int, list[pa.Table]] = {}
        for fragment in plan.fragments:
            edges.setdefault(fragment.output.edge, []).append(self._answer(fragment, tables, edges))
        found = _finished(plan, edges[plan.finish.edge])
        return [tuple(_comparable(value) for value in row) for row in found]

    def _answer(self, fragment: Fragment, tables: Tables, edges: Mapping[int, list[pa.Table]]) -> pa.Table:
        for leaf in fragment.leaves:
            match leaf:
                case TableLeaf(placeholder, table):
                    self._put(placeholder, tables[fragment.member, table])
                case EdgeLeaf(placeholder, edge, columns, _):
                    self._put(placeholder, _together(edges[edge]).rename_columns([each.name for each in columns]))
        answer = self._connection.execute(_in_duckdb(fragment.sql)).to_arrow_table()
        for leaf in fragment.leaves:
            self._connection.execute(f"DROP TABLE {leaf.placeholder}")
        return answer

    def _put(self, name: str, table: pa.Table) -> None:
        """As a table of its own: DuckDB 1.5 fails on some plans over Arrow's."""
        self._connection.register("received", table)
        self._connection.execute(f"CREATE TEMP TABLE {name} AS SELECT * FROM received")
        self._connection.unregister("received")


def _comparable(value: Any) -> Any:
    """Doubles to ten digits, as sums of parts differ in their last ones."""
    if isinstance(value, float):
        return float(f"{value:.10g}")
    return repr(value) if isinstance(value, list | dict) else value


class _Batches:
    """A sender's rows, a few at a time."""

    def __init__(self, table: pa.Table) -> None:
        self._left = table.combine_chunks().to_batches(max_chunksize=3)

    def poll(self) -> Polled:
        return self._left.pop(0) if self._left else END


def _together(answers: list[pa.Table]) -> pa.Table:
    names = answers[0].column_names
    return pa.concat_tables([each.rename_columns(names).cast(answers[0].schema) for each in answers])


def _finished(plan: Plan, answers: list[pa.Table]) -> list[tuple[Any, ...]]:
    """What the initiator makes of what its senders gave (member/result.py)."""
    finish, schema = plan.finish, answers[0].schema
    if not finish.aggregate and not finish.keys and not finish.offset and finish.limit is None:
        return list(zip(*(column.to_pylist() for column in _together(answers).columns), strict=True))
    inputs: list[Input] = [_Batches(each.rename_columns(schema.names).cast(schema)) for each in answers]
    rows: Input = Merge(inputs, finish.keys, schema, 4, 1 << 20) if finish.keys else Gather(inputs)
    if finish.aggregate:
        rows = Aggregate(rows, finish.keys, finish.aggregate, schema)
    if finish.offset or finish.limit is not None:
        rows = Limit(rows, finish.offset, finish.limit)
    found: list[tuple[Any, ...]] = []
    while (batch := rows.poll()) is not END:
        assert isinstance(batch, pa.RecordBatch)
        found += zip(*(column.to_pylist() for column in batch.columns), strict=True)
    return found


@cache
def _in_duckdb(sql: str) -> str:
    plain = _HINT.sub("", sql).replace(" SORT BY ", " ORDER BY ")
    plain = plain.replace(" any(", " bool_or(").replace(" every(", " bool_and(")
    (text,) = sqlglot.transpile(plain, read="spark", write="duckdb")
    return text

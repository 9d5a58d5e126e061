"""Runs plans without Spark: fragments in DuckDB, edges as tables. What is compared is one plan with another."""

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
}


def made_up(random: Random) -> Tables:
    """Every table of the fixtures' cluster with a few rows, NULLs and keys that meet now and then."""
    return {
        (name, table): pa.table(
            {
                column.name: _values(column, random, rows, STATS.get((name, table), {}).get(column.name))
                for column in each.columns
                if column.type in _ARROW
            }
        )
        for name, member in CONFIG.members.items()
        for table, each in member.tables.items()
        for rows in [random.choice((0, 3, 8, 20))]
    }


def _values(column: Column, random: Random, rows: int, known: tuple[Any, Any] | None = None) -> pa.Array:
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
        """The rows of the result edge, in no order."""
        edges: dict[int, pa.Table] = {}
        for fragment in plan.fragments:
            answer = self._answer(fragment, tables, edges)
            edge = fragment.output.edge
            if edge in edges:
                answer = pa.concat_tables([edges[edge], answer.rename_columns(edges[edge].column_names)])
            edges[edge] = answer
        result = edges[plan.finish.edge]
        return Counter(zip(*(column.to_pylist() for column in result.columns), strict=True))

    def _answer(self, fragment: Fragment, tables: Tables, edges: Mapping[int, pa.Table]) -> pa.Table:
        for leaf in fragment.leaves:
            match leaf:
                case TableLeaf(placeholder, table):
                    self._put(placeholder, tables[fragment.member, table])
                case EdgeLeaf(placeholder, edge, columns, _):
                    self._put(placeholder, edges[edge].rename_columns([column.name for column in columns]))
        answer = self._connection.execute(_in_duckdb(fragment.sql)).to_arrow_table()
        for leaf in fragment.leaves:
            self._connection.execute(f"DROP TABLE {leaf.placeholder}")
        return answer

    def _put(self, name: str, table: pa.Table) -> None:
        """As a table of its own: DuckDB 1.5 fails on some plans over Arrow's."""
        self._connection.register("received", table)
        self._connection.execute(f"CREATE TEMP TABLE {name} AS SELECT * FROM received")
        self._connection.unregister("received")


@cache
def _in_duckdb(sql: str) -> str:
    plain = _HINT.sub("", sql).replace(" SORT BY ", " ORDER BY ")
    (text,) = sqlglot.transpile(plain, read="spark", write="duckdb")
    return text

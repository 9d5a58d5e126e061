"""Conditions that least and greatest values refute: never one that a row of the part passes."""

from __future__ import annotations

from decimal import Decimal
from functools import cache
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skerry.catalog.statistics import bound
from skerry.model.names import TableRef
from skerry.model.table import Column, ColumnStats, PartStats, TablePart
from skerry.plan.refute import refuted
from skerry.plan.rules.prune import KeptParts
from skerry.sql.lexer import tokens_of
from skerry.sql.parse import parse_query
from skerry.sql.statement import Scan

TYPES = {"i": "bigint", "s": "string", "d": "date", "t": "timestamp", "c": "decimal(9,2)", "f": "double"}


def conditions(sql: str) -> list[Any]:
    text = f"SELECT 1 FROM x WHERE {sql}"
    return [parse_query(tokens_of(text, 50), text).args["where"].this]


def part(rows: int = 10, member: str = "oslo", names: tuple[str, ...] = tuple(TYPES), **known: Any) -> TablePart:
    """`known`: (low, high) of a column, or all of its ColumnStats."""
    stats = [
        each if isinstance(each, ColumnStats) else ColumnStats(name, *each, nulls=0, is_exact=True)
        for name, each in known.items()
    ]
    columns = tuple(Column(name, TYPES[name.lower()]) for name in names)
    return TablePart("x", member, columns, rows, 100, 1, 7, PartStats(tuple(stats)))


@pytest.mark.parametrize(
    "condition",
    [
        "i < 5",
        "i <= 4",
        "5 > i",
        "i > 9",
        "9 < i",
        "i >= 9.5",
        "i = -5",
        "i <=> 10",
        "i IN (1, 2, 4.99)",
        "i BETWEEN 1 AND 4",
        "i BETWEEN 10 AND 20",
        "(i = 4 OR i = 10)",
        "i < 5 OR i > 9",
        "s = 'Z' AND i = 1",
        "i IS NULL",
        "I = 4",
        "i < 5L",
        "s < 'b'",
        "s = 'é'",
        "d < '1970-01-02'",
        "d = DATE '1970-01-04'",
        "d >= DATE '1969-12-31' + INTERVAL 4 DAYS",
        "d > DATE '1970-03-31' - INTERVAL '2' MONTH",
        "t < '1970-01-01 00:00:01'",
        "t > TIMESTAMP '1970-01-01 00:00:02.5'",
        "t >= DATE '1970-01-02'",
        "c > 7.25",
        "c = 1",
        "c < -2BD",
        "x IS NOT NULL",
        "x > 5",
    ],
)
def test_refuted(condition: str) -> None:
    null = ColumnStats("x", nulls=10)
    known = part(
        i=(5, 9), s=("b", "z"), d=(1, 2), t=(1_000_000, 2_500_000), c=("1.50", "7.25"), names=tuple(TYPES), x=null
    )
    known = TablePart("x", "oslo", (*known.columns, Column("x", "int")), 10, 100, 1, 7, known.stats)
    assert refuted(conditions(condition), known)


@pytest.mark.parametrize(
    "condition",
    [
        "i < 6",
        "i <= 5",
        "i = 5",
        "i <> 5",
        "NOT i > 4",
        "i IN (1, 9)",
        "i IN (1, '2')",
        "i BETWEEN 1 AND 2e0",
        "i BETWEEN 9 AND 20",
        "i < 5 OR s = 'c'",
        "i < 5e0",
        "i < 5D",
        "i < '5'",
        "i < NULL",
        "i < 5 + 0",
        "i + 0 < 5",
        "i IS NOT NULL",
        "i < s",
        "s < 5",
        "s < 'b0'",
        "s LIKE 'a%'",
        "d < 'yesterday'",
        "d < '1970-1-2'",
        "d < '1970-02-30'",
        "d < TIMESTAMP '1970-01-02 00:00:00'",
        "t < '1970-01-01 00:00:01Z'",
        "t < '1970-01-01 00:00:01+01:00'",
        "c < 1.50000000000000000000000000000000001",
        "f < 0",
        "unknown < 5",
    ],
)
def test_not_refuted(condition: str) -> None:
    known = part(i=(5, 9), s=("b", "z"), d=(1, 2), t=(1_000_000, 2_500_000), c=("1.50", "7.25"), f=(1.0, 2.0))
    assert refuted(conditions(condition), known) is None


def test_only_exact_bounds_count() -> None:
    assert refuted(conditions("i < 5"), part(i=ColumnStats("i", 5, 9, 0))) is None
    assert refuted(conditions("i < 5"), TablePart("x", "oslo", (Column("i", "bigint"),), 10, 100, 1, 7)) is None
    assert refuted(conditions("i IS NULL"), part(i=ColumnStats("i"))) is None
    # Whether days before this were counted as Spark counts them, nobody can see.
    assert refuted(conditions("d < DATE '1500-01-01'"), part(d=(-141_000, 0))) is None
    assert refuted(conditions("t > '2020-01-01'"), part(t=(-(2**55), 0))) is None


_VALUES: dict[str, tuple[Any, st.SearchStrategy[Any], Any]] = {
    "i": (pa.int64(), st.integers(-20, 20), str),
    "s": (pa.string(), st.text("ab'é\U0001f600", max_size=3), lambda value: "'" + value.replace("'", "''") + "'"),
    "d": (pa.date32(), st.dates(), lambda value: f"DATE '{value.isoformat()}'"),
    "c": (pa.decimal128(9, 2), st.decimals(-99, 99, places=2), lambda value: f"{value:f}"),
}


@cache
def _duck() -> duckdb.DuckDBPyConnection:
    """One for all examples: to open one takes longer than all the rest."""
    return duckdb.connect(config={"threads": 1})


@settings(max_examples=150)
@given(st.data())
def test_no_row_passes_what_is_refuted(data: st.DataObject) -> None:
    """DuckDB has the rows; its order of these types is Spark's."""
    name = data.draw(st.sampled_from(sorted(_VALUES)))
    kind, strategy, shown = _VALUES[name]
    values = data.draw(st.lists(st.none() | strategy, min_size=1, max_size=5))
    there = [value for value in values if value is not None]
    ends = [bound(end, TYPES[name]) for end in ((min(there), max(there)) if there else (None, None))]
    nulls = len(values) - len(there)
    stats = ColumnStats(name, ends[0][0], ends[1][0], nulls, is_exact=all(exact for _, exact in ends))
    one, other = (shown(data.draw(strategy)) for _ in range(2))
    compared = data.draw(st.sampled_from(("=", "<", "<=", ">", ">=")))
    condition = data.draw(
        st.sampled_from(
            (
                f"{name} {compared} {one}",
                f"{one} {compared} {name}",
                f"{name} BETWEEN {one} AND {other}",
                f"{name} IN ({one}, {other})",
                f"({name} < {one} OR {name} > {other})",
                f"{name} > {one} AND {name} < {other}",
                f"{name} IS NULL",
                f"{name} IS NOT NULL",
            )
        )
    )
    if refuted(conditions(condition), part(rows=len(values), **{name: stats})) is None:
        return
    rows = pa.table({name: pa.array(values, kind)})
    connection = _duck().register("x", rows)
    assert connection.execute(f"SELECT count(*) FROM x WHERE {condition}").fetchall() == [(0,)]


class _Catalog:
    def __init__(self, *parts: TablePart) -> None:
        self._parts = parts

    def parts(self, ref: TableRef) -> tuple[TablePart, ...]:
        return self._parts

    def beside(self, ref: TableRef) -> tuple[TablePart, ...]:
        return ()


def kept(condition: str, *parts: TablePart, initiator: str = "oslo") -> tuple[list[str], list[str]]:
    """Members whose part stays, and members whose part is left out."""
    known = KeptParts(_Catalog(*parts), True, initiator)
    scan = Scan("scan_0", TableRef("x", None, parts[0].columns), ("i",), tuple(conditions(condition)))
    return [each.member for each in known.of(scan)], [each.member for each in known.left_out]


def test_parts_are_left_out_with_the_version_of_their_files() -> None:
    low, high = part(member="oslo", i=(0, 4)), part(member="bergen", i=(5, 9))
    assert kept("i > 4", low, high) == (["bergen"], ["oslo"])
    assert kept("i > 3", low, high) == (["oslo", "bergen"], [])
    known = KeptParts(_Catalog(low, high), True, "oslo")
    known.among((low, high), conditions("i > 4"))
    assert [(each.table, each.files_version) for each in known.left_out] == [("x", 7)]
    assert "i is 0 to 4" in known.left_out[0].reason


def test_one_part_stays() -> None:
    low, high = part(member="oslo", i=(0, 4)), part(member="bergen", i=(5, 9))
    assert kept("i > 9", low, high, initiator="bergen") == (["bergen"], ["oslo"])
    assert kept("i > 9", low, high, initiator="front") == (["oslo"], ["bergen"])
    assert kept("i > 9", low) == (["oslo"], [])


def test_a_table_whose_columns_are_spelt_in_two_ways_keeps_its_parts() -> None:
    low, high = part(member="oslo", i=(0, 4)), part(member="bergen", names=("I",), I=(5, 9))
    assert kept("i > 4", low, high) == (["oslo", "bergen"], [])


def test_bounds_of_statistics_are_values() -> None:
    assert bound(Decimal("7.25"), "decimal(9,2)") == ("7.25", True)

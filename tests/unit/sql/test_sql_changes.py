"""Statements about tables of our own: what is made of each, and how mistakes are told (`changes.sql`)."""

from __future__ import annotations

from pathlib import Path

import pytest

from skerry.model.errors import SqlError
from skerry.model.limits import Limits
from skerry.sql.changes import analyse_change, analyse_load
from skerry.sql.definitions import shown_table
from skerry.sql.owntables import CreateTable, Known
from skerry.sql.statement import analyse
from skerry.tables.ways import default_of
from tests.unit.sql.change_cases import KNOWN, MEMBERS, Case, cases, told
from tests.unit.sql.sql_cases import CATALOG

PATH = Path(__file__).with_name("changes.sql")
CASES = cases(PATH, told)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_statement_is_read(case: Case) -> None:
    assert told(case) == case.expected


@pytest.mark.parametrize("name", sorted(KNOWN.tables))
def test_what_is_shown_makes_the_same_table(name: str) -> None:
    table = KNOWN.tables[name]
    again = analyse_change(shown_table(table), None, Known(CATALOG, {}, MEMBERS), Limits())
    assert isinstance(again, CreateTable)
    assert (again.table.columns, again.table.primary_key, again.table.distributed_by) == (
        table.columns,
        table.primary_key,
        table.distributed_by,
    )
    assert (again.table.members, again.table.buckets) == (table.members, table.buckets)


def test_no_table_has_more_columns_than_a_byte_counts() -> None:
    columns = ", ".join(f"c{place} INT" for place in range(257))
    with pytest.raises(SqlError, match="at most 256 columns, this one 257"):
        analyse_change(f"CREATE TABLE t ({columns}) PRIMARY KEY (c0) DISTRIBUTED BY (c0)", None, KNOWN, Limits())


@pytest.mark.parametrize(
    ("said", "moment"),
    [
        ("2024-01-01 00:00:00+02:00", "2023-12-31T22:00:00+00:00"),
        ("2024-01-01T00:00:00.25-18:00", "2024-01-01T18:00:00.250000+00:00"),
        ("2024-01-01 00:00:00Z", "2024-01-01T00:00:00+00:00"),
        ("2024-01-01 00:00:00", "2024-01-01T00:00:00+00:00"),
    ],
)
def test_a_default_is_the_moment_that_its_offset_says(said: str, moment: str) -> None:
    text = f"CREATE TABLE t (a INT, b TIMESTAMP DEFAULT TIMESTAMP '{said}') PRIMARY KEY (a) DISTRIBUTED BY (a)"
    made = analyse_change(text, None, KNOWN, Limits())
    assert isinstance(made, CreateTable)
    assert default_of(made.table.columns[1]).isoformat() == moment


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("INSERT INTO `acount` (`id`) VALUES (?)", "unknown table acount; did you mean account?"),
        ("INSERT INTO `reading` (`k`, `nam`) VALUES (?, ?)", "table reading has no column nam"),
        (
            "INSERT INTO `account` (`id`, `region`) VALUES (?, ?)",
            "column active is NOT NULL and has no default: the rows that are loaded must have it",
        ),
    ],
)
def test_a_load_shows_no_statement_that_nobody_wrote(text: str, message: str) -> None:
    with pytest.raises(SqlError) as caught:
        analyse_load(text, KNOWN, Limits())
    assert (caught.value.message, caught.value.place) == (message, "")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_service_refuses_them_still(case: Case) -> None:
    """Until tables of our own can be used, their statements are refused by name."""
    with pytest.raises(SqlError, match="is not admitted"):
        analyse(case.text, case.parameters, CATALOG, Limits())

"""Results as plain text."""

from __future__ import annotations

import csv
import io
import json
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from skerry.cli.render import progress_line, summary, text_of, wrapped
from skerry.cli.writers import CsvWriter, JsonWriter, RowWriter, TableWriter
from skerry.client.dbapi import QueryStatus
from skerry.client.rows import describe
from skerry.model.progress import FragmentProgress, LinkBytes
from skerry.model.table import Column

COLUMNS = describe((Column("city", "string"), Column("people", "bigint"), Column("area", "decimal(9,2)")))


def written(writer: RowWriter, out: io.StringIO, *pages: list[tuple[Any, ...]]) -> str:
    writer.begin(COLUMNS)
    for page in pages:
        writer.rows(page)
    writer.end()
    return out.getvalue()


def table(*pages: list[tuple[Any, ...]], colour: bool = False) -> str:
    out = io.StringIO()
    return written(TableWriter(out.write, colour), out, *pages)


def test_a_table_is_aligned_numbers_to_the_right() -> None:
    assert table([("Bergen", 291940, Decimal("464.71")), ("東京", None, Decimal("2194"))]) == (
        " city   | people |   area\n--------+--------+--------\n Bergen | 291940 | 464.71\n 東京   |   NULL |   2194\n"
    )


def test_widths_come_from_the_first_page() -> None:
    assert table([("a", 1, None)], [("much longer", 2, None)]).splitlines()[2:] == [
        " a    |      1 | NULL",
        " much longer |      2 | NULL",
    ]


def test_an_empty_result_has_its_titles() -> None:
    assert table() == " city | people | area\n------+--------+------\n"


def test_null_is_told_apart_from_the_word() -> None:
    lines = table([("NULL", 1, None), (None, 1, None)]).splitlines()
    assert lines[2].startswith(" 'NULL'")
    assert lines[3].startswith(" NULL  ")


def test_what_would_move_the_terminal_is_escaped() -> None:
    line = table([("a\x1b[2J\nb\t\x9b\u202e", 1, None)]).splitlines()[2]
    assert line.startswith(r" a\x1b[2J\nb\t\x9b\u202e |")


def test_colours_only_where_asked_for() -> None:
    rows = [("a", None, None)]
    assert "\x1b[" not in table(rows)
    assert "\x1b[2m" in table(rows, colour=True)


def test_csv_can_be_read_back() -> None:
    out = io.StringIO()
    text = written(CsvWriter(out.write), out, [('a "b", c\nd', 1, None)], [("", 2, Decimal("0E-2"))])
    assert text == 'city,people,area\n"a ""b"", c\nd",1,\n"",2,0.00\n'
    assert list(csv.reader(io.StringIO(text)))[1] == ['a "b", c\nd', "1", ""]


def test_json_can_be_read_back() -> None:
    out = io.StringIO()
    text = written(JsonWriter(out.write), out, [("æ", 1, Decimal("1.50"))], [(None, 2, float("nan"))])
    assert json.loads(text) == [
        {"city": "æ", "people": 1, "area": 1.5},
        {"city": None, "people": 2, "area": "NaN"},
    ]
    assert "1.50" in text
    assert json.loads(written(JsonWriter(out.write), io.StringIO()) or "[]") == []


def test_json_of_nothing_and_of_two_columns_of_one_name() -> None:
    out = io.StringIO()
    writer = JsonWriter(out.write)
    writer.begin(describe((Column("a", "int"), Column("a", "int"), Column("a_2", "map<int,binary>"))))
    writer.rows([(1, 2, {1: b"\x00"})])
    writer.end()
    assert json.loads(out.getvalue()) == [{"a": 1, "a_2": 2, "a_2_2": {"1": "AA=="}}]
    empty = io.StringIO()
    assert json.loads(written(JsonWriter(empty.write), empty)) == []


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "true"),
        (1e300, "1e+300"),
        (float("-inf"), "-Infinity"),
        (Decimal("0E-10"), "0.0000000000"),
        (b"\x0a\xff", "X'0AFF'"),
        (date(2024, 2, 29), "2024-02-29"),
        (datetime(2024, 2, 29, 1, 2, 3), "2024-02-29 01:02:03"),
        (datetime(2024, 2, 29, 1, 2, 3, 4, tzinfo=UTC), "2024-02-29 01:02:03.000004+00:00"),
        (timedelta(days=3, hours=4), "3 04:00:00"),
        (-timedelta(hours=14, microseconds=1), "-0 14:00:00.000001"),
        ([1, None, "a"], "[1, NULL, a]"),
        ({"a": [True], "b": {}}, "{a: [true], b: {}}"),
    ],
)
def test_values(value: object, text: str) -> None:
    assert text_of(value) == text


def test_summary() -> None:
    assert summary(1, 0.4189) == "(1 row, 0.42 s)"
    assert summary(1234567, None) == "(1,234,567 rows)"


def test_progress() -> None:
    fragments = (FragmentProgress(0, "oslo", "done", 1200, 1), FragmentProgress(1, "bergen", "running", 34, 1))
    status = QueryStatus("running", 1.0, fragments, (LinkBytes("bergen", "oslo", 1_500_000, 34),))
    assert progress_line(status, 2.04) == "2.0 s · fragments 1/2 · 1,234 rows · at bergen · bergen→oslo 1.4 MiB"
    assert progress_line(QueryStatus("planning", 0.1), 0.3) == "0.3 s · planning"
    assert progress_line(None, 0.3) == progress_line(QueryStatus("unknown", 0.1), 0.3) == "0.3 s"


def test_no_name_in_a_live_line_steers_the_terminal() -> None:
    fragment = FragmentProgress(1, "a\x1b[2J", "running", 1, 1)
    status = QueryStatus("running", 1.0, (fragment,), (LinkBytes("b\r", "c\u202e", 5, 1),))
    line = progress_line(status, 1.0)
    assert line.isprintable()
    assert "a\\x1b[2J" in line
    assert "b\\r→c\\u202e" in line


def test_a_message_is_cut_between_words_and_its_quotes_stay_whole() -> None:
    quote = "  SELECT a, b, c FROM a_table_with_a_long_name\n         ^"
    assert wrapped(f"one two three\n{quote}\nfour five six", 10, lead=7) == f"one\ntwo three\n{quote}\nfour five\nsix"
    assert wrapped("short,  as it is", 80, lead=7) == "short,  as it is"

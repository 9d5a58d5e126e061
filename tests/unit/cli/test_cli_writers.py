"""Formats beside tables, CSV and JSON arrays."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest

from skerry.cli.plans import plan_text
from skerry.cli.writers import FORMATS, RowWriter, View
from skerry.client.rows import describe
from skerry.model.table import Column

COLUMNS = describe((Column("city", "string"), Column("people", "bigint")))
ROWS: list[tuple[Any, ...]] = [("Bergen", 291940), (None, 5)]


def shown(view: View, *pages: list[tuple[Any, ...]]) -> str:
    out = io.StringIO()
    writer: RowWriter = view.writer(out.write)
    writer.begin(COLUMNS)
    for page in pages:
        writer.rows(page)
    writer.end()
    return out.getvalue()


def test_one_value_a_line_rows_numbered_over_pages() -> None:
    assert shown(View("vertical"), [ROWS[0]], [ROWS[1]]).splitlines() == [
        "-[ row 1 ]-------------------",
        "city   | Bergen",
        "people | 291940",
        "-[ row 2 ]-------------------",
        "city   | NULL",
        "people | 5",
    ]
    assert shown(View("vertical")) == ""


def test_a_value_wider_than_the_screen_goes_on_below_itself() -> None:
    lines = shown(View("vertical", width=40), [("x" * 31 + "東" * 16, 1)]).splitlines()
    assert lines[1:4] == ["city   | " + "x" * 31, "       | " + "東" * 15, "       | 東"]


@pytest.mark.parametrize(("width", "is_table"), [(17, True), (16, False), (None, True)])
def test_auto_is_a_table_where_it_fits(width: int | None, is_table: bool) -> None:
    text = shown(View("table", is_auto=True, width=width), ROWS)
    assert text == shown(View("table" if is_table else "vertical", width=width), ROWS)
    assert max(map(len, shown(View("table"), ROWS).splitlines())) == 17
    assert shown(View("table", is_auto=True, width=1)) == shown(View("table"))


def test_markdown() -> None:
    assert shown(View("markdown"), [("a|b", 1), (None, 20)]) == (
        "| city | people |\n| ---- | -----: |\n| a\\|b |      1 |\n| NULL |     20 |\n"
    )


def test_json_lines() -> None:
    lines = shown(View("jsonl"), [ROWS[0]], [ROWS[1]]).splitlines()
    assert [json.loads(line) for line in lines] == [
        {"city": "Bergen", "people": 291940},
        {"city": None, "people": 5},
    ]
    assert shown(View("jsonl")) == ""


def test_only_some_formats_may_stand_beside_other_lines() -> None:
    assert [name for name in FORMATS if View(name).is_for_people] == ["table", "vertical", "markdown"]


def test_a_plan_is_wrapped_between_words_below_where_it_began() -> None:
    lines = [
        "fragment 1 at oslo: reads table orders",
        "    SELECT a, b FROM orders WHERE a = 'x-y' AND b > 1",
        "\x1b[2J",
    ]
    assert plan_text(lines, None) == f"{lines[0]}\n{lines[1]}\n\\x1b[2J\n"
    assert plan_text(lines, 40).splitlines() == [
        "fragment 1 at oslo: reads table orders",
        "    SELECT a, b FROM orders WHERE a =",
        "        'x-y' AND b > 1",
        "\\x1b[2J",
    ]


def test_a_plan_in_json_is_left_as_it_is() -> None:
    text = json.dumps({"sql": "SELECT " + "a, " * 50}, indent=2)
    assert plan_text([text], 40) == text + "\n"

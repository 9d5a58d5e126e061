"""Where the rest runs, and how many bytes a scan is taken to send."""

from __future__ import annotations

import pytest
from sqlglot import exp

from skerry.model.amounts import size_text
from skerry.model.table import Column, TablePart
from skerry.plan.estimate import Estimator, row_bytes, width_bytes
from skerry.plan.place import fewest_arriving

MEMBERS = ("oslo", "bergen", "tromso")


@pytest.mark.parametrize(
    ("held", "chosen"),
    [
        ({"oslo": 1, "bergen": 2, "tromso": 3}, "tromso"),
        ({"bergen": 5, "tromso": 5}, "bergen"),
        ({"tromso": 5, "bergen": 5}, "bergen"),
        ({"tromso": 1}, "tromso"),
        ({}, "oslo"),
        ({"oslo": 0, "bergen": 0}, "oslo"),
        ({"bergen": 0, "tromso": 0}, "bergen"),
    ],
)
def test_the_rest_runs_where_the_fewest_bytes_arrive(held: dict[str, int], chosen: str) -> None:
    assert fewest_arriving(held, MEMBERS) == chosen


@pytest.mark.parametrize(
    ("type_", "width"),
    [
        ("boolean", 1),
        ("int", 4),
        ("timestamp_ntz", 8),
        ("decimal(38,10)", 16),
        ("string", 24),
        ("array<int>", 48),
        ("struct<a:int>", 48),
        ("something new", 24),
    ],
)
def test_widths(type_: str, width: int) -> None:
    assert width_bytes(type_) == width


def test_a_part_that_nobody_counted_is_guessed_from_its_bytes() -> None:
    columns = (Column("a", "bigint"), Column("b", "string"))
    assert row_bytes(columns) == 32
    counted = TablePart("t", "oslo", columns, 900, 10, 1, 1)
    guessed = TablePart("t", "oslo", columns, None, 1600, 1, 1)
    scan, condition = Estimator().scan, [exp.func("something", exp.column("b"))]
    assert (scan([counted]).rows, scan([counted], condition).rows) == (900, 300)
    assert (scan([guessed]).rows, scan([guessed], condition).rows) == (100, pytest.approx(100 / 3))
    assert scan([TablePart("t", "oslo", (Column("a", "boolean"),), None, 7, 1, 1)]).rows == 7


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (5 << 30, "5.0 GiB"), (1 << 60, "1048576.0 TiB")],
)
def test_sizes_as_people_read_them(size: int, text: str) -> None:
    assert size_text(size) == text

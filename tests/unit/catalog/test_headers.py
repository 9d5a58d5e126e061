"""CSV files of one table with different headers."""

from __future__ import annotations

import bz2
import gzip
import re
from pathlib import Path

import pytest

from skerry.catalog.headers import check_headers
from skerry.catalog.listing import Listing, ListingError, list_table
from skerry.model.config import TableConfig
from skerry.model.table import Column

ADVICE = (
    ", and CSV is read by position; check that both begin with a header and write one of them anew, or name the "
    "columns by position in members.oslo.tables.t.columns"
)


def config(*columns: str, **options: str) -> TableConfig:
    declared = tuple(Column(name, "string") for name in columns)
    return TableConfig("oslo", "t", "csv", ".", options={"header": "true", **options}, columns=declared)


def write(folder: Path, *texts: str) -> Listing:
    for number, text in enumerate(texts):
        (folder / f"{number}.csv").write_text(text)
    return list_table(folder, config())


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("a,b\n1,2\n", 'a,"b"\r\n3,4\r\n'),
        ("a,b\n", "\n\n\ufeffa,b"),
        ("a,b\n", ""),
    ],
)
def test_headers_that_are_the_same(first: str, second: str, tmp_path: Path) -> None:
    assert check_headers(config(), write(tmp_path, first, second)) is None


@pytest.mark.parametrize(
    ("first", "second", "how"),
    [
        ("a,b", "a,b,c", f"0.csv has 2 columns and 1.csv has 3 columns{ADVICE}"),
        ("a,b", "a", f"0.csv has 2 columns and 1.csv has 1 column{ADVICE}"),
        ("a,b", "A,b", f"column 1 of 1.csv has another name than column 1 of 0.csv{ADVICE}"),
        ("a,b", "a,c,b", f"column 2 of 1.csv has another name than column 2 of 0.csv{ADVICE}"),
        (
            "a,b",
            "b,a",
            "the columns of 1.csv stand in another order than those of 0.csv, and CSV is read by position; "
            "write one of them anew",
        ),
        ("a,b,b", "a,b", f"0.csv has 3 columns and 1.csv has 2 columns{ADVICE}"),
        ("a,b,b", "a,a,b", f"column 2 of 1.csv has another name than column 2 of 0.csv{ADVICE}"),
    ],
)
def test_headers_that_differ_are_named(first: str, second: str, how: str, tmp_path: Path) -> None:
    with pytest.raises(ListingError) as caught:
        check_headers(config(), write(tmp_path, first, second))
    assert caught.value.reason == how


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("name,city", "Alice,Oslo"),
        ("Alice,Oslo", "name,city"),
        ("name,city", "Alice,Oslo,x"),
        ("name,name", "Alice,name"),
    ],
)
@pytest.mark.parametrize("is_sail", [False, True])
def test_a_line_without_a_header_is_not_quoted(first: str, second: str, is_sail: bool, tmp_path: Path) -> None:
    with pytest.raises(ListingError) as caught:
        check_headers(config(), write(tmp_path, first, second), is_sail)
    assert "column 1 of 1.csv has another name than column 1 of 0.csv" in caught.value.message
    assert not [text for text in ("Alice", "Oslo", "city") if text in caught.value.message]


def test_declared_columns_name_positions(tmp_path: Path) -> None:
    listing = write(tmp_path, "a;b", "a;c")
    assert check_headers(config("a", "b", sep=";"), listing) is None
    with pytest.raises(ListingError, match=r"column 2 of 1\.csv has another name"):
        check_headers(config(sep=";"), listing)
    listing = write(tmp_path, "a;b", "b;a")
    with pytest.raises(ListingError, match="another order"):
        check_headers(config("a", "b", sep=";"), listing)


@pytest.mark.parametrize(
    ("options", "first", "second"),
    [
        ({"sep": "\\t"}, "a\tb", "b\ta"),
        ({"delimiter": "\t"}, "a\tb", "b\ta"),
        ({"sep": "||"}, "a||b", "b||a"),
        ({"comment": "#"}, "# x,y\na,b", "b,a"),
        ({"multiLine": "true"}, 'a,b\n1,"x\ny"', "b,a"),
        ({"escape": '"'}, "a,b", '"b",a'),
        ({"encoding": "UTF-8"}, "a,b", "b,a"),
    ],
)
def test_headers_in_other_spellings(options: dict[str, str], first: str, second: str, tmp_path: Path) -> None:
    with pytest.raises(ListingError, match=r"the columns of 1\.csv stand in another order"):
        check_headers(config(**options), write(tmp_path, first, second))


def test_a_packed_header_is_read(tmp_path: Path) -> None:
    write(tmp_path, "a,b")
    (tmp_path / "1.csv.gz").write_bytes(gzip.compress(b"b,a\n"))
    with pytest.raises(ListingError, match=r"the columns of 1\.csv\.gz stand in another order"):
        check_headers(config(), list_table(tmp_path, config()))
    (tmp_path / "1.csv.gz").write_bytes(b"no gzip")
    assert check_headers(config(), list_table(tmp_path, config())) is None


@pytest.mark.parametrize(
    ("table", "first", "second", "how"),
    [
        (config(header="false"), "1,x", "2,y,z", "0.csv has 2 columns and 1.csv has 3 columns"),
        (config("a", header="false"), "1", "2,y", "members.oslo.tables.t.columns has 1 column and 1.csv has 2 columns"),
        (config("a", "b"), "a,b", "a", "members.oslo.tables.t.columns has 2 columns and 1.csv has 1 column"),
    ],
)
def test_sail_reads_as_many_values_in_every_line(
    table: TableConfig, first: str, second: str, how: str, tmp_path: Path
) -> None:
    listing = write(tmp_path, first, second)
    assert check_headers(table, listing) is None
    with pytest.raises(ListingError, match=f"{re.escape(how)}, which Sail does not read as one table"):
        check_headers(table, listing, is_sail=True)


def test_what_has_no_plain_header_is_not_looked_at(tmp_path: Path) -> None:
    listing = write(tmp_path, "a,b", "1,2")
    for options in ({"header": "false"}, {"encoding": "utf-16"}, {"lineSep": ";"}):
        assert check_headers(config(**options), listing) is None
    listing = write(tmp_path, "a,b", '"b\nc",a')
    assert check_headers(config(multiLine="true"), listing) is None
    (tmp_path / "1.csv").unlink()
    (tmp_path / "1.csv.bz2").write_bytes(bz2.compress(b"c\n"))
    assert check_headers(config(), list_table(tmp_path, config())) is None
    (tmp_path / "2.csv").write_bytes(b"\xff\xfe,a\n")
    assert check_headers(config(), list_table(tmp_path, config())) is None

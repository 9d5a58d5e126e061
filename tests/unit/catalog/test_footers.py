"""Footers of real Parquet files."""

from __future__ import annotations

import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from skerry.catalog.footers import Footers, footers_now
from skerry.catalog.listing import Listing, list_table
from skerry.config import TableConfig
from skerry.model.columns import BadType, difference, normal_type
from skerry.model.errors import SiteError
from skerry.model.limits import Limits
from skerry.model.table import Column


def listed(root: Path, path: str = "t") -> Listing:
    return list_table(root, TableConfig("oslo", "t", "parquet", path))


def write(file: Path, rows: int) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"k": pa.array(range(rows), pa.int64())}), file, row_group_size=10)


def test_rows_and_bytes_are_summed_and_read_once(tmp_path: Path) -> None:
    write(tmp_path / "t" / "a.parquet", 25)
    write(tmp_path / "t" / "b.parquet", 5)
    footers = Footers()
    footer = footers.of(listed(tmp_path))
    assert footer.rows == 30
    assert footer.size_bytes >= 30 * 8
    assert footer.columns == (Column("k", "bigint"),)
    assert footers.reads() == 2
    footers.of(listed(tmp_path))
    assert footers.reads() == 2
    write(tmp_path / "t" / "b.parquet", 6)
    assert footers.of(listed(tmp_path)).rows == 31
    assert footers.reads() == 3


def test_the_cache_is_bounded(tmp_path: Path) -> None:
    write(tmp_path / "t" / "a.parquet", 1)
    write(tmp_path / "t" / "b.parquet", 1)
    footers = Footers(1)
    footers.of(listed(tmp_path))
    footers.of(listed(tmp_path))
    assert footers.reads() == 4


def test_the_largest_limit_of_the_members_holds(tmp_path: Path) -> None:
    write(tmp_path / "t" / "a.parquet", 1)
    write(tmp_path / "t" / "b.parquet", 1)
    footers = Footers(3)
    for allowed, reads in ((1, 4), (2, 2), (1, 2)):
        footers.allow(allowed)
        footers.of(listed(tmp_path))
        footers.of(listed(tmp_path))
        assert footers.reads() == reads, allowed


def test_all_footers_of_the_largest_table_are_kept() -> None:
    assert Limits().footers >= Limits().table_files


def test_directories_add_columns_of_a_type_that_spark_finds(tmp_path: Path) -> None:
    write(tmp_path / "t" / "year=2024" / "K=1" / "a.parquet", 1)
    assert Footers().of(listed(tmp_path)).columns == (Column("k", "bigint"), Column("year", ""))


def test_what_is_not_parquet_is_named(tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "a.parquet").write_text("hello, I am no Parquet")
    with pytest.raises(SiteError, match=r"^file a.parquet is not Parquet: "):
        Footers().of(listed(tmp_path))


def test_a_file_that_went_is_named(tmp_path: Path) -> None:
    write(tmp_path / "t" / "a.parquet", 1)
    listing = listed(tmp_path)
    (tmp_path / "t" / "a.parquet").unlink()
    with pytest.raises(SiteError, match=r"^file a.parquet is gone$"):
        Footers().of(listing)


def test_rows_are_counted_as_they_are_now(tmp_path: Path) -> None:
    file = tmp_path / "a.parquet"
    write(file, 3)
    assert [footer.rows for footer in footers_now([str(file)])] == [3]
    write(file, 7)
    assert [footer.rows for footer in footers_now([str(file)])] == [7]
    file.unlink()
    with pytest.raises(SiteError, match=r"^file a.parquet is gone$"):
        footers_now([str(file)])


TYPES = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "decimal(15,2)": pa.decimal128(15, 2),
    "array<int>": pa.list_(pa.int32()),
    "map<string,double>": pa.map_(pa.string(), pa.float64()),
    "struct<a:int,b:array<date>>": pa.struct([("a", pa.int32()), ("b", pa.list_(pa.date32()))]),
}


@pytest.mark.parametrize("name", TYPES)
def test_types_are_those_of_spark(name: str, tmp_path: Path) -> None:
    pq.write_table(pa.table({"c": pa.array([None], TYPES[name])}), tmp_path / "t.parquet")
    assert Footers().of(listed(tmp_path, "t.parquet")).columns == (Column("c", name),)
    assert normal_type(name) == name


def test_int96_is_a_timestamp_with_zone(tmp_path: Path) -> None:
    table = pa.table({"c": pa.array([datetime.datetime(2024, 1, 1)], pa.timestamp("ns"))})
    pq.write_table(table, tmp_path / "t.parquet", use_deprecated_int96_timestamps=True)
    assert Footers().of(listed(tmp_path, "t.parquet")).columns == (Column("c", "timestamp"),)


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("INTEGER", "int"),
        ("long", "bigint"),
        ("decimal", "decimal(10,0)"),
        ("numeric(7)", "decimal(7,0)"),
        (" Array < Struct < a : REAL , B : timestamp_ltz > > ", "array<struct<a:float,B:timestamp>>"),
    ],
)
def test_types_are_written_as_spark_writes_them(text: str, normal: str) -> None:
    assert normal_type(text) == normal


@pytest.mark.parametrize(
    "text",
    [
        "",
        "in",
        "int int",
        "decimal(",
        "decimal()",
        "decimal(5,6)",
        "decimal(0)",
        "array",
        "array<>",
        "array<int",
        "map<int>",
        "struct<>",
        "struct<a int>",
        "struct<1:int>",
        "varchar(3)",
        "int;",
        "é",
        "array<" * 50 + "int" + ">" * 50,
    ],
)
def test_other_types_are_refused(text: str) -> None:
    with pytest.raises(BadType):
        normal_type(text)


@pytest.mark.parametrize(
    ("here", "there", "how"),
    [
        ("a int, b date", "A INT, B date", ""),
        ("a int, b date", "a int, b ", ""),
        ("a int, b date", "a int", "b is only here"),
        ("a int", "a int, b date", "b is only there"),
        ("a int", "a bigint", "a is int here and bigint there"),
        ("a int, b date", "b date, a int", "the columns stand in another order"),
    ],
)
def test_differences_are_said_in_words(here: str, there: str, how: str) -> None:
    def columns(text: str) -> list[Column]:
        return [Column(*pair.split(" ")) for pair in text.split(", ")]

    assert difference(columns(here), columns(there)) == how

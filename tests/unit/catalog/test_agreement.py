"""Parquet files of one table with different columns: which are read as one, and what is said of the others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from skerry.catalog.agreement import agreed_rows, groups_of
from skerry.catalog.footers import footers_now
from skerry.catalog.listing import Listing, ListingError, list_table
from skerry.model.config import TableConfig
from skerry.model.table import Column

INT, LONG, TEXT = pa.int32(), pa.int64(), pa.string()
KEY = "members.oslo.tables.t.columns"
DECLARE = f"; name the columns to read in {KEY}, or have all of them by options: {{mergeSchema: true}}"


def write(folder: Path, *files: dict[str, pa.DataType]) -> Listing:
    (folder / "t").mkdir()
    for number, columns in enumerate(files):
        table = pa.table({name: pa.array([None], kind) for name, kind in columns.items()})
        pq.write_table(table, folder / "t" / f"{number}.parquet")
    return list_table(folder, config())


def config(columns: dict[str, str] | None = None, **options: str) -> TableConfig:
    declared = tuple(Column(*each) for each in (columns or {}).items())
    return TableConfig("oslo", "t", "parquet", "t", options=options, columns=declared)


def struct(**fields: pa.DataType) -> pa.DataType:
    return pa.struct(list(fields.items()))


# What the first file has, and the second.
SAME: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "the same": ({"a": LONG, "b": TEXT}, {"a": LONG, "b": TEXT}),
    "another order": ({"a": LONG, "b": TEXT}, {"b": TEXT, "a": LONG}),
    "another case": ({"a": LONG, "b": TEXT}, {"A": LONG, "B": TEXT}),
    "one is missing": ({"a": LONG, "b": TEXT}, {"a": LONG}),
    "a list of so many": ({"a": pa.list_(LONG, 2)}, {"a": pa.list_(LONG, 2)}),
    "a list of any length": ({"a": pa.list_(LONG, 2)}, {"a": pa.list_(INT)}),
    "a shorter number": ({"a": LONG}, {"a": INT}),
    "a number for a double": ({"a": pa.float64()}, {"a": INT}),
    "the same type, written otherwise": ({"a": TEXT}, {"a": pa.large_string()}),
    "a shorter decimal": ({"a": pa.decimal128(14, 4)}, {"a": pa.decimal128(10, 2)}),
    "a number for a decimal": ({"a": pa.decimal128(12, 2)}, {"a": INT}),
    "NULLs without a type for a number": ({"a": LONG}, {"a": pa.null()}),
    "a field is missing": ({"a": struct(x=LONG, y=TEXT)}, {"a": struct(x=LONG)}),
    "shorter numbers in a list": ({"a": pa.list_(LONG)}, {"a": pa.list_(INT)}),
}
DIFFERENT: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "one more": ({"a": LONG}, {"a": LONG, "b": TEXT}, f"b is a column of 1.parquet and not of 0.parquet{DECLARE}"),
    "another one": (
        {"a": LONG, "b": TEXT},
        {"a": LONG, "c": TEXT},
        f"c is a column of 1.parquet and not of 0.parquet{DECLARE}",
    ),
    "a longer number": (
        {"a": INT},
        {"a": LONG},
        f"a is int in 0.parquet and bigint in 1.parquet; declare it as bigint in {KEY}",
    ),
    "a text for a number": (
        {"a": LONG},
        {"A": TEXT},
        "a is bigint in 0.parquet and string in 1.parquet; write one of them anew",
    ),
    "a number that a double cannot hold": (
        {"a": pa.float64()},
        {"a": LONG},
        "a is double in 0.parquet and bigint in 1.parquet; write one of them anew",
    ),
    "a decimal with more after the point": (
        {"a": pa.decimal128(12, 2)},
        {"a": pa.decimal128(12, 4)},
        "a is decimal(12,2) in 0.parquet and decimal(12,4) in 1.parquet; write one of them anew",
    ),
    "NULLs without a type for a text": (
        {"a": TEXT},
        {"a": pa.null()},
        "a is string in 0.parquet and null in 1.parquet; write one of them anew",
    ),
    "two that are one": (
        {"a": LONG},
        {"a": LONG, "A": LONG},
        "1.parquet has the columns a and A, which are one name in SQL",
    ),
    "one field more": (
        {"a": struct(x=LONG)},
        {"a": struct(x=LONG, y=LONG)},
        "a is struct<x:bigint> in 0.parquet and struct<x:bigint,y:bigint> in 1.parquet; write one of them anew",
    ),
    "a list for a number": (
        {"a": LONG},
        {"a": pa.list_(LONG)},
        "a is bigint in 0.parquet and array<bigint> in 1.parquet; write one of them anew",
    ),
}


@pytest.mark.parametrize("name", SAME)
@pytest.mark.parametrize("is_sail", [False, True])
def test_files_that_are_read_as_one(name: str, is_sail: bool, tmp_path: Path) -> None:
    assert agreed_rows(config(), write(tmp_path, *SAME[name]), is_sail) == 2


@pytest.mark.parametrize("name", DIFFERENT)
def test_files_that_differ_are_named(name: str, tmp_path: Path) -> None:
    first, second, how = DIFFERENT[name]
    with pytest.raises(ListingError) as caught:
        agreed_rows(config(), write(tmp_path, first, second), False)
    assert caught.value.reason == how
    assert caught.value.message == f"site oslo: table t: {how}"


def test_files_of_subdirectories_are_named_with_them(tmp_path: Path) -> None:
    write(tmp_path, {"a": LONG})
    (tmp_path / "t" / "late").mkdir()
    pq.write_table(pa.table({"b": [1]}), tmp_path / "t" / "late" / "0.parquet")
    with pytest.raises(ListingError, match=r"b is a column of late/0.parquet and not of 0.parquet"):
        agreed_rows(config(), list_table(tmp_path, config()), False)


def test_sail_reads_nulls_without_a_type_as_anything(tmp_path: Path) -> None:
    listing = write(tmp_path, {"a": pa.null(), "b": TEXT}, {"a": TEXT, "b": pa.null()})
    assert agreed_rows(config(), listing, True) == 2
    with pytest.raises(ListingError, match=r"a is null in 0\.parquet and string in 1.parquet"):
        agreed_rows(config(), listing, False)


NONE = pa.null()


@pytest.mark.parametrize(
    ("kinds", "how"),
    [
        ((NONE, INT, LONG), f"a is int in 1.parquet and bigint in 2.parquet; declare it as bigint in {KEY}"),
        ((NONE, INT, TEXT), "a is int in 1.parquet and string in 2.parquet; write one of them anew"),
        ((NONE, NONE, INT, NONE, TEXT), "a is int in 2.parquet and string in 4.parquet; write one of them anew"),
        (
            (NONE, struct(x=INT), struct(x=TEXT)),
            "a is struct<x:int> in 1.parquet and struct<x:string> in 2.parquet; write one of them anew",
        ),
        (
            (struct(x=NONE, y=NONE), struct(x=INT), struct(y=INT), struct(y=TEXT)),
            "a is struct<y:int> in 2.parquet and struct<y:string> in 3.parquet; write one of them anew",
        ),
        (
            (pa.list_(NONE), pa.list_(INT), pa.list_(LONG)),
            "a is array<int> in 1.parquet and array<bigint> in 2.parquet; write one of them anew",
        ),
        (
            (pa.map_(TEXT, NONE), pa.map_(TEXT, INT), pa.map_(TEXT, TEXT)),
            "a is map<string,int> in 1.parquet and map<string,string> in 2.parquet; write one of them anew",
        ),
    ],
)
@pytest.mark.parametrize("merges", ["false", "true"])
def test_nulls_without_a_type_leave_the_type_to_the_next_file(
    kinds: tuple[pa.DataType, ...], how: str, merges: str, tmp_path: Path
) -> None:
    listing = write(tmp_path, *({"a": kind} for kind in kinds))
    if merges == "true":  # a type that is merged is not declared
        how = how.partition(";")[0] + "; write one of them anew"
    with pytest.raises(ListingError) as caught:
        agreed_rows(config(mergeSchema=merges), listing, True)
    assert caught.value.reason == how


def test_nulls_without_a_type_are_read_with_every_type_that_follows(tmp_path: Path) -> None:
    kinds = (NONE, struct(x=NONE, y=pa.list_(NONE)), struct(x=LONG), struct(x=INT, y=pa.list_(TEXT)), NONE)
    assert agreed_rows(config(), write(tmp_path, *({"a": kind} for kind in kinds)), True) == 5


@pytest.mark.parametrize(("first", "second"), [(NONE, TEXT), (TEXT, NONE), (NONE, LONG), (NONE, pa.list_(INT))])
def test_apache_spark_reads_fields_without_a_type_as_ints(
    first: pa.DataType, second: pa.DataType, tmp_path: Path
) -> None:
    listing = write(tmp_path, {"a": struct(x=first)}, {"a": struct(x=second)})
    assert agreed_rows(config(), listing, True) == 2
    with pytest.raises(ListingError, match=r"a is struct<.* in 0\.parquet and struct<.* in 1\.parquet; write"):
        agreed_rows(config(), listing, False)


def test_apache_spark_reads_no_text_from_fields_without_a_type(tmp_path: Path) -> None:
    listing = write(tmp_path, {"a": struct(x=NONE)})
    assert agreed_rows(config({"a": "struct<x:bigint>"}), listing, False) == 1
    assert agreed_rows(config({"a": "struct<x:string>"}), listing, True) == 1
    assert agreed_rows(config({"a": "struct<x:array<int>>"}), listing, True) == 1
    with pytest.raises(ListingError, match=f"a is struct<x:string> in {KEY} and struct<x: null> in 0.parquet"):
        agreed_rows(config({"a": "struct<x:string>"}), listing, False)


def test_sail_reads_no_categories(tmp_path: Path) -> None:
    listing = write(tmp_path, {"a": TEXT}, {"a": pa.dictionary(INT, TEXT)})
    assert agreed_rows(config(), listing, False) == 2
    with pytest.raises(
        ListingError, match=r"a is a category in 1\.parquet .*, which Sail cannot read; write it as plain"
    ):
        agreed_rows(config(), listing, True)


def test_declared_columns_are_the_table_s(tmp_path: Path) -> None:
    listing = write(tmp_path, {"a": INT, "b": TEXT}, {"A": LONG, "c": pa.list_(LONG)})
    assert agreed_rows(config({"a": "bigint", "b": "string", "d": "date"}), listing, False) == 2
    assert agreed_rows(config({"c": "array<bigint>"}), listing, False) == 2
    with pytest.raises(ListingError) as caught:
        agreed_rows(config({"a": "int"}), listing, False)
    assert caught.value.reason == f"a is int in {KEY} and bigint in 1.parquet; declare it as bigint in {KEY}"
    with pytest.raises(ListingError, match=f"c is string in {KEY} and array<bigint> in 1.parquet"):
        agreed_rows(config({"c": "string"}), listing, False)


def test_an_option_merges_columns_but_no_types(tmp_path: Path) -> None:
    listing = write(tmp_path, {"a": LONG}, {"b": TEXT}, {"B": TEXT, "a": INT})
    with pytest.raises(ListingError, match=r"a is bigint in 0\.parquet and int in 2.parquet; write one of them anew"):
        agreed_rows(config(mergeSchema="TRUE"), listing, False)
    (tmp_path / "t" / "2.parquet").unlink()
    assert agreed_rows(config(MERGESCHEMA="true"), list_table(tmp_path, config()), False) == 2


def test_an_option_merges_fields(tmp_path: Path) -> None:
    listing = write(tmp_path, {"a": struct(x=LONG)}, {"a": struct(y=pa.list_(LONG))}, {"a": struct(x=LONG, z=TEXT)})
    assert agreed_rows(config(mergeSchema="true"), listing, False) == 3
    (group,) = groups_of(listing.files)
    assert group.columns() == (Column("a", "struct<x:bigint,y:array<bigint>,z:string>"),)


@pytest.mark.parametrize("is_sail", [False, True])
@pytest.mark.parametrize(
    ("kinds", "how"),
    [
        (
            (struct(x=INT), struct(y=INT), struct(y=TEXT)),
            "a is struct<y:int> in 1.parquet and struct<y:string> in 2.parquet",
        ),
        (
            (pa.list_(struct(x=INT)), pa.list_(struct(y=INT)), pa.list_(struct(y=LONG))),
            "a is array<struct<y:int>> in 1.parquet and array<struct<y:bigint>> in 2.parquet",
        ),
        ((struct(A=INT), struct(a=INT)), "a is struct<A:int> in 0.parquet and struct<a:int> in 1.parquet"),
        (
            (struct(x=INT), struct(A=INT), struct(a=INT)),
            "a is struct<A:int> in 1.parquet and struct<a:int> in 2.parquet",
        ),
    ],
)
def test_merged_fields_are_compared_with_those_of_every_file(
    kinds: tuple[pa.DataType, ...], how: str, is_sail: bool, tmp_path: Path
) -> None:
    listing = write(tmp_path, *({"a": kind} for kind in kinds))
    with pytest.raises(ListingError) as caught:
        agreed_rows(config(mergeSchema="true"), listing, is_sail)
    assert caught.value.reason == f"{how}; write one of them anew"


def test_fields_of_one_type_are_merged_however_they_are_written(tmp_path: Path) -> None:
    kinds = struct(x=INT), struct(y=TEXT, z=pa.list_(INT)), struct(y=pa.large_string(), z=pa.large_list(INT))
    assert agreed_rows(config(mergeSchema="true"), write(tmp_path, *({"a": kind} for kind in kinds)), False) == 3


def test_files_with_the_same_columns_share_one_schema(tmp_path: Path) -> None:
    listing = write(tmp_path, {"a": LONG}, {"a": LONG}, {"a": INT})
    one, two, three = (footer.schema for footer in footers_now(listing.files))
    assert one is two
    assert one is not three


def test_sail_reads_files_apart_that_it_cannot_merge(tmp_path: Path) -> None:
    listing = write(
        tmp_path,
        {"a": pa.null(), "b": TEXT},
        {"a": INT},
        {"a": LONG, "s": struct(x=INT)},
        {"b": TEXT, "a": INT, "s": struct(x=INT, y=INT)},
        {"A": INT},
        {"s": struct(x=LONG)},
        {"l": pa.list_(INT)},
        {"l": pa.large_list(INT), "u": pa.uint32()},
    )
    groups = groups_of(listing.files)
    stems = [" ".join(Path(file).stem for file in group.files) for group in groups]
    assert stems == ["0 1 3 6", "2 7", "4 5"]
    assert groups[1].columns() == (
        Column("a", "bigint"),
        Column("s", "struct<x:int>"),
        Column("l", "array<int>"),
        Column("u", "bigint"),
    )
    assert groups[1].gives(Column("u", "bigint"))
    assert groups[1].gives(Column("u", "int")), "as Sail itself calls it"
    assert groups[0].gives(Column("a", "int"))
    assert groups[0].gives(Column("z", "date")), "it is NULL"
    assert not groups[0].gives(Column("a", "bigint"))
    assert not groups[2].gives(Column("a", "int")), "it is spelled A there"

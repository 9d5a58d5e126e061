"""Statistics of real Parquet files, without Spark."""

from __future__ import annotations

import datetime
import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from skerry.catalog.sample import Spot, spots_of
from skerry.catalog.statistics import TEXT_CHARS, bound, gather
from skerry.model.errors import SiteError
from skerry.model.limits import Limits
from skerry.model.table import Column, ColumnStats, PartStats, TablePart

LIMITS = Limits()


def written(folder: Path, name: str, table: pa.Table, **options: Any) -> str:
    path = folder / name
    pq.write_table(table, path, **options)
    return str(path)


def by_name(stats: PartStats) -> dict[str, ColumnStats]:
    return {column.name: column for column in stats.columns}


def test_least_greatest_nulls_and_distinct_values_of_a_small_table_are_exact(tmp_path: Path) -> None:
    day = datetime.date(1970, 1, 2)
    moment = datetime.datetime(1970, 1, 1, 0, 0, 1)
    table = pa.table(
        {
            "K": pa.array([3, 1, None], pa.int64()),
            "d": pa.array([day, day, day + datetime.timedelta(5)], pa.date32()),
            "t": pa.array([moment, None, moment], pa.timestamp("us")),
            "p": pa.array([Decimal("1.50"), Decimal("-2.00"), Decimal("7.25")], pa.decimal128(9, 2)),
            "s": ["b", "a", None],
            "f": [1.5, float("nan"), 2.5],
            "l": pa.array([[1], [2], None], pa.list_(pa.int32())),
        }
    )
    kinds = ("bigint", "date", "timestamp_ntz", "decimal(9,2)", "string", "double", "array<int>")
    columns = [Column(name, kind) for name, kind in zip(table.column_names, kinds, strict=True)]
    found = by_name(gather([written(tmp_path, "a", table)], columns, LIMITS))
    assert found["K"] == ColumnStats("K", 1, 3, 1, 2, 8.0, True)
    assert found["d"] == ColumnStats("d", 1, 6, 0, 2, 4.0, True)
    assert found["t"] == ColumnStats("t", 1_000_000, 1_000_000, 1, 1, 8.0, True)
    assert found["p"] == ColumnStats("p", "-2.00", "7.25", 0, 3, 16.0, True)
    assert (found["s"].low, found["s"].high, found["s"].nulls, found["s"].ndv) == ("a", "b", 1, 2)
    # NaN hides from footers, and is the greatest to Spark.
    assert (found["f"].low, found["f"].high, found["f"].is_exact) == (1.5, 2.5, False)
    assert (found["l"].low, found["l"].ndv, found["l"].nulls) == (None, None, None)


def test_decimals_that_are_stored_as_integers_keep_their_point(tmp_path: Path) -> None:
    table = pa.table({"p": pa.array([Decimal("1.50"), Decimal("-2.00")], pa.decimal128(9, 2))})
    file = written(tmp_path, "a", table, store_decimal_as_integer=True)
    (found,) = gather([file], [Column("p", "decimal(9,2)")], LIMITS).columns
    assert (found.low, found.high, found.is_exact) == ("-2.00", "1.50", True)


def test_nanoseconds_are_no_exact_bounds(tmp_path: Path) -> None:
    file = written(tmp_path, "a", pa.table({"t": pa.array([1000, 1500], pa.timestamp("ns"))}))
    (found,) = gather([file], [Column("t", "timestamp_ntz")], LIMITS).columns
    assert (found.low, found.is_exact) == (1, False)


def test_a_column_that_a_file_lacks_is_null_there(tmp_path: Path) -> None:
    one = written(tmp_path, "a", pa.table({"k": [1, 2]}))
    two = written(tmp_path, "b", pa.table({"k": [9], "late": ["x"]}))
    found = by_name(gather([one, two], [Column("k", "bigint"), Column("late", "string")], LIMITS))
    assert (found["k"].low, found["k"].high, found["k"].nulls) == (1, 9, 0)
    assert found["late"].nulls == 2


def test_without_statistics_in_the_footer_bounds_are_not_exact(tmp_path: Path) -> None:
    one = written(tmp_path, "a", pa.table({"k": [1, 2]}))
    two = written(tmp_path, "b", pa.table({"k": [900]}), write_statistics=False)
    found = by_name(gather([one, two], [Column("k", "bigint")], LIMITS))["k"]
    assert not found.is_exact
    assert found.nulls is None


def test_a_sample_finds_out_how_many_values_there_are(tmp_path: Path) -> None:
    rows, dice = 200_000, random.Random(7)
    table = pa.table(
        {
            "key": pa.array(range(rows), pa.int64()),
            "clustered": pa.array([each // 4 for each in range(rows)], pa.int64()),
            "foreign": pa.array([dice.randrange(30_000) for _ in range(rows)], pa.int64()),
            "few": pa.array([dice.randrange(7) for _ in range(rows)], pa.int64()),
            "word": [f"w{dice.randrange(500)}" for _ in range(rows)],
        }
    )
    columns = [Column(name, "bigint" if name != "word" else "string") for name in table.column_names]
    file = written(tmp_path, "a", table, row_group_size=10_000)
    found = by_name(gather([file], columns, msgspec.structs.replace(LIMITS, stats_sample_rows=20_000)))
    expected = {"key": rows, "clustered": rows / 4, "foreign": 30_000, "few": 7, "word": 500}
    for name, ndv in expected.items():
        assert found[name].ndv == pytest.approx(ndv, rel=0.15), name
    assert found["word"].width_bytes == pytest.approx(7.8, rel=0.05)


def test_work_is_bounded(tmp_path: Path) -> None:
    files = [written(tmp_path, f"{i}", pa.table({"a": [i], "b": [i]})) for i in range(10)]
    columns = [Column("a", "bigint"), Column("b", "bigint")]
    limits = msgspec.structs.replace(LIMITS, stats_files=5, stats_columns=1)
    (only,) = gather(files, columns, limits).columns
    assert only.name == "a"
    # Half of the files were read: what they say is no bound for the others.
    assert (only.is_exact, only.nulls) == (False, None)
    spots = [Spot("f", group, 1000) for group in range(100)]
    chosen = list(spots_of(spots, 3200))
    assert len(chosen) == 16
    assert sum(rows for _, rows in chosen) <= 3200
    assert list(spots_of(spots[:2], 5000)) == [(spots[0], 1000), (spots[1], 1000)]


def test_columns_of_directories_have_the_values_of_their_names(tmp_path: Path) -> None:
    files = []
    for year in (2023, 2024, 2025):
        (tmp_path / f"Year={year}").mkdir()
        files.append(written(tmp_path / f"Year={year}", "a", pa.table({"k": [1, 2]})))
    found = by_name(gather(files, [Column("k", "bigint"), Column("year", "int")], LIMITS))
    assert found["year"] == ColumnStats("year", ndv=3)
    assert found["k"].nulls == 0


def test_a_column_that_files_and_directories_have_is_not_known_from_files(tmp_path: Path) -> None:
    """Spark takes the directory's value, whatever the file says."""
    (tmp_path / "k=7").mkdir()
    file = written(tmp_path / "k=7", "a", pa.table({"k": [1, 2]}))
    (found,) = gather([file], [Column("k", "int")], LIMITS).columns
    assert (found.is_exact, found.nulls) == (False, None)


def test_a_table_without_rows(tmp_path: Path) -> None:
    empty = written(tmp_path, "a", pa.table({"k": pa.array([], pa.int64())}))
    (only,) = gather([empty], [Column("k", "bigint")], LIMITS).columns
    assert (only.low, only.high, only.nulls, only.ndv) == (None, None, 0, None)
    assert gather([], [Column("k", "bigint")], LIMITS).columns[0].low is None


def test_a_file_that_is_gone_is_named(tmp_path: Path) -> None:
    with pytest.raises(SiteError, match="gone"):
        gather([str(tmp_path / "gone")], [Column("a", "int")], LIMITS)


@pytest.mark.parametrize(
    ("value", "kind", "expected"),
    [
        (True, "boolean", (1, True)),
        (7, "string", (None, False)),
        ("x" * 40, "string", ("x" * TEXT_CHARS, False)),
        (float("inf"), "double", (None, False)),
        (
            datetime.datetime(1970, 1, 1, 1, tzinfo=datetime.timezone(datetime.timedelta(hours=1))),
            "timestamp",
            (0, True),
        ),
        (datetime.date(1970, 1, 2), "timestamp", (None, False)),
        (b"raw", "binary", (None, False)),
        (10**30, "decimal(38,0)", (str(10**30), True)),
    ],
)
def test_values_as_statistics_hold_them(value: object, kind: str, expected: tuple[object, bool]) -> None:
    assert bound(value, kind) == expected


def test_a_part_of_an_older_member_has_no_statistics() -> None:
    part = TablePart(
        "t", "oslo", (Column("a", "int"),), 1, 1, 1, 1, PartStats((ColumnStats("a", 1, 2, 0, 2.0, 4.0, True),))
    )
    sent = msgspec.msgpack.encode(part)
    assert msgspec.msgpack.decode(sent, type=TablePart) == part
    older = msgspec.msgpack.encode(msgspec.msgpack.decode(sent)[:7])
    assert msgspec.msgpack.decode(older, type=TablePart).stats is None

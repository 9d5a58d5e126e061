"""Delta's log: which version there is, and what it tells of rows and values. The rows are Delta's own to read."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from skerry.catalog.deltalog import look
from skerry.catalog.listing import ListingError
from skerry.model.config import TableConfig
from skerry.model.errors import UserError
from skerry.model.names import Moment
from skerry.model.sources import VersionedFolder
from skerry.model.table import ColumnStats

TABLE = TableConfig("oslo", "stock", "delta", "stock", shown_path="data/stock", source=VersionedFolder())
FIELDS = [
    {"name": "id", "type": "long", "metadata": {"delta.columnMapping.physicalName": "col-1"}},
    {"name": "day", "type": "date", "metadata": {}},
    {"name": "at", "type": "timestamp", "metadata": {}},
    {"name": "cost", "type": "decimal(9,2)", "metadata": {}},
    {"name": "load", "type": "double", "metadata": {}},
    {"name": "place", "type": "string", "metadata": {}},
]
METADATA = {
    "metaData": {"schemaString": json.dumps({"type": "struct", "fields": FIELDS}), "partitionColumns": ["place"]}
}


def add(path: str, low: int, high: int, nulls: int = 0, **more: Any) -> dict[str, Any]:
    stats = {
        "numRecords": 10,
        "minValues": {"col-1": low, "day": "2024-01-01", "at": "2024-01-01T00:00:00.000Z", "cost": 1.25, "load": 0.5},
        "maxValues": {"col-1": high, "day": "2024-02-01", "at": "2024-01-01T00:00:01.500Z", "cost": 9, "load": 2.5},
        "nullCount": {"col-1": nulls, "day": 0, "at": 0, "cost": 0, "load": 0},
    }
    return {"add": {"path": path, "size": 100, "partitionValues": {"place": "oslo"}, "stats": json.dumps(stats)} | more}


def commit(folder: Path, version: int, *actions: dict[str, Any], at_s: float = 1_700_000_000) -> Path:
    log = folder / "_delta_log"
    log.mkdir(exist_ok=True)
    file = log / f"{version:020d}.json"
    file.write_text("\n".join(json.dumps(action) for action in actions))
    os.utime(file, (at_s + version, at_s + version))
    return file


def column(folder: Path, name: str) -> ColumnStats:
    stats = look(str(folder), TABLE, None).stats
    assert stats is not None
    return next(each for each in stats.columns if each.name == name)


def test_the_log_tells_rows_bytes_and_values(tmp_path: Path) -> None:
    commit(tmp_path, 0, METADATA, add("a", 1, 5), add("b", 7, 9, nulls=2))
    told = look(str(tmp_path), TABLE, None)
    assert (told.rows, told.size_bytes, told.pinned.at, told.pinned.place) == (20, 200, "0", str(tmp_path))
    assert column(tmp_path, "id") == ColumnStats("id", 1, 9, nulls=2, is_exact=True)
    assert column(tmp_path, "cost") == ColumnStats("cost", "1.25", "9", nulls=0, is_exact=True)
    # The log cuts a timestamp off behind its milliseconds, so a value may be above.
    assert column(tmp_path, "at").high == 1_704_067_201_501_000
    assert not column(tmp_path, "load").is_exact  # NaN hides
    assert column(tmp_path, "place") == ColumnStats("place", ndv=1.0)


def test_deleted_rows_count_no_more_and_nobody_knows_which_were_null(tmp_path: Path) -> None:
    vector = {"storageType": "u", "pathOrInlineDv": "x", "offset": 1, "sizeInBytes": 1, "cardinality": 4}
    commit(tmp_path, 0, METADATA, add("a", 1, 5, nulls=2))
    commit(tmp_path, 1, add("a", 1, 5, nulls=2, deletionVector=vector), {"remove": {"path": "a"}})
    assert look(str(tmp_path), TABLE, None).rows == 6
    assert column(tmp_path, "id") == ColumnStats("id", 1, 5, nulls=None, is_exact=True)
    assert look(str(tmp_path), TABLE, Moment("version", 0)).rows == 10


def test_a_version_is_named_by_its_commit(tmp_path: Path) -> None:
    commit(tmp_path, 0, METADATA, add("a", 1, 5))
    first = look(str(tmp_path), TABLE, None).version
    assert look(str(tmp_path), TABLE, None).version == first
    commit(tmp_path, 1, add("b", 1, 5))
    assert look(str(tmp_path), TABLE, None).version != first
    assert look(str(tmp_path), TABLE, Moment("version", 0)).version == first
    commit(tmp_path, 0, METADATA, add("c", 1, 77), at_s=1_800_000_000)  # dropped, and made anew
    assert look(str(tmp_path), TABLE, Moment("version", 0)).version != first


def test_a_checkpoint_stands_for_the_commits_before_it(tmp_path: Path) -> None:
    commit(tmp_path, 3, add("b", 20, 30))
    row = {"metaData": METADATA["metaData"], "add": None}, {"metaData": None, "add": add("a", 1, 5)["add"]}
    schema = pa.schema(
        [
            ("metaData", pa.struct([("schemaString", pa.string()), ("partitionColumns", pa.list_(pa.string()))])),
            (
                "add",
                pa.struct(
                    [
                        ("path", pa.string()),
                        ("size", pa.int64()),
                        ("partitionValues", pa.map_(pa.string(), pa.string())),
                        ("stats", pa.string()),
                    ]
                ),
            ),
            ("protocol", pa.struct([("minReaderVersion", pa.int32()), ("readerFeatures", pa.list_(pa.string()))])),
        ]
    )
    pq.write_table(pa.Table.from_pylist(list(row), schema), tmp_path / "_delta_log" / f"{2:020d}.checkpoint.parquet")
    told = look(str(tmp_path), TABLE, None)
    assert (told.rows, told.pinned.at) == (20, "3")
    assert column(tmp_path, "id") == ColumnStats("id", 1, 30, nulls=0, is_exact=True)
    assert look(str(tmp_path), TABLE, Moment("version", 2)).rows == 10


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"add": 7}', '{"add": {"path": "x"}}', "null", '{"metaData": {}}', "\xff"]
)
def test_a_log_that_nobody_can_read_gives_no_statistics(text: str, tmp_path: Path) -> None:
    commit(tmp_path, 0, METADATA, add("a", 1, 5))
    (tmp_path / "_delta_log" / f"{1:020d}.json").write_text(text)
    told = look(str(tmp_path), TABLE, None)
    assert (told.rows, told.stats, told.pinned.at) == (None, None, "1")


def test_statistics_of_other_types_are_not_believed(tmp_path: Path) -> None:
    wrong = add("a", 1, 5)
    wrong["add"]["stats"] = json.dumps(
        {"numRecords": 3, "minValues": {"col-1": "x", "cost": [1]}, "maxValues": {"col-1": {}}}
    )
    commit(tmp_path, 0, METADATA, wrong)
    assert column(tmp_path, "id") == ColumnStats("id")
    assert look(str(tmp_path), TABLE, None).rows == 3


def test_a_time_finds_the_version_of_then(tmp_path: Path) -> None:
    begun = 1_700_000_000
    commit(tmp_path, 0, METADATA)
    commit(tmp_path, 1, {"commitInfo": {"inCommitTimestamp": (begun + 50) * 1000}}, add("a", 1, 5))
    commit(tmp_path, 2, add("b", 1, 5))  # its file is older than the commit before says: time only rises

    def at(second: float) -> str:
        return look(str(tmp_path), TABLE, Moment("timestamp", int((begun + second) * 1_000_000))).pinned.at

    assert [at(0), at(49.9), at(50)] == ["0", "0", "2"]
    with pytest.raises(
        UserError, match=r"site oslo: table stock: its log has versions 0 to 2, since 2023-11-14 22:13:20 UTC"
    ):
        at(-1)
    with pytest.raises(UserError, match=r"site oslo: table stock: its log has versions 0 to 2, "):
        look(str(tmp_path), TABLE, Moment("version", 3))


def test_the_log_says_what_a_reader_must_know(tmp_path: Path) -> None:
    commit(tmp_path, 0, METADATA, {"protocol": {"minReaderVersion": 1}})
    assert look(str(tmp_path), TABLE, None).needs == ()
    commit(tmp_path, 1, {"protocol": {"minReaderVersion": 2}})
    assert look(str(tmp_path), TABLE, None).needs == ("columnMapping",)
    commit(tmp_path, 2, {"protocol": {"minReaderVersion": 3, "readerFeatures": ["timestampNtz", "deletionVectors"]}})
    assert look(str(tmp_path), TABLE, None).needs == ("deletionVectors", "timestampNtz")
    (tmp_path / "_delta_log" / f"{3:020d}.json").write_text("{")
    assert look(str(tmp_path), TABLE, None).needs is None


def test_a_folder_without_a_log_is_no_delta_table(tmp_path: Path) -> None:
    with pytest.raises(ListingError, match=r"no Delta table at data/stock: it has no _delta_log"):
        look(str(tmp_path), TABLE, None)
    (tmp_path / "_delta_log").mkdir()
    with pytest.raises(ListingError, match="its log is empty"):
        look(str(tmp_path), TABLE, None)


def test_a_checkpoint_that_is_small_on_disk_alone_gives_no_statistics(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("skerry.catalog.deltalog.DELTA_LOG_BYTES", 1_000_000)
    (tmp_path / "_delta_log").mkdir()
    log = tmp_path / "_delta_log" / f"{0:020d}.checkpoint.parquet"
    metadata = pa.struct([("schemaString", pa.string()), ("partitionColumns", pa.list_(pa.string()))])
    file = pa.struct([("path", pa.string()), ("size", pa.int64()), ("stats", pa.string())])
    schema = pa.schema(
        [("metaData", metadata), ("add", file), ("protocol", pa.struct([("minReaderVersion", pa.int32())]))]
    )
    text = json.dumps({"numRecords": 1, "more": "x" * 10_000})
    adds: list[dict[str, Any]] = [{"add": {"path": f"{n}", "size": 1, "stats": text}} for n in range(1000)]
    pq.write_table(pa.Table.from_pylist([METADATA, *adds], schema), log)
    assert log.stat().st_size < 1_000_000
    assert look(str(tmp_path), TABLE, None).size_bytes is None


def test_more_files_than_anybody_counts_give_no_statistics(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("skerry.catalog.deltalog.DELTA_FILES", 2)
    commit(tmp_path, 0, METADATA, add("a", 1, 5), add("b", 1, 5))
    commit(tmp_path, 1, add("c", 1, 5))
    assert look(str(tmp_path), TABLE, Moment("version", 0)).rows == 20
    assert look(str(tmp_path), TABLE, None).rows is None


def test_a_commit_of_no_calendars_year_is_told_of_without_it(tmp_path: Path) -> None:
    commit(tmp_path, 0, {"commitInfo": {"inCommitTimestamp": 10**18}}, METADATA)
    with pytest.raises(UserError, match=r"its log has versions 0 to 0$"):
        look(str(tmp_path), TABLE, Moment("version", 5))


@pytest.mark.parametrize(
    "named",
    [
        add("/etc/x.parquet", 1, 2),
        add("file:///etc/x.parquet", 1, 2),
        add("S3a://b/x.parquet", 1, 2),
        add("a/../../x.parquet", 1, 2),
        add("a/%2E%2E/%2e%2e/x.parquet", 1, 2),
        add("%2Fetc/x.parquet", 1, 2),
        {
            "add": add("a", 1, 2)["add"]
            | {"deletionVector": {"storageType": "p", "pathOrInlineDv": "file:/x", "offset": 1}}
        },
    ],
    ids=str,
)
def test_a_log_that_names_files_elsewhere_is_refused(tmp_path: Path, named: dict[str, Any]) -> None:
    commit(tmp_path, 0, METADATA, add("a..b/c=..d/x.parquet", 1, 2))
    assert look(str(tmp_path), TABLE, None).rows == 10
    commit(tmp_path, 1, named)
    with pytest.raises(ListingError, match="site oslo: table stock: its log names a file outside of its folder: "):
        look(str(tmp_path), TABLE, None)
    commit(tmp_path, 2, {"remove": named["add"]})
    assert look(str(tmp_path), TABLE, None).rows == 10

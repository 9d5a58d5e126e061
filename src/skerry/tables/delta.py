"""A shard's folder as a Delta table: any reader of Delta sees the last flush. Pure but for the files.

The log is written by hand (docs/adr/0048): one JSON file a flush, checkpoints in Parquet. It is made from the manifest
and nothing else, and is never read back but for one question: whether all commits in it are ours.
"""

from __future__ import annotations

import json
import os
import re
from contextlib import suppress
from datetime import date, timedelta
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import xxhash

from skerry.model.columns import normal_type, split_types
from skerry.model.errors import SiteError
from skerry.model.limits import DELTA_CHECKPOINT, DELTA_KEPT
from skerry.model.points import reach
from skerry.model.sharded import OwnColumn, OwnTable
from skerry.model.table import ColumnStats
from skerry.tables.clock import COUNTER_BITS
from skerry.tables.durable import make_folder, sync_folder, write_new
from skerry.tables.manifest import DataFile, Manifest, Named

LOG = "_delta_log"
APP = "skerry"  # the name under which a reader finds how far the table was when it was published
_COMMIT = re.compile(r"(\d{20})\.json")
_OLD = re.compile(r"(\d{20})\.(json|checkpoint\.parquet)")
_WORDS = {"tinyint": "byte", "smallint": "short", "int": "integer", "bigint": "long"}
_NESTED = re.compile(r"(array|map|struct)<(.*)>")
_DAY_0 = date(1970, 1, 1)

Action = dict[str, dict[str, Any]]


class Published(NamedTuple):
    generation: int
    upto_ts: int
    version: int


def publish(folder: str, table: OwnTable, member: str, manifest: Manifest) -> Published:
    """Brings the log up to the manifest's last flush, and syncs it; SiteError if others have written there.

    Commits that a killed member made, and never heard of, are recognized.
    """
    log = os.path.join(folder, LOG)
    last = recognized(folder, member, manifest)
    if last.generation == manifest.generation:
        return last
    version = last.version + 1
    is_new = version == 0 or (table.next_column > 0 and version_of(folder) != table.version)
    actions = commit_of(table, member, manifest, last.upto_ts, is_first=version == 0, is_new=is_new)
    make_folder(log)
    path = os.path.join(log, f"{version:020d}.json")
    try:
        write_new(path, "".join(json.dumps(action) + "\n" for action in actions).encode(), may_replace=False)
        sync_folder(log)
        reach("delta.committed")
        if version and version % DELTA_CHECKPOINT == 0:
            _write_checkpoint(log, version, table, member, manifest)
    except FileExistsError:
        raise _foreign(path, member) from None
    except OSError as error:
        raise SiteError(
            f"site {member}: {path} cannot be written ({error.strerror}); the table itself is well",
            suggestion="make room on that disk; the next flush publishes all",
        ) from error
    return Published(manifest.generation, manifest.flushed_ts, version)


def recognized(folder: str, member: str, manifest: Manifest) -> Published:
    """The last commit in the log, which must be ours and no later than the manifest."""
    log = os.path.join(folder, LOG)
    names = os.listdir(log) if os.path.isdir(log) else []
    versions = sorted(int(match[1]) for name in names if (match := _COMMIT.fullmatch(name)))
    last = Published(manifest.published, manifest.published_ts, manifest.delta_version)
    if last.version >= 0 and last.version not in versions:
        raise SiteError(
            f"site {member}: {log}: commit {last.version}, which was made here, is gone",
            suggestion=f"restore {log} from a copy; the table itself is well",
        )
    for version in versions[versions.index(last.version) + 1 if last.version >= 0 else 0 :]:
        path = os.path.join(log, f"{version:020d}.json")
        found = _mark_of(path)
        if found is None or version != last.version + 1 or found[0] <= last.generation:
            raise _foreign(path, member)
        if found[0] > manifest.generation:
            raise ahead(folder, member, found[0], manifest.generation)
        last = Published(found[0], found[1], version)
    return last


def newest_of(folder: str) -> int | None:
    """The greatest flush that a commit of ours tells of, whatever else is in the log; None if there is none."""
    log = os.path.join(folder, LOG)
    names = os.listdir(log) if os.path.isdir(log) else []
    for name in sorted((name for name in names if _COMMIT.fullmatch(name)), reverse=True):
        mark = _mark_of(os.path.join(log, name))
        if mark is not None:
            return mark[0]
    return None


def version_of(folder: str) -> int | None:
    """The version of the table that the last commit of ours tells of; None if there is none."""
    log = os.path.join(folder, LOG)
    names = os.listdir(log) if os.path.isdir(log) else []
    for name in sorted((name for name in names if _COMMIT.fullmatch(name)), reverse=True):
        if (mark := _mark_of(os.path.join(log, name))) is not None:
            return mark[2]
    return None


def ahead(folder: str, member: str, found: int, known: int) -> SiteError:
    return SiteError(
        f"site {member}: {folder}: Delta's log tells of flush {found}, this member knows {known} alone",
        suggestion="its SQLite file is older than its tables: restore the whole folder from one copy",
    )


def _mark_of(path: str) -> tuple[int, int, int] | None:
    """The flush, its moment and the table's version, of a commit of ours; None for any other."""
    with suppress(OSError, ValueError, KeyError, TypeError), open(path, encoding="utf-8") as opened:
        for line in opened:
            action = json.loads(line)
            if "commitInfo" in action:
                mark = action["commitInfo"][APP]
                return int(mark["generation"]), int(mark["upto_ts"]), int(mark.get("version", 0))
    return None


def _foreign(path: str, member: str) -> SiteError:
    return SiteError(
        f"site {member}: {path} was not written by this member: nothing is published over it",
        suggestion="remove that commit, and write to this table through Skerry alone; the table itself is well",
    )


# --- actions ----------------------------------------------------------------------------------------------------------
def commit_of(
    table: OwnTable, member: str, manifest: Manifest, base_ts: int, is_first: bool, is_new: bool
) -> list[Action]:
    """From the files at the flush `base_ts` to those that count now. `is_new`: so is what the table is."""
    before = () if is_first else manifest.files_at(base_ts)
    names, known = {file.name for file in manifest.live}, {file.name for file in before}
    named = {each.file.name: each for each in manifest.named}
    return [
        {
            "commitInfo": {
                "timestamp": _ms(manifest.flushed_ts),
                "operation": "WRITE",
                "operationParameters": {"mode": "Append"},
                "engineInfo": APP,
                APP: {"generation": manifest.generation, "upto_ts": manifest.flushed_ts, "version": table.version},
            }
        },
        *(_header_of(table, member) if is_new else ()),
        {"txn": {"appId": APP, "version": manifest.generation, "lastUpdated": _ms(manifest.flushed_ts)}},
        *({"remove": _remove(named[file.name])} for file in before if file.name not in names),
        *({"add": _add(table, named[file.name])} for file in manifest.live if file.name not in known),
    ]


def _header_of(table: OwnTable, member: str) -> tuple[Action, Action]:
    protocol: dict[str, Any] = {"minReaderVersion": 1, "minWriterVersion": 2}
    if any("timestamp_ntz" in column.type for column in table.columns):
        features = ["timestampNtz"]
        protocol = {
            "minReaderVersion": 3,
            "minWriterVersion": 7,
            "readerFeatures": features,
            "writerFeatures": [*features, "appendOnly", "invariants"],
        }
    number = xxhash.xxh3_128_hexdigest(f"{member}/{table.id}".encode())
    fields = [_field(column) for column in table.columns]
    metadata = {
        "id": "-".join((number[:8], number[8:12], number[12:16], number[16:20], number[20:])),
        "name": table.name,
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": fields}),
        "partitionColumns": [],
        "configuration": {},
    }
    return {"protocol": protocol}, {"metaData": metadata}


def _field(column: OwnColumn) -> dict[str, Any]:
    kind = _type(normal_type(column.type))
    return {"name": column.name, "type": kind, "nullable": column.is_nullable, "metadata": {}}


def _type(text: str) -> Any:
    nested = _NESTED.fullmatch(text)
    if nested is None:
        return _WORDS.get(text, text)
    if nested[1] == "array":
        return {"type": "array", "elementType": _type(nested[2]), "containsNull": True}
    parts = split_types(nested[2])
    if nested[1] == "map":
        key, value = (_type(part) for part in parts)
        return {"type": "map", "keyType": key, "valueType": value, "valueContainsNull": True}
    fields = (part.partition(":") for part in parts)
    return {
        "type": "struct",
        "fields": [{"name": name, "type": _type(kind), "nullable": True, "metadata": {}} for name, _, kind in fields],
    }


def _add(table: OwnTable, named: Named) -> dict[str, Any]:
    return {
        "path": named.file.name,
        "partitionValues": {},
        "size": named.file.size_bytes,
        "modificationTime": _ms(named.since_ts),
        "dataChange": True,
        "stats": json.dumps(_stats(table, named.file)),
    }


def _remove(named: Named) -> dict[str, Any]:
    return {
        "path": named.file.name,
        "deletionTimestamp": _ms(named.upto_ts or 0),
        "dataChange": True,
        "extendedFileMetadata": True,
        "partitionValues": {},
        "size": named.file.size_bytes,
    }


def _stats(table: OwnTable, file: DataFile) -> dict[str, Any]:
    """Bounds of whole numbers, texts and dates alone: readers round others in ways of their own."""
    kinds = {column.name: normal_type(column.type) for column in table.columns}
    columns = [column for column in file.columns if column.name in kinds]  # others were dropped since
    bounds = {column.name: _bounds(kinds[column.name], column) for column in columns}
    return {
        "numRecords": file.rows,
        "minValues": {name: bound[0] for name, bound in bounds.items() if bound is not None},
        "maxValues": {name: bound[1] for name, bound in bounds.items() if bound is not None},
        "nullCount": {column.name: column.nulls for column in columns if "<" not in kinds[column.name]},
    }


def _bounds(kind: str, column: ColumnStats) -> tuple[Any, Any] | None:
    if not column.is_exact:
        return None
    if kind == "date" and isinstance(column.low, int) and isinstance(column.high, int):
        with suppress(OverflowError):  # Spark's dates end later than Python's
            return str(_DAY_0 + timedelta(column.low)), str(_DAY_0 + timedelta(column.high))
        return None
    return (column.low, column.high) if kind in _WORDS or kind == "string" else None


def _ms(commit_ts: int) -> int:
    return (commit_ts >> COUNTER_BITS) // 1000


# --- checkpoints ------------------------------------------------------------------------------------------------------
_MAP = pa.map_(pa.string(), pa.string())
_STRINGS = pa.list_(pa.string())
_CHECKPOINT = pa.schema(
    {
        "txn": pa.struct({"appId": pa.string(), "version": pa.int64(), "lastUpdated": pa.int64()}),
        "add": pa.struct(
            {
                **{"path": pa.string(), "partitionValues": _MAP, "size": pa.int64(), "modificationTime": pa.int64()},
                **{"dataChange": pa.bool_(), "stats": pa.string()},
            }
        ),
        "remove": pa.struct(
            {
                **{"path": pa.string(), "deletionTimestamp": pa.int64(), "dataChange": pa.bool_()},
                **{"extendedFileMetadata": pa.bool_(), "partitionValues": _MAP, "size": pa.int64()},
            }
        ),
        "metaData": pa.struct(
            {
                **{"id": pa.string(), "name": pa.string(), "schemaString": pa.string()},
                "format": pa.struct({"provider": pa.string(), "options": _MAP}),
                **{"partitionColumns": _STRINGS, "configuration": _MAP},
            }
        ),
        "protocol": pa.struct(
            {
                **{"minReaderVersion": pa.int32(), "minWriterVersion": pa.int32()},
                **{"readerFeatures": _STRINGS, "writerFeatures": _STRINGS},
            }
        ),
    }
)


def checkpoint_of(table: OwnTable, member: str, manifest: Manifest) -> list[Action]:
    """All that counts now; ends of files are told for as long as the files are there."""
    return [
        *_header_of(table, member),
        {"txn": {"appId": APP, "version": manifest.generation, "lastUpdated": _ms(manifest.flushed_ts)}},
        *({"add": _add(table, each)} for each in manifest.named if each.upto_ts is None),
        *({"remove": _remove(each)} for each in manifest.named if each.upto_ts is not None),
    ]


def _write_checkpoint(log: str, version: int, table: OwnTable, member: str, manifest: Manifest) -> None:
    """So that a reader reads one file, and the commits after it; old commits go."""
    actions = checkpoint_of(table, member, manifest)
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist(actions, _CHECKPOINT), sink, store_schema=False)
    write_new(os.path.join(log, f"{version:020d}.checkpoint.parquet"), memoryview(sink.getvalue()), may_replace=True)
    sync_folder(log)  # before its pointer
    reach("delta.checkpoint")
    pointer = json.dumps({"version": version, "size": len(actions)}).encode()
    write_new(os.path.join(log, "_last_checkpoint"), pointer, may_replace=True)
    sync_folder(log)
    for name in os.listdir(log):
        match = _OLD.fullmatch(name)
        if match and int(match[1]) < version - DELTA_KEPT:
            os.unlink(os.path.join(log, name))

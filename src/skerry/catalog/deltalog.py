"""A Delta table on this disk, by its log: its version now or at a time, and what the log says of its values.

The rows are the engine's to read: it knows deletion vectors, column mapping and all else. Here is read only what a
version is called, and what its files were said to hold when they were written.
"""

from __future__ import annotations

import datetime as dt
import json
import math
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from decimal import Decimal
from functools import lru_cache
from typing import Any
from urllib.parse import unquote

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import xxhash

from skerry.catalog.listing import VERSION_MASK, ListingError
from skerry.catalog.statistics import bound
from skerry.model.config import TableConfig
from skerry.model.errors import UserError
from skerry.model.limits import CHECKPOINT_ROWS, DELTA_FILES, DELTA_LOG_BYTES, DELTA_LOGS_KEPT
from skerry.model.names import Moment
from skerry.model.sources import Pinned, Told, VersionedFolder
from skerry.model.table import ColumnStats, PartStats

LOG = "_delta_log"
SOURCE = "delta"  # of statistics
_COMMIT = re.compile(r"(\d{20})\.json")
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint\.parquet")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_TYPES = {"long": "bigint", "integer": "int", "short": "smallint", "byte": "tinyint"}
# What follows from a log of another form than it should have.
_OTHER_FORM = (ValueError, KeyError, TypeError, AttributeError)
# The log has milliseconds, and cuts off what is below: the greatest value may be so much greater.
_CUT_OFF = dt.timedelta(milliseconds=1)


class _Missing(Exception):
    """The log does not say; the text is no message."""


class _Outside(Exception):
    """A file that the log names is not in the table's folder."""


class _Log(msgspec.Struct, frozen=True):
    """`commits`: by their numbers, size and mtime of each; `checkpoints`: their numbers, of the kind that is read."""

    path: str
    commits: dict[int, tuple[int, int]]
    checkpoints: tuple[int, ...]

    @property
    def latest(self) -> int:
        return max((*self.commits, *self.checkpoints))


def look(path: str, table: TableConfig, at: Moment | None) -> Told:
    """`path`: absolute. ListingError if there is no such table; UserError if it has no such version."""
    log = _log(path, table)
    version = log.latest if at is None else _version_at(log, at, table)
    try:
        told = _told(path, version, log.commits.get(version, (0, 0)))
    except _Outside as outside:  # whoever writes the log may not be who may read those files
        reason = f"its log names a file outside of its folder: {outside}"
        raise ListingError(table, f"{reason[:300]} (a shallow clone? copy its files)") from None
    pinned = Pinned(table.source, "delta", path, str(version))
    return msgspec.structs.replace(told, pinned=pinned)


def _log(path: str, table: TableConfig) -> _Log:
    folder = os.path.join(path, LOG)
    try:
        with os.scandir(folder) as scan:
            entries = [entry for entry in scan if entry.name[:1].isdigit()]
        found = ((_COMMIT.fullmatch(entry.name), entry) for entry in entries)
        commits = {int(match[1]): (entry.stat().st_size, entry.stat().st_mtime_ns) for match, entry in found if match}
    except (FileNotFoundError, NotADirectoryError):
        shown = table.shown_path or table.path
        raise ListingError(table, f"no Delta table at {shown}: it has no {LOG} (check {table.key}.path)") from None
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise ListingError(table, f"its log cannot be read: {reason} (check {table.key}.path)") from None
    checkpoints = tuple(int(match[1]) for entry in entries if (match := _CHECKPOINT.fullmatch(entry.name)))
    if not commits and not checkpoints:
        raise ListingError(table, f"no Delta table at {table.shown_path or table.path}: its log is empty")
    return _Log(folder, commits, checkpoints)


# --- which version ---------------------------------------------------------------------------------
def _version_at(log: _Log, at: Moment, table: TableConfig) -> int:
    if at.kind == "version":
        if at.value not in log.commits and at.value not in log.checkpoints:
            raise _no_version(table, log)
        return at.value
    latest = None
    since_us = 0
    for version in sorted(log.commits):
        since_us = max(since_us, _committed_us(log, version))  # as Delta reads them: they only rise
        if since_us > at.value:
            break
        latest = version
    if latest is None:
        raise _no_version(table, log)
    return latest


def _no_version(table: TableConfig, log: _Log) -> UserError:
    first = min((*log.commits, *log.checkpoints))
    text = f"site {table.member}: table {table.name}: its log has versions {first} to {log.latest}"
    if log.commits:
        with suppress(ValueError, OverflowError, OSError):  # a time that no calendar has
            begun = dt.datetime.fromtimestamp(_committed_us(log, min(log.commits)) // 1_000_000, dt.UTC)
            text += f", since {begun:%Y-%m-%d %H:%M:%S} UTC"
    return UserError(text, member=table.member)


def _committed_us(log: _Log, version: int) -> int:
    """The commit's own time, if it has one; else that of its file."""
    try:
        with open(_commit_file(log.path, version), "rb") as file:
            first = json.loads(file.readline(DELTA_LOG_BYTES))
        own = first.get("commitInfo", {}).get("inCommitTimestamp")
    except (OSError, ValueError, AttributeError, RecursionError):
        own = None
    return own * 1000 if isinstance(own, int) else log.commits[version][1] // 1000


def _commit_file(folder: str, version: int) -> str:
    return os.path.join(folder, f"{version:020d}.json")


# --- what it holds ---------------------------------------------------------------------------------
@lru_cache(maxsize=DELTA_LOGS_KEPT)
def _told(path: str, version: int, stamp: tuple[int, int]) -> Told:
    """Without the source: many may have one folder. What cannot be read is not known; the engine says what is wrong."""
    named = xxhash.xxh3_64_intdigest(f"{version} {stamp}".encode()) & VERSION_MASK
    told = Told(named, Pinned(VersionedFolder(), "delta"), needs=None)
    try:
        state = _State(path, version)
        told = msgspec.structs.replace(told, needs=state.needs)
        return msgspec.structs.replace(told, size_bytes=state.size_bytes(), rows=state.rows(), stats=state.stats())
    except (_Missing, OSError, ArithmeticError, RecursionError, pa.ArrowException, *_OTHER_FORM):
        return told


class _State:
    """The files of one version, by the last checkpoint and the commits since."""

    def __init__(self, path: str, version: int) -> None:
        self.folder = os.path.join(path, LOG)
        self.adds: dict[tuple[str, str], dict[str, Any]] = {}
        self.schema: list[dict[str, Any]] = []
        self.partitions: frozenset[str] = frozenset()
        self.needs: tuple[str, ...] = ()
        self._left = DELTA_LOG_BYTES
        start = self._checkpoint(version)
        for number in range(start, version + 1):
            for action in self._commit(number):
                self._apply(action)
        if not self.schema:
            raise _Missing
        for file, deleted in self.adds:
            if _leads_out(file) or deleted.startswith("p "):
                raise _Outside(file)

    def _checkpoint(self, version: int) -> int:
        """Reads the last one that is not after `version`; says where the commits after it begin."""
        names = os.listdir(self.folder)
        known = [int(match[1]) for name in names if (match := _CHECKPOINT.fullmatch(name))]
        usable = [number for number in known if number <= version]
        if not usable:
            return 0
        file = os.path.join(self.folder, f"{max(usable):020d}.checkpoint.parquet")
        with pq.ParquetFile(file) as parquet:
            if "sidecar" in parquet.schema_arrow.names:
                raise _Missing
            for batch in parquet.iter_batches(CHECKPOINT_ROWS, columns=["metaData", "protocol", "add"]):
                self._spend(batch.nbytes)  # in memory: on disk it may be a thousandth
                for row in batch.to_pylist():
                    self._apply(row)
        return max(usable) + 1

    def _commit(self, number: int) -> Iterator[dict[str, Any]]:
        file = _commit_file(self.folder, number)
        self._spend(os.path.getsize(file))
        with open(file, encoding="utf-8") as lines:
            for line in lines:
                if line.strip():
                    yield json.loads(line)

    def _spend(self, size_bytes: int) -> None:
        self._left -= size_bytes
        if self._left < 0:
            raise _Missing

    def _apply(self, action: dict[str, Any]) -> None:
        if (add := action.get("add")) is not None:
            self.adds[_file_of(add)] = add
            if len(self.adds) > DELTA_FILES:
                raise _Missing
        elif (remove := action.get("remove")) is not None:
            self.adds.pop(_file_of(remove), None)
        elif (protocol := action.get("protocol")) is not None:
            older = ("columnMapping",) if protocol["minReaderVersion"] == 2 else ()
            self.needs = tuple(sorted(map(str, protocol.get("readerFeatures") or older)))
        elif (metadata := action.get("metaData")) is not None:
            self.schema = json.loads(metadata["schemaString"])["fields"]
            self.partitions = frozenset(metadata.get("partitionColumns") or ())

    def size_bytes(self) -> int:
        return sum(int(add["size"]) for add in self.adds.values())

    def rows(self) -> int | None:
        counts = [_rows_of(add, stats) for add, stats in self._each()]
        return None if None in counts else sum(count for count in counts if count is not None)

    def _each(self) -> list[tuple[dict[str, Any], dict[str, Any]]]:
        return [(add, _stats_of(add)) for add in self.adds.values()]

    def stats(self) -> PartStats:
        each = self._each()
        return PartStats(tuple(_column(field, each, self.partitions) for field in self.schema), SOURCE)


def _leads_out(file: str) -> bool:
    """Paths of a log are those of a URL: relative ones are inside, unless they go up."""
    path = unquote(file)
    return path.startswith("/") or _SCHEME.match(path) is not None or ".." in path.split("/")


def _file_of(action: dict[str, Any]) -> tuple[str, str]:
    """A file with other deleted rows is another one to the log."""
    deleted = action.get("deletionVector") or {}
    return action["path"], f"{deleted.get('storageType')} {deleted.get('pathOrInlineDv')} {deleted.get('offset')}"


def _stats_of(add: dict[str, Any]) -> dict[str, Any]:
    text = add.get("stats")
    found = json.loads(text, parse_float=Decimal) if text else {}
    return found if isinstance(found, dict) else {}


def _rows_of(add: dict[str, Any], stats: dict[str, Any]) -> int | None:
    count = stats.get("numRecords")
    if not isinstance(count, int) or isinstance(count, bool):
        return None
    deleted = (add.get("deletionVector") or {}).get("cardinality") or 0
    return max(0, count - deleted)


def _column(
    field: dict[str, Any], each: Sequence[tuple[dict[str, Any], dict[str, Any]]], partitions: frozenset[str]
) -> ColumnStats:
    name, kind = field["name"], field["type"]
    if not isinstance(kind, str):
        return ColumnStats(name)
    kind = _TYPES.get(kind, kind)
    stored = field.get("metadata", {}).get("delta.columnMapping.physicalName", name)
    if name in partitions:
        values = {dict(add.get("partitionValues") or {}).get(stored) for add, _ in each}
        return ColumnStats(name, ndv=float(len(values - {None})))
    lows, highs, nulls = [], [], 0
    is_whole = nulls_known = True
    for add, stats in each:
        count = (stats.get("nullCount") or {}).get(stored)
        is_known = isinstance(count, int)
        nulls += count if isinstance(count, int) else 0
        # Nobody knows which of the deleted rows were NULL.
        nulls_known = nulls_known and is_known and not add.get("deletionVector")
        if is_known and count == stats.get("numRecords"):
            continue
        low = _value((stats.get("minValues") or {}).get(stored), kind)
        high = _value((stats.get("maxValues") or {}).get(stored), kind)
        is_whole = is_whole and low is not None and high is not None
        lows += [low] if low is not None else []
        highs += [high + _CUT_OFF if isinstance(high, dt.datetime) else high] if high is not None else []
    low, low_exact = bound(min(lows, default=None), kind)
    high, high_exact = bound(max(highs, default=None), kind)
    is_exact = bool(lows) and is_whole and low_exact and high_exact and kind not in ("float", "double")
    return ColumnStats(name, low, high, nulls=nulls if nulls_known else None, is_exact=is_exact)


def _value(value: Any, kind: str) -> Any:
    """As statistics of files have it; None for what is of another type."""
    if kind in ("float", "double"):
        number = float(value) if isinstance(value, int | Decimal) else math.nan
        return number if math.isfinite(number) else None
    if kind.startswith("decimal") and isinstance(value, int | Decimal):
        return Decimal(value)
    if not isinstance(value, str):
        return value if isinstance(value, int) and kind in ("bigint", "int", "smallint", "tinyint") else None
    if kind == "date":
        return dt.date.fromisoformat(value)
    if kind in ("timestamp", "timestamp_ntz"):
        moment = dt.datetime.fromisoformat(value)
        return moment if moment.tzinfo is not None else moment.replace(tzinfo=dt.UTC)
    return value if kind == "string" else None

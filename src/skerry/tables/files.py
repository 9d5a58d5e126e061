"""A group's Parquet files: each is written once, synced with its folder, and never changed. Pure but for the files."""

from __future__ import annotations

import math
import os
import re
import shutil
from collections.abc import Collection, Sequence
from contextlib import suppress
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import xxhash

from skerry.model.errors import SiteError
from skerry.model.limits import CHECKED_FILES, MIB, STATS_CHARS, STATS_SAMPLE_ROWS
from skerry.model.sharded import OwnTable
from skerry.model.table import Bound, ColumnStats
from skerry.tables.columns import arrow_schema
from skerry.tables.durable import ASIDE, make_folder, sync_folder, write_new
from skerry.tables.layouts import own_names, relaid
from skerry.tables.manifest import DataFile

# How files are compressed. A load writes them once, and as quickly as others do; a flush touches few.
FLUSHED, LOADED = "zstd", "snappy"

_Range = tuple[Any, Any]
_OURS = re.compile(r"(\d{10}|s[0-9a-f]{16}-\d{5,})-\d{5,}-\d{5,}\.parquet")  # what a sweep may remove


def name_of(generation: int, first: int, upto: int) -> str:
    return f"{generation:010d}-{first:05d}-{upto:05d}.parquet"


def write_file(
    folder: str, name: str, first: int, upto: int, rows: pa.Table, ids: tuple[int, ...], codec: str = FLUSHED
) -> DataFile:
    """A new file, whose folder is still to be synced; nothing knows of it until a manifest names it.

    `ids`: the numbers of its columns (`layouts.ids_of`).
    """
    # Without Arrow's own schema inside: every reader takes the types from Parquet, as Spark does.
    sink, bounded = pa.BufferOutputStream(), _bounded(rows)
    footers: list[pq.FileMetaData] = []
    pq.write_table(
        rows,
        sink,
        compression=codec,
        use_dictionary=_repeating(rows),
        write_statistics=bounded,
        store_schema=False,
        metadata_collector=footers,
    )
    content = memoryview(sink.getvalue())
    try:
        make_folder(folder)
        write_new(os.path.join(folder, name), content, may_replace=True)  # a flush that failed may have left one
    except OSError as error:
        raise SiteError(
            f"{os.path.join(folder, name)} cannot be written ({error.strerror}); the rows stay where they were",
            suggestion="make room on that disk, or let the member's user write there",
        ) from error
    columns = tuple(
        stats_of(column, rows.column(column), column in bounded, _written(footers[0], place, rows.num_columns))
        for place, column in enumerate(rows.column_names)
    )
    return DataFile(name, first, upto, rows.num_rows, len(content), xxhash.xxh3_128_hexdigest(content), columns, ids)


def sync_files(folder: str) -> None:
    """The names of all files that were written there."""
    try:
        sync_folder(folder)
    except OSError as error:
        raise SiteError(f"{folder} cannot be synced ({error.strerror}); the rows stay where they were") from error


def _repeating(rows: pa.Table) -> list[str]:
    """Columns whose values repeat: a dictionary of others makes a file larger, and takes five times as long."""
    head = rows.slice(0, STATS_SAMPLE_ROWS)
    plain = [field.name for field in rows.schema if not pa.types.is_nested(field.type)]
    return [name for name in plain if 2 * pc.count_distinct(head.column(name)).as_py() < head.num_rows]


def _bounded(rows: pa.Table) -> list[str]:
    """Columns whose least and greatest value readers may go by. NaN is neither to Arrow: Spark, to which it is the
    greatest number, and Sail would leave its rows out."""
    plain = [field.name for field in rows.schema if not pa.types.is_nested(field.type)]
    return [name for name in plain if not _has_nan(rows.column(name))]


def _has_nan(values: pa.ChunkedArray) -> bool:
    return pa.types.is_floating(values.type) and bool(pc.any(pc.is_nan(values)).as_py())


def read_file(folder: str, file: DataFile, table: OwnTable, columns: Sequence[str] | None = None) -> pa.Table:
    """All rows, with the columns that the table has now, or with these of its key; SiteError if the file is not what
    was written."""
    path = os.path.join(folder, file.name)
    try:
        with open(path, "rb") as opened:
            content = opened.read()
    except OSError as error:
        raise _damaged(path, error.strerror or "it cannot be read") from error
    if len(content) != file.size_bytes:
        raise _damaged(path, f"it has {len(content)} bytes instead of {file.size_bytes}")
    if xxhash.xxh3_128_hexdigest(content) != file.checksum:
        raise _damaged(path, "its bytes have changed")
    parquet = pq.ParquetFile(pa.BufferReader(content))
    if columns is None:
        return relaid(parquet.read(), file.ids, table)
    names = own_names(columns, parquet.schema_arrow.names, file.ids, table)
    schema = arrow_schema(table)
    rows = parquet.read(names).select(names)  # in their order, which is not the file's
    return pa.Table.from_arrays(
        [column.cast(schema.field(name).type) for name, column in zip(columns, rows.columns, strict=True)],
        names=list(columns),
    )


def fault_of(folder: str, file: DataFile) -> SiteError | None:
    """What a look at the file's size shows, which is quick."""
    path = os.path.join(folder, file.name)
    try:
        size = os.stat(path).st_size
    except OSError as error:
        return _damaged(path, error.strerror or "it cannot be found")
    return None if size == file.size_bytes else _damaged(path, f"it has {size} bytes instead of {file.size_bytes}")


class Checked:
    """Files whose bytes were compared with their checksums, as they were then. An engine compares nothing."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[int, int, int]] = {}

    def fault_of(self, folder: str, file: DataFile) -> SiteError | None:
        """What is wrong with the file; its bytes are read once, and again if something has touched it."""
        path = os.path.join(folder, file.name)
        try:
            with open(path, "rb") as opened:
                stat = os.fstat(opened.fileno())
                if stat.st_size != file.size_bytes:
                    return _damaged(path, f"it has {stat.st_size} bytes instead of {file.size_bytes}")
                found = (stat.st_ino, stat.st_mtime_ns, stat.st_ctime_ns)
                if self._known.get(path) == found:
                    return None
                digest = xxhash.xxh3_128()
                while chunk := opened.read(MIB):
                    digest.update(chunk)
        except OSError as error:
            return _damaged(path, error.strerror or "it cannot be read")
        if digest.hexdigest() != file.checksum:
            return _damaged(path, "its bytes have changed")
        self._known[path] = found
        for old in list(self._known)[:-CHECKED_FILES]:
            del self._known[old]
        return None


def _damaged(path: str, why: str) -> SiteError:
    return SiteError(
        f"{path} is damaged: {why}",
        suggestion="restore this file from a copy; its table cannot be read whole without it, all others can",
    )


def remove_files(folder: str, names: Collection[str]) -> None:
    """Of files that no manifest names. One that stays is swept at the next start."""
    for name in names:
        with suppress(OSError):
            os.unlink(os.path.join(folder, name))
    if names:
        with suppress(OSError):
            sync_folder(folder)


def sweep(folder: str, named: Collection[str]) -> list[str]:
    """Removes what a killed member left: files of ours that no manifest names."""
    if not os.path.isdir(folder):
        return []
    known = set(named)
    left = [name for name in os.listdir(folder) if name not in known and _OURS.fullmatch(name.removesuffix(ASIDE))]
    remove_files(folder, left)
    return left


def remove_folder(folder: str) -> None:
    """Of a table that was dropped."""
    shutil.rmtree(folder, ignore_errors=True)
    with suppress(OSError):
        sync_folder(os.path.dirname(folder))


# --- least and greatest values ----------------------------------------------------------------------------------------
def stats_of(name: str, values: pa.ChunkedArray, is_bounded: bool, written: _Range | None) -> ColumnStats:
    """`written`: what was found while the file was written."""
    low, high = _bounds(values, written) if is_bounded else (None, None)
    is_exact = low is not None and not pa.types.is_floating(values.type)
    return ColumnStats(name, low, high, nulls=values.null_count, is_exact=is_exact)


def _written(footer: pq.FileMetaData, place: int, columns: int) -> _Range | None:
    """None if the file does not tell, or has other columns: a nested one is several there."""
    if footer.num_columns != columns:
        return None
    found = [footer.row_group(group).column(place).statistics for group in range(footer.num_row_groups)]
    if not found or not all(each is not None and each.has_min_max for each in found):
        return None
    return min(each.min for each in found), max(each.max for each in found)


def _bounds(values: pa.ChunkedArray, written: _Range | None) -> tuple[Bound, Bound]:
    kind = values.type
    if pa.types.is_boolean(kind) or pa.types.is_binary(kind):
        return None, None
    if pa.types.is_date(kind):
        values, written = values.cast(pa.int32()), None
    elif pa.types.is_timestamp(kind):
        values, written = values.cast(pa.int64()), None
    if written is None:
        found = pc.min_max(values).as_py()
        written = found["min"], found["max"]
    low, high = written
    if low is None:
        return None, None
    if pa.types.is_decimal(kind):
        return format(low, "f"), format(high, "f")
    if isinstance(low, str):
        return (low, high) if max(len(low), len(high)) <= STATS_CHARS else (None, None)
    if isinstance(low, float) and not (math.isfinite(low) and math.isfinite(high)):
        return None, None
    return (low, high)

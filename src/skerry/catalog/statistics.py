"""Statistics of Parquet files without Spark: least and greatest values from footers, distinct values from a sample."""

from __future__ import annotations

import datetime
import math
import os
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from skerry.catalog.sample import Seen, Spot, spots_of
from skerry.catalog.stores import opened
from skerry.model.errors import SiteError
from skerry.model.limits import Limits
from skerry.model.sources import Storage
from skerry.model.table import Bound, Column, ColumnStats, PartStats

# The longest string that stands in statistics: they travel to every member.
TEXT_CHARS = 32
# PartStats.source of what ANALYZE TABLE found.
ANALYZED = "analyze"
# And of what a member's own Spark found in the background, the same way.
SCANNED = "spark"
_EPOCH_DAY = datetime.date(1970, 1, 1)
_WHOLE = frozenset(("tinyint", "smallint", "int", "bigint"))
_FLOATING = frozenset(("float", "double"))


class _Range(msgspec.Struct):
    """What footers have said of a column so far. `is_whole`: every row group told its least and greatest value."""

    low: Any = None
    high: Any = None
    nulls: int = 0
    is_whole: bool = True
    nulls_known: bool = True

    def add(self, statistics: Any, rows: int) -> None:
        if not rows:
            return
        if statistics is None:
            self.is_whole = self.nulls_known = False
            return
        if statistics.has_null_count:
            self.nulls += statistics.null_count
        else:
            self.nulls_known = False
        if statistics.has_null_count and statistics.null_count >= rows:
            return
        if not statistics.has_min_max:
            self.is_whole = False
            return
        low, high = statistics.min, statistics.max
        self.low = low if self.low is None else min(self.low, low)
        self.high = high if self.high is None else max(self.high, high)


def gather(
    files: Sequence[str], columns: Sequence[Column], limits: Limits, storage: Storage | None = None
) -> PartStats:
    """Bounded: so many footers, rows of a sample, columns. SiteError when a file cannot be read."""
    wanted = {column.name.lower(): column for column in columns[: limits.stats_columns]}
    read = _evenly(files, limits.stats_files)
    ranges = {name: _Range() for name in wanted}
    spots: list[Spot] = []
    in_files: set[str] = set()
    rows = 0
    for file in read:
        try:
            metadata = pq.read_metadata(opened(file, storage))
        except (OSError, pa.ArrowException) as error:
            raise SiteError(f"file {os.path.basename(file)}: no statistics: {str(error).splitlines()[0]}") from None
        rows += metadata.num_rows
        in_files |= _add_footer(metadata, ranges)
        spots += [Spot(file, group, metadata.row_group(group).num_rows) for group in range(metadata.num_row_groups)]
    seen = Seen(list(wanted), storage)
    seen.read(spots_of(spots, limits.stats_sample_rows))
    values = _partitions(files)
    share = len(read) / max(1, len(files))
    is_all = len(read) == len(files)
    stats = []
    for name, column in wanted.items():
        if name in values and name not in in_files:  # a column of directories: its values are their names
            stats.append(ColumnStats(column.name, ndv=float(len(values[name]))))
        else:
            # Where a directory names a column that files have too, Spark takes the directory's value.
            is_known = is_all and name not in values
            stats.append(_column(column, ranges[name], seen, rows / share if share else 0, is_known))
    return PartStats(tuple(stats), "sample" if seen.rows else "footers")


def _partitions(files: Sequence[str]) -> dict[str, set[str]]:
    """The values of each key=value directory on the way to a file, by lower-case key."""
    found: dict[str, set[str]] = {}
    for folder in {os.path.dirname(file) for file in files}:
        for step in folder.split("/"):
            key, is_pair, value = step.partition("=")
            if is_pair:
                found.setdefault(key.lower(), set()).add(value)
    return found


def _evenly(files: Sequence[str], count: int) -> list[str]:
    if len(files) <= count:
        return list(files)
    return [files[index * len(files) // count] for index in range(count)]


def _add_footer(metadata: Any, ranges: dict[str, _Range]) -> set[str]:
    """The file's columns. One that a file lacks is NULL there; of a nested one its leaves tell nothing."""
    names = {metadata.schema.column(index).path.lower(): index for index in range(metadata.num_columns)}
    nested = {path.partition(".")[0] for path in names if "." in path}
    for name, known in ranges.items():
        index = names.get(name)
        if index is None:
            known.nulls += metadata.num_rows
            if name in nested:
                known.is_whole = known.nulls_known = False
            continue
        for group in range(metadata.num_row_groups):
            chunk = metadata.row_group(group).column(index)
            try:
                known.add(chunk.statistics if chunk.is_stats_set else None, chunk.num_values)
            except (TypeError, ValueError, OverflowError, pa.ArrowException):  # types differ between files
                known.is_whole = False
    return nested | set(names)


def _column(column: Column, known: _Range, seen: Seen, rows: float, is_known: bool) -> ColumnStats:
    low, low_exact = bound(known.low, column.type)
    high, high_exact = bound(known.high, column.type)
    ndv = seen.distinct(column.name.lower(), rows)
    if ndv is not None and isinstance(low, int) and isinstance(high, int):
        ndv = min(ndv, float(high - low + 1))
    exact = is_known and known.is_whole and low_exact and high_exact and column.type not in _FLOATING
    return ColumnStats(
        name=column.name,
        low=low,
        high=high,
        nulls=known.nulls if known.nulls_known and is_known else None,
        ndv=None if ndv is None else float(round(ndv)),
        width_bytes=seen.width_bytes(column.name.lower()),
        is_exact=exact and known.nulls_known,
    )


def bound(value: Any, column_type: str) -> tuple[Bound, bool]:
    """A value as statistics hold it, and whether it is the value itself; None for what does not fit the type."""
    match value:
        case bool():
            return (int(value), True) if column_type == "boolean" else (None, False)
        case int() if column_type in _WHOLE:
            return value, True
        case int() | Decimal() if column_type.startswith("decimal"):
            return str(value), True
        case float() | int() if column_type in _FLOATING:
            return (float(value), True) if math.isfinite(value) else (None, False)
        case datetime.datetime() if column_type in ("timestamp", "timestamp_ntz"):
            # Only the microseconds of nanoseconds are kept, so the value may be above.
            return _microseconds(value), not getattr(value, "nanosecond", 0)
        case datetime.date() if column_type == "date" and not isinstance(value, datetime.datetime):
            return (value - _EPOCH_DAY).days, True
        case str() if column_type == "string":
            return value[:TEXT_CHARS], len(value) <= TEXT_CHARS
    return None, False


def _microseconds(value: datetime.datetime) -> int:
    plain = value.astimezone(datetime.UTC).replace(tzinfo=None) if value.tzinfo is not None else value
    return (plain - datetime.datetime(1970, 1, 1)) // datetime.timedelta(microseconds=1)

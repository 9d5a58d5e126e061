"""A group of buckets at the member that it leaves: how much of it moves at once, its rows, and files without them.

What a move does to files is for threads; what the shard tells is asked in the loop.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from skerry.model.limits import TIMESTAMP_MAX
from skerry.model.points import reach
from skerry.model.sharded import OwnTable
from skerry.tables.bucket import buckets_of
from skerry.tables.columns import arrow_schema, spread_by
from skerry.tables.files import LOADED, read_file, remove_files, sync_files, write_file
from skerry.tables.flush import Group, Range, groups_of, merged, pieces
from skerry.tables.keys import decode_keys
from skerry.tables.layouts import ids_of
from skerry.tables.manifest import DataFile, Laid
from skerry.tables.overlay import Numbers, Seen
from skerry.tables.shard import Shard


def at_once(shard: Shard, first: int, upto: int, bytes_max: int, *, is_top: bool) -> Range:
    """The part of the range that moves now: as many buckets as are about so many bytes, one at least."""
    own = sum(end - begin for begin, end in shard.ranges)
    overlay_bytes = shard.overlay.unflushed(shard.manifest.flushed_ts)[1] * (upto - first) / max(1, own)
    files = sum(file.size_bytes * _overlap(file, first, upto) for file in shard.manifest.live)
    share = bytes_max / max(1.0, files + overlay_bytes)
    count = min(upto - first, max(1, int((upto - first) * share)))
    return (upto - count, upto) if is_top else (first, first + count)


def _overlap(file: DataFile, first: int, upto: int) -> float:
    """The share of the file's buckets that are among these."""
    return max(0, min(upto, file.upto) - max(first, file.first)) / (file.upto - file.first)


def groups_within(shard: Shard, read_ts: int, first: int, upto: int) -> tuple[tuple[Group, ...], Seen]:
    """Groups that have some of these buckets at that moment, and what the overlay says beside them."""
    base_ts = shard.manifest.base_of(read_ts, shard.table.name)
    groups = groups_of(shard.manifest.files_at(base_ts), shard.ranges)
    within = tuple(group for group in groups if group.first < upto and group.upto > first)
    return within, shard.overlay.at(read_ts, base_ts)


def rows_within(table: OwnTable, folder: str, group: Group, seen: Seen, first: int, upto: int) -> pa.RecordBatch:
    """The group's rows of these buckets."""
    rows = merged(table, folder, group, seen)
    rows = rows.filter(pa.array(_is_within(_buckets(table, rows), first, upto))).combine_chunks()
    batches = rows.to_batches()
    return batches[0] if batches else pa.RecordBatch.from_pylist([], arrow_schema(table))


def changed_since(shard: Shard, first: int, upto: int, read_ts: int) -> int:
    """When one of these buckets was last written after that moment, which is pinned; 0 if none was.

    Staged rows may be of any bucket.
    """
    loaded_ts = shard.manifest.loaded_at(TIMESTAMP_MAX)
    since = shard.overlay.since(read_ts)
    places = buckets_of_keys(shard.table, list(since))
    times = [ts for ts, within in zip(since.values(), _is_within(places, first, upto), strict=True) if within]
    return max([*times, loaded_ts if loaded_ts > read_ts else 0])


def buckets_of_keys(table: OwnTable, keys: Sequence[bytes]) -> Numbers:
    """Of keys as writes have them; ValueError or ArrowException if they are none."""
    schema = arrow_schema(table)
    columns = decode_keys([schema.field(name).type for name in table.primary_key], keys)
    by_name = dict(zip(table.primary_key, columns, strict=True))
    return buckets_of([by_name[name] for name in spread_by(table)], table.buckets)


def part_with(table: OwnTable, folder: str, name: str, groups: Sequence[Group], first: int, upto: int) -> Laid:
    """Files of these groups without these buckets, written and synced. Files hold all that is there."""
    added: list[DataFile] = []
    try:
        for group in groups:
            if group.first >= first and group.upto <= upto:
                continue
            files = [read_file(folder, file, table) for file in group.files]
            rows = pa.concat_tables([*files, arrow_schema(table).empty_table()])
            places = _buckets(table, rows)
            for low, high in ((group.first, min(group.upto, first)), (max(group.first, upto), group.upto)):
                if low >= high:
                    continue
                kept = rows.filter(pa.array(_is_within(places, low, high)))
                for begin, end, piece in pieces(table, kept, low, high):
                    if piece.num_rows:
                        path = f"s{name}-{len(added):05d}-{begin:05d}-{end:05d}.parquet"
                        added.append(write_file(folder, path, begin, end, piece, ids_of(table), LOADED))
        if added:
            sync_files(folder)
        reach("move.parted")
    except BaseException:
        remove_files(folder, [file.name for file in added])
        raise
    return Laid(tuple(added), tuple(file.name for group in groups for file in group.files))


def _buckets(table: OwnTable, rows: pa.Table) -> Numbers:
    return buckets_of([rows.column(name).combine_chunks() for name in spread_by(table)], table.buckets)


def _is_within(places: Numbers, first: int, upto: int) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    return (places >= first) & (places < upto)

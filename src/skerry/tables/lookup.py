"""Single rows by key, from files too: what a write must know of the rows that it meets.

Each file has its keys' hashes in memory, sorted: 8 bytes a row, and 4 for where it is. Most keys that are new are
answered by them alone; one whose hash is there is read and compared.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from skerry.model.limits import INDEXED_ROWS
from skerry.model.sharded import OwnTable
from skerry.tables.bucket import Hashes, buckets_of, hashes_of
from skerry.tables.columns import arrow_schema, spread_by
from skerry.tables.files import read_file
from skerry.tables.flush import Group, groups_of
from skerry.tables.keys import decode_keys, encode_keys
from skerry.tables.manifest import DataFile
from skerry.tables.shard import Shard


class FoundRow(NamedTuple):
    """The newest version of a key at a moment. `row` None: it is deleted, or there was none, and then `commit_ts` is 0.

    Of a version that history no longer knows, `commit_ts` is the beginning of history: it is not later.
    """

    commit_ts: int
    row: pa.RecordBatch | None


class Asked(NamedTuple):
    """What the overlay knows of the keys (None: nothing), and the files that may know the rest."""

    keys: tuple[bytes, ...]
    known: tuple[FoundRow | None, ...]
    groups: tuple[Group, ...]
    kept_ts: int


class _Index(NamedTuple):
    hashes: Hashes
    places: np.ndarray[tuple[int], np.dtype[np.int32]]


def ask(shard: Shard, keys: Sequence[bytes], read_ts: int) -> Asked:
    """In the loop, and pure. SiteError if that moment is not kept. Whoever reads the files pins it until then."""
    manifest, overlay = shard.manifest, shard.overlay
    base_ts = manifest.base_of(read_ts, shard.table.name)
    # Flushed versions count too, while they are there: files have the same row, but not its time.
    versions = [overlay.find(key, read_ts, 0) for key in keys]
    known = tuple(None if version is None else FoundRow(*version) for version in versions)
    return Asked(tuple(keys), known, groups_of(manifest.files_at(base_ts), shard.ranges), max(1, manifest.kept_ts))


class FileKeys:
    """Keys of one table's files, for a thread. Indexes not asked for lately are forgotten, beyond a bound of rows."""

    def __init__(self, table: OwnTable, folder: str) -> None:
        self._table = table
        self._folder = folder
        self._schema = arrow_schema(table)
        self._indexes: OrderedDict[str, _Index] = OrderedDict()
        self._indexed_rows = 0

    def find(self, asked: Asked) -> list[FoundRow]:
        """In the order of the keys; SiteError if a file is damaged."""
        rest = [key for key, known in zip(asked.keys, asked.known, strict=True) if known is None]
        rows = iter(self._in_files(rest, asked.groups))
        found = []
        for known in asked.known:
            if known is None:
                row = next(rows)
                known = FoundRow(0 if row is None else asked.kept_ts, row)
            found.append(known)
        return found

    def _in_files(self, keys: list[bytes], groups: tuple[Group, ...]) -> list[pa.RecordBatch | None]:
        table = self._table
        kinds = [self._schema.field(name).type for name in table.primary_key]
        parts = dict(zip(table.primary_key, decode_keys(kinds, keys), strict=True))
        hashes = hashes_of([parts[name] for name in table.primary_key])
        buckets = buckets_of([parts[name] for name in spread_by(table)], table.buckets)
        found: list[pa.RecordBatch | None] = [None] * len(keys)
        for group in groups:
            here = np.flatnonzero(group.has(buckets))
            for file in group.files if len(here) else ():
                for at, row in self._in_file(file, keys, hashes, here.tolist()):
                    found[at] = row
        return found

    def _in_file(
        self, file: DataFile, keys: list[bytes], hashes: Hashes, asked: list[int]
    ) -> list[tuple[int, pa.RecordBatch]]:
        index = self._index_of(file)
        firsts = np.searchsorted(index.hashes, hashes[asked], "left").tolist()
        uptos = np.searchsorted(index.hashes, hashes[asked], "right").tolist()
        suspects = [
            (at, place)
            for at, first, upto in zip(asked, firsts, uptos, strict=True)
            for place in index.places[first:upto].tolist()
        ]
        if not suspects:
            return []
        rows = read_file(self._folder, file, self._table).take(pa.array([place for _, place in suspects]))
        batch = rows.combine_chunks().to_batches()[0]
        names = self._table.primary_key
        found = encode_keys(names, [batch.column(name) for name in names])
        return [(at, batch.slice(row, 1)) for row, (at, _) in enumerate(suspects) if found[row] == keys[at]]

    def _index_of(self, file: DataFile) -> _Index:
        index = self._indexes.get(file.name)
        if index is None:
            rows = read_file(self._folder, file, self._table)
            names = self._table.primary_key
            hashes = hashes_of([rows.column(name).combine_chunks() for name in names])
            places = np.argsort(hashes, kind="stable").astype(np.int32)
            index = self._indexes[file.name] = _Index(hashes[places], places)
            self._indexed_rows += file.rows
            while self._indexed_rows > INDEXED_ROWS and len(self._indexes) > 1:
                _, oldest = self._indexes.popitem(last=False)
                self._indexed_rows -= len(oldest.hashes)
        self._indexes.move_to_end(file.name)
        return index

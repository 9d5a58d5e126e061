"""Single rows by key, from files too: what a write must know of the rows that it meets. Blocks on files.

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
from skerry.tables.bucket import Hashes, buckets_of, hashes_of
from skerry.tables.columns import arrow_schema, spread_by
from skerry.tables.files import read_file
from skerry.tables.flush import groups_of
from skerry.tables.keys import decode_keys, encode_keys
from skerry.tables.manifest import DataFile
from skerry.tables.shard import Shard


class FoundRow(NamedTuple):
    """The newest version of a key at a moment. `row` None: there is none, or it is deleted.

    `commit_ts` is that of a version in the overlay; 0 for a row in a file, which is older than all kept history, and
    for no row at all.
    """

    commit_ts: int
    row: pa.RecordBatch | None


class _Index(NamedTuple):
    hashes: Hashes
    places: np.ndarray[tuple[int], np.dtype[np.int32]]


class Lookup:
    """Of one shard. Indexes of files that are not asked for are forgotten, beyond a bound of rows."""

    def __init__(self, shard: Shard) -> None:
        self._shard = shard
        self._schema = arrow_schema(shard.table)
        self._indexes: OrderedDict[str, _Index] = OrderedDict()
        self._indexed_rows = 0

    def find(self, keys: Sequence[bytes], read_ts: int) -> list[FoundRow]:
        """In the order of the keys; SiteError if that moment is not kept, or a file is damaged."""
        table, manifest, overlay = self._shard.table, self._shard.manifest, self._shard.overlay
        base_ts = manifest.base_of(read_ts, table.name)
        found: list[FoundRow | None] = []
        for key in keys:
            version = overlay.find(key, read_ts, base_ts)
            found.append(None if version is None else FoundRow(*version))
        rest = [at for at, each in enumerate(found) if each is None]
        if rest:
            files = manifest.files_at(base_ts)
            for at, row in zip(rest, self._in_files([keys[at] for at in rest], files), strict=True):
                found[at] = FoundRow(0, row)
        return [each for each in found if each is not None]

    def _in_files(self, keys: list[bytes], files: tuple[DataFile, ...]) -> list[pa.RecordBatch | None]:
        table = self._shard.table
        kinds = [self._schema.field(name).type for name in table.primary_key]
        parts = dict(zip(table.primary_key, decode_keys(kinds, keys), strict=True))
        hashes = hashes_of([parts[name] for name in table.primary_key])
        buckets = buckets_of([parts[name] for name in spread_by(table)], table.buckets)
        found: list[pa.RecordBatch | None] = [None] * len(keys)
        for group in groups_of(files, self._shard.ranges):
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
        rows = read_file(self._shard.folder, file, self._schema).take(pa.array([place for _, place in suspects]))
        batch = rows.combine_chunks().to_batches()[0]
        names = self._shard.table.primary_key
        found = encode_keys(names, [batch.column(name) for name in names])
        return [(at, batch.slice(row, 1)) for row, (at, _) in enumerate(suspects) if found[row] == keys[at]]

    def _index_of(self, file: DataFile) -> _Index:
        index = self._indexes.get(file.name)
        if index is None:
            rows = read_file(self._shard.folder, file, self._schema)
            names = self._shard.table.primary_key
            hashes = hashes_of([rows.column(name).combine_chunks() for name in names])
            places = np.argsort(hashes, kind="stable").astype(np.int32)
            index = self._indexes[file.name] = _Index(hashes[places], places)
            self._indexed_rows += file.rows
            while self._indexed_rows > INDEXED_ROWS and len(self._indexes) > 1:
                _, oldest = self._indexes.popitem(last=False)
                self._indexed_rows -= len(oldest.hashes)
        self._indexes.move_to_end(file.name)
        return index

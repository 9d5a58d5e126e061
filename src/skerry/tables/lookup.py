"""Single rows by key, from files too: what a write must know of the rows that it meets.

Each file has its keys' hashes in memory, sorted: 8 bytes a row, and 4 for where it is. Most keys that are new are
answered by them alone; one whose hash is there is read and compared.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from skerry.model.commits import Write, is_blind
from skerry.model.limits import INDEXED_ROWS, LOOKED_GROUPS
from skerry.model.sharded import OwnTable
from skerry.tables.bucket import Hashes, buckets_by, buckets_of, hashes_of
from skerry.tables.columns import arrow_schema, spread_by
from skerry.tables.files import read_file
from skerry.tables.flush import Group, groups_of
from skerry.tables.keys import decode_keys, encode_keys
from skerry.tables.manifest import DataFile
from skerry.tables.overlay import Numbers
from skerry.tables.rows import encode_rows
from skerry.tables.shard import Shard

LATEST = (1 << 63) - 1  # a moment after all commits


class FoundRow(NamedTuple):
    """The newest version of a key at a moment; `commit_ts` 0: there is none, or it does not matter. `row`: for a patch.

    Of a version that history no longer knows, `commit_ts` is the beginning of history: it is not later.
    """

    commit_ts: int = 0
    is_live: bool = False
    row: bytes | None = None


class Asked(NamedTuple):
    """What is known of the rows that the writes meet (None: nothing), and the files that may know the rest, if there is
    any.

    `before`: of a key that files know better, when it was last written before them. `files_ts`: of what is in files.
    """

    writes: tuple[Write, ...]
    known: tuple[FoundRow | None, ...]
    groups: tuple[Group, ...]
    files_ts: int
    before: tuple[int, ...]

    @property
    def needs_files(self) -> bool:
        return bool(self.groups) and None in self.known

    @property
    def found(self) -> list[FoundRow]:
        """All that there is, if no file is needed."""
        each = zip(self.known, self.before, strict=True)
        return [FoundRow(before) if known is None else known for known, before in each]


class _Index(NamedTuple):
    hashes: Hashes
    places: np.ndarray[tuple[int], np.dtype[np.int32]]

    def has_any(self, hashes: Hashes) -> bool:
        firsts = np.searchsorted(self.hashes, hashes, "left")
        here = firsts < len(self.hashes)
        return bool((self.hashes[firsts[here]] == hashes[here]).any())


def ask(shard: Shard, writes: Sequence[Write], read_ts: int) -> Asked:
    """In the loop, and pure. SiteError if that moment is not kept. Whoever reads the files pins it until then."""
    manifest, overlay = shard.manifest, shard.overlay
    base_ts = manifest.base_of(read_ts, shard.table.name)
    # Flushed versions count too, while they are there: files have the same row, but not its time.
    versions = [overlay.find(write.key, read_ts, 0) for write in writes]
    # Staged rows are in no overlay: a version that is older than they are may not be the newest. Nor is a row that they
    # deleted: whoever read before has seen it.
    loaded_ts = manifest.loaded_at(read_ts)
    before = tuple([loaded_ts if version is None else max(loaded_ts, version.commit_ts) for version in versions])
    patched = [
        version.place
        for write, version in zip(writes, versions, strict=True)
        if write.is_patch and version is not None and version.is_live and version.commit_ts >= loaded_ts
    ]
    rows = iter(overlay.encoded(patched) if patched else ())
    unseen = FoundRow(loaded_ts)
    known: list[FoundRow | None] = []
    for write, version in zip(writes, versions, strict=True):
        if version is not None and version.commit_ts >= loaded_ts:
            is_patched = write.is_patch and version.is_live
            known.append(FoundRow(version.commit_ts, version.is_live, next(rows) if is_patched else None))
        else:
            # It may have been loaded: whoever read before that has not seen it.
            known.append(unseen if is_blind((write,)) else None)
    files = manifest.files_at(base_ts) if None in known else ()
    groups = tuple(group for group in groups_of(files, shard.ranges) if group.files) if files else ()
    return Asked(tuple(writes), tuple(known), groups, max(1, manifest.kept_ts, loaded_ts), before)


def ask_blind(shard: Shard, writes: Sequence[Write]) -> FoundRow | None:
    """When any of the writes' keys was last written, if all of them do the same whatever row is there; else None. That
    is all that decides such a statement: one question for all its keys."""
    if not is_blind(writes):
        return None
    return FoundRow(max(shard.manifest.loaded_at(LATEST), shard.overlay.newest([write.key for write in writes])))


class FileKeys:
    """Keys of one table's files, for a thread. Indexes not asked for lately are forgotten, beyond a bound of rows."""

    def __init__(self, table: OwnTable, folder: str) -> None:
        self._table = table
        self._folder = folder
        self._schema = arrow_schema(table)
        self._indexes: OrderedDict[str, _Index] = OrderedDict()
        self._indexed_rows = 0

    def find(self, asked: Asked) -> list[FoundRow]:
        """In the order of the writes; SiteError if a file is damaged."""
        if not asked.needs_files:
            return asked.found
        rest = [at for at, known in enumerate(asked.known) if known is None]
        found = iter(self._in_files([asked.writes[at] for at in rest], [asked.before[at] for at in rest], asked))
        return [next(found) if known is None else known for known in asked.known]

    def find_absent(self, asked: Asked) -> list[FoundRow] | None:
        """The same if indexes that are in memory say that no file has any of the keys, as those of most new rows do;
        None if a file has to be read. In the loop, while no thread is here."""
        if len(asked.groups) > LOOKED_GROUPS:
            return None
        keys = [write.key for write, known in zip(asked.writes, asked.known, strict=True) if known is None]
        hashes, buckets = self._hashed(keys)
        for group in asked.groups:
            here = np.flatnonzero(group.has(buckets))
            for file in group.files if len(here) else ():
                index = self._indexes.get(file.name)
                if index is None or index.has_any(hashes[here]):
                    return None
        return asked.found

    def _hashed(self, keys: Sequence[bytes]) -> tuple[Hashes, np.ndarray[tuple[int], np.dtype[np.int64]]]:
        """Of each key its hash and its bucket."""
        table = self._table
        kinds = [self._schema.field(name).type for name in table.primary_key]
        parts = dict(zip(table.primary_key, decode_keys(kinds, keys), strict=True))
        hashes = hashes_of([parts[name] for name in table.primary_key])
        if spread_by(table) == table.primary_key:
            return hashes, buckets_by(hashes, table.buckets)
        return hashes, buckets_of([parts[name] for name in spread_by(table)], table.buckets)

    def _in_files(self, writes: list[Write], before: list[int], asked: Asked) -> list[FoundRow]:
        found = [FoundRow(each) for each in before]
        hashes, buckets = self._hashed([write.key for write in writes])
        for group in asked.groups:
            here = np.flatnonzero(group.has(buckets))
            for file in group.files if len(here) else ():
                for at, row in self._in_file(file, writes, hashes, here):
                    found[at] = FoundRow(asked.files_ts, True, row)
        return found

    def _in_file(
        self, file: DataFile, writes: list[Write], hashes: Hashes, asked: np.ndarray[tuple[int], np.dtype[np.intp]]
    ) -> list[tuple[int, bytes | None]]:
        """Which of the writes asked about have a row there; of those that are patches the row."""
        index = self._index_of(file)
        firsts = np.searchsorted(index.hashes, hashes[asked], "left")
        uptos = np.searchsorted(index.hashes, hashes[asked], "right")
        suspects = [
            (int(asked[at]), place)
            for at in np.flatnonzero(firsts < uptos).tolist()
            for place in index.places[firsts[at] : uptos[at]].tolist()
        ]
        if not suspects:
            return []
        names = self._table.primary_key
        needed = None if any(writes[at].is_patch for at, _ in suspects) else names
        rows = read_file(self._folder, file, self._table, needed).take(pa.array([place for _, place in suspects]))
        batch = rows.combine_chunks().to_batches()[0]
        keys = encode_keys(names, [batch.column(name) for name in names])
        same = [row for row, (at, _) in enumerate(suspects) if keys[row] == writes[at].key]
        patched = [row for row in same if writes[suspects[row][0]].is_patch]
        encoded = encode_rows(batch.take(pa.array(patched, pa.int64()))) if patched else []
        made = dict(zip(patched, encoded, strict=True))
        return [(suspects[row][0], made.get(row)) for row in same]

    def among(self, file: DataFile, hashes: Hashes, keys_of: Callable[[Numbers], list[bytes]]) -> list[int]:
        """Places of the keys with these hashes that are in the file; `keys_of` gives keys by their places."""
        index = self._index_of(file)
        firsts = np.searchsorted(index.hashes, hashes, "left")
        counts = np.searchsorted(index.hashes, hashes, "right") - firsts
        suspects = np.flatnonzero(counts)
        if not len(suspects):
            return []
        rows = read_file(self._folder, file, self._table, self._table.primary_key)
        runs = zip(firsts[suspects].tolist(), counts[suspects].tolist(), strict=True)
        places = np.concatenate([index.places[first : first + count] for first, count in runs])
        there = rows.take(pa.array(places)).combine_chunks()
        found = set(encode_keys(there.column_names, [column.combine_chunks() for column in there.columns]))
        keys = keys_of(suspects)
        return [place for place, key in zip(suspects.tolist(), keys, strict=True) if key in found]

    def _index_of(self, file: DataFile) -> _Index:
        index = self._indexes.get(file.name)
        if index is None:
            names = self._table.primary_key
            rows = read_file(self._folder, file, self._table, names)
            hashes = hashes_of([rows.column(name).combine_chunks() for name in names])
            places = np.argsort(hashes, kind="stable").astype(np.int32)
            index = self._indexes[file.name] = _Index(hashes[places], places)
            self._indexed_rows += file.rows
            while self._indexed_rows > INDEXED_ROWS and len(self._indexes) > 1:
                _, oldest = self._indexes.popitem(last=False)
                self._indexed_rows -= len(oldest.hashes)
        self._indexes.move_to_end(file.name)
        return index

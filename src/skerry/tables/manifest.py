"""Which files hold a table's rows at which moment. Pure."""

from __future__ import annotations

from bisect import bisect_right

import msgspec

from skerry.model.commits import Staged
from skerry.model.errors import SiteError
from skerry.model.sharded import BucketMap
from skerry.model.table import ColumnStats
from skerry.tables.clock import moment_text


class DataFile(msgspec.Struct, frozen=True, array_like=True):
    """One Parquet file, which never changes, with rows of the buckets from `first` to `upto` alone.

    `ids`: the numbers of its columns, in their order; () for 1, 2, …
    """

    name: str
    first: int
    upto: int
    rows: int
    size_bytes: int
    checksum: str
    columns: tuple[ColumnStats, ...]
    ids: tuple[int, ...] = ()


class Named(msgspec.Struct, frozen=True, array_like=True):
    """A file counts from the flush at `since_ts` on, up to the one at `upto_ts`; None: it counts now."""

    file: DataFile
    since_ts: int
    upto_ts: int | None


class Flush(msgspec.Struct, frozen=True, array_like=True):
    """What a flush did: files hold every commit up to `upto_ts` since."""

    generation: int
    upto_ts: int
    added: tuple[DataFile, ...]
    removed: tuple[str, ...]


class Laid(msgspec.Struct, frozen=True, array_like=True):
    """What staged rows came to: `added` files hold them, and rows of `removed` ones. A participant's `Staged.body`.

    `buckets`: of a move, the map that counts from its commit on.
    """

    added: tuple[DataFile, ...]
    removed: tuple[str, ...]
    buckets: BucketMap | None = None


_LAID = msgspec.msgpack.Decoder(Laid)


def laid_of(staged: Staged) -> Laid:
    """Of a participant's own record."""
    return _LAID.decode(staged.body)


class Manifest(msgspec.Struct, frozen=True, array_like=True):
    """`flushes`: their moments, from `kept_ts` on. `published`: the last that Delta's log has, as `delta_version`.

    `loads`: the moments of staged rows, from `kept_ts` on; each is a flush, of rows that no overlay had.
    """

    flushed_ts: int = 0
    kept_ts: int = 0
    generation: int = 0
    published: int = 0
    published_ts: int = 0
    delta_version: int = -1
    named: tuple[Named, ...] = ()
    flushes: tuple[int, ...] = ()
    loads: tuple[int, ...] = ()

    @property
    def live(self) -> tuple[DataFile, ...]:
        return tuple(each.file for each in self.named if each.upto_ts is None)

    def base_of(self, read_ts: int, table: str) -> int:
        """The moment of the last flush before `read_ts`: files hold what was so then, the overlay what came later."""
        if read_ts < self.kept_ts:
            raise SiteError(
                f"table {table} can no longer be read as it was at {read_ts} ({moment_text(read_ts)}): its history "
                f"begins at {self.kept_ts} ({moment_text(self.kept_ts)})",
                suggestion=f"read a later moment: VERSION AS OF {self.kept_ts} is the oldest",
            )
        place = bisect_right(self.flushes, read_ts)
        return self.flushes[place - 1] if place else 0

    def files_at(self, base_ts: int) -> tuple[DataFile, ...]:
        return tuple(
            each.file
            for each in self.named
            if each.since_ts <= base_ts and (each.upto_ts is None or each.upto_ts > base_ts)
        )

    def loaded_at(self, read_ts: int) -> int:
        """The last moment of staged rows at or before `read_ts`, 0 if there is none."""
        return max((moment for moment in self.loads if moment <= read_ts), default=0)

    def loaded(self, flush: Flush) -> Manifest:
        return msgspec.structs.replace(self.after(flush), loads=(*self.loads, flush.upto_ts))

    def after(self, flush: Flush) -> Manifest:
        removed = set(flush.removed)
        kept = (
            msgspec.structs.replace(each, upto_ts=flush.upto_ts) if each.file.name in removed else each
            for each in self.named
        )
        return msgspec.structs.replace(
            self,
            flushed_ts=flush.upto_ts,
            generation=flush.generation,
            named=(*kept, *(Named(file, flush.upto_ts, None) for file in flush.added)),
            flushes=(*self.flushes, flush.upto_ts),
        )

    def trimmed(self, horizon_ts: int) -> tuple[Manifest, tuple[str, ...]]:
        """Without what only reads before `horizon_ts` need, and the names of files that go.

        A file that Delta's log still names stays: its end must be published first.
        """
        kept_ts = max([self.kept_ts, *(moment for moment in self.flushes if moment <= horizon_ts)])
        last = min(kept_ts, self.published_ts)
        gone = tuple(each.file.name for each in self.named if each.upto_ts is not None and each.upto_ts <= last)
        named = tuple(each for each in self.named if each.upto_ts is None or each.upto_ts > last)
        flushes, loads = (
            tuple(moment for moment in moments if moment >= kept_ts) for moments in (self.flushes, self.loads)
        )
        return msgspec.structs.replace(self, kept_ts=kept_ts, named=named, flushes=flushes, loads=loads), gone

"""What outlasts a member: statistics that cost a look at all rows, and sizes that edges had; as bytes and back.

All of it is kept with the versions that it holds of, as in memory: of other files it says nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
import xxhash

from skerry.catalog.believed import are_sensible
from skerry.catalog.statistics import ANALYZED, SCANNED
from skerry.model.config import Config, Leaves, SparkConfig, TableConfig
from skerry.model.table import Column, PartStats, TablePart
from skerry.plan.observed import Size
from skerry.spark.engine import TableFiles

# The number changes with the layout, and with what statistics mean.
_MAGIC = b"skerry kept 1\n"
_DIGEST_BYTES = 8
_AROUND_BYTES = 1024  # all but the entries
_ENTRY_BYTES = 24  # what msgpack writes around the texts of an entry, and its numbers


class Unreadable(ValueError):
    """Bytes that say nothing; the text is the reason."""


class KeptTable(msgspec.Struct, frozen=True, array_like=True):
    """One part as its files of `files_version` were found to be, `read_as` they were."""

    files_version: int
    read_as: str
    rows: int | None
    stats: PartStats | None = None

    def is_sensible(self, columns: Sequence[Column]) -> bool:
        """A file is not believed more than a stranger: wrong bounds would be wrong answers."""
        if self.rows is not None and self.rows < 0:
            return False
        return self.stats is None or are_sensible(self.stats, columns, self.rows)


class KeptSize(msgspec.Struct, frozen=True, array_like=True):
    name: str
    rows: int
    size_bytes: int


class Kept(msgspec.Struct, frozen=True, array_like=True):
    """`owner`: whose it is. `sizes`: least recently used first; they count as long as `planned_over` is the same."""

    owner: str
    tables: dict[str, KeptTable] = {}
    planned_over: str = ""
    sizes: tuple[KeptSize, ...] = ()


def owner_of(config: Config, member: str) -> str:
    return f"{config.cluster}.{member}"


def read_as(table: TableConfig, files: TableFiles, spark: SparkConfig | None) -> str:
    """All that decides which rows the same files give, and what of them may be told: fixed while a member runs.

    The version of files does not say where they are.
    """
    spark = spark or SparkConfig()
    conf = {key: value for key, value in spark.conf.items() if key.startswith("spark.sql.")}
    engine = (spark.sail, spark.remote, sorted(conf.items()))
    is_told = table.leaves is not Leaves.NEVER
    return _fingerprint(files.format, files.root, sorted(files.options.items()), files.columns, engine, is_told)


def planned_over(config: Config) -> str:
    """The tables of the whole cluster as they are configured: names of sizes do not say how files are read."""
    return _fingerprint(config.data_root, [list(member.tables.values()) for member in config.members.values()])


def worth_keeping(files: TableFiles, part: TablePart) -> bool:
    """Footers of Parquet files are soon read again; all else took a look at all rows."""
    is_looked_at = part.stats is not None and part.stats.source in (ANALYZED, SCANNED)
    return is_looked_at or (files.format != "parquet" and part.rows is not None)


def sizes_of(seen: Iterable[tuple[str, Size]]) -> tuple[KeptSize, ...]:
    return tuple(KeptSize(name, size.rows, size.size_bytes) for name, size in seen)


def encode(kept: Kept, bytes_max: int) -> bytes:
    """Statistics first, then the sizes used last, until it is full."""
    left = bytes_max - _AROUND_BYTES
    tables: dict[str, msgspec.Raw] = {}
    for name, table in kept.tables.items():
        text = msgspec.msgpack.encode(table)
        left -= len(name.encode()) + len(text) + _ENTRY_BYTES
        if left < 0:
            break
        tables[name] = msgspec.Raw(text)
    sizes: list[KeptSize] = []
    for size in reversed(kept.sizes):
        left -= len(size.name.encode()) + _ENTRY_BYTES
        if left < 0:
            break
        sizes.append(size)
    sizes.reverse()
    body = msgspec.msgpack.encode((kept.owner, tables, kept.planned_over, sizes))
    return _MAGIC + xxhash.xxh3_64_digest(body) + body


def decode(data: bytes, owner: str) -> Kept:
    """Unreadable for anything but what `encode` made for that owner."""
    if not data.startswith(_MAGIC):
        raise Unreadable("it is of another version")
    start = len(_MAGIC) + _DIGEST_BYTES
    body = data[start:]
    if xxhash.xxh3_64_digest(body) != data[len(_MAGIC) : start]:
        raise Unreadable("it is damaged")
    try:
        kept = msgspec.msgpack.decode(body, type=Kept)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise Unreadable("it is of another version") from None
    if kept.owner != owner:
        raise Unreadable("it is another member's")
    if any(size.rows < 0 or size.size_bytes < 0 for size in kept.sizes):
        raise Unreadable("it has sizes below 0")
    return kept


def _fingerprint(*parts: object) -> str:
    return xxhash.xxh3_128_hexdigest(msgspec.msgpack.encode(parts))

"""Rows, bytes and columns from the footers of Parquet files, without Spark."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import lru_cache, partial
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from skerry.catalog.listing import Listing, partitions
from skerry.catalog.reads import Reads
from skerry.catalog.stores import at_once, opened
from skerry.model.errors import SiteError
from skerry.model.limits import Limits
from skerry.model.sources import Storage
from skerry.model.table import Column

FOOTERS_MAX = Limits().footers


# Files of one table mostly have the same columns, and then they share them.
_SHAPES = 1000


class Footer(msgspec.Struct, frozen=True):
    """`size_bytes` is uncompressed: what a scan gives, not what the disk holds. A column's type is "" when unsure.

    `schema`: the same columns, as Arrow sees them; one object for all files that have the same.
    """

    rows: int
    size_bytes: int
    columns: tuple[Column, ...]
    schema: Any = None


class Footers:
    """Footers of files, each read once as long as the file's size and mtime stay. Safe to share by threads."""

    def __init__(self, footers_max: int = FOOTERS_MAX) -> None:
        self._reads = Reads(_read, footers_max)

    def allow(self, footers_max: int) -> None:
        """A member's own limit."""
        self._reads.allow(footers_max)

    def of(self, listing: Listing) -> Footer:
        """The whole table: sums, and the columns of its first file followed by those of its directories."""
        footers = self.each(listing.files, listing.stamps, listing.storage)
        return Footer(
            rows=sum(footer.rows for footer in footers),
            size_bytes=sum(footer.size_bytes for footer in footers),
            columns=columns_of(listing, footers),
        )

    def each(
        self, files: Sequence[str], stamps: Sequence[tuple[int, int]], storage: Storage | None = None
    ) -> list[Footer]:
        """Those of the files, in their order; SiteError when one cannot be read."""
        if storage is None:
            return [self._reads.of(file, stamp) for file, stamp in zip(files, stamps, strict=True)]
        return at_once(partial(self._of_store, storage), files, stamps)

    def _of_store(self, storage: Storage, file: str, stamp: tuple[int, int]) -> Footer:
        return self._reads.of(file, stamp, storage)

    def reads(self) -> int:
        """How many files were opened so far."""
        return self._reads.count()


def _read(file: str, size_bytes: int, mtime_ns: int, storage: Storage | None = None) -> Footer:
    try:
        metadata = pq.read_metadata(opened(file, storage))
        schema, columns = _columns(metadata.schema)
    except FileNotFoundError:
        raise SiteError(f"file {os.path.basename(file)} is gone") from None
    except (pa.ArrowException, OSError) as error:
        raise SiteError(f"file {os.path.basename(file)} is not Parquet: {_first_sentence(error)}") from None
    groups = range(metadata.num_row_groups)
    return Footer(metadata.num_rows, sum(metadata.row_group(i).total_byte_size for i in groups), columns, schema)


FOOTERS = Footers()


def footers_listed(listing: Listing) -> list[Footer]:
    """The footers of a listing's Parquet files, which are looked at again if they are on this machine."""
    if listing.storage is None:
        return footers_now(listing.files)
    return FOOTERS.each(listing.files, listing.stamps, listing.storage)


def footers_now(files: Sequence[str], storage: Storage | None = None) -> list[Footer]:
    """The footers of Parquet files as they are now; all members of this process share them."""
    if storage is not None:
        return FOOTERS.each(files, [(0, 0)] * len(files), storage)
    stamps = []
    for file in files:
        try:
            status = os.stat(file)
        except FileNotFoundError:
            raise SiteError(f"file {os.path.basename(file)} is gone") from None
        stamps.append((status.st_size, status.st_mtime_ns))
    return FOOTERS.each(files, stamps)


def _first_sentence(error: BaseException) -> str:
    return str(error).split("\n")[0].split(". ")[0].rstrip(".")


def columns_of(listing: Listing, footers: Sequence[Footer]) -> tuple[Column, ...]:
    """Those of the first file. Spark appends a column for each key=value directory, and finds its type out itself."""
    columns = footers[0].columns if footers else ()
    known = {column.name.lower() for column in columns}
    keys = [step.partition("=")[0] for step in partitions(listing.root, listing.files[0])] if footers else []
    return columns + tuple(Column(key, "") for key in keys if key.lower() not in known)


def _columns(schema: Any) -> tuple[pa.Schema, tuple[Column, ...]]:
    # INT96 looks like a timestamp without zone to Arrow, and is one with zone to Spark.
    int96 = {schema.column(i).path for i in range(len(schema)) if schema.column(i).physical_type == "INT96"}
    return _shared_columns(schema.to_arrow_schema().remove_metadata(), frozenset(int96))


@lru_cache(maxsize=_SHAPES)
def _shared_columns(arrow: pa.Schema, int96: frozenset[str]) -> tuple[pa.Schema, tuple[Column, ...]]:
    columns = (Column(each.name, "timestamp" if each.name in int96 else spark_type(each.type)) for each in arrow)
    return arrow, tuple(columns)


SIMPLE: dict[Any, str] = {
    pa.bool_(): "boolean",
    pa.int8(): "tinyint",
    pa.int16(): "smallint",
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.uint8(): "smallint",
    pa.uint16(): "int",
    pa.uint32(): "bigint",
    pa.uint64(): "decimal(20,0)",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.large_string(): "string",
    pa.string_view(): "string",
    pa.binary(): "binary",
    pa.large_binary(): "binary",
    pa.binary_view(): "binary",
    pa.date32(): "date",
    pa.date64(): "date",
}


def spark_type(kind: Any) -> str:
    """The type Spark reads from a Parquet column that Arrow sees as `kind`; "" when unsure."""
    if kind in SIMPLE:
        return SIMPLE[kind]
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if pa.types.is_timestamp(kind):
        return "timestamp" if kind.tz else "timestamp_ntz"
    if pa.types.is_dictionary(kind):
        return spark_type(kind.value_type)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        inner = spark_type(kind.value_type)
        return f"array<{inner}>" if inner else ""
    if pa.types.is_map(kind):
        key, value = spark_type(kind.key_type), spark_type(kind.item_type)
        return f"map<{key},{value}>" if key and value else ""
    if pa.types.is_struct(kind):
        fields = [(each.name, spark_type(each.type)) for each in kind]
        return f"struct<{','.join(f'{n}:{t}' for n, t in fields)}>" if all(t for _, t in fields) else ""
    return ""

"""Tables that are no list of files, as Spark knows them: what one is now, and a relation of one version of it."""

from __future__ import annotations

import os
from collections.abc import Callable

import xxhash
from pyspark.sql import DataFrame, SparkSession
from sqlglot import exp

from skerry.catalog.listing import VERSION_MASK
from skerry.model.config import TableConfig
from skerry.model.errors import InternalError, SiteError, UserError
from skerry.model.sources import CatalogTable, JdbcTable, Moment, Pinned, PlainFiles, Told, VersionedFolder
from skerry.model.table import Column
from skerry.spark.engine import TableFiles
from skerry.spark.jdbc import look_at_database, read_database
from skerry.spark.types import columns_of


def quoted(name: tuple[str, ...]) -> str:
    """The name as Spark reads it, whatever characters it has."""
    return ".".join(exp.Identifier(this=part, quoted=True).sql("spark") for part in name)


def look(session: SparkSession, table: TableConfig, at: Moment | None) -> Told:
    """What the table is now, or was. Raises what Spark raises."""
    match table.source:
        case CatalogTable(name):
            return _look_at_catalog(session, table, name, at)
        case JdbcTable() as source:
            return look_at_database(session, table, source)
        case VersionedFolder() | PlainFiles():
            raise InternalError(f"table {table.name}: no engine reads {table.source}")


def read_pinned(session: SparkSession, table: TableFiles, path_of: Callable[[str], str]) -> DataFrame:
    """The relation of `pinned`, and of no other version; `path_of` as in views."""
    assert table.pinned is not None
    pinned = table.pinned
    match pinned.source:
        case VersionedFolder() if pinned.format == "delta":
            reader = session.read.format("delta").option("versionAsOf", pinned.at)
            return reader.load(path_of(pinned.place))
        case CatalogTable(name):
            # Each session remembers the files that it saw last: this one need not be the one that looked.
            session.catalog.refreshTable(quoted(name))
            return session.table(quoted(name))
        case JdbcTable() as source:
            return read_database(session, table, source)
        case VersionedFolder() | PlainFiles():
            raise InternalError(f"table {table.table}: no engine reads {pinned.source}")


def _look_at_catalog(session: SparkSession, table: TableConfig, name: tuple[str, ...], at: Moment | None) -> Told:
    if at is not None:
        raise UserError(f"site {table.member}: table {table.name} is read as it is now: its catalog keeps no older one")
    session.catalog.refreshTable(quoted(name))
    frame = session.table(quoted(name))
    columns = columns_of(frame.schema)
    files = tuple(sorted(frame.inputFiles()))
    size_bytes, version = _stamped(columns, files)
    return Told(version, Pinned(table.source, "catalog"), size_bytes, columns)


def _stamped(columns: tuple[Column, ...], files: tuple[str, ...]) -> tuple[int, int]:
    """Bytes, and a version that changes with the files on this machine, or with the names of others."""
    digest = xxhash.xxh3_64(repr(columns).encode())
    size_bytes = 0
    for file in files:
        path = file.removeprefix("file://")
        try:
            status = os.stat(path) if path.startswith("/") else None
        except OSError:
            raise SiteError(f"file {os.path.basename(path)} is gone") from None
        stamp = (status.st_size, status.st_mtime_ns) if status is not None else (0, 0)
        size_bytes += stamp[0]
        digest.update(os.fsencode(file) + b"\0%d %d\n" % stamp)
    return size_bytes, digest.intdigest() & VERSION_MASK

"""Tables that are no list of files, as Spark knows them: what one is now, and a relation of one version of it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from urllib.parse import unquote, urlsplit

import xxhash
from pyspark.sql import DataFrame, SparkSession
from sqlglot import exp

from skerry.catalog.deltalog import look as look_at_delta
from skerry.catalog.listing import FILES_MAX, VERSION_MASK, is_hidden
from skerry.model.config import TableConfig
from skerry.model.errors import InternalError, SiteError, UserError
from skerry.model.names import Moment
from skerry.model.sources import CatalogTable, JdbcTable, Pinned, PlainFiles, Told, VersionedFolder
from skerry.spark.engine import TableFiles
from skerry.spark.jdbc import look_at_database, read_database
from skerry.spark.types import columns_of

# Formats with a log of their own, which is not read here.
_UNPINNED = ("hudi", "iceberg", "paimon")
_HEADING = "# Detailed Table Information"


def quoted(name: tuple[str, ...]) -> str:
    """The name as Spark reads it, whatever characters it has."""
    return _identifiers(name).sql("spark")


def _identifiers(name: tuple[str, ...]) -> exp.Expr:
    parts = [exp.Identifier(this=part, quoted=True) for part in name]
    return exp.Dot.build(parts) if len(parts) > 1 else parts[0]


def look(session: SparkSession, table: TableConfig, at: Moment | None) -> Told:
    """What the table is now, or was. Raises what Spark raises."""
    match table.source:
        case CatalogTable(name):
            return _look_at_catalog(session, table, name, at)
        case JdbcTable() as source:
            return look_at_database(session, table, source)
        case VersionedFolder() | PlainFiles():
            raise InternalError(f"table {table.name}: no engine reads {table.source}")


def tables_in(session: SparkSession, namespace: tuple[str, ...]) -> tuple[str, ...]:
    """As the catalog spells them; no view of this session is among them."""
    shown = exp.Command(this="SHOW TABLES IN", expression=quoted(namespace))  # sqlglot has no tree of it
    rows = session.sql(shown.sql("spark")).collect()
    return tuple(sorted(row["tableName"] for row in rows if not row["isTemporary"]))


def read_pinned(session: SparkSession, table: TableFiles, path_of: Callable[[str], str]) -> DataFrame:
    """The relation of `pinned`, and of no other version; `path_of` as in views."""
    assert table.pinned is not None
    pinned = table.pinned
    match pinned.source:
        case VersionedFolder() if pinned.format == "delta":
            reader = session.read.format("delta").option("versionAsOf", pinned.at)
            return reader.load(path_of(pinned.place))
        case CatalogTable(name):
            if pinned.format == "delta":
                return session.read.option("versionAsOf", pinned.at).table(quoted(name))
            # Each session remembers the files that it saw last: this one need not be the one that looked.
            session.catalog.refreshTable(quoted(name))
            return session.table(quoted(name))
        case JdbcTable() as source:
            return read_database(session, table, source)
        case VersionedFolder() | PlainFiles():
            raise InternalError(f"table {table.table}: no engine reads {pinned.source}")


def _look_at_catalog(session: SparkSession, table: TableConfig, name: tuple[str, ...], at: Moment | None) -> Told:
    details = _details(session, name)
    provider = details.get("Provider", "").lower()
    if provider == "delta":
        return _look_at_delta(session, table, name, details, at)
    if provider in _UNPINNED:  # rows may be deleted in files whose names stay: nothing here would see it
        raise SiteError(
            f"site {table.member}: table {table.name}: {provider} tables are not read yet", member=table.member
        )
    if at is not None:
        raise UserError(
            f"site {table.member}: table {table.name}: its catalog keeps no older versions, and reads it as it is now"
        )
    session.catalog.refreshTable(quoted(name))
    frame = session.table(quoted(name))
    columns = columns_of(frame.schema)
    # What a view stands for may be of any format.
    files = [] if details.get("Type", "").upper().endswith("VIEW") else frame.inputFiles()
    size_bytes, version = _stamped((columns, sorted(details.items())), files)
    return Told(version, Pinned(table.source, "catalog"), size_bytes, columns)


def _details(session: SparkSession, name: tuple[str, ...]) -> dict[str, str]:
    """What the catalog says of the table itself: whatever its columns are called, they stand above the heading."""
    described = exp.Describe(this=exp.Table(this=_identifiers(name)), style="EXTENDED")
    rows = [(row[0], row[1]) for row in session.sql(described.sql("spark")).collect()]
    start = next((place for place, row in enumerate(rows) if row == (_HEADING, "")), len(rows))
    found: dict[str, str] = {}
    for key, value in rows[start + 1 :]:
        found.setdefault(key, value)
    return found


def _look_at_delta(
    session: SparkSession, table: TableConfig, name: tuple[str, ...], details: dict[str, str], at: Moment | None
) -> Told:
    place = _local(details.get("Location", ""))
    if not place:
        raise SiteError(
            f"site {table.member}: table {table.name}: its catalog has it at {details.get('Location') or 'no place'}, "
            "which is not on this machine",
            member=table.member,
        )
    return look_at_delta(place, table, at)


def _local(location: str) -> str:
    """The path of a place on this machine; "" for any other."""
    url = urlsplit(location)
    return unquote(url.path) if url.scheme == "file" and url.netloc in ("", "localhost") else ""


def _stamped(described: object, files: Iterable[str]) -> tuple[int | None, int]:
    """Bytes, and a version that changes with the files on this machine, or with the names of others.

    Where no file is known, or only a folder elsewhere, nothing tells whether it has changed: each look is a version of
    its own, so that no relation that was made before is read again.
    """
    files = list(files)
    is_known = bool(files) and all(_local(file) or "." in os.path.basename(file) for file in files)
    digest = xxhash.xxh3_64(repr((described, () if is_known else time.time_ns())).encode())
    size_bytes: int | None = None
    for path, file in sorted((_local(file), file) for file in files):
        for each in _below(path) if path else ():
            status = os.stat(each)
            size_bytes = (size_bytes or 0) + status.st_size
            digest.update(os.fsencode(each) + b"\0%d %d\n" % (status.st_size, status.st_mtime_ns))
        if not path:
            digest.update(os.fsencode(file) + b"\0\n")
    return size_bytes, digest.intdigest() & VERSION_MASK


def _below(path: str) -> list[str]:
    """A file, or the files of a directory: of some formats Spark knows no more."""
    if not os.path.isdir(path):
        return [path]
    found = []
    for folder, folders, files in os.walk(path):
        folders[:] = sorted(each for each in folders if not is_hidden(each))
        found += [os.path.join(folder, each) for each in sorted(files) if not is_hidden(each)]
        if len(found) > FILES_MAX:
            raise SiteError(f"more than {FILES_MAX} files under {path}")
    return found

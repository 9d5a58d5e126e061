"""Where the rows of a table come from: a type for each kind of source. What each can do is in member/sources.py."""

from __future__ import annotations

import msgspec

from skerry.model.table import Column, PartStats


class PlainFiles(msgspec.Struct, frozen=True, tag="files"):
    """All files under the table's path: their listing is the version."""


class VersionedFolder(msgspec.Struct, frozen=True, tag="folder"):
    """A Delta or Iceberg table by its path: its own log says which files count."""


class CatalogTable(msgspec.Struct, frozen=True, tag="catalog"):
    """A table of a catalog that the site's Spark knows: `("lake", "sales", "orders")`, as written, never quoted."""

    name: tuple[str, ...]


class JdbcTable(msgspec.Struct, frozen=True, tag="jdbc"):
    """A table of a database. `url` holds no secret; `secrets` names where user and password are found."""

    url: str
    table: str
    secrets: dict[str, str] = {}


Source = PlainFiles | VersionedFolder | CatalogTable | JdbcTable


class Pinned(msgspec.Struct, frozen=True):
    """How an engine reads a source that is no list of files, as of one version.

    `format`: who reads it; `place`: a path, or "". `at`: that version in the words of its format; "": as it is when the
    relation is made, because the source keeps no older one.
    """

    source: Source
    format: str
    place: str = ""
    at: str = ""

    @property
    def key(self) -> bytes:
        """The same for equal ones alone."""
        return msgspec.msgpack.encode(self)


class Told(msgspec.Struct, frozen=True):
    """What a source that is no list of files says of itself, without a look at its rows.

    `version` changes whenever rows or columns do, as far as the source can tell. `columns`: () if the engine is to find
    them. `size_bytes`, `rows`, `stats`: None if the source does not know. `needs`: what a reader must know besides the
    plain format; None: nobody can tell.
    """

    version: int
    pinned: Pinned
    size_bytes: int | None = None
    columns: tuple[Column, ...] = ()
    rows: int | None = None
    stats: PartStats | None = None
    needs: tuple[str, ...] | None = ()


REMOTE = ("s3a", "abfss", "abfs", "gs", "hdfs", "wasbs")


def is_remote(path: str) -> bool:
    """Whether the path is one of an object store or of HDFS, which the site's Spark reads."""
    scheme, is_url, _ = path.partition("://")
    return bool(is_url) and scheme.lower() in REMOTE

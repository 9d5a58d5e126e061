"""Where the rows of a table come from: a type for each kind of source. What each can do is in member/sources.py."""

from __future__ import annotations

import msgspec

from skerry.model.table import Column, PartStats


class PlainFiles(msgspec.Struct, frozen=True, tag="files"):
    """All files under the table's path: their listing is the version."""


class VersionedFolder(msgspec.Struct, frozen=True, tag="folder"):
    """A Delta table by its path: its own log says which files count."""


class CatalogTable(msgspec.Struct, frozen=True, tag="catalog"):
    """A table of a catalog that the site's Spark knows: `("lake", "sales", "orders")`, as written, never quoted."""

    name: tuple[str, ...]


class Secret(msgspec.Struct, frozen=True):
    """Where a value stands that nobody is shown: an environment variable, or a file (absolute). It is not read here."""

    env: str = ""
    file: str = ""


class Database(msgspec.Struct, frozen=True):
    """A database as its member reaches it. `url` holds no secret; `driver`: a class of Java, "" for that of the URL."""

    name: str
    url: str
    user: str = ""
    password: Secret | None = None
    driver: str = ""

    @property
    def kind(self) -> str:
        """`postgresql` of `jdbc:postgresql://…`."""
        return self.url.split(":")[1].lower()


class JdbcTable(msgspec.Struct, frozen=True, tag="jdbc"):
    """A table of a database: its name, as written, never quoted. Spark reads it in `parts`, by ranges of `column`."""

    database: Database
    name: tuple[str, ...]
    column: str = ""
    parts: int = 1


class S3Store(msgspec.Struct, frozen=True):
    """Where and as whom a site reads `s3a://`; without keys: as its environment says, or its machine's role.

    `path_style`: the bucket stands in the path, not in the host's name. `anonymous`: for what everybody may read.
    """

    endpoint: str = ""
    region: str = ""
    path_style: bool = False
    access_key: Secret | None = None
    secret_key: Secret | None = None
    session_token: Secret | None = None
    anonymous: bool = False


class Storage(msgspec.Struct, frozen=True):
    """How a site reads files that are not on its disk."""

    s3: S3Store = S3Store()


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


REMOTE = ("s3a", "abfss", "abfs", "gs", "hdfs")


def is_remote(path: str) -> bool:
    """Whether the path is one of an object store or of HDFS, which the site's Spark reads."""
    scheme, is_url, _ = path.partition("://")
    return bool(is_url) and scheme.lower() in REMOTE


def split_url(url: str) -> tuple[str, str, str]:
    """Scheme, bucket (with what stands before it) and key; the key has no slash at its ends."""
    scheme, _, rest = url.partition("://")
    bucket, _, key = rest.partition("/")
    return scheme.lower(), bucket, key.strip("/")


def url_of(data_root: str, path: str) -> str:
    """Where a table is: `path` may be a URL, or stand under a root that is one."""
    url = path if is_remote(path) else f"{data_root.rstrip('/')}/{path}"
    scheme, bucket, key = split_url(url)
    steps = [step for step in key.split("/") if step not in ("", ".")]
    return f"{scheme}://{'/'.join((bucket, *steps))}"

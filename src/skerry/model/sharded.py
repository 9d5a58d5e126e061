"""Tables of our own, as every member knows them: columns, keys, buckets, and where these are."""

from __future__ import annotations

import msgspec


class OwnColumn(msgspec.Struct, frozen=True, array_like=True):
    """`type`: Spark's own short text. `default`: a constant as SQL text, None if there is none."""

    name: str
    type: str
    is_nullable: bool = True
    default: str | None = None


class OwnTable(msgspec.Struct, frozen=True, array_like=True):
    """`version` changes with every DDL on it.

    `distributed_by`: () for a table with a copy at every member (GLOBALLY).
    """

    id: int
    name: str
    version: int
    columns: tuple[OwnColumn, ...]
    primary_key: tuple[str, ...]
    distributed_by: tuple[str, ...]
    members: tuple[str, ...]
    buckets: int = 16384


class BucketMap(msgspec.Struct, frozen=True, array_like=True):
    """Ranges of buckets (`first`, exclusive `upto`, member), in order, without holes.

    `version` rides on each request.
    """

    table: int
    version: int
    groups: tuple[tuple[int, int, str], ...]


class Definition(msgspec.Struct, frozen=True, array_like=True):
    """A table and where its buckets are; both are told together."""

    table: OwnTable
    buckets: BucketMap

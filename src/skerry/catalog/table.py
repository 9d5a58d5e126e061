"""Tables as every member knows them: columns, sizes and versions of each part."""

from __future__ import annotations

import msgspec


class Column(msgspec.Struct, frozen=True, array_like=True):
    """`type` is Spark's own short text for the type, e.g. `decimal(15,2)` or `array<int>`."""

    name: str
    type: str


class TablePart(msgspec.Struct, frozen=True, array_like=True):
    """What one member holds of one table.

    `schema_version` changes with the columns; `files_version` with the files' listing.
    `rows` is None while nobody has counted them.
    """

    table: str
    member: str
    columns: tuple[Column, ...]
    rows: int | None
    size_bytes: int
    schema_version: int
    files_version: int

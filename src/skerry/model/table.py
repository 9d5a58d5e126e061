"""Tables as every member knows them: columns, sizes and versions of each part."""

from __future__ import annotations

import msgspec


class Column(msgspec.Struct, frozen=True, array_like=True):
    """`type` is Spark's own short text for the type, e.g. `decimal(15,2)` or `array<int>`."""

    name: str
    type: str


# A least or greatest value: whole numbers as they are, dates as days and timestamps as microseconds since 1970,
# decimals and strings as text.
Bound = int | float | str | None


class ColumnStats(msgspec.Struct, frozen=True, array_like=True):
    """What is known of a column's values. `ndv`: how many there are; `width_bytes`: of one, in Arrow; None: unknown.

    `is_exact`: no value is outside `low` and `high` (not so for floating point numbers, where NaN hides, nor for a
    sample).
    """

    name: str
    low: Bound = None
    high: Bound = None
    nulls: int | None = None
    ndv: float | None = None
    width_bytes: float | None = None
    is_exact: bool = False


class PartStats(msgspec.Struct, frozen=True, array_like=True):
    """Statistics of the files of one `files_version`. `source`: "footers", "sample", "spark" or "analyze"."""

    columns: tuple[ColumnStats, ...]
    source: str = "footers"


class Spread(msgspec.Struct, frozen=True, array_like=True):
    """How a table of our own is spread: the hash of `columns` is a row's bucket, one of so many.

    `here`: those of the part, as ranges (`first`, exclusive `upto`). Without columns each part has all rows.
    """

    columns: tuple[str, ...] = ()
    buckets: int = 0
    here: tuple[tuple[int, int], ...] = ()


class TablePart(msgspec.Struct, frozen=True, array_like=True):
    """What one member holds of one table.

    `schema_version` changes with the columns; `files_version` with the files' listing.
    `rows` is None while nobody has counted them, `stats` while nobody has looked at the values.
    `own`: it is of a table of our own; None for files of the configuration.
    """

    table: str
    member: str
    columns: tuple[Column, ...]
    rows: int | None
    size_bytes: int
    schema_version: int
    files_version: int
    stats: PartStats | None = None
    own: Spread | None = None

    @property
    def is_copy(self) -> bool:
        """Whether it has all rows of the table, as each other part of it."""
        return self.own is not None and not self.own.columns

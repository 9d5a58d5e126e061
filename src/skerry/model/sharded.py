"""Tables of our own, as every member knows them: columns, keys, buckets, and where these are."""

from __future__ import annotations

import msgspec

from skerry.model.ids import QueryId


class OwnColumn(msgspec.Struct, frozen=True, array_like=True):
    """`type`: Spark's own short text. `default`: a constant as SQL text, None if there is none.

    `id` is no other column's of the table, ever: rows and files have columns by it. 0 while a table was never altered.
    """

    name: str
    type: str
    is_nullable: bool = True
    default: str | None = None
    id: int = 0


class OwnTable(msgspec.Struct, frozen=True, array_like=True):
    """`version` changes with every DDL on it.

    `distributed_by`: () for a table with a copy at every member (GLOBALLY). `next_column`: 0 until it is altered for
    the first time; then columns have numbers, this is the next one, and `made` is the version that it began with.
    `is_placed`: its members were said (IN), and no other gets rows of it.
    """

    id: int
    name: str
    version: int
    columns: tuple[OwnColumn, ...]
    primary_key: tuple[str, ...]
    distributed_by: tuple[str, ...]
    members: tuple[str, ...]
    buckets: int = 16384
    next_column: int = 0
    made: int = 0
    is_placed: bool = False


def numbered(table: OwnTable) -> OwnTable:
    """With a number for each column: 1, 2, … if it was never altered."""
    if table.next_column:
        return table
    columns = tuple(msgspec.structs.replace(column, id=place) for place, column in enumerate(table.columns, 1))
    return msgspec.structs.replace(table, columns=columns, next_column=len(columns) + 1)


class BucketMap(msgspec.Struct, frozen=True, array_like=True):
    """Ranges of buckets (`first`, exclusive `upto`, member), in order, without holes.

    `version` rides on each request. `since`: the moment of the last move, or when the table was made. Before it rows
    were elsewhere, or another table's of that name: with this map nobody reads them. `members`: of a table with copies,
    whose count; () while they are those of the table.
    """

    table: int
    version: int
    groups: tuple[tuple[int, int, str], ...]
    since: int = 0
    members: tuple[str, ...] = ()

    def ranges(self, member: str) -> tuple[tuple[int, int], ...]:
        """The member's own."""
        return tuple((first, upto) for first, upto, owner in self.groups if owner == member)


class Making(msgspec.Struct, frozen=True, array_like=True):
    """CREATE TABLE … AS: which statement makes the table, since when (a timestamp), and whether its rows are there."""

    query: QueryId
    since: int
    is_filled: bool = False


class Definition(msgspec.Struct, frozen=True, array_like=True):
    """A table and where its buckets are; both are told together. One that is not filled yet is nobody's to see."""

    table: OwnTable
    buckets: BucketMap
    making: Making | None = None

    @property
    def is_seen(self) -> bool:
        return self.making is None or self.making.is_filled


class TableStatus(msgspec.Struct, frozen=True, array_like=True):
    """What a member holds of a table, and what its upkeep did last. Moments are microseconds, 0: never, or not known.

    `history_us`: no earlier moment can be read. `problem`: why the rest is not known, or what is wrong. `moving`: what
    goes to another member now.
    """

    table: int
    buckets: int | None = None
    rows: int | None = None
    overlay_rows: int | None = None
    overlay_bytes: int | None = None
    files: int | None = None
    file_bytes: int | None = None
    flushed_us: int = 0
    files_written: int = 0
    files_replaced: int = 0
    cleaned_us: int = 0
    files_removed: int = 0
    history_us: int = 0
    problem: str = ""
    moving: str = ""


class Create(msgspec.Struct, frozen=True, array_like=True, tag=0):
    """`table` has number 0 and version 0: whoever keeps definitions gives them."""

    table: OwnTable
    if_not_exists: bool = False
    making: Making | None = None


class Drop(msgspec.Struct, frozen=True, array_like=True, tag=1):
    """The table of this number: another that has its name by then is not meant."""

    table: int
    name: str


class Alter(msgspec.Struct, frozen=True, array_like=True, tag=2):
    """The table as it shall be, of the version that was known: other than its columns and their names nothing changes.

    Columns that are new have number 0.
    """

    table: OwnTable


class Recall(msgspec.Struct, frozen=True, array_like=True, tag=3):
    """Nothing; but what became of this statement, which was sent before? Version 0 says that nothing did."""


class Fill(msgspec.Struct, frozen=True, array_like=True, tag=4):
    """The rows of a table that was made for them are there: from now on all see it."""

    table: int


Wish = Create | Drop | Alter | Recall | Fill


class Catalogue(msgspec.Struct, frozen=True, array_like=True):
    """All definitions. `version` only rises, `next_id` is the number of the next table: none is ever used again."""

    version: int = 0
    next_id: int = 1
    definitions: tuple[Definition, ...] = ()

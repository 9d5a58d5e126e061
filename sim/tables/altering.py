"""A table whose columns come, go and get other names while it is written: each value stays in its column, by number."""

from __future__ import annotations

from random import Random

import msgspec

from skerry.model.errors import UserError
from skerry.model.sharded import OwnColumn, OwnTable, numbered
from skerry.tables.catalogue import altered
from skerry.tables.layouts import Ids, relaid_pairs
from skerry.tables.ways import default_of

WIDE = 5
_COLUMNS_MAX = 5


def first_table(members: tuple[str, ...]) -> OwnTable:
    columns = (OwnColumn("k", "string", is_nullable=False), OwnColumn("a", "string"))
    return OwnTable(WIDE, "wide", 1, columns, ("k",), ("k",), members)


def next_table(table: OwnTable, random: Random) -> OwnTable:
    """After one ALTER TABLE; names of dropped columns come again."""
    before = numbered(table)
    columns, free = list(before.columns), [name for name in "abcdef" if name not in {c.name for c in before.columns}]
    kind = random.choice(("add", "drop", "rename"))
    if kind == "add" and len(columns) < _COLUMNS_MAX:
        columns.append(OwnColumn(random.choice(free), "string", default=random.choice((None, "'was not there'"))))
    elif kind == "drop" and len(columns) > 1:
        del columns[random.randrange(1, len(columns))]
    else:
        place = random.randrange(len(columns))
        columns[place] = msgspec.structs.replace(columns[place], name=random.choice(free))
    try:
        wanted = msgspec.structs.replace(before, columns=tuple(columns))
        return msgspec.structs.replace(altered(before, wanted), version=table.version + 1)
    except UserError:  # never, as long as these are such as the grammar lets through
        raise AssertionError(columns) from None


def row_of(key: bytes, mark: str, table: OwnTable) -> bytes:
    """Each value says who wrote it, and into which column."""
    ids = [column.id for column in numbered(table).columns]
    return msgspec.msgpack.encode([key.decode() if number == 1 else f"{mark} {number}" for number in ids])


def relaid_row(key: bytes, row: bytes | None, ids: Ids, table: OwnTable) -> bytes | None:
    ((_, made),) = relaid_pairs([(key, row)], ids, table)
    return made


def expected_row(key: bytes, mark: str, written: OwnTable, now: OwnTable) -> list[str | None]:
    """As the table shows it now, if it was written when the table was another."""
    had = {column.id for column in numbered(written).columns}
    return [
        key.decode() if column.id == 1 else f"{mark} {column.id}" if column.id in had else default_of(column)
        for column in numbered(now).columns
    ]

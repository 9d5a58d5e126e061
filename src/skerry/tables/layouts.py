"""Rows and files as they were written, read with the columns that a table has now. Pure.

A column has a number that no other column of its table ever has. What lacks a column was written before that was added:
it has the column's default. A column whose number is gone was dropped, whatever is called so now.
"""

from __future__ import annotations

import datetime as dt
import functools
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import msgspec
import pyarrow as pa

from skerry.model.limits import SCHEMAS_KEPT
from skerry.model.sharded import OwnColumn, OwnTable, numbered
from skerry.tables.columns import arrow_schema, arrow_type
from skerry.tables.manifest import DataFile
from skerry.tables.rows import encode_rows
from skerry.tables.ways import default_of
from skerry.tables.writes import Pair

Ids = tuple[int, ...]
_ROW = msgspec.msgpack.Decoder(list[Any])


def ids_of(table: OwnTable) -> Ids:
    """The numbers of its columns; () for one that was never altered: they are 1, 2, …"""
    return tuple(column.id for column in table.columns) if table.next_column else ()


def places_of(ids: Ids, width: int, table: OwnTable) -> list[int | None]:
    """Where each column of the table is among `width` columns with these numbers; None if it came later."""
    found = {number: place for place, number in enumerate(ids or range(1, width + 1))}
    return [found.get(column.id) for column in numbered(table).columns]


def own_names(names: Sequence[str], own: Sequence[str], ids: Ids, table: OwnTable) -> list[str]:
    """What columns of the table's key are called where columns have the names `own` and these numbers."""
    places = dict(zip((column.name for column in table.columns), places_of(ids, len(own), table), strict=True))
    return [own[place] for name in names if (place := places[name]) is not None]  # no part of a key came later


def relaid(rows: pa.Table, ids: Ids, table: OwnTable) -> pa.Table:
    schema = arrow_schema(table)
    if rows.schema == schema and ids == ids_of(table):
        return rows
    columns = [
        rows.column(place).cast(field.type) if place is not None else _repeated(column, field.type, rows.num_rows)
        for place, column, field in zip(places_of(ids, rows.num_columns, table), table.columns, schema, strict=True)
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def _repeated(column: OwnColumn, kind: pa.DataType, count: int) -> pa.Array:
    return pa.repeat(pa.array([default_of(column)], kind)[0], count)


def relaid_pairs(pairs: Sequence[Pair], ids: Ids, table: OwnTable) -> Sequence[Pair]:
    """Keys stay: no column of the key comes or goes."""
    if ids == ids_of(table):
        return pairs
    defaults = _defaults(table)
    made: list[Pair] = []
    for key, row in pairs:
        if row is not None:
            values = _ROW.decode(row)
            places = zip(places_of(ids, len(values), table), defaults, strict=True)
            row = msgspec.msgpack.encode([default if at is None else values[at] for at, default in places])
        made.append((key, row))
    return made


@functools.lru_cache(SCHEMAS_KEPT)
def _defaults(table: OwnTable) -> list[Any]:
    """What stands for each column's default in a row."""
    arrays = [pa.array([default_of(column)], arrow_type(column.type)) for column in table.columns]
    values: list[Any] = _ROW.decode(encode_rows(pa.RecordBatch.from_arrays(arrays, schema=arrow_schema(table)))[0])
    return values


def default_text(column: OwnColumn) -> str | bytes | None:
    """The column's default, as what Spark casts to its type."""
    value = default_of(column)
    if value is None or isinstance(value, bytes):
        return value
    if isinstance(value, dt.datetime):
        return value.replace(tzinfo=None).isoformat(" ")  # all sessions are in UTC
    return (
        format(value, "f")
        if isinstance(value, Decimal)
        else str(value).lower()
        if isinstance(value, bool)
        else str(value)
    )


def is_fit(file: DataFile, table: OwnTable) -> bool:
    """Whether who looks for the table's columns by their names finds them in the file: as readers of Delta do."""
    if file.ids == ids_of(table) and not table.next_column:
        return True
    names = [column.name for column in file.columns]
    taken = {name.lower() for name in names}
    for column, place in zip(table.columns, places_of(file.ids, len(names), table), strict=True):
        if place is not None and names[place] != column.name:
            return False
        if place is None and (column.name.lower() in taken or default_of(column) is not None):
            return False
    return True

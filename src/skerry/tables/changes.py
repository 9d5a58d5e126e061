"""What a transaction does to one table at one member: rows that are there from now on, and keys that are gone. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import msgspec
import pyarrow as pa

from skerry.model.commits import Policy, Write
from skerry.model.errors import SiteError, UserError
from skerry.model.sharded import OwnTable
from skerry.tables.columns import arrow_schema
from skerry.tables.keys import decode_keys, encode_keys
from skerry.tables.rows import decode_rows, encode_rows

_Body = tuple[tuple[bytes, bytes | None], ...]
_BODY = msgspec.msgpack.Decoder(_Body)


class Changes(NamedTuple):
    """`rows` has all columns of the table; of a row that is deleted only its key counts, the rest is NULL."""

    keys: list[bytes]
    rows: pa.RecordBatch
    deleted: list[bool]


def writes_of(table: OwnTable, rows: pa.RecordBatch, policy: Policy = Policy.REPLACE) -> list[Write]:
    """One for each row, of columns that are cast to the table's; UserError for a NULL where none may be."""
    schema = arrow_schema(table)
    if rows.schema != schema:
        rows = rows.select(schema.names).cast(schema)
    for column in table.columns:
        if not column.is_nullable and rows.column(column.name).null_count:
            raise UserError(
                f"table {table.name}: column {column.name} cannot be NULL", suggestion=f"give {column.name} a value"
            )
    keys = encode_keys(table.primary_key, [rows.column(name) for name in table.primary_key])
    return [Write(table.id, key, row, policy) for key, row in zip(keys, encode_rows(rows), strict=True)]


def deletes_of(table: OwnTable, keys: pa.RecordBatch) -> list[Write]:
    """`keys` has the columns of the primary key."""
    schema = arrow_schema(table)
    columns = [keys.column(name).cast(schema.field(name).type) for name in table.primary_key]
    return [Write(table.id, key, None) for key in encode_keys(table.primary_key, columns)]


def changes_of(table: OwnTable, writes: Iterable[tuple[bytes, bytes | None]]) -> Changes:
    """Of keys and rows; None is a row that is deleted. SiteError if they are not of such a table."""
    pairs = list(writes)
    schema = arrow_schema(table)
    try:
        rows = decode_rows(schema, [row for _, row in pairs if row is not None])
        gone = [key for key, row in pairs if row is None]
        if not gone:
            return Changes([key for key, _ in pairs], rows, [False] * len(pairs))
        parts = dict(
            zip(table.primary_key, decode_keys([schema.field(n).type for n in table.primary_key], gone), strict=True)
        )
    except (SiteError, ValueError) as error:
        raise SiteError(f"table {table.name}: rows that were kept cannot be read ({error})") from None
    columns = [parts.get(field.name, pa.nulls(len(gone), field.type)) for field in schema]
    both = pa.Table.from_batches([rows, pa.RecordBatch.from_arrays(columns, schema=schema)]).combine_chunks()
    order = sorted(range(len(pairs)), key=lambda at: pairs[at][1] is None)
    keys = [pairs[at][0] for at in order]
    return Changes(keys, both.to_batches()[0], [pairs[at][1] is None for at in order])


def encode_body(writes: Iterable[Write]) -> bytes:
    """The writes of one transaction to one table, as they are kept."""
    return msgspec.msgpack.encode([(write.key, write.row) for write in writes])


def decode_body(body: bytes) -> _Body:
    return _BODY.decode(body)

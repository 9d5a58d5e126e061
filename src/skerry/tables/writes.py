"""Writes of a table's rows: from Arrow to the bytes that commits carry, and back. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
import numpy as np
import pyarrow as pa

from skerry.model.commits import Policy, Write
from skerry.model.errors import SiteError, UserError
from skerry.model.sharded import OwnTable
from skerry.tables.columns import arrow_schema
from skerry.tables.keys import decode_keys, encode_keys
from skerry.tables.rows import decode_rows, encode_rows

Pair = tuple[bytes, bytes | None]  # a key and its row; None: the row is deleted


class _Laid(msgspec.Struct, frozen=True):
    ids: tuple[int, ...]
    writes: tuple[Pair, ...]


_MAP = b"\x82"  # how msgpack begins one of these, and no array of writes
_BODY = msgspec.msgpack.Decoder(tuple[Pair, ...])


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


def batch_of(table: OwnTable, writes: Sequence[Pair]) -> pa.RecordBatch:
    """The rows, in this order; of one that is deleted only its key is set. SiteError if they are of no such table."""
    schema = arrow_schema(table)
    kinds = [schema.field(name).type for name in table.primary_key]
    try:
        rows = decode_rows(schema, [row for _, row in writes if row is not None])
        if rows.num_rows == len(writes):
            return rows
        gone = decode_keys(kinds, [key for key, row in writes if row is None])
    except (SiteError, ValueError) as error:
        raise SiteError(f"table {table.name}: rows that were kept cannot be read ({error})") from None
    parts = dict(zip(table.primary_key, gone, strict=True))
    columns = [parts.get(field.name, pa.nulls(len(gone[0]), field.type)) for field in schema]
    both = pa.Table.from_batches([rows, pa.RecordBatch.from_arrays(columns, schema=schema)]).combine_chunks()
    # Deleted ones are behind the others there: each back to its place.
    places = np.argsort(np.argsort([row is None for _, row in writes], kind="stable"), kind="stable")
    return both.to_batches()[0].take(pa.array(places))


def encode_body(writes: Iterable[Write], ids: tuple[int, ...] = ()) -> bytes:
    """The writes of one transaction to one table, as they are kept. `ids`: of the columns, if it was altered."""
    pairs = tuple([(write.key, write.row) for write in writes])
    return msgspec.msgpack.encode(_Laid(ids, pairs) if ids else pairs)


def decode_body(body: bytes) -> tuple[tuple[int, ...], tuple[Pair, ...]]:
    """The numbers of the columns, and the writes."""
    if body[:1] != _MAP:
        return (), _BODY.decode(body)
    laid = msgspec.msgpack.decode(body, type=_Laid)
    return laid.ids, laid.writes

"""Rows that a client loads: any Arrow stream → the statement that takes them, and messages of bounded size. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pyarrow as pa

from skerry.client.pep249 import DataError, InterfaceError
from skerry.model.ids import QueryId
from skerry.model.limits import KIB, STAGED_CHUNK_BYTES, STAGED_CHUNK_ROWS
from skerry.wire.client_messages import ClientRows
from skerry.wire.codec import encode_batch, encode_schema, plain_schema

ON_CONFLICT = {"fail": "", "nothing": " ON CONFLICT DO NOTHING", "replace": " ON CONFLICT DO REPLACE"}


def reader_of(rows: Any) -> pa.RecordBatchReader:
    """Of whatever gives Arrow batches; InterfaceError for what does not."""
    if isinstance(rows, pa.RecordBatchReader):
        return rows
    if isinstance(rows, pa.Table):
        return rows.to_reader(STAGED_CHUNK_ROWS)
    if isinstance(rows, pa.RecordBatch):
        return pa.RecordBatchReader.from_batches(rows.schema, [rows])
    if hasattr(rows, "__arrow_c_stream__"):
        return pa.RecordBatchReader.from_stream(rows)
    raise InterfaceError(
        f"load takes a pyarrow Table, RecordBatch or RecordBatchReader, or an Arrow stream, not {type(rows).__name__}"
    )


def insert_of(table: str, schema: pa.Schema, on_conflict: str) -> str:
    """What the load is, as a statement: the member reads table, columns and conflicts from it."""
    if on_conflict not in ON_CONFLICT:
        raise InterfaceError(f"on_conflict is {', '.join(map(repr, ON_CONFLICT))}, not {on_conflict!r}")
    if not isinstance(table, str) or not table:
        raise InterfaceError(f"load takes the name of a table, not {table!r}")
    if not len(schema):
        raise InterfaceError("load takes rows with columns, these have none")
    columns = ", ".join(map(_quoted, schema.names))
    markers = ", ".join("?" for _ in schema)
    return f"INSERT INTO {_quoted(table)} ({columns}) VALUES ({markers}){ON_CONFLICT[on_conflict]}"


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


def messages(
    query: QueryId, reader: pa.RecordBatchReader, frame_bytes: int, progress: Callable[[int], object] | None
) -> Iterator[Callable[[int], ClientRows]]:
    """Each takes the number of its request. DataError for a row that fits into no message."""
    try:
        schema = encode_schema(reader.schema)
    except Exception as error:
        raise DataError(f"these columns cannot be loaded: {error}") from error
    number = sent = 0
    for batch in reader:
        for rows in _cut(batch):
            body: Any = memoryview(encode_batch(rows))
            if len(body) > frame_bytes - 64 * KIB:
                raise DataError(f"a row of {len(body)} bytes is over the limit of a message, {frame_bytes} bytes")
            yield partial(ClientRows, query=query, number=number, schema=b"" if number else schema, rows=body)
            number, sent = number + 1, sent + rows.num_rows
            if progress is not None:
                progress(sent)
    yield partial(ClientRows, query=query, number=number, schema=b"" if number else schema, is_last=True)


def _cut(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    batch = batch.cast(plain_schema(batch.schema)) if plain_schema(batch.schema) != batch.schema else batch
    by_bytes = max(1, STAGED_CHUNK_BYTES * batch.num_rows // max(1, batch.nbytes))
    count = min(STAGED_CHUNK_ROWS, by_bytes)
    for at in range(0, batch.num_rows, count):
        yield batch.slice(at, count)

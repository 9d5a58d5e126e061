"""Rows for tests of the task port: batches that no socket's buffer holds all of."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

SCHEMA = pa.schema([("n", pa.int64())])
ROWS = 80_000  # 640 KB of them


def made(schema: pa.Schema, count: int = 2) -> Iterator[pa.RecordBatch]:
    for _ in range(count):
        yield pa.record_batch([pa.array(range(ROWS), pa.int64())], schema=schema)

"""Tables, rows and commits for the tests of tables of our own."""

from __future__ import annotations

import asyncio
import datetime as dt
import math
import os
import tempfile
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from typing import Any

import msgspec
import pyarrow as pa

from skerry.model.commits import Committed, Policy, Prepared, Staged, TransactionId, Write
from skerry.model.ids import QueryId
from skerry.model.sharded import OwnColumn, OwnTable
from skerry.tables.clock import COUNTER_BITS
from skerry.tables.columns import CHANGE, arrow_schema
from skerry.tables.flush import groups_of
from skerry.tables.flushing import Flusher
from skerry.tables.laying import Counted, Layout, lay_out
from skerry.tables.lookup import FileKeys
from skerry.tables.shard import Shard
from skerry.tables.spool import Spool

MEMBER = "oslo"
SECOND = 1_000_000 << COUNTER_BITS  # of commits' times

# Spark's text of every type that a column may have, and values of it that are easily spoilt
TYPES: dict[str, list[Any]] = {
    "boolean": [True, False],
    "tinyint": [-128, 127],
    "smallint": [-32768, 0],
    "int": [-(2**31), 2**31 - 1],
    "bigint": [-(2**63), 2**63 - 1, 2**53 + 1],
    "float": [math.nan, -0.0, 0.0, math.inf, 1.5, -16777216.0],
    "double": [math.nan, -0.0, 0.0, -math.inf, 0.1, 2.0**53, 1e300, -7.0],
    "string": ["", "smør 🐟", "a\0b", "A", "a"],
    "binary": [b"", b"\0\xff\0\0", b"\xff"],
    "date": [dt.date(1, 1, 1), dt.date(9999, 12, 31), dt.date(1970, 1, 1)],
    "timestamp": [dt.datetime(1969, 12, 31, 23, 59, 59, 999999, dt.UTC), dt.datetime(9999, 1, 1, tzinfo=dt.UTC)],
    "timestamp_ntz": [dt.datetime(1, 1, 1), dt.datetime(2024, 2, 29, 12, 0, 0, 1)],
    "decimal(38,0)": [Decimal("9" * 38), Decimal("-" + "9" * 38), Decimal(7), Decimal("1e37"), Decimal(2**63)],
    "decimal(38,38)": [Decimal("0." + "0" * 37 + "1"), Decimal("-0." + "9" * 38), Decimal(0)],
    "decimal(20,2)": [Decimal("1.00"), Decimal("-12.30"), Decimal("123456789012345678.90")],
    "array<int>": [[1, None], []],
    "map<string,array<date>>": [[("a", [dt.date(2020, 1, 1), None]), ("b", None)], []],
    "struct<a:int,b:struct<c:decimal(10,3)>>": [{"a": 1, "b": {"c": Decimal("1.500")}}, {"a": None, "b": None}],
}
KEY_TYPES = [kind for kind in TYPES if "<" not in kind]


def in_memory() -> tempfile.TemporaryDirectory[str]:
    """A folder where a sync costs nothing, if the system has one."""
    return tempfile.TemporaryDirectory(prefix="skerry", dir="/dev/shm" if os.path.isdir("/dev/shm") else None)


def a_table(number: int = 1, key: str = "bigint", value: str = "string", buckets: int = 16384) -> OwnTable:
    columns = (OwnColumn("k", key, is_nullable=False), OwnColumn("v", value))
    return OwnTable(number, f"t{number}", 1, columns, ("k",), ("k",), (MEMBER,), buckets)


def all_types() -> OwnTable:
    """Each type once beside the key, which is of three parts."""
    values = tuple(OwnColumn(f"v{number}", kind) for number, kind in enumerate(TYPES))
    keys = (OwnColumn("a", "string", False), OwnColumn("b", "double", False), OwnColumn("c", "decimal(38,2)", False))
    return OwnTable(1, "all", 1, (*keys, *values), ("a", "b", "c"), ("a",), (MEMBER,))


def batch_of(table: OwnTable, rows: list[dict[str, Any]]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(rows, arrow_schema(table))


def committed(number: int, commit_ts: int, writes: list[Write]) -> Committed:
    return Committed(txn(number), commit_ts, commit_ts, len(writes), tuple(writes))


def prepared(number: int, prepare_ts: int, writes: list[Write]) -> Prepared:
    return Prepared(txn(number), prepare_ts, "bergen", prepare_ts, len(writes), tuple(writes), ())


def laid(shard: Shard, flusher: Flusher, rows: pa.RecordBatch, upto_ts: int, policy: Policy) -> tuple[Staged, Counted]:
    """Rows that were sent ahead, as files: what a participant makes of them under its lock."""
    is_changes = CHANGE in rows.schema.names
    staged = Staged(shard.table.id, ("0",), policy, is_ordered=True, is_changes=is_changes)
    folder = os.path.join(shard.folder, "..", "staging")
    spool = Spool(shard.table, folder, shard.ranges, is_changes=is_changes)
    for at in range(rows.num_rows):
        spool.add(rows.slice(at, 1))
    spool.end()
    files = FileKeys(shard.table, shard.folder)

    def work() -> Callable[[], Counted]:
        groups = groups_of(shard.manifest.live, shard.ranges)
        return partial(
            lay_out, spool, Layout(shard.table, shard.folder, f"{upto_ts:016x}", groups, files, {}, 0), staged
        )

    counted = asyncio.run(flusher.beside(shard, upto_ts, work))
    spool.remove()
    return msgspec.structs.replace(staged, body=msgspec.msgpack.encode(counted.laid)), counted


def txn(number: int) -> TransactionId:
    return TransactionId(QueryId(MEMBER, f"{number:032x}"))


def shown(rows: pa.Table | pa.RecordBatch) -> list[str]:
    """Rows as text, in order: NaN is like NaN there, and -0.0 unlike 0.0."""
    return sorted(map(repr, rows.to_pylist()))

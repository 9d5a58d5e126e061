"""Rows that a query gave → what is written, and where: the second of the two ways (T7). Pure.

A query has no order: where one of two rows would have to be chosen, nothing is written.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec
import pyarrow as pa

from skerry.model.commits import Policy, Write
from skerry.model.errors import SqlError, UserError
from skerry.model.sharded import Definition, OwnTable
from skerry.model.table import Column
from skerry.sql.owntables import Change, Delete, Insert, Update
from skerry.tables.checks import encode_patch
from skerry.tables.columns import arrow_schema
from skerry.tables.keys import encode_keys
from skerry.tables.routing import Routed, placed
from skerry.tables.rows import encode_rows
from skerry.tables.storing import is_exact, takes
from skerry.tables.ways import default_of
from skerry.tables.writes import deletes_of, writes_of

_VALUES = msgspec.msgpack.Decoder(list[msgspec.Raw])


class Wanted(msgspec.Struct, frozen=True):
    """What a query's columns mean: `places` in the table; before them the key of the row, unless it is inserted.

    `moves`: a column of the key is set, `places` are all columns.
    """

    kind: Literal["insert", "update", "delete"]
    table: OwnTable
    places: tuple[int, ...] = ()
    policy: Policy = Policy.FAIL
    moves: bool = False

    @property
    def key_width(self) -> int:
        return 0 if self.kind == "insert" else len(self.table.primary_key)


def wanted_of(change: Change) -> Wanted:
    table = change.table
    match change:
        case Insert(columns=columns, policy=policy):
            return Wanted("insert", table, columns, policy)
        case Update(assignments=assignments, moves_rows=True):
            return Wanted("update", table, tuple(range(len(table.columns))), moves=True)
        case Update(assignments=assignments):
            return Wanted("update", table, tuple(place for place, _ in assignments))
        case Delete():
            return Wanted("delete", table)
    raise AssertionError(change)


def needs_casts(wanted: Wanted, given: Sequence[Column]) -> bool:
    """Whether Spark has to cast what the query gives; SqlError if a column does not take it (ANSI store assignment)."""
    table = wanted.table
    values = given[wanted.key_width :]
    if len(values) != len(wanted.places):
        raise SqlError(
            f"[INSERT_COLUMN_ARITY_MISMATCH] the query gives {len(values)} columns, table {table.name} takes "
            f"{len(wanted.places)} here"
        )
    columns = [table.columns[place] for place in wanted.places]
    for column, value in zip(columns, values, strict=True):
        if not takes(column.type, value.type):
            raise SqlError(
                f"[INCOMPATIBLE_DATA_FOR_TABLE.CANNOT_SAFELY_CAST] column {column.name} of {table.name} is "
                f"{column.type}, and takes no {value.type}",
                suggestion=f"CAST(… AS {column.type.upper()}) says what is meant",
            )
    return not all(is_exact(column.type, value.type) for column, value in zip(columns, values, strict=True))


def routed_rows(
    definition: Definition, wanted: Wanted, rows: pa.Table, user: str = "", roles: tuple[str, ...] = ()
) -> Routed:
    """UserError if these rows cannot all be written."""
    batch = rows.combine_chunks().to_batches()
    if not batch:
        return Routed({}, 1, wanted.table.name)
    (given,) = batch
    writes: Sequence[Write | None]
    match wanted.kind:
        case "insert":
            writes, keys = _inserts(wanted, given)
        case "update" if wanted.moves:
            writes, keys = _moves(wanted, given)
        case "update":
            writes, keys = _patches(wanted, given)
        case "delete":
            keys = _keys(wanted, given)
            writes = deletes_of(wanted.table, keys)
    return placed(definition, writes, lambda: keys, user, roles)


def size_of(routed: Routed) -> int:
    """Bytes of keys and rows, of all copies."""
    writes = (write for part in routed.parts.values() for write in part.writes)
    return sum(len(write.key) + len(write.row or b"") for write in writes)


def _inserts(wanted: Wanted, given: pa.RecordBatch) -> tuple[list[Write | None], pa.RecordBatch]:
    rows = whole_rows(wanted, given.columns)
    writes: list[Write | None] = []
    before: dict[bytes, bytes | None] = {}
    for write in writes_of(wanted.table, rows, wanted.policy):
        is_again = write.key in before
        if is_again and (wanted.policy is Policy.FAIL or before[write.key] != write.row):
            raise UserError(
                f"table {wanted.table.name}: two rows of the query have the same primary key; nothing was written",
                suggestion="a query has no order, so none of them is the first: choose one by GROUP BY, or by "
                "row_number() OVER (PARTITION BY the key ORDER BY …)",
            )
        before[write.key] = write.row
        writes.append(None if is_again else write)
    return writes, rows.select(list(wanted.table.primary_key))


def _patches(wanted: Wanted, given: pa.RecordBatch) -> tuple[list[Write | None], pa.RecordBatch]:
    table, keys = wanted.table, _keys(wanted, given)
    encoded = _matched_once(table, keys)
    schema = arrow_schema(table)
    values = [
        _stored(table, place, array.cast(schema.field(place).type))
        for place, array in zip(wanted.places, given.columns[wanted.key_width :], strict=True)
    ]
    set_to = pa.RecordBatch.from_arrays(values, names=[str(place) for place in wanted.places])
    patches = (encode_patch(list(zip(wanted.places, _VALUES.decode(row), strict=True))) for row in encode_rows(set_to))
    writes: list[Write | None] = [
        Write(table.id, key, patch, is_patch=True) for key, patch in zip(encoded, patches, strict=True)
    ]
    return writes, keys


def _moves(wanted: Wanted, given: pa.RecordBatch) -> tuple[list[Write | None], pa.RecordBatch]:
    """Each row goes from its old key, and comes to its new one; what was where another comes to is replaced."""
    table, keys = wanted.table, _keys(wanted, given)
    old = _matched_once(table, keys)
    rows = whole_rows(wanted, given.columns[wanted.key_width :])
    comes = writes_of(table, rows)
    if len({write.key for write in comes}) < len(comes):
        raise UserError(f"table {table.name}: two rows would get the same primary key; nothing was written")
    gone = set(old)
    writes: list[Write | None] = [
        write if write.key in gone else Write(table.id, write.key, write.row, Policy.FAIL) for write in comes
    ]
    taken = {write.key for write in comes}
    left = [place for place, key in enumerate(old) if key not in taken]
    leaves = keys.take(pa.array(left, pa.int64()))
    new = rows.select(list(table.primary_key))
    both = pa.Table.from_batches([new, leaves]).combine_chunks().to_batches()[0]
    gone_from = (msgspec.structs.replace(write, is_counted=False) for write in deletes_of(table, leaves))
    return [*writes, *gone_from], both


def _keys(wanted: Wanted, given: pa.RecordBatch) -> pa.RecordBatch:
    names, schema = wanted.table.primary_key, arrow_schema(wanted.table)
    arrays = [given.column(place).cast(schema.field(name).type) for place, name in enumerate(names)]
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema([schema.field(name) for name in names]))


def _matched_once(table: OwnTable, keys: pa.RecordBatch) -> list[bytes]:
    encoded: list[bytes] = encode_keys(table.primary_key, keys.columns)
    ((key, count),) = Counter(encoded).most_common(1)
    if count > 1:
        row = keys.slice(encoded.index(key), 1).to_pylist()[0]
        shown = ", ".join(f"{name} = {str(value)[:40]}" for name, value in row.items())
        raise UserError(
            f"[MERGE_CARDINALITY_VIOLATION] table {table.name}: {count} rows of FROM match the row of {shown}; "
            "nothing was written",
            suggestion="group what stands behind FROM, so that each row of the table has one match",
        )
    return encoded


def whole_rows(wanted: Wanted, given: Iterable[pa.Array]) -> pa.RecordBatch:
    """Whole rows: what the query gives, and defaults."""
    table, schema = wanted.table, arrow_schema(wanted.table)
    arrays = dict(zip(wanted.places, given, strict=True))
    count = len(next(iter(arrays.values())))
    columns = []
    for place, column in enumerate(table.columns):
        kind = schema.field(place).type
        if place in arrays:
            columns.append(_stored(table, place, arrays[place].cast(kind)))
        else:
            columns.append(pa.repeat(pa.scalar(default_of(column), kind), count))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _stored(table: OwnTable, place: int, values: pa.Array) -> pa.Array:
    column = table.columns[place]
    if not column.is_nullable and values.null_count:
        raise UserError(
            f"[NOT_NULL_ASSERT_VIOLATION] column {column.name} of {table.name} is NOT NULL, and NULL is given "
            f"in {values.null_count} of {len(values)} rows; nothing was written",
            suggestion=f"coalesce({column.name}, …), or leave these rows out",
        )
    return values

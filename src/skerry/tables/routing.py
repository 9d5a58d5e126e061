"""Where the rows of a write go: by the bucket of their key, or to every member that has a copy. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa

from skerry.model.commits import Part, Policy, Versions, Write
from skerry.model.errors import UserError
from skerry.model.sharded import Definition, OwnTable
from skerry.model.table import Column
from skerry.sql.owntables import key_columns, moves_rows
from skerry.tables.bucket import buckets_of
from skerry.tables.checks import encode_patch
from skerry.tables.columns import arrow_schema
from skerry.tables.keys import encode_keys
from skerry.tables.rows import lowered
from skerry.tables.stored import repeated
from skerry.tables.ways import ByTuples, default_of
from skerry.tables.writes import deletes_of, writes_of
from skerry.wire import execution as packets
from skerry.wire.tuples import checked_values, decode_tuples


class Routed(NamedTuple):
    """`copies`: at so many members each row is counted."""

    parts: dict[str, Part]
    copies: int
    table: str


def routed(definition: Definition, way: ByTuples, user: str = "", roles: tuple[str, ...] = ()) -> Routed:
    """UserError if two rows of the statement have one key, and it says that this fails."""
    table = definition.table
    writes: Sequence[Write | None]
    match way.packet:
        case packets.Insert(_, _, policy, tuples):
            rows = decode_tuples(tuples, [Column(column.name, column.type) for column in table.columns])
            writes = _once(table, writes_of(table, rows, policy), policy)
            keys = _keys(table, way.keys)
        case packets.LocalUpdate(_, _, items):
            keys = _keys(table, way.keys)
            encoded = encode_keys(table.primary_key, keys.columns)
            pairs = zip(encoded, items, strict=True)
            patches = ((key, encode_patch([(place, value) for value, place in item.values])) for key, item in pairs)
            writes = [Write(table.id, key, patch, is_patch=True) for key, patch in patches]
        case packets.Delete():
            keys = _keys(table, way.keys)
            writes = deletes_of(table, keys)
    return _placed(definition, writes, keys, user, roles)


class Rows(NamedTuple):
    """What a query gave: keys of rows that are there, and values for the columns at `places`."""

    keys: pa.RecordBatch | None
    values: tuple[pa.Array, ...]
    places: tuple[int, ...]


def routed_rows(definition: Definition, rows: Rows, policy: Policy, user: str, roles: tuple[str, ...]) -> Routed:
    """Without keys rows are inserted, without values deleted, else updated; UserError if a row is updated twice."""
    table = definition.table
    if rows.keys is None:
        count = len(rows.values[0])
        given = dict(zip(rows.places, rows.values, strict=True))
        columns = [
            given[place] if place in given else repeated(default_of(column), column, count)
            for place, column in enumerate(table.columns)
        ]
        batch = pa.RecordBatch.from_arrays(columns, schema=arrow_schema(table))
        inserted = _once(table, writes_of(table, batch, policy), policy)
        return _placed(definition, inserted, batch.select(list(table.primary_key)), user, roles)
    if not rows.keys.num_rows:
        return Routed({}, 1, table.name)
    encoded = encode_keys(table.primary_key, rows.keys.columns)
    is_deleted = not rows.places
    if len(set(encoded)) < len(encoded) and not is_deleted:
        raise UserError(
            f"table {table.name}: the query gives two values for one row; nothing was written",
            suggestion="let FROM give at most one row for each row of the table",
        )
    deletes = _once(table, deletes_of(table, rows.keys), Policy.REPLACE)
    if is_deleted:
        return _placed(definition, deletes, rows.keys, user, roles)
    if not moves_rows(table, rows.places):
        values = [lowered(array) for array in rows.values]
        patches = [encode_patch(list(zip(rows.places, row, strict=True))) for row in zip(*values, strict=True)]
        patched = [Write(table.id, key, patch, is_patch=True) for key, patch in zip(encoded, patches, strict=True)]
        return _placed(definition, patched, rows.keys, user, roles)
    return _moved(
        definition,
        deletes,
        pa.RecordBatch.from_arrays(list(rows.values), schema=arrow_schema(table)),
        rows.keys,
        user,
        roles,
    )


def _moved(
    definition: Definition,
    deletes: Sequence[Write | None],
    batch: pa.RecordBatch,
    before: pa.RecordBatch,
    user: str,
    roles: tuple[str, ...],
) -> Routed:
    """Rows whose key is set: gone at the old place, new at the other, in one transaction."""
    table = definition.table
    old = {write.key for write in deletes if write is not None}
    made = _once(table, writes_of(table, batch, Policy.FAIL), Policy.FAIL)
    new = {write.key for write in made if write is not None}
    # A place that another row of the statement leaves is free.
    rows = [
        write and Write(write.table, write.key, write.row, Policy.REPLACE if write.key in old else Policy.FAIL)
        for write in made
    ]
    gone = [
        None if write is None or write.key in new else msgspec.structs.replace(write, is_counted=False)
        for write in deletes
    ]
    keys = pa.Table.from_batches([before, batch.select(list(table.primary_key))]).combine_chunks().to_batches()[0]
    return _placed(definition, [*gone, *rows], keys, user, roles)


def _keys(table: OwnTable, rows: Sequence[Sequence[Any]]) -> pa.RecordBatch:
    """The columns of the key, of the table's types."""
    columns = [Column(column.name, column.type) for column in key_columns(table)]
    found, schema = checked_values(rows, columns), arrow_schema(table)
    arrays = [found.column(place).cast(schema.field(name).type) for place, name in enumerate(table.primary_key)]
    return pa.RecordBatch.from_arrays(arrays, names=list(table.primary_key))


def _once(table: OwnTable, writes: list[Write], policy: Policy) -> list[Write | None]:
    """One write a key, None in the place of the others: the first that is inserted stays, or the last replaces it."""
    last: dict[bytes, int] = {}
    for place, write in enumerate(writes):
        if write.key in last and policy is Policy.FAIL:
            raise UserError(
                f"table {table.name}: two rows of the statement have the same primary key; nothing was written",
                suggestion="ON CONFLICT DO NOTHING keeps the first, DO REPLACE the last",
            )
        if write.key not in last or policy is Policy.REPLACE:
            last[write.key] = place
    return [write if last[write.key] == place else None for place, write in enumerate(writes)]


def _placed(
    definition: Definition,
    writes: Sequence[Write | None],
    keys: pa.RecordBatch,
    user: str,
    roles: tuple[str, ...],
) -> Routed:
    table, buckets = definition.table, definition.buckets
    versions = (Versions(table.id, table.version, buckets.version),)

    def part(own: Sequence[Write | None]) -> Part:
        return Part(tuple(write for write in own if write is not None), (), versions, user, roles)

    if not table.distributed_by:
        whole = part(writes)
        return Routed(dict.fromkeys(table.members, whole) if whole.writes else {}, len(table.members), table.name)
    places = buckets_of([keys.column(name) for name in table.distributed_by], table.buckets)
    ends = np.array([upto for _, upto, _ in buckets.groups])
    owners = [buckets.groups[group][2] for group in np.searchsorted(ends, places, "right").tolist()]
    by_member: dict[str, list[Write | None]] = {}
    for owner, write in zip(owners, writes, strict=True):
        by_member.setdefault(owner, []).append(write)
    parts = {member: part(own) for member, own in sorted(by_member.items())}
    return Routed({member: each for member, each in parts.items() if each.writes}, 1, table.name)

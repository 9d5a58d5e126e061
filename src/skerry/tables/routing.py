"""Where the rows of a write go: by the bucket of their key, or to every member that has a copy. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from skerry.model.commits import Part, Policy, Versions, Write
from skerry.model.errors import KeyExists
from skerry.model.sharded import Definition, OwnTable
from skerry.tables.bucket import buckets_of
from skerry.tables.checks import encode_patch
from skerry.tables.columns import arrow_schema
from skerry.tables.keys import encode_keys, encode_whole
from skerry.tables.rows import raised
from skerry.tables.single import FEW, bucket_of, shape_of
from skerry.tables.ways import ByTuples
from skerry.tables.writes import writes_of
from skerry.wire import execution as packets


class Routed(NamedTuple):
    """`copies`: at so many members each row is counted. `reason`: why it goes as tuples."""

    parts: dict[str, Part]
    copies: int
    table: str
    reason: str = ""


def routed(definition: Definition, way: ByTuples, user: str = "", roles: tuple[str, ...] = ()) -> Routed:
    """KeyExists if two rows of the statement have one key, and it says that this fails."""
    table = definition.table
    writes: Sequence[Write | None]
    match way.packet:
        case packets.Insert(_, _, policy, tuples):
            # A tuple of the table's columns is a row's bytes.
            pairs = zip(_encoded(table, way.keys), tuples, strict=True)
            writes = _once(table, [Write(table.id, key, row, policy) for key, row in pairs], policy)
        case packets.LocalUpdate(_, _, items):
            of_items = zip(_encoded(table, way.keys), items, strict=True)
            patches = ((key, encode_patch([(place, value) for value, place in item.values])) for key, item in of_items)
            writes = [Write(table.id, key, patch, is_patch=True) for key, patch in patches]
        case packets.Delete():
            writes = [Write(table.id, key, None) for key in _encoded(table, way.keys)]
    return placed(definition, writes, lambda: _buckets(table, way.keys), user, roles)._replace(reason=way.reason)


def routed_in_order(
    definition: Definition, rows: pa.RecordBatch, policy: Policy, user: str, roles: tuple[str, ...]
) -> Routed:
    """Whole rows that have an order: the first of those with one key stays, or the last replaces it."""
    table = definition.table
    writes = _once(table, writes_of(table, rows, policy), policy)
    return placed(definition, writes, lambda: buckets_of_rows(table, rows), user, roles)


def buckets_of_rows(table: OwnTable, rows: pa.RecordBatch) -> Sequence[int]:
    """Of a table that is spread; `rows` have its key's columns."""
    buckets: list[int] = buckets_of([rows.column(name) for name in table.distributed_by], table.buckets).tolist()
    return buckets


def _buckets(table: OwnTable, keys: Sequence[Sequence[Any]]) -> Sequence[int]:
    """The same of keys in msgpack's form."""
    shape = shape_of(table) if len(keys) <= FEW else None
    if shape is None:
        return buckets_of_rows(table, _keys(table, keys))
    return [bucket_of([key[part] for part in shape.spread], table.buckets) for key in keys]


def _encoded(table: OwnTable, rows: Sequence[Sequence[Any]]) -> list[bytes]:
    """The bytes of keys. Those that are one whole number each are not made a column for that: it takes twice as long,
    for few ten times."""
    is_one = len(table.primary_key) == 1 and _is_whole(table)
    if is_one and all(type(value) is int for (value,) in rows):
        return [encode_whole(value) for (value,) in rows]
    return encode_keys(table.primary_key, _keys(table, rows).columns)


def _is_whole(table: OwnTable) -> bool:
    name = table.primary_key[0].lower()
    for column in table.columns:  # the key stands first, mostly
        if column.name.lower() == name:
            return column.type == "bigint"
    return False


def _keys(table: OwnTable, rows: Sequence[Sequence[Any]]) -> pa.RecordBatch:
    """The columns of the key, of the table's types."""
    schema, names = arrow_schema(table), list(table.primary_key)
    columns = zip(*rows, strict=True) if rows else [()] * len(names)
    arrays = [raised(list(values), schema.field(name).type) for values, name in zip(columns, names, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, names=names)


def _once(table: OwnTable, writes: list[Write], policy: Policy) -> list[Write | None]:
    """One write a key, None in the place of the others: the first that is inserted stays, or the last replaces it."""
    if len({write.key for write in writes}) == len(writes):
        return [*writes]
    last: dict[bytes, int] = {}
    for place, write in enumerate(writes):
        if write.key in last and policy is Policy.FAIL:
            raise KeyExists(
                f"table {table.name}: two rows of the statement have the same primary key; nothing was written",
                suggestion="ON CONFLICT DO NOTHING keeps the first, DO REPLACE the last",
            )
        if write.key not in last or policy is Policy.REPLACE:
            last[write.key] = place
    return [write if last[write.key] == place else None for place, write in enumerate(writes)]


def placed(
    definition: Definition,
    writes: Sequence[Write | None],
    places: Callable[[], Sequence[int]],
    user: str,
    roles: tuple[str, ...],
) -> Routed:
    """`places`: the buckets, one for one, also of a write that is None; asked for if they decide where a row goes."""
    table, buckets = definition.table, definition.buckets
    versions = (Versions(table.id, table.version, buckets.version),)

    def part(own: Sequence[Write | None]) -> Part:
        return Part(tuple([write for write in own if write is not None]), (), versions, user, roles)

    if not table.distributed_by:
        whole = part(writes)
        return Routed(dict.fromkeys(table.members, whole) if whole.writes else {}, len(table.members), table.name)
    owners = [owner for _, _, owner in buckets.groups]
    if len(set(owners)) == 1:
        whole = part(writes)
        return Routed({owners[0]: whole} if whole.writes else {}, 1, table.name)
    ends = np.array([upto for _, upto, _ in buckets.groups])
    owners = [owners[group] for group in np.searchsorted(ends, places(), "right").tolist()]
    by_member: dict[str, list[Write | None]] = {}
    for owner, write in zip(owners, writes, strict=True):
        by_member.setdefault(owner, []).append(write)
    parts = {member: part(own) for member, own in sorted(by_member.items())}
    return Routed({member: each for member, each in parts.items() if each.writes}, 1, table.name)

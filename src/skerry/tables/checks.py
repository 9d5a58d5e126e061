"""What a member demands of writes to its own shard of a table, whoever sends them; and what a patch makes. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import blake2b
from operator import attrgetter
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from skerry.model.commits import Change, Policy, Write
from skerry.model.errors import Overloaded, PeerError, SiteError
from skerry.model.limits import COMPUTED_ROWS
from skerry.model.rights import Action
from skerry.model.sharded import OwnTable
from skerry.tables.bucket import buckets_of
from skerry.tables.columns import arrow_schema, spread_by
from skerry.tables.instructions import Found
from skerry.tables.keys import decode_keys, encode_keys
from skerry.tables.lookup import FoundRow
from skerry.tables.rows import decode_rows
from skerry.tables.shard import Changes, Shard
from skerry.tables.single import are_sound
from skerry.tables.writes import batch_of, decode_body

_PATCH = msgspec.msgpack.Decoder(list[tuple[int, Any]])
_OF_CHANGE: dict[Change, Action] = {
    Change.PUT: "update",
    Change.INSERT: "insert",
    Change.DELETE: "delete",
    Change.LEAVE: "delete",
    Change.DELETE_AGAIN: "delete",
}
_ROW = msgspec.msgpack.Decoder(list[Any])


def encode_patch(values: Sequence[tuple[int, Any]]) -> bytes:
    """Places of columns, and what they are set to, in msgpack's form."""
    return msgspec.msgpack.encode(list(values))


def actions_of(write: Write) -> tuple[Action, ...]:
    """What the user must have the right to."""
    if write.row is None:
        return ("delete",)
    if write.is_patch:
        return ("update",)
    return actions_of_rows(write.policy)


def actions_of_all(writes: Iterable[Write]) -> set[Action]:
    """The same for many, which mostly are of one kind."""
    kinds = {(write.row is None, write.is_patch, write.policy): write for write in writes}
    return {action for write in kinds.values() for action in actions_of(write)}


def actions_of_rows(policy: Policy) -> tuple[Action, ...]:
    """The same for rows that are inserted."""
    return ("insert", "update") if policy is Policy.REPLACE else ("insert",)


def actions_of_changes(changes: Iterable[Change]) -> tuple[Action, ...]:
    """The same for changes that were sent ahead."""
    return tuple(_OF_CHANGE[change] for change in changes)


def check_room(shard: Shard, writes: Sequence[Write]) -> None:
    """Overloaded if there is none for so much more."""
    size_bytes = sum([len(write.key) + (len(write.row) if write.row else 0) for write in writes])
    if not shard.overlay.has_room(len(writes), size_bytes):
        raise Overloaded(
            f"table {shard.table.name}: too many rows wait to be flushed",
            suggestion="try again shortly, or FLUSH TABLE",
        )


def check_writes(shard: Shard, writes: Sequence[Write]) -> None:
    """PeerError unless keys and rows are of this table, and in buckets of this member."""
    if not are_sound(shard.table, shard.ranges, writes):
        check_by_columns(shard.table, shard.ranges, writes)


def check_by_columns(table: OwnTable, ranges: Sequence[tuple[int, int]], writes: Sequence[Write]) -> None:
    """The same for any writes, and says what is wrong."""
    schema = arrow_schema(table)
    kinds = [schema.field(name).type for name in table.primary_key]
    try:
        parts = dict(zip(table.primary_key, decode_keys(kinds, [write.key for write in writes]), strict=True))
    except (ValueError, pa.ArrowException) as error:
        raise PeerError(f"table {table.name}: {error}") from None
    # Bytes that decode to a key but are not its own would be a second row with the same key.
    if encode_keys(table.primary_key, [parts[name] for name in table.primary_key]) != [write.key for write in writes]:
        raise PeerError(f"table {table.name}: bytes that are no key")
    _check_buckets(table, ranges, parts)
    _check_rows(table, [write for write in writes if write.row is not None and not write.is_patch])


def _check_buckets(table: OwnTable, ranges: Sequence[tuple[int, int]], parts: dict[str, pa.Array]) -> None:
    buckets = buckets_of([parts[name] for name in spread_by(table)], table.buckets)
    is_here = np.zeros(len(buckets), dtype=np.bool_)
    for first, upto in ranges:
        is_here |= (buckets >= first) & (buckets < upto)
    if not is_here.all():
        raise PeerError(f"table {table.name}: a row of a bucket that is not here")


def _check_rows(table: OwnTable, writes: Sequence[Write]) -> None:
    try:
        rows = decode_rows(arrow_schema(table), [write.row for write in writes if write.row is not None])
        rows.validate(full=True)
    except (SiteError, pa.ArrowException) as error:
        raise PeerError(f"table {table.name}: {error}") from None
    for column in table.columns:
        if not column.is_nullable and rows.column(column.name).null_count:
            raise PeerError(f"table {table.name}: column {column.name} cannot be NULL")
    keys = encode_keys(table.primary_key, [rows.column(name) for name in table.primary_key])
    if keys != [write.key for write in writes]:
        raise PeerError(f"table {table.name}: a row with another key than its own")


def changes_of(shard: Shard, body: bytes) -> Changes:
    """What a transaction has written here, for its own query. PeerError unless it may be."""
    try:
        ids, pairs = decode_body(body)
    except msgspec.MsgspecError as error:
        raise PeerError(f"table {shard.table.name}: bytes that are no rows ({error})") from None
    if ids or not 0 < len(pairs) <= 2 * COMPUTED_ROWS or len({key for key, _ in pairs}) < len(pairs):
        raise PeerError(f"table {shard.table.name}: {len(pairs)} rows of a transaction, or a key that stands twice")
    check_writes(shard, [Write(shard.table.id, key, row) for key, row in pairs])
    number = int.from_bytes(blake2b(body, digest_size=8).digest())
    keys, is_live = [key for key, _ in pairs], [row is not None for _, row in pairs]
    return Changes(keys, batch_of(shard.table, pairs), is_live, number)


def found_of(table: OwnTable, writes: Sequence[Write], rows: Sequence[FoundRow]) -> list[Found]:
    """What each write meets; PeerError for a patch that the table does not take."""
    if not any(map(attrgetter("is_patch"), writes)):
        return [Found(row.commit_ts, row.is_live) for row in rows]
    pairs = list(zip(writes, rows, strict=True))
    patched = [(write, row.row) for write, row in pairs if write.is_patch and row.row is not None]
    made = iter(_patched(table, patched))
    return [
        Found(row.commit_ts, row.is_live, row=next(made) if write.is_patch and row.is_live else None)
        for write, row in pairs
    ]


def _patched(table: OwnTable, patched: Sequence[tuple[Write, bytes]]) -> list[bytes]:
    """The rows that patches make, in their order."""
    if not patched:
        return []
    keys = {name.lower() for name in table.primary_key}
    made = []
    for write, row in patched:
        assert write.row is not None
        values = _ROW.decode(row)
        try:
            patch = _PATCH.decode(write.row)
        except msgspec.MsgspecError as error:
            raise PeerError(f"table {table.name}: bytes that are no change of a row ({error})") from None
        for place, value in patch:
            if not 0 <= place < len(values) or table.columns[place].name.lower() in keys:
                raise PeerError(f"table {table.name}: column {place} cannot be set")
            values[place] = value
        made.append(msgspec.msgpack.encode(values))
    _check_rows(table, [Write(write.table, write.key, row) for (write, _), row in zip(patched, made, strict=True)])
    return made

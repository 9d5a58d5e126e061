"""The packets by which tables of our own are read and written: document 002, in its field order (protocol.md, 10).

Decoders check all bounds that stand here in types; `execution_codec.py` has the rest. Members say the same in messages
of their own (protocol.md, 10.6).
"""

from __future__ import annotations

import enum
from typing import Annotated, Any

import msgspec
import xxhash
from msgspec import UNSET, Meta, UnsetType

from skerry.model.commits import Policy
from skerry.model.limits import (
    OWN_COLUMNS,
    REQUEST_COLUMNS,
    REQUEST_ID_CHARS,
    REQUEST_PARAMETERS,
    REQUEST_TABLES,
    WRITE_TUPLES,
)

FINGERPRINT_BYTES = 16

U8 = Annotated[int, Meta(ge=0, le=OWN_COLUMNS - 1)]
U32 = Annotated[int, Meta(ge=0, le=2**32 - 1)]
U64 = Annotated[int, Meta(ge=0)]  # msgpack has no larger ones
RequestId = Annotated[str, Meta(min_length=1, max_length=REQUEST_ID_CHARS)]
Name = Annotated[str, Meta(min_length=1, max_length=1024)]
Values = Annotated[tuple[Any, ...], Meta(max_length=REQUEST_PARAMETERS)]
KeyValues = Annotated[tuple[Any, ...], Meta(min_length=1, max_length=OWN_COLUMNS)]
# A version of each table that the plan was made for, by the table's number.
SchemaInfo = Annotated[dict[U32, U64], Meta(max_length=REQUEST_TABLES)]
# Each is one row: a msgpack array by itself, which is read only by whoever needs it (see tuples.py).
EncodedTuples = Annotated[tuple[bytes, ...], Meta(max_length=WRITE_TUPLES)]
VirtualTables = Annotated[dict[Name, EncodedTuples], Meta(max_length=REQUEST_TABLES)]


class RequestType(enum.IntEnum):
    DQL = 0
    DML = 1
    DML_DQL = 2


class DmlType(enum.IntEnum):
    INSERT = 0
    UPDATE = 1
    DELETE = 2


class UpdateType(enum.IntEnum):
    SHARED = 0
    LOCAL = 1


class TypeCode(enum.IntEnum):
    MAP = 0
    BOOLEAN = 1
    DATETIME = 2
    DECIMAL = 3
    DOUBLE = 4
    INTEGER = 5
    STRING = 6
    UUID = 7
    ANY = 8
    ARRAY = 9
    SCALAR = 10


class Packet(msgspec.Struct, frozen=True, array_like=True):
    """Base of all packets, and of their parts."""


class Options(Packet, frozen=True):
    """What a query may take: `row_cap` rows of an edge, `work_cap` milliseconds of Spark. 0: no cap."""

    row_cap: U64 = 0
    work_cap: U64 = 0


class Exact(Packet, frozen=True):
    """What the document's numbers stand for: 128 bits of the plan, the sender's name, the types of parameters."""

    fingerprint: Annotated[bytes, Meta(min_length=FINGERPRINT_BYTES, max_length=FINGERPRINT_BYTES)]
    sender: Name
    types: Annotated[tuple[str, ...], Meta(max_length=REQUEST_PARAMETERS)] = ()


class Dql(Packet, frozen=True):
    """Run a plan; one that is not known here is asked for (`CacheMiss`). `exact` is not in the document."""

    schema_info: SchemaInfo
    plan_id: U64
    sender_id: U64
    vtables: VirtualTables
    options: Options
    params: Values
    exact: Exact | UnsetType = UNSET


class Column(Packet, frozen=True):
    """`type` has eleven values; `spark`, which is not in the document, is Spark's own short text for the type."""

    name: Name
    type: TypeCode
    spark: Annotated[str, Meta(max_length=10_000)] | UnsetType = UNSET


class CacheMiss(Packet, frozen=True):
    """To the member `sender_id`: what is this plan?"""

    request_id: RequestId
    plan_id: U64


class CacheMissReply(Packet, frozen=True):
    schema_info: SchemaInfo
    vtables: Annotated[
        dict[Name, Annotated[tuple[Column, ...], Meta(max_length=REQUEST_COLUMNS)]], Meta(max_length=REQUEST_TABLES)
    ]
    sql: str


class Insert(Packet, frozen=True):
    table: U32
    version: U64
    policy: Policy
    tuples: EncodedTuples


class SharedItem(Packet, frozen=True):
    """A row that moves: `delete_pk` goes at its old place, `tuple` comes to its new one."""

    delete_pk: KeyValues
    tuple: bytes


class LocalItem(Packet, frozen=True):
    """A row that stays: `values` are pairs of a value and the position of its column."""

    pk: KeyValues
    values: Annotated[tuple[tuple[Any, U8], ...], Meta(min_length=1, max_length=OWN_COLUMNS)]


class SharedUpdate(Packet, frozen=True):
    table: U32
    version: U64
    items: Annotated[tuple[SharedItem, ...], Meta(max_length=WRITE_TUPLES)]


class LocalUpdate(Packet, frozen=True):
    table: U32
    version: U64
    items: Annotated[tuple[LocalItem, ...], Meta(max_length=WRITE_TUPLES)]


class Delete(Packet, frozen=True):
    """`tuples` are keys. UNSET: all rows of the table, on the wire two fields; (): no row, three fields."""

    table: U32
    version: U64
    tuples: EncodedTuples | UnsetType = UNSET


class Reference(Packet, frozen=True, tag=0):
    """A part of a motion key: the column at this position of the row."""

    position: U64


class Fixed(Packet, frozen=True, tag=1):
    """A part of a motion key: this value, for a column that the INSERT leaves to its default."""

    value: Any


Target = Reference | Fixed


class DeleteSelected(Packet, frozen=True):
    """Delete the keys that the query gives, where it runs."""

    table: U32
    version: U64
    query: Dql


class InsertSelected(Packet, frozen=True):
    """Insert what the query gives: its i-th column is the table's `columns[i]`."""

    table: U32
    version: U64
    columns: Annotated[tuple[U8, ...], Meta(min_length=1, max_length=OWN_COLUMNS)]
    policy: Policy
    motion_key: Annotated[tuple[Target, ...], Meta(max_length=OWN_COLUMNS)]
    query: Dql


class UpdateSelected(Packet, frozen=True):
    """Update by what the query gives. `mapping`: a column's position in the table → its value's in the query's row."""

    table: U32
    version: U64
    mapping: Annotated[dict[U64, U64], Meta(min_length=1, max_length=OWN_COLUMNS)]
    pk_positions: Annotated[tuple[U64, ...], Meta(min_length=1, max_length=OWN_COLUMNS)]
    query: Dql


Body = Dql | Insert | SharedUpdate | LocalUpdate | Delete | InsertSelected | UpdateSelected | DeleteSelected


class Request(msgspec.Struct, frozen=True):
    """The envelope: `request_id` is one for all members that a statement asks."""

    request_id: str
    body: Body


def plan_number(fingerprint: bytes) -> int:
    """The document's `plan_id` of a plan: the first half of its fingerprint."""
    return int.from_bytes(fingerprint[:8], "big")


def member_number(name: str) -> int:
    """The document's `sender_id` of a member: members have names, not numbers."""
    return xxhash.xxh64_intdigest(name.encode())

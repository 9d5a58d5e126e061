"""Packets of the execution protocol ↔ bytes; what a peer sends is bounded and checked, or refused with PeerError."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Annotated, Any, NoReturn, TypeVar

import msgspec
from msgspec import UNSET, Meta, Raw

from skerry.model.errors import Overloaded, PeerError
from skerry.model.limits import MISS_REPLY_BYTES, REQUEST_BYTES, VALUE_DEPTH, WRITE_TUPLES
from skerry.wire.execution import (
    U32,
    U64,
    Body,
    CacheMiss,
    CacheMissReply,
    Delete,
    DeleteSelected,
    DmlType,
    Dql,
    Fixed,
    Insert,
    InsertSelected,
    LocalUpdate,
    Packet,
    Request,
    RequestId,
    RequestType,
    SharedUpdate,
    UpdateSelected,
    UpdateType,
    member_number,
    plan_number,
)
from skerry.wire.frames import Buffer
from skerry.wire.tupletypes import BadTupleType, type_code

P = TypeVar("P")
S = TypeVar("S", DeleteSelected, InsertSelected, UpdateSelected)

# Where each body travels: the request's type, and the DML's.
_PLACES: dict[type[Packet], tuple[RequestType, DmlType | None]] = {
    Dql: (RequestType.DQL, None),
    Insert: (RequestType.DML, DmlType.INSERT),
    SharedUpdate: (RequestType.DML, DmlType.UPDATE),
    LocalUpdate: (RequestType.DML, DmlType.UPDATE),
    Delete: (RequestType.DML, DmlType.DELETE),
    InsertSelected: (RequestType.DML_DQL, DmlType.INSERT),
    UpdateSelected: (RequestType.DML_DQL, DmlType.UPDATE),
    DeleteSelected: (RequestType.DML_DQL, DmlType.DELETE),
}
_UPDATES: dict[type[Packet], UpdateType] = {SharedUpdate: UpdateType.SHARED, LocalUpdate: UpdateType.LOCAL}
_FIELDS_MAX = 15  # those of all packets and of newer ones, which are not looked at: the most that one byte can say
_PLAIN = (type(None), bool, int, float, str, bytes)

_encoder = msgspec.msgpack.Encoder()
# Besides its own errors msgspec lets these through: depth, map keys that cannot be hashed, dates out of range.
_DECODE_ERRORS = (msgspec.MsgspecError, RecursionError, ValueError, TypeError, OverflowError)


# --- what is not a packet of its own, but an array around or in one ------------------------------
class _Envelope(Packet, frozen=True):
    request_id: RequestId
    type: RequestType
    payload: Raw


class _Dml(Packet, frozen=True):
    type: DmlType
    payload: Raw


class _Update(Packet, frozen=True):
    table: U32
    version: U64
    type: UpdateType
    data: Raw


_Parts = Annotated[tuple[Raw, ...], Meta(max_length=_FIELDS_MAX)]


class _Decoders(dict[Any, msgspec.msgpack.Decoder[Any]]):
    def __missing__(self, kind: Any) -> msgspec.msgpack.Decoder[Any]:
        decoder = self[kind] = msgspec.msgpack.Decoder(kind)
        return decoder


_decoders = _Decoders()


# --- to bytes -------------------------------------------------------------------------------------
def encode_request(request: Request, limit_bytes: int = REQUEST_BYTES) -> bytes:
    """The envelope with its body; Overloaded if no member would take it."""
    for count in _counts(request.body):
        if count > WRITE_TUPLES:
            raise Overloaded(f"{count} tuples in one packet or virtual table are over the limit of {WRITE_TUPLES}")
    kind, dml = _PLACES[type(request.body)]
    payload = _array(request.body)
    return _bounded([request.request_id, kind, payload if dml is None else [dml, payload]], "request", limit_bytes)


def encode_miss(miss: CacheMiss) -> bytes:
    return _encoder.encode(_array(miss))


def encode_miss_reply(reply: CacheMissReply, limit_bytes: int = MISS_REPLY_BYTES) -> bytes:
    return _bounded(_array(reply), "reply", limit_bytes)


def _counts(body: Body) -> list[int]:
    """Of tuples, wherever there are some."""
    match body:
        case Insert() | Delete():
            return [len(body.tuples)] if body.tuples is not UNSET else []
        case SharedUpdate() | LocalUpdate():
            return [len(body.items)]
        case Dql():
            return [len(tuples) for tuples in body.vtables.values()]
    return _counts(body.query)


def _bounded(fields: list[Any], what: str, limit_bytes: int) -> bytes:
    made = _encoder.encode(fields)
    if len(made) > limit_bytes:
        raise Overloaded(f"a {what} of {len(made)} bytes is over the limit of {limit_bytes}")
    return made


def _array(packet: Packet) -> list[Any]:
    """The fields in order. What is UNSET at the end is not written; a query inside stands with its fields in ours."""
    fields: list[Any] = []
    for field in msgspec.structs.fields(packet):
        value = getattr(packet, field.name)
        if value is UNSET:
            break
        if isinstance(value, Dql):
            fields += _array(value)
        elif field.name == "items":
            fields += [_UPDATES[type(packet)], value]
        else:
            fields.append(value)
    if isinstance(packet, CacheMissReply):
        fields[1] = {name: [_array(column) for column in columns] for name, columns in packet.vtables.items()}
    return fields


# --- from bytes -----------------------------------------------------------------------------------
def decode_request(data: Buffer, limit_bytes: int = REQUEST_BYTES) -> Request:
    envelope = _read(_Envelope, _sized(data, "request", limit_bytes), "request")
    where = f"request {envelope.request_id!a}"
    if envelope.type == RequestType.DQL:
        return Request(envelope.request_id, _query(envelope.payload, f"{where}, DQL"))
    dml = _read(_Dml, envelope.payload, where)
    where = f"{where}, {dml.type.name}"
    body = _selected(dml, f"{where} + DQL") if envelope.type == RequestType.DML_DQL else _tuples(dml, where)
    return Request(envelope.request_id, body)


def decode_miss(data: Buffer) -> CacheMiss:
    return _read(CacheMiss, data, "cache miss")


def decode_miss_reply(data: Buffer, limit_bytes: int = MISS_REPLY_BYTES) -> CacheMissReply:
    where = "reply to a cache miss"
    reply = _read(CacheMissReply, _sized(data, where, limit_bytes), where)
    for table, columns in reply.vtables.items():
        for column in columns:
            if column.spark is UNSET:
                continue
            try:
                code = type_code(column.spark)
            except BadTupleType as error:
                _wrong(where, f"column {column.name!a} of {table!a}: {error}")
            if code != column.type:
                said = f"type {column.type.name} and {column.spark}, which is {code.name}"
                _wrong(where, f"column {column.name!a} of {table!a} says {said}")
    return reply


def _tuples(dml: _Dml, where: str) -> Body:
    match dml.type:
        case DmlType.INSERT:
            return _read(Insert, dml.payload, where)
        case DmlType.DELETE:
            return _read(Delete, dml.payload, where)
    head = _read(_Update, dml.payload, where)
    kind: type[SharedUpdate | LocalUpdate] = SharedUpdate if head.type == UpdateType.SHARED else LocalUpdate
    where = f"{where} ({head.type.name})"
    update = _read(kind, _joined((_encoder.encode(head.table), _encoder.encode(head.version), head.data)), where)
    if isinstance(update, SharedUpdate):
        for item in update.items:
            _check_values(item.delete_pk, where, "delete_pk")
        return update
    for local in update.items:
        _check_values(local.pk, where, "pk")
        _check_values([value for value, _ in local.values], where, "values")
        _check_once([position for _, position in local.values], where, "values")
    return update


def _selected(dml: _Dml, where: str) -> Body:
    parts = _read(_Parts, dml.payload, where)
    match dml.type:
        case DmlType.DELETE:
            return _with_query(DeleteSelected, parts, where)
        case DmlType.INSERT:
            insert = _with_query(InsertSelected, parts, where)
            _check_once(insert.columns, where, "columns")
            fixed = [target.value for target in insert.motion_key if isinstance(target, Fixed)]
            _check_values(fixed, where, "motion_key")
            return insert
    update = _with_query(UpdateSelected, parts, where)
    _check_once(update.pk_positions, where, "pk_positions")
    return update


def _with_query(kind: type[S], parts: Sequence[Raw], where: str) -> S:
    """The query's fields stand behind the packet's own: they are read as the array that a query alone is."""
    own: int = len(msgspec.structs.fields(kind)) - 1
    if len(parts) <= own:
        _wrong(where, f"{len(parts)} fields where {own} and those of a query were due")
    packet = _read(kind, _joined((*parts[:own], _joined(parts[own:]))), where)
    _check_query(packet.query, where)
    return packet


def _query(payload: Buffer, where: str) -> Dql:
    query = _read(Dql, payload, where)
    _check_query(query, where)
    return query


def _check_query(query: Dql, where: str) -> None:
    _check_values(query.params, where, "params")
    exact = query.exact
    if exact is UNSET:
        return
    if plan_number(exact.fingerprint) != query.plan_id:
        _wrong(where, f"plan_id {query.plan_id} is not that of plan {exact.fingerprint.hex()}")
    if member_number(exact.sender) != query.sender_id:
        _wrong(where, f"sender_id {query.sender_id} is not that of member {exact.sender!a}")
    if len(exact.types) != len(query.params):
        _wrong(where, f"{len(exact.types)} types for {len(query.params)} params")


def _check_values(values: Iterable[Any], where: str, field: str) -> None:
    """Values are plain: an extension type, a date of msgpack's own or a map means nothing here."""
    pending = [(value, 0) for value in values]
    while pending:
        value, depth = pending.pop()
        if isinstance(value, list):
            if depth >= VALUE_DEPTH:
                _wrong(where, f"{field}: a value nested more than {VALUE_DEPTH} deep")
            pending += [(each, depth + 1) for each in value]
        elif type(value) not in _PLAIN:
            _wrong(where, f"{field}: a value of msgpack type {type(value).__name__}, which no value has")


def _check_once(positions: Sequence[int], where: str, field: str) -> None:
    if len(set(positions)) != len(positions):
        _wrong(where, f"{field}: a position stands there twice")


def _sized(data: Buffer, what: str, limit_bytes: int) -> Buffer:
    size = memoryview(data).nbytes
    if size > limit_bytes:
        raise PeerError(f"{what}: {size} bytes are over the limit of {limit_bytes}")
    return data


def _joined(parts: Sequence[Buffer]) -> bytes:
    """An array of what is encoded already."""
    assert len(parts) <= _FIELDS_MAX
    return b"".join((bytes([0x90 | len(parts)]), *parts))


def _read(kind: type[P], data: Buffer, where: str) -> P:
    decoder = _decoders[kind]
    try:
        found: P = decoder.decode(data)
    except _DECODE_ERRORS as error:
        raise PeerError(f"{where}: {_said(error, kind)}") from None
    return found


def _said(error: BaseException, kind: Any) -> str:
    """msgspec's words, with the names of the fields that it tells the places of."""
    words, _, path = (str(error) or type(error).__name__)[:300].partition(" - at ")
    names: list[str] = []
    for place in re.findall(r"\[([0-9]+)\]", path):
        fields = msgspec.structs.fields(kind) if _is_packet(kind) else ()
        if int(place) >= len(fields):
            break
        names.append(fields[int(place)].name)
        kind = fields[int(place)].type
    return f"{'.'.join(names)}: {words}" if names else words


def _is_packet(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Packet)


def _wrong(where: str, what: str) -> NoReturn:
    raise PeerError(f"{where}: {what}")

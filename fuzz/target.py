"""What is fuzzed: every way in which bytes from outside become frames, messages, schemas, batches, packets and tuples.

The first byte says which way, so that one corpus serves all. An input is refused with PeerError or gives something that
can be used; anything else that is raised is a find, and so is a crash of the process.
"""

from __future__ import annotations

import pyarrow as pa

from skerry.model.errors import PeerError
from skerry.model.results import Value
from skerry.model.table import Column
from skerry.wire.codec import decode_batch, decode_schema, encode_schema
from skerry.wire.execution_codec import (
    decode_miss,
    decode_miss_reply,
    decode_request,
    encode_miss,
    encode_miss_reply,
    encode_request,
)
from skerry.wire.frames import BATCH, NUMBERED, Frame, FrameReader, decode, decode_numbered, split_batch
from skerry.wire.messages import Message, OpenChannel
from skerry.wire.tuples import decode_tuples, encode_tuples
from skerry.wire.values import from_value

# A stream of frames; one frame's kind and payload (a search would not find checksums); a schema; a batch; a packet of
# the execution protocol; a tuple.
STREAM, FRAME, SCHEMA, ROWS, PACKET, TUPLE = range(6)
WAYS = 6
LIMIT_BYTES = 100_000
# How a stream is cut into pieces must not matter: some are cut inside headers.
PIECES = (3, 11, 4096, 1, 50_000)

SCHEMAS = (
    pa.schema([("i", pa.int64()), ("s", pa.string()), ("b", pa.bool_()), ("d", pa.decimal128(38, 3))]),
    pa.schema(
        [
            ("l", pa.list_(pa.string())),
            ("m", pa.map_(pa.string(), pa.int64())),
            ("st", pa.struct([("x", pa.int8())])),
            ("n", pa.null()),
        ]
    ),
)
# Behind the byte for its way a packet has one for what it is.
REQUEST, MISS, MISS_REPLY = range(3)
TYPES = (
    *("boolean", "tinyint", "bigint", "float", "double", "decimal(38,18)", "decimal(5,5)", "string", "binary", "date"),
    *("timestamp", "timestamp_ntz", "time(6)", "interval day to second", "array<decimal(3,0)>", "map<string,date>"),
    *("struct<x:tinyint,`odd name`:array<float>>", "void"),
)
COLUMNS = tuple(Column(f"c{place}", text) for place, text in enumerate(TYPES))


def check(data: bytes) -> list[object]:
    """What came of it: nothing when all was refused."""
    if not data:
        return []
    way, rest = data[0] % WAYS, data[1:]
    try:
        if way == STREAM:
            return _stream(rest)
        if way == FRAME:
            return _frame(Frame(rest[0], rest[1:])) if rest else []
        if way == SCHEMA:
            return [_schema(rest)]
        if way == PACKET:
            return [_packet(rest[1:], rest[0] % 3)] if rest else []
        if way == TUPLE:
            return [_tuple(rest)]
        return [_rows(rest[1:], rest[0])] if rest else []
    except PeerError:
        return []


def _stream(data: bytes) -> list[object]:
    reader = FrameReader(LIMIT_BYTES)
    at = turn = 0
    got: list[object] = []
    while at < len(data) and reader.error is None:
        buffer = reader.get_buffer()
        count = min(len(buffer), PIECES[turn % len(PIECES)], len(data) - at)
        buffer[:count] = data[at : at + count]
        reader.buffer_updated(count)
        at, turn = at + count, turn + 1
        if reader.error is None:
            for frame in reader.frames():
                got += _frame(frame)
    return got


def _frame(frame: Frame) -> list[object]:
    if frame.kind == BATCH:
        header, body = split_batch(frame)
        return [header, _rows(bytes(body), header.lane)] if len(body) else [header]
    message: Message = decode_numbered(frame)[1] if frame.kind in NUMBERED else decode(frame)
    if isinstance(message, OpenChannel):
        _schema(message.schema)
    return [message, *_values(message)]


def _values(message: Message) -> list[object]:
    parameters = getattr(message, "parameters", None)
    values = parameters.values() if isinstance(parameters, dict) else parameters or ()
    return [from_value(value) for value in values if isinstance(value, Value)]


def _schema(data: bytes) -> pa.Schema:
    schema = decode_schema(data)
    encode_schema(schema)  # whatever was accepted can be used
    return schema


def _rows(data: bytes, which: int) -> pa.RecordBatch:
    batch = decode_batch(data, SCHEMAS[which % len(SCHEMAS)], LIMIT_BYTES)
    batch.to_pydict()
    return batch


def _packet(data: bytes, which: int) -> object:
    """What was accepted can be written again, and is then read as the same."""
    if which == REQUEST:
        request = decode_request(data, LIMIT_BYTES)
        assert repr(decode_request(encode_request(request))) == repr(request)  # NaN equals nothing
        return request
    if which == MISS:
        miss = decode_miss(data)
        assert decode_miss(encode_miss(miss)) == miss
        return miss
    reply = decode_miss_reply(data, LIMIT_BYTES)
    assert decode_miss_reply(encode_miss_reply(reply)) == reply
    return reply


def _tuple(data: bytes) -> pa.RecordBatch:
    batch = decode_tuples([data], COLUMNS)
    batch.validate(full=True)
    again = encode_tuples(batch.columns, TYPES)
    assert encode_tuples(decode_tuples(again, COLUMNS).columns, TYPES) == again
    return batch

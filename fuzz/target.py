"""What is fuzzed: every way in which bytes from outside become frames, messages, schemas and batches.

The first byte says which way, so that one corpus serves all. An input is refused with PeerError or gives something that
can be used; anything else that is raised is a find, and so is a crash of the process.
"""

from __future__ import annotations

import pyarrow as pa

from skerry.model.errors import PeerError
from skerry.model.results import Value
from skerry.wire.codec import decode_batch, decode_schema, encode_schema
from skerry.wire.frames import BATCH, NUMBERED, Frame, FrameReader, decode, decode_numbered, split_batch
from skerry.wire.messages import Message, OpenChannel
from skerry.wire.values import from_value

# A stream of frames; one frame's kind and payload (a search would not find checksums); a schema; a batch.
STREAM, FRAME, SCHEMA, ROWS = range(4)
WAYS = 4
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

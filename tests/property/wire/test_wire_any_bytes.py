"""Any bytes never crash a decoder: they give what was sent, or PeerError."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import example, given
from hypothesis import strategies as st

from skerry.model.errors import PeerError, UserError
from skerry.model.results import Value
from skerry.wire.codec import decode_batch, decode_schema, encode_batch, encode_schema
from skerry.wire.frames import (
    BATCH,
    Frame,
    FrameReader,
    decode,
    decode_numbered,
    encode_batch_frame,
    encode_frame,
    split_batch,
)
from skerry.wire.kinds import KINDS
from skerry.wire.messages import Batch
from skerry.wire.values import from_value, to_value

LIMIT = 100_000
LARGE = st.integers(0, 90_000).map(lambda size: (b"skerry" * (size // 6 + 1))[:size])

BATCHES = [
    pa.record_batch(
        {
            "i": pa.array([1, None, 3] * 10),
            "s": ["a", None, "ccc"] * 10,
            "l": pa.array([["x"], None, []] * 10, pa.list_(pa.string())),
            "m": pa.array([[("k", 1)], None, []] * 10, pa.map_(pa.string(), pa.int64())),
            "st": pa.array([{"x": 1}, None, {"x": None}] * 10, pa.struct([("x", pa.int8())])),
            "b": pa.array([True, None, False] * 10),
            "d": pa.array([None, 1, 2] * 10, pa.decimal128(38, 3)),
        }
    ),
    pa.record_batch({"n": pa.nulls(5), "x": [b"zz"] * 5}),
]
ENCODED = [(batch.schema, bytes(encode_batch(batch, codec))) for batch in BATCHES for codec in ("", "lz4", "zstd")]


def feed(reader: FrameReader, data: bytes, pieces: list[int]) -> list[Frame]:
    frames: list[Frame] = []
    at = turn = 0
    while at < len(data):
        buffer = reader.get_buffer()
        count = min(len(buffer), pieces[turn % len(pieces)], len(data) - at)
        buffer[:count] = data[at : at + count]
        reader.buffer_updated(count)
        at, turn = at + count, turn + 1
        if reader.error is None:
            frames += reader.frames()
    return frames


@given(
    payloads=st.lists(st.tuples(st.sampled_from(sorted(KINDS)), st.one_of(st.binary(max_size=50), LARGE)), max_size=6),
    pieces=st.lists(st.integers(1, 40_000), min_size=1, max_size=5),
)
def test_frames_survive_any_cut_of_the_stream(payloads: list[tuple[int, bytes]], pieces: list[int]) -> None:
    reader = FrameReader(LIMIT)
    stream = b"".join(bytes(part) for kind, payload in payloads for part in encode_frame(kind, payload))
    if len(stream) // min(pieces) > 20_000:
        pieces = [1000]
    frames = feed(reader, stream, pieces)
    assert [(frame.kind, bytes(frame.payload)) for frame in frames] == payloads
    assert reader.at_boundary


@given(data=st.binary(max_size=300), pieces=st.lists(st.integers(1, 50), min_size=1, max_size=3))
@example(data=b"\x00\x00\x00\x00\x01" + bytes(4), pieces=[1])
def test_any_stream_gives_frames_or_an_error(data: bytes, pieces: list[int]) -> None:
    reader = FrameReader(LIMIT)
    frames = feed(reader, data, pieces)
    assert all(frame.kind in KINDS for frame in frames)
    assert sum(frame.size_bytes for frame in frames) <= len(data)
    assert len(reader.get_buffer()) > 0


@given(kind=st.integers(0, 255), payload=st.binary(max_size=200))
def test_any_payload_is_a_message_or_refused(kind: int, payload: bytes) -> None:
    for read in (decode, decode_numbered, split_batch):
        try:
            result = read(Frame(kind, payload))
        except PeerError:
            continue
        assert result is not None


def values(largest: int) -> st.SearchStrategy[object]:
    plain = st.none() | st.booleans() | st.floats() | st.text(max_size=5) | st.binary(max_size=5)
    return st.recursive(
        plain | st.integers(-(2**63), largest),
        lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
        max_leaves=10,
    )


MSGPACK = values(2**64 - 1)


@given(kind=st.sampled_from(sorted(KINDS)), fields=st.lists(MSGPACK, max_size=8))
def test_any_msgpack_is_a_message_or_refused(kind: int, fields: list[object]) -> None:
    import msgspec

    try:
        message = decode(Frame(kind, msgspec.msgpack.encode(fields)))
    except PeerError:
        return
    assert isinstance(message, KINDS[kind])


@given(
    header=st.builds(
        Batch,
        st.integers(0, 2**62),
        st.integers(0, 2**31),
        st.booleans(),
        st.integers(1, 2**31),
        st.integers(0, 2**62),
        st.integers(0, 2**62),
    ),
    body=LARGE.filter(bool),
)
def test_batch_frames_return_header_and_body(header: Batch, body: bytes) -> None:
    (frame,) = feed(FrameReader(LIMIT + 100), b"".join(map(bytes, encode_batch_frame(header, body))), [40_000])
    assert frame.kind == BATCH
    read, received = split_batch(frame)
    assert (read, bytes(received)) == (header, body)


@given(
    which=st.sampled_from(ENCODED),
    changes=st.lists(st.tuples(st.integers(0, 5000), st.integers(0, 255)), max_size=8),
    keep=st.integers(0, 5000),
)
def test_a_damaged_batch_is_refused_or_valid(
    which: tuple[pa.Schema, bytes], changes: list[tuple[int, int]], keep: int
) -> None:
    schema, body = which
    data = bytearray(body)
    for at, value in changes:
        data[at % len(data)] = value
    if keep < len(data) // 2:
        del data[len(data) - keep :]
    try:
        batch = decode_batch(bytes(data), schema, LIMIT)
    except PeerError:
        return
    # Whatever was accepted can be used: a crash here would end the member.
    assert batch.num_rows <= LIMIT
    assert len(batch.to_pydict()) == len(schema)


@given(data=st.binary(max_size=300))
@example(data=b"")
def test_any_bytes_are_a_batch_or_refused(data: bytes) -> None:
    for schema, _ in ENCODED[::3]:
        try:
            batch = decode_batch(data, schema, LIMIT)
        except PeerError:
            continue
        batch.validate(full=True)


@given(
    changes=st.lists(st.tuples(st.integers(0, 5000), st.integers(0, 255)), min_size=1, max_size=6),
    batch=st.sampled_from(BATCHES),
)
def test_a_damaged_schema_is_refused_or_usable(changes: list[tuple[int, int]], batch: pa.RecordBatch) -> None:
    data = bytearray(encode_schema(batch.schema))
    for at, value in changes:
        data[at % len(data)] = value
    try:
        schema = decode_schema(bytes(data))
    except PeerError:
        return
    assert len(encode_schema(schema)) > 0


@given(value=values(2**63 - 1))
def test_any_value_travels_or_is_refused(value: object) -> None:
    try:
        wire = to_value(value, "parameter 1")
    except UserError:
        return
    assert repr(from_value(wire)) == repr(value)


@given(
    kind=st.text(max_size=20) | st.sampled_from(["int", "date", "array<int>", "decimal(3,2)", "timestamp"]),
    value=MSGPACK,
)
def test_any_wire_value_is_read_or_refused(kind: str, value: object) -> None:
    try:
        read = from_value(Value(kind, value))
    except PeerError:
        return
    assert value is None or read is not None

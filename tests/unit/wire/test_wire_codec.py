"""Schemas and batches: what travels arrives equal, and what is broken or too large is refused before it is used."""

from __future__ import annotations

import datetime as dt
import os
import struct
from collections.abc import Callable
from decimal import Decimal

import pyarrow as pa
import pytest
from pyarrow import ipc

from skerry.model.errors import InternalError, PeerError
from skerry.wire.codec import (
    CODECS,
    decode_batch,
    decode_schema,
    decoded_bytes,
    encode_batch,
    encode_schema,
    plain_schema,
    recode_batch,
)

LIMIT = 1 << 24

BATCH = pa.record_batch(
    {
        "i": pa.array([1, None, 3], pa.int32()),
        "d": pa.array([Decimal("1.50"), None, Decimal("-2.25")], pa.decimal128(15, 2)),
        "f": pa.array([float("nan"), -0.0, None]),
        "s": pa.array(["blåbær", None, ""]),
        "b": pa.array([b"\x00", None, b""]),
        "t": pa.array([dt.datetime(2024, 1, 1), None, dt.datetime(1969, 1, 1)], pa.timestamp("us", "UTC")),
        "day": pa.array([dt.date(2024, 2, 29), None, dt.date(1, 1, 1)]),
        "l": pa.array([["a"], None, []], pa.list_(pa.string())),
        "m": pa.array([[("k", 1)], None, []], pa.map_(pa.string(), pa.int64())),
        "st": pa.array([{"x": 1}, None, {"x": None}], pa.struct([("x", pa.int8())])),
        "n": pa.nulls(3),
    }
)


@pytest.mark.parametrize("codec", ["", "lz4", "zstd"])
def test_batches_arrive_equal(codec: str) -> None:
    schema = decode_schema(encode_schema(BATCH.schema))
    assert schema == BATCH.schema
    decoded = decode_batch(encode_batch(BATCH, codec), schema, LIMIT)
    # NaN is not equal to itself, so the text is compared.
    assert str(decoded.to_pylist()) == str(BATCH.to_pylist())


def test_a_slice_sends_only_its_rows() -> None:
    batch = pa.record_batch({"x": pa.array(range(100_000)), "s": ["x" * 10] * 100_000}).slice(500, 10)
    body = encode_batch(batch)
    assert body.size < 2000
    assert decoded_bytes(batch) < 2000
    assert decode_batch(body, batch.schema, 2000).equals(batch)


def test_views_and_dictionaries_travel_as_plain_types() -> None:
    batch = pa.record_batch(
        {
            "v": pa.array(["a", "b" * 50, None]).cast(pa.string_view()),
            "k": pa.array(["x", "y", "x"]).dictionary_encode(),
        }
    )
    schema = decode_schema(encode_schema(batch.schema))
    assert schema.types == [pa.string(), pa.string()]
    assert decode_batch(encode_batch(batch), schema, LIMIT).to_pylist() == batch.to_pylist()


def test_metadata_does_not_make_equal_schemas_differ() -> None:
    schema = pa.schema([pa.field("x", pa.int64(), metadata={"a": "b"})], metadata={"c": "d"})
    assert encode_schema(schema) == encode_schema(pa.schema([("x", pa.int64())]))


def test_types_that_never_travel_are_refused() -> None:
    union = pa.schema([("u", pa.dense_union([pa.field("a", pa.int8())]))])
    with pytest.raises(InternalError, match="cannot travel"):
        plain_schema(union)
    for schema in (union, pa.schema([("v", pa.string_view())]), pa.schema([("l", pa.list_(pa.binary_view()))])):
        with pytest.raises(PeerError, match="never travels"):
            decode_schema(bytes(schema.serialize()))


def test_broken_schemas_are_refused() -> None:
    good = encode_schema(BATCH.schema)
    for data in (b"", b"\xff" * 100, good[: len(good) // 2], bytes(encode_batch(BATCH))):
        with pytest.raises(PeerError):
            decode_schema(data)


def test_a_compressed_bomb_is_refused_before_it_is_unpacked() -> None:
    bomb = pa.record_batch({"s": [b"\x00" * 50_000_000]})
    body = encode_batch(bomb, "zstd")
    assert body.size < 10_000
    before = pa.total_allocated_bytes()
    with pytest.raises(PeerError, match="decoded size is over the limit of 1000000 bytes"):
        decode_batch(body, bomb.schema, 1_000_000)
    assert pa.total_allocated_bytes() - before < 1_000_000


def test_a_lie_about_the_unpacked_size_is_refused() -> None:
    batch = pa.record_batch({"s": [b"\x00" * 5_000_000]})
    body = bytearray(bytes(encode_batch(batch, "zstd")))
    at = body.rindex(struct.pack("<q", 5_000_000))  # the first is an offset, the last the length of the packed bytes
    for lie in (10, 6_000_000, -7, 2**62):
        body[at : at + 8] = struct.pack("<q", lie)
        with pytest.raises(PeerError):
            decode_batch(bytes(body), batch.schema, 10_000_000)


def test_endless_rows_of_nothing_are_refused() -> None:
    for batch in (pa.record_batch([pa.nulls(10**9)], ["n"]), pa.record_batch([pa.nulls(10**9, pa.null())], ["n"])):
        with pytest.raises(PeerError, match="values are over the limit"):
            decode_batch(encode_batch(batch), batch.schema, LIMIT)


def test_other_messages_and_other_schemas_are_refused() -> None:
    with pytest.raises(PeerError, match="schema message"):
        decode_batch(encode_schema(BATCH.schema), BATCH.schema, LIMIT)
    with pytest.raises(PeerError):
        decode_batch(encode_batch(BATCH), pa.schema([("a", pa.string()), ("b", pa.int64())] * 8), LIMIT)


def test_invalid_offsets_are_refused() -> None:
    offsets = pa.py_buffer(struct.pack("<3i", 0, 2**30, 5))
    array = pa.StringArray.from_buffers(2, offsets, pa.py_buffer(b"hello"))
    body = pa.record_batch([pa.array(["ab", "c"])], ["s"]).serialize()
    raw = bytearray(bytes(body))
    at = raw.index(struct.pack("<3i", 0, 2, 3))
    raw[at : at + 12] = struct.pack("<3i", 0, 2**30, 5)
    assert len(array) == 2
    with pytest.raises(PeerError, match="not an Arrow record batch"):
        decode_batch(bytes(raw), pa.schema([("s", pa.string())]), LIMIT)


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()], ids=str)
@pytest.mark.parametrize(
    "text", [b"plain letters", "blåbær, tyttebær".encode(), b"cut in a letter \xc3", b"\xff\xfe\xfd"]
)
def test_texts_are_refused_exactly_where_arrow_refuses_them(kind: pa.DataType, text: bytes) -> None:
    size, three = len(text), "<3i" if kind == pa.string() else "<3q"
    schema = pa.schema([("s", kind)])
    good = bytes(encode_batch(pa.record_batch([pa.array(["x" * (size - 1), "x"], kind)], schema=schema)))
    outcomes = []
    for cuts in ((0, 3, size), (0, size, size), (0, 5, 1), (0, size, size + 99), (-1, 0, size), (2, 4, size - 1)):
        body = good.replace(b"x" * size, text).replace(struct.pack(three, 0, size - 1, size), struct.pack(three, *cuts))
        arrow = _outcome(lambda body=body: ipc.read_record_batch(pa.py_buffer(body), schema).validate(full=True))
        ours = _outcome(lambda body=body: decode_batch(body, schema, LIMIT))
        assert ours == arrow, cuts
        outcomes.append(ours)
    assert outcomes[2:5] == ["refused"] * 3  # the offsets are wrong
    assert ("right" in outcomes) == (text != b"\xff\xfe\xfd")


def _outcome(work: Callable[[], object]) -> str:
    try:
        work()
    except (pa.ArrowInvalid, PeerError):
        return "refused"
    return "right"


def test_misaligned_bodies_are_decoded() -> None:
    body = bytes(encode_batch(BATCH))
    for shift in range(1, 8):
        data = memoryview(bytes(shift) + body)[shift:]
        assert decode_batch(data, BATCH.schema, LIMIT).num_rows == 3


def test_batches_without_columns_keep_their_rows() -> None:
    batch = pa.record_batch({"x": [1, 2, 3]}).select([])
    body = encode_batch(batch)
    assert ipc.read_message(body).type == "record batch"
    assert decode_batch(body, pa.schema([]), LIMIT).num_rows == batch.num_rows


def test_a_message_is_compressed_as_it_leaves_only_if_that_helps() -> None:
    schema = pa.schema([("text", pa.string()), ("number", pa.int64())])
    dull = pa.record_batch([["same"] * 5000, list(range(5000))], schema=schema)
    raw = encode_batch(dull)
    packed = recode_batch(raw, schema, "zstd")
    assert len(packed) < len(raw) / 2
    assert decode_batch(packed, schema, 1 << 20, len(raw)).equals(dull)
    assert recode_batch(packed, schema, "lz4") is packed, "a relay passes on what is compressed already"
    noise = pa.record_batch([pa.array([os.urandom(64) for _ in range(100)], pa.binary())], names=["noise"])
    body = encode_batch(noise)
    assert recode_batch(body, noise.schema, "lz4") is body


@pytest.mark.parametrize("codec", CODECS)
def test_a_batch_may_not_take_more_than_was_paid_for(codec: str) -> None:
    batch = pa.record_batch([pa.array([0] * 100_000, pa.int64())], names=["zero"])
    raw = encode_batch(batch)
    body = encode_batch(batch, codec)
    assert decode_batch(body, batch.schema, 1 << 30, len(raw)).num_rows == 100_000
    if codec:  # else its bytes are all there already
        with pytest.raises(PeerError, match="decodes to 800000 bytes and was counted as 799999"):
            decode_batch(body, batch.schema, 1 << 30, 799_999)

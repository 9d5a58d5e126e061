"""Frames: what is written is read, in any pieces, and garbage is refused before it costs anything."""

from __future__ import annotations

import os
import struct

import pyarrow as pa
import pytest

from skerry.model.errors import PeerError
from skerry.model.ids import QueryId
from skerry.model.results import Page
from skerry.wire.client_messages import ClientPage, ClientRows
from skerry.wire.codec import decode_batch, encode_batch
from skerry.wire.frames import (
    BATCH,
    HEADER,
    HEADER_BYTES,
    NUMBERED,
    Buffer,
    Frame,
    FrameReader,
    decode,
    decode_numbered,
    encode_batch_frame,
    encode_frame,
    encode_message,
    encode_numbered,
    split_batch,
)
from skerry.wire.kinds import KIND_OF, KINDS
from skerry.wire.messages import Batch, Check, Goodbye, Grant, Hello, Ping, Receipt

LIMIT = 1 << 20


def joined(parts: list[Buffer]) -> bytes:
    return b"".join(bytes(part) for part in parts)


def feed(reader: FrameReader, data: bytes, piece: int = 1 << 30) -> list[Frame]:
    frames: list[Frame] = []
    at = 0
    while at < len(data):
        buffer = reader.get_buffer(-1)
        count = min(len(buffer), piece, len(data) - at)
        buffer[:count] = data[at : at + count]
        reader.buffer_updated(count)
        at += count
        frames += reader.frames() if reader.error is None else []
    return frames


@pytest.mark.parametrize("piece", [1, 7, 4096, 1 << 30])
def test_frames_are_read_in_any_pieces(piece: int) -> None:
    large = os.urandom(100_000 if piece > 1 else 40_000)
    header = Batch(3, 1, False, 10, len(large), 5)
    stream = (
        joined(encode_message(Ping(4))) + joined(encode_batch_frame(header, large)) + joined(encode_message(Goodbye()))
    )
    reader = FrameReader(LIMIT)
    ping, batch, goodbye = feed(reader, stream, piece)
    assert decode(ping) == Ping(4)
    read, body = split_batch(batch)
    assert (read, bytes(body)) == (header, large)
    assert decode(goodbye) == Goodbye()
    assert reader.at_boundary


def test_the_body_of_a_large_batch_is_aligned_and_not_copied_into_its_frame() -> None:
    import pyarrow as pa

    body = os.urandom(200_000)
    parts = encode_batch_frame(Batch(0, 0, False, 1, len(body), 0), body)
    assert parts[-1] is body
    (frame,) = feed(FrameReader(LIMIT), joined(parts))
    assert pa.py_buffer(split_batch(frame)[1]).address % 64 == 0


def test_the_small_parts_of_a_page_are_written_with_their_neighbours() -> None:
    bodies = tuple(memoryview(os.urandom(size)) for size in (50_000, 100, 60_000))
    page = ClientPage(1, Page(0, bodies, 3, True))
    parts = encode_message(page)
    assert [len(memoryview(part)) for part in parts][1::2] == [50_000, 60_000]
    assert len(parts) == 5
    (frame,) = feed(FrameReader(LIMIT), joined(parts))
    read = decode(frame)
    assert isinstance(read, ClientPage)
    assert read.page is not None
    assert [bytes(body)[: len(sent)] for body, sent in zip(read.page.batches, bodies, strict=True)] == list(bodies)


def test_payloads_stay_valid_while_more_is_read() -> None:
    reader = FrameReader(LIMIT)
    small, large = os.urandom(100), os.urandom(50_000)
    first = feed(reader, joined(encode_frame(BATCH, small)) + joined(encode_frame(BATCH, large)))
    feed(reader, joined(encode_frame(BATCH, os.urandom(50_000))) * 3)
    assert [bytes(frame.payload) for frame in first] == [small, large]


def test_a_length_over_the_limit_is_refused_from_the_header_alone() -> None:
    reader = FrameReader(1000)
    feed(reader, HEADER.pack(1001, KIND_OF[Hello], 0))
    with pytest.raises(PeerError, match="Hello: a frame of 1001 bytes is over the limit of 1000"):
        reader.frames()
    for _ in range(20):  # there is always somewhere to put what nobody will look at
        reader.buffer_updated(len(reader.get_buffer()))
    assert len(reader.get_buffer()) > 0


def test_the_limit_can_be_raised() -> None:
    reader = FrameReader(10)
    reader.limit_bytes = 1000
    assert len(feed(reader, joined(encode_frame(BATCH, bytes(500))))) == 1


@pytest.mark.parametrize("size", [10, 100_000])
def test_a_bad_checksum_is_refused(size: int) -> None:
    data = bytearray(joined(encode_frame(BATCH, bytes(size))))
    data[-1] ^= 1
    reader = FrameReader(LIMIT)
    feed(reader, bytes(data))
    with pytest.raises(PeerError, match="checksum"):
        reader.frames()


def test_frames_before_the_garbage_are_delivered_first() -> None:
    reader = FrameReader(LIMIT)
    data = joined(encode_message(Ping(1))) + b"GET / HTTP/1.1\r\n\r\n"
    buffer = reader.get_buffer()
    buffer[: len(data)] = data
    reader.buffer_updated(len(data))
    assert [decode(frame) for frame in reader.frames()] == [Ping(1)]
    with pytest.raises(PeerError, match="unknown kind"):
        reader.frames()


def test_at_boundary_is_false_inside_header_and_payload() -> None:
    data = joined(encode_message(Ping(1)))
    for cut in range(1, len(data)):
        reader = FrameReader(LIMIT)
        feed(reader, data[:cut])
        assert not reader.at_boundary


def test_control_messages_carry_their_number() -> None:
    message = Receipt(QueryId("oslo", "ab" * 16), "bergen")
    (frame,) = feed(FrameReader(LIMIT), joined(encode_numbered(2**40, message)))
    assert frame.kind in NUMBERED
    assert decode_numbered(frame) == (2**40, message)
    with pytest.raises(PeerError, match="number"):
        decode_numbered(Frame(KIND_OF[Check], b"short"))


def test_fields_of_a_newer_release_are_ignored() -> None:
    import msgspec

    payload = msgspec.msgpack.encode([7, 9, "new", {"field": 1}])
    assert decode(Frame(KIND_OF[Grant], payload)) == Grant(7, 9)


def test_a_missing_field_or_a_wrong_type_is_refused() -> None:
    import msgspec

    for payload in (b"", b"\xc1", msgspec.msgpack.encode([7]), msgspec.msgpack.encode(["7", 9])):
        with pytest.raises(PeerError, match="Grant"):
            decode(Frame(KIND_OF[Grant], payload))


def test_deep_nesting_is_refused_and_does_not_crash() -> None:
    nested = b"\x91" * 200_000
    for kind in KINDS:
        with pytest.raises(PeerError):
            decode(Frame(kind, nested))


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        (b"", "before its header"),
        (struct.pack(">H", 50) + b"x", "a header of 50 bytes"),
        (bytes(joined(encode_batch_frame(Batch(-1, 0, False, 0, 0, 0))))[HEADER_BYTES:], "negative"),
        (bytes(joined(encode_batch_frame(Batch(0, 0, False, 5, 0, 0))))[HEADER_BYTES:], "5 rows in 0 bytes"),
        (bytes(joined(encode_batch_frame(Batch(0, 0, False, 0, 0, 0), b"abc")))[HEADER_BYTES:], "0 rows in 3 bytes"),
    ],
)
def test_batch_frames_that_make_no_sense_are_refused(payload: bytes, reason: str) -> None:
    with pytest.raises(PeerError, match=reason):
        split_batch(Frame(BATCH, payload))


@pytest.mark.parametrize("count", [0, 1, 2, 40])
def test_a_page_is_written_without_a_copy_and_reads_as_any_message(count: int) -> None:
    batches = tuple(memoryview(bytes([number]) * (number * 70_000)) for number in range(count))
    page = ClientPage(70_000, Page(3, batches, 1 << 40, count == 2))
    parts = encode_message(page)
    (frame,) = feed(FrameReader(1 << 30), joined(parts))
    read = decode(frame)
    assert isinstance(read, ClientPage)
    assert read.page is not None
    assert (read.request, read.page.number, read.page.rows, read.page.is_last) == (70_000, 3, 1 << 40, count == 2)
    # Three bytes follow each, to which Arrow is blind.
    assert [bytes(batch) for batch in read.page.batches] == [bytes(batch) + bytes(3) for batch in batches]
    assert all(any(part is batch for part in parts) for batch in batches if batch.nbytes > 1 << 20)


def test_the_batches_of_a_page_lie_where_arrow_needs_no_copy_of_them() -> None:
    rows = pa.record_batch([pa.array(range(50_000)), pa.array(map(str, range(50_000)))], names=["n", "t"])
    body = encode_batch(rows)
    for request, number in ((1, 0), (70_000, 300), (1 << 40, 1 << 33)):
        page = ClientPage(request, Page(number, (memoryview(body),) * 5, 250_000, False))
        (frame,) = feed(FrameReader(1 << 30), joined(encode_message(page)))
        read = decode(frame)
        assert isinstance(read, ClientPage)
        assert read.page is not None
        for batch in read.page.batches:
            assert pa.py_buffer(batch).address % 8 == 0
            assert decode_batch(batch, rows.schema, 1 << 30).equals(rows)


@pytest.mark.parametrize(
    ("schema", "piece", "is_aligned"),
    [(b"", 1 << 30, True), (b"\xc6" * 40, 1 << 30, True), (bytes(50_000), 1 << 30, False), (b"", 13, False)],
)
def test_rows_that_are_loaded_are_a_view_of_their_frame(schema: bytes, piece: int, is_aligned: bool) -> None:
    rows = pa.record_batch([pa.array(range(9_000)), pa.array(map(str, range(9_000)))], names=["n", "t"])
    for request, number in ((1, 0), (70_000, 300), (1 << 40, 1 << 33)):
        query = QueryId("oslo", "q" * (number % 7 + 1))
        sent = ClientRows(request, query, number, schema, memoryview(encode_batch(rows)).cast("B"), number == 300)
        (frame,) = feed(FrameReader(1 << 30), joined(encode_message(sent)), piece)
        read = decode(frame)
        assert isinstance(read, ClientRows)
        assert read == sent
        assert decode_batch(read.rows, rows.schema, 1 << 30).equals(rows)
        address, first = pa.py_buffer(read.rows).address, pa.py_buffer(frame.payload).address
        assert 0 < address - first < len(frame.payload), "they are where they came"
        assert not is_aligned or address % 64 == 0

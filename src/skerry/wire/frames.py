"""Frames (docs/protocol.md, 1): bytes to frames and back, without any socket.

Encoders return lists of buffers, so that a large batch is never copied into its frame.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeAlias

import msgspec
import pyarrow as pa
import xxhash

from skerry.model.errors import Overloaded, PeerError
from skerry.model.results import Page
from skerry.wire.client_messages import ClientPage, ClientRows
from skerry.wire.kinds import KIND_OF, KINDS
from skerry.wire.messages import Batch, Message

Buffer: TypeAlias = bytes | bytearray | memoryview | pa.Buffer

HEADER = struct.Struct(">IBI")
HEADER_BYTES = HEADER.size
BATCH = KIND_OF[Batch]
_PAGE = KIND_OF[ClientPage]
_ROWS = KIND_OF[ClientRows]
# Control messages that are numbered, acked and resent: all of section 2 but the heartbeats.
NUMBERED = frozenset(kind for kind in KINDS if 12 <= kind < 40 or 50 <= kind < 60 or 100 <= kind < 140)

_SEQ = struct.Struct(">Q")
_HEAD32 = struct.Struct(">BI")  # a msgpack type byte and a 32-bit length
_ROWS_HEAD = b"\xc6"  # the head of msgpack's bin 32
_NO_ROWS = memoryview(b"")
_PAGE_LEAD = 30  # bytes of a ClientPage before its first batch
_PAGE_PAD = bytes(3)  # with the five of the next batch's head eight; Arrow does not look behind its message
_BATCH_PREFIX = struct.Struct(">H")
_SCRATCH_BYTES = 32 * 1024
_POOL = pa.system_memory_pool()
_JOIN_BYTES = 16 * 1024  # below this one copy is cheaper than one more buffer to write
_ALIGNMENT_BYTES = 64


class _Decoders(dict[int, msgspec.msgpack.Decoder[Message]]):
    """A kind's decoder, made at its first message: a client, or a Spark task, meets few of them."""

    def __missing__(self, kind: int) -> msgspec.msgpack.Decoder[Message]:
        decoder = self[kind] = msgspec.msgpack.Decoder(KINDS[kind])
        return decoder


_encoder = msgspec.msgpack.Encoder()
_decoders = _Decoders()
# Besides its own errors msgspec lets these through: depth, map keys that cannot be hashed, dates out of range.
_DECODE_ERRORS = (msgspec.MsgspecError, RecursionError, ValueError, TypeError, OverflowError)


class ConnectionLost(PeerError):
    """The stream was reset or ended inside a frame: what was under way may be resumed on a new connection."""


class Frame(NamedTuple):
    """One frame; `payload` is its own memory and stays valid."""

    kind: int
    payload: memoryview | bytes

    @property
    def size_bytes(self) -> int:
        return HEADER_BYTES + len(self.payload)


def checksum(parts: Sequence[Buffer]) -> int:
    """The low 32 bits of XXH3-64 over all parts."""
    if len(parts) == 1:
        return xxhash.xxh3_64_intdigest(parts[0]) & 0xFFFFFFFF
    digest = xxhash.xxh3_64()
    for part in parts:
        digest.update(part)
    return digest.intdigest() & 0xFFFFFFFF


def size_of(parts: Sequence[Buffer]) -> int:
    """Bytes of all parts together."""
    return sum([len(part) if type(part) is bytes else memoryview(part).nbytes for part in parts])


def encode_frame(kind: int, *parts: Buffer) -> list[Buffer]:
    """The buffers of one frame, in order; large parts are not copied."""
    length = size_of(parts)
    if length > 0xFFFFFFFF:
        raise Overloaded(f"a frame of {length} bytes is larger than any frame can be")
    header = HEADER.pack(length, kind, checksum(parts))
    if length <= _JOIN_BYTES:
        return [b"".join((header, *parts))]
    return _joined([header, *parts])


def _joined(parts: Sequence[Buffer]) -> list[Buffer]:
    """The same bytes, small neighbours in one: a loop may write each buffer by itself, and each wakes the reader."""
    joined: list[Buffer] = []
    small: list[Buffer] = []
    for part in parts:
        if size_of((part,)) <= _JOIN_BYTES:
            small.append(part)
            continue
        joined += [b"".join(small), part] if small else [part]
        small = []
    return [*joined, b"".join(small)] if small else joined


def encode_message(message: Message) -> list[Buffer]:
    """A message without number (all but the control messages, which need `encode_numbered`)."""
    if isinstance(message, ClientPage) and message.page is not None and message.error is None:
        return encode_frame(KIND_OF[ClientPage], *_page_parts(message.request, message.page))
    if isinstance(message, ClientRows) and message.rows:
        return encode_frame(KIND_OF[ClientRows], *_rows_parts(message))
    return encode_frame(KIND_OF[type(message)], _encoder.encode(message))


def _rows_parts(message: ClientRows) -> Iterator[Buffer]:
    """What msgspec would write, but the rows stay where they are: they are all but some bytes of it."""
    head = _encoder.encode(msgspec.structs.replace(message, rows=_NO_ROWS))
    assert head[-3:-1] == b"\xc4\x00"  # no bytes, then whether these are the last
    yield head[:-3]
    yield _HEAD32.pack(_ROWS_HEAD[0], size_of((message.rows,)))
    yield message.rows
    yield head[-1:]


def _page_parts(request: int, page: Page) -> Iterator[Buffer]:
    """What msgspec would write of a ClientPage, but the batches stay where they are: pages are most of the bytes.

    Numbers have eight bytes here, and three follow each batch, so that all batches of a page lie as its first does
    (`_PAGE_LEAD`): a receiver that places the payload well need not copy them.
    """
    yield b"".join((b"\x93\xcf", _SEQ.pack(request), b"\x94\xcf", _SEQ.pack(page.number)))
    yield _HEAD32.pack(0xDD, len(page.batches))
    for batch in page.batches:
        yield _HEAD32.pack(0xC6, size_of((batch,)) + len(_PAGE_PAD))  # the head of msgpack's bin 32
        yield batch
        yield _PAGE_PAD
    yield b"".join((_encoder.encode(page.rows), _encoder.encode(page.is_last), b"\xc0"))


def encode_numbered(seq: int, message: Message) -> list[Buffer]:
    """A control message with its number."""
    return encode_frame(KIND_OF[type(message)], _SEQ.pack(seq), _encoder.encode(message))


def encode_batch_frame(header: Batch, body: Buffer = b"") -> list[Buffer]:
    """A batch frame; `body` is one Arrow IPC message, empty when the header says no rows."""
    head = _encoder.encode(header)
    prefix = _BATCH_PREFIX.pack(len(head)) + head
    return encode_frame(BATCH, prefix, body)


def decode(frame: Frame) -> Message:
    """The message in a frame; of a batch frame the header only (see `split_batch`)."""
    if frame.kind == BATCH:
        return split_batch(frame)[0]
    return _decode(frame.kind, frame.payload)


def decode_numbered(frame: Frame) -> tuple[int, Message]:
    """A control message and its number."""
    if len(frame.payload) < _SEQ.size:
        raise PeerError(f"{_name(frame.kind)}: the frame ends inside the message's number")
    (seq,) = _SEQ.unpack_from(frame.payload)
    return seq, _decode(frame.kind, memoryview(frame.payload)[_SEQ.size :])


def split_batch(frame: Frame) -> tuple[Batch, memoryview]:
    """Header and body of a batch frame; the body is neither copied nor checked (see codec.decode_batch)."""
    payload = memoryview(frame.payload)
    if frame.kind != BATCH:
        raise PeerError(f"a batch was due, {_name(frame.kind)} came")
    if len(payload) < _BATCH_PREFIX.size:
        raise PeerError("Batch: the frame ends before its header")
    (head_bytes,) = _BATCH_PREFIX.unpack_from(payload)
    body_at = _BATCH_PREFIX.size + head_bytes
    if body_at > len(payload):
        raise PeerError(f"Batch: a header of {head_bytes} bytes in a frame of {len(payload)}")
    header = _decode(BATCH, payload[_BATCH_PREFIX.size : body_at])
    assert isinstance(header, Batch)
    if min(header.seq, header.lane, header.rows, header.decoded_bytes) < 0:
        raise PeerError(f"Batch: a negative number in {header}")
    body = payload[body_at:]
    if (header.rows == 0) != (len(body) == 0):
        raise PeerError(f"Batch: {header.rows} rows in {len(body)} bytes")
    return header, body


class FrameReader:
    """Cuts a byte stream into frames; large payloads are received straight into their own memory.

    Fill what `get_buffer` returns, say how much with `buffer_updated`, then take `frames()`.
    """

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes  # raised after login
        self.error: PeerError | None = None
        self._scratch = memoryview(bytearray(_SCRATCH_BYTES))
        self._start = 0  # unread bytes are scratch[start:end]
        self._end = 0
        self._frames: list[Frame] = []
        self._large: memoryview | None = None  # a payload being received, from `_filled` on
        self._filled = 0
        self._header = (0, 0, 0)

    @property
    def at_boundary(self) -> bool:
        """Whether the stream may end here."""
        return self._large is None and self._start == self._end

    def get_buffer(self, size_hint: int = -1) -> memoryview:
        """Memory for the next bytes received; never empty."""
        if self.error is not None:
            return self._scratch  # for what nobody will look at
        if self._large is not None:
            return self._large[self._filled :]
        return self._scratch[self._end :]

    def buffer_updated(self, count: int) -> None:
        """`count` bytes were received into the last `get_buffer()`. What is wrong shows in `error`."""
        if self.error is not None:
            return  # the rest of a broken stream means nothing
        try:
            if self._large is not None:
                self._filled += count
                if self._filled == len(self._large):
                    payload, self._large = self._large, None
                    self._complete(payload)
            else:
                self._end += count
                self._parse()
        except PeerError as error:
            self.error = error

    def frames(self) -> list[Frame]:
        """Frames completed since the last call. Raises the stream's PeerError once none are left before it."""
        if not self._frames and self.error is not None:
            raise self.error
        frames, self._frames = self._frames, []
        return frames

    def _parse(self) -> None:
        while self._large is None and self._end - self._start >= HEADER_BYTES:
            self._header = length, kind, _ = HEADER.unpack_from(self._scratch, self._start)
            if kind not in KINDS:
                raise PeerError(f"frame of unknown kind {kind} (is the other side a Skerry member?)")
            if length > self.limit_bytes:
                raise PeerError(f"{_name(kind)}: a frame of {length} bytes is over the limit of {self.limit_bytes}")
            payload_at = self._start + HEADER_BYTES
            have = self._end - payload_at
            if have >= length:
                self._start = payload_at + length
                self._complete(bytes(self._scratch[payload_at : self._start]))
            elif HEADER_BYTES + length <= _SCRATCH_BYTES:
                break
            elif kind == BATCH and have < _BATCH_PREFIX.size:
                break  # where the body begins decides how the payload is aligned
            else:
                self._large = self._allocate(kind, length, payload_at)
                self._large[:have] = self._scratch[payload_at : self._end]
                self._filled = have
                self._start = self._end
        self._compact()

    def _allocate(self, kind: int, length: int, payload_at: int) -> memoryview:
        """Memory for a large payload, placed so that the Arrow bodies in it are aligned and need no copy later."""
        lead = 0
        if kind == BATCH:
            (head_bytes,) = _BATCH_PREFIX.unpack_from(self._scratch, payload_at)
            lead = -(_BATCH_PREFIX.size + head_bytes) % _ALIGNMENT_BYTES
        elif kind == _PAGE:
            lead = -_PAGE_LEAD % _ALIGNMENT_BYTES
        elif kind == _ROWS:
            lead = -_rows_at(bytes(self._scratch[payload_at : self._end]), length) % _ALIGNMENT_BYTES
        # The system's pool gives the next frame the memory of one before, as it is. Arrow's own takes huge pages, which
        # the system clears: that was a fifth of the processor time of whoever received.
        return memoryview(pa.allocate_buffer(lead + length, _POOL)).cast("B")[lead:]

    def _compact(self) -> None:
        """Move the beginning of an unfinished frame to the front, so that the rest of it has room."""
        if self._start == self._end:
            self._start = self._end = 0
        elif self._start > 0:
            rest = bytes(self._scratch[self._start : self._end])
            self._scratch[: len(rest)] = rest
            self._start, self._end = 0, len(rest)

    def _complete(self, payload: memoryview | bytes) -> None:
        _, kind, stated = self._header
        found = checksum((payload,))
        if found != stated:
            raise PeerError(f"{_name(kind)}: checksum {found:08x} where the frame says {stated:08x}")
        self._frames.append(Frame(kind, payload))


def _rows_at(head: bytes, length: int) -> int:
    """Where rows begin in such a payload of `length` bytes: behind their own length, as one byte follows them. 0 if the
    first bytes do not tell, as where a long schema comes before; then whoever decodes the rows copies them."""
    at = head.find(_ROWS_HEAD)
    while 0 <= at <= len(head) - _HEAD32.size:
        rows_at = at + _HEAD32.size
        if _HEAD32.unpack_from(head, at)[1] == length - rows_at - 1:
            return rows_at
        at = head.find(_ROWS_HEAD, at + 1)
    return 0


def _name(kind: int) -> str:
    return KINDS[kind].__name__ if kind in KINDS else f"kind {kind}"


def _decode(kind: int, payload: memoryview | bytes) -> Message:
    try:
        return _decoders[kind].decode(payload)
    except KeyError:
        raise PeerError(f"frame of unknown kind {kind}") from None
    except _DECODE_ERRORS as error:
        raise PeerError(f"{_name(kind)}: not a message: {error}") from None

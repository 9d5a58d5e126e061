"""Arrow schemas and batches as they travel: one IPC message each, checked before anything touches its values."""

from __future__ import annotations

import functools
import struct

import pyarrow as pa
from pyarrow import ipc

from skerry.model.errors import InternalError, PeerError
from skerry.model.limits import SCHEMA_KEPT_BYTES, SCHEMAS_KEPT
from skerry.wire.frames import Buffer

CODECS = ("", "lz4", "zstd")
_ALIGNMENT_BYTES = 8
# Arrow raises these on broken messages; a size that cannot be had is a broken message too.
_ARROW_ERRORS = (pa.ArrowException, EOFError, OSError, ValueError, TypeError, OverflowError, MemoryError, KeyError)
_PLAIN_TYPES = frozenset(
    str(kind())
    for kind in (
        *(pa.null, pa.bool_, pa.int8, pa.int16, pa.int32, pa.int64, pa.uint8, pa.uint16, pa.uint32, pa.uint64),
        *(pa.float16, pa.float32, pa.float64, pa.string, pa.large_string, pa.binary, pa.large_binary),
        *(pa.date32, pa.date64, pa.month_day_nano_interval),
    )
)


def encode_schema(schema: pa.Schema) -> bytes:
    """One IPC message; views and dictionaries become the plain types `encode_batch` sends, metadata is dropped."""
    return bytes(plain_schema(schema).serialize())


def decode_schema(data: Buffer) -> pa.Schema:
    """A schema from outside; PeerError when it is broken or has a type that never travels."""
    body = bytes(data)
    return _known_schema(body) if len(body) <= SCHEMA_KEPT_BYTES else _decoded_schema(body)


@functools.lru_cache(SCHEMAS_KEPT)
def _known_schema(body: bytes) -> pa.Schema:
    """Every link of every edge has one, and a query's next run has the same."""
    return _decoded_schema(body)


def _decoded_schema(body: bytes) -> pa.Schema:
    try:
        schema = ipc.read_schema(pa.py_buffer(body))
        for field in schema:
            if not _travels(field.type):
                raise PeerError(f"schema: column {field.name!r} has type {field.type}, which never travels")
        return plain_schema(schema)  # also looks at every name: they must be text
    except _ARROW_ERRORS as error:
        raise PeerError(f"schema: not an Arrow schema: {_first_line(error)}") from None


def encode_batch(batch: pa.RecordBatch, codec: str = "") -> pa.Buffer:
    """One IPC record batch message, with the types of `encode_schema`."""
    schema = plain_schema(batch.schema)
    if not schema.equals(batch.schema):
        batch = batch.cast(schema)
    return _compressed(batch, codec) if codec else batch.serialize()


def _compressed(batch: pa.RecordBatch, codec: str) -> pa.Buffer:
    # Only Arrow's streams know compression: write one, and cut the batch out between schema and end mark.
    stream = pa.BufferOutputStream()
    with ipc.new_stream(stream, batch.schema, options=ipc.IpcWriteOptions(compression=codec)) as writer:
        writer.write_batch(batch)
    reader = pa.BufferReader(stream.getvalue())
    ipc.read_message(reader)
    start = reader.tell()
    ipc.read_message(reader)
    return stream.getvalue().slice(start, reader.tell() - start)


def recode_batch(body: Buffer, schema: pa.Schema, codec: str) -> Buffer:
    """A message of our own, compressed; as it is when it is compressed already, or would not become smaller."""
    message = ipc.read_message(pa.py_buffer(body))
    metadata = memoryview(message.metadata)
    if _field(metadata, _header(metadata), _BATCH_COMPRESSION):
        return body
    packed = _compressed(ipc.read_record_batch(message, schema), codec)
    return packed if packed.size < memoryview(body).nbytes else body


def decode_batch(
    data: Buffer, schema: pa.Schema, decoded_limit_bytes: int, counted_bytes: int | None = None
) -> pa.RecordBatch:
    """A batch from outside, fully validated; PeerError when it is broken or would take more than the limit.

    `counted_bytes` is what its sender paid for it in credits: it may not take more than that either.
    """
    buffer = pa.py_buffer(data)
    if buffer.address % _ALIGNMENT_BYTES:
        buffer = pa.py_buffer(bytes(buffer))
    try:
        message = ipc.read_message(buffer)
        if message.type != "record batch":
            raise PeerError(f"batch: an Arrow {message.type} message where a record batch was due")
        # Before decompression: five kilobytes of zstd can hold 160 megabytes (D12).
        body = memoryview(message.body or b"")
        _bound(memoryview(message.metadata), body, decoded_limit_bytes, counted_bytes)
        batch = ipc.read_record_batch(message, schema)
        _validate(batch)
    except _ARROW_ERRORS as error:
        raise PeerError(f"batch: not an Arrow record batch: {_first_line(error)}") from None
    return batch


def _validate(batch: pa.RecordBatch) -> None:
    """All that `validate(full=True)` asks for. Arrow looks at texts value by value; where all bytes of a column are
    ASCII, every cut makes a valid text, and its offsets are all that is left to look at."""
    batch.validate()  # lengths of buffers, before any is read
    for column in batch.columns:
        column = _as_binary(column) if _is_ascii(column) else column
        column.validate(full=True)


def _is_ascii(column: pa.Array) -> bool:
    """Whether these are texts of ASCII alone; what else the column's bytes hold counts too."""
    texts = column.buffers()[-1] if pa.types.is_string(column.type) or pa.types.is_large_string(column.type) else None
    if texts is None:
        return False
    try:
        str(memoryview(texts), "ascii")
    except UnicodeDecodeError:
        return False
    return True


def _as_binary(column: pa.Array) -> pa.Array:
    return column.view(pa.binary() if pa.types.is_string(column.type) else pa.large_binary())


def decoded_bytes(batch: pa.RecordBatch) -> int:
    """What a batch costs in credits: the bytes its rows take in memory."""
    return int(batch.nbytes)


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """The schema with only types that travel; equal schemas at every site encode to equal bytes."""
    return pa.schema([pa.field(field.name, _plain(field.type), field.nullable) for field in schema])


def _plain(kind: pa.DataType) -> pa.DataType:
    types = pa.types
    if types.is_dictionary(kind):
        return _plain(kind.value_type)
    if isinstance(kind, pa.BaseExtensionType):
        return _plain(kind.storage_type)
    if types.is_string_view(kind):
        return pa.string()
    if types.is_binary_view(kind) or types.is_fixed_size_binary(kind):
        return pa.binary()
    if types.is_list(kind) or types.is_list_view(kind) or types.is_fixed_size_list(kind):
        return pa.list_(_plain_field(kind.value_field))
    if types.is_large_list(kind) or types.is_large_list_view(kind):
        return pa.large_list(_plain_field(kind.value_field))
    if types.is_map(kind):
        return pa.map_(_plain_field(kind.key_field), _plain_field(kind.item_field))
    if types.is_struct(kind):
        return pa.struct([_plain_field(kind.field(index)) for index in range(kind.num_fields)])
    if not _travels(kind):
        raise InternalError(f"a column of Arrow type {kind} cannot travel")
    return kind


def _plain_field(field: pa.Field) -> pa.Field:
    return pa.field(field.name, _plain(field.type), field.nullable)


def _travels(kind: pa.DataType) -> bool:
    """Whether values of the type cost what their buffers say: no views, dictionaries or extensions."""
    types = pa.types
    if isinstance(kind, pa.BaseExtensionType):
        return False
    if types.is_list(kind) or types.is_large_list(kind):
        return _travels(kind.value_type)
    if types.is_map(kind):
        return _travels(kind.key_type) and _travels(kind.item_type)
    if types.is_struct(kind):
        return all(_travels(kind.field(index).type) for index in range(kind.num_fields))
    if types.is_decimal(kind) or types.is_timestamp(kind) or types.is_duration(kind) or types.is_time(kind):
        return True
    return str(kind) in _PLAIN_TYPES


def _first_line(error: BaseException) -> str:
    return (str(error) or type(error).__name__).splitlines()[0][:200]


# --- how large a record batch message will be, read from its flatbuffer ---------------------------
# Arrow allocates what a compressed buffer claims before anyone can ask, and a column of nulls may claim
# any number of rows: so the claims are read first. Arrow has verified the flatbuffer's offsets by then;
# struct.error covers what it has not.
_MESSAGE_HEADER, _BATCH_LENGTH, _BATCH_NODES, _BATCH_BUFFERS, _BATCH_COMPRESSION = 2, 0, 1, 2, 3


def _header(metadata: memoryview) -> int:
    (root,) = struct.unpack_from("<I", metadata)
    return _indirect(metadata, _field(metadata, root, _MESSAGE_HEADER))


def _bound(metadata: memoryview, body: memoryview, limit_bytes: int, counted_bytes: int | None) -> None:
    try:
        batch = _header(metadata)
        length_at = _field(metadata, batch, _BATCH_LENGTH)
        lengths = [struct.unpack_from("<q", metadata, length_at)[0]] if length_at else []
        lengths += [length for length, _ in _pairs(metadata, _field(metadata, batch, _BATCH_NODES))]
        if any(not 0 <= length <= limit_bytes for length in lengths):
            raise PeerError(f"batch: {max(lengths)} values are over the limit of {limit_bytes}")
        claimed = 0
        compressed = bool(_field(metadata, batch, _BATCH_COMPRESSION))
        for offset, length in _pairs(metadata, _field(metadata, batch, _BATCH_BUFFERS)):
            if offset < 0 or length < 0 or offset + length > len(body):
                raise PeerError("batch: a buffer lies outside its message")
            (unpacked,) = struct.unpack_from("<q", body, offset) if compressed and length else (length,)
            claimed += length if unpacked == -1 else unpacked
            if unpacked < -1 or claimed > limit_bytes:
                raise PeerError(f"batch: its decoded size is over the limit of {limit_bytes} bytes")
        if counted_bytes is not None and claimed > max(counted_bytes, len(body)):
            raise PeerError(f"batch: it decodes to {claimed} bytes and was counted as {counted_bytes}")
    except struct.error as error:
        raise PeerError(f"batch: broken metadata: {error}") from None


def _field(metadata: memoryview, table: int, index: int) -> int:
    """Where a field of a flatbuffer table lies; 0 when it is absent."""
    vtable = table - int(struct.unpack_from("<i", metadata, table)[0])
    if vtable < 0:
        raise PeerError("batch: broken metadata")
    size = int(struct.unpack_from("<H", metadata, vtable)[0])
    slot = 4 + 2 * index
    offset = int(struct.unpack_from("<H", metadata, vtable + slot)[0]) if slot + 2 <= size else 0
    return table + offset if offset else 0


def _indirect(metadata: memoryview, at: int) -> int:
    return at + int(struct.unpack_from("<I", metadata, at)[0])


def _pairs(metadata: memoryview, field: int) -> list[tuple[int, int]]:
    """A vector of structs of two i64 (Arrow's FieldNode and Buffer)."""
    if not field:
        return []
    vector = _indirect(metadata, field)
    (count,) = struct.unpack_from("<I", metadata, vector)
    if vector + 4 + 16 * count > len(metadata):
        raise PeerError("batch: broken metadata")
    return list(struct.iter_unpack("<qq", metadata[vector + 4 : vector + 4 + 16 * count]))

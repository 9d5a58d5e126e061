"""Primary keys as bytes: equal keys have equal bytes, and bytes compare as the keys do in Spark. Pure.

A whole number is 8 bytes in every integer type, a float is a double, a decimal has 38 digits on both sides of its point
in every decimal type: so a wider column has the same keys. -0.0 is 0.0; NaN is one value, and the greatest.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from skerry.model.errors import UserError

_SIGN = np.uint64(1 << 63)
_ALL = np.uint64((1 << 64) - 1)
_WIDEST = pa.decimal256(76, 38)


def encode_keys(names: Sequence[str], columns: Sequence[pa.Array]) -> list[bytes]:
    """One text of bytes for each row; UserError if a part of a key is NULL."""
    for name, column in zip(names, columns, strict=True):
        if column.null_count:
            raise UserError(
                f"column {name} is part of the primary key: it cannot be NULL", suggestion=f"give {name} a value"
            )
    parts = [_encode(column) for column in columns]
    return parts[0] if len(parts) == 1 else [b"".join(key) for key in zip(*parts, strict=True)]


def encode_whole(value: int) -> bytes:
    """The key of one whole number of at most 64 bits."""
    return (value + (1 << 63)).to_bytes(8, "big")


def _encode(column: pa.Array) -> list[bytes]:
    kind = column.type
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        # 00 ends a part, so that ("a", "b") is not ("ab", ""); a 00 inside is 00 FF, which is above the end.
        return [value.replace(b"\0", b"\0\xff") + b"\0\0" for value in column.cast(pa.binary()).to_pylist()]
    if pa.types.is_decimal(kind):
        return _decimals(column)
    if pa.types.is_floating(kind):
        bits = doubles(column).view(np.uint64)
        return _cut((bits ^ np.where(bits & _SIGN, _ALL, _SIGN)).astype(">u8").tobytes(), 8)
    return _cut((whole_numbers(column).view(np.uint64) ^ _SIGN).astype(">u8").tobytes(), 8)


def doubles(column: pa.Array) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Of a column without NULLs; one zero, one NaN."""
    values = column.cast(pa.float64()).to_numpy(zero_copy_only=False) + 0.0  # -0.0 + 0.0 = 0.0
    return np.where(np.isnan(values), np.float64("nan"), values)


def whole_numbers(column: pa.Array) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Of integers, booleans, dates (days) and timestamps (microseconds), without NULLs."""
    if pa.types.is_date(column.type):
        column = column.cast(pa.int32())
    elif pa.types.is_boolean(column.type):
        column = column.cast(pa.int8())
    values: np.ndarray[tuple[int], np.dtype[np.int64]] = column.cast(pa.int64()).to_numpy(zero_copy_only=False)
    return values


def _decimals(column: pa.Array) -> list[bytes]:
    wide = column.cast(_WIDEST)
    raw = np.frombuffer(wide.buffers()[1], dtype=np.uint8)[32 * wide.offset : 32 * (wide.offset + len(wide))]
    ordered = raw.reshape(-1, 32)[:, ::-1].copy()  # the greatest byte first
    ordered[:, 0] ^= 0x80
    return _cut(ordered.tobytes(), 32)


def _cut(raw: bytes, width: int) -> list[bytes]:
    return [raw[at : at + width] for at in range(0, len(raw), width)]


def decode_keys(kinds: Sequence[pa.DataType], keys: Sequence[bytes]) -> list[pa.Array]:
    """The columns of such keys; ValueError if they are none."""
    columns: list[list[bytes]] = [[] for _ in kinds]
    for key in keys:
        at = 0
        for kind, column in zip(kinds, columns, strict=True):
            upto = _end(kind, key, at)
            column.append(key[at:upto])
            at = upto
        if at != len(key):
            raise ValueError("bytes that are no key: some are left")
    return [_decode(kind, parts) for kind, parts in zip(kinds, columns, strict=True)]


def _end(kind: pa.DataType, key: bytes, at: int) -> int:
    if not (pa.types.is_string(kind) or pa.types.is_binary(kind)):
        upto = at + (32 if pa.types.is_decimal(kind) else 8)
        if upto > len(key):
            raise ValueError("bytes that are no key: some are missing")
        return upto
    while True:
        at = key.index(b"\0", at)
        if key[at : at + 2] == b"\0\0":
            return at + 2
        at += 2


def _decode(kind: pa.DataType, parts: list[bytes]) -> pa.Array:
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return pa.array([part[:-2].replace(b"\0\xff", b"\0") for part in parts], pa.binary()).cast(kind)
    raw = np.frombuffer(b"".join(parts), dtype=np.uint8)
    if pa.types.is_decimal(kind):
        wide = raw.reshape(-1, 32).copy()
        wide[:, 0] ^= 0x80
        buffer = pa.py_buffer(wide[:, ::-1].tobytes())
        return pa.Array.from_buffers(_WIDEST, len(parts), [None, buffer]).cast(kind)
    bits = raw.view(">u8").astype(np.uint64)
    if pa.types.is_floating(kind):
        return pa.array((bits ^ np.where(bits & _SIGN, _SIGN, _ALL)).view(np.float64)).cast(kind)
    values = pa.array((bits ^ _SIGN).view(np.int64))
    if pa.types.is_boolean(kind):
        return values.cast(pa.int8()).cast(kind)
    return values.cast(pa.int32()).cast(kind) if pa.types.is_date(kind) else values.cast(kind)

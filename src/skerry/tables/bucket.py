"""The bucket of a row: XXH64 with seed 42, chained over the columns, NULL leaves the hash as it is. Pure.

This is what decides; `bucket_sql.py` makes Spark compute the same. Equal values have equal buckets in all types: 1, 1.0
and 1.00 are hashed as the whole number 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

import numpy as np
import pyarrow as pa
import xxhash

from skerry.tables.keys import doubles, whole_numbers

SEED = 42
DOUBLE_WHOLE_UPTO = 2.0**53  # above, not every whole number is a double

Hashes = np.ndarray[tuple[int], np.dtype[np.uint64]]

_P1, _P2, _P3 = (np.uint64(prime) for prime in (0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9))
_P4, _P5 = np.uint64(0x85EBCA77C2B2AE63), np.uint64(0x27D4EB2F165667C5)


def buckets_of(columns: Sequence[pa.Array], buckets: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """The bucket of each row; columns of one length, in the order of DISTRIBUTED BY."""
    return buckets_by(hashes_of(columns), buckets)


def buckets_by(found: Hashes, buckets: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """The same of rows whose hashes are known."""
    hashes = found.view(np.int64)
    if buckets & (buckets - 1) == 0:
        return hashes & (buckets - 1)  # the same, ten times as quick
    return np.mod(hashes, buckets)  # of Python's sign, which is pmod's


def hashes_of(columns: Sequence[pa.Array]) -> Hashes:
    hashes = np.full(len(columns[0]), SEED, dtype=np.uint64)
    for column in columns:
        if column.null_count:
            known = np.flatnonzero(column.is_valid().to_numpy(zero_copy_only=False))
            hashes[known] = _chain(column.take(pa.array(known)), hashes[known])
        else:
            hashes = _chain(column, hashes)
    return hashes


def _chain(column: pa.Array, seeds: Hashes) -> Hashes:
    """The hash of each value with its own seed; no NULLs."""
    kind = column.type
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return _hash_bytes(column.cast(pa.binary()).to_pylist(), seeds)
    if pa.types.is_decimal(kind):
        return _decimals(column, seeds)
    if pa.types.is_floating(kind):
        values = doubles(column)
        is_whole = (np.abs(values) < DOUBLE_WHOLE_UPTO) & (values == np.floor(values))
        bits = np.where(is_whole, np.where(is_whole, values, 0.0).astype(np.int64), values.view(np.int64))
        return _hash_longs(bits, seeds)
    return _hash_longs(whole_numbers(column), seeds)


def _decimals(column: pa.Array, seeds: Hashes) -> Hashes:
    """Whole ones that fit are hashed as whole numbers, others as their shortest text."""
    scale = column.type.scale
    words = np.frombuffer(column.buffers()[1], dtype=np.int64)[2 * column.offset : 2 * (column.offset + len(column))]
    low, high = words.reshape(-1, 2).T
    hashes = seeds.copy()
    is_small = high == low >> 63  # the unscaled value fits in 64 bits
    small = np.flatnonzero(is_small)
    if scale <= 18:
        whole, rest = np.divmod(low[small], 10**scale)
        hashes[small[rest == 0]] = _hash_longs(whole[rest == 0], seeds[small[rest == 0]])
        others = np.union1d(small[rest != 0], np.flatnonzero(~is_small))
    else:
        others = np.arange(len(column))
    for at in others:
        hashes[at] = _hash_decimal(column[int(at)].as_py(), int(seeds[at]))
    return hashes


def _hash_decimal(value: Decimal, seed: int) -> int:
    text = format(value, "f")
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    if "." not in text and -(1 << 63) <= int(text) < 1 << 63:
        return xxhash.xxh64_intdigest(int(text).to_bytes(8, "little", signed=True), seed)
    return xxhash.xxh64_intdigest(text.encode(), seed)


def _hash_bytes(values: list[bytes], seeds: Hashes) -> Hashes:
    digest = xxhash.xxh64_intdigest
    return np.fromiter(
        (digest(value, seed) for value, seed in zip(values, seeds.tolist(), strict=True)), np.uint64, len(values)
    )


def _hash_longs(values: np.ndarray[tuple[int], np.dtype[np.int64]], seeds: Hashes) -> Hashes:
    """XXH64 of eight bytes, for all rows at once; arithmetic wraps."""
    rounds = _rotated(values.view(np.uint64) * _P2, 31)
    rounds *= _P1
    rounds ^= seeds + (_P5 + np.uint64(8))
    hashes = _rotated(rounds, 27)
    hashes *= _P1
    hashes += _P4
    hashes ^= hashes >> np.uint64(33)
    hashes *= _P2
    hashes ^= hashes >> np.uint64(29)
    hashes *= _P3
    hashes ^= hashes >> np.uint64(32)
    return hashes


def _rotated(values: Hashes, bits: int) -> Hashes:
    rotated = values << np.uint64(bits)
    rotated |= values >> np.uint64(64 - bits)
    return rotated

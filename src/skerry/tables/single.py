"""Keys, buckets and checks of few rows, value by value: to make columns of them takes ten times as long. Pure.

Only for what is common: keys of whole numbers and texts, values of plain types. None means: ask the columns, which
also say what is wrong. Whatever is let through here the columns let through (`checks.py`, `keys.py`, `bucket.py`).
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import msgspec
import xxhash

from skerry.model.commits import Write
from skerry.model.limits import SCHEMAS_KEPT
from skerry.model.sharded import OwnColumn, OwnTable
from skerry.tables.bucket import SEED
from skerry.tables.columns import spread_by

FEW = 16  # rows: above, columns are quicker
_ROW = msgspec.msgpack.Decoder(list[Any])
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")
_BITS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64, "date": 32, "timestamp": 64, "timestamp_ntz": 64}
_TYPES = {"double": float, "string": str, "binary": bytes, "boolean": bool}


class Shape(NamedTuple):
    """Of a table: where in a row its key's columns are, which of these parts the bucket is of, and what fits its
    columns, in msgpack's form."""

    key: tuple[int, ...]
    spread: tuple[int, ...]
    fits: tuple[Callable[[Any], bool], ...]


@functools.lru_cache(SCHEMAS_KEPT)
def shape_of(table: OwnTable) -> Shape | None:
    """None if a part of its key is of a type that is not for here."""
    at = {column.name.lower(): place for place, column in enumerate(table.columns)}
    key = tuple([at[name.lower()] for name in table.primary_key])
    if not all(table.columns[place].type in _BITS or table.columns[place].type == "string" for place in key):
        return None
    spread = tuple([key.index(at[name.lower()]) for name in spread_by(table)])
    return Shape(key, spread, tuple(map(_fits, table.columns)))


def key_of(parts: Sequence[Any]) -> bytes:
    """The same as `encode_keys` of one row: parts of a key that are whole numbers or texts."""
    if len(parts) == 1 and type(parts[0]) is int:
        return (parts[0] + (1 << 63)).to_bytes(8, "big")
    return b"".join(
        [
            (part + (1 << 63)).to_bytes(8, "big")
            if type(part) is int
            else part.encode().replace(b"\0", b"\0\xff") + b"\0\0"
            for part in parts
        ]
    )


def bucket_of(parts: Sequence[Any], buckets: int) -> int:
    """The same as `buckets_of` one row."""
    seed = SEED
    for part in parts:
        raw = part.to_bytes(8, "little", signed=True) if type(part) is int else part.encode()
        seed = xxhash.xxh64_intdigest(raw, seed)
    return (seed - (seed >> 63 << 64)) % buckets  # of its sign, as Spark's pmod


def are_sound(table: OwnTable, ranges: Sequence[tuple[int, int]], writes: Sequence[Write]) -> bool:
    """Whether these are whole rows of the table with their own keys, in these buckets; False if that is not sure."""
    shape = shape_of(table)
    if shape is None or len(writes) > FEW:
        return False
    key, spread, fits = shape
    for write in writes:
        if write.row is None or write.is_patch:
            return False
        try:
            row = _ROW.decode(write.row)
        except msgspec.MsgspecError:
            return False
        if len(row) != len(fits) or not all(fit(value) for fit, value in zip(fits, row, strict=True)):
            return False
        parts = [row[place] for place in key]
        if None in parts or key_of(parts) != write.key:
            return False
        bucket = bucket_of([parts[place] for place in spread], table.buckets)
        if not any(first <= bucket < upto for first, upto in ranges):
            return False
    return True


def _fits(column: OwnColumn) -> Callable[[Any], bool]:
    """Whether the column takes a value, in msgpack's form, as it is."""
    kind, may_be_null = column.type, column.is_nullable
    if kind in _BITS:
        return partial(_is_whole, 1 << _BITS[kind] - 1, may_be_null)
    if kind in _TYPES:
        return partial(_is_a, _TYPES[kind], may_be_null)
    if decimal := _DECIMAL.fullmatch(kind):
        precision, scale = int(decimal[1]), int(decimal[2])
        before = f"[0-9]{{1,{precision - scale}}}" if precision > scale else "0"
        return partial(_is_decimal, re.compile(f"-?{before}" + (rf"\.[0-9]{{{scale}}}" if scale else "")), may_be_null)
    return partial(_is_a, None, may_be_null)  # of nested values the columns know


def _is_whole(upto: int, may_be_null: bool, value: Any) -> bool:
    return -upto <= value < upto if type(value) is int else value is None and may_be_null


def _is_a(wanted: type | None, may_be_null: bool, value: Any) -> bool:
    return type(value) is wanted or (value is None and may_be_null)


def _is_decimal(digits: re.Pattern[str], may_be_null: bool, value: Any) -> bool:
    return digits.fullmatch(value) is not None if type(value) is str else value is None and may_be_null

"""Rows as msgpack tuples ↔ Arrow columns (protocol.md, 10.3): a few thousand at a time, column by column.

Dates are days, timestamps microseconds, times of day nanoseconds, intervals microseconds, decimals text with all digits
of their scale, arrays and structs arrays, maps arrays of pairs.
"""

from __future__ import annotations

import datetime as dt
import functools
import re
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from itertools import chain
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from skerry.model.errors import PeerError
from skerry.model.table import Column
from skerry.wire.frames import Buffer
from skerry.wire.tupletypes import BadTupleType, Kind, arrow_type, kind_of, read_type

_DECODERS_KEPT = 200
_STORED = {"date": pa.int32(), "timestamp": pa.int64(), "timestamp_ntz": pa.int64(), "interval": pa.int64()}
_STORED |= {"time": pa.int64()}
_EPOCH = dt.datetime(1970, 1, 1)
_EPOCH_UTC = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MICROSECOND = dt.timedelta(microseconds=1)
_encoder = msgspec.msgpack.Encoder()
_DECODE_ERRORS = (msgspec.MsgspecError, RecursionError, ValueError, TypeError, OverflowError)
_ARROW_ERRORS = (pa.ArrowException, ValueError, TypeError, OverflowError)


def encode_tuples(columns: Sequence[pa.Array], types: Sequence[str]) -> list[bytes]:
    """One tuple for each row of the columns, which are of these Spark types."""
    plain = [plain_values(column, kind_of(text)) for column, text in zip(columns, types, strict=True)]
    return [_encoder.encode(row) for row in zip(*plain, strict=True)]


def encode_tuple(row: Sequence[Any]) -> bytes:
    """A row whose values are in their msgpack form already."""
    return _encoder.encode(tuple(row))


def encode_plain(rows: Iterable[tuple[Any, ...]]) -> tuple[bytes, ...]:
    """Many such rows."""
    return tuple(map(_encoder.encode, rows))


def decode_tuples(tuples: Sequence[Buffer], columns: Sequence[Column]) -> pa.RecordBatch:
    """The rows, with these columns; PeerError if one has other columns or a value that is not of its column's type."""
    rows = []
    decoder = _decoder(_types(columns))
    for number, each in enumerate(tuples):
        try:
            rows.append(decoder.decode(each))
        except _DECODE_ERRORS as error:
            raise PeerError(f"tuple {number}: {_said(error, columns)}") from None
    return _batch(rows, columns)


def checked_values(rows: Sequence[Sequence[Any]], columns: Sequence[Column]) -> pa.RecordBatch:
    """The same for rows that came unpacked, as the keys of an update do."""
    wanted = _row_type(_types(columns))
    try:
        checked = msgspec.convert(
            list(rows),
            list[wanted],  # type: ignore[valid-type]
            builtin_types=(bytes,),
        )  # no base64
    except _DECODE_ERRORS as error:
        # Behind the row's number it is told as of a tuple.
        words = re.sub(r"\$\[([0-9]+)\]", "$", str(error), count=1)
        raise PeerError(f"values: {_said(ValueError(words), columns)}") from None
    return _batch(checked, columns)


def plain_value(value: Any) -> Any:
    """A Python value in its msgpack form; a decimal has its column's digits behind the point already."""
    match value:
        case Decimal():
            return f"{value:f}"
        case dt.datetime():
            return (value - (_EPOCH if value.tzinfo is None else _EPOCH_UTC)) // _MICROSECOND
        case dt.date():
            return (value - _EPOCH.date()).days
        case list():
            return [plain_value(each) for each in value]
    return value


def plain_values(column: pa.Array, kind: Kind) -> list[Any]:
    """A column's values in their msgpack form."""
    wanted = arrow_type(kind)
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if column.type != wanted:
        column = column.cast(wanted)
    if kind.word in _STORED:
        return list(column.cast(_STORED[kind.word]).to_pylist())
    match kind.word:
        case "decimal":
            return [text if text is None or "E" not in text else f"{Decimal(text):f}" for text in _texts(column)]
        case "array":
            return _sliced(column, plain_values(_inside(column, column.values), kind.items[0]))
        case "map":
            keys = plain_values(_inside(column, column.keys), kind.items[0])
            values = plain_values(_inside(column, column.items), kind.items[1])
            return _sliced(column, list(zip(keys, values, strict=True)))
        case "struct":
            fields = [plain_values(each, item) for each, item in zip(column.flatten(), kind.items, strict=True)]
            rows = zip(*fields, strict=True)
            return [row if valid else None for row, valid in zip(rows, column.is_valid().to_pylist(), strict=True)]
    return list(column.to_pylist())


def _texts(column: pa.Array) -> list[str | None]:
    return list(column.cast(pa.string()).to_pylist())


def _inside(column: pa.Array, values: pa.Array) -> pa.Array:
    """Of the elements of all lists those that this slice of them has."""
    offsets = column.offsets
    first = offsets[0].as_py()
    return values.slice(first, offsets[-1].as_py() - first)


def _sliced(column: pa.Array, elements: list[Any]) -> list[Any]:
    offsets = column.offsets.to_pylist()
    first = offsets[0]
    return [
        elements[start - first : upto - first] if valid else None
        for start, upto, valid in zip(offsets, offsets[1:], column.is_valid().to_pylist(), strict=False)
    ]


# --- from msgpack to Arrow ------------------------------------------------------------------------
def _types(columns: Sequence[Column]) -> tuple[str, ...]:
    return tuple(column.type for column in columns)


def _row_type(types: tuple[str, ...]) -> Any:
    try:
        return tuple[tuple(read_type(kind_of(text)) for text in types)]  # type: ignore[misc]
    except BadTupleType as error:
        raise PeerError(f"columns: {error}") from None


@functools.lru_cache(_DECODERS_KEPT)
def _decoder(types: tuple[str, ...]) -> msgspec.msgpack.Decoder[Any]:
    return msgspec.msgpack.Decoder(_row_type(types))


def _batch(rows: Sequence[Sequence[Any]], columns: Sequence[Column]) -> pa.RecordBatch:
    values = list(zip(*rows, strict=True)) if rows else [()] * len(columns)
    made = []
    for column, each in zip(columns, values, strict=True):
        try:
            made.append(_arrow(list(each), kind_of(column.type)))
        except _ARROW_ERRORS as error:
            raise PeerError(f"column {column.name}: not {column.type}: {_first_line(error)}") from None
    fields = [pa.field(column.name, array.type) for column, array in zip(columns, made, strict=True)]
    return pa.RecordBatch.from_arrays(made, schema=pa.schema(fields))


def _arrow(values: list[Any], kind: Kind) -> pa.Array:
    """Values that msgspec has read as of this type."""
    wanted = arrow_type(kind)
    if kind.word == "decimal":
        return pa.array(values, pa.string()).cast(wanted)
    if kind.word == "float":
        return _single(pa.array(values, pa.float64()), wanted)
    if kind.word == "struct":
        empty = (None,) * len(kind.items)
        fields = list(zip(*(empty if value is None else value for value in values), strict=True)) or [()] * len(empty)
        made = [_arrow(list(each), item) for each, item in zip(fields, kind.items, strict=True)]
        is_null = pa.array([value is None for value in values], pa.bool_())
        return pa.StructArray.from_arrays(made, fields=list(wanted), mask=is_null)
    if kind.word in ("array", "map"):
        return _NESTED[kind.word](values, kind, wanted)
    return pa.array(values, wanted)


def _single(values: pa.Array, wanted: pa.DataType) -> pa.Array:
    made = values.cast(wanted)
    same = pc.or_(pc.equal(made.cast(pa.float64()), values), pc.is_nan(values))
    if not pc.all(same, min_count=0).as_py():
        raise ValueError("a number has more digits than a float holds")
    return made


def _offsets(values: list[Any]) -> pa.Array:
    """Where each list begins; null for one that is null."""
    at, found = 0, []
    for value in values:
        found.append(None if value is None else at)
        at += 0 if value is None else len(value)
    return pa.array([*found, at], pa.int32())


def _lists(values: list[Any], kind: Kind, wanted: pa.DataType) -> pa.Array:
    elements = _arrow(list(chain.from_iterable(value for value in values if value is not None)), kind.items[0])
    return pa.ListArray.from_arrays(_offsets(values), elements, type=wanted)


def _maps(values: list[Any], kind: Kind, wanted: pa.DataType) -> pa.Array:
    pairs = list(chain.from_iterable(value for value in values if value is not None))
    keys, items = (_arrow([pair[side] for pair in pairs], kind.items[side]) for side in (0, 1))
    return pa.MapArray.from_arrays(_offsets(values), keys, items, type=wanted)


_NESTED: dict[str, Callable[[list[Any], Kind, pa.DataType], pa.Array]] = {"array": _lists, "map": _maps}


def _said(error: BaseException, columns: Sequence[Column]) -> str:
    """msgspec's words, with the column's name for its place in the row."""
    words, _, path = str(error).partition(" - at `$[")
    place = path.partition("]")[0]
    if place.isdecimal() and int(place) < len(columns):
        column = columns[int(place)]
        return f"column {column.name} ({column.type}): {words}"
    return _first_line(error)


def _first_line(error: BaseException) -> str:
    return (str(error) or type(error).__name__).splitlines()[0][:200]

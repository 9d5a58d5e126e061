"""A row as bytes: a msgpack array of its values, in the order of the table's columns. Pure.

Dates are days, timestamps microseconds, decimals texts, structs arrays, maps arrays of pairs: what Arrow holds comes
back bit for bit, NaN and -0.0 too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pyarrow as pa

from skerry.model.errors import SiteError

_ROW = msgspec.msgpack.Decoder(list[Any])
_encode = msgspec.msgpack.Encoder().encode


def encode_rows(rows: pa.RecordBatch) -> list[bytes]:
    columns = [_lowered(column, column.type) for column in rows.columns]
    return [_encode(row) for row in zip(*columns, strict=True)]


def decode_rows(schema: pa.Schema, rows: Sequence[bytes]) -> pa.RecordBatch:
    """SiteError if these are not rows of such a table."""
    try:
        columns = list(zip(*map(_ROW.decode, rows), strict=True)) if rows else [()] * len(schema)
        if len(columns) != len(schema):
            raise SiteError(f"a row of {len(columns)} values where {len(schema)} are due")
        arrays = [raised(list(values), field.type) for values, field in zip(columns, schema, strict=True)]
    except (msgspec.MsgspecError, pa.ArrowException, ValueError, TypeError) as error:
        raise SiteError(f"bytes that are no row: {error}") from None
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _lowered(values: pa.Array, kind: pa.DataType) -> list[Any]:
    """As values that msgpack has."""
    if pa.types.is_date(kind):
        return values.cast(pa.int32()).to_pylist()  # type: ignore[no-any-return]
    if pa.types.is_timestamp(kind):
        return values.cast(pa.int64()).to_pylist()  # type: ignore[no-any-return]
    if pa.types.is_decimal(kind):
        return [None if value is None else format(value, "f") for value in values.to_pylist()]
    if pa.types.is_map(kind):
        pairs = list(zip(_lowered(values.keys, kind.key_type), _lowered(values.items, kind.item_type), strict=True))
        return _lists(values, pairs)
    if pa.types.is_list(kind):
        return _lists(values, _lowered(values.values, kind.value_type))
    if pa.types.is_struct(kind):
        fields = [_lowered(values.field(index), kind.field(index).type) for index in range(kind.num_fields)]
        rows = zip(*fields, strict=True)
        return [row if is_there else None for row, is_there in zip(rows, values.is_valid().to_pylist(), strict=True)]
    return values.to_pylist()  # type: ignore[no-any-return]


def _lists(values: pa.Array, items: list[Any]) -> list[Any]:
    offsets = values.offsets.to_pylist()
    valid = values.is_valid().to_pylist()
    return [items[offsets[at] : offsets[at + 1]] if valid[at] else None for at in range(len(values))]


def raised(values: list[Any], kind: pa.DataType) -> pa.Array:
    """A column of values that msgpack has: the inverse of `_lowered`."""
    if pa.types.is_date(kind):
        return pa.array(values, pa.int32()).cast(kind)
    if pa.types.is_timestamp(kind):
        return pa.array(values, pa.int64()).cast(kind)
    if pa.types.is_decimal(kind):
        return pa.array(values, pa.string()).cast(kind)
    if pa.types.is_map(kind):
        offsets, items = _flat(values)
        keys, parts = raised([item[0] for item in items], kind.key_type), [item[1] for item in items]
        return pa.MapArray.from_arrays(offsets, keys, raised(parts, kind.item_type), type=kind)
    if pa.types.is_list(kind):
        offsets, items = _flat(values)
        return pa.ListArray.from_arrays(offsets, raised(items, kind.value_type), type=kind)
    if pa.types.is_struct(kind):
        parts = [value if value is not None else [None] * kind.num_fields for value in values]
        arrays = [raised([part[index] for part in parts], kind.field(index).type) for index in range(kind.num_fields)]
        return pa.StructArray.from_arrays(
            arrays, fields=list(kind), mask=pa.array([value is None for value in values], pa.bool_())
        )
    return pa.array(values, kind)


def _flat(values: list[Any]) -> tuple[pa.Array, list[Any]]:
    """Where each list begins, None for one that is NULL, with the end at the end; and all items."""
    offsets: list[int | None] = []
    items: list[Any] = []
    for value in values:
        offsets.append(None if value is None else len(items))
        items += value or ()
    return pa.array([*offsets, len(items)], pa.int32()), items

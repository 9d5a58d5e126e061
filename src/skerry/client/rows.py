"""Rows of a result: kept as Arrow, given as Python objects when asked for."""

from __future__ import annotations

import datetime
import re
from collections import deque
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from skerry.client.pep249 import Description, Row
from skerry.model.errors import PeerError
from skerry.model.limits import Limits
from skerry.model.results import Page
from skerry.model.table import Column
from skerry.wire.codec import decode_batch

EPOCH = datetime.datetime(1970, 1, 1)
EPOCH_UTC = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
EPOCH_ORDINAL = datetime.date(1970, 1, 1).toordinal()

# Rows turned into Python objects at a time: a fetchone must not wait for a whole batch of them.
ROWS_AT_ONCE = 1024

_DECIMAL = re.compile(r"decimal\((\d+),\s*(-?\d+)\)", re.IGNORECASE)

Converter = Callable[[pa.Array], list[Any]]


def decode_page(page: Page, schema: pa.Schema, limits: Limits) -> list[pa.RecordBatch]:
    """PeerError for a page that does not hold the rows that it says."""
    batches = [decode_batch(body, schema, limits.frame_bytes) for body in page.batches]
    rows = sum(batch.num_rows for batch in batches)
    if rows != page.rows:
        raise PeerError(f"page {page.number} was to hold {page.rows} rows, it holds {rows}")
    return batches


class RowBuffer:
    """Batches that were received and not given to the caller yet; first in, first out."""

    def __init__(self) -> None:
        self._batches: deque[pa.RecordBatch] = deque()
        self._given = 0  # rows of the first batch that the caller has
        self._converted: list[Row] = []  # rows of the first batch, from `_given - _converted_given`
        self._converted_given = 0

    def __bool__(self) -> bool:
        return bool(self._batches)

    def append(self, batch: pa.RecordBatch) -> None:
        if batch.num_rows:
            self._batches.append(batch)

    def take_rows(self, rows_max: int | None) -> list[Row]:
        """At most `rows_max` rows (None: all); fewer only when the buffer is empty then."""
        rows: list[Row] = []
        rows_max = sum(batch.num_rows for batch in self._batches) if rows_max is None else rows_max
        while self._batches and len(rows) < rows_max:
            first = self._batches[0]
            if self._converted_given == len(self._converted):
                self._converted = to_rows(first.slice(self._given, ROWS_AT_ONCE))
                self._converted_given = 0
            some = self._converted[self._converted_given : self._converted_given + rows_max - len(rows)]
            rows += some
            self._given += len(some)
            self._converted_given += len(some)
            if self._given == first.num_rows:
                self._drop_first()
        return rows

    def take_batches(self) -> list[pa.RecordBatch]:
        """Everything that is left, as Arrow."""
        batches = list(self._batches)
        if batches and self._given:
            batches[0] = batches[0].slice(self._given)
        self.clear()
        return batches

    def clear(self) -> None:
        self._batches.clear()
        self._forget_converted()

    def _drop_first(self) -> None:
        self._batches.popleft()
        self._forget_converted()

    def _forget_converted(self) -> None:
        self._given = 0
        self._converted = []
        self._converted_given = 0


def describe(columns: tuple[Column, ...]) -> list[Description]:
    """PEP 249's `description`: the type code is Spark's text for the type."""
    described: list[Description] = []
    for column in columns:
        match = _DECIMAL.fullmatch(column.type)
        precision, scale = (int(match[1]), int(match[2])) if match else (None, None)
        described.append((column.name, column.type, None, None, precision, scale, None))
    return described


def to_rows(batch: pa.RecordBatch) -> list[Row]:
    """Rows as tuples; structs and maps become dicts, timestamps are aware and in UTC."""
    if not batch.num_columns:
        return [()] * batch.num_rows
    return list(zip(*(_converter(column.type)(column) for column in batch.columns), strict=True))


def _converter(kind: pa.DataType) -> Converter:
    for is_kind, convert in _CONVERTERS:
        if is_kind(kind):
            return convert
    return _plain


def _plain(array: pa.Array) -> list[Any]:
    values: list[Any] = array.to_pylist()
    return values


def _timestamps(array: pa.Array) -> list[Any]:
    epoch = EPOCH if array.type.tz is None else EPOCH_UTC
    # Through integers, because pyarrow's own way is five times slower and knows no `datetime.UTC`.
    micros = array.cast(pa.timestamp("us", array.type.tz), safe=False).view(pa.int64()).to_pylist()
    microsecond = datetime.timedelta(microseconds=1)
    return [None if value is None else epoch + value * microsecond for value in micros]


def _dates(array: pa.Array) -> list[Any]:
    days = array.view(pa.int32()).to_pylist()
    return [None if value is None else datetime.date.fromordinal(EPOCH_ORDINAL + value) for value in days]


def _durations(array: pa.Array) -> list[Any]:
    micros = array.cast(pa.duration("us"), safe=False).view(pa.int64()).to_pylist()
    return [None if value is None else datetime.timedelta(microseconds=value) for value in micros]


def _lists(array: pa.Array) -> list[Any]:
    # flatten() leaves out what null lists hide, so lengths (0 or null for those) cut it up again.
    values = iter(_converter(array.type.value_type)(array.flatten()))
    lengths = array.value_lengths().to_pylist()
    return [None if length is None else [next(values) for _ in range(length)] for length in lengths]


def _structs(array: pa.Array) -> list[Any]:
    names = [array.type.field(index).name for index in range(array.type.num_fields)]
    if len(set(names)) < len(names):
        raise ValueError(f"a struct has two fields of one name ({', '.join(names)})")
    fields = [_converter(field.type)(field) for field in array.flatten()]
    valid = array.is_valid().to_pylist()
    return [
        dict(zip(names, (field[row] for field in fields), strict=True)) if is_valid else None
        for row, is_valid in enumerate(valid)
    ]


def _maps(array: pa.Array) -> list[Any]:
    # keys and items are the whole children, whatever slice of the array this is: offsets count within them.
    offsets = array.offsets.to_pylist()
    first, last = offsets[0], offsets[-1]
    keys = _converter(array.type.key_type)(array.keys.slice(first, last - first))
    items = _converter(array.type.item_type)(array.items.slice(first, last - first))
    valid = array.is_valid().to_pylist()
    return [
        {_hashable(keys[at - first]): items[at - first] for at in range(offsets[row], offsets[row + 1])}
        if is_valid
        else None
        for row, is_valid in enumerate(valid)
    ]


def _hashable(key: Any) -> Any:
    """A dict's key: Spark's maps may have arrays and structs there."""
    if isinstance(key, list):
        return tuple(_hashable(value) for value in key)
    if isinstance(key, dict):
        return tuple(_hashable(value) for value in key.values())
    return key


_CONVERTERS: tuple[tuple[Callable[[pa.DataType], bool], Converter], ...] = (
    (pa.types.is_timestamp, _timestamps),
    (pa.types.is_date32, _dates),
    (pa.types.is_duration, _durations),
    (pa.types.is_map, _maps),
    (pa.types.is_list, _lists),
    (pa.types.is_large_list, _lists),
    (pa.types.is_struct, _structs),
)

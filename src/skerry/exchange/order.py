"""Spark's order of rows, as key columns that Arrow and numpy order in the same way.

Arrow is not Spark: it splits 0.0 and -0.0, places NaN with the nulls, and has one null placement for all
keys in the older releases. So every key becomes plain columns without nulls and without floats:

- a rank of nulls (int8), which stands before the values and is not reversed with them;
- one int64 for what is a number underneath (two for wide decimals), its bits flipped when descending;
- one binary for strings and binaries, compared by unsigned bytes (Spark's UTF8_BINARY).
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Sequence
from functools import total_ordering
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from skerry.model.errors import InternalError
from skerry.model.fragment import SortKey

Int64s: TypeAlias = npt.NDArray[np.int64]
RowKey: TypeAlias = tuple[Any, ...]

_LOWEST = np.int64(np.iinfo(np.int64).min)
_MAGNITUDE = np.int64(np.iinfo(np.int64).max)
_NARROW_DIGITS = 18  # decimals of so many digits fit an int64


def supports(type: pa.DataType) -> bool:
    """Whether sorted runs with a key of this type can be merged; for others the plan uses ORDER BY.

    A string is ordered by its bytes: strings with another collation than UTF8_BINARY are not for us.
    """
    return _is_bytes(type) or _words_of(type) is not None


class Order:
    """The order that `keys` give to rows of `schema`."""

    def __init__(self, schema: pa.Schema, keys: Sequence[SortKey]) -> None:
        assert keys, "rows without a key have no order: gather them"
        self._keys = [_Key(position, key, schema.field(key.index)) for position, key in enumerate(keys)]
        self._descending = tuple(reverse for key in self._keys for reverse in key.reversed_columns)

    def keys_of(self, batch: pa.RecordBatch) -> Keys:
        columns: dict[str, pa.Array] = {}
        for key in self._keys:
            columns.update(key.normalise(batch.column(key.index)))
        return Keys(pa.RecordBatch.from_pydict(columns), self._descending)

    def sort_indices(self, runs: Sequence[pa.RecordBatch]) -> pa.Array:
        """The stable order of all rows of these key columns, one run after the other.

        Arrow documents its sort as stable, so equal rows stay in the order of the runs.
        """
        together = pa.concat_batches(runs)
        # A rank without nulls orders nothing: leave it out.
        useful = [
            (name, "descending" if reverse else "ascending")
            for name, reverse in zip(together.schema.names, self._descending, strict=True)
            if not name.startswith("rank") or _varies(together.column(name))
        ]
        return pc.sort_indices(together, sort_keys=useful or [(together.schema.names[0], "ascending")])


class Keys:
    """The key columns of one sorted batch."""

    def __init__(self, columns: pa.RecordBatch, descending: Sequence[bool]) -> None:
        self.columns = columns
        self._descending = descending
        # Views for binary search, made once a batch.
        self._search = [
            column if pa.types.is_large_binary(column.type) else column.to_numpy() for column in columns.columns
        ]

    def row(self, index: int) -> RowKey:
        """A row as a tuple that Python compares in Spark's order."""
        return tuple(
            _comparable(column[index], reverse) for column, reverse in zip(self._search, self._descending, strict=True)
        )

    def upto(self, bound: RowKey, start: int, inclusive: bool) -> int:
        """The first row at or after `start` that is not before (`inclusive`: that is after) `bound`."""
        low, high = start, self.columns.num_rows
        # Rows low..high equal the bound in the columns seen so far; those before low are before the bound.
        for column, reverse, value in zip(self._search, self._descending, bound, strict=True):
            low, high = _equal_range(column, reverse, value, low, high)
            if low == high:
                break
        return high if inclusive else low


class _Key:
    """One sort key and the columns that stand for it."""

    def __init__(self, position: int, key: SortKey, field: pa.Field) -> None:
        if not supports(field.type):
            raise InternalError(f"sort key {field.name}: runs of type {field.type} cannot be merged (use ORDER BY)")
        self.index = key.index
        self._position = position
        self._descending = key.descending
        self._nulls_first = key.nulls_first
        self._words = None if _is_bytes(field.type) else _words_of(field.type)
        # Only binaries are still to be reversed by who sorts; numbers have their bits flipped here.
        self.reversed_columns = (False, key.descending) if self._words is None else (False,) * (1 + _count(field.type))

    def normalise(self, column: pa.Array) -> dict[str, pa.Array]:
        nulls = column.is_null().cast(pa.int8()).to_numpy()
        named = {f"rank{self._position}": pa.array(1 - nulls if self._nulls_first else nulls, pa.int8())}
        if self._words is None:
            binary = column.cast(pa.large_binary())
            named[f"value{self._position}"] = binary.fill_null(b"") if column.null_count else binary
            return named
        for number, word in enumerate(self._words(column)):
            values = np.where(nulls != 0, np.int64(0), word) if column.null_count else word
            named[f"value{self._position}.{number}"] = pa.array(~values if self._descending else values, pa.int64())
        return named


@total_ordering
class _Descending:
    """Bytes in reverse order; numbers have no need of it."""

    __slots__ = ("value",)

    def __init__(self, value: bytes) -> None:
        self.value = value

    def __lt__(self, other: _Descending) -> bool:
        return other.value < self.value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Descending) and self.value == other.value

    def __hash__(self) -> int:
        return hash(self.value)


def _comparable(value: Any, reverse: bool) -> Any:
    if isinstance(value, np.integer):
        return int(value)
    return _Descending(value.as_py()) if reverse else value.as_py()


def _equal_range(column: Any, reverse: bool, value: Any, low: int, high: int) -> tuple[int, int]:
    """Where the rows of low..high that equal `value` begin and end."""
    if isinstance(column, np.ndarray):
        part = column[low:high]
        return low + int(part.searchsorted(value, "left")), low + int(part.searchsorted(value, "right"))

    def key(scalar: Any) -> Any:
        return _comparable(scalar, reverse)

    left = bisect.bisect_left(column, value, low, high, key=key)
    return left, bisect.bisect_right(column, value, left, high, key=key)


def _varies(column: pa.Array) -> bool:
    values = column.to_numpy()
    return bool(len(values)) and bool((values != values[0]).any())


# --- values as int64 words -----------------------------------------------------------------------
Words: TypeAlias = Callable[[pa.Array], list[Int64s]]


def _is_bytes(type: pa.DataType) -> bool:
    types = pa.types
    return bool(
        types.is_string(type)
        or types.is_large_string(type)
        or types.is_string_view(type)
        or types.is_binary(type)
        or types.is_large_binary(type)
        or types.is_binary_view(type)
    )


def _words_of(type: pa.DataType) -> Words | None:
    """How values of this type become int64 words, most significant first; None: they do not."""
    types = pa.types
    if types.is_null(type):
        return _zeros
    if types.is_boolean(type) or types.is_signed_integer(type):
        return _integers
    if types.is_date32(type) or types.is_time32(type):
        return _days
    if types.is_timestamp(type) or types.is_duration(type) or types.is_time64(type) or types.is_date64(type):
        return _integers
    if types.is_float32(type) or types.is_float64(type):
        return _floats
    if types.is_decimal128(type):
        return _narrow_decimals if type.precision <= _NARROW_DIGITS else _wide_decimals
    return None


def _count(type: pa.DataType) -> int:
    return 2 if _words_of(type) is _wide_decimals else 1


def _zeros(column: pa.Array) -> list[Int64s]:
    return [np.zeros(len(column), np.int64)]


def _integers(column: pa.Array) -> list[Int64s]:
    return [_filled(column.cast(pa.int64()))]


def _days(column: pa.Array) -> list[Int64s]:
    return [_filled(column.cast(pa.int32()).cast(pa.int64()))]


def _filled(column: pa.Array) -> Int64s:
    filled: Int64s = (column.fill_null(0) if column.null_count else column).to_numpy()
    return filled


def _floats(column: pa.Array) -> list[Int64s]:
    """Bits in the order of the numbers: one zero, and one NaN above infinity."""
    numbers = column.cast(pa.float64())
    values = (numbers.fill_null(0.0) if numbers.null_count else numbers).to_numpy() + 0.0
    bits = np.where(np.isnan(values), np.float64(np.nan), values).view(np.int64)
    return [np.where(bits < 0, bits ^ _MAGNITUDE, bits)]


def decimal_halves(column: pa.Array) -> npt.NDArray[np.int64]:
    """The low and the high half of each 128-bit integer."""
    values = column.buffers()[1]
    if values is None or column.null_count == len(column):
        return np.zeros((len(column), 2), np.int64)
    end = column.offset + len(column)
    return np.frombuffer(values, np.int64, count=2 * end).reshape(-1, 2)[column.offset :]


def _narrow_decimals(column: pa.Array) -> list[Int64s]:
    return [decimal_halves(column)[:, 0]]


def _wide_decimals(column: pa.Array) -> list[Int64s]:
    halves = decimal_halves(column)
    return [halves[:, 1], halves[:, 0] ^ _LOWEST]

"""Merging partial aggregates of whole groups, as Spark merges them: checked sums, Spark's order, exact averages.

Arrow is not Spark: it wraps overflow silently, splits 0.0 from -0.0 and sorts NaN elsewhere. So nothing here uses
Arrow's own aggregates. Every kernel gets a column whose rows are sorted by group, and where each group begins.
"""

from __future__ import annotations

import decimal
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skerry.exchange import order
from skerry.model.errors import InternalError, SqlError
from skerry.model.fragment import SortKey

Starts: TypeAlias = npt.NDArray[np.int64]
Kernel: TypeAlias = Callable[[Sequence[pa.Array], Starts, pa.DataType], pa.Array]

_LIMB = np.int64(0xFFFFFFFF)
# Spark divides with one digit more than a decimal has, cut off; then it rounds to the scale of the result.
_DIVISION = decimal.Context(prec=39, rounding=decimal.ROUND_DOWN, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)
_ROUNDING = decimal.Context(prec=80, rounding=decimal.ROUND_HALF_UP, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)


def merged(kind: str, columns: Sequence[pa.Array], starts: Starts, type: pa.DataType) -> pa.Array:
    """One value a group, of `type`; `columns` are those that this kind of aggregate is made from (see KERNELS)."""
    kernel = KERNELS.get(kind)
    if kernel is None:
        raise InternalError(f"no kernel merges {kind}")
    return kernel(columns, starts, type)


def _any(columns: Sequence[pa.Array], starts: Starts, type: pa.DataType) -> pa.Array:
    """A value that is the same in all rows of a group."""
    return columns[0].take(pa.array(starts))


def _sum(columns: Sequence[pa.Array], starts: Starts, type: pa.DataType) -> pa.Array:
    """NULL where all are; an error where the type overflows, as in Spark with ANSI."""
    (column,) = columns
    if pa.types.is_integer(type):
        return pa.array(_int64_sums(column, starts), type, mask=_nulls(column, starts))
    if pa.types.is_floating(type):
        return pa.array(_float_sums(column, starts), type, mask=_nulls(column, starts))
    if pa.types.is_decimal128(type):
        return _decimal_sums(column, starts, type)
    raise InternalError(f"no kernel sums {type}")


def _count(columns: Sequence[pa.Array], starts: Starts, type: pa.DataType) -> pa.Array:
    return pa.array(_int64_sums(columns[0], starts), type)


def _extreme(ufunc: np.ufunc, descending: bool) -> Kernel:
    """The least or greatest in Spark's order; NULL only where all are."""

    def kernel(columns: Sequence[pa.Array], starts: Starts, type: pa.DataType) -> pa.Array:
        (column,) = columns
        whole = _whole_of(column.type)
        if whole is None:
            return _first_of_group(column, starts, descending)
        bounds = np.iinfo(whole.to_pandas_dtype())
        numbers = column.cast(whole) if pa.types.is_boolean(column.type) else column.view(whole)
        values, nulls = _filled(numbers, bounds.min if descending else bounds.max), _nulls(numbers, starts)
        found = pa.array(ufunc.reduceat(values, starts), whole, mask=nulls)
        return found.cast(column.type) if pa.types.is_boolean(column.type) else found.view(column.type)

    return kernel


def _whole_of(type: pa.DataType) -> pa.DataType | None:
    """The whole numbers that stand for values of this type, in the same order."""
    types = pa.types
    if types.is_boolean(type):
        return pa.int8()
    if types.is_signed_integer(type):
        return type
    if types.is_temporal(type) and not types.is_interval(type):
        return pa.int32() if type.bit_width == 32 else pa.int64()
    return None


def _first_of_group(column: pa.Array, starts: Starts, descending: bool) -> pa.Array:
    """The first of each group in Spark's order, whatever the type; NULL only where all are."""
    if len(starts) == len(column):
        return column
    groups = pa.array(np.repeat(np.arange(len(starts)), _sizes(starts, len(column))))
    rows = pa.RecordBatch.from_arrays([groups, column], ["group", "value"])
    sorting = order.Order(rows.schema, [SortKey(0, False, True), SortKey(1, descending, False)])
    indices = sorting.sort_indices([sorting.keys_of(rows).columns])
    # Groups keep their sizes and their order, so each still begins where it began.
    return column.take(indices.take(pa.array(starts)))


def _bitwise(ufunc: np.ufunc, neutral: int) -> Kernel:
    def kernel(columns: Sequence[pa.Array], starts: Starts, type: pa.DataType) -> pa.Array:
        values = _filled(columns[0].cast(pa.int64()), neutral)
        return pa.array(ufunc.reduceat(values, starts), mask=_nulls(columns[0], starts)).cast(type)

    return kernel


def _decimal_average(columns: Sequence[pa.Array], starts: Starts, type: pa.DataType) -> pa.Array:
    """The average from the columns (sum, count)."""
    sums, counted = columns
    counts = _int64_sums(counted, starts)
    return _decimal_averages(_decimal_sums(sums, starts, sums.type), counts, type)


def _mean(columns: Sequence[pa.Array], starts: Starts, type: pa.DataType) -> pa.Array:
    """The average from the columns (sum of doubles, count)."""
    sums, counts = _filled(columns[0], 0.0), _filled(columns[1], 0)
    total = np.add.reduceat(counts, starts)
    with np.errstate(all="ignore"):
        return pa.array(np.add.reduceat(sums, starts) / total, type, mask=total == 0)


def _variance(is_sample: bool, is_root: bool) -> Kernel:
    """From the columns (count, mean, population variance): moments around the mean do not cancel as sums would."""

    def kernel(columns: Sequence[pa.Array], starts: Starts, type: pa.DataType) -> pa.Array:
        counts, means, variances = (_filled(column, 0) for column in columns)
        total = np.add.reduceat(counts, starts)
        with np.errstate(all="ignore"):
            mean = _means(counts, means, starts) / total
            apart = means - np.repeat(mean, _sizes(starts, len(counts)))
            moments = np.where(counts > 0, counts * (variances + apart * apart), 0.0)
            value = np.add.reduceat(moments, starts) / (total - 1 if is_sample else total)
            value = np.sqrt(value) if is_root else value
        return pa.array(value, type, mask=total < (2 if is_sample else 1))

    return kernel


def centre(columns: Sequence[pa.Array], starts: Starts, type: pa.DataType) -> pa.Array:
    """The mean of the columns (count, mean): what variances are merged from, while more rows may come."""
    counts, means = (_filled(column, 0) for column in columns)
    total = np.add.reduceat(counts, starts)
    with np.errstate(all="ignore"):
        return pa.array(_means(counts, means, starts) / total, type, mask=total == 0)


def _means(counts: npt.NDArray[Any], means: npt.NDArray[Any], starts: Starts) -> npt.NDArray[np.float64]:
    """The sum of all values. Rows without any have neither mean nor variance, and must not meet infinity."""
    return np.asarray(np.add.reduceat(np.where(counts > 0, counts * means, 0.0), starts))


# Each with the columns it is made from; what is not said is made from the column of the result itself.
KERNELS: dict[str, Kernel] = {
    "any": _any,
    "sum": _sum,
    "count": _count,
    "min": _extreme(np.minimum, descending=False),
    "max": _extreme(np.maximum, descending=True),
    "bit_and": _bitwise(np.bitwise_and, -1),
    "bit_or": _bitwise(np.bitwise_or, 0),
    "bit_xor": _bitwise(np.bitwise_xor, 0),
    "avg": _decimal_average,  # (sum, count)
    "mean": _mean,  # (sum of doubles, count)
    "var_pop": _variance(False, False),  # (count, mean, population variance), and so for the next three
    "var_samp": _variance(True, False),
    "stddev_pop": _variance(False, True),
    "stddev_samp": _variance(True, True),
}


# --- sums ------------------------------------------------------------------------------------------
def _sizes(starts: Starts, rows: int) -> Starts:
    return np.diff(np.append(starts, rows))


def _filled(column: pa.Array, neutral: float) -> npt.NDArray[Any]:
    """Values with `neutral` in the place of NULLs."""
    values: npt.NDArray[Any] = (column.fill_null(neutral) if column.null_count else column).to_numpy(
        zero_copy_only=False
    )
    return values


def _nulls(column: pa.Array, starts: Starts) -> npt.NDArray[np.bool_] | None:
    """The groups that have no values at all; None: there are no NULLs."""
    if not column.null_count:
        return None
    return np.logical_and.reduceat(column.is_null().to_numpy(zero_copy_only=False), starts)


def _int64_sums(column: pa.Array, starts: Starts) -> Starts:
    """Sums, 0 where all are NULL. Where one may not fit, halves are summed apart: overflow is seen, not wrapped."""
    values = _filled(column.cast(pa.int64()), 0)
    if not len(values) or _most(values) * int(_sizes(starts, len(values)).max()) < 2**63:
        return np.asarray(np.add.reduceat(values, starts))
    low = np.add.reduceat(values & _LIMB, starts)
    high = np.add.reduceat(values >> 32, starts) + (low >> 32)
    if ((high < -(2**31)) | (high >= 2**31)).any():
        raise SqlError("[ARITHMETIC_OVERFLOW] long overflow in the sum of partial results")
    return np.asarray((high << 32) | (low & _LIMB))


def _most(values: npt.NDArray[Any]) -> int:
    return max(abs(int(values.min())), abs(int(values.max())))


def _float_sums(column: pa.Array, starts: Starts) -> npt.NDArray[np.float64]:
    values = _filled(column.cast(pa.float64()), 0.0)
    with np.errstate(all="ignore"):
        return np.asarray(np.add.reduceat(values, starts))


def _decimal_sums(column: pa.Array, starts: Starts, type: pa.Decimal128Type) -> pa.Array:
    """Four words of 32 bits are summed apart, then carried: exact for more rows than a batch can hold."""
    halves = order.decimal_halves(column)
    valid = column.is_valid().to_numpy(zero_copy_only=False)
    halves = np.where(valid[:, None], halves, np.int64(0))
    low, high = halves[:, 0], halves[:, 1]
    # The upper word of the low half is no sign: a logical shift.
    words = [low & _LIMB, (low >> 32) & _LIMB, high & _LIMB, high >> 32]
    sums = [np.add.reduceat(word, starts) for word in words]
    for place in range(3):
        sums[place + 1] = sums[place + 1] + (sums[place] >> 32)
        sums[place] = sums[place] & _LIMB
    fits = (sums[3] >= -(2**31)) & (sums[3] < 2**31)
    made = np.stack([(sums[1] << 32) | sums[0], (sums[3] << 32) | sums[2]], axis=1)
    if not (fits & _within(made, type.precision)).all():
        raise SqlError(f"[NUMERIC_VALUE_OUT_OF_RANGE] a sum of partial results does not fit decimal{_digits(type)}")
    nulls = _nulls(column, starts)
    validity = pa.array(~nulls).buffers()[1] if nulls is not None else None
    return pa.Array.from_buffers(type, len(starts), [validity, pa.py_buffer(np.ascontiguousarray(made))])


def _within(made: npt.NDArray[np.int64], precision: int) -> npt.NDArray[np.bool_]:
    """Which 128-bit integers have no more than so many digits."""
    low, high = made[:, 0].view(np.uint64), made[:, 1]
    most, least = 10**precision - 1, -(10**precision) + 1

    def halves(value: int) -> tuple[np.uint64, np.int64]:
        return np.uint64(value & (2**64 - 1)), np.int64(value >> 64)

    (most_low, most_high), (least_low, least_high) = halves(most), halves(least)
    is_above = (high > most_high) | ((high == most_high) & (low > most_low))
    is_below = (high < least_high) | ((high == least_high) & (low < least_low))
    return np.asarray(~(is_above | is_below))


def _decimal_averages(sums: pa.Array, counts: npt.NDArray[np.int64], type: pa.Decimal128Type) -> pa.Array:
    unit, most = decimal.Decimal(1).scaleb(-type.scale), 10**type.precision
    averages: list[decimal.Decimal | None] = []
    for total, count in zip(sums.to_pylist(), counts.tolist(), strict=True):
        if total is None or count == 0:
            averages.append(None)
            continue
        average = _DIVISION.divide(total, decimal.Decimal(count)).quantize(unit, context=_ROUNDING)
        if abs(average).scaleb(type.scale, context=_ROUNDING) >= most:
            raise SqlError(f"[NUMERIC_VALUE_OUT_OF_RANGE] an average does not fit decimal{_digits(type)}")
        averages.append(average)
    return pa.array(averages, type)


def _digits(type: pa.Decimal128Type) -> str:
    return f"({type.precision},{type.scale})"

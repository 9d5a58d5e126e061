"""Says whether two results are the same answer: names, types and rows, with doubles compared relatively."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

import pyarrow as pa

# Sums of doubles differ inside one Spark too: the order of the addends is not fixed.
RELATIVE = 1e-9

# A bucket of rows that differ only in doubles is matched pair by pair up to this size, in sorted order above it.
PAIRWISE_ROWS = 2000

SHOWN_ROWS = 10

Row = tuple[Hashable, tuple[float, ...]]


def same_table(
    actual: pa.Table,
    expected: pa.Table,
    ordered: bool,
    rel: float = RELATIVE,
    keys: Sequence[str | int] = (),
) -> None:
    """Raises AssertionError with a readable difference unless both tables are the same answer.

    With `keys` (columns of ORDER BY, by name or position) rows that tie may come in any order:
    the sequence of keys is compared in order, the rows as multisets.
    """
    _same_columns(actual, expected)
    if actual.num_rows != expected.num_rows:
        _differ(f"{actual.num_rows} rows, expected {expected.num_rows}", rows(actual), rows(expected), rel)
    plain_actual, plain_expected = _plain(actual), _plain(expected)
    if plain_actual.equals(plain_expected):
        return
    if keys:
        places = [key if isinstance(key, int) else expected.column_names.index(key) for key in keys]
        _same_sequence(rows(actual.select(places)), rows(expected.select(places)), rel, "sort keys")
    if ordered and not keys:
        _same_sequence(rows(actual), rows(expected), rel, "rows")
    else:
        missing, extra = multiset_difference(rows(actual), rows(expected), rel)
        if missing or extra:
            _raise_rows("the rows differ", extra, missing)


def rows(table: pa.Table) -> list[Row]:
    """Rows as (all but the doubles, the doubles): the first compares exactly, the second relatively."""
    plain = _plain(table)
    columns = [column.to_pylist() for column in plain.columns]
    splitters = [_splitter(field.type) for field in plain.schema]
    found: list[Row] = []
    for values in zip(*columns, strict=True):
        doubles: list[float] = []
        exact = tuple(split(value, doubles) for split, value in zip(splitters, values, strict=True))
        found.append((exact, tuple(doubles)))
    return found if columns else [((), ())] * table.num_rows


def multiset_difference(actual: list[Row], expected: list[Row], rel: float = RELATIVE) -> tuple[list[Row], list[Row]]:
    """(rows only in expected, rows only in actual), after pairing rows whose doubles are near."""
    left, right = Counter(map(_exact, actual)), Counter(map(_exact, expected))
    extra = _buckets((left - right).elements())
    missing = _buckets((right - left).elements())
    for exact in extra.keys() & missing.keys():
        extra[exact], missing[exact] = _unpaired(sorted(extra[exact]), sorted(missing[exact]), rel)
    return _rows_of(missing), _rows_of(extra)


def normal_type(kind: pa.DataType) -> pa.DataType:
    """The same type in its plain layout: no views, no large offsets, no dictionary, nullable inside."""
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return pa.string()
    if pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind) or pa.types.is_fixed_size_binary(kind):
        return pa.binary()
    if pa.types.is_dictionary(kind):
        return normal_type(kind.value_type)
    return _rebuilt(kind, normal_type)


def near(left: float, right: float, rel: float = RELATIVE) -> bool:
    """NaN is NaN, -0.0 is 0.0, infinities are themselves."""
    return left == right or (math.isnan(left) and math.isnan(right)) or math.isclose(left, right, rel_tol=rel)


def _same_columns(actual: pa.Table, expected: pa.Table) -> None:
    if actual.column_names != expected.column_names:
        raise AssertionError(
            f"column names differ\n  actual:   {actual.column_names}\n  expected: {expected.column_names}"
        )
    wrong = [
        f"  {field.name}: {normal_type(found.type)}, expected {normal_type(field.type)}"
        for found, field in zip(actual.schema, expected.schema, strict=True)
        if normal_type(found.type) != normal_type(field.type)
    ]
    if wrong:
        raise AssertionError("column types differ\n" + "\n".join(wrong))


def _same_sequence(actual: list[Row], expected: list[Row], rel: float, what: str) -> None:
    for index, (found, wanted) in enumerate(zip(actual, expected, strict=True)):
        if not _same_row(found, wanted, rel):
            missing, extra = multiset_difference(actual, expected, rel)
            if missing or extra:
                _raise_rows(f"the {what} differ", extra, missing)
            raise AssertionError(
                f"the {what} are right but out of order, first at {index}\n"
                f"  actual:   {_shown(found)}\n  expected: {_shown(wanted)}"
            )


def _same_row(left: Row, right: Row, rel: float) -> bool:
    return left[0] == right[0] and all(near(a, b, rel) for a, b in zip(left[1], right[1], strict=True))


def _differ(head: str, actual: list[Row], expected: list[Row], rel: float) -> None:
    missing, extra = multiset_difference(actual, expected, rel)
    _raise_rows(head, extra, missing)


def _raise_rows(head: str, extra: list[Row], missing: list[Row]) -> None:
    lines = [head]
    for title, found in (("only in actual", extra), ("only in expected", missing)):
        lines.append(f"  {title}: {len(found)} rows")
        lines += [f"    {_shown(row)}" for row in found[:SHOWN_ROWS]]
    raise AssertionError("\n".join(lines))


def _shown(row: Row) -> str:
    doubles = iter(row[1])

    def fill(value: Hashable) -> Any:
        if value is Float:
            return next(doubles)
        return tuple(fill(item) for item in value) if isinstance(value, tuple) else value

    return str(fill(row[0]))


class Float:
    """Stands in the exact part of a row where a double was."""


class Nan:
    """Stands for every NaN while rows are counted: NaN does not equal itself in Python."""


def _exact(row: Row) -> tuple[Hashable, tuple[Hashable, ...]]:
    return row[0], tuple(Nan if math.isnan(value) else value for value in row[1])


def _buckets(counted: Iterable[tuple[Hashable, tuple[Hashable, ...]]]) -> dict[Hashable, list[tuple[float, ...]]]:
    buckets: dict[Hashable, list[tuple[float, ...]]] = defaultdict(list)
    for exact, doubles in counted:
        buckets[exact].append(tuple(value if isinstance(value, float) else math.nan for value in doubles))
    return buckets


def _rows_of(buckets: dict[Hashable, list[tuple[float, ...]]]) -> list[Row]:
    return [(exact, doubles) for exact, many in buckets.items() for doubles in many]


def _unpaired(
    left: list[tuple[float, ...]], right: list[tuple[float, ...]], rel: float
) -> tuple[list[tuple[float, ...]], list[tuple[float, ...]]]:
    def fits(a: tuple[float, ...], b: tuple[float, ...]) -> bool:
        return all(near(x, y, rel) for x, y in zip(a, b, strict=True))

    if len(left) == len(right) and all(map(fits, left, right)):
        return [], []
    if len(left) > PAIRWISE_ROWS:
        return left, right
    alone = []
    for one in left:
        match = next((index for index, other in enumerate(right) if fits(one, other)), None)
        if match is None:
            alone.append(one)
        else:
            right.pop(match)
    return alone, right


def _splitter(kind: pa.DataType) -> Callable[[Any, list[float]], Hashable]:
    """A function that makes a value of this type hashable and takes its doubles out."""
    if pa.types.is_floating(kind):

        def split_float(value: Any, doubles: list[float]) -> Hashable:
            if value is None:
                return None
            doubles.append(value)
            return Float

        return split_float
    if pa.types.is_list(kind):
        item = _splitter(kind.value_type)
        return lambda value, doubles: None if value is None else tuple(item(one, doubles) for one in value)
    if pa.types.is_map(kind):
        return _map_splitter(_splitter(kind.key_type), _splitter(kind.item_type))
    if pa.types.is_struct(kind):
        fields = [(field.name, _splitter(field.type)) for field in kind]
        return lambda value, doubles: (
            None if value is None else tuple(split(value[name], doubles) for name, split in fields)
        )
    return lambda value, doubles: value


def _map_splitter(
    key: Callable[[Any, list[float]], Hashable], item: Callable[[Any, list[float]], Hashable]
) -> Callable[[Any, list[float]], Hashable]:
    def split_map(value: Any, doubles: list[float]) -> Hashable:
        # A map has no order: sort its entries by their text.
        if value is None:
            return None
        entries = sorted(value, key=repr)
        return tuple((key(one, doubles), item(other, doubles)) for one, other in entries)

    return split_map


def _plain(table: pa.Table) -> pa.Table:
    """Normal types, with dates and times as numbers: Python's own have too small a range."""
    fields = [pa.field(f"c{index}", _plain_type(field.type)) for index, field in enumerate(table.schema)]
    columns = [column.cast(field.type) for column, field in zip(table.columns, fields, strict=True)]
    return pa.table(columns, schema=pa.schema(fields)) if columns else table


def _plain_type(kind: pa.DataType) -> pa.DataType:
    kind = normal_type(kind)
    if pa.types.is_date32(kind):
        return pa.int32()
    if pa.types.is_timestamp(kind) or pa.types.is_duration(kind) or pa.types.is_time64(kind):
        return pa.int64()
    return _rebuilt(kind, _plain_type)


def _rebuilt(kind: pa.DataType, of: Callable[[pa.DataType], pa.DataType]) -> pa.DataType:
    """A nested type with `of` applied inside; names of a struct's fields count, those of lists and maps do not."""
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return pa.list_(of(kind.value_type))
    if pa.types.is_map(kind):
        return pa.map_(of(kind.key_type), of(kind.item_type))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, of(field.type)) for field in kind])
    return kind

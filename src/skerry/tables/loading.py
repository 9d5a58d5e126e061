"""Columns of a client's own Arrow batches as a table's: which types it takes, and casts that change no value. Pure."""

from __future__ import annotations

import pyarrow as pa
from pyarrow import types

from skerry.model.errors import UserError
from skerry.tables.columns import arrow_schema
from skerry.tables.computed import Wanted

_WHOLE = pa.decimal128(20, 0)  # holds every whole number


def check_types(wanted: Wanted, given: pa.Schema) -> None:
    """UserError that names every column whose type the table does not take."""
    table, schema = wanted.table, arrow_schema(wanted.table)
    if len(given) != len(wanted.places):
        raise UserError(f"{len(given)} columns come for {len(wanted.places)} of table {table.name}")
    wrong = [
        f"{table.columns[place].name} is {table.columns[place].type}, and takes no {field.type}"
        for place, field in zip(wanted.places, given, strict=True)
        if not _takes(schema.field(place).type, field.type)
    ]
    if wrong:
        raise UserError(
            f"table {table.name}: column {'; column '.join(wrong)}",
            suggestion="cast the columns before they are loaded",
        )


def stored_columns(wanted: Wanted, batch: pa.RecordBatch) -> list[pa.Array]:
    """In the table's types; UserError for a value that its column cannot hold as it is."""
    table, schema = wanted.table, arrow_schema(wanted.table)
    columns = []
    for place, array in zip(wanted.places, batch.columns, strict=True):
        target = schema.field(place).type
        try:
            if types.is_decimal(target) and types.is_integer(array.type):
                array = array.cast(_WHOLE)  # else Arrow asks for digits that the type might need, not the values
            columns.append(array.cast(target))
        except pa.ArrowException as error:
            why = str(error).splitlines()[0][:200]
            column = table.columns[place]
            raise UserError(
                f"table {table.name}: column {column.name} is {column.type}, and a value does not fit ({why}); nothing "
                "was written"
            ) from None
    return columns


def _takes(target: pa.DataType, source: pa.DataType) -> bool:
    """Types of one sort. Whether each value fits shows when it is cast; no value is rounded or cut."""
    if target == source or types.is_null(source):
        return True
    if types.is_nested(target):
        return _takes_nested(target, source)
    if types.is_integer(target):
        return bool(types.is_integer(source))
    if types.is_floating(target):
        is_exact = types.is_floating(source) and source.bit_width <= target.bit_width
        return bool(is_exact or types.is_integer(source))
    if types.is_decimal(target):
        return bool(types.is_decimal(source) or types.is_integer(source))
    if types.is_timestamp(target):
        return bool(types.is_timestamp(source) and (target.tz is None) == (source.tz is None))
    if types.is_date(target):
        return bool(types.is_date(source))
    if types.is_string(target):
        return bool(types.is_large_string(source))
    return bool(types.is_binary(target) and types.is_large_binary(source))


def _takes_nested(target: pa.DataType, source: pa.DataType) -> bool:
    if types.is_struct(target):
        names = [target.field(place).name for place in range(target.num_fields)]
        if not types.is_struct(source) or names != [source.field(place).name for place in range(source.num_fields)]:
            return False
    elif types.is_list(target):
        if not (types.is_list(source) or types.is_large_list(source)):
            return False
    elif not types.is_map(source):
        return False
    pairs = ((target.field(place).type, source.field(place).type) for place in range(target.num_fields))
    return all(_takes(own, given) for own, given in pairs)

"""A table's columns as Arrow knows them, and why a table cannot be one of ours. Pure."""

from __future__ import annotations

import functools
import re

import pyarrow as pa

from skerry.model.columns import BadType, normal_type, split_types
from skerry.model.limits import SCHEMAS_KEPT
from skerry.model.sharded import OwnTable

PLAIN: dict[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}
CHANGE = "\x00change"  # no column is called so
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")
_NESTED = re.compile(r"(array|map|struct)<(.*)>")


def arrow_type(text: str) -> pa.DataType:
    """Of Spark's short text; BadType for types that Spark reads from no file, as intervals."""
    return _type(normal_type(text))


def _type(text: str) -> pa.DataType:
    if text in PLAIN:
        return PLAIN[text]
    if decimal := _DECIMAL.fullmatch(text):
        return pa.decimal128(int(decimal[1]), int(decimal[2]))
    nested = _NESTED.fullmatch(text)
    assert nested is not None, text  # `normal_type` has read it
    if nested[1] == "array":
        return pa.list_(pa.field("element", _type(nested[2])))
    parts = split_types(nested[2])
    if nested[1] == "map":
        key, value = (_type(part) for part in parts)
        return pa.map_(pa.field("key", key, nullable=False), pa.field("value", value))
    fields = (part.partition(":") for part in parts)
    return pa.struct([pa.field(name, _type(kind)) for name, _, kind in fields])


@functools.lru_cache(SCHEMAS_KEPT)
def arrow_schema(table: OwnTable) -> pa.Schema:
    """All fields may be null here: of a deleted row only its key is known."""
    return pa.schema([pa.field(column.name, arrow_type(column.type)) for column in table.columns])


def change_schema(table: OwnTable) -> pa.Schema:
    """The same, and what becomes of each row (`model/commits.Change`)."""
    return arrow_schema(table).append(pa.field(CHANGE, pa.int8(), nullable=False))


def spread_by(table: OwnTable) -> tuple[str, ...]:
    """The columns whose hash says which group of files a row is in; a table at every member has groups as well."""
    return table.distributed_by or table.primary_key


def fault_of(table: OwnTable) -> str:
    """Why this cannot be a table of ours; "" if it can."""
    kinds: dict[str, pa.DataType] = {}
    for column in table.columns:
        try:
            kind = arrow_type(column.type)
        except BadType:
            return f"column {column.name}: no file holds values of type {column.type}"
        if column.name.lower() in (name.lower() for name in kinds):
            return f"column {column.name} is named twice"
        kinds[column.name] = kind
    ids = [column.id for column in table.columns]
    if ids != [0] * len(ids) if not table.next_column else len(set(ids)) < len(ids):
        return "the numbers of its columns are not such as there are"
    if table.next_column and not all(0 < each < table.next_column for each in ids):
        return "the numbers of its columns are not such as there are"
    if not table.primary_key:
        return "it has no PRIMARY KEY"
    for name in table.primary_key:
        if name not in kinds:
            return f"column {name} of the PRIMARY KEY is not one of its columns"
        if pa.types.is_nested(kinds[name]):
            return f"column {name} of the PRIMARY KEY has type {kinds[name]}: keys are single values"
    if len(set(table.primary_key)) < len(table.primary_key):
        return "a column is in the PRIMARY KEY twice"
    outside = [name for name in table.distributed_by if name not in table.primary_key]
    if outside:
        return f"column {outside[0]} of DISTRIBUTED BY is not in the PRIMARY KEY"
    if table.buckets < 1:
        return "it has no buckets"
    return ""

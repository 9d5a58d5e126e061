"""Whether the Parquet files of one table can be read as one, with the same rows from every kind of Spark.

Apache Spark takes the columns from the first file and Sail from all of them; both read by name. So a file may have
them in another order, or lack some, which are NULL then. All else is said with the names of both files.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from skerry.catalog.footers import Footer, footers_now, spark_type
from skerry.catalog.listing import Listing, ListingError
from skerry.model.columns import decimal_digits, split_types
from skerry.model.config import TableConfig
from skerry.model.table import Column

# The types of a file's column that Spark reads as the wanted one without loss.
WIDER: Mapping[str, tuple[str, ...]] = {
    "smallint": ("tinyint",),
    "int": ("tinyint", "smallint"),
    "bigint": ("tinyint", "smallint", "int"),
    "double": ("tinyint", "smallint", "int", "float"),
    "timestamp": ("timestamp_ntz",),
    "timestamp_ntz": ("timestamp", "date"),
    "string": ("binary",),
    "binary": ("string",),
}
# Digits that a decimal needs before its point to hold every value of a type.
_DIGITS = {"tinyint": 10, "smallint": 10, "int": 10, "bigint": 20}

# What Sail calls types that Apache Spark takes for longer ones.
_SAIL = {pa.uint8(): "tinyint", pa.uint16(): "smallint", pa.uint32(): "int", pa.uint64(): "bigint"}


class _Wanted(NamedTuple):
    """A column of the table, and where it is said: a file, or the configuration, which has no Arrow type."""

    name: str
    type: str
    kind: Any
    where: str


def agreed_rows(table: TableConfig, listing: Listing, is_sail: bool) -> int:
    """How many rows the files have now; ListingError when they cannot be read as one table."""
    footers = footers_now(listing.files)
    if how := disagreement(table, listing, footers, is_sail):
        raise ListingError(table, how)
    return sum(footer.rows for footer in footers)


def disagreement(table: TableConfig, listing: Listing, footers: Sequence[Footer], is_sail: bool) -> str:
    """Why the files are not one table, with both places and what to do; "" when they are."""
    seen = _Columns(table, is_sail)
    done: set[int] = set()
    for file, footer in zip(listing.files, footers, strict=True):
        if id(footer.schema) not in done:  # files with the same columns share one schema
            done.add(id(footer.schema))
            if how := seen.add(os.path.relpath(file, listing.root), footer):
                return how
    return ""


def is_merged(table: TableConfig) -> bool:
    """Whether the table has the columns of all its files, by an option of Spark's reader."""
    return any(key.lower() == "mergeschema" and value.lower() == "true" for key, value in table.options.items())


class _Columns:
    """What the files that were looked at so far, or the configuration, say of the table's columns."""

    def __init__(self, table: TableConfig, is_sail: bool) -> None:
        self._key = f"{table.key}.columns"
        self._is_sail = is_sail
        self._is_declared = bool(table.columns)
        self._merges = not table.columns and is_merged(table)
        self._first = ""
        self._wanted = {each.name.lower(): _Wanted(each.name, each.type, None, self._key) for each in table.columns}

    def add(self, file: str, footer: Footer) -> str:
        """How the file's columns differ; "" when they do not."""
        is_first, self._first = not self._first, self._first or file
        names: dict[str, str] = {}
        for column, field in zip(footer.columns, footer.schema, strict=True):
            name = column.name.lower()
            wanted = self._wanted.get(name)
            if wanted is None and (is_first or self._merges) and not self._is_declared:
                wanted = self._wanted[name] = _Wanted(column.name, column.type, field.type, file)
            if wanted is None and self._is_declared:
                continue
            if wanted is None:
                return (
                    f"{column.name} is a column of {file} and not of {self._first}; name the columns to read in "
                    f"{self._key}, or have all of them by options: {{mergeSchema: true}}"
                )
            if name in names:
                return f"{file} has the columns {names[name]} and {column.name}, which are one name in SQL"
            names[name] = column.name
            if self._is_sail and pa.types.is_dictionary(field.type):
                return (
                    f"{column.name} is a category in {file} (a dictionary of Arrow's), which Sail cannot read; write "
                    "it as plain values, or use Apache Spark at this member"
                )
            if not self._fits(wanted, column.type, field.type):
                return self._clash(wanted, column.type or str(field.type), file)
        return ""

    def _fits(self, wanted: _Wanted, found: str, kind: Any) -> bool:
        if pa.types.is_null(kind):  # never had a value: Apache Spark reads it as an int, Sail as anything
            return self._is_sail or fits(wanted.type, "int")
        if wanted.kind is not None and pa.types.is_null(wanted.kind):
            return self._is_sail or fits("int", found)
        if wanted.kind is not None and pa.types.is_nested(wanted.kind):
            return _merged_type(wanted.kind, kind) is not None if self._merges else _nested_fits(wanted.kind, kind)
        if pa.types.is_nested(kind):
            return _declared_fits(wanted.type, kind, self._is_sail)
        if self._merges:  # Spark merges no types
            return not found or not wanted.type or found == wanted.type
        return fits(wanted.type, found)

    def _clash(self, wanted: _Wanted, found: str, file: str) -> str:
        known = wanted.type or str(wanted.kind)
        text = f"{wanted.name} is {known} in {wanted.where} and {found} in {file}; "
        if not self._merges and found and wanted.type and fits(found, wanted.type):
            return f"{text}declare it as {found} in {self._key}"
        return f"{text}write one of them anew"


def fits(wanted: str, found: str) -> bool:
    """Whether a file's column of the type `found` is read as `wanted`; a type of "" is not known and fits all."""
    if not wanted or not found or wanted == found:
        return True
    if wanted.startswith("decimal"):
        before, after = decimal_digits(wanted)
        if found.startswith("decimal"):
            found_before, found_after = decimal_digits(found)
            return found_before <= before and found_after <= after
        return _DIGITS.get(found, before + 1) <= before
    return found in WIDER.get(wanted, ())


def _nested_fits(wanted: Any, found: Any) -> bool:
    """A struct may lack fields; those it has are spelled alike, as Sail wants them."""
    if wanted == found:
        return True
    if pa.types.is_struct(wanted) and pa.types.is_struct(found):
        known = {field.name: field.type for field in wanted}
        return all(field.name in known and _nested_fits(known[field.name], field.type) for field in found)
    if _is_list(wanted) and _is_list(found):
        return _nested_fits(wanted.value_type, found.value_type)
    if pa.types.is_map(wanted) and pa.types.is_map(found):
        keys = _nested_fits(wanted.key_type, found.key_type)
        return keys and _nested_fits(wanted.item_type, found.item_type)
    if pa.types.is_nested(wanted) or pa.types.is_nested(found):
        return False
    return fits(spark_type(wanted), spark_type(found))


def _declared_fits(wanted: str, kind: Any, is_sail: bool) -> bool:
    """Whether a file's column is read as a type that the configuration has; fields it does not name are left out."""
    word, _, inner = wanted.partition("<")
    parts = split_types(inner.removesuffix(">"))
    if word == "struct" and pa.types.is_struct(kind):
        fields = {name.lower(): (name, type_) for name, _, type_ in (part.partition(":") for part in parts)}
        return all(
            (field.name == fields[field.name.lower()][0] or not is_sail)
            and _declared_fits(fields[field.name.lower()][1], field.type, is_sail)
            for field in kind
            if field.name.lower() in fields
        )
    if word == "array" and _is_list(kind):
        return _declared_fits(parts[0], kind.value_type, is_sail)
    if word == "map" and pa.types.is_map(kind):
        kinds = kind.key_type, kind.item_type
        return all(_declared_fits(part, each, is_sail) for part, each in zip(parts, kinds, strict=True))
    return not inner and not pa.types.is_nested(kind) and fits(wanted, spark_type(kind))


def _is_list(kind: Any) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or _is_odd_list(kind))


def _is_odd_list(kind: Any) -> bool:
    """An array to Spark, but none to Sail's reader."""
    is_view = pa.types.is_list_view(kind) or pa.types.is_large_list_view(kind)
    return bool(is_view or pa.types.is_fixed_size_list(kind))


def _has_odd_list(kind: Any) -> bool:
    return _is_odd_list(kind) or any(_has_odd_list(kind.field(index).type) for index in range(kind.num_fields))


class Group:
    """Files that Sail reads at once: it merges columns, but no types and no spellings."""

    def __init__(self) -> None:
        self.files: list[str] = []
        self._columns: dict[str, tuple[str, Any]] = {}  # by lower-case name

    def take(self, schema: pa.Schema) -> bool:
        """False when these columns do not go with the group's."""
        merged: dict[str, tuple[str, Any]] = {}
        for field in schema:
            name, kind = self._columns.get(field.name.lower(), (field.name, field.type))
            kind = _merged_type(kind, field.type)
            if name != field.name or kind is None:
                return False
            merged[name.lower()] = name, kind
        self._columns.update(merged)
        return True

    def gives(self, column: Column) -> bool:
        """Whether Sail reads the column from these files as it is written there."""
        name, kind = self._columns.get(column.name.lower(), (column.name, None))
        if kind is not None and _has_odd_list(kind):
            return False
        if kind is None or name != column.name or pa.types.is_nested(kind):
            return name == column.name
        return not pa.types.is_null(kind) and column.type in (spark_type(kind) or column.type, _SAIL.get(kind))

    def columns(self) -> tuple[Column, ...]:
        """As Apache Spark sees them; a type of "" is not known."""
        return tuple(Column(name, spark_type(kind)) for name, kind in self._columns.values())


def groups_of(files: Sequence[str]) -> list[Group]:
    """Parquet files as they are now, apart where Sail would not read them at once; the first file's group is first."""
    groups: list[Group] = []
    places: dict[int, Group] = {}
    for file, footer in zip(files, footers_now(files), strict=True):
        group = places.get(id(footer.schema))
        if group is None:
            group = next((each for each in groups if each.take(footer.schema)), None)
            if group is None:
                group = Group()
                group.take(footer.schema)
                groups.append(group)
            places[id(footer.schema)] = group
        group.files.append(file)
    return groups


def _merged_type(known: Any, kind: Any) -> Any:
    """One type with the fields of both, as Sail merges them; None when they do not go together."""
    if known == kind or pa.types.is_null(kind):
        return known
    if pa.types.is_null(known):
        return kind
    if pa.types.is_struct(known) and pa.types.is_struct(kind):
        fields = {field.name: field.type for field in known}
        for field in kind:
            fields[field.name] = _merged_type(fields.get(field.name, field.type), field.type)
        return None if None in fields.values() else pa.struct(list(fields.items()))
    for is_list, make in ((pa.types.is_list, pa.list_), (pa.types.is_large_list, pa.large_list)):
        if is_list(known) and is_list(kind):
            inner = _merged_type(known.value_type, kind.value_type)
            return None if inner is None else make(inner)
    return None

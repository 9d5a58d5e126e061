"""Whether the Parquet files of one table can be read as one, with the same rows from every kind of Spark.

Apache Spark takes the columns from the first file and Sail from all of them; both read by name. So a file may have
them in another order, or lack some, which are NULL then. All else is said with the names of both files.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa

from skerry.catalog.footers import Footer, footers_listed, footers_now, spark_type
from skerry.catalog.listing import Listing, ListingError
from skerry.model.columns import decimal_digits, split_types
from skerry.model.config import TableConfig
from skerry.model.limits import STORE_FOOTERS
from skerry.model.sources import Storage
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
    """A column of the table, and where it is said: a file, or the configuration, which has no Arrow type.

    `parts`: the files that said something new of a nested type, each with its own.
    """

    name: str
    type: str
    kind: Any
    where: str
    parts: tuple[tuple[Any, str], ...] = ()


class _Joining(NamedTuple):
    """How two nested types become one. `adds`: with the fields of both. `is_same`: no type is read as a wider one."""

    is_sail: bool
    adds: bool
    is_same: bool


def agreed_rows(table: TableConfig, listing: Listing, is_sail: bool) -> int | None:
    """How many rows the files have now, None if they are too many to ask; ListingError when they cannot be read as one
    table."""
    seen = asked_of(listing)
    footers = footers_listed(seen)
    if how := disagreement(table, seen, footers, is_sail):
        raise ListingError(table, how)
    return sum(footer.rows for footer in footers) if len(seen.files) == len(listing.files) else None


def asked_of(listing: Listing) -> Listing:
    """The files whose columns are looked at: all, but of those in a store so many, evenly chosen."""
    count = len(listing.files)
    if listing.storage is None or count <= STORE_FOOTERS:
        return listing
    chosen = [index * count // STORE_FOOTERS for index in range(STORE_FOOTERS)]
    return msgspec.structs.replace(
        listing,
        files=tuple(listing.files[index] for index in chosen),
        stamps=tuple(listing.stamps[index] for index in chosen),
    )


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
                wanted = _Wanted(column.name, column.type, field.type, file, ((field.type, file),))
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
            grown = self._grown(wanted, column.type, field.type, file)
            if grown is None:
                return self._clash(wanted, column.type or str(field.type), field.type, file)
            self._wanted[name] = grown
        return ""

    def _grown(self, wanted: _Wanted, found: str, kind: Any, file: str) -> _Wanted | None:
        """The column with what the file adds to its type; None when the file's is not read as it."""
        if wanted.kind is None or not pa.types.is_nested(wanted.kind):
            if not self._fits(wanted, found, kind):
                return None
            # Sail reads NULLs without a type as anything, so the first file with a type says which.
            is_open = self._is_sail and wanted.kind is not None and pa.types.is_null(wanted.kind)
            return _Wanted(wanted.name, found, kind, file, ((kind, file),)) if is_open else wanted
        joined = _joined(wanted.kind, kind, _Joining(self._is_sail, adds=self._merges, is_same=self._merges))
        if joined is None or joined == wanted.kind:
            return None if joined is None else wanted
        return wanted._replace(kind=joined, parts=(*wanted.parts, (kind, file)))

    def _fits(self, wanted: _Wanted, found: str, kind: Any) -> bool:
        if self._is_sail and (pa.types.is_null(kind) or (wanted.kind is not None and pa.types.is_null(wanted.kind))):
            return True
        known = wanted.type or _leaf_type(wanted.kind)
        if pa.types.is_nested(kind):
            return _declared_fits(known, kind, self._is_sail)
        found = found or _leaf_type(kind)
        if self._merges:  # Spark merges no types
            return not found or not known or found == known
        return fits(known, found)

    def _clash(self, wanted: _Wanted, found: str, kind: Any, file: str) -> str:
        known, where = wanted.type or str(wanted.kind), wanted.where
        joining = _Joining(self._is_sail, adds=True, is_same=self._merges)
        for part, said in wanted.parts:  # the type may be that of several files, of which one is at odds with this
            if _joined(part, kind, joining) is None:
                known, where = spark_type(part) or str(part), said
                break
        text = f"{wanted.name} is {known} in {where} and {found} in {file}; "
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


def _joined(known: Any, kind: Any, how: _Joining) -> Any:
    """`known` with what a file's `kind` adds; None when the file's is not read as it."""
    if known == kind:
        return known
    if how.is_sail and (pa.types.is_null(known) or pa.types.is_null(kind)):
        return kind if pa.types.is_null(known) else known
    if pa.types.is_struct(known) and pa.types.is_struct(kind):
        return _joined_struct(known, kind, how)
    if _is_list(known) and _is_list(kind):
        if how.is_sail and how.is_same and known.id != kind.id:
            return None  # Sail adds no fields to lists that are written otherwise
        inner = _joined(known.value_type, kind.value_type, how)
        return None if inner is None else known if inner == known.value_type else pa.list_(inner)
    if pa.types.is_map(known) and pa.types.is_map(kind):
        key, item = _joined(known.key_type, kind.key_type, how), _joined(known.item_type, kind.item_type, how)
        return None if key is None or item is None else pa.map_(key, item)
    if pa.types.is_nested(known) or pa.types.is_nested(kind):
        return None
    wanted, found = _leaf_type(known), _leaf_type(kind)
    is_read = wanted == found != "" if how.is_same else fits(wanted, found)
    return known if is_read else None


def _joined_struct(known: Any, kind: Any, how: _Joining) -> Any:
    """A struct may lack fields. Those of one name are spelled alike: Spark merges no others, and Sail reads none."""
    fields = {field.name: field.type for field in known}
    spelled = {name.lower() for name in fields}
    for field in kind:
        if field.name not in fields and (field.name.lower() in spelled or not how.adds):
            return None
        joined = _joined(fields.get(field.name, field.type), field.type, how)
        if joined is None:
            return None
        fields[field.name] = joined
    return pa.struct(list(fields.items()))


def _leaf_type(kind: Any) -> str:
    """A type without others inside, as Apache Spark reads it: as an int where no value ever was."""
    return "int" if pa.types.is_null(kind) else spark_type(kind)


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
    if is_sail and pa.types.is_null(kind):
        return True
    return not inner and not pa.types.is_nested(kind) and fits(wanted, _leaf_type(kind))


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


def groups_of(files: Sequence[str], storage: Storage | None = None) -> list[Group]:
    """Parquet files as they are now, apart where Sail would not read them at once; the first file's group is first."""
    groups: list[Group] = []
    places: dict[int, Group] = {}
    for file, footer in zip(files, footers_now(files, storage), strict=True):
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

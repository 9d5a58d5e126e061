"""Rows that a query gave → what is written, and where: the second of the two ways (T7). Pure.

A query has no order: where one of two rows would have to be chosen, nothing is written.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

import msgspec
import numpy as np
import pyarrow as pa
from pyarrow import compute as pc

from skerry.model.commits import Change, Policy, Write
from skerry.model.errors import KeyExists, SqlError, UserError
from skerry.model.rights import Action
from skerry.model.sharded import Definition, OwnTable
from skerry.model.table import Column
from skerry.sql import owntables as said
from skerry.sql.owntables import Delete, Insert, Merge, Update
from skerry.tables.checks import encode_patch
from skerry.tables.columns import arrow_schema, change_schema
from skerry.tables.keys import encode_keys
from skerry.tables.routing import Routed, buckets_of_rows, placed
from skerry.tables.rows import encode_rows
from skerry.tables.storing import hides_reals, is_cast_here, is_exact, stored_as, takes
from skerry.tables.ways import default_of
from skerry.tables.writes import deletes_of, writes_of

_VALUES = msgspec.msgpack.Decoder(list[msgspec.Raw])


class Wanted(msgspec.Struct, frozen=True):
    """What a query's columns mean: `places` in the table; before them the key of the row, unless it is inserted.

    `moves`: a column of the key is set, `places` are all columns. A merge has `clauses`, whose places these are, one
    after the other; the number of the clause comes before the key.
    """

    kind: Literal["insert", "update", "delete", "merge"]
    table: OwnTable
    places: tuple[int, ...] = ()
    policy: Policy = Policy.FAIL
    moves: bool = False
    clauses: tuple[tuple[Action, tuple[int, ...]], ...] = ()
    may_match_again: bool = False

    @property
    def others(self) -> str:
        """The word behind which stands what rows are matched with."""
        return "USING" if self.kind == "merge" else "FROM"

    @property
    def key_width(self) -> int:
        """Columns before the values."""
        return 0 if self.kind == "insert" else len(self.table.primary_key) + (self.kind == "merge")


def wanted_of(change: said.Change, *, is_whole: bool = False) -> Wanted:
    """`is_whole`: what is updated is given with all columns."""
    table = change.table
    match change:
        case Insert(columns=columns, policy=policy):
            return Wanted("insert", table, columns, policy)
        case Update(moves_rows=moves_rows) if moves_rows or is_whole:
            return Wanted("update", table, tuple(range(len(table.columns))), moves=True)
        case Update(assignments=assignments):
            return Wanted("update", table, tuple(place for place, _ in assignments))
        case Delete():
            return Wanted("delete", table)
        case Merge(clauses=clauses, may_match_again=may_match_again):
            places = tuple(place for _, own in clauses for place in own)
            return Wanted("merge", table, places, clauses=clauses, may_match_again=may_match_again)
    raise AssertionError(change)


def needs_casts(wanted: Wanted, given: Sequence[Column]) -> bool:
    """Whether Spark has to cast what the query gives; SqlError if a column does not take it (ANSI store assignment)."""
    table = wanted.table
    values = given[wanted.key_width :]
    if len(values) != len(wanted.places):
        raise SqlError(
            f"[INSERT_COLUMN_ARITY_MISMATCH] the query gives {len(values)} columns, table {table.name} takes "
            f"{len(wanted.places)} here"
        )
    columns = [table.columns[place] for place in wanted.places]
    for column, value in zip(columns, values, strict=True):
        if not takes(column.type, value.type):
            raise SqlError(
                f"[INCOMPATIBLE_DATA_FOR_TABLE.CANNOT_SAFELY_CAST] column {column.name} of {table.name} is "
                f"{column.type}, and takes no {value.type}",
                suggestion=f"CAST(… AS {column.type.upper()}) says what is meant",
            )
        if hides_reals(column.type, value.type):
            raise SqlError(
                f"column {column.name} of {table.name} is {column.type}, and {value.type} is given: floating point "
                "numbers inside of others are not made decimals",
                suggestion=f"CAST(… AS {column.type.upper()}) says what is meant (Sail casts it inexactly)",
            )
    return any(
        not is_exact(column.type, value.type) and not is_cast_here(column.type, value.type)
        for column, value in zip(columns, values, strict=True)
    )


def cast_here(wanted: Wanted, given: Sequence[Column]) -> tuple[int, ...]:
    """Which of the values no engine casts: the member does (`storing.stored_as`)."""
    pairs = zip(wanted.places, given[wanted.key_width :], strict=True)
    return tuple(
        number
        for number, (place, value) in enumerate(pairs)
        if is_cast_here(wanted.table.columns[place].type, value.type)
    )


def routed_rows(
    definition: Definition, wanted: Wanted, rows: pa.Table, user: str = "", roles: tuple[str, ...] = ()
) -> Routed:
    """UserError if these rows cannot all be written."""
    batch = rows.combine_chunks().to_batches()
    if not batch:
        return Routed({}, 1, wanted.table.name)
    (given,) = batch
    writes, keys = (_inserts if wanted.kind == "insert" else _changes)(wanted, given)
    return placed(definition, writes, lambda: buckets_of_rows(definition.table, keys), user, roles)


def needs_whole(wanted: Wanted) -> bool:
    """Whether rows of which the query gives only some columns are updated: more than a message holds need them all."""
    if wanted.kind == "merge":
        every = len(wanted.table.columns)
        return any(action == "update" and len(places) < every for action, places in wanted.clauses)
    return wanted.kind == "update" and not wanted.moves


def changed_rows(wanted: Wanted, columns: Sequence[pa.Array]) -> pa.RecordBatch:
    """What becomes of each row, for those that go ahead of their commit (`columns.change_schema`)."""
    table, schema = wanted.table, change_schema(wanted.table)
    found: list[pa.RecordBatch] = []

    def add(rows: pa.RecordBatch, change: Change) -> None:
        if rows.num_rows:
            given = {name: rows.column(name) for name in rows.schema.names}
            arrays = [given.get(field.name, pa.nulls(rows.num_rows, field.type)) for field in schema]
            arrays[-1] = pa.repeat(pa.scalar(int(change), pa.int8()), rows.num_rows)
            found.append(pa.RecordBatch.from_arrays(arrays, schema=schema))

    names = [str(place) for place in range(len(columns))]
    for action, places, keys, values in _by_clause(wanted, pa.RecordBatch.from_arrays(list(columns), names=names)):
        if action == "delete":
            add(keys, Change.DELETE_AGAIN if wanted.may_match_again else Change.DELETE)
            continue
        rows = whole_rows(Wanted("insert", table, places), values)
        if action == "insert":
            add(rows, Change.INSERT)
            continue
        new = encode_keys(table.primary_key, [rows.column(name) for name in table.primary_key])
        old = encode_keys(table.primary_key, keys.columns)
        is_moved = pa.array([before != key for before, key in zip(old, new, strict=True)], pa.bool_())
        add(rows.filter(pc.invert(is_moved)), Change.PUT)
        add(keys.filter(is_moved), Change.LEAVE)
        add(rows.filter(is_moved), Change.INSERT)
    return pa.Table.from_batches(found, schema).combine_chunks().to_batches()[0] if found else _none(schema)


def _none(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([], field.type) for field in schema], schema=schema)


def size_of(routed: Routed) -> int:
    """Bytes of keys and rows, of all copies."""
    writes = (write for part in routed.parts.values() for write in part.writes)
    return sum(len(write.key) + len(write.row or b"") for write in writes)


def _inserts(wanted: Wanted, given: pa.RecordBatch) -> tuple[list[Write | None], pa.RecordBatch]:
    rows = whole_rows(wanted, given.columns)
    writes: list[Write | None] = []
    before: dict[bytes, bytes | None] = {}
    for write in writes_of(wanted.table, rows, wanted.policy):
        is_again = write.key in before
        if is_again and (wanted.policy is Policy.FAIL or before[write.key] != write.row):
            raise KeyExists(
                f"table {wanted.table.name}: two rows of the query have the same primary key; nothing was written",
                suggestion="a query has no order, so none of them is the first: choose one by GROUP BY, or by "
                "row_number() OVER (PARTITION BY the key ORDER BY …)",
            )
        before[write.key] = write.row
        writes.append(None if is_again else write)
    return writes, rows.select(list(wanted.table.primary_key))


class _Changed:
    """Writes of one sort, and their keys, one for one."""

    def __init__(self, table: OwnTable) -> None:
        schema = arrow_schema(table)
        self._keys = [pa.RecordBatch.from_pylist([], pa.schema([schema.field(name) for name in table.primary_key]))]
        self.writes: list[Write] = []

    def add(self, writes: Sequence[Write], keys: pa.RecordBatch) -> None:
        self.writes += writes
        self._keys.append(keys)

    @property
    def keys(self) -> pa.Table:
        return pa.Table.from_batches(self._keys)

    def shown(self, key: bytes) -> str:
        """The key of a write, for a person."""
        place = next(place for place, write in enumerate(self.writes) if write.key == key)
        row = self.keys.slice(place, 1).to_pylist()[0]
        return ", ".join(f"{name} = {str(value)[:40]}" for name, value in row.items())


def _changes(wanted: Wanted, given: pa.RecordBatch) -> tuple[list[Write | None], pa.RecordBatch]:
    """Writes of rows that stay where they are, that go, and that come. A row of the table may be meant once."""
    table = wanted.table
    stay, go, come = _Changed(table), _Changed(table), _Changed(table)
    for action, places, keys, values in _by_clause(wanted, given):
        if action == "insert":
            rows = whole_rows(Wanted("insert", table, places), values)
            come.add(writes_of(table, rows, Policy.FAIL), rows.select(list(table.primary_key)))
        elif action == "delete":
            go.add(deletes_of(table, keys), keys)
        else:
            _update(table, dict(zip(places, values, strict=True)), keys, stay, go, come)
    old = Counter(write.key for each in (stay, go) for write in each.writes)
    for key, count in old.most_common(0 if wanted.may_match_again else 1):
        if count > 1:
            shown = next(each for each in (stay, go) if any(write.key == key for write in each.writes)).shown(key)
            raise UserError(
                f"[MERGE_CARDINALITY_VIOLATION] table {table.name}: {count} rows of {wanted.others} match the row of "
                f"{shown}; nothing was written",
                suggestion=f"group what stands behind {wanted.others}, so that each row of the table has one match",
            )
    new = Counter(write.key for write in (*stay.writes, *come.writes))
    for key, count in new.most_common(1):
        if count > 1:
            raise KeyExists(
                f"table {table.name}: two rows would get the same primary key, {come.shown(key)}; nothing was written"
            )
    # A place that another row of the statement leaves is free.
    made: list[Write | None] = [*stay.writes]
    made += [
        msgspec.structs.replace(write, policy=Policy.REPLACE) if write.key in old else write for write in come.writes
    ]
    taken = {write.key for write in come.writes}
    for write in go.writes:
        made.append(None if write.key in taken else write)
        taken.add(write.key)
    keys = pa.concat_tables([stay.keys, come.keys, go.keys]).combine_chunks()
    return made, keys.to_batches()[0]


def _by_clause(
    wanted: Wanted, given: pa.RecordBatch
) -> Iterator[tuple[Action, tuple[int, ...], pa.RecordBatch, list[pa.Array]]]:
    """What each clause does: the columns it sets or gives, the keys of the rows that it meets, and the values."""
    if wanted.kind != "merge":
        assert wanted.kind != "insert"
        yield wanted.kind, wanted.places, _keys(wanted, given), given.columns[wanted.key_width :]
        return
    at = wanted.key_width
    for number, (action, places) in enumerate(wanted.clauses):
        own = given.filter(pc.equal(given.column(0), number))
        values, at = own.columns[at : at + len(places)], at + len(places)
        if own.num_rows:
            keys = own.select(range(1, wanted.key_width))
            yield action, places, keys if action == "insert" else _keys(Wanted("delete", wanted.table), keys), values


def _update(
    table: OwnTable, values: dict[int, pa.Array], keys: pa.RecordBatch, stay: _Changed, go: _Changed, come: _Changed
) -> None:
    """Rows whose key is set to what it is stay: `UPDATE SET *` does so."""
    schema, encoded = arrow_schema(table), encode_keys(table.primary_key, keys.columns)
    places = {schema.get_field_index(name): name for name in table.primary_key}
    is_moved = np.zeros(len(encoded), np.bool_)
    if places.keys() & values.keys():
        new = [_stored(table, place, stored_as(values[place], schema.field(place).type)) for place in places]
        moved = encode_keys(table.primary_key, new)
        is_moved = np.array([old != key for old, key in zip(encoded, moved, strict=True)], np.bool_)
    set_to = {place: array for place, array in values.items() if place not in places}
    here = pa.array(~is_moved)
    patches = _patches(table, {place: array.filter(here) for place, array in set_to.items()}, int((~is_moved).sum()))
    kept = keys.filter(here)
    of_kept = encode_keys(table.primary_key, kept.columns)
    stay.add([Write(table.id, key, each, is_patch=True) for key, each in zip(of_kept, patches, strict=True)], kept)
    if is_moved.any():
        left = keys.filter(pa.array(is_moved))
        gone = (msgspec.structs.replace(write, is_counted=False) for write in deletes_of(table, left))
        go.add(list(gone), left)
        arrays = [values[place].filter(pa.array(is_moved)) for place in range(len(table.columns))]
        rows = whole_rows(Wanted("insert", table, tuple(range(len(table.columns)))), arrays)
        come.add(writes_of(table, rows, Policy.FAIL), rows.select(list(table.primary_key)))


def _patches(table: OwnTable, values: dict[int, pa.Array], count: int) -> Iterable[bytes]:
    if not values:
        return [encode_patch([])] * count
    schema, places = arrow_schema(table), list(values)
    stored = [_stored(table, place, stored_as(array, schema.field(place).type)) for place, array in values.items()]
    set_to = pa.RecordBatch.from_arrays(stored, names=[str(place) for place in places])
    return (encode_patch(list(zip(places, _VALUES.decode(row), strict=True))) for row in encode_rows(set_to))


def _keys(wanted: Wanted, given: pa.RecordBatch) -> pa.RecordBatch:
    names, schema = wanted.table.primary_key, arrow_schema(wanted.table)
    arrays = [given.column(place).cast(schema.field(name).type) for place, name in enumerate(names)]
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema([schema.field(name) for name in names]))


def whole_rows(wanted: Wanted, given: Iterable[pa.Array]) -> pa.RecordBatch:
    """Whole rows: what the query gives, and defaults."""
    table, schema = wanted.table, arrow_schema(wanted.table)
    arrays = dict(zip(wanted.places, given, strict=True))
    count = len(next(iter(arrays.values())))
    columns = []
    for place, column in enumerate(table.columns):
        kind = schema.field(place).type
        if place in arrays:
            columns.append(_stored(table, place, stored_as(arrays[place], kind)))
        else:
            columns.append(pa.repeat(pa.scalar(default_of(column), kind), count))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _stored(table: OwnTable, place: int, values: pa.Array) -> pa.Array:
    column = table.columns[place]
    if not column.is_nullable and values.null_count:
        raise UserError(
            f"[NOT_NULL_ASSERT_VIOLATION] column {column.name} of {table.name} is NOT NULL, and NULL is given "
            f"in {values.null_count} of {len(values)} rows; nothing was written",
            suggestion=f"coalesce({column.name}, …), or leave these rows out",
        )
    return values

"""Writes whose keys and values a query gives: planned where all queries are, and what came of them made into rows."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import pyarrow as pa

from skerry.member.planning import Knowledge, Planned, SchemaCatalog, given_values, planned_query
from skerry.member.requests import RunStatement
from skerry.model.commits import Policy
from skerry.model.errors import InternalError, UserError
from skerry.model.limits import WRITE_TUPLES, WRITE_TUPLES_BYTES
from skerry.model.results import Schema
from skerry.model.sharded import OwnTable
from skerry.model.variables import Variable
from skerry.sql.changes import analyse_change
from skerry.sql.owntables import Change, Configured, Delete, Insert, Known, Update, key_columns
from skerry.tables.routing import Rows
from skerry.tables.stored import stored
from skerry.wire.codec import decode_batch, decode_schema


class ChangeStatement(msgspec.Struct, frozen=True):
    """`tables`: those of our own that the user may see, by name in lower case; `names` of all there are."""

    statement: RunStatement
    tables: Mapping[str, OwnTable]
    names: frozenset[str]
    members: tuple[str, ...]

    @property
    def sql(self) -> str:
        return self.statement.sql

    @property
    def share(self) -> str:
        return self.statement.share

    @property
    def variables(self) -> Mapping[str, Variable]:
        return self.statement.variables


class ByQuery(msgspec.Struct, frozen=True):
    """`has_keys`: the query gives the key first, of rows that are there; then the columns at `places`."""

    table: OwnTable
    planned: Planned
    has_keys: bool
    places: tuple[int, ...]
    policy: Policy


def plan_change(planner: Knowledge, message: ChangeStatement) -> ByQuery:
    """For whoever plans."""
    statement = message.statement
    planner = planner.seen_by(statement.rights)
    catalog = SchemaCatalog(planner.catalog, statement.schema_name)
    known = Known(Configured(catalog, message.names), message.tables, message.members)
    change = analyse_change(statement.sql, given_values(statement), known, planner.limits, needs_query=True)
    if not isinstance(change, Change) or change.query is None:
        raise InternalError("a write that needs no query was planned as one")
    planned = planned_query(change.query, planner, statement)
    match change:
        case Insert():
            return ByQuery(change.table, planned, False, change.columns, change.policy)
        case Update():
            places = tuple(place for place, _ in change.assignments)
            if change.moves_rows:
                places = tuple(range(len(change.table.columns)))
        case Delete():
            places = ()
    if planned.is_veiled:
        raise UserError(f"to change {change.table.name} by a query needs the right to read all that it reads")
    return ByQuery(change.table, planned, True, places, Policy.REPLACE)


def check_size(rows: int, size_bytes: int) -> None:
    if rows > WRITE_TUPLES or size_bytes > WRITE_TUPLES_BYTES:
        raise UserError(
            f"the statement writes more than {WRITE_TUPLES} rows, or {WRITE_TUPLES_BYTES} bytes, by a query: "
            "so many are not there yet",
            suggestion="write in several statements",
        )


def rows_of(change: ByQuery, schema: Schema, batches: list[memoryview], batch_bytes: int) -> Rows:
    """What the query gave, as the table keeps it; UserError if it does not take that."""
    arrow = decode_schema(schema.arrow)
    table = pa.Table.from_batches([decode_batch(each, arrow, batch_bytes) for each in batches], arrow)
    key = list(key_columns(change.table)) if change.has_keys else []
    columns = [*key, *(change.table.columns[place] for place in change.places)]
    if len(columns) != table.num_columns:
        raise UserError(f"the query gives {table.num_columns} columns, {change.table.name} takes {len(columns)} here")
    pairs = zip(columns, table.columns, schema.columns, strict=True)
    arrays = [stored(_whole(values), said.type, column) for column, values, said in pairs]
    keys = None
    if change.has_keys:
        keys = pa.RecordBatch.from_arrays(arrays[: len(key)], names=list(change.table.primary_key))
    return Rows(keys, tuple(arrays[len(key) :]), change.places)


def _whole(values: pa.ChunkedArray) -> pa.Array:
    made = values.combine_chunks()
    return made if isinstance(made, pa.Array) else pa.concat_arrays(made.chunks or [pa.array([], values.type)])

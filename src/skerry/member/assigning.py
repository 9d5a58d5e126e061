"""The row of a DECLARE or SET VAR → the variables that its client keeps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from skerry.member.planning import Assigned
from skerry.model.errors import UserError
from skerry.model.results import Schema, Value
from skerry.model.variables import Variable, check_kept, check_variables
from skerry.wire.codec import decode_batch, decode_schema
from skerry.wire.values import to_value


def assigned_variables(
    assigned: Assigned, schema: Schema, batches: list[memoryview], before: Mapping[str, Variable], batch_bytes: int
) -> dict[str, Variable]:
    """UserError for more than one row, and for values that are not kept. No row is a row of NULLs, as in Spark."""
    count = 1 if assigned.default is not None else len(assigned.targets)
    if count != len(schema.columns):
        raise UserError(f"[ASSIGNMENT_ARITY_MISMATCH] {count} variables are set to {len(schema.columns)} values")
    for name, column in zip(assigned.targets, schema.columns, strict=False):
        check_kept(name, column.type)
    arrow = decode_schema(schema.arrow)
    rows = [row for each in batches for row in _rows(decode_batch(each, arrow, batch_bytes))]
    if len(rows) > 1:
        raise UserError("[ROW_SUBQUERY_TOO_MANY_ROWS] the query gives more than one row to be set")
    row = rows[0] if rows else [None] * count
    values = [Variable(column.type, _value(value)) for column, value in zip(schema.columns, row, strict=True)]
    if assigned.default is not None:
        made = dict.fromkeys(assigned.targets, Variable(values[0].type, values[0].value, assigned.default))
    else:
        pairs = zip(assigned.targets, values, strict=True)
        made = {name: Variable(each.type, each.value, before[name].default) for name, each in pairs}
    check_variables({**before, **made})
    return made


def _rows(batch: pa.RecordBatch) -> list[list[Any]]:
    try:
        return [[column[at].as_py() for column in batch.columns] for at in range(batch.num_rows)]
    except (ValueError, OverflowError) as error:
        raise UserError(f"the value cannot be kept in a variable: {error}") from None


def _value(value: Any) -> Value:
    return to_value(value, "the value of a variable")

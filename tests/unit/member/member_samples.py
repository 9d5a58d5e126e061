"""Small plans, messages and spools for tests of the member layer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
import pyarrow as pa

from skerry.config import FaultPolicy
from skerry.exchange.spool import Budget, Entry, Spool
from skerry.member.faults import Patience
from skerry.model.fragment import EdgeLeaf, Output, Plan, Rows, SparkFragment, TableLeaf
from skerry.model.ids import QueryId
from skerry.model.limits import MIB, Limits
from skerry.model.results import Schema
from skerry.model.table import Column
from skerry.plan.cache import fingerprint
from skerry.wire.codec import decode_batch, decoded_bytes, encode_batch, encode_schema
from skerry.wire.messages import Execute

QUERY = QueryId("oslo", "0123456789abcdef0123456789abcdef")
ARROW = pa.schema([("k", pa.int64()), ("v", pa.string())])
SCHEMA = Schema((Column("k", "bigint"), Column("v", "string")), encode_schema(ARROW))
TIMEOUT_S = 100.0
PATIENCE = Patience.of(FaultPolicy.WAIT, Limits(), TIMEOUT_S)


def sealed(plan: Plan) -> Plan:
    """The plan with the id that its content asks for."""
    return msgspec.structs.replace(plan, plan_id=fingerprint(plan))


def plan_of(*members: str, initiator: str = "oslo") -> Plan:
    """The first member runs the rest (its fragment has the highest number), the others send it their scans."""
    root, *scanning = members
    fragments = [
        SparkFragment(
            number, member, f"SELECT * FROM leaf_{number}", (TableLeaf(f"leaf_{number}", "t"),), Output(1, (root,))
        )
        for number, member in enumerate(scanning, 1)
    ]
    leaves = (EdgeLeaf("leaf_0", 1, SCHEMA.columns, tuple(scanning)),) if scanning else ()
    fragments.append(SparkFragment(len(members), root, "SELECT * FROM leaf_0", leaves, Output(2, (initiator,))))
    info = {f"{member}.t": 7 for member in members}
    return sealed(Plan("", tuple(fragments), Rows(2, (root,)), info))


def fanned_plan() -> Plan:
    """The rows of tromso go to bergen and to oslo, and those that bergen makes of them to oslo."""
    came = EdgeLeaf("leaf_2", 1, SCHEMA.columns, ("tromso",))
    made = EdgeLeaf("leaf_3", 2, SCHEMA.columns, ("bergen",))
    scan = SparkFragment(
        1, "tromso", "SELECT * FROM leaf_1", (TableLeaf("leaf_1", "t"),), Output(1, ("bergen", "oslo"))
    )
    first = SparkFragment(2, "bergen", "SELECT * FROM leaf_2", (came,), Output(2, ("oslo",)))
    rest = SparkFragment(3, "oslo", "SELECT * FROM leaf_2, leaf_3", (came, made), Output(3, ("oslo",)))
    return sealed(Plan("", (scan, first, rest), Rows(3, ("oslo",)), {"tromso.t": 7}))


def execute_of(plan: Plan, member: str) -> Execute:
    fragments = tuple(fragment.id for fragment in plan.fragments if fragment.member == member)
    participants = tuple(sorted({fragment.member for fragment in plan.fragments}))
    return Execute(
        QUERY,
        QUERY.local,
        plan.plan_id,
        QUERY.initiator,
        fragments,
        {},
        {},
        plan.schema_info,
        {},
        participants,
        TIMEOUT_S,
    )


def batch_of(rows: Iterable[tuple[Any, ...]], schema: pa.Schema = ARROW) -> pa.RecordBatch:
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    return pa.RecordBatch.from_arrays(
        [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)], schema=schema
    )


def entry_of(rows: Sequence[tuple[Any, ...]], schema: pa.Schema = ARROW) -> Entry:
    batch = batch_of(rows, schema)
    return Entry(encode_batch(batch), batch.num_rows, decoded_bytes(batch))


def rows_of(body: Any, schema: pa.Schema = ARROW) -> list[tuple[Any, ...]]:
    batch = decode_batch(body, schema, 64 * MIB)
    return [tuple(row.values()) for row in batch.to_pylist()]


def spool_of(
    directory: object, *batches: Sequence[tuple[Any, ...]], finished: bool = True, schema: pa.Schema = ARROW
) -> Spool:
    spool = Spool(Budget(MIB, MIB), str(directory), "test")
    for rows in batches:
        spool.append(entry_of(rows, schema))
    if finished:
        spool.finish()
    return spool

"""Rows that travel in a request: each member gets those of its own fragments, and runs with no others."""

from __future__ import annotations

import msgspec
import pyarrow as pa
import pytest

from skerry.member.query import QueryCore, Send
from skerry.member.running import virtual_input
from skerry.member.task import RunFragment, TaskCore, TaskInstruction
from skerry.model.errors import PeerError
from skerry.model.fragment import Facts, Plan, SparkFragment, VirtualLeaf, virtual_name
from skerry.model.limits import Limits
from skerry.model.table import Column
from skerry.wire.codec import decode_batch
from skerry.wire.execution import Dql, Request
from skerry.wire.execution import Options as PacketOptions
from skerry.wire.execution_codec import decode_request, encode_request
from skerry.wire.messages import Cancel, Execute
from tests.unit.member.member_samples import QUERY, TIMEOUT_S, execute_of, plan_of, sealed

COLUMNS = (Column("col1", "int"), Column("col2", "string"))
ROWS = tuple(map(msgspec.msgpack.encode, [(1, "a"), (None, "b")]))
LEAF = VirtualLeaf(virtual_name(COLUMNS, ROWS), COLUMNS)


def plan_with_rows() -> Plan:
    """Those of tromso alone."""
    plan = plan_of("bergen", "oslo", "tromso")
    with_rows = [
        msgspec.structs.replace(each, leaves=(*each.leaves, LEAF), facts=Facts(virtual=((LEAF.placeholder, ROWS),)))
        if isinstance(each, SparkFragment) and each.member == "tromso"
        else each
        for each in plan.fragments
    ]
    return sealed(msgspec.structs.replace(plan, fragments=tuple(with_rows)))


def executes() -> dict[str, Execute]:
    core = QueryCore(QUERY, plan_with_rows(), {}, TIMEOUT_S, Limits(), 0.0)
    return {each.member: each.message for each in core.start() if isinstance(each, Send)}  # type: ignore[misc]


def test_each_member_gets_the_rows_of_its_own_fragments() -> None:
    sent = {member: each.virtual_tables for member, each in executes().items()}
    assert sent == {"bergen": {}, "oslo": {}, "tromso": {LEAF.placeholder: ROWS}}


def test_they_have_the_bytes_of_the_document() -> None:
    """A map of names to arrays of bin, in Execute as in the DQL packet."""
    tables = executes()["tromso"].virtual_tables
    packed = msgspec.msgpack.encode(tables)
    assert packed.hex() == "81" + "d924" + LEAF.placeholder.encode().hex() + "92" + "c4049201a161" + "c40492c0a162"
    dql = Dql({}, 1, 2, tables, PacketOptions(), ())
    data = encode_request(Request("r", dql))
    assert packed in data
    body = decode_request(data).body
    assert isinstance(body, Dql)
    assert body.vtables == tables


def begun(virtual_tables: dict[str, tuple[bytes, ...]]) -> list[TaskInstruction]:
    plan = plan_with_rows()
    execute = msgspec.structs.replace(execute_of(plan, "tromso"), virtual_tables=virtual_tables)
    return TaskCore(execute, "tromso", 0.0).begin(plan.to_run())


def test_a_participant_runs_with_its_rows() -> None:
    assert [type(each) for each in begun({LEAF.placeholder: ROWS})] == [RunFragment]


@pytest.mark.parametrize(
    "came",
    [{}, {LEAF.placeholder: ROWS[:1]}, {LEAF.placeholder: ROWS[::-1]}, {LEAF.placeholder: ()}, {"tmp_1": ROWS}],
    ids=["none", "fewer", "others", "empty", "of another name"],
)
def test_other_rows_than_the_plans_are_refused(came: dict[str, tuple[bytes, ...]]) -> None:
    told = [each.message for each in begun(came) if isinstance(each, Send)]
    assert len(told) == 1
    assert isinstance(told[0], Cancel)
    assert "other rows than those of its plan" in told[0].error.message


def test_the_job_gets_them_as_an_edge_that_has_arrived() -> None:
    given = virtual_input(LEAF, executes()["tromso"])
    assert given.bodies is not None
    (body,) = given.bodies
    schema = pa.schema([("col1", pa.int32()), ("col2", pa.string())])
    assert decode_batch(body, schema, 10_000).to_pylist() == [{"col1": 1, "col2": "a"}, {"col1": None, "col2": "b"}]


def test_rows_that_are_none_of_their_columns_are_the_peers_fault() -> None:
    rows = tuple(map(msgspec.msgpack.encode, [("one", "a")]))
    leaf = VirtualLeaf(virtual_name(COLUMNS, rows), COLUMNS)
    with pytest.raises(PeerError):
        virtual_input(leaf, msgspec.structs.replace(executes()["tromso"], virtual_tables={leaf.placeholder: rows}))

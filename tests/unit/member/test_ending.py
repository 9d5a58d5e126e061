"""What a query ends in: the core waits for columns of rows, or for counts of fragments, and knows no cursor."""

from __future__ import annotations

import msgspec
import pytest

from skerry.member.query import Instruction, Phase, QueryCore, QueryEnded, RowsCounted, SchemaKnown, Send
from skerry.member.task import RunFragment, TaskCore
from skerry.model.errors import InternalError
from skerry.model.fragment import Count, Ending, Plan, Rows, Written
from skerry.model.limits import Limits
from skerry.wire.frames import FrameReader, decode_numbered, encode_numbered
from skerry.wire.messages import Cancel, FragmentDone, PlanReply, Receipt, Started
from tests.unit.member.member_samples import QUERY, SCHEMA, TIMEOUT_S, execute_of, plan_of, sealed

ROWS = plan_of("bergen", "oslo", "tromso")  # oslo scans (1), tromso scans (2), bergen runs the rest (3)
COUNTS: tuple[Ending, ...] = (Count((1, 2)), Written("lake", (1, 2)))


def ending_in(ends_in: Ending) -> Plan:
    return sealed(msgspec.structs.replace(ROWS, ends_in=ends_in))


def begun(ends_in: Ending) -> QueryCore:
    core = QueryCore(QUERY, ending_in(ends_in), {}, TIMEOUT_S, Limits(), 0.0)
    core.start()
    return core


def done(core: QueryCore, fragment: int, member: str, rows: int) -> list[Instruction]:
    said = core.receive(member, FragmentDone(QUERY, member, fragment, rows, 8 * rows, 0.5), 1.0)
    core.validate()
    return said


@pytest.mark.parametrize("ends_in", COUNTS)
def test_a_count_is_whole_when_all_of_its_fragments_are_done(ends_in: Ending) -> None:
    core = begun(ends_in)
    assert done(core, 3, "bergen", 1000) == []  # its rows are not counted
    assert done(core, 1, "oslo", 30) == []
    assert done(core, 1, "oslo", 30) == []
    counted, *told = done(core, 2, "tromso", 12)
    assert counted == RowsCounted(42)
    assert [each.member for each in told if isinstance(each, Send) and isinstance(each.message, Cancel)] == [
        "bergen",
        "oslo",
        "tromso",
    ]
    assert core.phase is Phase.ENDING
    assert done(core, 2, "tromso", 12) == []
    said = [each for member in core.participants for each in core.receive(member, Receipt(QUERY, member), 2.0)]
    assert said == [QueryEnded(())]


@pytest.mark.parametrize("ends_in", COUNTS)
def test_a_count_has_no_columns_and_none_of_a_fragment_that_is_anothers(ends_in: Ending) -> None:
    core = begun(ends_in)
    assert core.receive("oslo", Started(QUERY, "oslo", 1, SCHEMA), 1.0) == []
    assert done(core, 1, "tromso", 30) == []
    assert done(core, 2, "tromso", 0) == []
    assert done(core, 1, "oslo", 0)[0] == RowsCounted(0)


def test_rows_are_not_counted() -> None:
    core = begun(ROWS.rows)
    assert core.receive("bergen", Started(QUERY, "bergen", 3, SCHEMA), 1.0) == [SchemaKnown(SCHEMA)]
    assert [done(core, number, member, 5) for number, member in ((1, "oslo"), (2, "tromso"), (3, "bergen"))] == [[]] * 3
    assert core.phase is Phase.RUNNING


@pytest.mark.parametrize("ends_in", [ROWS.rows, *COUNTS])
def test_a_plan_tells_over_the_wire_what_it_ends_in(ends_in: Ending) -> None:
    plan = ending_in(ends_in)
    data = b"".join(bytes(part) for part in encode_numbered(0, PlanReply(QUERY, QUERY.local, plan.plan_id, plan)))
    reader = FrameReader(1 << 20)
    reader.get_buffer()[: len(data)] = data
    reader.buffer_updated(len(data))
    (frame,) = reader.frames()
    _, message = decode_numbered(frame)
    assert isinstance(message, PlanReply)
    assert message.plan == plan
    assert ending_in(ends_in).plan_id == plan.plan_id


def test_rows_that_are_only_counted_have_no_reader() -> None:
    (scan, other, root) = ROWS.fragments
    assert ROWS.readers() == {each.id: each.output.receivers for each in ROWS.fragments}
    for ends_in in COUNTS:
        readers = ending_in(ends_in).readers()
        assert readers == {scan.id: scan.output.receivers, other.id: other.output.receivers, root.id: ()}


def test_rows_are_not_said_to_be_written_without_a_sink() -> None:
    plan = ending_in(Written("lake", (1,)))
    for member, is_able in (("oslo", False), ("tromso", True)):
        task = TaskCore(execute_of(plan, member), member, 0.0)
        said = task.begin(plan)
        assert [each.fragment.member for each in said if isinstance(each, RunFragment)] == [member] * is_able
        if not is_able:
            assert isinstance(said[0], Send)
            assert isinstance(said[0].message, Cancel)
            assert said[0].message.error.message.endswith("site oslo has no sink lake")


def test_only_rows_have_a_result_edge() -> None:
    (*_, root) = ROWS.fragments
    assert ROWS.is_result(root.output)
    assert not any(ROWS.is_result(each.output) for each in ROWS.fragments[:-1])
    for ends_in in COUNTS:
        assert not ending_in(ends_in).is_result(root.output)
        with pytest.raises(InternalError, match="not in rows"):
            _ = ending_in(ends_in).rows
    assert isinstance(ROWS.ends_in, Rows)

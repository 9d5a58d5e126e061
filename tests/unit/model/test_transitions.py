"""Tables of states: what has no row is one error, and no table has a dead end or an event that nobody takes."""

from __future__ import annotations

import enum
from collections.abc import Mapping

import pytest

from scripts.transitions import printed
from skerry.client import cursor
from skerry.member import query, task
from skerry.model.errors import InternalError
from skerry.model.ids import QueryId
from skerry.model.transitions import STORY_EVENTS, InvalidTransition, Machine, as_markdown, staying
from skerry.wire import channel, session
from skerry.wire.values import error_of, failure_of
from tests.unit.member.member_samples import execute_of, plan_of


class Phase(enum.Enum):
    OPEN = "open"
    SHUT = "shut"


class Event(enum.Enum):
    KNOCKED = "someone knocked"
    SHUT = "it was shut"


NEXT = {**staying(Phase, Event.KNOCKED), (Phase.OPEN, Event.SHUT): Phase.SHUT}
Table = Mapping[tuple[enum.Enum, enum.Enum], enum.Enum]
# The table, where its life begins, and where it may end.
CORES: dict[str, tuple[Table, set[enum.Enum], set[enum.Enum]]] = {
    "cursor": (cursor.NEXT, {cursor.Phase.NEW}, {cursor.Phase.CLOSED}),
    "query": (query.NEXT, {query.Phase.RUNNING}, {query.Phase.ENDED}),
    "task": (task.NEXT, {task.TaskPhase.PLANNING}, {task.TaskPhase.GONE}),
    "session": (session.NEXT, {session.Phase.UNLINKED}, {session.Phase.OVER}),
    "sending channel": (channel.NEXT, {channel.Phase.OPENING}, {channel.Phase.ENDED}),
    "receiving channel": (
        channel.RECEIVER_NEXT,
        {channel.ReceiverPhase.PENDING, channel.ReceiverPhase.RECEIVING},
        {channel.ReceiverPhase.COMPLETE},
    ),
}


def door() -> Machine[Phase, Event]:
    return Machine("door", 7, NEXT, Phase.OPEN)


def test_an_event_moves_the_phase_or_stays() -> None:
    machine = door()
    assert not machine.move(Event.KNOCKED)
    assert machine.phase is Phase.OPEN
    assert machine.move(Event.SHUT)
    assert machine.phase is Phase.SHUT
    assert str(machine) == "<door 7 shut: it was shut>"


def test_what_has_no_row_changes_nothing_and_tells_the_story() -> None:
    machine = door()
    machine.note("painted")
    machine.move(Event.SHUT)
    assert not machine.takes(Event.SHUT)
    with pytest.raises(InvalidTransition, match="<door 7 shut: painted, it was shut> cannot take 'it was shut'"):
        machine.move(Event.SHUT)
    assert machine.phase is Phase.SHUT


def test_the_story_is_bounded() -> None:
    machine = door()
    for number in range(100):
        machine.move(Event.KNOCKED, f"knock {number}")
    assert str(machine).count("knock") == STORY_EVENTS
    assert "knock 99" in str(machine)


def test_a_peer_is_told_of_an_internal_error() -> None:
    error = InvalidTransition(door(), Event.SHUT)
    assert type(error_of(failure_of(error, "oslo"))) is InternalError


def test_a_table_is_printed_with_a_row_an_event_and_a_column_a_phase() -> None:
    assert as_markdown(NEXT).splitlines() == [
        "|  | open | shut |",
        "| --- | --- | --- |",
        "| someone knocked | stays | stays |",
        "| it was shut | → shut | – |",
    ]


def test_an_old_table_in_a_document_is_replaced() -> None:
    around = "before\n<!-- transitions: query -->\n{}\n<!-- end -->\nafter"
    assert printed(around.format("| old |")) == around.format(as_markdown(query.NEXT))


@pytest.mark.parametrize("core", CORES)
def test_every_event_is_taken_and_every_phase_is_come_to_and_left_for_an_end(core: str) -> None:
    table, first, last = CORES[core]
    phases, events = set(type(next(iter(first)))), {event for _, event in table}
    assert events == set(type(next(iter(events))))
    reached, leading = set(first), set(last)
    for _ in phases:
        reached |= {after for (phase, _), after in table.items() if phase in reached}
        leading |= {phase for (phase, _), after in table.items() if after in leading}
    assert (reached, leading) == (phases, phases)
    assert {after for (phase, _), after in table.items() if phase in last} <= last


def test_a_core_names_itself() -> None:
    execute = execute_of(plan_of("tromso"), "tromso")
    core = task.TaskCore(execute, "tromso", 0.0)
    with pytest.raises(InvalidTransition, match=rf"<task of query {execute.query} planning: nothing yet> cannot take"):
        core.released()
    asked = cursor.CursorCore(QueryId("oslo", "0" * 32), iter(range(9)))
    asked.execute("SELECT 1", [], size=cursor.PageSize(1, 1), now=0.0)
    with pytest.raises(InvalidTransition, match="executing: execute> cannot take"):
        asked.execute("SELECT 1", [], size=cursor.PageSize(1, 1), now=0.0)

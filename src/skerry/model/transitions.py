"""Life cycles as tables: which phase takes which event, and where that leads. Shared by all pure cores."""

from __future__ import annotations

import enum
from collections import deque
from collections.abc import Iterable, Mapping
from typing import Generic, TypeVar

from skerry.model.errors import InternalError

Phase = TypeVar("Phase", bound=enum.Enum)
Event = TypeVar("Event", bound=enum.Enum)

STORY_EVENTS = 20


class Step(enum.Enum):
    """A phase or an event. Each is there once, so its place in memory is its hash. Python's own enums hash their names,
    by a call of Python, and a write looks at eight of them."""

    __hash__ = object.__hash__


class InvalidTransition(InternalError):
    """An event came for which the table has no row: a mistake of ours, told with the story so far."""

    def __init__(self, machine: Machine[Phase, Event], event: Event) -> None:
        super().__init__(f"{machine} cannot take {event.value!r}")


class Machine(Generic[Phase, Event]):
    """A phase that only its table moves, and the story of how it came there; `name` and `which` say whose."""

    __slots__ = ("_name", "_story", "_table", "_which", "phase")

    def __init__(self, name: str, which: object, table: Mapping[tuple[Phase, Event], Phase], phase: Phase) -> None:
        self.phase = phase
        self._name = name
        self._which = which
        self._table = table
        self._story: deque[str] = deque(maxlen=STORY_EVENTS)

    def __str__(self) -> str:
        who = " ".join(filter(None, (self._name, str(self._which), self.phase.value)))
        return f"<{who}: {', '.join(self._story) or 'nothing yet'}>"

    def move(self, event: Event, line: str = "") -> bool:
        """Whether the event led to another phase. The story tells only of those, or what `line` says."""
        phase = self._table.get((self.phase, event))
        if phase is None:
            raise InvalidTransition(self, event)
        is_moved, self.phase = phase is not self.phase, phase
        if is_moved or line:
            self._story.append(line or event.value)
        return is_moved

    def takes(self, event: Event) -> bool:
        """Whether there is a row: to ask before an event that a peer can cause, which is then its mistake."""
        return (self.phase, event) in self._table

    def note(self, line: str) -> None:
        """Something that the story tells and no phase depends on."""
        self._story.append(line)


def staying(phases: Iterable[Phase], *events: Event) -> dict[tuple[Phase, Event], Phase]:
    """Rows of events that each of these phases takes and stays as it is: those that come late, for instance."""
    return {(phase, event): phase for phase in phases for event in events}


def as_markdown(table: Mapping[tuple[Phase, Event], Phase]) -> str:
    """A row an event, a column a phase, as docs/protocol.md shows it; "–" is what has no row."""
    (phase, event), *_ = table
    phases, events = list(type(phase)), list(type(event))
    lines = [["", *(each.value for each in phases)], ["---"] * (len(phases) + 1)]
    lines += [[each.value, *(_cell(table, phase, each) for phase in phases)] for each in events]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(table: Mapping[tuple[Phase, Event], Phase], phase: Phase, event: Event) -> str:
    after = table.get((phase, event))
    if after is None:
        return "–"
    return "stays" if after is phase else f"→ {after.value}"

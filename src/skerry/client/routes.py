"""Who waits for which answer of a member. Pure; whoever uses it holds the link's lock."""

from __future__ import annotations

from collections.abc import Iterator

from skerry.client.cursor import CursorCore
from skerry.model.errors import PeerError, SkerryError
from skerry.model.ids import QueryId
from skerry.wire.messages import Message


class Numbers(Iterator[int]):
    """Numbers of requests, from 1."""

    def __init__(self) -> None:
        self.upto = 1

    def __next__(self) -> int:
        self.upto += 1
        return self.upto - 1


class Question:
    """A request with one answer, and no cursor."""

    def __init__(self) -> None:
        self.answer: Message | None = None
        self.error: SkerryError | None = None


class Routes:
    """Answers find their cursor, or their question, by the number of the request."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.numbers = Numbers()
        self._waiting: dict[int, CursorCore | Question] = {}
        self._live: dict[QueryId, CursorCore] = {}

    @property
    def live(self) -> list[CursorCore]:
        """The cursors whose query may still give something."""
        return list(self._live.values())

    def ask(self, question: Question) -> int:
        """The number of the request to make."""
        number = next(self.numbers)
        self._waiting[number] = question
        return number

    def drop(self, number: int) -> None:
        self._waiting.pop(number, None)

    def follow(self, core: CursorCore) -> None:
        """After anything that changes which answers a cursor waits for."""
        waited_for = core.requests
        for number in [number for number, each in self._waiting.items() if each is core and number not in waited_for]:
            del self._waiting[number]
        for number in waited_for:
            self._waiting[number] = core
        if core.is_live:
            self._live[core.query] = core
        else:
            self._live.pop(core.query, None)

    def of(self, number: int) -> CursorCore | Question | None:
        """Who asked; None when nobody waits for that answer any more."""
        if not 0 < number < self.numbers.upto:
            raise PeerError(f"{self._name} answered request {number}, which was never made")
        return self._waiting.get(number)

    def lose(self, reason: SkerryError) -> None:
        """The connection is gone. Questions fail; cursors may go on over another one."""
        for number, waiting in list(self._waiting.items()):
            if isinstance(waiting, Question):
                waiting.error = reason
                del self._waiting[number]
        for core in self.live:
            core.lost(reason)
            self.follow(core)

    def fail(self, error: SkerryError, *, but_changes: bool = False) -> None:
        """Whoever waits gets `error`; `but_changes`: not those whose statement may be said again by its id."""
        spared = [core for core in self.live if but_changes and core.resumes and core.may_change]
        for core in self.live:
            if core not in spared:
                core.fail(error)
        for waiting in self._waiting.values():
            if isinstance(waiting, Question):
                waiting.error = error
        self._live.clear()
        self._waiting.clear()
        for core in spared:
            self.follow(core)

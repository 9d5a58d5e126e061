"""One cursor as the client sees it: what to ask next, and which answers are right.

Pure: requests come out, answers go in; the shell sends, receives and waits.
"""

from __future__ import annotations

import enum
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from skerry.errors import Cancelled, PeerError, SkerryError
from skerry.ids import QueryId
from skerry.wire.messages import (
    ClientClose,
    ClientExecute,
    ClientFetch,
    ClientPage,
    ClientResult,
    Page,
    Schema,
    Value,
)
from skerry.wire.values import error_of


class Phase(enum.Enum):
    NEW = "new"
    EXECUTING = "executing"
    OPEN = "open"
    ENDED = "ended"
    FAILED = "failed"
    CLOSED = "closed"


class Event(enum.Enum):
    EXECUTED = "executed"  # the request was made
    PAGED = "paged"  # a page came, and more will
    COMPLETED = "completed"  # the last page or an update count came
    BROKE = "broke"  # the query failed, was cancelled, or its member is gone
    CLOSED = "closed"  # nobody wants more of it


NEXT: dict[tuple[Phase, Event], Phase] = {
    (Phase.NEW, Event.EXECUTED): Phase.EXECUTING,
    (Phase.EXECUTING, Event.PAGED): Phase.OPEN,
    (Phase.EXECUTING, Event.COMPLETED): Phase.ENDED,
    (Phase.EXECUTING, Event.BROKE): Phase.FAILED,
    (Phase.EXECUTING, Event.CLOSED): Phase.CLOSED,
    (Phase.OPEN, Event.PAGED): Phase.OPEN,
    (Phase.OPEN, Event.COMPLETED): Phase.ENDED,
    (Phase.OPEN, Event.BROKE): Phase.FAILED,
    (Phase.OPEN, Event.CLOSED): Phase.CLOSED,
    (Phase.NEW, Event.CLOSED): Phase.CLOSED,
    (Phase.ENDED, Event.CLOSED): Phase.CLOSED,
    (Phase.FAILED, Event.CLOSED): Phase.CLOSED,
    (Phase.CLOSED, Event.CLOSED): Phase.CLOSED,
}
# Only in these does the member hold something for us, so only from these is it told to close.
LIVE = (Phase.EXECUTING, Phase.OPEN)

STORY_EVENTS = 20


@dataclass(frozen=True)
class PageSize:
    """Bounds of one page; 0 is no bound of that sort (the member's own still holds)."""

    rows: int
    size_bytes: int


class CursorCore:
    """`numbers` gives each request its number; the connection routes answers back by it."""

    def __init__(self, query: QueryId, numbers: Iterator[int]) -> None:
        self.query = query
        self.phase = Phase.NEW
        self.schema: Schema | None = None
        self.update_count = -1
        self.rows_received = 0
        self.error: SkerryError | None = None
        self._numbers = numbers
        self._asked: dict[int, int] = {}  # request → number of the page it asks for
        self._asked_upto = 0
        self._received_upto = 0
        self._taken_upto = 0
        self._pages: deque[Page] = deque()
        self._story: deque[str] = deque(maxlen=STORY_EVENTS)

    def __repr__(self) -> str:
        return f"<cursor {self.query} {self.phase.value}: {', '.join(self._story) or 'nothing yet'}>"

    @property
    def ready(self) -> bool:
        """Whether `take` answers now: with a page, the end, or the error."""
        return bool(self._pages) or self.phase not in LIVE

    @property
    def requests(self) -> tuple[int, ...]:
        """Numbers of the requests that are not answered yet."""
        return tuple(self._asked)

    def execute(
        self,
        sql: str,
        parameters: list[Value] | dict[str, Value],
        *,
        size: PageSize,
        timeout_s: float = 0.0,
        schema_name: str = "",
        expected: str = "any",
        options: dict[str, str] | None = None,
    ) -> ClientExecute:
        """Begin; the answer brings the first page with it."""
        self._step(Event.EXECUTED, "execute")
        request = self._ask_page()
        return ClientExecute(
            request,
            self.query,
            sql,
            parameters,
            timeout_s,
            size.rows,
            schema_name,
            expected,
            size.size_bytes,
            options or {},
        )

    def ask(self, ahead: int, size: PageSize) -> list[ClientFetch]:
        """The requests to send so that `ahead` pages are asked for or here, beyond those taken."""
        fetches = []
        while self.phase is Phase.OPEN and self._asked_upto - self._taken_upto < ahead:
            number = self._asked_upto
            request = self._ask_page()
            fetches.append(ClientFetch(request, self.query, number, size.rows, size.size_bytes))
        return fetches

    def receive(self, answer: ClientResult | ClientPage) -> None:
        """Take in an answer; a wrong one raises PeerError and leaves the cursor as it was."""
        number = self._asked.get(answer.request)
        if self.phase not in LIVE or number is None:
            return  # late: asked before the last page, the error or the close was known
        if answer.error is not None:
            self.fail(error_of(answer.error))
        elif isinstance(answer, ClientResult):
            self._receive_result(answer, number)
        elif self.phase is Phase.EXECUTING:
            raise PeerError(f"query {self.query}: a page was answered to execute, before any result")
        else:
            self._receive_page(answer.page, answer.request, number)

    def take(self) -> Page | None:
        """The next page, or None at the end; pages that came before an error are given before it is raised."""
        assert self.ready, f"{self!r} has nothing to take"
        if self._pages:
            self._taken_upto += 1
            return self._pages.popleft()
        if self.error is not None:
            raise self.error
        return None

    def cancel(self) -> ClientClose | None:
        """Someone else wants the end: whoever waits gets Cancelled, at once."""
        if self.phase not in LIVE:
            return None
        self._pages.clear()
        self.fail(Cancelled(f"query {self.query} was cancelled"))
        return ClientClose(next(self._numbers), self.query)

    def fail(self, error: SkerryError) -> None:
        """The query can give nothing more, because of `error`."""
        if self.phase in LIVE:
            self._step(Event.BROKE, f"failed: {error}")
            self.error = error
            self._asked.clear()

    def close(self) -> ClientClose | None:
        """The end; the request to send, if the member still holds the query."""
        is_live = self.phase in LIVE
        self._step(Event.CLOSED, "close")
        self._pages.clear()
        self._asked.clear()
        return ClientClose(next(self._numbers), self.query) if is_live else None

    def _ask_page(self) -> int:
        request = next(self._numbers)
        self._asked[request] = self._asked_upto
        self._asked_upto += 1
        return request

    def _receive_result(self, answer: ClientResult, number: int) -> None:
        if self.phase is not Phase.EXECUTING:
            raise PeerError(f"query {self.query}: page {number} was asked for, a whole result was answered")
        if answer.schema is not None:
            self._receive_page(answer.page, answer.request, number)
            self.schema = answer.schema
        elif answer.update_count >= 0 and answer.page is None:
            self._step(Event.COMPLETED, f"{answer.update_count} rows changed")
            self.update_count = answer.update_count
            self._asked.clear()
        else:
            raise PeerError(f"query {self.query}: the result holds neither rows, nor a count, nor an error")

    def _receive_page(self, page: Page | None, request: int, number: int) -> None:
        if page is None or page.number != number or number != self._received_upto:
            what = "nothing" if page is None else f"page {page.number}"
            raise PeerError(f"query {self.query}: page {self._received_upto} comes next, {what} was answered")
        self._step(Event.COMPLETED if page.is_last else Event.PAGED, f"page {number}: {page.rows} rows")
        self._received_upto += 1
        self.rows_received += page.rows
        self._pages.append(page)
        del self._asked[request]
        if page.is_last:
            self._asked.clear()

    def _step(self, event: Event, line: str) -> None:
        phase = NEXT.get((self.phase, event))
        assert phase is not None, f"{self!r} cannot be {event.value}"
        self._story.append(line)
        self.phase = phase

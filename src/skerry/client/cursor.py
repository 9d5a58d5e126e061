"""One cursor as the client sees it: what to ask next, and which answers are right.

Pure: requests come out, answers go in; the shell sends, receives and waits.
"""

from __future__ import annotations

import enum
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

import msgspec

from skerry.client.reads import is_commit, may_change, only_reads
from skerry.model.amounts import counted
from skerry.model.errors import Cancelled, PeerError, SiteError, SkerryError, UserError, unsure
from skerry.model.ids import QueryId
from skerry.model.limits import REPEAT_S
from skerry.model.results import Page, Schema, Value
from skerry.model.transitions import Machine
from skerry.model.variables import Variable
from skerry.wire.client_messages import ClientAttach, ClientClose, ClientExecute, ClientFetch, ClientPage, ClientResult
from skerry.wire.messages import Message
from skerry.wire.values import error_of


class Phase(enum.Enum):
    NEW = "new"
    EXECUTING = "executing"
    OPEN = "open"
    DETACHED = "detached"
    ENDED = "ended"
    FAILED = "failed"
    CLOSED = "closed"


class Event(enum.Enum):
    EXECUTED = "execute or attach was asked"
    PAGED = "a page came, and more will"
    DETACHED = "the query runs without us"
    COMPLETED = "the last page or an update count came"
    BROKE = "it failed, was cancelled, or its member is gone"
    CLOSED = "nobody wants more of it"


NEXT: dict[tuple[Phase, Event], Phase] = {
    (Phase.NEW, Event.EXECUTED): Phase.EXECUTING,
    (Phase.EXECUTING, Event.PAGED): Phase.OPEN,
    (Phase.EXECUTING, Event.DETACHED): Phase.DETACHED,
    (Phase.EXECUTING, Event.COMPLETED): Phase.ENDED,
    (Phase.EXECUTING, Event.BROKE): Phase.FAILED,
    (Phase.EXECUTING, Event.CLOSED): Phase.CLOSED,
    (Phase.OPEN, Event.PAGED): Phase.OPEN,
    (Phase.OPEN, Event.COMPLETED): Phase.ENDED,
    (Phase.OPEN, Event.BROKE): Phase.FAILED,
    (Phase.OPEN, Event.CLOSED): Phase.CLOSED,
    (Phase.NEW, Event.CLOSED): Phase.CLOSED,
    (Phase.DETACHED, Event.BROKE): Phase.FAILED,
    (Phase.DETACHED, Event.CLOSED): Phase.CLOSED,
    (Phase.ENDED, Event.CLOSED): Phase.CLOSED,
    (Phase.FAILED, Event.CLOSED): Phase.CLOSED,
    (Phase.CLOSED, Event.CLOSED): Phase.CLOSED,
}
# Only in these does the member hold something for us, so only from these is it told to close.
LIVE = (Phase.EXECUTING, Phase.OPEN)

LOAD = "load"  # the option of an execute whose rows follow it; a lost one is only asked about
DETACH = "detach"  # the option of an execute whose query runs without its client
AGAIN = "again"  # the option of an execute whose id was used before, for the same statement


@dataclass(frozen=True)
class PageSize:
    """Bounds of one page; 0 is no bound of that sort (the member's own still holds)."""

    rows: int
    size_bytes: int


class Ask(enum.Enum):
    EXECUTE = "execute"
    ATTACH = "attach"
    FETCH = "fetch"


@dataclass
class _Asked:
    """A request that is not wholly answered: it brings pages `next_number` … `upto` - 1."""

    kind: Ask
    next_number: int
    upto: int

    @property
    def is_over(self) -> bool:
        return self.next_number == self.upto


class CursorCore:
    """`numbers` gives each request its number; the connection routes answers back by it.

    `resumes`: the member keeps the query when the connection is lost, so it may be attached to again.
    """

    def __init__(self, query: QueryId, numbers: Iterator[int], *, resumes: bool = False) -> None:
        self.query = query
        self.resumes = resumes
        self.schema: Schema | None = None
        self.update_count = -1
        self.warnings: tuple[str, ...] = ()
        self.used_schema: str | None = None  # by USE
        self.set_variables: dict[str, Variable | None] = {}  # by DECLARE, SET VAR and DROP
        self.commit_ts = 0
        self.transaction: str | None = None  # one that has begun, "" if the client's is over
        self.rows_received = 0
        self.error: SkerryError | None = None
        self._numbers = numbers
        self._size = PageSize(0, 0)
        self._asked: dict[int, _Asked] = {}
        self._asked_upto = 0
        self._received_upto = 0
        self._taken_upto = 0
        self._pages: deque[Page] = deque()
        self._is_lost = False
        self._is_attached = False  # to a query that another cursor began
        self._executed: ClientExecute | None = None  # until it is known that the member has it
        self._executed_at = 0.0
        self._is_repeated = False  # it was sent twice
        self._refused: SkerryError | None = None  # the attach that was answered with an error
        self._life = Machine("cursor", query, NEXT, Phase.NEW)

    def __repr__(self) -> str:
        return str(self._life)

    @property
    def phase(self) -> Phase:
        return self._life.phase

    @property
    def ready(self) -> bool:
        """Whether `take` answers now: with a page, the end, or the error."""
        return bool(self._pages) or self.phase not in LIVE

    @property
    def is_live(self) -> bool:
        """Whether the member still owes us something."""
        return self.phase in LIVE

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
        variables: dict[str, Variable] | None = None,
        more: list[list[Value] | dict[str, Value]] | None = None,
        seen_ts: int = 0,
        transaction: str = "",
        now: float,
    ) -> ClientExecute:
        """Begin; the answer brings the first page with it."""
        self._life.move(Event.EXECUTED, "execute")
        self._size = size
        self._executed_at = now
        self._executed = ClientExecute(
            self._ask_pages(Ask.EXECUTE, 1),
            self.query,
            sql,
            parameters,
            timeout_s,
            size.rows,
            schema_name,
            expected,
            size.size_bytes,
            options or {},
            variables or {},
            more or [],
            seen_ts,
            transaction,
        )
        return self._executed

    def attach(self, size: PageSize) -> ClientAttach:
        """Begin with a query that runs already, at its first page."""
        self._life.move(Event.EXECUTED, "attach")
        self._is_attached = True
        self._size = size
        return self._attach()

    def ask(self, ahead: int, size: PageSize) -> list[ClientFetch]:
        """The request to send, if any, so that `ahead` pages are asked for or here beyond those taken.

        A fetch tells the member that all pages before it arrived, so it waits until they have; it is sent when
        half of the window is left for the caller to work on meanwhile.
        """
        ahead_now = self._asked_upto - self._taken_upto
        if self.phase is not Phase.OPEN or self._is_lost or self._asked or ahead_now > ahead // 2 or ahead <= ahead_now:
            return []
        self._size = size
        number, pages = self._asked_upto, ahead - ahead_now
        request = self._ask_pages(Ask.FETCH, pages)
        return [ClientFetch(request, self.query, number, size.rows, size.size_bytes, pages)]

    def receive(self, answer: ClientResult | ClientPage, now: float) -> list[Message]:
        """Take in an answer, and say what to send because of it; a wrong one raises PeerError and changes nothing."""
        asked = self._asked.get(answer.request)
        if self.phase not in LIVE or asked is None:
            return []  # late: asked before the last page, the error or the close was known
        if isinstance(answer, ClientResult):
            self.transaction = answer.transaction
        if answer.error is not None:
            return self._receive_error(error_of(answer.error), answer.request, asked, now)
        if isinstance(answer, ClientResult):
            self._receive_result(answer, asked)
        elif asked.kind is not Ask.FETCH:
            raise PeerError(f"query {self.query}: a page was answered to {asked.kind.value}, before any result")
        else:
            self._receive_page(answer.page, asked)
        self._executed = None
        # A cursor that outlives its connection is kept with its last page, until its client says that it has it.
        is_kept = self.phase is Phase.ENDED and (self.resumes or self._is_attached)
        return [ClientClose(next(self._numbers), self.query)] if is_kept else []

    def take(self) -> Page | None:
        """The next page, or None at the end; pages that came before an error are given before it is raised."""
        assert self.ready, f"{self!r} has nothing to take"
        if self._pages:
            self._taken_upto += 1
            return self._pages.popleft()
        if self.error is not None:
            raise self.error
        return None

    def lost(self, error: SkerryError) -> None:
        """The connection is gone: what was asked for is asked for again by `resume`, or the query failed."""
        if not self.resumes:
            self.fail(error)
        elif self.phase in LIVE:
            self._life.note("connection lost")
            self._is_lost = True
            self._refused = None
            self._asked.clear()
            self._asked_upto = self._received_upto

    def resume(self, now: float) -> ClientAttach | ClientExecute | None:
        """There is a connection again: the request that goes on where the pages ended."""
        if self.phase not in LIVE or not self._is_lost:
            return None
        self._life.note("connected again")
        self._is_lost = False
        if self._executed is None or not self._is_detached:
            return self._attach()
        # Who wants a query to run without him does not attach to it.
        return self._execute_again(self._executed, now, "")

    def cancel(self) -> ClientClose | None:
        """Someone else wants the end: whoever waits gets Cancelled, at once."""
        if self.phase not in LIVE and self.phase is not Phase.DETACHED:
            return None
        self._pages.clear()
        self._break(self._as_known(Cancelled(f"query {self.query} was cancelled")))
        return ClientClose(next(self._numbers), self.query)

    def fail(self, error: SkerryError) -> None:
        """The query can give nothing more, because of `error`, which is no answer of its member."""
        if self.phase in LIVE:
            self._break(self._as_known(error))

    @property
    def may_change(self) -> bool:
        """Whether it is an execute without an answer, of a statement that may change rows.

        One of a transaction changes nothing, but for its COMMIT.
        """
        executed = self._executed
        if self.phase is not Phase.EXECUTING or executed is None:
            return False
        return is_commit(executed.sql) if executed.transaction else may_change(executed.sql)

    def _as_known(self, error: SkerryError) -> SkerryError:
        return unsure(self.query, error) if self.may_change else error

    def close(self) -> ClientClose | None:
        """The end; the request to send, if the member still holds the query for us."""
        is_live = self.phase in LIVE
        self._life.move(Event.CLOSED, "close")
        self._pages.clear()
        self._asked.clear()
        return ClientClose(next(self._numbers), self.query) if is_live else None

    def _break(self, error: SkerryError) -> None:
        self._life.move(Event.BROKE, f"failed: {error}")
        self.error = error
        self._asked.clear()

    def _attach(self) -> ClientAttach:
        number = self._received_upto
        request = self._ask_pages(Ask.ATTACH, 1)
        return ClientAttach(request, self.query, number, self._size.rows, self._size.size_bytes)

    def _ask_pages(self, kind: Ask, pages: int) -> int:
        request = next(self._numbers)
        self._asked[request] = _Asked(kind, self._asked_upto, self._asked_upto + pages)
        self._asked_upto += pages
        return request

    def _receive_error(self, error: SkerryError, request: int, asked: _Asked, now: float) -> list[Message]:
        if asked.kind is Ask.ATTACH and self._executed is not None and self._refused is None:
            # The execute may never have arrived.
            self._refused = error
            del self._asked[request]
            self._asked_upto = self._received_upto
            again = self._execute_again(self._executed, now, f"; the member says: {error.message}")
            return [again] if again is not None else []
        if self._is_repeated and asked.kind is Ask.EXECUTE and error.code == UserError.code:
            # Used before: the member had it from the first time.
            if self._is_detached:
                self._detached()
                return []
            error = self._refused or error
            self.fail(error)
            return []
        self._break(error)
        return []

    def _execute_again(self, execute: ClientExecute, now: float, said: str) -> ClientExecute | None:
        """None, and the cursor has failed, where a change could run twice: a member forgets used ids after a while."""
        if now - self._executed_at > REPEAT_S and not only_reads(execute.sql):
            lost = SiteError(f"the connection was lost{said}", member=self.query.initiator)
            self._break(unsure(self.query, lost))
            return None
        self._is_repeated = True
        options = execute.options | ({LOAD: "again"} if LOAD in execute.options else {})
        # A member that was restarted knows what it has written, and nothing else.
        options |= {AGAIN: "1"} if may_change(execute.sql) else {}
        return msgspec.structs.replace(execute, request=self._ask_pages(Ask.EXECUTE, 1), options=options)

    def _detached(self) -> None:
        self._life.move(Event.DETACHED, "detached")
        self._asked.clear()

    def _receive_result(self, answer: ClientResult, asked: _Asked) -> None:
        if asked.kind is Ask.FETCH:
            number = asked.next_number
            raise PeerError(f"query {self.query}: page {number} was asked for, a whole result was answered")
        self.warnings, self.used_schema = answer.warnings, answer.schema_name
        self.set_variables, self.commit_ts = answer.variables, answer.commit_ts
        if answer.schema is not None:
            if self.schema is not None and self.schema != answer.schema:
                raise PeerError(f"query {self.query}: its columns changed while it was read")
            self._receive_page(answer.page, asked)
            self.schema = answer.schema
        elif answer.update_count >= 0 and answer.page is None and self.phase is Phase.EXECUTING:
            self._life.move(Event.COMPLETED, f"{counted(answer.update_count)} changed")
            self.update_count = answer.update_count
            self._asked.clear()
        elif self._is_detached and answer.page is None:
            self._detached()
        else:
            raise PeerError(f"query {self.query}: the result holds neither rows, nor a count, nor an error")

    @property
    def _is_detached(self) -> bool:
        return self._executed is not None and DETACH in self._executed.options

    def _receive_page(self, page: Page | None, asked: _Asked) -> None:
        number = self._received_upto
        if page is None or page.number != number or asked.next_number != number:
            what = "nothing" if page is None else f"page {page.number}"
            raise PeerError(f"query {self.query}: page {number} comes next, {what} was answered")
        self._life.move(Event.COMPLETED if page.is_last else Event.PAGED, f"page {number}: {counted(page.rows)}")
        self._received_upto += 1
        self.rows_received += page.rows
        self._pages.append(page)
        asked.next_number += 1
        self._asked = {} if page.is_last else {key: each for key, each in self._asked.items() if not each.is_over}

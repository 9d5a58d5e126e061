"""What a member tells of its clients' queries: those that run, and for a while those that have ended."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Container

import msgspec

from skerry.member import clock
from skerry.member.clientoptions import Options
from skerry.member.initiator import Initiated
from skerry.member.loads import Load
from skerry.member.requests import UNKNOWN, Answer, Asked, CountAnswer, Status
from skerry.member.result import Counted
from skerry.model.amounts import counted, ordinal
from skerry.model.errors import SkerryError, from_code
from skerry.model.ids import QueryId
from skerry.model.limits import REASON_CHARS
from skerry.model.progress import LinkBytes, Memory, QueryInfo

_SQL_SHOWN = 500  # characters of a statement in a list of queries


class ClientCursor:
    """An open cursor; `initiated` is None while the statement is planned, and for one that needs no Spark."""

    def __init__(self, sql: str, client: str, options: Options, user: str = "") -> None:
        self.sql = sql[:_SQL_SHOWN]
        self.client = client
        self.user = user
        self.options = options
        self.started_at = clock.now()
        self.initiated: Initiated | None = None
        self.plan = ""
        self.load: Load | None = None  # rows that the client sends
        self.answer: Answer | None = None  # for whoever attaches, of a statement whose client may be gone
        self.counted: Counted | None = None  # what a statement ends in that gives no rows
        self.is_write = False  # a query runs for it, whose rows are written
        self.changed: CountAnswer | None = None  # of a write to tables of our own
        self.is_handed_over = False  # members may write it, or have, whatever becomes of the cursor
        self.warnings: tuple[str, ...] = ()
        self.error: SkerryError | None = None
        self.begun = asyncio.Event()
        # For the audit: who asked, which parts were read, the attempt that ran last, and rows that it did not make.
        self.asked: Asked | None = None
        self.tables: tuple[str, ...] = ()
        self.ran: Initiated | None = None
        self.told_rows: int | None = None
        self.is_closed = False  # nobody wants more of it
        self.on_closed: set[Callable[[], None]] = set()
        self.place: Callable[[], int] = lambda: 0  # in the queue, while it waits there

    def close(self) -> None:
        self.is_closed = True
        for tell in tuple(self.on_closed):
            tell()

    @property
    def is_given(self) -> bool:
        """The last page was made, or the count: nothing of the query is left to be done."""
        if self.initiated is None:
            return self.answer is not None
        return self.initiated.result.is_made and self.initiated.core.error is None

    @property
    def has_no_rows(self) -> bool:
        """A count comes of it, also while it runs."""
        return self.is_write or (self.initiated is not None and isinstance(self.initiated.result, Counted))

    @property
    def count(self) -> CountAnswer | None:
        """The count that the query ended in, as soon as it is made: its cursor may end before anybody is told."""
        if self.changed is not None:
            return self.changed
        if self.counted is None or not self.counted.is_made:
            return None
        return CountAnswer(self.counted.rows, self.warnings)

    @property
    def state(self) -> str:
        """A query may have failed before its client asks for more rows and learns of it."""
        if self.error is not None or (self.initiated is not None and self.initiated.core.error is not None):
            return "failed"
        if self.initiated is None:
            if self.answer is not None:
                return "done"
            if place := self.place():
                return f"queued ({ordinal(place)})"
            return "running" if self.is_write else "planning"
        if self.initiated.result.is_made:
            return "done"
        # Nobody reads a detached result yet: it is done when all of it is here.
        fragments = self.initiated.core.progress()[0] if self.options.lease.is_detached else ()
        return "done" if fragments and all(each.state == "done" for each in fragments) else "running"


class _Ended(msgspec.Struct):
    status: Status
    info: QueryInfo
    reason: str
    count: CountAnswer | None
    user: str


class History:
    """Queries of one initiator, the latest that ended included."""

    def __init__(self, name: str, most: int, memory_of: Callable[[QueryId, str], Memory | None]) -> None:
        """For member `name`, which remembers `most` queries. `memory_of`: what a query holds at a member."""
        self._name = name
        self._most = most
        self._memory_of = memory_of
        self._ended: OrderedDict[QueryId, _Ended] = OrderedDict()

    def record(self, query: QueryId, cursor: ClientCursor, state: str, reason: str = "") -> None:
        """A cursor is over; its query may still owe receipts. `reason`: why, if its rows were not all given."""
        status = self.status(cursor, state)
        if (error := status.error) is not None:
            # As it was raised it would keep its frames, and with them all that the query had.
            bare = from_code(error.code, error.message[:REASON_CHARS], member=error.member, suggestion=error.suggestion)
            status = msgspec.structs.replace(status, error=bare)
        reason = reason[:REASON_CHARS]
        self._ended[query] = _Ended(status, self.info(query, cursor, state), reason, cursor.count, cursor.user)
        while len(self._ended) > self._most:
            self._ended.popitem(last=False)

    def complete(self, query: QueryId, initiated: Initiated) -> None:
        """The last receipt came: what the links carried is known for good."""
        kept = self._ended.get(query)
        if kept is None:
            return
        fragments, links = initiated.core.progress()
        state = kept.status.state if kept.status.state != "running" else "done"
        seconds = clock.now() - initiated.core.started_at
        kept.status = msgspec.structs.replace(
            kept.status, state=state, seconds=seconds, fragments=fragments, links=links
        )
        kept.info = msgspec.structs.replace(kept.info, state=state, seconds=seconds, links=links)

    def __contains__(self, query: QueryId) -> bool:
        return query in self._ended

    def user_of(self, query: QueryId) -> str | None:
        """Whose query it was; None for one that is not remembered."""
        kept = self._ended.get(query)
        return kept.user if kept is not None else None

    def ended(self, query: QueryId) -> Status:
        kept = self._ended.get(query)
        return kept.status if kept is not None else UNKNOWN

    def count(self, query: QueryId) -> CountAnswer | None:
        """What a query was answered with that ended in a count: unlike rows it can be told again."""
        kept = self._ended.get(query)
        return kept.count if kept is not None else None

    def why_ended(self, query: QueryId) -> str:
        """For who asks for rows of a cursor that is over; "" for one that is not remembered."""
        kept = self._ended.get(query)
        if kept is None:
            return ""
        if kept.count is not None:
            return f"query {query} has ended: {counted(kept.count.rows)} changed"
        return kept.reason or f"query {query} has ended: all of its rows were given"

    def infos(self, besides: Container[QueryId], user: str | None = None) -> list[QueryInfo]:
        """Those of one user, or (None) of all."""
        ended = ((query, each) for query, each in self._ended.items() if user is None or each.user == user)
        return [each.info for query, each in ended if query not in besides]

    def status(self, cursor: ClientCursor, state: str) -> Status:
        fragments, links = cursor.initiated.core.progress() if cursor.initiated is not None else ((), ())
        error = cursor.error or (cursor.initiated.core.error if cursor.initiated is not None else None)
        return Status(
            state=state,
            seconds=clock.now() - cursor.started_at,
            fragments=fragments,
            links=links,
            plan=cursor.plan,
            memory=self._memory(cursor),
            error=error,
        )

    def info(self, query: QueryId, cursor: ClientCursor, state: str) -> QueryInfo:
        rows = size_bytes = 0
        links: tuple[LinkBytes, ...] = ()
        members: tuple[str, ...] = ()
        if cursor.initiated is not None:
            result, core = cursor.initiated.result, cursor.initiated.core
            rows, size_bytes, links, members = result.rows, result.size_bytes, core.progress()[1], core.participants
        seconds = clock.now() - cursor.started_at
        return QueryInfo(query, cursor.sql, cursor.client, state, seconds, rows, size_bytes, links, members)

    def _memory(self, cursor: ClientCursor) -> tuple[Memory, ...]:
        """What participants said, and what an initiator that is none of them holds."""
        if cursor.initiated is None:
            return ()
        said = cursor.initiated.core.memory
        own = self._memory_of(cursor.initiated.query, self._name)
        is_said = any(each.member == self._name for each in said)
        return said if own is None or is_said else (*said, own)

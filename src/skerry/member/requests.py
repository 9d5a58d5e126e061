"""What clients ask of a member: execute, attach, fetch, close, and how queries do."""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import msgspec

from skerry.member import clock
from skerry.member.answers import Answer, answer_statement, ran_as
from skerry.member.clientoptions import read_options
from skerry.member.cursors import Cursors
from skerry.member.history import ClientCursor, History
from skerry.member.initiator import Initiated
from skerry.member.planning import Explained, Planned, Tried, plan_statement, prepare_statement
from skerry.member.relay import relays_of
from skerry.model.errors import (
    Cancelled,
    ConfigError,
    InternalError,
    PeerError,
    SiteError,
    SkerryError,
    SqlError,
    StaleSchema,
    UserError,
)
from skerry.model.ids import QueryId
from skerry.model.points import reach
from skerry.plan.explain import explain
from skerry.wire.client_messages import (
    ClientAttach,
    ClientClose,
    ClientClosed,
    ClientExecute,
    ClientFetch,
    ClientMembers,
    ClientMembersReply,
    ClientPage,
    ClientPrepare,
    ClientPrepared,
    ClientQueries,
    ClientQueriesReply,
    ClientResult,
    ClientStatus,
    ClientStatusReply,
    MemberState,
    Page,
)
from skerry.wire.messages import Failure, Message
from skerry.wire.tcp import Connection
from skerry.wire.values import failure_of

if TYPE_CHECKING:
    from skerry.member.server import Member

log = logging.getLogger("skerry.client")

KINDS = frozenset(
    (
        ClientExecute,
        ClientFetch,
        ClientClose,
        ClientAttach,
        ClientStatus,
        ClientMembers,
        ClientQueries,
        ClientPrepare,
    )
)
EXPECTED = ("any", "rows", "count")

_REPLANS = 3  # columns that change faster than this are somebody's loop
_AGAIN = "~"  # parts a client's id from the number of the attempt; no client's id has it
_LOCAL_ID = re.compile(r"[0-9A-Za-z_-]{1,64}")


class Requests:
    """The cursors of one member's clients, whichever connection they come over."""

    def __init__(self, member: Member) -> None:
        self._member = member
        self._cursors = Cursors(member.limits)
        self._open: dict[QueryId, ClientCursor] = {}
        self._history = History(member)

    @property
    def open_cursors(self) -> int:
        return len(self._open)

    async def answer(self, connection: Connection, message: Message) -> Message:
        """To each of KINDS but for fetch, which may have several answers."""
        handlers: dict[type[Message], Callable[..., Awaitable[Message]]] = {
            ClientExecute: self._execute,
            ClientClose: self._closed,
            ClientAttach: self._attach,
            ClientStatus: self._status,
            ClientMembers: self._members,
            ClientQueries: self._queries,
            ClientPrepare: self._prepare,
        }
        return await handlers[type(message)](connection, message)

    def gone(self, connection: Connection, *, is_goodbye: bool) -> None:
        """The connection has ended, and with it the queries that nobody may come back for."""
        for query in self._cursors.gone(connection, clock.now(), is_goodbye=is_goodbye):
            self.close(query, Cancelled(f"query {query} ended: its client went away"))

    def arrived(self, query: QueryId, upto: int) -> None:
        """The client has all pages below `upto`."""
        cursor = self._open.get(query)
        if cursor is not None and cursor.initiated is not None:
            cursor.initiated.arrived(upto)

    def tick(self, now: float) -> None:
        self._cursors.expire(now)
        for query in self._cursors.expired(now):
            lease_s = self._open[query].options.lease.seconds
            late = Cancelled(f"nobody came for the result of query {query} within its lease ({lease_s:g} s)")
            self.close(query, late, is_unread=True)

    # --- execute -----------------------------------------------------------------------------------
    async def _execute(self, connection: Connection, message: ClientExecute) -> ClientResult:
        query = message.query
        reach("query received")
        try:
            self._check_home(query)
            if _LOCAL_ID.fullmatch(query.local) is None:
                raise PeerError("a query id has 1 to 64 letters, digits, hyphens and underscores")
            if self._member.is_stopping:
                raise SiteError(f"site {self._member.name} is stopping", member=self._member.name)
            if message.expected not in EXPECTED:
                raise UserError(f"a client expects {', '.join(EXPECTED)}, not {message.expected[:100]!r}")
            options = read_options(message.options, self._member.limits)
            self._cursors.open(query, connection, clock.now(), options.lease)
        except SkerryError as error:
            return ClientResult(message.request, error=failure_of(error, self._member.name))
        cursor = self._open[query] = ClientCursor(message, connection.peer_name, options)
        try:
            if not options.lease.outlives:
                return await self._run(message)
            # The query goes on without this connection, and so does what makes its first page.
            self._member.own(self._run_kept(message, cursor), f"query {query}")
            if options.lease.is_detached:
                return ClientResult(message.request)
            await cursor.begun.wait()  # owner: the query's deadline
            if cursor.error is not None:
                raise cursor.error
            assert cursor.answer is not None
            return cursor.answer
        except SkerryError as error:
            if cursor.initiated is None:  # else whoever ran it has told
                log.info("query %s: failed before it began: %s", query, error.message.splitlines()[0])
            self.close(query, error)
            return ClientResult(message.request, error=failure_of(error, self._member.name))
        except Exception as error:
            log.exception("query %s: unexpected error", query)
            wrapped = InternalError(f"{type(error).__name__}: {error}", member=self._member.name)
            self.close(query, wrapped)
            return ClientResult(message.request, error=failure_of(wrapped))

    async def _run_kept(self, message: ClientExecute, cursor: ClientCursor) -> None:
        """Nobody may be there for the answer: it is kept for whoever attaches within the lease, an error too."""
        try:
            cursor.answer = await self._run(message)
        except SkerryError as error:
            cursor.error = error
            log.info("query %s: failed: %s", message.query, error.message.splitlines()[0])
        except Exception as error:
            log.exception("query %s: unexpected error", message.query)
            cursor.error = InternalError(f"{type(error).__name__}: {error}", member=self._member.name)
        finally:
            self._cursors.ready(message.query, clock.now())
            cursor.begun.set()

    async def _attach(self, connection: Connection, message: ClientAttach) -> ClientResult:
        """The rows of a cursor go to another connection, from the page that its client wants next."""
        query = message.query
        try:
            self._check_home(query)
            if query not in self._open:
                raise self._not_open(query)
            self._cursors.attach(query, connection)
            cursor = self._open[query]
            if cursor.options.lease.outlives:
                await cursor.begun.wait()  # owner: the query's deadline, and the client that waits
            if cursor.error is not None:
                raise cursor.error
            if cursor.initiated is None:
                if cursor.answer is None:
                    raise UserError(f"query {query} is still planned by the connection that began it")
                return msgspec.structs.replace(cursor.answer, request=message.request)
            schema = await cursor.initiated.schema()
            cursor.initiated.arrived(message.page_number)
            page = await cursor.initiated.page(message.page_number, *self._page_size(message))
            self._given(query, page)
            return ClientResult(message.request, schema, page)
        except SkerryError as error:
            if not isinstance(error, UserError) or isinstance(error, SqlError | ConfigError):
                self.close(query, error)
            return ClientResult(message.request, error=failure_of(error, self._member.name))

    def _elsewhere(self, query: QueryId) -> Failure | None:
        try:
            self._check_home(query)
        except UserError as error:
            return failure_of(error, self._member.name)
        return None

    def _not_open(self, query: QueryId) -> Cancelled:
        forgotten = f"query {query} is not open here: it ended, was closed, or nobody came for it within its lease"
        return Cancelled(self._history.why_ended(query) or forgotten)

    def _check_home(self, query: QueryId) -> None:
        """Only a query's initiator knows it: say where that is."""
        members = self._member.config.members
        if query.initiator != self._member.name:
            known = members.get(query.initiator)
            where = f" at {known.address}" if known is not None else ", which is no member of this cluster"
            raise UserError(f"query {query} belongs to member {query.initiator}{where}; this is {self._member.name}")

    async def _run(self, message: ClientExecute) -> ClientResult:
        for attempt in range(_REPLANS):
            planned = await plan_statement(self._member, message)
            if message.query not in self._open:
                raise Cancelled(f"query {message.query} was closed")
            if not isinstance(planned, Planned | Tried):
                if not isinstance(planned, Explained):
                    await self._member.peer_tables.refresh()
                return self._answered(message, answer_statement(self._member, planned))
            try:
                if isinstance(planned, Tried):
                    return await self._try(message, planned, attempt)
                return await self._run_planned(message, planned, attempt)
            except StaleSchema as error:
                log.info("query %s: %s; planning again", message.query, error.message)
                await self._member.peer_tables.refresh((error.member,))
        raise StaleSchema(f"the columns of its tables changed {_REPLANS} times while the query was planned")

    async def _run_planned(self, message: ClientExecute, planned: Planned, attempt: int) -> ClientResult:
        initiated = self._begin(message, planned, attempt)
        schema = await initiated.schema()
        reach("columns known")
        page = await initiated.page(0, *self._page_size(message))
        self._given(message.query, page)
        return ClientResult(message.request, schema, page, warnings=planned.warnings)

    async def _try(self, message: ClientExecute, tried: Tried, attempt: int) -> ClientResult:
        """EXPLAIN ANALYZE: all pages are thrown away as they come, and the plan is answered with what it did."""
        initiated = self._begin(message, tried.planned, attempt, is_traced=True)
        limits, number, is_last = self._member.limits, 0, False
        await initiated.schema()
        while not is_last:
            is_last = (await initiated.page(number, limits.page_rows, limits.bulk_page_bytes)).is_last
            number += 1
            initiated.arrived(number)
        seconds = clock.now() - initiated.core.started_at
        await initiated.wait_ended()  # owner: the query's deadline; what links carried is known with the receipts
        ran = ran_as(initiated, seconds)
        explained = Explained(tried.planned.plan, tried.is_json, ran=ran)
        cursor = self._open.get(message.query)
        if cursor is not None and self._cursors.keeps(message.query):
            cursor.initiated = None  # whoever attaches wants the plan, not the rows that were thrown away
        return self._answered(message, answer_statement(self._member, explained))

    def _begin(self, message: ClientExecute, planned: Planned, attempt: int, is_traced: bool = False) -> Initiated:
        member, query = self._member, message.query
        cursor = self._open[query]
        if attempt:
            # Participants remember the id of the attempt that failed.
            query = QueryId(query.initiator, f"{query.local}{_AGAIN}{attempt}")
        timeout_s = message.timeout_s if message.timeout_s > 0 else member.limits.query_timeout_s
        initiated = Initiated(
            query,
            planned.plan,
            planned.parameters,
            timeout_s,
            member.limits,
            member.inputs,
            member.send,
            member.initiated_ended,
            cursor.options.fault_policy or member.config.fault_policy,
            relays_of(planned.plan, query, member.topology),
            member.topology.budgets,
            is_traced,
        )
        cursor.initiated, cursor.plan = initiated, "\n".join(explain(planned.plan, member.name))
        log.info("query %s: started, plan %s", query, planned.plan.plan_id[:12])
        member.initiate(initiated)
        reach("execute sent")
        return initiated

    def _given(self, query: QueryId, page: Page) -> None:
        """The last page closes its cursor, unless it may have to be given again to a client that comes back."""
        if page.is_last and not self._cursors.keeps(query):
            self._remember(query)

    def _answered(self, message: ClientExecute, answer: Answer) -> ClientResult:
        if not self._cursors.keeps(message.query):
            self.close(message.query, None)
        return ClientResult(message.request, answer.schema, answer.page, schema_name=answer.schema_name)

    def _page_size(self, message: ClientExecute | ClientFetch | ClientAttach) -> tuple[int, int]:
        limits = self._member.limits
        # A page must fit a frame with room for its header, whatever the client asks for.
        bytes_max = min(message.page_bytes or limits.page_bytes, limits.frame_bytes // 4)
        rows_max = message.page_rows if message.page_rows > 0 or message.page_bytes else limits.page_rows
        return rows_max, bytes_max

    # --- fetch, close, status ----------------------------------------------------------------------
    async def fetch(self, message: ClientFetch, number: int) -> ClientPage:
        cursor = self._open.get(message.query)
        try:
            self._check_home(message.query)
            if cursor is None or cursor.initiated is None:
                raise self._not_open(message.query)
            page = await cursor.initiated.page(number, *self._page_size(message))
            self._given(message.query, page)
            return ClientPage(message.request, page)
        except SkerryError as error:
            if cursor is not None:  # else the close would be one that overtook its execute
                self.close(message.query, error)
            return ClientPage(message.request, error=failure_of(error, self._member.name))

    def close_by_client(self, query: QueryId) -> None:
        """Before anything that follows it on its connection; `_closed` answers."""
        if query.initiator == self._member.name:  # else the marker would be for nobody
            self.close(query, Cancelled(f"query {query} was closed by its client"))

    async def _closed(self, _connection: Connection, message: ClientClose) -> ClientClosed:
        return ClientClosed(message.request, self._elsewhere(message.query))

    def close(self, query: QueryId, error: SkerryError | None, *, is_unread: bool = False) -> None:
        """Ends the cursor; a query that still runs is cancelled everywhere. `is_unread`: nobody had all its rows."""
        self._cursors.close(query, clock.now())
        cursor = self._open.pop(query, None)
        if cursor is None:
            return
        reason = error.message if error is not None and (is_unread or not cursor.is_given) else ""
        if isinstance(error, Cancelled) and cursor.is_given:
            error = None  # all of it was made, and its client has what it wants
        if cursor.initiated is not None:
            if error is not None:
                cursor.initiated.cancel(error)
            cursor.initiated.drop_pages()
        state = "done" if error is None else "cancelled" if isinstance(error, Cancelled) else "failed"
        self._history.record(query, cursor, state, reason)

    def _remember(self, query: QueryId) -> None:
        """The last page went out: the cursor is over, its query ends with the receipts."""
        cursor = self._open.pop(query, None)
        self._cursors.close(query, clock.now())
        if cursor is not None:
            if cursor.initiated is not None:
                cursor.initiated.drop_pages()
            ended = cursor.initiated is None or cursor.initiated.ended.is_set()
            self._history.record(query, cursor, "done" if ended else "running")

    def query_ended(self, initiated: Initiated) -> None:
        """The last receipt came: what the links carried is known for good."""
        self._history.complete(QueryId(initiated.query.initiator, initiated.query.local.split(_AGAIN)[0]), initiated)

    async def _status(self, _connection: Connection, message: ClientStatus) -> ClientStatusReply:
        cursor = self._open.get(message.query)
        if cursor is not None:
            return self._history.status(cursor, cursor.state, message.request)
        if error := self._elsewhere(message.query):
            return ClientStatusReply(message.request, "unknown", 0.0, error=error)
        return self._history.ended(message.query, message.request)

    async def _queries(self, _connection: Connection, message: ClientQueries) -> ClientQueriesReply:
        running = [self._history.info(query, cursor, cursor.state) for query, cursor in self._open.items()]
        return ClientQueriesReply(message.request, (*self._history.infos(besides=self._open), *running))

    async def _prepare(self, _connection: Connection, message: ClientPrepare) -> ClientPrepared:
        try:
            return ClientPrepared(message.request, await prepare_statement(self._member, message))
        except SkerryError as error:
            return ClientPrepared(message.request, error=failure_of(error, self._member.name))

    async def _members(self, _connection: Connection, message: ClientMembers) -> ClientMembersReply:
        states = []
        for name, each in self._member.config.members.items():
            state = "up" if name == self._member.name else self._member.peers.state(name)
            states.append(MemberState(name, each.address, each.role.value, state))
        return ClientMembersReply(message.request, tuple(states))

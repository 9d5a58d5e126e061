"""Shell of client connections: execute, fetch, close, and what happens when a client goes away."""

from __future__ import annotations

import asyncio
import logging
import re
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import msgspec

from skerry import clock
from skerry.config import FaultPolicy
from skerry.errors import Cancelled, InternalError, Overloaded, PeerError, SiteError, SkerryError, StaleSchema
from skerry.ids import QueryId
from skerry.member.answers import Answer, answer_statement
from skerry.member.cursors import Cursors
from skerry.member.faults import OPTION
from skerry.member.initiator import Initiated
from skerry.member.planning import Explained, Planned, plan_statement
from skerry.plan.explain import explain
from skerry.testing.points import reach
from skerry.wire.frames import Buffer, ConnectionLost, decode, encode_message, size_of
from skerry.wire.messages import (
    ClientClose,
    ClientClosed,
    ClientExecute,
    ClientFetch,
    ClientMembers,
    ClientMembersReply,
    ClientPage,
    ClientResult,
    ClientStatus,
    ClientStatusReply,
    Goodbye,
    Hello,
    MemberState,
    Message,
)
from skerry.wire.tcp import Connection
from skerry.wire.values import failure_of

if TYPE_CHECKING:
    from skerry.member.server import Member

log = logging.getLogger("skerry.client")

_REPLANS = 3  # columns that change faster than this are somebody's loop
_AGAIN = "~"  # parts a client's id from the number of the attempt; no client's id has it
_LOCAL_ID = re.compile(r"[0-9A-Za-z_-]{1,64}")


class _Cursor(msgspec.Struct):
    """An open cursor; `initiated` is None while the statement is planned."""

    connection: object
    started_at: float
    initiated: Initiated | None = None
    plan: str = ""


class Clients:
    """All client connections of one member. Each request is a task of its own; answers carry its number."""

    def __init__(self, member: Member) -> None:
        self._member = member
        self._cursors = Cursors(member.limits)
        self._open: dict[QueryId, _Cursor] = {}
        self._ended: OrderedDict[QueryId, ClientStatusReply] = OrderedDict()
        self._connections: set[Connection] = set()

    @property
    def open_cursors(self) -> int:
        return len(self._open)

    # --- connections -------------------------------------------------------------------------------
    async def serve(self, connection: Connection, _hello: Hello) -> None:
        """Reading never waits for writing: a request that takes long does not hold up the next."""
        self._connections.add(connection)
        requests: set[asyncio.Task[None]] = set()
        try:
            while (frame := await connection.receive()) is not None:
                message = decode(frame)
                if isinstance(message, Goodbye):
                    break
                if len(requests) >= self._member.limits.client_requests:
                    raise Overloaded(f"{len(requests)} requests wait on this connection (limits.client_requests)")
                task = asyncio.ensure_future(self._answer(connection, message))
                requests.add(task)
                task.add_done_callback(requests.discard)
        except ConnectionLost:
            pass
        finally:
            self._connections.discard(connection)
            for query in self._cursors.of(connection):
                self._close(query, Cancelled("the client went away"))
            for task in requests:
                task.cancel()

    async def stop(self) -> None:
        for connection in list(self._connections):
            connection.close()

    def tick(self, now: float) -> None:
        self._cursors.expire(now)

    async def _answer(self, connection: Connection, message: Message) -> None:
        handlers: dict[type[Message], Callable[..., Awaitable[Message]]] = {
            ClientExecute: self._execute,
            ClientFetch: self._fetch,
            ClientClose: self._close_request,
            ClientStatus: self._status,
            ClientMembers: self._members,
        }
        handler = handlers.get(type(message))
        if handler is None:
            connection.refuse(PeerError(f"a client does not send {type(message).__name__}"))
            return
        try:
            answer = await handler(connection, message)
        except Exception as error:
            # Silence would leave the client waiting for its answer.
            log.exception("%s: unexpected error", type(message).__name__)
            connection.refuse(InternalError(f"{type(error).__name__}: {error}", member=self._member.name))
            return
        try:
            connection.send_parts(self._fitting(message, answer))
            await connection.drain()
        except (ConnectionLost, OSError):
            pass  # serve() sees the end as well, and cleans up

    def _fitting(self, message: Message, answer: Message) -> list[Buffer]:
        """The answer as a frame. One row may be larger than any: its client would drop the connection for it."""
        parts = encode_message(answer)
        size, most = size_of(parts), self._member.limits.frame_bytes
        if size <= most or not isinstance(message, ClientExecute | ClientFetch):
            return parts
        error = Overloaded(
            f"a page of {size} bytes is over the limit of a frame, {most} bytes (limits.frame_bytes)",
            member=self._member.name,
            suggestion="are there single values of such a size? ask for less of them",
        )
        self._close(message.query, error)
        failure = failure_of(error)
        is_fetch = isinstance(message, ClientFetch)
        reply = ClientPage(message.request, error=failure) if is_fetch else ClientResult(message.request, error=failure)
        return encode_message(reply)

    # --- execute -----------------------------------------------------------------------------------
    async def _execute(self, connection: Connection, message: ClientExecute) -> ClientResult:
        query = message.query
        reach("query received")
        try:
            if query.initiator != self._member.name:
                raise PeerError(f"query {query} belongs to member {query.initiator}, this is {self._member.name}")
            if _LOCAL_ID.fullmatch(query.local) is None:
                raise PeerError("a query id has 1 to 64 letters, digits, hyphens and underscores")
            if self._member.is_stopping:
                raise SiteError(f"site {self._member.name} is stopping", member=self._member.name)
            self._cursors.open(query, connection, clock.now())
            self._open[query] = _Cursor(connection, clock.now())
        except SkerryError as error:
            return ClientResult(message.request, error=failure_of(error, self._member.name))
        try:
            return await self._run(message)
        except SkerryError as error:
            cursor = self._open.get(query)
            if cursor is not None and cursor.initiated is None:  # else whoever ran it has told
                log.info("query %s: failed before it began: %s", query, error.message.splitlines()[0])
            self._close(query, error)
            return ClientResult(message.request, error=failure_of(error, self._member.name))
        except Exception as error:
            log.exception("query %s: unexpected error", query)
            wrapped = InternalError(f"{type(error).__name__}: {error}", member=self._member.name)
            self._close(query, wrapped)
            return ClientResult(message.request, error=failure_of(wrapped))

    async def _run(self, message: ClientExecute) -> ClientResult:
        for attempt in range(_REPLANS):
            planned = await plan_statement(self._member, message)
            if message.query not in self._open:
                raise Cancelled(f"query {message.query} was closed")
            if not isinstance(planned, Planned):
                if not isinstance(planned, Explained):
                    await self._member.peer_tables.refresh()
                return self._answered(message, answer_statement(self._member, planned))
            try:
                return await self._run_planned(message, planned, attempt)
            except StaleSchema as error:
                log.info("query %s: %s; planning again", message.query, error.message)
                await self._member.peer_tables.refresh((error.member,))
        raise StaleSchema(f"the columns of its tables changed {_REPLANS} times while the query was planned")

    async def _run_planned(self, message: ClientExecute, planned: Planned, attempt: int) -> ClientResult:
        member, query = self._member, message.query
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
            self._policy(message),
        )
        cursor = self._open[message.query]
        cursor.initiated, cursor.plan = initiated, "\n".join(explain(planned.plan, member.name))
        log.info("query %s: started, plan %s", query, planned.plan.plan_id[:12])
        member.initiate(initiated)
        reach("execute sent")
        schema = await initiated.schema()
        reach("columns known")
        page = await initiated.page(0, *self._page_size(message))
        if page.is_last:
            self._remember(message.query)
        return ClientResult(message.request, schema, page)

    def _policy(self, message: ClientExecute) -> FaultPolicy:
        name = message.options.get(OPTION)
        return self._member.config.fault_policy if name is None else FaultPolicy.named(name)

    def _answered(self, message: ClientExecute, answer: Answer) -> ClientResult:
        self._close(message.query, None)
        return ClientResult(message.request, answer.schema, answer.page)

    def _page_size(self, message: ClientExecute | ClientFetch) -> tuple[int, int]:
        limits = self._member.limits
        # A page must fit a frame with room for its header, whatever the client asks for.
        bytes_max = min(message.page_bytes or limits.page_bytes, limits.frame_bytes // 4)
        rows_max = message.page_rows if message.page_rows > 0 or message.page_bytes else limits.page_rows
        return rows_max, bytes_max

    # --- fetch, close, status ----------------------------------------------------------------------
    async def _fetch(self, _connection: Connection, message: ClientFetch) -> ClientPage:
        cursor = self._open.get(message.query)
        try:
            if cursor is None or cursor.initiated is None:
                raise Cancelled(f"query {message.query} is not open here: it ended, or was closed")
            page = await cursor.initiated.page(message.page_number, *self._page_size(message))
            if page.is_last:
                self._remember(message.query)
            return ClientPage(message.request, page)
        except SkerryError as error:
            self._close(message.query, error)
            return ClientPage(message.request, error=failure_of(error, self._member.name))

    async def _close_request(self, _connection: Connection, message: ClientClose) -> ClientClosed:
        self._close(message.query, Cancelled(f"query {message.query} was closed by its client"))
        return ClientClosed(message.request)

    def _close(self, query: QueryId, error: SkerryError | None) -> None:
        """Ends the cursor; a query that still runs is cancelled everywhere."""
        self._cursors.close(query, clock.now())
        cursor = self._open.pop(query, None)
        if cursor is None:
            return
        if cursor.initiated is not None and error is not None:
            cursor.initiated.cancel(error)
        state = "done" if error is None else "cancelled" if isinstance(error, Cancelled) else "failed"
        self._record(query, self._report(0, cursor, state))

    def _remember(self, query: QueryId) -> None:
        """The last page went out: the cursor is over, its query ends with the receipts."""
        cursor = self._open.pop(query, None)
        self._cursors.close(query, clock.now())
        if cursor is not None:
            ended = cursor.initiated is None or cursor.initiated.ended.is_set()
            self._record(query, self._report(0, cursor, "done" if ended else "running"))

    def query_ended(self, initiated: Initiated) -> None:
        """The last receipt came: what the links carried is known for good."""
        query = QueryId(initiated.query.initiator, initiated.query.local.split(_AGAIN)[0])
        kept = self._ended.get(query)
        if kept is not None:
            cursor = _Cursor(None, initiated.core.started_at, initiated, kept.plan)
            state = kept.state if kept.state != "running" else "done"
            self._record(query, self._report(0, cursor, state))

    def _record(self, query: QueryId, report: ClientStatusReply) -> None:
        self._ended[query] = report
        while len(self._ended) > self._member.limits.history_queries:
            self._ended.popitem(last=False)

    def _report(self, request: int, cursor: _Cursor, state: str) -> ClientStatusReply:
        fragments, links = cursor.initiated.core.progress() if cursor.initiated is not None else ((), ())
        seconds = clock.now() - cursor.started_at
        memory = cursor.initiated.core.memory if cursor.initiated is not None else ()
        return ClientStatusReply(request, state, seconds, fragments, links, cursor.plan, memory)

    async def _status(self, _connection: Connection, message: ClientStatus) -> ClientStatusReply:
        cursor = self._open.get(message.query)
        if cursor is not None:
            return self._report(message.request, cursor, _state(cursor))
        kept = self._ended.get(message.query)
        if kept is None:
            return ClientStatusReply(message.request, "unknown", 0.0)
        return msgspec.structs.replace(kept, request=message.request)

    async def _members(self, _connection: Connection, message: ClientMembers) -> ClientMembersReply:
        states = []
        for name, each in self._member.config.members.items():
            state = "up" if name == self._member.name else self._member.peers.state(name)
            states.append(MemberState(name, each.address, each.role.value, state))
        return ClientMembersReply(message.request, tuple(states))


def _state(cursor: _Cursor) -> str:
    """A query may have failed before its client asks for more rows and learns of it."""
    if cursor.initiated is None:
        return "planning"
    return "running" if cursor.initiated.core.error is None else "failed"

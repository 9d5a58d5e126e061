"""A client's link to one member, shared by cursors and threads; answers find their request by its number.

Two threads of its own read and write, so that a dead member is noticed at once, heartbeats are answered whatever
the application does, a status can be asked for while a query runs, and Ctrl-C never stops in the middle of a frame.
Small requests are sent by whoever asks, in one call that no signal interrupts half way.
With `resume_s` a lost connection is dialled again, and the cursors go on where they were.
"""

from __future__ import annotations

import math
import queue
import random
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import TypeVar
from uuid import uuid4

from skerry.client import clock
from skerry.client.cursor import AGAIN, CursorCore, PageSize
from skerry.client.dial import NobodyThere, dial, gone
from skerry.client.routes import Question, Routes
from skerry.client.url import Target
from skerry.model.errors import (
    Cancelled,
    InternalError,
    OutcomeUnknown,
    Overloaded,
    PeerError,
    SiteError,
    SkerryError,
    TimedOut,
    unsure,
)
from skerry.model.ids import QueryId
from skerry.model.limits import STAGED_AHEAD, Limits
from skerry.model.results import Page, Value
from skerry.model.variables import Variable
from skerry.wire.blocking import BlockingConnection
from skerry.wire.client_messages import (
    ClientClose,
    ClientClosed,
    ClientExecute,
    ClientFetch,
    ClientMembersReply,
    ClientPage,
    ClientPrepared,
    ClientQueriesReply,
    ClientResult,
    ClientRows,
    ClientRowsTaken,
    ClientStatusReply,
)
from skerry.wire.frames import ConnectionLost, decode
from skerry.wire.messages import Goodbye, Message, Ping, Pong, Refused, Welcome
from skerry.wire.values import error_of

SIGNALS_S = 0.25

Answer = TypeVar("Answer", ClientStatusReply, ClientMembersReply, ClientQueriesReply, ClientPrepared, ClientClosed)
_ANSWERS = (
    ClientStatusReply,
    ClientMembersReply,
    ClientQueriesReply,
    ClientPrepared,
    ClientClosed,
    ClientRowsTaken,
)

_SENT_AT_ONCE = (ClientExecute, ClientFetch)


class _Lost(Exception):
    """The connection is gone, but the member may not be; `reason` is what to say if it is."""

    def __init__(self, reason: SiteError) -> None:
        self.reason = reason


class MemberLink:
    """A logged-in connection. Its methods may be called from any thread."""

    def __init__(
        self, connection: BlockingConnection, target: Target, welcome: Welcome, limits: Limits, resume_s: float = 0.0
    ) -> None:
        self.target = target
        self.member = welcome.member
        self.limits = limits
        self.resume_s = resume_s
        self._epoch = welcome.epoch
        self._connection = connection
        self._new = connection  # while it is dialled: the one that has not said hello yet
        # A cursor in it is one to close. Few requests wait here: whoever sends one waits for its answer.
        self._outgoing: queue.SimpleQueue[Message | CursorCore | None] = queue.SimpleQueue()
        self._order = threading.Lock()  # guards the next line, and what is sent beside the queue
        self._queued = 0  # requests that are in it, or being sent from there
        self._stopping = threading.Event()
        self._changed = threading.Condition()  # guards all below, and every cursor's core
        self._routes = Routes(f"member at {target}")
        self._closes: dict[int, ClientClose] = {}  # not answered yet
        self._error: SkerryError | None = None
        self._reader = threading.Thread(target=self._read, name=f"skerry-read-{target}", daemon=True)
        self._writer = threading.Thread(target=self._write, name=f"skerry-write-{target}", daemon=True)
        self._reader.start()
        self._writer.start()

    @classmethod
    def open(cls, target: Target, timeout_s: float | None = None, resume_s: float = 0.0) -> MemberLink:
        """Connect and say hello."""
        limits = Limits()
        connection, welcome = dial(target, limits.login_s if timeout_s is None else timeout_s, limits)
        return cls(connection, target, welcome, limits, resume_s)

    @property
    def error(self) -> SkerryError | None:
        """Why the link is of no use any more."""
        return self._error

    def new_cursor(self, query: QueryId | None = None) -> CursorCore:
        """For a new query, or for one that runs already."""
        return CursorCore(query or QueryId(self.member, uuid4().hex), self._routes.numbers, resumes=self.resume_s > 0)

    def execute(
        self,
        core: CursorCore,
        sql: str,
        parameters: list[Value] | dict[str, Value],
        *,
        size: PageSize,
        timeout_s: float,
        schema_name: str,
        expected: str,
        options: dict[str, str],
        variables: dict[str, Variable] | None = None,
        more: list[list[Value] | dict[str, Value]] | None = None,
        rows: Iterator[Callable[[int], ClientRows]] | None = None,
        seen_ts: int = 0,
        transaction: str = "",
    ) -> None:
        """Send the query and wait for its first page, count or error. `rows` that it loads follow it."""
        with self._changed:
            self.check()
            request = core.execute(
                sql,
                parameters,
                size=size,
                timeout_s=timeout_s,
                schema_name=schema_name,
                expected=expected,
                options=options,
                variables=variables,
                more=more,
                seen_ts=seen_ts,
                transaction=transaction,
                now=clock.now(),
            )
            self._routes.follow(core)
        if rows is not None:
            self._send([request])
            self._begin_load(core, rows, is_again=AGAIN in options)
            return
        self._begin(core, [request])

    def attach(self, core: CursorCore, size: PageSize) -> None:
        """Take over a query that runs already, and wait for its first page, count or error."""
        with self._changed:
            self.check()
            request = core.attach(size)
            self._routes.follow(core)
        self._begin(core, [request])

    def next_page(self, core: CursorCore, size: PageSize, ahead: int = 0) -> Page | None:
        """The next page, or None at the end; `ahead` pages more are asked for while the caller works on it."""
        with self._changed:
            requests: list[Message] = []
            if not core.ready:
                self.check()
                requests += core.ask(max(ahead, 1), size)
                self._routes.follow(core)
        self._send_and_wait(core, requests)
        with self._changed:
            page = core.take()
            requests = [*core.ask(ahead, size)]
            self._routes.follow(core)
        self._send(requests)
        return page

    def close_cursor(self, core: CursorCore) -> None:
        """Nobody wants more of this query; what it still answers is dropped."""
        request = self._close_of(core)
        if request is not None:
            self._send([request])

    def cancel(self, core: CursorCore) -> None:
        """End a query that another thread may wait for."""
        with self._changed:
            request = core.cancel()
            self._routes.follow(core)
            self._changed.notify_all()
        if request is not None:
            self._send([request])

    def abandon(self, core: CursorCore) -> None:
        """Close a cursor without taking a lock: for finalizers, which may run in the middle of anything."""
        self._outgoing.put(core)

    def ask(self, make: Callable[[int], Message], kind: type[Answer]) -> Answer:
        """Send the request that `make` builds and wait for its answer."""
        question = Question()
        with self._changed:
            self.check()
            number = self._routes.ask(question)
        try:
            self._send([make(number)])
            with self._changed:
                self._changed.wait_for(lambda: question.answer or question.error, self.limits.wait_s)
        finally:
            with self._changed:
                self._routes.drop(number)
        if question.error is not None:
            raise question.error
        if question.answer is None:
            raise TimedOut(f"member at {self.target} has not answered for {self.limits.wait_s:g} s")
        if not isinstance(question.answer, kind):
            raise PeerError(f"member at {self.target} answered {type(question.answer).__name__}, not {kind.__name__}")
        return question.answer

    def close(self, wait: bool = True) -> None:
        """Say goodbye; cursors that are still open end with it."""
        self._stopping.set()
        if self._new is not self._connection:
            self._new.close()  # it may have to wait for its welcome
        self._fail(Cancelled(f"the connection to {self.target} was closed"))
        self._outgoing.put(Goodbye())
        self._outgoing.put(None)
        if wait:
            self._writer.join(self.limits.stop_s)
            self._connection.close()
            self._reader.join(self.limits.stop_s)

    # --- sending -----------------------------------------------------------------------------------
    def _begin_load(self, core: CursorCore, rows: Iterator[Callable[[int], ClientRows]], is_again: bool) -> None:
        try:
            is_whole = self._load(core, rows)
        except SkerryError as error:  # of this time; the rows may be there from the time before
            raise unsure(core.query, error) if is_again else error from error
        if not is_whole and not is_again and isinstance(core.error, OutcomeUnknown) and self._error is not None:
            raise self._unsent(self._error)
        self._begin(core, [])

    def _unsent(self, lost: SkerryError) -> SiteError:
        return SiteError(
            f"{lost.message}; not all rows had been sent, and nothing was written",
            member=self.member,
            suggestion="load them again",
        )

    def _load(self, core: CursorCore, rows: Iterator[Callable[[int], ClientRows]]) -> bool:
        """Sends all of them, a few at a time; False if the statement ends before. Its answer is still to be awaited."""
        asked: deque[tuple[int, Question]] = deque()
        try:
            for make in rows:
                while len(asked) >= STAGED_AHEAD and not core.ready:
                    self._await_room(*asked.popleft(), core)
                if core.ready:
                    return False
                question = Question()
                with self._changed:
                    self.check()
                    number = self._routes.ask(question)
                asked.append((number, question))
                self._send([make(number)])
            return True
        except BaseException:
            self.close_cursor(core)
            raise
        finally:
            with self._changed:
                for number, _ in asked:
                    self._routes.drop(number)

    def _await_room(self, number: int, question: Question, core: CursorCore) -> None:
        with self._changed:
            while not self._changed.wait_for(lambda: question.answer or question.error or core.ready, SIGNALS_S):
                pass
            self._routes.drop(number)
        # What the member says of rows it says of the statement too. A lost connection is ours to tell.
        if question.error is not None and not core.ready:
            raise self._unsent(question.error)

    def _begin(self, core: CursorCore, requests: list[Message]) -> None:
        self._send_and_wait(core, requests)
        if core.error is not None:
            raise core.error

    def _send_and_wait(self, core: CursorCore, requests: list[Message]) -> None:
        try:
            self._send(requests)
            with self._changed:
                # In steps: a Ctrl-C just before the wait begins is seen when the wait ends, which may be never.
                while not self._changed.wait_for(lambda: core.ready, SIGNALS_S):
                    pass
        except BaseException:  # Ctrl-C, or whatever a signal handler raised: stop the query, not the connection
            self.close_cursor(core)
            raise

    def _send(self, messages: list[Message]) -> None:
        """In this order. Whoever asks sends what is small, if nothing is before it: to wake the thread takes longer."""
        for message in messages:
            with self._order:
                is_next = not self._queued and self._outgoing.empty() and isinstance(message, _SENT_AT_ONCE)
                if is_next and self._connection.send_now(message):
                    if not self._connection.has_rest:
                        continue
                    message = Pong(0)  # means nothing, but comes with the rest
                self._queued += 1
                self._outgoing.put(message)

    def _write(self) -> None:
        """What cannot be sent is dropped: the reader sees the loss, tells those who wait, or asks again."""
        try:
            while (item := self._outgoing.get()) is not None:
                message = self._close_of(item) if isinstance(item, CursorCore) else item
                connection = self._connection
                if isinstance(message, ClientClose) and self.resume_s > 0:
                    with self._changed:
                        self._closes[message.request] = message
                try:
                    if message is not None:
                        connection.send(message)
                except TimeoutError:
                    connection.close()  # a member that reads nothing would keep the reader waiting
                except ConnectionLost:
                    pass  # what the member said before it went explains more than our broken pipe
                if not isinstance(item, CursorCore):
                    with self._order:
                        self._queued -= 1
        except BaseException as error:
            self._break(InternalError(f"writing to {self.target} failed: {error!r}"))
            raise
        finally:
            self._connection.close()

    def _close_of(self, core: CursorCore) -> Message | None:
        with self._changed:
            message = core.close()
            self._routes.follow(core)
            return message

    # --- receiving ---------------------------------------------------------------------------------
    def _read(self) -> None:
        try:
            while True:
                try:
                    self._read_connection()
                except _Lost as lost:
                    self._dial_again(lost.reason)
        except SkerryError as error:
            self._break(error)
        except BaseException as error:
            self._break(InternalError(f"reading from {self.target} failed: {error!r}"))
            raise

    def _read_connection(self) -> None:
        """Until it is lost, or the member said something that ends it."""
        connection, limits = self._connection, self.limits
        is_pinged, silent = False, 0
        while True:
            seen = connection.bytes_received
            try:
                frame = connection.receive(limits.heartbeat_s if is_pinged else None)
            except TimeoutError:
                # Part of a large frame is a sign of life too.
                silent = silent + 1 if connection.bytes_received == seen else 0
                if silent >= self._silences_max:
                    connection.close()
                    raise _Lost(gone(self.target, "it has been silent for too long")) from None
                self._send([Ping(0)])
                continue
            except (OSError, ConnectionLost) as error:
                raise _Lost(gone(self.target, error)) from error
            if frame is None:
                raise _Lost(gone(self.target, "it closed the connection"))
            message = decode(frame)
            silent = 0
            # A member of an older release neither pings nor knows what to do with a ping.
            is_pinged = is_pinged or isinstance(message, Ping)
            with self._changed:
                self._send(self._receive(message))
                self._changed.notify_all()

    @property
    def _silences_max(self) -> int:
        """Heartbeats without a word until the member counts as lost. Who cannot resume loses more by being wrong."""
        missed = self.limits.heartbeats_missed
        return missed if self.resume_s > 0 else max(missed, math.ceil(self.limits.wait_s / self.limits.heartbeat_s))

    def _receive(self, message: Message) -> list[Message]:
        match message:
            case ClientResult() | ClientPage():
                core = self._routes.of(message.request)
                if isinstance(core, CursorCore):
                    return self._receive_answer(core, message)
            case _ if isinstance(message, _ANSWERS):
                self._closes.pop(message.request, None)
                question = self._routes.of(message.request)
                if isinstance(question, Question):
                    question.answer = message
            case Ping():
                return [Pong(0)]
            case Pong():
                pass
            case Refused(error):
                raise error_of(error)
            case Goodbye():
                raise gone(self.target, "it said goodbye")
            case _:
                raise PeerError(f"member at {self.target} sent {type(message).__name__} to a client")
        return []

    def _receive_answer(self, core: CursorCore, message: ClientResult | ClientPage) -> list[Message]:
        try:
            return core.receive(message, clock.now())
        except PeerError as error:
            core.fail(error)
            raise
        finally:
            self._routes.follow(core)

    # --- losing and finding the member -------------------------------------------------------------
    def _dial_again(self, reason: SiteError) -> None:
        """Raises when there is no going on."""
        if self.resume_s <= 0 or self._stopping.is_set():
            raise reason
        with self._changed:
            self._routes.lose(reason)
            self._changed.notify_all()
        self._connection.close()
        connection, welcome = self._redial(reason)
        with self._changed:
            # What was asked for meanwhile went to the old connection, or will come a second time: either does no harm.
            self._routes.lose(reason)
            self._connection = connection
            if (welcome.member, welcome.epoch) != (self.member, self._epoch):
                restarted = SiteError(f"member {self.member} at {self.target} was restarted: its queries are lost")
                self._routes.fail(restarted, but_changes=welcome.member == self.member)
                self._epoch, self.member = welcome.epoch, welcome.member
            for core in self._routes.live:
                request = core.resume(clock.now())
                self._routes.follow(core)
                if request is not None:
                    self._send([request])
            # A close that was lost would leave the query to its lease.
            self._send(list(self._closes.values()))
            self._changed.notify_all()
        if self._stopping.is_set():  # `close` may have missed this connection
            connection.close()
            raise reason

    def _redial(self, reason: SiteError) -> tuple[BlockingConnection, Welcome]:
        until = time.monotonic() + self.resume_s
        pause_s = self.limits.reconnect_first_s
        while (left_s := until - time.monotonic()) > 0 and not self._stopping.is_set():
            try:
                return dial(self.target, min(left_s, self.limits.login_s), self.limits, self._dialled)
            except (SiteError, Overloaded) as error:
                with self._changed:
                    may_change = any(core.may_change for core in self._routes.live)
                if isinstance(error, NobodyThere) and not may_change:
                    raise  # its process ended, and its queries with it; what it has written is told when it is back
                self._stopping.wait(min(pause_s * random.uniform(0.5, 1.0), left_s))
                pause_s = min(2 * pause_s, self.limits.reconnect_max_s)
        raise SiteError(f"{reason.message}; it was dialled again for {self.resume_s:g} s (resume_s)") from reason

    def _dialled(self, connection: BlockingConnection) -> None:
        self._new = connection
        if self._stopping.is_set():
            connection.close()

    def check(self) -> None:
        """Raises why the link is of no use any more."""
        if self._error is not None:
            raise self._error

    def _break(self, error: SkerryError) -> None:
        self._fail(error)
        self._outgoing.put(None)
        self._connection.close()

    def _fail(self, error: SkerryError) -> None:
        """Whoever waits gets `error`, and so does whoever asks from now on; the first error counts."""
        with self._changed:
            if self._error is None:
                self._error = error
            self._routes.fail(self._error)
            self._changed.notify_all()

"""One socket to one member, shared by cursors and threads; answers find their request by its number.

Two threads of its own read and write, so that a dead member is noticed at once, a status can be asked for
while a query runs, and Ctrl-C never stops in the middle of a frame.
"""

from __future__ import annotations

import queue
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from typing import TypeVar
from uuid import uuid4

from skerry import __version__
from skerry.client.cursor import CursorCore, PageSize
from skerry.client.url import SCHEME_TLS, Target
from skerry.errors import Cancelled, InternalError, PeerError, SiteError, SkerryError, TimedOut
from skerry.ids import QueryId
from skerry.limits import Limits
from skerry.wire.blocking import BlockingConnection
from skerry.wire.frames import ConnectionLost, decode
from skerry.wire.messages import (
    PROTOCOL_VERSIONS,
    ClientClosed,
    ClientMembersReply,
    ClientPage,
    ClientResult,
    ClientStatusReply,
    Goodbye,
    Hello,
    Message,
    Page,
    Ping,
    Pong,
    Refused,
    Value,
)
from skerry.wire.tls import TlsSocket, check_member, client_context
from skerry.wire.values import error_of

# Seconds until the first probe, between probes, and probes unanswered until the member counts as gone.
KEEPALIVE = {"TCP_KEEPIDLE": 5, "TCP_KEEPINTVL": 2, "TCP_KEEPCNT": 3}
SIGNALS_S = 0.25

Answer = TypeVar("Answer", ClientStatusReply, ClientMembersReply)


class _Numbers(Iterator[int]):
    """Request numbers; used under the link's lock only."""

    def __init__(self) -> None:
        self.upto = 1

    def __next__(self) -> int:
        self.upto += 1
        return self.upto - 1


class _Question:
    """A request with one answer, and no cursor."""

    def __init__(self) -> None:
        self.answer: Message | None = None
        self.error: SkerryError | None = None


class MemberLink:
    """A logged-in connection. Its methods may be called from any thread."""

    def __init__(self, connection: BlockingConnection, target: Target, member: str, limits: Limits) -> None:
        self.target = target
        self.member = member
        self.limits = limits
        self._connection = connection
        self._numbers = _Numbers()
        # A cursor in it is one to close. Few requests wait here: whoever sends one waits for its answer.
        self._outgoing: queue.SimpleQueue[Message | CursorCore | None] = queue.SimpleQueue()
        self._changed = threading.Condition()  # guards all below, and every cursor's core
        self._routes: dict[int, CursorCore | _Question] = {}
        self._error: SkerryError | None = None
        self._reader = threading.Thread(target=self._read, name=f"skerry-read-{target}", daemon=True)
        self._writer = threading.Thread(target=self._write, name=f"skerry-write-{target}", daemon=True)
        self._reader.start()
        self._writer.start()

    @classmethod
    def open(cls, target: Target, timeout_s: float | None = None) -> MemberLink:
        """Connect and say hello."""
        limits = Limits()
        wait_s = limits.login_s if timeout_s is None else timeout_s
        context = client_context(target.tls) if target.tls is not None else None
        try:
            sock = _open_socket(target, wait_s, limits)
        except OSError as error:
            raise SiteError(
                f"no member answers at {target} ({_reason(error, target)}); is it up, and is this its address?"
            ) from error
        secure = _secured(sock, context, target, wait_s, limits) if context is not None else None
        connection = BlockingConnection(secure or sock, str(target), limits)
        try:
            hello = Hello("client", PROTOCOL_VERSIONS, cluster="", member="", epoch=0, release=__version__)
            welcome = connection.login(hello, wait_s)
            if secure is not None and target.tls is not None and target.tls.authority:
                check_member(secure.certificate, welcome.member, str(target))
        except (OSError, ConnectionLost) as error:
            connection.close()
            gone = _gone(target, error)
            if secure is None:
                gone.suggestion = f"if the members use TLS: {SCHEME_TLS}://{target}?authority=…"
            raise gone from error
        except BaseException:
            connection.close()
            raise
        return cls(connection, target, welcome.member, limits)

    @property
    def error(self) -> SkerryError | None:
        """Why the link is of no use any more."""
        return self._error

    def new_cursor(self) -> CursorCore:
        return CursorCore(QueryId(self.member, uuid4().hex), self._numbers)

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
    ) -> None:
        """Send the query and wait for its first page, count or error."""
        with self._changed:
            self._check()
            request = core.execute(
                sql,
                parameters,
                size=size,
                timeout_s=timeout_s,
                schema_name=schema_name,
                expected=expected,
                options=options,
            )
            self._add_routes(core)
        self._send_and_wait(core, [request])
        if core.error is not None:
            raise core.error

    def next_page(self, core: CursorCore, size: PageSize, ahead: int = 0) -> Page | None:
        """The next page, or None at the end; `ahead` pages more are asked for while the caller works on it."""
        with self._changed:
            requests: list[Message] = []
            if not core.ready:
                self._check()
                requests += core.ask(max(ahead, 1), size)
                self._add_routes(core)
        self._send_and_wait(core, requests)
        with self._changed:
            page = core.take()
            requests = [*core.ask(ahead, size)]
            self._add_routes(core)
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
            self._drop_routes(core)
            request = core.cancel()
            self._changed.notify_all()
        if request is not None:
            self._send([request])

    def abandon(self, core: CursorCore) -> None:
        """Close a cursor without taking a lock: for finalizers, which may run in the middle of anything."""
        self._outgoing.put(core)

    def ask(self, make: Callable[[int], Message], kind: type[Answer]) -> Answer:
        """Send the request that `make` builds and wait for its answer."""
        question = _Question()
        with self._changed:
            self._check()
            number = next(self._numbers)
            self._routes[number] = question
        try:
            self._send([make(number)])
            with self._changed:
                self._changed.wait_for(lambda: question.answer or question.error, self.limits.wait_s)
        finally:
            with self._changed:
                self._routes.pop(number, None)
        if question.error is not None:
            raise question.error
        if question.answer is None:
            raise TimedOut(f"member at {self.target} has not answered for {self.limits.wait_s:g} s")
        if not isinstance(question.answer, kind):
            raise PeerError(f"member at {self.target} answered {type(question.answer).__name__}, not {kind.__name__}")
        return question.answer

    def close(self, wait: bool = True) -> None:
        """Say goodbye; cursors that are still open end with it."""
        self._fail(Cancelled(f"the connection to {self.target} was closed"))
        self._outgoing.put(Goodbye())
        self._outgoing.put(None)
        if wait:
            self._writer.join(self.limits.stop_s)
            self._connection.close()
            self._reader.join(self.limits.stop_s)

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
        for message in messages:
            self._outgoing.put(message)

    def _write(self) -> None:
        try:
            while (item := self._outgoing.get()) is not None:
                message = self._close_of(item) if isinstance(item, CursorCore) else item
                if message is not None:
                    self._connection.send(message)
            self._connection.close()
        except (OSError, SkerryError) as error:
            if not isinstance(error, TimeoutError):
                # What the member said before it went explains more than our broken pipe.
                self._reader.join(self.limits.login_s)
            self._break(_gone(self.target, error))
        except BaseException as error:
            self._break(InternalError(f"writing to {self.target} failed: {error!r}"))
            raise

    def _close_of(self, core: CursorCore) -> Message | None:
        with self._changed:
            self._drop_routes(core)
            return core.close()

    def _read(self) -> None:
        try:
            while True:
                frame = self._connection.receive(None)
                if frame is None:
                    raise _gone(self.target, "it closed the connection")
                message = decode(frame)
                with self._changed:
                    self._receive(message)
                    self._changed.notify_all()
        except (OSError, ConnectionLost) as error:
            self._break(_gone(self.target, error))
        except SkerryError as error:
            self._break(error)
        except BaseException as error:
            self._break(InternalError(f"reading from {self.target} failed: {error!r}"))
            raise

    def _receive(self, message: Message) -> None:
        match message:
            case ClientResult() | ClientPage():
                core = self._route(message.request)
                if isinstance(core, CursorCore):
                    del self._routes[message.request]
                    asked = core.requests
                    try:
                        core.receive(message)
                    except PeerError as error:
                        core.fail(error)
                        raise
                    for number in set(asked) - set(core.requests):
                        self._routes.pop(number, None)
            case ClientStatusReply() | ClientMembersReply():
                question = self._route(message.request)
                if isinstance(question, _Question):
                    question.answer = message
            case ClientClosed():
                self._route(message.request)
            case Ping():
                self._send([Pong(0)])
            case Refused(error):
                raise error_of(error)
            case Goodbye():
                raise _gone(self.target, "it said goodbye")
            case _:
                raise PeerError(f"member at {self.target} sent {type(message).__name__} to a client")

    def _route(self, number: int) -> CursorCore | _Question | None:
        """Who asked; None when nobody waits for that answer any more."""
        if not 0 < number < self._numbers.upto:
            raise PeerError(f"member at {self.target} answered request {number}, which was never made")
        return self._routes.get(number)

    def _add_routes(self, core: CursorCore) -> None:
        for number in core.requests:
            self._routes[number] = core

    def _drop_routes(self, core: CursorCore) -> None:
        for number in core.requests:
            self._routes.pop(number, None)

    def _check(self) -> None:
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
            for waiting in self._routes.values():
                if isinstance(waiting, CursorCore):
                    waiting.fail(self._error)
                else:
                    waiting.error = self._error
            self._routes.clear()
            self._changed.notify_all()


def _open_socket(target: Target, timeout_s: float, limits: Limits) -> socket.socket:
    sock = socket.create_connection((target.host, target.port), timeout_s)
    sock.settimeout(limits.wait_s)  # bounds writes; reads wait as long as the query takes
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    # A query may be silent for an hour; a host that lost its power would be silent for ever.
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in KEEPALIVE.items():
        if hasattr(socket, option):  # not every system has all of them
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
    return sock


def _secured(
    sock: socket.socket, context: ssl.SSLContext, target: Target, timeout_s: float, limits: Limits
) -> TlsSocket:
    try:
        secure = TlsSocket(sock, context, target.host, timeout_s)
    except SkerryError as error:
        sock.close()
        what = error.message.removeprefix(f"{target.host}: ")
        hint = "is its authority the one given, and does the member use TLS at all?"
        raise SiteError(f"no TLS with the member at {target} ({what})", suggestion=hint) from None
    except OSError as error:
        sock.close()
        raise _gone(target, error) from error
    secure.settimeout(limits.wait_s)
    return secure


def _gone(target: Target, reason: str | Exception) -> SiteError:
    return SiteError(f"member at {target} is gone ({reason if isinstance(reason, str) else _reason(reason, target)})")


def _reason(error: Exception, target: Target) -> str:
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    return str(error).removeprefix(f"{target}: ") or type(error).__name__

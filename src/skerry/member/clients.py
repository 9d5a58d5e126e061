"""Shell of the native door: clients' connections, their frames and heartbeats, and what happens when one goes away."""

from __future__ import annotations

import asyncio
import itertools
import math
import time

from skerry.access.access import Access
from skerry.member import clock
from skerry.member.native import DOOR, Native, Reply, Request
from skerry.member.service import Service
from skerry.model import trace
from skerry.model.caller import Caller, User
from skerry.model.credentials import decode_credentials
from skerry.model.errors import InternalError, Overloaded, PeerError, UserError
from skerry.model.limits import Limits
from skerry.wire.client_messages import ClientAttach, ClientClose, ClientExecute, ClientFetch, ClientPage, ClientResult
from skerry.wire.frames import Buffer, ConnectionLost, decode, encode_message, size_of
from skerry.wire.messages import Goodbye, Hello, Message, Ping, Pong
from skerry.wire.tcp import Connection
from skerry.wire.tls import user_of
from skerry.wire.values import failure_of


class Clients:
    """All client connections of one member. Each request is a task of its own; answers carry its number."""

    def __init__(self, service: Service, access: Access, member: str, limits: Limits) -> None:
        self._service = service
        self._access = access
        self._native = Native(service, member)
        self._member = member
        self._limits = limits
        self._connections: set[Connection] = set()
        self._sessions = itertools.count(1)

    async def identify(self, connection: Connection, hello: Hello) -> User:
        """Who asks on this connection; AccessDenied when it does not show it."""
        shown = decode_credentials(hello.credentials)
        return await self._access.identify(shown, connection.peer_name, user_of(connection.certificate))

    async def serve(self, connection: Connection, _hello: Hello) -> None:
        """Reading never waits for writing: a request that takes long does not hold up the next."""
        self._connections.add(connection)
        session = f"{DOOR} {next(self._sessions)}"
        user = connection.user
        # Its proof says a time of day; what waits here goes by the loop's clock.
        left_s = user.expires_at - time.time() if math.isfinite(user.expires_at) else math.inf
        caller = Caller(user.name, DOOR, connection.peer_name, session, user.roles, clock.now() + left_s)
        requests: set[asyncio.Task[None]] = set()
        loop = asyncio.get_running_loop()
        heartbeat = asyncio.ensure_future(self._keep_alive(connection))
        is_goodbye = False
        try:
            while (frame := await connection.receive()) is not None:
                message = decode(frame)
                if isinstance(message, Goodbye):
                    is_goodbye = True
                    break
                if isinstance(message, Ping | Pong):
                    # One that reads nothing would have its Pongs pile up here.
                    if isinstance(message, Ping) and connection.unsent_bytes <= self._limits.receive_bytes:
                        connection.send(Pong(0))
                    continue
                if len(requests) >= self._limits.client_requests:
                    raise Overloaded(f"{len(requests)} requests wait on this connection (limits.client_requests)")
                # A close at once: a Goodbye behind it ends what has not begun.
                closed = self._native.close(caller, message) if isinstance(message, ClientClose) else None
                task = loop.create_task(self._answer(connection, caller, message, closed))
                requests.add(task)
                task.add_done_callback(requests.discard)
        except ConnectionLost:
            pass
        finally:
            heartbeat.cancel()
            self._connections.discard(connection)
            self._service.gone(caller, is_goodbye=is_goodbye)
            for task in requests:
                task.cancel()

    async def _keep_alive(self, connection: Connection) -> None:
        """Ping, and drop a client that was silent for some heartbeats: its host may be gone without a word.

        A client that still reads what waits for it lives, though its Pong stands behind all that.
        """
        limits, silent = self._limits, 0
        heard, read, waiting = 0, 0, 0
        while not connection.is_closed:
            before = (heard, read)
            heard = connection.bytes_received
            read = connection.bytes_sent - connection.unsent_bytes if waiting else read
            waiting = connection.unsent_bytes
            silent = 0 if (heard, read) != before else silent + 1
            if silent > limits.heartbeats_missed:
                trace.emit(trace.ClientDropped(connection.peer_name, limits.heartbeats_missed))
                connection.abort()
                return
            connection.send(Ping(0))
            await asyncio.sleep(limits.heartbeat_s)

    async def stop(self) -> None:
        for connection in list(self._connections):
            connection.close()

    async def _answer(
        self, connection: Connection, caller: Caller, message: Message, reply: Reply | None = None
    ) -> None:
        """`reply`: what was answered already, and has to be told."""
        if not isinstance(message, Request):
            connection.refuse(PeerError(f"a client does not send {type(message).__name__}"))
            return
        try:
            if isinstance(message, ClientFetch):
                await self._send_pages(connection, caller, message)
            else:
                await self._reply(connection, message, reply or await self._native.answer(caller, message))
        except (ConnectionLost, OSError):
            pass  # serve() sees the end as well, and cleans up
        except Exception as error:
            # Silence would leave the client waiting for its answer.
            trace.emit(trace.WorkFailed(type(message).__name__), error)
            connection.refuse(InternalError(f"{type(error).__name__}: {error}", member=self._member))

    async def _send_pages(self, connection: Connection, caller: Caller, fetch: ClientFetch) -> None:
        """One page, or a window of them: the client's credit is how many it asks for."""
        self._service.arrived(caller, fetch.query, fetch.page_number)
        most = self._limits.window_pages
        if not 1 <= fetch.pages <= most:  # fewer than it asked for, or none, would leave it waiting
            error = UserError(f"1 to {most} pages may be asked for at once (limits.window_pages)")
            await self._reply(connection, fetch, ClientPage(fetch.request, error=failure_of(error)))
            return
        for number in range(fetch.page_number, fetch.page_number + fetch.pages):
            answer = await self._native.page(caller, fetch, number)
            await self._reply(connection, fetch, answer)
            if answer.page is None or answer.page.is_last:
                break

    async def _reply(self, connection: Connection, message: Request, answer: Reply) -> None:
        connection.send_parts(self._fitting(message, answer))
        await connection.drain()

    def _fitting(self, message: Request, answer: Reply) -> list[Buffer]:
        """The answer as a frame. One row may be larger than any: its client would drop the connection for it."""
        parts = encode_message(answer)
        size, most = size_of(parts), self._limits.frame_bytes
        if size <= most or not isinstance(message, ClientExecute | ClientFetch | ClientAttach):
            return parts
        error = Overloaded(
            f"a page of {size} bytes is over the limit of a frame, {most} bytes (limits.frame_bytes)",
            member=self._member,
            suggestion="are there single values of such a size? ask for less of them",
        )
        self._service.give_up(message.query, error)
        failure = self._native.failure(error)
        is_fetch = isinstance(message, ClientFetch)
        reply = ClientPage(message.request, error=failure) if is_fetch else ClientResult(message.request, error=failure)
        return encode_message(reply)

"""Shell of client connections: frames in and out, heartbeats, and what happens when a client goes away."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from skerry.member.requests import KINDS, Requests
from skerry.model.errors import InternalError, Overloaded, PeerError, UserError
from skerry.wire.client_messages import ClientAttach, ClientClose, ClientExecute, ClientFetch, ClientPage, ClientResult
from skerry.wire.frames import Buffer, ConnectionLost, decode, encode_message, size_of
from skerry.wire.messages import Goodbye, Hello, Message, Ping, Pong
from skerry.wire.tcp import Connection
from skerry.wire.values import failure_of

if TYPE_CHECKING:
    from skerry.member.server import Member

log = logging.getLogger("skerry.client")


class Clients:
    """All client connections of one member. Each request is a task of its own; answers carry its number."""

    def __init__(self, member: Member, requests: Requests) -> None:
        self._member = member
        self._requests = requests
        self._connections: set[Connection] = set()

    async def serve(self, connection: Connection, _hello: Hello) -> None:
        """Reading never waits for writing: a request that takes long does not hold up the next."""
        self._connections.add(connection)
        requests: set[asyncio.Task[None]] = set()
        heartbeat = asyncio.ensure_future(self._keep_alive(connection))
        is_goodbye = False
        try:
            while (frame := await connection.receive()) is not None:
                message = decode(frame)
                if isinstance(message, Goodbye):
                    is_goodbye = True
                    break
                if isinstance(message, Ping | Pong):
                    if isinstance(message, Ping):
                        connection.send(Pong(0))
                    continue
                if len(requests) >= self._member.limits.client_requests:
                    raise Overloaded(f"{len(requests)} requests wait on this connection (limits.client_requests)")
                if isinstance(message, ClientClose):  # at once: a Goodbye behind it ends what has not begun
                    self._requests.close_by_client(message.query)
                task = asyncio.ensure_future(self._answer(connection, message))
                requests.add(task)
                task.add_done_callback(requests.discard)
        except ConnectionLost:
            pass
        finally:
            heartbeat.cancel()
            self._connections.discard(connection)
            self._requests.gone(connection, is_goodbye=is_goodbye)
            for task in requests:
                task.cancel()

    async def _keep_alive(self, connection: Connection) -> None:
        """Ping, and drop a client that was silent for some heartbeats: its host may be gone without a word.

        A client that still reads what waits for it lives, though its Pong stands behind all that.
        """
        limits, silent = self._member.limits, 0
        heard, read, waiting = 0, 0, 0
        while not connection.is_closed:
            before = (heard, read)
            heard = connection.bytes_received
            read = connection.bytes_sent - connection.unsent_bytes if waiting else read
            waiting = connection.unsent_bytes
            silent = 0 if (heard, read) != before else silent + 1
            if silent > limits.heartbeats_missed:
                log.info("%s: dropped: silent for %d heartbeats", connection.peer_name, limits.heartbeats_missed)
                connection.abort()
                return
            connection.send(Ping(0))
            await asyncio.sleep(limits.heartbeat_s)

    async def stop(self) -> None:
        for connection in list(self._connections):
            connection.close()

    async def _answer(self, connection: Connection, message: Message) -> None:
        if type(message) not in KINDS:
            connection.refuse(PeerError(f"a client does not send {type(message).__name__}"))
            return
        try:
            if isinstance(message, ClientFetch):
                await self._send_pages(connection, message)
            else:
                await self._reply(connection, message, await self._requests.answer(connection, message))
        except (ConnectionLost, OSError):
            pass  # serve() sees the end as well, and cleans up
        except Exception as error:
            # Silence would leave the client waiting for its answer.
            log.exception("%s: unexpected error", type(message).__name__)
            connection.refuse(InternalError(f"{type(error).__name__}: {error}", member=self._member.name))

    async def _send_pages(self, connection: Connection, fetch: ClientFetch) -> None:
        """One page, or a window of them: the client's credit is how many it asks for."""
        self._requests.arrived(fetch.query, fetch.page_number)
        most = self._member.limits.window_pages
        if fetch.pages > most:  # fewer than it asked for would leave it waiting
            error = failure_of(UserError(f"at most {most} pages may be asked for at once (limits.window_pages)"))
            await self._reply(connection, fetch, ClientPage(fetch.request, error=error))
            return
        for number in range(fetch.page_number, fetch.page_number + fetch.pages):
            answer = await self._requests.fetch(fetch, number)
            await self._reply(connection, fetch, answer)
            if answer.page is None or answer.page.is_last:
                break

    async def _reply(self, connection: Connection, message: Message, answer: Message) -> None:
        connection.send_parts(self._fitting(message, answer))
        await connection.drain()

    def _fitting(self, message: Message, answer: Message) -> list[Buffer]:
        """The answer as a frame. One row may be larger than any: its client would drop the connection for it."""
        parts = encode_message(answer)
        size, most = size_of(parts), self._member.limits.frame_bytes
        if size <= most or not isinstance(message, ClientExecute | ClientFetch | ClientAttach):
            return parts
        error = Overloaded(
            f"a page of {size} bytes is over the limit of a frame, {most} bytes (limits.frame_bytes)",
            member=self._member.name,
            suggestion="are there single values of such a size? ask for less of them",
        )
        self._requests.close(message.query, error)
        failure = failure_of(error)
        is_fetch = isinstance(message, ClientFetch)
        reply = ClientPage(message.request, error=failure) if is_fetch else ClientResult(message.request, error=failure)
        return encode_message(reply)

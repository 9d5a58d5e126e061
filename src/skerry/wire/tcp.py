"""Connections over asyncio, TCP or Unix (docs/protocol.md, 1 and 2)."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, cast

from skerry.model import trace
from skerry.model.caller import User
from skerry.model.errors import AccessDenied, PeerError, SkerryError, TimedOut
from skerry.model.limits import Limits
from skerry.wire.address import TcpAddress, parse_address
from skerry.wire.frames import Buffer, ConnectionLost, Frame, FrameReader, decode, encode_message
from skerry.wire.messages import MEMBER_KINDS, Challenge, Hello, Message, Proof, Refused, Welcome
from skerry.wire.proof import Secret, answer_to, confirm
from skerry.wire.tls import Tls, check_member, tls_error
from skerry.wire.values import error_of, failure_of

_FRAME_OVERHEAD_BYTES = 256  # what a queued frame costs besides its payload: many empty ones are bounded too
_WRITE_HIGH_BYTES = 2 * 1024 * 1024
_LINGER_S = 1.0  # how long a refused peer may take to read why


class Connection(asyncio.BufferedProtocol):
    """One connection; only used in its loop's thread. Reading stops while `limits.receive_bytes` wait in the queue."""

    def __init__(
        self,
        limits: Limits,
        frame_bytes: int,
        peer_name: str = "",
        on_made: Callable[[Connection], None] | None = None,
        on_lost: Callable[[Connection], None] | None = None,
    ) -> None:
        self.limits = limits
        self.peer_name = peer_name
        self.host = ""  # of the peer, over TCP
        self.version = 0  # chosen at login
        self.certificate: dict[str, Any] | None = None  # of the peer, with TLS
        self.user = User()  # a client's, chosen at login
        self.bytes_sent = 0
        self.bytes_received = 0
        self._loop = asyncio.get_running_loop()
        self._reader = FrameReader(frame_bytes)
        self._transport: asyncio.Transport | None = None
        self._on_made = on_made
        self._on_lost = on_lost
        self._frames: deque[Frame] = deque()
        self._queued_bytes = 0
        self._reading_paused = False
        self._ended: SkerryError | bool = False  # True: a clean end; an error: raised by `receive`
        self._receiver: asyncio.Future[None] | None = None
        self._writable: asyncio.Future[None] | None = None  # set while writing is paused
        self._closing = False
        self._is_refusing = False
        self._closed: asyncio.Future[None] = self._loop.create_future()
        self._killer: asyncio.TimerHandle | None = None

    @property
    def is_closed(self) -> bool:
        """Whether nothing more can be sent."""
        return self._closing or self._closed.done()

    @property
    def queued_bytes(self) -> int:
        """What has arrived and was not received yet."""
        return self._queued_bytes

    @property
    def unsent_bytes(self) -> int:
        """What was sent here and waits for the peer to read."""
        return 0 if self._transport is None or self.is_closed else self._transport.get_write_buffer_size()

    def raise_limit(self, frame_bytes: int) -> None:
        """The peer is logged in: it may send larger frames."""
        self._reader.limit_bytes = frame_bytes

    # --- sending -----------------------------------------------------------------------------
    def send(self, message: Message) -> None:
        """Queue a message; ConnectionLost when the connection is closed. Never blocks: see `drain`."""
        self.send_parts(encode_message(message))

    def send_parts(self, parts: Sequence[Buffer]) -> None:
        """Queue the buffers of a frame; they must not change until they are sent."""
        if self.is_closed or self._transport is None:
            raise ConnectionLost(f"{self.peer_name}: the connection is closed")
        for part in parts:
            if type(part) is bytes:
                self.bytes_sent += len(part)
                self._transport.write(part)
                continue
            view = memoryview(part)
            self.bytes_sent += view.nbytes
            self._transport.write(view)

    async def drain(self) -> None:
        """Wait until the peer has read enough; ConnectionLost when it reads nothing for `limits.wait_s`."""
        if self._writable is not None and not self.is_closed:
            try:
                async with asyncio.timeout(self.limits.wait_s):
                    await asyncio.shield(self._writable)
            except TimeoutError:
                self.abort()
                raise ConnectionLost(f"{self.peer_name}: nothing was read for {self.limits.wait_s:g} s") from None
        if self.is_closed:
            raise ConnectionLost(f"{self.peer_name}: the connection is closed")

    # --- receiving ---------------------------------------------------------------------------
    async def receive(self, timeout_s: float | None = None) -> Frame | None:
        """The next frame; None at a clean end. TimeoutError, ConnectionLost (resumable) or PeerError (garbage)."""
        if not self._frames and not self._ended:
            assert self._receiver is None, "one task receives"
            self._receiver = self._loop.create_future()
            try:
                if timeout_s is None:
                    await self._receiver
                else:
                    async with asyncio.timeout(timeout_s):
                        await self._receiver
            finally:
                self._receiver = None
        if self._frames:
            frame = self._frames.popleft()
            self._queued_bytes -= frame.size_bytes + _FRAME_OVERHEAD_BYTES
            self._regulate()
            return frame
        if isinstance(self._ended, SkerryError):
            raise self._ended
        return None

    def put_back(self, frame: Frame) -> None:
        """It was received, and is somebody else's: the next `receive` gives it again."""
        self._frames.appendleft(frame)
        self._queued_bytes += frame.size_bytes + _FRAME_OVERHEAD_BYTES

    def _regulate(self) -> None:
        """Stop reading above the bound, go on below half of it."""
        if self._transport is None or self._is_refusing or self._ended:
            return
        if not self._reading_paused and self._queued_bytes >= self.limits.receive_bytes:
            self._reading_paused = True
            self._transport.pause_reading()
        elif self._reading_paused and self._queued_bytes * 2 <= self.limits.receive_bytes:
            self._reading_paused = False
            self._transport.resume_reading()

    def _wake(self) -> None:
        if self._receiver is not None and not self._receiver.done():
            self._receiver.set_result(None)

    def _end(self, reason: SkerryError | bool) -> None:
        if not self._ended:
            self._ended = reason
            self._wake()

    # --- ending ------------------------------------------------------------------------------
    def refuse(self, error: BaseException, member: str = "", *, is_told: bool = False) -> None:
        """Say why, then close; the peer has a moment to read it. `is_told`: the log has a line for it."""
        if self.is_closed or self._transport is None:
            return
        # AccessDenied: whoever has refused it told of it, or of the first of many
        if not is_told and not isinstance(error, AccessDenied):
            trace.emit(trace.ConnectionRefused(self.peer_name, trace.cause_of(error)))
        self.send(Refused(failure_of(error, member)))
        self._closing = self._is_refusing = True
        # Closing with unread bytes resets the connection, and the peer would never see the reason:
        # so only this direction ends, and what still comes is thrown away for a while.
        if self._transport.can_write_eof():
            self._transport.write_eof()
        if self._reading_paused:
            self._transport.resume_reading()
        self._end(error if isinstance(error, SkerryError) else True)
        self._kill_after(_LINGER_S)

    def close(self) -> None:
        """Send what is queued, then close; aborts when the peer does not read it."""
        if self._is_refusing or self._transport is None or self._closed.done():
            return
        self._closing = True
        self._end(True)
        self._transport.close()
        self._kill_after(self.limits.login_s)

    def abort(self) -> None:
        """Close at once, without sending what is queued; what has arrived is thrown away."""
        self._closing = True
        self._end(True)
        self._frames.clear()
        self._queued_bytes = 0
        if self._transport is not None:
            self._transport.abort()

    async def wait_closed(self) -> None:
        """Until the connection is gone, at most `limits.login_s` after close()."""
        await asyncio.shield(self._closed)

    def _kill_after(self, seconds: float) -> None:
        if self._killer is None and not self._closed.done():
            self._killer = self._loop.call_later(seconds, self.abort)

    # --- asyncio's side ----------------------------------------------------------------------
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        stream = cast(asyncio.Transport, transport)  # uvloop's transports have no common base with asyncio's
        stream.set_write_buffer_limits(high=_WRITE_HIGH_BYTES)
        self._transport = stream
        self.certificate = transport.get_extra_info("peercert")
        sock = transport.get_extra_info("socket")
        if sock is not None and sock.family in (socket.AF_INET, socket.AF_INET6):
            _keep_alive(sock, self.limits.wait_s)
            # One that was reset already has none; its end is told next.
            name = transport.get_extra_info("peername") or ("somebody who is gone", 0)
            self.host = name[0]
            self.peer_name = self.peer_name or f"{name[0]}:{name[1]}"
        if self._on_made is not None:
            self._on_made(self)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._reader.get_buffer(sizehint)

    def buffer_updated(self, nbytes: int) -> None:
        self.bytes_received += nbytes
        if self._is_refusing:
            return
        self._reader.buffer_updated(nbytes)
        if self._ended:
            return
        error = self._reader.error
        try:
            for frame in self._reader.frames():
                self._frames.append(frame)
                self._queued_bytes += frame.size_bytes + _FRAME_OVERHEAD_BYTES
        except PeerError as broken:
            error = broken
        if error is not None:
            self.refuse(error)
        elif self._frames:
            self._wake()
            self._regulate()

    def eof_received(self) -> bool:
        if self._reader.at_boundary:
            self._end(True)
        else:
            self._end(ConnectionLost(f"{self.peer_name}: the connection ended inside a frame"))
        return False

    def pause_writing(self) -> None:
        if self._writable is None:
            self._writable = self._loop.create_future()

    def resume_writing(self) -> None:
        if self._writable is not None:
            self._writable.set_result(None)
            self._writable = None

    def connection_lost(self, exc: Exception | None) -> None:
        if isinstance(exc, ssl.SSLError):
            self._end(tls_error(exc, self.peer_name))  # e.g. the peer does not like our certificate
        else:
            reason = ConnectionLost(f"{self.peer_name}: the connection was lost: {exc}")
            self._end(reason if exc is not None else True)
        self.resume_writing()
        if self._killer is not None:
            self._killer.cancel()
        if not self._closed.done():
            self._closed.set_result(None)
        if self._on_lost is not None:
            self._on_lost(self)


def _keep_alive(sock: socket.socket, wait_s: float) -> None:
    """Notice hosts that vanished without a word, on connections that may be idle for long."""
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        # While bytes are under way keep-alive is silent, and TCP would try for a quarter of an hour.
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(wait_s * 1000))
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (("TCP_KEEPIDLE", 10), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 3)):
        if hasattr(socket, option):  # macOS lacks some
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)


async def connect(address: str, limits: Limits, tls: Tls | None = None, member: str = "") -> Connection:
    """Dial. OSError (ConnectionRefusedError, FileNotFoundError, …) or TimeoutError after `limits.login_s`.

    With `tls`, PeerError unless the other side proves to be `member`.
    """
    target = parse_address(address)
    loop = asyncio.get_running_loop()

    def make() -> Connection:
        return Connection(limits, limits.frame_bytes, target.where)

    async with asyncio.timeout(limits.login_s):
        if isinstance(target, TcpAddress):
            if tls is None:
                _, connection = await loop.create_connection(make, target.host, target.port)
            else:
                try:
                    _, connection = await loop.create_connection(
                        make,
                        target.host,
                        target.port,
                        ssl=tls.client,
                        server_hostname=target.host,
                        ssl_handshake_timeout=limits.login_s,
                        ssl_shutdown_timeout=limits.login_s,
                    )
                except ssl.SSLError as error:
                    raise tls_error(error, target.where) from None
        else:
            _, connection = await loop.create_unix_connection(make, target.path)
    if tls is not None:
        try:
            check_member(connection.certificate, member, target.where)
        except PeerError:
            connection.abort()
            raise
    return connection


async def login(connection: Connection, hello: Hello, secret: Secret | None = None, peer: str = "") -> Welcome:
    """Say Hello and wait for the answer; raises the error that the peer refused with.

    A member names the `peer` that it means: both prove themselves, by `secret` or, without one, by TLS (`connect`).
    """
    is_member = hello.kind in MEMBER_KINDS
    if is_member and secret is None and not connection.certificate:
        raise PeerError(
            f"{hello.member} cannot prove to {peer} that it is a member: it has neither TLS nor a secret",
            suggestion="give all members of the cluster the same file (secret: in skerry.yaml)",
        )
    connection.send(hello)
    answer = await _answer(connection)
    if isinstance(answer, Challenge) and is_member:
        return await _prove(connection, hello, answer, secret, peer)
    if is_member and secret is not None and isinstance(answer, Welcome):
        raise PeerError(f"{connection.peer_name}: whoever answers as {peer} does not ask for a proof, and gives none")
    return _welcomed(connection, hello, answer)


async def _prove(
    connection: Connection, hello: Hello, challenge: Challenge, secret: Secret | None, peer: str
) -> Welcome:
    nonce = secret.new_nonce() if secret is not None else b""
    proof = answer_to(challenge, hello, peer, secret, nonce)
    assert secret is not None
    connection.send(proof)
    shown = await _answer(connection)
    if not isinstance(shown, Proof):
        raise PeerError(f"{connection.peer_name}: {type(shown).__name__} is no answer to Proof")
    confirm(shown, proof, hello, challenge, secret)
    welcome = _welcomed(connection, hello, await _answer(connection))
    if (welcome.member, welcome.epoch) != (challenge.member, challenge.epoch):
        raise PeerError(f"{connection.peer_name}: it proved to be {peer}, and says that it is another")
    return welcome


def _welcomed(connection: Connection, hello: Hello, answer: Message) -> Welcome:
    if not isinstance(answer, Welcome) or answer.version not in hello.versions:
        raise PeerError(f"{connection.peer_name}: {type(answer).__name__} is no answer to Hello")
    connection.version = answer.version
    return answer


async def _answer(connection: Connection) -> Message:
    """What comes next; raises the error that the peer refused with."""
    try:
        frame = await connection.receive(connection.limits.login_s)
    except TimeoutError:
        raise ConnectionLost(f"{connection.peer_name}: no answer to Hello") from None
    match decode(frame) if frame is not None else None:
        case Refused(failure):
            error = error_of(failure)
            if isinstance(error, TimedOut):
                raise ConnectionLost(error.message)  # the Hello came too late: the link was slow, try again
            raise error
        case None:
            raise ConnectionLost(f"{connection.peer_name}: the connection ended before the answer to Hello")
        case answer:
            return answer


async def receive_message(connection: Connection, timeout_s: float) -> Message:
    """The next frame as a message, or ConnectionLost: for steps where one must come."""
    try:
        frame = await connection.receive(timeout_s)
    except TimeoutError:
        raise ConnectionLost(f"{connection.peer_name}: nothing came for {timeout_s:g} s") from None
    if frame is None:
        raise ConnectionLost(f"{connection.peer_name}: the connection ended too early")
    return decode(frame)

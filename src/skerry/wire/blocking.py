"""Connections over blocking sockets, for clients and for Spark's tasks (docs/protocol.md, 1, 5 and 6)."""

from __future__ import annotations

import contextlib
import hmac
import os
import select
import socket
import threading
import time
from collections import deque
from collections.abc import Sequence

from skerry.model.errors import PeerError
from skerry.model.limits import Limits
from skerry.wire.address import TcpAddress, parse_address
from skerry.wire.frames import Buffer, ConnectionLost, Frame, FrameReader, decode, encode_message
from skerry.wire.messages import Hello, Message, Refused, Welcome
from skerry.wire.tls import TlsSocket, task_context
from skerry.wire.values import error_of

_DEFAULTS = Limits()
_BUFFERS_AT_ONCE = 64  # far below any system's bound on the buffers of one write


class BlockingConnection:
    """One thread sends and one receives (they may be the same); `close` may be called by any.

    `sends_now`: who sends may use `send_now`. The line then ends with `close` alone, not with that of its socket.
    """

    def __init__(
        self, sock: socket.socket | TlsSocket, peer_name: str, limits: Limits, *, sends_now: bool = False
    ) -> None:
        self.peer_name = peer_name
        self.bytes_sent = 0
        self.bytes_received = 0
        self._socket = sock
        self._limits = limits
        self._reader = FrameReader(limits.frame_bytes)
        self._frames: deque[Frame] = deque()
        self._send_lock = threading.Lock()  # a frame's buffers stay together
        # The same line, which never waits: each wait lets go of the interpreter, and takes it again among all threads.
        self._quick: socket.socket | None = None
        if sends_now and not isinstance(sock, TlsSocket):
            self._quick = socket.socket(fileno=os.dup(sock.fileno()))
        self._last = memoryview(b"")  # what `send_now` has sent, and how much of it; nothing if that is empty
        self._sent: deque[int] = deque()

    @classmethod
    def connect(
        cls, address: str, timeout_s: float, limits: Limits = _DEFAULTS, fingerprint: str = ""
    ) -> BlockingConnection:
        """Raises OSError (TimeoutError among them); `timeout_s` also bounds each later write.

        With `fingerprint` over TLS; PeerError unless the other side shows the certificate that has it.
        """
        target = parse_address(address)
        if isinstance(target, TcpAddress):
            sock = socket.create_connection((target.host, target.port), timeout_s)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        else:
            sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            try:
                sock.settimeout(timeout_s)
                # A batch at once, as far as the system allows: each part of one would wake the reader.
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, limits.batch_bytes)
                sock.connect(target.path)
            except BaseException:
                sock.close()
                raise
        if not fingerprint or not isinstance(target, TcpAddress):
            return cls(sock, target.where, limits)
        return cls(_pinned(sock, target, fingerprint, timeout_s, limits), target.where, limits)

    def login(self, hello: Hello, timeout_s: float) -> Welcome:
        """Say Hello and wait for the answer; raises the error that the member refused with."""
        self.send(hello)
        frame = self.receive(timeout_s)
        match decode(frame) if frame is not None else None:
            case Welcome() as welcome if welcome.version in hello.versions:
                return welcome
            case Refused(failure):
                raise error_of(failure)
            case None:
                raise ConnectionLost(f"{self.peer_name}: the connection ended before the answer to Hello")
            case other:
                raise PeerError(f"{self.peer_name}: {type(other).__name__} is no answer to Hello")

    def send(self, message: Message) -> None:
        """Blocks until the system has taken the message; ConnectionLost, or TimeoutError when the peer reads none."""
        self.send_parts(encode_message(message))

    def send_parts(self, parts: Sequence[Buffer]) -> None:
        """Write the buffers of frames, e.g. of `encode_batch_frame`."""
        with self._send_lock:
            rest = [self._rest, *(memoryview(part).cast("B") for part in parts)]
            self._sent.clear()
            try:
                while rest:
                    self._advance(rest, self._socket.sendmsg(rest[:_BUFFERS_AT_ONCE]))
            except TimeoutError:
                raise
            except OSError as error:
                raise self._lost(error) from None

    def send_now(self, message: Message) -> bool:
        """Without waiting for the peer. False if the system takes nothing, or the message is large: then nothing was
        sent. What it does not take goes before whatever is sent next; `has_rest` says so. A signal does no harm."""
        parts = encode_message(message)
        if self._quick is None or len(parts) > 1:
            return False
        with self._send_lock:
            if self.has_rest:
                return False
            # A signal's handler may raise between any two of these, and leaves nothing that is wrong: how much the
            # system took is known as soon as it has.
            self._sent.clear()
            self._last = memoryview(parts[0]).cast("B")
            try:
                self._sent.extend(map(self._quick.send, parts, (socket.MSG_DONTWAIT,)))
            except OSError:  # no room now; or it is lost, as whoever receives will say
                return False
            self.bytes_sent += self._sent[0]
            return True

    @property
    def has_rest(self) -> bool:
        return bool(self._rest)

    @property
    def _rest(self) -> memoryview:
        """What the system has not taken of the frame that `send_now` sent last."""
        return self._last[self._sent[0] :] if self._sent else self._last[:0]

    def _advance(self, rest: list[memoryview], sent: int) -> None:
        self.bytes_sent += sent
        while rest and sent >= rest[0].nbytes:
            sent -= rest.pop(0).nbytes
        if sent:
            rest[0] = rest[0][sent:]

    def receive(self, timeout_s: float | None = None) -> Frame | None:
        """The next frame, None at a clean end; TimeoutError (it may be called again), ConnectionLost, PeerError."""
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while not self._frames:
            self._frames.extend(self._reader.frames())  # raises when the stream is broken
            if self._frames:
                break
            count = self._receive_some(deadline)
            if count == 0:
                if not self._reader.at_boundary:
                    raise ConnectionLost(f"{self.peer_name}: the connection ended inside a frame")
                return None
            self.bytes_received += count
            self._reader.buffer_updated(count)
        return self._frames.popleft()

    def _receive_some(self, deadline: float | None) -> int:
        try:
            if isinstance(self._socket, TlsSocket):
                return self._socket.recv_into(self._reader.get_buffer(), deadline)
            # Not settimeout: it would bound the writes of another thread as well.
            if deadline is None:
                _wait_readable(self._socket, None)
            elif not _wait_readable(self._socket, max(0.0, deadline - time.monotonic())):
                raise TimeoutError(f"{self.peer_name}: nothing came in time")
            return (self._quick or self._socket).recv_into(self._reader.get_buffer())
        except BlockingIOError:
            return self._receive_some(deadline)  # there was nothing after all
        except TimeoutError:
            raise
        except (OSError, ValueError) as error:
            raise self._lost(error) from None

    def _lost(self, error: Exception) -> ConnectionLost:
        return ConnectionLost(f"{self.peer_name}: the connection was lost: {error}")

    def close(self) -> None:
        """From any thread; a blocked `receive` of another ends."""
        with contextlib.suppress(OSError):  # not connected any more
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        if self._quick is not None:
            self._quick.close()

    def __enter__(self) -> BlockingConnection:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _pinned(sock: socket.socket, target: TcpAddress, fingerprint: str, timeout_s: float, limits: Limits) -> TlsSocket:
    secured = None
    try:
        secured = TlsSocket(sock, task_context(), target.host, limits.login_s)
        if not hmac.compare_digest(secured.fingerprint, fingerprint):
            raise PeerError(f"{target.where}: another certificate is shown there than this member's")
    except BaseException:
        (secured or sock).close()
        raise
    secured.settimeout(timeout_s)
    return secured


def _wait_readable(sock: socket.socket, timeout_s: float | None) -> bool:
    poll = select.poll()  # not select(): descriptors above 1023 are common in a busy client
    poll.register(sock, select.POLLIN)
    return bool(poll.poll(None if timeout_s is None else timeout_s * 1000))

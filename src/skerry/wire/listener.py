"""The listening side: logs connections in and hands them to the handler of their kind (docs/protocol.md, 2)."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import stat
from collections.abc import Awaitable, Callable, Mapping

from skerry.model import trace
from skerry.model.caller import User
from skerry.model.errors import ConfigError, InternalError, PeerError, SkerryError, TimedOut
from skerry.model.limits import ACCEPT_PAUSE_S, LISTEN_BACKLOG, Limits
from skerry.wire.address import Address, TcpAddress, UnixAddress, parse_address
from skerry.wire.admission import Admission
from skerry.wire.frames import ConnectionLost, decode
from skerry.wire.greeting import choose_version
from skerry.wire.messages import MEMBER_KINDS, Challenge, Hello, Message, Proof, Welcome
from skerry.wire.proof import Secret, admit
from skerry.wire.session import Identity
from skerry.wire.tcp import Connection
from skerry.wire.tls import Tls, check_member

# The connection is closed when its handler returns, and refused with the error it raises.
Handler = Callable[[Connection, Hello], Awaitable[None]]
# Who asks, by what the Hello of a client shows; raises what to refuse it with.
Identify = Callable[[Connection, Hello], Awaitable[User]]


class Listener:
    """Accepts connections at one address; `handlers` maps the kind of a Hello to who serves it.

    It answers Hello with Welcome, but for "control", whose Welcome holds the session's numbers: Peers.serve answers.
    A client is welcome once `identify` knows who it is; without it everybody is.
    """

    def __init__(
        self,
        limits: Limits,
        identity: Identity,
        handlers: Mapping[str, Handler],
        tls: Tls | None = None,
        identify: Identify | None = None,
    ) -> None:
        self.address = ""  # with the real port, once started
        self._limits = limits
        self._identity = identity
        self._handlers = dict(handlers)
        self._tls = tls
        self._identify = identify
        self._server: asyncio.Server | None = None
        self._accepting: dict[asyncio.Task[None], socket.socket] = {}  # with TLS, instead of a server
        self._unix_path = ""
        self._admission: Admission[asyncio.Task[None]] = Admission(identity.member, limits)
        self._tasks: dict[asyncio.Task[None], Connection | socket.socket] = {}  # a socket until its task has begun
        self._open: set[Connection] = set()  # a refused one lingers when its task has ended
        self._stopping = False

    @classmethod
    async def start(
        cls,
        address: str,
        limits: Limits,
        identity: Identity,
        handlers: Mapping[str, Handler],
        tls: Tls | None = None,
        identify: Identify | None = None,
    ) -> Listener:
        """Listen at "tcp:host:port" (port 0: any free one) or "unix:path"; ConfigError when that cannot be."""
        listener = cls(limits, identity, handlers, tls, identify)
        target = parse_address(address)
        try:
            await listener._listen(target)
        except OSError as error:
            raise ConfigError(
                f"cannot listen at {target.where}: {error.strerror or error}",
                suggestion="is another member running there?",
            ) from None
        trace.emit(trace.ListeningBegun(identity.member, str(listener.address)))
        return listener

    async def _listen(self, target: Address) -> None:
        loop = asyncio.get_running_loop()
        if isinstance(target, UnixAddress):
            _remove_stale(target)
            server = await loop.create_unix_server(self._make, sock=_bind_private(target.path), backlog=LISTEN_BACKLOG)
            self.address, self._unix_path = str(target), target.path
            self._server = server
        elif self._tls is None:
            server = await loop.create_server(
                self._make, target.host, target.port, reuse_address=True, backlog=LISTEN_BACKLOG
            )
            self.address = str(TcpAddress(target.host, server.sockets[0].getsockname()[1]))
            self._server = server
        else:
            sockets = await _bind(target)
            self.address = str(TcpAddress(target.host, sockets[0].getsockname()[1]))
            self._accepting = {
                loop.create_task(self._accept_secured(sock, self._tls), name=f"accept at {self.address}"): sock
                for sock in sockets
            }

    async def _accept_secured(self, listening: socket.socket, tls: Tls) -> None:
        """A server would hand connections over after the handshake: those that never begin one would be uncounted."""
        loop = asyncio.get_running_loop()
        while True:
            try:
                sock, name = await loop.sock_accept(listening)
            except OSError as error:
                trace.emit(trace.ConnectionBroken(f"{self.address}: {error}"))
                await asyncio.sleep(ACCEPT_PAUSE_S)
                continue
            task = loop.create_task(self._secure(sock, tls), name=f"serve {name[0]}:{name[1]}")
            self._admit(task, sock, name[0])

    async def _secure(self, sock: socket.socket, tls: Tls) -> None:
        loop, timeout_s = asyncio.get_running_loop(), self._limits.login_s
        task = asyncio.current_task()
        assert task is not None
        self._tasks[task] = connection = self._make(self._open.add)
        try:
            await loop.connect_accepted_socket(
                lambda: connection,
                sock,
                ssl=tls.server,
                ssl_handshake_timeout=timeout_s,
                ssl_shutdown_timeout=timeout_s,
            )
        except OSError as error:  # no TLS, no certificate of ours, or silence
            trace.emit(trace.ConnectionBroken(f"{self.address}: TLS: {error}"))
            return
        await self._serve(connection)

    @property
    def connections(self) -> int:
        """How many connections are served or logging in."""
        return len(self._tasks)

    async def drain(self) -> None:
        """Accept nothing more, let the connections come to their ends for `limits.login_s`, then stop."""
        await self._close_door()
        if self._tasks:
            await asyncio.wait(list(self._tasks), timeout=self._limits.login_s)
        await self.stop()

    async def stop(self) -> None:
        """Accept nothing more, cancel every handler and wait for their ends."""
        self._stopping = True
        await self._close_door()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            _, left = await asyncio.wait(tasks, timeout=self._limits.stop_s)
            for task in left:
                trace.emit(trace.HandlerLeft(self._identity.member, task.get_name()))
        lingering = list(self._open)
        for connection in lingering:
            connection.abort()
        await asyncio.gather(*(connection.wait_closed() for connection in lingering))
        if self._unix_path:
            with contextlib.suppress(OSError):
                os.unlink(self._unix_path)

    async def _close_door(self) -> None:
        if self._server is not None:
            self._server.close()
        accepting, self._accepting = self._accepting, {}
        for task in accepting:
            task.cancel()
        if accepting:
            await asyncio.wait(accepting)
        for sock in accepting.values():
            sock.close()

    def _make(self, on_made: Callable[[Connection], None] | None = None) -> Connection:
        bytes_max = self._limits.frame_bytes_before_login
        return Connection(self._limits, bytes_max, on_made=on_made or self._accept, on_lost=self._open.discard)

    def _accept(self, connection: Connection) -> None:
        if not connection.peer_name:
            connection.peer_name = self.address
        self._open.add(connection)
        if self._stopping:
            connection.abort()
            return
        task = asyncio.get_running_loop().create_task(self._serve(connection), name=f"serve {connection.peer_name}")
        self._admit(task, connection, connection.host)

    def _admit(self, task: asyncio.Task[None], line: Connection | socket.socket, host: str) -> None:
        self._tasks[task] = line
        task.add_done_callback(self._forget)
        gone = self._admission.arrived(task, host)
        if gone is not None:
            gone.cancel()

    def _forget(self, task: asyncio.Task[None]) -> None:
        # Here and not in the task: one that is cancelled before its first step never runs.
        self._admission.left(task)
        line = self._tasks.pop(task)
        if isinstance(line, socket.socket):
            line.close()
        elif task.cancelled():
            line.abort()

    async def _serve(self, connection: Connection) -> None:
        try:
            hello = await self._log_in(connection)
            if hello is not None:
                me = self._identity.member
                trace.emit(trace.ConnectionAccepted(me, hello.kind, connection.peer_name, hello.member))
                await self._handlers[hello.kind](connection, hello)
            connection.close()
        except ConnectionLost as error:
            trace.emit(trace.ConnectionBroken(error.message))
            connection.abort()
        except SkerryError as error:
            connection.refuse(error, self._identity.member)
        except Exception as error:
            trace.emit(trace.WorkFailed(f"{connection.peer_name}: the handler"), error)
            connection.refuse(InternalError(f"internal error: {type(error).__name__}"), self._identity.member)

    async def _log_in(self, connection: Connection) -> Hello | None:
        """None when the peer went without a word, or said nothing for too long."""
        hello = await self._read(connection, "Hello")
        if hello is None:
            return None
        if not isinstance(hello, Hello):
            raise PeerError(f"the first frame must be Hello, not {type(hello).__name__}")
        connection.version = choose_version(hello, self._identity)
        if hello.kind not in self._handlers:
            raise PeerError(f"no connections of kind {hello.kind[:100]!r} here")
        is_member = hello.kind in MEMBER_KINDS
        if is_member:
            await self._check_member(connection, hello)
        elif hello.kind == "client" and self._tls is not None:
            self._check_client(self._tls, connection)
        is_client = hello.kind == "client"
        if is_client and self._identify is not None:
            connection.user = await self._identify(connection, hello)
        task = asyncio.current_task()
        assert task is not None
        self._admission.logged_in(task, is_member=is_member)
        connection.raise_limit(self._limits.frame_bytes_from_client if is_client else self._limits.frame_bytes)
        if hello.kind != "control":
            me = self._identity
            connection.send(Welcome(connection.version, me.cluster, me.member, me.epoch, release=me.release))
        return hello

    async def _read(self, connection: Connection, what: str) -> Message | None:
        try:
            frame = await connection.receive(self._limits.login_s)
        except TimeoutError:
            # Not its mistake, perhaps: on a slow link a Hello may be late, and a dialler may try again.
            raise TimedOut(f"{connection.peer_name}: no {what} within {self._limits.login_s:g} s") from None
        return decode(frame) if frame is not None else None

    async def _check_member(self, connection: Connection, hello: Hello) -> None:
        """By its certificate, by the secret, or by both; never by its word."""
        if self._tls is not None:
            check_member(connection.certificate, hello.member, connection.peer_name)
        if self._identity.secret is not None:
            await self._challenge(connection, hello, self._identity.secret)
        elif self._tls is None:
            raise PeerError(
                f"{self._identity.member} takes nobody for a member: it has neither TLS nor a secret",
                suggestion="give all members of the cluster the same file (secret: in skerry.yaml)",
            )

    async def _challenge(self, connection: Connection, hello: Hello, secret: Secret) -> None:
        challenge = Challenge(self._identity.member, self._identity.epoch, secret.new_nonce())
        connection.send(challenge)
        shown = await self._read(connection, "Proof")
        if shown is None:
            raise ConnectionLost(f"{connection.peer_name}: the connection ended before the proof")
        if not isinstance(shown, Proof):
            raise PeerError(f"a Challenge is answered by Proof, not {type(shown).__name__}")
        connection.send(admit(shown, hello, challenge, secret))

    def _check_client(self, tls: Tls, connection: Connection) -> None:
        if tls.client_certificates and not connection.certificate:
            raise PeerError(
                f"{self._identity.member} wants to see a certificate",
                suggestion="connect with a certificate and its key, signed by the cluster's authority",
            )


async def _bind(target: TcpAddress) -> list[socket.socket]:
    """Listening sockets at all that the host's name means."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(target.host or None, target.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    sockets: list[socket.socket] = []
    try:
        for family, _, _, _, address in dict.fromkeys(found):
            sock = socket.create_server(address[:2], family=family, backlog=LISTEN_BACKLOG)
            sock.setblocking(False)
            sockets.append(sock)
    except BaseException:
        for sock in sockets:
            sock.close()
        raise
    return sockets


def _bind_private(path: str) -> socket.socket:
    """A socket that only this user's processes may connect to, from its first moment on: it does not listen yet.

    A umask would be the whole process's: folders that other threads make in that moment could not be entered.
    """
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        sock.bind(path)
        os.chmod(path, 0o600)
    except BaseException:
        sock.close()
        raise
    return sock


def _remove_stale(target: UnixAddress) -> None:
    """Remove the socket of a listener that was killed; one that still answers is left, and listening then fails."""
    try:
        if not stat.S_ISSOCK(os.stat(target.path).st_mode):
            return
    except OSError:
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1.0)
        try:
            probe.connect(target.path)
        except ConnectionRefusedError:
            os.unlink(target.path)
        except OSError:
            pass
        else:
            raise OSError(f"a process listens at {target.path}")

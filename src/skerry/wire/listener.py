"""The listening side: logs connections in and hands them to the handler of their kind (docs/protocol.md, 2)."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import stat
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from skerry.model import trace
from skerry.model.caller import User
from skerry.model.errors import ConfigError, InternalError, Overloaded, PeerError, SkerryError, TimedOut
from skerry.model.limits import Limits
from skerry.wire.address import Address, TcpAddress, UnixAddress, parse_address
from skerry.wire.frames import ConnectionLost, decode
from skerry.wire.greeting import choose_version
from skerry.wire.messages import Hello, Welcome
from skerry.wire.session import Identity
from skerry.wire.tcp import Connection
from skerry.wire.tls import MEMBER_KINDS, Tls, check_member

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
        self._unix_path = ""
        self._tasks: dict[asyncio.Task[None], Connection] = {}
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
        if isinstance(target, TcpAddress):
            secured: dict[str, Any] = {}
            if self._tls is not None:
                timeout_s = self._limits.login_s
                secured = {"ssl_handshake_timeout": timeout_s, "ssl_shutdown_timeout": timeout_s}
                secured["ssl"] = self._tls.server
            server = await loop.create_server(
                self._make, target.host, target.port, reuse_address=True, backlog=512, **secured
            )
            self.address = str(TcpAddress(target.host, server.sockets[0].getsockname()[1]))
        else:
            _remove_stale(target)
            server = await loop.create_unix_server(self._make, sock=_bind_private(target.path), backlog=512)
            self.address, self._unix_path = str(target), target.path
        self._server = server

    @property
    def connections(self) -> int:
        """How many connections are served or logging in."""
        return len(self._tasks)

    async def drain(self) -> None:
        """Accept nothing more, let the connections come to their ends for `limits.login_s`, then stop."""
        if self._server is not None:
            self._server.close()
        if self._tasks:
            await asyncio.wait(list(self._tasks), timeout=self._limits.login_s)
        await self.stop()

    async def stop(self) -> None:
        """Accept nothing more, cancel every handler and wait for their ends."""
        self._stopping = True
        if self._server is not None:
            self._server.close()
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

    def _make(self) -> Connection:
        return Connection(
            self._limits, self._limits.frame_bytes_before_login, on_made=self._accept, on_lost=self._open.discard
        )

    def _accept(self, connection: Connection) -> None:
        if not connection.peer_name:
            connection.peer_name = self.address
        self._open.add(connection)
        if self._stopping:
            connection.abort()
            return
        if len(self._tasks) >= self._limits.connections:
            connection.refuse(
                Overloaded(
                    f"{self._identity.member} has {len(self._tasks)} connections already",
                    suggestion="close some, or raise limits.connections",
                ),
                self._identity.member,
            )
            return
        task = asyncio.get_running_loop().create_task(self._serve(connection), name=f"serve {connection.peer_name}")
        self._tasks[task] = connection
        task.add_done_callback(self._forget)

    def _forget(self, task: asyncio.Task[None]) -> None:
        # Here and not in the task: one that is cancelled before its first step never runs.
        connection = self._tasks.pop(task)
        if task.cancelled():
            connection.abort()

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
        try:
            frame = await connection.receive(self._limits.login_s)
        except TimeoutError:
            # Not its mistake, perhaps: on a slow link a Hello may be late, and a dialler may try again.
            raise TimedOut(f"{connection.peer_name}: no Hello within {self._limits.login_s:g} s") from None
        if frame is None:
            return None
        hello = decode(frame)
        if not isinstance(hello, Hello):
            raise PeerError(f"the first frame must be Hello, not {type(hello).__name__}")
        connection.version = choose_version(hello, self._identity)
        if hello.kind not in self._handlers:
            raise PeerError(f"no connections of kind {hello.kind[:100]!r} here")
        if self._tls is not None:
            self._check_certificate(self._tls, connection, hello)
        is_client = hello.kind == "client"
        if is_client and self._identify is not None:
            connection.user = await self._identify(connection, hello)
        connection.raise_limit(self._limits.frame_bytes_from_client if is_client else self._limits.frame_bytes)
        if hello.kind != "control":
            me = self._identity
            connection.send(Welcome(connection.version, me.cluster, me.member, me.epoch, release=me.release))
        return hello

    def _check_certificate(self, tls: Tls, connection: Connection, hello: Hello) -> None:
        if hello.kind in MEMBER_KINDS:
            check_member(connection.certificate, hello.member, connection.peer_name)
        elif tls.client_certificates and not connection.certificate:
            raise PeerError(
                f"{self._identity.member} wants to see a certificate",
                suggestion="connect with a certificate and its key, signed by the cluster's authority",
            )


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

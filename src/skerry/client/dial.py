"""How a client gets a connection to a member, and the words for what can go wrong with it."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable

from skerry.client.url import SCHEME_TLS, Target
from skerry.model.credentials import encode_credentials
from skerry.model.errors import AccessDenied, SiteError, SkerryError, UserError
from skerry.model.limits import Limits
from skerry.model.version import __version__
from skerry.wire.blocking import BlockingConnection
from skerry.wire.frames import ConnectionLost, encode_message, size_of
from skerry.wire.messages import PROTOCOL_VERSIONS, Hello, Welcome
from skerry.wire.tls import TlsSocket, check_member, client_context, members_in

# Seconds until the first probe, between probes, and probes unanswered until the member counts as gone.
KEEPALIVE = {"TCP_KEEPIDLE": 5, "TCP_KEEPINTVL": 2, "TCP_KEEPCNT": 3}


class NobodyThere(SiteError):
    """The connection was refused: no process listens there any more."""


def dial(
    target: Target, timeout_s: float, limits: Limits, opened: Callable[[BlockingConnection], None] = lambda _: None
) -> tuple[BlockingConnection, Welcome]:
    """Connect and say hello; who is told of the connection by `opened` may close it while the hello is waited for."""
    context = client_context(target.tls) if target.tls is not None else None
    try:
        sock = _open_socket(target, timeout_s, limits)
    except OSError as error:
        kind = NobodyThere if isinstance(error, ConnectionRefusedError) else SiteError
        raise kind(
            f"no member answers at {target} ({reason_of(error, target)}); is it up, and is this its address?"
        ) from error
    secure = _secured(sock, context, target, timeout_s, limits) if context is not None else None
    connection = BlockingConnection(secure or sock, str(target), limits, sends_now=True)
    opened(connection)
    try:
        if target.credentials.is_secret:
            _refuse_to_tell(target, secure, sock)
        hello = _hello(target, limits)
        welcome = connection.login(hello, timeout_s)
        if secure is not None and target.tls is not None and target.tls.authority:
            check_member(secure.certificate, welcome.member, str(target))
        return connection, welcome
    except (OSError, ConnectionLost) as error:
        connection.close()
        lost = gone(target, error)
        if secure is None:
            lost.suggestion = f"if the members use TLS: {SCHEME_TLS}://{target}?authority=…"
        raise lost from error
    except BaseException:
        connection.close()
        raise


def _hello(target: Target, limits: Limits) -> Hello:
    try:
        shown = encode_credentials(target.credentials)
    except UnicodeEncodeError:
        raise UserError("user, password and token are Unicode text") from None
    hello = Hello("client", PROTOCOL_VERSIONS, cluster="", member="", epoch=0, credentials=shown, release=__version__)
    size = size_of(encode_message(hello))
    if size > limits.frame_bytes_before_login:
        what = "token" if target.credentials.token else "user or password"
        raise UserError(
            f"the {what} is too long: a login of {size} bytes, and members take {limits.frame_bytes_before_login}"
        )
    return hello


def _refuse_to_tell(target: Target, secure: TlsSocket | None, sock: socket.socket) -> None:
    """Whoever reads a password or a token on its way, or at its end, could be that user from then on."""
    what = "token" if target.credentials.token else "password"
    if secure is None:
        address = "" if target.insecure else str(sock.getpeername()[0])
        if address and address != "::1" and not address.startswith(("127.", "::ffff:127.")):
            raise AccessDenied(
                f"the {what} would go to {target} without TLS, for everybody on the way to read",
                suggestion=f"write {SCHEME_TLS}://{target}, or insecure=True in a network where nobody else listens",
            )
    # The cluster's authority signs clients too. Without one, the certificate has named the host.
    elif target.tls is not None and target.tls.authority and not members_in(secure.certificate):
        raise AccessDenied(
            f"{target} shows a certificate that is no member's: the {what} was not sent",
            suggestion="a member's certificate has the name URI:skerry:member:NAME (docs/configuration.md)",
        )


def gone(target: Target, reason: str | Exception) -> SiteError:
    return SiteError(f"member at {target} is gone ({reason if isinstance(reason, str) else reason_of(reason, target)})")


def reason_of(error: Exception, target: Target) -> str:
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    return str(error).removeprefix(f"{target}: ") or type(error).__name__


def _open_socket(target: Target, timeout_s: float, limits: Limits) -> socket.socket:
    sock = socket.create_connection((target.host, target.port), timeout_s)
    sock.settimeout(limits.wait_s)  # bounds writes; reads wait as long as the query takes
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    # A query may be silent for an hour; a host that lost its power would be silent for ever.
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in KEEPALIVE.items():
        if hasattr(socket, option):  # not every system has all of them
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        # The system of a member that is only busy takes our pings; that of one without power does not.
        lost_ms = int(limits.heartbeats_missed * limits.heartbeat_s * 1000)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, max(1, lost_ms))
    return sock


def _secured(
    sock: socket.socket, context: ssl.SSLContext, target: Target, timeout_s: float, limits: Limits
) -> TlsSocket:
    try:
        secure = TlsSocket(sock, context, target.host, timeout_s)
    except SkerryError as error:
        sock.close()
        what = error.message.removeprefix(f"{target.host}: ").removeprefix("TLS: ")
        hint = "is its authority the one given, and does the member use TLS at all?"
        raise SiteError(f"no TLS with the member at {target} ({what})", suggestion=hint) from None
    except OSError as error:
        sock.close()
        raise gone(target, error) from error
    secure.settimeout(limits.wait_s)
    return secure

"""TLS on a member's port (docs/protocol.md, 1.1): contexts, names in certificates, and a socket for two threads."""

from __future__ import annotations

import hashlib
import select
import socket
import ssl
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any

from skerry.model.config import TlsFiles
from skerry.model.errors import ConfigError, PeerError
from skerry.wire.frames import ConnectionLost

# A name of this form in a certificate makes a member; no client's certificate may have one.
MARK = "skerry:member:"
_TURNS = 4  # of each side until a handshake is over, and more
_WRITE_BYTES = 256 * 1024  # a piece for each turn with the lock, so that reading is not kept waiting


class Tls:
    """What a member needs to listen and to dial; ConfigError when a file is not what it should be."""

    def __init__(self, files: TlsFiles) -> None:
        self.server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.client = client_context(files)
        # The same member is checked by name, not by host: see check_member.
        self.client.check_hostname = False
        _load(self.server, files)
        # Who has to show a certificate depends on the Hello, and there the reason can be told: see Listener.
        self.server.verify_mode = ssl.CERT_OPTIONAL
        self.client_certificates = files.client_certificates
        self.fingerprint = _fingerprint(files.certificate) if files.certificate else ""
        for context in (self.server, self.client):
            context.minimum_version = ssl.TLSVersion.TLSv1_2

    def check_as(self, member: str) -> None:
        """PeerError if other members would refuse this one, be it that they dial or that it does."""
        to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
        client = self.client.wrap_bio(to_client, to_server)
        server = self.server.wrap_bio(to_server, to_client, server_side=True)
        where = "other members refuse it"
        waiting = [client, server]
        for side in (client, server) * _TURNS:
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
            except ssl.SSLError as error:
                raise PeerError(f"{where}: {tls_reason(error)}") from None
            waiting = [each for each in waiting if each is not side]
        assert not waiting, "a handshake is two turns of each side"
        check_member(client.getpeercert(), member, where)


def client_context(files: TlsFiles) -> ssl.SSLContext:
    """With an authority its certificates are trusted and the member's name counts; else the system's, and the host."""
    context = ssl.create_default_context() if not files.authority else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = not files.authority
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    _load(context, files)
    return context


def task_context() -> ssl.SSLContext:
    """For a task, which knows its member's one certificate by its fingerprint and needs no authority for that."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


def _fingerprint(path: str) -> str:
    """Of the first certificate in the file, which is the one that a listener shows."""
    with open(path) as file:
        text = file.read()
    begin, end = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"
    pem = begin + text.partition(begin)[2].partition(end)[0] + end
    return hashlib.sha256(ssl.PEM_cert_to_DER_cert(pem)).hexdigest()


def _load(context: ssl.SSLContext, files: TlsFiles) -> None:
    what = files.authority
    try:
        if files.authority:
            context.load_verify_locations(files.authority)
        if files.certificate:
            what = files.certificate
            context.load_cert_chain(files.certificate, files.key or None, password=_no_password)
    except ssl.SSLError as error:
        at = f"{what} and {files.key}" if what == files.certificate and files.key else what
        raise ConfigError(f"tls: {at}: not usable as PEM: {tls_reason(error)}") from None
    except OSError as error:
        at = f"{what} or its key" if what == files.certificate else what
        raise ConfigError(f"tls: {at} cannot be read: {(error.strerror or str(error)).lower()}") from None


def _no_password() -> str:
    raise ConfigError("tls: the key is encrypted; a member starts without anyone to type a password")


def names_in(certificate: Mapping[str, Any] | None) -> tuple[str, ...]:
    """The DNS names and the common names of a certificate, as `getpeercert` gives it."""
    if not certificate:
        return ()
    names = [value for kind, value in certificate.get("subjectAltName", ()) if kind == "DNS"]
    names += [value for part in certificate.get("subject", ()) for key, value in part if key == "commonName"]
    return tuple(dict.fromkeys(names))


def subject_of(certificate: Mapping[str, Any] | None) -> str:
    """Who shows a certificate: its common name, else its first DNS name; "" without one."""
    for part in (certificate or {}).get("subject", ()):
        for key, value in part:
            if key == "commonName":
                return str(value)
    return next(iter(names_in(certificate)), "")


def members_in(certificate: Mapping[str, Any] | None) -> tuple[str, ...]:
    """The members whose mark the certificate has. Its common name and its DNS names make no member."""
    uris = [value for kind, value in (certificate or {}).get("subjectAltName", ()) if kind == "URI"]
    return tuple(uri[len(MARK) :] for uri in uris if uri.lower().startswith(MARK))


def check_member(certificate: Mapping[str, Any] | None, member: str, where: str) -> None:
    """PeerError unless the certificate is that member's own."""
    marked = members_in(certificate)
    if member.lower() in (name.lower() for name in marked):
        return
    mark = f"URI:{MARK}{member[:100]}"
    if not certificate:
        how = f"no certificate was shown, and {member[:100]} is a member by its certificate alone"
    elif marked:
        how = f"the certificate is that of member {', '.join(marked)[:200]}, not {member[:100]}"
    else:
        named = ", ".join(names_in(certificate))[:200] or "nobody"
        how = f"the certificate, of {named}, is no member's: it lacks the name {mark}"
    raise PeerError(
        f"{where}: {how}",
        suggestion=f"sign the member's certificate with subjectAltName = {mark} (docs/two-hosts.md, 3)",
    )


def tls_reason(error: ssl.SSLError) -> str:
    """One line without OpenSSL's places."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"certificate verify failed: {error.verify_message}"
    if error.reason == "WRONG_VERSION_NUMBER":
        return "what answers speaks no TLS"
    return (error.reason or str(error)).replace("_", " ").lower()


def tls_error(error: OSError, where: str) -> PeerError:
    """An end inside a handshake may be a lost link; anything else will not get better by trying again."""
    if isinstance(error, ssl.SSLEOFError | ssl.SSLZeroReturnError) or not isinstance(error, ssl.SSLError):
        return ConnectionLost(f"{where}: the connection was lost: {error}")
    return PeerError(f"{where}: TLS: {tls_reason(error)}")


def user_of(certificate: Mapping[str, Any] | None) -> str:
    """The user whom a client's certificate names; "" without one, and for a member's."""
    return "" if members_in(certificate) else subject_of(certificate)


class TlsSocket:
    """A socket for one thread that reads and one that writes.

    OpenSSL allows one call at a time on a connection, so calls never block and waiting is done without the lock.
    """

    def __init__(self, sock: socket.socket, context: ssl.SSLContext, host: str, timeout_s: float) -> None:
        """Shakes hands; raises PeerError, ConnectionLost or TimeoutError."""
        sock.settimeout(timeout_s)
        try:
            self._socket = context.wrap_socket(sock, server_hostname=host)
        except TimeoutError:
            raise
        except OSError as error:
            raise tls_error(error, host) from None
        self._socket.setblocking(False)
        self._timeout_s: float | None = timeout_s  # of a write
        self._lock = threading.Lock()

    @property
    def certificate(self) -> dict[str, Any] | None:
        return self._socket.getpeercert()

    @property
    def fingerprint(self) -> str:
        """Of the certificate that the other side has shown, whoever has signed it."""
        return hashlib.sha256(self._socket.getpeercert(binary_form=True) or b"").hexdigest()

    def settimeout(self, timeout_s: float | None) -> None:
        """Bounds each later write that makes no progress."""
        self._timeout_s = timeout_s

    def sendmsg(self, buffers: Sequence[memoryview]) -> int:
        """Some of the first buffer: as a plain socket may do it too."""
        piece = buffers[0][:_WRITE_BYTES]
        if not piece.nbytes:
            return 0
        deadline = None if self._timeout_s is None else time.monotonic() + self._timeout_s
        while True:
            try:
                with self._lock:
                    return self._socket.send(piece)
            except ssl.SSLWantWriteError:
                event = select.POLLOUT
            except ssl.SSLWantReadError:
                event = select.POLLIN
            self._wait(event, deadline)

    def recv_into(self, buffer: memoryview, deadline: float | None) -> int:
        """0 at the end; TimeoutError at the deadline."""
        while True:
            try:
                with self._lock:
                    return self._socket.recv_into(buffer)
            except ssl.SSLWantReadError:
                event = select.POLLIN
            except ssl.SSLWantWriteError:
                event = select.POLLOUT
            except (ssl.SSLEOFError, ssl.SSLZeroReturnError):
                return 0
            self._wait(event, deadline)

    def _wait(self, event: int, deadline: float | None) -> None:
        poll = select.poll()
        poll.register(self._socket, event)
        left_ms = None if deadline is None else max(0.0, deadline - time.monotonic()) * 1000
        if not poll.poll(left_ms):
            raise TimeoutError("nothing came or went in time")

    def shutdown(self, how: int) -> None:
        self._socket.shutdown(how)

    def close(self) -> None:
        self._socket.close()

"""TLS on a member's port: members prove who they are, everything else works as without it, nobody else gets in."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import ssl
import threading
import uuid
from collections.abc import Callable
from pathlib import Path
from random import Random

import msgspec
import pytest
import uvloop

from skerry.client.connection import MemberLink
from skerry.client.url import parse_url
from skerry.exchange.spool import Budget, Entry, Spool
from skerry.model.config import TlsFiles
from skerry.model.errors import ConfigError, PeerError, SiteError, SkerryError
from skerry.model.ids import ChannelId, QueryId
from skerry.model.limits import KIB, MIB, Limits
from skerry.wire.blocking import BlockingConnection
from skerry.wire.channel import ChannelEnd
from skerry.wire.channels import ChannelIn, ChannelOut, data_handler
from skerry.wire.frames import Buffer, encode_batch_frame
from skerry.wire.greeting import make_hello
from skerry.wire.listener import Listener
from skerry.wire.messages import Batch, Check, Hello, Message
from skerry.wire.peers import Peers
from skerry.wire.session import Identity
from skerry.wire.tcp import Connection, connect, login
from skerry.wire.tls import Tls, TlsSocket, client_context, members_in, names_in, subject_of
from tests.unit.wire import looping
from tests.unit.wire.certificates import authority, files_of, needs_openssl
from tests.unit.wire.looping import GIVE_UP_S, QUICK, SECRET, Cutter, run, until

pytestmark = needs_openssl

# The mark in its certificate is all that makes a member here.
OSLO, BERGEN = (msgspec.structs.replace(each, secret=None) for each in (looping.OSLO, looping.BERGEN))

CHANNEL = ChannelId(QueryId("oslo", "0" * 32), 1, "bergen", "oslo")
LIMITS = msgspec.structs.replace(QUICK, first_credits_bytes=256 * KIB)
LOOPS = pytest.mark.parametrize("loop", [uvloop.new_event_loop, asyncio.new_event_loop], ids=["uvloop", "asyncio"])


async def echo(connection: Connection, hello: Hello) -> None:
    while (frame := await connection.receive()) is not None:
        connection.send_parts(encode_batch_frame(Batch(0, 0, False, 1, 10, 0), bytes(frame.payload)[-10:]))


async def oslo(files: TlsFiles | None = None, limits: Limits = LIMITS, **handlers: Callable[..., object]) -> Listener:
    tls = Tls(files or files_of("oslo"))
    every = {"client": echo, "data": echo, "control": echo, **handlers}
    return await Listener.start("tcp:127.0.0.1:0", limits, OSLO, every, tls)  # type: ignore[arg-type]


@LOOPS
def test_a_channel_over_tls_survives_cuts(tmp_path: Path, loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
    async def main() -> None:
        received: list[bytes] = []
        errors: list[SkerryError] = []
        finished = asyncio.Event()

        def append(header: Batch, body: Buffer) -> None:
            received.append(bytes(body))

        channel = ChannelIn(CHANNEL, LIMITS, append=append, finish=finished.set, fail=errors.append)
        listener = await oslo(data=data_handler(lambda _opening: channel, LIMITS))
        cutter = Cutter()
        address = await cutter.front(lambda: listener.address)
        spool = Spool(Budget(64 * MIB, 0), tmp_path, "out")
        bodies = [Random(number).randbytes(200_000 if number % 3 else 100) for number in range(40)]
        for body in bodies:
            spool.append(Entry(body, 1, len(body)))
        spool.finish()
        cutter.cut_after_bytes = 1_500_000
        out = ChannelOut(
            *(BERGEN, CHANNEL, address, b"", spool, LIMITS, Random(1)), tls=Tls(files_of("bergen")), to="oslo"
        )
        assert await out.run() is ChannelEnd.FINISHED
        await finished.wait()
        assert received == bodies
        assert not errors
        assert cutter.cut_after_bytes is None, "it was cut"
        await cutter.close()
        await listener.stop()
        spool.close()

    run(main(), loop)


def test_control_connections_over_tls() -> None:
    async def main() -> None:
        heard: list[tuple[str, Message]] = []
        lost: list[SiteError] = []

        def peers(identity: Identity, addresses: dict[str, str], files: TlsFiles) -> Peers:
            return Peers(
                identity,
                addresses,
                LIMITS,
                on_message=lambda peer, message: heard.append((peer, message)),
                on_peer_lost=lambda _peer, error: lost.append(error),
                on_peer_up=lambda _peer, _epoch: None,
                random=Random(1),
                tls=Tls(files),
            )

        here = peers(OSLO, {"bergen": "tcp:127.0.0.1:1", "tromso": "tcp:127.0.0.1:1"}, files_of("oslo"))
        listener = await oslo(control=here.serve)
        there = peers(BERGEN, {"oslo": listener.address}, files_of("bergen"))
        there.send("oslo", Check(()))
        await until(lambda: heard == [("bergen", Check(()))])
        # A certificate of this authority, but another's: it may not speak for tromso.
        tromso = peers(Identity("fjords", "tromso", 33), {"oslo": listener.address}, files_of("bergen"))
        tromso.send("oslo", Check(()))
        await until(lambda: lost)
        assert "that of member bergen, not tromso" in lost[0].message
        assert len(heard) == 1
        for each in (tromso, there, here):
            await each.stop()
        await listener.stop()

    run(main())


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        (lambda: files_of("oslo", signed_by="strangers"), "certificate verify failed"),
        (lambda: files_of("tromso"), "that of member tromso, not oslo"),
        (lambda: files_of("oslo", usage="clientAuth"), "certificate verify failed"),
        (lambda: files_of("oslo", names="oslo", mark=""), "lacks the name URI:skerry:member:oslo"),
    ],
    ids=["another authority", "another member", "a client's usage", "a client's certificate"],
)
def test_a_member_that_is_not_the_one_dialled_is_found_out(files: Callable[[], TlsFiles], reason: str) -> None:
    async def main() -> None:
        listener = await oslo(files())
        with pytest.raises(PeerError, match=reason):
            await connect(listener.address, LIMITS, Tls(files_of("bergen")), "oslo")
        await until(lambda: listener.connections == 0)
        await listener.stop()

    run(main())


def test_the_mark_counts_in_any_case() -> None:
    async def main() -> None:
        listener = await oslo(files_of("some host", names="db.example", mark="Oslo"))
        connection = await connect(listener.address, LIMITS, Tls(files_of("bergen")), "oslo")
        assert names_in(connection.certificate) == ("db.example", "some host")
        assert members_in(connection.certificate) == ("Oslo",)
        assert subject_of(connection.certificate) == "some host"
        connection.abort()
        await connection.wait_closed()
        await listener.stop()

    run(main())


@pytest.mark.parametrize("kind", ["data", "control"])
def test_a_client_named_like_a_member_is_none(kind: str) -> None:
    async def main() -> None:
        listener = await oslo()
        # Common name and DNS name are the member's, and a client may have chosen both.
        posing = Tls(files_of("bergen", names="bergen", mark=""))
        connection = await connect(listener.address, LIMITS, posing, "oslo")
        with pytest.raises(PeerError, match="is no member's: it lacks the name URI:skerry:member:bergen") as caught:
            await login(connection, make_hello(BERGEN, kind))
        assert "subjectAltName = URI:skerry:member:bergen" in caught.value.suggestion
        connection.abort()
        connection = await connect(listener.address, LIMITS, posing, "oslo")
        assert (await login(connection, make_hello(BERGEN, "client"))).member == "oslo"
        connection.abort()
        await connection.wait_closed()
        await listener.stop()

    run(main())


def test_members_need_a_certificate_and_clients_only_where_so_configured() -> None:
    async def main() -> None:
        nobody = Tls(TlsFiles(str(authority() / "ca.pem")))
        listener = await oslo()
        for kind in ("data", "control"):
            connection = await connect(listener.address, LIMITS, nobody, "oslo")
            with pytest.raises(PeerError, match="no certificate was shown, and bergen is a member by its"):
                await login(connection, make_hello(BERGEN, kind))
            connection.abort()
        connection = await connect(listener.address, LIMITS, nobody, "oslo")
        assert (await login(connection, make_hello(BERGEN, "client"))).member == "oslo"
        connection.abort()
        await listener.stop()

        strict = await oslo(msgspec.structs.replace(files_of("oslo"), client_certificates=True))
        with pytest.raises(PeerError, match="oslo wants to see a certificate"):
            await login(await connect(strict.address, LIMITS, nobody, "oslo"), make_hello(BERGEN, "client"))
        someone = Tls(files_of("alice", usage="clientAuth", mark=""))
        connection = await connect(strict.address, LIMITS, someone, "oslo")
        assert (await login(connection, make_hello(BERGEN, "client"))).member == "oslo"
        connection.abort()
        await strict.stop()

    run(main())


def test_whoever_speaks_no_tls_is_dropped_and_the_member_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    async def log_in(listener: Listener) -> Connection:
        while True:  # a busy machine may take longer than this listener waits
            with contextlib.suppress(PeerError, OSError):
                connection = await connect(listener.address, LIMITS, Tls(files_of("bergen")), "oslo")
                await login(connection, make_hello(BERGEN, "data"))
                return connection

    async def main() -> None:
        listener = await oslo(limits=msgspec.structs.replace(LIMITS, login_s=0.5))
        plain = await connect(listener.address, LIMITS)
        with pytest.raises(PeerError):  # ConnectionLost is one
            await login(plain, make_hello(BERGEN, "client"))
        silent = await connect(listener.address, LIMITS)  # never begins a handshake
        assert await silent.receive() is None, "dropped after login_s"
        for connection in (plain, silent, await log_in(listener)):
            connection.abort()
            await connection.wait_closed()
        await listener.stop()

    with caplog.at_level(logging.ERROR):
        run(main())
    assert not caplog.records


def test_tls_at_a_plain_port_is_told_at_once() -> None:
    async def main() -> None:
        listener = await Listener.start("tcp:127.0.0.1:0", LIMITS, looping.OSLO, {"data": echo})
        with pytest.raises(PeerError, match="what answers speaks no TLS"):
            await connect(listener.address, LIMITS, Tls(files_of("bergen")), "oslo")
        plain = await connect(listener.address, LIMITS)
        await login(plain, make_hello(BERGEN, "data"), SECRET, "oslo")
        plain.abort()
        await plain.wait_closed()
        await listener.stop()

    run(main())


def blocking(work: Callable[[int], None], files: TlsFiles | None = None, *, is_tls: bool = True) -> None:
    """`work(port)` in a thread, against a listener."""

    async def main() -> None:
        if is_tls:
            listener = await oslo(files)
        else:
            listener = await Listener.start("tcp:127.0.0.1:0", LIMITS, OSLO, {"client": echo})
        try:
            await asyncio.to_thread(work, int(listener.address.rpartition(":")[2]))
        finally:
            await listener.stop()

    run(main())


def test_a_blocking_connection_reads_and_writes_at_once_from_two_threads() -> None:
    def work(port: int) -> None:
        sock = socket.create_connection(("127.0.0.1", port))
        context = client_context(TlsFiles(str(authority() / "ca.pem")))
        with BlockingConnection(TlsSocket(sock, context, "127.0.0.1", GIVE_UP_S), "oslo", LIMITS) as connection:
            connection.login(make_hello(BERGEN, "client"), GIVE_UP_S)
            body = uuid.uuid4().bytes * 20_000

            def write() -> None:
                for number in range(60):
                    connection.send_parts(encode_batch_frame(Batch(number, 0, False, 1, len(body), 0), body))

            writer = threading.Thread(target=write)
            writer.start()
            echoed = [connection.receive(GIVE_UP_S) for _ in range(60)]
            writer.join()
            assert all(frame is not None and bytes(frame.payload)[-10:] == body[-10:] for frame in echoed)
            with pytest.raises(TimeoutError):
                connection.receive(0.01)

    blocking(work)


def test_a_client_connects_by_its_url() -> None:
    def work(port: int) -> None:
        link = MemberLink.open(parse_url(f"skerry+tls://127.0.0.1:{port}?authority={authority() / 'ca.pem'}"))
        assert link.member == "oslo"
        link.close()
        with pytest.raises(SiteError, match=r"no TLS with the member at \S+ \(certificate verify failed"):
            MemberLink.open(parse_url(f"skerry+tls://127.0.0.1:{port}?authority={authority('strangers') / 'ca.pem'}"))
        with pytest.raises(SiteError) as caught:
            MemberLink.open(parse_url(f"skerry://127.0.0.1:{port}"))
        assert "skerry+tls://" in caught.value.suggestion

    blocking(work)


def test_a_client_is_told_when_another_than_the_member_answers() -> None:
    def work(port: int) -> None:
        with pytest.raises(PeerError, match="that of member tromso, not oslo"):
            MemberLink.open(parse_url(f"skerry+tls://127.0.0.1:{port}?authority={authority() / 'ca.pem'}"))

    blocking(work, files_of("tromso"))


def test_a_client_with_tls_at_a_plain_port_is_told() -> None:
    def work(port: int) -> None:
        with pytest.raises(SiteError, match="what answers speaks no TLS"):
            MemberLink.open(parse_url(f"skerry+tls://127.0.0.1:{port}?authority={authority() / 'ca.pem'}"))

    blocking(work, is_tls=False)


def test_files_that_are_no_certificates_are_a_clear_error(tmp_path: Path) -> None:
    good = files_of("oslo")
    with pytest.raises(ConfigError, match=r"tls: /nowhere/ca\.pem cannot be read: no such file"):
        Tls(msgspec.structs.replace(good, authority="/nowhere/ca.pem"))
    with pytest.raises(ConfigError, match="not usable as PEM"):
        Tls(msgspec.structs.replace(good, key=files_of("bergen").key))
    (tmp_path / "empty.pem").write_text("")
    with pytest.raises(ConfigError, match="not usable as PEM"):
        Tls(msgspec.structs.replace(good, certificate=str(tmp_path / "empty.pem")))


def test_old_versions_of_tls_are_not_spoken() -> None:
    tls = Tls(files_of("oslo"))
    assert {tls.server.minimum_version, tls.client.minimum_version} == {ssl.TLSVersion.TLSv1_2}


def test_who_shows_a_certificate() -> None:
    assert subject_of(None) == ""
    assert subject_of({"subjectAltName": (("DNS", "db.example"),)}) == "db.example"
    assert subject_of({"subject": ((("organizationName", "x"),), (("commonName", "ann"),))}) == "ann"

"""Strangers at a member's port, over real sockets: they become no members, and keep nobody out."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable

import msgspec
import pytest
import uvloop

from skerry.model.errors import PeerError
from skerry.model.limits import Limits
from skerry.wire.address import TcpAddress, parse_address
from skerry.wire.frames import encode_message
from skerry.wire.greeting import make_hello
from skerry.wire.listener import Listener
from skerry.wire.messages import Challenge, Execute, Hello, Message, Proof, Refused, Welcome
from skerry.wire.peers import Peers
from skerry.wire.proof import Secret, answer_to
from skerry.wire.session import Identity
from skerry.wire.tcp import Connection, connect, login, receive_message
from skerry.wire.tls import Tls
from tests.unit.wire.certificates import files_of, needs_openssl
from tests.unit.wire.control_members import two
from tests.unit.wire.looping import BERGEN, OSLO, QUICK, SECRET, run, until

KINDS = pytest.mark.parametrize("kind", ["control", "data"])
NOBODY = msgspec.structs.replace(BERGEN, secret=None)
GUESSED = Secret([b"a secret that somebody has guessed"], SECRET.new_nonce)


class Door:
    """A listener of oslo that counts whom it lets in."""

    def __init__(self, tls: Tls | None = None, limits: Limits = QUICK, identity: Identity = OSLO) -> None:
        self.entered: list[Hello] = []
        self._made = (limits, identity, dict.fromkeys(("control", "data", "client"), self._serve), tls)

    async def open(self) -> Listener:
        self.listener = await Listener.start("tcp:127.0.0.1:0", *self._made)
        return self.listener

    async def _serve(self, connection: Connection, hello: Hello) -> None:
        self.entered.append(hello)
        if hello.kind == "control":
            connection.send(Welcome(connection.version, OSLO.cluster, OSLO.member, OSLO.epoch))
        await connection.receive()


async def say(connection: Connection, message: Message) -> Message:
    connection.send(message)
    return await receive_message(connection, QUICK.login_s)


@KINDS
def test_a_forged_hello_opens_nothing(kind: str) -> None:
    async def main() -> None:
        door = Door()
        listener = await door.open()
        for proof in (Proof(b"\0" * 32, b"\0" * 32), Proof(b"", b""), make_hello(BERGEN, kind), Welcome(1, "", "", 1)):
            stranger = await connect(listener.address, QUICK)
            assert isinstance(await say(stranger, make_hello(NOBODY, kind)), Challenge)
            assert isinstance(await say(stranger, proof), Refused)
        # Nor does it help to say more at once than was asked for.
        stranger = await connect(listener.address, QUICK)
        stranger.send(make_hello(NOBODY, kind))
        stranger.send(Execute(*(None,) * 11))  # type: ignore[arg-type]
        assert isinstance(await receive_message(stranger, QUICK.login_s), Challenge)
        assert isinstance(await receive_message(stranger, QUICK.login_s), Refused)
        with pytest.raises(PeerError, match="'bergen' did not prove to oslo that it is a member"):
            await login(await connect(listener.address, QUICK), make_hello(BERGEN, kind), GUESSED, "oslo")
        assert door.entered == []
        await listener.stop()

    run(main())


@KINDS
def test_a_proof_that_was_seen_is_of_no_use_again(kind: str) -> None:
    other = "data" if kind == "control" else "control"

    async def main() -> None:
        door = Door()
        listener = await door.open()
        bergen = await connect(listener.address, QUICK)
        hello = make_hello(BERGEN, kind)
        challenge = await say(bergen, hello)
        assert isinstance(challenge, Challenge)
        seen = answer_to(challenge, hello, "oslo", SECRET, SECRET.new_nonce())
        shown = await say(bergen, seen)
        assert isinstance(shown, Proof)
        assert isinstance(await receive_message(bergen, QUICK.login_s), Welcome)
        bergen.abort()
        # On a new connection of the same kind and of the other one, the dialler's and the listener's own.
        for again in (kind, other):
            for proof in (seen, shown):
                stranger = await connect(listener.address, QUICK)
                assert isinstance(await say(stranger, make_hello(BERGEN, again)), Challenge)
                refused = await say(stranger, proof)
                assert isinstance(refused, Refused)
                assert "did not prove" in refused.error.message
        assert [each.kind for each in door.entered] == [kind]
        await listener.stop()

    run(main())


def test_a_proof_for_one_kind_opens_no_other() -> None:
    async def main() -> None:
        door = Door()
        listener = await door.open()
        stranger = await connect(listener.address, QUICK)
        challenge = await say(stranger, make_hello(BERGEN, "control"))
        assert isinstance(challenge, Challenge)
        # Bergen made it for a data connection: the stranger passed the challenge on.
        proof = answer_to(challenge, make_hello(BERGEN, "data"), "oslo", SECRET, SECRET.new_nonce())
        assert isinstance(await say(stranger, proof), Refused)
        assert door.entered == []
        await listener.stop()

    run(main())


@KINDS
def test_a_listener_s_own_challenge_and_proof_sent_back_to_it_open_nothing(kind: str) -> None:
    """Oslo dials bergen's address, where a stranger sits who answers with what oslo's own port says."""

    async def main() -> None:
        door = Door()
        listener = await door.open()
        reflected: list[bool] = []

        async def reflect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            target = parse_address(listener.address)
            assert isinstance(target, TcpAddress)
            far_reader, far_writer = await asyncio.open_connection(target.host, target.port)
            with contextlib.suppress(OSError):
                await asyncio.wait_for(asyncio.gather(_pipe(reader, far_writer), _pipe(far_reader, writer)), 5)
            for each in (writer, far_writer):
                each.transport.abort()
                with contextlib.suppress(OSError):
                    await each.wait_closed()
            reflected.append(True)

        server = await asyncio.start_server(reflect, "127.0.0.1", 0)
        address = f"tcp:127.0.0.1:{server.sockets[0].getsockname()[1]}"
        dialled = await connect(address, QUICK)
        with pytest.raises(PeerError, match="bergen's address answers as 'oslo'"):
            await login(dialled, make_hello(OSLO, kind), SECRET, "bergen")
        dialled.abort()
        await until(lambda: reflected)
        assert door.entered == []
        server.close()
        await listener.stop()

    run(main())


async def _pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(4096):
            writer.write(data)
    writer.transport.abort()


@KINDS
def test_whoever_answers_at_a_member_s_address_must_prove_itself_too(kind: str) -> None:
    async def main() -> None:
        stranger = Door(identity=msgspec.structs.replace(OSLO, secret=GUESSED))
        listener = await stranger.open()
        with pytest.raises(PeerError, match="did not prove"):
            await login(await connect(listener.address, QUICK), make_hello(BERGEN, kind), SECRET, "oslo")
        await listener.stop()
        for answer in (Welcome(3, "fjords", "oslo", 11), Welcome(2, "fjords", "oslo", 11)):
            server = await asyncio.start_server(_say_at_once(answer), "127.0.0.1", 0)
            dialled = await connect(f"tcp:127.0.0.1:{server.sockets[0].getsockname()[1]}", QUICK)
            with pytest.raises(PeerError, match="does not ask for a proof, and gives none"):
                await login(dialled, make_hello(BERGEN, kind), SECRET, "oslo")
            dialled.abort()
            server.close()

    run(main())


def _say_at_once(answer: Message) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], object]:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.writelines(map(bytes, encode_message(answer)))
        await reader.read()
        writer.close()

    return serve


@KINDS
def test_without_tls_and_secret_nobody_is_a_member(kind: str) -> None:
    async def main() -> None:
        door = Door(identity=msgspec.structs.replace(OSLO, secret=None))
        listener = await door.open()
        stranger = await connect(listener.address, QUICK)
        refused = await say(stranger, make_hello(NOBODY, kind))
        assert isinstance(refused, Refused)
        assert "takes nobody for a member" in refused.error.message
        with pytest.raises(PeerError, match="it has neither TLS nor a secret"):
            await login(await connect(listener.address, QUICK), make_hello(NOBODY, kind), None, "oslo")
        assert door.entered == []
        await listener.stop()

    run(main())


def test_two_members_with_different_secrets_say_so() -> None:
    async def main() -> None:
        oslo, bergen = await two()
        assert oslo.listener is not None
        lost: list[str] = []
        other = Peers(
            msgspec.structs.replace(BERGEN, secret=GUESSED),
            {"oslo": oslo.listener.address},
            QUICK,
            on_message=lambda _peer, _message: None,
            on_peer_lost=lambda _peer, error: lost.append(error.message),
            on_peer_up=lambda _peer, _epoch: None,
            random=bergen.peers.random,  # type: ignore[union-attr]
        )
        other.reach("oslo")
        await until(lambda: lost)
        assert lost[0].startswith("site oslo cannot be used: 'bergen' did not prove to oslo that it is a member")
        await other.stop()
        await oslo.stop()
        await bergen.stop()

    run(main())


@needs_openssl
@pytest.mark.parametrize("is_tls", [False, True], ids=["plain", "tls"])
@pytest.mark.parametrize("loop", [uvloop.new_event_loop, asyncio.new_event_loop], ids=["uvloop", "asyncio"])
def test_silent_connections_keep_nobody_out(is_tls: bool, loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
    limits = msgspec.structs.replace(QUICK, connections=60, connections_before_login=50)

    async def main() -> None:
        door = Door(Tls(files_of("oslo")) if is_tls else None, limits)
        listener = await door.open()
        tls = Tls(files_of("bergen")) if is_tls else None
        target = parse_address(listener.address)
        assert isinstance(target, TcpAddress)
        silent = []
        for _ in range(200):
            sock = socket.socket()
            sock.setblocking(False)
            await asyncio.get_running_loop().sock_connect(sock, (target.host, target.port))
            silent.append(sock)
        client = await connect(listener.address, QUICK, tls, "oslo")
        await login(client, make_hello(BERGEN, "client"))
        for kind in ("control", "data"):
            member = await connect(listener.address, QUICK, tls, "oslo")
            await login(member, make_hello(BERGEN, kind), SECRET, "oslo")
            silent.append(member)  # type: ignore[arg-type]
        await until(lambda: len(door.entered) == 3)
        assert listener.connections <= 50 + 3
        for each in (*silent, client):
            each.close()
        await listener.stop()
        assert listener.connections == 0

    run(main(), loop)

"""What strangers may send to a member's port: it answers or hangs up, and goes on."""

from __future__ import annotations

import contextlib
import socket
import struct
from collections.abc import Iterator

import pytest

from skerry.model.errors import PeerError, VersionError
from skerry.model.limits import Limits
from skerry.wire.blocking import BlockingConnection
from skerry.wire.frames import ConnectionLost, decode, encode_message
from skerry.wire.messages import (
    CONTROL_VERSIONS,
    DATA_VERSIONS,
    PROTOCOL_VERSIONS,
    Challenge,
    Hello,
    Message,
    Ping,
    Proof,
    Refused,
)
from tests.e2e.processes import Sites
from tests.integration.member.member_sites import FEW

pytestmark = [pytest.mark.spark, pytest.mark.e2e, pytest.mark.timeout(1200)]

LIMITS = Limits()
HEADER = ">IBI"
PATIENCE_S = 30.0


@pytest.fixture(autouse=True)
def goes_on(sites: Sites) -> Iterator[None]:
    """Whatever was sent, the member answers queries afterwards."""
    yield
    assert sites.ask("oslo", "SELECT count(*) FROM oslo.few") == [(FEW,)]


@contextlib.contextmanager
def dialled(sites: Sites) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", sites.ports["oslo"]), PATIENCE_S) as connection:
        yield connection


def answers(connection: socket.socket) -> list[Message]:
    """What the member says until it hangs up, but for heartbeats."""
    stranger = BlockingConnection(connection, "oslo", LIMITS)
    found = []
    with contextlib.suppress(ConnectionLost):
        while (frame := stranger.receive(PATIENCE_S)) is not None:
            found.append(decode(frame))
    return [message for message in found if not isinstance(message, Ping)]


def hello(**fields: object) -> bytes:
    given = {"kind": "client", "versions": PROTOCOL_VERSIONS, "cluster": "", "member": "", "epoch": 0, **fields}
    return b"".join(bytes(part) for part in encode_message(Hello(**given)))  # type: ignore[arg-type]


def as_bergen(kind: str) -> bytes:
    versions = CONTROL_VERSIONS if kind == "control" else DATA_VERSIONS
    return hello(kind=kind, versions=versions, cluster="faults", member="bergen", epoch=1)


def frame(message: Message) -> bytes:
    return b"".join(bytes(part) for part in encode_message(message))


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(b"GET / HTTP/1.1\r\nHost: oslo\r\n\r\n", id="http"),
        pytest.param(bytes(range(256)) * 64, id="garbage"),
        pytest.param(b"\0" * 9, id="zeros"),
        pytest.param(struct.pack(HEADER, 0xFFFFFFFF, 1, 0), id="a frame of 4 GiB"),
        pytest.param(struct.pack(HEADER, LIMITS.frame_bytes_before_login + 1, 1, 0), id="a frame too large for now"),
        pytest.param(struct.pack(HEADER, 5, 1, 0) + b"wrong", id="a wrong checksum"),
        pytest.param(hello()[:9] + b"\xff" * (len(hello()) - 9), id="a damaged hello"),
        pytest.param(frame(Ping(0)), id="no hello"),
        pytest.param(hello(kind="friend"), id="an unknown kind"),
        pytest.param(as_bergen("control") + frame(Proof(b"\0" * 32, b"\0" * 32)), id="a forged control connection"),
        pytest.param(as_bergen("data") + frame(Proof(b"\0" * 32, b"\0" * 32)), id="a forged data connection"),
        pytest.param(as_bergen("data") + frame(Ping(0)), id="no proof"),
        pytest.param(hello(kind="task", cluster="faults"), id="a task on the members' port"),
    ],
)
def test_what_is_no_protocol_is_refused(sites: Sites, sent: bytes) -> None:
    with dialled(sites) as connection:
        connection.sendall(sent)
        refused = answers(connection)[-1]
    assert isinstance(refused, Refused)
    assert refused.error.code == PeerError.code
    assert refused.error.message
    assert "Traceback" not in refused.error.message


def test_another_version_is_refused(sites: Sites) -> None:
    with dialled(sites) as connection:
        connection.sendall(hello(versions=(99,)))
        (refused,) = answers(connection)
    assert isinstance(refused, Refused)
    assert refused.error.code == VersionError.code
    assert "protocol versions 99" in refused.error.message
    assert refused.error.suggestion == "update the older of the two"


@pytest.mark.parametrize("kind", ["control", "data"])
def test_another_cluster_is_refused(sites: Sites, kind: str) -> None:
    with dialled(sites) as connection:
        connection.sendall(hello(kind=kind, cluster="elsewhere", member="bergen", epoch=1))
        (refused,) = answers(connection)
    assert isinstance(refused, Refused)
    assert "cluster 'faults', not of 'elsewhere'" in refused.error.message


def test_a_frame_that_is_too_large_for_a_client(sites: Sites) -> None:
    with dialled(sites) as connection:
        stranger = BlockingConnection(connection, "oslo", LIMITS)
        stranger.login(Hello("client", PROTOCOL_VERSIONS, cluster="", member="", epoch=0), PATIENCE_S)
        connection.sendall(struct.pack(HEADER, LIMITS.frame_bytes_from_client + 1, 80, 0))
        (refused,) = answers(connection)
    assert isinstance(refused, Refused)
    assert refused.error.code == PeerError.code


def test_connections_that_fall_silent_are_dropped(sites: Sites) -> None:
    with dialled(sites) as nothing, dialled(sites) as half, dialled(sites) as no_proof:
        half.sendall(hello()[:20])
        no_proof.sendall(as_bergen("data"))
        for connection in (nothing, half):
            (refused,) = answers(connection)
            assert isinstance(refused, Refused)
            assert "no Hello within 5 s" in refused.error.message
        challenge, refused = answers(no_proof)
        assert isinstance(challenge, Challenge)
        assert isinstance(refused, Refused)
        assert "no Proof within 5 s" in refused.error.message

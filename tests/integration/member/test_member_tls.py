"""A cluster that speaks TLS everywhere answers as one that does not; who has no certificate stays outside."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

import skerry
from skerry.cli.sql import sql as sql_command
from skerry.config import MemberConfig
from skerry.model.errors import PeerError
from skerry.spark.engine import Engine
from skerry.wire.blocking import BlockingConnection
from skerry.wire.greeting import make_hello
from skerry.wire.messages import PROTOCOL_VERSIONS, Hello
from skerry.wire.session import Identity
from skerry.wire.tcp import connect, login
from skerry.wire.tls import Tls
from tests.integration.member.conftest import StartCluster
from tests.unit.wire.certificates import authority, files_of, needs_openssl

pytestmark = [pytest.mark.sail, needs_openssl]

JOINED = "SELECT a.id, b.name FROM bergen.few a JOIN tromso.few b ON a.id = b.id ORDER BY a.id"


def protected(member: MemberConfig) -> MemberConfig:
    return msgspec.structs.replace(member, tls=files_of(member.name))


def test_members_and_clients_speak_tls(start_sail: StartCluster) -> None:
    with start_sail().connect("oslo") as plain:
        rows = plain.cursor().execute(JOINED).fetchall()
    cluster = start_sail(each=protected, lite=("kiosk",))
    tls = {"authority": str(authority() / "ca.pem")}
    for member in ("oslo", "kiosk"):
        with cluster.connect(member, tls=tls) as connection:
            assert connection.cursor().execute(JOINED).fetchall() == rows
    address = cluster.config.member("oslo").address
    with pytest.raises(skerry.OperationalError) as caught:
        skerry.connect(f"skerry://{address}")
    assert "skerry+tls://" in caught.value.suggestion
    url = f"skerry+tls://{address}?authority={authority() / 'ca.pem'}"
    shown = CliRunner().invoke(sql_command, [url, "--format", "csv", "SELECT count(*) AS n FROM few"])
    assert shown.exit_code == 0, shown.output
    assert "300" in shown.output
    with cluster.connect("oslo", tls=tls) as connection:  # it has taken no harm
        assert connection.cursor().execute(JOINED).fetchall() == rows


def test_a_member_with_another_s_certificate_gets_no_rows(start_sail: StartCluster, tmp_path: Path) -> None:
    def wrong(member: MemberConfig) -> MemberConfig:
        return msgspec.structs.replace(member, tls=files_of("tromso" if member.name == "bergen" else member.name))

    cluster = start_sail(each=wrong)
    with cluster.connect("oslo", tls={"authority": str(authority() / "ca.pem")}) as connection:
        with pytest.raises(skerry.OperationalError, match="the certificate is that of member tromso, not bergen"):
            connection.cursor().execute("SELECT count(*) FROM bergen.few").fetchall()
        assert connection.cursor().execute("SELECT count(*) FROM tromso.few").fetchall() == [(100,)]


def test_tasks_on_other_machines_speak_tls(
    start_sail: StartCluster, sail_engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sail's sources are tasks that connect (its sinks hand over in memory: unit tests have theirs)."""
    monkeypatch.setattr(sail_engine, "tasks_are_here", False)
    # Also where clients must show certificates: tasks have none.
    cluster = start_sail(
        each=lambda member: msgspec.structs.replace(
            member, tls=msgspec.structs.replace(files_of(member.name), client_certificates=True)
        )
    )
    oslo = cluster.members["oslo"]
    assert oslo.task_address.startswith("tcp:")
    assert oslo.taskport.fingerprint == Tls(files_of("oslo")).fingerprint
    hello = Hello("task", PROTOCOL_VERSIONS, cluster.config.cluster, "", 0, credentials="guessed")
    with BlockingConnection.connect(oslo.task_address, 30.0) as plain, pytest.raises(PeerError):
        plain.login(hello, 30.0)  # whoever speaks no TLS gets no answer
    client = files_of("anna", usage="clientAuth", mark="")
    tls = {"authority": client.authority, "certificate": client.certificate, "key": client.key}
    with cluster.connect("oslo", tls=tls) as connection:
        rows = connection.cursor().execute(JOINED).fetchall()
    assert len(rows) > 0


def test_a_client_with_a_member_s_name_opens_no_member_s_connection(start_sail: StartCluster) -> None:
    cluster = start_sail(each=protected)
    address = f"tcp:{cluster.config.member('oslo').address}"
    posing = Tls(files_of("bergen", names="bergen", mark=""))

    async def forge(kind: str) -> None:
        connection = await connect(address, cluster.config.limits, posing, "oslo")
        try:
            await login(connection, make_hello(Identity(cluster.config.cluster, "bergen", 1), kind), None, "oslo")
        finally:
            connection.abort()

    for kind in ("control", "data"):
        with pytest.raises(PeerError, match="is no member's: it lacks the name URI:skerry:member:bergen"):
            cluster.call(forge(kind))

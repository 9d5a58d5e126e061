"""A cluster that speaks TLS everywhere answers as one that does not; who has no certificate stays outside."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

import skerry
from skerry.cli.sql import sql as sql_command
from skerry.config import MemberConfig
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
        with pytest.raises(skerry.OperationalError, match="the certificate names tromso, not bergen"):
            connection.cursor().execute("SELECT count(*) FROM bergen.few").fetchall()
        assert connection.cursor().execute("SELECT count(*) FROM tromso.few").fetchall() == [(100,)]

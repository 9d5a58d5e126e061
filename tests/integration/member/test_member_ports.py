"""Members with data ports: rows come in at ports of the range, which are free again afterwards."""

from __future__ import annotations

import msgspec
import pytest

from skerry.config import MemberConfig
from tests.integration.member.conftest import StartCluster
from tests.integration.member.member_sites import TICKS, wait_until
from tests.unit.wire.certificates import authority, files_of, needs_openssl
from tests.unit.wire.test_wire_ports import free_range

pytestmark = [pytest.mark.sail, needs_openssl]

JOINED = "SELECT a.id, b.name FROM bergen.ticks a JOIN oslo.few b ON a.id % 100 = b.id"


@pytest.mark.parametrize("is_tls", [False, True], ids=["plain", "TLS"])
def test_rows_come_in_at_ports_of_the_range(start_sail: StartCluster, is_tls: bool) -> None:
    ports = free_range(5)

    def with_ports(member: MemberConfig) -> MemberConfig:
        tls = files_of(member.name) if is_tls else None
        return msgspec.structs.replace(member, data_ports=ports if member.name == "oslo" else None, tls=tls)

    cluster = start_sail(each=with_ports)
    opened = []
    data_ports = cluster.members["oslo"].data_ports
    assert data_ports is not None
    port_for = data_ports.port_for

    async def seen(*arguments: object) -> int | None:
        opened.append(await port_for(*arguments))  # type: ignore[arg-type]
        return opened[-1]

    data_ports.port_for = seen  # type: ignore[method-assign]
    options = {"tls": {"authority": str(authority() / "ca.pem")}} if is_tls else {}
    with cluster.connect("oslo", **options) as connection:
        assert len(connection.cursor().execute("SELECT id FROM ticks").fetchall()) == 3 * TICKS
        assert len(connection.cursor().execute(JOINED).fetchall()) == TICKS
    assert len(opened) >= 3
    assert all(port is not None and ports[0] <= port <= ports[1] for port in opened)
    wait_until(lambda: data_ports.used == 0, "all ports given back")
    assert all(member.data_ports is None for name, member in cluster.members.items() if name != "oslo")

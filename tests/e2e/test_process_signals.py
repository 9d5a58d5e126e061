"""A member without a Spark, as a process that is told to stop, once and twice, while it plans a query."""

from __future__ import annotations

import signal
import socket
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

import skerry
from skerry.testing.ports import free_ports
from tests.e2e.processes import CONNECT_S, STOP_S, Site
from tests.integration.member.member_sites import wait_until

pytestmark = pytest.mark.e2e

CONFIG = """
cluster: signals
limits: {{login_s: 1000, drain_s: 1000}}
members:
  kiosk: {{address: '127.0.0.1:{kiosk}', role: lite}}
  oslo: {{address: '127.0.0.1:{oslo}', tables: {{t: {{format: parquet, path: t}}}}}}
"""


class Kiosk:
    """Asks oslo, which takes connections and never answers, what its table is: for longer than any test lasts."""

    def __init__(self, folder: Path) -> None:
        (port,) = free_ports(1)
        self.oslo = socket.create_server(("127.0.0.1", 0))
        file = folder / "skerry.yaml"
        file.write_text(CONFIG.format(kiosk=port, oslo=self.oslo.getsockname()[1]))
        (folder / "t").mkdir()
        self._url = f"skerry://127.0.0.1:{port}"
        self.site = Site(file, "kiosk", folder, folder / "t")

    def connect(self) -> skerry.Connection:
        return skerry.connect(self._url, timeout_s=CONNECT_S)

    def is_stopping(self) -> bool:
        with self.connect() as connection:
            return {each.name: each.state for each in connection.members()}["kiosk"] == "stopping"


@pytest.fixture
def kiosk(tmp_path: Path) -> Iterator[Kiosk]:
    member = Kiosk(tmp_path)
    with member.oslo, member.site.running():
        yield member


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_ends_the_wait_of_the_first(kiosk: Kiosk, number: signal.Signals) -> None:
    with ThreadPoolExecutor() as threads, kiosk.connect() as connection:
        asking: Future[object] = threads.submit(connection.cursor().execute, "SELECT count(*) FROM t")
        wait_until(lambda: [each.state for each in connection.queries()] == ["planning"], "the query is planned")
        kiosk.site.process.send_signal(number)
        wait_until(kiosk.is_stopping, "it has heard")
        with pytest.raises(skerry.OperationalError, match="site kiosk is stopping; ask another member"):
            connection.cursor().execute("SELECT 1")
        assert [each.state for each in connection.queries()] == ["planning"]
        assert kiosk.site.process.poll() is None
        kiosk.site.process.send_signal(number)
        with pytest.raises(skerry.OperationalError):
            asking.result()
    assert kiosk.site.process.wait(STOP_S) == 0, kiosk.site.log
    assert "stops; still running: kiosk/" in kiosk.site.log
    assert "Traceback" not in kiosk.site.log


def test_one_signal_waits_for_the_last_query_and_no_longer(kiosk: Kiosk) -> None:
    with ThreadPoolExecutor() as threads, kiosk.connect() as connection:
        cursor = connection.cursor()
        asking: Future[object] = threads.submit(cursor.execute, "SELECT count(*) FROM t")
        wait_until(connection.queries, "the query is planned")
        kiosk.site.process.send_signal(signal.SIGTERM)
        wait_until(kiosk.is_stopping, "it has heard")
        cursor.cancel()
        with pytest.raises(skerry.OperationalError, match="cancelled"):
            asking.result()
    assert kiosk.site.process.wait(STOP_S) == 0, kiosk.site.log
    assert "still running" not in kiosk.site.log

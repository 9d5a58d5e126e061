"""A member as a process that is told to stop, once and twice."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import skerry
from skerry.testing.ports import free_ports
from tests.e2e.processes import CONNECT_S, START_S, STOP_S, Site, skerry_command
from tests.integration.member.member_sites import FEW, TICKS, make_sites, slow_query, wait_until, write_sites

pytestmark = [pytest.mark.e2e, pytest.mark.sail]


class Address:
    """A cluster of one member, with Sail, that waits for its queries longer than any test lasts."""

    def __init__(self, folder: Path) -> None:
        (port,) = free_ports(1)
        tables = {"oslo": make_sites(folder / "data")["oslo"]}
        limits = {"drain_s": 10 * STOP_S}
        path = folder / "skerry.yaml"
        self.file = write_sites(path, tables, ports={"oslo": port}, spark={"sail": True}, limits=limits)
        self._url = f"skerry://127.0.0.1:{port}"

    def connect(self) -> skerry.Connection:
        return skerry.connect(self._url, timeout_s=CONNECT_S)

    def refuses(self) -> bool:
        """Whether it has heard that it is to stop."""
        with self.connect() as connection:
            try:
                connection.cursor().execute("SELECT 1").fetchall()
            except skerry.OperationalError as error:
                return error.message == "site oslo is stopping; ask another member"
        return False


class Oslo(Address):
    """The member alone."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        (folder / "t").mkdir()
        self.site = Site(self.file, "oslo", folder, folder / "t")

    def tell(self, number: signal.Signals) -> None:
        self.site.process.send_signal(number)


@pytest.fixture
def oslo(tmp_path: Path) -> Iterator[Oslo]:
    member = Oslo(tmp_path)
    with member.site.running():
        yield member


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_told_once_it_waits_for_what_is_read(oslo: Oslo, number: signal.Signals) -> None:
    with oslo.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SELECT id, note FROM ticks")
        oslo.tell(number)
        wait_until(oslo.refuses, "no new query begins")
        assert len(cursor.fetchall()) == TICKS
    assert oslo.site.process.wait(STOP_S) == 0, oslo.site.log
    assert "Traceback" not in oslo.site.log


def test_told_twice_it_stops_at_once(oslo: Oslo) -> None:
    with ThreadPoolExecutor() as threads, oslo.connect() as connection, connection.cursor() as cursor:
        assert connection.cursor().execute("SELECT count(*) FROM few").fetchall() == [(FEW,)]
        wait_until(lambda: not oslo.site.queries_under_way(), "that one has ended")
        asking = threads.submit(cursor.execute, slow_query("oslo"))
        wait_until(oslo.site.queries_under_way, "the query runs")
        oslo.tell(signal.SIGTERM)
        wait_until(oslo.refuses, "no new query begins")
        assert oslo.site.queries_under_way()
        oslo.tell(signal.SIGTERM)
        with pytest.raises(skerry.OperationalError, match="site oslo is stopping"):
            asking.result()
    assert oslo.site.process.wait(STOP_S) == 0, oslo.site.log
    assert "Traceback" not in oslo.site.log


def test_ctrl_c_twice_at_up_stops_the_members_at_once(tmp_path: Path) -> None:
    """They are told again, not killed: the query hears why it ends."""
    oslo, output = Address(tmp_path), tmp_path / "output"
    with output.open("wb") as said:
        up = subprocess.Popen(skerry_command("up", oslo.file), stdin=subprocess.DEVNULL, stdout=said, stderr=said)
    try:
        wait_until(lambda: "Ctrl-C stops it" in output.read_text(), "it is up", START_S)
        with ThreadPoolExecutor() as threads, oslo.connect() as connection, connection.cursor() as cursor:
            asking = threads.submit(cursor.execute, slow_query("oslo"))
            wait_until(lambda: [each.state for each in connection.queries()] == ["running"], "the query runs")
            up.send_signal(signal.SIGINT)
            wait_until(oslo.refuses, "no new query begins")
            assert connection.queries()[-1].state == "running"
            up.send_signal(signal.SIGINT)
            with pytest.raises(skerry.OperationalError, match="site oslo is stopping"):
                asking.result()
        assert up.wait(STOP_S) == 0, output.read_text()
        assert "Traceback" not in output.read_text()
    finally:
        if up.poll() is None:
            up.kill()  # its member ends with it
            up.wait()

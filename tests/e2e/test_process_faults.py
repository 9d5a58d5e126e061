"""Members and clients that are killed or stopped while queries run."""

from __future__ import annotations

import signal
import subprocess
import threading

import pytest

import skerry
from skerry.client.dbapi import Cursor
from skerry.client.pep249 import Row
from skerry.model.errors import SiteError
from skerry.spark.jvm import WORKER_DAEMON
from tests.e2e.processes import STOP_S, Sites, command_of, skerry_command, tree_of
from tests.integration.member.member_sites import FEW, large_query, slow_query, wait_until

pytestmark = [pytest.mark.spark, pytest.mark.e2e, pytest.mark.timeout(1200)]


class Asking:
    """A client that waits for a statement in a thread of its own."""

    def __init__(self, cursor: Cursor, sql: str) -> None:
        self.error: skerry.Error | None = None
        self.rows: list[Row] | None = None
        self._cursor = cursor
        self._sql = sql
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        try:
            self.rows = self._cursor.execute(self._sql).fetchall()
        except skerry.Error as error:
            self.error = error

    def answer(self) -> list[Row]:
        self._thread.join(STOP_S)
        assert self.error is None
        assert self.rows is not None
        return self.rows

    def failed(self) -> skerry.Error:
        self._thread.join(STOP_S)
        assert self.error is not None
        return self.error


def test_a_killed_member(sites: Sites) -> None:
    with sites.connect("bergen") as bergen, sites.connect("tromso") as tromso:
        stalled = bergen.cursor().execute(large_query("tromso"))  # its Python workers wait for their member
        needs_tromso = Asking(bergen.cursor(), slow_query("tromso"))
        begun_at_tromso = Asking(tromso.cursor(), slow_query("oslo"))
        wait_until(lambda: sites.count_at("tromso") == 2 and sites.count_at("oslo") == 1, "all queries run")
        tree = tree_of(sites.running["tromso"].process.pid)
        assert any(WORKER_DAEMON in command_of(each) for each in tree)
        killed, status = sites.end("tromso", signal.SIGKILL)
        assert status == -signal.SIGKILL
        error = needs_tromso.failed()
        assert error.code == SiteError.code
        # Who would not notice at once waits for tromso to come back, and then says so.
        assert f"site tromso is down: connection refused at 127.0.0.1:{sites.ports['tromso']}" in error.message
        assert f"member at 127.0.0.1:{sites.ports['tromso']} is gone" in begun_at_tromso.failed().message
        with pytest.raises(skerry.OperationalError, match="site tromso"):
            stalled.fetchall()
    sites.nothing_left()
    # Of the killed member a dead socket and a lock remain, until a member starts on that machine again.
    (left,) = killed.temp.iterdir()
    assert {each.name for each in left.iterdir()} == {"lock", "tasks.sock"}

    assert sites.ask("bergen", "SELECT count(*) FROM oslo.few a JOIN bergen.few b ON a.id = b.id") == [(FEW,)]
    with pytest.raises(skerry.OperationalError, match="site tromso is down: connection refused"):
        sites.ask("bergen", "SELECT count(*) FROM few")
    assert sites.state_of("tromso", at="bergen") == "down"
    # Some seconds of silence on a busy machine are "down", too.
    wait_until(lambda: sites.state_of("oslo", at="bergen") == "up", "bergen and oslo see each other")

    sites.start("tromso")
    for name in sites.ports:
        assert sites.ask(name, "SELECT count(*) FROM few") == [(3 * FEW,)]
    assert not left.exists()


def test_a_member_that_is_stopped(sites: Sites) -> None:
    with sites.connect("bergen") as bergen, sites.connect("tromso") as tromso:
        needs_tromso = Asking(bergen.cursor(), slow_query("tromso"))
        begun_at_tromso = Asking(tromso.cursor(), slow_query("oslo"))
        wait_until(lambda: sites.count_at("tromso") and sites.count_at("oslo"), "both queries run")
        stopped, status = sites.end("tromso", signal.SIGTERM)
        assert status == 0, stopped.log
        for asking in (needs_tromso, begun_at_tromso):
            assert asking.failed().message == "site tromso is stopping"
    assert list(stopped.temp.iterdir()) == []
    assert "Traceback" not in stopped.log
    sites.nothing_left()
    assert sites.ask("kiosk", "SELECT count(*) FROM oslo.few") == [(FEW,)]


def test_a_killed_client(sites: Sites) -> None:
    client = subprocess.Popen(
        skerry_command("sql", sites.url("kiosk"), slow_query("bergen")), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    wait_until(lambda: sites.count_at("bergen"), "the query runs")
    assert len(tree_of(client.pid)) == 1
    client.kill()
    client.communicate()
    sites.nothing_left()


def test_ctrl_c_at_a_client(sites: Sites) -> None:
    client = subprocess.Popen(
        skerry_command("sql", sites.url("oslo"), slow_query("bergen")), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    wait_until(lambda: sites.count_at("bergen"), "the query runs")
    client.send_signal(signal.SIGINT)
    out, err = client.communicate(timeout=STOP_S)
    assert client.returncode == 130
    assert out == b""
    assert b"cancelled" in err
    assert b"Traceback" not in err
    sites.nothing_left()


def test_a_member_that_is_paused_is_waited_for(sites: Sites) -> None:
    """Silence is waited out: a query is not lost when its site comes back."""
    with sites.connect("oslo") as connection:
        assert connection.cursor().execute("SELECT count(*) FROM bergen.few").fetchall() == [(FEW,)]
        paused = sites.running["bergen"].process
        paused.send_signal(signal.SIGSTOP)
        try:
            cursor = connection.cursor()
            asking = Asking(cursor, "SELECT count(*) FROM bergen.few")
            wait_until(lambda: sites.state_of("bergen", at="oslo") == "down", "bergen is silent")
        finally:
            paused.send_signal(signal.SIGCONT)
        assert asking.answer() == [(FEW,)]


def test_a_receiver_that_is_paused_holds_back_no_other(sites: Sites) -> None:
    """Each site's `few` goes to both others: oslo and bergen have each other's while tromso is silent."""
    sql = f"SELECT t.kind, count(*) AS n FROM ticks t JOIN few f ON t.id % {FEW} = f.id GROUP BY t.kind ORDER BY t.kind"
    with sites.connect("oslo") as connection:
        expected = connection.cursor().execute(sql).fetchall()
        paused = sites.running["tromso"].process
        paused.send_signal(signal.SIGSTOP)
        try:
            cursor = connection.cursor()
            asking = Asking(cursor, sql)
            wait_until(
                lambda: rows_sent(cursor, "bergen", "oslo") == rows_sent(cursor, "oslo", "bergen") == FEW, "rows"
            )
            assert rows_sent(cursor, "oslo", "tromso") == 0
        finally:
            paused.send_signal(signal.SIGCONT)
        assert asking.answer() == expected


def rows_sent(cursor: Cursor, sender: str, receiver: str) -> int:
    links = cursor.status().links if cursor.query_id is not None else ()
    ways = {(link.sender, link.receiver): link.rows for link in links}
    return ways.get((sender, receiver), 0)

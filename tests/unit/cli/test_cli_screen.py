"""What is on the screen while members start, and in the end."""

from __future__ import annotations

import io
import json
import re
import sys
import threading
from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import CliRunner
from rich.console import Console

from skerry.cli import screen as screen_module
from skerry.cli.logs import Record
from skerry.cli.screen import Screen, Seen, engine_of, ready_lines
from skerry.cli.up import up
from skerry.config import parse

CONFIG = parse("""
cluster: nordic
members:
  oslo: {address: 'oslo.example'}
  bergen: {address: '127.0.0.1:7102', spark: {sail: true}}
  kiosk: {address: '127.0.0.1:7103', role: lite}
""")
TLS = parse("""
cluster: nordic
members:
  oslo: {address: 'oslo.example', tls: {certificate: c.pem, key: k.pem, authority: a b.pem, client_certificates: true}}
""").member("oslo")


def seen(state: str) -> list[Seen]:
    return [Seen(each.name, state, engine_of(each), 4.25, each.url) for each in CONFIG.members.values()]


def test_the_end_of_a_start_says_where_to_connect() -> None:
    assert ready_lines(CONFIG, seen("ready")) == [
        "cluster nordic: all members are ready",
        "",
        "  oslo    ready after 4.2 s  skerry://oslo.example:7100",
        "  bergen  ready after 4.2 s  skerry://127.0.0.1:7102",
        "  kiosk   ready after 4.2 s  skerry://127.0.0.1:7103",
        "",
        "Ask any of them, in another terminal:",
        "  skerry sql skerry://oslo.example:7100",
        "Ctrl-C stops all of them.",
    ]


def test_with_tls_the_url_names_the_authority_and_the_shell_takes_it() -> None:
    *_, ask, command, _ = ready_lines(CONFIG, [Seen("oslo", "ready", "Spark", 1.0, TLS.url)])
    assert ask == "Ask it, in another terminal:"
    assert TLS.url.startswith("skerry+tls://oslo.example:7100?authority=")
    assert TLS.url.endswith("/a%20b.pem&certificate=…&key=…")
    assert command == f"  skerry sql '{TLS.url}'"


def test_states_say_what_takes_the_time() -> None:
    assert [each.state_text for each in seen("starting")] == [
        "starting Spark 4.2 s",
        "starting Sail 4.2 s",
        "starting 4.2 s",
    ]
    assert seen("ended")[0].state_text == "ended after 4.2 s"


class Terminals:
    """Standard output and standard error, each a terminal or not."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, out: bool, err: bool) -> None:
        self.out, self.err = io.StringIO(), io.StringIO()
        consoles = {
            False: Console(file=self.out, force_terminal=out, width=80, color_system=None),
            True: Console(file=self.err, force_terminal=err, width=80, color_system=None),
        }
        monkeypatch.setattr(screen_module, "_Console", lambda stderr=False: consoles[stderr])


NOW = datetime(2026, 1, 2, tzinfo=UTC)
INFO, WARNING = Record(NOW, "info", "listening"), Record(NOW, "warning", "is odd")


def test_on_a_terminal_the_log_stands_above_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    terminals = Terminals(monkeypatch, out=True, err=True)
    screen = Screen(tuple(CONFIG.members))
    with screen.starting():
        screen.show(seen("starting"))
        screen.take("oslo", INFO)
        screen.take("oslo", WARNING)
        screen.take("oslo", "from its JVM")
        screen.show(seen("ready"))
    screen.ready(CONFIG, seen("ready"))
    drawn = terminals.err.getvalue()
    assert "listening" not in drawn
    assert "from its JVM" not in drawn
    # The table is erased before a line is written, and drawn again below it.
    before, _, after = drawn.partition("is odd\n")
    assert before.rpartition("\n")[2].startswith("\x1b[")
    assert "✓" in after
    assert terminals.out.getvalue().splitlines() == ready_lines(CONFIG, seen("ready"))
    assert screen.last_words("oslo", 9) == "listening\nfrom its JVM"


def test_a_second_start_leaves_what_was_written_since_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    terminals = Terminals(monkeypatch, out=True, err=True)
    screen = Screen(tuple(CONFIG.members))
    with screen.starting():
        screen.show(seen("ready"))
    terminals.err.truncate(0)
    with screen.starting():
        first = terminals.err.getvalue()
        screen.show(seen("ready"))
    assert "\x1b[1A" not in first
    assert "✓" in terminals.err.getvalue()


def test_without_a_terminal_all_lines_come_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    terminals = Terminals(monkeypatch, out=False, err=False)
    screen = Screen(tuple(CONFIG.members))
    with screen.starting():
        screen.show(seen("starting"))
        screen.take("oslo", INFO)
        screen.show([seen("ready")[0], *seen("starting")[1:]])
        screen.show(seen("ready"))
    screen.take("bergen", "x" * 200)
    first, *states, last = terminals.err.getvalue().splitlines()
    assert first.endswith(" INFO    listening")
    assert states == [f"{name:<6}  ready after 4.2 s" for name in CONFIG.members]
    assert last == "bergen  " + "x" * 200
    assert screen.last_words("oslo", 9) == ""


def test_where_lines_are_objects_those_of_up_are_too(monkeypatch: pytest.MonkeyPatch) -> None:
    terminals = Terminals(monkeypatch, out=False, err=False)
    screen = Screen(tuple(CONFIG.members), is_json=True)
    with screen.starting():
        screen.take("oslo", Record(NOW, "info", "listening", raw='{"text": "listening"}'))
        screen.take("oslo", "from its JVM \x1b[2J")
        screen.show([*seen("ready")[:2], seen("ended")[2]])
    screen.ready(CONFIG, seen("ready"))
    screen.stopping()
    lines = [json.loads(line) for line in terminals.err.getvalue().splitlines()]
    assert [(line.get("event"), line.get("member"), line["text"]) for line in lines] == [
        (None, None, "listening"),
        ("note", "oslo", "from its JVM \x1b[2J"),
        ("member_ready", "oslo", "member oslo: ready after 4.2 s"),
        ("member_ready", "bergen", "member bergen: ready after 4.2 s"),
        ("member_ended", "kiosk", "member kiosk: ended after 4.2 s"),
        ("stop_begun", "", "stopping oslo, bergen, kiosk"),
    ]
    assert terminals.out.getvalue().splitlines() == ready_lines(CONFIG, seen("ready"))  # for a person


def test_why_up_ends_is_an_object_too(tmp_path: Path) -> None:
    file = tmp_path / "skerry.yaml"
    file.write_text("cluster: nordic\nlog_format: json\nmembers:\n  oslo: {address: 'oslo.example'}\n")
    ended = CliRunner().invoke(up, [str(file), "--member", "bergen"])
    line = json.loads(ended.stderr)
    assert (ended.exit_code, line["event"], line["level"]) == (1, "start_failed", "error")
    assert "bergen" in line["text"]


def test_with_the_log_in_a_file_the_table_is_on_the_other_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    terminals = Terminals(monkeypatch, out=True, err=False)
    screen = Screen(tuple(CONFIG.members))
    with screen.starting():
        screen.show(seen("starting"))
        screen.take("oslo", INFO)
    assert terminals.err.getvalue().endswith(" INFO    listening\n")
    assert "\x1b" not in terminals.err.getvalue()
    assert "starting Sail" in terminals.out.getvalue()


def test_members_that_are_stopped_lose_each_other_in_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    terminals = Terminals(monkeypatch, out=True, err=True)
    screen = Screen(tuple(CONFIG.members))
    screen.stopping()
    screen.take("oslo", WARNING)
    screen.take("oslo", Record(NOW, "error", "does not end"))
    assert terminals.err.getvalue().splitlines()[0] == "stopping"
    assert "is odd" not in terminals.err.getvalue()
    assert "does not end" in terminals.err.getvalue()


def test_lines_that_come_while_the_table_ends_are_not_torn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Members go on logging, each read by a thread of its own."""
    terminals = Terminals(monkeypatch, out=True, err=True)
    screen = Screen(tuple(CONFIG.members), shows_all=True)
    has_ended = threading.Event()

    def log(member: str) -> None:
        while not has_ended.is_set():
            screen.take(member, INFO)

    threads = [threading.Thread(target=log, args=(member,)) for member in CONFIG.members]
    for thread in threads:
        thread.start()
    for _ in range(10):
        with screen.starting():
            screen.show(seen("starting"))
            screen.show(seen("ready"))
    has_ended.set()
    for thread in threads:
        thread.join()
    # A line begins where another ended, or where the table was erased: never behind a URL of the table.
    drawn = terminals.err.getvalue()
    assert re.findall(r"://[^\n\x1b]*INFO", drawn) == []
    assert drawn.count(" INFO    listening\n") == drawn.count("listening") > 0


class Broken(io.StringIO):
    """A pipe whose reader has gone."""

    def write(self, _text: str) -> int:
        raise BrokenPipeError


def test_when_nobody_reads_the_log_any_more_members_are_read_on(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Screen(tuple(CONFIG.members))
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", Broken())
        for line in (INFO, WARNING, "from its JVM"):
            screen.take("oslo", line)  # rich would end this thread with SystemExit
        screen.stopping()
    assert screen.is_left


def test_text_is_shown_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    Screen(("oslo",)).take("oslo", "SELECT ':100:', '[bold]'")
    assert capsys.readouterr().err == "oslo  SELECT ':100:', '[bold]'\n"


def test_no_text_of_a_query_steers_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    screen = Screen(("oslo",))
    screen.take("oslo", Record(NOW, "info", "unknown table a\x1b[2Jb\u2028c", trace="\x9b1m"))
    assert capsys.readouterr().err.split("INFO    ")[1] == "unknown table a\\x1b[2Jb\\u2028c\noslo    | \\u009b1m\n"

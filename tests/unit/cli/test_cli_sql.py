"""`skerry sql` against a scripted member on a real socket."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner, Result
from prompt_toolkit.application import create_app_session
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

from skerry import __version__
from skerry.cli.main import COMMANDS, main
from skerry.cli.prompt import Prompt, history_path
from skerry.cli.runner import Runner
from skerry.model.limits import DEFAULT_PORT
from skerry.wire.client_messages import ClientClose, ClientExecute, ClientResult, ClientStatus
from skerry.wire.messages import Failure
from tests.unit.client.scripted_member import WAIT_S, Answers, Peer, ScriptedMember, member_with

pytestmark = pytest.mark.slow

CITIES = pa.table({"city": ["Bergen", None], "people": [291940, 5]})
ANSWERS = {
    "SELECT * FROM cities": CITIES,
    "SHOW TABLES": pa.table({"tableName": ["cities"]}),
    "DESCRIBE cities": pa.table({"col_name": ["city", "people"]}),
    "DELETE FROM cities": 2,
    "slow": None,
    "down": Failure(300, "site bergen is down", "oslo", "start it"),
}


@pytest.fixture
def member() -> Iterator[ScriptedMember]:
    with member_with(Answers(ANSWERS, page_rows=1)) as scripted:
        yield scripted


@pytest.fixture(autouse=True)
def state_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


def skerry(*arguments: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(main, arguments, input=stdin)


def test_a_statement_gives_a_table_without_colours(member: ScriptedMember) -> None:
    result = skerry("sql", member.url, "SELECT * FROM cities")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[:4] == [" city   | people", "--------+--------", " Bergen | 291940", " NULL   |      5"]
    assert lines[4].startswith("(2 rows, ")
    assert "\x1b" not in result.output


def test_csv_and_json_hold_rows_only(member: ScriptedMember) -> None:
    result = skerry("sql", member.url, "--format", "csv", "SELECT * FROM cities")
    assert result.stdout == "city,people\nBergen,291940\n,5\n"
    assert "(2 rows" in result.stderr
    result = skerry("sql", member.url, "--format", "json", "SELECT * FROM cities;")
    assert json.loads(result.stdout)[1] == {"city": None, "people": 5}


@pytest.mark.parametrize("output_format", ["arrow", "parquet"])
def test_two_results_are_not_one_file(member: ScriptedMember, output_format: str) -> None:
    result = skerry("sql", "--format", output_format, member.url, "SELECT 1; SELECT 2")
    assert result.exit_code == 2
    assert "2 results would not be one file" in result.stderr
    assert not result.stdout


def test_a_script_from_standard_input_stops_at_the_first_error(member: ScriptedMember) -> None:
    result = skerry("sql", member.url, stdin="DELETE FROM cities;\ndown; SELECT * FROM cities")
    assert result.exit_code == 1
    assert result.stdout.startswith("(2 rows changed, ")
    assert result.stderr == "error: site bergen is down\nhint: start it\n"
    assert [query.sql for query in member.of(ClientExecute)] == ["DELETE FROM cities", "down"]


def test_nobody_there_is_an_error_without_a_traceback() -> None:
    result = skerry("sql", "skerry://127.0.0.1:1", "SELECT 1")
    assert result.exit_code == 1
    assert result.stderr.startswith("error: no member answers at 127.0.0.1:1 (connection refused)")
    assert "Traceback" not in result.output


STEERING = "\x1b]0;mine\x07\x1b[2J\r\x9b1m\u2028\u202e\x08"
SHOWN = "\\x1b]0;mine\\x07\\x1b[2J\\r\\x9b1m\\u2028\\u202e\\x08"


def test_no_word_of_a_member_steers_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    """An error quotes rows and statements, and the member may be anybody's; its lines and tabs stay."""
    answers = {
        "fails": Failure(101, f"no {STEERING}\n\tSELECT\n\t^", "oslo", f"ask {STEERING}"),
        "rows": pa.table({STEERING: [STEERING]}),
        "EXPLAIN SELECT 1": pa.table({"plan": [STEERING]}),
    }
    with member_with(Answers(answers, name=f"oslo{STEERING}")) as member:
        failed = skerry("sql", member.url, "fails")
        assert failed.stderr == f"error: no {SHOWN}\n\tSELECT\n\t^\nhint: ask {SHOWN}\n"
        for statement in ("rows", "EXPLAIN SELECT 1"):
            shown = skerry("sql", member.url, statement).output
            assert SHOWN in shown
            assert not set(shown) & set("\x1b\x07\r\x9b\u2028\u202e\x08")
        runner = Runner(member.url, "table", None)
        runner.connection()
        assert runner.place() == f"oslo{SHOWN}"
        with create_pipe_input() as typed, create_app_session(input=typed, output=DummyOutput()):
            typed.send_text("quit\n")
            Prompt(runner).run()
        runner.close()
    assert capsys.readouterr().out == f"Connected to oslo{SHOWN}. Type help for help.\n"


def test_the_timeout_travels(member: ScriptedMember) -> None:
    skerry("sql", member.url, "--timeout", "2.5", "DELETE FROM cities")
    assert member.of(ClientExecute)[0].timeout_s == 2.5


@pytest.mark.parametrize("output_format", ["table", "csv", "json", "arrow", "parquet"])
def test_a_reader_that_stops_ends_it_quietly(member: ScriptedMember, output_format: str) -> None:
    """As `| head` does; a real pipe, a real process."""
    read_end, write_end = os.pipe()
    os.close(read_end)
    command = [sys.executable, "-m", "skerry", "sql", member.url, "--format", output_format, "SELECT * FROM cities"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    ended = subprocess.run(command, stdout=write_end, stderr=subprocess.PIPE, env=environment, timeout=WAIT_S)
    os.close(write_end)
    assert (ended.returncode, ended.stderr) == (141, b"")


@pytest.mark.parametrize("output_format", ["table", "csv", "arrow", "parquet"])
def test_a_full_disk_is_told_in_one_line(member: ScriptedMember, output_format: str) -> None:
    command = [sys.executable, "-m", "skerry", "sql", member.url, "--format", output_format, "SELECT * FROM cities"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with open("/dev/full", "wb") as full:
        ended = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, env=environment, timeout=WAIT_S)
    assert ended.returncode == 1
    assert ended.stderr.splitlines()[-1] == b"Error: cannot write the output: No space left on device"
    assert b"Traceback" not in ended.stderr


def test_standard_output_may_be_closed(member: ScriptedMember) -> None:
    command = ["/bin/sh", "-c", 'exec "$@" >&-', "sh", sys.executable, "-m", "skerry", "sql", member.url]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    ended = subprocess.run([*command, "SELECT * FROM cities"], stderr=subprocess.PIPE, env=environment, timeout=WAIT_S)
    assert (ended.returncode, ended.stderr) == (0, b"")


def test_what_is_typed_for_a_pipe_is_a_script(member: ScriptedMember) -> None:
    """`skerry sql URL | less`, typed at a terminal: a prompt would be drawn into the pipe."""
    master, terminal = pty.openpty()
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-m", "skerry", "sql", member.url]
    with subprocess.Popen(command, stdin=terminal, stdout=subprocess.PIPE, env=environment, text=True) as process:
        os.close(terminal)
        os.write(master, b"SELECT * FROM cities;\n\x04")
        out, _ = process.communicate(timeout=WAIT_S)
    os.close(master)
    assert out.startswith(" city   | people\n--------+--------\n")
    assert "\x1b" not in out


@pytest.mark.parametrize("module", ["skerry", "skerry.cli"])
def test_python_m(module: str) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-m", module, "--help"]
    ended = subprocess.run(command, capture_output=True, env=environment, text=True, timeout=WAIT_S)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.startswith("Usage: skerry [OPTIONS] COMMAND")


def test_help_and_version_load_no_command() -> None:
    assert skerry("--version").stdout == f"skerry {__version__}\n"
    result = skerry("--help")
    assert "Run SQL on a cluster" in result.stdout
    assert skerry("no-such-command").exit_code == 2
    help_text = skerry("sql", "--help").stdout
    assert "skerry://host:port" in help_text
    assert f"The port may be left out if it is {DEFAULT_PORT}" in help_text
    assert set(COMMANDS) == {
        *("attach", "cancel", "check", "demo", "explain", "load", "ps", "rebalance", "secret", "sql", "submit"),
        *("up", "user"),
    }


def test_the_prompt(member: ScriptedMember, capsys: pytest.CaptureFixture[str]) -> None:
    typed = [
        "\\d\r",
        "\\d cities\r",
        "\\timing\r",
        "SELECT *\rFROM cities;\r",
        "down;\r",
        "\\x\r",
        "SELECT * FROM cities;\r",
        "\\x auto\r",
        "\\x off\r",
        "\\x perhaps\r",
        "\\format jsonl\r",
        "SELECT * FROM cities;\r",
        "\\format\r",
        "\\x\r",  # whatever the format was
        "\\format\r",
        "\\format table\r",
        "SELECT * FROM cities;\r",
        "\\format xml\r",
        "\\timing on\r",
        "\\y\r",
        "help\r",
        "left behind\x03",
        "\x04",
    ]
    runner = Runner(member.url, "table", None)
    with create_pipe_input() as keys, create_app_session(input=keys, output=DummyOutput()):
        member_answers = member._script
        assert isinstance(member_answers, Answers)
        member_answers.answers["SELECT *\nFROM cities"] = CITIES
        keys.send_text("".join(typed))
        Prompt(runner).run()
    runner.close()
    asked = [query.sql for query in member.wait_for(ClientExecute, 6)]
    assert [sql for sql in asked if sql in ("SELECT *\nFROM cities", "down")] == ["SELECT *\nFROM cities", "down"]
    # Once each for who typed \\d, and once for Tab, before anybody presses it.
    assert asked.count("SHOW TABLES") == asked.count("DESCRIBE cities") == 2
    out, err = capsys.readouterr()
    assert "Connected to oslo" in out
    assert "Times are not shown." in out
    assert "(2 rows)\n" in out
    assert "Ctrl-C ends the running query" in out
    for form in (
        "\\x [on|off|auto]",
        "\\format [NAME]",
        "\\timing [on|off]",
        "\\?, \\h, help",
        "\\q, quit, exit, Ctrl-D",
    ):
        assert f"  {form} " in out
    assert "-[ row 1 ]" in out
    assert "city   | Bergen\npeople | 291940\n" in out
    assert '{"city":"Bergen","people":291940}\n' in out
    assert "jsonl.\nEach value has a line of its own.\nThe format is vertical.\nThe format is table.\n city" in out
    assert "Times are shown." in out
    assert err.splitlines() == [
        "error: site bergen is down",
        "hint: start it",
        "error: \\x takes on, off or auto, not perhaps",
        "(2 rows)",
        "error: \\format takes table, vertical, markdown, csv, json or jsonl, not xml",
        "error: \\y is no command (type help)",
    ]
    assert "SELECT *" in history_path().read_text()
    assert history_path().stat().st_mode & 0o077 == 0


def test_the_prompt_connects_again_when_its_member_came_back(capsys: pytest.CaptureFixture[str]) -> None:
    with member_with(Answers(ANSWERS)) as member:
        runner = Runner(member.url, "table", None)
        first = runner.connection()
        first.schema_name = "bergen"  # as USE does
        assert runner.place() == "oslo/bergen"
        first._links.close()  # as if the member had gone
        assert runner.place() == ""
        runner.run("SHOW TABLES")
        assert runner.connection() is not first
        assert member.of(ClientExecute)[0].schema_name == "bergen"
        runner.close()
    assert "cities" in capsys.readouterr().out


class Warns(Answers):
    """Answers everything with a warning."""

    def _execute(self, peer: Peer, message: ClientExecute) -> None:
        peer.send(ClientResult(message.request, update_count=1, warnings=('"city" is a string here',)))


def test_warnings_are_shown_beside_the_result() -> None:
    with member_with(Warns({})) as member:
        result = skerry("sql", member.url, 'DELETE FROM cities WHERE city = "city"')
    assert result.stderr == 'warning: "city" is a string here\n'
    assert result.stdout.startswith("(1 row changed, ")


def on_terminal(*arguments: str, pager: str, until: bytes, lines: int = 4) -> str:
    """What a process shows on a real terminal, up to a text that must come."""
    master, terminal = pty.openpty()
    command = [sys.executable, "-m", "skerry", *arguments]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "TERM": "xterm", "PAGER": pager}
    environment |= {"COLUMNS": "100", "LINES": str(lines)}
    process = subprocess.Popen(command, stdin=terminal, stdout=terminal, stderr=terminal, env=environment)
    os.close(terminal)
    shown = b""
    try:
        while until not in shown:
            shown += os.read(master, 1000)
        assert process.wait(WAIT_S) == 0
    finally:
        process.kill()
        process.wait()
        os.close(master)
    return shown.decode().replace("\r\n", "\n")


def test_on_a_terminal_a_result_that_does_not_fit_is_paged(member: ScriptedMember, tmp_path: Path) -> None:
    pager = f"cat > {tmp_path}/paged"
    shown = on_terminal("sql", member.url, "SELECT * FROM cities", pager=pager, until=b"(2 rows, ")
    assert "Bergen" not in shown
    assert "Bergen" in (tmp_path / "paged").read_text()
    shown = on_terminal("sql", member.url, "SELECT * FROM cities", pager=pager, until=b"(2 rows, ", lines=8)
    assert "Bergen" in shown


def test_who_leaves_the_pager_ends_the_query() -> None:
    with member_with(Answers({"big": pa.table({"n": range(2000)})}, page_rows=1)) as member:
        on_terminal("sql", member.url, "big", pager="head -n 1", until=b" read, perhaps not all, ")
        assert member.wait_for(ClientClose)[0].query == member.of(ClientExecute)[0].query


def test_a_plan_is_drawn_as_skerry_explain_draws_it(member: ScriptedMember) -> None:
    statement = "/* why? */ EXPLAIN SELECT * FROM cities"
    assert isinstance(member._script, Answers)
    plan = pa.table({"plan": ["plan 1, result at oslo", "finish at oslo: gather edge 1 from oslo"]})
    member._script.answers |= {statement: plan, "EXPLAIN SELECT * FROM cities": plan}
    lines = "plan 1, result at oslo\nfinish at oslo: gather edge 1 from oslo\n"
    assert skerry("sql", member.url, statement).stdout == lines
    assert skerry("explain", member.url, "SELECT * FROM cities").stdout == lines
    assert skerry("sql", "--format", "csv", member.url, statement).stdout == f'plan\n"{lines[:22]}"\n{lines[23:]}'


def test_the_member_of_the_environment_is_asked(member: ScriptedMember, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SKERRY_URL", member.url)
    assert skerry("sql", "--format", "csv", "SELECT * FROM cities").stdout == "city,people\nBergen,291940\n,5\n"
    assert "oslo/" in skerry("submit", "SELECT * FROM cities").stdout
    assert skerry("ps").exit_code == 0


def test_on_a_terminal_progress_is_shown_and_ctrl_c_ends_the_query(member: ScriptedMember) -> None:
    """A real terminal, a real process, a real SIGINT."""
    master, terminal = pty.openpty()
    command = [sys.executable, "-c", "from skerry.cli.main import main; main()", "sql", member.url, "slow"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "TERM": "xterm", "COLUMNS": "100"}
    process = subprocess.Popen(command, stdin=terminal, stdout=terminal, stderr=terminal, env=environment)
    os.close(terminal)
    try:
        shown = b""
        while b"fragments 1/2" not in shown:
            shown += os.read(master, 1000)
        process.send_signal(signal.SIGINT)
        # Read to the end before it is waited for: it could not end with a terminal that takes no more.
        while b"cancelled" not in shown:
            shown += os.read(master, 1000)
        assert process.wait(WAIT_S) == 130
    finally:
        process.kill()
        process.wait()
        os.close(master)
    assert "bergen→oslo 1.4 MiB" in shown.decode()
    assert member.of(ClientStatus)
    assert member.wait_for(ClientClose)[0].query == member.of(ClientExecute)[0].query


def test_at_the_prompt_ctrl_c_ends_the_query_and_keeps_the_prompt(member: ScriptedMember) -> None:
    master, terminal = pty.openpty()
    command = [sys.executable, "-m", "skerry", "sql", member.url]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "TERM": "xterm", "COLUMNS": "100"}
    process = subprocess.Popen(command, stdin=terminal, stdout=terminal, stderr=terminal, env=environment)
    os.close(terminal)
    shown = b""

    def read_until(text: bytes) -> None:
        nonlocal shown
        while text not in shown:
            shown += os.read(master, 1000)
        shown = shown.partition(text)[2]

    try:
        read_until(b"oslo>")
        os.write(master, b"slow;\r")
        read_until(b"fragments 1/2")
        process.send_signal(signal.SIGINT)
        read_until(b"cancelled")
        read_until(b"oslo>")
        os.write(master, b"SELECT * FROM cities;\r")
        read_until(b"(2 rows, ")
        os.write(master, b"\\q\r")
        assert process.wait(WAIT_S) == 0
    finally:
        process.kill()
        process.wait()
        os.close(master)
    slow, _ = (query for query in member.of(ClientExecute) if query.sql in ("slow", "SELECT * FROM cities"))
    assert slow.query in [closed.query for closed in member.of(ClientClose)]

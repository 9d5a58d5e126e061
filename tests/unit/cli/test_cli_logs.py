"""Logs of several members in one place."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import sys
import threading
import warnings
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from skerry.cli.logs import Held, Phase, Record, is_shown, line_text, read_line, set_up_log, take_lines
from skerry.model.limits import HELD_LINES

NOW = datetime(2026, 1, 2, 3, 4, 5, 250_000, UTC)


@pytest.fixture
def written(capsys: pytest.CaptureFixture[str]) -> Iterator[pytest.CaptureFixture[str]]:
    """The log is as before in the end."""
    loggers = logging.getLogger("skerry"), logging.getLogger()
    before = [(each.handlers[:], each.level, each.propagate) for each in loggers]
    threads_failed = threading.excepthook
    yield capsys
    logging.captureWarnings(False)
    threading.excepthook = threads_failed
    for each, (handlers, level, propagates) in zip(loggers, before, strict=True):
        each.handlers[:], each.level, each.propagate = handlers, level, propagates


def test_a_member_for_up_writes_records_that_up_can_read(written: pytest.CaptureFixture[str]) -> None:
    set_up_log("oslo", is_json=True)
    log = logging.getLogger("skerry.member")
    log.debug("too much")
    try:
        raise ValueError("no")
    except ValueError:
        log.exception("query %s failed", "oslo/1")
    (line,) = written.readouterr().err.splitlines()
    record = read_line(line.encode())
    assert isinstance(record, Record)
    assert (record.level, record.text) == ("error", "query oslo/1 failed")
    assert record.lines.startswith("query oslo/1 failed\n  | Traceback")


def test_lines_of_one_turn_are_written_together_and_warnings_at_once(written: pytest.CaptureFixture[str]) -> None:
    set_up_log("oslo")
    log = logging.getLogger("skerry.member")

    def texts() -> list[str]:
        return [line.rpartition(" ")[2] for line in written.readouterr().err.splitlines()]

    async def turns() -> None:
        log.info("one")
        log.info("two")
        assert texts() == []
        await asyncio.sleep(0)
        assert texts() == ["one", "two"]
        log.info("three")
        log.warning("four")
        assert texts() == ["three", "four"]
        log.info("five")
        await asyncio.to_thread(log.info, "six")
        assert texts() == ["five", "six"]
        log.info("seven")

    asyncio.run(turns())
    assert texts() == ["seven"]


def test_other_libraries_and_threads_write_objects_too(written: pytest.CaptureFixture[str]) -> None:
    set_up_log("oslo", is_json=True)
    logging.getLogger("py4j").error("Cannot close it\nfuture: SqlError('a secret')")
    logging.getLogger("py4j").info("too much")
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.warn("it will go", FutureWarning, stacklevel=1)
    thread = threading.Thread(target=lambda: {}["a secret"], name="reader")
    thread.start()
    thread.join()
    lines = written.readouterr().err.splitlines()
    foreign, warning, failed = map(json.loads, lines)
    assert (foreign["layer"], foreign["text"]) == ("py4j", "Cannot close it")
    assert (warning["layer"], warning["level"]) == ("py.warnings", "warning")
    assert "it will go" in warning["text"]
    assert (failed["event"], failed["what"]) == ("work_failed", "reader")
    assert "KeyError" in failed["trace"]
    assert "a secret" not in failed["text"] + foreign["text"]


def test_text_is_for_people_and_debug_says_more(written: pytest.CaptureFixture[str]) -> None:
    set_up_log("oslo", is_debug=True)
    logging.getLogger("skerry.wire").debug("a frame")
    assert written.readouterr().err.endswith(" DEBUG   skerry.wire a frame\n")


@pytest.mark.parametrize("raw", [b"26/11/16 WARN NativeCodeLoader: no\n", b'{"at": 1}\n', b"\xff\n", b"\n"])
def test_what_a_member_did_not_log_is_taken_as_it_is(raw: bytes) -> None:
    assert read_line(raw) == raw.decode(errors="replace").rstrip()


RECORD = b'{"time": "%b", "level": "error", "text": "caf%b is gone"}\n'
TIME = b"2026-01-02T03:04:05.250+00:00"


def test_a_record_stays_one_whatever_its_bytes() -> None:
    record = read_line(RECORD % (TIME, b"\xe9"))
    assert isinstance(record, Record)
    assert (record.level, record.text) == ("error", "caf\ufffd is gone")


@pytest.mark.parametrize(
    "raw",
    [
        RECORD % (TIME, b"\xe9"),
        b"\xe9\n",
        b'{"x": ' + b"[" * 100_000 + b"\n",
        RECORD % (b"0001-01-01T00:00:00+14:00", b""),  # no clock has that time
        b"\x00\n",
        b'{"time": 1e999}\n',
    ],
)
def test_no_line_ends_the_reading(raw: bytes) -> None:
    """Nobody else would empty the pipe, and the member would stop when it is full."""
    shown: list[str] = []
    take_lines([raw, b"later\n"], lambda line: shown.append(line_text("oslo", 4, line)))
    assert len(shown) == 2
    assert shown[1] == "oslo  later"


def test_whoever_cannot_show_a_line_gets_the_next() -> None:
    taken: list[str] = []

    def take(line: object) -> None:
        taken.append(str(line))
        raise ValueError("no")

    take_lines([b"a\n", b"b\n"], take)
    assert taken == ["a", "a line of 2 bytes could not be shown (ValueError)", "b", taken[1]]


def test_the_log_is_utf_8_whatever_the_locale(monkeypatch: pytest.MonkeyPatch, written: object) -> None:
    out = io.BytesIO()
    monkeypatch.setattr(sys, "stderr", io.TextIOWrapper(out, encoding="latin-1", errors="strict"))
    set_up_log("oslo")
    logging.getLogger("skerry.wire").info("bergen→caf\xe9 \udce9")
    assert "bergen→café \\udce9\n" in out.getvalue().decode()


def test_every_line_names_its_member() -> None:
    forged = "\n03:04:05.250 ERROR   b\x1b"
    lines = line_text("oslo", 6, Record(NOW, "warning", f"a{forged}", trace=f"t{forged}")).split("\n")
    assert lines[0].startswith("oslo    ")
    assert lines[0].endswith(".250 WARNING a\\n03:04:05.250 ERROR   b\\x1b")
    assert lines[1:] == ["oslo      | t", "oslo      | 03:04:05.250 ERROR   b\\x1b"]
    assert line_text("bergen", 6, "from its JVM\x1b") == "bergen  from its JVM\\x1b"


@pytest.mark.parametrize(
    ("phase", "least"),
    [(Phase.STARTING, logging.WARNING), (Phase.UP, logging.WARNING), (Phase.STOPPING, logging.ERROR)],
)
def test_members_that_start_and_stop_together_say_less(phase: Phase, least: int) -> None:
    for level in (logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR):
        assert is_shown(Record(NOW, logging.getLevelName(level).lower(), "a"), phase) == (level >= least)
    assert is_shown("from its JVM", phase) == (phase is Phase.UP)


def test_what_was_not_shown_is_kept_for_a_while() -> None:
    held = Held()
    for number in range(2 * HELD_LINES):
        held.keep("oslo", f"line {number}")
    held.keep("bergen", Record(NOW, "info", "listening"))
    assert held.last("oslo", 2) == f"line {2 * HELD_LINES - 2}\nline {2 * HELD_LINES - 1}"
    assert held.last("oslo", 1000).count("\n") == HELD_LINES - 1
    assert (held.last("bergen", 2), held.last("tromso", 2)) == ("listening", "")

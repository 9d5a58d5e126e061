"""Events: a line for a person, fields for a machine, and no cost where nobody listens."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from skerry.member.loglines import Callers, JsonLines, TextLines, record_of
from skerry.model import trace
from skerry.model.errors import InternalError, Overloaded, SiteError, SkerryError, SqlError, UserError, quoting
from skerry.model.ids import ChannelId, QueryId
from skerry.model.limits import LOGGED_CALLERS
from skerry.model.position import sql_error
from skerry.wire.messages import Failure
from skerry.wire.values import error_of

QUERY = QueryId("oslo", "0123456789abcdef0123456789abcdef")
CHANNEL = ChannelId(QUERY, 3, "bergen", "oslo")


def events() -> Iterator[type[trace.Event]]:
    return (each for each in vars(trace).values() if isinstance(each, type) and issubclass(each, trace.Event))


def sample(kind: type[trace.Event]) -> trace.Event:
    values = {
        "QueryId": QUERY,
        "ChannelId": CHANNEL,
        "str": "text",
        "int": 7,
        "float": 0.5,
        "tuple[str, ...]": ("a", "b"),
        "tuple[int, ...]": (1, 2),
        "tuple[QueryId, ...]": (QUERY,),
        "Cause": trace.Cause("it broke", 300, may_quote=False),
        "QueryId | None": QUERY,
        "int | None": 7,
        "str | None": "text",
    }
    return kind(**{name: values[kind.__annotations__[name]] for name in kind.__struct_fields__})


def written(formatter: logging.Formatter, event: object, error: BaseException | None = None) -> str:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(formatter)
    info = (type(error), error, None) if error is not None else None
    handler.handle(logging.LogRecord("skerry.query", logging.INFO, "", 0, event, (), info))
    return stream.getvalue()


def test_every_event_is_a_line_and_an_object() -> None:
    kinds = [each for each in events() if each is not trace.Event]
    assert set(kinds) == set(trace.Event.__subclasses__())
    for kind in kinds:
        event = sample(kind)
        assert kind.__name__ not in str(event)  # a sentence, not a repr
        assert written(TextLines(), event).endswith(f"{event}\n")
        line = json.loads(written(JsonLines(), event))
        assert line["event"] == trace.name_of(event)
        assert line["text"] == str(event)
        assert trace.fields_of(event).keys() <= line.keys()


def test_ids_are_whole_in_fields_and_short_in_text() -> None:
    event = trace.ChannelInterrupted(CHANNEL, "reset")
    assert trace.fields_of(event) == {
        "query": f"oslo/{QUERY.local}",
        "edge": 3,
        "sender": "bergen",
        "receiver": "oslo",
        "reason": "reset",
    }
    assert str(event) == "oslo/0123456789ab edge 3 bergen→oslo: reset"
    assert trace.name_of(event) == "channel_interrupted"


def test_a_statement_is_told_only_where_it_is_given() -> None:
    assert str(trace.QueryReceived(QUERY, "ola")) == "query oslo/0123456789ab: asked by ola"
    assert str(trace.QueryReceived(QUERY, "ola", "SELECT 1")).endswith("asked by ola: SELECT 1")


FORGED = "no\n2026-01-01 00:00:00,000 INFO    skerry.query all is well\r"


def test_no_text_makes_a_line_of_its_own() -> None:
    cause = trace.Cause(FORGED, 300)
    for logs_sql in (True, False):
        for event in (
            trace.QueryFailed(QUERY, cause),
            trace.QueryReceived(QUERY, "ola", FORGED),
            trace.ChannelInterrupted(CHANNEL, FORGED),
            FORGED,  # another library's
        ):
            assert written(TextLines(logs_sql=logs_sql), event).count("\n") == 1
            assert "\r" not in written(TextLines(logs_sql=logs_sql), event)
            assert written(JsonLines(logs_sql=logs_sql), event).count("\n") == 1
        first, *others = written(TextLines(logs_sql=logs_sql), trace.WorkFailed("tick"), raised(FORGED)).splitlines()
        assert first.endswith("tick: unexpected error")
        assert others
        assert all(line.startswith("  | ") for line in others)


def test_no_text_of_a_query_steers_a_terminal() -> None:
    forged = trace.QueryFailed(QUERY, trace.Cause("a\x1b[2J\x07\x9b1m\u2028\u202e\u2066z", 300))
    text, line = written(TextLines(logs_sql=True), forged), written(JsonLines(logs_sql=True), forged)
    assert text.endswith("a\\x1b[2J\\x07\\u009b1m\\u2028\\u202e\\u2066z\n")
    assert line[:-1].isprintable()
    assert json.loads(line)["error"] == forged.error.text
    assert "\\x1b[2J" in written(TextLines(logs_sql=True), trace.WorkFailed("tick"), raised("\x1b[2J"))


@pytest.mark.parametrize(
    ("event", "field", "value", "text"),
    [
        (trace.TableUnread("b\udce9", "OSError"), "table", "b\\udce9", "table b\\udce9: Spark failed: OSError"),
        (trace.PeerLost("oslo", "b", "\ud83d\ude00"), "reason", "\\ud83d\\ude00", "oslo: \\ud83d\\ude00"),
        (
            trace.PeerLost("oslo", "b", "\\\udce9\U0001f600"),
            "reason",
            "\\\\udce9\U0001f600",
            "oslo: \\\\udce9\U0001f600",
        ),
        (trace.ChannelStalled(CHANNEL, float("nan")), "waited_s", None, None),
        (trace.ChannelStalled(CHANNEL, float("inf")), "waited_s", None, None),
    ],
)
def test_a_line_is_utf_8_and_json_for_strict_readers(
    event: trace.Event, field: str, value: object, text: str | None
) -> None:
    line = msgspec.json.decode(written(JsonLines(), event).encode())
    assert (line["event"], line[field]) == (trace.name_of(event), value)
    assert written(TextLines(), event).encode()
    if text is not None:
        assert line["text"] == text
        assert written(TextLines(), event).endswith(f" {text}\n")


def raised(text: str) -> Exception:
    """With a trace, and a cause that says the same."""
    try:
        try:
            raise KeyError(text)
        except KeyError as cause:
            raise ValueError(text) from cause
    except ValueError as error:
        return error


SECRET = "'a secret'"
SPARKS = "[CAST_INVALID_INPUT] The value 'a secret' cannot be cast"


def test_without_log_sql_no_failure_quotes() -> None:
    """Code, kind and place are told; words that are not all ours only where the configuration allows them."""
    wrong = sql_error("unexpected 'a secret'", "SELECT\n  id, 'a secret' FROM", 13)
    told: list[tuple[SkerryError, str]] = [
        (wrong, "SqlError (code 101) at line 2, column 7"),
        (SqlError(SPARKS), "SqlError (code 101)"),
        (quoting(SiteError(f"Spark failed: {SPARKS}")), "SiteError (code 300)"),
        (error_of(Failure(300, f"site bergen: {SPARKS}", "bergen", "")), "SiteError (code 300) of bergen"),
        (InternalError(SECRET), "InternalError (code 500)"),
        (UserError(SECRET), "UserError (code 100)"),
    ]
    for error, shown in told:
        cause = trace.cause_of(error)
        for event in (
            trace.QueryRefused(QUERY, cause),
            trace.QueryFailed(QUERY, cause),
            trace.FragmentsFailed(QUERY, "oslo", cause, 2),
            trace.ChannelFailed(CHANNEL, cause),
            trace.ConnectionRefused("task", cause),
            trace.QueryReleased(QUERY, "oslo", cause),
        ):
            text, line = written(TextLines(), event), json.loads(written(JsonLines(), event))
            assert shown in text
            assert shown in line["text"]
            assert (line["code"], line["kind"]) == (error.code, type(error).__name__)
            assert "secret" not in f"{text}{line}{event}"
            assert "secret" in written(TextLines(logs_sql=True), event)
    for error in (Overloaded("the spool is full"), SiteError("site bergen is down")):  # all words are ours
        assert written(TextLines(), trace.QueryFailed(QUERY, trace.cause_of(error))).endswith(f"{error.message}\n")
    traced = trace.SparkFailed(QUERY, 2, "NumberFormatException", "CAST_INVALID_INPUT")
    for formatter in (TextLines(), JsonLines()):
        text = written(formatter, traced, raised(SECRET))
        assert "query oslo/0123456789ab: fragment 2: Spark failed: NumberFormatException [CAST_INVALID_INPUT]" in text
        assert "builtins.KeyError" in text
        assert "builtins.ValueError" in text
        assert "test_trace.py" in text
        assert "secret" not in text
    assert "ValueError: 'a secret'" in written(TextLines(logs_sql=True), traced, raised(SECRET))


def test_every_line_about_a_query_says_who_asked_it() -> None:
    again = QueryId("oslo", f"{QUERY.local}~1")
    steps: list[trace.Event] = [
        trace.QueryPlanned(QUERY, "p", 1, 0.1),
        trace.ChannelOpened(CHANNEL, 0),
        trace.QueryEnded(QUERY, "failed", 0, 0.1, 0),
        trace.QueryReplanned(QUERY, "changed"),
        trace.QueryPlanned(again, "p", 1, 0.1),
        trace.WorkFailed("x", again),
        trace.QueryEnded(again, "complete", 1, 0.1, 0),
    ]
    text, lines = TextLines(), JsonLines("oslo")
    for formatter in (text, lines):
        written(formatter, trace.QueryReceived(QUERY, "anna at 10.0.0.7:5012"))
    for event in steps:
        assert written(text, event).endswith(" (for anna at 10.0.0.7:5012)\n")
        line = json.loads(written(lines, event))
        assert line["caller"] == "anna at 10.0.0.7:5012"
        assert line["text"].endswith(" (for anna at 10.0.0.7:5012)")
    assert "caller" not in json.loads(written(lines, trace.PeerConnected("oslo", "bergen")))
    assert "caller" not in json.loads(written(lines, trace.QueryFailed(QueryId("bergen", "1"), trace.Cause("x", 300))))


def test_lines_of_a_member_that_takes_part_name_the_user() -> None:
    lines = JsonLines("bergen")
    for event in (
        trace.QueryBegun(QUERY, "bergen", (1,), "anna"),
        trace.FragmentStarted(QUERY, "bergen", 1),
        trace.QueryReleased(QUERY, "bergen", trace.Cause("complete", 0)),
        trace.ReceiptGiven(QUERY, "bergen"),
    ):
        line = json.loads(written(lines, event))
        assert line["caller"] == "anna"
        assert line["text"].endswith(" (for anna)")
    nobody = json.loads(written(lines, trace.QueryBegun(QueryId("oslo", "1"), "bergen", (1,))))
    assert "caller" not in nobody


def test_callers_of_queries_that_run_are_kept_and_others_forgotten_in_time() -> None:
    callers = Callers()
    assert callers.of(trace.QueryReceived(QUERY, "anna")) == "anna"
    for number in range(2 * LOGGED_CALLERS):
        other = QueryId("oslo", f"{number}")
        callers.of(trace.QueryReceived(other, "ola"))
        assert callers.of(trace.QueryAnswered(other)) == "ola"
    assert callers.of(trace.QueryFailed(QUERY, trace.Cause("", 300))) == "anna"
    assert callers.of(trace.QueryAnswered(QueryId("oslo", "0"))) == ""
    for number in range(LOGGED_CALLERS):
        callers.of(trace.QueryReceived(QueryId("oslo", f"open {number}"), "ola"))
    assert callers.of(trace.QueryFailed(QUERY, trace.Cause("", 300))) == ""


def test_other_libraries_lines_and_traces_are_objects_too() -> None:
    line = json.loads(written(JsonLines(logs_sql=True), "plain\nmore", ValueError("wrong\nvalue")))
    assert (line["event"], line["text"], line["layer"]) == ("note", "plain\nmore", "query")
    assert "ValueError: wrong" in line["trace"]
    assert json.loads(written(JsonLines(), "plain\nmore"))["text"] == "plain"


@pytest.mark.parametrize(
    ("logger", "text", "shown"),
    [
        (
            "asyncio",
            "Exception in callback cb(1)(<Task finishe...secret-4711')>)\nhandle: …",
            "Exception in callback cb",
        ),
        ("asyncio", "Exception in callback <bound method X of X[secret]>()", "Exception in callback"),
        ("asyncio", "Task exception was never retrieved\nfuture: <Task …>", "Task exception was never retrieved"),
        ("asyncio", "Fatal error at secret", "Fatal error"),
        ("py4j", "Error while calling o1(2) at a.b", "Error while calling o1(2) at a.b"),
    ],
)
def test_of_another_library_s_line_no_object_is_shown(logger: str, text: str, shown: str) -> None:
    record = logging.LogRecord(logger, logging.ERROR, "", 0, text, (), None)
    assert json.loads(JsonLines().format(record))["text"] == shown
    assert TextLines().format(record).endswith(f" {logger} {shown}")
    assert json.loads(JsonLines(logs_sql=True).format(record))["text"] == text


def test_whatever_a_member_says_is_an_event() -> None:
    """Loggers are for events and for those who write them down."""
    folder = Path(trace.__file__).parents[1]
    loggers = [path for path in folder.rglob("*.py") if "getLogger" in path.read_text()]
    assert {path.relative_to(folder).as_posix() for path in loggers} == {
        "model/trace.py",
        "cli/logs.py",
        "spark/failures.py",  # PySpark's own, silenced
    }


def test_whoever_listens_gets_each_event(monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[trace.Event] = []
    monkeypatch.setattr(trace, "listeners", [heard.append])
    event = trace.PeerConnected("oslo", "bergen")
    trace.emit(event)
    assert heard == [event]


def test_an_event_goes_to_the_logger_of_its_layer(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "skerry")
    trace.emit(trace.PeerConnected("oslo", "bergen"))
    trace.emit(trace.DialFailed("oslo", "bergen", "silence"))  # debug: not told
    trace.emit(trace.WorkFailed("tick"), ValueError("x"))
    assert [(each.name, each.getMessage()) for each in caplog.records] == [
        ("skerry.wire", "oslo: bergen is up"),
        ("skerry.member", "tick: unexpected error"),
    ]
    assert caplog.records[1].exc_info


def test_a_lines_time_is_python_s_own() -> None:
    lines, plain = TextLines(), logging.Formatter()
    for created in (1.0, 1.25, 1.9994, 2.0, 86_400.5, 1.0):
        record = record_of(trace.WorkFailed("tick"))
        record.created, record.msecs = created, (created - int(created)) * 1000
        assert lines.format(record).startswith(f"{plain.formatTime(record)} ")

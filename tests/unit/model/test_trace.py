"""Events: a line for a person, fields for a machine, and no cost where nobody listens."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator

import pytest

from skerry.member.loglines import JsonLines, TextLines
from skerry.model import trace
from skerry.model.ids import ChannelId, QueryId

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
    }
    return kind(**{name: values[kind.__annotations__[name]] for name in kind.__struct_fields__})


def written(formatter: logging.Formatter, event: object, error: BaseException | None = None) -> str:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(formatter)
    info = (type(error), error, None) if error is not None else None
    handler.handle(logging.LogRecord("skerry.query", logging.INFO, "", 0, event, (), info))
    return stream.getvalue()


@pytest.mark.parametrize("kind", [each for each in events() if each is not trace.Event], ids=lambda kind: kind.__name__)
def test_every_event_is_a_line_and_an_object(kind: type[trace.Event]) -> None:
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


def test_a_newline_makes_no_line_of_its_own() -> None:
    forged = trace.QueryFailed(QUERY, "no\n2026-01-01 00:00:00,000 INFO skerry.query all is well\r", 300)
    text = written(TextLines(), forged)
    assert text.count("\n") == 1
    assert "\r" not in text
    assert written(JsonLines(), forged).count("\n") == 1


def test_no_text_of_a_query_steers_a_terminal() -> None:
    forged = trace.QueryFailed(QUERY, "a\x1b[2J\x07\x9b1m\u2028z", 300)
    text, line = written(TextLines(), forged), written(JsonLines(), forged)
    assert text.endswith("a\\x1b[2J\\x07\\u009b1m\\u2028z\n")
    assert line[:-1].isprintable()
    assert json.loads(line)["error"] == forged.error


def test_other_lines_and_traces_are_objects_too() -> None:
    line = json.loads(written(JsonLines(), "plain", ValueError("wrong\nvalue")))
    assert (line["event"], line["text"], line["layer"]) == ("note", "plain", "query")
    assert "ValueError: wrong" in line["trace"]


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

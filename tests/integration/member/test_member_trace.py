"""Events of queries over real members: a step each, with figures that agree with the answer and with each other."""

from __future__ import annotations

import json
import logging
from typing import TypeVar

import pytest

import skerry
from skerry.member.loglines import JsonLines, TextLines
from skerry.model import trace
from tests.integration.member.conftest import StartCluster
from tests.integration.member.member_sites import FEW, wait_until

pytestmark = pytest.mark.sail

JOIN = "SELECT t.id, f.name FROM oslo.ticks t JOIN bergen.few f ON t.id = f.id"
E = TypeVar("E", bound=trace.Event)


@pytest.fixture
def heard(monkeypatch: pytest.MonkeyPatch) -> list[trace.Event]:
    events: list[trace.Event] = []
    monkeypatch.setattr(trace, "listeners", [events.append])
    return events


def of(events: list[trace.Event], kind: type[E]) -> list[E]:
    return [event for event in events if isinstance(event, kind)]


def test_a_query_is_told_step_by_step(
    start_sail: StartCluster, heard: list[trace.Event], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "skerry")
    cluster = start_sail(more={"log_sql": True})
    with cluster.connect("oslo") as connection:
        heard.clear()
        caplog.clear()
        cursor = connection.cursor().execute(JOIN)
        assert len(cursor.fetchall()) == FEW
        query = cursor.query_id
        wait_until(lambda: of(heard, trace.QueryEnded), "the query has ended")
    (received,), (planned,), (ended,) = (
        of(heard, trace.QueryReceived),
        of(heard, trace.QueryPlanned),
        of(heard, trace.QueryEnded),
    )
    assert (received.query, received.sql) == (query, JOIN)
    assert received.caller.startswith("127.0.0.1:")
    assert (ended.outcome, ended.rows) == ("complete", FEW)
    begun, receipts = of(heard, trace.QueryBegun), of(heard, trace.ReceiptGiven)
    assert {each.member for each in begun} == {each.member for each in receipts} == {"oslo", "bergen"}
    started, done = of(heard, trace.FragmentStarted), of(heard, trace.FragmentDone)
    assert len(started) == len(done) == planned.fragments
    (opened,), (channel,) = of(heard, trace.ChannelOpened), of(heard, trace.ChannelEnded)
    assert opened.channel == channel.channel
    assert (channel.outcome, channel.rows) == ("finished", FEW)
    assert ended.sent_bytes == channel.sent_bytes
    order = [trace.name_of(event) for event in heard]
    steps = ["query_received", "query_planned", "query_begun", "fragment_started", "fragment_done", "query_ended"]
    assert [order.index(step) for step in steps] == sorted(order.index(step) for step in steps)
    # The log says the same, and each line about the query has its id.
    lines = [json.loads(JsonLines("oslo").format(record)) for record in caplog.records]
    told = [line for line in lines if line["event"] == "query_ended"]
    assert [(line["query"], line["rows"], line["member"]) for line in told] == [
        (f"oslo/{query.local}", FEW, "oslo"),
    ]


def test_what_fails_is_told_with_its_code_and_without_the_statement(
    start_sail: StartCluster, heard: list[trace.Event], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "skerry")
    cluster = start_sail()
    with cluster.connect("oslo") as connection:
        cursor = connection.cursor()
        with pytest.raises(skerry.ProgrammingError):
            cursor.execute("SELECT nothing_like_it FROM few")
        assert [each.error.code for each in of(heard, trace.QueryRefused)] == [101]
        cursor.execute("SELECT 'a secret' AS s FROM few LIMIT 1").fetchall()
        wait_until(lambda: of(heard, trace.QueryEnded), "the query has ended")
        assert "a secret" not in caplog.text
        asked = {
            "SELECT 'a secret FROM": (),  # no end of the literal
            "SELECT a FROM few WHERE 'a secret' = LIKE": (),
            "SELECT CAST(concat('a sec', 'ret', CAST(id AS STRING)) AS INT) FROM oslo.few": (),
            "SELECT CAST(concat(?, CAST(id AS STRING)) AS INT) FROM oslo.few": ("a secret",),
        }
        for statement, parameters in asked.items():
            with pytest.raises(skerry.Error):
                cursor.execute(statement, parameters).fetchall()
        # Two were refused before, with the first; of the others one had ended.
        wait_until(lambda: len(of(heard, trace.QueryEnded)) == 3, "all queries have ended")
    assert {each.sql for each in of(heard, trace.QueryReceived)} == {""}
    assert len(of(heard, trace.QueryRefused)) == 3
    text, objects = TextLines(), JsonLines("oslo")
    assert "secret" not in "".join(text.format(record) for record in caplog.records)
    lines = [json.loads(objects.format(record)) for record in caplog.records]
    assert "secret" not in str(lines)
    failed = [line for line in lines if line["event"] in ("query_failed", "query_refused", "fragments_failed")]
    assert {(line["kind"], line["code"]) for line in failed} == {("SqlError", 101)}
    # Sail's own words stay out, and where it happened does not.
    sparks = [line for line in lines if line["event"] == "spark_failed"]
    assert len(sparks) == 2
    assert all(line["query"].startswith("oslo/") and line["fragment"] for line in sparks)
    # Each line about a query says who asked it.
    assert all(line["caller"].startswith("127.0.0.1:") for line in lines if "query" in line)


@pytest.mark.parametrize("resume_s", [0, 30])
def test_a_failure_is_told_once_and_as_what_it_is(
    start_sail: StartCluster, heard: list[trace.Event], resume_s: float
) -> None:
    cluster = start_sail()
    with cluster.connect("oslo", resume_s=resume_s) as connection:
        with pytest.raises(skerry.ProgrammingError):
            connection.cursor().execute("SELECT nothing_like_it FROM few")
        assert [each.error.code for each in of(heard, trace.QueryRefused)] == [101]
        heard.clear()
        with pytest.raises(skerry.ProgrammingError):
            connection.cursor().execute("SELECT sum(1 / (id - id)) FROM oslo.few").fetchall()
        wait_until(lambda: of(heard, trace.QueryEnded), "the query has ended")
    assert len(of(heard, trace.QueryFailed)) == 1
    assert of(heard, trace.QueryRefused) == []

"""The cursor's core, by tables of what happens in which order."""

from __future__ import annotations

from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.client.cursor import CursorCore, PageSize, Phase
from skerry.model.errors import Cancelled, PeerError, SiteError, SqlError
from skerry.model.ids import QueryId
from skerry.model.results import Page, Schema
from skerry.wire.client_messages import ClientPage, ClientResult
from skerry.wire.messages import Failure

SIZE = PageSize(10, 1000)
SCHEMA = Schema((), b"")
FAILURE = Failure(101, "no such column", "oslo", "look again")


def page(number: int, last: bool = False, rows: int = 10) -> Page:
    return Page(number, (), rows, last)


def executed() -> CursorCore:
    core = CursorCore(QueryId("oslo", "0" * 32), count(1))
    assert core.execute("SELECT 1", [], size=SIZE, now=0.0).request == 1
    return core


def opened() -> CursorCore:
    core = executed()
    core.receive(ClientResult(1, SCHEMA, page(0)), 0.0)
    return core


@pytest.mark.parametrize(
    ("answer", "phase"),
    [
        (ClientResult(1, SCHEMA, page(0)), Phase.OPEN),
        (ClientResult(1, SCHEMA, page(0, last=True)), Phase.ENDED),
        (ClientResult(1, SCHEMA, page(0, last=True, rows=0)), Phase.ENDED),
        (ClientResult(1, update_count=0), Phase.ENDED),
        (ClientResult(1, error=FAILURE), Phase.FAILED),
        (ClientPage(1, error=FAILURE), Phase.FAILED),
    ],
)
def test_execute_is_answered(answer: ClientResult | ClientPage, phase: Phase) -> None:
    core = executed()
    assert not core.ready
    core.receive(answer, 0.0)
    assert core.phase is phase
    assert core.ready
    assert core.requests == ()


@pytest.mark.parametrize(
    "answer",
    [
        ClientResult(1),
        ClientResult(1, SCHEMA),
        ClientResult(1, SCHEMA, page(1)),
        ClientResult(1, page=page(0)),
        ClientPage(1, page(0)),
    ],
)
def test_a_wrong_answer_to_execute_is_the_members_fault(answer: ClientResult | ClientPage) -> None:
    core = executed()
    with pytest.raises(PeerError):
        core.receive(answer, 0.0)
    assert core.phase is Phase.EXECUTING


@pytest.mark.parametrize(
    "answer", [ClientPage(2), ClientPage(2, page(0)), ClientPage(2, page(2)), ClientResult(2, SCHEMA, page(1))]
)
def test_a_wrong_answer_to_fetch_is_the_members_fault(answer: ClientResult | ClientPage) -> None:
    core = opened()
    core.take()
    core.ask(1, SIZE)
    with pytest.raises(PeerError):
        core.receive(answer, 0.0)
    assert core.phase is Phase.OPEN


def test_pages_must_come_in_order() -> None:
    core = opened()
    core.take()
    (fetch,) = core.ask(2, SIZE)
    assert (fetch.page_number, fetch.pages) == (1, 2)
    with pytest.raises(PeerError, match="page 1 comes next, page 2 was answered"):
        core.receive(ClientPage(fetch.request, page(2)), 0.0)


def test_asks_on_demand_and_never_more_than_ahead() -> None:
    core = opened()
    assert core.ask(1, SIZE) == []  # page 0 is here and not taken
    core.take()
    (fetch,) = core.ask(1, SIZE)
    assert core.ask(1, SIZE) == []
    core.receive(ClientPage(fetch.request, page(1)), 0.0)
    assert core.ask(1, SIZE) == []
    (more,) = core.ask(3, SIZE)
    assert (more.page_number, more.pages) == (2, 2)


def test_a_window_is_opened_again_when_all_of_it_arrived_and_half_of_it_is_left() -> None:
    """A fetch says that all pages below it arrived: it may not be sent while some are under way."""
    core = opened()
    core.take()
    (fetch,) = core.ask(4, SIZE)
    assert (fetch.page_number, fetch.pages) == (1, 4)
    for number in (1, 2, 3):
        core.receive(ClientPage(fetch.request, page(number)), 0.0)
        core.take()
        assert core.ask(4, SIZE) == []
    assert core.requests == (fetch.request,)
    core.receive(ClientPage(fetch.request, page(4)), 0.0)
    assert core.requests == ()
    (again,) = core.ask(4, SIZE)
    assert (again.page_number, again.pages) == (5, 3)


def test_after_the_last_page_late_answers_are_dropped_and_nothing_is_asked() -> None:
    core = opened()
    core.take()
    (fetch,) = core.ask(2, SIZE)
    core.receive(ClientPage(fetch.request, page(1, last=True, rows=3)), 0.0)
    core.receive(ClientPage(fetch.request, error=Failure(100, "no such cursor")), 0.0)
    assert core.phase is Phase.ENDED
    assert core.rows_received == 13
    assert core.ask(2, SIZE) == []
    taken = core.take()
    assert taken is not None
    assert taken.number == 1
    assert core.take() is None
    assert core.close() is None


def test_pages_before_an_error_are_given_before_it() -> None:
    core = opened()
    core.take()
    (fetch,) = core.ask(2, SIZE)
    core.receive(ClientPage(fetch.request, page(1)), 0.0)
    core.receive(ClientPage(fetch.request, error=FAILURE), 0.0)
    assert core.take() == page(1)
    with pytest.raises(SqlError, match="no such column") as caught:
        core.take()
    assert (caught.value.member, caught.value.suggestion) == ("oslo", "look again")
    assert core.close() is None  # the error ended the query at the member too


@pytest.mark.parametrize("make", [executed, opened])
def test_close_tells_the_member_while_it_holds_the_query(make: type[CursorCore]) -> None:
    core = make()
    close = core.close()
    assert close is not None
    assert close.query == core.query
    assert core.phase is Phase.CLOSED
    assert core.close() is None
    core.receive(ClientResult(1, SCHEMA, page(0)), 0.0)  # late
    assert core.take() is None


def test_close_before_execute_says_nothing() -> None:
    assert CursorCore(QueryId("oslo", "0"), count(1)).close() is None


def test_cancel_wakes_whoever_waits() -> None:
    core = executed()
    assert core.cancel() is not None
    assert core.ready
    with pytest.raises(Cancelled):
        core.take()
    assert core.cancel() is None
    assert core.close() is None


def test_a_lost_member_fails_only_what_is_live() -> None:
    live, ended = opened(), executed()
    ended.receive(ClientResult(1, update_count=3), 0.0)
    for core in (live, ended):
        core.fail(SiteError("gone"))
    assert live.phase is Phase.FAILED
    assert ended.phase is Phase.ENDED
    assert "gone" in repr(live)


answers = st.builds(
    lambda result, request, number, last, empty, failed: (ClientResult if result else ClientPage)(
        request, **({"error": FAILURE} if failed else {} if empty else {"page": page(number, last)})
    ),
    st.booleans(),
    st.integers(0, 6),
    st.integers(0, 4),
    st.booleans(),
    st.booleans(),
    st.booleans(),
)


@given(st.lists(st.one_of(answers, st.sampled_from(["ask", "take", "cancel", "close"])), max_size=20))
def test_no_order_of_events_breaks_it(events: list[ClientResult | ClientPage | str]) -> None:
    """Whatever comes, pages are given in order and once, and a dead cursor asks nothing."""
    core = opened()
    taken = []
    for event in events:
        try:
            match event:
                case "ask":
                    asked = core.ask(2, SIZE)
                    assert not asked or core.phase is Phase.OPEN
                case "take" if core.ready:
                    taken.append(core.take())
                case "cancel":
                    core.cancel()
                case "close":
                    core.close()
                case ClientResult() | ClientPage():
                    core.receive(event, 0.0)
        except (PeerError, SqlError, Cancelled):
            continue
        assert len(core.requests) <= 2
    assert [some.number for some in taken if some] == list(range(len([some for some in taken if some])))

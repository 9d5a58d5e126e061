"""Which query ids are open, used, or closed before they began: every order of execute, close and time."""

from __future__ import annotations

import itertools

import pytest

from skerry.member.cursors import NO_LEASE, Cursors, Lease
from skerry.model.errors import Cancelled, Overloaded, SkerryError, UserError
from skerry.model.ids import QueryId
from skerry.model.limits import Limits

LIMITS = Limits(queries=3, marker_s=10.0)
ID = QueryId("oslo", "a")
CLIENT = object()

# What `execute` answers after these steps: "x" is execute, "c" close, "." more time than a marker lives.
STORIES: dict[str, str] = {
    "": "open",
    "x": "used",
    "c": "cancelled",
    "cc": "cancelled",
    "xc": "used",
    "xcc": "used",
    "xx": "used",
    "cx": "used",
    "cxx": "used",
    "cxc": "used",
    "c.": "open",
    "cc.": "open",
    "x.": "used",
    "x.c": "used",
    "xc.": "open",
    "cx.": "open",
    "c.x": "used",
    "c.c": "cancelled",
    "xc.c": "cancelled",
    "xcc.": "open",
}
NAMES: dict[type[SkerryError], str] = {Cancelled: "cancelled", UserError: "used"}


def execute(cursors: Cursors, now: float, query: QueryId = ID) -> str:
    try:
        cursors.open(query, CLIENT, now)
    except SkerryError as error:
        return NAMES[type(error)]
    return "open"


@pytest.mark.parametrize(("story", "answer"), STORIES.items(), ids=[story or "nothing" for story in STORIES])
def test_what_execute_answers_after(story: str, answer: str) -> None:
    cursors, now = Cursors(LIMITS), 0.0
    for step in story:
        now += 1
        if step == "x":
            execute(cursors, now)
        elif step == "c":
            cursors.close(ID, now)
        else:
            now += LIMITS.marker_s
    assert execute(cursors, now) == answer


@pytest.mark.parametrize("story", ["".join(steps) for n in range(1, 5) for steps in itertools.product("xc.", repeat=n)])
def test_an_id_is_open_at_most_once_and_a_close_is_never_lost(story: str) -> None:
    cursors, now, is_open, opened_at = Cursors(LIMITS), 0.0, False, -100.0
    closed_at = -100.0
    for step in story:
        now += 1
        if step == "x":
            answer = execute(cursors, now)
            assert answer != "open" or not is_open
            # A close that came while a marker lives stops the execute that follows it.
            assert answer != "open" or closed_at <= now - LIMITS.marker_s
            is_open, opened_at = (True, now) if answer == "open" else (is_open, opened_at)
        elif step == "c":
            assert cursors.close(ID, now) == is_open
            is_open, closed_at = False, now
        else:
            now += LIMITS.marker_s
        assert len(cursors) == is_open
        assert cursors.of(CLIENT) == ([ID] if is_open else [])
    cursors.close(ID, now)
    cursors.expire(now + LIMITS.marker_s)
    assert (len(cursors), cursors.markers) == (0, 0)
    assert execute(cursors, now + LIMITS.marker_s) == "open"


def test_a_client_that_goes_leaves_its_own_cursors_only() -> None:
    cursors, other = Cursors(LIMITS), object()
    first, second, third = (QueryId("oslo", name) for name in "abc")
    cursors.open(first, CLIENT, 0.0)
    cursors.open(second, other, 0.0)
    cursors.open(third, CLIENT, 0.0)
    assert cursors.of(CLIENT) == [first, third]
    for query in cursors.of(CLIENT):
        assert cursors.close(query, 1.0)
    assert cursors.of(CLIENT) == []
    assert cursors.of(other) == [second]


def test_too_many_open_queries_are_refused_and_the_id_may_be_used_later() -> None:
    cursors = Cursors(LIMITS)
    for name in "abc":
        cursors.open(QueryId("oslo", name), CLIENT, 0.0)
    with pytest.raises(Overloaded, match=r"limits\.queries"):
        cursors.open(QueryId("oslo", "d"), CLIENT, 0.0)
    cursors.close(QueryId("oslo", "a"), 1.0)
    cursors.open(QueryId("oslo", "d"), CLIENT, 1.0)
    assert len(cursors) == 3


def test_markers_are_bounded_and_the_oldest_goes_first() -> None:
    cursors = Cursors(LIMITS)
    ids = [QueryId("oslo", str(number)) for number in range(10 * LIMITS.queries + 1)]
    for query in ids:
        cursors.close(query, 0.0)
    assert cursors.markers == 10 * LIMITS.queries
    assert execute(cursors, 1.0, ids[0]) == "open"
    assert execute(cursors, 1.0, ids[1]) == "cancelled"


def test_a_marker_that_was_renewed_does_not_hold_up_the_others() -> None:
    cursors = Cursors(LIMITS)
    other = QueryId("oslo", "b")
    cursors.close(ID, 0.0)
    cursors.close(other, 1.0)
    cursors.close(ID, 9.0)
    cursors.expire(11.5)
    assert cursors.markers == 1
    assert execute(cursors, 11.5, other) == "open"
    assert execute(cursors, 11.5) == "cancelled"


# --- cursors without a connection ---------------------------------------------------------------------
RESUMES, DETACHED = Lease(30.0), Lease(30.0, is_detached=True)


@pytest.mark.parametrize(
    ("lease", "is_goodbye", "ends"),
    [
        (NO_LEASE, False, True),
        (NO_LEASE, True, True),
        (RESUMES, False, False),
        (RESUMES, True, True),
        (DETACHED, False, False),
        (DETACHED, True, False),
    ],
)
def test_what_ends_with_its_connection(lease: Lease, is_goodbye: bool, ends: bool) -> None:
    cursors = Cursors(LIMITS)
    cursors.open(ID, CLIENT, 0.0, lease)
    if lease.is_detached:
        cursors.ready(ID, 5.0)
        cursors.attach(ID, CLIENT)
    assert cursors.gone(CLIENT, 10.0, is_goodbye=is_goodbye) == ([ID] if ends else [])
    if not ends:
        assert cursors.expired(39.9) == []
        assert cursors.expired(40.0) == [ID]


def test_nobody_s_cursor_is_kept_for_its_lease_and_somebody_s_for_ever() -> None:
    cursors, other = Cursors(LIMITS), object()
    cursors.open(ID, CLIENT, 0.0, DETACHED)
    assert cursors.of(CLIENT) == []
    assert cursors.expired(1e9) == []  # a query that runs is no result that nobody came for
    cursors.ready(ID, 10.0)
    assert cursors.expired(39.0) == []
    assert cursors.expired(40.0) == [ID]
    cursors.ready(ID, 35.0)
    assert cursors.expired(40.0) == [ID]
    cursors.attach(ID, CLIENT)
    assert cursors.expired(1e9) == []
    # Of two connections the newer one counts; the end of the older one changes nothing.
    cursors.attach(ID, other)
    assert cursors.gone(CLIENT, 50.0, is_goodbye=False) == []
    assert cursors.of(other) == [ID]
    assert cursors.expired(1e9) == []
    assert cursors.keeps(ID)
    assert cursors.close(ID, 60.0)
    assert not cursors.keeps(ID)
    with pytest.raises(Cancelled, match="is not open here"):
        cursors.attach(ID, other)


def test_nobody_alone_keeps_the_others_out() -> None:
    cursors = Cursors(Limits(queries=30))
    for number in range(27):
        cursors.open(QueryId("oslo", f"a{number}"), CLIENT, 0.0, Lease(300.0, is_detached=True), "ann", "ann")
    with pytest.raises(Overloaded, match="the last 3 are for others"):
        cursors.open(QueryId("oslo", "a27"), CLIENT, 0.0, NO_LEASE, "ann", "ann")
    for number in range(3):
        cursors.open(QueryId("oslo", f"b{number}"), CLIENT, 0.0, NO_LEASE, "bob", "bob")
    with pytest.raises(Overloaded, match="30 queries are open here"):
        cursors.open(QueryId("oslo", "c"), CLIENT, 0.0, NO_LEASE, "cem", "cem")

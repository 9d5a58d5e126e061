"""The manager of an elastic group-by, message by message (docs/protocol.md, 16)."""

from __future__ import annotations

import pytest

from skerry.exchange.groupby.contract import Conclude, Forget, Instruction, Send
from skerry.exchange.groupby.manager import ManagerCore, ManagerPhase
from skerry.exchange.groupby.strangers import answer
from skerry.model.errors import Cancelled, InternalError, PeerError, SiteError
from skerry.model.ids import GroupById, QueryId
from skerry.model.limits import GroupByLimits
from skerry.model.ranges import PLACES, Range, first_table
from skerry.wire.groupby_messages import (
    Count,
    Dismiss,
    Dismissed,
    End,
    Ended,
    Failed,
    Finish,
    FromManager,
    Give,
    Given,
    HandOver,
    Online,
    Recruit,
    Recruited,
    Redirect,
    Redirected,
    SenderDone,
    Spill,
    Split,
)

GROUP = GroupById(QueryId("boss", "0" * 32), 1)
LIMITS = GroupByLimits()
HALF = PLACES // 2
SENDERS = ("s", "t")


def manager(**candidates: int) -> ManagerCore:
    return ManagerCore(GROUP, "boss", SENDERS, candidates, LIMITS, 0.0)


def said(instructions: list[Instruction]) -> list[tuple[str, type[FromManager]]]:
    return [(each.to, type(each.message)) for each in instructions if isinstance(each, Send)]  # type: ignore[misc]


def split(number: int = 1, at: int = HALF) -> Split:
    return Split(GROUP, number, at, 100, 1000)


def grown(**candidates: int) -> ManagerCore:
    """After its first split, over a and b."""
    core = manager(a=9, b=8, **candidates)
    core.received("boss", split(), 0.0)
    for name in "ab":
        core.received(name, Recruited(GROUP, is_taken=True), 0.0)
    for name in "ab":
        core.received(name, Online(GROUP, 2), 0.0)
    assert core.table.members == ("a", "b")
    return core


def counting(**candidates: int) -> ManagerCore:
    core = grown(**candidates)
    core.received("s", SenderDone(GROUP, {"boss": 3, "a": 4}), 0.0)
    core.received("t", SenderDone(GROUP, {"b": 5}), 0.0)
    assert core.phase is ManagerPhase.COUNTING
    return core


def test_first_split_recruits_two_with_most_room_and_redirects_all_when_both_are_online() -> None:
    core = manager(a=1, b=3, c=2)
    assert said(core.received("boss", split(), 0.0)) == [("b", Recruit), ("c", Recruit)]
    assert core.received("b", Recruited(GROUP, is_taken=True), 0.0) == []
    (hand_over,) = core.received("c", Recruited(GROUP, is_taken=True), 0.0)
    assert isinstance(hand_over, Send)
    assert isinstance(hand_over.message, HandOver)
    assert (hand_over.to, hand_over.message.to) == ("boss", ("b", "c"))
    assert hand_over.message.table.ranges == (Range(0, HALF, "b"), Range(HALF, PLACES, "c"))
    assert core.table == first_table("boss")
    assert core.received("b", Online(GROUP, 2), 0.0) == core.received("b", Online(GROUP, 2), 0.0) == []
    redirects = core.received("c", Online(GROUP, 2), 0.0)
    assert said(redirects) == [(name, Redirect) for name in ("s", "t", "boss", "b", "c")]
    assert core.table == hand_over.message.table


def test_redirect_without_effect_is_said_again() -> None:
    core = grown()
    for name in ("t", "boss", "a", "b"):
        core.received(name, Redirected(GROUP, 2, is_sender=name == "t"), 0.0)
    core.received("s", Redirected(GROUP, 1, is_sender=True), 0.0)
    assert said(core.tick(LIMITS.repeat_s)) == [("s", Redirect)]
    core.received("s", Redirected(GROUP, 2, is_sender=True), 1.0)
    assert core.tick(3.0) == []


def test_member_with_two_parts_is_told_until_both_know() -> None:
    core = ManagerCore(GROUP, "boss", ("a",), {"a": 1, "b": 1}, LIMITS, 0.0)
    core.received("boss", split(), 0.0)
    for name in "ab":
        core.received(name, Recruited(GROUP, is_taken=True), 0.0)
    for name in "ab":
        core.received(name, Online(GROUP, 2), 0.0)
    for name in ("a", "b", "boss"):
        core.received(name, Redirected(GROUP, 2, is_sender=False), 0.0)
    assert said(core.tick(LIMITS.repeat_s)) == [("a", Redirect)]


def test_with_one_candidate_the_manager_s_member_keeps_half() -> None:
    core = manager(a=1)
    core.received("boss", split(at=77), 0.0)
    core.received("a", Recruited(GROUP, is_taken=True), 0.0)
    core.received("a", Online(GROUP, 2), 0.0)
    assert core.table.ranges == (Range(0, 77, "boss"), Range(77, PLACES, "a"))


def test_without_candidates_a_wish_is_answered_with_spill_as_often_as_it_comes() -> None:
    core = manager(a=0)
    spill = [Send("boss", Spill(GROUP, 1))]
    assert core.received("boss", split(), 0.0) == spill
    assert core.received("boss", split(), 0.0) == spill


def test_in_the_place_of_one_that_refuses_is_silent_or_lost_another_is_asked() -> None:
    core = grown(c=5, d=4, e=3, f=2)
    assert said(core.received("a", split(1, 9), 1.0)) == [("c", Recruit)]
    refused = core.received("c", Recruited(GROUP, is_taken=False), 1.0)
    assert said(refused) == [("c", Dismiss), ("d", Recruit)]
    assert said(core.lost("d", SiteError("site d is down"), 1.0)) == [("d", Dismiss), ("e", Recruit)]
    assert ("f", Recruit) in said(core.tick(1.0 + LIMITS.recruit_s))
    # It was only slow: it must not believe that it is a worker.
    assert said(core.received("e", Recruited(GROUP, is_taken=True), 7.0)) == [("e", Dismiss)]
    core.received("e", Dismissed(GROUP), 7.0)
    core.received("f", Recruited(GROUP, is_taken=True), 7.0)
    core.received("f", Online(GROUP, 3), 7.0)
    assert core.table.of("f") == [Range(9, HALF, "f")]


def test_one_split_at_a_time() -> None:
    core = grown(c=5, d=4)
    assert said(core.received("a", split(1, 9), 1.0)) == [("c", Recruit)]
    assert core.received("b", split(1, HALF + 9), 1.0) == []
    core.received("c", Recruited(GROUP, is_taken=True), 1.0)
    assert ("d", Recruit) in said(core.received("c", Online(GROUP, 3), 1.0))
    # The wish that was fulfilled comes again.
    assert core.received("a", split(1, 9), 1.0) == []


def test_a_cut_outside_of_the_worker_s_range_is_a_peers_mistake() -> None:
    core = grown(c=5)
    with pytest.raises(PeerError, match="not inside its range"):
        core.received("a", split(1, HALF), 1.0)


def test_senders_alone_are_done() -> None:
    with pytest.raises(PeerError, match="no sender"):
        grown().received("a", SenderDone(GROUP, {}), 1.0)


def test_no_count_while_a_split_is_under_way() -> None:
    core = grown(c=5)
    core.received("a", split(1, 9), 1.0)
    core.received("s", SenderDone(GROUP, {"a": 1}), 1.0)
    assert core.received("t", SenderDone(GROUP, {"a": 1}), 1.0) == []
    core.received("c", Recruited(GROUP, is_taken=True), 1.0)
    finishes = [each for each in said(core.received("c", Online(GROUP, 3), 1.0)) if each[1] is Finish]
    assert finishes == [("a", Finish), ("c", Finish), ("b", Finish)]


def test_complete_only_when_the_weights_are_what_was_sent() -> None:
    core = counting()
    assert core.received("a", Count(GROUP, 1, 7), 1.0) == []
    assert core.received("b", Count(GROUP, 1, 4), 1.0) == []
    again = said(core.tick(1.0 + LIMITS.recount_s))
    assert [each for each in again if each[1] is Finish] == [("a", Finish), ("b", Finish)]
    core.received("a", Count(GROUP, 2, 7), 2.0)
    assert said(core.received("b", Count(GROUP, 2, 5), 2.0)) == [("a", Give), ("b", Give)]
    assert core.received("a", Given(GROUP, 3), 2.0) == core.received("a", Given(GROUP, 3), 2.0) == []
    ends = core.received("b", Given(GROUP, 3), 2.0)
    assert ends[0] == Conclude(None)
    assert said(ends) == [(name, End) for name in ("a", "b", "boss", "s", "t")]
    for name in ("a", "b", "boss", "s"):
        assert core.received(name, Ended(GROUP), 2.0) == []
    assert core.received("t", Ended(GROUP), 2.0) == [Forget(())]
    assert (core.phase, core.deadline) == (ManagerPhase.OVER, None)


def test_counts_of_a_round_before_say_nothing() -> None:
    core = counting(c=5)
    core.received("a", Count(GROUP, 1, 7), 1.0)
    # Half of what a has counted goes to c: b's count alone would make the sum right.
    assert ("c", Recruit) in said(core.received("a", split(1, 9), 1.0))
    assert core.phase is ManagerPhase.GROWING
    assert core.received("b", Count(GROUP, 1, 5), 1.0) == []
    core.received("c", Recruited(GROUP, is_taken=True), 1.0)
    core.received("c", Online(GROUP, 3), 1.0)
    core.received("b", Count(GROUP, 1, 5), 1.0)
    core.received("a", Count(GROUP, 1, 7), 1.0)
    assert core.received("c", Count(GROUP, 1, 0), 1.0) == []
    assert core.phase is ManagerPhase.COUNTING


def test_without_progress_it_fails_and_says_who_has_what() -> None:
    core = counting()
    core.received("a", Count(GROUP, 1, 7), 5.0)
    core.received("b", Count(GROUP, 1, 4), 5.0)
    assert core.tick(LIMITS.count_s) != []
    concluded = core.tick(5.0 + LIMITS.count_s)[0]
    assert isinstance(concluded, Conclude)
    assert isinstance(concluded.error, SiteError)
    assert "11 of 12 rows came" in str(concluded.error)
    assert "sent: s 7, t 5" in str(concluded.error)


def test_more_rows_than_were_sent_are_a_mistake_of_ours() -> None:
    core = counting()
    core.received("a", Count(GROUP, 1, 8), 1.0)
    concluded = core.received("b", Count(GROUP, 1, 5), 1.0)[0]
    assert isinstance(concluded, Conclude)
    assert isinstance(concluded.error, InternalError)


@pytest.mark.parametrize("name", ["s", "a", "boss"])
def test_who_is_needed_ends_it_for_all_when_it_is_lost(name: str) -> None:
    core = grown()
    error = SiteError(f"site {name} is down")
    instructions = core.lost(name, error, 1.0)
    assert instructions[0] == Conclude(error)
    assert {to for to, _ in said(instructions)} == {"s", "t", "boss", "a", "b"}
    assert core.cancel(Cancelled("late"), 1.0) == []


def test_when_all_rows_are_there_senders_may_go_and_workers_that_have_given() -> None:
    core = counting()
    core.received("a", Count(GROUP, 1, 7), 1.0)
    core.received("b", Count(GROUP, 1, 5), 1.0)
    assert core.lost("s", SiteError("site s is down"), 1.0) == []
    core.received("a", Given(GROUP, 1), 1.0)
    assert core.lost("a", SiteError("site a is down"), 1.0) == []
    error = SiteError("site b is down")
    assert core.lost("b", error, 1.0)[0] == Conclude(error)


def test_end_goes_to_those_too_that_were_only_asked() -> None:
    core = grown(c=5, d=4)
    core.received("a", split(1, 9), 1.0)
    core.received("c", Recruited(GROUP, is_taken=False), 1.0)
    ends = said(core.cancel(Cancelled("enough"), 1.0))
    assert {to for to, _ in ends} == {"s", "t", "boss", "a", "b", "c", "d"}


def test_end_is_said_again_and_given_up_after_a_while() -> None:
    core = grown()
    core.cancel(Cancelled("enough"), 0.0)
    for name in ("s", "t", "boss", "a"):
        core.received(name, Ended(GROUP), 0.0)
    assert said(core.tick(LIMITS.repeat_s)) == [("b", End)]
    assert core.tick(LIMITS.end_s) == [Forget(("b",))]
    # Whatever comes late hears of the end.
    assert said(core.received("b", split(), 20.0)) == [("b", End)]


def test_manager_says_something_from_time_to_time() -> None:
    core = manager()
    assert core.deadline == LIMITS.alive_s
    assert said(core.tick(LIMITS.alive_s)) == [("s", Redirect), ("t", Redirect), ("boss", Redirect)]


def test_sender_that_is_silent_is_missed_though_its_member_answers_as_a_worker() -> None:
    core = ManagerCore(GROUP, "boss", ("a",), {"a": 1}, LIMITS, 0.0)
    core.received("boss", split(), 0.0)
    core.received("a", Recruited(GROUP, is_taken=True), 0.0)
    core.received("a", Online(GROUP, 2), 0.0)
    now = 0.0
    while now < LIMITS.lease_s + LIMITS.alive_s and core.phase is ManagerPhase.GROWING:
        now += LIMITS.alive_s
        core.tick(now)
        for name in ("a", "boss"):
            core.received(name, Redirected(GROUP, 2, is_sender=False), now)
    assert isinstance(core.error, SiteError)
    assert "nothing was heard of a" in str(core.error)


def test_who_knows_nothing_of_it_gives_everybody_an_end() -> None:
    assert answer("m", End(GROUP)) == Ended(GROUP)
    assert answer("m", Dismiss(GROUP)) == Dismissed(GROUP)
    assert answer("m", Ended(GROUP)) is None
    assert isinstance(answer("m", Redirect(GROUP, first_table("boss"))), Failed)
    assert isinstance(answer("m", Online(GROUP, 2)), End)

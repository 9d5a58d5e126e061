"""Rows of an edge and seconds of Spark: who may say how many, and who notices that they are too many."""

from __future__ import annotations

import msgspec
import pytest

from skerry.exchange.intake import Intake
from skerry.member.caps import Caps, caps_of, crowded, crowded_result, too_many_rows, too_much_work
from skerry.member.clientoptions import read_options
from skerry.member.query import Instruction, Phase, QueryCore, QueryFailed, Send
from skerry.model.errors import Overloaded, UserError
from skerry.model.fragment import Count
from skerry.model.limits import Limits
from skerry.model.progress import FragmentProgress
from skerry.wire.messages import Cancel, Execute, FragmentDone, Message, Progress, Receipt
from tests.unit.member.member_samples import QUERY, TIMEOUT_S, plan_of, sealed

PLAN = plan_of("bergen", "oslo", "tromso")  # oslo (1) and tromso (2) send on edge 1 to bergen (3)
LIMITS = Limits(edge_rows=100, spark_s=2.5)


@pytest.mark.parametrize(
    ("asked", "limits", "caps"),
    [
        ({}, Limits(), Caps()),
        ({}, LIMITS, Caps(100, 2500)),
        ({"edge_rows": "0", "spark_s": "0"}, LIMITS, Caps(100, 2500)),
        ({"edge_rows": "7", "spark_s": "0.5"}, LIMITS, Caps(7, 500)),
        ({"edge_rows": "101", "spark_s": "2.6"}, LIMITS, Caps(100, 2500)),
        ({"edge_rows": "101"}, Limits(), Caps(101, 0)),
    ],
)
def test_a_client_asks_for_less_and_never_for_more(asked: dict[str, str], limits: Limits, caps: Caps) -> None:
    assert read_options(asked, limits).caps == caps


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        *(({"edge_rows": text}, "edge_rows is a number of rows") for text in ("-1", "1.5", "many", "", "9" * 20)),
        *(({"spark_s": text}, "spark_s is a number of seconds") for text in ("-1", "nan", "inf", "", "0.0001")),
    ],
)
def test_what_is_no_cap_is_refused(asked: dict[str, str], message: str) -> None:
    with pytest.raises(UserError, match=message):
        read_options(asked, LIMITS)


def test_caps_travel_in_the_options_and_those_that_are_off_do_not() -> None:
    assert Caps().options() == {}
    for caps in (Caps(), Caps(5), Caps(0, 7), Caps(5, 7)):
        assert caps_of({"fault_policy": "wait", **caps.options()}) == caps


@pytest.mark.parametrize("told", [-1, "many", "5"])
def test_nonsense_of_a_peer_is_no_cap_and_the_members_own_holds(told: int | str) -> None:
    assert caps_of({"row_cap": told, "work_cap": told}).within(Caps.of(LIMITS)) == Caps(100, 2500)


def test_as_many_rows_as_the_cap_are_not_too_many() -> None:
    assert too_many_rows(Caps(10), 10, "oslo", 1) is None
    assert too_many_rows(Caps(), 10**12, "oslo", 1) is None
    over = too_many_rows(Caps(10), 11, "oslo", 4)
    assert over is not None
    assert over.message == "site oslo: fragment 4 gave more than 10 rows to its edge (edge_rows)"
    assert "limits.edge_rows" in over.suggestion


def test_the_jobs_of_one_member_count_together() -> None:
    assert too_much_work(Caps(0, 1000), [0.5, 0.5], "oslo") is None
    assert too_much_work(Caps(), [1e9], "oslo") is None
    over = too_much_work(Caps(0, 1000), [0.5, 0.6], "oslo")
    assert over is not None
    assert over.message == "site oslo: its jobs for the query took more than 1 s of Spark (spark_s)"


def progress_of(rows: dict[int, int]) -> dict[int, FragmentProgress]:
    return {each.id: FragmentProgress(each.id, each.member, "running", rows[each.id], 0) for each in PLAN.fragments}


def test_all_who_send_on_an_edge_count_together_and_no_others() -> None:
    assert crowded(Caps(10), PLAN, progress_of({1: 5, 2: 5, 3: 10})) is None
    assert crowded(Caps(), PLAN, progress_of({1: 50, 2: 50, 3: 100})) is None
    over = crowded(Caps(10), PLAN, progress_of({1: 5, 2: 6, 3: 0}))
    assert over is not None
    assert over.message == "edge 1 got more than 10 rows, from fragment 1 at oslo and fragment 2 at tromso (edge_rows)"


def test_the_rows_of_a_result_count_before_their_senders_tell() -> None:
    assert crowded_result(Caps(10), PLAN, 10) is None
    assert crowded_result(Caps(), PLAN, 10**12) is None
    over = crowded_result(Caps(10), PLAN, 11)
    assert over is not None
    assert "got more than 10 rows, from fragment 3 at" in over.message
    assert crowded_result(Caps(10), msgspec.structs.replace(PLAN, ends_in=Count((3,))), 11) is None


def test_rows_that_are_only_counted_are_on_no_edge() -> None:
    plan = sealed(msgspec.structs.replace(PLAN, ends_in=Count((3,))))
    assert crowded(Caps(10), plan, progress_of({1: 5, 2: 5, 3: 11})) is None


def core_of(caps: Caps) -> QueryCore:
    return QueryCore(QUERY, PLAN, {}, TIMEOUT_S, Limits(), 0.0, {"fault_policy": "fail"}, caps=caps)


def after(core: QueryCore, *messages: Message) -> list[Instruction]:
    return [made for message in messages for made in core.receive(message.member, message, 1.0)]  # type: ignore[attr-defined]


def test_every_participant_is_told_the_caps() -> None:
    sent = [each.message for each in core_of(Caps(10, 2500)).start() if isinstance(each, Send)]
    assert [each.options for each in sent if isinstance(each, Execute)] == [
        {"fault_policy": "fail", "row_cap": 10, "work_cap": 2500}
    ] * 3


def running(fragment: int, member: str, rows: int) -> Progress:
    return Progress(QUERY, member, (FragmentProgress(fragment, member, "running", rows, 0),), ())


@pytest.mark.parametrize(
    "last", [running(2, "tromso", 6), FragmentDone(QUERY, "tromso", 2, 6, 0, 0.5)], ids=["while it runs", "at its end"]
)
def test_the_initiator_adds_up_and_cancels_everywhere(last: Message) -> None:
    core = core_of(Caps(10))
    assert after(core, running(1, "oslo", 5), running(2, "tromso", 5)) == []
    failed, *cancels = after(core, last)
    assert isinstance(failed, QueryFailed)
    assert isinstance(failed.error, Overloaded)
    assert [each.member for each in cancels if isinstance(each, Send) and isinstance(each.message, Cancel)] == [
        "bergen",
        "oslo",
        "tromso",
    ]
    after(core, *(Receipt(QUERY, member) for member in core.participants))
    assert core.phase is Phase.ENDED
    core.validate()


def test_the_books_tell_of_each_batch_and_count_a_partition_once() -> None:
    seen: list[int] = []
    intake = Intake(1, True, lambda: seen.append(intake.rows))
    for attempt in ((0, 1), (0, 2), (1, 3)):
        intake.open(attempt)
    intake.batch((0, 1), 10, 80, 1)
    intake.batch((0, 2), 4, 32, 1)  # the same rows again, by another attempt
    intake.batch((1, 3), 5, 40, 1)
    assert seen == [10, 10, 15]
    intake.lost((0, 1))
    assert intake.rows == 9


def test_where_tasks_run_once_all_rows_count() -> None:
    intake = Intake(1, False)
    for attempt in ((-1, 1), (-1, 2)):
        intake.open(attempt)
        intake.batch(attempt, 10, 80, 1)
    assert intake.rows == 20

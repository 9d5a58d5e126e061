"""The participant's side of a query's life: whatever happens, it ends in Release and a receipt."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from skerry.member.query import Send
from skerry.member.task import Release, RunFragment, StopFragment, TaskCore, TaskInstruction, TaskPhase
from skerry.model.errors import Overloaded, PeerError, SiteError, TimedOut
from skerry.model.fragment import Plan
from skerry.wire.messages import Cancel, FragmentDone, PlanRequest, Receipt, Started
from tests.unit.member.member_samples import QUERY, SCHEMA, TIMEOUT_S, execute_of, fanned_plan, plan_of

PLAN = plan_of("bergen", "tromso", "tromso")  # tromso runs fragments 1 and 2
FANNED = fanned_plan()
Step = Callable[[TaskCore], list[TaskInstruction]]
RECEIPT = Send("oslo", Receipt(QUERY, "tromso"))


def new_task(plan: Plan | None = PLAN) -> TaskCore:
    core = TaskCore(execute_of(PLAN, "tromso"), "tromso", 0.0)
    if plan is not None:
        core.begin(plan)
    return core


def ran(fragment: int) -> Step:
    return lambda core: core.fragment_done(fragment, 5, 50, 0.1)


def taken(fragment: int) -> Step:
    return lambda core: core.output_taken(fragment, "bergen")


def failed(core: TaskCore) -> list[TaskInstruction]:
    return core.failed(SiteError("disk full"))


def cancelled(core: TaskCore) -> list[TaskInstruction]:
    return core.cancelled("closed")


def initiator_lost(core: TaskCore) -> list[TaskInstruction]:
    return core.initiator_lost()


def out_of_time(core: TaskCore) -> list[TaskInstruction]:
    return core.tick(TIMEOUT_S + 1)


def plan_comes(core: TaskCore) -> list[TaskInstruction]:
    return core.plan_arrived(PLAN)


def test_a_known_plan_runs_at_once() -> None:
    core = TaskCore(execute_of(PLAN, "tromso"), "tromso", 0.0)
    assert core.begin(PLAN) == [RunFragment(PLAN.fragments[0]), RunFragment(PLAN.fragments[1])]
    assert core.phase is TaskPhase.RUNNING
    core.validate()


def test_an_unknown_plan_is_asked_for() -> None:
    core = TaskCore(execute_of(PLAN, "tromso"), "tromso", 0.0)
    assert core.begin(None) == [Send("oslo", PlanRequest(QUERY, QUERY.local, PLAN.plan_id))]
    assert core.phase is TaskPhase.PLANNING
    assert [type(each) for each in core.plan_arrived(PLAN)] == [RunFragment, RunFragment]
    assert core.plan_arrived(PLAN) == []
    core.validate()


@pytest.mark.parametrize(
    "plan",
    [None, plan_of("bergen"), msgspec.structs.replace(PLAN, plan_id="other"), plan_of("tromso", "bergen")],
    ids=["forgotten", "without its fragments", "another", "of others"],
)
def test_a_wrong_plan_ends_the_query(plan: Plan | None) -> None:
    core = new_task(None)
    core.begin(None)
    cancel, release = core.plan_arrived(plan)
    assert isinstance(cancel, Send)
    assert isinstance(cancel.message, Cancel)
    assert isinstance(release, Release)
    assert core.released() == [RECEIPT]
    core.validate()


@pytest.mark.parametrize(
    ("changed", "wrong"),
    [({"fragments": (1, 1)}, "twice"), ({"schema_info": {}}, "its tables are others")],
    ids=["a fragment twice", "without its tables"],
)
def test_an_execute_that_does_not_fit_its_plan_ends_the_query(changed: dict[str, Any], wrong: str) -> None:
    plan = plan_of("bergen", "tromso")
    core = TaskCore(msgspec.structs.replace(execute_of(plan, "tromso"), **changed), "tromso", 0.0)
    cancel, _ = core.begin(plan)
    assert isinstance(cancel, Send)
    assert isinstance(cancel.message, Cancel)
    assert cancel.message.error.code == PeerError.code
    assert wrong in cancel.message.error.message


@pytest.mark.parametrize("order", list(itertools.permutations([ran(1), ran(2), taken(1), taken(2)])))
def test_it_lets_go_when_all_is_done_and_taken_in_any_order(order: tuple[Step, ...]) -> None:
    core = new_task()
    said: list[TaskInstruction] = []
    for step in order:
        assert core.phase is TaskPhase.RUNNING
        said += step(core)
        core.validate()
    dones = [
        each.message.fragment for each in said if isinstance(each, Send) and isinstance(each.message, FragmentDone)
    ]
    assert sorted(dones) == [1, 2]
    assert said[-1] == Release("complete")
    assert sum(isinstance(each, Release) for each in said) == 1
    assert core.phase is TaskPhase.STOPPING
    assert core.released() == [RECEIPT]
    assert core.released() == []
    core.validate()


ENDINGS: dict[str, Step] = {
    "failed": failed,
    "cancelled": cancelled,
    "initiator lost": initiator_lost,
    "out of time": out_of_time,
}


@pytest.mark.parametrize("phase", ["planning", "running", "stopping", "gone"])
@pytest.mark.parametrize("pair", list(itertools.product(ENDINGS, repeat=2)), ids=lambda pair: ", then ".join(pair))
def test_every_path_ends_in_one_release_and_at_most_one_receipt(phase: str, pair: tuple[str, str]) -> None:
    core = new_task(None if phase == "planning" else PLAN)
    said: list[TaskInstruction] = []
    if phase in ("stopping", "gone"):
        said += cancelled(core)
    if phase == "gone":
        said += core.released()
    for name in pair:
        said += ENDINGS[name](core)
        core.validate()
    for late in (plan_comes, ran(1), taken(1), taken(2), ran(2)):
        assert late(core) == []
        core.validate()
    assert core.fragment_started(1, SCHEMA) == []
    said += core.released()
    assert core.phase is TaskPhase.GONE
    assert sum(isinstance(each, Release) for each in said) == 1
    cancels = [each for each in said if isinstance(each, Send) and isinstance(each.message, Cancel)]
    assert len(cancels) <= 1
    # Nobody is there to take a receipt when the initiator was lost first.
    expected = 0 if "initiator lost" in pair and phase != "gone" else 1
    assert said.count(RECEIPT) == expected


def test_a_failure_says_whose_and_what() -> None:
    core = new_task()
    cancel, release = core.failed(Overloaded("spool full", suggestion="ask for less"))
    assert isinstance(cancel, Send)
    assert isinstance(cancel.message, Cancel)
    error = cancel.message.error
    assert (cancel.member, cancel.message.by) == ("oslo", "tromso")
    assert (error.code, error.message, error.member) == (Overloaded.code, "spool full", "tromso")
    assert release == Release("spool full")


def test_its_own_deadline_leaves_the_initiator_a_second() -> None:
    core = new_task()
    assert core.tick(TIMEOUT_S) == []
    cancel, _ = core.tick(TIMEOUT_S + 1)
    assert isinstance(cancel, Send)
    assert isinstance(cancel.message, Cancel)
    assert cancel.message.error.code == TimedOut.code
    assert core.tick(TIMEOUT_S + 2) == []
    core.validate()


def test_started_is_told_with_the_columns() -> None:
    core = new_task()
    assert core.fragment_started(2, SCHEMA) == [Send("oslo", Started(QUERY, "tromso", 2, SCHEMA))]
    core.validate()


def test_nothing_to_run_is_let_go_at_once() -> None:
    execute = msgspec.structs.replace(execute_of(PLAN, "tromso"), fragments=())
    core = TaskCore(execute, "tromso", 0.0)
    assert core.begin(PLAN) == [Release("complete")]
    assert core.released() == [RECEIPT]
    core.validate()


def test_the_last_rows_taken_while_it_lets_go_release_nothing_again() -> None:
    core = new_task()
    for step in (ran(1), ran(2), taken(1), failed):
        step(core)
    assert taken(2)(core) == []
    assert core.released() == [RECEIPT]
    core.validate()


def stopped(fragment: int) -> Step:
    return lambda core: core.output_stopped(fragment, "bergen", 3, 30, 0.1)


def test_a_fragment_whose_receiver_has_enough_is_stopped_and_done() -> None:
    core = new_task()
    done = Send("oslo", FragmentDone(QUERY, "tromso", 1, 3, 30, 0.1))
    assert stopped(1)(core) == [StopFragment(1), done]
    assert stopped(1)(core) == []
    assert core.phase is TaskPhase.RUNNING
    # One that has run already has nothing to stop.
    assert ran(2)(core) == [Send("oslo", FragmentDone(QUERY, "tromso", 2, 5, 50, 0.1))]
    assert stopped(2)(core) == [Release("complete")]
    assert core.released() == [RECEIPT]


def fanned(*steps: Step) -> TaskCore:
    """Tromso sends to bergen and to oslo."""
    core = TaskCore(execute_of(FANNED, "tromso"), "tromso", 0.0)
    core.begin(FANNED)
    for step in steps:
        step(core)
        core.validate()
    return core


def by(receiver: str, *, stopped: bool) -> Step:
    if stopped:
        return lambda core: core.output_stopped(1, receiver, 3, 30, 0.1)
    return lambda core: core.output_taken(1, receiver)


STOPPED_1 = [StopFragment(1), Send("oslo", FragmentDone(QUERY, "tromso", 1, 3, 30, 0.1)), Release("complete")]


def test_a_fragment_is_stopped_when_the_last_of_its_receivers_has_enough() -> None:
    core = fanned()
    assert by("bergen", stopped=True)(core) == []
    assert by("bergen", stopped=True)(core) == []  # said twice
    assert by("oslo", stopped=True)(core) == STOPPED_1
    # A receiver at which the query is over wants no rows either.
    assert by("oslo", stopped=True)(fanned(by("bergen", stopped=False))) == STOPPED_1


def test_a_receiver_that_has_enough_ends_nothing_for_another() -> None:
    core = fanned(by("oslo", stopped=True))
    assert ran(1)(core) == [Send("oslo", FragmentDone(QUERY, "tromso", 1, 5, 50, 0.1))]
    assert core.phase is TaskPhase.RUNNING
    assert by("bergen", stopped=False)(core) == [Release("complete")]
    core = fanned(ran(1), by("bergen", stopped=False))
    assert core.phase is TaskPhase.RUNNING
    assert by("oslo", stopped=True)(core) == [Release("complete")]


@pytest.mark.parametrize("step", [failed, cancelled, initiator_lost])
def test_nothing_is_stopped_twice(step: Step) -> None:
    core = new_task()
    step(core)
    assert stopped(1)(core) == []
    core.validate()


def test_a_receipt_says_what_is_left() -> None:
    core = new_task()
    cancelled(core)
    assert core.released(("Spark job 7",)) == [Send("oslo", Receipt(QUERY, "tromso", ("Spark job 7",)))]


def test_a_plan_that_another_query_asked_for_is_waited_for() -> None:
    core = TaskCore(execute_of(PLAN, "tromso"), "tromso", 0.0)
    assert core.begin(None, is_asked=True) == []
    assert core.plan_arrived(PLAN) == [RunFragment(PLAN.fragments[0]), RunFragment(PLAN.fragments[1])]

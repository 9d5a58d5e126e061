"""The initiator's side of a query's life: orders of events, and what each makes it say."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from skerry.member.query import COMPLETE, Instruction, Phase, QueryCore, QueryEnded, QueryFailed, SchemaKnown, Send
from skerry.model.errors import Cancelled, Overloaded, PeerError, SiteError, SkerryError, TimedOut
from skerry.model.fragment import Output, Plan, Rows, SparkFragment, TableLeaf
from skerry.model.limits import Limits
from skerry.model.progress import FragmentProgress, LinkBytes
from skerry.model.results import Schema
from skerry.model.table import Column
from skerry.wire.messages import (
    Cancel,
    Execute,
    Failure,
    FragmentDone,
    Message,
    PlanReply,
    PlanRequest,
    Progress,
    Receipt,
    Started,
)
from tests.unit.member.member_samples import QUERY, SCHEMA, TIMEOUT_S, plan_of, sealed

LIMITS = Limits()
PLAN = plan_of("bergen", "oslo", "tromso")  # oslo scans (1), tromso scans (2), bergen runs the rest (3)
ALL = ("bergen", "oslo", "tromso")
BROKEN = Failure(SiteError.code, "disk full", "tromso")

Step = Callable[[QueryCore], list[Instruction]]


def started(fragment: int, member: str, at: float = 1.0) -> Step:
    return lambda core: core.receive(member, Started(QUERY, member, fragment, SCHEMA), at)


def done(fragment: int, member: str, at: float = 1.0) -> Step:
    return lambda core: core.receive(member, FragmentDone(QUERY, member, fragment, 10, 100, 0.5), at)


def receipt(member: str, at: float = 1.0) -> Step:
    return lambda core: core.receive(member, Receipt(QUERY, member), at)


def cancel_from(member: str, at: float = 1.0) -> Step:
    return lambda core: core.receive(member, Cancel(QUERY, member, BROKEN), at)


def lost(member: str, at: float = 1.0) -> Step:
    return lambda core: core.peer_lost(member, SiteError(f"site {member} is down", member=member), at)


def closed(at: float = 1.0) -> Step:
    return lambda core: core.cancel(Cancelled("closed"), at)


def complete(at: float = 1.0) -> Step:
    return lambda core: core.result_complete(at)


def tick(at: float) -> Step:
    return lambda core: core.tick(at)


def new_core() -> QueryCore:
    return QueryCore(QUERY, PLAN, {}, TIMEOUT_S, LIMITS, 0.0)


def play(*steps: Step) -> tuple[QueryCore, list[Instruction]]:
    """Everything said after the Executes."""
    core = new_core()
    core.start()
    said: list[Instruction] = []
    for step in steps:
        said += step(core)
        core.validate()
    return core, said


def sent(said: list[Instruction], kind: type[Message]) -> list[str]:
    return [each.member for each in said if isinstance(each, Send) and isinstance(each.message, kind)]


def failures(said: list[Instruction]) -> list[SkerryError]:
    return [each.error for each in said if isinstance(each, QueryFailed)]


FINISH_ALL = [*(done(number, member) for number, member in ((1, "oslo"), (2, "tromso"), (3, "bergen")))]


def test_execute_goes_once_to_every_participant_with_its_own_share() -> None:
    core = new_core()
    executes = {each.member: each.message for each in core.start() if isinstance(each, Send)}
    assert tuple(executes) == ALL
    for member, message in executes.items():
        assert isinstance(message, Execute)
        assert [PLAN.fragments[number - 1].member for number in message.fragments] == [member]
        assert message.schema_info == {f"{member}.t": 7}
        assert (message.plan_id, message.participants, message.timeout_s) == (PLAN.plan_id, ALL, TIMEOUT_S)
    core.validate()


def test_a_complete_result_lets_everyone_go_and_ends_with_the_receipts() -> None:
    core, said = play(started(3, "bergen"), *FINISH_ALL, receipt("oslo"), complete(2.0), receipt("tromso", 3.0))
    assert [each for each in said if isinstance(each, SchemaKnown)] == [SchemaKnown(SCHEMA)]
    assert sent(said, Cancel) == ["bergen", "tromso"]
    assert all(each.message.error == COMPLETE for each in said if isinstance(each, Send))  # type: ignore[attr-defined]
    assert core.phase is Phase.ENDING
    assert receipt("bergen", 4.0)(core) == [QueryEnded(())]
    assert (core.phase, core.error, core.ended_at) == (Phase.ENDED, None, 4.0)
    core.validate()


def test_all_receipts_before_the_client_has_read_everything() -> None:
    core, said = play(*FINISH_ALL, *(receipt(member) for member in ALL))
    assert said == []
    assert core.phase is Phase.RUNNING
    assert complete(5.0)(core) == [QueryEnded(())]


# Each row: what happens, the error that the client gets, and who is told of it.
ENDINGS: dict[str, tuple[list[Step], type[SkerryError], tuple[str, ...]]] = {
    "closed by the client": ([closed()], Cancelled, ALL),
    "a participant failed": ([cancel_from("tromso")], SiteError, ALL),
    "a participant is lost": ([lost("bergen")], SiteError, ("oslo", "tromso")),
    "out of time": ([tick(TIMEOUT_S)], TimedOut, ALL),
    "failed, then closed": ([cancel_from("tromso"), closed()], SiteError, ALL),
    "closed, then failed": ([closed(), cancel_from("tromso")], Cancelled, ALL),
    "all fail at once": ([cancel_from(member) for member in ALL], SiteError, ALL),
    "all are lost": ([lost(member) for member in ALL], SiteError, ("oslo", "tromso")),
    "closed just in time": ([closed(TIMEOUT_S - 1), tick(TIMEOUT_S)], Cancelled, ALL),
    "a receipt, but nothing was done": ([receipt("tromso")], SiteError, ("bergen", "oslo")),
    "one is done, another gives up": ([done(1, "oslo"), receipt("oslo"), receipt("tromso")], SiteError, ("bergen",)),
}


@pytest.mark.parametrize(("steps", "kind", "told"), ENDINGS.values(), ids=ENDINGS)
def test_the_first_error_counts_and_everyone_is_told_once(
    steps: list[Step], kind: type[SkerryError], told: tuple[str, ...]
) -> None:
    core, said = play(*steps)
    assert [type(error) for error in failures(said)] == [kind]
    assert core.error is failures(said)[0]
    assert sent(said, Cancel) == list(told)
    for member in ALL:
        said += receipt(member, 2.0)(core)
        core.validate()
    assert [each for each in said if isinstance(each, QueryEnded)] == [QueryEnded(())]
    assert sent(said, Cancel) == list(told)
    assert complete(3.0)(core) == []


def test_whoever_does_not_answer_is_reported_missing() -> None:
    core, _ = play(closed(10.0), receipt("oslo", 11.0))
    assert core.deadline == 10.0 + LIMITS.stop_s
    assert core.tick(core.deadline - 0.001) == []
    assert core.tick(core.deadline) == [QueryEnded(("bergen", "tromso"))]
    assert core.tick(core.deadline + 1) == []
    core.validate()


def test_a_missing_member_that_is_lost_later_ends_nothing_again() -> None:
    core, _ = play(closed(10.0), receipt("oslo", 11.0), receipt("bergen", 11.0), tick(10.0 + LIMITS.stop_s))
    assert core.phase is Phase.ENDED
    assert lost("tromso", 60.0)(core) == []
    core.validate()


def test_what_no_participant_says_is_its_mistake() -> None:
    core, _ = play()
    with pytest.raises(PeerError, match="PlanReply from oslo"):
        core.receive("oslo", PlanReply(QUERY, QUERY.local, PLAN.plan_id, None), 1.0)
    assert core.phase is Phase.RUNNING


def test_a_member_lost_while_receipts_are_awaited_is_not_waited_for() -> None:
    core, said = play(closed(), receipt("oslo"), lost("bergen"), receipt("tromso"))
    assert said[-1] == QueryEnded(())
    assert sent(said, Cancel) == list(ALL)
    core.validate()


@pytest.mark.parametrize("step", [lost("oslo"), lost("bergen"), receipt("bergen"), closed(), cancel_from("oslo")])
def test_after_the_end_nothing_is_said(step: Step) -> None:
    core, _ = play(closed(), *(receipt(member) for member in ALL))
    assert step(core) == []
    assert core.receive("bergen", Started(QUERY, "bergen", 3, SCHEMA), 9.0) == []
    assert core.tick(1e9) == []
    core.validate()


def test_a_member_that_is_done_may_go_away() -> None:
    core, said = play(*FINISH_ALL, receipt("tromso"), lost("tromso"))
    assert said == []
    assert core.phase is Phase.RUNNING


def test_a_plan_is_given_to_who_asks_for_this_one_only() -> None:
    core = new_core()
    core.start()
    asked = core.receive("tromso", PlanRequest(QUERY, "r", PLAN.plan_id), 0.0)
    assert asked == [Send("tromso", PlanReply(QUERY, "r", PLAN.plan_id, PLAN))]
    other = core.receive("tromso", PlanRequest(QUERY, "r", "other"), 0.0)
    assert other == [Send("tromso", PlanReply(QUERY, "r", "other", None))]
    core.cancel(Cancelled("closed"), 1.0)
    # Another query at that member may wait for the same plan, and have asked through this one.
    assert core.receive("tromso", PlanRequest(QUERY, "r", PLAN.plan_id), 2.0) == asked
    core.validate()


def test_only_the_root_tells_the_columns_and_only_once() -> None:
    core, said = play(started(1, "oslo"), started(3, "oslo"), started(3, "bergen"), started(3, "bergen"))
    assert said == [SchemaKnown(SCHEMA)]
    core.validate()


def parts_plan() -> Plan:
    """The same at two members, gathered by the initiator."""
    fragments = [
        SparkFragment(number, member, "SELECT * FROM leaf", (TableLeaf("leaf", "t"),), Output(1, ("oslo",)))
        for number, member in ((1, "bergen"), (2, "tromso"))
    ]
    return sealed(Plan("", tuple(fragments), Rows(1, ("bergen", "tromso")), {}))


def test_the_columns_are_known_when_all_senders_of_the_result_agree() -> None:
    core = QueryCore(QUERY, parts_plan(), {}, TIMEOUT_S, LIMITS, 0.0)
    core.start()
    assert started(2, "tromso")(core) == []
    assert started(2, "tromso")(core) == []
    assert started(1, "bergen")(core) == [SchemaKnown(SCHEMA)]
    assert started(1, "bergen")(core) == []
    core.validate()


def test_sites_that_give_a_column_different_types() -> None:
    core = QueryCore(QUERY, parts_plan(), {}, TIMEOUT_S, LIMITS, 0.0)
    core.start()
    assert started(1, "bergen")(core) == []
    wider = Schema((Column("k", "decimal(38,9)"), Column("v", "string")), SCHEMA.arrow)
    failed, *told = core.receive("tromso", Started(QUERY, "tromso", 2, wider), 1.0)
    assert isinstance(failed, QueryFailed)
    assert "sites bergen and tromso give the result different columns: k is bigint and decimal(38,9)" in str(
        failed.error
    )
    assert sent(told, Cancel) == ["bergen", "tromso"]
    core.validate()


@pytest.mark.parametrize("message", [Receipt(QUERY, "oslo"), Cancel(QUERY, "oslo", BROKEN)])
def test_strangers_have_no_say(message: Message) -> None:
    core = new_core()
    core.start()
    with pytest.raises(PeerError, match="takes no part"):
        core.receive("stranger", message, 1.0)
    assert core.phase is Phase.RUNNING


def test_a_receipt_counts_for_its_sender_whatever_name_it_holds() -> None:
    core, _ = play(closed(), lambda core: core.receive("oslo", Receipt(QUERY, "bergen"), 2.0))
    core.tick(core.deadline)
    assert core.phase is Phase.ENDED
    core, said = play(closed(), receipt("bergen"), receipt("tromso"))
    assert not any(isinstance(each, QueryEnded) for each in said)


def test_progress_is_of_the_sender_and_never_goes_back() -> None:
    core, _ = play(done(1, "oslo"))
    seen = (
        FragmentProgress(1, "oslo", "running", 1, 1),
        FragmentProgress(2, "oslo", "running", 5, 5),
        FragmentProgress(99, "oslo", "running", 5, 5),
    )
    links = (LinkBytes("oslo", "bergen", 50, 5), LinkBytes("tromso", "bergen", 60, 6))
    core.receive("oslo", Progress(QUERY, "oslo", seen, links), 1.0)
    fragments, known = core.progress()
    assert fragments[0] == FragmentProgress(1, "oslo", "done", 10, 100, 0.5)
    assert fragments[1] == FragmentProgress(2, "tromso", "waiting", 0, 0)
    assert known == (LinkBytes("oslo", "bergen", 50, 5),)
    core.validate()


def test_a_query_that_sends_more_over_a_link_than_it_may_is_ended() -> None:
    core = QueryCore(QUERY, PLAN, {}, TIMEOUT_S, LIMITS, 0.0, budgets={("oslo", "bergen"): 100})
    core.start()

    def sent_bytes(size_bytes: int, receiver: str) -> list[Instruction]:
        return core.receive("oslo", Progress(QUERY, "oslo", (), (LinkBytes("oslo", receiver, size_bytes, 1),)), 1.0)

    assert sent_bytes(100, "bergen") == []
    assert sent_bytes(5000, "tromso") == []
    (error,) = failures(sent_bytes(101, "bergen"))
    assert isinstance(error, Overloaded)
    assert "101 bytes over the link from oslo to bergen, whose query_bytes is 100" in error.message
    assert core.phase is Phase.ENDING
    assert sent_bytes(102, "bergen") == []
    core.validate()

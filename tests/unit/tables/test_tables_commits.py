"""Commits at several members: what is on disk before what is said, and what becomes of it when members stop."""

from __future__ import annotations

import pytest

from skerry.model.commits import Committed, Decision, Fence, Part, Policy, Prepared, Staged, Write
from skerry.model.errors import PeerError, RolledBack, SiteError, StaleSchema, TimedOut
from skerry.tables.clock import seconds
from skerry.tables.instructions import (
    Answer,
    Discard,
    Found,
    Look,
    Looked,
    Persist,
    ReadReady,
    ReadRefused,
    Tell,
    Unsent,
)
from skerry.wire.commit_messages import Decided, Outcome, Prepare, State, Submit, Vote
from tests.unit.tables.commit_members import TABLE, Members, put, txn


def answers(members: Members) -> list[Outcome]:
    return [each.outcome for each in members.told if isinstance(each, Answer)]


def is_refused(outcome: Outcome, code: int) -> bool:
    return outcome.state is State.ABORTED and outcome.failure is not None and outcome.failure.code == code


def test_one_member_commits_with_one_sync_and_one_message() -> None:
    members = Members("bergen", "oslo")
    start = members.begin("oslo")
    members.sent.clear()
    members.submit("oslo", txn(), {"bergen": put("k")}, start)
    assert answers(members) == []
    assert members.settle() == 1
    assert [(name, send.to, type(send.message)) for name, send in members.sent] == [
        ("oslo", "bergen", Submit),
        ("bergen", "oslo", Outcome),
    ]
    assert [(outcome.state, outcome.rows) for outcome in answers(members)] == [(State.COMMITTED, 1)]
    records = [type(record) for record in members.disks["bergen"]]
    assert (records.count(Committed), records.count(Prepared), records.count(Decision)) == (1, 0, 0)


def test_two_members_commit_with_two_syncs_after_each_other() -> None:
    members = Members("bergen", "oslo")
    start = members.begin("oslo")
    members.submit("oslo", txn(), {"bergen": put("k"), "oslo": put("l")}, start)
    assert members.sync()
    assert answers(members) == []
    assert members.sync()
    (outcome,) = answers(members)
    assert (outcome.state, outcome.rows) == (State.COMMITTED, 2)
    assert members.rows["bergen"][b"k"] == members.rows["oslo"][b"l"] == (outcome.commit_ts, b"row")
    members.settle()
    assert all(member.is_idle for member in members.of.values())


def test_the_first_participant_decides_for_a_member_without_a_disk() -> None:
    members = Members("bergen", "oslo", "lite", lite=("lite",))
    start = members.begin("lite")
    members.of["oslo"].clock.raise_to(start + seconds(2))
    members.submit("lite", txn(), {"oslo": put("l"), "bergen": put("k")}, start)
    members.settle()
    (outcome,) = answers(members)
    assert outcome.state is State.COMMITTED
    # Who wrote there reads it there, though another's clock was ahead.
    assert members.of["lite"].snapshot(0, members.at) > outcome.commit_ts > start + seconds(2)
    assert any(isinstance(record, Decision) for record in members.disks["bergen"])
    assert members.disks["lite"] == []


def test_a_participant_in_doubt_waits_for_the_decider_and_reads_name_it() -> None:
    members = Members("bergen", "oslo")
    start = members.begin("oslo")
    members.submit("oslo", txn(), {"bergen": put("k"), "oslo": put("l")}, start)
    members.sync("bergen", "oslo")
    members.down.add("oslo")
    members.wait(60)
    read_ts = members.of["bergen"].snapshot(0, members.at)
    members.do("bergen", members.of["bergen"].read("r1", read_ts, frozenset({TABLE}), members.at))
    members.do("bergen", members.of["bergen"].read("r2", read_ts, frozenset({TABLE + 1}), members.at))
    members.sync("bergen")
    assert members.told == [ReadReady("r2")]
    members.wait(members.limits.read_wait_s + 0.2)
    refused = members.told[-1]
    assert isinstance(refused, ReadRefused)
    assert refused.failure.code == TimedOut.code
    assert "only oslo can tell whether oslo/q was committed" in refused.failure.message
    # The decision was never written: oslo starts without it, and answers with an abort that it has written.
    members.crash("oslo")
    members.down.clear()
    members.wait(1)
    members.settle()
    assert [record for record in members.disks["oslo"] if isinstance(record, Decision)] == [Decision(txn(), start, 0)]
    assert members.rows["bergen"] == {}
    assert members.of["bergen"].is_idle


def test_a_decision_on_disk_is_told_after_a_crash() -> None:
    members = Members("bergen", "oslo")
    start = members.begin("oslo")
    members.submit("oslo", txn(), {"bergen": put("k"), "oslo": put("l")}, start)
    members.sync("bergen", "oslo")
    members.down.add("bergen")
    members.sync("oslo")
    members.crash("oslo")
    members.crash("bergen")
    members.down.clear()
    members.wait(1)
    members.settle()
    assert {name: list(rows) for name, rows in members.rows.items()} == {"bergen": [b"k"], "oslo": [b"l"]}
    assert all(member.is_idle for member in members.of.values())


def test_a_snapshot_does_not_overwrite_what_came_after_it() -> None:
    members = Members("oslo")
    read_ts = members.begin("oslo")
    members.submit("oslo", txn("a"), {"oslo": put("k", "a")}, read_ts)
    members.settle()
    members.submit("oslo", txn("b"), {"oslo": put("k", "b")}, read_ts, read_ts)
    members.settle()
    assert is_refused(answers(members)[-1], RolledBack.code)
    assert answers(members)[-1].is_retryable
    assert members.rows["oslo"][b"k"][1] == b"a"


@pytest.mark.parametrize(
    ("policy", "row", "state", "rows", "kept"),
    [
        (Policy.FAIL, "new", State.ABORTED, 0, b"old"),
        (Policy.NOTHING, "new", State.COMMITTED, 0, b"old"),
        (Policy.REPLACE, "new", State.COMMITTED, 1, b"new"),
        (Policy.REPLACE, None, State.COMMITTED, 1, None),
    ],
)
def test_policies_when_the_row_exists(policy: Policy, row: str | None, state: State, rows: int, kept: bytes) -> None:
    members = Members("oslo")
    start = members.begin("oslo")
    members.submit("oslo", txn("a"), {"oslo": put("k", "old")}, start)
    members.submit("oslo", txn("b"), {"oslo": put("k", row, policy)}, start + 1)
    members.settle()
    # The second is younger: it died on the lock of the first, and comes again.
    assert answers(members)[-1].is_retryable
    members.submit("oslo", txn("b", 2), {"oslo": put("k", row, policy)}, start + 1)
    members.settle()
    outcome = answers(members)[-1]
    assert (outcome.state, outcome.rows, outcome.is_retryable) == (state, rows, False)
    assert members.rows["oslo"][b"k"][1] == kept


def test_what_a_delete_does_not_find_counts_no_row() -> None:
    members = Members("oslo")
    start = members.begin("oslo")
    members.submit("oslo", txn(), {"oslo": put("k", None)}, start)
    members.settle()
    assert [(outcome.state, outcome.rows) for outcome in answers(members)] == [(State.COMMITTED, 0)]
    assert members.rows["oslo"] == {}


def test_an_elder_waits_for_a_lock_a_while() -> None:
    members = Members("bergen", "oslo")
    start = members.begin("oslo")
    members.submit("oslo", txn("young"), {"bergen": put("k"), "oslo": put("l")}, start + 1)
    members.sync()
    members.down.add("oslo")  # the decision stays there
    members.waiting["oslo"].clear()
    members.submit("bergen", txn("old"), {"bergen": put("k")}, start)
    assert answers(members) == []
    members.wait(members.limits.lock_wait_s + 0.2)
    members.sync("bergen")
    assert is_refused(answers(members)[0], TimedOut.code)
    failure = answers(members)[0].failure
    assert failure is not None
    assert "locked by transaction oslo/young, which waits for oslo" in failure.message


def test_staged_files_lock_their_table_and_are_let_go_of_when_refused() -> None:
    members = Members("oslo")
    start = members.begin("oslo")
    members.submit("oslo", txn("row"), {"oslo": put("k")}, start)
    staged = Part(staged=(Staged(TABLE, ("a.parquet",)),))
    members.submit("oslo", txn("file"), {"oslo": staged}, start + 1)
    members.settle()
    assert Discard(txn("file"), staged.staged) in members.told
    core = members.of["oslo"]
    assert not core.is_held(TABLE)
    members.submit("oslo", txn("file", 2), {"oslo": staged}, start + 1)
    assert (core.is_held(TABLE), core.is_held(TABLE + 1)) == (True, False)
    members.settle()
    assert not core.is_held(TABLE)
    assert (answers(members)[-1].state, answers(members)[-1].rows) == (State.COMMITTED, 5)


def test_stale_plans_are_refused_and_may_be_planned_again() -> None:
    members = Members("oslo")
    start = members.begin("oslo")
    members.stale = "site oslo: table 7 has moved"
    members.submit("oslo", txn(), {"oslo": put("k")}, start)
    members.settle()
    assert is_refused(answers(members)[0], StaleSchema.code)
    assert answers(members)[0].is_retryable


def test_a_statement_is_run_once_whoever_says_it_again() -> None:
    members = Members("bergen", "oslo")
    start = members.begin("oslo")
    submit = Submit(txn(), start, 0, {"bergen": put("k")}, start)
    for _ in range(2):
        members.do("bergen", members.of["bergen"].receive("oslo", submit, members.at))
    members.settle()
    members.crash("bergen")
    again = Submit(txn(attempt=2), start, 0, {"bergen": put("k")}, start)
    for message in (submit, again):
        members.do("bergen", members.of["bergen"].receive("oslo", message, members.at))
    members.settle()
    told = [send.message for _, send in members.sent if isinstance(send.message, Outcome)]
    assert {outcome.commit_ts for outcome in told} == {members.rows["bergen"][b"k"][0]}
    assert sum(isinstance(record, Committed) for record in members.disks["bergen"]) == 1


def test_an_outcome_can_be_asked_by_id_and_what_nobody_knows_never_happens() -> None:
    members = Members("bergen", "oslo")
    start = members.begin("oslo")
    members.submit("oslo", txn("a"), {"bergen": put("k")}, start)
    members.settle()
    every = frozenset(members.of)
    for query in (txn("a").query, txn("b").query):
        members.do("oslo", members.of["oslo"].inquire(query, start, every, members.at))
        members.settle()
    tells = [each for each in members.told if isinstance(each, Tell)]
    assert [(tell.query.local, tell.state, tell.rows) for tell in tells] == [
        ("a", State.COMMITTED, 1),
        ("b", State.ABORTED, 0),
    ]
    assert any(isinstance(record, Fence) for record in members.disks["bergen"])
    # It comes late, after a restart: it was said that it does not happen.
    members.crash("bergen")
    members.submit("oslo", txn("b"), {"bergen": put("l")}, start)
    members.settle()
    assert answers(members)[-1].state is State.ABORTED
    assert b"l" not in members.rows["bergen"]


def test_an_outcome_is_unknown_when_a_member_is_silent_or_the_id_is_too_old() -> None:
    members = Members("bergen", "oslo")
    start = members.begin("oslo")
    members.down.add("bergen")
    every = frozenset(members.of)
    members.do("oslo", members.of["oslo"].inquire(txn("a").query, start, every, members.at))
    members.settle()
    members.wait(members.limits.answer_wait_s + 0.2)
    assert members.told == [Tell(txn("a").query, State.UNKNOWN, unknown_to=("bergen",))]
    members.down.clear()
    old = start - seconds(members.limits.ids_asked_s + 1)
    members.do("oslo", members.of["oslo"].inquire(txn("b").query, old, every, members.at))
    assert members.told[1:] == [Tell(txn("b").query, State.UNKNOWN, unknown_to=("bergen", "oslo"))]


def test_ids_are_forgotten_after_their_time_unless_a_participant_has_not_its_commit() -> None:
    members = Members("bergen", "oslo")
    start = members.begin("oslo")
    members.submit("oslo", txn("done"), {"oslo": put("l")}, start)
    members.submit("oslo", txn("open"), {"bergen": put("k"), "oslo": put("m")}, start)
    members.sync()
    members.down.add("bergen")
    members.sync("oslo")
    members.now += members.limits.ids_kept_s * 1.1
    for _ in range(2):  # the hybrid clock runs on as it is used
        members.of["oslo"].snapshot(0, members.at)
        members.do("oslo", members.of["oslo"].tick(members.at))
    members.sync("oslo")
    members.crash("oslo")
    members.do("oslo", members.of["oslo"].inquire(txn("done").query, start, frozenset({"oslo"}), members.at))
    assert members.told[-1] == Tell(txn("done").query, State.UNKNOWN, unknown_to=("oslo",))
    members.down.clear()
    members.wait(1)
    members.settle()
    assert b"k" in members.rows["bergen"]


def test_a_clock_too_far_ahead_is_refused() -> None:
    members = Members("bergen", "oslo")
    start = members.begin("oslo")
    ahead = start + seconds(members.limits.clock_ahead_s + 1)
    members.do("bergen", members.of["bergen"].read("r", ahead, frozenset({TABLE}), members.at))
    refused = members.told[-1]
    assert isinstance(refused, ReadRefused)
    assert "the clock of the reader is 6.0 s ahead" in refused.failure.message
    submit = Submit(txn(), start, 0, {"bergen": put("k")}, ahead)
    members.do("bergen", members.of["bergen"].receive("oslo", submit, members.at))
    outcome = members.sent[-1][1].message
    assert isinstance(outcome, Outcome)
    assert outcome.state is State.UNKNOWN
    assert members.of["bergen"].is_idle


def test_only_those_who_may_are_believed() -> None:
    members = Members("bergen", "oslo", "tromso")
    start = members.begin("oslo")
    members.submit("oslo", txn(), {"bergen": put("k"), "oslo": put("l")}, start)
    votes = [Vote(txn(), member, start, start, 1) for member in ("bergen", "tromso")]
    for message in (Decided(txn(), start), *votes):
        with pytest.raises(PeerError):
            members.of["oslo"].receive("tromso", message, members.at)
    members.sync()
    with pytest.raises(PeerError, match="tromso may not say ABORT"):
        members.of["bergen"].receive("tromso", Decided(txn(), 0), members.at)


def test_a_vote_waits_for_its_own_record_not_for_one_that_was_given_up() -> None:
    """Prepare, abort, and the same Prepare again, before anything is on disk: the first record's sync is no vote."""
    members = Members("bergen", "oslo")
    start = members.begin("oslo")
    prepare = Prepare(txn(), start, 0, put("k"), start)
    bergen = members.of["bergen"]
    members.down.add("oslo")
    for message in (prepare, Decided(txn(), 0), prepare):
        members.do("bergen", bergen.receive("oslo", message, members.at))
    first, *others = members.waiting["bergen"]
    members.sent.clear()
    members.do("bergen", bergen.persisted(first.then, members.at))
    assert members.sent == []
    members.waiting["bergen"] = others
    members.sync("bergen")
    assert [type(send.message) for _, send in members.sent] == [Vote]


def test_what_was_seen_under_locks_that_are_gone_is_not_believed() -> None:
    members = Members("bergen")
    start = members.begin("bergen")
    bergen = members.of["bergen"]
    prepare = Prepare(txn(), start, 0, put("k", policy=Policy.FAIL), start)
    looks = [
        look
        for message in (prepare, Decided(txn(), 0), prepare)
        for look in bergen.receive("oslo", message, members.at)
        if isinstance(look, Look)
    ]
    assert [look.number for look in looks] == [1, 2]
    assert bergen.looked(txn(), 1, Looked((Found(),)), members.at) == []
    assert [type(each) for each in bergen.looked(txn(), 2, Looked((Found(),)), members.at)] == [Persist]


def test_a_lost_participant_is_not_waited_for_unless_it_has_voted() -> None:
    members = Members("bergen", "oslo", "tromso")
    members.down = {"tromso"}
    start = members.begin("oslo")
    members.submit("oslo", txn(), {"oslo": put("k"), "bergen": put("k"), "tromso": put("l")}, start)
    members.sync("oslo", "bergen")  # they have voted
    members.do("oslo", members.of["oslo"].lost("bergen", SiteError("site bergen is down"), members.at))
    members.settle()
    assert answers(members) == []
    members.do("oslo", members.of["oslo"].lost("tromso", SiteError("site tromso is down"), members.at))
    members.settle()
    (outcome,) = answers(members)
    assert is_refused(outcome, SiteError.code)
    assert members.of["oslo"].is_idle


def test_a_patch_changes_a_row_that_is_there_and_nothing_else() -> None:
    members = Members("oslo")
    members.rows["oslo"][b"k"] = (1, b"old")
    patched = Part((Write(TABLE, b"k", b"patch", is_patch=True), Write(TABLE, b"none", b"patch", is_patch=True)))
    instructions = members.of["oslo"].submit(txn(), members.begin("oslo"), 0, {"oslo": patched}, members.at)
    (look,) = (each for each in instructions if isinstance(each, Look))
    looked = Looked((Found(1, True, row=b"new"), Found()))
    members.do("oslo", members.of["oslo"].looked(look.txn, look.number, looked, members.at))
    members.settle()
    (outcome,) = answers(members)
    assert (outcome.state, outcome.rows) == (State.COMMITTED, 1)
    assert (members.rows["oslo"][b"k"][1], b"none" in members.rows["oslo"]) == (b"new", False)
    # A store that cannot look refuses, and says why.
    instructions = members.of["oslo"].submit(txn("other"), members.begin("oslo"), 0, {"oslo": patched}, members.at)
    (look,) = (each for each in instructions if isinstance(each, Look))
    looked = Looked(error=SiteError("the file is damaged"))
    members.do("oslo", members.of["oslo"].looked(look.txn, look.number, looked, members.at))
    members.settle()
    assert is_refused(answers(members)[-1], SiteError.code)


@pytest.mark.parametrize("votes_late", [False, True])
def test_a_decision_has_its_own_time_to_be_written(votes_late: bool) -> None:
    """However late it was made: if it is on disk a second later, "unknown" is no answer."""
    members = Members("oslo", "bergen")
    start = members.begin("oslo")
    members.submit("oslo", txn(), {"oslo": put("a"), "bergen": put("b")}, start)
    members.sync("oslo")
    members.wait(members.limits.vote_wait_s - 0.5)
    if votes_late:
        members.sync("bergen")
    members.wait(1.5)
    assert members.told == []
    members.settle()
    (answer,) = members.told
    assert isinstance(answer, Answer)
    assert answer.outcome.state is (State.COMMITTED if votes_late else State.ABORTED)


def test_a_large_commit_may_take_longer() -> None:
    members = Members("oslo")
    start = members.begin("oslo")
    large = Part(tuple(Write(TABLE, f"{number:05}".encode(), b"row") for number in range(10_000)))
    members.submit("oslo", txn(), {"oslo": large}, start)
    members.wait(members.limits.vote_wait_s + 1)
    assert members.told == []
    members.wait(1.5)
    (answer,) = members.told
    assert isinstance(answer, Answer)
    assert answer.outcome.state is State.UNKNOWN


def test_a_statement_said_again_after_a_restart_gets_another_attempt() -> None:
    """The decider was killed before it decided: whoever asks is told of an abort, which is nobody's fault."""
    members = Members("oslo", "bergen")
    parts = {"oslo": put("a"), "bergen": put("b")}
    members.submit("oslo", txn(), parts, members.begin("oslo"))
    members.sync("bergen")  # it has voted
    members.crash("oslo")
    members.wait(2 * members.limits.repeat_s)  # bergen asks; oslo's abort is not on disk yet
    members.submit("oslo", txn(), parts, members.begin("oslo"))
    members.settle()
    members.submit("oslo", txn(), parts, members.begin("oslo"))  # and once more, when it is
    first, again = answers(members)
    assert [(each.state, each.is_retryable) for each in (first, again)] == [(State.ABORTED, True)] * 2
    start = members.begin("oslo")
    members.submit("oslo", txn(attempt=2), parts, start)
    # While that is decided no other attempt of the statement begins.
    members.submit("oslo", txn(attempt=3), parts, start)
    assert (answers(members)[-1].state, answers(members)[-1].is_retryable) == (State.ABORTED, True)
    members.settle()
    assert answers(members)[-1].state is State.COMMITTED
    assert all(b in members.rows[name] for name, b in (("oslo", b"a"), ("bergen", b"b")))


def unsent(members: Members) -> list[str]:
    return [each.failure.message for each in members.told if isinstance(each, Unsent)]


def lose(members: Members, name: str) -> None:
    members.do("oslo", members.of["oslo"].lost(name, SiteError(f"site {name} is down: refused"), members.at))


def test_what_nobody_was_sent_is_told_soon_and_for_certain() -> None:
    members = Members("bergen", "oslo")
    start = members.begin("oslo")
    members.unlinked = {"bergen"}
    members.submit("oslo", txn("refused"), {"bergen": put("k")}, start)
    lose(members, "bergen")
    assert members.told == [], "the connection of an earlier life: it is dialled once more"
    lose(members, "bergen")
    assert unsent(members) == ["site bergen is down: refused; nothing was written"]
    members.submit("oslo", txn("silent"), {"bergen": put("k")}, start)
    members.wait(members.limits.reach_wait_s + 0.2)
    assert unsent(members)[1:] == ["site bergen is down: no connection within 5 s; nothing was written"]
    members.unlinked.clear()
    members.do("oslo", members.of["oslo"].up("bergen", members.at))
    members.wait(members.limits.answer_wait_s)
    members.settle()
    assert (members.rows["bergen"], answers(members)) == ({}, []), "and never sent"
    assert members.of["oslo"].is_idle


def test_what_waits_for_a_connection_is_sent_when_there_is_one() -> None:
    members = Members("bergen", "oslo")
    start = members.begin("oslo")
    members.unlinked = {"bergen"}
    members.submit("oslo", txn(), {"bergen": put("k")}, start)
    members.wait(members.limits.reach_wait_s / 2)
    lose(members, "bergen")
    members.unlinked.clear()
    members.do("oslo", members.of["oslo"].up("bergen", members.at))
    lose(members, "bergen")  # it may have been sent
    members.settle()
    assert [outcome.state for outcome in answers(members)] == [State.COMMITTED]
    assert unsent(members) == []


@pytest.mark.parametrize("is_heard", [True, False])
def test_what_may_have_been_sent_stays_unknown(is_heard: bool) -> None:
    """Whether it came there or not: only its decider can tell."""
    members = Members("bergen", "oslo")
    start = members.begin("oslo")
    if not is_heard:
        members.down = {"bergen"}
    members.submit("oslo", txn(), {"bergen": put("k")}, start)
    members.unlinked = members.down = {"bergen"}
    members.sync("bergen")
    assert bool(members.rows["bergen"]) is is_heard
    members.wait(members.limits.repeat_s + 0.2)  # said again, and withheld
    for _ in range(3):
        lose(members, "bergen")
    members.wait(members.limits.reach_wait_s + 0.2)
    assert members.told == []
    members.wait(members.limits.answer_wait_s)
    assert [outcome.state for outcome in answers(members)] == [State.UNKNOWN]
    assert unsent(members) == []

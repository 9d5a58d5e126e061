"""A worker and a sender of an elastic group-by, message by message (docs/protocol.md, 16)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sim.groupby.rows import Group, SimRows, SimState, place_of
from skerry.exchange.groupby.contract import Deliver, DeliverShare, GiveOn, LetGo, Send
from skerry.exchange.groupby.router import RouterCore, RouterPhase
from skerry.exchange.groupby.worker import WorkerCore, WorkerPhase
from skerry.model.errors import PeerError, SiteError
from skerry.model.ids import GroupById, QueryId
from skerry.model.limits import GroupByLimits
from skerry.model.ranges import PLACES, Range, RoutingTable, first_table
from skerry.wire.groupby_messages import (
    Count,
    Dismiss,
    Dismissed,
    End,
    Ended,
    Failed,
    Finish,
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
from skerry.wire.messages import Failure

GROUP = GroupById(QueryId("boss", "0" * 32), 1)
LIMITS = GroupByLimits(split_groups=10, split_bytes=10_000, memory_bytes=20_000)
HALF = PLACES // 2
LOW = [key for key in range(200) if place_of(key) < HALF]
HIGH = [key for key in range(200) if place_of(key) >= HALF]
TABLE_2 = RoutingTable(2, (Range(0, HALF, "a"), Range(HALF, PLACES, "b")))
TABLE_3 = RoutingTable(3, (Range(0, HALF, "a"), Range(HALF, PLACES, "c")))


def rows(keys: list[int], fat_bytes: int = 0) -> SimRows:
    return SimRows([Group(key, key, key, key, 1, fat_bytes) for key in keys])


def first_worker() -> WorkerCore:
    return WorkerCore(GROUP, "boss", "boss", SimState(), LIMITS, 0.0, epoch=1, table=first_table("boss"))


def recruit() -> WorkerCore:
    return WorkerCore(GROUP, "b", "boss", SimState(), LIMITS, 0.0, epoch=2, giver="a")


def online() -> WorkerCore:
    worker = recruit()
    worker.share("a", 2, None, 0.0)
    worker.received(Redirect(GROUP, TABLE_2), 0.0)
    return worker


def test_small_state_asks_for_nothing() -> None:
    worker = first_worker()
    assert worker.rows(rows(LOW[:5] + HIGH[:5]), 0.0) == []
    assert worker.state.weight == 10


def test_state_over_the_threshold_asks_once_for_a_split_and_says_it_again() -> None:
    worker = first_worker()
    (asked,) = worker.rows(rows(LOW[:6] + HIGH[:6]), 0.0)
    assert isinstance(asked, Send)
    assert isinstance(asked.message, Split)
    assert (asked.to, asked.message.number, asked.message.groups) == ("boss", 1, 12)
    assert worker.rows(rows(LOW[6:8]), 0.0) == []
    assert worker.tick(LIMITS.repeat_s) == [asked]


def test_hand_over_sends_the_share_before_rows_that_follow_and_only_once() -> None:
    worker = first_worker()
    worker.rows(rows(LOW[:6] + HIGH[:6]), 0.0)
    table = RoutingTable(2, (Range(0, HALF, "boss"), Range(HALF, PLACES, "b")))
    hand_over = HandOver(GROUP, 1, table, ("b",))
    done = worker.received(hand_over, 0.0) + worker.rows(rows(HIGH[6:8]), 0.0)
    share, later = done
    assert isinstance(share, DeliverShare)
    assert (share.to, share.epoch, sum(part.weight for part in share.parts)) == ("b", 2, 6)
    assert isinstance(later, Deliver)
    assert (later.to, later.rows.weight) == ("b", 2)
    assert (worker.state.weight, worker.rows_forwarded) == (6, 2)
    assert worker.received(hand_over, 0.0) == []


def test_an_older_table_changes_nothing_and_is_answered_with_the_known_epoch() -> None:
    worker = online()
    worker.received(Redirect(GROUP, TABLE_3), 0.0)
    assert worker.received(Redirect(GROUP, TABLE_2), 0.0) == [Send("boss", Redirected(GROUP, 3, is_sender=False))]
    assert worker.table == TABLE_3
    assert worker.rows(rows(HIGH[:1]), 0.0)[0] == Deliver("c", worker_rows(HIGH[:1]))


def worker_rows(keys: list[int]) -> object:
    class Same:
        def __eq__(self, other: object) -> bool:
            return isinstance(other, SimRows) and [group.key for group in other.groups] == keys

    return Same()


def test_recruit_is_online_when_its_share_is_whole_and_says_so_until_it_is_in_the_table() -> None:
    worker = recruit()
    assert worker.received(Recruit(GROUP, 2, "a"), 0.0) == [Send("boss", Recruited(GROUP, is_taken=True))]
    assert worker.share("a", 2, rows(HIGH[:3]), 0.0) == []
    assert worker.share("a", 2, None, 0.0) == [Send("boss", Online(GROUP, 2))]
    worker.received(Redirect(GROUP, first_table("boss")), 0.0)
    assert worker.tick(LIMITS.repeat_s) == [Send("boss", Online(GROUP, 2))]
    worker.received(Redirect(GROUP, TABLE_2), 0.0)
    assert worker.tick(100 * LIMITS.repeat_s - 30) == []


@pytest.mark.parametrize(
    "came",
    [
        lambda worker: worker.rows(rows(HIGH[:1]), 0.0),
        lambda worker: worker.received(Finish(GROUP, 1, TABLE_2), 0.0),
        lambda worker: worker.received(Give(GROUP), 0.0),
        lambda worker: worker.share("c", 2, None, 0.0),
        lambda worker: worker.share("a", 3, None, 0.0),
    ],
    ids=["rows", "finish", "give", "share of another", "share of another epoch"],
)
def test_what_is_not_due_at_a_recruit_is_a_peers_mistake(came: Callable[[WorkerCore], object]) -> None:
    worker = recruit()
    with pytest.raises(PeerError):
        came(worker)


def test_part_that_was_dismissed_is_not_missed_by_the_part_that_sends() -> None:
    worker = recruit()
    worker.received(Dismiss(GROUP), 0.0)
    assert worker.received(Redirect(GROUP, TABLE_2), 0.0) == []


def test_one_key_that_fills_the_range_is_spilled_and_not_split() -> None:
    worker = first_worker()
    assert worker.rows(rows([LOW[0]] * 4, fat_bytes=3_000), 0.0) == []
    assert worker.is_spilling


def test_memory_is_bounded_while_nobody_answers() -> None:
    worker = first_worker()
    assert len(worker.rows(rows(LOW[:4] + HIGH[:4], fat_bytes=1_500), 0.0)) == 1
    assert not worker.is_spilling
    worker.rows(rows(LOW[4:8], fat_bytes=3_000), 0.0)
    assert worker.is_spilling


def test_who_was_told_to_spill_asks_no_more() -> None:
    worker = first_worker()
    worker.rows(rows(LOW[:6] + HIGH[:6]), 0.0)
    assert worker.received(Spill(GROUP, 1), 0.0) == []
    assert worker.is_spilling
    assert worker.rows(rows(LOW[6:9]), 0.0) == worker.tick(LIMITS.repeat_s) == []


def test_count_give_given_end() -> None:
    worker = online()
    worker.rows(rows(HIGH[:3]), 0.0)
    assert worker.received(Finish(GROUP, 1, TABLE_2), 0.0) == [Send("boss", Count(GROUP, 1, 3))]
    worker.rows(rows(HIGH[:2]), 0.0)
    assert worker.received(Finish(GROUP, 2, TABLE_2), 0.0) == [Send("boss", Count(GROUP, 2, 5))]
    assert worker.received(Give(GROUP), 0.0) == [GiveOn()]
    with pytest.raises(PeerError, match="rows came"):
        worker.rows(rows(HIGH[:1]), 0.0)
    given = [Send("boss", Given(GROUP, 3))]
    assert worker.given() == given
    assert worker.received(Give(GROUP), 0.0) == given
    assert worker.received(End(GROUP), 0.0) == [LetGo(None), Send("boss", Ended(GROUP))]
    assert (worker.phase, worker.state.groups, worker.deadline) == (WorkerPhase.GONE, 0, None)


def test_what_comes_after_the_end_is_answered_and_begins_nothing() -> None:
    worker = recruit()
    assert worker.received(Dismiss(GROUP), 0.0) == [LetGo(None), Send("boss", Dismissed(GROUP))]
    assert worker.received(Recruit(GROUP, 2, "a"), 0.0) == [Send("boss", Recruited(GROUP, is_taken=False))]
    assert worker.received(Dismiss(GROUP), 0.0) == [Send("boss", Dismissed(GROUP))]
    assert worker.received(End(GROUP), 0.0) == [Send("boss", Ended(GROUP))]
    (failed,) = worker.received(Finish(GROUP, 1, TABLE_2), 0.0)
    assert isinstance(failed, Send)
    assert isinstance(failed.message, Failed)


def test_stranded_worker_gives_up_by_itself() -> None:
    worker = online()
    worker.rows(rows(HIGH[:3]), 0.0)
    worker.received(Redirect(GROUP, TABLE_2), 20.0)
    assert worker.deadline == 20.0 + LIMITS.lease_s
    assert worker.tick(LIMITS.lease_s) == []
    let_go, failed = worker.tick(20.0 + LIMITS.lease_s)
    assert isinstance(let_go, LetGo)
    assert isinstance(failed, Send)
    assert isinstance(failed.message, Failed)
    assert "nothing was heard of boss for 30 s" in failed.message.failure.message
    assert worker.state.groups == 0


def test_sender_routes_by_the_newest_table_and_counts_by_member() -> None:
    router = RouterCore(GROUP, "boss", LIMITS, 0.0)
    assert [each.to for each in router.send(rows(LOW[:2] + HIGH[:1])) if isinstance(each, Deliver)] == ["boss"]
    assert router.received(Redirect(GROUP, TABLE_3), 0.0) == [Send("boss", Redirected(GROUP, 3, is_sender=True))]
    assert router.received(Redirect(GROUP, TABLE_2), 0.0) == [Send("boss", Redirected(GROUP, 3, is_sender=True))]
    assert [each.to for each in router.send(rows(LOW[:2] + HIGH[:1])) if isinstance(each, Deliver)] == ["a", "c"]
    done = [Send("boss", SenderDone(GROUP, {"boss": 3, "a": 2, "c": 1}))]
    assert router.done(1.0) == done
    assert router.tick(1.0 + LIMITS.repeat_s) == done
    assert router.received(Dismiss(GROUP), 2.0) == []
    assert router.received(End(GROUP), 2.0) == [LetGo(None), Send("boss", Ended(GROUP))]
    assert router.received(End(GROUP), 2.0) == [Send("boss", Ended(GROUP))]


def test_sender_whose_manager_is_lost_stops() -> None:
    router = RouterCore(GROUP, "boss", LIMITS, 0.0)
    assert router.lost("a", SiteError("site a is down")) == []
    error = SiteError("site boss is down")
    assert router.lost("boss", error)[0] == LetGo(error)
    assert router.phase is RouterPhase.GONE
    assert router.received(Redirect(GROUP, TABLE_2), 0.0) == [
        Send("boss", Failed(GROUP, Failure(300, "site boss is down")))
    ]

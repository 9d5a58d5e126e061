from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.exchange.intake import Attempt, Intake, SinkRow, body_hash, combine
from skerry.model.errors import SiteError

BODIES = (b"first batch", b"second batch")


def checksum_of(bodies: tuple[bytes, ...]) -> int:
    checksum = 0
    for body in bodies:
        checksum = combine(checksum, body_hash(body))
    return checksum


def sink_row(partition: int, attempt: int, bodies: tuple[bytes, ...] = BODIES, rows: int | None = None) -> SinkRow:
    rows = 10 * len(bodies) if rows is None else rows
    return SinkRow(partition, attempt, len(bodies), rows, checksum_of(bodies))


def deliver(intake: Intake, key: tuple[int, int], bodies: tuple[bytes, ...] = BODIES, end: bool = True) -> int:
    lane = intake.open(key)
    for body in bodies:
        intake.batch(key, 10, len(body), body_hash(body))
    if end:
        intake.end(key, len(bodies), 10 * len(bodies), checksum_of(bodies))
    return lane


@pytest.mark.parametrize("retries_tasks", [False, True])
def test_winners_come_in_partition_order(retries_tasks: bool) -> None:
    intake = Intake(4, retries_tasks)
    lanes = [deliver(intake, (partition, 100 + partition)) for partition in (2, 0, 1)]
    assert lanes == [0, 1, 2]
    deliver_rows = [sink_row(partition, 100 + partition) for partition in (1, 2, 0)]
    assert intake.settle(deliver_rows) == [Attempt(0, 100), Attempt(1, 101), Attempt(2, 102)]
    assert intake.rows == 60
    assert intake.size_bytes == 3 * sum(map(len, BODIES))
    assert intake.losers == []


@pytest.mark.parametrize("retries_tasks", [False, True])
def test_attempts_without_a_partition_are_proven_too(retries_tasks: bool) -> None:
    intake = Intake(4, retries_tasks)
    for attempt in (9, 3, 5):
        deliver(intake, (-1, attempt))
    assert intake.settle([sink_row(-1, attempt) for attempt in (3, 5, 9)]) == [(-1, 9), (-1, 3), (-1, 5)]
    with pytest.raises(SiteError, match=r"fragment 4: \(task attempt 7\): Spark's driver reports 20 rows"):
        Intake(4, retries_tasks).settle([sink_row(-1, 7)])


def test_an_empty_job_and_an_empty_partition_are_complete() -> None:
    intake = Intake(1, False)
    deliver(intake, (0, 5), bodies=())
    assert intake.settle([sink_row(0, 5, bodies=())]) == [(0, 5)]
    assert Intake(1, False).settle([]) == []


def test_committed_takes_the_attempt_that_the_driver_reports() -> None:
    intake = Intake(1, True)
    deliver(intake, (0, 5), bodies=(b"slow twin",))
    deliver(intake, (0, 6))
    deliver(intake, (1, 7), end=False)
    assert intake.lost((1, 7)) is True
    assert intake.lost((1, 7)) is False
    deliver(intake, (1, 8))
    deliver(intake, (2, 9), end=False)  # a speculative copy that still runs
    deliver(intake, (2, 10))
    assert intake.settle([sink_row(0, 6), sink_row(1, 8), sink_row(2, 10)]) == [(0, 6), (1, 8), (2, 10)]
    assert intake.losers == [(0, 5), (1, 7), (2, 9)]
    assert intake.rows == 60
    with pytest.raises(SiteError, match="a late attempt is refused"):
        intake.open((3, 11))


def test_a_connection_that_closes_after_the_end_is_no_loss() -> None:
    intake = Intake(1, False)
    deliver(intake, (0, 5))
    assert intake.lost((0, 5)) is False
    assert intake.lost((9, 9)) is False
    assert intake.settle([sink_row(0, 5)]) == [(0, 5)]


# What is delivered, what the driver reports, and what is wrong with it.
WRONG = {
    "missing partition": ({(0, 5): BODIES}, [sink_row(0, 5), sink_row(1, 6)], "partition 1 .task attempt 6.*nothing"),
    "other attempt": ({(0, 5): BODIES}, [sink_row(0, 6)], "partition 0 .task attempt 6.*nothing"),
    "fewer rows": ({(0, 5): BODIES}, [sink_row(0, 5, rows=19)], "rows 19 but the member has 20"),
    "more batches": ({(0, 5): BODIES}, [sink_row(0, 5, (*BODIES, b""), 20)], "batches 3 but the member has 2"),
    "other content": ({(0, 5): BODIES}, [sink_row(0, 5, (b"first", b"other"))], "checksum .* but the member has"),
    "other order": ({(0, 5): BODIES}, [sink_row(0, 5, BODIES[::-1])], "checksum .* but the member has"),
    "said twice": ({(0, 5): BODIES}, [sink_row(0, 5), sink_row(0, 5)], "reports it more than once"),
    "two winners": ({(0, 5): BODIES}, [sink_row(0, 5), sink_row(0, 6)], "reports it more than once"),
}


@pytest.mark.parametrize("retries_tasks", [False, True])
@pytest.mark.parametrize(("delivered", "reported", "message"), WRONG.values(), ids=WRONG)
def test_what_cannot_be_proven_is_an_error(
    delivered: dict[tuple[int, int], tuple[bytes, ...]], reported: list[SinkRow], message: str, retries_tasks: bool
) -> None:
    intake = Intake(1, retries_tasks)
    for key, bodies in delivered.items():
        deliver(intake, key, bodies)
    with pytest.raises(SiteError, match=message):
        intake.settle(reported)
    with pytest.raises(SiteError, match=message):
        intake.settle([sink_row(0, 5)])


@pytest.mark.parametrize("retries_tasks", [False, True])
def test_an_attempt_without_an_end_is_no_proof(retries_tasks: bool) -> None:
    intake = Intake(1, retries_tasks)
    deliver(intake, (0, 5), end=False)
    with pytest.raises(SiteError, match="holds 20 of an attempt that is open"):
        intake.settle([sink_row(0, 5)])


def test_direct_refuses_rows_that_the_driver_does_not_report() -> None:
    intake = Intake(1, False)
    deliver(intake, (0, 5))
    deliver(intake, (1, 6))
    with pytest.raises(SiteError, match=r"partition 1 .task attempt 6.*does not report"):
        intake.settle([sink_row(0, 5)])


def test_direct_refuses_a_second_attempt_and_stays_broken() -> None:
    intake = Intake(1, False)
    deliver(intake, (0, 5))
    with pytest.raises(SiteError, match=r"partition 0 .task attempt 6.*task attempt 5 has delivered the same"):
        intake.open((0, 6))
    with pytest.raises(SiteError, match="must not retry"):
        intake.settle([sink_row(0, 5)])


def test_direct_ends_with_a_lost_task() -> None:
    intake = Intake(1, False)
    deliver(intake, (0, 5), end=False)
    with pytest.raises(SiteError, match=r"partition 0 .task attempt 5.*went away after 2 batches"):
        intake.lost((0, 5))
    with pytest.raises(SiteError, match="went away"):
        intake.settle([])


def test_a_task_that_miscounts_is_lost_and_may_be_retried() -> None:
    intake = Intake(1, True)
    deliver(intake, (0, 5), end=False)
    with pytest.raises(SiteError, match="the task reports batches 1 but the member has 2"):
        intake.end((0, 5), 1, 20, checksum_of(BODIES))
    deliver(intake, (0, 6))
    assert intake.settle([sink_row(0, 6)]) == [(0, 6)]
    direct = Intake(1, False)
    deliver(direct, (0, 5), end=False)
    with pytest.raises(SiteError, match="the task reports rows 21"):
        direct.end((0, 5), 2, 21, checksum_of(BODIES))
    with pytest.raises(SiteError, match="the task reports rows 21"):
        direct.settle([])


@pytest.mark.parametrize("state", ["unknown", "ended", "lost"])
def test_batches_belong_to_an_open_attempt(state: str) -> None:
    intake = Intake(1, True)
    if state != "unknown":
        deliver(intake, (0, 5), end=state == "ended")
        intake.lost((0, 5))
    with pytest.raises(SiteError, match="never opened" if state == "unknown" else f"is {state}"):
        intake.batch((0, 5), 1, 1, 1)


def test_one_attempt_opens_once() -> None:
    intake = Intake(1, True)
    intake.open((0, 5))
    with pytest.raises(SiteError, match="delivered twice"):
        intake.open((0, 5))


# Hashes come from data, not from an enemy: some that lie 2**62 apart would cancel each other out.
@given(st.lists(st.integers(0, 2**32 - 1), max_size=8), st.data())
def test_the_checksum_tells_batches_and_their_order(hashes: list[int], data: st.DataObject) -> None:
    def checksum(values: list[int]) -> int:
        total = 0
        for value in values:
            total = combine(total, value)
            assert 0 <= total < 2**63
        return total

    other = data.draw(st.permutations(hashes) | st.just(hashes[:-1]) | st.just([*hashes, 0]))
    assert (checksum(hashes) == checksum(other)) == (hashes == other)

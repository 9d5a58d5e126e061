"""The result edge over real spools: gather, merge, offset, limit, and what a failed sender does to it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from skerry.exchange.input import END, WAIT, Signal
from skerry.exchange.spool import Budget, Spool
from skerry.member.result import Result
from skerry.model.errors import Cancelled, SiteError, SkerryError, SqlError
from skerry.model.fragment import Finish, MergeStep, Rows, SortKey
from skerry.model.limits import Limits
from skerry.model.results import Schema
from skerry.model.table import Column
from skerry.wire.codec import decode_schema, encode_schema
from tests.unit.member.member_samples import ARROW, SCHEMA, entry_of, rows_of, spool_of

LIMITS = Limits()
KEYS = (SortKey(0, False, True),)
SENDERS = ("bergen", "tromso")
LEFT = ([(1, "a"), (3, "b")], [(5, "c")])
RIGHT = ([(2, "d")], [(3, "e"), (4, "f")])


class Wakeups:
    def __init__(self) -> None:
        self.count = 0

    def __call__(self) -> None:
        self.count += 1


def new_result(tmp_path: Path, ends_in: Rows, finished: bool = True) -> tuple[Result, dict[str, Spool], list[int]]:
    consumed: list[int] = []
    result = Result(ends_in, LIMITS, Wakeups())
    spools = {
        "bergen": spool_of(tmp_path, *LEFT, finished=finished),
        "tromso": spool_of(tmp_path, *RIGHT, finished=finished),
    }
    for sender, spool in spools.items():
        result.attach(sender, spool, consumed.append)
    result.schema_known(SCHEMA)
    return result, spools, consumed


def drain(result: Result, schema: pa.Schema = ARROW) -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = []
    while not isinstance(entry := result.poll(), Signal):
        found = rows_of(entry.body, schema)
        assert len(found) == entry.rows
        rows += found
    assert entry is END
    assert result.poll() is END
    return rows


def test_gather_passes_all_rows_as_they_are(tmp_path: Path) -> None:
    result, spools, consumed = new_result(tmp_path, Rows(1, SENDERS))
    assert sorted(drain(result)) == [(1, "a"), (2, "d"), (3, "b"), (3, "e"), (4, "f"), (5, "c")]
    assert len(consumed) == 4
    assert all(spool.budget.memory_used == 0 for spool in spools.values())


def test_merge_gives_the_order_of_the_keys_and_of_the_senders_between_equals(tmp_path: Path) -> None:
    result, spools, consumed = new_result(tmp_path, Rows(1, SENDERS, Finish(KEYS)))
    assert drain(result) == [(1, "a"), (2, "d"), (3, "b"), (3, "e"), (4, "f"), (5, "c")]
    assert len(consumed) == 4
    assert all(spool.budget.memory_used == 0 for spool in spools.values())


ALL = [(1, "a"), (2, "d"), (3, "b"), (3, "e"), (4, "f"), (5, "c")]


@pytest.mark.parametrize("offset", [0, 1, 3, 5, 6, 7])
@pytest.mark.parametrize("limit", [None, 0, 1, 3, 6, 100])
def test_offset_and_limit_of_a_merge_are_those_of_the_whole(tmp_path: Path, offset: int, limit: int | None) -> None:
    result, _, _ = new_result(tmp_path, Rows(1, SENDERS, Finish(KEYS, offset, limit)))
    assert drain(result) == ALL[offset:][:limit]


@pytest.mark.parametrize(("offset", "limit", "count"), [(0, 4, 4), (2, None, 4), (5, 10, 1), (10, 1, 0)])
def test_offset_and_limit_without_an_order_are_of_any_rows(
    tmp_path: Path, offset: int, limit: int | None, count: int
) -> None:
    result, _, _ = new_result(tmp_path, Rows(1, SENDERS, Finish((), offset, limit)))
    rows = drain(result)
    assert len(rows) == len(set(rows)) == count
    assert set(rows) <= set(ALL)


def test_rows_wait_for_the_columns_and_for_every_sender(tmp_path: Path) -> None:
    wakeups = Wakeups()
    result = Result(Rows(1, SENDERS), LIMITS, wakeups)
    assert result.poll() is WAIT
    result.attach("bergen", spool_of(tmp_path, [(1, "a")]), lambda _: None)
    assert result.poll() is WAIT
    result.schema_known(SCHEMA)
    assert result.poll() is WAIT
    assert wakeups.count == 2
    result.attach("tromso", spool_of(tmp_path), lambda _: None)
    assert wakeups.count == 3
    assert drain(result) == [(1, "a")]


def test_a_second_spool_of_one_sender_is_not_taken(tmp_path: Path) -> None:
    result, _, _ = new_result(tmp_path, Rows(1, SENDERS))
    result.attach("bergen", spool_of(tmp_path, [(9, "z")]), lambda _: None)
    assert len(drain(result)) == len(ALL)


@pytest.mark.parametrize("keys", [(), KEYS])
def test_waits_until_the_last_sender_has_finished_and_is_woken_by_it(tmp_path: Path, keys: tuple[SortKey, ...]) -> None:
    wakeups = Wakeups()
    result = Result(Rows(1, SENDERS, Finish(keys)), LIMITS, wakeups)
    slow = spool_of(tmp_path, finished=False)
    result.attach("bergen", spool_of(tmp_path, [(1, "a")]), lambda _: None)
    result.attach("tromso", slow, lambda _: None)
    result.schema_known(SCHEMA)
    if not keys:
        assert not isinstance(result.poll(), Signal)
    assert result.poll() is WAIT
    before = wakeups.count
    slow.append(entry_of([(2, "b")]))
    slow.finish()
    assert wakeups.count == before + 2
    assert [row[0] for row in drain(result)] == ([1, 2] if keys else [2])


@pytest.mark.parametrize(
    "ends_in", [Rows(1, SENDERS), Rows(1, SENDERS, Finish(KEYS)), Rows(1, SENDERS, Finish((), 1, 100))]
)
@pytest.mark.parametrize("error", [SiteError("site tromso is down"), Cancelled("closed")])
def test_a_failed_sender_is_an_error_each_time_never_an_end(tmp_path: Path, ends_in: Rows, error: SkerryError) -> None:
    result, spools, _ = new_result(tmp_path, ends_in, finished=False)
    spools["bergen"].finish()
    spools["tromso"].fail(error)
    outcomes: list[object] = []
    for _ in range(10):
        try:
            outcomes.append(result.poll())
        except SkerryError as seen:
            outcomes.append(seen)
    assert END not in outcomes
    assert outcomes[-5:] == [error] * 5


def test_the_first_error_of_the_query_hides_all_rows(tmp_path: Path) -> None:
    result, _, _ = new_result(tmp_path, Rows(1, SENDERS))
    first = SiteError("first")
    result.fail(first)
    result.fail(SiteError("second"))
    assert result.error is first
    for _ in range(2):
        with pytest.raises(SiteError, match="first"):
            result.poll()


def test_pages_come_from_the_result(tmp_path: Path) -> None:
    result, _, _ = new_result(tmp_path, Rows(1, SENDERS, Finish(KEYS, 1, 3)))
    page = result.pages.poll(0, 4096, 1 << 20)
    assert not isinstance(page, Signal)
    assert [row for body in page.batches for row in rows_of(body)] == ALL[1:4]
    assert page.is_last


PARTIAL = pa.schema([("k", pa.string()), ("avg(v)", pa.float64()), ("s", pa.float64()), ("c", pa.int64())])
AVERAGE = (MergeStep(0, "any"), MergeStep(1, "mean", (2, 3)))
WIDE = Schema(
    (Column("k", "string"), Column("avg(v)", "double"), Column("s", "double"), Column("c", "bigint")),
    encode_schema(PARTIAL),
)


def partial_result(tmp_path: Path, ends_in: Rows, *rows: list[tuple[Any, ...]]) -> Result:
    result = Result(ends_in, LIMITS, Wakeups())
    for sender, each in zip(ends_in.senders, rows, strict=True):
        result.attach(sender, spool_of(tmp_path, each, schema=PARTIAL), lambda _: None)
    result.schema_known(WIDE)
    return result


@pytest.mark.parametrize(("offset", "limit"), [(0, None), (1, None), (0, 2), (1, 1)])
def test_groups_are_merged_and_hidden_columns_are_not_shown(tmp_path: Path, offset: int, limit: int | None) -> None:
    left = [(None, 1.0, 1.0, 1), ("a", 2.0, 4.0, 2), ("c", None, None, 0)]
    right = [("a", 7.0, 7.0, 1), ("b", 1.0, 3.0, 3)]
    result = partial_result(tmp_path, Rows(1, SENDERS, Finish(KEYS, offset, limit, AVERAGE)), left, right)
    assert result.schema is not None
    assert [column.name for column in result.schema.columns] == ["k", "avg(v)"]
    shown = decode_schema(result.schema.arrow)
    merged = [(None, 1.0), ("a", 11 / 3), ("b", 1.0), ("c", None)]
    assert drain(result, shown) == merged[offset:][:limit]


def test_what_an_open_group_holds_counts_and_is_given_back(tmp_path: Path) -> None:
    budget = Budget(1 << 20, 1 << 20)
    left, right = [("a", 2.0, 4.0, 2), ("c", None, None, 0)], [("a", 7.0, 7.0, 1), ("b", 1.0, 3.0, 3)]
    result = Result(Rows(1, SENDERS, Finish(KEYS, 0, None, AVERAGE)), LIMITS, Wakeups())
    result.count_in(budget)
    for sender, rows in zip(SENDERS, (left, right), strict=True):
        result.attach(sender, spool_of(tmp_path, rows, schema=PARTIAL), lambda _: None)
    result.schema_known(WIDE)
    result.poll()
    assert budget.memory_used > 0
    result.close()
    assert budget.memory_used == 0


def test_a_sum_that_overflows_is_an_error_of_the_statement(tmp_path: Path) -> None:
    steps = (MergeStep(3, "sum"),)
    rows = [("a", 1.0, 1.0, 2**62)]
    result = partial_result(tmp_path, Rows(1, SENDERS, Finish((), 0, None, steps)), rows, rows)
    with pytest.raises(SqlError, match="ARITHMETIC_OVERFLOW"):
        result.poll()

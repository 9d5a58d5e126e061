"""Around a Spark job: tasks for an edge, rows from the driver, lanes into one spool."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from skerry.exchange.lanes import Lanes
from skerry.exchange.spool import Budget, Spool
from skerry.member.inputs import Arriving
from skerry.member.jobs import fill_from_table, merge_lanes, partitions_for
from skerry.model.errors import SiteError
from skerry.model.fragment import Output, SortKey
from skerry.model.ids import ChannelId
from skerry.model.limits import MIB, Limits
from skerry.wire.channels import ChannelIn
from tests.unit.member.member_samples import ARROW, QUERY, SCHEMA, batch_of, rows_of, spool_of

LIMITS = Limits()


def arriving(tmp_path: Path, received_bytes: int, finished: bool) -> Arriving:
    spool = spool_of(tmp_path, finished=finished)
    channel = ChannelIn(
        ChannelId(QUERY, 1, "bergen", "oslo"),
        LIMITS,
        append=lambda _header, _body: None,
        finish=spool.finish,
        fail=spool.fail,
    )
    channel.received_bytes = received_bytes
    return Arriving(channel, spool)


@pytest.mark.parametrize(
    ("sizes", "finished", "expected"),
    [((0,), True, 1), ((MIB, MIB), True, 1), ((9 * MIB,), True, 2), ((90 * MIB, MIB), True, 4), ((0, 0), False, 4)],
)
def test_a_small_edge_is_read_by_one_task(
    tmp_path: Path, sizes: tuple[int, ...], finished: bool, expected: int
) -> None:
    assert partitions_for([arriving(tmp_path, size, finished) for size in sizes], 4) == expected


def test_rows_from_the_driver_become_batches_within_bounds(tmp_path: Path) -> None:
    rows = [(number, "x" * 100) for number in range(1000)]
    table = pa.Table.from_batches([batch_of(rows), batch_of([]), batch_of([(1000, "y" * 20_000)])])
    spool = spool_of(tmp_path, finished=False)
    counted = fill_from_table(spool, table, Limits(batch_rows=300, batch_bytes=8_000))
    assert counted == (1001, sum(spool.read(index).decoded_bytes for index in range(spool.length)))
    entries = [spool.read(index) for index in range(spool.length)]
    assert [row for entry in entries for row in rows_of(entry.body)] == [*rows, (1000, "y" * 20_000)]
    assert all(entry.decoded_bytes <= 8_000 for entry in entries if entry.rows > 1)
    assert spool.finished


def test_no_rows_from_the_driver(tmp_path: Path) -> None:
    spool = spool_of(tmp_path, finished=False)
    assert fill_from_table(spool, pa.Table.from_batches([], ARROW), LIMITS) == (0, 0)
    assert (spool.length, spool.finished) == (0, True)


KEYS = (SortKey(0, False, True),)


def merged(lanes: list[Spool], output: Output) -> tuple[list[tuple[Any, ...]], bool]:
    run = Spool(lanes[0].budget, ".", "run")
    found = asyncio.run(merge_lanes(lanes, output, SCHEMA, run, LIMITS))
    rows = [row for index in range(found.length) for row in rows_of(found.read(index).body)]
    assert found.finished
    return rows, found is run


def lanes_of(tmp_path: Path, *lanes: list[tuple[int, str]]) -> list[Spool]:
    return [spool_of(tmp_path, *([rows] if rows else [])) for rows in lanes]


def test_lanes_that_are_sorted_runs_are_merged(tmp_path: Path) -> None:
    lanes = lanes_of(tmp_path, [(1, "a"), (4, "b")], [], [(2, "c"), (4, "d")])
    assert merged(lanes, Output(1, ("oslo",), "merge", KEYS)) == ([(1, "a"), (2, "c"), (4, "b"), (4, "d")], True)
    assert all(lane.first == lane.length for lane in lanes)


@pytest.mark.parametrize("order", ["lanes", "any"])
def test_other_lanes_keep_their_order(tmp_path: Path, order: str) -> None:
    lanes = lanes_of(tmp_path, [(9, "a")], [], [(2, "c"), (1, "d")])
    assert merged(lanes, Output(1, ("oslo",), order)) == ([(9, "a"), (2, "c"), (1, "d")], False)


def test_one_run_is_merged_already(tmp_path: Path) -> None:
    lanes = lanes_of(tmp_path, [], [(1, "a"), (2, "b")])
    assert merged(lanes, Output(1, ("oslo",), "merge", KEYS)) == ([(1, "a"), (2, "b")], False)
    assert merged(lanes_of(tmp_path, []), Output(1, ("oslo",), "merge", KEYS)) == ([], False)


def test_a_run_that_is_not_sorted_is_an_error(tmp_path: Path) -> None:
    lanes = lanes_of(tmp_path, [(1, "a")], [(2, "c"), (1, "d")])
    with pytest.raises(SiteError, match="not sorted"):
        merged(lanes, Output(1, ("oslo",), "merge", KEYS))


def test_lanes_read_as_one_spool(tmp_path: Path) -> None:
    budget = Budget(MIB, MIB)
    spools = [Spool(budget, str(tmp_path), f"lane {number}") for number in range(4)]
    for number, count in enumerate((2, 0, 3, 1)):
        for place in range(count):
            spools[number].append(spool_of(tmp_path, [(number, str(place))]).read(0))
        spools[number].finish()
    lanes = Lanes(spools)
    assert (lanes.length, lanes.first, lanes.finished, lanes.failed) == (6, 0, True, None)
    read = [rows_of(lanes.read(index).body)[0] for index in range(lanes.length)]
    assert read == [(0, "0"), (0, "1"), (2, "0"), (2, "1"), (2, "2"), (3, "0")]
    lanes.release(3)
    lanes.release(1)
    assert lanes.first == 3
    assert [spool.first for spool in spools] == [2, 0, 1, 0]
    assert rows_of(lanes.read(3).body) == [(2, "1")]
    woken: list[int] = []
    lanes.subscribe(lambda: woken.append(1))
    error = SiteError("stopping")
    lanes.fail(error)
    lanes.fail(SiteError("later"))
    assert (lanes.finished, lanes.failed) == (False, error)
    lanes.close()
    assert len(woken) == 3
    assert budget.memory_used == 0


def test_no_lanes_are_an_empty_spool() -> None:
    lanes = Lanes([])
    assert (lanes.length, lanes.finished) == (0, True)
    lanes.release(0)
    lanes.close()
    assert lanes.first == 0

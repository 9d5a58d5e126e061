"""Gather, Limit and SpoolInput: small inputs made of others."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from skerry.exchange.gather import Gather
from skerry.exchange.input import END, WAIT, Input, Polled, Signal
from skerry.exchange.limit import Limit
from skerry.exchange.reader import SpoolInput, share
from skerry.exchange.spool import Body, Budget, Entry, Spool
from skerry.model.errors import SiteError
from skerry.model.limits import MIB

SCHEMA = pa.schema([("number", pa.int64())])


class Script:
    """An Input that says what is written down, and counts how often it was asked."""

    def __init__(self, *answers: list[int] | Signal) -> None:
        self.answers = list(answers)
        self.polls = 0

    def poll(self) -> Polled:
        self.polls += 1
        if not self.answers:
            return END
        answer = self.answers.pop(0)
        return answer if isinstance(answer, Signal) else pa.record_batch([pa.array(answer, pa.int64())], SCHEMA)


def polls(source: Input, count: int) -> list[list[int] | Signal]:
    answers = [source.poll() for _ in range(count)]
    return [answer if isinstance(answer, Signal) else answer.column(0).to_pylist() for answer in answers]


def test_gather_takes_turns() -> None:
    gather = Gather([Script([1], [2], [3]), Script(WAIT, [10], [20]), Script()])
    assert polls(gather, 7) == [[1], [2], [10], [3], [20], END, END]


def test_gather_waits_when_all_that_remain_wait() -> None:
    gather = Gather([Script(WAIT, WAIT), Script(WAIT), Script()])
    assert polls(gather, 4) == [WAIT, WAIT, END, END]
    assert polls(Gather([]), 1) == [END]


@pytest.mark.parametrize(
    ("offset", "limit", "expected"),
    [
        (0, None, [[0, 1, 2], [3, 4], [5]]),
        (0, 4, [[0, 1, 2], [3]]),
        (0, 5, [[0, 1, 2], [3, 4]]),
        (1, 1, [[1]]),
        (3, None, [[3, 4], [5]]),
        (4, 10, [[4], [5]]),
        (6, 1, []),
        (0, 0, []),
        (100, None, []),
    ],
)
def test_limit_slices(offset: int, limit: int | None, expected: list[list[int]]) -> None:
    source = Limit(Script([0, 1, 2], [], [3, 4], [5]), offset, limit)
    assert polls(source, len(expected) + 1) == [*expected, END]
    assert source.satisfied == (limit is not None and sum(map(len, expected)) == limit)


def test_a_full_limit_asks_no_more() -> None:
    script = Script([0, 1], WAIT, [2])
    limit = Limit(script, 0, 2)
    satisfied = [limit.satisfied]
    assert polls(limit, 1) == [[0, 1]]
    satisfied.append(limit.satisfied)
    assert satisfied == [False, True]
    assert polls(limit, 2) == [END, END]
    assert script.polls == 1


def decode(body: Body, schema: pa.Schema) -> pa.RecordBatch:
    return pa.record_batch([pa.array(list(bytes(body)), pa.int64())], schema)


@pytest.mark.parametrize("release", [False, True])
def test_a_spool_is_an_input(tmp_path: Path, release: bool) -> None:
    spool = Spool(Budget(MIB, 0), tmp_path, "query oslo/1 edge 3")
    consumed: list[int] = []
    source = SpoolInput(spool, SCHEMA, decode, release=release, on_consumed=consumed.append)
    assert polls(source, 1) == [WAIT]
    spool.append(Entry(b"\x01\x02", 2, 20))
    spool.append(Entry(b"", 0, 5))
    spool.append(Entry(b"\x03", 1, 10))
    assert polls(source, 3) == [[1, 2], [3], WAIT]
    assert consumed == [20, 5, 10]
    assert spool.first == (3 if release else 0)
    spool.finish()
    assert polls(source, 2) == [END, END]
    if not release:
        assert polls(SpoolInput(spool, SCHEMA, decode), 3) == [[1, 2], [3], END]
    spool.close()
    assert spool.budget.memory_used == 0


def test_an_error_of_the_spool_is_raised_at_once(tmp_path: Path) -> None:
    spool = Spool(Budget(MIB, 0), tmp_path, "query oslo/1 edge 3")
    spool.append(Entry(b"\x01", 1, 1))
    spool.fail(SiteError("site bergen: lost"))
    source = SpoolInput(spool, SCHEMA, decode)
    for _ in range(2):
        with pytest.raises(SiteError, match="site bergen: lost"):
            source.poll()


def test_shares_of_a_spool_are_disjoint_and_complete() -> None:
    for partitions in (1, 3, 7):
        shares = [[index for index in range(20) if share(index, part, partitions)] for part in range(partitions)]
        assert sorted(index for part in shares for index in part) == list(range(20))

from __future__ import annotations

import os
import resource
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest

from skerry.exchange.index import INDEX_BYTES
from skerry.exchange.spool import Budget, Entry, Spool
from skerry.model.errors import Overloaded, SiteError
from skerry.model.limits import ENTRY_BYTES, GIB, MIB

NAME = "query oslo/1f2e edge 3"


def spool_on_disk(directory: Path) -> Spool:
    return Spool(Budget(0, 1 * MIB), directory, NAME)


def test_memory_comes_first_then_disk(tmp_path: Path) -> None:
    budget = Budget(memory_bytes=2 * (100 + ENTRY_BYTES), disk_bytes=10_000)
    spool = Spool(budget, tmp_path, NAME)
    for number in range(5):
        spool.append(Entry(bytes([number]) * 100, rows=number, decoded_bytes=1000))
    assert budget.memory_used == budget.memory_peak == 2 * (100 + ENTRY_BYTES) + 3 * INDEX_BYTES
    assert budget.disk_used == 3 * (100 + ENTRY_BYTES)
    assert [bytes(spool.read(number).body) for number in range(5)] == [bytes([number]) * 100 for number in range(5)]
    assert [spool.read(number).rows for number in range(5)] == [0, 1, 2, 3, 4]
    spool.close()
    spool.close()
    assert (budget.memory_used, budget.disk_used) == (0, 0)
    assert budget.memory_peak == 2 * (100 + ENTRY_BYTES) + 3 * INDEX_BYTES


def test_very_many_tiny_batches_on_disk_stay_within_the_memory_for_their_index(tmp_path: Path) -> None:
    """What is on disk is not free of memory: a gigabyte of disk has room for millions of batches of one row."""
    budget = Budget(memory_bytes=4 * MIB, disk_bytes=GIB)
    budget.take_memory(4 * MIB - ENTRY_BYTES)  # by others
    spool, body = Spool(budget, tmp_path, NAME), b"one row"
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        while spool.has_room(len(body)):
            spool.append(Entry(body, 1, len(body)))
        held = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert spool.length == MIB // INDEX_BYTES
    assert budget.disk_used < GIB
    assert budget.memory_used == 4 * MIB + spool.length * INDEX_BYTES <= 5 * MIB
    assert held <= spool.length * INDEX_BYTES  # the counter tells the truth
    with pytest.raises(Overloaded, match=r"spool full: 21845 batches are on disk, more than 1 MiB of memory can keep"):
        spool.append(Entry(body, 1, len(body)))
    spool.release(1)
    assert spool.has_room(len(body))
    spool.append(Entry(body, 1, len(body)))
    spool.close()
    assert (budget.index_used, budget.memory_used) == (0, 4 * MIB)


@pytest.mark.parametrize("wrap", [bytes, memoryview, pa.py_buffer])
@pytest.mark.parametrize("memory_bytes", [0, MIB])
def test_any_bytes_can_be_a_body(tmp_path: Path, wrap: type, memory_bytes: int) -> None:
    spool = Spool(Budget(memory_bytes, MIB), tmp_path, NAME)
    spool.append(Entry(wrap(b"arrow"), 1, 5))
    spool.append(Entry(wrap(b""), 0, 0))
    assert [bytes(spool.read(index).body) for index in (0, 1, 0)] == [b"arrow", b"", b"arrow"]
    spool.close()


def test_a_full_spool_says_what_is_full_and_which_limits() -> None:
    budget = Budget(64 * MIB, 16 * GIB)
    budget.take_memory(64 * MIB - ENTRY_BYTES)
    budget.disk_used = 16 * GIB
    spool = Spool(budget, "/nowhere", NAME)
    assert not spool.has_room(1)
    with pytest.raises(Overloaded) as caught:
        spool.append(Entry(b"x", 1, 1))
    assert caught.value.message == (
        "query oslo/1f2e edge 3: spool full: 64 MiB of memory and 16 GiB of disk are used, "
        "of 64 MiB (limits.spool_memory_bytes) and 16 GiB (limits.spool_disk_bytes)"
    )
    assert spool.length == 0


def test_a_missing_directory_is_named(tmp_path: Path) -> None:
    missing = tmp_path / "gone"
    spool = spool_on_disk(missing)
    with pytest.raises(Overloaded, match=f"cannot spool to {missing}: No such file") as caught:
        spool.append(Entry(b"x", 1, 1))
    assert str(missing) in caught.value.suggestion
    assert spool.budget.disk_used == 0


@contextmanager
def files_of_4_kib() -> Iterator[None]:
    """The disk refuses to write on, by the kernel's own word. Not a fixture: pytest's own output may be a file."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_disk_that_refuses_to_write_loses_nothing_that_was_written(tmp_path: Path) -> None:
    spool = spool_on_disk(tmp_path)
    with files_of_4_kib():
        spool.append(Entry(b"a" * 3000, 1, 3000))
        with pytest.raises(Overloaded, match=f"{NAME}: cannot spool to {tmp_path}: File too large"):
            spool.append(Entry(b"b" * 3000, 1, 3000))
        spool.append(Entry(b"c" * 1000, 1, 1000))
    assert [bytes(spool.read(index).body)[:1] for index in (0, 1)] == [b"a", b"c"]
    assert spool.budget.disk_used == 4000 + 2 * ENTRY_BYTES
    spool.close()
    assert spool.budget.disk_used == 0


def test_a_first_write_that_fails_leaves_no_file_open(tmp_path: Path) -> None:
    spool = spool_on_disk(tmp_path)
    with files_of_4_kib(), pytest.raises(Overloaded):
        spool.append(Entry(b"b" * 5000, 1, 5000))
    assert spool.budget._open == {}
    assert spool.budget.disk_used == 0


@pytest.mark.parametrize("damage", ["flip", "truncate"])
def test_a_damaged_file_is_noticed(tmp_path: Path, damage: str) -> None:
    spool = spool_on_disk(tmp_path)
    spool.append(Entry(b"whole", 1, 5))
    spool.append(Entry(b"broken", 1, 6))
    (segment,) = spool.budget._open.values()
    if damage == "flip":
        os.pwrite(segment._file.fileno(), b"k", 5)
    else:
        os.ftruncate(segment._file.fileno(), 8)
    assert spool.read(0).body == b"whole"
    with pytest.raises(SiteError, match=f"{NAME}: entry 1 of the spool in {tmp_path} is damaged"):
        spool.read(1)
    spool.close()


def test_spools_of_a_query_share_files_and_give_back_whole_ones(tmp_path: Path) -> None:
    budget = Budget(0, MIB, segment_bytes=2000)
    spools = [Spool(budget, tmp_path, f"lane {lane}") for lane in range(3)]
    for spool in spools:
        spool.append(Entry(b"x" * 1000, 1, 1000))
    one = 1000 + ENTRY_BYTES
    assert budget.disk_used == 3 * one
    spools[0].release(1)
    assert budget.disk_used == 3 * one  # the file still holds lane 1
    spools[1].release(1)
    assert budget.disk_used == one
    assert bytes(spools[2].read(0).body) == b"x" * 1000
    for spool in spools:
        spool.close()
    assert budget.disk_used == 0


def test_who_waits_for_room_is_told(tmp_path: Path) -> None:
    budget = Budget(ENTRY_BYTES + 15, 0)
    told: list[bool] = []
    full, other = Spool(budget, tmp_path, "full"), Spool(budget, tmp_path, "other")
    unsubscribe = budget.subscribe(lambda: told.append(other.has_room(10)))
    full.append(Entry(b"x" * 10, 1, 10))
    assert told == []
    assert not other.has_room(10)
    full.release(1)
    full.release(1)
    assert told == [True]
    unsubscribe()
    unsubscribe()
    full.append(Entry(b"x" * 10, 1, 10))
    full.close()
    assert told == [True]


def test_a_subscriber_may_leave_from_within_its_call(tmp_path: Path) -> None:
    spool = Spool(Budget(MIB, 0), tmp_path, NAME)
    calls: list[str] = []

    def first() -> None:
        calls.append("first")
        leave_first()
        leave_second()

    leave_first = spool.subscribe(first)
    leave_second = spool.subscribe(lambda: calls.append("second"))
    spool.append(Entry(b"", 0, 0))
    spool.finish()
    assert calls == ["first"]


def test_the_first_error_stays_and_is_raised_after_the_entries(tmp_path: Path) -> None:
    spool = Spool(Budget(MIB, 0), tmp_path, NAME)
    spool.append(Entry(b"x", 1, 1))
    spool.fail(SiteError("first"))
    spool.fail(SiteError("second"))
    spool.finish()
    assert not spool.finished
    assert spool.read(0).body == b"x"
    with pytest.raises(SiteError, match="first"):
        spool.read(1)
    with pytest.raises(SiteError, match="first"):
        spool.append(Entry(b"x", 1, 1))


def test_a_floor_of_free_space_is_left_to_others(tmp_path: Path) -> None:
    spool = spool_on_disk(tmp_path)
    spool.append(Entry(b"a" * 100, 1, 100))
    spool.budget.floor_bytes = 2**62
    with pytest.raises(Overloaded, match=r"cannot spool to .*: less than .* are free \(limits.buffer_floor_bytes\)"):
        spool.append(Entry(b"b" * 100, 1, 100))
    spool.budget.floor_bytes = 1
    assert spool.append(Entry(b"c" * 100, 1, 100)) == 1
    spool.close()
    assert spool.budget.disk_used == 0


def test_a_spool_that_gives_way_leaves_free_what_another_was_promised(tmp_path: Path) -> None:
    one = 1000 + ENTRY_BYTES
    budget = Budget(8 * one, 0)
    arriving = Spool(budget, tmp_path, "arriving")
    sink = Spool(budget, tmp_path, "sink", gives_way=True)
    arriving.promise(3 * one)
    while sink.has_room(1000):
        sink.append(Entry(b"x" * 1000, 1, 1000))
    assert sink.length == 5
    for left in (2, 1, 0):  # what has come is no longer promised: the sink's share does not shrink
        arriving.append(Entry(b"x" * 1000, 1, 1000))
        assert budget.promised_bytes == left * one
    arriving.release(2)
    assert not sink.has_room(1000)  # so much may come again
    told: list[bool] = []
    budget.subscribe(lambda: told.append(sink.has_room(1000)))
    arriving.finish()
    assert told == [True]
    assert budget.promised_bytes == 0
    arriving.promise(3 * one)
    assert budget.promised_bytes == 0


def test_promises_take_half_of_the_room_at_most(tmp_path: Path) -> None:
    budget = Budget(4 * (1000 + ENTRY_BYTES), 0)
    arriving = [Spool(budget, tmp_path, f"from {number}") for number in range(9)]
    for spool in arriving:
        spool.promise(MIB)
    sink = Spool(budget, tmp_path, "sink", gives_way=True)
    while sink.has_room(1000):
        sink.append(Entry(b"x" * 1000, 1, 1000))
    assert sink.length == 2
    for spool in arriving:
        spool.close()
    assert budget.promised_bytes == 0


def test_a_spool_that_gives_way_pins_no_file_of_another(tmp_path: Path) -> None:
    budget = Budget(0, MIB)
    arriving = Spool(budget, tmp_path, "arriving")
    sink = Spool(budget, tmp_path, "sink", gives_way=True)
    for spool in (arriving, sink):
        spool.append(Entry(b"x" * 1000, 1, 1000))
    arriving.release(1)
    assert budget.disk_used == 1000 + ENTRY_BYTES
    sink.close()
    assert budget.disk_used == 0

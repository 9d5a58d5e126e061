"""The task port over a real Unix socket, with the code that Spark's tasks run, but without a Spark."""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from skerry.exchange.intake import Attempt, Intake
from skerry.exchange.spool import Budget, Entry, Spool
from skerry.member.stores import DirectStore, LaneStore
from skerry.member.taskport import TaskPort
from skerry.model.errors import Overloaded, PeerError, SiteError
from skerry.model.ids import QueryId
from skerry.model.limits import KIB, MIB, Limits
from skerry.model.table import Column
from skerry.spark.engine import EdgeInput, SinkOutput
from skerry.spark.sink import SinkSpec, hand_over, sized_pieces
from skerry.spark.source import SourceSpec, decode_spec, encode_spec, read_share
from skerry.wire.codec import decoded_bytes, encode_batch, encode_schema
from skerry.wire.frames import ConnectionLost
from skerry.wire.session import Identity

QUERY = QueryId("oslo", "0" * 32)
SCHEMA = pa.schema([("n", pa.int64())])
LIMITS = Limits()
FIRST = Attempt(0, 7)


def batches(count: int, rows: int = 10) -> list[pa.RecordBatch]:
    return [
        pa.record_batch([pa.array(range(number * rows, (number + 1) * rows), pa.int64())], schema=SCHEMA)
        for number in range(count)
    ]


class World:
    """A task port, its budget, and the two functions that tasks run, in threads."""

    def __init__(self, port: TaskPort, address: str, folder: Path) -> None:
        self.port = port
        self.address = address
        self.folder = folder
        self.budget = Budget(MIB, MIB)

    def spool(self, budget: Budget | None = None) -> Spool:
        return Spool(budget or self.budget, self.folder, "test")

    async def sink(self, items: Iterator[pa.RecordBatch], attempt: Attempt = FIRST, token: str = "t") -> Any:
        output = SinkOutput(QUERY, 1, self.address, token, "test")
        spec = SinkSpec(output, encode_schema(SCHEMA), LIMITS)
        return await asyncio.to_thread(hand_over, spec, attempt.partition, attempt.attempt, items)

    async def source(self, partition: int = 0, partitions: int = 1, token: str = "t") -> list[int]:
        edge = EdgeInput(QUERY, 3, (Column("n", "bigint"),), self.address, token, partitions, "test")
        spec = decode_spec(encode_spec(SourceSpec(edge, encode_schema(SCHEMA), LIMITS)))

        def read() -> list[int]:
            return [value for batch in read_share(spec, partition) for value in batch.column(0).to_pylist()]

        return await asyncio.to_thread(read)


def pieces(batch: pa.RecordBatch, limits: Limits) -> Iterator[pa.RecordBatch]:
    for piece, size in sized_pieces(batch, limits):
        assert size == decoded_bytes(piece)
        yield piece


def in_a_world(test: Callable[[World], Awaitable[None]], folder: Path) -> None:
    async def run() -> None:
        port = TaskPort(LIMITS)
        listener = await port.listen(f"unix:{folder}/s", Identity("test", "oslo", 1))
        try:
            async with asyncio.timeout(30):
                await test(World(port, listener.address, folder))
        finally:
            port.forget(QUERY)
            await listener.stop()
        assert port.connections() == 0

    asyncio.run(run())


async def until(condition: Callable[[], bool]) -> None:
    while not condition():
        await asyncio.sleep(0.001)


def test_a_sink_s_rows_are_in_the_spool_before_the_task_ends(tmp_path: Path) -> None:
    async def test(world: World) -> None:
        spool, intake = world.spool(), Intake(1, False)
        world.port.register_sink(QUERY, 1, "t", intake, DirectStore(spool, waits=False))
        rows = [await world.sink(iter(batches(3)), Attempt(number, 100 + number)) for number in range(2)]
        assert intake.settle(rows) == [Attempt(0, 100), Attempt(1, 101)]
        assert (spool.length, intake.rows) == (6, 60)

    in_a_world(test, tmp_path)


def test_lanes_are_kept_apart_and_finished_one_by_one(tmp_path: Path) -> None:
    async def test(world: World) -> None:
        store = LaneStore(world.budget, tmp_path, "test")
        intake = Intake(1, True)
        world.port.register_sink(QUERY, 1, "t", intake, store)
        row = await world.sink(iter(batches(2)), Attempt(0, 1))

        def broken() -> Iterator[pa.RecordBatch]:
            yield from batches(1)
            raise RuntimeError("the task dies")

        with pytest.raises(RuntimeError):
            await world.sink(broken(), Attempt(1, 2))
        await until(lambda: Attempt(1, 2) not in store.lanes)  # its rows are dropped: the task will be retried
        again = await world.sink(iter(batches(1)), Attempt(1, 3))
        assert intake.settle([again, row]) == [Attempt(0, 1), Attempt(1, 3)]
        assert list(store.lanes) == [Attempt(0, 1), Attempt(1, 3)]
        assert all(lane.finished for lane in store.lanes.values())
        store.close()
        assert world.budget.memory_used == 0

    in_a_world(test, tmp_path)


def test_an_attempt_that_was_lost_is_dropped_once_and_one_that_lost_is_told_so(tmp_path: Path) -> None:
    store = LaneStore(Budget(MIB, MIB), tmp_path, "query q fragment 1")
    entry = Entry(b"body", 1, 8)
    for attempt in (FIRST, Attempt(0, 8)):
        store.open(attempt)
        store.append(attempt, entry)
    store.drop(FIRST)
    store.drop(FIRST)  # its connection ended, then the job
    for late in (lambda: store.append(FIRST, entry), lambda: store.end(FIRST)):
        with pytest.raises(SiteError, match="partition 0: another attempt has won"):
            late()
    store.end(Attempt(0, 8))
    assert [lane.length for lane in store.lanes.values()] == [1]
    store.close()


def test_a_lost_task_fails_a_fragment_whose_rows_have_gone_on(tmp_path: Path) -> None:
    async def test(world: World) -> None:
        intake = Intake(1, False)
        world.port.register_sink(QUERY, 1, "t", intake, DirectStore(world.spool(), waits=False))

        def broken() -> Iterator[pa.RecordBatch]:
            yield from batches(1)
            while intake.rows < 10:  # what the outbox still holds goes with the connection
                time.sleep(0.01)
            raise RuntimeError("the task dies")

        with pytest.raises(RuntimeError):
            await world.sink(broken())
        await until(lambda: world.port.connections() == 0)
        with pytest.raises(SiteError, match="the task went away after 1 batches"):
            intake.settle([])

    in_a_world(test, tmp_path)


def test_a_full_store_holds_the_task_back_until_there_is_room(tmp_path: Path) -> None:
    async def test(world: World) -> None:
        spool, intake = world.spool(Budget(64 * KIB, 0)), Intake(1, False)
        world.port.register_sink(QUERY, 1, "t", intake, DirectStore(spool, waits=True))
        running = asyncio.create_task(world.sink(iter(batches(200, 1000))))
        await until(lambda: world.port.waiting_s(QUERY) > 0)
        assert spool.length < 10
        unsubscribe = spool.subscribe(lambda: spool.release(spool.length))
        spool.release(spool.length)
        intake.settle([await running])
        unsubscribe()
        assert (intake.rows, world.port.waiting_s(QUERY)) == (200_000, 0.0)

    in_a_world(test, tmp_path)


def test_rows_for_a_quick_reader_stay_off_the_disk_and_those_for_a_slow_one_wait_there(tmp_path: Path) -> None:
    async def test(world: World) -> None:
        loop, waited = asyncio.get_running_loop(), []
        for is_quick in (True, False):
            budget = Budget(64 * KIB, 4 * MIB)
            spool, intake = world.spool(budget), Intake(1, False)
            store = DirectStore(spool, waits=True)
            world.port.register_sink(QUERY, 1, "t", intake, store)

            def read(spool: Spool = spool, store: DirectStore = store) -> None:
                if store.would_spill(9 * KIB):
                    waited.append(spool.length)
                    loop.call_soon(lambda: spool.release(spool.length))

            unsubscribe = spool.subscribe(read) if is_quick else lambda: None
            intake.settle([await world.sink(iter(batches(200, 1000)))])
            unsubscribe()
            assert (spool.length, budget.disk_peak > 0) == (200, not is_quick)
            assert store.would_spill(MIB) == is_quick  # whoever reads that slowly is not waited for again
            spool.close()
        assert len(waited) > 10

    in_a_world(test, tmp_path)


def test_a_full_store_that_must_not_wait_is_a_clear_error(tmp_path: Path) -> None:
    async def test(world: World) -> None:
        for waits in (False, True):  # a batch that can never fit is an error there too
            spool = world.spool(Budget(KIB, 0))
            world.port.register_sink(QUERY, 1, "t", Intake(1, False), DirectStore(spool, waits=waits))
            with pytest.raises(Overloaded, match="spool full"):
                await world.sink(iter(batches(3, 1000)))

    in_a_world(test, tmp_path)


def test_forget_ends_every_wait_at_once(tmp_path: Path) -> None:
    async def test(world: World) -> None:
        store = DirectStore(world.spool(Budget(16 * KIB, 0)), waits=True)
        world.port.register_sink(QUERY, 1, "t", Intake(1, False), store)
        world.port.register_edge(QUERY, 3, "t", [world.spool()])
        running = [
            asyncio.create_task(world.sink(iter(batches(500, 1000)))),
            asyncio.create_task(world.source()),
        ]
        await until(lambda: world.port.connections(QUERY) == 2 and world.port.waiting_s(QUERY) > 0)
        world.port.forget(QUERY)
        for ended in await asyncio.gather(*running, return_exceptions=True):
            assert isinstance(ended, ConnectionLost)
        with pytest.raises(PeerError, match="is not running at this member"):
            await world.source()

    in_a_world(test, tmp_path)


def test_a_late_task_is_refused_in_silence_and_a_stranger_s_with_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def test(world: World) -> None:
        for is_late in (False, True):
            if is_late:
                world.port.register_edge(QUERY, 3, "t", [world.spool()])
                world.port.forget(QUERY)
            caplog.clear()
            with pytest.raises(PeerError, match="is not running at this member"):
                await world.source()
            warned = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
            assert any("is not running at this member" in line for line in warned) != is_late

    in_a_world(test, tmp_path)


def test_shares_cover_all_channels_exactly_once_and_can_be_read_again(tmp_path: Path) -> None:
    async def test(world: World) -> None:
        spools = [world.spool(), world.spool()]
        for spool, items in zip(spools, (batches(5), batches(2)), strict=True):
            for batch in items:
                spool.append(Entry(encode_batch(batch), batch.num_rows, decoded_bytes(batch)))
            spool.append(Entry(b"", 0, 0))  # an empty batch is no batch
            spool.finish()
        world.port.register_edge(QUERY, 3, "t", spools)
        for _ in range(2):
            shares = [await world.source(partition, 3) for partition in range(3)]
            assert sorted(value for found in shares for value in found) == sorted([*range(50), *range(20)])
            assert all(shares)

    in_a_world(test, tmp_path)


def test_a_source_waits_for_rows_and_fails_with_its_channel(tmp_path: Path) -> None:
    async def test(world: World) -> None:
        spool = world.spool()
        world.port.register_edge(QUERY, 3, "t", [spool])
        running = asyncio.create_task(world.source())
        await until(lambda: world.port.connections(QUERY) == 1)
        for batch in batches(2):
            spool.append(Entry(encode_batch(batch), batch.num_rows, decoded_bytes(batch)))
        spool.fail(SiteError("bergen is down"))
        with pytest.raises(SiteError, match="bergen is down"):
            await running

    in_a_world(test, tmp_path)


@pytest.mark.parametrize("what", ["sink", "source"])
def test_a_wrong_token_is_refused(tmp_path: Path, what: str) -> None:
    async def test(world: World) -> None:
        world.port.register_sink(QUERY, 1, "t", Intake(1, False), DirectStore(world.spool(), waits=False))
        world.port.register_edge(QUERY, 3, "t", [world.spool()])
        with pytest.raises(PeerError, match="is not open to this task"):
            await (world.sink(iter(batches(1)), token="x") if what == "sink" else world.source(token="x"))

    in_a_world(test, tmp_path)


def test_batches_are_cut_near_the_target_and_below_a_frame() -> None:
    limits = Limits(batch_bytes=KIB, frame_bytes=64 * KIB)
    rows = ["x" * (10 if number % 50 else 20 * KIB) for number in range(500)]
    batch = pa.record_batch([pa.array(rows)], names=["s"])
    cut = list(pieces(batch, limits))
    assert [value for piece in cut for value in piece.column(0).to_pylist()] == rows
    assert all(len(encode_batch(piece)) < limits.frame_bytes for piece in cut)
    assert all(decoded_bytes(piece) <= 4 * KIB or piece.num_rows == 1 for piece in cut)
    assert list(pieces(batch.slice(0, 0), limits)) == []
    # A small spool wants small batches: a window of pages has one of them in each at least.
    small = Limits(spool_memory_bytes=64 * KIB)
    assert all(decoded_bytes(piece) <= 2 * KIB or piece.num_rows == 1 for piece in pieces(batch, small))
    with pytest.raises(Overloaded, match="one row takes"):
        list(pieces(pa.record_batch([pa.array(["x" * 70 * KIB])], names=["s"]), limits))


def test_what_tasks_import_does_not_bring_pandas() -> None:
    """It would cost every new Python worker of Spark about a second."""
    program = """
import sys
import pyarrow as pa
from skerry.exchange.intake import SinkRow
from skerry.spark.sink import encode_row, sized_pieces
from skerry.spark.source import read_share
from skerry.model.limits import Limits
from skerry.wire.codec import decode_batch, encode_batch
row = encode_row(SinkRow(0, 2**62, 3, 4, 5))
for piece, _ in sized_pieces(row, Limits()):
    assert decode_batch(encode_batch(piece), row.schema, 1 << 20).equals(row)
assert "pandas" not in sys.modules, "pandas was imported"
assert row.column(1)[0].as_py() == 2**62
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr

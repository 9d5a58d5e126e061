"""Tasks that are stopped for longer than any wait of the wire: a busy machine, garbage collection, a heavy batch."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from skerry.exchange.intake import Intake
from skerry.exchange.spool import Budget, Entry, Spool
from skerry.member.stores import DirectStore
from skerry.member.taskport import TaskPort
from skerry.model.ids import QueryId
from skerry.model.limits import MIB, Limits
from skerry.model.table import Column
from skerry.spark.engine import EdgeInput, SinkOutput
from skerry.spark.sink import SinkSpec
from skerry.spark.source import SourceSpec, encode_spec
from skerry.wire.codec import decoded_bytes, encode_batch, encode_schema
from skerry.wire.session import Identity
from tests.unit.spark.pausing_task import MEMBER_TO_TASK, READS_NOTHING, TASK_TO_MEMBER
from tests.unit.spark.task_rows import ROWS, SCHEMA, made

pytestmark = pytest.mark.slow

QUERY = QueryId("oslo", "0" * 32)
LIMITS = Limits(login_s=0.05, wait_s=0.05)
PAUSE_S = 0.2  # longer than both
TOKEN = "t"


class World:
    """A task port with a sink and an edge, and the process of a task that stops itself again and again."""

    def __init__(self, port: TaskPort, address: str, folder: Path, batches: int) -> None:
        self.port, self.address = port, address
        self.intake, self.spool = Intake(1, False), Spool(Budget(64 * MIB, 0), folder, "sink")
        self.edge = Spool(Budget(64 * MIB, 0), folder, "edge")
        port.register_sink(QUERY, 1, TOKEN, self.intake, DirectStore(self.spool, waits=False))
        port.register_edge(QUERY, 3, TOKEN, [self.edge])
        for batch in made(SCHEMA, batches):
            self.edge.append(Entry(encode_batch(batch), batch.num_rows, decoded_bytes(batch)))
        self.edge.finish()

    def start(self, what: str) -> subprocess.Popen[str]:
        spec = msgspec.msgpack.encode(
            SinkSpec(SinkOutput(QUERY, 1, self.address, TOKEN, "test"), encode_schema(SCHEMA), LIMITS)
        ).hex()
        if what != TASK_TO_MEMBER:
            edge = EdgeInput(QUERY, 3, (Column("n", "bigint"),), self.address, TOKEN, 1, "test")
            spec = encode_spec(SourceSpec(edge, encode_schema(SCHEMA), LIMITS))
        command = [sys.executable, "-m", "tests.unit.spark.pausing_task", what, spec]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    async def run(self, what: str) -> tuple[str, str, int]:
        """What the task said, and how often it stopped."""
        process, stops = self.start(what), 0
        try:
            while await asyncio.to_thread(is_stopped, process.pid):
                stops += 1
                await asyncio.sleep(PAUSE_S)
                process.send_signal(signal.SIGCONT)
            return (*await asyncio.to_thread(process.communicate), stops)
        finally:
            process.kill()
            process.communicate()

    async def kill(self, what: str) -> None:
        """One that is really gone is not waited for."""
        with self.start(what) as process:
            assert await asyncio.to_thread(is_stopped, process.pid)
            assert self.port.connections(QUERY) == 1
            process.kill()
        while self.port.connections(QUERY):
            await asyncio.sleep(0.001)


def is_stopped(pid: int) -> bool:
    """Waits until it is, or has ended."""
    found = os.waitid(os.P_PID, pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
    if found is None or found.si_code != os.CLD_STOPPED:
        return False
    os.waitid(os.P_PID, pid, os.WSTOPPED)  # told once
    return True


async def is_waited_for(folder: Path, what: str, batches: int) -> None:
    folder.mkdir()
    port = TaskPort(LIMITS)
    listener = await port.listen(f"unix:{folder}/s", Identity("test", "oslo", 1))
    world = World(port, listener.address, folder, batches)
    try:
        said, errors, stops = await world.run(what)
        assert (said.strip(), errors) == (str(ROWS * batches), "")
        assert stops >= (1 if what == READS_NOTHING else 7)
        if what == TASK_TO_MEMBER:
            assert (world.intake.rows, world.spool.length) == (2 * ROWS, 2)
        if what == READS_NOTHING:
            await world.kill(what)
    finally:
        port.forget(QUERY)
        await listener.stop()
        world.spool.close()
        world.edge.close()
    assert port.connections() == 0


def test_a_task_that_pauses_is_waited_for(tmp_path: Path) -> None:
    """Of 2 batches, what a socket does not hold waits in the member, with the end mark; of 16 most is in the spool."""

    async def main() -> None:
        async with asyncio.TaskGroup() as tasks:
            for what, batches in ((MEMBER_TO_TASK, 2), (TASK_TO_MEMBER, 2), (READS_NOTHING, 16)):
                tasks.create_task(is_waited_for(tmp_path / what, what, batches))

    asyncio.run(main())

"""The receiving processes of `bench channel`: a member's inputs, a Flight server, a bare socket.

Each is told what to expect and answers when all of it has arrived.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import queue
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

from skerry.catalog.topology import Topology
from skerry.config import FaultPolicy, parse
from skerry.exchange.entries import Feed, SpoolEntries
from skerry.exchange.input import END, WAIT
from skerry.member.boot import new_event_loop, new_nonce
from skerry.member.faults import Patience
from skerry.member.inputs import Arriving, Inputs
from skerry.member.resources import Resources, Wakeup
from skerry.model.ids import QueryId
from skerry.model.limits import GIB, MIB, Limits
from skerry.wire.channels import data_handler
from skerry.wire.listener import Listener
from skerry.wire.proof import Secret
from skerry.wire.session import Identity

SENDER, RECEIVER, CLUSTER = "oslo", "bergen", "bench"
SECRET = Secret([b"bench"], new_nonce)
# The counter is to see everything: nothing goes to disk here.
LIMITS = Limits(spool_memory_bytes=4 * GIB)
START_S = 60.0
RECEIVE_S = 600.0


class Expect(NamedTuple):
    """One run. With `holding` nothing is read before every channel has used up its credit."""

    query: str
    channels: int = 1
    holding: bool = False


class Received(NamedTuple):
    """`ended_at` is on the clock that all processes of a machine share, one number a channel."""

    rows: int
    memory_peak: int
    ended_at: list[float]


class Receiver:
    """Another process at `address`."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe
        self.address = str(self._answer(START_S))

    def expect(self, run: Expect) -> None:
        """Returns when the process is ready to receive."""
        self._pipe.send(run)
        self._answer(START_S)

    def received(self) -> Received:
        """Waits until everything has arrived."""
        answer = self._answer(RECEIVE_S)
        assert isinstance(answer, Received)
        return answer

    def _answer(self, wait_s: float) -> Any:
        if not self._pipe.poll(wait_s):
            raise TimeoutError(f"the receiver said nothing for {wait_s:.0f} s")
        answer = self._pipe.recv()
        if isinstance(answer, BaseException):
            raise RuntimeError(f"the receiver failed: {answer!r}")
        return answer


@contextmanager
def receiver_process(serve: Callable[[Connection], None]) -> Iterator[Receiver]:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_guarded, args=(serve, theirs), daemon=True)
    process.start()
    try:
        yield Receiver(ours)
    finally:
        if process.is_alive():
            ours.send(None)
        process.join(START_S)
        process.kill()


def _guarded(serve: Callable[[Connection], None], pipe: Connection) -> None:
    try:
        serve(pipe)
    except BaseException as error:
        pipe.send(error)
        raise


# --- a member's inputs ----------------------------------------------------------------------------
def serve_channels(pipe: Connection) -> None:
    """What a member does with rows that arrive: its listener, its inputs, their checks, its spools."""
    with asyncio.Runner(loop_factory=new_event_loop) as runner, tempfile.TemporaryDirectory() as scratch:
        runner.run(_serve_channels(pipe, scratch))


async def _serve_channels(pipe: Connection, scratch: str) -> None:
    members = f"{{{SENDER}: {{address: 'h:1'}}, {RECEIVER}: {{address: 'h:2'}}}}"
    topology = Topology(parse(f"cluster: {CLUSTER}\nmembers: {members}"))
    resources = Resources(LIMITS, scratch)
    inputs = Inputs(RECEIVER, LIMITS, topology, resources, lambda query: None)
    handlers = {"data": data_handler(inputs.lookup, LIMITS)}
    listener = await Listener.start("tcp:127.0.0.1:0", LIMITS, Identity(CLUSTER, RECEIVER, 1, secret=SECRET), handlers)
    pipe.send(listener.address)
    loop = asyncio.get_running_loop()
    try:
        while (run := await loop.run_in_executor(None, pipe.recv)) is not None:
            query = QueryId(SENDER, run.query)
            inputs.begin(query, Patience.of(FaultPolicy.WAIT, LIMITS, LIMITS.query_timeout_s))
            edges = range(run.channels)
            arriving = [each for edge in edges for each in inputs.expect(query, edge, (SENDER,), is_result=True)]
            pipe.send(True)
            pipe.send(await _take(arriving, run.holding))
            inputs.end(query, edges, loop.time())
    finally:
        await listener.stop()


async def _take(arriving: list[Arriving], holding: bool) -> Received:
    """Reads as the result of a query does, in fair turns."""
    wakeup, ended_at = Wakeup(), [0.0] * len(arriving)

    def look(number: int) -> None:
        if arriving[number].spool.finished:
            ended_at[number] = time.perf_counter()
        wakeup()

    for number, each in enumerate(arriving):
        each.spool.subscribe(lambda number=number: look(number))  # type: ignore[misc]
    if holding:
        while any(_held_bytes(each) < LIMITS.first_credits_bytes for each in arriving):
            await wakeup.wait(RECEIVE_S)
    entries, rows = SpoolEntries([Feed(each.spool, each.channel.consumed) for each in arriving]), 0
    while (entry := entries.poll()) is not END:
        if entry is WAIT:
            await wakeup.wait(RECEIVE_S)
        else:
            rows += entry.rows
    return Received(rows, arriving[0].spool.budget.memory_peak, ended_at)


def _held_bytes(arriving: Arriving) -> int:
    spool = arriving.spool
    return sum(spool.read(index).decoded_bytes for index in range(spool.first, spool.length))


# --- Flight ---------------------------------------------------------------------------------------
def serve_flight(pipe: Connection) -> None:
    """do_put with the check that a member makes of every batch."""
    from pyarrow import flight

    done: queue.Queue[Received] = queue.Queue()

    class Server(flight.FlightServerBase):  # type: ignore[misc]
        def do_put(self, context: Any, descriptor: Any, reader: Any, writer: Any) -> None:
            rows = 0
            for chunk in reader:
                chunk.data.validate(full=True)
                rows += chunk.data.num_rows
            done.put(Received(rows, 0, [time.perf_counter()]))

    server = Server("grpc://127.0.0.1:0")
    thread = threading.Thread(target=server.serve, daemon=True)
    thread.start()
    pipe.send(f"grpc://127.0.0.1:{server.port}")
    while pipe.recv() is not None:
        pipe.send(True)
        pipe.send(done.get(timeout=RECEIVE_S))
    server.shutdown()


# --- a socket -------------------------------------------------------------------------------------
def serve_raw(pipe: Connection) -> None:
    """Bytes into the same memory again and again: no frames, no checks, nothing kept."""
    into = memoryview(bytearray(MIB))
    with socket.create_server(("127.0.0.1", 0)) as server:
        pipe.send(f"127.0.0.1:{server.getsockname()[1]}")
        while pipe.recv() is not None:
            pipe.send(True)
            connection, _ = server.accept()
            with connection:
                while connection.recv_into(into):
                    pass
            pipe.send(Received(0, 0, [time.perf_counter()]))

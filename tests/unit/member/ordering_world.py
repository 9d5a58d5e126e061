"""A real member, tromso, that is walked through a row of events and compared with the table after each.

Tromso reads an edge from bergen and sends its result to oslo, the initiator. Its Spark is a thread that reads the edge
over a real task connection; bergen's and oslo's ends of the channels are real connections too. Control messages are
handed over and picked up where the session would, so that their order is the row's.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Collection, Iterator

import msgspec
import pyarrow as pa

from skerry.catalog.topology import Topology
from skerry.config import Config, parse
from skerry.member import clock
from skerry.member.inputs import Inputs
from skerry.member.resources import Resources
from skerry.member.server import Member
from skerry.model.config import TableConfig
from skerry.model.errors import SiteError
from skerry.model.fragment import Plan, SparkFragment
from skerry.model.ids import ChannelId, QueryId
from skerry.model.limits import Limits
from skerry.model.names import Moment
from skerry.model.results import Schema
from skerry.model.sources import Told
from skerry.model.table import Column
from skerry.spark.engine import Job, JobResult, OneByOne, SlotPool, TableFiles
from skerry.spark.slots import Slots
from skerry.spark.source import SourceSpec, read_share
from skerry.testing.ports import free_ports
from skerry.wire.channels import data_handler
from skerry.wire.frames import encode_batch_frame
from skerry.wire.greeting import make_hello
from skerry.wire.listener import Listener
from skerry.wire.messages import (
    Batch,
    Cancel,
    ChannelGone,
    ChannelOk,
    ChannelPending,
    Check,
    CheckResponse,
    Failure,
    FragmentDone,
    Goodbye,
    Grant,
    Message,
    OpenChannel,
    Progress,
    Receipt,
    Started,
)
from skerry.wire.session import Identity
from skerry.wire.tcp import Connection, connect, login, receive_message
from tests.unit.member.member_samples import ARROW, PATIENCE, SCHEMA, entry_of, execute_of, plan_of, rows_of, sealed
from tests.unit.member.ordering_table import TABLE, Event, Row, State
from tests.unit.wire.looping import SECRET

SIZE_BYTES = len(entry_of([(0, "x")]).body)
# Every batch is a quarter of the first credit, so every one is granted; four fit before the Execute.
# The member's own clock ticks too: periods are so long that only the rows' events let one pass.
CHANGED = {"first_credits_bytes": 4 * SIZE_BYTES, "login_s": 30.0, "orphan_check_s": 600.0, "marker_s": 1e6}
# The rows of the table are read by a task, as many ones are.
CHANGED |= {"small_edge_bytes": 0, "small_edge_wait_s": 0.0}
LIMITS = msgspec.convert(CHANGED, Limits)
STEP_S = 60.0
GIVE_UP_S = 850.0


async def until(condition: Callable[[], bool]) -> None:
    while not condition():
        await asyncio.sleep(0.0003)  # thousands of steps wait here, each for a moment


def spelled(events: Collection[Event]) -> str:
    return "".join(event.value for event in events)


class Walk:
    """One row: the events in this order, each compared with the table; then a cancel, after which nothing is left."""

    def __init__(self, world: World, number: int, events: tuple[Event, ...]) -> None:
        self.world = world
        self.events = events
        self.query = QueryId("oslo", f"{number:032x}")
        self.state = State.UNKNOWN
        self.bergen = Bergen(world.member.config.addresses()["tromso"], self.query, world.member.inputs)
        self.opened = False  # bergen has a channel that tromso knows
        self.checks = 0
        self.done: list[Event] = []

    async def run(self) -> None:
        (result,) = self.world.expect(self.query)
        for event in (*self.events, Event.CANCEL):
            await self._step(event)
        jobs = self.world.engine.ran.count(self.query)
        completed = result.spool.finished
        assert jobs == self._expected_jobs(), self._told()
        assert completed == (self._completed_with() is not None), self._told()
        if completed:
            assert [row for entry in entries_of(result.spool) for row in rows_of(entry.body)] == [
                (seq, "x") for seq in range(self._completed_with() or 0)
            ], self._told()
        self.world.forget(self.query)
        await self.bergen.close()

    async def _step(self, event: Event) -> None:
        expected = TABLE[self.state, event]
        self.done.append(event)
        before = len(self.world.sent)
        to_bergen = await self._do(event)
        wanted = self._wanted(event, expected)
        to_oslo = [name for name in wanted if not name.startswith(("Channel", "Grant"))]
        # What does not come in this time is missing below.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(STEP_S):
                if expected.then is State.GONE:
                    await until(lambda: self.query not in self.world.member.participants)
                    await self.bergen.cut()
                await until(lambda: len(self.world.sent) >= before + len(to_oslo))
        said = [type(message).__name__ for message in self.world.sent[before:]]
        assert to_bergen + said == wanted, f"{self._told()}: {self.state.value}"
        self.state = expected.then
        is_held = self.state in (State.PENDING, State.ARRIVED, State.RUNNING)
        assert (self.query in self.world.member.rounds.orphans.watched) == is_held, self._told()

    def _wanted(self, event: Event, expected: Row) -> list[str]:
        answers = list(expected.answers)
        if self.state in (State.UNKNOWN, State.PENDING) and event is Event.EXECUTE and not self.world.pipelined:
            answers.remove("Started")
        if self.state is State.RUNNING and event is Event.LAST and self.world.pipelined:
            answers.remove("Started")
        if self.state is State.RUNNING and event in (Event.BATCH, Event.LAST) and not self.opened:
            answers.insert(0, "ChannelOk")
        if event in (Event.BATCH, Event.LAST):
            self.opened = True
        return answers

    async def _do(self, event: Event) -> list[str]:
        member, query = self.world.member, self.query
        match event:
            case Event.EXECUTE:
                member._receive("oslo", msgspec.structs.replace(self.world.execute, query=query))
                if self.state in (State.PENDING, State.ARRIVED):
                    return [await self.bergen.granted()]
            case Event.BATCH:
                return await self.bergen.send(is_last=False)
            case Event.LAST:
                return await self.bergen.send(is_last=True)
            case Event.CANCEL:
                member._receive("oslo", Cancel(query, "oslo", Failure(103, "closed")))
            case Event.ORPHANED | Event.ALIVE:
                self.checks += 1
                member.rounds.tick(clock.now() + self.checks * LIMITS.orphan_check_s)
                member._receive("oslo", CheckResponse((query,) if event is Event.ORPHANED else ()))
            case Event.STRAY:
                member._receive("oslo", CheckResponse((query,)))
        return []

    def _completed_with(self) -> int | None:
        """The batches that bergen sent before its end, if tromso began and ended with them."""
        state, batches = State.UNKNOWN, 0
        for event in (*self.events, Event.CANCEL):
            row = TABLE[state, event]
            if event is Event.BATCH and state in (State.UNKNOWN, State.PENDING, State.RUNNING):
                batches += 1
            if "FragmentDone" in row.answers:
                return batches
            state = row.then
        return None

    def _expected_jobs(self) -> int:
        began = any(
            TABLE[state, event].then is State.RUNNING and state is not State.RUNNING for state, event in self._path()
        )
        return int(self._completed_with() is not None or (began and self.world.pipelined))

    def _path(self) -> Iterator[tuple[State, Event]]:
        state = State.UNKNOWN
        for event in (*self.events, Event.CANCEL):
            yield state, event
            state = TABLE[state, event].then

    def _told(self) -> str:
        return f"{spelled(self.events)} at {spelled(self.done)}"


class Bergen:
    """The sender, by hand: it says what it is told to say, and remembers what was answered."""

    def __init__(self, address: str, query: QueryId, inputs: Inputs) -> None:
        self._inputs = inputs
        self._address = address
        self._channel = ChannelId(query, 1, "bergen", "tromso")
        self._connection: Connection | None = None
        self._next_seq = 0
        self._is_ended = False

    async def send(self, *, is_last: bool) -> list[str]:
        answers = []
        if self._is_ended:
            await self.close()
        if self._connection is None or self._connection.is_closed:
            answers += await self._open()
            if answers == ["ChannelGone"] or self._is_ended:
                return answers
        connection = self._connection
        assert connection is not None
        seq, self._next_seq = self._next_seq, self._next_seq + 1
        if is_last:
            parts = encode_batch_frame(Batch(seq, 0, True, 0, 0, 0))
        else:
            body = entry_of([(seq, "x")]).body
            parts = encode_batch_frame(Batch(seq, 0, False, 1, len(body), 0), body)
        self._is_ended = is_last
        connection.send_parts(parts)
        receiver = self._inputs._arriving[self._channel.query][self._channel].channel._receiver
        if receiver.pending:
            await until(lambda: receiver.next_seq == self._next_seq)
            assert connection.queued_bytes == 0, "rows that wait for their query are not acked"
        else:
            answers.append(await self.granted())
        return answers

    async def granted(self) -> str:
        """The receiver has everything that was sent."""
        assert self._connection is not None
        grant = await receive_message(self._connection, LIMITS.login_s)
        assert isinstance(grant, Grant)
        assert grant.acked_upto == self._next_seq
        if self._is_ended:
            await self.close()
        return "Grant"

    async def cut(self) -> None:
        """Tromso has cut the connection, if there was one: that must become known here."""
        if self._connection is not None:
            await self._connection.wait_closed()

    async def _open(self) -> list[str]:
        self._connection = connection = await connect(f"tcp:{self._address.removeprefix('tcp:')}", LIMITS)
        await login(connection, make_hello(Identity("c", "bergen", 1), "data"), SECRET, "tromso")
        connection.send(OpenChannel(self._channel, SCHEMA.arrow, 0))
        answer = await receive_message(connection, LIMITS.login_s)
        assert isinstance(answer, ChannelOk | ChannelPending | ChannelGone)
        if isinstance(answer, ChannelGone):
            await self.close()
        elif self._is_ended:
            assert answer.next_seq == self._next_seq
        return [type(answer).__name__]

    async def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            if not connection.is_closed:
                connection.send(Goodbye())
                connection.close()
            await connection.wait_closed()


class Thread(OneByOne):
    """An engine that gives back the rows of its edge. It needs no cancel: the member cuts the tasks' connections."""

    cores = 1
    tasks_are_here = True
    retries_tasks = False

    def __init__(self, *, pipelined: bool) -> None:
        self.source_slots: SlotPool | None = Slots(1000) if pipelined else None
        self.ran: list[QueryId] = []

    def run(self, job: Job, on_schema: Callable[[Schema], None]) -> JobResult:
        edge = job.edges["leaf_0"]
        self.ran.append(edge.query)
        on_schema(SCHEMA)
        spec = SourceSpec(edge, SCHEMA.arrow, LIMITS)
        batches = [batch for number in range(edge.partitions) for batch in read_share(spec, number)]
        return JobResult(table=pa.Table.from_batches(batches, ARROW))

    def cancel(self, tag: str) -> None: ...
    def start(self) -> None: ...
    def stop(self) -> None: ...
    def warm_up(self) -> None: ...

    def look(self, table: TableConfig, at: Moment | None) -> Told:
        raise SiteError(f"no engine knows {table.name}")

    def tables_in(self, namespace: tuple[str, ...]) -> tuple[str, ...]:
        return ()

    def describe(self, table: TableFiles) -> tuple[Column, ...]:
        return ()

    def count_rows(self, table: TableFiles) -> int:
        return 0

    def give_up(self, tag: str) -> None:
        pass

    def is_held_up(self, tag: str) -> bool:
        return False

    def queued_tasks(self, besides: Collection[str] = ()) -> int:
        return 0

    def job_ids(self, tag: str) -> tuple[int, ...]:
        return ()

    def leftovers(self) -> list[str]:
        return []


class World:
    """Tromso, and as much of oslo as receives its result."""

    def __init__(self, pipelined: bool, **changed: float) -> None:
        self.pipelined = pipelined
        self.engine = Thread(pipelined=pipelined)
        self.member = Member(_config(**changed), "tromso", self.engine, secret=SECRET)
        self.sent: list[Message] = []  # to oslo
        self.oslo = Inputs("oslo", LIMITS, Topology(self.member.config), Resources(LIMITS, "."), lambda query: None)
        plan = _through_driver(plan_of("tromso", "bergen"))
        self.member.plans.put(plan, "oslo")
        self.execute = msgspec.structs.replace(execute_of(plan, "tromso"), timeout_s=1e6)

    async def start(self) -> None:
        self.deliver = self.member.peers.send
        self.member.peers.send = self._sent  # type: ignore[method-assign]
        await self.member.start()
        handlers = {"data": data_handler(self.oslo.lookup, LIMITS)}
        address = self.member.config.addresses()["oslo"]
        self.listener = await Listener.start(address, LIMITS, Identity("c", "oslo", 1, secret=SECRET), handlers)

    async def stop(self) -> None:
        self.member.peers.send = self.deliver  # type: ignore[method-assign]
        await self.member.stop()
        await self.listener.stop()

    def _sent(self, peer: str, message: Message) -> None:
        if isinstance(message, Started | FragmentDone | Receipt | Cancel | Check):
            self.sent.append(message)
        else:
            assert isinstance(message, Progress) or peer != "oslo" or type(message).__name__ == "Describe"

    def expect(self, query: QueryId) -> list:  # type: ignore[type-arg]
        self.oslo.begin(query, PATIENCE)
        return self.oslo.expect(query, 2, ("tromso",), is_result=False)

    def forget(self, query: QueryId) -> None:
        self.oslo.end(query, {2}, 0.0)

    def left(self) -> list[str]:
        """What tromso still holds of any query."""
        member = self.member
        return [
            *map(str, member.participants),
            *map(str, member.inputs.pending),
            *map(str, member.rounds.orphans.watched),
            *([f"{member.resources.queries} budgets"] if member.resources.queries else []),
            *([f"{member.resources.memory_used} bytes"] if member.resources.memory_used else []),
        ]


def entries_of(spool):  # type: ignore[no-untyped-def]
    return [spool.read(index) for index in range(spool.first, spool.length)]


def _through_driver(plan: Plan) -> Plan:
    def change(fragment: SparkFragment) -> SparkFragment:
        output = msgspec.structs.replace(fragment.output, through_driver=True)
        return msgspec.structs.replace(fragment, output=output)

    return sealed(msgspec.structs.replace(plan, fragments=tuple(map(change, plan.fragments))))


def _config(**changed: float) -> Config:
    ports = free_ports(2)
    members = f"{{oslo: {{address: '127.0.0.1:{ports[0]}'}}, bergen: {{address: 'h:2'}}, "
    return parse(
        f"cluster: c\nmembers: {members}tromso: {{address: '127.0.0.1:{ports[1]}'}}}}\nlimits: {CHANGED | changed}"
    )

"""Shell of one query at one participant: runs what TaskCore decides with spools, channels and Spark jobs."""

from __future__ import annotations

import asyncio
import functools
import logging
import math
from collections.abc import Callable, Collection, Coroutine
from contextlib import suppress

import msgspec

from skerry import clock
from skerry.catalog.statistics import ANALYZED
from skerry.errors import InternalError, Overloaded, SkerryError, StaleSchema, from_code
from skerry.exchange.entries import ReadableSpool
from skerry.exchange.intake import Intake
from skerry.exchange.spool import Spool
from skerry.ids import ChannelId
from skerry.limits import Limits
from skerry.member.faults import Patience, Watch, policy_of
from skerry.member.gathering import found_in
from skerry.member.inputs import Arriving, Inputs
from skerry.member.jobs import fill_from_table, merge_lanes, partitions_for
from skerry.member.outgoing import Outgoing
from skerry.member.query import TRACE_OPTION, Send
from skerry.member.relay import Relay, Relays
from skerry.member.resources import Resources, Wakeup, Workers
from skerry.member.stores import DirectStore, LaneStore
from skerry.member.tables import LocalTables
from skerry.member.task import RelayChannel, Release, RunFragment, StopFragment, TaskCore, TaskInstruction, TaskPhase
from skerry.member.taskport import TaskPort
from skerry.plan.bound import most_rows
from skerry.plan.fragment import EdgeLeaf, Fragment, TableLeaf
from skerry.spark.engine import EdgeInput, Engine, Job, JobResult, SinkOutput, TableFiles
from skerry.testing.points import reach
from skerry.wire.channel import ChannelEnd
from skerry.wire.channels import ChannelOut
from skerry.wire.messages import Execute, FragmentProgress, LinkBytes, Message, Progress, Schema
from skerry.wire.session import Identity
from skerry.wire.values import from_value

log = logging.getLogger("skerry.query")

_CANCEL_AGAIN_S = 0.05


class Surroundings(msgspec.Struct):
    """What a participant needs of its member."""

    identity: Identity
    limits: Limits
    outgoing: Outgoing
    engine: Engine | None
    workers: Workers
    jobs: Workers
    tables: LocalTables
    taskport: TaskPort
    task_address: str
    inputs: Inputs
    resources: Resources
    send: Callable[[str, Message], None]
    deliver: Callable[[ChannelId, ReadableSpool], None]  # rows that stay: the initiator is this member


class _Running:
    """One fragment at work."""

    def __init__(self, fragment: Fragment) -> None:
        self.fragment = fragment
        self.state = "waiting"
        self.started_at = clock.now()
        self.rows = 0
        self.size_bytes = 0
        self.intake: Intake | None = None
        self.store: DirectStore | LaneStore | None = None
        self.tag = ""
        self.in_spark = False
        self.is_stopped = False  # its receiver has enough
        self.jobs: tuple[int, ...] = ()
        self.work: asyncio.Task[None] | None = None
        self.schema: Schema | None = None


class Participant:
    """Owns every job, channel and spool of its query at this member until `released`."""

    def __init__(self, execute: Execute, around: Surroundings, on_released: Callable[[Participant], None]) -> None:
        self.core = TaskCore(execute, around.identity.member, clock.now())
        self.query = execute.query
        self._around = around
        self._on_released = on_released
        self._held = around.resources.take(self.query)
        policy = policy_of(execute.options)
        self.watch = Watch(Patience.of(policy, around.limits, execute.timeout_s))
        around.inputs.begin(self.query, self.watch.patience, is_planned=False)
        self._fragments: dict[int, _Running] = {}
        self._arriving: dict[int, list[Arriving]] = {}
        self._channels: list[ChannelOut] = []
        self._relays = Relays()
        self._spools: list[Spool] = []
        self._lane_stores: list[LaneStore] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._released = asyncio.Event()

    # --- instructions of the core ------------------------------------------------------------------
    def do(self, instructions: list[TaskInstruction]) -> None:
        for instruction in instructions:
            match instruction:
                case Send(member, message):
                    self._around.send(member, message)
                case RunFragment(fragment):
                    self._begin(fragment)
                case RelayChannel(channel):
                    self._relay(channel)
                case StopFragment(number):
                    self._own(self._stop(self._fragments[number]))
                case Release(why):
                    log.debug("query %s: letting go (%s)", self.query, why)
                    task = asyncio.ensure_future(self._release())
                    task.add_done_callback(self._note_release)
        if self.core.phase is TaskPhase.RUNNING:
            self._around.inputs.planned(self.query)

    def fail(self, error: BaseException) -> None:
        """Anything that went wrong here ends the query."""
        if not isinstance(error, SkerryError):
            log.error("query %s: unexpected error", self.query, exc_info=error)
            error = InternalError(f"{type(error).__name__}: {error}", member=self._around.identity.member)
        error = _named(error, self._around.identity.member)
        if self.core.phase not in (TaskPhase.STOPPING, TaskPhase.GONE):
            log.info("query %s: failed here: %s", self.query, error.message)
        self.do(self.core.failed(error))

    def progress(self) -> Progress:
        fragments = []
        for number, running in self._fragments.items():
            if running.intake is not None and running.state == "running":
                running.rows, running.size_bytes = running.intake.rows, running.intake.size_bytes
            fragments.append(
                FragmentProgress(number, self._around.identity.member, running.state, running.rows, running.size_bytes)
            )
        me = self._around.identity.member
        sent: dict[str, LinkBytes] = {}
        for channel in self._leaving:
            so_far = sent.get(channel.to, LinkBytes(me, channel.to, 0, 0))
            sent[channel.to] = LinkBytes(
                me,
                channel.to,
                so_far.size_bytes + channel.sent_bytes,
                so_far.rows + channel.sent_rows,
                so_far.stalled_s + channel.stalled_s,
            )
        links = tuple(sent.values())
        memory = self._around.resources.memory(self.query, me)
        return Progress(self.query, me, tuple(fragments), links, memory)

    def peer_back(self, peer: str, heard_at: float) -> None:
        """The control connection to a peer is there again: rows for it need not wait for their next dial."""
        for channel in self._leaving:
            if channel.to == peer:
                channel.peer_is_back(heard_at)

    @property
    def _leaving(self) -> tuple[ChannelOut, ...]:
        return (*self._channels, *self._relays.channels)

    async def wait_ended(self) -> None:
        await self._released.wait()

    # --- fragments ---------------------------------------------------------------------------------
    def _begin(self, fragment: Fragment) -> None:
        running = self._fragments[fragment.id] = _Running(fragment)
        for leaf in fragment.leaves:
            if isinstance(leaf, EdgeLeaf):
                self._expect(leaf)
        running.work = self._own(self._run(running))

    def _expect(self, leaf: EdgeLeaf) -> None:
        arriving = self._around.inputs.expect(self.query, leaf.edge, leaf.senders, is_result=False)
        self._arriving[leaf.edge] = arriving
        for each in arriving:
            each.spool.subscribe(functools.partial(self._look_at, each.spool))

    def _look_at(self, spool: Spool) -> None:
        """Rows that cannot arrive end the query; a Spark task could only say that its input broke."""
        if spool.failed is not None:
            self.fail(spool.failed)

    async def _run(self, running: _Running) -> None:
        around, fragment = self._around, running.fragment
        assert around.engine is not None
        reach("fragment starting")
        tables, rows, size_bytes = await self._snapshots(fragment)
        # Tables may have grown since they were counted for the plan.
        rows_max = fragment.output.rows_max
        through_driver = fragment.output.through_driver and (not rows_max or rows <= rows_max)
        slots = await self._wait_for_inputs(fragment, around.engine)
        try:
            job = self._job(running, tables, around.engine, through_driver)
            if not job.edges and size_bytes <= around.limits.small_job_bytes:
                job = msgspec.structs.replace(job, is_small=True)
            loop = asyncio.get_running_loop()

            def on_schema(schema: Schema) -> None:
                loop.call_soon_threadsafe(self._schema_known, running, schema)

            running.tag, running.state, running.in_spark = job.tag, "running", True
            try:
                result = await around.jobs.run(around.engine.run, job, on_schema)
            except SkerryError:
                if running.is_stopped:
                    return
                raise
            finally:
                running.in_spark = False
                around.taskport.close_edges(self.query, job.edges.values())
                self._stop_senders(fragment)
        finally:
            if slots and around.engine.source_slots is not None:
                around.engine.source_slots.give_back(slots)
        if self.core.execute.options.get(TRACE_OPTION):
            running.jobs = await around.workers.run(around.engine.job_ids, job.tag)
        if self.core.phase is TaskPhase.RUNNING and not running.is_stopped:
            if fragment.analyzes:
                self._learn(fragment, tables, result)
            await self._settle(running, result)

    def _learn(self, fragment: Fragment, tables: dict[str, TableFiles], result: JobResult) -> None:
        """The fragment's row is what ANALYZE TABLE found: of the files that were read, no others."""
        table = self._around.tables.find(fragment.analyzes).name
        read = next((files for files in tables.values() if files.table == table), None)
        found = found_in(result, read.columns, ANALYZED) if read is not None else None
        if read is not None and found is not None:
            self._around.tables.analyzed(table, read.version, found.stats, found.rows)

    def _stop_senders(self, fragment: Fragment) -> None:
        """The job has ended: whoever still sends rows for it (it had a LIMIT) sends them for nothing."""
        for leaf in fragment.leaves:
            if isinstance(leaf, EdgeLeaf):
                for each in self._arriving[leaf.edge]:
                    each.channel.stop_sending()

    async def _stop(self, running: _Running) -> None:
        """End a fragment whose rows nobody wants; it does not fail, it is done."""
        running.is_stopped, running.state = True, "done"
        self._around.taskport.close_sink(self.query, running.fragment.id)
        if not running.in_spark and running.work is not None:
            running.work.cancel()
            self._stop_senders(running.fragment)
        await self._stop_jobs([running])

    async def _snapshots(self, fragment: Fragment) -> tuple[dict[str, TableFiles], float, int]:
        """The files of the fragment's tables by placeholder, the most rows that a join of them has, and their bytes."""
        tables: dict[str, TableFiles] = {}
        counts: list[float] = []
        size_bytes = 0
        me = self._around.identity.member
        for leaf in fragment.leaves:
            if not isinstance(leaf, TableLeaf):
                continue
            snapshot = await self._around.tables.snapshot(leaf.table)
            planned = self.core.execute.schema_info.get(f"{me}.{snapshot.part.table}")
            if planned != snapshot.part.schema_version:
                raise StaleSchema(f"site {me}: the columns of {leaf.table} have changed since the query was planned")
            tables[leaf.placeholder] = snapshot.files
            size_bytes += snapshot.part.size_bytes
            counts.append(math.inf if snapshot.part.rows is None else snapshot.part.rows)
        return tables, most_rows(counts), size_bytes

    async def _wait_for_inputs(self, fragment: Fragment, engine: Engine) -> int:
        """Slots taken to receive while rows still arrive; 0 after everything has arrived (D7)."""
        edges = [leaf.edge for leaf in fragment.leaves if isinstance(leaf, EdgeLeaf)]
        if not edges:
            return 0
        wanted = engine.cores * len(edges)
        if engine.source_slots is not None and engine.source_slots.try_take(wanted):
            return wanted
        wakeup = Wakeup()
        spools = [arriving.spool for edge in edges for arriving in self._arriving[edge]]
        endings = [spool.subscribe(wakeup) for spool in spools]
        try:
            while not all(spool.finished for spool in spools):
                await wakeup.wait()  # owner: the query's deadline, and a failed spool ends the query
        finally:
            for end in endings:
                end()
        return 0

    def _job(self, running: _Running, tables: dict[str, TableFiles], engine: Engine, through_driver: bool) -> Job:
        around, fragment, held = self._around, running.fragment, self._held
        taskport = around.taskport
        edges = {}
        for leaf in fragment.leaves:
            if isinstance(leaf, EdgeLeaf):
                spools = [arriving.spool for arriving in self._arriving[leaf.edge]]
                taskport.register_edge(self.query, leaf.edge, held.token, spools)
                partitions = partitions_for(self._arriving[leaf.edge], engine.cores)
                edges[leaf.placeholder] = EdgeInput(
                    self.query,
                    leaf.edge,
                    leaf.columns,
                    around.task_address,
                    held.token,
                    partitions,
                    around.identity.cluster,
                )
        sink = None
        if not through_driver:
            running.intake = Intake(fragment.id, engine.retries_tasks)
            running.store = self._store(fragment, keeps_lanes=engine.retries_tasks or fragment.output.order != "any")
            taskport.register_sink(self.query, fragment.id, held.token, running.intake, running.store)
            sink = SinkOutput(self.query, fragment.id, around.task_address, held.token, around.identity.cluster)
        execute = self.core.execute
        return Job(
            tag=f"skerry-{around.identity.member}-{self.query.initiator}-{self.query.local}-{fragment.id}",
            sql=fragment.sql,
            tables=tables,
            edges=edges,
            parameters={name: from_value(value) for name, value in execute.parameters.items()},
            sink=sink,
            is_narrow=fragment.is_narrow,
        )

    def _spool(self, fragment: Fragment, what: str, *, gives_way: bool = False) -> Spool:
        """A spool that is closed with the query."""
        name = f"query {self.query} fragment {fragment.id} {what}"
        spool = self._around.resources.spool(self._held, name, gives_way=gives_way)
        self._spools.append(spool)
        return spool

    def _store(self, fragment: Fragment, *, keeps_lanes: bool) -> DirectStore | LaneStore:
        """Rows leave as they come, unless an order must be made of them or Spark may run a task twice."""
        if keeps_lanes:
            name = f"query {self.query} fragment {fragment.id}"
            store = LaneStore(self._held.budget, self._around.resources.directory, name)
            self._lane_stores.append(store)
            return store
        assert self.core.plan is not None
        # An edge that Spark reads never makes its senders wait, wherever it goes (D7).
        is_result = fragment.output.edge == self.core.plan.finish.edge
        return DirectStore(self._spool(fragment, "rows", gives_way=is_result), waits=is_result)

    def _schema_known(self, running: _Running, schema: Schema) -> None:
        """Rows that may leave as they come can leave from now on."""
        if self.core.phase is not TaskPhase.RUNNING:
            return
        running.schema = schema
        self.do(self.core.fragment_started(running.fragment.id, schema))
        if isinstance(running.store, DirectStore):
            self._send_rows(running, running.store.spool)

    async def _settle(self, running: _Running, result: JobResult) -> None:
        """The job succeeded: prove its rows complete, put them in order, let the last of them go."""
        fragment, around = running.fragment, self._around
        reach("settling")
        assert running.schema is not None
        if running.store is None:
            assert result.table is not None
            output = self._spool(fragment, "rows")
            running.rows, running.size_bytes = fill_from_table(output, result.table, around.limits)
            self._send_rows(running, output)
        else:
            assert running.intake is not None
            winners = running.intake.settle(result.sink_rows)
            running.rows, running.size_bytes = running.intake.rows, running.intake.size_bytes
            if isinstance(running.store, DirectStore):
                running.store.spool.finish()
            else:
                for loser in running.intake.losers:
                    running.store.drop(loser)
                lanes = [running.store.lanes[winner] for winner in winners]
                merged = self._spool(fragment, "merged")
                self._send_rows(
                    running, await merge_lanes(lanes, fragment.output, running.schema, merged, around.limits)
                )
        running.state = "done"
        seconds = clock.now() - running.started_at
        self.do(self.core.fragment_done(fragment.id, running.rows, running.size_bytes, seconds, running.jobs))

    def _send_rows(self, running: _Running, spool: ReadableSpool) -> None:
        output, me = running.fragment.output, self._around.identity.member
        channel = ChannelId(self.query, output.edge, me, output.receiver)
        if output.receiver == me:
            # Rows that stay are taken from this spool; the initiator's COMPLETE lets go of it.
            self._around.deliver(channel, spool)
            return
        assert running.schema is not None
        around = self._around
        sending = around.outgoing.channel(channel, running.schema.arrow, spool, self.watch.patience.wait_s)
        self._channels.append(sending)
        self._own(self._run_channel(running, sending))

    async def _run_channel(self, running: _Running, sending: ChannelOut) -> None:
        if await sending.run() is ChannelEnd.STOPPED:
            seconds = clock.now() - running.started_at
            self.do(self.core.output_stopped(running.fragment.id, running.rows, running.size_bytes, seconds))
        else:
            self.do(self.core.output_taken(running.fragment.id))

    def _relay(self, channel: ChannelId) -> None:
        arriving = self._around.inputs.expect_relayed(channel)
        arriving.spool.subscribe(functools.partial(self._look_at, arriving.spool))
        relay = Relay(arriving, self._around.outgoing, self.watch.patience.wait_s)
        self._relays.add(relay)

        async def run() -> None:
            await relay.run()
            self.do(self.core.relayed(channel))

        self._own(run())

    # --- ends --------------------------------------------------------------------------------------
    def check_stalled(self) -> None:
        """Tasks that wait for a slow reader hold slots; when others queue for them, this query ends (D7)."""
        around = self._around
        stalled = around.taskport.waiting_s(self.query) > around.limits.sink_stalled_s
        if stalled and self._nothing_leaves():
            self.fail(
                Overloaded(
                    f"site {around.identity.member}: the rows that arrived for the query fill its spool, and leave no "
                    f"room for its result",
                    suggestion="raise limits.spool_disk_bytes, or ask for less",
                )
            )
        elif stalled and around.engine is not None:
            self._own(self._check_queue(around.engine))

    def _nothing_leaves(self) -> bool:
        """All rows made so far are gone: the room that tasks wait for is taken by rows that stay to the query's end."""
        stores = [running.store for running in self._fragments.values() if isinstance(running.store, DirectStore)]
        return all(store.spool.first == store.spool.length for store in stores)

    async def _check_queue(self, engine: Engine) -> None:
        own = [running.tag for running in self._fragments.values() if running.in_spark]
        if await self._around.workers.run(engine.queued_tasks, own):
            self.fail(
                Overloaded(
                    f"site {self._around.identity.member}: the result was not read for "
                    f"{self._around.limits.sink_stalled_s:g} s, its spool is full and other queries wait for Spark",
                    suggestion="read faster, or ask for less",
                )
            )

    def _own(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self.fail(error)

    async def _release(self) -> None:
        around = self._around
        around.taskport.forget(self.query)
        await self._stop_jobs(self._fragments.values())
        for task in list(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(list(self._tasks), timeout=around.limits.stop_s)
        final = self.progress()
        around.inputs.end(self.query, {*self._arriving, *self._relays.edges}, clock.now())
        for spool in self._spools:
            spool.close()
        for store in self._lane_stores:
            store.close()
        around.send(self.query.initiator, final)
        reach("receipt owed")
        self.do(self.core.released(self._left()))
        around.resources.give_back(self.query)
        self._released.set()
        self._on_released(self)

    def _left(self) -> tuple[str, ...]:
        """What of this query is still here, for its receipt: nothing, if all went well."""
        jobs = [f"Spark job {running.tag}" for running in self._fragments.values() if running.in_spark]
        connections = self._around.taskport.connections(self.query)
        tasks = [f"{connections} connections of Spark tasks"] if connections else []
        # Views are leased to jobs and channels run in tasks; the spools' budget is shared with an initiator's half.
        held = self._held.budget.memory_used + self._held.budget.disk_used if self._held.users == 1 else 0
        spools = [f"{held} bytes of spool"] if held else []
        return (*jobs, *tasks, *spools, *(f"task {task.get_name()}" for task in self._tasks))

    async def _stop_jobs(self, fragments: Collection[_Running]) -> None:
        """A cancel misses a query that is still planning: repeat it until the job's thread has returned."""
        engine, deadline = self._around.engine, clock.now() + self._around.limits.stop_s
        while busy := [running for running in fragments if running.in_spark]:
            assert engine is not None
            cancels = [self._around.workers.run(engine.cancel, running.tag) for running in busy]
            with suppress(TimeoutError):  # a Spark that hangs must not hang the query's end as well
                await asyncio.wait_for(asyncio.gather(*cancels), max(0.0, deadline - clock.now()))
            if clock.now() > deadline:
                log.error("query %s: Spark has not ended %d jobs in time", self.query, len(busy))
                return
            # A job's end is known at once; a cancel that came too early is said again.
            await asyncio.wait({running.work for running in busy if running.work is not None}, timeout=_CANCEL_AGAIN_S)

    def _note_release(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("query %s: letting go failed", self.query, exc_info=error)
            self._released.set()
            self._on_released(self)


def _named(error: SkerryError, member: str) -> SkerryError:
    """The client reads where it happened; errors that begin with a site say so already."""
    if error.message.startswith("site "):
        return error
    message = f"site {member}: {error.message}"
    return from_code(error.code, message, member=error.member or member, suggestion=error.suggestion)

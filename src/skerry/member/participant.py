"""Shell of one query at one participant: runs what TaskCore decides with spools, channels and Spark jobs."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Coroutine
from contextlib import ExitStack
from typing import assert_never

import msgspec

from skerry.exchange.entries import ReadableSpool
from skerry.exchange.fan import Fan, FanReader
from skerry.exchange.intake import Intake
from skerry.exchange.spool import Spool
from skerry.member import clock
from skerry.member.caps import Caps, caps_of, too_many_rows, too_much_work
from skerry.member.faults import Patience, Watch, policy_of
from skerry.member.grouping import Grouping, Part, Port
from skerry.member.inputs import Arriving, Inflow, Kept
from skerry.member.operating import Operation
from skerry.member.query import TRACE_OPTION, Send, overspent
from skerry.member.relay import Relay, Relays
from skerry.member.running import (
    Running,
    Surroundings,
    drop_rows,
    edge_inputs,
    learn,
    left_of,
    links_of,
    make_job,
    named,
    no_room_for_result,
    nothing_leaves,
    progress_of,
    read_too_slowly,
    reading_of,
    snapshots,
    stop_jobs,
    wait_for_inputs,
)
from skerry.member.settling import settle
from skerry.member.stores import DirectStore, LaneStore, NoStore, RowStore
from skerry.member.tables import Reading
from skerry.member.task import RelayChannel, Release, RunFragment, StopFragment, TaskCore, TaskInstruction, TaskPhase
from skerry.member.together import Together
from skerry.model import trace
from skerry.model.errors import InternalError, Overloaded, PeerError, SkerryError
from skerry.model.fragment import EdgeLeaf, Finish, Fragment, GroupHere, OperatorFragment, SparkFragment, TableLeaf
from skerry.model.ids import ChannelId, GroupById
from skerry.model.points import reach
from skerry.model.results import Schema
from skerry.plan.admission import check_keys
from skerry.spark.engine import Engine, JobResult, SinkOutput
from skerry.wire.channel import ChannelEnd
from skerry.wire.channels import ChannelOut
from skerry.wire.groupby_messages import GroupByMessage, Grown
from skerry.wire.messages import Execute, Progress


class Participant:
    """Owns every job, channel and spool of its query at this member until `released`."""

    def __init__(self, execute: Execute, around: Surroundings, on_released: Callable[[Participant], None]) -> None:
        if not execute.timeout_s <= around.limits.query_timeout_s:  # NaN too
            execute = msgspec.structs.replace(execute, timeout_s=around.limits.query_timeout_s)
        self.core = TaskCore(execute, around.identity.member, clock.now())
        self.query = execute.query
        self._around = around
        self._on_released = on_released
        self._held = around.resources.take(self.query)
        # The member's own limits hold, whatever the initiator allows.
        self._caps = caps_of(execute.options).within(Caps.of(around.limits))
        policy = policy_of(execute.options)
        self.watch = Watch(Patience.of(policy, around.limits, execute.timeout_s))
        around.inputs.begin(self.query, self.watch.patience, execute.user, is_planned=False)
        self._fragments: dict[int, Running] = {}
        self._arriving: dict[int, list[Arriving]] = {}
        self._operations: dict[int, Operation] = {}  # by the edges that they read
        self._groupings: dict[int, Grouping] = {}  # by the edges whose rows they group
        self._kept: dict[int, Kept] = {}  # rows of operators here that jobs here read, by edge
        self._readers: dict[int, set[int]] = {}  # the fragments that still read each edge
        self._staying: dict[int, FanReader] = {}  # rows for operators here, by edge
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
                    # Why it failed has been told, or the initiator tells it.
                    reason = trace.Cause(why, 0, may_quote=why != "complete")
                    trace.emit(trace.QueryReleased(self.query, self._around.identity.member, reason))
                    task = asyncio.ensure_future(self._release())
                    task.add_done_callback(self._note_release)
                case never:
                    assert_never(never)
        if self.core.phase is TaskPhase.RUNNING:
            self._around.inputs.planned(self.query)

    def fail(self, error: BaseException, fragment: int | None = None) -> None:
        """Anything that went wrong here ends the query. `fragment`: in which of them, if it was one."""
        if not isinstance(error, SkerryError):
            trace.emit(trace.WorkFailed(f"query {self.query}", self.query, fragment), error)
            error = InternalError(f"{type(error).__name__}: {error}", member=self._around.identity.member)
        error = named(error, self._around.identity.member, fragment)
        if self.core.phase not in (TaskPhase.STOPPING, TaskPhase.GONE):
            me = self._around.identity.member
            trace.emit(trace.FragmentsFailed(self.query, me, trace.cause_of(error), fragment))
        self.do(self.core.failed(error))

    def group_by(self, sender: str, message: GroupByMessage) -> None:
        """PeerError for a group-by that is none of its plan's. Before the plan is known nobody answers: it is said
        again."""
        if self.core.phase is TaskPhase.PLANNING:
            return
        grouping = self._groupings.get(message.group.edge)
        if grouping is None:
            raise PeerError(f"{type(message).__name__} from {sender}: {message.group} has no part here")
        grouping.received(sender, message)

    def progress(self) -> Progress:
        return progress_of(self.query, self._fragments, self._leaving, self._around)

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
        running = self._fragments[fragment.id] = Running(fragment)
        for leaf in fragment.leaves:
            if isinstance(leaf, EdgeLeaf):
                self._expect(leaf)
                self._readers.setdefault(leaf.edge, set()).add(fragment.id)
        match fragment:
            case SparkFragment(output=output):
                if output.order == "groups":
                    grouping = self._grouping(output.edge, output.receivers)
                    grouping.will_send(functools.partial(self._all_taken, fragment))
                running.work = self._own(self._run_job(running, fragment), fragment.id)
            case OperatorFragment():
                self._begin_operator(running, fragment)
            case never:
                assert_never(never)

    def _begin_operator(self, running: Running, fragment: OperatorFragment) -> None:
        match fragment.operator:
            case Finish():
                operation = Operation(fragment, self._around.limits)
                self._operations |= dict.fromkeys((leaf.edge for leaf in fragment.leaves), operation)
                running.work = self._own(self._operate(running, fragment, operation), fragment.id)
            case GroupHere() as shape:
                self._group(running, fragment, shape)
            case never:
                assert_never(never)

    # --- elastic group-bys -------------------------------------------------------------------------
    def _grouping(self, edge: int, members: tuple[str, ...]) -> Grouping:
        if edge not in self._groupings:
            around = self._around
            port = Port(
                around.identity.member,
                around.limits,
                self._held.budget,
                around.resources.directory,
                around.send,
                lambda name: self._named_spool(f"query {self.query} {name}"),
                self._open_channel,
                self._own,
                self.fail,
                around.resources.has_memory,
            )
            self._groupings[edge] = Grouping(GroupById(self.query, edge), members, port)
        return self._groupings[edge]

    def _group(self, running: Running, fragment: OperatorFragment, shape: GroupHere) -> None:
        """A share of the groups, or none if nobody needs this member for it."""
        (leaf,) = fragment.leaves
        me, output = self._around.identity.member, self._spool(fragment, "groups")
        self._kept[fragment.output.edge] = Kept(output)
        others = tuple(member for member in shape.members if member != me)
        for edge in (shape.forwards, shape.shares):
            self._expect_from(edge, others)
        running.state = "running"
        arriving = [each for edge in (leaf.edge, shape.forwards, shape.shares) for each in self._arriving[edge]]
        part = Part(fragment.id, shape, leaf.senders, output, functools.partial(self._grouped, running))
        self._grouping(leaf.edge, shape.members).take_part(part, arriving)

    def _grouped(self, running: Running, rows: int, size_bytes: int, grown: Grown) -> None:
        running.rows, running.size_bytes = rows, size_bytes
        self._around.send(self.query.initiator, grown)
        self._done(running)

    def _all_taken(self, fragment: Fragment) -> None:
        for receiver in self.core.readers[fragment.id]:
            self.do(self.core.output_taken(fragment.id, receiver))

    def _open_channel(self, edge: int, to: str, spool: Spool, schema: bytes) -> asyncio.Task[None]:
        """Rows for one member that folds groups: when all are there nobody need be told."""
        channel = ChannelId(self.query, edge, self._around.identity.member, to)
        sending = self._around.outgoing.channel(channel, schema, spool, self.watch.patience.wait_s)
        self._channels.append(sending)

        async def run() -> None:
            await sending.run()

        return self._own(run())

    # --- fragments that run ------------------------------------------------------------------------
    def _expect(self, leaf: EdgeLeaf) -> None:
        # Rows that an operator gets from its own member pass no channel.
        self._expect_from(leaf.edge, tuple(each for each in leaf.senders if each != self._around.identity.member))

    def _expect_from(self, edge: int, remote: tuple[str, ...]) -> None:
        arriving = self._around.inputs.expect(self.query, edge, remote, is_result=False)
        self._arriving[edge] = arriving
        for each in arriving:
            each.spool.subscribe(functools.partial(self._look_at, each.spool))

    def _look_at(self, spool: Spool) -> None:
        """Rows that cannot arrive end the query; a Spark task could only say that its input broke."""
        if spool.failed is not None:
            self.fail(spool.failed)

    @functools.cached_property
    def _tables(self) -> Reading:
        return reading_of((running.fragment for running in self._fragments.values()), self._around.tables)

    @functools.cached_property
    def _together(self) -> Together:
        around = self._around
        assert around.engine is not None
        fragments = (running.fragment for running in self._fragments.values())
        run = functools.partial(around.jobs.run, around.engine.run_together)
        return Together(fragments, around.limits.small_edge_wait_s, run, self._own)

    async def _run_job(self, running: Running, fragment: SparkFragment) -> None:
        # What is read of our own tables stays as it is until the job has ended.
        with ExitStack() as opened, self._together.awaited(fragment.id):
            await self._run_opened(running, fragment, opened)

    async def _run_opened(self, running: Running, fragment: SparkFragment, opened: ExitStack) -> None:
        around = self._around
        assert around.engine is not None
        reach("fragment starting")
        assert self.core.plan is not None
        rights = around.rights_of(self.core.execute.user, self.core.execute.roles)
        tables, rows, size_bytes = await snapshots(
            fragment, self.core.plan.schema_info, rights, around, self._tables, self.core.execute, opened
        )
        # Tables may have grown since they were counted for the plan.
        rows_max = fragment.output.rows_max
        through_driver = fragment.output.through_driver and (not rows_max or rows <= rows_max)
        inflow = self._inflow(fragment)
        slots = await wait_for_inputs(fragment, around.engine, inflow, around.limits)
        try:
            if self.core.phase is not TaskPhase.RUNNING:
                return  # it ended meanwhile, and the task port has forgotten it
            edges = edge_inputs(self.core.execute, fragment, self._held.token, around, inflow, around.engine.cores)
            sink = None if through_driver else self._sink(running, fragment, around.engine)
            job = make_job(fragment, self.core.execute, around.identity.member, tables, edges, sink, around.limits)
            are_here = all(edge.bodies is not None for edge in edges.values())
            if are_here and size_bytes <= around.limits.small_job_bytes:
                job = msgspec.structs.replace(job, is_small=True)
            loop = asyncio.get_running_loop()

            def on_schema(schema: Schema) -> None:
                loop.call_soon_threadsafe(self._schema_known, running, schema)

            is_shared = await self._together.come(fragment.id, job, on_schema, is_kept=around.engine.keeps(job))
            if self._is_over():  # meanwhile
                return
            running.tag, running.state, running.in_spark = job.tag, "running", True
            running.spark_since = clock.now()
            try:
                result = await self._together.result(fragment.id) if is_shared else None
                if result is None:
                    result = await around.jobs.run(around.engine.run, job, on_schema)
            except SkerryError:
                around.tables.forget(leaf.table for leaf in fragment.leaves if isinstance(leaf, TableLeaf))
                if running.is_stopped:
                    return
                raise
            finally:
                running.in_spark, running.spark_s = False, running.spark_seconds(clock.now())
                running.spark_since = None
                self._close_edges(fragment)
        finally:
            if slots and around.engine.source_slots is not None:
                around.engine.source_slots.give_back(slots)
        if self.core.execute.options.get(TRACE_OPTION):
            running.jobs = await around.workers.run(around.engine.job_ids, job.tag)
        if self.core.phase is TaskPhase.RUNNING and not running.is_stopped:
            if fragment.analyzes:
                learn(fragment, tables, result, around.tables)
            if result.table is not None:
                self._check_rows(running, result.table.num_rows)
            await self._settle(running, result)

    def _inflow(self, fragment: Fragment) -> dict[int, list[Inflow]]:
        """What comes on the fragment's edges, from other members and from operators of this one."""
        found: dict[int, list[Inflow]] = {}
        for edge in (leaf.edge for leaf in fragment.leaves if isinstance(leaf, EdgeLeaf)):
            kept = self._kept.get(edge)
            found[edge] = [*self._arriving[edge], *([kept] if kept is not None else [])]
        return found

    def _is_over(self) -> bool:
        return self.core.phase is not TaskPhase.RUNNING

    async def _operate(self, running: Running, fragment: OperatorFragment, operation: Operation) -> None:
        output = self._spool(fragment, "rows")
        running.state = "running"
        for leaf in fragment.leaves:
            self._own(operation.arrive(leaf.edge, self._arriving[leaf.edge]), fragment.id)

        def on_schema(schema: Schema) -> None:
            self._schema_known(running, schema)
            if running.schema is not None:  # else the query is being let go of
                self._send_rows(running, output)

        running.rows, running.size_bytes = await operation.run(output, on_schema)
        self._close_edges(fragment)
        self._check_rows(running, running.rows)
        self._done(running)

    def _close_edges(self, fragment: Fragment) -> None:
        """The job has ended: whoever still sends rows for it (it had a LIMIT) sends them for nothing.

        Not so for an edge that another fragment here reads as well; the last of them closes it.
        """
        for edge in {leaf.edge for leaf in fragment.leaves if isinstance(leaf, EdgeLeaf)}:
            self._readers[edge].discard(fragment.id)
            if not self._readers[edge]:
                self._around.taskport.close_edge(self.query, edge)
                for each in self._arriving[edge]:
                    each.channel.stop_sending()
                if edge in self._staying:
                    self._staying[edge].close()

    async def _stop(self, running: Running) -> None:
        """End a fragment whose rows nobody wants; it does not fail, it is done."""
        running.is_stopped, running.state = True, "done"
        self._around.taskport.close_sink(self.query, running.fragment.id)
        if not running.in_spark and running.work is not None:
            running.work.cancel()
            self._close_edges(running.fragment)
        await stop_jobs(self.query, [running], self._around)

    def _sink(self, running: Running, fragment: SparkFragment, engine: Engine) -> SinkOutput:
        """Where Spark's tasks hand over the rows that they make."""
        around, held = self._around, self._held
        running.intake = Intake(fragment.id, engine.retries_tasks, functools.partial(self._count_rows, running))
        is_any = fragment.output.order in ("any", "groups")
        running.store = self._store(fragment, keeps_lanes=engine.retries_tasks or not is_any)
        around.taskport.register_sink(self.query, fragment.id, held.token, running.intake, running.store)
        cluster, fingerprint = around.identity.cluster, around.taskport.fingerprint
        return SinkOutput(self.query, fragment.id, around.task_address, held.token, cluster, fingerprint)

    def _spool(self, fragment: Fragment, what: str, *, gives_way: bool = False) -> Spool:
        """A spool that is closed with the query."""
        return self._named_spool(f"query {self.query} fragment {fragment.id} {what}", gives_way=gives_way)

    def _named_spool(self, name: str, *, gives_way: bool = False) -> Spool:
        spool = self._around.resources.spool(self._held, name, gives_way=gives_way)
        self._spools.append(spool)
        return spool

    def _store(self, fragment: Fragment, *, keeps_lanes: bool) -> RowStore:
        """Rows leave as they come, unless an order must be made of them or Spark may run a task twice."""
        assert self.core.plan is not None
        if not self.core.readers[fragment.id]:
            return NoStore()
        if keeps_lanes:
            name = f"query {self.query} fragment {fragment.id}"
            store = LaneStore(self._held.budget, self._around.resources.directory, name)
            self._lane_stores.append(store)
            return store
        # An edge that Spark reads never makes its senders wait, wherever it goes (D7).
        is_result = self.core.plan.is_result(fragment.output)
        return DirectStore(self._spool(fragment, "rows", gives_way=is_result), waits=is_result)

    def _schema_known(self, running: Running, schema: Schema) -> None:
        """Rows that may leave as they come can leave from now on."""
        # A job that was run with others, which failed, tells it again.
        if self.core.phase is not TaskPhase.RUNNING or running.schema is not None:
            return
        try:
            check_keys(running.fragment, len(schema.columns))
        except PeerError as error:
            self.fail(error, running.fragment.id)
            return
        running.schema = schema
        trace.emit(trace.FragmentStarted(self.query, self._around.identity.member, running.fragment.id))
        self.do(self.core.fragment_started(running.fragment.id, schema))
        if isinstance(running.store, DirectStore):
            self._send_rows(running, running.store.spool)
        elif running.store is None and isinstance(running.fragment, SparkFragment):
            # The channel is there when the rows are.
            running.spool = self._spool(running.fragment, "rows")
            self._send_rows(running, running.spool)

    async def _settle(self, running: Running, result: JobResult) -> None:
        """The job succeeded: its rows are all here, and the last of them may go."""
        reach("settling")
        new_spool = functools.partial(self._spool, running.fragment)
        send_rows = functools.partial(self._send_rows, running)
        running.rows, running.size_bytes = await settle(running, result, new_spool, send_rows, self._around.limits)
        self._done(running)

    def _done(self, running: Running) -> None:
        running.state = "done"
        seconds, me = clock.now() - running.started_at, self._around.identity.member
        number, rows, size_bytes = running.fragment.id, running.rows, running.size_bytes
        trace.emit(trace.FragmentDone(self.query, me, number, rows, size_bytes, seconds))
        self.do(self.core.fragment_done(number, rows, size_bytes, seconds, running.jobs))

    def _send_rows(self, running: Running, spool: ReadableSpool) -> None:
        """To each who takes them. Nobody holds back another: rows stay in the spool until the slowest has them."""
        readers, output = self.core.readers[running.fragment.id], running.fragment.output
        if output.order == "groups":
            assert running.schema is not None
            self._groupings[output.edge].send_rows(spool, running.schema.arrow)
            return
        if not readers:  # its rows are only counted
            drop_rows(spool)
        for receiver, rows in zip(readers, Fan(spool, len(readers)).readers, strict=True):
            self._send_to(receiver, running, rows)

    def _send_to(self, receiver: str, running: Running, rows: FanReader) -> None:
        assert running.schema is not None
        edge, me = running.fragment.output.edge, self._around.identity.member
        channel, schema = ChannelId(self.query, edge, me, receiver), running.schema.arrow
        if receiver != me:
            sending = self._around.outgoing.channel(channel, schema, rows, self.watch.patience.wait_s)
            self._channels.append(sending)
            self._own(self._run_channel(running, sending, rows), running.fragment.id)
        # Rows that stay are taken from the spool itself; the initiator's COMPLETE lets go of it.
        elif (operation := self._operations.get(edge)) is not None:
            self._staying[edge] = rows
            operation.attach(edge, me, rows, schema, lambda _consumed: None)
        else:
            self._around.deliver(channel, rows)

    async def _run_channel(self, running: Running, sending: ChannelOut, rows: FanReader) -> None:
        number, receiver = running.fragment.id, sending.channel.receiver
        end = await sending.run()
        rows.close()
        if end is ChannelEnd.STOPPED:
            seconds = clock.now() - running.started_at
            self.do(self.core.output_stopped(number, receiver, running.rows, running.size_bytes, seconds))
        else:
            self.do(self.core.output_taken(number, receiver))

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
        if stalled and nothing_leaves(self._fragments.values()):
            self.fail(no_room_for_result(around.identity.member))
        elif stalled and around.engine is not None:
            self._own(self._check_queue(around.engine))

    def check_spent(self) -> None:
        """The budgets of its links are the member's own to keep, whatever the initiator allows; so is Spark's time."""
        me, now = self._around.identity.member, clock.now()
        over = overspent(links_of(me, self._leaving), self._around.outgoing.topology.budgets) or too_much_work(
            self._caps, (running.spark_seconds(now) for running in self._fragments.values()), me
        )
        if over is not None and self.core.phase is TaskPhase.RUNNING:
            self.fail(over)

    def _count_rows(self, running: Running) -> None:
        """A task has handed over more: the query ends with the first batch that is too much, not with its job."""
        assert running.intake is not None
        if self._caps.rows and self.core.phase is TaskPhase.RUNNING:
            try:
                self._check_rows(running, running.intake.rows)
            except Overloaded as error:
                self.fail(error, running.fragment.id)

    def _check_rows(self, running: Running, rows: int) -> None:
        """Overloaded if an edge gets so many. Rows that are only counted are on none."""
        if self.core.readers[running.fragment.id]:
            over = too_many_rows(self._caps, rows, self._around.identity.member, running.fragment.id)
            if over is not None:
                raise over

    async def _check_queue(self, engine: Engine) -> None:
        own = [running.tag for running in self._fragments.values() if running.in_spark]
        if await self._around.workers.run(engine.queued_tasks, own):
            self.fail(read_too_slowly(self._around.identity.member, self._around.limits))

    def _own(self, work: Coroutine[None, None, None], fragment: int | None = None) -> asyncio.Task[None]:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(functools.partial(self._ended, fragment))
        return task

    def _ended(self, fragment: int | None, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self.fail(error, fragment)

    async def _release(self) -> None:
        around = self._around
        for grouping in self._groupings.values():
            grouping.stop()
        around.taskport.forget(self.query)
        await stop_jobs(self.query, self._fragments.values(), around)
        for task in list(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(list(self._tasks), timeout=around.limits.stop_s)
        for grouping in self._groupings.values():
            grouping.close()
        final = self.progress()
        around.inputs.end(self.query, {*self._arriving, *self._relays.edges}, clock.now())
        for spool in self._spools:
            spool.close()
        for store in self._lane_stores:
            store.close()
        around.send(self.query.initiator, final)
        reach("receipt owed")
        self.do(self.core.released(left_of(self.query, self._fragments.values(), self._held, self._tasks, around)))
        around.resources.give_back(self.query)
        self._released.set()
        self._on_released(self)

    def _note_release(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            trace.emit(trace.WorkFailed(f"query {self.query}: letting go", self.query), error)
            self._released.set()
            self._on_released(self)

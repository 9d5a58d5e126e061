"""One fragment at work at a participant: what it needs before its Spark job begins, and how the job is ended."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress

import msgspec

from skerry.access.sight import missing_column, view_of
from skerry.catalog.statistics import ANALYZED
from skerry.exchange.entries import ReadableSpool
from skerry.exchange.intake import Intake
from skerry.exchange.spool import Spool
from skerry.member import clock
from skerry.member.gathering import Snapshot, found_in
from skerry.member.inputs import Inflow, Inputs, Kept
from skerry.member.jobs import partitions_for, small_bodies
from skerry.member.outgoing import Outgoing
from skerry.member.ownreads import OwnReads
from skerry.member.resources import Held, Resources, Wakeup, Workers
from skerry.member.stores import DirectStore, RowStore
from skerry.member.tables import LocalTables, Reading, no_table
from skerry.member.taskport import TaskPort
from skerry.model import trace
from skerry.model.errors import Overloaded, SkerryError, UserError, from_code
from skerry.model.fragment import EdgeLeaf, Fragment, SparkFragment, TableLeaf, VirtualLeaf
from skerry.model.ids import ChannelId, QueryId
from skerry.model.limits import Limits
from skerry.model.progress import FragmentProgress, LinkBytes
from skerry.model.results import Schema
from skerry.model.rights import Rights
from skerry.model.sources import JdbcTable
from skerry.plan.admission import Home, stale
from skerry.plan.bound import most_rows
from skerry.spark.engine import EdgeInput, Engine, Job, JobResult, SinkOutput, TableFiles
from skerry.wire.channels import ChannelOut
from skerry.wire.codec import encode_batch
from skerry.wire.messages import Execute, Message, Progress
from skerry.wire.session import Identity
from skerry.wire.tuples import decode_tuples
from skerry.wire.values import from_value

_CANCEL_AGAIN_S = 0.05


class Surroundings(msgspec.Struct):
    """What a participant needs of its member."""

    identity: Identity
    home: Home
    limits: Limits
    outgoing: Outgoing
    engine: Engine | None
    workers: Workers
    jobs: Workers
    tables: LocalTables
    own_reads: OwnReads
    taskport: TaskPort
    task_address: str
    inputs: Inputs
    resources: Resources
    send: Callable[[str, Message], None]
    deliver: Callable[[ChannelId, ReadableSpool], None]  # rows that stay: the initiator is this member
    rights_of: Callable[[str, tuple[str, ...]], Rights]  # of a user, by this member's own rules


class Running:
    """One fragment at work."""

    def __init__(self, fragment: Fragment) -> None:
        self.fragment = fragment
        self.state = "waiting"
        self.started_at = clock.now()
        self.rows = 0
        self.size_bytes = 0
        self.intake: Intake | None = None
        self.store: RowStore | None = None
        self.spool: Spool | None = None  # of rows that return through the driver
        self.tag = ""
        self.in_spark = False
        self.spark_since: float | None = None  # of the job that runs
        self.spark_s = 0.0  # of the job that ran
        self.is_stopped = False  # its receiver has enough
        self.jobs: tuple[int, ...] = ()
        self.work: asyncio.Task[None] | None = None
        self.schema: Schema | None = None

    def spark_seconds(self, now: float) -> float:
        return self.spark_s if self.spark_since is None else now - self.spark_since


def reading_of(fragments: Iterable[Fragment], tables: LocalTables) -> Reading:
    """The configured tables that these fragments read here."""
    names = {leaf.table for fragment in fragments for leaf in fragment.leaves if isinstance(leaf, TableLeaf)}
    return tables.reading([name for name in sorted(names) if tables.has(name)])


async def snapshots(
    fragment: SparkFragment,
    schema_info: Mapping[str, int],
    rights: Rights,
    around: Surroundings,
    reading: Reading,
    execute: Execute,
    opened: ExitStack,
) -> tuple[dict[str, TableFiles], float, int]:
    """The files of the fragment's tables by placeholder, the most rows that a join of them has, and their bytes.

    Tables are as `rights` show them, which are the asking user's by this member's own rules: whatever the initiator
    planned, no fragment reads more. Those of our own are read as `execute` says, and let go of with `opened`.
    """
    tables: dict[str, TableFiles] = {}
    counts: list[float] = []
    size_bytes = 0
    me = around.identity.member
    for leaf in fragment.leaves:
        if not isinstance(leaf, TableLeaf):
            continue
        seen = rights.seen(me, leaf.table)
        if seen.is_hidden:  # in the words for a table that is not there
            raise no_table(me, leaf.table)
        if around.tables.has(leaf.table):
            snapshot = await reading.snapshot(leaf.table)
        else:
            snapshot = await _own_snapshot(leaf.table, schema_info, around, execute, opened)
        _refuse_unnamed(me, leaf.table, rights, snapshot)
        if not seen.columns(snapshot.part.columns):
            raise no_table(me, leaf.table)
        if schema_info.get(f"{me}.{snapshot.part.table}") != snapshot.part.schema_version:
            raise stale(me, leaf.table)
        view = view_of(seen, snapshot.part.columns, rights.user)
        if view is not None and fragment.analyzes:
            raise UserError(f"site {me}: ANALYZE TABLE needs the right to read all of {leaf.table}")
        tables[leaf.placeholder] = msgspec.structs.replace(snapshot.files, seen=view)
        size_bytes += snapshot.part.size_bytes
        pinned = snapshot.files.pinned
        is_estimate = pinned is not None and isinstance(pinned.source, JdbcTable)
        counts.append(math.inf if snapshot.part.rows is None or is_estimate else snapshot.part.rows)
    return tables, most_rows(counts), size_bytes


def _refuse_unnamed(me: str, table: str, rights: Rights, snapshot: Snapshot) -> None:
    """UserError if a rule filters or masks by a column that the table does not have: it may have another name since, or
    had one in an older version."""
    if missing := missing_column(rights.named(me, table), snapshot.part.columns):
        raise UserError(
            f"site {me}: a rule about table {table} speaks of column {missing}, which the table does not have",
            member=me,
            suggestion="name the column in the rules as it is called now",
        )


async def _own_snapshot(
    table: str, schema_info: Mapping[str, int], around: Surroundings, execute: Execute, opened: ExitStack
) -> Snapshot:
    own = await around.own_reads.current(table, schema_info)
    snapshot = await around.own_reads.open(own, execute.read_ts, execute.changes)
    opened.callback(around.own_reads.close, own, execute.read_ts)
    return snapshot


async def wait_for_inputs(
    fragment: SparkFragment, engine: Engine, arriving: Mapping[int, Sequence[Inflow]], limits: Limits
) -> int:
    """Slots taken to receive while rows still arrive; 0 after everything has arrived (D7), as groups always have: the
    first of them is there when the last row is."""
    edges = [leaf.edge for leaf in fragment.leaves if isinstance(leaf, EdgeLeaf)]
    if not edges:
        return 0
    channels = [each for edge in edges for each in arriving[edge]]

    def are_here() -> bool:
        return all(each.spool.finished for each in channels)

    def are_many() -> bool:
        return any(each.received_bytes > limits.small_edge_bytes for each in channels)

    if engine.source_slots is not None and not any(isinstance(each, Kept) for each in channels):
        with suppress(TimeoutError):
            async with asyncio.timeout(limits.small_edge_wait_s):
                await _until(lambda: are_here() or are_many(), channels)
        wanted = engine.cores * len(edges)
        if not are_here() and engine.source_slots.try_take(wanted):
            return wanted
    await _until(are_here, channels)  # owner: the query's deadline, and a failed spool ends the query
    return 0


async def _until(is_so: Callable[[], bool], channels: Sequence[Inflow]) -> None:
    wakeup = Wakeup()
    endings = [each.spool.subscribe(wakeup) for each in channels]
    try:
        while not is_so():
            await wakeup.wait()
    finally:
        for end in endings:
            end()


def edge_inputs(
    execute: Execute,
    fragment: SparkFragment,
    token: str,
    around: Surroundings,
    arriving: Mapping[int, Sequence[Inflow]],
    cores: int,
) -> dict[str, EdgeInput]:
    """What Spark's tasks have to know to read the fragment's edges, by placeholder; the task port lets them."""
    query = execute.query
    found: dict[str, EdgeInput] = {}
    for leaf in fragment.leaves:
        if isinstance(leaf, VirtualLeaf):
            found[leaf.placeholder] = virtual_input(leaf, execute)
        elif isinstance(leaf, EdgeLeaf):
            spools = [each.spool for each in arriving[leaf.edge]]
            bodies = small_bodies(arriving[leaf.edge], leaf.columns, around.limits)
            if bodies is None:
                around.taskport.register_edge(query, leaf.edge, token, spools)
            partitions = partitions_for(arriving[leaf.edge], cores)
            found[leaf.placeholder] = EdgeInput(
                query,
                leaf.edge,
                leaf.columns,
                around.task_address,
                token,
                partitions,
                around.identity.cluster,
                around.taskport.fingerprint,
                bodies,
            )
    return found


def virtual_input(leaf: VirtualLeaf, execute: Execute) -> EdgeInput:
    """Rows that came with the request are those of an edge that has arrived. PeerError if they are none."""
    rows = decode_tuples(execute.virtual_tables[leaf.placeholder], leaf.columns)
    return EdgeInput(execute.query, 0, leaf.columns, "", "", 1, bodies=(encode_batch(rows),))


def make_job(
    fragment: SparkFragment,
    execute: Execute,
    member: str,
    tables: dict[str, TableFiles],
    edges: dict[str, EdgeInput],
    sink: SinkOutput | None,
    limits: Limits,
) -> Job:
    query = execute.query
    return Job(
        tag=f"skerry-{member}-{query.initiator}-{query.local}-{fragment.id}",
        query=query,
        fragment=fragment.id,
        sql=fragment.sql,
        tables=tables,
        edges=edges,
        parameters={name: from_value(value) for name, value in execute.parameters.items()},
        sink=sink,
        is_narrow=fragment.is_narrow,
        gives_few=0 < fragment.estimated_rows <= limits.driver_rows,
        order="any" if fragment.output.order == "groups" else fragment.output.order,
        keys=fragment.output.keys,
        operator_depth=fragment.operator_depth,
        is_repeatable=fragment.is_repeatable,
    )


def links_of(member: str, channels: Iterable[ChannelOut]) -> tuple[LinkBytes, ...]:
    """What the channels that leave the member have sent, by who receives it next."""
    sent: dict[str, LinkBytes] = {}
    for channel in channels:
        so_far = sent.get(channel.to, LinkBytes(member, channel.to, 0, 0))
        sent[channel.to] = LinkBytes(
            member,
            channel.to,
            so_far.size_bytes + channel.sent_bytes,
            so_far.rows + channel.sent_rows,
            so_far.stalled_s + channel.stalled_s,
        )
    return tuple(sent.values())


def progress_of(
    query: QueryId, fragments: Mapping[int, Running], leaving: Iterable[ChannelOut], around: Surroundings
) -> Progress:
    """How far the member is, for the query's initiator."""
    me = around.identity.member
    for running in fragments.values():
        if running.intake is not None and running.state == "running":
            running.rows, running.size_bytes = running.intake.rows, running.intake.size_bytes
    told = [
        FragmentProgress(number, me, _state_of(running, around.engine), running.rows, running.size_bytes)
        for number, running in fragments.items()
    ]
    return Progress(query, me, tuple(told), links_of(me, leaving), around.resources.memory(query, me))


def _state_of(running: Running, engine: Engine | None) -> str:
    is_held_up = running.in_spark and engine is not None and engine.is_held_up(running.tag)
    return "held up" if is_held_up else running.state


def learn(fragment: SparkFragment, tables: Mapping[str, TableFiles], result: JobResult, local: LocalTables) -> None:
    """The fragment's row is what ANALYZE TABLE found: of the files that were read, no others."""
    table = local.find(fragment.analyzes).name
    read = next((files for files in tables.values() if files.table == table), None)
    found = found_in(result, read.columns, ANALYZED) if read is not None else None
    if read is not None and found is not None:
        local.analyzed(table, read.version, found.stats, found.rows)


async def stop_jobs(query: QueryId, fragments: Collection[Running], around: Surroundings) -> None:
    """A cancel misses a query that is still planning: repeat it until the job's thread has returned."""
    engine, deadline = around.engine, clock.now() + around.limits.stop_s
    while busy := [running for running in fragments if running.in_spark]:
        assert engine is not None
        cancels = [around.workers.run(engine.cancel, running.tag) for running in busy]
        with suppress(TimeoutError):  # a Spark that hangs must not hang the query's end as well
            # Not wait_for: if it is cancelled, Python 3.11 says that nobody asked the gathering for its error.
            async with asyncio.timeout(max(0.0, deadline - clock.now())):
                await asyncio.gather(*cancels)
        if clock.now() > deadline:
            trace.emit(trace.JobsLeft(query, tuple(running.fragment.id for running in busy)))
            for running in busy:
                await around.workers.run(engine.give_up, running.tag)
            return
        # A job's end is known at once; a cancel that came too early is said again.
        await asyncio.wait({running.work for running in busy if running.work is not None}, timeout=_CANCEL_AGAIN_S)


def nothing_leaves(fragments: Collection[Running]) -> bool:
    """All rows made so far are gone: the room that tasks wait for is taken by rows that stay to the query's end."""
    stores = [running.store for running in fragments if isinstance(running.store, DirectStore)]
    return all(store.spool.first == store.spool.length for store in stores)


def no_room_for_result(member: str) -> Overloaded:
    return Overloaded(
        f"site {member}: the rows that arrived for the query fill its spool, and leave no room for its result",
        suggestion="raise limits.spool_disk_bytes, or ask for less",
    )


def read_too_slowly(member: str, limits: Limits) -> Overloaded:
    return Overloaded(
        f"site {member}: the result was not read for {limits.sink_stalled_s:g} s, its spool is full and other queries "
        "wait for Spark",
        suggestion="read faster, or ask for less",
    )


async def room_for(store: DirectStore, size_bytes: int) -> None:
    """Until the store takes so much, as a task would wait for a result's reader; owner: the query's deadline."""
    wakeup = Wakeup()
    end = store.subscribe_room(wakeup)
    try:
        while not store.has_room(size_bytes):
            await wakeup.wait()
    finally:
        end()


def drop_rows(spool: ReadableSpool) -> None:
    """Let go of rows as they come: they were counted, and nobody reads them."""

    def drop() -> None:
        spool.release(spool.length)

    spool.subscribe(drop)
    drop()


def left_of(
    query: QueryId,
    fragments: Collection[Running],
    held: Held,
    tasks: Collection[asyncio.Task[None]],
    around: Surroundings,
) -> tuple[str, ...]:
    """What of this query is still here, for its receipt: nothing, if all went well."""
    jobs = [f"Spark job {running.tag}" for running in fragments if running.in_spark]
    connections = around.taskport.connections(query)
    waiting = [f"{connections} connections of Spark tasks"] if connections else []
    # Views are leased to jobs and channels run in tasks; the spools' budget is shared with an initiator's half.
    held_bytes = held.budget.memory_used + held.budget.disk_used if held.users == 1 else 0
    spools = [f"{held_bytes} bytes of spool"] if held_bytes else []
    return (*jobs, *waiting, *spools, *(f"task {task.get_name()}" for task in tasks))


def named(error: SkerryError, member: str, fragment: int | None = None) -> SkerryError:
    """The client reads where it happened; errors that begin with a site say so already."""
    message = error.message if error.message.startswith("site ") else f"site {member}: {error.message}"
    if fragment is not None and f"fragment {fragment}" not in message:
        message = f"{message.rstrip('.')} (fragment {fragment})"
    if message == error.message:
        return error
    said = from_code(error.code, message, member=error.member or member, suggestion=error.suggestion)
    said.may_quote = error.may_quote
    return said

"""From a statement to its first answer: planned, begun, and again when its tables changed or an engine ended."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import TypeVar, assert_never

import pyarrow as pa

from skerry.member import clock
from skerry.member.answers import answer_statement, ran_as
from skerry.member.assigning import assigned_variables
from skerry.member.computing import Gathered, Overflow, Sink, as_given, is_too_much, rows_of
from skerry.member.history import ClientCursor
from skerry.member.initiator import Initiated, Reading
from skerry.member.inputs import Inputs
from skerry.member.places import Places
from skerry.member.planning import (
    AboutOwn,
    Assigned,
    Explained,
    Planned,
    Planner,
    Tried,
    Understood,
    check_expected,
    plan_statement,
)
from skerry.member.relay import relays_of
from skerry.member.replans import Replans
from skerry.member.requests import Answer, CountAnswer, PageSize, RowsAnswer, RunStatement
from skerry.member.result import Counted, Result
from skerry.member.shares import Shares
from skerry.model import trace
from skerry.model.errors import Cancelled, EngineEnded, SkerryError, StaleSchema, TimedOut, unsure
from skerry.model.fragment import Plan, Rows
from skerry.model.ids import AGAIN, QueryId
from skerry.model.limits import PLAN_CHARS, Limits
from skerry.model.points import reach
from skerry.model.results import Schema
from skerry.plan.explain import explain
from skerry.sql.commands import (
    AnalyzeTable,
    Command,
    DescribeTable,
    DropVariable,
    ShowColumns,
    ShowSchemas,
    ShowTables,
    UseSchema,
)
from skerry.sql.owntables import is_plain_write
from skerry.wire.codec import decode_batch, decode_schema
from skerry.wire.messages import Message

T = TypeVar("T")
# What sites run.
Runnable = Planned | Tried | Assigned

# How a member understands statements. Tests give their own, for what no statement says yet.
PlanStatement = Callable[[Planner, RunStatement], Awaitable[Understood]]


class Runs:
    """Queries of one initiator on their way to an answer. `initiate` starts one, `on_ended` hears of its end."""

    def __init__(
        self,
        planner: Planner,
        inputs: Inputs,
        send: Callable[[str, Message], None],
        initiate: Callable[[Initiated], None],
        on_ended: Callable[[Initiated], None],
        reading: Callable[[RunStatement, Plan, int], Reading],
        seen: Callable[[int], Awaitable[None] | None],
        change: Callable[[RunStatement, ClientCursor], Awaitable[Answer]],
        plan: PlanStatement = plan_statement,
    ) -> None:
        """`reading`: how a plan's tables of our own are read, all of them, by what it says (AS OF, or 0).

        `seen`: until reads see such a commit, None if they do. `change`: tables of our own.
        """
        self._planner = planner
        self._plan = plan
        self._inputs = inputs
        self._send = send
        self._initiate = initiate
        self._on_ended = on_ended
        self._reading = reading
        self._seen = seen
        self._change = change
        limits = planner.limits
        shares: Shares[QueryId] = Shares(
            "queries",
            "limits.running_queries",
            limits.running_queries,
            limits.running_queries_of_user,
            limits.queued_queries,
            "limits.queued_queries",
        )
        self._places = Places(shares)

    async def answer(self, statement: RunStatement, cursor: ClientCursor) -> Answer:
        """Raises Cancelled when the cursor was closed meanwhile."""
        replans: Replans | None = None
        if statement.seen_ts and (waiting := self._seen(statement.seen_ts)) is not None:
            await _while_wanted(cursor, statement.query, waiting, "waiting for a clock")
        for attempt in itertools.count():
            # Of some milliseconds: no task looks at it to say so.
            if self._plan is plan_statement and is_plain_write(statement.sql):
                return await self._changed(statement, cursor)
            replans = replans or Replans(self._planner.peer_tables.own_definitions)
            planned = await self._understood(statement, cursor)
            if isinstance(planned, AboutOwn):
                return await self._changed(statement, cursor)
            if isinstance(planned, Runnable):
                planned = await self._placed(statement, cursor, planned, attempt)
            if not isinstance(planned, Runnable):
                if isinstance(planned, DropVariable):
                    return CountAnswer(0, variables={planned.name: None} if planned.name is not None else {})
                if not isinstance(planned, Explained):
                    await self._planner.peer_tables.refresh()
                    # What sites told of tables that were asked for by name is forgotten by that.
                    again = await self._understood(statement, cursor)
                    assert not isinstance(again, Runnable | AboutOwn | DropVariable), "it was a command"
                    planned = again
                return self._told(statement, cursor, planned)
            try:
                if isinstance(planned, Tried):
                    return await self._try(statement, cursor, planned, attempt)
                if isinstance(planned, Assigned):
                    return await self._assign(statement, cursor, planned, attempt)
                return await self._run(statement, cursor, planned, attempt)
            except (StaleSchema, EngineEnded) as error:
                if cursor.is_closed or not _may_run_again(planned):
                    raise
                await self._planner.peer_tables.refresh((error.member,))
                replans.note(error, cursor.tables)
                cursor.initiated = None  # that attempt is over; whatever comes of the next is told anew
                trace.emit(trace.QueryReplanned(statement.query, error.message))
        raise AssertionError

    async def _changed(self, statement: RunStatement, cursor: ClientCursor) -> Answer:
        """A statement about tables of our own. What was handed to the members that write goes on in any case."""
        wanted = _Wanted(cursor, statement.query)
        try:
            with wanted:
                answer = await self._change(statement, cursor)
        except (Cancelled, TimedOut) as error:
            raise unsure(statement.query, error) if cursor.is_handed_over and wanted.was_ended else error from error
        if isinstance(answer, CountAnswer):
            cursor.changed, cursor.told_rows = answer, answer.rows
        return answer

    async def _understood(self, statement: RunStatement, cursor: ClientCursor) -> Understood:
        understood = await _while_wanted(cursor, statement.query, self._plan(self._planner, statement))
        cursor.tables = tables_of(understood)
        check_expected(understood, statement)
        return understood

    async def _placed(self, statement: RunStatement, cursor: ClientCursor, planned: Runnable, attempt: int) -> Runnable:
        """The plan, when there is room to run it: made again if it had to wait, for tables change meanwhile."""
        query = _attempted(statement.query, attempt)
        cursor.place = lambda: self._places.place(query)
        try:
            if await _while_wanted(cursor, statement.query, self._places.take(query, statement.share)):
                cursor.place = lambda: 0
                again = await self._understood(statement, cursor)
                assert isinstance(again, Runnable), "what a statement asks for does not change with its tables"
                planned = again
        except BaseException:
            self._places.leave(query)
            raise
        finally:
            cursor.place = lambda: 0
        return planned

    async def _run(self, statement: RunStatement, cursor: ClientCursor, planned: Planned, attempt: int) -> Answer:
        initiated = self._begin(statement, cursor, planned, attempt)
        match initiated.result:
            case Result():
                schema = await initiated.schema()
                reach("columns known")
                page = await initiated.page(0, *page_bounds(statement.size, self._planner.limits))
                return RowsAnswer(schema, page, warnings=planned.warnings)
            case Counted() as counted:
                cursor.counted, cursor.warnings = counted, planned.warnings
                return CountAnswer(await initiated.count(), planned.warnings)
            case never:
                assert_never(never)

    async def _try(self, statement: RunStatement, cursor: ClientCursor, tried: Tried, attempt: int) -> Answer:
        """EXPLAIN ANALYZE: all pages are thrown away as they come, and the plan is answered with what it did."""
        initiated = self._begin(statement, cursor, tried.planned, attempt, is_traced=True)
        match initiated.result:
            case Result():
                await self._throw_away(initiated)
            case Counted():
                await initiated.count()
            case never:
                assert_never(never)
        seconds = clock.now() - initiated.core.started_at
        await initiated.wait_ended()  # owner: the query's deadline; what links carried is known with the receipts
        planned, ran = tried.planned, ran_as(initiated, seconds)
        explained = Explained(planned.plan, tried.is_json, ran=ran, warnings=planned.warnings, views=planned.views)
        if not cursor.is_closed and cursor.options.lease.seconds > 0:
            cursor.initiated = None  # whoever attaches wants the plan, not the rows that were thrown away
        return self._told(statement, cursor, explained)

    async def gather(
        self,
        statement: RunStatement,
        cursor: ClientCursor,
        attempt: int,
        plan: Callable[[], Awaitable[Planned]],
        check: Callable[[Schema], None],
        overflow: Overflow,
        is_traced: bool = False,
    ) -> Gathered:
        """All rows of a query that a write needs (see `computing.Gather`)."""
        query = _attempted(statement.query, attempt)
        cursor.place = lambda: self._places.place(query)
        try:
            await self._places.take(query, statement.share)  # owner: the query's deadline
            cursor.place = lambda: 0
            planned = await plan()
        except BaseException:
            self._places.leave(query)
            raise
        finally:
            cursor.place = lambda: 0
        cursor.is_write = True
        initiated = self._begin(statement, cursor, planned, attempt, is_traced=is_traced)
        cursor.initiated = None  # what is answered is the count of what becomes of these rows
        try:
            gathered = await self._gathered(initiated, check, overflow)
            if is_traced:
                seconds = clock.now() - initiated.core.started_at
                await initiated.wait_ended()  # owner: the query's deadline; links are known with the receipts
                gathered = gathered._replace(ran=(planned.plan, ran_as(initiated, seconds)))
            return gathered
        except BaseException as error:
            initiated.cancel(error if isinstance(error, SkerryError) else Cancelled(f"query {query} was closed"))
            raise
        finally:
            initiated.drop_result()

    async def _gathered(self, initiated: Initiated, check: Callable[[Schema], None], overflow: Overflow) -> Gathered:
        schema, limits = await initiated.schema(), self._planner.limits
        check(schema)
        arrow, batches = decode_schema(schema.arrow), list[pa.RecordBatch]()
        number, is_last, rows, size_bytes = 0, False, 0, 0
        sink: Sink | None = None
        while not is_last:
            page = await initiated.page(number, limits.page_rows, limits.page_bytes)
            number, is_last = number + 1, page.is_last
            came = [decode_batch(each, arrow, limits.frame_bytes) for each in page.batches]
            batches += came
            rows += page.rows
            size_bytes += sum(batch.nbytes for batch in came)
            if sink is None and is_too_much(rows, size_bytes // 2, limits):
                sink = await overflow()
            if sink is not None:
                for batch in batches:
                    await sink.add(batch, as_given)
                batches = []
            initiated.arrived(number)
        return Gathered(rows_of(arrow, batches), initiated.core.read_ts, sink)

    async def _assign(self, statement: RunStatement, cursor: ClientCursor, assigned: Assigned, attempt: int) -> Answer:
        """DECLARE and SET VAR: the row that the query gives is the client's to keep."""
        initiated = self._begin(statement, cursor, assigned.planned, attempt)
        schema, limits = await initiated.schema(), self._planner.limits
        batches: list[memoryview] = []
        number, is_last = 0, False
        while not is_last:
            page = await initiated.page(number, limits.page_rows, limits.page_bytes)
            number, is_last = number + 1, page.is_last
            batches += page.batches
            initiated.arrived(number)
        variables = assigned_variables(assigned, schema, batches, statement.variables, limits.frame_bytes)
        if not cursor.is_closed and cursor.options.lease.seconds > 0:
            cursor.initiated = None  # whoever attaches gets this answer, not the row
        return CountAnswer(0, assigned.planned.warnings, variables)

    def _told(self, statement: RunStatement, cursor: ClientCursor, understood: Explained | Command) -> Answer:
        """Rows that no query makes."""
        answer = answer_statement(self._planner.seen_by(statement.rights), understood)
        cursor.told_rows = answer.page.rows
        return answer

    async def _throw_away(self, initiated: Initiated) -> None:
        limits, number, is_last = self._planner.limits, 0, False
        await initiated.schema()
        while not is_last:
            is_last = (await initiated.page(number, limits.page_rows, limits.bulk_page_bytes)).is_last
            number += 1
            initiated.arrived(number)

    def _begin(
        self, statement: RunStatement, cursor: ClientCursor, planned: Planned, attempt: int, is_traced: bool = False
    ) -> Initiated:
        query = _attempted(statement.query, attempt)
        try:
            initiated = self._initiated(query, statement, cursor, planned, is_traced)
            initiated.may_begin_anew = not attempt and _may_run_again(planned)
            self._initiate(initiated)
        except BaseException:
            self._places.leave(query)
            raise
        reach("execute sent")
        return initiated

    def _initiated(
        self, query: QueryId, statement: RunStatement, cursor: ClientCursor, planned: Planned, is_traced: bool
    ) -> Initiated:
        planner = self._planner
        initiated = Initiated(
            query,
            # Without its facts nothing is remembered of how much each fragment gave.
            planned.plan.veiled() if planned.is_veiled else planned.plan,
            planned.parameters,
            cursor.options.timeout_s,
            planner.limits,
            self._inputs,
            self._send,
            self._ended,
            cursor.options.fault_policy or planner.config.fault_policy,
            relays_of(planned.plan, query, planner.topology),
            planner.topology.budgets,
            is_traced,
            statement.rights.user,
            statement.rights.roles,
            statement.share,
            self._reading(statement, planned.plan, planned.as_of),
            cursor.options.caps,
        )
        cursor.ran = initiated
        cursor.initiated, cursor.plan = initiated, "\n".join(explain(planned.plan, planner.name))[:PLAN_CHARS]
        plan, seconds = planned.plan, clock.now() - cursor.started_at
        trace.emit(trace.QueryPlanned(query, plan.plan_id, len(plan.fragments), seconds))
        return initiated

    def _ended(self, initiated: Initiated) -> None:
        self._places.leave(initiated.query)
        self._on_ended(initiated)


class _Wanted:
    """The same as `_while_wanted` for what runs in the task of whoever asks. Writes of some milliseconds come here: no
    task is made for them, and none looks at it. `was_ended`: it was stopped half way."""

    def __init__(self, cursor: ClientCursor, query: QueryId) -> None:
        self.was_ended = False
        self._cursor = cursor
        self._query = query
        self._over: SkerryError | None = None

    def __enter__(self) -> None:
        cursor, task = self._cursor, asyncio.current_task()
        if cursor.is_closed:
            raise Cancelled(f"query {self._query} was closed")
        assert task is not None
        self._task, self._cancelled_before = task, task.cancelling()
        cursor.on_closed.add(self._end)
        within_s = max(0.0, cursor.started_at + cursor.options.timeout_s - clock.now())
        self._timer = asyncio.get_running_loop().call_later(within_s, self._end)

    def _end(self) -> None:
        if self._over is None:
            cursor, timeout_s = self._cursor, self._cursor.options.timeout_s
            waited = "being carried out" if not cursor.place() else "in the queue"
            late = f"query {self._query} was {waited} longer than its {timeout_s:g} s"
            self._over = Cancelled(f"query {self._query} was closed") if cursor.is_closed else TimedOut(late)
            self._task.cancel()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._timer.cancel()
        self._cursor.on_closed.discard(self._end)
        # If somebody else has cancelled the task as well, that is what ends it.
        is_ours = self._over is not None and self._task.uncancel() <= self._cancelled_before
        if self._over is not None and is_ours and kind is asyncio.CancelledError:
            self.was_ended = True
            raise self._over from error


async def _while_wanted(cursor: ClientCursor, query: QueryId, work: Awaitable[T], doing: str = "planned") -> T:
    """Ends the work when the cursor is closed, or its time is up."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.sleep(0)
        if not task.done() and not cursor.is_closed:  # else it waited for nobody, and needs no watch
            await _ended(task, cursor, max(0.0, cursor.started_at + cursor.options.timeout_s - clock.now()))
        if cursor.is_closed:
            raise Cancelled(f"query {query} was closed")
        if not task.done():
            waited = doing if not cursor.place() else "in the queue"
            raise TimedOut(f"query {query} was {waited} longer than its {cursor.options.timeout_s:g} s")
        return task.result()
    finally:
        if not task.done() or cursor.is_closed:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def _ended(task: asyncio.Future[T], cursor: ClientCursor, within_s: float) -> None:
    """Until the task is done, the cursor closed, or time up. Statements of some milliseconds come here: no task waits
    for the cursor."""
    loop = asyncio.get_running_loop()
    over: asyncio.Future[None] = loop.create_future()

    def wake(_: object = None) -> None:
        if not over.done():
            over.set_result(None)

    task.add_done_callback(wake)
    cursor.on_closed.add(wake)
    timer = loop.call_later(within_s, wake)
    try:
        await over
    finally:
        timer.cancel()
        cursor.on_closed.discard(wake)
        task.remove_done_callback(wake)


def _attempted(query: QueryId, attempt: int) -> QueryId:
    """Participants remember the id of an attempt that failed."""
    return QueryId(query.initiator, f"{query.local}{AGAIN}{attempt}") if attempt else query


def _may_run_again(planned: Runnable) -> bool:
    """Only reads may run again: a change may be half done at a site."""
    plan = planned.plan if isinstance(planned, Planned) else planned.planned.plan
    return isinstance(plan.ends_in, Rows)


def tables_of(understood: Understood) -> tuple[str, ...]:
    """The parts that the statement is about, as `member.table`: all whose rows or statistics decide its answer."""
    match understood:
        case Planned(plan) | Explained(plan) | Tried(Planned(plan)) | Assigned(Planned(plan)):
            return tuple(sorted({*plan.schema_info, *(f"{each.member}.{each.table}" for each in plan.left_out)}))
        case DescribeTable(ref) | ShowColumns(ref) | AnalyzeTable(ref):
            return (f"{ref.member}.{ref.name}" if ref.member is not None else ref.name,)
        case ShowSchemas() | ShowTables() | UseSchema() | DropVariable() | AboutOwn():
            return ()
        case never:
            assert_never(never)


def page_bounds(size: PageSize, limits: Limits) -> tuple[int, int]:
    """The most rows and bytes of a page; rows 0: no bound but the bytes."""
    # A page must fit a frame with room for its header, whatever the caller asks for.
    asked_bytes = max(0, size.size_bytes)
    bytes_max = min(asked_bytes or limits.page_bytes, limits.frame_bytes // 4)
    rows_max = max(0, size.rows) if size.rows > 0 or asked_bytes else limits.page_rows
    return rows_max, bytes_max


def asked_as(query: QueryId) -> QueryId:
    """The client's id of a query, whichever attempt this is."""
    return QueryId(query.initiator, query.local.split(AGAIN)[0])

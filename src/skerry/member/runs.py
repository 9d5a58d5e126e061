"""From a statement to its first answer: planned, begun, planned again when its tables turn out to have changed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import assert_never

from skerry.member import clock
from skerry.member.answers import answer_statement, ran_as
from skerry.member.history import ClientCursor
from skerry.member.initiator import Initiated
from skerry.member.inputs import Inputs
from skerry.member.planning import Explained, Planned, Planner, Tried, Understood, check_expected, plan_statement
from skerry.member.relay import relays_of
from skerry.member.requests import Answer, CountAnswer, PageSize, RowsAnswer, RunStatement
from skerry.member.result import Counted, Result
from skerry.model import trace
from skerry.model.errors import Cancelled, StaleSchema
from skerry.model.fragment import Rows
from skerry.model.ids import AGAIN, QueryId
from skerry.model.limits import PLAN_CHARS, Limits
from skerry.model.points import reach
from skerry.plan.explain import explain
from skerry.sql.commands import AnalyzeTable, Command, DescribeTable, ShowColumns, ShowSchemas, ShowTables, UseSchema
from skerry.wire.messages import Message

_REPLANS = 3  # columns that change faster than this are somebody's loop

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
        plan: PlanStatement = plan_statement,
    ) -> None:
        self._planner = planner
        self._plan = plan
        self._inputs = inputs
        self._send = send
        self._initiate = initiate
        self._on_ended = on_ended

    async def answer(self, statement: RunStatement, cursor: ClientCursor) -> Answer:
        """Raises Cancelled when the cursor was closed meanwhile."""
        for attempt in range(_REPLANS):
            planned = await self._plan(self._planner, statement)
            cursor.tables = tables_of(planned)
            check_expected(planned, statement.expected)
            if cursor.is_closed:
                raise Cancelled(f"query {statement.query} was closed")
            if not isinstance(planned, Planned | Tried):
                if not isinstance(planned, Explained):
                    await self._planner.peer_tables.refresh()
                return self._told(statement, cursor, planned)
            try:
                if isinstance(planned, Tried):
                    return await self._try(statement, cursor, planned, attempt)
                return await self._run(statement, cursor, planned, attempt)
            except StaleSchema as error:
                if not _may_run_again(planned):
                    raise
                cursor.initiated = None  # that attempt is over; whatever comes of the next is told anew
                trace.emit(trace.QueryReplanned(statement.query, error.message))
                await self._planner.peer_tables.refresh((error.member,))
        raise StaleSchema(f"the columns of its tables changed {_REPLANS} times while the query was planned")

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
        explained = Explained(tried.planned.plan, tried.is_json, ran=ran_as(initiated, seconds))
        if not cursor.is_closed and cursor.options.lease.seconds > 0:
            cursor.initiated = None  # whoever attaches wants the plan, not the rows that were thrown away
        return self._told(statement, cursor, explained)

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
        planner, query = self._planner, statement.query
        if attempt:
            # Participants remember the id of the attempt that failed.
            query = QueryId(query.initiator, f"{query.local}{AGAIN}{attempt}")
        timeout_s = statement.timeout_s if statement.timeout_s > 0 else planner.limits.query_timeout_s
        initiated = Initiated(
            query,
            # Without its facts nothing is remembered of how much each fragment gave.
            planned.plan.to_run() if planned.is_veiled else planned.plan,
            planned.parameters,
            timeout_s,
            planner.limits,
            self._inputs,
            self._send,
            self._on_ended,
            cursor.options.fault_policy or planner.config.fault_policy,
            relays_of(planned.plan, query, planner.topology),
            planner.topology.budgets,
            is_traced,
            statement.rights.user,
            statement.rights.roles,
        )
        cursor.ran = initiated
        cursor.initiated, cursor.plan = initiated, "\n".join(explain(planned.plan, planner.name))[:PLAN_CHARS]
        plan, seconds = planned.plan, clock.now() - cursor.started_at
        trace.emit(trace.QueryPlanned(query, plan.plan_id, len(plan.fragments), seconds))
        self._initiate(initiated)
        reach("execute sent")
        return initiated


def _may_run_again(planned: Planned | Tried) -> bool:
    """Only reads may run again: a change may be half done at a site."""
    plan = planned.planned.plan if isinstance(planned, Tried) else planned.plan
    return isinstance(plan.ends_in, Rows)


def tables_of(understood: Understood) -> tuple[str, ...]:
    """The parts that the statement is about, as `member.table`: all whose rows or statistics decide its answer."""
    match understood:
        case Planned(plan) | Explained(plan) | Tried(Planned(plan)):
            return tuple(sorted({*plan.schema_info, *(f"{each.member}.{each.table}" for each in plan.left_out)}))
        case DescribeTable(ref) | ShowColumns(ref) | AnalyzeTable(ref):
            return (f"{ref.member}.{ref.name}" if ref.member is not None else ref.name,)
        case ShowSchemas() | ShowTables() | UseSchema():
            return ()
        case never:
            assert_never(never)


def page_bounds(size: PageSize, limits: Limits) -> tuple[int, int]:
    """The most rows and bytes of a page; rows 0: no bound but the bytes."""
    # A page must fit a frame with room for its header, whatever the caller asks for.
    bytes_max = min(size.size_bytes or limits.page_bytes, limits.frame_bytes // 4)
    rows_max = size.rows if size.rows > 0 or size.size_bytes else limits.page_rows
    return rows_max, bytes_max


def asked_as(query: QueryId) -> QueryId:
    """The client's id of a query, whichever attempt this is."""
    return QueryId(query.initiator, query.local.split(AGAIN)[0])

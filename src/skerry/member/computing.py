"""Writes that Spark computes: planned and run as any query; its rows come here, and go to the members that have them.

All tables of our own are read at one moment. Who has written one of the rows since is in the way of the commit: then
the query is run again, at a later moment. So no update is lost.
"""

from __future__ import annotations

import asyncio
import itertools
import uuid
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from typing import NamedTuple, Protocol
from weakref import WeakValueDictionary

import msgspec
import pyarrow as pa

from skerry.member.analysing import Analysis
from skerry.member.bulk import Bulk, Bulks
from skerry.member.clientoptions import is_again
from skerry.member.history import ClientCursor
from skerry.member.own import OwnTables
from skerry.member.planning import (
    Knowledge,
    Planned,
    Planner,
    SchemaCatalog,
    given_values,
    given_variables,
    planned_query,
    with_fresh_tables,
)
from skerry.member.replans import Replans
from skerry.member.requests import CountAnswer, RunStatement
from skerry.member.resources import Workers
from skerry.model import trace
from skerry.model.commits import TransactionId
from skerry.model.errors import EngineEnded, Overloaded, SkerryError, StaleSchema, TimedOut, UserError, unsure
from skerry.model.fragment import Plan
from skerry.model.limits import (
    CHANGE_PAUSE_MAX_S,
    CHANGE_PAUSE_S,
    COMPUTED_BYTES,
    COMPUTED_ROWS,
    STAGED_CHUNK_ROWS,
    Limits,
)
from skerry.model.names import TableRef
from skerry.model.results import Schema
from skerry.model.rights import Rights
from skerry.model.sharded import Definition, OwnTable
from skerry.model.variables import Variable
from skerry.plan.explain import Actual
from skerry.sql.changes import analyse_change
from skerry.sql.owntables import Change, CreateAs, Known
from skerry.tables.catalogue import first_map
from skerry.tables.computed import (
    Wanted,
    cast_here,
    changed_rows,
    needs_casts,
    needs_whole,
    routed_rows,
    size_of,
    wanted_of,
    whole_rows,
)
from skerry.tables.routing import Routed
from skerry.wire.commit_messages import State
from skerry.wire.values import error_of

_ATTEMPT_BITS = (1 << 30) - 1


class PlanChange(msgspec.Struct, frozen=True):
    """For a planner. `tables`: by their names in lower case, those that there are for the user."""

    statement: RunStatement
    tables: dict[str, OwnTable]
    members: tuple[str, ...]
    casts: bool = False
    as_is: tuple[int, ...] = ()  # values that are not cast
    is_whole: bool = False

    @property
    def sql(self) -> str:
        return self.statement.sql

    @property
    def share(self) -> str:
        return self.statement.share

    @property
    def variables(self) -> dict[str, Variable]:
        return dict(self.statement.variables)


class PlannedChange(msgspec.Struct, frozen=True):
    """`wanted` is None for CREATE TABLE … AS: its table is known when its query runs."""

    planned: Planned
    wanted: Wanted | None


class Gathered(NamedTuple):
    """All rows of a query. `read_ts`: when its tables of our own were read, 0 if there are none.

    `sink`: where they went, if they were too many; then `rows` has none. `ran`: the plan, and what it did, if it was
    traced.
    """

    rows: pa.Table
    read_ts: int
    sink: Sink | None = None
    ran: tuple[Plan, Actual] | None = None


class Gather(Protocol):
    """Runs what `plan` makes, when there is a place for it, and gives its rows; `check` hears their columns first.

    `overflow` is asked where rows go when they are too many to be held.
    """

    def __call__(
        self,
        statement: RunStatement,
        cursor: ClientCursor,
        attempt: int,
        plan: Callable[[], Awaitable[Planned]],
        check: Callable[[Schema], None],
        overflow: Overflow,
        is_traced: bool = False,
    ) -> Awaitable[Gathered]: ...


class Sink:
    """Rows on their way to the members that keep them: more than one statement may hold (member/bulk.py).

    Without a `bulk` they go nowhere: the query is run again.
    """

    def __init__(self, bulk: Bulk | None, wanted: Wanted, rights: Rights) -> None:
        self._bulk = bulk
        self._wanted = wanted
        self._rights = rights

    async def add(self, given: pa.RecordBatch, stored: Callable[[Wanted, pa.RecordBatch], list[pa.Array]]) -> None:
        """Columns as the statement gives them, `stored` as they are kept. UserError if the table does not take them."""
        if self._bulk is None:
            return
        made = whole_rows if self._wanted.kind == "insert" else changed_rows
        await self._bulk.add(lambda: made(self._wanted, stored(self._wanted, given)), self._rights)

    async def finish(self, *, is_ordered: bool) -> Routed:
        if self._bulk is None:
            raise WholeNeeded
        return await self._bulk.finish(self._rights, is_ordered=is_ordered)

    def drop(self) -> None:
        if self._bulk is not None:
            self._bulk.drop()


Overflow = Callable[[], Awaitable[Sink]]


def as_given(_wanted: Wanted, given: pa.RecordBatch) -> list[pa.Array]:
    """Of a query, whose types were looked at before."""
    return given.columns  # type: ignore[no-any-return]


class CastsNeeded(Exception):
    """The query gives values that only Spark may cast: it is run again, with casts."""


class WholeNeeded(Exception):
    """So many rows are updated that whole ones have to go ahead: the query is run again, with all columns."""


class _Readable(Known):
    """What is read is what the user sees of it."""

    def lookup(self, parts: tuple[str, ...]) -> TableRef | None:
        return self.catalog.lookup(parts)

    def names(self) -> list[str]:
        return self.catalog.names()


async def planned_change(planner: Planner, message: PlanChange) -> PlannedChange:
    """Raises SqlError or SiteError only after the sites were asked what they have now."""
    return await with_fresh_tables(planner, _plan, message)


def _plan(planner: Knowledge, message: PlanChange) -> PlannedChange:
    statement = message.statement
    planner = planner.seen_by(statement.rights)
    catalog = SchemaCatalog(planner.catalog, statement.schema_name)
    change = analyse_change(
        statement.sql,
        given_values(statement),
        _Readable(catalog, message.tables, message.members),
        planner.limits,
        needs_query=True,
        casts=message.casts,
        as_is=message.as_is,
        is_whole=message.is_whole,
        variables=given_variables(statement),
    )
    if isinstance(change, CreateAs):
        assert change.query is not None
        return PlannedChange(planned_query(change.query, planner, statement), None)
    assert isinstance(change, Change), "what a statement asks for does not change with its tables"
    assert change.query is not None
    return PlannedChange(planned_query(change.query, planner, statement), wanted_of(change, is_whole=message.is_whole))


class Computing:
    """Belongs to the member's loop."""

    def __init__(self, own: OwnTables, workers: Workers, bulks: Bulks) -> None:
        self._own = own
        self._workers = workers
        self._bulks = bulks
        # Of statements that have met another one on the same table: one after the other, else most would run in vain.
        self._turns: WeakValueDictionary[int, asyncio.Lock] = WeakValueDictionary()

    async def write(
        self,
        table: OwnTable,
        planner: Planner,
        message: Callable[[], PlanChange],
        cursor: ClientCursor,
        gather: Gather,
        analysis: Analysis | None = None,
    ) -> CountAnswer:
        """`message`: for the definitions as they are now. `table` is written. Raises why nothing was."""
        writing = Writing(table, self._own, self._workers, self._bulks, planner, message, cursor, gather)
        writing.analysis = analysis
        if (answer := await writing.before()) is not None:
            return answer
        async with AsyncExitStack() as turn:
            turn.callback(writing.drop)
            while True:
                computed, read_ts = await writing.compute()
                answer = await writing.commit(computed, read_ts)
                if answer is not None:
                    return answer
                if not writing.has_turn:
                    lock = self._turns.setdefault(writing.table.id, asyncio.Lock())
                    await turn.enter_async_context(lock)  # owner: the query's deadline
                    writing.has_turn = True

    def computing(
        self,
        table: OwnTable,
        planner: Planner,
        message: Callable[[], PlanChange],
        cursor: ClientCursor,
        gather: Gather,
    ) -> Writing:
        """For a transaction, which holds what is to be written until it ends."""
        writing = Writing(table, self._own, self._workers, self._bulks, planner, message, cursor, gather)
        writing.is_held = True
        return writing

    async def rows(
        self,
        statement: RunStatement,
        planner: Planner,
        gather: Callable[..., Awaitable[Gathered]],
        plan: Callable[[], Awaitable[Planned]],
        check: Callable[[Schema], None],
        overflow: Overflow,
    ) -> Gathered:
        """Of a query, planned again if its tables have changed."""
        replans, tables = Replans(lambda: self._own.definitions), tuple[str, ...]()

        async def planned() -> Planned:
            nonlocal tables
            made = await plan()
            tables = tuple(made.plan.schema_info)
            return made

        for attempt in itertools.count():
            try:
                return await gather(attempt, planned, check, overflow)
            except StaleSchema as error:
                await _learn(self._own, planner, statement, error)
                replans.note(error, tables)
        raise AssertionError

    def filling(
        self,
        table: OwnTable,
        planner: Planner,
        message: Callable[[], PlanChange],
        cursor: ClientCursor,
        gather: Gather,
        wanted: Wanted | None = None,
    ) -> Writing:
        """For rows that are there already: of all columns of a table that was made for them, or as `wanted` says."""
        writing = Writing(table, self._own, self._workers, self._bulks, planner, message, cursor, gather)
        writing.wanted = wanted or Wanted("insert", table, tuple(range(len(table.columns))))
        return writing

    async def check(self, table: OwnTable, rows: pa.Table) -> None:
        """UserError if a table like this, which is not there yet, cannot hold the rows."""
        wanted = Wanted("insert", table, tuple(range(len(table.columns))))
        await self._workers.run(routed_rows, Definition(table, first_map(table)), wanted, rows)


class Writing:
    """One statement, attempt after attempt. `drop` at its end."""

    def __init__(
        self,
        table: OwnTable,
        own: OwnTables,
        workers: Workers,
        bulks: Bulks,
        planner: Planner,
        message: Callable[[], PlanChange],
        cursor: ClientCursor,
        gather: Gather,
    ) -> None:
        self._copies = 1 if table.distributed_by else len(table.members)
        self._own = own
        self._workers = workers
        self._bulks = bulks
        self._sink: Sink | None = None
        self._planner = planner
        self._message = message
        self._cursor = cursor
        self._gather = gather
        self._first_start = own.now()
        self._casts = False
        self._as_is: tuple[int, ...] = ()
        self._is_whole = False
        self._replans = Replans(lambda: own.definitions)
        # An attempt of an earlier life may be prepared somewhere, with other rows: no two have one number. It is drawn,
        # not told by our clock, which stands still while the machine's is behind it.
        self._commits = int(uuid.uuid4().hex, 16) & _ATTEMPT_BITS
        # Nor do members take part in the query of an earlier life again.
        self._is_again = is_again(message().statement.options)
        self._runs = self._commits if self._is_again else 0
        self._reads_the_past = False
        self.wanted: Wanted | None = None
        self._pause_s = CHANGE_PAUSE_S
        self.warnings: tuple[str, ...] = ()
        self.is_held = False  # in memory, by a transaction
        self.has_turn = False
        self.analysis: Analysis | None = None

    @property
    def table(self) -> OwnTable:
        assert self.wanted is not None
        return self.wanted.table

    async def before(self) -> CountAnswer | None:
        """What came of it before; None if nothing did."""
        query = self._message().statement.query
        known = await self._own.recall(query) if self._is_again else self._own.committed(query)
        return CountAnswer(known.rows // self._copies, commit_ts=known.commit_ts) if known is not None else None

    async def compute(self) -> tuple[Routed, int]:
        """What is to be written, by rows as of one moment."""
        while True:
            statement = self._message().statement
            try:
                is_traced = self.analysis is not None
                gathered = await self._gather(
                    statement, self._cursor, self._runs, self._planned, self._check, self._overflow, is_traced
                )
                if self.analysis is not None:
                    self.analysis.ran = gathered.ran
                # What was there once is the same whoever writes meanwhile: nobody is in its way.
                return await self.routed(gathered, statement), 0 if self._reads_the_past else gathered.read_ts
            except CastsNeeded:
                assert not self._casts, "what Spark casts to a type is of that type"
                self._casts = True
            except WholeNeeded:
                assert not self._is_whole, "then all columns are given"
                self._is_whole = True
                self._casts = False  # other values are given then
            except (StaleSchema, EngineEnded) as error:
                await self._again(error, statement)
            except SkerryError as error:
                raise unsure(statement.query, error) if self._is_again else error from error
            finally:
                self._runs += 1
                if self.analysis is not None:
                    self.analysis.runs = self._runs

    async def _planned(self) -> Planned:
        made = await planned_change(
            self._planner,
            msgspec.structs.replace(self._message(), casts=self._casts, as_is=self._as_is, is_whole=self._is_whole),
        )
        assert made.wanted is not None
        self.wanted, self.warnings = made.wanted, made.planned.warnings
        self._reads_the_past = bool(made.planned.as_of)
        read = made.planned.plan.schema_info
        written = (f"{member}.{self.table.name}" for member in self.table.members)
        self._cursor.tables = tuple(sorted({*read, *written}))
        return made.planned

    def _check(self, schema: Schema) -> None:
        assert self.wanted is not None
        if needs_casts(self.wanted, schema.columns):
            self._as_is = cast_here(self.wanted, schema.columns)
            raise CastsNeeded

    async def _overflow(self) -> Sink:
        """Rows may be more than one message holds."""
        assert self.wanted is not None
        if self.is_held:
            raise UserError(
                f"the statement changes more than {COMPUTED_ROWS} rows, or {_bytes_max(self._planner.limits)} bytes "
                "with all copies, which no transaction holds; nothing was written",
                suggestion="change them in several statements, or outside of a transaction",
            )
        statement = self._message().statement
        if needs_whole(self.wanted):  # to read the rest costs less than to end a job in the middle of its rows
            return Sink(None, self.wanted, statement.rights)
        return self.begin(statement)

    def begin(self, statement: RunStatement) -> Sink:
        """Where rows go that are too many to be held here; those of an earlier attempt are dropped."""
        assert self.wanted is not None
        self.drop()
        is_changes = self.wanted.kind != "insert"
        bulk = self._bulks.begin(self._definition(), self.wanted.policy, statement.query, is_changes=is_changes)
        self._sink = Sink(bulk, self.wanted, statement.rights)
        return self._sink

    def drop(self) -> None:
        """What was sent ahead is not needed any more."""
        if self._sink is not None:
            self._sink.drop()
            self._sink = None

    def _definition(self) -> Definition:
        definition = self._own.definition_of(self.table.id)
        if definition is None or definition.table != self.table:
            raise StaleSchema(f"table {self.table.name} has changed, or is gone")
        return definition

    async def routed(self, gathered: Gathered, statement: RunStatement) -> Routed:
        assert self.wanted is not None
        if gathered.sink is not None:
            return await gathered.sink.finish(is_ordered=False)
        rights = statement.rights
        routed = await self._workers.run(
            routed_rows, self._definition(), self.wanted, gathered.rows, rights.user, rights.roles
        )
        size_bytes = await self._workers.run(size_of, routed)
        if is_too_much(0, size_bytes, self._planner.limits):
            sink = await self._overflow()
            for batch in gathered.rows.to_batches(STAGED_CHUNK_ROWS):
                await sink.add(batch, as_given)
            return await sink.finish(is_ordered=False)
        return routed

    async def commit(self, routed: Routed, read_ts: int) -> CountAnswer | None:
        """None if it has to be computed again."""
        while routed.parts:
            self._commits += 1
            if self.analysis is not None:
                self.analysis.tried(routed)
            self._cursor.is_handed_over = True
            txn = TransactionId(self._message().statement.query, self._commits)
            outcome = await self._own.submit(txn, self._first_start, routed.parts, read_ts)
            if outcome.state is State.COMMITTED:
                return CountAnswer(outcome.rows // routed.copies, self.warnings, commit_ts=outcome.commit_ts)
            error = error_of(outcome.failure) if outcome.failure is not None else None
            if error is not None and outcome.state is State.UNKNOWN:
                raise unsure(txn.query, error)
            if error is not None and not outcome.is_retryable:
                raise error
            await asyncio.sleep(self._pause_s)  # owner: the query's deadline
            self._pause_s = min(2 * self._pause_s, CHANGE_PAUSE_MAX_S)
            if isinstance(error, StaleSchema):
                await self._again(error, self._message().statement)
                return None
            # Rows that another has written, or is about to, have to be read again. To wait for room changes nothing.
            if error is not None and read_ts and not isinstance(error, Overloaded | TimedOut):
                return None
        return CountAnswer(0, self.warnings)

    async def _again(self, error: StaleSchema | EngineEnded, statement: RunStatement) -> None:
        """Raises the error if another try is one too many."""
        await _learn(self._own, self._planner, statement, error)
        self._replans.note(error, self._cursor.tables)


async def _learn(own: OwnTables, planner: Planner, statement: RunStatement, error: SkerryError) -> None:
    """What has changed meanwhile."""
    trace.emit(trace.QueryReplanned(statement.query, error.message))
    await own.catch_up()
    await planner.peer_tables.refresh((error.member,) if error.member else ())


def is_too_much(rows: int, size_bytes: int, limits: Limits) -> bool:
    """For one message to carry all of it."""
    return rows > COMPUTED_ROWS or size_bytes > _bytes_max(limits)


def _bytes_max(limits: Limits) -> int:
    return min(COMPUTED_BYTES, limits.frame_bytes // 2)


def rows_of(schema: pa.Schema, batches: Sequence[pa.RecordBatch]) -> pa.Table:
    """Columns by place: several may have one name."""
    named = pa.schema([pa.field(str(place), field.type) for place, field in enumerate(schema)])
    return pa.Table.from_batches([pa.RecordBatch.from_arrays(each.columns, schema=named) for each in batches], named)

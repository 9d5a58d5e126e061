"""What a member does for callers, whichever door they come through: run statements, give pages, tell of queries."""

from __future__ import annotations

import re
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, assert_never

import msgspec

from skerry.access.access import Access
from skerry.catalog.catalog import TableLine
from skerry.catalog.seen import seen_by
from skerry.member import clock
from skerry.member.auditing import Auditing
from skerry.member.clientoptions import Options, is_again, read_options
from skerry.member.cursors import Cursors, used_before
from skerry.member.history import ClientCursor, History
from skerry.member.initiator import Initiated
from skerry.member.loads import Load
from skerry.member.planning import Planner, prepare_statement
from skerry.member.requests import (
    UNKNOWN,
    Answer,
    Asked,
    CountAnswer,
    GivePage,
    PrepareStatement,
    RowsAnswer,
    RunStatement,
    Status,
    TakeRows,
)
from skerry.member.result import Counted, Result
from skerry.member.runs import Runs, asked_as, page_bounds
from skerry.member.spending import Spending
from skerry.member.transactions import Transactions
from skerry.model import trace
from skerry.model.amounts import counted
from skerry.model.caller import Caller
from skerry.model.errors import (
    AccessDenied,
    Cancelled,
    ConfigError,
    InternalError,
    PeerError,
    SiteError,
    SiteStopping,
    SkerryError,
    SqlError,
    Unaudited,
    UserError,
    unsure,
)
from skerry.model.ids import QueryId
from skerry.model.names import unknown_table
from skerry.model.points import reach
from skerry.model.progress import MemberState, QueryInfo, is_live
from skerry.model.results import Page, Parameter
from skerry.model.table import Column

EXPECTED = ("any", "rows", "count")

_INITIATOR_CHARS = 100
_LOCAL_ID = re.compile(r"[0-9A-Za-z_-]{1,64}")


class Service:
    """The cursors of one member's callers. Whatever is refused or fails is raised as a SkerryError."""

    def __init__(
        self,
        planner: Planner,
        runs: Runs,
        history: History,
        access: Access,
        own: Callable[[Coroutine[Any, Any, None], str], None],
        state_of: Callable[[str], str],
        refusal: Callable[[], SiteError | None],
        audit: Auditing,
        transactions: Transactions,
    ) -> None:
        """`own` runs what no caller waits for; `state_of` a member; `refusal`: why no query may begin now."""
        self._name = planner.name
        self._limits = planner.limits
        self._logs_sql = planner.config.log_sql
        self._planner = planner
        self._runs = runs
        self._history = history
        self._access = access
        self._own = own
        self._state_of = state_of
        self._refusal = refusal
        self._audit = audit
        self._transactions = transactions
        self._spending = Spending(planner.limits)
        self._cursors = Cursors(planner.limits)
        self._open: dict[QueryId, ClientCursor] = {}
        self._asked: tuple[Mapping[str, str], float] = ({}, 0.0)
        self._options = read_options({}, self._limits)

    @property
    def open_cursors(self) -> int:
        return len(self._open)

    @property
    def running(self) -> set[QueryId]:
        """Queries that work, or that somebody reads; not results that are kept in case that somebody comes."""
        return {query for query, cursor in self._open.items() if self._goes_on(query, cursor)}

    def _goes_on(self, query: QueryId, cursor: ClientCursor) -> bool:
        if cursor.state == "done":
            return not cursor.is_given and self._cursors.is_owned(query)
        return is_live(cursor.state)

    def gone(self, caller: Caller, *, is_goodbye: bool) -> None:
        """The caller's session has ended, and with it the queries that nobody may come back for."""
        for cursor in self._open.values():
            if cursor.load is not None and cursor.load.session == caller.session:
                self._own(cursor.load.gone(), "rows of a client that is gone")
        for query in self._cursors.gone(caller.session, clock.now(), is_goodbye=is_goodbye):
            self.give_up(query, Cancelled(f"query {query} ended: its client went away"))
        self._transactions.gone(caller.session, is_goodbye=is_goodbye)

    def tick(self, now: float) -> None:
        self._cursors.expire(now)
        for query in self._cursors.expired(now):
            lease_s = self._open[query].options.lease.seconds
            late = Cancelled(f"nobody came for the result of query {query} within its lease ({lease_s:g} s)")
            self.give_up(query, late, is_unread=True)
        self._transactions.expire(now)

    def stop(self) -> None:
        """The member ends: so does what is still open."""
        for query in list(self._open):
            self.give_up(query, SiteStopping(f"site {self._name} is stopping", member=self._name))
        self._transactions.stop()
        self._audit.give_up()

    # --- rows --------------------------------------------------------------------------------------
    async def execute(self, caller: Caller, statement: RunStatement) -> Answer | None:
        """The first page, or the count; None for a detached statement, whose answer is for whoever attaches."""
        query = statement.query
        reach("query received")
        asked = self._audit.asked(caller, statement)
        try:
            cursor = self._admit(caller, statement)
        except SkerryError as error:
            self._audit.refused(asked, error)
            raise unsure(query, error) if is_again(statement.options) else error from None
        cursor.asked = asked
        user = caller.name if self._access.tells_apart else ""
        rights = self._access.rights_of(caller)
        statement = msgspec.structs.replace(
            statement, share=caller.share, rights=rights, user=user, session=caller.session
        )
        trace.emit(trace.QueryReceived(query, caller.logged, statement.sql if self._logs_sql else ""))
        try:
            await self._begin_audited(query, asked)
            if not cursor.options.lease.outlives:
                return await self._begin(statement, cursor)
            # The query goes on without this caller, and so does what makes its first page.
            self._own(self._begin_kept(statement, cursor), f"query {query}")
            if cursor.options.lease.is_detached:
                return None
            await cursor.begun.wait()  # owner: the query's deadline
            if cursor.error is not None:
                raise cursor.error
            assert cursor.answer is not None
            return cursor.answer
        except SkerryError as error:
            self._failed(query, cursor, error)
            raise
        except Exception as error:
            trace.emit(trace.WorkFailed(f"query {query}", query), error)
            wrapped = InternalError(f"{type(error).__name__}: {error}", member=self._name)
            self._failed(query, cursor, wrapped)
            raise wrapped from error

    def _failed(self, query: QueryId, cursor: ClientCursor, error: SkerryError) -> None:
        """Unless its client has sent it again meanwhile: then the id is another cursor's."""
        if self._open.get(query, cursor) is cursor:
            self.give_up(query, error)

    def _admit(self, caller: Caller, statement: RunStatement) -> ClientCursor:
        """A cursor for it, or the error why there is none."""
        query = statement.query
        self._check_home(query)
        self._check_expiry(caller)
        if (refusal := self._refusal()) is not None:
            raise refusal
        if statement.expected not in EXPECTED:
            raise UserError(f"a client expects {', '.join(EXPECTED)}, not {statement.expected[:100]!r}")
        self._spending.check(caller.share, clock.now())
        options = self._read_options(statement)
        again = is_again(statement.options)
        if again and self._own_cursor(caller, query) is not None:
            self.give_up(query, Cancelled(f"query {query} was sent again by its client"))
        # Also those whose ids the cursors have forgotten.
        if query in self._history and not (again and self._was_own(caller, query)):
            raise used_before(query)
        self._cursors.open(query, caller.session, clock.now(), options.lease, caller.name, caller.share, is_again=again)
        cursor = self._open[query] = ClientCursor(statement.sql, caller.logged, options, caller.name)
        if options.load:
            is_asked_again = options.load == "again"
            cursor.load = Load(query, caller.session, self._limits, is_asked_again=is_asked_again)
        return cursor

    def _read_options(self, statement: RunStatement) -> Options:
        """Most clients ask for the same each time."""
        asked = (statement.options, statement.timeout_s)
        if self._asked != asked:
            self._options, self._asked = read_options(statement.options, self._limits, statement.timeout_s), asked
        return self._options

    async def _begin_audited(self, query: QueryId, asked: Asked | None) -> None:
        try:
            await self._audit.begin(asked)
        except Unaudited as error:
            trace.emit(trace.QueryRefused(query, trace.cause_of(error)))
            raise

    async def attach(self, caller: Caller, request: GivePage) -> Answer:
        """The rows of a cursor go to this caller from now on, from the page that it wants next.

        A count is told again, also for a while after the query's end: it ran, and must not be run again for its answer.
        """
        query = request.query
        cursor = self._own_cursor(caller, query)
        try:
            self._check_home(query)
            self._check_expiry(caller)
            if cursor is None:
                if self._was_own(caller, query) and (count := self._history.count(query)) is not None:
                    self._audit.attached(caller, query)
                    return count
                raise self._not_open(caller, query)
            self._cursors.attach(query, caller.session)
            if cursor.options.lease.outlives:
                await cursor.begun.wait()  # owner: the query's deadline, and the caller that waits
            if cursor.error is not None:
                raise cursor.error
            answer = await self._again(cursor, request)
            self._audit.attached(caller, query)
            self._given(query, is_last=answer.is_last)
            return answer
        except SkerryError as error:
            self._audit.attached(caller, query, error.code)
            is_its_end = not isinstance(error, UserError) or isinstance(error, SqlError | ConfigError)
            if cursor is not None and is_its_end:  # else the close would be one that overtook its execute
                self.give_up(query, error)
            raise

    async def fetch(self, caller: Caller, request: GivePage) -> Page:
        """Pages are given in turn, each again until the caller says that it has arrived."""
        cursor = self._own_cursor(caller, request.query)
        if cursor is not None and cursor.has_no_rows:  # a mistake of the caller's, not the query's end
            count = cursor.count
            did = f"has changed {counted(count.rows)}" if count is not None else "ends in a count of rows"
            raise UserError(f"query {request.query} {did}, and has none to fetch")
        try:
            self._check_home(request.query)
            if cursor is None or cursor.initiated is None:
                raise self._not_open(caller, request.query)
            page = await cursor.initiated.page(request.number, *page_bounds(request.size, self._limits))
            self._given(request.query, is_last=page.is_last)
            return page
        except SkerryError as error:
            if cursor is not None:  # else the close would be one that overtook its execute
                self.give_up(request.query, error)
            raise

    async def rows(self, caller: Caller, request: TakeRows) -> None:
        """Returns when there is room for more."""
        cursor = self._own_cursor(caller, request.query)
        if cursor is None or cursor.load is None:
            raise self._not_open(caller, request.query)
        await cursor.load.put(request)

    def arrived(self, caller: Caller, query: QueryId, upto: int) -> None:
        """The caller has all pages below `upto`."""
        cursor = self._own_cursor(caller, query)
        if cursor is not None and cursor.initiated is not None:
            cursor.initiated.arrived(upto)

    def close(self, caller: Caller, query: QueryId) -> None:
        """The caller wants no more of it. One that comes before its execute leaves a mark, and that is refused."""
        self._check_home(query)
        if query in self._open and self._may_end(caller, query):
            by = "closed by its client"
            if not self._cursors.is_owned_by(query, caller.session):
                self._audit.stopped(caller, query)
                by = f"cancelled by {caller.shown}"
            self.give_up(query, Cancelled(f"query {query} was {by}"))
        elif not self._roll_back(caller, query):  # another user's looks like one that nobody began
            self._cursors.mark(query, clock.now(), caller.name)

    def cancel(self, caller: Caller, query: QueryId) -> None:
        """End a query, also another's with the right to; an error when it is not open here."""
        self._check_home(query)
        if self._roll_back(caller, query):
            return
        if query not in self._open or not self._may_end(caller, query):
            raise self._not_open(caller, query)
        self._audit.stopped(caller, query)
        self.give_up(query, Cancelled(f"query {query} was cancelled by {caller.shown}"))

    def _roll_back(self, caller: Caller, query: QueryId) -> bool:
        """Whether this is the name of a transaction, which the caller may end."""
        found = self._transactions.named(query)
        may_end = self._access.rights_of(caller).may_end_queries
        if found is None or not (may_end or self._is_own(caller, found.user)):
            return False
        if found.commit is not None:
            raise UserError(f"transaction {query} is being committed: its COMMIT tells what came of it")
        self._audit.stopped(caller, query)
        self._transactions.roll_back(found, f"cancelled by {caller.shown}")
        return True

    def give_up(self, query: QueryId, error: SkerryError, *, is_unread: bool = False) -> None:
        """Ends the cursor; a query that still runs is cancelled everywhere. `is_unread`: nobody had all its rows."""
        self._cursors.close(query, clock.now())
        cursor = self._open.pop(query, None)
        if cursor is None:
            return
        cursor.close()
        reason = error.message if is_unread or not cursor.is_given else ""
        # All of it was made, and its client has what it wants?
        is_done = isinstance(error, Cancelled) and cursor.is_given
        if cursor.initiated is not None:
            if not is_done:
                cursor.initiated.cancel(error)
            cursor.initiated.drop_result()
        state = "done" if is_done else "cancelled" if isinstance(error, Cancelled) else "failed"
        self._history.record(query, cursor, state, reason)
        self._audit.over(cursor, None if is_done else error)

    # --- what is told ------------------------------------------------------------------------------
    async def prepare(self, caller: Caller, statement: PrepareStatement) -> tuple[Parameter, ...]:
        """The statement's parameters: each `?` in order, each `:name` once."""
        self._check_expiry(caller)
        await self._audit.prepared(caller, statement)
        whose = msgspec.structs.replace(statement, share=caller.share, rights=self._access.rights_of(caller))
        return await prepare_statement(self._planner, whose)

    def status(self, caller: Caller, query: QueryId) -> Status:
        cursor = self._open.get(query)
        if cursor is not None and self._may_see(caller, cursor.user):
            return self._history.status(cursor, cursor.state)
        if (begun := self._transactions.named(query)) is not None and self._may_see(caller, begun.user):
            return Status(begun.state, clock.now() - begun.began_at)
        self._check_home(query)
        was = self._history.user_of(query)
        return self._history.ended(query) if was is not None and self._may_see(caller, was) else UNKNOWN

    def queries(self, caller: Caller) -> tuple[QueryInfo, ...]:
        """Those that run here, and the latest that have ended: the caller's own, with the right to all."""
        user = None if self._access.rights_of(caller).may_see_queries else caller.name
        seen = [(query, cursor) for query, cursor in self._open.items() if user is None or cursor.user == user]
        running = [self._history.info(query, cursor, cursor.state) for query, cursor in seen]
        return (*self._history.infos(self._open, user), *running, *self._transactions.infos(user))

    def members(self, caller: Caller) -> tuple[MemberState, ...]:
        """All members of the cluster, as this one sees them."""
        known = self._planner.config.members.items()
        return tuple(MemberState(name, each.address, each.role.value, self._state_of(name)) for name, each in known)

    async def tables(self, caller: Caller) -> tuple[TableLine, ...]:
        """Every table of the cluster as it is now."""
        await self._planner.peer_tables.refresh()
        return seen_by(self._planner.catalog, self._access.rights_of(caller)).show_tables()

    async def describe(self, caller: Caller, table: tuple[str, ...], schema_name: str = "") -> tuple[Column, ...]:
        """The columns of `("orders",)` or `("oslo", "orders")`."""
        await self._planner.peer_tables.refresh()
        catalog = seen_by(self._planner.catalog, self._access.rights_of(caller))
        found = catalog.lookup(table, schema_name)
        if found is None:
            raise SqlError(unknown_table(table, catalog.names()))
        return found.columns

    def query_ended(self, initiated: Initiated) -> None:
        """The last receipt came: what the links carried is known for good."""
        now, rows = clock.now(), initiated.result.rows
        self._spending.add(initiated.share, initiated.spark_s(now), rows, now)
        self._history.complete(asked_as(initiated.query), initiated)
        self._audit.complete(asked_as(initiated.query), initiated)

    # --- cursors -----------------------------------------------------------------------------------
    async def _begin(self, statement: RunStatement, cursor: ClientCursor) -> Answer:
        ended: SkerryError | None = None
        transaction = self._transactions.enter(statement)
        try:
            answer = await self._runs.answer(statement, cursor)
        except SkerryError as error:
            ended = error
            if cursor.initiated is None:  # else whoever ran it has told
                trace.emit(trace.QueryRefused(statement.query, trace.cause_of(error)))
            raise
        finally:
            self._transactions.leave(transaction)
            if cursor.load is not None:
                await cursor.load.over(ended)
        if cursor.initiated is None:
            trace.emit(trace.QueryAnswered(statement.query))
        if self._open.get(statement.query) is cursor:
            self._given(statement.query, is_last=answer.is_last)
        return answer

    async def _again(self, cursor: ClientCursor, request: GivePage) -> Answer:
        """The answer to an attach: the page that was asked for, or the one answer that there is."""
        initiated, query = cursor.initiated, request.query
        if initiated is None:
            if cursor.answer is not None:
                return cursor.answer
            raise UserError(f"query {query} is still being planned; try again shortly")
        match initiated.result:
            case Result():
                schema = await initiated.schema()
                initiated.arrived(request.number)
                page = await initiated.page(request.number, *page_bounds(request.size, self._limits))
                return RowsAnswer(schema, page)
            case Counted():
                return CountAnswer(await initiated.count(), cursor.warnings)
            case never:
                assert_never(never)

    async def _begin_kept(self, statement: RunStatement, cursor: ClientCursor) -> None:
        """Nobody may be there for the answer: it is kept for whoever attaches within the lease, an error too."""
        try:
            cursor.answer = await self._begin(statement, cursor)
        except SkerryError as error:
            cursor.error = error
        except Exception as error:
            trace.emit(trace.WorkFailed(f"query {statement.query}", statement.query), error)
            cursor.error = InternalError(f"{type(error).__name__}: {error}", member=self._name)
        finally:
            self._cursors.ready(statement.query, clock.now())
            cursor.begun.set()

    def _given(self, query: QueryId, *, is_last: bool) -> None:
        """The last page, or the count, closes its cursor, unless a client that comes back may need it again."""
        if not is_last or self._cursors.keeps(query):
            return
        cursor = self._open.pop(query, None)
        self._cursors.close(query, clock.now())
        if cursor is not None:
            cursor.close()
            if cursor.initiated is not None:
                cursor.initiated.drop_result()
            # Its query ends with the receipts.
            ended = cursor.initiated is None or cursor.initiated.ended.is_set()
            self._history.record(query, cursor, "done" if ended else "running")
            self._audit.over(cursor)

    def _not_open(self, caller: Caller, query: QueryId) -> Cancelled:
        forgotten = f"query {query} is not open here: it ended, was closed, or nobody came for it within its lease"
        return Cancelled((self._was_own(caller, query) and self._history.why_ended(query)) or forgotten)

    # --- whose they are ----------------------------------------------------------------------------
    def _is_own(self, caller: Caller, user: str | None) -> bool:
        return not self._access.tells_apart or caller.name == user

    def _own_cursor(self, caller: Caller, query: QueryId) -> ClientCursor | None:
        """An open cursor whose rows are the caller's. Rows are given to no other user, whatever its rights."""
        cursor = self._open.get(query)
        return cursor if cursor is not None and self._is_own(caller, cursor.user) else None

    def _was_own(self, caller: Caller, query: QueryId) -> bool:
        return self._is_own(caller, self._history.user_of(query))

    def _may_see(self, caller: Caller, user: str) -> bool:
        return self._is_own(caller, user) or self._access.rights_of(caller).may_see_queries

    def _may_end(self, caller: Caller, query: QueryId) -> bool:
        return self._is_own(caller, self._open[query].user) or self._access.rights_of(caller).may_end_queries

    def _check_expiry(self, caller: Caller) -> None:
        """What runs goes on; nothing new begins."""
        if caller.until <= clock.now():
            raise AccessDenied(f"the token of {caller.shown} has expired; connect again with a new one")

    def _check_home(self, query: QueryId) -> None:
        """Only a query's initiator knows it: say where that is. Ids are kept, so none may be long."""
        if _LOCAL_ID.fullmatch(query.local) is None:
            raise PeerError("a query id has 1 to 64 letters, digits, hyphens and underscores")
        if query.initiator != self._name:
            known = self._planner.config.members.get(query.initiator)
            where = f" at {known.address}" if known is not None else ", which is no member of this cluster"
            initiator = query.initiator[:_INITIATOR_CHARS]
            raise UserError(
                f"query {QueryId(initiator, query.local)} belongs to member {initiator}{where}; this is {self._name}"
            )

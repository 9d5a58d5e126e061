"""BEGIN, COMMIT and ROLLBACK, and the writes between them, which are held here until COMMIT makes one commit of them.

First committer wins: who has committed a row of it since BEGIN is in the way, and the transaction is rolled back. A
statement that fails leaves the transaction as it was before.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from skerry.member import clock
from skerry.member.clientoptions import is_again
from skerry.member.finding import Finding
from skerry.member.history import ClientCursor
from skerry.member.own import OwnTables
from skerry.member.requests import CountAnswer, RunStatement
from skerry.member.transactions import Open, Transactions
from skerry.model import trace
from skerry.model.commits import Part, TransactionId
from skerry.model.errors import (
    InternalError,
    OutcomeUnknown,
    RolledBack,
    SiteStopping,
    SkerryError,
    StaleSchema,
    UserError,
    unsure,
)
from skerry.model.ids import QueryId
from skerry.model.limits import CHANGE_PAUSE_MAX_S, CHANGE_PAUSE_S
from skerry.model.sharded import OwnTable
from skerry.sql.owntables import Begin, Commit, Rollback
from skerry.tables.routing import Routed
from skerry.wire.commit_messages import State
from skerry.wire.values import error_of

OVER = ""  # what a client is told of its transaction


class Within:
    """Belongs to the member's loop."""

    def __init__(
        self,
        own: OwnTables,
        transactions: Transactions,
        finding: Finding,
        background: Callable[[Coroutine[Any, Any, None], str], None],
    ) -> None:
        self._own = own
        self._transactions = transactions
        self._finding = finding
        self._background = background

    async def say(self, said: Begin | Commit | Rollback, statement: RunStatement, cursor: ClientCursor) -> CountAnswer:
        match said:
            case Begin():
                if statement.transaction:
                    raise UserError("a transaction is open already", suggestion="COMMIT or ROLLBACK ends it")
                lease = cursor.options.lease
                begun = self._transactions.begin(statement, cursor.client, 0.0 if lease.is_detached else lease.seconds)
                return CountAnswer(0, transaction=begun.query.local)
            case Commit():
                return await self._commit(statement, cursor)
            case Rollback():
                return self._roll_back(statement)

    def _roll_back(self, statement: RunStatement) -> CountAnswer:
        """One that is over already has been rolled back; or its COMMIT goes on, and tells what came of it."""
        if not statement.transaction:
            raise _none_open()
        if (begun := self._transactions.find(statement)) is not None:
            if begun.commit is not None:
                raise UserError("the transaction is being committed: its COMMIT tells what came of it")
            self._transactions.end(begun, "ROLLBACK")
        return CountAnswer(0, transaction=OVER)

    # --- writes -------------------------------------------------------------------------------------------------------
    @asynccontextmanager
    async def turn(self, statement: RunStatement) -> AsyncIterator[Open]:
        """One write of a transaction after the other."""
        begun = self._transactions.of(statement)
        async with begun.turn:  # owner: the query's deadline
            begun.check()
            _check_writable(begun)
            yield begun

    async def hold(self, begun: Open, statement: RunStatement, routed: Routed, table: OwnTable) -> CountAnswer:
        """The transaction sees it from now on. StaleSchema if members know the table otherwise."""
        begun.check_made(table.id, table.name)
        if not routed.parts:
            return CountAnswer(0)
        found = await self._finding.ask(statement.query, routed.parts, begun.held.read_ts)
        begun.check()  # it may have been rolled back meanwhile
        _check_writable(begun)
        rows = begun.held.apply(routed.parts, found, table, self._transactions.room(begun))
        return CountAnswer(rows // routed.copies)

    # --- commit -------------------------------------------------------------------------------------------------------
    async def _commit(self, statement: RunStatement, cursor: ClientCursor) -> CountAnswer:
        """Goes on without who waits for it, and is told again by the statement's id."""
        query = statement.query
        try:
            if (known := self._own.committed(query)) is not None:
                return CountAnswer(0, commit_ts=known.commit_ts, transaction=OVER)
            again = self._transactions.committed(statement)
            if isinstance(again, CountAnswer):
                return again
            if again is None and not statement.transaction and not is_again(statement.options):
                raise _none_open()
            begun = again or self._transactions.find(statement)
            if begun is None and is_again(statement.options) and not self._own.has_disk:
                # Another member decided, and this one was restarted.
                raise unsure(query, RolledBack("the transaction is not open here"))
            begun = begun or self._transactions.of(statement)
            if begun.commit is None:
                async with begun.turn:  # writes that are under way belong to it; owner: the query's deadline
                    if again is None:
                        begun.check()
                    if begun.commit is None:
                        cursor.is_handed_over = True
                        begun.commit = query, asyncio.get_running_loop().create_future()
                        until = clock.now() + cursor.options.timeout_s
                        self._background(self._committed(begun, statement, until), f"transaction {begun.query}")
            of, answer = begun.commit
            if of != query:
                raise UserError("the transaction is being committed already")
            cursor.is_handed_over = True
            cursor.tables = self._about(begun)
            return await asyncio.shield(answer)
        except SkerryError as error:
            if isinstance(error, RolledBack | OutcomeUnknown):
                error.transaction = OVER
            raise

    async def _committed(self, begun: Open, statement: RunStatement, until: float) -> None:
        """Nobody may wait for it any more; the transaction is over, whatever comes of it."""
        assert begun.commit is not None
        query, answer = begun.commit
        try:
            done = await self._submitted(begun, statement, until)
            self._transactions.end(begun, "COMMIT", done)
            answer.set_result(done)
        except SkerryError as error:
            if isinstance(error, OutcomeUnknown):
                self._transactions.doubt(begun)
            else:
                self._transactions.end(begun, error.message)
            error.transaction = OVER
            answer.set_exception(error)
        except Exception as error:
            trace.emit(trace.WorkFailed(f"transaction {begun.query}", query), error)
            self._transactions.end(begun, "a mistake of ours")
            wrong = unsure(query, InternalError(f"{type(error).__name__}: {error}"))
            wrong.transaction = OVER
            answer.set_exception(wrong)
        finally:
            if not answer.done():
                answer.set_exception(unsure(query, SiteStopping("the member is stopping")))
            answer.exception()  # it may be nobody's

    async def _submitted(self, begun: Open, statement: RunStatement, until: float) -> CountAnswer:
        """One attempt after the other, until one is committed or refused for good."""
        rights = statement.rights
        parts: dict[str, Part] = begun.held.parts(rights.user, rights.roles)
        if not parts:
            return CountAnswer(0, transaction=OVER)
        pause_s, attempt, read_ts = CHANGE_PAUSE_S, 0, begun.held.read_ts
        while True:
            attempt += 1
            txn = TransactionId(statement.query, attempt)
            try:
                outcome = await self._own.submit(txn, read_ts, parts, read_ts)
            except SkerryError as error:
                # That this COMMIT was not sent says nothing of one that was sent before.
                raise unsure(txn.query, error) if begun.is_doubted else _refused(begun.query, error) from error
            if outcome.state is State.COMMITTED:
                return CountAnswer(0, commit_ts=outcome.commit_ts, transaction=OVER)
            failure = error_of(outcome.failure) if outcome.failure is not None else InternalError("no reason was told")
            if outcome.state is State.UNKNOWN:
                raise unsure(txn.query, failure)
            is_final = not outcome.is_retryable or isinstance(failure, RolledBack | StaleSchema)
            if is_final or clock.now() >= until:
                raise _refused(begun.query, failure)
            await asyncio.sleep(pause_s)  # owner: `until`
            pause_s = min(2 * pause_s, CHANGE_PAUSE_MAX_S)

    def _about(self, begun: Open) -> tuple[str, ...]:
        """The parts that it writes, for the audit."""
        names = {table.id: table.name for table in self._own.tables.values()}
        written = begun.held.parts("", ()).items()
        tables = {(member, each.table) for member, part in written for each in part.versions}
        return tuple(sorted(f"{member}.{names[table]}" for member, table in tables if table in names))


def _check_writable(begun: Open) -> None:
    if begun.commit is not None:
        raise UserError("the transaction is being committed")


def _none_open() -> UserError:
    return UserError("no transaction is open", suggestion="BEGIN begins one")


def _refused(query: QueryId, error: SkerryError) -> SkerryError:
    """Why it was not committed: nothing of it was written."""
    if isinstance(error, OutcomeUnknown):
        return error
    if isinstance(error, UserError) and not isinstance(error, RolledBack):
        return error  # as a statement alone would fail: begun again, it fails again
    why = f"transaction {query} was rolled back, and nothing of it was written: {error.message}"
    return RolledBack(why, member=error.member, suggestion="begin it again")

"""Statements about tables of our own, from a client's text to its answer: definitions, writes, flushes."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Coroutine, Iterable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa

from skerry.config import Config, Role
from skerry.member import clock
from skerry.member.analysing import Analysis, told_json
from skerry.member.answers import told_rows
from skerry.member.clientoptions import is_again
from skerry.member.computing import Computing, Gather, PlanChange, Sink, Writing, planned_change
from skerry.member.defining import Defining
from skerry.member.finding import Finding
from skerry.member.history import ClientCursor
from skerry.member.knownchanges import KnownChanges
from skerry.member.loads import Load
from skerry.member.own import OwnTables
from skerry.member.planning import Planned, Planner, SchemaCatalog, given_more, given_values, given_variables
from skerry.member.rebalancing import Rebalancing
from skerry.member.replans import Replans
from skerry.member.requests import Answer, CountAnswer, RunStatement
from skerry.member.resources import Workers
from skerry.member.statuses import Statuses
from skerry.member.transactions import Transactions, refuse_within
from skerry.member.within import Within
from skerry.model import trace
from skerry.model.amounts import counted
from skerry.model.commits import TransactionId
from skerry.model.errors import (
    InternalError,
    OutcomeUnknown,
    SiteError,
    SkerryError,
    SqlError,
    StaleSchema,
    TimedOut,
    UserError,
    unsure,
)
from skerry.model.ids import QueryId
from skerry.model.limits import (
    CHANGE_PAUSE_MAX_S,
    CHANGE_PAUSE_S,
    CHANGE_ROWS_AT_ONCE,
    COMPUTED_BYTES,
    COMPUTED_ROWS,
    DEFINED_WAIT_S,
    WRITE_TUPLES,
    WRITE_TUPLES_BYTES,
)
from skerry.model.points import reach
from skerry.model.results import Schema
from skerry.model.rights import CHANGES, Rights
from skerry.model.sharded import Alter, Create, Definition, Drop, Fill, Making, OwnTable, Wish
from skerry.plan.explain import describe, explain
from skerry.plan.reasons import with_reasons
from skerry.sql import changes
from skerry.sql import owntables as said
from skerry.sql.changes import analyse_constants, analyse_load, created_as
from skerry.sql.definitions import shown_table
from skerry.sql.parameters import bind_again
from skerry.tables.computed import Wanted, size_of, whole_rows
from skerry.tables.loading import check_types, stored_columns
from skerry.tables.routing import Routed, routed, routed_in_order
from skerry.tables.ways import BySpark, way_of
from skerry.wire.commit_messages import State
from skerry.wire.definition_messages import Flushed, FlushTable
from skerry.wire.messages import Message
from skerry.wire.moving_messages import Rebalanced
from skerry.wire.values import error_of, failure_of


class NeedsQuery(NamedTuple):
    """A write whose rows a query gives, and why."""

    table: OwnTable
    reason: str


class _MadeMeanwhile(Exception):
    """The table that CREATE TABLE … AS was to make is another's."""


_TELLING = said.ShowCreateTable | said.ShowTableStatus | said.Rebalance
# A write, to be handed to members or to be made by a query first; or what is no write.
_Understood = Routed | NeedsQuery | said.Definition


class Work(NamedTuple):
    """What statements are carried out with. `gather` runs a query and gives all its rows."""

    planner: Planner
    defining: Defining
    gather: Gather


class Changing:
    """Belongs to the member's loop."""

    def __init__(
        self,
        member: str,
        config: Config,
        own: OwnTables,
        workers: Workers,
        send: Callable[[str, Message], None],
        rights_of: Callable[[str, tuple[str, ...]], Rights],
        transactions: Transactions,
        background: Callable[[Coroutine[Any, Any, None], str], None],
        up: Callable[[], Iterable[str]],
    ) -> None:
        """`background` runs what no statement waits for; `up`: the members that have a connection."""
        self._member = member
        self._config = config
        self._own = own
        self._workers = workers
        self._send = send
        self._rights_of = rights_of
        self.bulks = own.bulks
        self._computing = Computing(own, workers, self.bulks)
        self._known_changes = KnownChanges()
        self.finding = Finding(member, own, send)
        self._within = Within(own, transactions, self.finding, background)
        self.statuses = Statuses(member, own, send, rights_of)
        self.rebalancing = Rebalancing(member, config, own, send, up, rights_of)
        self._flushing: dict[str, tuple[str, asyncio.Future[Flushed]]] = {}
        self._members = tuple(name for name, each in config.members.items() if each.role is Role.DATA)

    async def answer(self, work: Work, statement: RunStatement, cursor: ClientCursor) -> Answer:
        """Raises what is wrong with it, or why nothing was written; OutcomeUnknown if something may be."""
        if cursor.load is not None:
            if statement.transaction:
                raise refuse_within("a load")
            return await self._load(work, statement, cursor, cursor.load)
        if (answer := await self._made_before(work, statement)) is not None:
            return answer
        explained = said.explained(statement.sql)
        if explained is not None:
            statement = msgspec.structs.replace(statement, sql=explained.sql)
        understood = await self._read(work, statement)
        if not work.defining.keeper:
            raise SiteError(
                "this cluster keeps no tables of its own: no member has a place for them",
                suggestion="name a folder by `state:` in skerry.yaml, and restart the members",
            )
        cursor.tables = _about(understood)
        if explained is not None and not explained.analyzes:
            return await self._explain(work, statement, understood, explained.is_json)
        if explained is not None:
            return await self._analyze(work, statement, cursor, understood, explained.is_json)
        if statement.expected == "rows" and not isinstance(understood, _TELLING):
            raise UserError("the statement changes rows and returns none, its client expects rows")
        if isinstance(understood, said.Begin | said.Commit | said.Rollback):
            return await self._within.say(understood, statement, cursor)
        if isinstance(understood, Routed | NeedsQuery):
            if statement.transaction:
                return await self._change_within(work, statement, cursor, understood)
            return await self._changed(work, statement, cursor, understood)
        if statement.transaction and not isinstance(understood, _TELLING):
            raise refuse_within(" ".join(statement.sql.split()[:2]).upper()[:40])
        cursor.is_handed_over |= isinstance(understood, said.CreateTable | said.DropTable | said.AlterTable)
        match understood:
            case said.CreateTable(table, if_not_exists):
                await _define(work, statement, Create(table, if_not_exists))
            case said.CreateAs():
                return await self._create_as(work, statement, cursor)
            case said.DropTable(table):
                if table is not None:
                    await _define(work, statement, Drop(table.id, table.name))
            case said.AlterTable():
                await self._alter(work, statement, understood)
            case said.FlushTable(table):
                await self._flush(table, statement.rights)
            case said.ShowCreateTable(table):
                _refuse_hidden(table, statement.rights)
                return told_rows({"createtab_stmt": [shown_table(table)]})
            case said.Rebalance(leaving, is_plan):
                told = await self.rebalancing.ask(leaving, statement.rights, is_plan=is_plan)
                return told_rows(_steps(told))
            case said.ShowTableStatus(table):
                seen = _tables(self._seen(statement.rights)).values()
                return told_rows(await self.statuses.ask(seen if table is None else [table], statement.rights))
            case _:
                words = " ".join(statement.sql.split()[:2]).upper()[:40]
                raise SqlError(f"{words} is not there yet for tables of our own")
        return CountAnswer(0)

    async def _changed(
        self,
        work: Work,
        statement: RunStatement,
        cursor: ClientCursor,
        understood: Routed | NeedsQuery,
        analysis: Analysis | None = None,
    ) -> CountAnswer:
        """Of a table that was made anew a query may have to give the rows, where none had to before."""
        if isinstance(understood, Routed):
            answer = await self._write(work, statement, cursor, understood, analysis)
            if isinstance(answer, CountAnswer):
                return answer
            if not isinstance(answer, NeedsQuery):
                raise InternalError("what a statement asks for does not change with its tables")
            understood = answer
            cursor.tables = _about(understood)
        message = partial(self._message, statement)
        if analysis is not None:
            analysis.needs_query(understood.table, understood.reason)
        return await self._computing.write(understood.table, work.planner, message, cursor, work.gather, analysis)

    async def _analyze(
        self, work: Work, statement: RunStatement, cursor: ClientCursor, understood: _Understood, is_json: bool
    ) -> Answer:
        """EXPLAIN ANALYZE: it is done, once, and then told what was done."""
        if not isinstance(understood, Routed | NeedsQuery):
            raise SqlError("EXPLAIN ANALYZE takes a query or a write")
        if statement.transaction:
            raise refuse_within("EXPLAIN ANALYZE of a write")
        analysis = Analysis(clock.now())
        answer = await self._changed(work, statement, cursor, understood, analysis)
        cursor.told_rows = answer.rows
        return analysis.answer(answer.rows, clock.now(), work.planner, is_json=is_json)

    async def _read(self, work: Work, statement: RunStatement) -> _Understood:
        try:
            return await self._fresh(work, statement)
        except SkerryError as error:
            if not is_again(statement.options):
                raise
            if not _defines(statement.sql):
                raise unsure(statement.query, error) from error
            # That a table exists, or does not, may be this statement's own doing.
            if not await work.defining.was_defined(statement.query, statement.rights):
                raise
            return said.DropTable(None)

    async def _fresh(self, work: Work, statement: RunStatement) -> _Understood:
        """By the definitions that are known here; by the newest, if these make it an error."""
        before = self._own.version  # here: they may come while the statement is read
        try:
            return await self._understood(work.planner, statement)
        except SqlError as error:
            await work.defining.catch_up()
            if self._own.version == before:
                raise work.planner.peer_tables.explained(error) from None
            return await self._understood(work.planner, statement)

    async def _understood(self, planner: Planner, statement: RunStatement) -> _Understood:
        values = given_values(statement)
        known = self._known_changes.find(statement.sql, values, self._own.tables) if not statement.variables else None
        if known is not None and _is_seen(known.table, statement.rights):
            definition = self._own.definitions[known.table.name.lower()]
            if len(statement.more) < CHANGE_ROWS_AT_ONCE:
                return _way(statement, known, definition)
            return await self._workers.run(_way, statement, known, definition)
        planner.peer_tables.define()
        seen = self._seen(statement.rights)
        understood, change = await self._workers.run(
            _understand, statement, values, self._known(planner, statement), seen, planner
        )
        if change is not None and not statement.variables:
            self._known_changes.keep(statement.sql, values, change)
        return understood

    def _known(self, planner: Planner, statement: RunStatement) -> said.Known:
        rights = statement.rights
        catalog = SchemaCatalog(planner.seen_by(rights).catalog, statement.schema_name)
        configured = said.Configured(catalog, frozenset(self._own.definitions))
        return said.Known(configured, _tables(self._seen(rights)), self._members, rights)

    async def _made_before(self, work: Work, statement: RunStatement) -> CountAnswer | None:
        """CREATE TABLE … AS that is said again: its count, if its rows are there; else its table goes."""
        made = self._own.made_by(statement.query) if is_again(statement.options) else None
        if made is None:
            return None
        table, known = made.table, await self._own.recall(statement.query)
        if known is None:
            await work.defining.define(
                _step(statement, f"drop-{table.id}"), Drop(table.id, table.name), statement.rights
            )
            return None
        await self._show_filled(work, statement, table)
        return CountAnswer(known.rows // (1 if table.distributed_by else len(table.members)), commit_ts=known.commit_ts)

    async def _create_as(self, work: Work, statement: RunStatement, cursor: ClientCursor) -> CountAnswer:
        """The query comes first, and the table is made if it can hold the rows. It is seen when these are written; if
        they are not, it goes: now, or when its initiator is up again (`OwnTables._settle`)."""
        if is_again(statement.options) and await self._own.recall(statement.query) is not None:
            raise UserError(f"query {statement.query} has made its table, which was dropped since")
        with self._own.makes(statement.query):
            return await self._create_and_fill(work, statement, cursor)

    async def _create_and_fill(self, work: Work, statement: RunStatement, cursor: ClientCursor) -> CountAnswer:
        planner, rights, message = work.planner, statement.rights, partial(self._message, statement)
        made: list[said.CreateTable] = []

        async def plan() -> Planned:
            planned = (await planned_change(planner, message())).planned
            cursor.tables = tuple(sorted(planned.plan.schema_info))
            return planned

        def check(schema: Schema) -> None:
            made.append(created_as(statement.sql, schema.columns, self._known(planner, statement), planner.limits))

        filling: list[Writing] = []

        async def make() -> Writing | None:
            """None if somebody else has made the table meanwhile, or has dropped it."""
            table, since = made[-1].table, self._own.now()
            create = Create(table, made[-1].if_not_exists, Making(statement.query, since))
            await work.defining.define(_step(statement, f"make-{since:x}"), create, rights)
            found = self._own.made_by(statement.query)
            if found is None:
                return None
            reach("table.made")
            cursor.tables = tuple(sorted({*cursor.tables, *(f"{member}.{table.name}" for member in table.members)}))
            filling.append(self._computing.filling(found.table, planner, message, cursor, work.gather))
            return filling[-1]

        async def overflow() -> Sink:
            """So many rows are not held until the table is there."""
            if (writing := await make()) is None:
                raise _MadeMeanwhile
            return writing.begin(statement)

        try:
            gathered = await self._computing.rows(
                statement, planner, partial(work.gather, statement, cursor), plan, check, overflow
            )
            if not filling:
                await self._computing.check(made[-1].table, gathered.rows)
                if await make() is None:
                    return CountAnswer(0)
            answer = await filling[-1].commit(await filling[-1].routed(gathered, statement), 0)
            if answer is None:
                raise StaleSchema(f"table {made[-1].table.name} has changed, or is gone")
            await self._show_filled(work, statement, filling[-1].table)
            return answer
        except _MadeMeanwhile:
            return CountAnswer(0)
        except OutcomeUnknown:
            raise
        except SkerryError:
            if filling:
                table = filling[-1].table
                with suppress(SiteError):  # nobody sees it, and it goes later (`OwnTables._settle`)
                    await work.defining.define(
                        _step(statement, f"drop-{table.id}"), Drop(table.id, table.name), statement.rights
                    )
            raise
        finally:
            for writing in filling:
                writing.drop()

    async def _show_filled(self, work: Work, statement: RunStatement, table: OwnTable) -> None:
        try:
            await work.defining.define(_step(statement, "fill"), Fill(table.id), statement.rights)
        except SkerryError as error:  # its rows are written, and it will be seen
            raise unsure(statement.query, error) from error

    async def _load(self, work: Work, statement: RunStatement, cursor: ClientCursor, load: Load) -> CountAnswer:
        """Rows come from the client, in chunks. All of them are written, or nothing."""
        planner, insert = work.planner, await self._fresh_load(work, statement)
        table = insert.table
        if is_again(statement.options) and (known := await self._own.recall(statement.query)) is not None:
            copies = 1 if table.distributed_by else len(table.members)
            return CountAnswer(known.rows // copies, commit_ts=known.commit_ts)
        load.begin()
        cursor.tables = tuple(f"{member}.{table.name}" for member in table.members)
        cursor.is_write = True
        wanted = Wanted("insert", table, insert.columns, insert.policy)
        schema = await load.schema()
        check_types(wanted, schema)
        message = partial(self._message, statement)
        writing = self._computing.filling(table, planner, message, cursor, work.gather, wanted)
        try:
            first, is_last = await load.some(WRITE_TUPLES, WRITE_TUPLES_BYTES)
            rights = statement.rights
            if is_last:
                given = await self._workers.run(stored_columns, wanted, first)
                whole = await self._workers.run(whole_rows, wanted, given)
                definition = self._own.definitions[table.name.lower()]
                routed = await self._workers.run(
                    routed_in_order, definition, whole, wanted.policy, rights.user, rights.roles
                )
            else:
                sink = writing.begin(statement)
                batch: pa.RecordBatch | None = first
                while batch is not None:
                    await sink.add(batch, stored_columns)
                    batch = await load.next()
                routed = await sink.finish(is_ordered=True)
            answer = await writing.commit(routed, 0)
        finally:
            writing.drop()
        if answer is None:
            raise StaleSchema(f"table {table.name} has changed while rows were loaded; nothing was written")
        return answer

    async def _fresh_load(self, work: Work, statement: RunStatement) -> said.Insert:
        def read() -> said.Insert:
            return analyse_load(statement.sql, self._known(work.planner, statement), work.planner.limits)

        work.planner.peer_tables.define()
        try:
            return await self._workers.run(read)
        except SqlError:
            await work.defining.catch_up()
            return await self._workers.run(read)

    async def _alter(self, work: Work, statement: RunStatement, understood: said.AlterTable) -> None:
        """Read once more if the table has changed since; then that is an error."""
        if understood.changed == understood.table:
            return  # IF EXISTS, IF NOT EXISTS
        work.defining.refuse_named(understood.table, understood.changed)
        try:
            await work.defining.define(statement.query, Alter(understood.changed), statement.rights)
        except StaleSchema:
            await work.defining.catch_up()
            again = await self._read(work, statement)
            assert isinstance(again, said.AlterTable), "what a statement asks for does not change with its tables"
            if again.changed != again.table:
                await _define(work, statement, Alter(again.changed))
        except SkerryError as error:
            raise unsure(statement.query, error) if is_again(statement.options) else error from error

    # --- writes -------------------------------------------------------------------------------------------------------
    async def _write(
        self, work: Work, statement: RunStatement, cursor: ClientCursor, change: Routed, analysis: Analysis | None
    ) -> CountAnswer | _Understood:
        """One attempt after the other, until one is committed or refused for good; the oldest is let through.

        Of a table that was dropped, and made anew as another, a query may have to give the rows.
        """
        query, first_start = statement.query, self._own.now()
        pause_s, attempt, replans = CHANGE_PAUSE_S, 0, Replans(lambda: self._own.definitions)
        while change.parts:
            attempt += 1
            if analysis is not None:
                analysis.tried(change)
            cursor.is_handed_over = True
            txn = TransactionId(query, attempt)
            try:
                outcome = await self._own.submit(txn, first_start, change.parts, is_routed=True)
            except SkerryError as trouble:
                raise unsure(query, trouble) if is_again(statement.options) else trouble from trouble
            if outcome.state is State.COMMITTED:
                return CountAnswer(outcome.rows // change.copies, commit_ts=outcome.commit_ts)
            # Without a failure this attempt was aborted in an earlier life of the query.
            if outcome.failure is not None:
                error = error_of(outcome.failure)
                if outcome.state is State.UNKNOWN:
                    raise unsure(query, error)
                if not outcome.is_retryable:
                    raise error
                if isinstance(error, StaleSchema):
                    await work.defining.catch_up()
                    replans.note(error, cursor.tables)
                    trace.emit(trace.QueryReplanned(query, error.message))
                    again = await self._understood(work.planner, statement)
                    if not isinstance(again, Routed):
                        return again
                    change = again
            await asyncio.sleep(pause_s)  # owner: the query's deadline
            pause_s = min(2 * pause_s, CHANGE_PAUSE_MAX_S)
        return CountAnswer(0)

    async def _change_within(
        self, work: Work, statement: RunStatement, cursor: ClientCursor, understood: Routed | NeedsQuery
    ) -> CountAnswer:
        """A statement of a transaction: what it writes is held here. Planned again if its table has changed."""
        cursor.is_write = True
        message = partial(self._message, statement)
        replans = Replans(lambda: self._own.definitions)
        async with self._within.turn(statement) as begun:
            if (count := begun.counts.get(statement.query)) is not None:
                return count
            while True:
                warnings: tuple[str, ...] = ()
                try:
                    if isinstance(understood, NeedsQuery):
                        writing = self._computing.computing(
                            understood.table, work.planner, message, cursor, work.gather
                        )
                        routed, _ = await writing.compute()
                        table, warnings = writing.table, writing.warnings
                    else:
                        routed, known = understood, self._own.tables.get(understood.table.lower())
                        if known is None:
                            raise StaleSchema(f"table {understood.table} is gone")
                        table = known
                    answer = await self._within.hold(begun, statement, routed, table)
                    answer = msgspec.structs.replace(answer, warnings=warnings)
                    begun.counted(statement.query, answer)
                    return answer
                except StaleSchema as error:
                    await work.defining.catch_up()
                    replans.note(error, cursor.tables)
                    again = await self._understood(work.planner, statement)
                    if not isinstance(again, Routed | NeedsQuery):
                        raise InternalError("what a statement asks for does not change with its tables") from None
                    understood = again

    def _message(self, statement: RunStatement) -> PlanChange:
        """For who plans the statement with the definitions that are known now."""
        return PlanChange(statement, _tables(self._seen(statement.rights)), self._members)

    async def _explain(self, work: Work, statement: RunStatement, understood: _Understood, is_json: bool) -> Answer:
        match understood:
            case Routed(parts, copies, table, reason):
                rows = {member: len(part.writes) for member, part in parts.items()}
                if is_json:
                    members = [{"member": member, "rows": count} for member, count in rows.items()]
                    return told_json({"write": {"table": table, "by": "tuples", "reason": reason, "members": members}})
                lines = [f"writes table {table} as tuples, without Spark: {reason}"]
                lines += [f"  {member}: {counted(count)}" for member, count in rows.items()]
                lines += ["  each of them has a copy" for _ in range(copies > 1)]
            case NeedsQuery(table, reason):
                made = await planned_change(work.planner, self._message(statement))
                plan, planner = with_reasons(made.planned.plan), work.planner
                if is_json:
                    members = [{"member": member} for member in table.members]
                    write = {"table": table.name, "by": "spark", "reason": reason, "members": members}
                    return told_json({"write": write, "query": describe(plan, planner.name, planner.topology)})
                by = f"by the hash of {', '.join(table.distributed_by)}" if table.distributed_by else "a copy to each"
                lines = [
                    f"writes table {table.name} by Spark: {reason}",
                    f"  rows come to {self._member}, and go to {', '.join(table.members)}: {by}",
                    *explain(plan, planner.name, planner.topology),
                ]
            case _:
                raise SqlError("EXPLAIN takes a query or a write")
        return told_rows({"plan": lines})

    def _seen(self, rights: Rights) -> Mapping[str, Definition]:
        if rights.is_open:
            return self._own.definitions
        return {name: each for name, each in self._own.definitions.items() if _is_seen(each.table, rights)}

    # --- flushes ------------------------------------------------------------------------------------------------------
    async def _flush(self, table: OwnTable, rights: Rights) -> None:
        """At all members that have the table."""
        loop = asyncio.get_running_loop()
        asked = {uuid.uuid4().hex: (member, loop.create_future()) for member in table.members}
        self._flushing |= asked
        try:
            for request_id, (member, _) in asked.items():
                self._send(member, FlushTable(request_id, table.id, rights.user, rights.roles))
            async with asyncio.timeout(DEFINED_WAIT_S):
                # Together: several may fail, and one error is told.
                for flushed in await asyncio.gather(*(answer for _, answer in asked.values())):
                    if flushed.failure is not None:
                        raise error_of(flushed.failure)
        except TimeoutError:
            silent = ", ".join(member for member, answer in asked.values() if answer.cancelled())
            raise TimedOut(f"FLUSH TABLE: no answer from {silent} within {DEFINED_WAIT_S:g} s") from None
        finally:
            for request_id in asked:
                del self._flushing[request_id]

    async def flush_here(self, sender: str, message: FlushTable) -> None:
        """What another member, or this one, asks for."""
        failure = None
        try:
            table = next(
                (each.table for each in self._own.definitions.values() if each.table.id == message.table), None
            )
            if table is None:
                raise SiteError(f"site {self._member}: table number {message.table} is not known here")
            rights = self._rights_of(message.user, message.roles)
            if not any(rights.may(action, self._member, table.name) for action in CHANGES):
                raise UserError(f"user {message.user} may not flush table {table.name}")
            await self._own.flush(table.id)
        except SkerryError as error:
            failure = failure_of(error, self._member)
        self._send(sender, Flushed(message.request_id, self._member, failure))

    def flushed(self, sender: str, message: Flushed) -> None:
        member, answer = self._flushing.get(message.request_id, ("", None))
        if answer is not None and member == sender and not answer.done():
            answer.set_result(message)

    def peer_lost(self, peer: str, error: SiteError) -> None:
        self.bulks.peer_lost(peer, error)
        self.statuses.lost(peer, error)
        self.finding.lost(peer, error)
        self.rebalancing.lost(peer, error)
        for member, answer in self._flushing.values():
            if member == peer and not answer.done():
                answer.set_exception(error)


async def _define(work: Work, statement: RunStatement, wish: Wish) -> None:
    try:
        await work.defining.define(statement.query, wish, statement.rights)
    except SkerryError as error:
        # The keeper forgets ids when it is restarted: then it says that a table exists, or does not.
        raise unsure(statement.query, error) if is_again(statement.options) else error from error


def _step(statement: RunStatement, step: str) -> QueryId:
    """The id of one of several definitions that a statement makes."""
    return QueryId(statement.query.initiator, f"{statement.query.local}-{step}")


def _defines(sql: str) -> bool:
    return [word.upper() for word in sql.split()[:2]] in (["CREATE", "TABLE"], ["DROP", "TABLE"], ["ALTER", "TABLE"])


def _about(understood: _Understood) -> tuple[str, ...]:
    """The parts that the statement is about, for the audit."""
    match understood:
        case NeedsQuery(table):
            return tuple(f"{member}.{table.name}" for member in table.members)
        case Routed(parts, _, table):
            return tuple(f"{member}.{table}" for member in parts)
        case (
            said.CreateTable(table)
            | said.DropTable(OwnTable() as table)
            | said.AlterTable(table)
            | said.FlushTable(table)
        ):
            return tuple(f"{member}.{table.name}" for member in table.members)
        case _:
            return ()


def _steps(told: Rebalanced) -> dict[str, list[object]]:
    """What moved, then what is left."""
    steps = [*(("moved", each) for each in told.moved), *(("left", each) for each in told.left)]
    return {
        "step": [what for what, _ in steps],
        "table": [each.table for _, each in steps],
        "source": [each.source for _, each in steps],
        "target": [each.target for _, each in steps],
        "buckets": [each.upto - each.first for _, each in steps],
        "rows": [each.rows if what == "moved" else None for what, each in steps],
        "bytes": [each.size_bytes if what == "moved" else None for what, each in steps],
    }


def _tables(definitions: Mapping[str, Definition]) -> dict[str, OwnTable]:
    return {name: each.table for name, each in definitions.items()}


def _is_seen(table: OwnTable, rights: Rights) -> bool:
    """Whether there is such a table for the user: it may read it, or change it."""
    return rights.is_open or any(
        not rights.seen(member, table.name).is_hidden or any(rights.may(each, member, table.name) for each in CHANGES)
        for member in table.members
    )


def _refuse_hidden(table: OwnTable, rights: Rights) -> None:
    """UserError if columns are hidden from a user who may change nothing."""
    for member in table.members if not rights.is_open else ():
        sights = rights.seen(member, table.name).sights
        is_known = all(any(sight.shows(column.name) for sight in sights) for column in table.columns)
        if not is_known and not any(rights.may(each, member, table.name) for each in CHANGES):
            raise UserError(
                f"table {table.name}: to see how it was made needs the right to read all its columns",
                suggestion=f"DESCRIBE {table.name} tells those that you may read",
            )


def _understand(
    statement: RunStatement, values: Any, known: said.Known, definitions: Mapping[str, Definition], planner: Planner
) -> tuple[_Understood, said.Change | None]:
    """In a worker's thread: thousands of rows are read here. With it the write that the text means, if it is one."""
    try:
        understood = analyse_constants(statement.sql, values, known, planner.limits, given_variables(statement))
    except changes.NeedsQuery as error:
        _refuse_many(statement, error.reason)
        return _by_query(error.table, error.reason, error.is_read, statement.rights), None
    if not isinstance(understood, said.Change):
        _refuse_many(statement, "this is neither")
        return understood, None
    definition = definitions[understood.table.name.lower()]
    if definition.table != understood.table:
        raise InternalError(f"table {understood.table.name} changed while it was read")
    return _way(statement, understood, definition), understood


def _way(statement: RunStatement, change: said.Change, definition: Definition) -> Routed | NeedsQuery:
    rights = statement.rights
    more = given_more(statement)
    way = way_of(change, bind_again(change.parameters, more))
    if isinstance(way, BySpark):
        _refuse_many(statement, way.reason)
        return _by_query(change.table, way.reason, not isinstance(change, said.Insert), rights)
    made = routed(definition, way, rights.user, rights.roles)
    if more and (size_bytes := size_of(made)) > COMPUTED_BYTES:
        _refuse_many(statement, f"{size_bytes} bytes with all copies are more than the {COMPUTED_BYTES} of one commit")
    return made


def _refuse_many(statement: RunStatement, reason: str) -> None:
    """Values that nobody looks at are not to be taken for written."""
    if statement.more:
        raise SqlError(
            f"executemany writes rows of constants, or rows by their key: {reason}",
            suggestion=f"give at most {COMPUTED_ROWS} rows at a time, or use cursor.load",
        )


def _by_query(table: OwnTable, reason: str, is_read: bool, rights: Rights) -> NeedsQuery:
    """UserError if the rows that it changes are not all to be seen: others than are meant might be changed."""
    if is_read and not all(rights.seen(member, table.name).is_whole for member in table.members):
        raise UserError(
            f"table {table.name}: to change rows by a condition is to read them, which needs the right to all of the "
            "table, without filter or mask",
            suggestion="name the key of each row: WHERE key = constant",
        )
    return NeedsQuery(table, reason)

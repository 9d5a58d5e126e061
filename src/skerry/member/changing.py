"""Statements about tables of our own, from a client's text to its answer: definitions, writes, flushes."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Mapping
from typing import NamedTuple

from skerry.config import Config, Role
from skerry.member.answers import told_rows
from skerry.member.changeplans import ChangeStatement, check_size, plan_change, rows_of
from skerry.member.defining import Defining
from skerry.member.history import ClientCursor
from skerry.member.own import OwnTables
from skerry.member.planning import Planned, Planner, SchemaCatalog, given_values, with_fresh_tables
from skerry.member.requests import Answer, CountAnswer, Gathered, RunStatement
from skerry.member.resources import Workers
from skerry.model.commits import TransactionId
from skerry.model.errors import InternalError, SiteError, SkerryError, SqlError, StaleSchema, TimedOut, UserError
from skerry.model.limits import CHANGE_PAUSE_MAX_S, CHANGE_PAUSE_S, CHANGE_STALE, DEFINED_WAIT_S
from skerry.model.rights import CHANGES, Rights
from skerry.model.sharded import Create, Definition, Drop, OwnTable
from skerry.sql import owntables as said
from skerry.sql.changes import analyse_change
from skerry.sql.definitions import shown_table
from skerry.tables.clock import COUNTER_BITS
from skerry.tables.routing import Routed, routed, routed_rows
from skerry.tables.ways import BySpark, way_of
from skerry.wire.commit_messages import State
from skerry.wire.definition_messages import Flushed, FlushTable
from skerry.wire.messages import Message
from skerry.wire.values import error_of, failure_of

_MILLISECOND_BITS = COUNTER_BITS + 10  # about
_ATTEMPT_BITS = (1 << 30) - 1


class NeedsQuery(NamedTuple):
    """A write whose rows a query gives. `copies`: at so many members each row is counted."""

    copies: int


# A write, to be handed to members or to be made by a query first; or what is no write.
_Understood = Routed | NeedsQuery | said.Definition
Gather = Callable[[RunStatement, ClientCursor, Planned, int, Callable[[int, int], None]], Awaitable[Gathered]]


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
    ) -> None:
        self._member = member
        self._config = config
        self._own = own
        self._workers = workers
        self._send = send
        self._rights_of = rights_of
        self._flushing: dict[str, tuple[str, asyncio.Future[Flushed]]] = {}
        self._members = tuple(name for name, each in config.members.items() if each.role is Role.DATA)

    async def answer(self, work: Work, statement: RunStatement, cursor: ClientCursor) -> Answer:
        """Raises what is wrong with it, or why nothing was written."""
        understood = await self._fresh(work, statement)
        if not work.defining.keeper:
            raise SiteError(
                "this cluster keeps no tables of its own: no member has a place for them",
                suggestion="name a folder by `state:` in skerry.yaml, and restart the members",
            )
        cursor.tables = _about(understood)
        if statement.expected == "rows" and not isinstance(understood, said.ShowCreateTable):
            raise UserError("the statement changes rows and returns none, its client expects rows")
        match understood:
            case Routed() | NeedsQuery():
                return await self._write(work, statement, cursor, understood)
            case said.CreateTable(table, if_not_exists):
                await work.defining.define(statement.query, Create(table, if_not_exists), statement.rights)
            case said.DropTable(table):
                if table is not None:
                    await work.defining.define(statement.query, Drop(table.id, table.name), statement.rights)
            case said.FlushTable(table):
                await self._flush(table, statement.rights)
            case said.ShowCreateTable(table):
                return told_rows({"createtab_stmt": [shown_table(table)]})
            case _:
                words = " ".join(statement.sql.split()[:2]).upper()[:40]
                raise SqlError(f"{words} is not there yet for tables of our own")
        return CountAnswer(0)

    async def _fresh(self, work: Work, statement: RunStatement) -> _Understood:
        """By the definitions that are known here; by the newest, if these make it an error."""
        try:
            return await self._understood(work.planner, statement)
        except SqlError:
            before = self._own.version
            await work.defining.catch_up()
            if self._own.version == before:
                raise
            return await self._understood(work.planner, statement)

    async def _understood(self, planner: Planner, statement: RunStatement) -> _Understood:
        planner.peer_tables.define()
        rights = statement.rights
        seen = self._seen(rights)
        catalog = SchemaCatalog(planner.seen_by(rights).catalog, statement.schema_name)
        known = said.Known(said.Configured(catalog, frozenset(self._own.definitions)), _tables(seen), self._members)
        return await self._workers.run(_understand, statement, known, seen, planner)

    # --- writes -------------------------------------------------------------------------------------------------------
    async def _write(
        self, work: Work, statement: RunStatement, cursor: ClientCursor, understood: Routed | NeedsQuery
    ) -> CountAnswer:
        """One attempt after the other, until one is committed or refused for good; the oldest is let through."""
        query, first_start = statement.query, self._own.now()
        pause_s, tries, attempt, read_ts = CHANGE_PAUSE_S, 0, 0, None
        change: Routed
        if isinstance(understood, NeedsQuery):
            if (rows := self._own.committed(query)) is not None:
                return CountAnswer(rows // understood.copies)
            # An attempt of an earlier life may be prepared somewhere, with other rows: no two have one number.
            attempt = (first_start >> _MILLISECOND_BITS) & _ATTEMPT_BITS
        while True:
            tries, attempt = tries + 1, attempt + 1
            try:
                if isinstance(understood, NeedsQuery):
                    change, read_ts = await self._made(work, statement, cursor, tries)
                    cursor.tables = _about(change)
                else:
                    change = understood
                if not change.parts:
                    return CountAnswer(0)
                outcome = await self._own.submit(TransactionId(query, attempt), first_start, change.parts, read_ts)
                if outcome.state is State.COMMITTED:
                    return CountAnswer(outcome.rows // change.copies)
                # Without a failure this attempt was aborted in an earlier life of the query.
                if outcome.failure is not None:
                    error = error_of(outcome.failure)
                    if outcome.state is State.UNKNOWN or not outcome.is_retryable:
                        raise error
                    if isinstance(error, StaleSchema):
                        raise error
            except StaleSchema:
                if tries >= CHANGE_STALE:
                    raise
                await work.defining.catch_up()
                await work.planner.peer_tables.refresh()
                again = await self._understood(work.planner, statement)
                assert isinstance(again, Routed | NeedsQuery), (
                    "what a statement asks for does not change with its tables"
                )
                understood = again
            await asyncio.sleep(pause_s)  # owner: the query's deadline
            pause_s = min(2 * pause_s, CHANGE_PAUSE_MAX_S)

    async def _made(
        self, work: Work, statement: RunStatement, cursor: ClientCursor, attempt: int
    ) -> tuple[Routed, int]:
        """By a query that gives keys and values, and the moment that it read at."""
        seen = self._seen(statement.rights)
        tables, names = _tables(seen), frozenset(self._own.definitions)
        message = ChangeStatement(statement, tables, names, self._members)
        change = await with_fresh_tables(work.planner, plan_change, message)
        found = await work.gather(statement, cursor, change.planned, attempt - 1, check_size)
        definition = seen.get(change.table.name.lower())
        if definition is None or definition.table != change.table:
            raise StaleSchema(f"table {change.table.name} has changed", member=self._member)
        rows = rows_of(change, found.schema, found.batches, work.planner.limits.frame_bytes)
        rights = statement.rights
        return routed_rows(definition, rows, change.policy, rights.user, rights.roles), found.read_ts

    def _seen(self, rights: Rights) -> dict[str, Definition]:
        return {name: each for name, each in self._own.definitions.items() if _is_seen(each.table, rights)}

    # --- flushes ------------------------------------------------------------------------------------------------------
    async def _flush(self, table: OwnTable, rights: Rights) -> None:
        """At all members that have the table."""
        answers = []
        for member in table.members:
            request_id, answer = uuid.uuid4().hex, asyncio.get_running_loop().create_future()
            self._flushing[request_id] = member, answer
            self._send(member, FlushTable(request_id, table.id, rights.user, rights.roles))
            answers.append((request_id, answer))
        try:
            async with asyncio.timeout(DEFINED_WAIT_S):
                for _, answer in answers:
                    flushed: Flushed = await answer
                    if flushed.failure is not None:
                        raise error_of(flushed.failure)
        except TimeoutError:
            silent = ", ".join(self._flushing[request_id][0] for request_id, answer in answers if not answer.done())
            raise TimedOut(f"FLUSH TABLE: no answer from {silent} within {DEFINED_WAIT_S:g} s") from None
        finally:
            for request_id, _ in answers:
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
        for member, answer in self._flushing.values():
            if member == peer and not answer.done():
                answer.set_exception(error)


def _about(understood: _Understood) -> tuple[str, ...]:
    """The parts that the statement is about, for the audit."""
    match understood:
        case NeedsQuery():
            return ()  # told when its rows are known
        case Routed(parts, _, table):
            return tuple(f"{member}.{table}" for member in parts)
        case said.CreateTable(table) | said.DropTable(OwnTable() as table) | said.FlushTable(table):
            return tuple(f"{member}.{table.name}" for member in table.members)
        case _:
            return ()


def _tables(definitions: Mapping[str, Definition]) -> dict[str, OwnTable]:
    return {name: each.table for name, each in definitions.items()}


def _is_seen(table: OwnTable, rights: Rights) -> bool:
    """Whether there is such a table for the user: it may read it, or change it."""
    return rights.is_open or any(
        not rights.seen(member, table.name).is_hidden or any(rights.may(each, member, table.name) for each in CHANGES)
        for member in table.members
    )


def _understand(
    statement: RunStatement, known: said.Known, definitions: Mapping[str, Definition], planner: Planner
) -> _Understood:
    """In a worker's thread: thousands of rows are read here."""
    understood = analyse_change(statement.sql, given_values(statement), known, planner.limits)
    if not isinstance(understood, said.Change):
        return understood
    way = way_of(understood)
    copies = 1 if understood.table.distributed_by else len(understood.table.members)
    if isinstance(way, BySpark):
        return NeedsQuery(copies)
    if isinstance(understood, said.Delete) and understood.keys is None:
        return NeedsQuery(copies)
    if definitions[understood.table.name.lower()].table != understood.table:
        raise InternalError(f"table {understood.table.name} changed while it was read")
    rights = statement.rights
    return routed(definitions[understood.table.name.lower()], way, rights.user, rights.roles)

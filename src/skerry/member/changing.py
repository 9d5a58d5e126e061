"""Statements about tables of our own, from a client's text to its answer: definitions, writes, flushes."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Mapping
from typing import Any

from skerry.catalog.seen import seen_by
from skerry.config import Config, Role
from skerry.member.answers import told_rows
from skerry.member.defining import Defining
from skerry.member.history import ClientCursor
from skerry.member.own import OwnTables
from skerry.member.planning import Planner, given_more, given_values
from skerry.member.requests import Answer, CountAnswer, RunStatement
from skerry.member.resources import Workers
from skerry.model.commits import TransactionId
from skerry.model.errors import InternalError, SiteError, SkerryError, SqlError, StaleSchema, TimedOut, UserError
from skerry.model.limits import CHANGE_PAUSE_MAX_S, CHANGE_PAUSE_S, DEFINED_WAIT_S, WRITE_TUPLES
from skerry.model.rights import CHANGES, Rights
from skerry.model.sharded import Create, Definition, Drop, OwnTable
from skerry.sql import owntables as said
from skerry.sql.changes import analyse_change
from skerry.sql.definitions import shown_table
from skerry.sql.parameters import bind_again
from skerry.tables.routing import Routed, routed
from skerry.tables.ways import BySpark, way_of
from skerry.wire.commit_messages import State
from skerry.wire.definition_messages import Flushed, FlushTable
from skerry.wire.messages import Message
from skerry.wire.values import error_of, failure_of

_Understood = Routed | said.Definition


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

    async def answer(
        self, planner: Planner, defining: Defining, statement: RunStatement, cursor: ClientCursor
    ) -> Answer:
        """Raises what is wrong with it, or why nothing was written."""
        if not defining.keeper:
            raise SiteError(
                "this cluster keeps no tables of its own: no member has a place for them",
                suggestion="name a folder by `state:` in skerry.yaml, and restart the members",
            )
        understood = await self._fresh(planner, defining, statement)
        cursor.tables = _about(understood)
        if statement.expected == "rows" and not isinstance(understood, said.ShowCreateTable):
            raise UserError("the statement changes rows and returns none, its client expects rows")
        match understood:
            case Routed():
                return await self._write(planner, defining, statement, understood)
            case said.CreateTable(table, if_not_exists):
                await defining.define(statement.query, Create(table, if_not_exists), statement.rights)
            case said.DropTable(table):
                if table is not None:
                    await defining.define(statement.query, Drop(table.id, table.name), statement.rights)
            case said.FlushTable(table):
                await self._flush(table, statement.rights)
            case said.ShowCreateTable(table):
                return told_rows({"createtab_stmt": [shown_table(table)]})
            case _:
                words = " ".join(statement.sql.split()[:2]).upper()[:40]
                raise SqlError(f"{words} is not there yet for tables of our own")
        return CountAnswer(0)

    async def _fresh(self, planner: Planner, defining: Defining, statement: RunStatement) -> _Understood:
        """By the definitions that are known here; by the newest, if these make it an error."""
        try:
            return await self._understood(planner, statement)
        except SqlError:
            before = self._own.version
            await defining.catch_up()
            if self._own.version == before:
                raise
            return await self._understood(planner, statement)

    async def _understood(self, planner: Planner, statement: RunStatement) -> _Understood:
        planner.peer_tables.define()
        rights = statement.rights
        seen = {name: each for name, each in self._own.definitions.items() if _is_seen(each.table, rights)}
        catalog = seen_by(planner.catalog, rights) if not rights.is_open else planner.catalog
        known = said.Known(_Configured(catalog, self._own.definitions), _tables(seen), self._members)
        return await self._workers.run(_understand, statement, known, seen, planner)

    # --- writes -------------------------------------------------------------------------------------------------------
    async def _write(
        self, planner: Planner, defining: Defining, statement: RunStatement, change: Routed
    ) -> CountAnswer:
        """One attempt after the other, until one is committed or refused for good; the oldest is let through."""
        query, first_start = statement.query, self._own.now()
        pause_s, attempt = CHANGE_PAUSE_S, 0
        while change.parts:
            attempt += 1
            outcome = await self._own.submit(TransactionId(query, attempt), first_start, change.parts)
            if outcome.state is State.COMMITTED:
                return CountAnswer(outcome.rows // change.copies)
            if outcome.failure is not None:
                error = error_of(outcome.failure)
                if outcome.state is State.UNKNOWN or not outcome.is_retryable:
                    raise error
                if isinstance(error, StaleSchema):
                    change = await self._again(planner, defining, statement, error)
            # Without a failure this attempt was aborted in an earlier life of the query.
            await asyncio.sleep(pause_s)  # owner: the query's deadline
            pause_s = min(2 * pause_s, CHANGE_PAUSE_MAX_S)
        return CountAnswer(0)

    async def _again(self, planner: Planner, defining: Defining, statement: RunStatement, error: StaleSchema) -> Routed:
        await defining.catch_up()
        understood = await self._understood(planner, statement)
        if not isinstance(understood, Routed):
            raise error
        return understood

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
        case Routed(parts, _, table):
            return tuple(f"{member}.{table}" for member in parts)
        case said.CreateTable(table) | said.DropTable(OwnTable() as table) | said.FlushTable(table):
            return tuple(f"{member}.{table.name}" for member in table.members)
        case _:
            return ()


class _Configured:
    """The catalog without tables of our own: statements find those by themselves."""

    def __init__(self, catalog: Any, own: Mapping[str, Definition]) -> None:
        self._catalog = catalog
        self._own = own

    def lookup(self, parts: tuple[str, ...]) -> Any:
        return None if parts[-1].lower() in self._own else self._catalog.lookup(parts)

    def names(self) -> list[str]:
        return [name for name in self._catalog.names() if name.rpartition(".")[2].lower() not in self._own]


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
    more = [bind_again(understood.parameters, values, 2 + at) for at, values in enumerate(given_more(statement))]
    way = way_of(understood, more)
    if isinstance(way, BySpark) and more:
        raise SqlError(
            f"executemany writes rows of constants, and rows by their key: {way.reason}",
            suggestion=f"execute it once for each, or give fewer than {WRITE_TUPLES} values at a time",
        )
    if isinstance(way, BySpark):
        raise SqlError(
            f"this write needs Spark, and only writes of constants by key are there yet: {way.reason}",
            suggestion="INSERT … VALUES, UPDATE … SET column = constant WHERE key = constant, "
            "DELETE … WHERE key = constant",
        )
    if isinstance(understood, said.Delete) and understood.keys is None:
        raise SqlError("DELETE without WHERE is not there yet: DROP TABLE and CREATE TABLE do the same")
    if definitions[understood.table.name.lower()].table != understood.table:
        raise InternalError(f"table {understood.table.name} changed while it was read")
    rights = statement.rights
    return routed(definitions[understood.table.name.lower()], way, rights.user, rights.roles)

"""The native protocol as a door to the service: a client's message becomes a call, and what that gives a message."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import assert_never

from skerry.member.requests import (
    Answer,
    CountAnswer,
    GivePage,
    PageSize,
    PrepareStatement,
    RowsAnswer,
    RunStatement,
    TakeRows,
)
from skerry.member.service import Service
from skerry.model.caller import Caller
from skerry.model.errors import SkerryError
from skerry.wire.client_messages import (
    ClientAttach,
    ClientClose,
    ClientClosed,
    ClientExecute,
    ClientFetch,
    ClientMembers,
    ClientMembersReply,
    ClientPage,
    ClientPrepare,
    ClientPrepared,
    ClientQueries,
    ClientQueriesReply,
    ClientResult,
    ClientRows,
    ClientRowsTaken,
    ClientStatus,
    ClientStatusReply,
)
from skerry.wire.messages import Failure
from skerry.wire.values import failure_of

DOOR = "native"

Request = (
    ClientExecute
    | ClientFetch
    | ClientClose
    | ClientAttach
    | ClientStatus
    | ClientMembers
    | ClientQueries
    | ClientPrepare
    | ClientRows
)
Reply = (
    ClientResult
    | ClientPage
    | ClientClosed
    | ClientStatusReply
    | ClientMembersReply
    | ClientQueriesReply
    | ClientPrepared
    | ClientRowsTaken
)


class Native:
    """Here, and nowhere else, errors become failures."""

    def __init__(self, service: Service, member: str) -> None:
        self._service = service
        self._member = member

    async def answer(self, caller: Caller, message: Request) -> Reply:
        """A fetch is answered with its first page: see `page` for the others."""
        service = self._service
        match message:
            case ClientExecute(request):
                return await self._result(request, service.execute(caller, _statement(message)))
            case ClientAttach(request, query, number):
                return await self._result(request, service.attach(caller, GivePage(query, number, _size(message))))
            case ClientFetch(_, _, number):
                return await self.page(caller, message, number)
            case ClientClose():
                return self.close(caller, message)
            case ClientStatus(request):
                return self._status(caller, message)
            case ClientMembers(request):
                return ClientMembersReply(request, service.members(caller))
            case ClientQueries(request):
                return ClientQueriesReply(request, service.queries(caller))
            case ClientPrepare(request, sql, schema_name, variables):
                asked = PrepareStatement(sql, schema_name, variables=variables)
                try:
                    prepared = await service.prepare(caller, asked)
                except SkerryError as error:
                    return ClientPrepared(request, error=self.failure(error))
                return ClientPrepared(request, prepared)
            case ClientRows(request, query, number, schema, rows, is_last):
                try:
                    await service.rows(caller, TakeRows(query, number, schema, rows, is_last))
                except SkerryError as error:
                    return ClientRowsTaken(request, self.failure(error))
                return ClientRowsTaken(request)
            case never:
                assert_never(never)

    async def page(self, caller: Caller, message: ClientFetch, number: int) -> ClientPage:
        """One of the pages that a fetch asks for."""
        try:
            page = await self._service.fetch(caller, GivePage(message.query, number, _size(message)))
        except SkerryError as error:
            return ClientPage(message.request, error=self.failure(error))
        return ClientPage(message.request, page)

    def close(self, caller: Caller, message: ClientClose) -> ClientClosed:
        try:
            self._service.close(caller, message.query)
        except SkerryError as error:
            return ClientClosed(message.request, self.failure(error))
        return ClientClosed(message.request)

    def failure(self, error: SkerryError) -> Failure:
        return failure_of(error, self._member)

    async def _result(self, request: int, answering: Awaitable[Answer | None]) -> ClientResult:
        try:
            answer = await answering
        except SkerryError as error:
            return ClientResult(request, error=self.failure(error), transaction=error.transaction)
        match answer:
            case None:
                return ClientResult(request)
            case RowsAnswer(schema, page, schema_name, warnings):
                return ClientResult(request, schema, page, schema_name=schema_name, warnings=warnings)
            case CountAnswer(rows, warnings, variables, commit_ts, transaction):
                return ClientResult(
                    request,
                    update_count=rows,
                    warnings=warnings,
                    variables=dict(variables),
                    commit_ts=commit_ts,
                    transaction=transaction,
                )
            case never:
                assert_never(never)

    def _status(self, caller: Caller, message: ClientStatus) -> ClientStatusReply:
        try:
            status = self._service.status(caller, message.query)
        except SkerryError as error:
            return ClientStatusReply(message.request, "unknown", 0.0, error=self.failure(error))
        return ClientStatusReply(
            request=message.request,
            state=status.state,
            seconds=status.seconds,
            fragments=status.fragments,
            links=status.links,
            plan=status.plan,
            memory=status.memory,
            error=self.failure(status.error) if status.error is not None else None,
        )


def _statement(message: ClientExecute) -> RunStatement:
    return RunStatement(
        query=message.query,
        sql=message.sql,
        parameters=message.parameters,
        timeout_s=message.timeout_s,
        schema_name=message.schema_name,
        expected=message.expected,
        options=message.options,
        size=_size(message),
        variables=message.variables,
        more=message.more,
        seen_ts=message.seen_ts,
        transaction=message.transaction,
    )


def _size(message: ClientExecute | ClientFetch | ClientAttach) -> PageSize:
    return PageSize(message.page_rows, message.page_bytes)

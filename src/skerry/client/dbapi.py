"""PEP 249 over links to members: connections. Cursors are in `dbcursor`."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Mapping
from dataclasses import replace
from types import TracebackType

import msgspec

from skerry.client import pep249
from skerry.client.arguments import choice, credentials, seconds, statement_text, text, texts
from skerry.client.dbcursor import Cursor
from skerry.client.edge import edge
from skerry.client.links import LOCAL_DIGITS, Links, parse_query_id
from skerry.client.pep249 import InterfaceError, NotSupportedError, ProgrammingError
from skerry.client.prepared import PreparedStatement
from skerry.client.reads import begins_transaction
from skerry.client.status import QueryStatus
from skerry.client.url import parse_url, tls_files
from skerry.model.config import FaultPolicy
from skerry.model.errors import UserError
from skerry.model.ids import QueryId
from skerry.model.progress import MemberState, QueryInfo
from skerry.model.variables import Variable
from skerry.wire.client_messages import (
    ClientClose,
    ClientClosed,
    ClientPrepare,
    ClientPrepared,
    ClientQueries,
    ClientQueriesReply,
    ClientStatus,
    ClientStatusReply,
)
from skerry.wire.values import error_of

__all__ = ["Connection", "Cursor", "QueryStatus", "connect"]

RETRIES = ("never", "reads")


class Settings(msgspec.Struct, frozen=True):
    """How the queries of one connection are run."""

    schema_name: str = ""
    fault_policy: str | None = None
    resume_s: float = 0.0
    retry: str = "never"
    autocommit: bool = True


@edge
def connect(
    url: str,
    *,
    timeout_s: float | None = None,
    fault_policy: str | None = None,
    resume_s: float = 0.0,
    retry: str = "never",
    autocommit: bool = True,
    tls: Mapping[str, str] | None = None,
    user: str | None = None,
    password: str | None = None,
    token: str | None = None,
    insecure: bool = False,
) -> Connection:
    """A connection to the member at `skerry://host:port[/schema]`; `timeout_s` bounds the connecting (5 s).

    `fault_policy`: what its queries do when sites lose their connection: "fail", "wait" or "buffer"; None: as the
    cluster is configured. `resume_s`: so long a lost connection is dialled again, and cursors go on where they were.
    `retry="reads"`: a statement that only reads runs again at another member if this one dies before the first page.
    `autocommit`: each statement commits by itself, unless BEGIN says otherwise. If it is false, a transaction begins
    with the first statement after `connect`, `commit` or `rollback`.
    `tls`, `user`, `password`, `token` and `insecure` as in `skerry.connect`.
    """
    target = parse_url(text(url, "a URL"))
    shown = credentials(target.credentials, user, password, token, os.environ)
    target = replace(target, credentials=shown, insecure=bool(insecure))
    if tls is not None:
        target = replace(target, tls=tls_files(texts(tls, "tls", '{"authority": "ca.pem"}')))
    if fault_policy is not None:
        fault_policy = choice(fault_policy, "fault_policy", list(FaultPolicy))
    resume_s = seconds(resume_s, "resume_s", may_be_0=True)
    retry = choice(retry, "retry", RETRIES)
    links = Links(target, seconds(timeout_s, "timeout_s") or None, resume_s, learns_members=retry == "reads")
    return Connection(links, Settings(target.schema_name, fault_policy, resume_s, retry, bool(autocommit)))


class Connection:
    """Threads may share it, and then its transaction. With `autocommit` each statement commits by itself."""

    Warning = pep249.Warning
    Error = pep249.Error
    InterfaceError = pep249.InterfaceError
    DatabaseError = pep249.DatabaseError
    DataError = pep249.DataError
    OperationalError = pep249.OperationalError
    IntegrityError = pep249.IntegrityError
    InternalError = pep249.InternalError
    ProgrammingError = pep249.ProgrammingError
    NotSupportedError = pep249.NotSupportedError

    def __init__(self, links: Links, settings: Settings) -> None:
        self._links = links
        # Without waiting: finalizers run in any thread, a link's own among them.
        self._finalizer = weakref.finalize(self, links.close, wait=False)
        self._schema_at_first = settings.schema_name
        self.schema_name = settings.schema_name
        self.variables: dict[str, Variable] = {}
        # The greatest number of a commit that it was told of: what it reads, through any member, is no older. Hand it
        # to another connection to read there what was written here.
        self.last_commit = 0
        # The one that is open at the member, "" for none. It stays until COMMIT or ROLLBACK is answered, also if the
        # member has rolled it back: what follows is not to be taken for statements that commit by themselves.
        self.transaction = ""
        self._autocommit = settings.autocommit
        self._beginning = threading.Lock()
        self.fault_policy = settings.fault_policy
        self.resume_s = settings.resume_s
        self.retry = settings.retry

    def __repr__(self) -> str:
        state = "closed" if self.closed else f"to {self.member}"
        return f"<skerry.Connection {state} at {self._links.home.target}>"

    @property
    def member(self) -> str:
        """The member this is a connection to: the initiator of its queries."""
        return self._links.home.member

    @property
    def closed(self) -> bool:
        return not self._finalizer.alive

    @property
    def usable(self) -> bool:
        """Whether a statement can still be sent: not closed, and its member not gone."""
        return not self.closed and self._links.home.error is None

    def cursor(self) -> Cursor:
        self._check()
        return Cursor(self)

    @property
    def autocommit(self) -> bool:
        """Whether each statement commits by itself, unless BEGIN was said."""
        return self._autocommit

    @autocommit.setter
    def autocommit(self, autocommit: bool) -> None:
        if self.transaction and bool(autocommit) != self._autocommit:
            raise ProgrammingError("a transaction is open: commit() or rollback() it first")
        self._autocommit = bool(autocommit)

    def commit(self) -> None:
        """All see what the open transaction has written. OperationalError with code 106: nobody will, begin it again.

        Nothing to do where none is open.
        """
        self._check()
        self._end("COMMIT")

    def rollback(self) -> None:
        """Nothing of the open transaction is written."""
        self._check()
        if self._autocommit and not self.transaction:
            raise NotSupportedError("nothing can be rolled back: each statement has committed by itself")
        self._end("ROLLBACK")

    def _end(self, operation: str) -> None:
        if self.transaction:
            with Cursor(self) as cursor:
                cursor.execute(operation)

    def _begin_for(self, operation: str) -> None:
        """Without autocommit a transaction begins with its first statement."""
        if self._autocommit or self.transaction or not begins_transaction(operation):
            return
        with self._beginning, Cursor(self) as cursor:
            if not self.transaction:
                cursor.execute("BEGIN")

    def reset(self) -> None:
        """For pools: the next user finds the schema that the URL names, no variables and no transaction."""
        if self.transaction:
            self.rollback()
        self.schema_name = self._schema_at_first
        self.variables = {}

    def close(self) -> None:
        """Say goodbye to the member; its open queries end, detached ones run on."""
        if self._finalizer.detach():
            self._links.close()

    @edge
    def attach(self, query_id: QueryId | str) -> Cursor:
        """A cursor on a query that was executed with `detach=True`; waits for its first page, count or error."""
        self._check()
        cursor = Cursor(self)
        cursor.attach_to(self._resolve(query_id))
        return cursor

    @edge
    def prepare(self, sql: str) -> PreparedStatement:
        """Have a statement checked, and its parameters told, without running it."""
        self._check()
        sql = statement_text(sql, (), self._links.home.limits.frame_bytes_from_client)
        variables = dict(self.variables)
        asked = self._links.home.ask(
            lambda number: ClientPrepare(number, sql, self.schema_name, variables), ClientPrepared
        )
        if asked.error is not None:
            raise error_of(asked.error)
        return PreparedStatement(self, sql, asked.parameters)

    @edge
    def members(self) -> tuple[MemberState, ...]:
        """All members of the cluster, as this member sees them."""
        self._check()
        return self._links.members()

    @edge
    def queries(self, member: str | None = None) -> tuple[QueryInfo, ...]:
        """Running and recent queries that clients gave to this member (or to another), the newest last."""
        self._check()
        link = self._links.home if member is None else self._links.to_member(text(member, "a member's name"))
        return link.ask(ClientQueries, ClientQueriesReply).queries

    @edge
    def status(self, query_id: QueryId | str) -> QueryStatus:
        """How the query with a cursor's `query_id` does; another connection may ask."""
        self._check()
        query = self._resolve(query_id)
        reply = self._links.to(query).ask(lambda number: ClientStatus(number, query), ClientStatusReply)
        return QueryStatus.of(reply)

    @edge
    def cancel(self, query_id: QueryId | str) -> None:
        """End a query of any connection; nothing happens if it has ended."""
        self._check()
        query = self._resolve(query_id)
        reply = self._links.to(query).ask(lambda number: ClientClose(number, query), ClientClosed)
        if reply.error is not None:
            raise error_of(reply.error)

    def __enter__(self) -> Connection:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _check(self) -> None:
        if self.closed:
            raise InterfaceError("the connection is closed")

    def _resolve(self, query_id: QueryId | str) -> QueryId:
        """The whole id; its text may be cut short, as in lists and logs."""
        if isinstance(query_id, QueryId):
            return query_id
        query = parse_query_id(text(query_id, "a query id (cursor.query_id)"))
        if len(query.local) >= LOCAL_DIGITS:
            return query
        found = [info.query for info in self.queries(query.initiator) if info.query.local.startswith(query.local)]
        if not found:
            raise UserError(f"member {query.initiator} knows no query whose id begins {query.local}")
        if len(found) > 1:
            raise UserError(f"{len(found)} queries of {query.initiator} have an id that begins {query.local}")
        return found[0]

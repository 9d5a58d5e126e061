"""What a member's service tells the audit: who asked for which statement, and what came of it."""

from __future__ import annotations

import datetime
import time
from collections.abc import Iterable, Sequence

from skerry.access.audit import Attached, Begun, Ended, Prepared, Refusals, Refused, Stopped, TookPart, who, written
from skerry.access.auditfile import AuditFile
from skerry.config import Config
from skerry.config.ownfiles import NotOurs, reason
from skerry.member import clock
from skerry.member.history import ClientCursor
from skerry.member.initiator import Initiated
from skerry.member.requests import Asked, PrepareStatement, RunStatement
from skerry.model import trace
from skerry.model.caller import Caller
from skerry.model.commits import Part
from skerry.model.errors import AccessDenied, Cancelled, ConfigError, SiteError, SkerryError
from skerry.model.ids import QueryId
from skerry.wire.messages import Execute


class Auditing:
    """Nothing happens where the configuration asks for no audit."""

    def __init__(self, config: Config, member: str) -> None:
        audit = config.audit
        self._file = AuditFile(audit, member, _time) if audit is not None else None
        self._is_required = audit is not None and audit.is_required
        self._member = config.member(member)
        self._refusals = Refusals()
        # Cursors that are over, and whose queries still owe receipts: then it is known what the links carried.
        self._owed: dict[QueryId, tuple[ClientCursor, str, int]] = {}

    def start(self) -> None:
        """ConfigError when the file cannot be opened."""
        if self._file is None:
            return
        try:
            self._file.start()
        except (OSError, NotOurs) as error:
            raise ConfigError(
                f"audit: {self._file.path} cannot be written: {reason(error)}", suggestion="check audit.path"
            ) from None
        trace.listeners.append(self._heard)

    def close(self, timeout_s: float) -> None:
        """In a thread: it waits for the disk."""
        if self._file is not None:
            if self._heard in trace.listeners:
                trace.listeners.remove(self._heard)
            self._file.close(timeout_s)

    # --- statements --------------------------------------------------------------------------------
    def asked(self, caller: Caller, statement: RunStatement) -> Asked | None:
        if self._file is None:
            return None
        return Asked(caller, statement.query, statement.sql, _time(), clock.now())

    async def begin(self, asked: Asked | None) -> None:
        """Where an audit is required nothing runs before its line is on the disk: Unaudited if that cannot be."""
        if self._file is None or asked is None or not self._is_required:
            return
        line = Begun(time=asked.time, query=written(asked.query), statement=asked.sql, **who(asked.caller))
        await self._file.write(line)

    def refused(self, asked: Asked | None, error: SkerryError) -> None:
        """No cursor was opened for it."""
        if asked is not None:
            self._put(asked, None, "refused", error.code)

    def over(self, cursor: ClientCursor, error: SkerryError | None = None) -> None:
        """A cursor is over; `error`: why, if its rows were not all given."""
        if cursor.asked is None:
            return
        error = cursor.error or (cursor.ran.core.error if cursor.ran is not None else None) or error
        outcome = "cancelled" if isinstance(error, Cancelled) else "refused" if cursor.ran is None else "failed"
        outcome, code = (outcome, error.code) if error is not None else ("done", 0)
        if cursor.ran is None or cursor.ran.ended.is_set():
            self._put(cursor.asked, cursor, outcome, code)
        else:
            self._owed[cursor.asked.query] = cursor, outcome, code

    def complete(self, query: QueryId, initiated: Initiated) -> None:
        """The last receipt of an attempt came."""
        owed = self._owed.get(query)
        if owed is not None and owed[0].ran is initiated:
            self._put_owed(query)

    def give_up(self) -> None:
        """The member ends: who still owes a receipt gives none."""
        for query in list(self._owed):
            self._put_owed(query)

    def _put_owed(self, query: QueryId) -> None:
        cursor, outcome, code = self._owed.pop(query)
        assert cursor.asked is not None, "only those that were asked for are owed"
        self._put(cursor.asked, cursor, outcome, code)

    def _put(self, asked: Asked, cursor: ClientCursor | None, outcome: str, code: int) -> None:
        if self._file is None:
            return
        ran = cursor.ran if cursor is not None else None
        told = cursor.told_rows if cursor is not None else 0
        self._file.put(
            Ended(
                time=asked.time,
                query=written(asked.query),
                statement=asked.sql,
                tables=cursor.tables if cursor is not None else (),
                rows=told if told is not None else ran.result.rows if ran is not None else 0,
                links=ran.core.progress()[1] if ran is not None else (),
                outcome=outcome,
                code=code,
                seconds=round(clock.now() - asked.started_at, 3),
                **who(asked.caller),
            )
        )

    # --- all else ----------------------------------------------------------------------------------
    async def prepared(self, caller: Caller, statement: PrepareStatement) -> None:
        """Planning tells of tables: where an audit is required, not before its line is on the disk."""
        if self._file is None:
            return
        line = Prepared(time=_time(), statement=statement.sql, **who(caller))
        if self._is_required:
            await self._file.write(line)
        else:
            self._file.put(line)

    def attached(self, caller: Caller, query: QueryId, code: int = 0) -> None:
        if self._file is not None:
            self._file.put(Attached(time=_time(), query=written(query), code=code, **who(caller)))

    def stopped(self, caller: Caller, query: QueryId, code: int = 0) -> None:
        """Somebody ended, or tried to end, a query of another session."""
        if self._file is not None:
            self._file.put(Stopped(time=_time(), query=written(query), code=code, **who(caller)))

    def took_part(self, message: Execute, own: Iterable[str] = ()) -> None:
        """The tables of this member that another one's query reads: it says so itself, and is held to it.

        `own`: names of tables of our own.
        """
        if self._file is None or not message.fragments or message.query.initiator == self._member.name:
            return
        me = self._member.name
        known = (f"{me}.{table}" for table in (*self._member.tables, *own))
        tables = tuple(place for place in known if place in message.schema_info)
        user, roles = getattr(message, "user", ""), tuple(getattr(message, "roles", ()))
        query, initiator = written(message.query), message.query.initiator
        self._file.put(TookPart(time=_time(), user=user, roles=roles, initiator=initiator, query=query, tables=tables))

    def wrote(self, query: QueryId, part: Part, tables: Sequence[str]) -> None:
        """Another member's statement writes to these tables of this member."""
        if self._file is None or query.initiator == self._member.name:
            return
        places = tuple(f"{self._member.name}.{table}" for table in tables)
        self._file.put(
            TookPart(
                time=_time(),
                user=part.user,
                roles=part.roles,
                initiator=query.initiator,
                query=written(query),
                tables=places,
            )
        )

    def refusal_of_part(self) -> SiteError | None:
        """Why the member takes no part in a query of another."""
        if self._file is None or not self._is_required or not self._file.trouble:
            return None
        return self._file.unaudited(self._file.trouble)

    def _heard(self, event: trace.Event) -> None:
        """Whoever refuses a connection or a login says so as an event."""
        match event:
            case trace.ConnectionRefused(address, reason):
                user, code = "", reason.code
            case trace.LoginRefused(user, address):
                code = AccessDenied.code
            case _:
                return
        more = self._refusals.take(time.monotonic()) if self._file is not None else None
        if self._file is not None and more is not None:
            self._file.put(Refused(time=_time(), user=user, address=address, code=code, more=more))


def _time() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds")

"""What happens to a query at its initiator."""

from __future__ import annotations

import logging

from skerry.model.amounts import counted
from skerry.model.events.event import Cause, Event
from skerry.model.ids import QueryId


class QueryReceived(Event, frozen=True):
    """`sql` is empty unless the configuration allows statements in the log (`log_sql`)."""

    query: QueryId
    caller: str
    sql: str = ""

    def line(self) -> str:
        return f"query {self.query}: asked by {self.caller}{': ' if self.sql else ''}{self.sql}"


class QueryPlanned(Event, frozen=True):
    query: QueryId
    plan: str
    fragments: int
    seconds: float

    def line(self) -> str:
        count = f"{self.fragments} fragment{'' if self.fragments == 1 else 's'}"
        return f"query {self.query}: planned in {self.seconds:.3f} s, plan {self.plan[:12]}, {count}"


class QueryReplanned(Event, frozen=True):
    """Tables turned out to be others than the plan was made for."""

    query: QueryId
    reason: str

    def line(self) -> str:
        return f"query {self.query}: {self.reason}; planning again"


class QueryRefused(Event, frozen=True):
    """Nothing ran: the statement is wrong, or may not run here."""

    query: QueryId
    error: Cause

    def line(self) -> str:
        return f"query {self.query}: failed before it began: {self.error}"


class QueryFailed(Event, frozen=True):
    level = logging.WARNING

    query: QueryId
    error: Cause

    def line(self) -> str:
        return f"query {self.query}: failed: {self.error}"


class QueryAnswered(Event, frozen=True):
    """By the initiator alone: SHOW, DESCRIBE, EXPLAIN."""

    query: QueryId

    def line(self) -> str:
        return f"query {self.query}: answered"


class QueryEnded(Event, frozen=True):
    """All receipts are there, or were waited for; `outcome`: "complete" or "failed"."""

    query: QueryId
    outcome: str
    rows: int
    seconds: float
    sent_bytes: int

    def line(self) -> str:
        sent = f", {self.sent_bytes:,} bytes over links" if self.sent_bytes else ""
        return f"query {self.query}: ended, {self.outcome}, {counted(self.rows)}, {self.seconds:.3f} s{sent}"


class ReceiptsMissed(Event, frozen=True):
    level = logging.ERROR

    query: QueryId
    members: tuple[str, ...]

    def line(self) -> str:
        return f"query {self.query}: no receipt from {', '.join(self.members)}; it cleans up on its own"


class LeftBehind(Event, frozen=True):
    level = logging.ERROR

    query: QueryId
    left: tuple[str, ...]

    def line(self) -> str:
        return f"query {self.query}: not let go of in time: {'; '.join(self.left)}"

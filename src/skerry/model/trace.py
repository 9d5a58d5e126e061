"""What happens in a member: one typed event a step. The log is written from these.

`emit` hands an event to the logger of its layer, as the record's message, and to whoever listens. A line of the log is
`str(event)`, or its fields as JSON (member/loglines.py); a counter or a page reads the fields themselves.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from typing import ClassVar

import msgspec

from skerry.model.amounts import counted
from skerry.model.ids import ChannelId, QueryId

_LOGGERS = {layer: logging.getLogger(f"skerry.{layer}") for layer in ("member", "catalog", "client", "query", "wire")}

listeners: list[Callable[[Event], None]] = []


class Event(msgspec.Struct, frozen=True):
    """Something that has happened; subclasses are named in the past tense, and `str` is a line for a person."""

    layer: ClassVar[str] = "query"
    level: ClassVar[int] = logging.INFO


def emit(event: Event, error: BaseException | None = None) -> None:
    """`error`: its trace goes to the log as well, for what nobody expected."""
    logger = _LOGGERS[event.layer]
    if logger.isEnabledFor(event.level):
        logger.log(event.level, event, exc_info=error)
    for listener in listeners:
        listener(event)


def name_of(event: Event) -> str:
    """`QueryPlanned` is called query_planned where it is counted or searched for."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", type(event).__name__).lower()


def fields_of(event: Event) -> dict[str, object]:
    """The fields as plain values; ids are written in full, and a channel names its query too."""
    found: dict[str, object] = {}
    for name in event.__struct_fields__:
        value = getattr(event, name)
        if isinstance(value, ChannelId):
            found["query"] = f"{value.query.initiator}/{value.query.local}"
            found["edge"], found["sender"], found["receiver"] = value.edge, value.sender, value.receiver
        elif isinstance(value, QueryId):
            found[name] = f"{value.initiator}/{value.local}"
        else:
            found[name] = value
    return found


# --- a query, at its initiator ----------------------------------------------------------------------
class QueryReceived(Event, frozen=True):
    """`sql` is empty unless the configuration allows statements in the log (`log_sql`)."""

    query: QueryId
    caller: str
    sql: str = ""

    def __str__(self) -> str:
        return f"query {self.query}: asked by {self.caller}{': ' if self.sql else ''}{self.sql}"


class QueryPlanned(Event, frozen=True):
    query: QueryId
    plan: str
    fragments: int
    seconds: float

    def __str__(self) -> str:
        count = f"{self.fragments} fragment{'' if self.fragments == 1 else 's'}"
        return f"query {self.query}: planned in {self.seconds:.3f} s, plan {self.plan[:12]}, {count}"


class QueryReplanned(Event, frozen=True):
    """Tables turned out to be others than the plan was made for."""

    query: QueryId
    reason: str

    def __str__(self) -> str:
        return f"query {self.query}: {self.reason}; planning again"


class QueryRefused(Event, frozen=True):
    """Nothing ran: the statement is wrong, or may not run here."""

    query: QueryId
    error: str
    code: int

    def __str__(self) -> str:
        return f"query {self.query}: failed before it began: {self.error}"


class QueryFailed(Event, frozen=True):
    level = logging.WARNING

    query: QueryId
    error: str
    code: int

    def __str__(self) -> str:
        return f"query {self.query}: failed: {self.error}"


class QueryEnded(Event, frozen=True):
    """All receipts are there, or were waited for; `outcome`: "complete" or "failed"."""

    query: QueryId
    outcome: str
    rows: int
    seconds: float
    sent_bytes: int

    def __str__(self) -> str:
        sent = f", {self.sent_bytes} bytes over links" if self.sent_bytes else ""
        return f"query {self.query}: ended, {self.outcome}, {counted(self.rows)}, {self.seconds:.3f} s{sent}"


class ReceiptsMissed(Event, frozen=True):
    level = logging.ERROR

    query: QueryId
    members: tuple[str, ...]

    def __str__(self) -> str:
        return f"query {self.query}: no receipt from {', '.join(self.members)}; it cleans up on its own"


class LeftBehind(Event, frozen=True):
    level = logging.ERROR

    query: QueryId
    left: tuple[str, ...]

    def __str__(self) -> str:
        return f"query {self.query}: not let go of in time: {'; '.join(self.left)}"


# --- a query, at a participant ----------------------------------------------------------------------
class QueryBegun(Event, frozen=True):
    query: QueryId
    member: str
    fragments: tuple[int, ...]

    def __str__(self) -> str:
        return f"query {self.query}: begun here, fragments {', '.join(map(str, self.fragments))}"


class FragmentStarted(Event, frozen=True):
    """Its columns are known: the site's Spark runs it."""

    level = logging.DEBUG

    query: QueryId
    member: str
    fragment: int

    def __str__(self) -> str:
        return f"query {self.query}: fragment {self.fragment} started"


class FragmentDone(Event, frozen=True):
    level = logging.DEBUG

    query: QueryId
    member: str
    fragment: int
    rows: int
    size_bytes: int
    seconds: float

    def __str__(self) -> str:
        made = f"{counted(self.rows)}, {self.size_bytes} bytes, {self.seconds:.3f} s"
        return f"query {self.query}: fragment {self.fragment} done, {made}"


class FragmentsFailed(Event, frozen=True):
    """Something went wrong at this member, and the initiator ends the query."""

    query: QueryId
    member: str
    error: str
    code: int

    def __str__(self) -> str:
        return f"query {self.query}: failed here: {self.error}"


class QueryReleased(Event, frozen=True):
    """Jobs, channels and files of the query are being let go."""

    level = logging.DEBUG

    query: QueryId
    member: str
    reason: str

    def __str__(self) -> str:
        return f"query {self.query}: letting go ({self.reason})"


class ReceiptGiven(Event, frozen=True):
    query: QueryId
    member: str

    def __str__(self) -> str:
        return f"query {self.query}: ended here"


# --- channels ---------------------------------------------------------------------------------------
class ChannelOpened(Event, frozen=True):
    """At its receiver; `next_seq` above 0: rows came over an earlier connection."""

    layer = "wire"
    level = logging.DEBUG

    channel: ChannelId
    next_seq: int

    def __str__(self) -> str:
        return f"{self.channel}: opened" + (f" again, from batch {self.next_seq}" if self.next_seq else "")


class ChannelInterrupted(Event, frozen=True):
    """Its connection was lost; the sender dials again."""

    layer = "wire"

    channel: ChannelId
    reason: str

    def __str__(self) -> str:
        return f"{self.channel}: {self.reason}"


class ChannelResumed(Event, frozen=True):
    layer = "wire"

    channel: ChannelId
    next_seq: int

    def __str__(self) -> str:
        return f"{self.channel}: resumed from batch {self.next_seq}"


class ChannelStalled(Event, frozen=True):
    """Batches wait for credit: the receiver is slower than the sender."""

    layer = "wire"
    level = logging.DEBUG

    channel: ChannelId
    waited_s: float

    def __str__(self) -> str:
        return f"{self.channel}: has waited {self.waited_s:g} s for credit"


class ChannelEnded(Event, frozen=True):
    """At its sender. `outcome`: "finished", "stopped" (the receiver has enough) or "gone" (its query is over)."""

    layer = "wire"
    level = logging.DEBUG

    channel: ChannelId
    outcome: str
    rows: int
    sent_bytes: int
    stalled_s: float

    def __str__(self) -> str:
        return f"{self.channel}: {self.outcome}, {counted(self.rows)}, {self.sent_bytes} bytes sent"


class ChannelFailed(Event, frozen=True):
    """At its receiver: its rows cannot all arrive."""

    layer = "wire"

    channel: ChannelId
    error: str
    code: int

    def __str__(self) -> str:
        return f"{self.channel}: {self.error}"


# --- members and their links ------------------------------------------------------------------------
class MemberStarted(Event, frozen=True):
    layer = "member"

    member: str
    cluster: str
    address: str
    epoch: int

    def __str__(self) -> str:
        return f"member {self.member} of {self.cluster}: up at {self.address}, epoch {self.epoch}"


class MemberStopped(Event, frozen=True):
    layer = "member"

    member: str

    def __str__(self) -> str:
        return f"member {self.member}: stopped"


class PeerConnected(Event, frozen=True):
    layer = "wire"

    member: str
    peer: str

    def __str__(self) -> str:
        return f"{self.member}: {self.peer} is up"


class PeerInterrupted(Event, frozen=True):
    """The control connection broke; it is dialled again, and what was not acked is sent again."""

    layer = "wire"

    member: str
    peer: str
    reason: str

    def __str__(self) -> str:
        return f"{self.member}: {self.peer}: {self.reason}"


class PeerAwaited(Event, frozen=True):
    """It has not been heard of since this member started, and refuses connections: it may be starting too."""

    layer = "wire"

    member: str
    peer: str

    def __str__(self) -> str:
        return f"{self.member}: {self.peer} does not listen yet"


class PeerLost(Event, frozen=True):
    """It is waited for no longer: queries that need it end."""

    layer = "wire"
    level = logging.WARNING

    member: str
    peer: str
    reason: str

    def __str__(self) -> str:
        return f"{self.member}: {self.reason}"


class DialFailed(Event, frozen=True):
    layer = "wire"
    level = logging.DEBUG

    member: str
    peer: str
    reason: str

    def __str__(self) -> str:
        return f"{self.member}: cannot reach {self.peer}: {self.reason}"


class ListeningBegun(Event, frozen=True):
    layer = "wire"

    member: str
    address: str

    def __str__(self) -> str:
        return f"{self.member}: listening at {self.address}"


class ConnectionAccepted(Event, frozen=True):
    layer = "wire"
    level = logging.DEBUG

    member: str
    kind: str
    address: str
    by: str

    def __str__(self) -> str:
        return f"{self.address}: {self.kind} connection of {self.by}"


class ConnectionRefused(Event, frozen=True):
    """The other side was told why, and the connection was closed."""

    layer = "wire"
    level = logging.WARNING

    address: str
    reason: str

    def __str__(self) -> str:
        return f"{self.address}: refused: {self.reason}"


class ConnectionBroken(Event, frozen=True):
    """Its other side went without a word."""

    layer = "wire"

    reason: str

    def __str__(self) -> str:
        return self.reason


class PortTaken(Event, frozen=True):
    layer = "wire"
    level = logging.DEBUG

    channel: ChannelId
    reason: str

    def __str__(self) -> str:
        return f"{self.channel}: {self.reason}"


class DataPortsUsedUp(Event, frozen=True):
    layer = "wire"
    level = logging.WARNING

    channel: ChannelId
    first: int
    last: int

    def __str__(self) -> str:
        ports = f"all data ports from {self.first} to {self.last} are in use"
        return f"{self.channel}: {ports}: it shares the main port"


class ClientDropped(Event, frozen=True):
    layer = "client"

    address: str
    heartbeats: int

    def __str__(self) -> str:
        return f"{self.address}: dropped: silent for {self.heartbeats} heartbeats"


class TableBroken(Event, frozen=True):
    """The site cannot read it: queries that name it fail, others run."""

    layer = "catalog"
    level = logging.WARNING

    table: str
    reason: str

    def __str__(self) -> str:
        return f"table {self.table}: {self.reason}"


class MessageRefused(Event, frozen=True):
    """A peer said what does not fit: nothing comes of it."""

    layer = "member"
    level = logging.WARNING

    sender: str
    message: str
    reason: str

    def __str__(self) -> str:
        return f"from {self.sender}: {self.message}: {self.reason}"


class WorkGivenUp(Event, frozen=True):
    """Something that no query waits for could not be done."""

    layer = "member"
    level = logging.WARNING

    what: str
    reason: str

    def __str__(self) -> str:
        return f"{self.what}: {self.reason}"


class WorkFailed(Event, frozen=True):
    """Nobody expected this: `emit` is given the error, and the log its trace."""

    layer = "member"
    level = logging.ERROR

    what: str

    def __str__(self) -> str:
        return f"{self.what}: unexpected error"

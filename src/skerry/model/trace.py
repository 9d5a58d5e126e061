"""What happens in a member: one typed event a step. The log is written from these.

`emit` hands an event to the logger of its layer, as the record's message, and to whoever listens. A line of the log is
the event's own, or its fields as JSON (member/loglines.py); a counter or a page reads the fields themselves.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from skerry.model.events.channels import (
    ChannelEnded,
    ChannelFailed,
    ChannelInterrupted,
    ChannelOpened,
    ChannelResumed,
    ChannelStalled,
)
from skerry.model.events.event import Cause, Event, cause_of, fields_of, name_of, query_of
from skerry.model.events.links import (
    AccessFileRefused,
    ClientDropped,
    ConnectionAccepted,
    ConnectionBroken,
    ConnectionRefused,
    DataPortsUsedUp,
    DialFailed,
    ListeningBegun,
    LoginRefused,
    PeerAwaited,
    PeerConnected,
    PeerInterrupted,
    PeerLost,
    PortTaken,
)
from skerry.model.events.members import (
    AuditResumed,
    AuditUnwritten,
    DrainBegun,
    DrainDone,
    DrainGivenUp,
    HandlerLeft,
    MemberEnded,
    MemberReady,
    MemberStarted,
    MemberStopped,
    MessageRefused,
    PlannersEnded,
    ProcessLeft,
    StartFailed,
    StopBegun,
    WorkFailed,
    WorkGivenUp,
)
from skerry.model.events.parts import (
    AttemptLost,
    FragmentDone,
    FragmentsFailed,
    FragmentStarted,
    JobsLeft,
    PlanRefused,
    QueryBegun,
    QueryReleased,
    ReaderGone,
    ReceiptGiven,
    SparkFailed,
    SpoolLeft,
    TaskCameLate,
)
from skerry.model.events.queries import (
    LeftBehind,
    QueryAnswered,
    QueryEnded,
    QueryFailed,
    QueryPlanned,
    QueryReceived,
    QueryRefused,
    QueryReplanned,
    ReceiptsMissed,
)
from skerry.model.events.tables import (
    CancelFailed,
    ClocksAreApart,
    JobsKilled,
    KeptRefused,
    KeptUnwritten,
    NotTogether,
    RecycleFailed,
    RestartFailed,
    RulesRead,
    RulesRefused,
    SailRecycled,
    SailUnguarded,
    ScanLeft,
    SparkRestarted,
    StatisticsFailed,
    StatisticsPutOff,
    TableBroken,
    TableUnread,
    WarmUpEnded,
)

__all__ = [
    "AccessFileRefused",
    "AttemptLost",
    "AuditResumed",
    "AuditUnwritten",
    "CancelFailed",
    "Cause",
    "ChannelEnded",
    "ChannelFailed",
    "ChannelInterrupted",
    "ChannelOpened",
    "ChannelResumed",
    "ChannelStalled",
    "ClientDropped",
    "ClocksAreApart",
    "ConnectionAccepted",
    "ConnectionBroken",
    "ConnectionRefused",
    "DataPortsUsedUp",
    "DialFailed",
    "DrainBegun",
    "DrainDone",
    "DrainGivenUp",
    "Event",
    "FragmentDone",
    "FragmentStarted",
    "FragmentsFailed",
    "HandlerLeft",
    "JobsKilled",
    "JobsLeft",
    "KeptRefused",
    "KeptUnwritten",
    "LeftBehind",
    "ListeningBegun",
    "LoginRefused",
    "MemberEnded",
    "MemberReady",
    "MemberStarted",
    "MemberStopped",
    "MessageRefused",
    "NotTogether",
    "PeerAwaited",
    "PeerConnected",
    "PeerInterrupted",
    "PeerLost",
    "PlanRefused",
    "PlannersEnded",
    "PortTaken",
    "ProcessLeft",
    "QueryAnswered",
    "QueryBegun",
    "QueryEnded",
    "QueryFailed",
    "QueryPlanned",
    "QueryReceived",
    "QueryRefused",
    "QueryReleased",
    "QueryReplanned",
    "ReaderGone",
    "ReceiptGiven",
    "ReceiptsMissed",
    "RecycleFailed",
    "RestartFailed",
    "RulesRead",
    "RulesRefused",
    "SailRecycled",
    "SailUnguarded",
    "ScanLeft",
    "SparkFailed",
    "SparkRestarted",
    "SpoolLeft",
    "StartFailed",
    "StatisticsFailed",
    "StatisticsPutOff",
    "StopBegun",
    "TableBroken",
    "TableUnread",
    "TaskCameLate",
    "WarmUpEnded",
    "WorkFailed",
    "WorkGivenUp",
    "cause_of",
    "emit",
    "fields_of",
    "listeners",
    "name_of",
    "query_of",
]

LAYERS = ("catalog", "client", "member", "query", "spark", "wire")

_LOGGERS = {layer: logging.getLogger(f"skerry.{layer}") for layer in LAYERS}

# Called in the thread in which something happened: Spark's jobs have threads of their own.
listeners: list[Callable[[Event], None]] = []


def emit(event: Event, error: BaseException | None = None) -> None:
    """`error`: its trace goes to the log as well, for what nobody expected."""
    logger = _LOGGERS[event.layer]
    if logger.isEnabledFor(event.level):
        if error is None:  # what `log` asks for besides, no line of an event says
            name, level = logger.name, event.level
            logger.handle(logging.getLogRecordFactory()(name, level, "", 0, event, (), None))
        else:
            logger.log(event.level, event, exc_info=error)
    for listener in listeners:
        listener(event)

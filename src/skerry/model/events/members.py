"""What happens to a member itself: its start and its end, and work that failed."""

from __future__ import annotations

import logging

from skerry.model.events.event import Cause, Event
from skerry.model.ids import QueryId


class MemberStarted(Event, frozen=True):
    layer = "member"

    member: str
    cluster: str
    address: str
    epoch: int

    def line(self) -> str:
        return f"member {self.member} of {self.cluster}: up at {self.address}, epoch {self.epoch}"


class MemberStopped(Event, frozen=True):
    layer = "member"

    member: str

    def line(self) -> str:
        return f"member {self.member}: stopped"


class AuditUnwritten(Event, frozen=True):
    """Told once, until a line can be written again."""

    layer = "member"
    level = logging.ERROR

    member: str
    reason: str

    def line(self) -> str:
        return f"member {self.member}: the audit cannot be written (check audit.path): {self.reason}"


class AuditResumed(Event, frozen=True):
    """`lost`: lines that found no room to wait in."""

    layer = "member"

    member: str
    lost: int

    def line(self) -> str:
        return f"member {self.member}: the audit is written again; {self.lost} of its lines are lost"


class MemberReady(Event, frozen=True):
    """Told by `skerry up`, which has started it."""

    layer = "member"

    member: str
    seconds: float

    def line(self) -> str:
        return f"member {self.member}: ready after {self.seconds:.1f} s"


class MemberEnded(Event, frozen=True):
    """Told by `skerry up`: its process is gone before it was told to stop."""

    layer = "member"
    level = logging.ERROR

    member: str
    seconds: float

    def line(self) -> str:
        return f"member {self.member}: ended after {self.seconds:.1f} s"


class PlannersEnded(Event, frozen=True):
    """Their parent is gone: another is started with the next statement."""

    layer = "member"
    level = logging.ERROR

    member: str
    code: int

    def line(self) -> str:
        return f"member {self.member}: its planners ended (code {self.code}), others are started"


class StopBegun(Event, frozen=True):
    """Told by `skerry up`: all members are stopped."""

    layer = "member"

    members: tuple[str, ...]

    def line(self) -> str:
        return f"stopping {', '.join(self.members)}"


class StartFailed(Event, frozen=True):
    """A member, or `skerry up` with all of them, ends with this."""

    layer = "member"
    level = logging.ERROR

    reason: str
    suggestion: str = ""

    def line(self) -> str:
        return self.reason + (f" ({self.suggestion})" if self.suggestion else "")


class DrainBegun(Event, frozen=True):
    """The member was told to stop: it takes no new query."""

    layer = "member"

    member: str
    queries: int
    drain_s: float

    def line(self) -> str:
        bound = f"up to {self.drain_s:g} s for those that run ({self.queries})" if self.queries else "none runs"
        return f"member {self.member}: takes no new query; {bound}"


class DrainDone(Event, frozen=True):
    """The queries that ran have ended."""

    layer = "member"

    member: str
    seconds: float

    def line(self) -> str:
        return f"member {self.member}: no query runs any more, after {self.seconds:.3f} s"


class DrainGivenUp(Event, frozen=True):
    """The time is up, or somebody does not want to wait: these queries fail."""

    layer = "member"
    level = logging.WARNING

    member: str
    queries: tuple[QueryId, ...]

    def line(self) -> str:
        return f"member {self.member}: stops; still running: {', '.join(map(str, self.queries))}"


class ProcessLeft(Event, frozen=True):
    """All is stopped but Spark, which would keep the process."""

    layer = "member"
    level = logging.ERROR

    waited_s: float

    def line(self) -> str:
        return f"this process has not ended in {self.waited_s:g} s, as its Spark still works: it is ended"


class HandlerLeft(Event, frozen=True):
    """A mistake of ours: whoever serves a connection did not end with it."""

    layer = "wire"
    level = logging.ERROR

    member: str
    handler: str

    def line(self) -> str:
        return f"{self.member}: a handler did not end: {self.handler}"


class MessageRefused(Event, frozen=True):
    """A peer said what does not fit: nothing comes of it."""

    layer = "member"
    level = logging.WARNING

    sender: str
    message: str
    reason: Cause

    def line(self) -> str:
        return f"from {self.sender}: {self.message}: {self.reason}"


class WorkGivenUp(Event, frozen=True):
    """Something that no query waits for could not be done."""

    layer = "member"
    level = logging.WARNING

    what: str
    reason: Cause

    def line(self) -> str:
        return f"{self.what}: {self.reason}"


class WorkFailed(Event, frozen=True):
    """Nobody expected this: `emit` is given the error, and the log its trace. `what` names the query, if it has one."""

    layer = "member"
    level = logging.ERROR

    what: str
    query: QueryId | None = None
    fragment: int | None = None

    def line(self) -> str:
        return f"{self.what}: unexpected error"

"""What happens to a query at a member that takes part in it."""

from __future__ import annotations

import logging

from skerry.model.amounts import counted
from skerry.model.events.event import Cause, Event
from skerry.model.ids import QueryId


class QueryBegun(Event, frozen=True):
    """`caller`: the user, as another member that was asked tells it; None where nobody logs in."""

    query: QueryId
    member: str
    fragments: tuple[int, ...]
    caller: str | None = None

    def line(self) -> str:
        whose = f" (for {self.caller})" if self.caller else ""
        return f"query {self.query}: begun here, fragments {', '.join(map(str, self.fragments))}{whose}"


class PlanRefused(Event, frozen=True):
    """The initiator wants something of this member that its gate or its own rules forbid."""

    level = logging.WARNING

    initiator: str
    plan_id: str
    error: Cause

    def line(self) -> str:
        return f"a plan of {self.initiator} is not admitted here: {self.error}"


class FragmentStarted(Event, frozen=True):
    """Its columns are known: the site's Spark runs it."""

    level = logging.DEBUG

    query: QueryId
    member: str
    fragment: int

    def line(self) -> str:
        return f"query {self.query}: fragment {self.fragment} started"


class FragmentDone(Event, frozen=True):
    level = logging.DEBUG

    query: QueryId
    member: str
    fragment: int
    rows: int
    size_bytes: int
    seconds: float

    def line(self) -> str:
        made = f"{counted(self.rows)}, {self.size_bytes:,} bytes, {self.seconds:.3f} s"
        return f"query {self.query}: fragment {self.fragment} done, {made}"


class FragmentsFailed(Event, frozen=True):
    """Something went wrong at this member, and the initiator ends the query."""

    query: QueryId
    member: str
    error: Cause
    fragment: int | None = None

    def line(self) -> str:
        where = "" if self.fragment is None else f", in fragment {self.fragment}"
        return f"query {self.query}: failed here{where}: {self.error}"


class QueryReleased(Event, frozen=True):
    """Jobs, channels and files of the query are being let go."""

    level = logging.DEBUG

    query: QueryId
    member: str
    reason: Cause

    def line(self) -> str:
        return f"query {self.query}: letting go ({self.reason})"


class ReceiptGiven(Event, frozen=True):
    query: QueryId
    member: str

    def line(self) -> str:
        return f"query {self.query}: ended here"


class SparkFailed(Event, frozen=True):
    """A fragment's job: `emit` is given the error. The client gets one sentence, the log the trace."""

    layer = "spark"

    query: QueryId | None
    fragment: int | None
    error: str
    condition: str = ""

    def line(self) -> str:
        query = f"query {self.query}: " if self.query is not None else ""
        fragment = f"fragment {self.fragment}: " if self.fragment is not None else ""
        return f"{query}{fragment}Spark failed: {self.error}{f' [{self.condition}]' if self.condition else ''}"


class AttemptLost(Event, frozen=True):
    """A Spark task that hands over rows went away, and its fragment has failed already."""

    layer = "member"

    query: QueryId
    fragment: int
    reason: Cause

    def line(self) -> str:
        return f"query {self.query}: {self.reason}"  # which names the fragment


class ReaderGone(Event, frozen=True):
    """A Spark task reads an edge no more: it has enough, or its job was ended."""

    layer = "member"
    level = logging.DEBUG

    query: QueryId
    edge: int
    reason: str

    def line(self) -> str:
        return f"query {self.query}: edge {self.edge}: {self.reason}"


class TaskCameLate(Event, frozen=True):
    """A Spark task of a query that has ended was refused: Spark starts some before it hears of the end."""

    layer = "member"
    level = logging.DEBUG

    query: QueryId

    def line(self) -> str:
        return f"query {self.query}: a task came after its end"


class JobsLeft(Event, frozen=True):
    """Spark still works for a query that is over."""

    level = logging.ERROR

    query: QueryId
    fragments: tuple[int, ...]

    def line(self) -> str:
        return f"query {self.query}: Spark has not ended {len(self.fragments)} jobs in time"


class SpoolLeft(Event, frozen=True):
    """A mistake of ours: spools of a query that is over are still counted."""

    layer = "member"
    level = logging.ERROR

    query: QueryId
    size_bytes: int

    def line(self) -> str:
        return f"query {self.query}: {self.size_bytes:,} bytes of spool were not given back"

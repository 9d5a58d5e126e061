"""What happens to a member's tables, their statistics, and the Spark that reads them."""

from __future__ import annotations

import logging

from skerry.model.events.event import Cause, Event


class TableBroken(Event, frozen=True):
    """The site cannot read it: queries that name it fail, others run."""

    layer = "catalog"
    level = logging.WARNING

    table: str
    reason: Cause

    def line(self) -> str:
        return f"table {self.table}: {self.reason}"


class RulesRead(Event, frozen=True):
    """What users may do has changed."""

    layer = "member"

    path: str

    def line(self) -> str:
        return f"the rules in {self.path} hold from now on"


class RulesRefused(Event, frozen=True):
    """The rules that were read before stay in force."""

    layer = "member"
    level = logging.ERROR

    reason: str

    def line(self) -> str:
        return f"the new rules are refused, those before hold on: {self.reason}"


class TableUnread(Event, frozen=True):
    """Why, in Spark's own words: `emit` is given the error. Whoever asked says so in a line of its own."""

    layer = "spark"
    level = logging.DEBUG

    table: str
    error: str

    def line(self) -> str:
        return f"table {self.table}: Spark failed: {self.error}"


class StatisticsFailed(Event, frozen=True):
    """Nobody expected this: `emit` is given the error. Queries do without."""

    layer = "catalog"
    level = logging.ERROR

    table: str

    def line(self) -> str:
        return f"table {self.table}: no statistics"


class StatisticsPutOff(Event, frozen=True):
    layer = "catalog"

    table: str

    def line(self) -> str:
        return f"table {self.table}: no statistics yet, queries kept Spark busy"


class ScanLeft(Event, frozen=True):
    """Spark still looks for statistics that nobody waits for."""

    layer = "catalog"
    level = logging.ERROR

    tag: str

    def line(self) -> str:
        return f"Spark has not ended {self.tag} in time"


class KeptRefused(Event, frozen=True):
    """The file of an earlier start is damaged, too large or cannot be read."""

    layer = "member"
    level = logging.WARNING

    member: str
    reason: str

    def line(self) -> str:
        return f"member {self.member}: kept statistics cannot be used, they are gathered anew: {self.reason}"


class ClocksAreApart(Event, frozen=True):
    """A commit or a read was refused for it, here or by the other member; told once a minute for each."""

    layer = "member"
    level = logging.WARNING

    member: str
    peer: str
    reason: str

    def line(self) -> str:
        return f"member {self.member}: its clock and that of {self.peer} are too far apart to commit: {self.reason}"


class KeptUnwritten(Event, frozen=True):
    layer = "member"
    level = logging.WARNING

    member: str
    reason: str

    def line(self) -> str:
        return f"member {self.member}: statistics are not kept (check state): {self.reason}"


class SparkRestarted(Event, frozen=True):
    """Its jobs have failed, later ones run."""

    layer = "spark"
    level = logging.WARNING

    engine: str
    how: str

    def line(self) -> str:
        return f"{self.engine}'s process has ended ({self.how}) and is started again"


class RestartFailed(Event, frozen=True):
    layer = "spark"
    level = logging.ERROR

    engine: str
    reason: Cause
    pause_s: float

    def line(self) -> str:
        return f"{self.engine} cannot be started, next try in {self.pause_s:g} s: {self.reason}"


class SailRecycled(Event, frozen=True):
    """No job fails: those that run end where they are."""

    layer = "spark"

    pid: int | None

    def line(self) -> str:
        return (
            f"Sail has grown, or goes on after a cancel. A fresh one, {self.pid}, takes over; it ends with its last job"
        )


class RecycleFailed(Event, frozen=True):
    layer = "spark"
    level = logging.WARNING

    reason: Cause
    pause_s: float

    def line(self) -> str:
        return f"Sail has grown and goes on, for no fresh one starts; next try in {self.pause_s:g} s: {self.reason}"


class JobsKilled(Event, frozen=True):
    """Reads of others that ran there are asked again."""

    layer = "spark"
    level = logging.WARNING

    engine: str
    tag: str

    def line(self) -> str:
        return f"{self.engine} did not end {self.tag} after its cancel: its process is killed and started again"


class SailUnguarded(Event, frozen=True):
    """On this system no socket can be kept to one process."""

    layer = "spark"
    level = logging.WARNING

    def line(self) -> str:
        return "Sail's port on loopback is open to every user of this host: this system knows no filter for sockets"


class NotTogether(Event, frozen=True):
    """Small jobs did not end as one; each is run by itself, and says what is wrong with it."""

    layer = "spark"
    level = logging.DEBUG

    tags: tuple[str, ...]
    reason: str  # the kind of error: each one's own run tells the rest

    def line(self) -> str:
        return f"jobs {', '.join(self.tags)} failed together, and are run one by one: {self.reason}"


class WarmUpEnded(Event, frozen=True):
    """Early: the first query takes longer."""

    layer = "spark"

    reason: str

    def line(self) -> str:
        return f"warm-up ended early: {self.reason}"


class CancelFailed(Event, frozen=True):
    """The job's own thread reports what is wrong with this Spark."""

    layer = "spark"

    tag: str
    reason: Cause

    def line(self) -> str:
        return f"cancel {self.tag}: {self.reason}"

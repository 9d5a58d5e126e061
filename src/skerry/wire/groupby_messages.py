"""The messages of an elastic group-by (docs/protocol.md, 16).

Who sent one is known by its connection. Each may come twice, late, or after its answer; none is a difference.
"""

from __future__ import annotations

from skerry.model.ids import GroupById, QueryId
from skerry.model.ranges import RoutingTable
from skerry.wire.messages import Failure, Message


# --- from the manager ----------------------------------------------------------------------------
class Recruit(Message, frozen=True):
    """Become a worker: `giver` will send a share, as lane `epoch` of its channel."""

    group: GroupById
    epoch: int
    giver: str


class Dismiss(Message, frozen=True):
    """To one that was asked to become a worker, and is not needed. It says nothing about rows that it sends."""

    group: GroupById


class HandOver(Message, frozen=True):
    """To the worker whose Split has this `number`, alone: the table that will be; `to` get what is theirs in it."""

    group: GroupById
    number: int
    table: RoutingTable
    to: tuple[str, ...]


class Spill(Message, frozen=True):
    """The answer to the Split of this `number` when nobody is left to recruit."""

    group: GroupById
    number: int


class Redirect(Message, frozen=True):
    """To senders and workers: the table in force. Also said from time to time, so that nobody takes us for lost."""

    group: GroupById
    table: RoutingTable


class Finish(Message, frozen=True):
    """All senders are done, and nothing is being handed over: how much do you hold?"""

    group: GroupById
    round: int
    table: RoutingTable


class Give(Message, frozen=True):
    """All rows are there: give your groups to what follows."""

    group: GroupById


class End(Message, frozen=True):
    """It is over, for all who took part: complete, or why not."""

    group: GroupById
    failure: Failure | None = None


# --- from workers --------------------------------------------------------------------------------
class Recruited(Message, frozen=True):
    group: GroupById
    is_taken: bool


class Split(Message, frozen=True):
    """The `number`-th wish of this worker to give away what lies at `at` and above: about half of its state."""

    group: GroupById
    number: int
    at: int
    groups: int
    size_bytes: int


class Online(Message, frozen=True):
    """The share of this epoch is whole here."""

    group: GroupById
    epoch: int


class Count(Message, frozen=True):
    """The answer to Finish: the state is made of so many rows that were sent."""

    group: GroupById
    round: int
    weight: int


class Given(Message, frozen=True):
    """Whatever follows has all groups of this worker."""

    group: GroupById
    groups: int


class Dismissed(Message, frozen=True):
    group: GroupById


# --- from senders --------------------------------------------------------------------------------
class SenderDone(Message, frozen=True):
    """No more rows: so many were sent, by the member that they were sent to."""

    group: GroupById
    rows: dict[str, int]


# --- from both -----------------------------------------------------------------------------------
class Redirected(Message, frozen=True):
    """The newest epoch that is known here."""

    group: GroupById
    epoch: int
    is_sender: bool


class Failed(Message, frozen=True):
    """No part can be taken any more, because of this."""

    group: GroupById
    failure: Failure


class Ended(Message, frozen=True):
    """Nothing is left here."""

    group: GroupById


# --- to the query's initiator --------------------------------------------------------------------
class Grown(Message, frozen=True):
    """What this member's part of the group-by came to, as EXPLAIN ANALYZE shows it. The manager's has `recruits`
    and `splits`; `epoch` is the newest table that its worker knew, 0 if it was none."""

    query: QueryId
    member: str
    fragment: int
    recruits: int
    epoch: int
    splits: int
    rows_forwarded: int
    spilled_bytes: int


FromManager = Recruit | Dismiss | HandOver | Spill | Redirect | Finish | Give | End
ToManager = Recruited | Split | Online | Count | Given | Dismissed | SenderDone | Redirected | Failed | Ended
GroupByMessage = FromManager | ToManager

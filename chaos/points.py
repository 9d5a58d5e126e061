"""The twenty moments at which a member is killed or stopped, and where each of them happens."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Where(Enum):
    INITIATOR = "initiator"
    PARTICIPANT = "participant"  # another one than the initiator
    RUNNER = "runner"  # a participant, and no query has begun
    BYSTANDER = "bystander"  # a member that the query does not need


@dataclass(frozen=True)
class Point:
    """`hook` is what the member calls it (skerry/model/points.py), `count` which time it is meant."""

    name: str
    where: Where
    hook: str
    count: int = 1
    cancels: bool = False  # the client ends the query itself


def _at(where: Where, *names: str) -> tuple[Point, ...]:
    return tuple(Point(name, where, name) for name in names)


POINTS = (
    *_at(Where.INITIATOR, "query received", "execute sent", "columns known"),
    Point("first page", Where.INITIATOR, "page"),
    Point("half of the pages", Where.INITIATOR, "page", 3),
    *_at(Where.INITIATOR, "last page", "channel accepted", "grant withheld"),
    Point("cancel sent", Where.INITIATOR, "cancel sent", cancels=True),
    *_at(Where.PARTICIPANT, "execute received", "plan requested", "fragment starting", "job running", "settling"),
    Point("first batch sent", Where.PARTICIPANT, "batch sent"),
    Point("half of the batches sent", Where.PARTICIPANT, "batch sent", 10),
    *_at(Where.PARTICIPANT, "last batch sent", "receipt owed"),
    *_at(Where.RUNNER, "idle", "member starting"),
)

# Beside the twenty: nobody who asks for something else may notice.
BYSTANDER = Point("bystander", Where.BYSTANDER, "bystander")

"""What an event is: plain fields, a line for a person, and the same without what may quote a statement."""

from __future__ import annotations

import functools
import logging
import re
from typing import ClassVar, Self

import msgspec

from skerry.model.errors import BY_CODE, InternalError, SkerryError
from skerry.model.ids import ChannelId, QueryId


class Cause(msgspec.Struct, frozen=True):
    """Why something failed. `may_quote`: the text may hold a statement, or values of it, of parameters or of rows.

    `place` is where in the statement; `site` who reported it; `condition` Spark's name for it, which quotes nothing.
    """

    text: str
    code: int
    place: str = ""
    site: str = ""
    may_quote: bool = True
    condition: str = ""

    @property
    def kind(self) -> str:
        return BY_CODE[self.code].__name__ if self.code in BY_CODE else ""

    def withheld(self) -> Cause:
        """The same without its own words."""
        site, place = f" of {self.site}" if self.site else "", f" at {self.place}" if self.place else ""
        condition = f" [{self.condition}]" if self.condition else ""
        text = f"{self.kind} (code {self.code}){site}{place}{condition}" if self.code else "its reason is withheld"
        return msgspec.structs.replace(self, text=text, may_quote=False)

    def __str__(self) -> str:
        return self.text


def cause_of(error: BaseException) -> Cause:
    """The lines of the statement that a message ends with stay out: `place` says as much."""
    if not isinstance(error, SkerryError):
        return Cause(f"{type(error).__name__}: {error}", InternalError.code)
    text = error.message.partition("\n")[0] if error.place else error.message
    return Cause(text, error.code, error.place, error.member, error.may_quote, error.condition)


class Event(msgspec.Struct, frozen=True):
    """Something that has happened; subclasses are named in the past tense."""

    layer: ClassVar[str] = "query"
    level: ClassVar[int] = logging.INFO

    def line(self) -> str:
        """All of it, for a person."""
        raise NotImplementedError

    def discreet(self) -> Self:
        """The event without words that may quote a statement."""
        withheld = {name: cause.withheld() for name in _may_quote(type(self)) if _quotes(cause := getattr(self, name))}
        return msgspec.structs.replace(self, **withheld) if withheld else self

    def __str__(self) -> str:
        """For whoever does not know what may be told (`log_sql`)."""
        return self.discreet().line()


@functools.cache
def _may_quote(kind: type[Event]) -> tuple[str, ...]:
    """Fields that may hold a Cause: all but those of plain types."""
    return tuple([field.name for field in msgspec.structs.fields(kind) if field.type not in _PLAIN])


_PLAIN = (str, int, float, bool, QueryId, ChannelId)


def _quotes(value: object) -> bool:
    return isinstance(value, Cause) and value.may_quote


def name_of(event: Event) -> str:
    """`QueryPlanned` is called query_planned where it is counted or searched for."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", type(event).__name__).lower()


def query_of(event: Event) -> QueryId | None:
    """The query that it is about, if it is about one."""
    channel: ChannelId | None = getattr(event, "channel", None)
    query: QueryId | None = channel.query if channel is not None else getattr(event, "query", None)
    return query


def fields_of(event: Event) -> dict[str, object]:
    """The fields as plain values; ids are written in full, a channel names its query, a cause its kind and code."""
    found: dict[str, object] = {}
    for name in event.__struct_fields__:
        match getattr(event, name):
            case None:
                pass
            case ChannelId() as channel:
                found["query"] = _whole(channel.query)
                found["edge"], found["sender"], found["receiver"] = channel.edge, channel.sender, channel.receiver
            case QueryId() as query:
                found[name] = _whole(query)
            case Cause() as cause:
                found[name] = cause.text
                found |= {"kind": cause.kind, "code": cause.code} if cause.code else {}
                found |= {"place": cause.place} if cause.place else {}
                found |= {"condition": cause.condition} if cause.condition else {}
            case tuple() as several:
                found[name] = [_whole(each) if isinstance(each, QueryId) else each for each in several]
            case value:
                found[name] = value
    return found


def _whole(query: QueryId) -> str:
    return f"{query.initiator}/{query.local}"

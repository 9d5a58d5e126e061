"""A member's log: a line for each event (model/trace.py), as text or as JSON.

Control characters are written out here and nowhere else: no name, value or error's text makes a line of its own.
"""

from __future__ import annotations

import json
import logging
import math
import re
import traceback
from datetime import UTC, datetime

from skerry.model.ids import AGAIN, QueryId
from skerry.model.limits import ERROR_CHAIN, LOGGED_CALLERS, LOGGED_CALLERS_ENDED
from skerry.model.trace import (
    Event,
    QueryAnswered,
    QueryBegun,
    QueryEnded,
    QueryPlanned,
    QueryReceived,
    QueryRefused,
    QueryReleased,
    fields_of,
    name_of,
    query_of,
)

# What a terminal would obey, or a reader of lines take for an end: names and values of a query come to the log.
# The last ones change the direction of what follows, so that a line reads as another.
_C1 = (*range(0x7F, 0xA0), 0x2028, 0x2029, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
_IN_TEXT = {code: f"\\x{code:02x}" for code in range(32) if chr(code) not in "\t"}
_IN_TEXT |= {ord("\n"): "\\n", ord("\r"): "\\r", **{code: f"\\u{code:04x}" for code in _C1}}
_IN_JSON = {code: f"\\u{code:04x}" for code in _C1}  # json writes those below 32 so
# A byte of a file's name that is no UTF-8: half a character, which neither UTF-8 nor a strict reader of JSON takes.
_IN_TEXT |= {code: f"\\u{code:04x}" for code in range(0xD800, 0xE000)}
_IN_JSON |= {code: f"\\\\u{code:04x}" for code in range(0xD800, 0xE000)}

# Where asyncio's first line begins to show objects: "Exception in callback cb(1)(<Task finished … exception=…>)".
_REPR = re.compile(r"[(<]| at ")

_TRACE_MARK = "  | "  # before each line of a trace, which so is none of the log


def plain(text: str) -> str:
    """One line: the text with its control characters written out; tabs stay."""
    return text if text.isprintable() else text.translate(_IN_TEXT)  # nothing that is written out is printable


def plain_trace(trace: str) -> str:
    """Several lines, each marked as no line of the log."""
    return "\n".join(_TRACE_MARK + plain(line) for line in trace.rstrip("\n").split("\n"))


class Callers:
    """Who asked each query, for every line about it. Those that run are kept apart from those that have ended."""

    def __init__(self) -> None:
        self._running: dict[QueryId, str] = {}
        self._ended: dict[QueryId, str] = {}

    def of(self, event: Event | None) -> str:
        """The empty text when it is about no query. Members that only take part know the user, and no address."""
        query = query_of(event) if event is not None else None
        if query is None:
            return ""
        asked = QueryId(query.initiator, query.local.partition(AGAIN)[0])
        match event:
            case QueryReceived():
                _put(self._running, asked, event.caller, LOGGED_CALLERS)
            case QueryBegun() if event.caller:
                _put(self._running, asked, event.caller, LOGGED_CALLERS)
            case QueryReleased() if event.member != query.initiator and asked in self._running:
                _put(self._ended, asked, self._running.pop(asked), LOGGED_CALLERS_ENDED)
            case QueryPlanned() if asked in self._ended:  # once more: its tables had changed
                _put(self._running, asked, self._ended.pop(asked), LOGGED_CALLERS)
            # Its last lines may come later, or another attempt.
            case QueryAnswered() | QueryEnded() | QueryRefused() if asked in self._running:
                _put(self._ended, asked, self._running.pop(asked), LOGGED_CALLERS_ENDED)
        return self._running.get(asked) or self._ended.get(asked, "")


def _put(callers: dict[QueryId, str], query: QueryId, caller: str, most: int) -> None:
    callers[query] = caller
    if len(callers) > most:
        del callers[next(iter(callers))]


class _Lines(logging.Formatter):
    """`logs_sql`: may the log hold statements and values (`log_sql`)?"""

    def __init__(self, *, logs_sql: bool = False) -> None:
        super().__init__()
        self._logs_sql = logs_sql
        self._callers = Callers()

    def _event(self, record: logging.LogRecord) -> Event | None:
        if not isinstance(record.msg, Event):
            return None
        return record.msg if self._logs_sql else record.msg.discreet()

    def _text(self, record: logging.LogRecord, event: Event | None, caller: str) -> str:
        if event is not None:
            tells = isinstance(event, QueryReceived) or (isinstance(event, QueryBegun) and event.caller)
            return event.line() if tells or not caller else f"{event.line()} (for {caller})"
        # Another library's: its first line says what it is about, the next ones hold reprs of all kinds.
        text = record.getMessage()
        if self._logs_sql:
            return text
        first = text.partition("\n")[0]
        return _REPR.split(first, maxsplit=1)[0].rstrip() if record.name == "asyncio" else first

    def _trace(self, record: logging.LogRecord) -> str:
        if not record.exc_info or record.exc_info[1] is None:
            return ""
        error = record.exc_info[1]
        return "".join(traceback.format_exception(error)) if self._logs_sql else _discreet_trace(error)


class TextLines(_Lines):
    """One line each; a trace follows it, in lines that are marked."""

    def __init__(self, *, logs_sql: bool = False) -> None:
        super().__init__(logs_sql=logs_sql)
        self._second = (0, "")

    def format(self, record: logging.LogRecord) -> str:
        event = self._event(record)
        text = self._text(record, event, self._callers.of(event))
        line = plain(f"{self._time(record)} {record.levelname:<7} {record.name} {text}")
        trace = self._trace(record)
        return f"{line}\n{plain_trace(trace)}" if trace else line

    def _time(self, record: logging.LogRecord) -> str:
        """As Python's own formatter has it, which asks for the time of day anew for each line."""
        second = int(record.created)
        if self._second[0] != second:
            self._second = (second, self.formatTime(record)[:-4])
        return f"{self._second[1]},{int(record.msecs):03d}"


class JsonLines(_Lines):
    """One object each: time, level, member, layer, event, its fields, and the same text; a trace is one field."""

    def __init__(self, member: str = "", *, logs_sql: bool = False) -> None:
        super().__init__(logs_sql=logs_sql)
        self._member = member

    def format(self, record: logging.LogRecord) -> str:
        event = self._event(record)
        caller = self._callers.of(event)
        line: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "member": self._member,
            "layer": record.name.removeprefix("skerry."),
            "event": name_of(event) if event is not None else "note",
            **({name: _number(value) for name, value in fields_of(event).items()} if event is not None else {}),
        }
        if caller:
            line["caller"] = caller
        line["text"] = self._text(record, event, caller)
        if trace := self._trace(record):
            line["trace"] = trace
        return json.dumps(line, ensure_ascii=False, default=str).translate(_IN_JSON)


def record_of(event: Event) -> logging.LogRecord:
    """For whoever writes lines without a logger."""
    return logging.LogRecord(f"skerry.{event.layer}", event.level, "", 0, event, (), None)


def _number(value: object) -> object:
    """JSON has no NaN and no infinity."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _discreet_trace(error: BaseException) -> str:
    """Where it was raised, and as what; the words of an exception may quote anything."""
    chain: list[str] = []
    following: BaseException | None = error
    while following is not None and len(chain) < ERROR_CHAIN:
        frames = "".join(traceback.format_tb(following.__traceback__))
        kind = type(following)
        chain.append(f"Traceback (most recent call last):\n{frames}{kind.__module__}.{kind.__qualname__}\n")
        hidden = following.__suppress_context__
        following = following.__cause__ or (None if hidden else following.__context__)
    return "\nfollowed by\n\n".join(reversed(chain))

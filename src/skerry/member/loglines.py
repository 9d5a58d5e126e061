"""A member's log: a line for each event (model/trace.py), as text or as JSON."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from typing import Any

from skerry.model.trace import Event, fields_of, name_of

# What a terminal would obey, or a reader of lines take for an end: names and values of a query come to the log.
_C1 = (*range(0x7F, 0xA0), 0x2028, 0x2029)
_IN_TEXT = {code: f"\\x{code:02x}" for code in range(32) if chr(code) not in "\t\n"}
_IN_TEXT |= {ord("\r"): "\\r", **{code: f"\\u{code:04x}" for code in _C1}}
_IN_JSON = {code: f"\\u{code:04x}" for code in _C1}  # json writes those below 32 so


def plain(text: str) -> str:
    """The text with its control characters written out; tabs and newlines stay."""
    return text.translate(_IN_TEXT)


class TextLines(logging.Formatter):
    """One line each. A newline inside a message is written as `\\n`, so that no message makes a line of its own."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)-7s %(name)s %(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:
        return plain(super().formatMessage(record)).replace("\n", "\\n")

    def formatException(self, ei: Any) -> str:
        return plain(super().formatException(ei))


class JsonLines(logging.Formatter):
    """One object each: time, level, member, layer, event, its fields, and the same text; a trace is one field."""

    def __init__(self, member: str = "") -> None:
        super().__init__()
        self._member = member

    def format(self, record: logging.LogRecord) -> str:
        event = record.msg if isinstance(record.msg, Event) else None
        line: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "member": self._member,
            "layer": record.name.removeprefix("skerry."),
            "event": name_of(event) if event is not None else "note",
            **(fields_of(event) if event is not None else {}),
            "text": record.getMessage(),
        }
        if record.exc_info:
            line["trace"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False, default=str).translate(_IN_JSON)

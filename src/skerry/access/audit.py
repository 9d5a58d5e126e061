"""The lines of the audit: who asked for what, and what came of it (docs/operations.md). Pure."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import msgspec

from skerry.model.caller import Caller
from skerry.model.errors import SqlError
from skerry.model.ids import QueryId
from skerry.model.lexemes import lexemes
from skerry.model.limits import AUDIT_REFUSALS, AUDIT_REFUSALS_S, AUDIT_STATEMENT_CHARS
from skerry.model.progress import LinkBytes

TEXT, FINGERPRINT = "text", "fingerprint"
STATEMENTS = (TEXT, FINGERPRINT)
_ID_CHARS = 200
_LINE_BYTES = 512  # about what a line takes beside its statement


class Line(msgspec.Struct, frozen=True, kw_only=True, tag_field="event"):
    """`time`: in UTC, as text. `user` is "" for a caller that has shown nothing."""

    time: str
    user: str = ""
    roles: tuple[str, ...] = ()
    door: str = ""
    address: str = ""


class _OfStatement(Line, frozen=True, kw_only=True):
    query: str
    statement: str


class Begun(_OfStatement, frozen=True, kw_only=True, tag="begun"):
    """Written before the statement runs, where an audit is required."""


class Ended(_OfStatement, frozen=True, kw_only=True, tag="statement"):
    """`time` is when it came. outcome: "done", "failed", "cancelled", or "refused" when nothing of it ran."""

    tables: tuple[str, ...]
    rows: int
    links: tuple[LinkBytes, ...]
    outcome: str
    code: int
    seconds: float


class Prepared(Line, frozen=True, kw_only=True, tag="prepare"):
    statement: str


class Attached(Line, frozen=True, kw_only=True, tag="attach"):
    """Somebody asked for the rows of a query that was begun before; `code`: of the error, 0 when it got them."""

    query: str
    code: int


class Stopped(Line, frozen=True, kw_only=True, tag="cancel"):
    """Somebody ended a query of another session; `code`: of the error, 0 when it did."""

    query: str
    code: int


class TookPart(Line, frozen=True, kw_only=True, tag="part"):
    """Another member asked for rows of these tables, for whom it says; it has the statement."""

    initiator: str
    query: str
    tables: tuple[str, ...]


class Refused(Line, frozen=True, kw_only=True, tag="refused"):
    """A connection or a login was refused. `more`: so many others were since the line before, and have none."""

    code: int
    more: int


class Lost(Line, frozen=True, kw_only=True, tag="lost"):
    """So many lines could not be written, and were let go of."""

    lines: int


def who(caller: Caller) -> dict[str, Any]:
    """The fields of a line that say who asked, and from where."""
    return {"user": caller.name, "roles": caller.roles, "door": caller.door, "address": caller.address}


def written(query: QueryId) -> str:
    """The whole id, as `skerry cancel` takes it; that of a statement which was refused for it may have any length."""
    return f"{query.initiator}/{query.local}"[:_ID_CHARS]


def size_of(line: Line) -> int:
    """About the bytes that it holds in memory."""
    return _LINE_BYTES + len(getattr(line, "statement", ""))


def encode(line: Line, statements: str) -> bytes:
    """One line of plain ASCII: whatever stands in a name or a statement ends no line, and moves no cursor."""
    found: dict[str, object] = {}
    for name, value in msgspec.to_builtins(line).items():
        match name:
            case "statement" if statements == FINGERPRINT:
                found["fingerprint"] = fingerprint(value)
            case "statement":
                found["statement"] = value[:AUDIT_STATEMENT_CHARS]
                found |= {"statement_chars": len(value)} if len(value) > AUDIT_STATEMENT_CHARS else {}
            case "links":
                found["links"] = [{"from": link[0], "to": link[1], "bytes": link[2]} for link in value]
            case _:
                found[name] = value
    return json.dumps(found, ensure_ascii=True, allow_nan=False).encode() + b"\n"


def fingerprint(statement: str) -> str:
    """The same for statements that differ in values, comments, spaces and case alone: nobody can guess values by it.

    A text that is no SQL may hold a value anywhere, so all of those are one.
    """
    try:
        parts = [
            "?" if each.kind in ("string", "hex", "number") else f"{each.kind} {each.value.lower()}"
            for each in lexemes(statement[:AUDIT_STATEMENT_CHARS])
            if each.kind != "hint"
        ]
    except SqlError:
        return "unreadable"
    return hashlib.sha256("\n".join(parts).encode("utf-8", "backslashreplace")).hexdigest()[:32]


class Refusals:
    """Strangers must not fill the audit: so many lines in so much time, then only their number."""

    def __init__(self) -> None:
        self._since = 0.0
        self._written = 0
        self._more = 0

    def take(self, now: float) -> int | None:
        """None: no line of its own. Otherwise how many have had none since the last."""
        if now - self._since >= AUDIT_REFUSALS_S:
            self._since, self._written = now, 0
        if self._written >= AUDIT_REFUSALS:
            self._more += 1
            return None
        self._written += 1
        more, self._more = self._more, 0
        return more

"""What PEP 249 asks of a module: its exceptions, type objects and constructors.

Exception
├── Warning
└── Error                   has code, member and suggestion of the SkerryError it stands for
    ├── InterfaceError      the library was used wrongly (a closed cursor, nothing executed)
    └── DatabaseError
        ├── DataError           a value has no Python form
        ├── OperationalError    SiteError, Overloaded, PeerError, Cancelled, AccessDenied, RolledBack
        │   └── OutcomeUnknown  OutcomeUnknown: the one error after which something may have been written
        ├── IntegrityError
        ├── InternalError       InternalError
        ├── ProgrammingError    UserError, SqlError, ConfigError
        └── NotSupportedError
"""

from __future__ import annotations

import datetime
from typing import Any

from skerry.model import errors

apilevel = "2.0"
threadsafety = 2  # threads may share the module and connections; a cursor has one user (but for cancel and status)
paramstyle = "qmark"  # with a mapping, `:name` works too


class Warning(Exception):
    """Never raised by Skerry; PEP 249 asks for it."""


class Error(Exception):
    """Any error of Skerry. `code` is the wire code (0 when no member was involved)."""

    def __init__(self, message: str, *, code: int = 0, member: str = "", suggestion: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.member = member
        self.suggestion = suggestion
        if suggestion:  # tracebacks and logs show it; `str` is the message alone
            self.add_note(f"hint: {suggestion}")


class InterfaceError(Error):
    pass


class DatabaseError(Error):
    pass


class DataError(DatabaseError):
    pass


class OperationalError(DatabaseError):
    pass


class OutcomeUnknown(OperationalError):
    """Whether the statement was carried out is not known. `execute(…, query_id=cursor.query_id)` tells."""


class IntegrityError(DatabaseError):
    pass


class InternalError(DatabaseError):
    pass


class ProgrammingError(DatabaseError):
    pass


class NotSupportedError(DatabaseError):
    pass


# The first that fits counts: a cancelled query is no mistake in its text.
_CLASSES: tuple[tuple[type[errors.SkerryError], type[Error]], ...] = (
    (errors.Cancelled, OperationalError),
    (errors.AccessDenied, OperationalError),
    (errors.KeyExists, IntegrityError),
    (errors.RolledBack, OperationalError),
    (errors.UserError, ProgrammingError),
    (errors.OutcomeUnknown, OutcomeUnknown),
    (errors.SiteError, OperationalError),
    (errors.Overloaded, OperationalError),
    (errors.PeerError, OperationalError),
    (errors.InternalError, InternalError),
    (errors.SkerryError, DatabaseError),
)


def translate(error: errors.SkerryError) -> Error:
    """The PEP 249 form of an error; its message is not changed."""
    kind = next(public for own, public in _CLASSES if isinstance(error, own))
    return kind(error.message, code=error.code, member=error.member, suggestion=error.suggestion)


class TypeObject:
    """Equal to the `type_code` of every column whose Spark type is one of `names`."""

    def __init__(self, *names: str) -> None:
        self.names = frozenset(names)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, str):
            return other.partition("(")[0].partition("<")[0].strip().lower() in self.names
        return self is other

    def __hash__(self) -> int:
        return hash(self.names)

    def __repr__(self) -> str:
        return f"TypeObject({', '.join(sorted(self.names))})"


STRING = TypeObject("string", "char", "varchar")
BINARY = TypeObject("binary")
NUMBER = TypeObject(
    "tinyint", "smallint", "int", "integer", "bigint", "byte", "short", "long", "float", "real", "double", "decimal"
)
DATETIME = TypeObject("date", "time", "timestamp", "timestamp_ntz", "timestamp_ltz")
ROWID = TypeObject()

Date = datetime.date
Time = datetime.time
Timestamp = datetime.datetime
Binary = bytes


def DateFromTicks(ticks: float) -> datetime.date:
    return datetime.date.fromtimestamp(ticks)


def TimeFromTicks(ticks: float) -> datetime.time:
    return datetime.datetime.fromtimestamp(ticks).time()


def TimestampFromTicks(ticks: float) -> datetime.datetime:
    return datetime.datetime.fromtimestamp(ticks)


Description = tuple[str, str, None, None, int | None, int | None, None]
Row = tuple[Any, ...]

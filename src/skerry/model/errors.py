"""Errors: one tree, each class with its code on the wire.

SkerryError
├── UserError          the statement, a parameter or the configuration is wrong
│   ├── SqlError       the SQL text, with the place in it
│   ├── ConfigError    skerry.yaml, with the place in it
│   ├── Cancelled      someone asked for the end of the query
│   ├── KeyExists      a row with this primary key is there already
│   ├── RolledBack     the transaction is over, and nothing of it was written; begun again it may succeed
│   └── AccessDenied   nobody knows who asks: the user, password, token or certificate is wrong
├── PeerError          the other side of a connection broke the protocol
│   └── VersionError   no protocol version in common
├── SiteError          a site is down, or its Spark failed; names the site
│   ├── StaleSchema    a table's columns changed since the plan was made
│   ├── Unaudited      a site takes no new query, for it cannot write the audit that it must
│   ├── SiteStopping   a site takes no new query, for it was told to stop
│   ├── EngineEnded    the process of a site's Spark ended while it ran the query
│   ├── OutcomeUnknown nobody can tell whether the statement was carried out; said again by its id, it is told
│   └── ClocksApart    a site's clock is too far ahead of another's for them to write, or read, together
├── Overloaded         a bound was reached (memory, disk, slots, time)
│   └── TimedOut       the query's own deadline
└── InternalError      a mistake of ours
"""

from __future__ import annotations

from typing import ClassVar, TypeVar


class SkerryError(Exception):
    """`message` says what happened, where, and what to do; `member` says who noticed.

    `may_quote`: the message may hold a statement or values, which a log may not (`log_sql`). `place`: in the statement.
    `condition`: Spark's name for it. `transaction`: "" if the client's transaction ended with it.
    """

    code: ClassVar[int] = 1
    may_quote: bool = True
    place: str = ""
    condition: str = ""
    transaction: str | None = None

    def __init__(self, message: str, *, member: str = "", suggestion: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.member = member
        self.suggestion = suggestion


class UserError(SkerryError):
    code = 100


class SqlError(UserError):
    code = 101


class ConfigError(UserError):
    code = 102


class Cancelled(UserError):
    code = 103
    may_quote = False


class AccessDenied(UserError):
    code = 104
    may_quote = False


class KeyExists(UserError):
    code = 105


class RolledBack(UserError):
    code = 106
    may_quote = False


class PeerError(SkerryError):
    code = 200
    may_quote = False


class VersionError(PeerError):
    code = 201


class SiteError(SkerryError):
    code = 300
    may_quote = False


class StaleSchema(SiteError):
    code = 301


class SiteStopping(SiteError):
    code = 302


class Unaudited(SiteError):
    code = 303


class EngineEnded(SiteError):
    code = 304


class OutcomeUnknown(SiteError):
    code = 305


class ClocksApart(SiteError):
    code = 306


class Overloaded(SkerryError):
    code = 400
    may_quote = False


class TimedOut(Overloaded):
    code = 401


class InternalError(SkerryError):
    code = 500


_E = TypeVar("_E", bound=SkerryError)


def unsure(query: object, error: SkerryError) -> OutcomeUnknown:
    """What is said of a statement that may have been carried out, for all that its error tells."""
    if isinstance(error, OutcomeUnknown):
        return error
    unknown = OutcomeUnknown(
        f"whether query {query} was carried out is not known: {error.message}",
        member=error.member,
        suggestion="execute it again with query_id=cursor.query_id: it is told, and nothing is written twice",
    )
    unknown.may_quote = error.may_quote
    return unknown


def _tree(cls: type[SkerryError]) -> list[type[SkerryError]]:
    return [cls, *(kind for child in cls.__subclasses__() for kind in _tree(child))]


BY_CODE: dict[int, type[SkerryError]] = {kind.code: kind for kind in _tree(SkerryError)}


def from_code(code: int, message: str, *, member: str = "", suggestion: str = "") -> SkerryError:
    """The error a peer reported; a code from a newer release maps to its hundred's class."""
    kind = BY_CODE.get(code) or BY_CODE.get(code // 100 * 100) or SkerryError
    error = kind(message, member=member, suggestion=suggestion)
    # Spark's words come as errors of a site, and nobody says over the wire whose words they are.
    error.may_quote = kind.may_quote or kind in (PeerError, SiteError)
    return error


def quoting(error: _E) -> _E:
    """The error, marked: its words are not all ours."""
    error.may_quote = True
    return error

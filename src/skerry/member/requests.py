"""What callers ask of a member, and what they are answered. Doors make the one and tell the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import msgspec

from skerry.model.caller import Caller
from skerry.model.errors import SkerryError
from skerry.model.ids import QueryId
from skerry.model.progress import FragmentProgress, LinkBytes, Memory
from skerry.model.results import Page, Schema, Value
from skerry.model.rights import EVERYTHING, Rights
from skerry.model.variables import Variable


class PageSize(msgspec.Struct, frozen=True):
    """At most so many rows and bytes; 0: as the member's limits say."""

    rows: int = 0
    size_bytes: int = 0


class RunStatement(msgspec.Struct, frozen=True):
    """`expected`: "any", "rows" or "count". `options`: see docs/protocol.md, 5.4. `timeout_s` 0: the member's limit.

    `share`: whose share of the member it takes; the service says so, whatever a door said.
    `rights`: of whoever asks; the service says them, whatever a door said.
    `more`: further values for the same markers, all in one statement. `seen_ts`: reads are no older than this commit.
    `transaction`: that it belongs to, "" for none. `user`, `session`: whose it is; the service says so, too.
    """

    query: QueryId
    sql: str
    parameters: list[Value] | dict[str, Value] = []
    timeout_s: float = 0.0
    schema_name: str = ""
    expected: str = "any"
    options: Mapping[str, str] = {}
    size: PageSize = PageSize()
    share: str = ""
    rights: Rights = EVERYTHING
    variables: Mapping[str, Variable] = {}
    more: Sequence[list[Value] | dict[str, Value]] = ()
    seen_ts: int = 0
    transaction: str = ""
    user: str = ""
    session: str = ""


class Asked(msgspec.Struct, frozen=True):
    """A statement on its way to its line in the audit. `time`: as that has it; `started_at`: of the loop's clock."""

    caller: Caller
    query: QueryId
    sql: str
    time: str
    started_at: float


class PrepareStatement(msgspec.Struct, frozen=True):
    sql: str
    schema_name: str = ""
    share: str = ""
    rights: Rights = EVERYTHING
    variables: Mapping[str, Variable] = {}


class GivePage(msgspec.Struct, frozen=True):
    """A page of a query that runs. To attach is to ask for one that somebody else may have begun."""

    query: QueryId
    number: int
    size: PageSize = PageSize()


class TakeRows(msgspec.Struct, frozen=True):
    """Rows for a statement that loads, in the order of their numbers; the first come with the schema of all."""

    query: QueryId
    number: int
    schema: bytes
    rows: memoryview
    is_last: bool


class RowsAnswer(msgspec.Struct, frozen=True):
    """The columns of a result and a page of it, which for a new query is the first. More pages are fetched.

    `schema_name`: what names without a schema mean from now on; None where that stays.
    """

    schema: Schema
    page: Page
    schema_name: str | None = None
    warnings: tuple[str, ...] = ()

    @property
    def is_last(self) -> bool:
        """Nothing follows it."""
        return self.page.is_last


class CountAnswer(msgspec.Struct, frozen=True):
    """So many rows were changed; there is nothing to fetch. `variables`: set, or with None dropped, for the caller.

    `commit_ts`: when rows of tables of our own were committed. `transaction`: that has begun, "" if one is over.
    """

    rows: int
    warnings: tuple[str, ...] = ()
    variables: Mapping[str, Variable | None] = {}
    commit_ts: int = 0
    transaction: str | None = None
    is_last: ClassVar[bool] = True


Answer = RowsAnswer | CountAnswer


class Status(msgspec.Struct, frozen=True):
    """state: "unknown", "planning", "queued (3rd)", "running", "done", "failed" or "cancelled"."""

    state: str
    seconds: float
    fragments: tuple[FragmentProgress, ...] = ()
    links: tuple[LinkBytes, ...] = ()
    plan: str = ""
    memory: tuple[Memory, ...] = ()
    error: SkerryError | None = None


UNKNOWN = Status("unknown", 0.0)

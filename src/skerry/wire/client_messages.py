"""The messages of client connections (docs/protocol.md, 5), in the field order of that document."""

from __future__ import annotations

import msgspec

from skerry.model.ids import QueryId
from skerry.model.progress import FragmentProgress, LinkBytes, MemberState, Memory, QueryInfo
from skerry.model.results import Page, Parameter, Schema, Value
from skerry.model.variables import Variable
from skerry.wire.messages import Failure, Message


class ClientExecute(Message, frozen=True):
    """expected: "any", "rows" or "count". options: see docs/protocol.md, 5.4. variables: of this client's session.

    more: further values for the same markers. The statement does for all of them what it does for one, or nothing.
    seen_ts: the greatest `commit_ts` that the client was told: what it reads now is no older. transaction: the one that
    the statement belongs to, as the answer to its BEGIN named it; "" for none.
    """

    request: int
    query: QueryId
    sql: str
    parameters: list[Value] | dict[str, Value]
    timeout_s: float
    page_rows: int
    schema_name: str
    expected: str = "any"
    page_bytes: int = 0
    options: dict[str, str] = msgspec.field(default_factory=dict)
    variables: dict[str, Variable] = msgspec.field(default_factory=dict)
    more: list[list[Value] | dict[str, Value]] = msgspec.field(default_factory=list)
    seen_ts: int = 0
    transaction: str = ""


class ClientResult(Message, frozen=True):
    """Either schema and first page, or an update count, or an error.

    `warnings`: the statement is right, but perhaps not what was meant. `schema_name`: USE has set it, for what this
    client asks from now on; None where it stays. `variables`: those that the statement has set; None for one that it
    has dropped. `commit_ts`: of a write to tables of our own. `transaction`: one that has begun, "" if the client's is
    over, also with an error; None where nothing changes.
    """

    request: int
    schema: Schema | None = None
    page: Page | None = None
    update_count: int = -1
    error: Failure | None = None
    warnings: tuple[str, ...] = ()
    schema_name: str | None = None
    variables: dict[str, Variable | None] = msgspec.field(default_factory=dict)
    commit_ts: int = 0
    transaction: str | None = None


class ClientFetch(Message, frozen=True):
    """All pages below `page_number` have arrived; `pages` from there on are wanted, each as soon as it is there."""

    request: int
    query: QueryId
    page_number: int
    page_rows: int
    page_bytes: int = 0
    pages: int = 1


class ClientPage(Message, frozen=True):
    request: int
    page: Page | None = None
    error: Failure | None = None


class ClientClose(Message, frozen=True):
    request: int
    query: QueryId


class ClientClosed(Message, frozen=True):
    """`error`: the query is another member's to close."""

    request: int
    error: Failure | None = None


class ClientStatus(Message, frozen=True):
    """How does this query do? Also answered for a while after its end."""

    request: int
    query: QueryId


class ClientStatusReply(Message, frozen=True):
    """state: "unknown", "planning", "queued (3rd)", "running", "done", "failed" or "cancelled"."""

    request: int
    state: str
    seconds: float
    fragments: tuple[FragmentProgress, ...] = ()
    links: tuple[LinkBytes, ...] = ()
    plan: str = ""
    memory: tuple[Memory, ...] = ()
    error: Failure | None = None


class ClientMembers(Message, frozen=True):
    request: int


class ClientAttach(Message, frozen=True):
    """Take over a cursor that is detached, or whose client lost its connection; answered with ClientResult."""

    request: int
    query: QueryId
    page_number: int
    page_rows: int
    page_bytes: int = 0


class ClientQueries(Message, frozen=True):
    """Which queries run here, or ended lately?"""

    request: int


class ClientQueriesReply(Message, frozen=True):
    request: int
    queries: tuple[QueryInfo, ...]


class ClientMembersReply(Message, frozen=True):
    request: int
    members: tuple[MemberState, ...]


class ClientPrepare(Message, frozen=True):
    """Which parameters has this statement? It is analysed, and not run."""

    request: int
    sql: str
    schema_name: str = ""
    variables: dict[str, Variable] = msgspec.field(default_factory=dict)


class ClientPrepared(Message, frozen=True):
    """The statement's parameters: each `?` in order, each `:name` once."""

    request: int
    parameters: tuple[Parameter, ...] = ()
    error: Failure | None = None


class ClientRows(Message, frozen=True):
    """Rows of a statement that loads (option `load`): an Arrow batch, the first with the schema of all.

    Numbers begin with 0, without gaps. The last says so, and may have no rows. Who sends them may give any buffer; who
    receives them has a view of the frame that they came in.
    """

    request: int
    query: QueryId
    number: int
    schema: bytes = b""
    rows: memoryview = memoryview(b"")
    is_last: bool = False


class ClientRowsTaken(Message, frozen=True):
    """There is room for more; or an error, and then the statement ends in it too."""

    request: int
    error: Failure | None = None

"""PEP 249 over a link to a member. Errors get their PEP 249 class here, and nowhere else."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import TracebackType
from typing import Any, ParamSpec, TypeVar

import msgspec
import pyarrow as pa

from skerry.client import pep249
from skerry.client.connection import MemberLink
from skerry.client.cursor import CursorCore, PageSize, Phase
from skerry.client.pep249 import DataError, Description, InterfaceError, NotSupportedError, Row, translate
from skerry.client.rows import RowBuffer, describe
from skerry.client.url import parse_url, tls_files
from skerry.errors import PeerError, SkerryError
from skerry.limits import Limits
from skerry.wire.codec import decode_batch, decode_schema
from skerry.wire.messages import (
    ClientMembers,
    ClientMembersReply,
    ClientStatus,
    ClientStatusReply,
    FragmentProgress,
    LinkBytes,
    MemberState,
    Memory,
    Page,
    Value,
)
from skerry.wire.values import to_value

Parameters = Sequence[Any] | Mapping[str, Any]

P = ParamSpec("P")
T = TypeVar("T")


def _edge(method: Callable[P, T]) -> Callable[P, T]:
    """What raises SkerryError inside raises the PEP 249 class outside."""

    @functools.wraps(method)
    def outside(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return method(*args, **kwargs)
        except SkerryError as error:
            raise translate(error) from error

    return outside


class QueryStatus(msgspec.Struct, frozen=True):
    """state: "unknown", "planning", "running", "done", "failed" or "cancelled"."""

    state: str
    seconds: float
    fragments: tuple[FragmentProgress, ...] = ()
    links: tuple[LinkBytes, ...] = ()
    plan: str = ""
    memory: tuple[Memory, ...] = ()


@_edge
def connect(
    url: str,
    *,
    timeout_s: float | None = None,
    fault_policy: str | None = None,
    tls: Mapping[str, str] | None = None,
) -> Connection:
    """A connection to the member at `skerry://host:port[/schema]`; `tls` as in `skerry.connect`.

    `fault_policy`: what its queries do when sites lose their connection: "fail", "wait" or "buffer"; None: as the
    cluster is configured.
    """
    target = parse_url(url)
    if tls is not None:
        target = replace(target, tls=tls_files(tls))
    connection = Connection(MemberLink.open(target, timeout_s), target.schema_name)
    connection.fault_policy = fault_policy
    return connection


class Connection:
    """Threads may share it; each statement commits by itself."""

    Warning = pep249.Warning
    Error = pep249.Error
    InterfaceError = pep249.InterfaceError
    DatabaseError = pep249.DatabaseError
    DataError = pep249.DataError
    OperationalError = pep249.OperationalError
    IntegrityError = pep249.IntegrityError
    InternalError = pep249.InternalError
    ProgrammingError = pep249.ProgrammingError
    NotSupportedError = pep249.NotSupportedError

    autocommit = True

    def __init__(self, link: MemberLink, schema_name: str) -> None:
        self._link = link
        # Without waiting: finalizers run in any thread, the link's own among them.
        self._finalizer = weakref.finalize(self, link.close, wait=False)
        self.schema_name = schema_name
        self.fault_policy: str | None = None

    def __repr__(self) -> str:
        state = "closed" if self.closed else f"to {self.member}"
        return f"<skerry.Connection {state} at {self._link.target}>"

    @property
    def member(self) -> str:
        """The member this is a connection to: the initiator of its queries."""
        return self._link.member

    @property
    def closed(self) -> bool:
        return not self._finalizer.alive

    @property
    def usable(self) -> bool:
        """Whether a statement can still be sent: not closed, and its member not gone."""
        return not self.closed and self._link.error is None

    def cursor(self) -> Cursor:
        self._check()
        return Cursor(self)

    def commit(self) -> None:
        """Nothing to do: each statement commits by itself."""
        self._check()

    def rollback(self) -> None:
        self._check()
        raise NotSupportedError("nothing can be rolled back: each statement commits by itself")

    def close(self) -> None:
        """Say goodbye to the member; its open queries end."""
        if self._finalizer.detach():
            self._link.close()

    @_edge
    def members(self) -> tuple[MemberState, ...]:
        """All members of the cluster, as this member sees them."""
        self._check()
        return self._link.ask(ClientMembers, ClientMembersReply).members

    @_edge
    def status(self, query_id: Any) -> QueryStatus:
        """How the query with a cursor's `query_id` does; another connection may ask."""
        self._check()
        reply = self._link.ask(lambda number: ClientStatus(number, query_id), ClientStatusReply)
        return QueryStatus(reply.state, reply.seconds, reply.fragments, reply.links, reply.plan, reply.memory)

    def __enter__(self) -> Connection:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _check(self) -> None:
        if self.closed:
            raise InterfaceError("the connection is closed")


class Cursor:
    """One statement at a time, used by one thread; `cancel` and `status` may be called from others."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.arraysize = 1
        self.description: list[Description] | None = None
        self._link = connection._link
        self._core: CursorCore | None = None
        self._schema: pa.Schema | None = None
        self._buffer = RowBuffer()
        self._rows_given = 0
        self._count = -1
        self._closed = False
        limits = self._link.limits
        self._size = PageSize(limits.page_rows, limits.page_bytes)
        self._bulk = PageSize(0, limits.bulk_page_bytes)

    @property
    def query_id(self) -> Any:
        """The id of the last query, for `Connection.status` and logs; None before the first."""
        return self._core.query if self._core else None

    @property
    def rowcount(self) -> int:
        """Rows changed, or rows of the result once all of it is here, else -1."""
        if self._count >= 0:
            return self._count
        if self._core and self._core.phase is Phase.ENDED:
            return self._core.rows_received
        return -1

    @property
    def rownumber(self) -> int | None:
        """Index of the next row in the result."""
        return self._rows_given if self._schema is not None else None

    @_edge
    def execute(
        self, operation: str, parameters: Parameters | None = None, *, timeout_s: float | None = None
    ) -> Cursor:
        """Run a statement: `?` takes from a sequence, `:name` from a mapping. Returns the cursor itself."""
        self._execute(operation, parameters, timeout_s, expected="any")
        return self

    @_edge
    def executemany(
        self, operation: str, seq_of_parameters: Iterable[Parameters], *, timeout_s: float | None = None
    ) -> Cursor:
        """Run a statement that returns no rows, once for each of the parameters."""
        self._check()
        self._drop_result()
        changed = 0
        for parameters in seq_of_parameters:
            self._execute(operation, parameters, timeout_s, expected="count")
            changed += max(self._count, 0)
        self._count = changed
        return self

    @_edge
    def fetchone(self) -> Row | None:
        rows = self._take(1)
        return rows[0] if rows else None

    @_edge
    def fetchmany(self, size: int | None = None) -> list[Row]:
        return self._take(self.arraysize if size is None else size)

    @_edge
    def fetchall(self) -> list[Row]:
        self._check_rows()
        rows = self._convert(None)
        while self._next_page(self._bulk, self._link.limits.bulk_pages_ahead):
            rows += self._convert(None)
        return rows

    @_edge
    def fetch_arrow_table(self) -> pa.Table:
        """The rest of the result as a pyarrow.Table."""
        schema = self._check_rows()
        batches = [batch for some in self._arrow() for batch in some]
        return pa.Table.from_batches(batches, schema)

    @_edge
    def fetch_record_batch_reader(self) -> pa.RecordBatchReader:
        """The rest of the result as a stream of Arrow batches, read while the caller works on them."""
        schema = self._check_rows()
        return pa.RecordBatchReader.from_batches(schema, self._stream())

    @_edge
    def fetch_page(self) -> list[Row]:
        """The rows that are here, or those of the next page; none at the end. For showing rows as they come."""
        self._check_rows()
        while not self._buffer:
            if not self._next_page(self._size, ahead=1):
                return []
        return self._convert(None)

    def status(self) -> QueryStatus:
        """How the query does; works from another thread while `execute` waits."""
        if self.query_id is None:
            raise InterfaceError("nothing was executed yet")
        return self.connection.status(self.query_id)

    @_edge
    def cancel(self) -> None:
        """End the query; for other threads: the one that waits for it gets an OperationalError."""
        if self._core is not None:
            self._link.cancel(self._core)

    @_edge
    def close(self) -> None:
        self._closed = True
        self._drop_result()

    def setinputsizes(self, sizes: Sequence[Any]) -> None:
        """Nothing to do; PEP 249 asks for it."""

    def setoutputsize(self, size: int, column: int | None = None) -> None:
        """Nothing to do; PEP 249 asks for it."""

    def __iter__(self) -> Iterator[Row]:
        return self

    def __next__(self) -> Row:
        row = self.fetchone()
        if row is None:
            raise StopIteration
        return row

    def __enter__(self) -> Cursor:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        # No locks here: a finalizer may run in any thread, in the middle of anything.
        core = getattr(self, "_core", None)
        if core is not None:
            self._link.abandon(core)

    def _execute(
        self, operation: str, parameters: Parameters | None, timeout_s: float | None, *, expected: str
    ) -> None:
        self._check()
        self._drop_result()
        values = _values(parameters)
        core = self._core = self._link.new_cursor()
        self._link.execute(
            core,
            operation,
            values,
            size=self._size,
            timeout_s=timeout_s or 0.0,
            schema_name=self.connection.schema_name,
            expected=expected,
            options={} if self.connection.fault_policy is None else {"fault_policy": self.connection.fault_policy},
        )
        if core.schema is not None:
            self.description = describe(core.schema.columns)
            self._schema = decode_schema(core.schema.arrow)
            if len(self._schema) != len(self.description):
                raise PeerError(f"query {core.query}: {len(self.description)} columns, {len(self._schema)} in Arrow")
        self._count = core.update_count

    def _take(self, rows_max: int) -> list[Row]:
        self._check_rows()
        rows = self._convert(rows_max)
        while len(rows) < rows_max and self._next_page(self._size):
            rows += self._convert(rows_max - len(rows))
        return rows

    def _convert(self, rows_max: int | None) -> list[Row]:
        try:
            rows = self._buffer.take_rows(rows_max)
        except (ValueError, OverflowError) as error:
            raise DataError(f"a value has no Python form: {error} (fetch_arrow_table() gives it as Arrow)") from error
        self._rows_given += len(rows)
        return rows

    def _stream(self) -> Iterator[pa.RecordBatch]:
        try:
            for some in self._arrow():
                yield from some
        except SkerryError as error:
            raise translate(error) from error

    def _arrow(self) -> Iterator[list[pa.RecordBatch]]:
        more = True
        while more:
            batches = self._buffer.take_batches()
            self._rows_given += sum(batch.num_rows for batch in batches)
            yield batches
            more = self._next_page(self._bulk, self._link.limits.bulk_pages_ahead)

    def _next_page(self, size: PageSize, ahead: int = 0) -> bool:
        """Buffer one more page; False at the end."""
        assert self._core is not None
        self._check()
        page = self._link.next_page(self._core, size, ahead)
        if page is None:
            return False
        for batch in _decode(page, self._schema, self._link.limits):
            self._buffer.append(batch)
        return True

    def _drop_result(self) -> None:
        self._buffer.clear()
        self.description = None
        self._schema = None
        self._rows_given = 0
        self._count = -1
        if self._core is not None and not self.connection.closed:
            self._link.close_cursor(self._core)

    def _check(self) -> None:
        self.connection._check()
        if self._closed:
            raise InterfaceError("the cursor is closed")

    def _check_rows(self) -> pa.Schema:
        self._check()
        if self._schema is None:
            raise InterfaceError("there are no rows to fetch: execute a query first")
        return self._schema


def _values(parameters: Parameters | None) -> list[Value] | dict[str, Value]:
    if parameters is None:
        return []
    if isinstance(parameters, Mapping):
        return {name: to_value(value, f"parameter :{name}") for name, value in parameters.items()}
    if isinstance(parameters, str | bytes):
        raise InterfaceError("parameters are a sequence or a mapping, not one string")
    return [to_value(value, f"parameter {index + 1}") for index, value in enumerate(parameters)]


def _decode(page: Page, schema: pa.Schema, limits: Limits) -> list[pa.RecordBatch]:
    batches = [decode_batch(body, schema, limits.frame_bytes) for body in page.batches]
    rows = sum(batch.num_rows for batch in batches)
    if rows != page.rows:
        raise PeerError(f"page {page.number} was to hold {page.rows} rows, it holds {rows}")
    return batches

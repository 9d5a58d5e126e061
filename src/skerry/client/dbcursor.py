"""PEP 249's cursor: one statement at a time, its rows as Python objects or as Arrow."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Protocol

import pyarrow as pa

from skerry.client import arguments, loading
from skerry.client.arguments import Parameters, planning_options, seconds, statement_text
from skerry.client.connection import MemberLink
from skerry.client.cursor import AGAIN, DETACH, LOAD, CursorCore, PageSize, Phase
from skerry.client.edge import edge
from skerry.client.links import Links
from skerry.client.pep249 import DataError, Description, InterfaceError, NotSupportedError, Row, Warning, translate
from skerry.client.polars_driver import tell_polars
from skerry.client.reads import only_reads
from skerry.client.rows import RowBuffer, decode_page, describe
from skerry.client.status import QueryStatus
from skerry.model.amounts import counted
from skerry.model.errors import PeerError, SiteError, SiteStopping, SkerryError, unsure
from skerry.model.ids import QueryId
from skerry.model.results import Value
from skerry.model.variables import Variable
from skerry.wire.codec import decode_schema


class Owner(Protocol):
    """What a cursor needs of the connection that it belongs to."""

    _links: Links
    schema_name: str
    variables: dict[str, Variable]
    last_commit: int
    transaction: str
    fault_policy: str | None
    resume_s: float
    retry: str

    @property
    def closed(self) -> bool: ...
    @property
    def autocommit(self) -> bool: ...
    def status(self, query_id: QueryId | str) -> QueryStatus: ...
    def _check(self) -> None: ...
    def _begin_for(self, operation: str) -> None: ...


class Cursor:
    """One statement at a time, used by one thread; `cancel`, `status` and `progress` may be used by others."""

    def __init__(self, connection: Owner) -> None:
        self.connection = connection
        self._arraysize = 1
        self.lastrowid = None  # rows have no ids
        self.description: list[Description] | None = None
        self._link = connection._links.home
        self._core: CursorCore | None = None
        self._schema: pa.Schema | None = None
        self._buffer = RowBuffer()
        self._rows_given = 0
        self._count = -1
        self.messages: list[tuple[type[Warning], Warning]] = []  # PEP 249: of the last statement
        self._closed = False
        limits = self._link.limits
        self._size = PageSize(limits.page_rows, limits.page_bytes)
        self._bulk = PageSize(0, limits.bulk_page_bytes)
        self._ahead = limits.bulk_pages_ahead

    @property
    def query_id(self) -> Any:
        """The id of the last query, for `status`, `attach`, `cancel` and logs; None before the first."""
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

    @property
    def arraysize(self) -> int:
        """How many rows `fetchmany` gives unless told otherwise."""
        return self._arraysize

    @arraysize.setter
    def arraysize(self, rows: int) -> None:
        self._arraysize = arguments.rows(rows, "arraysize")

    @property
    def progress(self) -> QueryStatus:
        """How the query does, asked now: its fragments, its rows, the bytes over each link."""
        return self.status()

    @edge
    def execute(
        self,
        operation: str,
        parameters: Parameters | None = None,
        *,
        timeout_s: float | None = None,
        detach: bool = False,
        lease_s: float | None = None,
        planning: Mapping[str, str] | None = None,
        query_id: QueryId | None = None,
        edge_rows: int | None = None,
        spark_s: float | None = None,
    ) -> Cursor:
        """Run a statement: `?` takes from a sequence, `:name` from a mapping. Returns the cursor itself.

        `query_id`: of the same statement, whose outcome is unknown (`OutcomeUnknown`). It is not carried out twice.

        With `detach` it returns at once; the query runs on by itself, and its result is kept `lease_s` for
        `Connection.attach(cursor.query_id)`. `planning` has options for the planner: `{"rules": "-semijoin"}`.

        `edge_rows`, `spark_s`: the query ends with an error if more rows go from one fragment to another, or if its
        jobs take more seconds; no more than the cluster's limits in any case, which 0 and None stand for.
        """
        tell_polars()  # here: whoever loads polars does so at any time before it reads
        options = planning_options(planning) | ({DETACH: "1"} if detach else {})
        if lease_s is not None:
            if not detach:
                raise InterfaceError("lease_s is for queries that are detached")
            options["lease_s"] = repr(seconds(lease_s, "lease_s"))
        if edge_rows is not None:
            options["edge_rows"] = repr(arguments.rows(edge_rows, "edge_rows"))
        if spark_s is not None:
            options["spark_s"] = repr(seconds(spark_s, "spark_s", may_be_0=True))
        self._execute(operation, parameters, timeout_s, "any", options, again=query_id)
        return self

    @edge
    def executemany(
        self,
        operation: str,
        seq_of_parameters: Iterable[Parameters],
        *,
        timeout_s: float | None = None,
        query_id: QueryId | None = None,
    ) -> Cursor:
        """Run a statement that returns no rows with each of the parameters, as one statement: for all or for none.

        `query_id` as in `execute`.
        """
        self._check()
        self._drop_result()
        if not isinstance(seq_of_parameters, Iterable):
            raise InterfaceError(f"executemany takes a sequence of parameters, not {seq_of_parameters!r}")
        given = list(seq_of_parameters)
        if given:
            more = [arguments.values(each) for each in given[1:]]
            self._execute(operation, given[0], timeout_s, "count", {}, more, again=query_id)
        else:
            self._count = 0
        return self

    @edge
    def load(
        self,
        table: str,
        rows: Any,
        *,
        on_conflict: str = "fail",
        timeout_s: float | None = None,
        progress: Callable[[int], object] | None = None,
        query_id: QueryId | None = None,
    ) -> Cursor:
        """Insert Arrow rows into a table of Skerry's own, all of them or none: `rowcount` says how many were written.

        `rows`: a pyarrow Table, RecordBatch or RecordBatchReader, or what gives an Arrow stream, as polars' frames do.
        Columns are matched by name. `on_conflict`: "fail", "nothing" or "replace" where a row with the same key exists.
        `progress` is called with how many rows were sent. `query_id`: of the same load, whose outcome is unknown: if
        its rows are there, they are counted and not written again.
        """
        self._check()
        self._drop_result()
        if self.connection.transaction or not self.connection.autocommit:
            raise NotSupportedError("a load commits by itself: it needs autocommit, and no open transaction")
        reader = loading.reader_of(rows)
        sql = loading.insert_of(table, reader.schema, on_conflict)
        link = self._link = self.connection._links.home if query_id is None else self._asked_before(query_id)
        core = self._core = link.new_cursor(query_id)
        options = {LOAD: "1"} | ({AGAIN: "1"} if query_id is not None else {})
        if self.connection.resume_s > 0:
            options["resume_s"] = repr(float(self.connection.resume_s))
        link.execute(
            core,
            sql,
            [],
            size=self._size,
            timeout_s=seconds(timeout_s, "timeout_s"),
            schema_name=self.connection.schema_name,
            expected="count",
            options=options,
            rows=loading.messages(core.query, reader, link.limits.frame_bytes_from_client, progress),
        )
        self._describe(core)
        return self

    @edge
    def fetchone(self) -> Row | None:
        rows = self._take(1, ahead=0)
        return rows[0] if rows else None

    @edge
    def fetchmany(self, size: int | None = None) -> list[Row]:
        return self._take(self._arraysize if size is None else arguments.rows(size, "size"), ahead=0)

    @edge
    def fetchall(self) -> list[Row]:
        self._check_rows()
        rows = self._convert(None)
        while self._next_page(self._bulk, self._ahead):
            rows += self._convert(None)
        return rows

    @edge
    def fetch_arrow_table(self) -> pa.Table:
        """The rest of the result as a pyarrow.Table."""
        schema = self._check_rows()
        batches = [batch for some in self._arrow() for batch in some]
        return pa.Table.from_batches(batches, schema)

    @edge
    def fetch_record_batch_reader(self) -> pa.RecordBatchReader:
        """The rest of the result as a stream of Arrow batches, read while the caller works on them."""
        schema = self._check_rows()
        return pa.RecordBatchReader.from_batches(schema, self._stream())

    def fetch_pandas(self) -> Any:
        """The rest of the result as a pandas.DataFrame."""
        try:
            import pandas  # noqa: F401
        except ImportError as error:
            raise NotSupportedError("fetch_pandas needs pandas: pip install pandas") from error
        return self.fetch_arrow_table().to_pandas()

    def fetch_polars(self) -> Any:
        """The rest of the result as a polars.DataFrame."""
        try:
            import polars
        except ImportError as error:
            raise NotSupportedError("fetch_polars needs polars: pip install polars") from error
        return polars.from_arrow(self.fetch_arrow_table())

    @edge
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

    @edge
    def cancel(self) -> None:
        """End the query; for other threads: the one that waits for it gets an OperationalError."""
        if self._core is not None:
            self._link.cancel(self._core)

    @edge
    def close(self) -> None:
        """From now on the cursor is unusable; its query ends, unless it is detached."""
        self._closed = True
        self._drop_result()

    def nextset(self) -> bool | None:
        """A statement has one result: None, there is no other."""
        self._check_rows()
        assert self._core is not None
        self._buffer.clear()
        self._link.close_cursor(self._core)
        return None

    def callproc(self, procname: str, parameters: Sequence[Any] = ()) -> Sequence[Any]:
        """Skerry has no stored procedures."""
        self._check()
        raise NotSupportedError("there are no stored procedures")

    def setinputsizes(self, sizes: Sequence[Any]) -> None:
        """Nothing to do; PEP 249 asks for it."""

    def setoutputsize(self, size: int, column: int | None = None) -> None:
        """Nothing to do; PEP 249 asks for it."""

    def __iter__(self) -> Iterator[Row]:
        return self

    def __next__(self) -> Row:
        """Pages are asked for ahead: who iterates wants the next row as well."""
        try:
            rows = self._take(1, ahead=self._ahead)
        except SkerryError as error:
            raise translate(error) from error
        if not rows:
            raise StopIteration
        return rows[0]

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

    def attach_to(self, query: QueryId) -> None:
        """For `Connection.attach`, which translates errors."""
        self._link = self.connection._links.to(query)
        core = self._core = self._link.new_cursor(query)
        self._link.attach(core, self._size)
        self._describe(core)

    def _execute(
        self,
        operation: str,
        parameters: Parameters | None,
        timeout_s: float | None,
        expected: str,
        options: dict[str, str],
        more: Sequence[list[Value] | dict[str, Value]] = (),
        again: QueryId | None = None,
    ) -> None:
        self._check()
        self._drop_result()
        values, timeout_s = arguments.values(parameters), seconds(timeout_s, "timeout_s")
        self._link = self.connection._links.home
        operation = statement_text(operation, [values, *more], self._link.limits.frame_bytes_from_client)
        self.connection._begin_for(operation)
        if again is not None:
            self._execute_again(again, operation, values, timeout_s, expected, options, more)
            return
        while True:
            try:
                self._execute_at(self._link, operation, values, timeout_s, expected, options, more)
                return
            except SiteError as error:
                # Before the first page, and not because of what the member answered: it is gone, or about to go.
                is_leaving = isinstance(error, SiteStopping) and error.member == self._link.member
                is_gone = self._link.error is not None or is_leaving
                if self.connection.retry != "reads" or not is_gone or self.connection.closed:
                    raise
                if DETACH in options or self.connection.transaction or not only_reads(operation):
                    raise
                self._link = self.connection._links.move(self._link)

    def _execute_again(
        self,
        query: QueryId,
        operation: str,
        values: list[Value] | dict[str, Value],
        timeout_s: float,
        expected: str,
        options: dict[str, str],
        more: Sequence[list[Value] | dict[str, Value]],
    ) -> None:
        """At the member that it was given to: nobody else knows all that came of it."""
        self._link = self._asked_before(query)
        self._execute_at(self._link, operation, values, timeout_s, expected, options | {AGAIN: "1"}, more, query)

    def _asked_before(self, query: QueryId) -> MemberLink:
        """The member that it was given to: nobody else knows all that came of it."""
        if not isinstance(query, QueryId):
            raise InterfaceError("query_id is the id of a cursor (cursor.query_id)")
        try:
            link = self.connection._links.to(query)
            link.check()
        except SkerryError as error:  # it was not sent again, which tells nothing
            raise unsure(query, error) from error
        return link

    def _execute_at(
        self,
        link: MemberLink,
        operation: str,
        values: list[Value] | dict[str, Value],
        timeout_s: float,
        expected: str,
        options: dict[str, str],
        more: Sequence[list[Value] | dict[str, Value]],
        again: QueryId | None = None,
    ) -> None:
        connection = self.connection
        if connection.fault_policy is not None:
            options = options | {"fault_policy": connection.fault_policy}
        if connection.resume_s > 0:
            options = options | {"resume_s": repr(float(connection.resume_s))}
        core = self._core = link.new_cursor(again)
        try:
            link.execute(
                core,
                operation,
                values,
                size=self._size,
                timeout_s=timeout_s,
                schema_name=connection.schema_name,
                expected=expected,
                options=options,
                variables=dict(connection.variables),
                more=list(more),
                seen_ts=connection.last_commit,
                transaction=connection.transaction,
            )
        finally:
            if core.transaction is not None:  # also with an error: a COMMIT that failed has ended it
                connection.transaction = core.transaction
        connection.last_commit = max(connection.last_commit, core.commit_ts)
        self._describe(core)
        if core.used_schema is not None:  # only here: a USE that is attached to is another connection's
            connection.schema_name = core.used_schema
        for name, variable in core.set_variables.items():
            if variable is None:
                connection.variables.pop(name, None)
            else:
                connection.variables[name] = variable

    def _describe(self, core: CursorCore) -> None:
        if core.schema is not None:
            self.description = describe(core.schema.columns)
            self._schema = decode_schema(core.schema.arrow)
            if len(self._schema) != len(self.description):
                raise PeerError(f"query {core.query}: {len(self.description)} columns, {len(self._schema)} in Arrow")
        self._count = core.update_count
        self.messages = [(Warning, Warning(text)) for text in core.warnings]

    def _take(self, rows_max: int, ahead: int) -> list[Row]:
        self._check_rows()
        rows = self._convert(rows_max)
        while len(rows) < rows_max and self._next_page(self._size, ahead):
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
            more = self._next_page(self._bulk, self._ahead)

    def _next_page(self, size: PageSize, ahead: int = 0) -> bool:
        """Buffer one more page; False at the end."""
        assert self._core is not None
        self._check()
        page = self._link.next_page(self._core, size, ahead)
        if page is None:
            return False
        for batch in decode_page(page, self._schema, self._link.limits):
            self._buffer.append(batch)
        return True

    def _drop_result(self) -> None:
        self._buffer.clear()
        self.description = None
        self._schema = None
        self._rows_given = 0
        self._count = -1
        self.messages = []
        if self._core is not None and not self.connection.closed:
            self._link.close_cursor(self._core)

    def _check(self) -> None:
        self.connection._check()
        if self._closed:
            raise InterfaceError("the cursor is closed")

    def _check_rows(self) -> pa.Schema:
        self._check()
        if self._core is not None and self._core.phase is Phase.DETACHED:
            raise InterfaceError("the query is detached: connection.attach(cursor.query_id) reads its result")
        if self._schema is None:
            why = f"the statement changed {counted(self._count)}" if self._count >= 0 else "execute a query first"
            raise InterfaceError(f"there are no rows to fetch: {why}")
        return self._schema

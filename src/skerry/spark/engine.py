"""What Skerry asks of a Spark: an interface that Apache Spark, Spark Connect and Sail fulfil.

Nothing here imports pyspark: members and the planner depend on this module, `spark/session.py` implements it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Protocol

import msgspec
import pyarrow as pa

from skerry.exchange.intake import SinkRow
from skerry.model.config import TableConfig
from skerry.model.fragment import SortKey
from skerry.model.ids import QueryId
from skerry.model.names import Moment
from skerry.model.results import Schema
from skerry.model.sources import Pinned, Storage, Told
from skerry.model.table import Column

# The table itself, in the text of a view.
WHOLE_TABLE = "skerry_whole_table"


class TableView(msgspec.Struct, frozen=True):
    """What somebody sees of a table: `sql` has WHOLE_TABLE in its place. `arguments`: values of its parameters."""

    sql: str
    arguments: tuple[tuple[str, str], ...] = ()


class Overlaid(msgspec.Struct, frozen=True):
    """What came to a table of our own after its files were written.

    Rows of the files `touched` do not count if their key is in `keys`; all `rows` do. `key`: the columns of the key.
    """

    touched: tuple[str, ...]
    key: tuple[str, ...]
    keys: pa.RecordBatch
    rows: pa.RecordBatch


class Older(msgspec.Struct, frozen=True):
    """Files that were written before a table of our own was altered: what its columns are called in them.

    `names`: for each column of the table; None if the files have none, and its value there is among `values`, as text
    (of a binary column bytes) or None for NULL. `touched`: as in Overlaid.
    """

    files: tuple[str, ...]
    touched: tuple[str, ...]
    names: tuple[str | None, ...]
    values: tuple[str | bytes | None, ...]


class TableFiles(msgspec.Struct, frozen=True):
    """A table as of one listing: these files, no others. `version` names the listing. `seen`: by whoever asks.

    pinned: of a table that is no list of files; it has none then, and `version` is that of its source.
    storage: of files that are not on the member's disk: they are URLs.
    overlaid: of a table of our own. `version` names what it holds as well, `definition` the version of the table.
    """

    member: str
    table: str
    format: str
    options: dict[str, str]
    root: str
    files: tuple[str, ...]
    version: int
    columns: tuple[Column, ...] = ()  # declared in the configuration, or learned before; () = infer
    seen: TableView | None = None
    overlaid: Overlaid | None = None
    older: tuple[Older, ...] = ()
    definition: int = 0
    pinned: Pinned | None = None
    storage: Storage | None = None


class EdgeInput(msgspec.Struct, frozen=True):
    """An edge as a Spark source: where its member listens and what its rows look like.

    bodies: all its batches, encoded, if they are few and of plain types: they go into the plan of the job, which asks
    the member for none.
    """

    query: QueryId
    edge: int
    columns: tuple[Column, ...]
    address: str  # "unix:<path>" or "tcp:<host>:<port>"
    token: str
    partitions: int
    cluster: str = ""  # of the member at `address`: its listener asks for it
    fingerprint: str = ""  # of the certificate that the member shows there; "" without TLS
    bodies: tuple[Any, ...] | None = None


class SinkOutput(msgspec.Struct, frozen=True):
    """Rows leave from the tasks, to the member at `address`."""

    query: QueryId
    fragment: int
    address: str
    token: str
    cluster: str = ""
    fingerprint: str = ""


class Job(msgspec.Struct, frozen=True):
    """One fragment, ready to run. `tag` cancels it. `sink` None: the rows return through the driver.

    is_narrow: nobody need watch the bytes of a batch, its number of rows bounds them (see Fragment).
    order, keys: of the rows that leave through the sink (see Output).
    operator_depth, is_repeatable: of the statement (see Fragment).
    query, fragment: whose job it is, for the log; no query's, if None.
    """

    tag: str
    sql: str
    tables: Mapping[str, TableFiles]  # by placeholder
    edges: Mapping[str, EdgeInput]  # by placeholder
    parameters: Mapping[str, Any]  # Python values, bound by Spark as :name
    sink: SinkOutput | None
    is_narrow: bool = False
    is_small: bool = False  # all that it reads is so little that one task does it best
    gives_few: bool = False  # rows, as far as the plan can tell: a page of them at most
    is_optional: bool = False  # no query waits for it: why it failed is its caller's to say, not a trace in the log
    order: str = "any"
    keys: tuple[SortKey, ...] = ()
    operator_depth: int = 0
    is_repeatable: bool = False
    query: QueryId | None = None
    fragment: int | None = None


class JobResult(msgspec.Struct, frozen=True):
    """`sink_rows` for a job with a sink, `table` for one through the driver. A job that was expected to give few rows,
    and did, may answer with these though it has a sink.
    """

    sink_rows: tuple[SinkRow, ...] = ()
    table: pa.Table | None = None


class SlotPool(Protocol):
    """Bounds the source partitions that may wait inside one Spark (D7). Thread-safe, never blocks."""

    def try_take(self, count: int) -> bool: ...
    def give_back(self, count: int) -> None: ...


class Engine(Protocol):
    """One Spark. All methods block and are called from worker threads; several members may share one.

    Errors of Spark are raised as SqlError (the statement's fault) or SiteError, with Spark's first
    sentence and error class as message; the trace goes to the log.
    """

    cores: int
    source_slots: SlotPool | None  # None: slots cannot be known, receive staged only
    tasks_are_here: bool  # False: tasks run on other machines, and reach their member over TCP
    retries_tasks: bool  # True: tasks may run twice, rows are kept per attempt until the job ended

    def start(self) -> None: ...
    def stop(self) -> None: ...
    def warm_up(self) -> None: ...
    def look(self, table: TableConfig, at: Moment | None) -> Told:
        """What a table that is no list of files is now, or was; SiteError if its source cannot tell."""
        ...

    def tables_in(self, namespace: tuple[str, ...]) -> tuple[str, ...]:
        """The names of the tables there; the first one is a catalog's."""
        ...

    def describe(self, table: TableFiles) -> tuple[Column, ...]: ...
    def count_rows(self, table: TableFiles) -> int: ...
    def run(self, job: Job, on_schema: Callable[[Schema], None]) -> JobResult: ...
    def keeps(self, job: Job) -> bool:
        """Whether it has the job planned, and is done sooner if it runs it together with others. Never blocks."""
        ...

    def run_together(
        self, jobs: Sequence[Job], on_schemas: Sequence[Callable[[Schema], None]]
    ) -> Sequence[JobResult | None]:
        """Jobs that are kept, as one Spark job; None for each that has to be run by itself, for whatever reason. Its
        own run tells what is wrong. A cancel of one ends all.
        """
        ...

    def cancel(self, tag: str) -> None: ...
    def give_up(self, tag: str) -> None:
        """The job goes on in spite of its cancel: end it with all else that runs in its process, if that may be."""
        ...

    def queued_tasks(self, besides: Collection[str] = ()) -> int:
        """Tasks that wait for a slot, but for those of the jobs with these tags; 0 where nobody can tell."""
        ...

    def is_held_up(self, tag: str) -> bool:
        """Whether the job would most likely be done sooner if it began anew."""
        ...

    def job_ids(self, tag: str) -> tuple[int, ...]:
        """Spark's own numbers of the jobs that ran with this tag; none where nobody can tell."""
        ...

    def leftovers(self) -> list[str]: ...


class OneByOne:
    """Of an engine that runs no jobs together."""

    def keeps(self, job: Job) -> bool:
        return False

    def run_together(
        self, jobs: Sequence[Job], on_schemas: Sequence[Callable[[Schema], None]]
    ) -> Sequence[JobResult | None]:
        return [None] * len(jobs)

"""What a query ends in, at its initiator: rows that sites send, gathered or merged and cut into pages; or a count."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from skerry.exchange.entries import Feed, ReadableSpool
from skerry.exchange.finishing import Finished, finished_schema
from skerry.exchange.input import WAIT, Signal
from skerry.exchange.spool import Budget, Entry
from skerry.member.pages import Pages
from skerry.model.errors import SkerryError
from skerry.model.fragment import Rows
from skerry.model.limits import Limits
from skerry.model.results import Schema
from skerry.wire.codec import decode_schema


class Result:
    """Rows of one query, from one spool a sender. Rows can be taken once every sender and the schema are known."""

    def __init__(self, rows: Rows, limits: Limits, wakeup: Callable[[], None]) -> None:
        self._rows = rows
        self._limits = limits
        self._wakeup = wakeup
        self._feeds: dict[str, Feed] = {}
        self._finished: Finished | None = None
        self._error: SkerryError | None = None
        self._arriving: pa.Schema | None = None
        self._budget: Budget | None = None
        self.schema: Schema | None = None
        self.pages = Pages(self)

    def count_in(self, budget: Budget) -> None:
        """What pages and merges hold is the query's, as its spools are."""
        self._budget = budget
        self.pages.count_in(budget, self._limits)

    def close(self) -> None:
        """The query is over: nothing of this counts any more, and no more rows are made."""
        self.pages.close()
        if self._finished is not None:
            self._finished.close()
        self._budget = None

    def attach(self, sender: str, spool: ReadableSpool, on_consumed: Callable[[int], None]) -> None:
        """This sender's rows will be in this spool."""
        if sender not in self._feeds:
            self._feeds[sender] = Feed(spool, on_consumed)
            spool.subscribe(self._wakeup)
            self._wakeup()

    def schema_known(self, schema: Schema) -> None:
        """What the senders send; the client sees what becomes of it."""
        self._arriving = decode_schema(schema.arrow)
        self.schema = finished_schema(self._rows.finish, schema)
        self._wakeup()

    def fail(self, error: SkerryError) -> None:
        """Whoever asks for rows gets this error from now on."""
        self._error = self._error or error
        self._wakeup()

    @property
    def error(self) -> SkerryError | None:
        return self._error

    @property
    def is_made(self) -> bool:
        """The last page was made."""
        return self.pages.is_done

    @property
    def rows(self) -> int:
        """Given so far."""
        return self.pages.rows

    @property
    def size_bytes(self) -> int:
        return self.pages.size_bytes

    def drop(self) -> None:
        """Nobody will ask for a page again."""
        self.pages.drop()

    def poll(self) -> Entry | Signal:
        if self._error is not None:
            raise self._error
        if self._finished is None:
            if self._arriving is None or set(self._feeds) != set(self._rows.senders):
                return WAIT
            feeds = [self._feeds[sender] for sender in self._rows.senders]
            self._finished = Finished(self._rows.finish, feeds, self._arriving, self._limits, self._count_state)
        return self._finished.poll()

    def _count_state(self, change_bytes: int) -> None:
        if self._budget is not None:
            self._budget.change_state(change_bytes)


class Counted:
    """The number that a query ends in: of rows that sites counted, or wrote."""

    size_bytes = 0  # no row of it comes to the initiator

    def __init__(self, wakeup: Callable[[], None]) -> None:
        self._wakeup = wakeup
        self._rows: int | None = None
        self.error: SkerryError | None = None

    def known(self, rows: int) -> None:
        self._rows = rows
        self._wakeup()

    def fail(self, error: SkerryError) -> None:
        """Whoever asks for the count gets this error."""
        self.error = self.error or error
        self._wakeup()

    @property
    def is_made(self) -> bool:
        return self._rows is not None

    @property
    def rows(self) -> int:
        """0 before it is known."""
        return self._rows or 0

    def close(self) -> None: ...

    def drop(self) -> None: ...

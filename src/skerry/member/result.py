"""The result edge at the initiator: gather or merge what the sites send, cut it into pages."""

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

"""Pages of one cursor, made from the result's batches as the client asks. Pure."""

from __future__ import annotations

from collections import OrderedDict
from typing import Literal

from skerry.exchange.entries import EntryInput
from skerry.exchange.input import END, WAIT, Signal
from skerry.exchange.spool import Budget, Entry
from skerry.model.errors import UserError
from skerry.model.limits import ENTRY_BYTES, Limits
from skerry.model.results import Page


class Pages:
    """Page numbers begin at 0. A page can be asked for again, and has the same bytes, until `arrived` goes past it."""

    def __init__(self, source: EntryInput) -> None:
        self._source = source
        self._kept: OrderedDict[int, Page] = OrderedDict()
        self._budget: Budget | None = None
        self._window_pages = self._piece_bytes = 0
        self._is_done = False
        self._held: list[Entry] = []  # of the page that is being made
        self._next: Entry | None = None  # did not fit the page before
        self._made = 0
        self.rows = 0
        self.size_bytes = 0

    def count_in(self, budget: Budget, limits: Limits) -> None:
        """Pages that are kept are held by the query, as its spools are; half of its memory is for them."""
        self._budget = budget
        self._window_pages, self._piece_bytes = limits.window_pages, limits.piece_bytes
        budget.pages_bytes = budget.memory_bytes // 2

    def close(self) -> None:
        """The query is over: what is still kept for its client no longer counts."""
        for page in self._kept.values():
            self._uncount(page)
        self._budget = None

    def drop(self) -> None:
        """Nobody will ask again. Not left to the garbage collector, which does not know how large pages are."""
        self.arrived(self._made)
        self._held.clear()
        self._next = None

    @property
    def next_number(self) -> int:
        return self._made

    @property
    def is_done(self) -> bool:
        """The last page was made."""
        return self._is_done

    def arrived(self, upto: int) -> None:
        """The client has all pages below `upto`."""
        while self._kept and (number := next(iter(self._kept))) < upto:
            self._uncount(self._kept.pop(number))

    def poll(self, number: int, rows_max: int, bytes_max: int) -> Page | Literal[Signal.WAIT]:
        """A page holds whole batches: at least one, then as many as fit; what is there is not held back."""
        if number in self._kept:
            return self._kept[number]
        if number != self.next_number or self.is_done:
            raise UserError(f"page {number} was asked for; the next one is {self.next_number}")
        bytes_max = min(bytes_max, self._room())
        rows = sum(entry.rows for entry in self._held)
        size = sum(len(entry.body) for entry in self._held)
        is_last = False
        while not self._held or (size < bytes_max and (rows_max <= 0 or rows < rows_max)):
            entry = self._next if self._next is not None else self._source.poll()
            if entry is END:
                is_last = True
                break
            if isinstance(entry, Signal):
                if not self._held:
                    return WAIT
                break
            is_over = size + len(entry.body) > bytes_max or 0 < rows_max < rows + entry.rows
            if self._held and is_over:
                self._next = entry
                break
            self._next = None
            self._held.append(entry)
            rows += entry.rows
            size += len(entry.body)
        # msgspec encodes memoryviews as bytes, uncopied until then.
        bodies = tuple(memoryview(entry.body) for entry in self._held)
        self._held.clear()
        self.rows += rows
        self.size_bytes += size
        page = self._kept[number] = Page(number, bodies, rows, is_last)
        self._made, self._is_done = number + 1, is_last
        if self._budget is not None:
            self._budget.take_page(_size(page))
        return page

    def _room(self) -> int:
        """Bytes of the next page: what is left but for a batch of each page that the client's window may still hold."""
        if self._budget is None:
            return 2**63
        later = max(0, self._window_pages - len(self._kept) - 1) * (self._piece_bytes + ENTRY_BYTES)
        return max(0, self._budget.pages_bytes - self._budget.pages_used - later)

    def _uncount(self, page: Page) -> None:
        if self._budget is not None:
            self._budget.give_back_page(_size(page))


def _size(page: Page) -> int:
    return sum(batch.nbytes for batch in page.batches)

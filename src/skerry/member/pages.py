"""Pages of one cursor, made from the result's batches as the client asks. Pure."""

from __future__ import annotations

from typing import Literal

from skerry.errors import UserError
from skerry.exchange.entries import EntryInput
from skerry.exchange.input import END, WAIT, Signal
from skerry.exchange.spool import Entry
from skerry.wire.messages import Page


class Pages:
    """Page numbers begin at 0; the page asked for last can be asked for again and has the same bytes."""

    def __init__(self, source: EntryInput) -> None:
        self._source = source
        self._kept: Page | None = None
        self._held: list[Entry] = []  # of the page that is being made
        self._next: Entry | None = None  # did not fit the page before
        self.rows = 0

    @property
    def next_number(self) -> int:
        return 0 if self._kept is None else self._kept.number + 1

    @property
    def is_done(self) -> bool:
        return self._kept is not None and self._kept.is_last

    def poll(self, number: int, rows_max: int, bytes_max: int) -> Page | Literal[Signal.WAIT]:
        """A page holds whole batches: at least one, then as many as fit; what is there is not held back."""
        if self._kept is not None and number == self._kept.number:
            return self._kept
        if number != self.next_number or self.is_done:
            raise UserError(f"page {number} was asked for; the next one is {self.next_number}")
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
        self._kept = Page(self.next_number, bodies, rows, is_last)
        return self._kept

"""The books of one fragment's sink tasks: which attempts delivered what, and proof that nothing is missing (D8).

Two policies. Direct (Spark does not retry tasks): rows go on as they come, so one attempt of each partition
is allowed and a lost one ends the fragment. Committed: rows are kept per attempt, and the attempts that
Spark's driver reports at the end of the job win.
"""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import msgspec
import xxhash

from skerry.exchange.spool import Body
from skerry.model.errors import SiteError

_MULTIPLIER = 0x9E3779B97F4A7C17  # odd and 3 modulo 4: neither a batch's bits nor the order of batches get lost
_MASK = (1 << 63) - 1  # fits a signed 64-bit column: the checksum returns as a row of Spark's

UNKNOWN_PARTITION = -1


class Attempt(NamedTuple):
    """`attempt` is Spark's taskAttemptId, unique in a job. Engines without a task context have partition -1."""

    partition: int
    attempt: int


class SinkRow(msgspec.Struct, frozen=True):
    """What one finished sink task reported through Spark's driver (D8)."""

    partition: int
    attempt: int
    batches: int
    rows: int
    checksum: int


def body_hash(body: Body) -> int:
    """The hash of one batch's body, for `combine`."""
    return xxhash.xxh3_64_intdigest(body)


def combine(checksum: int, batch_hash: int) -> int:
    """The checksum of an attempt after one more batch; it starts at 0 and depends on the order."""
    return (checksum * _MULTIPLIER + batch_hash + 1) & _MASK


class Phase(enum.Enum):
    OPEN = "open"
    ENDED = "ended"
    LOST = "lost"


class _Book:
    """What one attempt has delivered."""

    def __init__(self, lane: int) -> None:
        self.lane = lane
        self.phase = Phase.OPEN
        self.batches = 0
        self.rows = 0
        self.size_bytes = 0
        self.checksum = 0

    def differences(self, batches: int, rows: int, checksum: int) -> str:
        """Empty when these counts are the book's."""
        pairs = (("batches", batches, self.batches), ("rows", rows, self.rows), ("checksum", checksum, self.checksum))
        return ", ".join(f"{name} {said} but the member has {held}" for name, said, held in pairs if said != held)


class Intake:
    """One per fragment. Errors are SiteErrors, and stay: once one was raised, `settle` raises it again."""

    def __init__(self, fragment: int | str, retries_tasks: bool, on_batch: Callable[[], None] = lambda: None) -> None:
        """`on_batch`: told when more rows are there."""
        self._fragment = fragment
        self._retries_tasks = retries_tasks
        self._on_batch = on_batch
        self._books: dict[Attempt, _Book] = {}
        self._error: SiteError | None = None
        self._winners: list[Attempt] | None = None

    @property
    def rows(self) -> int:
        """Rows delivered, of the winners once settled; until then those of each partition's furthest attempt."""
        if not self._retries_tasks or self._winners is not None:
            return sum(book.rows for book in self._counted())
        furthest: dict[int, int] = {}
        for attempt, book in self._books.items():
            if book.phase is not Phase.LOST:
                furthest[attempt.partition] = max(furthest.get(attempt.partition, 0), book.rows)
        return sum(furthest.values())

    @property
    def size_bytes(self) -> int:
        return sum(book.size_bytes for book in self._counted())

    @property
    def losers(self) -> list[Attempt]:
        """Attempts whose rows do not count, once settled: the member closes their spools."""
        return [key for key in self._books if self._winners is not None and key not in self._winners]

    def open(self, key: tuple[int, int]) -> int:
        """A task began to deliver; the answer is its lane, numbered in order of appearance."""
        attempt = Attempt(*key)
        if self._winners is not None:
            raise SiteError(f"{self._name(attempt)}: the fragment has ended, a late attempt is refused")
        if attempt in self._books:
            raise self._broken(f"{self._name(attempt)}: delivered twice")
        if not self._retries_tasks and attempt.partition != UNKNOWN_PARTITION:
            others = [other for other in self._books if other.partition == attempt.partition]
            if others:
                raise self._broken(
                    f"{self._name(attempt)}: task attempt {others[0].attempt} has delivered the same partition, and "
                    f"rows have gone on since: this Spark must not retry tasks"
                )
        self._books[attempt] = _Book(lane=len(self._books))
        return self._books[attempt].lane

    def batch(self, key: tuple[int, int], rows: int, size_bytes: int, batch_hash: int) -> None:
        """A batch arrived; `batch_hash` is the `body_hash` of what arrived, not what the task said."""
        book = self._open_book(Attempt(*key))
        book.batches += 1
        book.rows += rows
        book.size_bytes += size_bytes
        book.checksum = combine(book.checksum, batch_hash)
        self._on_batch()

    def end(self, key: tuple[int, int], batches: int, rows: int, checksum: int) -> None:
        """The task says that this was all. A task that miscounts is lost."""
        attempt = Attempt(*key)
        book = self._open_book(attempt)
        if differences := book.differences(batches, rows, checksum):
            book.phase = Phase.LOST
            error = SiteError(f"{self._name(attempt)}: the task reports {differences}")
            raise error if self._retries_tasks else self._broken(error.message)
        book.phase = Phase.ENDED

    def lost(self, key: tuple[int, int]) -> bool:
        """The connection ended: True when that drops the attempt, False when it had ended (or never began).

        In direct mode a lost attempt is a SiteError: its rows have gone on.
        """
        attempt = Attempt(*key)
        book = self._books.get(attempt)
        if book is None or book.phase is not Phase.OPEN:
            return False
        book.phase = Phase.LOST
        if not self._retries_tasks:
            raise self._broken(
                f"{self._name(attempt)}: the task went away after {book.batches} batches, without an end"
            )
        return True

    def settle(self, sink_rows: Sequence[SinkRow]) -> list[Attempt]:
        """Prove that what Spark's driver reports is what the member holds; the winners in partition order."""
        if self._error is not None:
            raise self._error
        reported = [Attempt(row.partition, row.attempt) for row in sink_rows]
        self._refuse_repeats(reported)
        for attempt, row in zip(reported, sink_rows, strict=True):
            self._prove(attempt, row)
        if not self._retries_tasks:
            unreported = set(self._books) - set(reported)
            if unreported:
                attempt = min(unreported)
                raise self._broken(f"{self._name(attempt)}: rows arrived that Spark's driver does not report")
        # Attempts without a partition keep the order in which they appeared.
        self._winners = sorted(reported, key=lambda attempt: (attempt.partition, self._books[attempt].lane))
        return list(self._winners)

    def _counted(self) -> Iterable[_Book]:
        return self._books.values() if self._winners is None else (self._books[key] for key in self._winners)

    def _open_book(self, attempt: Attempt) -> _Book:
        book = self._books.get(attempt)
        if book is None or book.phase is not Phase.OPEN:
            state = "was never opened" if book is None else f"is {book.phase.value}"
            raise self._broken(f"{self._name(attempt)}: a batch or an end came for an attempt that {state}")
        return book

    def _refuse_repeats(self, reported: Sequence[Attempt]) -> None:
        counts = Counter(key if key.partition == UNKNOWN_PARTITION else key.partition for key in reported)
        for attempt in reported:
            if counts[attempt if attempt.partition == UNKNOWN_PARTITION else attempt.partition] > 1:
                raise self._broken(f"{self._name(attempt)}: Spark's driver reports it more than once")

    def _prove(self, attempt: Attempt, row: SinkRow) -> None:
        book = self._books.get(attempt)
        if book is None:
            raise self._broken(
                f"{self._name(attempt)}: Spark's driver reports {row.rows} rows, the member received nothing"
            )
        if book.phase is not Phase.ENDED:
            raise self._broken(
                f"{self._name(attempt)}: Spark's driver reports {row.rows} rows, the member holds {book.rows} "
                f"of an attempt that is {book.phase.value}"
            )
        if differences := book.differences(row.batches, row.rows, row.checksum):
            raise self._broken(f"{self._name(attempt)}: Spark's driver reports {differences}")

    def _broken(self, message: str) -> SiteError:
        self._error = self._error or SiteError(message)
        return self._error

    def _name(self, attempt: Attempt) -> str:
        partition = "" if attempt.partition == UNKNOWN_PARTITION else f"partition {attempt.partition} "
        return f"fragment {self._fragment}: {partition}(task attempt {attempt.attempt})"

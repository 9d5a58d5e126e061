"""Shell of the audit: a file of lines, written by a thread of its own, that moves aside when it is full.

Nobody waits for a disk but who asks to: `put` never does, `write` returns when the line is on the disk.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress

from skerry.access.audit import Line, Lost, encode, size_of
from skerry.config.ownfiles import NotOurs, append_own, reason
from skerry.model import trace
from skerry.model.config import AuditConfig
from skerry.model.errors import Unaudited
from skerry.model.limits import AUDIT_RETRY_S, AUDIT_WAITING_BYTES


class _Waiting:
    """A line, and who waits for it."""

    def __init__(self, line: Line, waiter: asyncio.Future[None] | None = None) -> None:
        self.line = line
        self.waiter = waiter
        self.size_bytes = size_of(line)

    def settle(self, error: Exception | None = None) -> None:
        """From the writing thread; the loop may have ended with its member."""
        if self.waiter is not None:
            with suppress(RuntimeError):
                self.waiter.get_loop().call_soon_threadsafe(_settle, self.waiter, error)


def _settle(waiter: asyncio.Future[None], error: Exception | None) -> None:
    if waiter.done():
        return
    if error is None:
        waiter.set_result(None)
    else:
        waiter.set_exception(error)


class AuditFile:
    """`clock` gives the time as lines have it. Lines that find no room on the disk wait, within a bound."""

    def __init__(self, config: AuditConfig, member: str, clock: Callable[[], str]) -> None:
        self.path = config.file_of(member)
        self._config = config
        self._member = member
        self._clock = clock
        self._turn = threading.Condition()
        self._waiting: deque[_Waiting] = deque()
        self._waiting_bytes = 0
        self._lost = 0
        self._trouble = ""
        self._is_closing = False
        self._file = -1
        self._thread = threading.Thread(target=self._run, name=f"{member}-audit", daemon=True)

    def start(self) -> None:
        """NotOurs, or an OSError, when the file cannot be opened."""
        self._file = append_own(self.path)
        self._thread.start()

    @property
    def trouble(self) -> str:
        """Why lines cannot be written now; "" when they can."""
        return self._trouble

    def put(self, line: Line) -> None:
        """It is written soon. If too much waits already it is lost, and counted."""
        with self._turn:
            if not self._add(_Waiting(line)):
                self._lost += 1

    async def write(self, line: Line) -> None:
        """Returns when the line is on the disk; Unaudited when that cannot be."""
        written = asyncio.get_running_loop().create_future()
        with self._turn:
            is_taken = self._add(_Waiting(line, written))
        if not is_taken:
            raise self.unaudited(self._trouble or f"over {AUDIT_WAITING_BYTES} bytes of lines wait for the disk")
        await written  # owner: the writing thread, which settles every line

    def close(self, timeout_s: float) -> None:
        """What waits is tried once more; a disk that hangs is not waited for."""
        with self._turn:
            self._is_closing = True
            self._turn.notify()
        if self._thread.is_alive():
            self._thread.join(timeout_s)

    def _add(self, waiting: _Waiting) -> bool:
        if self._is_closing or self._waiting_bytes + waiting.size_bytes > AUDIT_WAITING_BYTES:
            return False
        self._waiting.append(waiting)
        self._waiting_bytes += waiting.size_bytes
        self._turn.notify()
        return True

    def unaudited(self, why: str) -> Unaudited:
        return Unaudited(
            f"site {self._member}: the audit cannot be written ({why}), and no statement runs without it",
            member=self._member,
            suggestion="make room where audit.path is; statements run again as soon as a line can be written",
        )

    # --- the thread --------------------------------------------------------------------------------
    def _run(self) -> None:
        is_closing = False
        while not is_closing:
            with self._turn:
                if self._trouble:  # new lines do not hurry a disk that is full, unless somebody waits for one
                    self._turn.wait_for(lambda: self._is_closing or self._is_awaited, AUDIT_RETRY_S)
                else:
                    self._turn.wait_for(lambda: self._is_closing or bool(self._waiting))
                is_closing = self._is_closing
                taken, self._waiting = list(self._waiting), deque()
            try:
                self._write_all(taken)
            except Exception as error:  # a mistake of ours: nobody may wait for a thread that is gone
                trace.emit(trace.WorkFailed("audit"), error)
                self._give_up(taken)
        if self._file >= 0:
            os.close(self._file)

    @property
    def _is_awaited(self) -> bool:
        return any(each.waiter is not None for each in self._waiting)

    def _write_all(self, taken: list[_Waiting]) -> None:
        """All or none of them; those that somebody waits for are refused rather than kept."""
        with self._turn:
            lost = self._lost
        lines = [each.line for each in taken]
        lines += [Lost(time=self._clock(), lines=lost)] if lost else []
        if not lines:
            return
        try:
            self._append(b"".join(encode(line, self._config.statements) for line in lines))
            done, kept, error = taken, [], None
        except (OSError, NotOurs) as trouble:
            why = reason(trouble)
            kept = [each for each in taken if each.waiter is None]
            done = [each for each in taken if each.waiter is not None]
            error = self.unaudited(why)
            if not self._trouble:  # once, until it works again
                trace.emit(trace.AuditUnwritten(self._member, why))
            self._trouble = why
        with self._turn:
            self._waiting.extendleft(reversed(kept))
            self._waiting_bytes -= sum(each.size_bytes for each in done)
            if error is None:
                self._lost -= lost
                was, self._trouble = self._trouble, ""
        if error is None and was:
            trace.emit(trace.AuditResumed(self._member, lost))
        for each in done:
            each.settle(error)

    def _give_up(self, taken: list[_Waiting]) -> None:
        with self._turn:
            self._waiting_bytes -= sum(each.size_bytes for each in taken)
            self._lost += sum(each.waiter is None for each in taken)
        for each in taken:
            each.settle(self.unaudited("its line cannot be made"))

    def _append(self, lines: bytes) -> None:
        self._reopen_if_moved()
        size = os.fstat(self._file).st_size
        if size and size + len(lines) > self._config.rotate_bytes:
            size = self._rotate(size)
        try:
            left = memoryview(lines)
            while left:
                left = left[os.write(self._file, left) :]
            if self._config.is_required:
                os.fsync(self._file)
        except OSError:
            os.ftruncate(self._file, size)  # no half of a line stays
            raise

    def _reopen_if_moved(self) -> None:
        """Somebody may have moved or removed it: what is written to a file without a name is nobody's to read."""
        if self._file >= 0:
            try:
                here, ours = os.stat(self.path, follow_symlinks=False), os.fstat(self._file)
                if (here.st_dev, here.st_ino) == (ours.st_dev, ours.st_ino):
                    return
            except FileNotFoundError:
                pass
            os.close(self._file)
            self._file = -1
        self._file = append_own(self.path)

    def _rotate(self, size: int) -> int:
        """The size of the file to go on with. If it cannot be moved aside it grows: no line is lost for that."""
        try:
            for number in range(self._config.keep - 1, 0, -1):
                with suppress(FileNotFoundError):
                    os.rename(f"{self.path}.{number}", f"{self.path}.{number + 1}")
            os.rename(self.path, f"{self.path}.1")
        except OSError:
            return size
        self._reopen_if_moved()
        return 0

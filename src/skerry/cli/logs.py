"""Logs: where a member's process writes its own, and which lines of all members `skerry up` shows.

Members that `up` starts write JSON lines (member/loglines.py), so that nobody has to guess how bad a line is.
"""

from __future__ import annotations

import asyncio
import io
import logging
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import datetime
from enum import Enum
from typing import Any, TextIO

import msgspec

from skerry.member.loglines import JsonLines, TextLines, plain, plain_trace
from skerry.model.limits import HELD_LINES
from skerry.model.trace import Event, WorkFailed, emit


class Record(msgspec.Struct, frozen=True):
    """What is shown of one record of a member's log; `trace` is Python's, of an error that nobody expected.

    `raw` is the whole line as the member wrote it.
    """

    time: datetime
    level: str
    text: str
    trace: str = ""
    raw: str = ""

    @property
    def lines(self) -> str:
        """Nothing in it makes a line that looks like another record."""
        return f"{plain(self.text)}\n{plain_trace(self.trace)}" if self.trace else plain(self.text)


# A member's record, or a line that something else wrote: its JVM, or Python when it ends.
Line = Record | str


class Phase(Enum):
    """Where all members together are."""

    STARTING = "starting"
    UP = "up"
    STOPPING = "stopping"


# Members that stop together lose each other: only what is worse is worth a line then.
_LEAST = {Phase.STARTING: logging.WARNING, Phase.UP: logging.WARNING, Phase.STOPPING: logging.ERROR}


class TurnHandler(logging.StreamHandler[TextIO]):
    """Lines of one turn of a loop are written together when it ends: statements of some milliseconds have two each. A
    warning, and a line of another thread, goes out at once, behind those that wait."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self._held: list[str] = []

    def handle(self, record: logging.LogRecord) -> bool:
        """As `logging` has it, in fewer calls: each statement comes here twice."""
        if self.filters or self.lock is None:
            return bool(super().handle(record))
        with self.lock:
            self.emit(record)
        return True

    def emit(self, record: logging.LogRecord) -> None:
        try:
            is_first = not self._held
            self._held.append(f"{self.format(record)}{self.terminator}")
            loop = _running_loop() if record.levelno < logging.WARNING else None
            if loop is None:
                self.flush()
            elif is_first:
                loop.call_soon(self.flush)
        except Exception:
            self.handleError(record)

    def flush(self) -> None:
        self.acquire()
        try:
            held, self._held = self._held, []
            if held:
                self.stream.write("".join(held))
            super().flush()
        finally:
            self.release()


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


class QuickRecord(logging.LogRecord):
    """Of an event without what no line says: the thread, the place in the code. Of others as `logging` has it."""

    def __init__(
        self, name: str, level: int, path: str, line: int, msg: object, args: Any, error: Any, *more: Any, **named: Any
    ) -> None:
        if not isinstance(msg, Event):
            super().__init__(name, level, path, line, msg, args, error, *more, **named)
            return
        self.__dict__.update(_UNSAID)
        self.name, self.msg, self.exc_info = name, msg, error
        self.levelno, self.levelname = level, logging.getLevelName(level)
        self.created = time.time()
        self.msecs = self.created % 1 * 1000


_UNSAID = logging.LogRecord("", 0, "", 0, "", (), None).__dict__


def set_up_log(member: str, *, is_debug: bool = False, is_json: bool = False, logs_sql: bool = False) -> None:
    """The log of a member's process: one record a line, to standard error. Other libraries may warn in it."""
    if isinstance(sys.stderr, io.TextIOWrapper):  # whatever the locale says: `up` reads UTF-8
        sys.stderr.reconfigure(encoding="utf-8", errors="backslashreplace")
    handler = TurnHandler(sys.stderr)
    handler.setFormatter(JsonLines(member, logs_sql=logs_sql) if is_json else TextLines(logs_sql=logs_sql))
    ours, others = logging.getLogger("skerry"), logging.getLogger()
    ours.handlers[:] = others.handlers[:] = [handler]
    ours.setLevel(logging.DEBUG if is_debug else logging.INFO)
    ours.propagate = False
    others.setLevel(logging.WARNING)
    logging.captureWarnings(True)
    # No line says where in the code it was written: to find out takes a third of the time that a line takes.
    logging.setLogRecordFactory(QuickRecord)
    logging._srcfile = None
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    threading.excepthook = _thread_failed


def _thread_failed(failed: threading.ExceptHookArgs) -> None:
    """Python would write the trace to standard error as it is."""
    name = failed.thread.name if failed.thread is not None else "a thread"
    emit(WorkFailed(name), failed.exc_value)


def read_line(raw: bytes) -> Line:
    """A line that a member's process wrote with `is_json`; bytes that are no UTF-8 make no record less."""
    text = raw.decode(errors="replace").rstrip()
    try:
        return msgspec.structs.replace(msgspec.json.decode(text, type=Record), raw=text)
    except (msgspec.MsgspecError, RecursionError):
        return text


def take_lines(raws: Iterable[bytes], on_line: Callable[[Line], None]) -> None:
    """To the end, whatever a line does to whoever takes it: a member stops at a pipe that nobody empties."""
    for raw in raws:
        try:
            on_line(read_line(raw))
        except Exception as error:
            with suppress(Exception):
                on_line(f"a line of {len(raw)} bytes could not be shown ({type(error).__name__})")


def line_text(member: str, width: int, line: Line) -> str:
    """For a log of several members: each line names its own, padded to `width`."""
    if isinstance(line, Record):
        clock = line.time.astimezone().strftime("%H:%M:%S.%f")[:-3]
        text = f"{clock} {line.level.upper():<7} {line.lines}"
    else:
        text = plain(line)
    return "\n".join(f"{member:<{width}}  {each}" for each in text.split("\n"))


def note_line(member: str, line: str) -> str:
    """A line of a member's process that is no record, as an object like the others."""
    return JsonLines(member).format(logging.LogRecord("process", logging.INFO, "", 0, line, (), None))


def is_shown(line: Line, phase: Phase) -> bool:
    """Whether it goes to a terminal, where nobody asked for more."""
    if isinstance(line, Record):
        return logging.getLevelNamesMapping().get(line.level.upper(), logging.WARNING) >= _LEAST[phase]
    return phase is Phase.UP


class Held:
    """The last lines of each member that were not shown, for the case that it does not start."""

    def __init__(self) -> None:
        self._lines: dict[str, deque[str]] = {}

    def keep(self, member: str, line: Line) -> None:
        text = line.lines if isinstance(line, Record) else plain(line)
        self._lines.setdefault(member, deque(maxlen=HELD_LINES)).append(text)

    def last(self, member: str, count: int) -> str:
        return "\n".join(list(self._lines.get(member, ()))[-count:])

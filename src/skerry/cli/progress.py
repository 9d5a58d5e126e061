"""The live line on a terminal while a query runs; it leaves nothing behind."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.status import Status
from rich.text import Text

from skerry.cli.login import Login
from skerry.cli.render import progress_line
from skerry.client.dbapi import Connection, Cursor, QueryStatus, connect
from skerry.client.pep249 import Error

POLL_S = 0.3


class LiveLine:
    """Shows how a query does, asked over a second connection so that pages never stand in its way."""

    def __init__(self, url: str, console: Console, login: Login | None = None) -> None:
        self._url = url
        self._login = login or Login()
        self._console = console
        self._connection: Connection | None = None

    @contextmanager
    def during(self, cursor: Cursor, started: float) -> Iterator[None]:
        """Show the line while the body waits for `cursor`, if it waits long enough to be noticed."""
        if not self._console.is_terminal:
            yield
            return
        shown = _Shown(self._console)
        poll = threading.Thread(target=self._poll, args=(cursor, started, shown), name="skerry-progress", daemon=True)
        poll.start()
        try:
            yield
        finally:
            shown.erase()
            poll.join(POLL_S)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()

    def _poll(self, cursor: Cursor, started: float, shown: _Shown) -> None:
        while not shown.ended.wait(POLL_S):
            status = self._status(cursor)
            shown.show(progress_line(status, time.monotonic() - started))

    def _status(self, cursor: Cursor) -> QueryStatus | None:
        try:
            if self._connection is None or not self._connection.usable:
                self._connection = connect(self._url, **self._login)
            return self._connection.status(cursor.query_id)
        except Error:
            return None  # the query itself will say what is wrong


class _Shown:
    """The line on the screen; nothing is drawn once `ended` is set."""

    def __init__(self, console: Console) -> None:
        self.ended = threading.Event()
        self._lock = threading.Lock()
        self._status: Status | None = None
        self._console = console

    def show(self, line: str) -> None:
        text = Text(line, no_wrap=True, overflow="ellipsis", style="dim")
        with self._lock:
            if self.ended.is_set():
                return
            if self._status is None:
                self._status = Status(text, console=self._console)
                self._status.start()
            else:
                self._status.update(text)

    def erase(self) -> None:
        with self._lock:
            self.ended.set()
            if self._status is not None:
                self._status.stop()

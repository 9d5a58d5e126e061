"""Sink tasks that run in threads of their member's own process, as Sail's do: rows change hands without a socket.

A socket would cost such a task two copies and three checksums of everything, and the member's loop as much again.
"""

from __future__ import annotations

import asyncio
import threading
import weakref
from collections import deque
from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import Any, NamedTuple

from skerry.exchange.spool import Body
from skerry.wire.frames import ConnectionLost
from skerry.wire.messages import Batch, SinkEnd, SinkOpen

_AHEAD = 4  # batches that wait for the member's loop; more only fill memory
_LOOK_S = 1.0  # a loop that was closed wakes nobody


class Delivery(NamedTuple):
    """A batch, its body as an Arrow IPC message, and what `combine` makes the attempt's checksum of."""

    header: Batch
    body: Body
    batch_hash: int


class Handover:
    """One sink task's rows on their way: `put` and `end` are the task's, all else belongs to the member's loop."""

    peer_name = "a task of this process"

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._changed = threading.Condition()  # guards all below
        self._waiting: deque[Delivery | SinkEnd] = deque()
        self._error: BaseException | None = None
        self._is_left = False  # by the task, before its end
        self._taken = False
        self._wakeup: asyncio.Event | None = None

    # --- the task's side ---------------------------------------------------------------------------
    def hash_of(self, body: Body) -> int:
        """Its length: the member gets this very memory, so only a batch that is missing could make a difference."""
        return len(body)

    def put(self, header: Batch, body: Body, batch_hash: int) -> None:
        """Waits while the member is behind; raises why it wants no more."""
        with self._changed:
            self._wait_for(lambda: len(self._waiting) < _AHEAD)
            self._append(Delivery(header, body, batch_hash))

    def end(self, end: SinkEnd) -> None:
        """Returns when the member has everything."""
        with self._changed:
            self._wait_for(lambda: True)
            self._append(end)
            self._wait_for(lambda: self._taken)

    def __enter__(self) -> Handover:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        with self._changed:
            self._is_left = True
            self._wake()

    def _wait_for(self, condition: Callable[[], bool]) -> None:
        while not self._changed.wait_for(lambda: self._error is not None or condition(), _LOOK_S):
            if self._loop.is_closed():
                self._error = ConnectionLost("the member has stopped")
        if self._error is not None:
            raise self._error

    def _append(self, item: Delivery | SinkEnd) -> None:
        self._waiting.append(item)
        if len(self._waiting) == 1:
            self._wake()

    def _wake(self) -> None:
        if self._wakeup is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._wakeup.set)

    # --- the member's side -------------------------------------------------------------------------
    async def receive(self) -> Delivery | SinkEnd:
        """The next of them; ConnectionLost when the task ended without its end mark."""
        wakeup = self._wakeup
        if wakeup is None:
            with self._changed:
                wakeup = self._wakeup = asyncio.Event()
        while True:
            wakeup.clear()
            with self._changed:
                if self._waiting:
                    self._changed.notify_all()
                    return self._waiting.popleft()
                if self._is_left:
                    raise ConnectionLost("a sink's task ended without its end mark")
            await wakeup.wait()

    def taken(self, batches: int) -> None:
        with self._changed:
            self._taken = True
            self._changed.notify_all()

    def fail(self, error: BaseException) -> None:
        """The task is told why; the first reason stays."""
        with self._changed:
            self._error = self._error or error
            self._waiting.clear()
            self._changed.notify_all()

    def abort(self) -> None:
        self.fail(ConnectionLost("the member closed the connection of this task before its end"))


class Door:
    """Where the tasks of this process find their member, by the address that others would dial."""

    def __init__(self, serve: Callable[[Handover, SinkOpen, str], Coroutine[Any, Any, None]]) -> None:
        self._loop = asyncio.get_running_loop()
        self._serve = serve
        self._tasks: set[asyncio.Task[None]] = set()

    def enter(self, opening: SinkOpen, token: str) -> Handover:
        """For a task's thread: begin to deliver."""
        handover = Handover(self._loop)
        try:
            self._loop.call_soon_threadsafe(self._begin, handover, opening, token)
        except RuntimeError:
            raise ConnectionLost("the member has stopped") from None
        return handover

    def _begin(self, handover: Handover, opening: SinkOpen, token: str) -> None:
        task = self._loop.create_task(self._run(handover, opening, token), name="sink inside")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _run(self, handover: Handover, opening: SinkOpen, token: str) -> None:
        try:
            await self._serve(handover, opening, token)
        except asyncio.CancelledError:
            handover.abort()
            raise
        except Exception as error:
            handover.fail(error)


# Weak: a member that is gone has no door.
_doors: weakref.WeakValueDictionary[str, Door] = weakref.WeakValueDictionary()


def open_door(address: str, door: Door) -> None:
    """Tasks of this process that are told this address may come in by `door` from now on."""
    _doors[address] = door


def find_door(address: str) -> Door | None:
    return _doors.get(address)

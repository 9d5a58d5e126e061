"""An event loop with a time of its own: nothing sleeps, nothing is read from a socket, and a seed runs the same way
again. Every callback belongs to a process, which can be paused and killed."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import heapq
import itertools
from collections import deque
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sim.network import Network

STEPS_MAX = 400_000
_STEPS_AT_ONE_TIME = 50_000
_CLOSINGS = 5


class Violation(Exception):
    """What must never happen has happened."""


class Process:
    """What lives, stops and dies together: a member, or its Spark."""

    def __init__(self, name: str, host: str) -> None:
        self.name = name
        self.host = host
        self.is_alive = True
        self.is_paused = False
        self.held: list[asyncio.Handle] = []  # callbacks that came due while it was paused
        self.context = contextvars.Context()
        self.context.run(OWNER.set, self)

    def __repr__(self) -> str:
        return self.name


OWNER: contextvars.ContextVar[Process | None] = contextvars.ContextVar("owner", default=None)


class SimFuture(asyncio.Future[Any]):
    """Its hash is a number of its loop's: code under test iterates over sets of them, and addresses differ each run."""

    serial: int

    def __new__(cls, *, loop: SimLoop) -> SimFuture:
        future = super().__new__(cls)
        future.serial = next(loop.serials)
        return future

    def __hash__(self) -> int:
        return self.serial


class SimTask(asyncio.Task[Any]):
    """The same of a task."""

    serial: int
    owner: Process | None

    def __new__(cls, *_arguments: object, loop: SimLoop, **_options: object) -> SimTask:
        task = super().__new__(cls)
        task.serial = next(loop.serials)
        return task

    def __hash__(self) -> int:
        return self.serial


class SimLoop(asyncio.AbstractEventLoop):
    """As much of an event loop as members use. `run` drives one coroutine to its end in virtual time."""

    def __init__(self, network: Network) -> None:
        self.now = 1000.0
        self.steps = 0
        self.network = network
        self.errors: list[str] = []  # exceptions that nobody caught, and what the checks found
        self.every_steps: Callable[[], None] = lambda: None
        self.serials = itertools.count(1)
        self.tasks: set[SimTask] = set()
        self._ready: deque[asyncio.Handle] = deque()
        self._timers: list[tuple[float, int, asyncio.TimerHandle]] = []
        self._numbers = itertools.count()
        self._closed = False
        network.loop = self

    # --- running ---------------------------------------------------------------------------------
    def run(self, main: Coroutine[Any, Any, None], until: float) -> None:
        """Until `main` ends; a Violation when that takes too long."""
        asyncio._set_running_loop(self)
        try:
            task = self.create_task(main)
            self._run(task, until)
            task.result()
        finally:
            asyncio._set_running_loop(None)

    def _run(self, task: SimTask, until: float) -> None:
        moved_at = 0
        while not task.done():
            if not self._ready:
                if not self._timers:
                    raise Violation("nothing is left to happen, and the run is not over")
                self._advance()
                moved_at = self.steps
            if self.now > until:
                raise Violation(f"not over after {until - 1000:.0f} s of virtual time")
            if not self._ready:
                continue  # only cancelled timers were due
            handle = self._ready.popleft()
            if handle._cancelled:
                continue
            process = handle._context.get(OWNER)  # type: ignore[attr-defined]
            if process is not None and (not process.is_alive or process.is_paused):
                if process.is_alive:
                    process.held.append(handle)
                continue
            self.steps += 1
            handle._run()
            if self.errors:
                raise Violation(self.errors[0])
            if self.steps % 16 == 0:
                self.every_steps()
                if self.steps - moved_at > _STEPS_AT_ONE_TIME or self.steps > STEPS_MAX:
                    raise Violation(f"an endless loop: {self.steps} steps at {self.now - 1000:.3f} s")

    def _advance(self) -> None:
        """To the next timer, and all that are due with it."""
        self.now = max(self.now, self._timers[0][0])
        while self._timers and self._timers[0][0] <= self.now:
            handle = heapq.heappop(self._timers)[2]
            if not handle._cancelled:
                self._ready.append(handle)

    def resume(self, process: Process) -> None:
        process.is_paused = False
        self._ready.extend(process.held)
        process.held = []

    def dispose(self) -> None:
        """End what is left, here and now: coroutines that Python closes later would run inside another seed."""
        self._closed = True
        asyncio._set_running_loop(self)
        try:
            for task in sorted(self.tasks, key=lambda task: task.serial):
                task._log_destroy_pending = False  # type: ignore[attr-defined]
                for _ in range(_CLOSINGS):  # one that waits in a `finally` must be closed again
                    try:
                        task.get_coro().close()
                        break
                    except BaseException:
                        continue
        finally:
            asyncio._set_running_loop(None)
        self._ready.clear()
        self._timers.clear()
        self.tasks.clear()

    # --- what asyncio asks of a loop -------------------------------------------------------------
    def time(self) -> float:
        return self.now

    def call_soon(  # type: ignore[override]
        self, callback: Callable[..., Any], *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.Handle:
        handle = asyncio.Handle(callback, args, self, context)
        if not self._closed:
            self._ready.append(handle)
        return handle

    call_soon_threadsafe = call_soon  # type: ignore[assignment]

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Callable[..., Any], *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.TimerHandle:
        return self.call_at(self.now + delay, callback, *args, context=context)

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., Any], *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.TimerHandle:
        handle = asyncio.TimerHandle(when, callback, args, self, context)
        if not self._closed:
            heapq.heappush(self._timers, (when, next(self._numbers), handle))
        return handle

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None: ...

    def create_future(self) -> asyncio.Future[Any]:
        return SimFuture(loop=self)

    def create_task(  # type: ignore[override]
        self, coro: Coroutine[Any, Any, Any], *, name: str | None = None, context: contextvars.Context | None = None
    ) -> SimTask:
        task = SimTask(coro, loop=self, name=name, context=context)
        task.owner = context.get(OWNER) if context is not None else OWNER.get()
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard, context=_NOBODY)
        return task

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:  # type: ignore[override]
        """What blocks in a thread is a task here if the engine knows how; anything else is quick, and done at once."""
        while isinstance(func, functools.partial):
            args, func = (*func.args, *args), func.func
        future = self.create_future()
        work = getattr(getattr(func, "__self__", None), "in_loop", None)
        if work is not None and work(func.__name__, args, future):
            return future
        try:
            future.set_result(func(*args))
        except Exception as error:
            future.set_exception(error)
        return future

    async def create_connection(self, protocol_factory: Any, host: Any = None, port: Any = None, **_: Any) -> Any:
        return await self.network.connect(protocol_factory, host, port)

    async def create_server(self, protocol_factory: Any, host: Any = None, port: Any = None, **_: Any) -> Any:
        return self.network.listen(protocol_factory, host, port)

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        if not self._closed:
            error = context.get("exception")
            self.errors.append(f"{context.get('message')}: {type(error).__name__}: {error}")

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return True

    def is_closed(self) -> bool:
        return self._closed


_NOBODY = contextvars.Context()  # of callbacks that are the simulation's own


def nobody() -> contextvars.Context:
    """A context without an owner: for what the network and the clock do by themselves."""
    return _NOBODY

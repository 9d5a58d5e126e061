"""The member's side of its planners: a few processes, each ended when its time is up or nobody wants its plan any more.

Small statements go on being planned, and everybody else is served, whatever one statement takes.
"""

from __future__ import annotations

import asyncio
import contextlib
import pickle
import socket
import subprocess
import sys
from collections.abc import Callable
from typing import Any, TypeVar

from skerry.catalog.catalog import Site
from skerry.config import Config
from skerry.member.places import Places
from skerry.member.planner_process import END, FORK, LENGTH, PID, Forked, Outcome, Task, packed
from skerry.member.planning import Planner
from skerry.member.shares import Shares
from skerry.model import trace
from skerry.model.errors import Overloaded
from skerry.model.limits import LARGE_SQL_CHARS, PLANNER_START_S, PLANNER_STOP_S, Limits
from skerry.model.variables import variables_bytes

T = TypeVar("T")

# Not `-m`: what it pickles has to be of the module that the member has.
_PROGRAM = "import sys; from skerry.member.planner_process import run; run(int(sys.argv[1]))"


class _Process:
    """One planner, and what it has been told."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self.pid = 0
        self.sites: dict[str, Site] = {}
        self.sizes_upto = 0


class Planners:
    """Stands where `Workers` do in a `Planner`. Of three processes a user has two at most, one of them for a large
    statement.
    """

    def __init__(self, config: Config, name: str) -> None:
        self._config = config
        self._name = name
        self._limits = limits = config.limits
        in_all = limits.planners
        self._places = _places(in_all, max(2, in_all - 1), limits)
        # Whoever comes with a small statement finds a process, however many large ones there are, also its own.
        self._large = _places(max(1, in_all - 1), max(1, in_all - 2), limits)
        self._idle: list[_Process] = []
        self._parent: subprocess.Popen[bytes] | Forked | None = None
        self._control: socket.socket | None = None

    def start(self, *, is_first: bool = False) -> None:
        """Begin to start the process that all others come from; the first statement waits for it.

        `is_first`: this process has read its modules and done nothing else, so a copy of it will do.
        """
        control, theirs = socket.socketpair()
        with theirs:
            if is_first:
                self._parent = Forked(theirs.fileno())
            else:
                self._parent = subprocess.Popen(
                    [sys.executable, "-c", _PROGRAM, str(theirs.fileno())],
                    pass_fds=[theirs.fileno()],
                    stdin=subprocess.DEVNULL,
                    start_new_session=True,  # what is typed at the member's terminal is for the member
                )
        control.sendall(packed((self._config, self._name)))
        self._control = control

    def stop(self) -> None:
        """Its children end with it."""
        for process in self._idle:
            process.writer.close()
        self._idle.clear()
        if self._control is not None:
            self._control.close()
            self._control = None
        if self._parent is not None:
            try:
                self._parent.wait(PLANNER_STOP_S)
            except subprocess.TimeoutExpired:
                self._parent.kill()
                self._parent.wait()
            self._parent = None

    async def run(self, work: Callable[[Any, Any], T], planner: Planner, message: Any) -> T:
        """What `work` makes of the statement. Whoever is cancelled ends the process that works for it."""
        turn = object()
        is_large = len(message.sql) + variables_bytes(message.variables) > LARGE_SQL_CHARS
        kinds = (self._large, self._places) if is_large else (self._places,)
        try:
            for places in kinds:
                await places.take(turn, message.share)
            return await self._planned(work, planner, message)
        finally:
            for places in kinds:
                places.leave(turn)

    async def _planned(self, work: Callable[[Any, Any], T], planner: Planner, message: Any) -> T:
        process = self._rested() or await self._started()
        try:
            async with asyncio.timeout(self._limits.planning_s):
                outcome = await self._ask(process, work, planner, message)
        except TimeoutError:
            self._end(process)
            raise Overloaded(
                f"the statement was planned for longer than {self._limits.planning_s:g} s (limits.planning_s)",
                member=self._name,
                suggestion="ask in several statements",
            ) from None
        except (OSError, EOFError) as error:
            self._end(process)
            raise Overloaded("the process that planned the statement ended", member=self._name) from error
        except BaseException:
            self._end(process)
            raise
        if isinstance(outcome.error, Overloaded):
            self._end(process)
        else:
            self._idle.append(process)
        if outcome.error is not None:
            raise outcome.error
        result: T = outcome.value
        return result

    def _rested(self) -> _Process | None:
        """One that waits for work; those that somebody has ended meanwhile are left out."""
        while self._idle:
            process = self._idle.pop()
            if not process.reader.at_eof():
                return process
            self._end(process)
        return None

    async def _ask(self, process: _Process, work: Callable[..., Any], planner: Planner, message: Any) -> Outcome:
        sites, observed = planner.catalog.sites, planner.site.observed
        assert observed is not None
        changed = {name: site for name, site in sites.items() if process.sites.get(name) is not site}
        sizes, upto = observed.since(process.sizes_upto)
        process.writer.write(packed(Task(work, message, changed, sizes)))
        process.sites, process.sizes_upto = dict(sites), upto
        await process.writer.drain()
        (size,) = LENGTH.unpack(await process.reader.readexactly(LENGTH.size))
        outcome: Outcome = pickle.loads(await process.reader.readexactly(size))
        return outcome

    async def _started(self) -> _Process:
        """Whoever is cancelled keeps its place until the process is there, for the next one: else those who come and
        go would have their parent fork without end, and everybody wait for it."""
        new = asyncio.ensure_future(self._new())
        try:
            return await asyncio.shield(new)
        except asyncio.CancelledError:
            with contextlib.suppress(Overloaded):
                self._idle.append(await new)
            raise

    async def _new(self) -> _Process:
        """A planner more. Their parent is started again if it was ended."""
        own, theirs = socket.socketpair()
        with theirs:
            self._fork(theirs)
        process = _Process(*await asyncio.open_unix_connection(sock=own))
        try:
            async with asyncio.timeout(PLANNER_START_S):
                process.pid = PID.unpack(await process.reader.readexactly(PID.size))[0]
        except (OSError, EOFError, TimeoutError) as error:
            process.writer.close()
            raise Overloaded("no process could be started to plan the statement", member=self._name) from error
        except BaseException:
            process.writer.close()
            raise
        return process

    def _fork(self, theirs: socket.socket) -> None:
        if self._parent is not None and (status := self._parent.poll()) is not None:
            trace.emit(trace.PlannersEnded(self._name, status))
            self.stop()
        if self._control is None:
            self.start()
        assert self._control is not None
        socket.send_fds(self._control, [FORK], [theirs.fileno()])

    def _end(self, process: _Process) -> None:
        process.writer.close()
        if self._control is not None:
            with contextlib.suppress(OSError):
                self._control.sendall(END + PID.pack(process.pid))


def _places(in_all: int, per_user: int, limits: Limits) -> Places[object]:
    shares: Shares[object] = Shares("statements", "limits.planners", in_all, per_user, limits.queries, "limits.queries")
    return Places(shares)

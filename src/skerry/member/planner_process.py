"""Planning in processes that can be ended. One process, which only forks, is their parent: a new planner is there at
once, knows what all of them have read, and inherits no thread, socket or lock of the member.

`planners.py` is the member's side.
"""

from __future__ import annotations

import gc
import os
import pickle
import resource
import signal
import socket
import struct
import subprocess
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import msgspec

from skerry.catalog.catalog import Catalog, Site
from skerry.catalog.topology import Topology
from skerry.config import Config
from skerry.member.planning import Knowledge
from skerry.model.errors import InternalError, Overloaded, SkerryError
from skerry.plan.observed import Observed, Size
from skerry.plan.site import site_of

LENGTH = struct.Struct("!Q")
PID = struct.Struct("!Q")
FORK, END = b"F", b"E"
_LOOK_S = 0.01  # between two looks at one that is waited for
_GARBAGE = 50_000  # objects that are worth a look for cycles, between two statements


class Task(msgspec.Struct, frozen=True):
    """A statement, and what has changed since the planner's last one."""

    work: Callable[..., Any]
    message: Any
    sites: dict[str, Site]
    sizes: Sequence[tuple[str, Size]]


class Outcome(msgspec.Struct, frozen=True):
    value: Any = None
    error: Exception | None = None


def packed(value: object) -> bytes:
    """Only a member and its own children speak so: nobody else can reach their sockets."""
    body = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    return LENGTH.pack(len(body)) + body


def knowledge_of(config: Config, name: str) -> Knowledge:
    """What a planner knows before anybody has told it of tables."""
    catalog, topology = Catalog(config), Topology(config)
    site = site_of(name, config, topology, Observed(config.limits.observed_edges), catalog.columns_of)
    return Knowledge(name, config, catalog, topology, site)


def _receive(connection: socket.socket) -> Any:
    """None at the end."""
    head = _exactly(connection, LENGTH.size)
    body = _exactly(connection, LENGTH.unpack(head)[0]) if head else b""
    return pickle.loads(body) if body else None


def _exactly(connection: socket.socket, size: int) -> bytes:
    found = bytearray()
    while len(found) < size:
        piece = connection.recv(min(size - len(found), 1 << 20))
        if not piece:
            return b""
        found += piece
    return bytes(found)


def run(descriptor: int) -> None:
    """Forks when told to, and ends planners when told to: nobody else may, for their numbers would be used again."""
    control = socket.socket(fileno=descriptor)
    config, name = _receive(control)
    known = knowledge_of(config, name)
    gc.collect()
    gc.freeze()
    children: set[int] = set()
    while True:
        head, files, _, _ = socket.recv_fds(control, 1, 1)
        if head == FORK:
            pid = os.fork()
            if pid == 0:
                control.close()
                with suppress(ConnectionError):  # its statement was cancelled: nobody wants the plan
                    _plan_for(socket.socket(fileno=files[0]), known)
                os._exit(0)
            os.close(files[0])
            children.add(pid)
        elif head == END:
            _end(PID.unpack(_exactly(control, PID.size))[0], children)
        else:
            for pid in list(children):
                _end(pid, children)
            return


class Forked:
    """A copy of this process that does `run`; as much of `subprocess.Popen` as its owner asks of one."""

    def __init__(self, descriptor: int) -> None:
        self.returncode: int | None = None
        self.pid = os.fork()
        if self.pid == 0:
            status = 1
            try:
                os.setsid()  # what is typed at the member's terminal is for the member
                _keep_only(descriptor)
                run(descriptor)
                status = 0
            finally:
                os._exit(status)  # nothing of the member's is to be ended, or written, twice

    def poll(self) -> int | None:
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self.returncode = os.waitstatus_to_exitcode(status) if pid else None
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """`subprocess.TimeoutExpired` when it has not ended by then."""
        until = None if timeout is None else time.monotonic() + timeout
        while (status := self.poll()) is None:
            if until is not None and time.monotonic() > until:
                assert timeout is not None
                raise subprocess.TimeoutExpired("planners", timeout)
            time.sleep(_LOOK_S)
        return status

    def kill(self) -> None:
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)


def _keep_only(descriptor: int) -> None:
    """Of all files that are open: where it says what goes wrong, and its member."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.closerange(3, descriptor)
    os.closerange(descriptor + 1, os.sysconf("SC_OPEN_MAX"))


def _end(pid: int, children: set[int]) -> None:
    if pid in children:
        children.discard(pid)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def _plan_for(connection: socket.socket, known: Knowledge) -> None:
    """One planner's life."""
    gc.disable()  # between two statements instead
    most = known.limits.planning_bytes
    own = _address_space()
    resource.setrlimit(resource.RLIMIT_AS, (own + most, own + most))
    connection.sendall(PID.pack(os.getpid()))
    while (task := _receive(connection)) is not None:
        outcome = _outcome(task, known, most)
        connection.sendall(_told(outcome))
        if isinstance(outcome.error, Overloaded):
            return  # its memory may be in pieces
        del task, outcome
        if gc.get_count()[0] > _GARBAGE:
            gc.collect()


def _outcome(task: Task, known: Knowledge, most: int) -> Outcome:
    known.catalog.adopt(task.sites)
    assert known.site.observed is not None
    known.site.observed.restore(task.sizes)
    try:
        return Outcome(task.work(known, task.message))
    except (MemoryError, SystemError):  # the latter is how compiled code, such as sqlglot's, may say the former
        shown = f"to plan the statement takes more than {most >> 20} MiB (limits.planning_bytes)"
        return Outcome(error=Overloaded(shown, member=known.name, suggestion="ask in several statements"))
    except Exception as error:
        if not isinstance(error, SkerryError):
            error.add_note(traceback.format_exc())  # for the member's log: frames do not travel
        return Outcome(error=error)


def _told(outcome: Outcome) -> bytes:
    try:
        return packed(outcome)
    except Exception as error:
        return packed(Outcome(error=InternalError(f"{type(outcome.error or error).__name__} while planning")))


def _address_space() -> int:
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[0]) * resource.getpagesize()
    except OSError:
        return 0

"""Sail's process as its member sees it: started, watched for its memory, ended."""

from __future__ import annotations

import importlib.util
import os
import select
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from threading import Thread
from time import monotonic as clock

from skerry.model import trace
from skerry.model.errors import ConfigError, SiteError
from skerry.model.limits import (
    GIB,
    MIB,
    SAIL_POOL_SHARE,
    SAIL_RECYCLE_LOOKS,
    SAIL_RECYCLE_SHARE,
    SAIL_STACK_BYTES,
    SAIL_START_S,
    SAIL_THREADS_LEAST,
    SAIL_THREADS_PER_CORE,
    SAIL_WATCH_S,
)
from skerry.spark.jvm import STOP_S, ending_of, package_root
from skerry.spark.sail_child import READY, SOCKET, UNGUARDED
from skerry.spark.waste import Waste
from skerry.wire.address import temporary_socket


class SailProcess:
    """Runs when it is made.

    A thread of its own calls `on_end` when it ends by itself or by its memory, and `on_waste` again and again while it
    seems to compute for jobs that were cancelled.
    """

    def __init__(
        self,
        memory_bytes: int,
        on_end: Callable[[], None],
        on_waste: Callable[[], None],
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """`environment`: what it finds beside the member's own."""
        if importlib.util.find_spec("pysail") is None:
            raise SiteError("Sail is not installed", suggestion="pip install 'skerry[sail]'")
        self._memory_bytes = memory_bytes
        self._on_end = on_end
        self._on_waste = on_waste
        self._waste = Waste(clock())
        self._reason = ""
        self._is_stopping = False
        self._full_looks = 0  # on end
        self._directory = tempfile.mkdtemp(prefix="skerry-sail-")
        try:
            self._socket = temporary_socket(self._directory, SOCKET)
        except ConfigError:
            os.rmdir(self._directory)
            raise
        command = [sys.executable, "-m", "skerry.spark.sail_child", self._directory]
        # In a session of its own: a Ctrl-C at the terminal is for the member, which may let its queries end first.
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=_environment(self._directory, memory_bytes) | dict(environment or {}),
            start_new_session=True,
        )
        try:
            self._wait_until_ready()
        except BaseException:
            self.stop()
            raise
        self._watcher = Thread(target=self._watch, name="skerry-sail", daemon=True)
        self._watcher.start()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def target(self) -> str:
        """What gRPC dials."""
        return f"unix:{self._socket}"

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    @property
    def is_full(self) -> bool:
        """More of its memory is in use than a fresh one needs for most statements."""
        return self._full_looks > 0

    @property
    def has_grown(self) -> bool:
        """It has been full for a while: no single statement's memory, as far as one can tell."""
        return self._full_looks >= SAIL_RECYCLE_LOOKS

    def job_cancelled(self) -> None:
        """One that it ran; whether its work ends as well is looked at."""
        self._waste.cancelled(clock(), wanted_processor_s(self.pid))

    def how_ended(self, wait_s: float) -> str:
        """Why it is no more, e.g. "signal 11 (SIGSEGV)"; "" if it is alive after so long."""
        try:
            code = self._process.wait(wait_s)
        except subprocess.TimeoutExpired:
            return ""
        return self._reason or ending_of(code)

    def kill(self, reason: str) -> None:
        self._reason = self._reason or reason
        self._process.kill()

    def stop(self) -> None:
        self._is_stopping = True
        for end in (self._process.stdin, self._process.stdout):
            if end is not None:
                with suppress(OSError):
                    end.close()
        try:
            self._process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        shutil.rmtree(self._directory, ignore_errors=True)

    def _wait_until_ready(self) -> None:
        out = self._process.stdout
        assert out is not None
        can_read, _, _ = select.select([out], [], [], SAIL_START_S)
        said = out.readline() if can_read else b""
        if said not in (READY, UNGUARDED):
            how = self.how_ended(STOP_S if can_read else 0) or f"no answer for {SAIL_START_S:g} s"
            raise SiteError(f"Sail did not start: {how}", suggestion="see what it wrote to the member's log")
        if said == UNGUARDED:
            trace.emit(trace.SailUnguarded())

    def _watch(self) -> None:
        ends = _descriptor_of(self.pid)
        while not self._ends_within(SAIL_WATCH_S, ends):
            used = memory_of(self.pid)
            self._full_looks = self._full_looks + 1 if used > SAIL_RECYCLE_SHARE * self._memory_bytes else 0
            if used > self._memory_bytes:
                self.kill(f"its memory limit of {_shown(self._memory_bytes)} was reached, {_shown(used)} in use")
            if self._waste.is_due(clock()):  # to ask each thread of the process takes a while
                self._waste.look(clock(), wanted_processor_s(self.pid))
            if self._waste.is_seen:
                self._on_waste()
        if ends is not None:
            os.close(ends)
        if not self._is_stopping:
            self._on_end()

    def _ends_within(self, seconds: float, ends: int | None) -> bool:
        """`Popen.wait` looks eight times in 0.1 s, which queries of this process notice; a descriptor need not."""
        if ends is not None:
            poll = select.poll()  # not select(): descriptors above 1023 are common in a busy member
            poll.register(ends, select.POLLIN)
            if not poll.poll(seconds * 1000):
                return False
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True


def _descriptor_of(pid: int) -> int | None:
    """Readable when the process has ended. None where there is no such thing, or the process has gone already."""
    if sys.platform != "linux":
        return None
    try:
        return os.pidfd_open(pid)
    except OSError:
        return None


def memory_of(pid: int) -> int:
    """Bytes of the process's own that are in memory; 0 where nobody can tell."""
    try:
        with open(f"/proc/{pid}/statm", encoding="ascii") as file:
            _, resident, shared, *_ = map(int, file.read().split())
    except (OSError, ValueError):  # ended meanwhile; not Linux
        return 0
    return (resident - shared) * os.sysconf("SC_PAGE_SIZE")


def wanted_processor_s(pid: int) -> float:
    """Seconds of a core that its threads have used or waited for, so that a busy machine does not hide a busy process;
    0 where nobody can tell."""
    total_ns = 0
    with suppress(OSError):  # ended meanwhile; not Linux
        for thread in os.listdir(f"/proc/{pid}/task"):
            with suppress(OSError, ValueError), open(f"/proc/{pid}/task/{thread}/schedstat", encoding="ascii") as file:
                ran_ns, waited_ns, _ = file.read().split()
                total_ns += int(ran_ns) + int(waited_ns)
    return total_ns / 1e9


def machine_memory_bytes() -> int:
    """Of this machine, or of the container if that has less."""
    size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    with suppress(OSError, ValueError):  # no cgroup, or no bound: "max"
        size = min(size, int(Path("/sys/fs/cgroup/memory.max").read_text()))
    return size


def _environment(directory: str, memory_bytes: int) -> dict[str, str]:
    paths = [package_root(), os.environ.get("PYTHONPATH", "")]
    return {
        # Its log goes to the terminal.
        "RUST_LOG": "error",
        # With huge pages each job of Python keeps 2 MB that its few small values are in, and takes twice the time.
        "MIMALLOC_ALLOW_THP": "0",
        "TOKIO_WORKER_THREADS": str(max(SAIL_THREADS_LEAST, SAIL_THREADS_PER_CORE * (os.cpu_count() or 1))),
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        "TMPDIR": directory,
        "SAIL_MODE": "local",
        # With them a column whose least value is its greatest has that value in every row, and NaN counts for neither.
        "SAIL_EXECUTION__COLLECT_STATISTICS": "false",
        "SAIL_RUNTIME__STACK_SIZE": str(SAIL_STACK_BYTES),
        # What sorts, joins and groups take is counted: they go to disk, or fail alone, before the limit ends all.
        "SAIL_RUNTIME__MEMORY_POOL__TYPE": "greedy",
        "SAIL_RUNTIME__MEMORY_POOL__GREEDY__MAX_SIZE": str(int(memory_bytes * SAIL_POOL_SHARE)),
    }


def _shown(size: int) -> str:
    return f"{size / GIB:.1f} GiB" if size >= GIB else f"{size / MIB:.0f} MiB"

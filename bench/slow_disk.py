"""A disk whose sync takes a while, for the members that are started meanwhile: every sync of theirs waits that long.

A virtual disk may say after a tenth of a millisecond that rows are safe. A network volume, or a disk that really
writes, takes some milliseconds, and there the members' sync, not their processor, is what clients wait for.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SYNC_S = 0.004  # a network volume of a cloud, or a disk without a cache that keeps its power

# `sync` waits, and then does what the system's own does.
_SOURCE = r"""
#define _GNU_SOURCE
#include <time.h>
#include <unistd.h>
#include <sys/syscall.h>
static void wait_for_disk(void) { struct timespec t = {0, WAIT_NS}; nanosleep(&t, 0); }
int fsync(int fd) { wait_for_disk(); return syscall(SYS_fsync, fd); }
int fdatasync(int fd) { wait_for_disk(); return syscall(SYS_fdatasync, fd); }
"""


class NoCompiler(Exception):
    """The library that waits cannot be made here."""


@contextmanager
def slow_disk(folder: Path) -> Iterator[None]:
    """Processes that are started within wait for each sync."""
    compiler = shutil.which("cc")
    if compiler is None:
        raise NoCompiler("there is no C compiler")
    made = folder / "slow_disk.so"
    command = [compiler, "-shared", "-fPIC", f"-DWAIT_NS={round(SYNC_S * 1e9)}", "-x", "c", "-o", str(made), "-"]
    subprocess.run(command, input=_SOURCE.encode(), check=True)
    os.environ["LD_PRELOAD"] = str(made)
    try:
        yield
    finally:
        del os.environ["LD_PRELOAD"]

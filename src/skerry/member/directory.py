"""A member's own directory: its task socket and its spool files. One that a killed member left is removed."""

from __future__ import annotations

import fcntl
import glob
import os
import shutil
import tempfile
from contextlib import suppress

from skerry.wire.address import temporary_socket

_PREFIX = "skerry-member-"
_LOCK = "lock"


class Directory:
    """Below the system's temp directory, with a lock that the system lets go of when the process ends, however."""

    def __init__(self, member: str) -> None:
        remove_abandoned()
        # A short name: paths of Unix sockets are bounded.
        self.path = tempfile.mkdtemp(prefix=f"{_PREFIX}{member[:16]}-")
        lock_path = os.path.join(self.path, _LOCK)
        self._lock = os.open(f"{lock_path}.new", os.O_CREAT | os.O_RDWR, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        os.rename(f"{lock_path}.new", lock_path)  # whoever sees it finds it taken

    @property
    def tasks_socket(self) -> str:
        return temporary_socket(self.path, "tasks.sock")

    def remove(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1


def remove_abandoned() -> None:
    """Directories whose member was killed: their lock is free. One without a lock is only just being made."""
    for path in glob.glob(os.path.join(glob.escape(tempfile.gettempdir()), f"{_PREFIX}*")):
        with suppress(OSError):  # gone by now, or its member lives
            _remove_if_free(path)


def _remove_if_free(path: str) -> None:
    """Only this user's own: anybody may make such a name in a temp directory, and let it lead anywhere."""
    directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        if os.fstat(directory).st_uid != os.geteuid():
            return
        lock = os.open(_LOCK, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=directory)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(path, ignore_errors=True)
        finally:
            os.close(lock)
    finally:
        os.close(directory)

"""Files that are there after a power cut: written aside, synced, named, and their folder synced; and who may write."""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress

from skerry.model.errors import SiteError
from skerry.model.points import reach

ASIDE = ".aside"  # the end of names of files that nobody reads: a member that was killed left them
_FULL_SYNC: int | None = getattr(fcntl, "F_FULLFSYNC", None)  # a Mac's fsync leaves bytes in the drive's own memory


def sync(file: int) -> None:
    if _FULL_SYNC is not None:
        with suppress(OSError):  # not every file system there has it
            fcntl.fcntl(file, _FULL_SYNC)
            return
    os.fsync(file)


def sync_folder(path: str) -> None:
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def make_folder(path: str) -> None:
    """With those above it; each name is synced."""
    if os.path.isdir(path):
        return
    parent = os.path.dirname(os.path.abspath(path))
    make_folder(parent)
    with suppress(FileExistsError):
        os.mkdir(path, 0o700)
    sync_folder(parent)


def write_new(path: str, content: bytes | memoryview, *, may_replace: bool) -> None:
    """All of it or nothing; its folder is still to be synced. FileExistsError if the name is taken and may not be."""
    aside = path + ASIDE
    file = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        with open(file, "wb") as opened:
            opened.write(content)
            opened.flush()
            sync(file)
        reach("file.written")
        if may_replace:
            os.replace(aside, path)
        else:
            os.link(aside, path)  # fails if the name is taken, as no rename does
            os.unlink(aside)
    except OSError:
        with suppress(OSError):
            os.unlink(aside)
        raise


class Lock:
    """One process at a time writes a folder; the lock ends with its process."""

    def __init__(self, folder: str, member: str) -> None:
        self.path = os.path.join(folder, "lock")
        self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = os.pread(self._file, 64, 0).decode("utf-8", "replace").strip() or "unknown"
            os.close(self._file)
            raise SiteError(
                f"site {member}: {folder} is written by another process (pid {holder})",
                member=member,
                suggestion="stop that process, or give each member a folder of its own",
            ) from None
        with suppress(OSError):  # of a full disk; the lock holds, nobody is told by whom
            os.truncate(self._file, 0)
            os.pwrite(self._file, f"{os.getpid()}\n".encode(), 0)

    def release(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

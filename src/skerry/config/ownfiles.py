"""Files that a member believes, because nobody but its own user can have written them.

What decides is asked of what was opened, never of a path: between a look and an open the path may become another's.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import Enum, auto

_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


class Fault(Enum):
    """Why a file is not to be believed."""

    KIND = auto()  # neither file nor directory
    OWNER = auto()
    MODE = auto()


class NotOurs(ValueError):
    """Somebody else may have written it; the text is the reason."""


def read_own(path: str, bytes_max: int) -> bytes:
    """At most `bytes_max` and one byte more, of a file that is this user's alone; NotOurs, or an OSError."""
    with _own_folder(path) as folder:
        # A pipe would wait for its writer, before anybody could see that it is one.
        file = os.open(os.path.basename(path), _flags(os.O_RDONLY | os.O_NONBLOCK), dir_fd=folder)
        with open(file, "rb") as opened:
            refuse_others(file, "it")
            return opened.read(bytes_max + 1)


def write_own(path: str, content: bytes) -> None:
    """All of it or nothing, for this user alone: whoever reads finds the file as it was or as it is now."""
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    name = os.path.basename(path)
    new = f"{name}.new"
    with _own_folder(path) as folder:
        with suppress(FileNotFoundError):  # of a member that was killed
            os.unlink(new, dir_fd=folder)
        try:
            file = os.open(new, _flags(os.O_WRONLY | os.O_CREAT | os.O_EXCL), 0o600, dir_fd=folder)
            with open(file, "wb") as opened:
                opened.write(content)
                opened.flush()
                os.fsync(file)
            os.rename(new, name, src_dir_fd=folder, dst_dir_fd=folder)
            os.fsync(folder)
        except OSError:
            with suppress(OSError):
                os.unlink(new, dir_fd=folder)
            raise


def append_own(path: str) -> int:
    """The file, open for lines behind those it has, made if need be; NotOurs, or an OSError."""
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    with _own_folder(path) as folder:
        flags = _flags(os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NONBLOCK)
        file = os.open(os.path.basename(path), flags, 0o600, dir_fd=folder)
        try:
            refuse_others(file, "it")
        except BaseException:
            os.close(file)
            raise
        return file


def why_not_ours(path: str) -> str:
    """What `read_own` would say against the file or its directory; "" for one that is not there, too."""
    try:
        read_own(path, 0)
    except FileNotFoundError:
        return ""
    except NotOurs as error:
        return str(error)
    except OSError as error:
        return reason(error)
    return ""


def reason(error: OSError | ValueError) -> str:
    """For people, without the path: they know which file it is about."""
    if not isinstance(error, OSError):
        return str(error)
    return (error.strerror or type(error).__name__).lower()


def refuse_others(file: int, what: str) -> None:
    """NotOurs unless the open file, or directory, belongs to this user and nobody else may change it."""
    match fault_of(os.fstat(file), is_secret=False, may_be_roots=False):
        case Fault.KIND:
            raise NotOurs(f"{what} is no file")
        case Fault.OWNER:
            raise NotOurs(f"{what} belongs to another user")
        case Fault.MODE:
            raise NotOurs(f"{what} may be written by others (chmod go-w)")


def fault_of(found: os.stat_result, *, is_secret: bool, may_be_roots: bool = True) -> Fault | None:
    """Whether others than this user, and root if it may be, could have written it, or read it if it is a secret.

    root may let a group read its secrets: so keys come into containers.
    """
    if not (stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode)):
        return Fault.KIND
    is_roots = may_be_roots and found.st_uid == 0
    if found.st_uid != os.geteuid() and not is_roots:
        return Fault.OWNER
    refused = _OTHERS if is_secret else _OTHERS_WRITE
    if is_roots:
        refused &= ~stat.S_IRGRP
    return Fault.MODE if found.st_mode & refused else None


@contextmanager
def _own_folder(path: str) -> Iterator[int]:
    """Whoever may write there could put another file in its place."""
    folder = os.open(os.path.dirname(path) or ".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        refuse_others(folder, "its directory")
        yield folder
    finally:
        os.close(folder)


def _flags(access: int) -> int:
    return access | os.O_NOFOLLOW | os.O_CLOEXEC

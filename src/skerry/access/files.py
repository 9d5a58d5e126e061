"""Files that decide who gets in: whose they are is looked at before they are believed."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Generic, TypeVar

from skerry.config.ownfiles import Fault, fault_of
from skerry.model.errors import ConfigError
from skerry.model.limits import ACCESS_FILE_BYTES

T = TypeVar("T")


class AccessFile(Generic[T]):
    """What `read` makes of a file, made anew when the file has changed. ConfigError when it cannot be believed."""

    def __init__(self, path: str, read: Callable[[bytes, str], T], *, is_secret: bool) -> None:
        self.path = path
        self._read = read
        self._is_secret = is_secret
        self._known: tuple[object, T] | None = None

    def get(self) -> T:
        """Touches the disk: not for an event loop."""
        known = self._known  # another thread may read the file at this moment
        data, version = read_file(self.path, is_secret=self._is_secret, known=known and known[0])
        if data is None:
            assert known is not None
            return known[1]
        self._known = None  # should this one be wrong, the one before is no longer true either
        read = self._read(data, self.path)
        self._known = version, read
        return read


def read_file(path: str, *, is_secret: bool, known: object = None) -> tuple[bytes | None, object]:
    """Its bytes (None if they are still those of version `known`) and its version."""
    try:
        with open(path, "rb", opener=_open) as file:
            status = os.fstat(file.fileno())
            check_owner(path, status, is_secret=is_secret)
            version = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
            if version == known:
                return None, version
            data = file.read(ACCESS_FILE_BYTES + 1)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {(error.strerror or str(error)).lower()}") from None
    if len(data) > ACCESS_FILE_BYTES:
        raise ConfigError(f"{path}: larger than {ACCESS_FILE_BYTES} bytes")
    return data, version


def check_owner(path: str, status: os.stat_result, *, is_secret: bool) -> None:
    """ConfigError for what others could have written, or, if it is a secret, could read."""
    match fault_of(status, is_secret=is_secret):
        case Fault.KIND:
            raise ConfigError(f"{path}: not a file")
        case Fault.OWNER:
            raise ConfigError(f"{path}: belongs to another user (chown it to the one that runs the member)")
        case Fault.MODE:
            may = "read or write" if is_secret else "write"
            raise ConfigError(f"{path}: others may {may} it (chmod {'600' if is_secret else '644'} {path})")


def _open(path: str, flags: int) -> int:
    """Without waiting for the writer of a named pipe."""
    return os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC)

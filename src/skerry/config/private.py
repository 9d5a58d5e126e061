"""Files that only their owner may read: keys, and the secret by which members know each other."""

from __future__ import annotations

import os
import stat
import tempfile

from skerry.config.ownfiles import Fault, fault_of
from skerry.config.rules import is_loopback
from skerry.model.config import Config
from skerry.model.errors import ConfigError
from skerry.model.limits import SECRET_FILE_BYTES, SECRET_LEAST_BYTES


def refuse_public(path: str, what: str) -> None:
    """ConfigError for a file that others may read or change, or that another user owns."""
    try:
        found = os.stat(path)
    except OSError as error:
        raise _unreadable(path, what, error) from None
    _check(found, path, what)


def _check(found: os.stat_result, path: str, what: str) -> None:
    match fault_of(found, is_secret=True):
        case Fault.KIND:
            raise ConfigError(f"{what}: {path} is no file")
        case Fault.OWNER:
            raise ConfigError(
                f"{what}: {path} belongs to another user (uid {found.st_uid})",
                suggestion=f"chown it to the user that runs the member, and chmod 600 {path}",
            )
        case Fault.MODE:
            mode = stat.S_IMODE(found.st_mode)
            raise ConfigError(f"{what}: {path} is open to others (mode {mode:03o})", suggestion=f"chmod 600 {path}")


def read_secret(path: str) -> tuple[bytes, ...]:
    """The keys in the file, one a line; ConfigError unless they are there, long enough, and for their owner alone."""
    what = "secret"
    try:
        with open(path, "rb") as file:
            _check(os.fstat(file.fileno()), path, what)
            text = file.read(SECRET_FILE_BYTES + 1)
    except OSError as error:
        raise _unreadable(path, what, error) from None
    lines = [line.strip() for line in text.splitlines()]
    keys = tuple(line for line in lines if line and not line.startswith(b"#"))
    if len(text) > SECRET_FILE_BYTES:
        raise ConfigError(f"{what}: {path} is larger than {SECRET_FILE_BYTES} bytes")
    if not keys or min(map(len, keys)) < SECRET_LEAST_BYTES:
        raise ConfigError(
            f"{what}: {path} needs a line of at least {SECRET_LEAST_BYTES} characters, and no shorter one",
            suggestion="remove it and run: skerry secret",
        )
    return keys


def make_secret(path: str, key: str) -> bool:
    """Write the file, whole and for its owner alone; False if there is one already, which stays as it is."""
    if os.path.lexists(path):
        return False
    folder, name = os.path.split(path)
    try:
        descriptor, unfinished = tempfile.mkstemp(prefix=f".{name}.", dir=folder or ".")  # its owner's alone
        try:
            with open(descriptor, "w") as file:
                file.write(f"{key}\n")
                file.flush()
                os.fsync(file.fileno())
            # Unlike a rename, a link never takes the place of a file that another process has made meanwhile.
            os.link(unfinished, path)
        except FileExistsError:
            return False
        finally:
            os.unlink(unfinished)
        _sync_folder(folder or ".")
    except OSError as error:
        raise ConfigError(
            f"secret: {path} cannot be written: {(error.strerror or str(error)).lower()}",
            suggestion="name a file that can be, with secret: in skerry.yaml",
        ) from None
    return True


def all_run_here(config: Config) -> bool:
    """Whether no member can be on another host, so that nobody has to copy the secret there."""
    return len(config.members) == 1 or all(is_loopback(member.address) for member in config.members.values())


def _sync_folder(path: str) -> None:
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _unreadable(path: str, what: str, error: OSError) -> ConfigError:
    hint = "copy the file from a host of the cluster that has it; or make it, once for all hosts: skerry secret"
    is_missing = isinstance(error, FileNotFoundError) and what == "secret"
    reason = (error.strerror or str(error)).lower()
    return ConfigError(f"{what}: {path} cannot be read: {reason}", suggestion=hint if is_missing else "")

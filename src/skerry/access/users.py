"""The users file: a line for each user, `name:scrypt$…`. Read by members, written by `skerry user`."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator

from skerry.access.files import read_file
from skerry.access.names import user_name
from skerry.access.passwords import PasswordHash, parse_hash
from skerry.model.errors import ConfigError, UserError


def parse_users(data: bytes, path: str) -> dict[str, PasswordHash]:
    """Users by name; ConfigError lists every wrong line."""
    users: dict[str, PasswordHash] = {}
    mistakes: list[str] = []
    for number, line in enumerate(data.split(b"\n"), 1):
        text = line.strip()
        if not text or text.startswith(b"#"):
            continue
        try:
            name, known = _entry(text)
            if name in users:
                raise ValueError(f"user {name} stands here a second time")
            users[name] = known
        except (ValueError, UserError) as error:
            mistakes.append(f"{path}:{number}: {error}")
    if mistakes:
        raise ConfigError("\n".join(mistakes))
    return users


def _entry(line: bytes) -> tuple[str, PasswordHash]:
    try:
        name, colon, known = line.decode().partition(":")
    except UnicodeDecodeError:
        raise ValueError("not UTF-8") from None
    if not colon:
        raise ValueError("expected name:hash (`skerry user add` writes it)")
    return user_name(name), parse_hash(known)


def listed_name(text: str) -> str:
    """A name that can stand in the file."""
    name = user_name(text)
    if ":" in name or name.startswith("#"):
        raise UserError("a user's name in a users file has no colon, and does not begin with #")
    return name


class UsersFile:
    """The file while it is changed: other lines and comments stay, and it is whole at every moment."""

    def __init__(self, path: str) -> None:
        self._path = os.path.realpath(path)

    def names(self) -> list[str]:
        return list(parse_users(self._data(), self._path))

    def put(self, name: str, known: PasswordHash) -> None:
        """Add a user, or give it another password."""
        with self._locked():
            lines = self._lines_but(name)
            self._write([*lines, f"{name}:{known}".encode()])

    def remove(self, name: str) -> bool:
        """False when there was none."""
        with self._locked():
            if name not in self.names():
                return False
            self._write(self._lines_but(name))
            return True

    def _data(self) -> bytes:
        if not os.path.lexists(self._path):
            return b""
        return read_file(self._path, is_secret=True)[0] or b""

    def _lines_but(self, name: str) -> list[bytes]:
        data = self._data()
        parse_users(data, self._path)  # nothing is written over what cannot be read
        lines = data.split(b"\n")
        return [line for line in lines[: None if lines[-1] else -1] if not _is_line_of(line, name)]

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """Two that write at once would lose one's line. The folder stays, the file is another each time."""
        folder = os.open(os.path.dirname(self._path), os.O_RDONLY | os.O_CLOEXEC)
        try:
            fcntl.flock(folder, fcntl.LOCK_EX)
            yield
        finally:
            os.close(folder)

    def _write(self, lines: list[bytes]) -> None:
        beside = f"{self._path}.new"
        with contextlib.suppress(FileNotFoundError):
            os.unlink(beside)  # of somebody who was killed here; never through a link
        file = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            with open(file, "wb") as writing:
                writing.write(b"".join(line + b"\n" for line in lines))
                writing.flush()
                os.fsync(writing.fileno())
            os.rename(beside, self._path)
        except BaseException:
            os.unlink(beside)
            raise


def _is_line_of(line: bytes, name: str) -> bool:
    text = line.strip()
    if not text or text.startswith(b"#"):
        return False
    return _entry(text)[0] == name

"""Addresses: "tcp:host:port" or "unix:path"."""

from __future__ import annotations

import sys
from typing import NamedTuple

from skerry.model.errors import ConfigError


class TcpAddress(NamedTuple):
    host: str
    port: int

    def __str__(self) -> str:
        return f"tcp:{self.where}"

    @property
    def where(self) -> str:
        """As errors name it."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


SOCKET_PATH_MAX = 107 if sys.platform == "linux" else 103  # of 108, elsewhere 104, with the final zero


class UnixAddress(NamedTuple):
    path: str

    def __str__(self) -> str:
        return f"unix:{self.path}"

    @property
    def where(self) -> str:
        """As errors name it."""
        return self.path


Address = TcpAddress | UnixAddress


def parse_address(text: str) -> Address:
    """`host:port` without a scheme is TCP; an IPv6 host stands in brackets."""
    if text.startswith("unix:"):
        path = text.removeprefix("unix:")
        if path:
            return UnixAddress(path)
    host, _, port = text.removeprefix("tcp:").rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not host or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise ConfigError(f"{text!r} is not an address", suggestion="write tcp:host:port or unix:path")
    return TcpAddress(host, int(port))


def temporary_socket(folder: str, name: str) -> str:
    """The path of a socket in a temporary folder. Systems bound such paths, and say nothing of where they come from."""
    path = f"{folder}/{name}"
    if (size := len(path.encode(errors="surrogateescape"))) > SOCKET_PATH_MAX:
        raise ConfigError(
            f"the path of a socket has {size} bytes, and may have {SOCKET_PATH_MAX}: {path}",
            suggestion="set TMPDIR to a folder with a shorter path",
        )
    return path

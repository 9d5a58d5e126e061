"""Addresses: "tcp:host:port" or "unix:path"."""

from __future__ import annotations

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

"""Ports for members that listen a little later."""

from __future__ import annotations

import fcntl
import os
import socket
import threading
from pathlib import Path
from random import SystemRandom

HOST = "127.0.0.1"
_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
_FIRST = 10_000  # services that stay tend to have lower ones
_TRIES = 10_000
# Not in tempfile's directory, which each run of tests has for itself: all of a user's processes must see it.
_BOOK = f"/tmp/skerry-ports-{os.getuid()}"


def free_ports(count: int, in_a_row: bool = False) -> list[int]:
    """Ports that nobody uses now, that the system gives to nobody who asks for any port, and this function to nobody
    else while this process lives.

    A port that was bound to 0 and let go may be another process's by the time it is bound again: Sparks ask for dozens.
    And a member may take half a minute to start, while the tests that run beside it start others.
    """
    last = _first_of_any() - 1
    chance = SystemRandom()
    found: list[int] = []
    for _ in range(_TRIES):
        together = count if in_a_row else 1
        first = chance.randrange(_FIRST, last - together)
        ports = list(range(first, first + together))
        if _given.take(ports) and all(map(_is_free, ports)):
            found += ports
        if len(found) == count:
            return found
    raise OSError(f"no {count} free ports between {_FIRST} and {last}")


class _Given:
    """The ports of this process, which others see as locks: one byte a port, of one file. They end with the process."""

    def __init__(self) -> None:
        self._own: set[int] = set()
        self._book = -1
        self._lock = threading.Lock()

    def take(self, ports: list[int]) -> bool:
        """All of them or none."""
        with self._lock:
            if not self._own.isdisjoint(ports):
                return False
            if self._book < 0:
                self._book = os.open(_BOOK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            for place, port in enumerate(ports):
                try:
                    fcntl.lockf(self._book, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, port)
                except (BlockingIOError, PermissionError):  # another process has it
                    for other in ports[:place]:
                        fcntl.lockf(self._book, fcntl.LOCK_UN, 1, other)
                    return False
            self._own.update(ports)
            return True


_given = _Given()


def _first_of_any() -> int:
    """Where the ports begin that the system gives to sockets that ask for any."""
    usual = 32768
    try:
        return max(int(_RANGE.read_text().split()[0]), _FIRST + 1000)
    except OSError:
        return usual


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
        return True

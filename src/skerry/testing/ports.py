"""Ports for members that listen a little later."""

from __future__ import annotations

import socket
from pathlib import Path
from random import SystemRandom

HOST = "127.0.0.1"
_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
_FIRST = 10_000  # services that stay tend to have lower ones
_TRIES = 10_000


def free_ports(count: int, in_a_row: bool = False) -> list[int]:
    """Ports that nobody uses now and the system gives to nobody who asks for any port.

    A port that was bound to 0 and let go may be another process's by the time it is bound again: Sparks ask for dozens.
    """
    last = _first_of_any() - 1
    chance = SystemRandom()
    for _ in range(_TRIES):
        if in_a_row:
            first = chance.randrange(_FIRST, last - count)
            ports = list(range(first, first + count))
        else:
            ports = chance.sample(range(_FIRST, last), count)
        if all(map(_is_free, ports)):
            return ports
    raise OSError(f"no {count} free ports between {_FIRST} and {last}")


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

"""The process that Sail runs in: its server, and the one way to it, a socket file for the member's user alone.

Sail listens on a TCP port of loopback and asks nobody who they are; whoever reached it could run Python here. So the
port's own socket is given a filter that drops what does not come from a connection of this process, and what comes by
the socket file is passed on over such connections (ADR 25). The process ends with its standard input, which only the
member holds: however the member ends, kill -9 included.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import socket
import struct
import sys
from collections.abc import Iterator
from contextlib import suppress
from threading import Lock, Thread

READY, UNGUARDED = b"ready\n", b"unguarded\n"  # what the member is told, once
SOCKET = "sail.sock"

_HOST = "127.0.0.1"
_CHUNK_BYTES = 256 * 1024
_SO_ATTACH_FILTER = 26  # Linux's number; the module socket has no name for it

# Instructions of the kernel's packet filter, as (code, jump if true, jump if false, value).
_LOAD_SOURCE_HOST = (0x20, 0, 0, 0xFFF00000 + 12)  # of the IP header
_LOAD_SOURCE_PORT = (0x28, 0, 0, 0)  # where the TCP header begins
_IS_EQUAL = 0x15
_DROP, _PASS = (0x06, 0, 0, 0), (0x06, 0, 0, 0xFFFFFFFF)


def main() -> None:
    directory = sys.argv[1]
    Thread(target=_end_with_input, args=(directory,), daemon=True).start()
    from pysail.spark import SparkConnectServer

    listener = socket.socket(socket.AF_UNIX)
    listener.bind(os.path.join(directory, SOCKET))  # in a directory that is its owner's alone
    server = SparkConnectServer(_HOST, 0)
    server.start(background=True)
    door = Door(*server.listening_address)
    listener.listen()
    os.write(1, READY if door.is_guarded else UNGUARDED)
    os.dup2(2, 1)
    while True:
        outside, _ = listener.accept()
        inside = door.dial()
        Thread(target=_pass_on, args=(outside, inside, door), daemon=True).start()
        Thread(target=_pass_on, args=(inside, outside, door), daemon=True).start()


class Door:
    """Sail's port. Once there is a guard, only sockets made by `dial` reach it."""

    def __init__(self, host: str, port: int) -> None:
        self._address = (host, port)
        self._port = _listener_at(self._address) if sys.platform == "linux" else None
        self._lock = Lock()
        self._dialled: dict[socket.socket, int] = {}  # and their ports
        self._guard()
        if self.is_guarded and (others := _connected_to(port)):
            raise SystemExit(f"{others} connections to Sail's port before it was guarded")

    @property
    def is_guarded(self) -> bool:
        return self._port is not None

    def dial(self) -> socket.socket:
        """A connection to Sail. Its own end is bound before the guard is told of it, so nobody else can have it."""
        with self._lock:
            line = socket.socket()
            line.bind((_HOST, 0))
            self._dialled[line] = line.getsockname()[1]
            self._guard()
        line.connect(self._address)
        line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return line

    def shut(self, line: socket.socket) -> None:
        """Before the line is closed: whoever has its port next is a stranger."""
        with self._lock:
            if self._dialled.pop(line, None) is not None:
                self._guard()

    def _guard(self) -> None:
        if self._port is None:
            return
        program = filter_program(list(self._dialled.values()))
        code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *each) for each in program))
        pointed = struct.pack("@HP", len(program), ctypes.addressof(code))
        self._port.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, pointed)


def filter_program(ports: list[int]) -> list[tuple[int, int, int, int]]:
    """Passes what comes from these ports of this host's 127.0.0.1, and drops all else."""
    (host,) = struct.unpack("!I", socket.inet_aton(_HOST))
    known = [(_IS_EQUAL, len(ports) - index, 0, port) for index, port in enumerate(ports)]
    return [_LOAD_SOURCE_HOST, (_IS_EQUAL, 0, len(ports) + 1, host), _LOAD_SOURCE_PORT, *known, _DROP, _PASS]


def _listener_at(address: tuple[str, int]) -> socket.socket:
    """Sail's own socket: the one of this process that listens there."""
    for each in _sockets():
        with suppress(OSError):
            if each.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN) and each.getsockname() == address:
                return each
        each.close()
    raise SystemExit(f"nothing of this process listens at {address}")


def _sockets() -> Iterator[socket.socket]:
    for number in map(int, os.listdir("/proc/self/fd")):
        with suppress(OSError):
            copy = os.dup(number)
            try:
                yield socket.socket(fileno=copy)
            except OSError:  # a file, a pipe
                os.close(copy)


def _connected_to(port: int) -> int:
    """Connections whose near end is this port."""
    listening = "0A"
    with open("/proc/self/net/tcp", encoding="ascii") as lines:
        rows = [line.split() for line in lines][1:]
    return sum(row[1] == f"0100007F:{port:04X}" and row[3] != listening for row in rows)


def _pass_on(source: socket.socket, target: socket.socket, door: Door) -> None:
    room = memoryview(bytearray(_CHUNK_BYTES))
    with suppress(OSError):
        while count := source.recv_into(room):
            target.sendall(room[:count])
    for each in (source, target):
        with suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)
        door.shut(each)
        each.close()


def _end_with_input(directory: str) -> None:
    while os.read(0, 4096):
        pass
    shutil.rmtree(directory, ignore_errors=True)
    os._exit(0)


if __name__ == "__main__":
    main()

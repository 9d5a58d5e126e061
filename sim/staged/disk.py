"""A member's disk: SQLite and files are real, but what was not synced is lost with the power."""

from __future__ import annotations

import asyncio
import os
import stat
import threading
import zlib
from collections import deque
from collections.abc import Callable
from random import Random

from skerry.model.errors import SkerryError
from skerry.tables import records
from skerry.tables.durable import Lock, make_folder
from skerry.tables.store import FILE, Store, Unwritten, _Call


class Synced:
    """What is sure to be there after a power cut: bytes of files, and names in folders.

    Told by the bytes themselves, for the time of a change is the real clock's; and what was synced is kept open, for
    else its number may be given to another file: a seed would not run the same way again.
    """

    def __init__(self) -> None:
        self._bytes: dict[int, int] = {}
        self._names: dict[int, set[str]] = {}
        self._open: dict[int, int] = {}

    def fsync(self, file: int) -> None:
        """In the place of `os.fsync`."""
        found = os.fstat(file)
        if found.st_ino not in self._open:
            self._open[found.st_ino] = os.dup(file)
        if stat.S_ISDIR(found.st_mode):
            self._names[found.st_ino] = set(os.listdir(file))
        else:
            self._bytes[found.st_ino] = _sum_of(f"/proc/self/fd/{file}")

    def close(self) -> None:
        for file in self._open.values():
            os.close(file)
        self._open.clear()

    def lose(self, folder: str, random: Random) -> None:
        """Names that no sync has told of may be gone, files that were not synced may end anywhere."""
        for root, folders, names in os.walk(folder):
            folders.sort()
            kept = self._names.get(os.stat(root).st_ino, set())
            for name in sorted(names):
                path = os.path.join(root, name)
                found = os.stat(path)
                if name.startswith(FILE) or name == "lock":  # SQLite's own
                    continue
                if name not in kept and random.random() < 0.5:
                    os.unlink(path)
                elif self._bytes.get(found.st_ino) != _sum_of(path):
                    os.truncate(path, random.randint(0, found.st_size))


def _sum_of(path: str) -> int:
    with open(path, "rb") as opened:
        return zlib.crc32(opened.read())


class SimStore(Store):
    """Without its thread: what has gathered is committed a moment later, in one transaction."""

    def __init__(self, folder: str, member: str, random: Random, sync_s: float, is_full: Callable[[], bool]) -> None:
        self.folder = folder
        self.path = os.path.join(folder, FILE)
        self._member = member
        self._turn = threading.Condition()
        self._waiting: deque[_Call] = deque()
        self._waiting_bytes = 0
        self._is_closing = False
        self._broken: SkerryError | None = None
        self._failed_turn: int | None = None
        self._failed_by: SkerryError | None = None
        self._random = random
        self._sync_s = sync_s
        self._is_full = is_full
        self._syncing: list[_Call] = []
        self._is_armed = False
        self.sync_fuse: int | None = None  # syncs until it loses its power in the middle of one
        self.blow: Callable[[], None] = lambda: None
        make_folder(folder)
        self._lock = Lock(folder, member)
        self._opened = self._open()
        self._opened.execute("PRAGMA synchronous = OFF")  # what is lost is decided here
        self.loaded = records.load(self._opened, folder)

    def crash(self) -> None:
        """A commit that was under way has happened as a whole, or not. Nobody hears of it."""
        if self._syncing and not self._is_full() and self._random.random() < 0.5:
            self._commit(self._opened, [_Call(call.change, 0, call.turn, lambda *_: None) for call in self._syncing])
        self._opened.close()
        self._lock.release()

    def close(self) -> None:
        raise AssertionError("simulated members lose their power")

    @property
    def is_idle(self) -> bool:
        return not self._waiting and not self._syncing

    def _add(self, call: _Call) -> None:
        super()._add(call)
        self._arm()

    def _arm(self) -> None:
        if self._waiting and not self._syncing and not self._is_armed:
            self._is_armed = True
            asyncio.get_running_loop().call_later(self._random.uniform(0, 0.003), self._begin)

    def _begin(self) -> None:
        self._is_armed = False
        self._syncing = self._take()
        loop, takes_s = asyncio.get_running_loop(), self._random.uniform(0.3, 1.7) * self._sync_s
        if self.sync_fuse is not None:
            self.sync_fuse -= 1
            if self.sync_fuse <= 0:
                loop.call_later(self._random.random() * takes_s, self.blow)
        loop.call_later(takes_s, self._end)

    def _end(self) -> None:
        calls, self._syncing = self._syncing, []
        fits = self._random.randint(0, len(calls) - 1) if self._is_full() else len(calls)
        self._commit(self._opened, calls[:fits])
        for call in calls[fits:]:
            if self._without_failed([call]):
                self._not_written([call], Unwritten(f"site {self._member}: no room", member=self._member))
        self._arm()

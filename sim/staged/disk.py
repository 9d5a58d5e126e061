"""A member's disk: SQLite and files are real, but what was not synced is lost with the power."""

from __future__ import annotations

import asyncio
import os
import stat
import threading
from collections import deque
from collections.abc import Callable
from random import Random

from skerry.model.errors import SkerryError
from skerry.tables import records
from skerry.tables.durable import Lock, make_folder
from skerry.tables.store import FILE, Store, Unwritten, _Call


class Synced:
    """What is sure to be there after a power cut: bytes of files, and names in folders."""

    def __init__(self) -> None:
        self._bytes: set[tuple[int, int, int]] = set()
        self._names: dict[int, set[str]] = {}

    def fsync(self, file: int) -> None:
        """In the place of `os.fsync`."""
        found = os.fstat(file)
        if stat.S_ISDIR(found.st_mode):
            self._names[found.st_ino] = set(os.listdir(file))
        else:
            self._bytes.add((found.st_ino, found.st_mtime_ns, found.st_size))

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
                elif (found.st_ino, found.st_mtime_ns, found.st_size) not in self._bytes:
                    os.truncate(path, random.randint(0, found.st_size))


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

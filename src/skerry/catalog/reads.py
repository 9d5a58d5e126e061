"""What was read of files, each read once as long as its size and mtime stay."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import lru_cache
from typing import Generic, TypeVar

from skerry.model.limits import Limits

_T = TypeVar("_T")


class Reads(Generic[_T]):
    """Results of `read(file, size_bytes, mtime_ns, …)`, so many at most. Safe to share by threads."""

    def __init__(self, read: Callable[..., _T], kept_max: int = Limits().footers) -> None:
        self._read = read
        self._allowed = 0
        self._kept = lru_cache(maxsize=kept_max)(read)

    def allow(self, kept_max: int) -> None:
        """The limit of a member; members of one process share what is read, and the largest of their limits holds.

        What was kept under a smaller one is read again.
        """
        if kept_max > self._allowed:
            self._allowed = kept_max
            self._kept = lru_cache(maxsize=kept_max)(self._read)

    def of(self, file: str, stamp: tuple[int, int], *how: Hashable) -> _T:
        return self._kept(file, *stamp, *how)

    def count(self) -> int:
        """How many files were opened, since more were allowed."""
        return self._kept.cache_info().misses

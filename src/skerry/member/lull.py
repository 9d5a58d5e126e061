"""A moment without queries, for work that must not get in their way."""

from __future__ import annotations

import asyncio

# Clients ask one query after the other: the end of one is not yet a lull.
_MOMENT_S = 0.5


class Lull:
    """Told how many queries run at the member; lets work in the background wait until there are none."""

    def __init__(self) -> None:
        self._nobody = asyncio.Event()
        self._nobody.set()
        self._somebody = asyncio.Event()
        self._changes = 0

    def running(self, queries: int) -> None:
        """So many run here now."""
        self._changes += 1
        if queries:
            self._nobody.clear()
            self._somebody.set()
        else:
            self._nobody.set()
            self._somebody.clear()

    @property
    def is_now(self) -> bool:
        return self._nobody.is_set()

    async def over(self) -> None:
        """Until a query runs."""
        await self._somebody.wait()

    async def wait(self, wait_s: float) -> bool:
        """Until none has run for a moment; False when there was no such moment in that time."""
        try:
            async with asyncio.timeout(wait_s):
                while True:
                    await self._nobody.wait()
                    changes = self._changes
                    await asyncio.sleep(_MOMENT_S)
                    if self.is_now and changes == self._changes:
                        return True
        except TimeoutError:
            return False

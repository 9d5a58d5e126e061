"""Work that a member owns and nobody waits for."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable

from skerry.model import trace
from skerry.model.errors import SkerryError


class Background:
    """It ends with the member; an error is logged."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def own(self, work: Awaitable[None], what: str) -> None:
        async def run() -> None:
            try:
                await work
            except SkerryError as error:
                trace.emit(trace.WorkGivenUp(what, trace.cause_of(error)))

        task = asyncio.ensure_future(run())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def stop(self) -> None:
        for task in list(self._tasks):
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

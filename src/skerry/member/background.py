"""Work that a member owns and nobody waits for."""

from __future__ import annotations

import asyncio
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
            except Exception as error:
                trace.emit(trace.WorkFailed(what), error)

        task = asyncio.ensure_future(run())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def stop(self) -> None:
        """Whatever the work ends with is not raised here: its member has more to stop."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

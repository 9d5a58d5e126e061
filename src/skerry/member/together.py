"""Small jobs of one query that begin here at the same moment are one job of Spark (ADR 74)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress

from skerry.model.fragment import Fragment, SparkFragment, TableLeaf
from skerry.model.results import Schema
from skerry.spark.engine import Job, JobResult

OnSchema = Callable[[Schema], None]
Run = Callable[[Sequence[Job], Sequence[OnSchema]], Awaitable[Sequence[JobResult | None]]]
Own = Callable[[Coroutine[None, None, None]], asyncio.Task[None]]


def may_share(fragment: Fragment) -> bool:
    """Whether the plan lets it: it waits for no rows, and gives few."""
    return (
        isinstance(fragment, SparkFragment)
        and fragment.output.through_driver
        and not fragment.analyzes
        and all(isinstance(leaf, TableLeaf) for leaf in fragment.leaves)
    )


class Together:
    """Waits, not for long, until each fragment that may share has come or said that it does not.

    `own` begins the task that runs them: it may outlast each fragment that waits for it.
    """

    def __init__(self, fragments: Iterable[Fragment], wait_s: float, run: Run, own: Own) -> None:
        self._awaited = {fragment.id for fragment in fragments if may_share(fragment)}
        self._wait_s = wait_s
        self._run = run
        self._own = own
        self._came: dict[int, tuple[Job, OnSchema]] = {}
        self._is_over = asyncio.Event()
        self._running: asyncio.Task[None] | None = None
        self._results: dict[int, JobResult | None] = {}

    @contextmanager
    def awaited(self, fragment: int) -> Iterator[None]:
        """A block that ends without the fragment, whatever happens in it."""
        try:
            yield
        finally:
            self._came.pop(fragment, None)
            self.leave(fragment)

    def leave(self, fragment: int) -> None:
        """It runs by itself: nobody is to wait for it."""
        self._awaited.discard(fragment)
        if not self._awaited:
            self._is_over.set()

    async def come(self, fragment: int, job: Job, on_schema: OnSchema, *, is_kept: bool) -> bool:
        """Whether others have come as well; then `result` runs them all. `is_kept`: see Engine.keeps."""
        if fragment not in self._awaited or not is_kept:  # not in it: the others have begun
            self.leave(fragment)
            return False
        self._came[fragment] = job, on_schema
        self.leave(fragment)
        with suppress(TimeoutError):
            async with asyncio.timeout(self._wait_s):
                await self._is_over.wait()
        self._awaited.clear()
        self._is_over.set()
        return len(self._came) > 1

    async def result(self, fragment: int) -> JobResult | None:
        """What it gave, together with the others; None if it is to be run by itself."""
        if self._running is None:
            self._running = self._own(self._run_all(dict(self._came)))
        await asyncio.shield(self._running)  # one that ends does not end the others
        return self._results.pop(fragment)

    async def _run_all(self, came: dict[int, tuple[Job, OnSchema]]) -> None:
        jobs, on_schemas = zip(*came.values(), strict=True)
        self._results = dict(zip(came, await self._run(jobs, on_schemas), strict=True))

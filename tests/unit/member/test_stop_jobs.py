"""A job that its engine does not end after a cancel is given up, with whatever runs it."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

from skerry.member.resources import Workers
from skerry.member.running import Running, stop_jobs
from skerry.model.fragment import Output, SparkFragment
from skerry.model.ids import QueryId
from skerry.model.limits import Limits


class Deaf:
    """An engine that hears no cancel."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def cancel(self, tag: str) -> None:
        self.said.append(f"cancel {tag}")

    def give_up(self, tag: str) -> None:
        self.said.append(f"give up {tag}")


def test_what_ignores_its_cancel_is_given_up() -> None:
    engine, workers = Deaf(), Workers("test", 1)
    around: Any = SimpleNamespace(engine=engine, workers=workers, limits=Limits(stop_s=0.1))

    async def run() -> None:
        running = Running(SparkFragment(1, "oslo", "SELECT 1", (), Output(1, ("oslo",))))
        running.tag, running.in_spark = "stuck", True
        running.work = asyncio.create_task(asyncio.Event().wait())  # type: ignore[arg-type]
        await stop_jobs(QueryId("oslo", "q"), [running], around)
        running.work.cancel()

    try:
        asyncio.run(run())
    finally:
        workers.stop()
    assert engine.said[0] == "cancel stuck"
    assert engine.said[-1] == "give up stuck"
    assert engine.said.count("give up stuck") == 1

"""A job that its engine does not end after a cancel is given up, with whatever runs it; and who stops jobs may end."""

from __future__ import annotations

import asyncio
import gc
import threading
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


def test_who_is_cancelled_while_it_stops_jobs_leaves_no_error_that_nobody_asked_for() -> None:
    """A receiver has enough, and while its job is cancelled the whole query ends."""
    heard, workers, unasked = threading.Event(), Workers("test", 1), []
    engine = SimpleNamespace(cancel=lambda tag: heard.wait(20))
    around: Any = SimpleNamespace(engine=engine, workers=workers, limits=Limits(stop_s=20))

    async def run() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _loop, context: unasked.append(context["message"]))
        running = Running(SparkFragment(1, "oslo", "SELECT 1", (), Output(1, ("oslo",))))
        running.tag, running.in_spark = "busy", True
        stopping = asyncio.create_task(stop_jobs(QueryId("oslo", "q"), [running], around))
        for _ in range(3):  # until the cancel is on its way
            await asyncio.sleep(0)
        stopping.cancel()
        await asyncio.wait([stopping])
        gc.collect()

    try:
        asyncio.run(run())
    finally:
        heard.set()
        workers.stop()
    assert not unasked

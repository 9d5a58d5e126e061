"""Work that nobody waits for: its errors are in the log, and stop nobody."""

from __future__ import annotations

import asyncio

import pytest

from skerry.member.background import Background
from skerry.model import trace
from skerry.model.errors import SiteError


@pytest.mark.parametrize("is_stopped", [False, True])
@pytest.mark.parametrize(
    ("error", "event"),
    [
        (SiteError("no"), trace.WorkGivenUp("scan", trace.Cause("no", 300, may_quote=False))),
        (KeyError("secret"), trace.WorkFailed("scan")),
    ],
)
def test_every_error_is_an_event_and_none_stops_the_stopping(
    monkeypatch: pytest.MonkeyPatch, error: Exception, event: trace.Event, is_stopped: bool
) -> None:
    heard: list[trace.Event] = []
    ended: list[str] = []
    monkeypatch.setattr(trace, "listeners", [heard.append])

    async def fail() -> None:
        try:
            await asyncio.sleep(3600 if is_stopped else 0)
        finally:
            raise error

    async def wait() -> None:
        try:
            await asyncio.sleep(3600)
        finally:
            ended.append("other")

    async def run() -> None:
        background = Background()
        background.own(fail(), "scan")
        background.own(wait(), "wait")
        while not is_stopped and not heard:
            await asyncio.sleep(0)
        await asyncio.sleep(0)
        await background.stop()
        await background.stop()

    asyncio.run(asyncio.wait_for(run(), 60))
    assert heard == [event]
    assert ended == ["other"]

"""The clock of whoever runs in an event loop. Cores are given `now`; shells take it here, so that a simulation's
loop, which has a time of its own, needs nothing but itself."""

from __future__ import annotations

import asyncio


def now() -> float:
    """Seconds of the running loop's clock: monotonic, with an origin that means nothing."""
    return asyncio.get_running_loop().time()

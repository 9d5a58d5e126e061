"""The client's clock that goes on while the machine sleeps."""

from __future__ import annotations

import time

# Linux's monotonic clock stands still while a laptop sleeps, and so does that of macOS: members do not sleep with it.
_BOOT = getattr(time, "CLOCK_BOOTTIME", None)


def now() -> float:
    """Seconds since some moment; differences count, sleep included."""
    return time.clock_gettime(_BOOT) if _BOOT is not None else time.time()

"""Named moments in a query's life at which `make chaos` kills or stops a member (docs/chaos.md).

Nothing happens unless SKERRY_CHAOS names a file when the process starts. While that file holds `point|action|count`,
the count-th time that the point is reached removes the file and sends this process a signal.
"""

from __future__ import annotations

import os
import signal

VARIABLE = "SKERRY_CHAOS"
SIGNALS = {"kill": signal.SIGKILL, "stop": signal.SIGSTOP}

_armed_by = os.environ.get(VARIABLE, "")
_seen: dict[str, int] = {}  # what was armed, and how often its point was reached since


def reach(point: str) -> None:
    """One comparison in a process that is not under test."""
    if _armed_by:
        _look(point)


def _look(point: str) -> None:
    try:
        with open(_armed_by, encoding="utf-8") as file:
            armed = file.read()
    except FileNotFoundError:
        _seen.clear()
        return
    wanted, _, rest = armed.partition("|")
    action, _, count = rest.partition("|")
    if wanted != point:
        return
    _seen[armed] = _seen.get(armed, 0) + 1
    if _seen[armed] >= int(count):
        _seen.clear()
        os.unlink(_armed_by)  # whoever armed it sees that it has happened
        os.kill(os.getpid(), SIGNALS[action])

"""`skerry`, watched from outside: `make chaos` kills or stops a member at a named moment of its work (docs/chaos.md).

`python -m skerry.testing.points up …` is `skerry up …`. While the file that SKERRY_CHAOS names holds
`point|action|count`, the count-th time that the point is reached removes the file and sends this process a signal.
"""

from __future__ import annotations

import os
import signal

from skerry.cli.main import main
from skerry.model import points

VARIABLE = "SKERRY_CHAOS"
SIGNALS = {"kill": signal.SIGKILL, "stop": signal.SIGSTOP}

_seen: dict[str, int] = {}  # what was armed, and how often its point was reached since


def watch() -> None:
    """From now on this process does what the file says."""
    points.watch = _look


def _look(point: str) -> None:
    armed_by = os.environ[VARIABLE]
    try:
        with open(armed_by, encoding="utf-8") as file:
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
        os.unlink(armed_by)  # whoever armed it sees that it has happened
        os.kill(os.getpid(), SIGNALS[action])


if __name__ == "__main__":
    watch()
    main()

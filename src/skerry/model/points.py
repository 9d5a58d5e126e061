"""Named moments of a member's work, for whoever watches from outside: `make chaos` ends members there."""

from __future__ import annotations

from collections.abc import Callable

# Nobody watches a member that serves people: then a moment costs one comparison.
watch: Callable[[str], None] | None = None


def reach(point: str) -> None:
    if watch is not None:
        watch(point)

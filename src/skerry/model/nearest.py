"""The nearest known name to a mistyped one."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest(name: str, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """The known name most like `name`, whatever its case; None when nothing is close."""
    by_lower = {each.lower(): each for each in sorted(known, reverse=True)}
    # difflib takes quadratic time on long texts; nobody means a name by one.
    matches = difflib.get_close_matches(name.lower()[:64], by_lower, n=1, cutoff=cutoff)
    return by_lower[matches[0]] if matches else None


def did_you_mean(name: str, known: Iterable[str], cutoff: float = 0.6) -> str:
    """The tail of a message, `; did you mean orders?`, or nothing."""
    match = nearest(name, known, cutoff)
    return f"; did you mean {match}?" if match else ""

"""Counts, sizes and lists as people read them."""

from __future__ import annotations

from collections.abc import Sequence

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def counted(number: int, noun: str = "row") -> str:
    """1 → "1 row", 15000 → "15,000 rows"."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def listed(names: Sequence[str]) -> str:
    """a, b, c → "a, b and c"."""
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last


def ordinal(number: int) -> str:
    """3 → "3rd"."""
    ending = {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th") if number % 100 not in (11, 12, 13) else "th"
    return f"{number}{ending}"


def size_text(size_bytes: float) -> str:
    """1536 → "1.5 KiB"."""
    unit = 0
    while size_bytes >= 1024 and unit < len(_UNITS) - 1:
        size_bytes /= 1024
        unit += 1
    return f"{size_bytes:.0f} {_UNITS[unit]}" if unit == 0 else f"{size_bytes:.1f} {_UNITS[unit]}"

"""SHOW's patterns, in Spark's way: `*` is any text, `|` is or, case does not matter.

A pattern is a client's text: it is matched in time that grows with the name, never by a regular expression, whose
stars would be tried in every combination.
"""

from __future__ import annotations


def choices_of(pattern: str) -> list[str]:
    """What stands between the bars."""
    return [choice.strip() for choice in pattern.split("|")]


class Pattern:
    """None matches every name."""

    def __init__(self, pattern: str | None) -> None:
        choices = ["*"] if pattern is None else choices_of(pattern)
        self._choices = [choice.lower().split("*") for choice in dict.fromkeys(choices)]

    def matches(self, name: str) -> bool:
        lowered = name.lower()
        return any(_matches(lowered, pieces) for pieces in self._choices)


def _matches(name: str, pieces: list[str]) -> bool:
    """The first piece begins the name, the last ends it; each other stands as early as it can."""
    first, *between = pieces
    if not between:
        return name == first
    last = between.pop()
    if len(first) + len(last) > len(name) or not name.startswith(first) or not name.endswith(last):
        return False
    at, upto = len(first), len(name) - len(last)
    for piece in filter(None, between):
        found = name.find(piece, at, upto)
        if found < 0:
            return False
        at = found + len(piece)
    return True

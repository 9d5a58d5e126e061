"""Rows and states of the simulated group-by: dictionaries of numbers, and the fold that every answer must equal."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate

import msgspec

from skerry.model.ranges import PLACE_SHIFT

_BITS = (1 << 64) - 1
GROUP_BYTES = 32


class Group(msgspec.Struct, frozen=True):
    """A partial row: sum, least and greatest of `weight` values. A fat key keeps each of them."""

    key: int
    sum: int
    least: int
    greatest: int
    weight: int
    fat_bytes: int = 0

    @property
    def place(self) -> int:
        return place_of(self.key)

    def merged(self, other: Group) -> Group:
        return Group(
            self.key,
            self.sum + other.sum,
            min(self.least, other.least),
            max(self.greatest, other.greatest),
            self.weight + other.weight,
            self.fat_bytes + other.fat_bytes,
        )


def place_of(key: int) -> int:
    """The top bits of a 64-bit hash."""
    return hash_of(key) >> PLACE_SHIFT


def hash_of(key: int) -> int:
    """64 bits (splitmix64)."""
    mixed = (key * 0x9E3779B97F4A7C15 + 0x9E3779B97F4A7C15) & _BITS
    mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & _BITS
    mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & _BITS
    return mixed ^ (mixed >> 31)


def folded(groups: Iterable[Group]) -> dict[int, Group]:
    found: dict[int, Group] = {}
    for group in groups:
        before = found.get(group.key)
        found[group.key] = group if before is None else before.merged(group)
    return found


class SimRows:
    """What travels on a channel."""

    def __init__(self, groups: Sequence[Group]) -> None:
        self.groups = tuple(groups)

    @property
    def weight(self) -> int:
        return sum(group.weight for group in self.groups)

    def parts(self, bounds: Sequence[int]) -> list[SimRows]:
        parts: list[list[Group]] = [[] for _ in bounds[1:]]
        for group in self.groups:
            parts[bisect_right(bounds, group.place) - 1].append(group)
        return [SimRows(part) for part in parts]


class SimState:
    """`take` gives some groups at a time, as a real state does."""

    def __init__(self) -> None:
        self.held: dict[int, Group] = {}
        self.is_spilled = False

    @property
    def groups(self) -> int:
        return len(self.held)

    @property
    def size_bytes(self) -> int:
        return sum(GROUP_BYTES + group.fat_bytes for group in self.held.values())

    @property
    def weight(self) -> int:
        return sum(group.weight for group in self.held.values())

    def fold(self, rows: SimRows) -> None:
        self.held = folded((*self.held.values(), *rows.groups))

    def middle(self) -> int | None:
        groups = sorted(self.held.values(), key=lambda group: group.place)
        sizes = [GROUP_BYTES + group.fat_bytes for group in groups]
        if max(sizes) * 4 > sum(sizes) * 3 or groups[0].place == groups[-1].place:
            return None
        half = sum(sizes) / 2
        below = next(number for number, size in enumerate(accumulate(sizes)) if size >= half)
        cuts = [group.place for group in groups[below:] if group.place > groups[0].place]
        return cuts[0]

    def take(self, first: int, upto: int) -> list[SimRows]:
        taken = [group for group in self.held.values() if first <= group.place < upto]
        for group in taken:
            del self.held[group.key]
        return [SimRows(taken[start : start + 16]) for start in range(0, len(taken), 16)]

    def spill(self) -> None:
        self.is_spilled = True

    def clear(self) -> None:
        self.held = {}

"""The routing table of an elastic group-by: which member folds which keys (docs/protocol.md, 16.1).

A key's place is the top 32 bits of its 64-bit hash. A newer epoch wins; an older one does no harm.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable

import msgspec

from skerry.model.errors import PeerError

PLACES = 1 << 32
PLACE_SHIFT = 32  # of a 64-bit hash, whose top bits are the place
XXHASH64 = "xxhash64"  # the hash rule: Spark's function of this name over the key columns


class Range(msgspec.Struct, frozen=True, array_like=True):
    """Keys of places `first` to `upto`, exclusive, are folded by `member`."""

    first: int
    upto: int
    member: str


class RoutingTable(msgspec.Struct, frozen=True, array_like=True):
    """All places, in order and without gaps. `rule` says how a key is hashed."""

    epoch: int
    ranges: tuple[Range, ...]
    rule: str = XXHASH64

    @property
    def members(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(each.member for each in self.ranges))

    @property
    def bounds(self) -> list[int]:
        """Where each range begins, and where the last one ends."""
        return [*(each.first for each in self.ranges), PLACES]

    def owner(self, place: int) -> str:
        return self.ranges[bisect_right(self.ranges, place, key=lambda each: each.first) - 1].member

    def of(self, member: str) -> list[Range]:
        return [each for each in self.ranges if each.member == member]

    def check(self) -> None:
        """One that came from a peer: PeerError if a place has no owner, or two, or its hash is not known here."""
        if self.rule != XXHASH64:
            raise PeerError(f"the routing table of epoch {self.epoch} is by {self.rule!r}, which is not known here")
        bounds = [0, *(each.upto for each in self.ranges)]
        firsts = [*(each.first for each in self.ranges), PLACES]
        if bounds != firsts or any(each.first >= each.upto for each in self.ranges):
            raise PeerError(f"the routing table of epoch {self.epoch} does not cover every place once")


def first_table(member: str, rule: str = XXHASH64) -> RoutingTable:
    """One member folds all keys."""
    return RoutingTable(1, (Range(0, PLACES, member),), rule)


def halved(table: RoutingTable, epoch: int, member: str, at: int, recruit: str) -> RoutingTable:
    """`member` keeps what is below `at` of its range, the rest goes to `recruit`."""
    return _replaced(table, epoch, at, lambda old: (Range(old.first, at, member), Range(at, old.upto, recruit)))


def divided(table: RoutingTable, epoch: int, at: int, recruits: list[str]) -> RoutingTable:
    """The range that `at` is in goes to `recruits` in equal parts."""

    def parts(old: Range) -> tuple[Range, ...]:
        size, count = old.upto - old.first, len(recruits)
        cuts = [old.first + size * number // count for number in range(count + 1)]
        return tuple(Range(cuts[n], cuts[n + 1], recruit) for n, recruit in enumerate(recruits))

    return _replaced(table, epoch, at, parts)


def _replaced(table: RoutingTable, epoch: int, at: int, parts: Callable[[Range], tuple[Range, ...]]) -> RoutingTable:
    ranges = (parts(each) if each.first <= at < each.upto else (each,) for each in table.ranges)
    return RoutingTable(epoch, tuple(part for each in ranges for part in each), table.rule)

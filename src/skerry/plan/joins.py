"""Which tables are joined where before the rest of the query runs: a dynamic programme over (tables, member).

Tables are bits of a set. Joined tables travel as one relation; a join may be made at any member, and what was joined
may be joined on at another. `Joins.pieces` is exact, by its costs, for up to `EXACT_MAX` tables that equalities
connect; of more, pairs are joined one after another as long as that saves most (a bounded search), and of more than
`GREEDY_MAX` none.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

EXACT_MAX, GREEDY_MAX = 8, 20


@dataclass(frozen=True)
class Piece:
    """A table alone (no inputs), or tables joined at `member` from pieces that come to it."""

    tables: int
    member: str = ""
    inputs: tuple[Piece, ...] = ()


@dataclass(frozen=True)
class Costs:
    """What the search asks. `alone_s`: to have one table at each member. `made_s`: to join tables at a member and
    send them to another, beside what their inputs cost there.
    """

    alone_s: Sequence[Mapping[str, float]]
    made_s: Callable[[int, str, str, bool], float]


@dataclass(frozen=True)
class _Way:
    """How tables come to a member: joined there from two sets (`split` is one), or at another member (`source`)."""

    cost_s: float
    split: int = 0
    source: str = ""


class Joins:
    """`adjacent` has, for each table, those that an equality connects it with. Joins are made at `hosts` alone."""

    def __init__(self, adjacent: Sequence[int], members: Sequence[str], hosts: Collection[str], costs: Costs) -> None:
        self._adjacent = adjacent
        self._members = members
        self._hosts = [member for member in members if member in hosts]
        self._costs = costs
        self._ways: dict[int, dict[str, _Way]] = {}
        for index, alone_s in enumerate(costs.alone_s):
            self._ways[1 << index] = {member: _Way(alone_s[member]) for member in members}
        self._connected = self._components()
        self.is_exact = all(tables.bit_count() <= EXACT_MAX for tables in self._connected)
        for tables in self._connected:
            if tables.bit_count() <= EXACT_MAX:
                self._search(tables)

    def pieces(self, root: str) -> list[Piece]:
        """What comes to `root`, where all of it is joined; a table that is there already is a piece of its own."""
        found: list[Piece] = []
        for tables in self._connected:
            sets = [tables] if tables in self._ways else self._merged(tables, root)
            found += [piece for each in sets for piece in self._arriving(each, root)]
        return found

    # --- the search --------------------------------------------------------------------------------
    def _search(self, every: int) -> None:
        """All connected sets of these tables, the small ones first."""
        sets: list[int] = []
        part = every
        while part:
            if part.bit_count() > 1 and self._is_connected(part):
                sets.append(part)
            part = (part - 1) & every
        for tables in sorted(sets, key=lambda each: (each.bit_count(), each)):
            self._ways[tables] = self._best(tables, self._splits(tables))

    def _splits(self, tables: int) -> list[int]:
        """One side of each cut into two sets that are connected themselves."""
        lowest = tables & -tables
        found: list[int] = []
        part = (tables - 1) & tables
        while part:
            if part & lowest and part in self._ways and tables ^ part in self._ways:
                found.append(part)
            part = (part - 1) & tables
        return found

    def _best(self, tables: int, splits: Sequence[int]) -> dict[str, _Way]:
        made: dict[str, _Way] = {}
        for member in self._members:
            cost_s, split = math.inf, splits[0]
            for part in splits:
                both_s = self._ways[part][member].cost_s + self._ways[tables ^ part][member].cost_s
                if both_s < cost_s:
                    cost_s, split = both_s, part
            made[member] = _Way(cost_s, split)
        ways: dict[str, _Way] = {}
        for member in self._members:
            best = made[member]
            for host in self._hosts:
                inputs_s = made[host].cost_s
                if host == member or inputs_s >= best.cost_s:
                    continue
                cost_s = inputs_s + self._costs.made_s(tables, host, member, inputs_s > 0)
                if cost_s < best.cost_s:
                    best = _Way(cost_s, made[host].split, host)
            ways[member] = best
        return ways

    def _merged(self, component: int, root: str) -> list[int]:
        """Too many for all sets of them: pairs are joined as long as that saves anything."""
        sets = [1 << index for index in range(len(self._adjacent)) if component >> index & 1]
        if len(sets) > GREEDY_MAX:
            return sets
        while True:
            best: tuple[float, int, int] = (0.0, 0, 0)
            for number, one in enumerate(sets):
                for other in sets[number + 1 :]:
                    if not self._touch(one, other):
                        continue
                    if one | other not in self._ways:
                        self._ways[one | other] = self._best(one | other, [one])
                    apart_s = self._ways[one][root].cost_s + self._ways[other][root].cost_s
                    saved_s = apart_s - self._ways[one | other][root].cost_s
                    if saved_s > best[0]:
                        best = (saved_s, one, other)
            if not best[1]:
                return sets
            sets = [each for each in sets if each not in best[1:]] + [best[1] | best[2]]

    def _arriving(self, tables: int, member: str) -> list[Piece]:
        way = self._ways[tables][member]
        if way.source:
            return [Piece(tables, way.source, self._inputs(tables, way.split, way.source))]
        if not way.split:
            return [Piece(tables)]
        return [*self._inputs(tables, way.split, member)]

    def _inputs(self, tables: int, split: int, member: str) -> tuple[Piece, ...]:
        return (*self._arriving(split, member), *self._arriving(tables ^ split, member))

    # --- the graph ---------------------------------------------------------------------------------
    def _touch(self, one: int, other: int) -> bool:
        return touch(self._adjacent, one, other)

    def _reach(self, start: int, within: int) -> int:
        reached = start
        while True:
            more = reached
            for index, beside in enumerate(self._adjacent):
                if reached >> index & 1:
                    more |= beside & within
            if more == reached:
                return reached
            reached = more

    def _is_connected(self, tables: int) -> bool:
        return self._reach(tables & -tables, tables) == tables

    def _components(self) -> list[int]:
        left = (1 << len(self._adjacent)) - 1
        found: list[int] = []
        while left:
            found.append(self._reach(left & -left, left))
            left &= ~found[-1]
        return found


def touch(adjacent: Sequence[int], one: int, other: int) -> bool:
    """Does an equality connect the two sets?"""
    return any(one >> index & 1 and beside & other for index, beside in enumerate(adjacent))


def bottom_up(
    adjacent: Sequence[int],
    holders: Sequence[Sequence[str]],
    root: str,
    meets: Callable[[Sequence[str]], str],
    may_join: Callable[[int], bool],
) -> list[Piece]:
    """Strategy bottom-up: in the order of the text, each join where the rows of its sides meet on their way.

    `holders` has the members of each table; joins that meet at the root, or that may not be made apart, are its own.
    """
    left = list(range(len(adjacent)))
    found: list[Piece] = []
    while left:
        first = left.pop(0)
        piece, at = Piece(1 << first), holders[first]
        while (index := next((each for each in left if touch(adjacent, piece.tables, 1 << each)), None)) is not None:
            place = meets([*at, *holders[index]])
            if place == root or not may_join(piece.tables | 1 << index):
                break
            left.remove(index)
            inputs = piece.inputs if piece.member == place else (piece,)
            piece, at = Piece(piece.tables | 1 << index, place, (*inputs, Piece(1 << index))), (place,)
        found.append(piece)
    return found

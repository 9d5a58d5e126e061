"""The search for joins that are made before the rest: against every way there is, and beyond what it can try."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from random import Random

import pytest

from skerry.plan.joins import EXACT_MAX, GREEDY_MAX, Costs, Joins, Piece, bottom_up

MEMBERS = ("oslo", "bergen", "tromso")


class World:
    """Tables with a home, sizes of their joins, and links of any cost."""

    def __init__(self, seed: int, count: int, is_chain: bool = False) -> None:
        random = Random(seed)
        self.count = count
        self.adjacent = [0] * count
        for index in range(1, count):
            other = index - 1 if is_chain else random.randrange(index)
            self._connect(index, other)
        for _ in range(0 if is_chain else random.randrange(3)):
            one, other = random.sample(range(count), 2)
            self._connect(one, other)
        self.homes = [random.choice(MEMBERS) for _ in range(count)]
        self.sizes: dict[int, float] = {}
        self._random = Random(f"sizes {seed}")
        self._rates = {pair: random.uniform(0.2, 5.0) for pair in itertools.permutations(MEMBERS, 2)}
        for tables in range(1, 1 << count) if count <= EXACT_MAX else ():
            self.size(tables)

    def _connect(self, one: int, other: int) -> None:
        self.adjacent[one] |= 1 << other
        self.adjacent[other] |= 1 << one

    def size(self, tables: int) -> float:
        return self.sizes.setdefault(tables, self._random.uniform(1, 100))

    def made_s(self, tables: int, host: str, member: str, waits: bool) -> float:
        return self.size(tables) * self._rates[host, member] + 0.5 * waits

    def alone_s(self, index: int, member: str) -> float:
        home = self.homes[index]
        return 0.0 if member == home else self.size(1 << index) * self._rates[home, member]

    def costs(self) -> Costs:
        alone_s = [{member: self.alone_s(index, member) for member in MEMBERS} for index in range(self.count)]
        return Costs(alone_s, self.made_s)

    def piece_s(self, piece: Piece, member: str) -> float:
        """To have it at the member, by what it says of itself."""
        if not piece.inputs:
            assert piece.tables.bit_count() == 1
            return self.alone_s(piece.tables.bit_length() - 1, member)
        assert piece.tables == sum(each.tables for each in piece.inputs)
        inputs_s = sum(self.piece_s(each, piece.member) for each in piece.inputs)
        return inputs_s + self.made_s(piece.tables, piece.member, member, inputs_s > 0)

    def is_connected(self, tables: int) -> bool:
        reached = tables & -tables
        for _ in range(self.count):
            for index in range(self.count):
                if reached >> index & 1:
                    reached |= self.adjacent[index] & tables
        return reached == tables

    def ways_s(self, tables: int, member: str) -> Iterator[float]:
        """Every way to have the tables at the member, joined."""
        if tables.bit_count() == 1:
            yield self.alone_s(tables.bit_length() - 1, member)
            return
        for host in MEMBERS:
            for part in range(1, tables):
                rest = tables ^ part
                if part & tables != part or part < rest or not (self.is_connected(part) and self.is_connected(rest)):
                    continue
                inputs_s = min(self.ways_s(part, host)) + min(self.ways_s(rest, host))
                yield inputs_s if host == member else inputs_s + self.made_s(tables, host, member, inputs_s > 0)


@pytest.mark.parametrize("seed", range(12))
def test_no_other_way_costs_less(seed: int) -> None:
    world = World(seed, 4 if seed % 3 else 3)
    joins = Joins(world.adjacent, MEMBERS, MEMBERS, world.costs())
    assert joins.is_exact
    for root in MEMBERS:
        pieces = joins.pieces(root)
        cost_s = sum(world.piece_s(each, root) for each in pieces)
        assert sum(each.tables for each in pieces) == (1 << world.count) - 1
        assert cost_s == pytest.approx(min(world.ways_s((1 << world.count) - 1, root)))
        assert all(world.is_connected(each.tables) for each in pieces)


def test_tables_that_nothing_connects_are_pieces_of_their_own() -> None:
    world = World(1, 4)
    world.adjacent = [2, 1, 8, 4]
    for root in MEMBERS:
        for piece in Joins(world.adjacent, MEMBERS, MEMBERS, world.costs()).pieces(root):
            assert piece.tables in (1, 2, 4, 8, 3, 12)


def hosts(piece: Piece) -> set[str]:
    return {member for each in piece.inputs for member in hosts(each)} | ({piece.member} if piece.inputs else set())


@pytest.mark.parametrize("seed", range(6))
def test_only_hosts_join(seed: int) -> None:
    world = World(seed, 6)
    for allowed in (("bergen",), ()):
        for piece in Joins(world.adjacent, MEMBERS, allowed, world.costs()).pieces("oslo"):
            assert hosts(piece) <= set(allowed)


@pytest.mark.parametrize("seed", range(4))
def test_of_many_tables_pairs_are_tried(seed: int) -> None:
    world = World(seed, EXACT_MAX + 4)
    joins = Joins(world.adjacent, MEMBERS, MEMBERS, world.costs())
    assert not joins.is_exact
    apart_s = sum(world.alone_s(index, "oslo") for index in range(world.count))
    pieces = joins.pieces("oslo")
    assert sum(each.tables for each in pieces) == (1 << world.count) - 1
    assert sum(world.piece_s(each, "oslo") for each in pieces) <= apart_s
    assert pieces == joins.pieces("oslo")


def test_of_very_many_tables_none_is_joined() -> None:
    world = World(1, GREEDY_MAX + 1, is_chain=True)
    pieces = Joins(world.adjacent, MEMBERS, MEMBERS, world.costs()).pieces("oslo")
    assert [each.inputs for each in pieces] == [()] * world.count


def test_a_join_that_costs_for_ever_is_not_made() -> None:
    world = World(2, 5)
    costs = Costs(world.costs().alone_s, lambda *_: math.inf)
    assert all(not each.inputs for each in Joins(world.adjacent, MEMBERS, MEMBERS, costs).pieces("bergen"))


def test_bottom_up_joins_where_rows_meet_in_the_order_of_the_text() -> None:
    """A chain of four tables; the rows of the first two meet at bergen, all others at the root."""
    homes = [("oslo",), ("bergen",), ("tromso",), ("bergen",)]

    def meets(at: object) -> str:
        return "bergen" if set(at) <= {"oslo", "bergen"} else "tromso"  # type: ignore[call-overload]

    pieces = bottom_up([2, 5, 10, 4], homes, "tromso", meets, lambda _: True)
    assert pieces == [Piece(3, "bergen", (Piece(1), Piece(2))), Piece(4), Piece(8)]
    assert bottom_up([2, 5, 10, 4], homes, "tromso", meets, lambda _: False) == [Piece(1), Piece(2), Piece(4), Piece(8)]
    whole = bottom_up([2, 5, 2], [*homes[:2], ("oslo",)], "tromso", meets, lambda _: True)
    assert whole == [Piece(7, "bergen", (Piece(1), Piece(2), Piece(4)))]

"""Routing tables: every place has one owner, through any series of splits."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.model.errors import PeerError
from skerry.model.ranges import PLACES, Range, RoutingTable, divided, first_table, halved

HALF = PLACES // 2


def test_first_table_has_one_owner_of_all_places() -> None:
    table = first_table("oslo")
    table.check()
    assert [table.owner(place) for place in (0, HALF, PLACES - 1)] == ["oslo"] * 3
    assert table.bounds == [0, PLACES]


def test_divided_range_goes_to_recruits_in_equal_parts() -> None:
    table = divided(first_table("oslo"), 2, 7, ["bergen", "tromso"])
    assert table.ranges == (Range(0, HALF, "bergen"), Range(HALF, PLACES, "tromso"))
    assert (table.epoch, table.members) == (2, ("bergen", "tromso"))


def test_halved_range_keeps_what_is_below_the_cut() -> None:
    table = halved(divided(first_table("oslo"), 2, 7, ["bergen", "tromso"]), 3, "tromso", HALF + 9, "alta")
    assert [table.owner(place) for place in (HALF - 1, HALF, HALF + 8, HALF + 9)] == [
        "bergen",
        "tromso",
        "tromso",
        "alta",
    ]
    assert table.of("alta") == [Range(HALF + 9, PLACES, "alta")]


@given(st.lists(st.integers(1, PLACES - 1), max_size=12, unique=True), st.integers(0, PLACES - 1))
def test_any_series_of_splits_leaves_each_place_one_owner(cuts: list[int], place: int) -> None:
    table = first_table("m")
    for number, at in enumerate(cuts):
        before = table.owner(place)
        table = halved(table, table.epoch + 1, table.owner(at), at, f"r{number}")
        table.check()
        # A place changes its owner to the recruit, or not at all.
        assert table.owner(place) in (before, f"r{number}")
    assert len(table.members) == len(cuts) + 1


@pytest.mark.parametrize(
    "ranges",
    [
        (),
        (Range(0, HALF, "a"),),
        (Range(1, PLACES, "a"),),
        (Range(0, HALF, "a"), Range(HALF + 1, PLACES, "b")),
        (Range(0, HALF + 1, "a"), Range(HALF, PLACES, "b")),
        (Range(0, HALF, "a"), Range(HALF, HALF, "b"), Range(HALF, PLACES, "c")),
        (Range(0, PLACES + 1, "a"),),
    ],
)
def test_table_that_does_not_cover_all_places_once_is_a_peers_mistake(ranges: tuple[Range, ...]) -> None:
    with pytest.raises(PeerError, match="does not cover"):
        RoutingTable(2, ranges).check()


def test_hash_that_is_not_known_is_a_peers_mistake() -> None:
    with pytest.raises(PeerError, match="'md5', which is not known here"):
        first_table("a", "md5").check()

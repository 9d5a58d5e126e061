"""Moves of groups, the pure part: which buckets move, what maps say, which of them a member follows."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import msgspec
import pytest

from skerry.model.commits import Moving
from skerry.model.errors import PeerError, SiteError, UserError
from skerry.model.ids import QueryId
from skerry.model.sharded import BucketMap, Create, Definition, OwnColumn, OwnTable
from skerry.tables.catalogue import Keep, Keeper, Kept, Send
from skerry.tables.mapping import check_moving, copied_map, is_followed, moved_map, refuse_earlier
from skerry.tables.moves import copies_of, holders, planned, transfers
from skerry.wire.definition_messages import Define, Definitions, KnownDefinitions

NAMES = ("oslo", "bergen", "tromso", "alta", "bodo")
TABLE = OwnTable(1, "t", 1, (OwnColumn("id", "bigint", False),), ("id",), ("id",), ("oslo", "bergen"), 10)
ROWS = QueryId("oslo", "rows")


def spread(buckets: int, names: list[str]) -> BucketMap:
    ends = [buckets * place // len(names) for place in range(len(names) + 1)]
    return BucketMap(1, 1, tuple((*pair, name) for pair, name in zip(pairwise(ends), names, strict=True)))


def counts(buckets: BucketMap) -> dict[str, int]:
    return {name: sum(upto - first for first, upto in buckets.ranges(name)) for name in NAMES}


@pytest.mark.parametrize("seed", range(200))
def test_the_fewest_buckets_move_and_all_have_their_share(seed: int) -> None:
    random = Random(seed)
    size = random.choice([1, 3, 10, 64, 3000])
    now = spread(size, random.sample(NAMES, min(size, random.randint(1, 4))))
    wanted = [name for name in NAMES if random.random() < 0.7] or ["alta"]
    after, moved = now, 0
    for move in transfers(now, wanted):
        after, moved = moved_map(after, move.first, move.upto, move.target), moved + move.upto - move.first
    shares = [counts(after)[name] for name in wanted]
    assert sum(shares) == size
    assert max(shares) - min(shares) <= 1
    before, (least, more) = counts(now), divmod(size, len(wanted))
    stays = sum(min(before[name], least) for name in wanted) + min(more, sum(before[n] > least for n in wanted))
    assert moved == size - stays
    # Cut anywhere and planned anew after each part it comes to the same: tables that were alike are so again.
    cut = now
    while move_now := next(iter(transfers(cut, wanted)), None):
        count = random.randint(1, move_now.upto - move_now.first)
        first = move_now.upto - count if move_now.is_top else move_now.first
        cut = moved_map(cut, first, first + count, move_now.target)
    assert cut.groups == after.groups


def test_a_member_follows_a_map_when_its_own_rows_are_where_it_says() -> None:
    now = spread(10, ["oslo", "bergen"])
    after = moved_map(now, 2, 5, "tromso")
    assert after.groups == ((0, 2, "oslo"), (2, 5, "tromso"), (5, 10, "bergen"))
    assert [is_followed(now, after, name) for name in NAMES[:4]] == [False, True, False, True]
    assert not is_followed(after, now, "bergen")
    copied = BucketMap(1, 2, (), members=("oslo", "bergen"))
    more = copied_map(copied, ("oslo", "bergen", "tromso"))
    assert [is_followed(copied, more, name) for name in NAMES[:3]] == [True, True, False]
    assert is_followed(BucketMap(1, 1, ()), copied, "oslo")
    later = msgspec.structs.replace(after, since=7 << 40)
    refuse_earlier(later, 7 << 40, "t")
    with pytest.raises(SiteError, match=f"VERSION AS OF {7 << 40} is the oldest|its history begins at {7 << 40}"):
        refuse_earlier(later, (7 << 40) - 1, "t")


def test_a_move_that_does_not_follow_from_the_map_is_refused() -> None:
    now = spread(10, ["oslo", "bergen"])
    right = Moving(moved_map(now, 2, 5, "tromso"), 2, 5, "oslo", "tromso", ROWS)
    for member in ("oslo", "tromso"):
        check_moving(right, now, member)
    copied = BucketMap(1, 2, (), members=("oslo", "bergen"))
    comes = Moving(copied_map(copied, ("oslo", "bergen", "tromso")), 0, 10, "oslo", "tromso", ROWS)
    goes = Moving(copied_map(copied, ("oslo",)), 0, 10, "bergen", "oslo", ROWS)
    for moving, member in ((comes, "oslo"), (comes, "tromso"), (goes, "bergen"), (goes, "oslo")):
        check_moving(moving, copied, member)
    both = msgspec.structs.replace(comes, buckets=copied_map(copied, ("oslo", "tromso")))
    for wrong, map_now, member in (
        (right, now, "bergen"),
        (msgspec.structs.replace(right, upto=6), now, "oslo"),
        (msgspec.structs.replace(right, source="bergen"), now, "oslo"),
        (right, moved_map(now, 0, 1, "tromso"), "oslo"),
        (both, copied, "oslo"),
        (goes, copied, "tromso"),
    ):
        with pytest.raises(PeerError):
            check_moving(wrong, map_now, member)


def test_who_shall_have_rows() -> None:
    definition = Definition(TABLE, spread(10, ["oslo", "bergen"]))
    assert holders(definition, NAMES[:3]) == NAMES[:3]
    assert holders(definition, NAMES[:3], ["bergen"]) == ("oslo", "tromso")
    placed = msgspec.structs.replace(definition, table=msgspec.structs.replace(TABLE, is_placed=True))
    assert holders(placed, NAMES[:3]) == ("oslo", "bergen")
    with pytest.raises(UserError, match="by IN"):
        holders(placed, NAMES[:3], ["oslo", "bergen"])
    with pytest.raises(SiteError, match="table t: bergen has rows of it, and is not in the configuration"):
        holders(definition, ["oslo", "tromso"])
    copies = Definition(msgspec.structs.replace(TABLE, distributed_by=()), BucketMap(1, 1, ()))
    assert copies_of(copies) == ("oslo", "bergen")
    assert [move[:4] for move in planned(copies, ("oslo", "tromso"))] == [
        (0, 10, "oslo", "tromso"),
        (0, 10, "bergen", "oslo"),
    ]
    with pytest.raises(SiteError, match="bergen has rows"):
        holders(copies, ["oslo"])


def test_the_keeper_tells_of_moves_once_they_are_on_its_disk() -> None:
    keeper = Keeper("oslo", Kept(), frozenset(), frozenset(NAMES))
    made = keeper.define("oslo", Define(QueryId("oslo", "q"), Create(msgspec.structs.replace(TABLE, id=0))), (), 0.0)
    assert isinstance(made[0], Keep)
    keeper.kept(made[0].kept.catalogue, (), 0.0)
    (kept,) = keeper.placed(1, ("oslo", "bergen", "tromso"))
    assert isinstance(kept, Keep)
    (definition,) = kept.kept.catalogue.definitions
    assert (definition.table.members, definition.buckets.version) == (("oslo", "bergen", "tromso"), 2)
    # Who asks meanwhile is told when it is on disk.
    asked = keeper.known("bergen", KnownDefinitions("bergen", 1, asks=True), 0.0)
    assert not [each for each in asked if isinstance(each, Send)]
    assert not keeper.is_known("bergen")
    told = keeper.kept(kept.kept.catalogue, ("bergen",), 0.0)
    assert [(each.to, type(each.message)) for each in told if isinstance(each, Send)] == [("bergen", Definitions)]
    keeper.known("bergen", KnownDefinitions("bergen", 2), 0.0)
    assert keeper.is_known("bergen")
    after = msgspec.structs.replace(moved_map(definition.buckets, 0, 3, "tromso"), since=9)
    (moved,) = keeper.moved(after)
    assert isinstance(moved, Keep)
    assert moved.kept.catalogue.definitions[0].buckets == after
    assert keeper.moved(after) == []  # said again
    assert keeper.placed(1, ("oslo", "bergen")) == []  # tromso has rows

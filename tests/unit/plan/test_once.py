"""Equal fragments run once, with several receivers; rows that have to stay apart stay apart."""

from __future__ import annotations

import msgspec
import pytest

from skerry.model.fragment import EdgeLeaf, Leaf, Output, Rows, SparkFragment, TableLeaf
from skerry.model.table import Column
from skerry.plan.once import Once, run_once

COLUMNS = (Column("k", "bigint"),)
RESULT, REST = 9, "rest"


class Maker:
    """Fragments with placeholders of their own, as the planner makes them."""

    def __init__(self) -> None:
        self.fragments: list[SparkFragment] = []

    def add(self, member: str, edge: int, to: str, *reads: str | tuple[int, str], more: str = "") -> None:
        number = len(self.fragments) + 1
        leaves: list[Leaf] = []
        for place, read in enumerate(reads):
            name = f"leaf_{number}{place}_nonce"
            leaves.append(
                TableLeaf(name, read) if isinstance(read, str) else EdgeLeaf(name, read[0], COLUMNS, (read[1],))
            )
        sql = f"SELECT k FROM {', '.join(leaf.placeholder for leaf in leaves)}{more}"
        self.fragments.append(SparkFragment(number, member, sql, tuple(leaves), Output(edge, (to,)), 10, 100))

    def once(self, *, is_stable: bool = True) -> Once:
        if not any(each.output.edge == RESULT for each in self.fragments):
            self.add("oslo", RESULT, "oslo", REST)
        known = {fragment.id: (f"size {fragment.id}",) for fragment in self.fragments}
        senders = tuple(each.member for each in self.fragments if each.output.edge == RESULT)
        return run_once(self.fragments, Rows(RESULT, senders), known, lambda _: is_stable)


def told(once: Once) -> list[str]:
    """`member reads → edge to receivers`."""
    found = []
    for number, each in enumerate(once.fragments, 1):
        assert each.id == number
        reads = [leaf.table if isinstance(leaf, TableLeaf) else f"edge {leaf.edge}" for leaf in each.leaves]
        if reads == [REST]:
            continue
        found.append(f"{each.member} {', '.join(reads)} → {each.output.edge} to {' '.join(each.output.receivers)}")
    return found


def star() -> Maker:
    """A table with parts at all three sites is joined with one at bergen."""
    maker = Maker()
    maker.add("bergen", 1, "oslo", "nation")
    maker.add("oslo", RESULT, "oslo", "events", (1, "bergen"))
    maker.add("bergen", 2, "tromso", "nation")
    maker.add("tromso", RESULT, "oslo", "events", (2, "bergen"))
    maker.add("bergen", RESULT, "oslo", "events", "nation")
    return maker


def test_a_scan_that_two_members_want_runs_once() -> None:
    once = star().once()
    assert told(once) == [
        "bergen nation → 1 to oslo tromso",
        "oslo events, edge 1 → 2 to oslo",
        "tromso events, edge 1 → 2 to oslo",
        "bergen events, nation → 2 to oslo",
    ]
    assert once.ends_in == Rows(2, ("oslo", "tromso", "bergen"))
    assert once.known == {1: ("size 1", "size 3"), 2: ("size 2",), 3: ("size 4",), 4: ("size 5",)}
    assert run_once(once.fragments[:0], Rows(1, ()), {}, lambda _: True).fragments == ()


def test_what_gives_other_rows_each_time_runs_for_each() -> None:
    maker = star()
    once = maker.once(is_stable=False)
    assert (once.fragments, once.ends_in.edge) == (tuple(maker.fragments), RESULT)


def test_parts_at_the_members_that_want_them_make_one_edge() -> None:
    """Each receiver has senders of its own."""
    maker = Maker()
    for number, to in enumerate(("oslo", "bergen", "tromso"), 1):
        for member in ("oslo", "bergen", "tromso"):
            if member != to:
                maker.add(member, number, to, "few")
    assert told(maker.once()) == [
        "bergen few → 1 to oslo tromso",
        "tromso few → 1 to oslo bergen",
        "oslo few → 1 to bergen tromso",
    ]


def test_what_is_made_of_the_same_rows_is_the_same() -> None:
    maker = Maker()
    maker.add("oslo", 1, "bergen", "keys")
    maker.add("bergen", 2, "oslo", "rows", (1, "oslo"))
    maker.add("bergen", 3, "tromso", "rows", (1, "oslo"))
    maker.add("bergen", 4, "tromso", "rows", (1, "oslo"), more=" WHERE k > 0")
    assert told(maker.once()) == [
        "oslo keys → 1 to bergen",
        "bergen rows, edge 1 → 2 to oslo tromso",
        "bergen rows, edge 1 → 3 to tromso",
    ]


def test_edges_of_one_receiver_are_not_mixed() -> None:
    """One member's rows for edges 1 and 2 are the same, and both come to tromso with those of others."""
    maker = Maker()
    maker.add("oslo", 1, "tromso", "events")
    maker.add("oslo", 2, "tromso", "events")
    maker.add("bergen", 2, "tromso", "events")
    maker.add("bergen", 3, "oslo", "events")
    maker.add("oslo", 4, "bergen", "events")
    assert told(maker.once()) == [
        "oslo events → 1 to tromso bergen",
        "oslo events → 2 to tromso",
        "bergen events → 2 to tromso oslo",
    ]


def test_a_result_goes_to_its_initiator_alone() -> None:
    maker = Maker()
    maker.add("bergen", 1, "tromso", "nation")
    maker.add("bergen", RESULT, "oslo", "nation")
    assert told(maker.once()) == ["bergen nation → 1 to tromso", f"bergen nation → {RESULT} to oslo"]


@pytest.mark.parametrize("changed", [{"order": "lanes"}, {"through_driver": True}, {"rows_max": 5}])
def test_another_way_to_send_is_another_fragment(changed: dict[str, object]) -> None:
    maker = star()
    third = maker.fragments[2]
    maker.fragments[2] = msgspec.structs.replace(third, output=msgspec.structs.replace(third.output, **changed))
    assert len(maker.once().fragments) == 5

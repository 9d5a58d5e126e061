"""The checker of histories (chaos/histories.py): each anomaly by its name, and none in what is right."""

from __future__ import annotations

import pytest

from chaos.histories import Append, Outcome, Read, Transaction, Transfer, check_bank, check_lists, check_sets

REFUSED, UNKNOWN = Outcome.REFUSED, Outcome.UNKNOWN


def txn(name: str, *steps: str, outcome: Outcome = Outcome.DONE, at: tuple[float, float] = (0, 99)) -> Transaction:
    """Steps as `x+1` (append 1 to x) and `x=1 2` (x was read)."""
    made = [Read(step[0], tuple(step[2:].split())) if step[1] == "=" else Append(step[0], step[2:]) for step in steps]
    return Transaction(name, name, tuple(made), outcome, *at)


def final(**lists: str) -> dict[str, tuple[str, ...]]:
    return {key: tuple(elements.split()) for key, elements in lists.items()}


LISTS = {
    "right": ("", [txn("a", "x+1", "y+1"), txn("b", "x=1", "x+2"), txn("c", "x=1", "y=1")], final(x="1 2", y="1")),
    "right, unknown": ("", [txn("a", "x+1", outcome=UNKNOWN), txn("b", "y+1", outcome=UNKNOWN)], final(x="1", y="")),
    # Two that each miss the other's write: snapshot isolation allows it.
    "write skew": ("", [txn("a", "x=", "y=", "x+1"), txn("b", "x=", "y=", "y+1")], final(x="1", y="1")),
    "own reads": ("", [txn("a", "x=", "x+1", "x=1", "x+2", "x=1 2")], final(x="1 2")),
    "G0": ("G0", [txn("a", "x+1", "y+1"), txn("b", "x+2", "y+2")], final(x="1 2", y="2 1")),
    "G1a": ("G1a", [txn("a", "x+1", outcome=REFUSED), txn("b", "x=1")], final(x="1")),
    "G1b": ("G1b", [txn("a", "x+1", "x+2"), txn("b", "x=1")], final(x="1 2")),
    "G1c": ("G1c", [txn("a", "x+1", "y=1"), txn("b", "y+1", "x=1")], final(x="1", y="1")),
    "G-single": ("G-single", [txn("a", "x+1", "y+1"), txn("b", "x=1", "y=")], final(x="1", y="1")),
    "long fork": (
        "G-single",
        [txn("a", "x+1"), txn("b", "y+1"), txn("c", "x=1", "y="), txn("d", "x=", "y=1")],
        final(x="1", y="1"),
    ),
    "lost update": ("G-single", [txn("a", "x=", "x+1"), txn("b", "x=", "x+2")], final(x="1 2")),
    "lost update, read": ("lost update", [txn("a", "x+1"), txn("b", "x+2"), txn("c", "x=1")], final(x="2 1")),
    "lost acknowledged": ("lost acknowledged write", [txn("a", "x+1"), txn("b", "x+2")], final(x="2")),
    "lost": ("lost write", [txn("a", "x+1", outcome=UNKNOWN), txn("b", "x=1")], final(x="")),
    "doubled": ("doubled write", [txn("a", "x+1")], final(x="1 1")),
    "partial": ("partial write", [txn("a", "x+1", "y+1", outcome=UNKNOWN)], final(x="1", y="")),
    "invented": ("invented", [txn("a", "x+1")], final(x="1 7")),
    "internal": ("internal", [txn("a", "x=", "x+1", "x=")], final(x="1")),
    "stale": ("stale read", [txn("a", "x+1", at=(0, 1)), txn("b", "x=", at=(2, 3))], final(x="1")),
}


@pytest.mark.parametrize("case", LISTS)
def test_lists(case: str) -> None:
    expected, history, last = LISTS[case]
    found = check_lists(history, last)
    assert [each.partition(":")[0] for each in found][:1] == ([expected] if expected else []), found


WRITES = [txn("a", "x+1", "y+1", at=(0, 1)), txn("b", "x+2", "y+2", outcome=UNKNOWN), txn("c", "x+3", outcome=REFUSED)]
SETS = {
    "right": ("", [txn("l", "x=1", "y=1", at=(2, 3)), txn("m", "x=1 2", "y=1 2", at=(4, 5))], final(x="1 2", y="2 1")),
    "lost acknowledged": ("lost acknowledged write", [], final(x="2", y="2")),
    "partial": ("partial write", [], final(x="1 2", y="1")),
    "doubled": ("doubled write", [], final(x="1 1", y="1")),
    "refused": ("G1a", [], final(x="1 3", y="1")),
    "refused, read": ("G1a", [txn("l", "x=1 3", "y=1")], final(x="1", y="1")),
    "half read": ("G1b", [txn("l", "x=1", "y=")], final(x="1", y="1")),
    "future read": ("G1c", [txn("l", "x=1", "y=1", at=(-2, -1))], final(x="1", y="1")),
    "stale": ("stale read", [txn("l", "x=", "y=", at=(2, 3))], final(x="1", y="1")),
    "fork": ("long fork", [txn("l", "x=1", "y=1"), txn("m", "x=2", "y=2")], final(x="1 2", y="1 2")),
    "invented": ("invented", [txn("l", "x=9", "y=")], final(x="1", y="1")),
}


@pytest.mark.parametrize("case", SETS)
def test_sets(case: str) -> None:
    expected, looks, last = SETS[case]
    found = check_sets(WRITES, looks, last)
    assert [each.partition(":")[0] for each in found][:1] == ([expected] if expected else []), found


def test_a_bank() -> None:
    opening, moved = {"a": 5, "b": 5}, [Transfer("t", "a", "b", 2, Outcome.DONE), Transfer("u", "b", "a", 1, REFUSED)]
    after = {"a": 3, "b": 7}
    assert check_bank(opening, moved, [opening, after], after) == []
    assert "sum of 8" in check_bank(opening, moved, [{"a": 3, "b": 5}], after)[0]
    assert "lost or doubled" in check_bank(opening, moved, [], {"a": 1, "b": 9})[0]
    assert "lost or doubled" in check_bank(opening, moved, [], opening)[0]
    assert "found accounts" in check_bank(opening, moved, [{"a": 10}], after)[0]
    # While one is unknown only the sum can be judged.
    assert check_bank(opening, [Transfer("t", "a", "b", 2, UNKNOWN)], [], opening) == []

"""Writes whose text is known mean what they would mean if they were read again."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import msgspec
import pytest

from skerry.member import knownchanges
from skerry.member.knownchanges import KnownChanges
from skerry.model.limits import Limits
from skerry.sql.changes import analyse_constants
from skerry.sql.owntables import Change
from skerry.tables.ways import way_of
from tests.unit.sql.change_cases import KNOWN

INSERT = "INSERT INTO reading (k, d, s, day) VALUES (?, ?, (?), DATE'2024-02-29'), (-1, 0.5D, 'x', DEFAULT)"
ROWS = "INSERT INTO reading (k, d, s) VALUES (?, ?, ?), (?, ?, ?)"
UPDATE = "UPDATE reading SET exact = :n, s = DEFAULT WHERE k IN (:n, 7)"


def read(text: str, values: Any) -> Change:
    change = analyse_constants(text, values, KNOWN, Limits())
    assert isinstance(change, Change)
    return change


@pytest.mark.parametrize(
    ("text", "first", "later"),
    [
        (INSERT, [1, 0.5, "a"], [[2, -0.0, "ø"], [3, None, None], [2**40, 1.0, "too large"], ["no number", 1.0, "a"]]),
        (
            ROWS,
            [1, 0.5, "a", 2, 1.5, "b"],
            [
                [3, -0.0, "ø", 4, 2.5, ""],
                [3, None, "ø", 4, 2.5, None],
                [3, None, None, 4, None, None],
                [3, 1, "a", 4, 0.5, "b"],
                [3, Decimal("1.5"), "a", 4, Decimal("2.25"), "b"],
                [3, 0.5, "a", True, 0.5, "b"],
                [3, 0.5, 1, 4, 0.5, "b"],
                [3, 0.5, "a", None, 0.5, "b"],
                [3, 0.5, "a", 2**63, 0.5, "b"],
                [3, 0.5, "a", 2**40, 0.5, "b"],
            ],
        ),
        (UPDATE, {"n": 1}, [{"n": 2}, {"n": None}, {"n": 8.5}]),
        ("DELETE FROM reading WHERE k = ?", [1], [[2], [None], [True]]),
    ],
)
def test_other_values_are_bound_as_though_the_text_were_read_again(text: str, first: Any, later: list[Any]) -> None:
    known = KnownChanges()
    assert known.find(text, first, KNOWN.tables) is None
    known.keep(text, first, read(text, first))
    for values in (*later, first):
        found = known.find(text, values, KNOWN.tables)
        assert found is not None
        assert outcome(found) == outcome(read(text, values))


def outcome(change: Change) -> str:
    try:
        return repr(way_of(change))
    except Exception as error:  # the same as well
        return repr(error)


def test_what_does_not_fit_is_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    known, tables = KnownChanges(), dict(KNOWN.tables)
    known.keep(INSERT, [1, 0.5, "a"], read(INSERT, [1, 0.5, "a"]))
    known.keep(UPDATE, {"n": 1}, read(UPDATE, {"n": 1}))
    assert known.find(INSERT, [1, 0.5, "a"], tables) is not None
    for text, values in ((INSERT, [1, 0.5]), (INSERT, {"p0": 1, "p1": 2, "p2": 3}), (UPDATE, {"m": 1}), (UPDATE, [1])):
        assert known.find(text, values, tables) is None
    # The table is another one now, or hidden.
    tables["reading"] = msgspec.structs.replace(tables["reading"], version=2)
    assert known.find(INSERT, [1, 0.5, "a"], tables) is None
    assert known.find(INSERT, [1, 0.5, "a"], {}) is None
    # Texts that say all themselves, and long ones, are not kept; nor are more than so many.
    plain = "DELETE FROM reading WHERE k = 1"
    known.keep(plain, [], read(plain, []))
    assert known.find(plain, [], KNOWN.tables) is None
    monkeypatch.setattr(knownchanges, "CHANGES_KEPT", 2)
    later = "DELETE FROM reading WHERE k = ?"
    known.keep(later, [1], read(later, [1]))
    assert [known.find(*each, KNOWN.tables) is None for each in ((INSERT, [1, 0.5, "a"]), (later, [2]))] == [
        True,
        False,
    ]
    monkeypatch.setattr(knownchanges, "CHANGE_KEPT_CHARS", len(later) - 1)
    again = KnownChanges()
    again.keep(later, [1], read(later, [1]))
    assert again.find(later, [1], KNOWN.tables) is None

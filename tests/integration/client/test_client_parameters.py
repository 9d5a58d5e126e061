"""Typed parameters, `?` and `:name`: what is wrong with them is said before anything runs."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import pytest

import skerry
from skerry.testing.cluster import LocalCluster

pytestmark = pytest.mark.sail

WRONG: list[tuple[str, Any, str]] = [
    ("SELECT id FROM few WHERE id = ?", None, "1 parameter .* given: 0"),
    ("SELECT id FROM few WHERE id = ?", [], "1 parameter .* given: 0"),
    ("SELECT id FROM few WHERE id = ?", [1, 2], "1 parameter .* given: 2"),
    ("SELECT id FROM few", [1], "0 parameters .* given: 1"),
    ("SELECT id FROM few WHERE id = :id", {}, "no value for parameter :id"),
    ("SELECT id FROM few WHERE id = :id", {"di": 1}, "no value for parameter :id"),
    ("SELECT id FROM few WHERE id = :id", {"id": 1, "other": 2}, "no parameter :other"),
    ("SELECT id FROM few WHERE id = :id", [1], "give the parameters by name"),
    ("SELECT id FROM few WHERE id = ?", {"id": 1}, "given by name"),
    ("SELECT id FROM few WHERE id = ? AND id = :id", {"id": 1}, "not both"),
    ("SELECT id FROM few WHERE id = ?", [object()], "parameter 1: a value of type object"),
    ("SELECT id FROM few WHERE id = ?", [datetime.time(1)], "parameter 1: a value of type time"),
    ("SELECT id FROM few WHERE id = :id", {"id": {"a": 1}}, "parameter :id: a value of type dict"),
    ("SELECT id FROM few WHERE id = ?", [[1, "a"]], "parameter 1: a list must hold values of one type"),
    ("SELECT id FROM few WHERE id = ?", [Decimal("NaN")], "parameter 1: NaN is not a decimal"),
    ("SELECT id FROM few WHERE id = ?", [10**40], "parameter 1: 41 digits"),
    ("SELECT id FROM few WHERE id = ?", ["abc"], "parameter 1: 'abc' has a wrong type: column id is a bigint"),
    (
        "SELECT id FROM few WHERE id BETWEEN :a AND :b",
        {"a": 1, "b": datetime.date(2024, 2, 29)},
        "parameter :b: .* bigint",
    ),
    ("SELECT f.id FROM few f JOIN ticks t ON f.id = t.id AND t.kind = ?", ["abc"], "column kind is an int"),
    ("SELECT id FROM few LIMIT ?", ["3"], "LIMIT takes a number of rows"),
]


@pytest.mark.parametrize(("sql", "given", "says"), WRONG)
def test_a_wrong_count_or_type_is_an_error_before_anything_runs(
    cluster: LocalCluster, sql: str, given: Any, says: str
) -> None:
    with cluster.connect("oslo") as connection, connection.cursor() as cursor:
        with pytest.raises(skerry.ProgrammingError, match=says):
            cursor.execute(sql, given)
        status = cursor.status() if cursor.query_id else None
        assert status is None or (status.state, status.fragments) == ("failed", ())


@pytest.mark.parametrize(
    ("given", "kind"),
    [([1, None, 3], "array<int>"), ([2**40, None], "array<bigint>"), (["a", None], "array<string>")],
)
def test_lists_may_hold_null(cluster: LocalCluster, given: list[Any], kind: str) -> None:
    with cluster.connect("bergen") as connection, connection.cursor() as cursor:
        cursor.execute("SELECT :list AS list, size(:list) AS size FROM oslo.few WHERE id = 1", {"list": given})
        assert cursor.description is not None
        assert cursor.description[0][:2] == ("list", kind)
        assert cursor.fetchall() == [(given, len(given))]


def test_one_statement_with_many_values(cluster: LocalCluster) -> None:
    """The plan is made once and kept; only the values differ."""
    with cluster.connect("oslo") as connection, connection.cursor() as cursor:
        found = [cursor.execute("SELECT name FROM oslo.few WHERE id = ?", [n]).fetchone() for n in range(5)]
    assert found == [(f"oslo {n}",) for n in range(5)]


def test_a_prepared_statement_knows_its_parameters_and_checks_values_before_anything_is_sent(
    cluster: LocalCluster,
) -> None:
    with cluster.connect("oslo") as connection:
        before = len(connection.queries())
        statement = connection.prepare("SELECT name FROM oslo.few WHERE id = ? AND upper(name) <> ? LIMIT ?")
        assert [(each.name, each.type) for each in statement.parameters] == [("", "bigint"), ("", ""), ("", "int")]
        for wrong in (None, [1], [1, "x", 1, 1], ["abc", "x", 1], {"a": 1}):
            with pytest.raises(skerry.ProgrammingError):
                statement.execute(wrong)
        assert len(connection.queries()) == before  # neither preparing nor what was refused is a query
        for number in (1, "2"):
            with statement.execute([number, "x", 10]) as cursor:
                assert cursor.fetchall() == [(f"oslo {number}",)]
        named = connection.prepare("SELECT :n AS n FROM few WHERE id = :id AND id < :n")
        assert [(each.name, each.type) for each in named.parameters] == [("n", "bigint"), ("id", "bigint")]
        assert connection.prepare("SHOW TABLES").parameters == ()
        with pytest.raises(skerry.ProgrammingError, match="unknown table nowhere"):
            connection.prepare("SELECT * FROM nowhere WHERE a = ?")
        with pytest.raises(skerry.ProgrammingError, match="not both"):
            connection.prepare("SELECT ? + :a")

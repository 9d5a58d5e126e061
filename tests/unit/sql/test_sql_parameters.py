"""Markers and values match one to one, and values stay out of the text; times become markers too."""

from __future__ import annotations

import datetime

import pytest

from skerry.model.errors import SqlError
from skerry.sql.now import now_parameters
from tests.unit.sql.sql_cases import query, rendered, statement


def test_question_marks_get_names() -> None:
    found = query("SELECT ? FROM orders WHERE o_id = ? LIMIT ?", ["'; DROP TABLE x", 2, 3])
    assert rendered("SELECT ? FROM orders WHERE o_id = ? LIMIT ?", [1, 2, 3]) == (
        "SELECT :p0 FROM scan_0 AS orders WHERE o_id = :p1 LIMIT :p2"
    )
    assert found.parameters == {"p0": "'; DROP TABLE x", "p1": 2, "p2": 3}


def test_names_stay() -> None:
    found = query("SELECT :low + :low FROM orders WHERE o_id < :high", {"low": 1, "high": None})
    assert found.parameters == {"low": 1, "high": None}


@pytest.mark.parametrize(
    ("sql", "values", "message"),
    [
        ("SELECT ?", None, "has 1 parameter (?); values given: 0"),
        ("SELECT ?", [1, 2], "has 1 parameter (?); values given: 2"),
        ("SELECT 1", [1], "has 0 parameters (?); values given: 1"),
        ("SELECT :a", {"b": 1}, "no value for parameter :a"),
        ("SELECT :price", {"prices": 1}, "did you mean prices?"),
        ("SELECT :a", {"a": 1, "b": 2}, "has no parameter :b"),
        ("SELECT :a", [1], "give the parameters by name"),
        ("SELECT ?", {"a": 1}, "given by name"),
        ("SELECT ?, :a", {"a": 1}, "not both"),
        ("SELECT :skerry_now", {"skerry_now": 1}, "Skerry's own"),
        ("SELECT ?", "x", "not a string"),
        ("SELECT :`a b`", {"a b": 1}, "plain word"),
        ("SHOW TABLES", [1], "takes no parameters"),
    ],
)
def test_what_does_not_match_is_refused(sql: str, values: object, message: str) -> None:
    with pytest.raises(SqlError) as caught:
        statement(sql, values)
    assert message in caught.value.message


@pytest.mark.parametrize(
    ("sql", "bound"),
    [
        ("SELECT now()", "SELECT :skerry_now AS `now()`"),
        ("SELECT NOW(), 1", "SELECT :skerry_now AS `now()`, 1"),
        ("SELECT current_timestamp", "SELECT :skerry_now AS `current_timestamp()`"),
        ("SELECT current_timestamp()", "SELECT :skerry_now AS `current_timestamp()`"),
        ("SELECT CURRENT_DATE", "SELECT :skerry_today AS `current_date()`"),
        ("SELECT curdate()", "SELECT :skerry_today AS `current_date()`"),
        ("SELECT localtimestamp()", "SELECT CAST(:skerry_now AS TIMESTAMP_NTZ) AS `localtimestamp()`"),
        (
            "SELECT unix_timestamp()",
            "SELECT unix_timestamp(:skerry_now) AS `unix_timestamp(current_timestamp(), yyyy-MM-dd HH:mm:ss)`",
        ),
        ("SELECT now() AS x", "SELECT :skerry_now AS x"),
        ("SELECT year(now()) AS x", "SELECT year(:skerry_now) AS x"),
        (
            "SELECT o_id FROM orders WHERE o_date < current_date - INTERVAL 1 DAY",
            "SELECT o_id FROM scan_0 AS orders WHERE o_date < :skerry_today - INTERVAL 1 DAY",
        ),
        ("SELECT year(now())", "SELECT year(:skerry_now) AS `year(now())`"),
        (
            "SELECT current_date = o_date, Hour(now()) FROM orders",
            "SELECT :skerry_today = o_date AS `(current_date() = o_date)`, Hour(:skerry_now) AS `hour(now())`"
            " FROM scan_0 AS orders",
        ),
        ("SELECT (SELECT year(now()))", "SELECT (SELECT year(:skerry_now))"),
        ("SELECT 1 WHERE 1 IN (SELECT year(now()))", "SELECT 1 WHERE 1 IN (SELECT year(:skerry_now))"),
    ],
)
def test_the_time_is_a_marker(sql: str, bound: str) -> None:
    assert rendered(sql) == bound
    assert query(sql).uses_now


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT year(now()) + 1",
        "SELECT * FROM (SELECT now() || 'x')",
        "WITH x AS (SELECT current_date + 1) SELECT * FROM x",
    ],
)
def test_a_name_that_would_hold_the_time_must_be_given(sql: str) -> None:
    with pytest.raises(SqlError, match="give this column a name"):
        statement(sql)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT unix_timestamp(o_date) FROM orders",
        "SELECT current_date FROM (SELECT 1 AS current_date)",
        "SELECT 'now()'",
    ],
)
def test_what_only_looks_like_the_time_stays(sql: str) -> None:
    assert not query(sql).uses_now


def test_the_markers_have_values() -> None:
    at = datetime.datetime(2024, 2, 29, 23, 30, tzinfo=datetime.timezone(datetime.timedelta(hours=-1)))
    assert now_parameters(at) == {
        "skerry_now": datetime.datetime(2024, 3, 1, 0, 30, tzinfo=datetime.UTC),
        "skerry_today": datetime.date(2024, 3, 1),
    }
    with pytest.raises(SqlError, match="time zone"):
        now_parameters(datetime.datetime(2024, 1, 1))

"""Markers and values match one to one, and values stay out of the text; times become markers too."""

from __future__ import annotations

import datetime

import pytest

from skerry.model.errors import SqlError
from skerry.sql.fixed import MARKERS, fixed_values
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
    assert query(sql).fixed


@pytest.mark.parametrize(
    ("sql", "bound"),
    [
        (
            "SELECT current_user(), USER(), session_user(), user, `session_user`, upper(user)",
            "SELECT :skerry_caller AS `current_user()`, :skerry_caller AS `user()`, :skerry_caller AS `session_user()`,"
            " :skerry_caller AS `current_user()`, :skerry_caller AS `current_user()`,"
            " upper(:skerry_caller) AS `upper(current_user())`",
        ),
        (
            "SELECT current_catalog(), current_database(), current_schema(), current_path(), current_path",
            "SELECT :skerry_catalog AS `current_catalog()`, :skerry_schema AS `current_schema()`,"
            " :skerry_schema AS `current_schema()`, :skerry_path AS `current_path()`, :skerry_path AS `current_path()`",
        ),
        (
            "SELECT o_id FROM orders WHERE o_note = current_user ORDER BY session_user, o_id",
            "SELECT o_id FROM scan_0 AS orders WHERE o_note = :skerry_caller ORDER BY :skerry_caller, o_id",
        ),
        # Beside something that has its name: Spark takes all of these for the call.
        (
            "SELECT current_user FROM orders WHERE EXISTS (SELECT 1 AS current_user)",
            "SELECT :skerry_caller AS `current_user()` FROM scan_0 AS orders WHERE EXISTS (SELECT 1 AS current_user)",
        ),
        (
            "SELECT o_id AS user FROM orders WHERE user = 'root'",
            "SELECT o_id AS user FROM scan_0 AS orders WHERE :skerry_caller = 'root'",
        ),
        ("SELECT 'a' AS user, user", "SELECT 'a' AS user, :skerry_caller AS `current_user()`"),
        (
            "SELECT (SELECT user) FROM (SELECT 'a' AS user)",
            "SELECT (SELECT :skerry_caller) FROM (SELECT 'a' AS user)",
        ),
        ("VALUES (current_user)", "VALUES (:skerry_caller)"),
        # Of all of them this one alone is a word of the grammar, which no column hides.
        (
            "SELECT current_path, `current_path`, t.current_path FROM (SELECT 'a' AS current_path) AS t",
            "SELECT :skerry_path AS `current_path()`, `current_path`, t.`current_path`"
            " FROM (SELECT 'a' AS current_path) AS t",
        ),
    ],
)
def test_who_asks_is_a_marker(sql: str, bound: str) -> None:
    assert rendered(sql) == bound


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT year(now()) + 1",
        "SELECT * FROM (SELECT now() || 'x')",
        "WITH x AS (SELECT current_date + 1) SELECT * FROM x",
        "SELECT current_user() || 'x'",
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
    assert not query(sql).fixed


def test_the_markers_have_values() -> None:
    at = datetime.datetime(2024, 2, 29, 23, 30, tzinfo=datetime.timezone(datetime.timedelta(hours=-1)))
    assert fixed_values(MARKERS, at, "ann", "oslo") == {
        "skerry_now": datetime.datetime(2024, 3, 1, 0, 30, tzinfo=datetime.UTC),
        "skerry_today": datetime.date(2024, 3, 1),
        "skerry_caller": "ann",
        "skerry_catalog": "spark_catalog",
        "skerry_schema": "oslo",
        "skerry_path": "system.builtin,system.session,spark_catalog.oslo",
    }
    assert fixed_values({"skerry_schema"}, at, "", "oslo-2") == {"skerry_schema": "`oslo-2`"}
    with pytest.raises(SqlError, match="time zone"):
        fixed_values(MARKERS, datetime.datetime(2024, 1, 1), "", "default")

"""Correlated subqueries with ORDER BY … LIMIT over several sites: their keys are columns of a query inside."""

from __future__ import annotations

import pytest

from skerry.model.errors import SqlError
from tests.plans.plan_cases import planned


@pytest.mark.parametrize(
    ("subquery", "kept"),
    [
        (
            "(SELECT kind FROM events WHERE id = o_cust ORDER BY ts LIMIT 1)",
            "(SELECT `key_value_0` FROM (SELECT kind AS `key_value_0`, ts AS `key_0` FROM (…) AS events "
            "WHERE id = o_cust ORDER BY `key_0` LIMIT 1) AS key_rows)",
        ),
        (
            "o_cust IN (SELECT id + 1 AS n FROM events WHERE id > o_cust ORDER BY n, ts DESC NULLS FIRST LIMIT 2)",
            "(SELECT `key_value_0` FROM (SELECT id + 1 AS `key_value_0`, id + 1 AS `key_0`, ts AS `key_1` FROM (…) AS "
            "events WHERE id > o_cust ORDER BY `key_0`, `key_1` DESC NULLS FIRST LIMIT 2) AS key_rows)",
        ),
        (
            "(SELECT kind FROM events WHERE id = o_cust GROUP BY kind ORDER BY count(*) DESC LIMIT 1)",
            "(SELECT `key_value_0` FROM (SELECT kind AS `key_value_0`, count(*) AS `key_0` FROM (…) AS events "
            "WHERE id = o_cust GROUP BY kind ORDER BY `key_0` DESC LIMIT 1) AS key_rows)",
        ),
        (  # the list has another ts
            "(SELECT kind AS ts FROM events WHERE id = o_cust ORDER BY events.ts LIMIT 1)",
            "(SELECT `key_value_0` FROM (SELECT kind AS `key_value_0`, events.ts AS `key_0` FROM (…) AS events "
            "WHERE id = o_cust ORDER BY `key_0` LIMIT 1) AS key_rows)",
        ),
    ],
)
def test_keys_become_columns(subquery: str, kept: str) -> None:
    before, _, after = kept.partition("…")
    sql = planned(f"SELECT o_id, {subquery} AS x FROM orders").jobs[-1].sql
    assert before in sql
    assert after.removeprefix(")") in sql


@pytest.mark.parametrize(
    "subquery",
    [
        "(SELECT kind FROM events WHERE id = o_cust ORDER BY kind LIMIT 1)",
        "(SELECT kind AS k FROM events WHERE id = o_cust ORDER BY k DESC LIMIT 1)",
        "(SELECT kind FROM events WHERE id = o_cust ORDER BY events.kind LIMIT 1)",
        "(SELECT events.kind FROM events WHERE id = o_cust ORDER BY events.kind LIMIT 1)",
        "(SELECT kind FROM events WHERE id = o_cust ORDER BY 1 LIMIT 1)",
        "(SELECT kind FROM events ORDER BY ts LIMIT 1)",
        "EXISTS (SELECT 1 FROM events WHERE id = o_cust ORDER BY ts LIMIT 1)",
    ],
)
def test_an_order_that_holds_stays_as_it_was_written(subquery: str) -> None:
    assert "key_" not in planned(f"SELECT o_id, {subquery} AS x FROM orders").jobs[-1].sql


def test_at_one_site_the_statement_is_as_it_was_written() -> None:
    sql = "SELECT c_id, (SELECT n_name FROM nation WHERE n_id = c_nation ORDER BY n_id + 1 LIMIT 1) AS x FROM customer"
    assert "key_" not in planned(sql).jobs[-1].sql


def test_a_query_behind_lateral_keeps_the_names_of_its_columns() -> None:
    lateral = "SELECT o_id, l.a FROM orders, LATERAL (SELECT {} FROM events WHERE id = o_cust ORDER BY ts LIMIT 1) AS l"
    assert "(SELECT `kind`, `a` FROM (SELECT kind AS `kind`, amount * 2 AS `a`, ts AS `key_0` FROM" in (
        planned(lateral.format("kind, amount * 2 AS a")).jobs[-1].sql
    )
    with pytest.raises(SqlError, match="sort by columns of its list"):
        planned(lateral.format("kind AS a, amount * 2"))


def test_a_key_that_may_mean_two_things_is_refused() -> None:
    with pytest.raises(SqlError, match="the order of this correlated subquery would be lost"):
        planned("SELECT (SELECT id AS n FROM events WHERE id = o_cust ORDER BY n + 1 LIMIT 1) AS x FROM orders")


def test_floating_point_numbers_are_not_compared() -> None:
    """One Spark takes 0.0 and -0.0 for one number there, or for two, by how the statement is written."""
    with pytest.raises(SqlError, match="compares floating point numbers"):
        planned("SELECT (SELECT kind FROM events WHERE amount = o_id ORDER BY ts LIMIT 1) AS x FROM orders")

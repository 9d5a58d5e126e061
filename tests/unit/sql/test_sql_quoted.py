"""A string in double quotes that is called like a column is warned of, wherever the column comes from."""

from __future__ import annotations

import pytest

from tests.unit.sql.sql_cases import query

WARNED = {
    'SELECT "I_ORDER" FROM item': '"I_ORDER" in double quotes is a string in Spark SQL, not column i_order of item',
    'SELECT i_order AS y FROM item ORDER BY "y"': "not column y; write y or `y` for the column, 'y' for the string",
    'WITH c AS (SELECT i_order AS x FROM item) SELECT count(*) FROM c WHERE x = "x"': "not column x;",
    'SELECT x FROM (SELECT i_order AS x FROM item) WHERE x = "X"': "not column x;",
    'SELECT a FROM (SELECT i_order AS k, i_order FROM item) AS z(a, b) WHERE b = "b"': "not column b;",
    'SELECT "a" FROM item, LATERAL (SELECT 1 AS a)': "not column a;",
}


@pytest.mark.parametrize("sql", WARNED)
def test_it_is_warned_of(sql: str) -> None:
    (warning,) = query(sql).warnings
    assert WARNED[sql] in warning


@pytest.mark.parametrize("sql", ['SELECT "total" AS total FROM item', "SELECT 'y' AS x, i_order AS y FROM item"])
def test_a_string_that_is_meant_is_not(sql: str) -> None:
    assert query(sql).warnings == ()

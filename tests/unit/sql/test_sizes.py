"""Statements whose text is short and whose values or relations are not."""

from __future__ import annotations

import pytest

from skerry.model.errors import SqlError
from skerry.sql.lexer import tokens_of
from skerry.sql.parse import parse_query
from skerry.sql.sizes import check_relations, check_values


def doubling(levels: int) -> str:
    chain = "".join(
        f", t{i} AS (SELECT * FROM t{i - 1} UNION ALL SELECT * FROM t{i - 1})" for i in range(1, levels + 1)
    )
    return f"WITH t0 AS (SELECT 1 AS n FROM few){chain} SELECT count(*) FROM t{levels}"


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT repeat('x', 2147483647)",
        "SELECT length(REPEAT(a, 10000001)) FROM t",
        "SELECT space(99999999)",
        "SELECT lpad(a, 1000000000, '-'), 1 FROM t",
        "SELECT rpad(a, 1000000000L) FROM t",
        "SELECT size(array_repeat(a, 1000000000)) FROM t",
        "SELECT explode(sequence(1, 1000000000))",
        "SELECT sequence(500000000, -500000000, -10)",
        "SELECT format_string('%2147483647d', 1)",
        "SELECT printf('%1$-.99999999s', a) FROM t",
    ],
)
def test_a_value_that_is_said_to_be_huge_is_refused(sql: str) -> None:
    with pytest.raises(SqlError, match=r"makes a value of \d+ characters or elements here; at most 10000000"):
        check_values(parse_query(tokens_of(sql, 50), sql), sql)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT repeat('x', 10000000), repeat(a, n), space(-5), lpad(a, 10) FROM t",
        "SELECT sequence(1, 10000000), sequence(1, 1000000000000, 1000000), sequence(a, b, INTERVAL 1 DAY) FROM t",
        "SELECT array_repeat(a, 5), format_string('%10d %s %%', 1, a), format_string(a, 1) FROM t",
        "SELECT repeat('2147483647', 2)",
    ],
)
def test_others_are_not(sql: str) -> None:
    check_values(parse_query(tokens_of(sql, 50), sql), sql)


def test_queries_that_double_are_refused_by_what_they_come_to() -> None:
    for levels in (13, 25, 400):
        sql = doubling(levels)
        with pytest.raises(SqlError, match="queries of a WITH name each other so often"):
            check_relations(parse_query(tokens_of(sql, 50), sql), sql)
    for sql in (
        doubling(12),
        "WITH a AS (SELECT 1 AS n), b AS (WITH a AS (SELECT n FROM a) SELECT * FROM a) SELECT * FROM b, s.a",
        "SELECT 1" + " UNION ALL SELECT 1 FROM t" * 6000,
    ):
        check_relations(parse_query(tokens_of(sql, 50), sql), sql)

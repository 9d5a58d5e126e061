"""What Sail gets in place of `min` and `max` of doubles: the same names, the same order."""

from __future__ import annotations

import pytest

from skerry.model.errors import SqlError
from skerry.plan.extremes import mark, write_out
from skerry.sql.dialect import render
from skerry.sql.functions import call_name
from skerry.sql.walk import nodes_of
from tests.unit.sql.sql_cases import query

LEAST = "coalesce(min(CASE WHEN NOT (isnan(o_id) OR o_id = CAST('Infinity' AS DOUBLE)) THEN o_id END)"


def written(sql: str) -> str:
    tree = query(sql).tree.copy()
    for node in nodes_of(tree):
        if call_name(node) in ("min", "max"):
            mark(node, is_real=True)
    return render(write_out(tree))


def test_a_column_keeps_a_name_that_is_known() -> None:
    assert written("SELECT min(o_id) FROM orders").endswith("AS `min(o_id)` FROM scan_0 AS orders")
    assert " AS `abs(min(o_id))` FROM" in written("SELECT abs(min(o_id)) FROM orders")
    assert " AS `round(min(o_id), 0)` FROM" in written("SELECT round(min(o_id)) FROM orders")
    assert " AS least FROM" in written("SELECT sqrt(min(o_id)) AS least FROM orders")


def test_the_engine_gives_a_name_that_is_not_known() -> None:
    text = written("SELECT sqrt(min(o_id)) FROM orders ORDER BY 1 LIMIT 3")
    names, _, rows = text.partition(" UNION ALL ")
    assert names == "(SELECT sqrt(min(o_id)) FROM scan_0 AS orders LIMIT 0)"
    assert LEAST in rows
    assert rows.endswith("ORDER BY 1 LIMIT 3")


def test_what_is_sorted_by_is_a_hidden_column() -> None:
    text = written("SELECT o_customer, max(o_id) AS m FROM orders GROUP BY o_customer ORDER BY -min(o_id), m LIMIT 3")
    assert text.startswith("SELECT skerry_column_0 AS `o_customer`, skerry_column_1 AS `m` FROM (SELECT o_customer, ")
    assert LEAST in text
    assert text.endswith(
        "AS skerry_column_2 FROM scan_0 AS orders GROUP BY o_customer)"
        " AS skerry_column_rows(skerry_column_0, skerry_column_1, skerry_column_2)"
        " ORDER BY skerry_column_2, skerry_column_1 LIMIT 3"
    )


def test_a_having_keeps_its_order() -> None:
    text = written("SELECT o_customer FROM orders GROUP BY o_customer HAVING min(o_id) > 1 ORDER BY min(o_id)")
    assert text.startswith("SELECT skerry_column_0 AS `o_customer` FROM (SELECT o_customer, ")
    assert f"HAVING {LEAST}" in text
    assert text.endswith("ORDER BY skerry_column_1")


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT o_customer, sqrt(min(o_id)) FROM orders GROUP BY o_customer ORDER BY -max(o_id)",
        "SELECT DISTINCT o_customer FROM orders GROUP BY o_customer ORDER BY -max(o_id)",
        "SELECT * FROM orders ORDER BY max(o_id) OVER (PARTITION BY o_customer)",
    ],
)
def test_what_would_lose_names_or_order_is_refused(sql: str) -> None:
    with pytest.raises(SqlError, match="beside columns without a name"):
        written(sql)

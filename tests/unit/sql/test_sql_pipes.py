"""Pipes, FROM first and TABLE become SELECTs; what that would change is refused."""

# ruff: noqa: E501 (a statement reads best on one line)

from __future__ import annotations

import re

import pytest

from skerry.model.errors import SqlError
from tests.unit.sql.sql_cases import columns, filters, rendered, statement

ITEM, ORDERS = "scan_0 AS item", "scan_0 AS orders"


@pytest.mark.parametrize(
    ("text", "usual"),
    [
        ("TABLE item", f"SELECT * FROM {ITEM}"),
        ("TABLE item ORDER BY i_part LIMIT 3", f"SELECT * FROM {ITEM} ORDER BY i_part LIMIT 3"),
        ("FROM item", f"SELECT * FROM {ITEM}"),
        ("FROM item SELECT i_part WHERE i_count > 1 GROUP BY i_part", f"SELECT i_part FROM {ITEM} WHERE i_count > 1 GROUP BY i_part"),
        ("FROM item SELECT i_part LIMIT 1 UNION ALL SELECT 1", f"(SELECT i_part FROM {ITEM} LIMIT 1) UNION ALL SELECT 1"),
        ("FROM item |> WHERE i_part = 1 |> WHERE i_count = 2 OR i_count = 3", f"SELECT * FROM {ITEM} WHERE (i_part = 1) AND (i_count = 2 OR i_count = 3)"),
        ("FROM item |> SELECT i_part AS p |> WHERE p > 1", f"SELECT * FROM (SELECT i_part AS p FROM {ITEM}) AS item WHERE p > 1"),
        ("FROM item |> EXTEND i_part + 1 AS p |> DROP i_count", f"SELECT * EXCEPT (i_count) FROM (SELECT *, i_part + 1 AS p FROM {ITEM}) AS item"),
        ("FROM item |> SET i_part = 2", f"SELECT `i_order`, 2 AS i_part, `i_count`, `i_customer` FROM {ITEM}"),
        ("FROM item |> AS i |> WHERE i.i_part = 1", "SELECT * FROM scan_0 AS i WHERE i.i_part = 1"),
        ("FROM item |> WHERE i_part = 1 |> AS i |> SELECT i.i_part", f"SELECT i.i_part FROM (SELECT * FROM {ITEM} WHERE i_part = 1) AS i"),
        ("FROM item |> AGGREGATE sum(i_count) AS s GROUP BY i_part AS p, 1", f"SELECT i_part AS p, `i_order`, sum(i_count) AS s FROM {ITEM} GROUP BY i_part, `i_order`"),
        ("FROM item |> ORDER BY i_part |> LIMIT 2", f"SELECT * FROM {ITEM} ORDER BY i_part LIMIT 2"),
        # One row: LIMIT 2 OFFSET 1 would be two.
        ("FROM item |> ORDER BY i_part |> LIMIT 2 |> OFFSET 1", f"SELECT * FROM (SELECT * FROM {ITEM} ORDER BY i_part LIMIT 2) AS item OFFSET 1"),
        ("FROM item |> LIMIT 2 |> ORDER BY i_part", f"SELECT * FROM (SELECT * FROM {ITEM} LIMIT 2) AS item ORDER BY i_part"),
        # An order is kept where a new name does not take it over.
        ("FROM item |> ORDER BY i_part |> SELECT i_count", f"SELECT i_count FROM {ITEM} ORDER BY i_part"),
        ("FROM item |> ORDER BY i_part |> SELECT i_count AS i_part", f"SELECT i_count AS i_part FROM (SELECT * FROM {ITEM} ORDER BY i_part) AS item"),
        # A field has its own name, and so have the columns of a generator.
        ("FROM (SELECT c_home, c_name AS city FROM customer) AS c |> ORDER BY city |> SELECT c_home.city", "SELECT c_home.city FROM (SELECT * FROM (SELECT c_home, c_name AS city FROM scan_0 AS customer) AS c ORDER BY city) AS c"),
        ("FROM (SELECT c_tags, c_name AS col FROM customer) AS c |> ORDER BY col |> SELECT explode(c_tags)", "SELECT explode(c_tags) FROM (SELECT * FROM (SELECT c_tags, c_name AS col FROM scan_0 AS customer) AS c ORDER BY col) AS c"),
        ("FROM customer |> ORDER BY c_id |> SELECT explode(c_tags) AS tag", "SELECT explode(c_tags) AS tag FROM (SELECT * FROM scan_0 AS customer ORDER BY c_id) AS customer"),
        ("FROM item |> ORDER BY 1 |> SELECT i_count", f"SELECT i_count FROM (SELECT * FROM {ITEM} ORDER BY 1) AS item"),
        ("FROM item |> SELECT i_part |> ORDER BY i_part", f"SELECT * FROM (SELECT i_part FROM {ITEM}) AS item ORDER BY i_part"),
        ("FROM item |> JOIN orders ON i_order = o_id |> WHERE orders.o_id = 1", f"SELECT * FROM {ITEM} JOIN scan_1 AS orders ON i_order = o_id WHERE orders.o_id = 1"),
        ("FROM item |> LIMIT 1 |> JOIN orders ON item.i_order = o_id", f"SELECT * FROM (SELECT * FROM {ITEM} LIMIT 1) AS item JOIN scan_1 AS orders ON item.i_order = o_id"),
        ("FROM item |> SELECT i_part |> UNION ALL SELECT 1 |> INTERSECT SELECT 2", f"(SELECT i_part FROM {ITEM} UNION ALL SELECT 1) INTERSECT SELECT 2"),
        ("FROM item |> SELECT i_part |> UNION ALL FROM orders SELECT o_id LIMIT 1", f"SELECT i_part FROM {ITEM} UNION ALL (SELECT o_id FROM scan_1 AS orders LIMIT 1)"),
        ("WITH x AS (TABLE item) FROM x |> WHERE x.i_part = 1 ORDER BY i_part", f"WITH x AS (SELECT * FROM {ITEM}) SELECT * FROM x WHERE x.i_part = 1 ORDER BY i_part"),
        ("SELECT 1 WHERE EXISTS (FROM item |> WHERE i_part IN (TABLE orders |> SELECT o_id))", f"SELECT 1 WHERE EXISTS (SELECT * FROM {ITEM} WHERE i_part IN (SELECT o_id FROM scan_1 AS orders))"),
        # A name that a query inside has itself is not lost.
        ("FROM item |> JOIN orders ON i_order = o_id |> LIMIT 1 |> WHERE o_id IN (SELECT item.i_part FROM item)", f"SELECT * FROM (SELECT * FROM {ITEM} JOIN scan_1 AS orders ON i_order = o_id LIMIT 1) WHERE o_id IN (SELECT item.i_part FROM scan_2 AS item)"),
        ("SELECT /*+ BROADCAST(item) */ i_part FROM item", f"SELECT i_part FROM {ITEM}"),
        # A relation's name means its own columns, and none that operators have made.
        ("FROM item |> SELECT i_part, i_count |> EXTEND 1 AS i_part |> SELECT item.i_part", f"SELECT item.i_part FROM (SELECT *, 1 AS `skerry_new_i_part` FROM (SELECT i_part, i_count FROM {ITEM}) AS item) AS item"),
        ("FROM item |> SELECT 1 AS i_part, i_count, i_part |> SELECT item.*", f"SELECT `item`.`i_count`, `item`.`i_part` FROM (SELECT 1 AS `skerry_new_i_part`, i_count, i_part FROM {ITEM}) AS item"),
        ("FROM item |> SELECT i_part, 2 AS i_part |> WHERE item.i_part = 1 |> AS i", f"SELECT * FROM (SELECT `item`.`i_part`, `skerry_new_i_part` AS `i_part` FROM (SELECT i_part, 2 AS `skerry_new_i_part` FROM {ITEM}) AS item WHERE item.i_part = 1) AS i"),
        ("FROM item |> SELECT i_part, 2 AS i_part |> DROP item.i_part", f"SELECT `skerry_new_i_part` AS `i_part` FROM (SELECT i_part, 2 AS `skerry_new_i_part` FROM {ITEM}) AS item"),
        ("FROM item |> SELECT i_part, 1 AS x |> SELECT item.*", f"SELECT `item`.`i_part` FROM (SELECT i_part, 1 AS x FROM {ITEM}) AS item"),
        ("FROM item |> SELECT item.* |> UNION ALL TABLE item |> SELECT item.*, 1 AS x |> SELECT item.*", f"SELECT `item`.`i_order`, `item`.`i_part`, `item`.`i_count`, `item`.`i_customer` FROM (SELECT item.*, 1 AS x FROM (SELECT item.* FROM {ITEM} UNION ALL SELECT * FROM scan_1 AS item) AS item) AS item"),
        ("FROM item |> SELECT i_part |> UNION ALL SELECT 1 |> SELECT item.i_part", f"SELECT item.i_part FROM (SELECT i_part FROM {ITEM} UNION ALL SELECT 1) AS item"),
        # Behind EXTEND a field is called by its path.
        ("FROM customer |> EXTEND customer.c_home.city, c_home.city::int, c_id", "SELECT *, customer.c_home.city AS `c_home.city`, c_home.city::INT AS `CAST(c_home.city AS INT)`, c_id FROM scan_0 AS customer"),
        # SET knows what a join has.
        ("FROM (SELECT i_order AS k, i_part FROM item) a |> FULL JOIN (SELECT o_id AS k, o_note FROM orders) b USING (k) |> SET o_note = a.i_part", f"SELECT `k`, `a`.`i_part`, a.i_part AS o_note FROM (SELECT i_order AS k, i_part FROM {ITEM}) AS a FULL JOIN (SELECT o_id AS k, o_note FROM scan_1 AS orders) AS b USING (k)"),
        ("FROM range(3) |> SET id = id + 1", "SELECT id + 1 AS id FROM range(3)"),
    ],
)  # fmt: skip
def test_the_usual_order(text: str, usual: str) -> None:
    assert rendered(text) == usual


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("FROM item |> JOIN orders ON i_order = o_id |> LIMIT 1 |> WHERE item.i_part = 1", "the relation item is not known behind"),
        ("FROM item |> JOIN orders ON i_order = o_id |> LIMIT 1 |> SELECT orders.*", "the relation orders is not known behind"),
        ("FROM item |> SET i_part = 1, x = 2", "there is no column x"),
        ("FROM item a |> JOIN item b ON true |> SET i_part = 1", "several columns before it are called i_part"),
        ("FROM item |> SET i_part = 1 |> SELECT item.i_part", "i_part is made by an operator before this"),
        ("FROM item |> EXTEND 1 AS i_part, 2 AS i_part |> SELECT item.i_part", "may mean two columns here"),
        ("FROM item |> EXTEND 1 AS i_part |> SELECT item.i_part, i_part", "may mean two columns here"),
        ("FROM item |> SELECT *, i_part + 1 |> SELECT item.*", "which columns item.* has here is not known"),
        ("FROM item |> EXTEND item.*", "a star stands in"),
        ("FROM item |> EXTEND sum(i_part) AS s", "an aggregate stands in"),
        ("FROM item |> AGGREGATE i_part", "holds an aggregate"),
        ("FROM item |> AGGREGATE count(*) GROUP BY 9", "the columns before it are not known"),
        ("FROM item |>", "expected an operator"),
        ("FROM item |> WHERE nothing = 1", "unknown column nothing"),
    ],
)  # fmt: skip
def test_what_is_refused(text: str, message: str) -> None:
    with pytest.raises(SqlError, match=re.escape(message)):
        statement(text)


def test_columns_and_filters_reach_the_scans() -> None:
    piped = "FROM orders |> WHERE o_price > 1 |> AGGREGATE count(*) GROUP BY o_date |> WHERE o_date IS NOT NULL"
    assert columns(piped) == {"orders": ["o_date", "o_price"]}
    assert filters(piped) == {"orders": ["o_price > 1"]}
    assert columns("SELECT o_id FROM orders QUALIFY rank() OVER (ORDER BY o_date) = 1") == {
        "orders": ["o_id", "o_date"]
    }
    assert columns("SELECT o_note:o_id.o_date FROM orders ORDER BY o_date") == {"orders": ["o_date", "o_note"]}


def test_a_query_that_reads_itself_has_a_name_that_no_table_has() -> None:
    made = rendered(
        "WITH RECURSIVE orders AS (SELECT i_part AS a FROM item UNION ALL SELECT orders.a + 1 FROM orders WHERE a < 9)"
        " SELECT orders.a, x.a FROM orders, orders AS x"
    )
    assert made == (
        f"WITH RECURSIVE skerry_recursive_0 AS (SELECT i_part AS a FROM {ITEM} UNION ALL SELECT orders.a + 1"
        " FROM skerry_recursive_0 AS orders WHERE a < 9)"
        " SELECT orders.a, x.a FROM skerry_recursive_0 AS orders, skerry_recursive_0 AS x"
    )

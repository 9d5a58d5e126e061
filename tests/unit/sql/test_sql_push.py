"""Filters go to a source only when they surely may."""

from __future__ import annotations

import pytest

from tests.unit.sql.sql_cases import filters, query, rendered


@pytest.mark.parametrize(
    ("sql", "pushed"),
    [
        ("SELECT 1 FROM orders WHERE o_id > 1 AND o_note LIKE 'x%'", {"orders": ["o_id > 1", "o_note LIKE 'x%'"]}),
        (
            "SELECT 1 FROM orders o WHERE (o.o_id > 1 AND (o.o_id < 9 OR o_date IS NULL))",
            {"o": ["o_id > 1", "o_id < 9 OR o_date IS NULL"]},
        ),
        ("SELECT 1 FROM orders, item WHERE o_id = i_order AND i_part IN (1, 2)", {"item": ["i_part IN (1, 2)"]}),
        (
            "SELECT 1 FROM orders JOIN item ON o_id = i_order AND i_part = 1 AND o_price > 2",
            {"orders": ["o_price > 2"], "item": ["i_part = 1"]},
        ),
        ("SELECT 1 FROM customer WHERE ((c_vip)) AND c_id = 1", {"customer": ["c_vip", "c_id = 1"]}),
        # what stands in WHERE is asked first, as Spark does: it may guard what stands in ON
        (
            "SELECT 1 FROM orders JOIN item ON o_id = i_order AND 10 / o_price > 2 WHERE o_price <> 0 AND o_id > 1",
            {"orders": ["o_price != 0", "o_id > 1", "10 / o_price > 2"]},
        ),
        (
            "SELECT 1 FROM orders JOIN item ON o_price <> 0 JOIN customer ON 10 / o_price > 2 AND i_part = c_id",
            {"orders": ["o_price != 0", "10 / o_price > 2"]},
        ),
        # … but after those of ON where three relations and more end in inner joins
        (
            "SELECT 1 FROM orders JOIN item ON o_id = i_order AND o_price <> 0 JOIN customer ON i_part = c_id "
            "WHERE 10 / o_price > 2",
            {"orders": ["o_price != 0", "10 / o_price > 2"]},
        ),
        (
            "SELECT 1 FROM orders JOIN item ON o_id = i_order AND 10 / o_price > 2 "
            "LEFT JOIN customer ON i_part = c_id WHERE o_price <> 0",
            {"orders": ["o_price != 0", "10 / o_price > 2"]},
        ),
        # … and of these first what reads a value twice, which Spark keeps out of its list
        (
            "SELECT 1 FROM orders JOIN item ON o_id = i_order AND 10 / o_price > 2 JOIN customer ON i_part = c_id "
            "WHERE abs(o_price) BETWEEN 1 AND 3 AND nullif(o_price + 1, 2) > 1 AND o_price BETWEEN 1 AND 2",
            {
                "orders": [
                    "abs(o_price) BETWEEN 1 AND 3",
                    "nullif(o_price + 1, 2) > 1",
                    "10 / o_price > 2",
                    "o_price BETWEEN 1 AND 2",
                ]
            },
        ),
        # … and the value of a subquery, which stays, may guard what follows it
        (
            "SELECT 1 FROM orders, item WHERE o_price <> (SELECT min(c_id) FROM customer) AND 10 / o_price > 2"
            " AND o_id > 1 AND i_part + 1 > 2",
            {"orders": ["o_id > 1"], "item": ["i_part + 1 > 2"]},
        ),
        (
            "SELECT 1 FROM orders WHERE 10 / o_price > 2 AND o_price <> (SELECT min(c_id) FROM customer)",
            {"orders": ["10 / o_price > 2"]},
        ),
        (
            "SELECT 1 FROM orders WHERE o_id IN (SELECT c_id FROM customer) AND 10 / o_price > 2",
            {"orders": ["10 / o_price > 2"]},
        ),
        (
            "SELECT 1 FROM orders LEFT JOIN item ON o_id = i_order AND 10 / i_part > 2 AND i_order > 3 "
            "WHERE i_part <> 0",
            {"item": ["i_order > 3"]},
        ),
        # outer joins: WHERE on the kept side, ON on the other
        (
            "SELECT 1 FROM orders LEFT JOIN item ON o_id = i_order AND i_part = 1 AND o_price > 2",
            {"item": ["i_part = 1"]},
        ),
        ("SELECT 1 FROM orders LEFT JOIN item ON true WHERE i_part = 1 AND o_id = 2", {"orders": ["o_id = 2"]}),
        ("SELECT 1 FROM orders RIGHT JOIN item ON i_part = 1 AND o_price > 2", {"orders": ["o_price > 2"]}),
        ("SELECT 1 FROM orders RIGHT JOIN item ON true WHERE i_part = 1 AND o_id = 2", {"item": ["i_part = 1"]}),
        ("SELECT 1 FROM orders FULL JOIN item ON i_part = 1 AND o_id = 2 WHERE o_id = 3 AND i_part = 4", {}),
        (
            "SELECT 1 FROM orders LEFT JOIN item ON true JOIN customer ON i_part = 1 AND o_id = 2 AND c_id = 3",
            {"orders": ["o_id = 2"], "customer": ["c_id = 3"]},
        ),
        (
            "SELECT 1 FROM orders JOIN item ON o_id = 1 RIGHT JOIN customer ON true WHERE o_id = 2 AND c_id = 3",
            {"orders": ["o_id = 1"], "customer": ["c_id = 3"]},
        ),
        # semi and anti joins
        (
            "SELECT 1 FROM orders LEFT SEMI JOIN item ON i_part = 1 AND o_id = 2",
            {"orders": ["o_id = 2"], "item": ["i_part = 1"]},
        ),
        (
            "SELECT 1 FROM orders LEFT ANTI JOIN item ON i_part = 1 AND o_id = 2 WHERE o_id = 3",
            {"orders": ["o_id = 3"], "item": ["i_part = 1"]},
        ),
        # not sure whose column it is
        ("SELECT 1 FROM item a, item b WHERE i_part = 1 AND a.i_part = 2", {"a": ["i_part = 2"]}),
        ("SELECT 1 FROM item JOIN (SELECT * FROM orders) x ON true WHERE i_part = 1", {"item": ["i_part = 1"]}),
        ("SELECT 1 FROM item JOIN range(3) WHERE i_part = 1 AND item.i_count = 2", {"item": ["i_count = 2"]}),
        ("SELECT 1 FROM item a JOIN item b USING (i_order) WHERE i_order = 1", {}),
        ("SELECT 1 FROM customer WHERE c_home.city = 'Oslo' AND customer.c_vip", {"customer": ["c_vip"]}),
        ("SELECT 1 FROM item AS x(a, b, c, d) WHERE a = 1", {}),
        ("SELECT 1 FROM (orders JOIN item ON o_id = i_order) WHERE o_id = 1", {}),
        # what may not move
        ("SELECT 1 FROM orders WHERE rand() < 0.5 AND o_id + rand() > 1", {}),
        ("SELECT 1 FROM orders WHERE o_id IN (SELECT i_order FROM item WHERE i_part = 3)", {"item": ["i_part = 3"]}),
        (
            "SELECT 1 FROM orders WHERE EXISTS (SELECT 1 FROM item WHERE i_order = o_id AND i_part = 3)",
            {"item": ["i_part = 3"]},
        ),
        ("SELECT 1 FROM orders WHERE exists(array(o_id), x -> x > 1)", {}),
        ("SELECT sum(o_id) FROM orders HAVING sum(o_id) > 1", {}),
        ("SELECT 1 FROM orders WHERE 1 = 0", {}),
        # places
        ("WITH x AS (SELECT * FROM orders WHERE o_id = 1) SELECT * FROM x WHERE o_id = 2", {"orders": ["o_id = 1"]}),
        ("SELECT 1 FROM (SELECT * FROM orders LIMIT 3) WHERE o_id = 2", {}),
        (
            "SELECT o_id FROM orders WHERE o_id = 1 UNION ALL SELECT i_order FROM item WHERE i_part = 2",
            {"orders": ["o_id = 1"], "item": ["i_part = 2"]},
        ),
        (
            "SELECT a FROM customer LATERAL VIEW explode(c_tags) t AS a WHERE c_id = 1 AND a = 'x'",
            {"customer": ["c_id = 1"]},
        ),
        (
            "SELECT 1 FROM orders WHERE oslo.orders.o_id = 1 OR o_id = 2".replace("FROM orders", "FROM oslo.orders"),
            {"orders": ["o_id = 1 OR o_id = 2"]},
        ),
        ("SELECT 1 FROM orders WHERE o_id = :a AND o_date < :b", {"orders": ["o_id = :a", "o_date < :b"]}),
    ],
)
def test_pushed_filters(sql: str, pushed: dict[str, list[str]]) -> None:
    assert filters(sql, {"a": 1, "b": "2024-02-29"} if ":a" in sql else None) == pushed


def test_the_statement_keeps_its_own_filters() -> None:
    assert rendered("SELECT o_id FROM orders WHERE o_id > 1").endswith("WHERE o_id > 1")


def test_filters_are_copies() -> None:
    found = query("SELECT o_id FROM orders WHERE o_id > 1")
    (each,) = found.tables[0].filters
    each.args["this"].args["this"].set("this", "other")
    assert "o_id > 1" in rendered("SELECT o_id FROM orders WHERE o_id > 1")
    assert "other" not in str(found.tree)

"""Each scan brings what may be needed, and no more."""

from __future__ import annotations

import pytest

from tests.unit.sql.sql_cases import columns

ORDERS = ["o_id", "o_customer", "o_date", "o_price", "o_note"]
CUSTOMER = ["c_id", "c_name", "c_vip", "c_home", "c_tags"]
ITEM = ["i_order", "i_part", "i_count", "i_customer"]


@pytest.mark.parametrize(
    ("sql", "needed"),
    [
        ("SELECT o_price, o_id FROM orders", {"orders": ["o_id", "o_price"]}),
        ("SELECT O_ID FROM orders ORDER BY O_DATE", {"orders": ["o_id", "o_date"]}),
        ("SELECT count(*) FROM orders", {"orders": ["o_date"]}),
        ("SELECT count(*) FROM customer", {"customer": ["c_vip"]}),
        (
            "SELECT 1 FROM customer WHERE EXISTS (SELECT * FROM orders WHERE o_customer = c_id)",
            {"customer": ["c_id"], "orders": ["o_customer"]},
        ),
        ("SELECT * FROM orders", {"orders": ORDERS}),
        ("SELECT o.* FROM orders o, item", {"o": ORDERS, "item": ["i_part"]}),
        ("SELECT o_id, * FROM orders o JOIN item ON o_id = i_order", {"o": ORDERS, "item": ITEM}),
        ("SELECT * EXCEPT (o_note) FROM orders", {"orders": ORDERS}),
        ("SELECT * FROM (SELECT o_id FROM orders)", {"orders": ["o_id"]}),
        ("WITH x AS (SELECT o_id, o_date FROM orders) SELECT * FROM x", {"orders": ["o_id", "o_date"]}),
        ("SELECT 1 WHERE 1 IN (SELECT * FROM item)", {"item": ITEM}),
        ("SELECT c_id FROM customer NATURAL JOIN item", {"customer": CUSTOMER, "item": ITEM}),
        ("SELECT c_home.city FROM customer", {"customer": ["c_home"]}),
        ("SELECT struct(*) FROM item", {"item": ITEM}),
        ("SELECT count(i.*) FROM item i", {"i": ITEM}),
        ("SELECT count(DISTINCT *) FROM item", {"item": ITEM}),
        ("SELECT x.a FROM item AS x(a, b, c, d)", {"x": ITEM}),
        ("SELECT * FROM item PIVOT (sum(i_count) FOR i_part IN (1))", {"item": ITEM}),
        ("SELECT 1 FROM item a JOIN item b USING (i_order)", {"a": ["i_order"], "b": ["i_order"]}),
        (
            "SELECT (SELECT max(o.o_id) FROM orders o WHERE o.o_customer = i_customer) FROM item",
            {"o": ["o_id", "o_customer"], "item": ["i_customer"]},
        ),
        ("SELECT x.* FROM (SELECT i_part FROM item) x", {"item": ["i_part"]}),
        ("SELECT o_id FROM orders GROUP BY o_id HAVING sum(o_price) > 1", {"orders": ["o_id", "o_price"]}),
        ("SELECT * FROM (orders JOIN item ON o_id = i_order)", {"orders": ORDERS, "item": ITEM}),
        ("SELECT x.* FROM (orders JOIN item ON o_id = i_order) AS x", {"orders": ORDERS, "item": ITEM}),
        ("SELECT x.c FROM (item a CROSS JOIN item b) AS x(c, d, e, f, g, h, i, j)", {"a": ITEM, "b": ITEM}),
        # A name is looked for in its own SELECT first, then in those around it.
        (
            "SELECT a.o_note FROM orders a WHERE a.o_id IN (SELECT o_id FROM orders b WHERE o_price > 1)",
            {"a": ["o_id", "o_note"], "b": ["o_id", "o_price"]},
        ),
        (
            "SELECT o_note FROM orders a WHERE EXISTS (SELECT 1 FROM orders b WHERE b.o_id = a.o_customer)",
            {"a": ["o_customer", "o_note"], "b": ["o_id"]},
        ),
        (
            "SELECT o_note FROM orders a WHERE EXISTS (SELECT 1 FROM item WHERE i_order = o_id AND i_part = o_price)",
            {"a": ["o_id", "o_price", "o_note"], "item": ["i_order", "i_part"]},
        ),
        (
            "SELECT o_id FROM orders a WHERE (SELECT max(b.o_note) FROM orders b WHERE b.o_id = a.o_id AND EXISTS "
            "(SELECT 1 FROM orders c WHERE c.o_date = b.o_date AND c.o_price = a.o_price)) > ''",
            {"a": ["o_id", "o_price"], "b": ["o_id", "o_date", "o_note"], "c": ["o_date", "o_price"]},
        ),
        (
            "SELECT o_note FROM orders a WHERE o_id IN (SELECT x.o_id FROM (SELECT o_id, a.o_date FROM orders b) x)",
            {"a": ["o_id", "o_date", "o_note"], "b": ["o_id"]},
        ),
        (
            "SELECT a.o_id FROM orders a, LATERAL (SELECT i_part FROM item WHERE i_order = o_price) l",
            {"a": ["o_id", "o_price"], "item": ["i_order", "i_part"]},
        ),
        (
            "SELECT a.o_id, b.o_date FROM orders a JOIN orders b ON a.o_customer = b.o_id",
            {"a": ["o_id", "o_customer"], "b": ["o_id", "o_date"]},
        ),
        ("SELECT b.o_date FROM orders a JOIN orders b USING (o_id)", {"a": ["o_id"], "b": ["o_id", "o_date"]}),
        (
            "SELECT a.o_id FROM (orders a JOIN orders b USING (o_id)) JOIN item ON i_order = a.o_id",
            {"a": ["o_id"], "b": ["o_id"], "item": ["i_order"]},
        ),
        (
            "WITH t AS (SELECT o_id, o_note FROM orders) SELECT t.o_id FROM t JOIN orders b ON b.o_id = t.o_id",
            {"orders": ["o_id", "o_note"], "b": ["o_id"]},
        ),
        # A name that two tables have is Spark's to refuse.
        (
            "SELECT o_note FROM orders a JOIN orders b ON a.o_id = b.o_id",
            {"a": ["o_id", "o_note"], "b": ["o_id", "o_note"]},
        ),
        # What an alias is called is no mention; a name that may be the alias or a column is kept.
        ("SELECT i_part AS c_name FROM item, customer", {"item": ["i_part"], "customer": ["c_vip"]}),
        ("SELECT i_part AS c_name FROM item, customer ORDER BY c_name", {"item": ["i_part"], "customer": ["c_name"]}),
        # A field is none either, but of an alias it might be a column.
        ("SELECT c_home.o_note FROM customer, orders", {"customer": ["c_home"], "orders": ["o_date"]}),
        ("SELECT o.o_note.x FROM customer, orders o", {"customer": ["c_vip"], "o": ["o_note"]}),
        # The relation on the right of a semi join is not seen above it, one further on is not seen in ON, and what
        # HAVING and ORDER BY do not find among the groups may be a name of the query around.
        (
            "SELECT 1 FROM orders x WHERE o_id IN (SELECT o_note FROM item LEFT SEMI JOIN orders b ON b.o_id = i_part)",
            {"x": ["o_id", "o_note"], "item": ["i_part"], "b": ["o_id", "o_note"]},
        ),
        (
            "SELECT 1 FROM orders x WHERE x.o_id IN (SELECT i_part FROM item JOIN customer ON o_note = c_name "
            "JOIN orders b ON b.o_id = i_order)",
            {"x": ["o_id", "o_note"], "item": ["i_order", "i_part"], "customer": ["c_name"], "b": ["o_id", "o_note"]},
        ),
        (
            "SELECT 1 FROM orders x WHERE o_id IN (SELECT max(b.o_id) FROM orders b GROUP BY b.o_date ORDER BY o_note)",
            {"x": ["o_id", "o_note"], "b": ["o_id", "o_date", "o_note"]},
        ),
        ("(SELECT o_id FROM orders) ORDER BY o_note", {"orders": ["o_id", "o_note"]}),
        # Rows of mentions that need no column travel with those of another.
        (
            "SELECT a.o_note FROM orders a WHERE EXISTS (SELECT * FROM orders b)",
            {"a": ["o_note"], "b": ["o_note"]},
        ),
    ],
)
def test_needed_columns(sql: str, needed: dict[str, list[str]]) -> None:
    assert columns(sql) == needed

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
    ],
)
def test_needed_columns(sql: str, needed: dict[str, list[str]]) -> None:
    assert columns(sql) == needed

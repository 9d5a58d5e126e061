"""Tables become scans, and nothing else of the statement changes."""

from __future__ import annotations

import pytest

from skerry.sql.commands import AnalyzeTable, DescribeTable, ShowColumns, ShowSchemas, ShowTables, UseSchema
from skerry.sql.statement import Explain
from tests.unit.sql.sql_cases import query, rendered, statement


@pytest.mark.parametrize(
    ("sql", "bound"),
    [
        ("SELECT o_id FROM orders", "SELECT o_id FROM scan_0 AS orders"),
        ("SELECT o_id FROM orders;", "SELECT o_id FROM scan_0 AS orders"),
        ("SELECT o.o_id FROM orders o", "SELECT o.o_id FROM scan_0 AS o"),
        ("SELECT O_ID FROM ORDERS", "SELECT O_ID FROM scan_0 AS ORDERS"),
        ("SELECT `o_id` FROM `orders`", "SELECT `o_id` FROM scan_0 AS `orders`"),
        (
            "SELECT oslo.orders.o_id, oslo.orders.* FROM oslo.orders WHERE OSLO.orders.o_id > 1",
            "SELECT orders.o_id, orders.* FROM scan_0 AS orders WHERE orders.o_id > 1",
        ),
        (
            "SELECT a.o_id FROM oslo.orders a JOIN bergen.orders b ON a.o_id = b.o_id",
            "SELECT a.o_id FROM scan_0 AS a JOIN scan_1 AS b ON a.o_id = b.o_id",
        ),
        (
            "SELECT 1 FROM oslo.orders WHERE EXISTS (SELECT 1 FROM item WHERE i_order = oslo.orders.o_id)",
            "SELECT 1 FROM scan_0 AS orders WHERE EXISTS (SELECT 1 FROM scan_1 AS item WHERE i_order = orders.o_id)",
        ),
        (
            "SELECT oslo.orders.o_id, bergen.orders.* FROM oslo.orders, bergen.orders WHERE oslo.orders.o_id = 1",
            "SELECT named_46.o_id, orders.* FROM scan_0 AS named_46, scan_1 AS orders WHERE named_46.o_id = 1",
        ),
        (
            "SELECT 1 AS named_1 FROM orders, oslo.orders WHERE EXISTS"
            " (SELECT 1 FROM item WHERE i_order = oslo.orders.o_id)",
            "SELECT 1 AS named_1 FROM scan_0 AS orders, scan_1 AS skerry_named_33 WHERE EXISTS"
            " (SELECT 1 FROM scan_2 AS item WHERE i_order = skerry_named_33.o_id)",
        ),
        ("WITH orders AS (SELECT 1 AS x) SELECT x FROM orders", "WITH orders AS (SELECT 1 AS x) SELECT x FROM orders"),
        (
            "WITH orders AS (SELECT o_id FROM orders) SELECT * FROM orders",
            "WITH orders AS (SELECT o_id FROM scan_0 AS orders) SELECT * FROM orders",
        ),
        (
            "WITH x AS (SELECT 1 AS a) SELECT * FROM (WITH x AS (SELECT o_id FROM orders) SELECT * FROM x), x",
            "WITH x AS (SELECT 1 AS a) SELECT * FROM"
            " (WITH x AS (SELECT o_id FROM scan_0 AS orders) SELECT * FROM x), x",
        ),
        (
            "SELECT (SELECT max(o_id) FROM orders), c_id FROM customer WHERE c_id IN (SELECT i_part FROM item)",
            "SELECT (SELECT max(o_id) FROM scan_0 AS orders), c_id FROM scan_1 AS customer"
            " WHERE c_id IN (SELECT i_part FROM scan_2 AS item)",
        ),
        ("SELECT * FROM orders AS o(a, b, c, d, e)", "SELECT * FROM scan_0 AS o(a, b, c, d, e)"),
        (
            "WITH scan_0 AS (SELECT 1 AS x) SELECT * FROM scan_0, orders",
            "WITH scan_0 AS (SELECT 1 AS x) SELECT * FROM scan_0, skerry_scan_0 AS orders",
        ),
        ("SELECT * FROM VALUES (1), (2) AS v(x)", "SELECT * FROM (VALUES (1), (2)) AS v(x)"),
        ("SELECT * FROM orders, VALUES (1)", "SELECT * FROM scan_0 AS orders, (VALUES (1))"),
        (
            "SELECT * FROM (orders JOIN item ON o_id = i_order)",
            "SELECT * FROM (scan_0 AS orders JOIN scan_1 AS item ON o_id = i_order)",
        ),
        (
            "SELECT o_id FROM orders UNION SELECT i_order FROM item",
            "SELECT o_id FROM scan_0 AS orders UNION SELECT i_order FROM scan_1 AS item",
        ),
        ("VALUES (1), (2)", "VALUES (1), (2)"),
    ],
)
def test_each_mention_is_a_scan(sql: str, bound: str) -> None:
    assert rendered(sql) == bound


def test_scans_come_in_the_order_of_the_text() -> None:
    found = query(
        "WITH x AS (SELECT * FROM item) SELECT (SELECT max(c_id) FROM customer) FROM orders, x, oslo.orders o"
    )
    assert [(scan.node_name, scan.table.name, scan.table.member) for scan in found.tables] == [
        ("scan_0", "item", None),
        ("scan_1", "customer", None),
        ("scan_2", "orders", None),
        ("scan_3", "orders", "oslo"),
    ]


def test_statements_that_are_no_queries() -> None:
    assert statement("SHOW TABLES") == ShowTables(None)
    assert statement("show tables LIKE 'or*'") == ShowTables("or*")
    assert statement("SHOW TABLES 'or*';") == ShowTables("or*")
    assert statement("SHOW TABLES IN oslo") == ShowTables(None, "oslo")
    assert statement("show tables from `oslo` like 'or*'") == ShowTables("or*", "oslo")
    assert statement("SHOW SCHEMAS") == ShowSchemas(None)
    assert statement("show databases like 'o*'") == ShowSchemas("o*")
    for text in ("USE oslo", "use schema oslo;", "USE DATABASE `oslo`"):
        assert statement(text) == UseSchema("oslo")
    assert statement("USE default") == UseSchema("default")
    assert statement("USE schema") == UseSchema("schema")
    for text in ("SHOW COLUMNS IN oslo.orders", "show columns from orders in oslo"):
        shown = statement(text)
        assert isinstance(shown, ShowColumns)
        assert (shown.ref.name, shown.ref.member) == ("orders", "oslo")
    for text in ("DESCRIBE EXTENDED oslo.orders", "DESC TABLE EXTENDED oslo.orders", "describe formatted oslo.orders"):
        described = statement(text)
        assert isinstance(described, DescribeTable)
        assert described.is_extended
    for text in ("DESCRIBE oslo.orders", "desc table oslo.`orders`"):
        described = statement(text)
        assert isinstance(described, DescribeTable)
        assert (described.ref.name, described.ref.member) == ("orders", "oslo")
    for text, columns in (
        ("ANALYZE TABLE oslo.orders", ()),
        ("analyze table oslo.orders compute statistics;", ()),
        ("ANALYZE TABLE oslo.`orders` COMPUTE STATISTICS FOR ALL COLUMNS", ()),
        ("ANALYZE TABLE oslo.orders FOR COLUMNS O_ID, `o_price`, o_id", ("o_id", "o_price")),
    ):
        analyzed = statement(text)
        assert isinstance(analyzed, AnalyzeTable)
        assert (analyzed.ref.name, analyzed.ref.member, analyzed.columns) == ("orders", "oslo", columns)
    explained = statement("EXPLAIN ANALYZE SELECT o_id FROM orders")
    assert isinstance(explained, Explain)
    assert explained.analyze
    assert len(explained.query.tables) == 1
    plain = statement("EXPLAIN WITH x AS (SELECT 1) SELECT * FROM x")
    assert isinstance(plain, Explain)
    assert not plain.analyze
    assert not plain.is_json
    as_json = statement("explain analyze format json select o_id from orders")
    assert isinstance(as_json, Explain)
    assert (as_json.analyze, as_json.is_json) == (True, True)
    for kind in ("EXTENDED", "formatted", "COST"):
        spoken = statement(f"EXPLAIN {kind} SELECT o_id FROM orders")
        assert isinstance(spoken, Explain)
        assert (spoken.analyze, spoken.is_json) == (False, False)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT c_home.city FROM customer",
        "SELECT customer.c_home.city, c.c_home.city FROM customer, customer c",
        "SELECT x.city FROM customer LATERAL VIEW explode(array(c_home)) t AS x",
        "SELECT col FROM explode(array(1))",
        "SELECT id FROM range(3)",
        "SELECT col1 FROM VALUES (1)",
        "SELECT explode(c_tags) FROM customer",
        "SELECT x FROM (SELECT explode(c_tags) AS x FROM customer)",
        "SELECT transform(c_tags, t -> upper(t)) FROM customer",
        "SELECT c_id AS a, a + 1 AS b FROM customer",
        "SELECT filter(array(c_home), c -> c.city = 'Oslo') FROM customer c",
        "SELECT c_home AS o, o.city FROM customer JOIN orders o",
        "SELECT dateadd(DAY, 1, o_date) FROM orders",
        "SELECT o_date, sum(o_price) AS total FROM orders GROUP BY ALL HAVING total > 1 ORDER BY total",
        "SELECT sum(o_price) OVER w FROM orders WINDOW w AS (PARTITION BY o_date)",
        "SELECT a FROM (SELECT o_id, o_date FROM orders) x(a, b)",
        "WITH x(a) AS (SELECT o_id FROM orders) SELECT x.a FROM x",
        "SELECT v, n FROM item UNPIVOT (v FOR n IN (i_part, i_count))",
        "SELECT `1`, `2` FROM (SELECT i_order, i_part FROM item) PIVOT (count(i_order) FOR i_part IN (1, 2))",
        "SELECT window.start, count(*) FROM orders GROUP BY window(o_date, '1 day')",
        "SELECT o_id, grouping__id FROM orders GROUP BY o_id WITH ROLLUP",
    ],
)
def test_names_that_only_spark_can_know_pass(sql: str) -> None:
    assert query(sql)

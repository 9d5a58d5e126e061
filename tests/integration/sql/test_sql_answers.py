"""Bound, pruned, filtered at the source: the rows, types and names are those Spark gives to the statement as written."""

# ruff: noqa: E501 (a statement reads best on one line)

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import pytest

from skerry.model.errors import SqlError
from skerry.model.limits import Limits
from skerry.sql.fixed import fixed_values
from skerry.sql.naming import NAMED_AS_CALLED
from skerry.sql.shape import result_shape
from skerry.sql.statement import Query, analyse, render
from tests.unit.sql.sql_catalog import FakeCatalog

pytestmark = pytest.mark.spark

ROWS = {
    "orders": (
        "o_id bigint, o_customer bigint, o_date date, o_price decimal(15,2), o_note string",
        "(1, 10, DATE '2024-01-01', 1.50, 'a'), (2, 10, DATE '2024-01-02', 2.50, NULL), (3, 11, NULL, 3.50, 'c%'),"
        " (4, NULL, DATE '2024-01-02', NULL, 'd'), (5, 12, DATE '2024-03-01', 9.99, 'it''s'), (6, 99, NULL, 0.00, '')",
    ),
    "customer": (
        "c_id bigint, c_name string, c_vip boolean, c_home struct<city:string>, c_tags array<string>",
        "(10, 'Ann', true, named_struct('city', 'Oslo'), array('x', 'y')), (11, 'Bo', false, NULL, array()),"
        " (12, NULL, NULL, named_struct('city', NULL), NULL), (13, 'Di', true, named_struct('city', 'Bergen'), array('z'))",
    ),
    "item": (
        "i_order bigint, i_part int, i_count int",
        "(1, 100, 1), (1, 101, 2), (2, 100, NULL), (3, NULL, 4), (7, 102, 5), (NULL, 103, 6)",
    ),
}
CATALOG = FakeCatalog({name: columns for name, (columns, _) in ROWS.items()})
NOW = datetime.datetime(2024, 1, 2, 12, 0, tzinfo=datetime.UTC)

QUERIES = [
    "SELECT * FROM orders",
    "SELECT count(*), count(o_note), sum(o_price), max(o_date) FROM orders",
    "SELECT count(*) FROM customer",
    "SELECT o_id + 1, upper(o_note), (o_id), -o_id, o_id > 2 AND o_note IS NOT NULL FROM orders WHERE o_id < 5",
    "SELECT o_customer, sum(o_price) AS total FROM orders WHERE o_id <> 3 GROUP BY o_customer HAVING sum(o_price) > 1",
    "SELECT CAST(o_id AS STRING), o_price::int, o_note || '!' FROM orders",
    "SELECT c_name, o_id FROM customer LEFT JOIN orders ON c_id = o_customer AND o_price > 2",
    "SELECT c_name, o_id FROM customer LEFT JOIN orders ON c_id = o_customer WHERE o_id IS NULL",
    "SELECT c_name, o_id FROM customer LEFT JOIN orders ON c_id = o_customer WHERE o_id IS NULL OR o_price > 2",
    "SELECT c_name, o_id FROM orders RIGHT JOIN customer ON c_id = o_customer AND o_date IS NULL AND c_vip",
    "SELECT c_name, o_id FROM orders RIGHT JOIN customer ON c_id = o_customer WHERE c_vip AND o_id IS NULL",
    "SELECT c_name, o_id FROM orders FULL JOIN customer ON c_id = o_customer AND o_id > 2 AND c_vip WHERE c_name IS NULL",
    "SELECT c_name, o_id, i_part FROM customer LEFT JOIN orders ON c_id = o_customer JOIN item ON o_id = i_order AND i_part = 100",
    "SELECT i_part FROM orders LEFT JOIN item ON o_id = i_order JOIN customer ON i_part IS NULL AND c_id = 10",
    "SELECT o_id FROM orders LEFT SEMI JOIN item ON o_id = i_order AND i_part = 100",
    "SELECT o_id FROM orders LEFT ANTI JOIN item ON o_id = i_order AND i_part = 100 AND o_id > 1",
    "SELECT o_id FROM orders LEFT ANTI JOIN item ON o_id = i_order AND i_part = 100 WHERE o_id > 1",
    "SELECT * FROM orders o JOIN item i ON o.o_id = i.i_order WHERE i.i_part = 100",
    "SELECT * FROM item a JOIN item b USING (i_order) WHERE i_order = 1",
    "SELECT i_order, a.i_part FROM item a FULL JOIN item b USING (i_order) WHERE i_order = 1 OR i_order IS NULL",
    "SELECT * FROM item NATURAL JOIN (SELECT o_id AS i_order, o_date FROM orders)",
    "SELECT a.*, b.i_count FROM item a, item b WHERE a.i_order = b.i_order AND a.i_part = 100",
    "SELECT * EXCEPT (o_note, o_price) FROM orders WHERE o_note LIKE 'c\\\\%'",
    "SELECT o_note FROM orders WHERE o_note LIKE '%/%' ESCAPE '/' OR o_note = 'it''s' OR o_note = \"a\"",
    "SELECT o_id FROM orders WHERE o_date BETWEEN DATE '2024-01-01' AND DATE '2024-01-02' + INTERVAL 1 DAY",
    "SELECT o_id FROM orders WHERE o_customer IN (SELECT c_id FROM customer WHERE c_vip) AND o_price > 2",
    "SELECT o_id FROM orders WHERE o_customer NOT IN (SELECT c_id FROM customer WHERE c_vip)",
    "SELECT c_name FROM customer WHERE EXISTS (SELECT * FROM orders WHERE o_customer = c_id AND o_price > 2)",
    "SELECT c_name, (SELECT max(o_id) FROM orders WHERE o_customer = c_id AND o_price > 2) FROM customer",
    "SELECT c_name, (SELECT count(*) FROM orders o WHERE o.o_customer = customer.c_id) AS n FROM customer ORDER BY n, c_name",
    "WITH x AS (SELECT o_id, o_customer FROM orders WHERE o_price > 2) SELECT * FROM x JOIN customer ON c_id = o_customer",
    "WITH x(a, b) AS (SELECT o_id, o_date FROM orders), y AS (SELECT a FROM x WHERE b IS NULL) SELECT * FROM y",
    "WITH orders AS (SELECT 1 AS o_id) SELECT o_id FROM orders",
    "SELECT o_id FROM orders WHERE o_id < 3 UNION ALL SELECT i_order FROM item WHERE i_part > 100",
    "SELECT o_id FROM orders INTERSECT SELECT i_order FROM item EXCEPT SELECT 1",
    "SELECT DISTINCT o_date FROM orders ORDER BY o_date DESC NULLS LAST",
    "SELECT o_id, rank() OVER (PARTITION BY o_customer ORDER BY o_price DESC) AS r FROM orders WHERE o_id > 1",
    "SELECT o_id, sum(o_price) OVER w FROM orders WINDOW w AS (ORDER BY o_id ROWS 1 PRECEDING)",
    "SELECT c_id, tag FROM customer LATERAL VIEW explode(c_tags) t AS tag WHERE c_id < 12",
    "SELECT c_id, tag FROM customer LATERAL VIEW OUTER explode(c_tags) t AS tag WHERE c_id < 13 AND tag IS NULL",
    "SELECT c_id, explode(c_tags) FROM customer WHERE c_id = 10",
    "SELECT c_home.city, c.c_home.city AS x FROM customer c WHERE c_home.city = 'Oslo' AND c.c_vip",
    "SELECT transform(c_tags, t -> t || c_name) FROM customer WHERE exists(c_tags, t -> t = 'x')",
    "SELECT * FROM customer, LATERAL (SELECT o_id FROM orders WHERE o_customer = c_id AND o_price > 2) x",
    "SELECT * FROM (SELECT i_order, i_part, i_count FROM item) PIVOT (sum(i_count) FOR i_part IN (100, 101))",
    "SELECT * FROM item PIVOT (sum(i_count) AS s FOR i_part IN (100 AS a, 101 AS b)) WHERE i_order = 1",
    "SELECT * FROM item UNPIVOT (v FOR n IN (i_part, i_count)) WHERE i_order = 1",
    "SELECT o_date, o_customer, count(*) FROM orders GROUP BY ROLLUP (o_date, o_customer)",
    "SELECT o_customer, count(*) FROM orders GROUP BY ALL",
    "SELECT x.a FROM item AS x(a, b, c) WHERE b = 100",
    "SELECT * FROM VALUES (1, 'a'), (2, NULL) AS v(x, y) JOIN orders ON o_id = x",
    "SELECT * FROM VALUES (1), (2)",
    "SELECT * FROM range(3) r JOIN orders ON r.id = o_id WHERE id > 1 AND o_price > 2",
    "SELECT (SELECT max(o_id) FROM orders), CASE WHEN c_vip THEN 1 ELSE 0 END FROM customer WHERE NOT c_vip IS NULL",
    "SELECT o_id FROM orders ORDER BY o_price DESC, 1 LIMIT 3 OFFSET 1",
    "SELECT o_id AS o_date, o_date AS o_id FROM orders ORDER BY o_id NULLS LAST, o_date",
    "SELECT a.o_id FROM (orders a JOIN item ON a.o_id = i_order) LEFT JOIN customer ON c_id = a.o_customer WHERE c_vip",
    "SELECT o_id FROM orders WHERE o_price = 1.5BD OR o_id IN (2L, 3) OR o_note = r'd'",
    "SELECT 1 FROM orders",
    "SELECT struct(*), hash(*) FROM item",
    "SELECT count(DISTINCT o_customer, o_date), count(DISTINCT *) FROM orders o",
    "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY o_price), count(*) FILTER (WHERE o_id > 2) FROM orders",
    "SELECT substring(o_note FROM 1 FOR 1), trim(BOTH 'c' FROM o_note), extract(YEAR FROM o_date), position('t' IN o_note) FROM orders",
    "SELECT o_id FROM orders CLUSTER BY o_id",
    "SELECT first(o_note) IGNORE NULLS, any_value(o_customer) FROM orders WHERE o_id = 1",
    "SELECT o_id, o_customer FROM orders WHERE o_id > 1 QUALIFY row_number() OVER (PARTITION BY o_customer ORDER BY o_price) = 1",
    "SELECT o_id, (SELECT count(*) FROM item WHERE i_order = o_id QUALIFY row_number() OVER (ORDER BY 1) = 1) AS n FROM orders ORDER BY o_id",
    "WITH RECURSIVE x AS (SELECT o_id AS a, o_note FROM orders WHERE o_id < 3 UNION ALL SELECT a + 1, i_part::string FROM x JOIN item ON i_order = a WHERE a < 5) SELECT * FROM x",
    "WITH RECURSIVE x(n) MAX RECURSION LEVEL 7 AS (SELECT 1 UNION ALL SELECT n + 1 FROM x), y AS (SELECT max(n) FROM (SELECT * FROM x LIMIT 4)) SELECT * FROM y",
    "SELECT /*+ MAPJOIN(c), COALESCE(1) */ c_name, o_id FROM customer c JOIN orders ON c_id = o_customer",
    "FROM orders SELECT /*+ x */ o_date, count(*) WHERE o_id > 1 GROUP BY o_date HAVING count(*) > 0 ORDER BY o_date",
    "FROM orders SELECT o_id ORDER BY o_price LIMIT 2 UNION ALL SELECT i_order FROM item |> WHERE o_id > 1",
    "TABLE orders",
    "FROM orders o JOIN item ON o_id = i_order",
    "TABLE orders |> WHERE o_id > 1 |> WHERE o_price > 1 OR o_note = 'd' |> SELECT o_id, o_price * 2 AS twice |> WHERE twice > 3",
    "FROM orders |> EXTEND o_id + 1 AS x, x * 2 AS y |> SET o_note = upper(o_note), x = 7, o_id = x |> DROP y, o_date |> WHERE orders.o_price > 1 AND o_id = 7",
    "FROM orders |> AGGREGATE sum(o_price) AS s, count(*) GROUP BY o_customer AS who, o_date |> EXTEND s + 1",
    "FROM item |> AGGREGATE count(*), max(i_count) GROUP BY 1, i_part",
    "FROM orders |> AGGREGATE GROUP BY o_customer",
    "FROM item |> EXTEND i_part + 1 AS i_part, 7 AS x |> WHERE item.i_part > 100 |> SELECT item.*, x",
    "FROM item |> SELECT 1 AS i_part, i_count, i_part |> SELECT item.* |> UNION ALL SELECT 5, 6 |> WHERE item.i_part > 1",
    "FROM item |> AGGREGATE count(*) AS i_part GROUP BY i_part |> SELECT item.i_part",
    "FROM customer |> ORDER BY c_vip DESC, c_id |> SELECT c_id, explode(array('b', c_name, 'a')) AS tag |> LIMIT 4",
    "FROM customer |> EXTEND c_home.city, customer.c_home.city::string, c_name |> SELECT *",
    "FROM item |> FULL JOIN orders ON i_order = o_id |> SET o_note = i_part |> SELECT i_part, o_note",
    "FROM (SELECT i_order AS o_id, i_part FROM item) i |> RIGHT JOIN orders USING (o_id) |> JOIN range(9) AS r ON r.id = o_id |> SET o_note = 'x', i_part = id",
    "SELECT c_name, o_note, 7, sum(o_price), count(*) + max(c_id) FROM customer JOIN orders ON c_id = o_customer GROUP BY ALL",
    "SELECT 1 AS one, all, count(*) FROM (SELECT o_customer AS all FROM orders) GROUP BY ALL",
    "SELECT n, all FROM (SELECT o_customer AS n, -o_id AS all FROM orders) ORDER BY ALL LIMIT 2",
    "FROM orders |> SELECT sum(o_price) AS s |> SELECT s * 2",
    "FROM orders |> AGGREGATE count(*), min(o_note)",
    "FROM orders |> ORDER BY o_price DESC, o_id |> SELECT o_id |> LIMIT 3 |> OFFSET 1",
    "FROM orders |> ORDER BY o_id |> SELECT o_customer AS o_id, o_note |> LIMIT 3",
    "FROM customer |> JOIN orders ON c_id = o_customer |> LEFT JOIN item ON o_id = i_order |> WHERE customer.c_vip AND orders.o_id < 5 |> SELECT c_name, item.*",
    "FROM item |> AS i |> WHERE i.i_part > 100 |> JOIN orders ON o_id = i.i_order |> DROP i.i_part",
    "FROM orders |> SELECT o_id |> UNION ALL SELECT i_order FROM item |> EXCEPT (SELECT 1) |> INTERSECT VALUES (2), (3), (7)",
    "FROM item |> PIVOT (sum(i_count) FOR i_part IN (100 AS a, 101)) |> WHERE i_order = 1",
    "FROM item |> UNPIVOT (v FOR n IN (i_part, i_count)) AS p |> SELECT p.n, v",
    "FROM orders |> SELECT o_customer, rank() OVER w AS r WINDOW w AS (ORDER BY o_price) |> WHERE r < 3",
    "VALUES (1, 'a'), (2, NULL) AS v(x, y) |> WHERE v.x > 1 |> EXTEND y IS NULL AS z",
    "SELECT o_id FROM orders WHERE EXISTS (FROM item |> WHERE i_order = o_id) AND o_id IN (TABLE item |> SELECT i_order)",
    "WITH x AS (FROM orders |> WHERE o_id < 3) TABLE x |> SELECT x.o_id, (FROM item |> WHERE i_order = x.o_id |> AGGREGATE count(*)) AS n",
    "SELECT p.a, p.i_order FROM item PIVOT (sum(i_count) FOR i_part IN (100 AS a, 101 AS b)) AS p WHERE p.i_order = 1",
    'SELECT v:a::int, v:b[0].c::int, v:[\'a\']::string, v:b[1]::int + 1, typeof(v:b) FROM (SELECT o_id, parse_json(\'{"a": 1, "b": [{"c": 2}, 3]}\') AS v FROM orders) WHERE v:a::int = 1 ORDER BY c',
    "SELECT div(o_id, 2), timestampdiff(DAY, o_date, DATE '2024-02-01'), timestampadd(MONTH, 1, o_date), timediff(HOUR, o_date, now() - now() + o_date) AS t FROM orders",
    "SELECT all, count(*) FROM (SELECT o_customer AS all FROM orders) GROUP BY all, 1 + 1",
    "SELECT from_xml('<r><a>1</a></r>', 'a INT', map('rowTag', 'r', 'mode', 'PERMISSIVE')), schema_of_xml('<r b=\"2\"><a>1</a></r>', map('excludeAttribute', 'true'))",
    "WITH RECURSIVE x(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM x) SELECT n FROM x LIMIT 5",
    "SELECT * FROM item CROSS JOIN item WHERE 1 = 1",
    "SELECT * FROM item LEFT SEMI JOIN item USING (i_part) WHERE i_part > 100",
    "SELECT i_order FROM item JOIN item USING (i_order) WHERE i_order = 1",
    "SELECT item.i_part, o.i_part FROM item JOIN (SELECT i_order, i_part FROM item) AS o USING (i_order)",
    "SELECT c_id, o_id FROM customer c LEFT OUTER JOIN orders APPROX NEAREST 2 BY DISTANCE abs(c.c_id - orders.o_customer) WHERE c_vip AND o_id > 1",
    "SELECT * FROM orders JOIN (SELECT * FROM item WHERE i_part > 101) EXACT NEAREST BY SIMILARITY i_count - o_id WHERE i_part = 103",
    "FROM customer |> LEFT JOIN (SELECT 1 AS one WHERE false) EXACT NEAREST 3 BY DISTANCE one |> SELECT c_id, one",
    "SELECT count(*), count(DISTINCT x.o_id) FROM orders TABLESAMPLE (2 ROWS) AS x JOIN item TABLESAMPLE (100 PERCENT) REPEATABLE (7) ON true",
    "SELECT orders.o_id FROM orders TABLESAMPLE (9 ROWS) WHERE orders.o_id > 2 ORDER BY o_id",
    "TABLE orders |> TABLESAMPLE (BUCKET 1 OUT OF 1) |> TABLESAMPLE (3 ROWS) |> AGGREGATE count(*)",
    "TABLE orders | WHERE o_id | 1 > 2 | EXTEND o_id | 8 AS x | AGGREGATE sum(x) AS s, count(*) GROUP BY o_customer | ORDER BY s | LIMIT 2",
    "SELECT IDENTIFIER('o_id'), IDENTIFIER('o' || '_note') AS IDENTIFIER('n'), IDENTIFIER('ABS')(o_id), IDENTIFIER('orders.o_price') FROM IDENTIFIER('ord' || 'ers') WHERE IDENTIFIER('o_id') > 1",
    "SELECT current_user, USER(), session_user(), user, current_catalog(), current_database(), current_schema(), current_path(), current_path",
    "SELECT o_id AS user, upper(user), session_user = 'x', (SELECT user) FROM orders WHERE user <> 'a' AND o_note IS DISTINCT FROM current_user ORDER BY user",
    "SELECT max(current_user) AS current_user, count(*) FROM FROM orders GROUP BY session_user() || current_schema()",
    "SELECT current_path, `current_path`, t.current_path, user FROM (SELECT 'a' AS current_path, 'b' AS user) AS t ORDER BY current_path",
    "SELECT o_id, CAST(o_note AS STRING COLLATE UTF8_LCASE) = 'A', o_note::STRING COLLATE UNICODE_CI, TRY_CAST(o_note AS STRING COLLATE UTF8_LCASE) FROM orders",
    "SELECT IDENTIFIER('max')(id) OVER IDENTIFIER('w') AS m, map('a', 1).IDENTIFIER('a') FROM IDENTIFIER('range')(3) WINDOW IDENTIFIER('w') AS (ORDER BY id) ORDER BY m",
    "SELECT date 'tomorrow' - date 'yesterday' AS two, typeof(timestamp 'now') AS t, typeof(timestamp_ntz 'today') AS n, date 'today' = current_date AS same, timestamp 'tomorrow' - INTERVAL 1 DAY = timestamp 'today' AS day",
]
# What Spark calls an expression with the time of the query in it.
NAMED = [
    *(f"{name}(now())" for name in "year month day dayofmonth dayofweek dayofyear weekday weekofyear quarter hour minute second typeof last_day unix_seconds unix_millis unix_micros upper lower to_timestamp dayname monthname to_date".split()),
    *(f"{name}(current_date, 2)" for name in "add_months date_add date_sub".split()),
    *(f"{name}(current_date(), o_date)" for name in "coalesce concat datediff greatest least nullif nvl".split()),
    "date_format(now(), 'yyyy')", "date_trunc('DAY', current_timestamp)", "trunc(current_date, 'MM')",
    "from_utc_timestamp(now(), 'UTC')", "to_utc_timestamp(now(), 'UTC')", "next_day(current_date, 'MO')",
    "current_date = current_date()", "current_timestamp() <= now() AND orders.o_date < curdate() OR o_id <=> unix_timestamp()", "(localtimestamp() > o_date)",
    "CAST(now() AS DATE)", "unix_date(current_date)", "CAST(CAST(current_date AS TIMESTAMP) AS STRING)", "extract(YEAR FROM now())", "Year(NOW())", "extract(day FROM current_date) = 3",
]  # fmt: skip


@pytest.fixture(scope="module")
def tables(sql_spark: Any) -> Any:
    for name, (columns, rows) in ROWS.items():
        names = [column.split(" ")[0] for column in columns.split(", ")]
        typed = ", ".join(
            f"CAST({column.split(' ', 1)[0]} AS {column.split(' ', 1)[1]})" for column in columns.split(", ")
        )
        listed = ", ".join(names)
        frame = sql_spark.sql(f"SELECT {typed} FROM VALUES {rows} AS v({listed})").toDF(*names)
        frame.createOrReplaceTempView(name)
    return sql_spark


def bound(spark: Any, text: str, values: Any = None) -> tuple[Query, Any]:
    """The query as a member would run it: each scan holds its needed columns and filtered rows only."""
    query = analyse(text, values, CATALOG, Limits())
    assert isinstance(query, Query)
    user = spark.sql("SELECT current_user()").first()[0] if query.fixed else ""
    parameters = query.parameters | fixed_values(query.fixed, NOW, user, "default")
    for scan in query.tables:
        # The alias matters: Spark reads `FROM t WHERE (a)` as t with the alias WHERE(a).
        source = f"SELECT {', '.join(scan.columns)} FROM {scan.table.name} AS source"
        if scan.filters:
            source += " WHERE " + " AND ".join(f"({render(each)})" for each in scan.filters)
        used = {name: value for name, value in parameters.items() if f":{name}" in source}
        spark.sql(source, args=used or None).createOrReplaceTempView(scan.node_name)
    return query, spark.sql(render(query.tree), args=parameters or None)


def answer(frame: Any, ordered: bool) -> tuple[list[Any], list[Any]]:
    fields = [(field.name, field.dataType) for field in frame.schema.fields]
    rows = [tuple(row) for row in frame.collect()]
    return fields, rows if ordered else sorted(rows, key=repr)


@pytest.mark.parametrize("text", QUERIES)
def test_the_answer_is_sparks(tables: Any, text: str) -> None:
    query, ours = bound(tables, text)
    ordered = query.tree.args.get("order") is not None
    fields, rows = answer(ours, ordered)
    assert (fields, rows) == answer(tables.sql(text), ordered)
    columns = result_shape(query).columns
    assert columns is None or columns == len(fields)


@pytest.mark.parametrize(
    ("text", "values", "plain"),
    [
        ("SELECT o_id FROM orders WHERE o_id > ? AND o_note = ?", [1, "d"], "SELECT o_id FROM orders WHERE o_id > 1 AND o_note = 'd'"),
        ("SELECT o_id FROM orders WHERE o_price > :p LIMIT :n", {"p": Decimal("9.5"), "n": 1}, "SELECT o_id FROM orders WHERE o_price > 9.5"),
        ("SELECT o_id FROM orders WHERE o_note = ?", ["x' OR '1' = '1"], "SELECT o_id FROM orders WHERE false"),
        ("SELECT o_id FROM orders WHERE o_date = current_date", None, "SELECT o_id FROM orders WHERE o_date = DATE '2024-01-02'"),
        ("SELECT o_id FROM orders WHERE o_date < now() - INTERVAL 1 DAY", None, "SELECT o_id FROM orders WHERE o_id = 1"),
        ("SELECT o_id FROM orders WHERE o_date = date 'today' AND o_date < timestamp 'TOMORROW '", None, "SELECT o_id FROM orders WHERE o_date = DATE '2024-01-02'"),
        ("SELECT year(now()) AS y, unix_timestamp() AS u", None, "SELECT 2024 AS y, 1704196800L AS u"),
    ],
)  # fmt: skip
def test_values_are_bound_by_spark(tables: Any, text: str, values: Any, plain: str) -> None:
    _, ours = bound(tables, text, values)
    assert answer(ours, False) == answer(tables.sql(plain), False)


def test_expressions_over_the_time_have_sparks_names(tables: Any) -> None:
    """In one statement each: those for which no name is proven are refused, and asked for an alias."""
    text = f"SELECT {', '.join(NAMED)} FROM orders"
    _, ours = bound(tables, text)
    assert ours.schema.names == tables.sql(text).schema.names
    called = " ".join(NAMED)
    assert [name for name in sorted(NAMED_AS_CALLED) if f"{name}(" not in called] == []
    with pytest.raises(SqlError, match="give this column a name"):
        bound(tables, f"SELECT {NAMED[-1]}, now() + INTERVAL 1 DAY FROM orders")


def test_what_is_computed_from_aggregates_has_sparks_name(tables: Any) -> None:
    """plan/extremes.py gives these names."""
    names = ["abs(min(o_id))", "round(max(o_price), 2)", "sum(o_id)", "avg(o_id)", "count(1)", "count(o_id)"]
    names += ["(1 + max(CAST(o_id AS DOUBLE)))", "max(DISTINCT o_id)", "round(avg(o_id), 0)", "abs(sum(o_id))"]
    asked = [name.replace("count(1)", "count(*)").replace(", 0)", ")") for name in names]
    assert tables.sql(f"SELECT {', '.join(asked)} FROM orders").columns == names


@pytest.mark.parametrize(
    "call", ["now()", "current_timestamp", "current_timestamp()", "current_date", "curdate()", "localtimestamp()", "unix_timestamp()"]
)  # fmt: skip
def test_the_time_keeps_its_name_and_type(tables: Any, call: str) -> None:
    _, ours = bound(tables, f"SELECT {call}, {call} AS x FROM orders LIMIT 1")
    theirs = tables.sql(f"SELECT {call}, {call} AS x FROM orders LIMIT 1")
    assert [(field.name, field.dataType) for field in ours.schema.fields] == [
        (field.name, field.dataType) for field in theirs.schema.fields
    ]

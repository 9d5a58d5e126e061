"""Every error shows its place in the statement."""

from __future__ import annotations

import pytest

from skerry.model.errors import SqlError
from tests.unit.sql.sql_cases import statement


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        (
            "SELECT * FROM ordes",
            "unknown table ordes; did you mean orders?\n  SELECT * FROM ordes\n                ^^^^^",
        ),
        (
            "SELECT *\nFROM oslo.ordrs o\nWHERE true",
            "unknown table oslo.ordrs; did you mean oslo.orders?\n  FROM oslo.ordrs o\n       ^^^^^^^^^^",
        ),
        (
            "SELECT o_pric FROM orders",
            "unknown column o_pric; did you mean o_price?\n  SELECT o_pric FROM orders\n         ^^^^^^",
        ),
        (
            "SELECT o.o_pric FROM orders o",
            "table orders has no column o_pric; did you mean o_price?\n"
            "  SELECT o.o_pric FROM orders o\n           ^^^^^^",
        ),
        (
            "SELECT sun(o_price) FROM orders",
            "unknown function sun; did you mean sum?\n  SELECT sun(o_price) FROM orders\n         ^^^",
        ),
        ("SELECT 1 +", "syntax error: expected an expression at the end of the statement\n  SELECT 1 +\n            ^"),
        ("SELECT 1 FROM orders WHERE", "syntax error: expected an expression at the end of the statement"),
        ("SELECT a FROM (SELECT 1 FRM orders)", "syntax error at orders: expected )"),
        ("SELECT 1 WHERE 2 IN (SELECT 1 FROM orders WHERE o_id ==)", "syntax error at ): expected an expression"),
        ("SELECT (1", "syntax error: expected ) at the end of the statement"),
        ("SELECT 1 2", "syntax error at 2: the query should end here"),
        ("SELECT CAST(1 AS nonsense)", "syntax error at nonsense: expected a data type"),
        ("SELECT 1 AS 'x'", "syntax error at 'x': expected an alias; a name is quoted with backquotes"),
        ("SELECT größe FROM orders", "größe is not admitted without backquotes, as in Spark: write `größe`"),
        ("SELECT 1; SELECT 2", "one statement a call"),
        ("", "the statement is empty"),
        (" ;; ", "the statement is empty"),
        ("-- nothing", "the statement is empty"),
        ("SELECT oslo.orders.o_id, orders.o_id FROM orders, oslo.orders", "give it an alias"),
        (
            "SELECT 1 FROM oslo.orders JOIN bergen.orders ON oslo.orders.o_id = orders.o_id",
            "give it an alias, e.g. oslo.orders AS o2",
        ),
        ("SELECT oslo.orders.o_id FROM oslo.orders, oslo.orders", "give it an alias"),
        ("SELECT o_id FROM orders |> FOO a", "expected an operator such as WHERE"),
        ("CREATE OR REPLACE TEMP VIEW v AS SELECT 1", "CREATE OR REPLACE TEMP VIEW is not admitted: Skerry runs"),
        ("DROP", "DROP is not admitted: Skerry runs queries"),
        ("RESET x", "RESET is not admitted: Skerry runs queries"),
        ("VACUUM orders", "TRUNCATE and FLUSH TABLE, INSERT, UPDATE, DELETE, MERGE, BEGIN, COMMIT and ROLLBACK"),
        ("SELEC 1", "SELEC begins no statement; did you mean SELECT?"),
        ("DESCRIBE", "DESCRIBE takes a table's name"),
        ("SELECT * FROM nowhere.orders", "unknown table nowhere.orders; did you mean "),
        ("DESCRIBE nowhere.orders", ".orders?"),
        ("DESCRIBE ordes", "unknown table ordes; did you mean orders?"),
        ("ANALYZE TABLE", "ANALYZE TABLE takes a table's name"),
        ("ANALYZE TABLE ordes", "unknown table ordes; did you mean orders?"),
        ("ANALYZE TABLE orders COMPUTE STATISTICS NOSCAN", "ANALYZE TABLE takes a table's name"),
        ("ANALYZE TABLE orders FOR COLUMNS", "write ANALYZE TABLE name"),
        ("ANALYZE TABLE orders FOR COLUMNS o_id o_price", "write ANALYZE TABLE name"),
        ("ANALYZE TABLE orders FOR COLUMNS o_idd", "table orders has no column o_idd; did you mean o_id?"),
        (
            "show views in oslo",
            "SHOW VIEWS is not admitted: write SHOW SCHEMAS, SHOW TABLES [IN schema], SHOW COLUMNS IN table, ",
        ),
        ("SHOW", "SHOW is not admitted: write SHOW SCHEMAS"),
        ("SHOW TABLES IN", "SHOW TABLES IN takes one schema's name"),
        ("SHOW TABLES IN x y", "SHOW TABLES IN x takes"),
        ("SHOW TABLES x", "SHOW TABLES [IN schema] takes"),
        ("SHOW COLUMNS orders", "write SHOW COLUMNS IN table"),
        ("SHOW COLUMNS IN", "SHOW COLUMNS IN takes a table's name"),
        ("SHOW COLUMNS IN oslo.orders IN oslo", "the schema is named twice"),
        ("SHOW SCHEMAS LIKE", "SHOW SCHEMAS LIKE takes a 'pattern'"),
        ("USE", "USE takes one schema's name"),
        ("USE a.b", "USE takes one schema's name"),
        ("EXPLAIN", "EXPLAIN [ANALYZE] [FORMAT JSON] takes a query"),
        ("EXPLAIN ANALYZE FORMAT XML SELECT 1", "EXPLAIN [ANALYZE] [FORMAT JSON] takes a query"),
        ("EXPLAIN CODEGEN SELECT 1", "takes a query\n  EXPLAIN CODEGEN SELECT 1\n          ^^^^^^^"),
    ],
)
def test_the_message_says_what_and_where(sql: str, message: str) -> None:
    with pytest.raises(SqlError) as caught:
        statement(sql)
    assert message in caught.value.message


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT city FROM (SELECT c_home.city FROM customer)",
        "SELECT city FROM (SELECT c.c_home.city FROM customer c)",
        "SELECT city FROM (SELECT c_home.* FROM customer)",
        "SELECT city FROM (SELECT c.c_home.* FROM customer c)",
        "SELECT x FROM (SELECT named_struct('x', c_id).x FROM customer)",
        "SELECT abc FROM (SELECT 'abc')",
        "SELECT `1` FROM (SELECT 1)",
        "SELECT `NULL`, `true` FROM (SELECT NULL, true)",
        "SELECT `count(1)` FROM (SELECT count(1) FROM customer)",
        "SELECT `(c_id + 1)` FROM (SELECT c_id + 1 FROM customer)",
        "SELECT c_name, count(1) FROM customer GROUP BY c_name ORDER BY `count(1)`",
    ],
)
def test_columns_may_have_the_names_that_spark_gives_them(sql: str) -> None:
    """By the text of an expression, or by the field of a struct."""
    assert statement(sql) is not None


@pytest.mark.parametrize("sql", ["SELECT citi FROM (SELECT c.* FROM customer c)", "SELECT größe FROM customer"])
def test_other_names_are_unknown(sql: str) -> None:
    with pytest.raises(SqlError, match=r"unknown column|not admitted"):
        statement(sql)


def test_a_long_line_is_cut_around_the_place() -> None:
    with pytest.raises(SqlError) as caught:
        statement("SELECT " + "1, " * 500 + "nope FROM orders")
    line, carets = caught.value.message.split("\n")[1:]
    assert "nope FROM orders" in line
    assert len(line) < 120
    assert line[carets.index("^") :].startswith("nope")


def test_a_statement_has_bounds() -> None:
    with pytest.raises(SqlError, match="at most 1048576"):
        statement("SELECT '" + "x" * (1 << 20) + "'")
    with pytest.raises(SqlError, match="nested more than 50 deep"):
        statement("SELECT " + "(" * 60 + "1" + ")" * 60)
    with pytest.raises(SqlError, match="nested too deeply"):
        statement("SELECT " + "- " * 5000 + "1")
    with pytest.raises(SqlError, match="nested too deeply"):
        statement("SELECT " + "NOT " * 5000 + "true")


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT " + " + ".join(["1"] * 5000),
        "SELECT 1 WHERE " + " AND ".join(["true"] * 5000),
        " UNION ALL ".join(["SELECT 1"] * 1000),
        "SELECT " + ", ".join(["1"] * 5000),
        "SELECT 1 WHERE 1 IN (" + ", ".join(["1"] * 5000) + ")",
        "SELECT " + "(" * 40 + "(SELECT 1) + 1" + ") + 1" * 40,
    ],
)
def test_length_is_no_depth(sql: str) -> None:
    assert statement(sql)


def test_a_site_that_is_down_is_not_hidden() -> None:
    from skerry.model.errors import SiteError
    from skerry.model.limits import Limits
    from skerry.model.names import TableRef
    from skerry.sql.statement import analyse

    class Down:
        def lookup(self, parts: tuple[str, ...]) -> TableRef | None:
            raise SiteError(f"site of {parts} is down")

        def names(self) -> list[str]:
            return []

    with pytest.raises(SiteError, match="down"):
        analyse("SELECT * FROM orders", None, Down(), Limits())

"""Session variables: which words mean one, what stands for them, and what DECLARE and SET VAR ask for."""

from __future__ import annotations

from typing import Any

import pytest

from skerry.model.errors import SkerryError, SqlError
from skerry.model.limits import VARIABLES, VARIABLES_BYTES, Limits
from skerry.model.results import Value
from skerry.model.variables import Variable, check_variables
from skerry.sql.commands import DropVariable
from skerry.sql.statement import Assign, Explain, Query, Statement, analyse, render
from tests.unit.sql.sql_cases import CATALOG

X = "CAST(:skerry_variable_0 AS INT)"
VARIABLES_OF_ONE = {
    "x": Variable("int", Value("int", 5), "5"),
    "s": Variable("string", Value("string", "orders"), "'a' || x"),
    "d": Variable("double", Value("double", 1.5)),
    "big": Variable("bigint", Value("int", 5)),
    "none": Variable("int", Value("void")),
    "o_id": Variable("bigint", Value("int", 3)),
    "city": Variable("string", Value("string", "Oslo")),
    "id": Variable("int", Value("int", 1)),
    "col1": Variable("int", Value("int", 1)),
    "day": Variable("int", Value("int", 1)),
    "user": Variable("string", Value("string", "root")),
    "all": Variable("int", Value("int", 1)),
}


def read(text: str, parameters: Any = None) -> Statement:
    return analyse(text, parameters, CATALOG, Limits(), VARIABLES_OF_ONE)


def tree(text: str) -> str:
    found = read(text)
    return render(found.query.tree if isinstance(found, Assign | Explain) else _query(found).tree)


def _query(found: Statement) -> Query:
    assert isinstance(found, Query)
    return found


@pytest.mark.parametrize(
    ("sql", "bound"),
    [
        ("SELECT X, session.x, (x)", f"SELECT {X} AS `X`, {X} AS `x`, ({X}) AS `x`"),
        ("SELECT System.`SESSION`.x AS y", f"SELECT {X} AS y"),
        ("SELECT typeof(x)", f"SELECT typeof({X}) AS `typeof(variablereference(system.session.x=5))`"),
        (
            "SELECT none = 1",
            f"SELECT {X} = 1 AS `(variablereference(system.session.none=CAST(NULL AS INT)) = 1)`",
        ),
        ("SELECT o_id FROM orders WHERE o_id > x LIMIT x", None),
        ("SELECT * FROM range(session.x)", f"SELECT * FROM range({X})"),
        ("VALUES (x)", f"VALUES ({X})"),
        ("SELECT sum(x) AS n FROM VALUES (1)", f"SELECT sum({X}) AS n FROM (VALUES (1))"),
        ("WITH q AS (SELECT x AS c) SELECT c FROM q", f"WITH q AS (SELECT {X} AS c) SELECT c FROM q"),
        ("EXPLAIN SELECT x AS y", f"SELECT {X} AS y"),
        ("SELECT * FROM IDENTIFIER(s)", "SELECT * FROM scan_0 AS `orders`"),
        (
            "SELECT dateadd(day, x, o_date) AS n FROM orders",
            f"SELECT dateadd(day, {X}, o_date) AS n FROM scan_0 AS orders",
        ),
        (
            "SELECT session.o_id AS n FROM orders",
            "SELECT CAST(:skerry_variable_0 AS BIGINT) AS n FROM scan_0 AS orders",
        ),
    ],
)
def test_a_variable_is_a_marker_of_its_type(sql: str, bound: str | None) -> None:
    limited = f"SELECT o_id FROM scan_0 AS orders WHERE o_id > {X} LIMIT :skerry_variable_0"
    assert tree(sql) == (bound or limited)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT o_id FROM orders",
        "SELECT 1 AS x, x",
        "SELECT o_id AS x FROM orders GROUP BY x",
        "SELECT transform(array(1), x -> x + 1) AS n",
        "SELECT (SELECT max(i_part) FROM item WHERE i_order = o_id) AS n FROM orders",
        "SELECT c_home.* FROM customer ORDER BY city",  # a field that the text does not name
        "SELECT city FROM (SELECT c_home.* FROM customer) AS q",
        "SELECT id FROM range(3)",
        "SELECT n FROM range(3), LATERAL (VALUES (id)) AS t(n)",
        "SELECT col1 FROM VALUES (1), (2)",
        "SELECT session.x FROM (SELECT struct(1 AS x) AS session) AS q",
        "SELECT o_note FROM orders GROUP BY ALL",
        "SELECT user AS n",
    ],
)
def test_whatever_else_may_be_meant_is_no_variable(sql: str) -> None:
    assert _query(read(sql)).variables == {}


@pytest.mark.parametrize(
    ("sql", "asked", "targets", "default"),
    [
        ("DECLARE y INT", "SELECT CAST(NULL AS INT) AS skerry_value_0", ("y",), "NULL"),
        (
            "DECLARE OR REPLACE VARIABLE x, Session.Z DECIMAL(9, 2) DEFAULT x + 1",
            f"SELECT CAST({X} + 1 AS DECIMAL(9, 2)) AS skerry_value_0",
            ("x", "z"),
            "x + 1",
        ),
        ("DECLARE VARIABLE INT DEFAULT 5.0", "SELECT (5.0) AS skerry_value_0", ("int",), "5.0"),
        (
            "SET VAR x = x + 1, s = DEFAULT",
            f"SELECT CAST({X} + 1 AS INT) AS skerry_value_0, CAST('a' || {X} AS STRING) AS skerry_value_1",
            ("x", "s"),
            None,
        ),
        (
            "SET VARIABLE (x, session.s) = (SELECT max(o_id), 'a' FROM orders)",
            "SELECT CAST(skerry_column_0 AS INT) AS skerry_value_0, CAST(skerry_column_1 AS STRING) AS skerry_value_1"
            " FROM (SELECT max(o_id), 'a' FROM scan_0 AS orders) AS skerry_row(skerry_column_0, skerry_column_1)"
            " LIMIT 2",
            ("x", "s"),
            None,
        ),
    ],
)
def test_what_is_assigned_is_the_row_of_a_query(
    sql: str, asked: str, targets: tuple[str, ...], default: str | None
) -> None:
    found = read(sql)
    assert isinstance(found, Assign)
    assert (render(found.query.tree), found.targets, found.default) == (asked, targets, default)


def test_drop() -> None:
    assert read("DROP TEMPORARY VARIABLE session.X") == DropVariable("x")
    assert read("DROP TEMP VAR IF EXISTS nobody") == DropVariable(None)


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELECT typeof(d)", "give this column a name (AS …): its value depends on a variable"),
        ("SELECT IDENTIFIER('x')", "write the variable's name as it is: session.x"),
        ("SELECT 1 LIMIT big", "variable big: LIMIT takes a number of rows, 0 or more, not 5L"),
        ("SELECT 1 LIMIT none", "not CAST(NULL AS INT)"),
        ("SELECT 1 LIMIT x + 1", "LIMIT takes a variable alone"),
        ("SELECT nobody", "unknown column nobody"),
        ("DECLARE x INT", "[VARIABLE_ALREADY_EXISTS]"),
        ("DECLARE y, Y INT", "[DUPLICATE_VARIABLE_NAME_INSIDE_DECLARE]"),
        ("DECLARE builtin.y INT", "[UNRESOLVED_VARIABLE]"),
        ("DECLARE skerry_value_0 INT", "[UNRESOLVED_VARIABLE]"),
        ("DECLARE y", "with a type, a DEFAULT or both"),
        ("DECLARE y INT =", "with a type, a DEFAULT or both"),
        ("DECLARE y = 1, 2", "the expression should end here"),
        ("DECLARE y = 1) AS a, (2", "the expression should end here"),
        ("DECLARE y STRING), (1 = 2", "the type should end here"),
        ("DECLARE y = (SELECT 1)", "[INVALID_DEFAULT_VALUE.SUBQUERY_EXPRESSION]"),
        ("DECLARE y = java_method('java.lang.System', 'exit', 1)", "function java_method is not admitted"),
        ("DECLARE y = ?", "the statement has 1 parameter"),
        ("SET VAR x = SELECT 1", "write SET VAR"),
        ("SET VAR x", "write SET VAR"),
        ("SET VAR nobody = 1", "[UNRESOLVED_VARIABLE] there is no variable nobody"),
        ("SET VAR x = 1, X = 2", "[DUPLICATE_ASSIGNMENTS]"),
        ("SET VAR (x, x) = (SELECT 1, 2)", "[DUPLICATE_ASSIGNMENTS]"),
        ("SET VAR (x) = (orders)", "write SET VAR"),
        ("SET VAR (x) = (SELECT 1), (SELECT 2)", "the query in brackets should end the statement"),
        ("SET VAR (x) = (SELECT 1) UNION (SELECT 2)", "the query in brackets should end the statement"),
        (
            "SET VAR (x, s) = (SELECT 1 FROM orders)",
            "[ASSIGNMENT_ARITY_MISMATCH] 2 variables are set to a row of 1 values",
        ),
        ("SET VAR () = (SELECT 1)", "write SET VAR"),
        ("SET x = 5", "SET is not admitted"),
        ("SET VAR = 5", "write SET VAR"),
        ("DROP TEMPORARY VARIABLE nobody", "[VARIABLE_NOT_FOUND] there is no variable nobody"),
        ("DROP VARIABLE x", "DROP VARIABLE is not admitted"),
    ],
)
def test_what_is_refused(sql: str, message: str) -> None:
    with pytest.raises(SqlError) as caught:
        read(sql)
    assert message in caught.value.message


def test_declare_takes_no_parameters() -> None:
    with pytest.raises(SqlError, match="DECLARE takes no parameters"):
        read("DECLARE y = ?", [1])
    assert isinstance(read("SET VAR x = ?", [1]), Assign)


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({f"v{n}": VARIABLES_OF_ONE["x"] for n in range(VARIABLES + 1)}, "at most 100 variables"),
        ({"v": Variable("string", Value("string", "x" * VARIABLES_BYTES))}, "bytes together"),
        ({"V": VARIABLES_OF_ONE["x"]}, "in lower case"),
        ({"v": Variable("int) AS a, (SELECT 1", Value("int", 1))}, "is not kept in a variable"),
        ({"v": Variable("array<int", Value("void"))}, "is not kept in a variable"),
        ({"v": Variable("struct<a:int>", Value("void"))}, "is not kept in a variable"),
    ],
)
def test_what_a_client_may_keep_is_bounded(variables: dict[str, Variable], message: str) -> None:
    with pytest.raises(SkerryError, match=message):
        check_variables(variables)


def test_a_forged_default_meets_the_gate() -> None:
    for default in ("java_method('a', 'b')", "1 AS INT), reflect('a', 'b'", "'", "1 AS INT) FROM nowhere --"):
        forged = {"x": Variable("int", Value("int", 1), default)}
        with pytest.raises(SqlError):
            analyse("SET VAR x = DEFAULT", None, CATALOG, Limits(), forged)


def test_a_name_that_a_variable_says_is_a_table_of_the_catalog() -> None:
    for name in ("text.`/etc/passwd`", "nobody", "orders WHERE 1 = 1"):
        said = {"x": Variable("string", Value("string", name))}
        with pytest.raises(SqlError):
            analyse("SELECT * FROM IDENTIFIER(x)", None, CATALOG, Limits(), said)


@pytest.mark.parametrize("kind", ["decimal(99,1)", "decimal(0,0)", "decimal(5,10)", "array<decimal(39,0)>"])
def test_no_type_has_more_digits_than_spark_has(kind: str) -> None:
    with pytest.raises(SkerryError, match="is not kept in a variable"):
        check_variables({"x": Variable(kind, Value("string", "1"))})


def test_an_empty_name_is_no_variable_s() -> None:
    """It would be the name of every column that no relation is said of."""
    nameless = {"": Variable("int", Value("int", 7))}
    with pytest.raises(SkerryError, match="has a name"):
        check_variables(nameless)
    query = analyse("SELECT o_id FROM orders", None, CATALOG, Limits(), nameless)
    assert isinstance(query, Query)
    assert not query.variables


@pytest.mark.parametrize(
    ("variable", "sql", "message"),
    [
        (Variable("date", Value("int", 3_000_000)), "SELECT x = x", "give this column a name"),
        (Variable("string", Value("string", "v" * 101)), "SELECT x = x", "give this column a name"),
        (Variable("string", Value("string", "a." * 300 + "a")), "SELECT IDENTIFIER(x) AS y FROM orders", "whole name"),
        (Variable("int", Value("int", 1), " --"), "SET VAR x = DEFAULT", "has no expression"),
    ],
    ids=["a day of no year", "a long value", "a long name", "a default of nothing"],
)
def test_a_forged_variable_is_refused_in_words(variable: Variable, sql: str, message: str) -> None:
    with pytest.raises(SqlError, match=message):
        analyse(sql, None, CATALOG, Limits(), {"x": variable})

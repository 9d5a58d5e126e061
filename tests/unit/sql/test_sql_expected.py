"""A value of a surely wrong type is refused before anything runs; whatever Spark may take is not."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pytest

from skerry.model.errors import SqlError
from tests.unit.sql.sql_cases import query, statement

DAY = dt.date(2024, 2, 29)


@pytest.mark.parametrize(
    ("sql", "values", "says"),
    [
        (
            "SELECT o_id FROM orders WHERE o_id = ?",
            ["abc"],
            "parameter 1: 'abc' has a wrong type: column o_id is a big",
        ),
        ("SELECT o_id FROM orders WHERE ? <= (o_id)", ["abc"], "column o_id is a bigint"),
        ("SELECT o_id FROM orders o WHERE o.o_id <=> ?", [""], "column o_id is a bigint"),
        ("SELECT o_id FROM orders WHERE o_id BETWEEN ? AND ?", [1, "x"], "parameter 2: 'x'"),
        ("SELECT o_id FROM orders WHERE o_id = :id AND o_note = :id", {"id": "x"}, "parameter :id: 'x'"),
        ("SELECT o_id FROM orders WHERE o_id = ?", [DAY], "column o_id is a bigint"),
        ("SELECT o_id FROM orders WHERE o_id = ?", [True], "parameter 1: True"),
        ("SELECT o_id FROM orders WHERE o_id > ?", [b"1"], "column o_id is a bigint"),
        ("SELECT o_id FROM orders WHERE o_id = ?", [[1, 2]], "column o_id is a bigint"),
        ("SELECT o_id FROM orders WHERE o_price < ?", ["cheap"], "is a decimal(15,2)"),
        ("SELECT o_id FROM orders WHERE o_date < ?", ["soon"], "column o_date is a date"),
        ("SELECT o_id FROM orders WHERE o_date < ?", [5], "column o_date is a date"),
        ("SELECT c_id FROM customer WHERE c_vip = ?", ["perhaps"], "column c_vip is a boolean"),
        ("SELECT c_id FROM customer WHERE c_vip = ?", [1], "column c_vip is a boolean"),
        ("SELECT o_id FROM orders WHERE o_id IN (1, ?)", ["abc"], "parameter 1: 'abc' has a wrong type: column o_id"),
        ("SELECT o_id FROM orders WHERE o_id NOT IN (?)", [DAY], "column o_id is a bigint"),
        ("SELECT o_id FROM orders WHERE ? IN (o_id)", ["abc"], "column o_id is a bigint"),
        ("SELECT o_id FROM orders WHERE o_id IN (?)", [[1, 2]], "is a bigint (IN takes a marker for each value)"),
        ("SELECT o_id FROM orders WHERE o_date < ?", ["2023-02-29"], "column o_date is a date"),
        ("SELECT o_id FROM orders WHERE o_date < ?", ["2024-13-01 10:00"], "column o_date is a date"),
        ("SELECT o_id FROM orders LIMIT ?", [-1], "parameter 1: LIMIT takes a number of rows, 0 or more, not -1"),
        ("SELECT o_id FROM orders LIMIT ?", [None], "parameter 1: LIMIT takes a number of rows, 0 or more, not None"),
        ("SELECT o_id FROM orders LIMIT ?", ["3"], "LIMIT takes a number of rows"),
        ("SELECT o_id FROM orders LIMIT 1 OFFSET ?", [1.5], "OFFSET takes a number of rows"),
        ("SELECT 1 WHERE EXISTS (SELECT 1 FROM orders WHERE o_id = ?)", ["abc"], "column o_id is a bigint"),
        ("SELECT o_id FROM orders JOIN item ON i_order = o_id AND i_part = ?", ["abc"], "column i_part is an int"),
    ],
)
def test_a_wrong_type_is_refused_with_its_place(sql: str, values: Any, says: str) -> None:
    with pytest.raises(SqlError) as caught:
        statement(sql, values)
    assert says in caught.value.message


@pytest.mark.parametrize(
    ("sql", "values"),
    [
        ("SELECT o_id FROM orders WHERE o_id = ?", ["5"]),
        ("SELECT o_id FROM orders WHERE o_id = ?", [" +5\t"]),
        ("SELECT o_id FROM orders WHERE o_id = ?", ["1e3"]),
        ("SELECT o_id FROM orders WHERE o_id = ?", [None]),
        ("SELECT o_id FROM orders WHERE o_id = ?", [2.5]),
        ("SELECT o_id FROM orders WHERE o_price = ?", [Decimal("2.50")]),
        ("SELECT o_id FROM orders WHERE o_price = ?", ["NaN"]),
        ("SELECT o_id FROM orders WHERE o_date = ?", ["2024"]),
        ("SELECT o_id FROM orders WHERE o_date = ?", ["2024-02-29T"]),
        ("SELECT o_id FROM orders WHERE o_id IN (?, ?)", [5, "6"]),
        ("SELECT o_id FROM orders WHERE o_note IN (?, ?)", ["2023-02-29", "abc"]),
        ("SELECT o_id FROM orders WHERE o_id + 1 IN (?)", ["abc"]),
        ("SELECT o_id FROM orders WHERE o_date = ?", [dt.datetime(2024, 2, 29)]),
        ("SELECT o_id FROM orders WHERE o_note = ?", [5]),
        ("SELECT o_id FROM orders WHERE o_note = ?", [DAY]),
        ("SELECT c_id FROM customer WHERE c_vip = ?", ["Yes"]),
        ("SELECT c_id FROM customer WHERE c_tags = ?", [["a"]]),
        ("SELECT o_id FROM orders LIMIT ?", [3]),
        # not surely the table's column, or not compared with it alone
        ("SELECT upper(o_note) AS o_id FROM orders HAVING o_id = ?", ["abc"]),
        ("SELECT c_id FROM customer WHERE exists(c_tags, c_id -> c_id = ?)", ["abc"]),
        ("SELECT o_id FROM (SELECT o_note AS o_id FROM orders) WHERE o_id = ?", ["abc"]),
        ("WITH orders AS (SELECT 'x' AS o_id) SELECT o_id FROM orders WHERE o_id = ?", ["abc"]),
        ("SELECT * FROM orders AS o(o_note, a, b, c, o_id) WHERE o_id = ?", ["abc"]),
        ("SELECT o_id FROM orders WHERE CAST(o_id AS STRING) = ?", ["abc"]),
        ("SELECT o_id FROM orders WHERE o_id || ? = 'x'", ["abc"]),
    ],
)
def test_what_spark_may_take_is_taken(sql: str, values: Any) -> None:
    assert query(sql, values).parameters

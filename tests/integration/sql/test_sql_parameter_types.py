"""Parameters of a wrong type: what Skerry refuses before anything runs, one Spark session refuses too."""

from __future__ import annotations

import datetime as dt
import itertools
from decimal import Decimal
from typing import Any

import pytest

from skerry.model.comparable import may_compare
from skerry.spark.literals import to_literal
from tests.unit.sql.impossible_cases import RIGHT, WRONG

pytestmark = pytest.mark.spark

ORDERS = "SELECT 1L AS o_id, DATE'2024-02-29' AS o_date, 'x' AS o_note"

COLUMNS = {
    "tinyint": "5Y",
    "int": "5",
    "bigint": "5L",
    "double": "5.0D",
    "decimal(15,2)": "5.00BD",
    "boolean": "true",
    "string": "'5'",
    "binary": "X'35'",
    "date": "DATE'2024-02-29'",
    "timestamp": "TIMESTAMP'2024-02-29 00:00:00'",
    "timestamp_ntz": "TIMESTAMP_NTZ'2024-02-29 00:00:00'",
}
NOW = dt.datetime(2024, 2, 29, 12)
VALUES: list[Any] = [
    *("", "abc", "5", " 5 ", "+5", "5.0", "1e3", "5d", "nan", "Infinity", "0x10", "yes", "T", "2", "soon", "today"),
    *("2024", "2024-02-29", "2024-02-29T10", "T10:00", "5\u00a0", "\u0665", "\x7f5", "1_000"),
    *("2023-02-29", "2024-13-01 10:00", "2024-00-10T", "-2023-02-29", "2024-02-30 ", "2024-2-3x", "1900-2-29"),
    *(True, 5, 2**40, 10**25, 5.0, Decimal("5.00"), dt.date(2024, 2, 29), NOW, NOW.replace(tzinfo=dt.UTC), b"5", [5]),
]
FORMS = (
    "c = :v",
    "c < :v",
    ":v >= c",
    "c <=> :v",
    "c BETWEEN :v AND :v",
    "c BETWEEN :v AND c",
    "c IN (:v)",
    ":v IN (c)",
    "NOT c IN (:v, c)",
)


def accepts(spark: Any, kind: str, form: str, value: Any) -> bool:
    text = f"SELECT c FROM (SELECT CAST({COLUMNS[kind]} AS {kind}) AS c FROM range(1)) WHERE {form}"
    try:
        spark.sql(text, args={"v": to_literal("v", value)}).collect()
    except Exception:
        return False
    return True


@pytest.mark.timeout(600)  # hundreds of statements
def test_nothing_is_refused_that_one_spark_session_takes(sql_spark: Any) -> None:
    refused = [pair for pair in itertools.product(COLUMNS, VALUES) if not may_compare(*pair)]
    assert len(refused) > 100
    wrongly = [
        (kind, value, form)
        for number, (kind, value) in enumerate(refused)
        # One form each and in turn; all of them for what people do most.
        for form in (FORMS if kind == "bigint" else (FORMS[number % len(FORMS)],))
        if accepts(sql_spark, kind, form, value)
    ]
    assert wrongly == []


@pytest.mark.parametrize("value", ["3", -1, None, 1.5, True, dt.date(2024, 2, 29), b"3", [3]])
@pytest.mark.parametrize("clause", ["LIMIT :v", "LIMIT 1 OFFSET :v"])
def test_what_limit_and_offset_refuse_spark_refuses(sql_spark: Any, clause: str, value: Any) -> None:
    with pytest.raises(Exception, match=r"LIMIT|DATATYPE|INVALID"):
        sql_spark.sql(f"SELECT id FROM range(9) {clause}", args={"v": to_literal("v", value)}).collect()


def test_what_no_row_can_make_right_spark_refuses_and_the_rest_it_takes(sql_spark: Any) -> None:
    def is_taken(sql: str) -> bool:
        try:
            return sql_spark.sql(f"WITH orders AS ({ORDERS}) {sql}").schema is not None  # analysed, not run
        except Exception:
            return False

    assert [sql for sql, _ in WRONG if is_taken(sql)] == []
    assert [sql for sql in RIGHT if not is_taken(sql)] == []

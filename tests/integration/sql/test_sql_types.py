"""The types that we infer are the types that Spark gives."""

from __future__ import annotations

from typing import Any

import pytest
from sqlglot import exp

from skerry.sql.lexer import tokens_of
from skerry.sql.parse import parse_query
from skerry.sql.types import infer

pytestmark = pytest.mark.spark

COLUMNS = {
    "b": "boolean",
    "t": "tinyint",
    "s": "smallint",
    "i": "int",
    "l": "bigint",
    "f": "float",
    "d": "double",
    "m": "decimal(15,2)",
    "n": "decimal(38,10)",
    "k": "decimal(5,0)",
    "c": "string",
    "day": "date",
    "ts": "timestamp",
}
# Every one of them is known; what is not known at all stands in UNKNOWN.
SCALARS = """
m * (1 - m); m * (1 - m) * (1 + m); m + i; m - l; m * i; m / i; i / i; i / l; i + l; t + s; i % l; m % k; n * m
n / m; n + n; n - m; m * 0.2; 0.5 * m; 100.00 * m / m; m / 7.0; 0.0001000000 * m; d * m; d + i; d / m; i div l; -m
+i; - d; (1) * m; 10 * m; 1.5; .5; 5.; 0.05; 0.0; 1; 3000000000; 5L; 'x'; TRUE; NULL; DATE '2020-01-01'
CAST(i AS decimal(10,2)); CAST(c AS date); c::int; TRY_CAST(c AS bigint); CAST(m AS decimal)
CASE WHEN b THEN m * (1 - m) ELSE 0 END; CASE WHEN b THEN 1 ELSE 0 END; CASE WHEN b THEN i END
CASE i WHEN 1 THEN m ELSE k END; CASE WHEN b THEN i ELSE l END; CASE WHEN b THEN d ELSE i END; coalesce(i, l)
coalesce(NULL, m); if(b, m, 0); nvl(c, 'x'); greatest(m, k); least(i, 3); year(day); extract(YEAR FROM day)
extract(MONTH FROM ts); day + INTERVAL 1 DAY; day - INTERVAL 3 MONTHS; day + INTERVAL 1 YEAR; date_add(day, 3)
datediff(day, day); substring(c, 1, 2); substring(c FROM 1 FOR 2); upper(c); trim(c); length(c); c || 'x'; i = l
c LIKE 'a%'; i IN (1, 2); i BETWEEN 1 AND 2; c IS NULL; NOT b; b AND b; i <=> 1; abs(m); abs(i); isnull(i)
startswith(c, 'x'); datediff(HOUR, ts, ts); datediff(DAY, day, ts); -2147483648; - 2147483648; -2147483647; -3000000000
extract(HOUR FROM ts); extract(DAYS FROM day)
"""
AGGREGATES = """
sum(i); sum(l); sum(t); sum(m); sum(n); sum(k); sum(d); sum(f); avg(i); avg(m); avg(k); avg(d); count(*)
count(DISTINCT i); min(m); max(c); min(day); max(b); sum(m * (1 - m)); sum(m * (1 - m) * (1 + m))
sum(CASE WHEN b THEN 1 ELSE 0 END); 100.00 * sum(m * (1 - m)) / sum(m * (1 - m)); sum(m) / 7.0; 0.2 * avg(m)
sum(m * i) * 0.0001000000; stddev(i); variance(m); count_if(b); bool_and(b); any_value(m); first(c)
sum(i) FILTER (WHERE b); sum(DISTINCT m); approx_count_distinct(i)
"""
UNKNOWN = """
f + i; f * l; day - day; floor(m); round(m, 1); ts + INTERVAL 1 DAY; concat(c, c); -1 * m; m * f; unknowable
sum(c); avg(n); extract(HOUR FROM ts - ts); extract(MONTH FROM INTERVAL 5 MONTHS); extract(YEAR FROM c)
"""


def listed(text: str) -> list[str]:
    return [item.strip() for line in text.strip().splitlines() for item in line.split(";")]


def inferred(item: str) -> str | None:
    text = f"SELECT {item} AS x FROM types"
    tree = parse_query(tokens_of(text, 1000), text)
    assert isinstance(tree, exp.Select)
    return infer(tree.expressions[0], lambda column: COLUMNS.get(column.name.lower()))


def test_inferred_types_are_sparks(spark_engine: Any) -> None:
    session = spark_engine.session
    ddl = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
    session.createDataFrame([], ddl).createOrReplaceTempView("types")
    for text in (SCALARS, AGGREGATES):
        items = listed(text)
        struct = session.sql(f"SELECT {', '.join(items)} FROM types").schema
        spark = [each.dataType.simpleString() for each in struct.fields]
        assert {item: inferred(item) for item in items} == dict(zip(items, spark, strict=True))


@pytest.mark.parametrize("item", listed(UNKNOWN))
def test_what_is_not_certain_is_not_said(item: str) -> None:
    assert inferred(item) is None

"""Estimates: from statistics where they are, sober guesses where not."""

from __future__ import annotations

import msgspec
import pytest
from sqlglot import exp

from skerry.model.table import Column, ColumnStats, PartStats, TablePart
from skerry.plan.constant import constant, place
from skerry.plan.estimate import Estimate, Estimator
from skerry.sql.lexer import tokens_of
from skerry.sql.parse import parse_query

ESTIMATOR = Estimator()
DAY_1992, DAY_1998 = 8035, 10440  # 1992-01-01 and 1998-08-02


def condition(text: str) -> exp.Expr:
    sql = f"SELECT * FROM t WHERE {text}"
    where: exp.Expr = parse_query(tokens_of(sql, 50), sql).args["where"].this
    return where


def part(table: str, rows: int | None, *columns: tuple[str, ColumnStats], member: str = "oslo") -> TablePart:
    listed = tuple(Column(stats.name, kind) for kind, stats in columns)
    return TablePart(table, member, listed, rows, 1 << 30, 1, 1, PartStats(tuple(stats for _, stats in columns)))


ORDERS = part(
    "orders",
    1_500_000,
    ("bigint", ColumnStats("o_orderkey", 1, 6_000_000, 0, 1_500_000)),
    ("bigint", ColumnStats("o_custkey", 1, 149_999, 0, 100_000)),
    ("date", ColumnStats("o_orderdate", DAY_1992, DAY_1998, 0, 2406)),
    ("string", ColumnStats("o_orderpriority", "1-URGENT", "5-LOW", 0, 5, 12.0)),
    ("decimal(15,2)", ColumnStats("o_totalprice", "857.71", "555285.16", 0, None)),
    ("string", ColumnStats("o_note", None, None, 300_000, 1000)),
)
CUSTOMER = part(
    "customer",
    150_000,
    ("bigint", ColumnStats("c_custkey", 1, 150_000, 0, None)),
    ("bigint", ColumnStats("c_nationkey", 0, 24, 0, None)),
)
LINEITEM = part(
    "lineitem",
    6_000_000,
    ("bigint", ColumnStats("l_orderkey", 1, 6_000_000, 0, 1_500_000)),
    ("bigint", ColumnStats("l_partkey", 1, 200_000, 0, 200_000)),
    ("bigint", ColumnStats("l_suppkey", 1, 10_000, 0, 10_000)),
)
PARTSUPP = part(
    "partsupp",
    800_000,
    ("bigint", ColumnStats("ps_partkey", 1, 200_000, 0, 200_000)),
    ("bigint", ColumnStats("ps_suppkey", 1, 10_000, 0, 10_000)),
)


def orders(*conditions: str) -> Estimate:
    return ESTIMATOR.scan([ORDERS], [condition(each) for each in conditions])


@pytest.mark.parametrize(
    ("text", "share"),
    [
        ("o_orderdate >= DATE '1994-01-01' AND o_orderdate < DATE '1994-01-01' + INTERVAL 1 YEAR", 365 / 2406),
        ("o_orderdate BETWEEN DATE '1995-01-01' AND '1996-12-31'", 731 / 2406),
        ("DATE '1996-01-01' > o_orderdate", 1461 / 2406),
        ("o_orderdate < cast('1996-01-01' AS date)", 1461 / 2406),
        ("o_orderdate > DATE '2001-01-01'", 0),
        ("o_orderkey = 17", 1 / 1_500_000),
        ("o_orderkey = ?", 1 / 1_500_000),
        ("o_orderpriority = '1-URGENT'", 0.2),
        ("o_orderpriority IN ('1-URGENT', '2-HIGH')", 0.4),
        ("o_orderpriority <> '1-URGENT'", 0.8),
        ("NOT o_orderpriority IN ('1-URGENT')", 0.8),
        ("o_orderpriority = '1-URGENT' OR o_orderpriority = '2-HIGH'", 0.36),
        ("o_totalprice < 278071.435", 0.5),
        ("o_note IS NULL", 0.2),
        ("o_note IS NOT NULL", 0.8),
        ("o_note = 'x'", 0.8 / 1000),
        ("o_note LIKE '%x%'", 0.15),
        ("o_note LIKE '%x%y%'", 0.03),
        ("o_custkey < o_orderkey", 0.5),
        ("o_note LIKE '%'", 1),
        ("abs(o_custkey) > 7", 1 / 3),
        ("o_orderkey < :p", 1 / 3),
        ("year(o_orderdate) = 1995", 1 / 7.58),
        ("true", 1),
    ],
)
def test_a_condition_keeps_about_the_rows_it_should(text: str, share: float) -> None:
    assert orders(text).rows == pytest.approx(1_500_000 * share, rel=0.02, abs=1)


def test_filters_thin_out_the_values_of_all_columns() -> None:
    kept = orders("o_orderdate < DATE '1992-01-11'")
    assert kept.rows == pytest.approx(1_500_000 * 10 / 2406, rel=0.01)
    assert kept.ndv["o_orderdate"] == pytest.approx(10)
    assert kept.ndv["o_orderkey"] == pytest.approx(kept.rows, rel=0.01)
    assert kept.ndv["o_orderpriority"] == pytest.approx(5)
    assert kept.ndv["o_custkey"] < kept.rows


def test_a_foreign_key_finds_its_row() -> None:
    joined = ESTIMATOR.join(orders(), ESTIMATOR.scan([CUSTOMER]), [("o_custkey", "c_custkey")])
    assert joined.rows == pytest.approx(1_500_000)
    one_nation = ESTIMATOR.scan([CUSTOMER], [condition("c_nationkey = 3")])
    assert one_nation.rows == pytest.approx(6000)
    joined = ESTIMATOR.join(orders(), one_nation, [("o_custkey", "c_custkey")])
    assert joined.rows == pytest.approx(60_000)


def test_a_key_of_two_columns_is_bounded_by_the_rows_of_its_table() -> None:
    keys = [("l_partkey", "ps_partkey"), ("l_suppkey", "ps_suppkey")]
    joined = ESTIMATOR.join(ESTIMATOR.scan([LINEITEM]), ESTIMATOR.scan([PARTSUPP]), keys)
    assert joined.rows == pytest.approx(6_000_000)


def test_a_condition_beside_a_key_is_a_condition() -> None:
    supplier = part(
        "supplier",
        10_000,
        ("bigint", ColumnStats("s_suppkey", 1, 10_000, 0, 10_000)),
        ("bigint", ColumnStats("s_nationkey", 0, 24, 0, 25)),
    )
    left = ESTIMATOR.join(ESTIMATOR.scan([LINEITEM]), ESTIMATOR.scan([CUSTOMER]), [])
    sold = msgspec.structs.replace(left, rows=6_000_000.0, base_rows=6_000_000.0)
    keys = [("l_suppkey", "s_suppkey"), ("c_nationkey", "s_nationkey")]
    assert ESTIMATOR.join(sold, ESTIMATOR.scan([supplier]), keys).rows == pytest.approx(6_000_000 / 25)


def test_a_range_with_both_ends_has_one_value_more() -> None:
    discount = part("l", 1100, ("decimal(15,2)", ColumnStats("x", "0.00", "0.10", 0, 11)))
    kept = ESTIMATOR.scan([discount], [condition("x BETWEEN 0.05 AND 0.07")])
    assert kept.rows == pytest.approx(300)
    assert ESTIMATOR.scan([discount], [condition("x < 0.05")]).rows == pytest.approx(500)


def test_outer_joins_keep_a_side_and_a_join_without_keys_is_a_product() -> None:
    few = ESTIMATOR.scan([CUSTOMER], [condition("c_custkey = 7")])
    kept = ESTIMATOR.join(orders(), few, [("o_custkey", "c_custkey")], "left")
    assert kept.rows == pytest.approx(1_500_000)
    assert ESTIMATOR.join(orders(), few, []).rows == pytest.approx(1_500_000)


def test_semi_and_anti_share_the_rows() -> None:
    some = ESTIMATOR.scan([CUSTOMER], [condition("c_nationkey = 3")])
    keys = [("o_custkey", "c_custkey")]
    semi, anti = ESTIMATOR.semi(orders(), some, keys), ESTIMATOR.semi(orders(), some, keys, is_anti=True)
    assert semi.rows == pytest.approx(1_500_000 / 25)
    assert semi.rows + anti.rows == pytest.approx(1_500_000)
    assert semi.ndv["o_custkey"] <= 6000


def test_groups_are_bounded_by_rows_and_by_the_values_of_the_keys() -> None:
    assert ESTIMATOR.group(orders(), ["o_orderpriority"]).rows == 5
    assert ESTIMATOR.group(orders(), []).rows == 1
    assert ESTIMATOR.group(orders(), ["o_orderkey", "o_custkey"]).rows == 1_500_000
    year = condition("year(o_orderdate) = 1").this
    assert ESTIMATOR.group(orders(), [year]).rows == pytest.approx(7.58, rel=0.01)


def test_aliases_tell_columns_of_one_name_apart() -> None:
    left, right = ESTIMATOR.scan([CUSTOMER], alias="A"), ESTIMATOR.scan([CUSTOMER], alias="b")
    joined = ESTIMATOR.join(left, right, [("a.c_nationkey", "b.c_nationkey")])
    assert joined.rows == pytest.approx(150_000**2 / 25)
    assert joined.key(exp.column("c_custkey")) is None
    assert joined.key(exp.column("c_custkey", table="a")) == "a.c_custkey"


def test_columns_limits_and_unions() -> None:
    keys = ESTIMATOR.keep(orders(), ["o_orderkey", "nobody"], extra_bytes=5)
    assert (keys.rows, keys.row_bytes, list(keys.ndv)) == (1_500_000, 13, ["o_orderkey"])
    few = ESTIMATOR.limit(keys, 10)
    assert (few.rows, few.ndv["o_orderkey"], few.size_bytes) == (10, 10, 130)
    assert ESTIMATOR.limit(few, 99).rows == 10
    assert ESTIMATOR.union([keys, few]).rows == 1_500_010
    assert orders().distinct(exp.column("o_orderpriority")) == 5
    assert few.distinct(exp.Literal.number(1)) == 1


def test_parts_add_up() -> None:
    low = part("t", 100, ("bigint", ColumnStats("k", 1, 100, 0, 100)))
    high = part("t", 300, ("bigint", ColumnStats("k", 101, 400, 0, 300)), member="bergen")
    both = ESTIMATOR.scan([low, high])
    assert (both.rows, both.ndv["k"]) == (400, 400)
    assert ESTIMATOR.scan([low, high], [condition("k <= 200")]).rows == pytest.approx(200)


def test_without_statistics_guesses_are_as_before() -> None:
    bare = TablePart("t", "oslo", (Column("a", "int"), Column("s", "string")), 900, 9000, 1, 1)
    assert ESTIMATOR.scan([bare], [condition("abs(a) > 3")]).rows == pytest.approx(300)
    assert ESTIMATOR.scan([bare], [condition("s = 'x'")]).rows == pytest.approx(10)
    assert ESTIMATOR.scan([bare], columns=["a"]).row_bytes == 4
    uncounted = TablePart("t", "oslo", (Column("a", "bigint"),), None, 8000, 1, 1)
    assert ESTIMATOR.scan([uncounted]).rows == 2000


@pytest.mark.parametrize(
    ("text", "kind", "expected"),
    [
        ("DATE '1970-01-03'", "date", 2),
        ("DATE '1970-01-31' + INTERVAL '1' MONTH", "date", 58),
        ("DATE '1970-01-03' - INTERVAL 1 DAY", "date", 1),
        ("'1970-01-02'", "date", 1),
        ("TIMESTAMP '1970-01-01 00:00:01'", "timestamp", 1e6),
        ("1.5BD * 2", "decimal(5,2)", 3),
        ("-(3L)", "bigint", -3),
        ("'x'", "bigint", None),
        ("DATE '1970-01-03'", "bigint", None),
    ],
)
def test_constants_have_a_place(text: str, kind: str, expected: float | None) -> None:
    value = constant(condition(f"a = {text}").args["expression"])
    assert value is not None
    assert place(value, kind) == expected


@pytest.mark.parametrize("text", ["b", "1 / 0", "DATE 'soon'", "b + 1", "rand()", "INTERVAL 1 DAY"])
def test_what_is_no_constant_has_no_value(text: str) -> None:
    assert constant(condition(f"a = {text}").args["expression"]) is None

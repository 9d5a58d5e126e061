"""What holds for plans beyond their text: ids, estimates, limits, sort keys."""

from __future__ import annotations

import pytest
import xxhash

from skerry.catalog.catalog import Catalog
from skerry.config import parse
from skerry.model.fragment import SortKey
from skerry.model.limits import Limits
from skerry.model.table import Column, TablePart
from skerry.plan.cut import Site, make_plan
from skerry.plan.sortable import keys_are_mergeable
from skerry.sql.shape import result_shape
from skerry.sql.statement import Query, analyse, render
from tests.plans.plan_cases import LIMITS, bound, planned

JOIN = "SELECT c_name FROM orders JOIN customer ON o_cust = c_id"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (JOIN, f"  {JOIN} ;"),
        (JOIN, JOIN.replace(" ", "\n")),
        ("SELECT id FROM events", "select id from Events AS events"),
        ("(SELECT id FROM bergen.events)", "SELECT id FROM bergen.events"),
    ],
)
def test_equal_statements_have_one_plan(one: str, other: str) -> None:
    assert planned(one).plan_id == planned(other).plan_id


@pytest.mark.parametrize(
    "other",
    [
        JOIN.replace("c_name", "c_name AS name"),
        JOIN + " WHERE c_id = 1",
        JOIN + " LIMIT 1",
        JOIN.replace("JOIN", "LEFT JOIN"),
    ],
)
def test_other_statements_have_other_plans(other: str) -> None:
    assert planned(JOIN).plan_id != planned(other).plan_id


def test_values_of_parameters_are_no_part_of_the_plan() -> None:
    sql = "SELECT o_id FROM orders JOIN customer ON o_cust = c_id WHERE c_nation = ?"
    assert planned(sql, parameters=[1]) == planned(sql, parameters=["2"])
    named = planned(sql.replace("?", ":nation"), parameters={"nation": 1})
    assert named.parameters == ("nation",)
    assert named.plan_id != planned(sql, parameters=[1]).plan_id


def test_the_plan_depends_on_who_gets_the_result() -> None:
    assert planned(JOIN, "oslo").plan_id != planned(JOIN, "bergen").plan_id


def test_no_broadcast_beyond_its_limit() -> None:
    assert "BROADCAST" in planned(JOIN).fragments[-1].sql
    assert "BROADCAST" not in planned(JOIN, limits=Limits(broadcast_bytes=0)).fragments[-1].sql


@pytest.mark.parametrize("rules", ["all", "none"])
def test_no_broadcast_of_a_part_that_is_there_and_large(rules: str) -> None:
    """Few rows of `sales` arrive, but very many of them are there already."""
    plan = planned("SELECT o_id, s_price FROM orders JOIN sales ON s_cust = o_cust WHERE o_total < 3", rules=rules)
    root = plan.fragments[-1]
    assert len(root.leaves) > 1
    assert "BROADCAST(`sales`" not in root.sql


@pytest.mark.parametrize(("rows", "is_through_driver"), [(4096, True), (4097, False)])
def test_the_driver_takes_a_page_of_rows(rows: int, is_through_driver: bool) -> None:
    plan = planned(f"SELECT id FROM events LIMIT {rows}")
    assert {fragment.output.through_driver for fragment in plan.fragments} == {is_through_driver}


def test_the_driver_takes_a_page_of_bytes() -> None:
    wide = ", ".join(f"id AS c{number}" for number in range(20))
    assert not planned(f"SELECT {wide} FROM events LIMIT 4096").fragments[0].output.through_driver
    assert planned(f"SELECT {wide} FROM events LIMIT 100").fragments[0].output.through_driver


def test_a_literal_that_looks_like_a_placeholder_stays_one() -> None:
    """Placeholders carry a hash of the statement's text, which that text does not hold."""
    plain = bound("SELECT o_id FROM orders JOIN customer ON o_cust = c_id")
    nonce = xxhash.xxh3_64_hexdigest(render(plain.tree).encode())
    plan = planned(f"SELECT 'leaf_1_{nonce}' AS x FROM orders JOIN customer ON o_cust = c_id")
    (root,) = [fragment for fragment in plan.fragments if fragment.output.edge == plan.rows.edge]
    assert f"'leaf_1_{nonce}'" in root.sql
    assert all(nonce not in leaf.placeholder for leaf in root.leaves)


# --- sort keys --------------------------------------------------------------------------------------
TYPES = (
    "a tinyint, b smallint, c int, d bigint, e float, f double, g decimal(38,18), h string, i binary, j date, "
    "k timestamp, l timestamp_ntz, m boolean, n array<int>, o map<string;int>, p struct<d:array<int>>, "
    "q string collate UTF8_LCASE, r interval day to second, s variant, t void, u char(3), v varchar(3)"
)
COLUMNS = tuple(Column(name, type_.replace(";", ",")) for name, type_ in (c.split(" ", 1) for c in TYPES.split(", ")))
CONFIG = parse("cluster: c\nmembers: {oslo: {address: 'h:1'}, bergen: {address: 'h:2'}}")
CATALOG = Catalog(CONFIG)
CATALOG.learn("oslo", [TablePart("types", "oslo", COLUMNS, 10, 10, 1, 1)], {})
CATALOG.learn("bergen", [TablePart("other", "bergen", (Column("d", "string"),), 10, 10, 1, 1)], {})


def mergeable(sql: str) -> bool:
    query = analyse(sql, None, CATALOG, LIMITS)
    assert isinstance(query, Query)
    return keys_are_mergeable(query, result_shape(query))


@pytest.mark.parametrize("column", [column.name for column in COLUMNS])
def test_only_types_with_a_kernel_are_merged(column: str) -> None:
    has_kernel = column in "abcdefghijklm"
    assert mergeable(f"SELECT {column} FROM types ORDER BY {column}") == has_kernel
    assert mergeable(f"SELECT x.* FROM types AS x ORDER BY {column} DESC") == has_kernel
    assert mergeable(f"SELECT max({column}) AS m FROM types GROUP BY c ORDER BY m") == has_kernel


YES = """
SELECT d + 1 AS x FROM types ORDER BY x
SELECT -(d) * 2 AS x FROM types ORDER BY x
SELECT d % 2 AS x, d div 2 AS y FROM types ORDER BY x, y
SELECT h || 'x' AS x FROM types ORDER BY x
SELECT upper(h) AS x FROM types ORDER BY x
SELECT CAST(n AS string) AS x FROM types ORDER BY x
SELECT h::decimal(10, 2) AS x FROM types ORDER BY x
SELECT count(DISTINCT n) AS x FROM types ORDER BY x
SELECT sum(DISTINCT d) AS x FROM types GROUP BY c ORDER BY x
SELECT max(d) FILTER (WHERE c > 1) AS x FROM types GROUP BY c ORDER BY x
SELECT row_number() OVER (ORDER BY n) AS x FROM types ORDER BY x
SELECT coalesce(h, 'none') AS x FROM types ORDER BY x
SELECT types.d FROM types JOIN other ON h = other.d ORDER BY types.d
SELECT 1 AS x FROM types ORDER BY x
SELECT h, d FROM types ORDER BY 2, 1
SELECT h, d FROM types ORDER BY ALL
""".strip().split("\n")
NO = """
SELECT j - j AS x FROM types ORDER BY x
SELECT k - k AS x FROM types ORDER BY x
SELECT j + r AS x FROM types ORDER BY x
SELECT n || n AS x FROM types ORDER BY x
SELECT p.d AS x FROM types ORDER BY x
SELECT d FROM types JOIN other ON h = other.d ORDER BY d
SELECT collect_list(d) AS x FROM types GROUP BY c ORDER BY x
SELECT h COLLATE UTF8_LCASE AS x FROM types ORDER BY x
SELECT upper(q) AS x FROM types ORDER BY x
SELECT coalesce(h, q) AS x FROM types ORDER BY x
SELECT CAST(d AS interval day) AS x FROM types ORDER BY x
SELECT d FROM types ORDER BY h
SELECT h, d FROM types
SELECT d FROM types UNION ALL SELECT d FROM types ORDER BY d
SELECT d FROM (SELECT n AS d FROM types) AS t ORDER BY d
WITH t AS (SELECT n AS d FROM types) SELECT d FROM t ORDER BY d
SELECT d FROM types AS t(n, b, c, a, e, f, g, h, i, j, k, l, m, d, o, p, q, r, s, t, u, v) ORDER BY d
SELECT d FROM types LATERAL VIEW explode(n) x AS d2 ORDER BY d
SELECT -d AS d, d + 1 AS y FROM types ORDER BY d + 1
SELECT n, d FROM types ORDER BY ALL
SELECT p.* FROM types ORDER BY d
SELECT * EXCEPT (a) FROM types ORDER BY d
SELECT x.d FROM types AS x JOIN types AS x ON true ORDER BY x.d
""".strip().split("\n")


@pytest.mark.parametrize("sql", YES)
def test_members_merge(sql: str) -> None:
    assert mergeable(sql)


@pytest.mark.parametrize("sql", NO)
def test_spark_sorts(sql: str) -> None:
    assert not mergeable(sql)


def test_keys_and_their_nulls() -> None:
    plan = planned("SELECT id, ts, kind FROM events ORDER BY kind DESC, ts, id DESC NULLS FIRST, 2 NULLS LAST")
    assert plan.finish.keys == (
        SortKey(2, True, False),
        SortKey(1, False, True),
        SortKey(0, True, True),
        SortKey(1, False, False),
    )
    assert {fragment.output.keys for fragment in plan.fragments} == {plan.finish.keys}


def test_without_data_members_holding_tables_the_first_runs_it() -> None:
    query = analyse("SELECT 1", None, CATALOG, LIMITS)
    assert isinstance(query, Query)
    plan = make_plan(query, CATALOG, Site("nobody", ("oslo", "bergen")), LIMITS)
    assert [(fragment.member, fragment.output.receivers) for fragment in plan.fragments] == [("oslo", ("nobody",))]


def test_rows_are_narrow_when_they_are_copies_of_short_rows() -> None:
    def narrow(sql: str, size_bytes: int = 100_000, rows: int | None = 1000) -> list[bool]:
        columns = (Column("id", "int"), Column("s", "string"))
        catalog = Catalog(CONFIG)
        for name in ("oslo", "bergen"):
            catalog.learn(name, [TablePart("t", name, columns, rows, size_bytes, 1, 1)], {})
        query = analyse(sql, None, catalog, LIMITS)
        assert isinstance(query, Query)
        plan = make_plan(query, catalog, Site("oslo", ("oslo", "bergen")), LIMITS)
        return [fragment.is_narrow for fragment in plan.fragments]

    assert narrow("SELECT id, s FROM t") == [True, True]
    assert narrow("SELECT id, s || s FROM t") == [False, False]
    assert narrow("SELECT id, s FROM t", size_bytes=2_000_000) == [False, False]
    assert narrow("SELECT id, s FROM t", rows=None) == [False, False]
    # The scan copies, the rest does not.
    assert sorted(narrow("SELECT id, collect_list(s) FROM t GROUP BY id")) == [False, True]
    # Eleven mentions of a table make a row of eleven.
    assert narrow("SELECT * FROM oslo.t " + "".join(f", oslo.t AS t{n}" for n in range(10))) == [False]

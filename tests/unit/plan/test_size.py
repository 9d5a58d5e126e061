"""How large results are taken to be: only what nothing joins is a product."""

from __future__ import annotations

import pytest

from skerry.catalog.catalog import Catalog
from skerry.catalog.topology import Topology
from skerry.config import parse
from skerry.model.fragment import Plan
from skerry.model.limits import Limits
from skerry.model.table import ColumnStats, PartStats, TablePart
from skerry.plan.cut import Site, make_plan
from skerry.plan.egress import check_egress, egress_rules
from skerry.plan.rules import Rules, read_rules
from skerry.sql.statement import Query, analyse

CONFIG = parse("""
cluster: c
members:
  oslo:
    address: h:1
    tables:
      orders: {format: parquet, path: o, columns: {o_id: bigint, o_cust: bigint, o_total: bigint, k: bigint}}
  bergen:
    address: h:2
    tables:
      customer: {format: parquet, path: c, columns: {c_id: bigint, c_name: string, k: bigint}}
      nation: {format: parquet, path: n, columns: {n_id: bigint}}
  front: {address: 'h:3', role: lite}
links:
  - {between: [oslo, bergen], mbit: 100}
  - {between: [bergen, front], mbit: 100, query_bytes: 1 GiB}
  - {between: [oslo, front], mbit: 100, query_bytes: 1 GiB}
""")
TOPOLOGY = Topology(CONFIG)
ROWS = {"orders": 1_500_000, "customer": 150_000, "nation": 25}
NDV = {"o_id": 1_500_000, "o_cust": 150_000, "o_total": 50_000, "c_id": 150_000, "c_name": 100_000, "n_id": 25}


def catalog(*, has_stats: bool) -> Catalog:
    found = Catalog(CONFIG)
    for name, member in CONFIG.members.items():
        parts = []
        for table, each in member.tables.items():
            columns = [ColumnStats(c.name, nulls=0, ndv=float(NDV.get(c.name, 150_000))) for c in each.columns]
            stats = PartStats(tuple(columns)) if has_stats else None
            parts.append(TablePart(table, name, each.columns, ROWS[table], ROWS[table] * 20, 1, 1, stats))
        found.learn(name, parts, {})
    return found


def planned(sql: str, *, has_stats: bool = True, rules: str = "all") -> Plan:
    known = catalog(has_stats=has_stats)
    query = analyse(sql, None, known, Limits())
    assert isinstance(query, Query)
    site = Site("front", ("oslo", "bergen"), Rules(read_rules(rules)), TOPOLOGY)
    return make_plan(query, known, site, Limits())


def rows(sql: str, *, has_stats: bool = True, rules: str = "all") -> int:
    return planned(sql, has_stats=has_stats, rules=rules).fragments[-1].estimated_rows


FIRST = "(SELECT o_cust, sum(o_total) AS s FROM orders GROUP BY o_cust ORDER BY s DESC LIMIT 10) AS t"
RANKED = "(SELECT o_cust, k, row_number() OVER (PARTITION BY o_cust ORDER BY o_total) AS r FROM orders) AS t"
MADE = "(SELECT o_id, o_cust + 1 AS made FROM orders) AS t"
MATCHED = [
    f"SELECT c_name, s FROM {FIRST} JOIN customer ON o_cust = c_id",
    f"SELECT c_name FROM {RANKED} JOIN customer ON o_cust = c_id WHERE r = 1",
    f"SELECT c_name FROM {RANKED} JOIN customer ON t.o_cust = customer.c_id",
    f"SELECT c_name FROM {RANKED} LEFT JOIN customer ON t.o_cust = customer.c_id",
    f"SELECT c_name FROM {RANKED} FULL JOIN customer ON t.o_cust = customer.c_id",
    f"SELECT c_name FROM {RANKED}, customer WHERE o_cust = c_id",
    f"SELECT c_name FROM {RANKED} CROSS JOIN customer WHERE c_id = o_cust",
    f"SELECT c_name FROM {RANKED} JOIN customer USING (k)",
    f"SELECT c_name FROM {RANKED} NATURAL JOIN customer",
    f"SELECT c_name FROM {RANKED} JOIN customer ON (o_cust <=> c_id)",
    f"SELECT c_name FROM {MADE} JOIN customer ON made = c_id",
    f"SELECT c_name FROM customer JOIN {MADE} ON made = c_id",
    "SELECT c_name FROM customer JOIN (SELECT *, rand() AS r FROM orders) AS t ON o_cust = c_id",
    "WITH t AS (SELECT o_cust + rand() AS made FROM orders) SELECT c_name FROM t, customer WHERE made = c_id",
    "WITH t AS (SELECT o_cust, rand() AS r FROM orders) SELECT c_name FROM customer JOIN t ON t.o_cust = c_id",
    "SELECT c_name, o_id FROM orders JOIN customer ON o_cust <=> c_id",
    "SELECT c_name, o_id FROM orders, customer WHERE o_cust <=> c_id",
    "SELECT c_name, o_id FROM orders JOIN customer ON o_cust = c_id + 1",
    "SELECT c_name, o_id FROM orders JOIN customer ON o_cust = c_id OR (o_cust + 1 = c_id AND o_id > 5)",
    f"SELECT c_name FROM nation, {RANKED}, customer WHERE o_cust = c_id AND r = n_id",
]


@pytest.mark.parametrize("sql", MATCHED)
@pytest.mark.parametrize("has_stats", [True, False])
@pytest.mark.parametrize("rules", ["all", "none"])
def test_what_an_equality_joins_is_no_product(sql: str, has_stats: bool, rules: str) -> None:
    plan = planned(sql, has_stats=has_stats, rules=rules)
    # Without statistics values are guessed, and a join by two of them may be a few times larger.
    assert 1 <= plan.fragments[-1].estimated_rows <= (1 if has_stats else 3) * (ROWS["orders"] + ROWS["customer"])
    check_egress(plan, egress_rules(CONFIG, TOPOLOGY))


def test_rows_that_a_query_in_from_limits_are_as_few_when_they_are_joined() -> None:
    assert rows(MATCHED[0]) == 10
    assert rows(MATCHED[0], has_stats=False) <= 100


@pytest.mark.parametrize(
    ("sql", "count"),
    [
        ("SELECT c_name, n_id FROM customer CROSS JOIN nation", 25 * 150_000),
        ("SELECT c_name, n_id FROM customer, nation WHERE c_id > n_id", 25 * 150_000),
        (
            "SELECT c_name FROM customer, (SELECT n_id, row_number() OVER (ORDER BY n_id) FROM nation) AS t",
            25 * 150_000,
        ),
        # The equality is of two others.
        ("SELECT c_name FROM nation, orders, customer WHERE o_cust <=> c_id", 25 * 1_500_000),
        (
            "SELECT c_name FROM nation, orders, (SELECT c_id, c_name, rand() FROM customer) WHERE o_cust = c_id",
            25 * 1_500_000,
        ),
    ],
)
def test_what_nothing_joins_is_a_product(sql: str, count: int) -> None:
    assert rows(sql) == pytest.approx(count, rel=0.01)

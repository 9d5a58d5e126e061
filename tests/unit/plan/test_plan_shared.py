"""A query that is named twice travels once, whole, where that is less than each mention reduced in its own way."""

from __future__ import annotations

import msgspec
import pytest

from skerry.model.fragment import Plan, TableLeaf
from skerry.model.table import ColumnStats, PartStats, TablePart
from skerry.plan.cut import make_plan
from skerry.plan.rules import Rules
from skerry.plan.site import Site
from tests.plans.plan_cases import LIMITS, ROWS, bound, cluster

NDV = {"o_cust": 100_000.0, "c_id": 150_000.0, "c_nation": 25.0}


def with_stats(part: TablePart) -> TablePart:
    stats = PartStats(tuple(ColumnStats(column.name, ndv=NDV.get(column.name, 10.0)) for column in part.columns))
    return msgspec.structs.replace(part, stats=stats)


def planned(sql: str) -> Plan:
    config, catalog = cluster()
    for name, member in config.members.items():
        parts = [
            with_stats(TablePart(table, name, each.columns, ROWS[name, table], ROWS[name, table] * 20, 1, 1))
            for table, each in member.tables.items()
        ]
        catalog.learn(name, parts, {})
    return make_plan(bound(sql), catalog, Site("bergen", ("oslo", "bergen", "tromso"), Rules()), LIMITS)


@pytest.mark.parametrize(("condition", "times"), [("x.c_nation > 3 AND y.c_nation > 4", 1), ("y.c_id = 7", 2)])
def test_a_with_query_named_twice(condition: str, times: int) -> None:
    plan = planned(
        "WITH d AS (SELECT o_cust AS k, count(*) AS n FROM orders GROUP BY o_cust)"
        " SELECT a.k, b.n FROM customer AS x, customer AS y, d AS a, d AS b"
        f" WHERE x.c_id = a.k AND y.c_id = b.k AND x.c_name = y.c_name AND {condition}"
    )
    reading = [each for each in plan.fragments for leaf in each.leaves if leaf == TableLeaf(leaf.placeholder, "orders")]
    assert len(reading) == times

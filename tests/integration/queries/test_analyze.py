"""What Spark finds out by ANALYZE TABLE is what footers and sample say, for every type there is."""

from __future__ import annotations

import json

import pytest

from skerry.catalog.statistics import gather
from skerry.model.limits import Limits
from skerry.model.table import ColumnStats
from skerry.plan.analyze import read_found
from skerry.testing.cluster import LocalCluster
from tests.integration.queries.conftest import Ask

pytestmark = pytest.mark.spark

TABLES = ("nasty", "orders", "lineitem")


def check(cluster: LocalCluster, ask: Ask, table: str) -> None:
    for row in ask(f"ANALYZE TABLE {table}").to_pylist():
        member = cluster.members[row["member"]]
        snapshot = cluster.call(member.tables.snapshot(table))
        assert row["rows"] == snapshot.part.rows
        assert set(json.loads(row["columns"])) == {column.name for column in snapshot.part.columns}
        found = {each.name: each for each in read_found(row["columns"], snapshot.part.columns).columns}
        for expected in gather(snapshot.files.files, snapshot.part.columns, Limits()).columns:
            same(found[expected.name], expected)


def same(found: ColumnStats, expected: ColumnStats) -> None:
    if expected.is_exact and found.is_exact:
        assert (found.low, found.high) == (expected.low, expected.high), found.name
    if expected.nulls is not None:
        assert found.nulls == expected.nulls, found.name
    if expected.ndv and found.ndv:
        assert found.ndv == pytest.approx(expected.ndv, rel=0.3, abs=2), found.name


@pytest.mark.parametrize("table", TABLES)
def test_on_spark(cluster: LocalCluster, ask: Ask, table: str) -> None:
    check(cluster, ask, table)


@pytest.mark.parametrize("table", TABLES)
def test_on_sail(sail_cluster: LocalCluster, ask_sail: Ask, table: str) -> None:
    check(sail_cluster, ask_sail, table)

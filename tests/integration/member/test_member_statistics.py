"""Statistics reach every member that plans, without a query waiting for them."""

from __future__ import annotations

import json

import pytest

import skerry
from skerry.model.table import ColumnStats
from skerry.testing.cluster import LocalCluster
from tests.integration.member.conftest import StartCluster
from tests.integration.member.member_sites import FEW, TICKS, stats_of, wait_until

pytestmark = pytest.mark.spark


def known(cluster: LocalCluster, at: str, site: str, table: str) -> dict[str, ColumnStats]:
    """What member `at` knows of the columns of a part."""
    stats = stats_of(cluster, at, site, table)
    return {column.name: column for column in stats.columns} if stats is not None else {}


def source(cluster: LocalCluster, at: str, site: str, table: str) -> str:
    stats = stats_of(cluster, at, site, table)
    return stats.source if stats is not None else ""


def check_analyze(cluster: LocalCluster) -> None:
    cursor = cluster.connect("oslo").cursor()
    rows = cursor.execute("ANALYZE TABLE ticks COMPUTE STATISTICS FOR COLUMNS kind, note").fetchall()
    assert [each[0] for each in cursor.description or ()] == ["member", "rows", "bytes", "columns"]
    assert sorted((member, count) for member, count, _, _ in rows) == [
        ("bergen", TICKS),
        ("oslo", TICKS),
        ("tromso", TICKS),
    ]
    assert all(size > 0 for _, _, size, _ in rows)
    found = json.loads(rows[0][3])
    assert set(found) == {"kind", "note"}
    assert found["kind"] == {"nulls": 0, "ndv": 7, "low": "0", "high": "6"}
    # The sites keep it, and tell those who asked for their tables.
    for at in ("oslo", "tromso"):
        wait_until(lambda at=at: source(cluster, at, "bergen", "ticks") == "analyze", "statistics")
    told = known(cluster, "tromso", "bergen", "ticks")
    assert (told["kind"].low, told["kind"].high, told["kind"].ndv) == (0, 6, 7)
    assert told["note"].ndv == pytest.approx(TICKS, rel=0.15)
    cursor.execute("ANALYZE TABLE bergen.few")
    assert [row[:2] for row in cursor.fetchall()] == [("bergen", FEW)]
    wait_until(lambda: source(cluster, "oslo", "bergen", "few") == "analyze", "statistics")
    with pytest.raises(skerry.ProgrammingError, match="no column kinds; did you mean kind"):
        cursor.execute("ANALYZE TABLE ticks FOR COLUMNS kinds")


def test_analyze_on_spark(members: LocalCluster) -> None:
    check_analyze(members)


def test_members_tell_each_other_what_they_found(start_sail: StartCluster) -> None:
    cluster = start_sail()
    for at in cluster.members:
        wait_until(lambda at=at: bool(known(cluster, at, "bergen", "ticks")), "statistics")
    told = known(cluster, "oslo", "bergen", "ticks")
    assert (told["id"].low, told["id"].high, told["id"].nulls) == (TICKS, 2 * TICKS - 1, 0)
    assert (told["id"].ndv, told["kind"].ndv) == (TICKS, 7)
    wait_until(lambda: bool(known(cluster, "tromso", "oslo", "few")), "statistics")
    assert known(cluster, "tromso", "oslo", "few")["id"].ndv == FEW


def test_analyze_on_sail(start_sail: StartCluster) -> None:
    check_analyze(start_sail())

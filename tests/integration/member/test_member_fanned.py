"""Rows that several members want are made once, and each of them gets all: on Sail, three sites with a part each."""

from __future__ import annotations

import json

import pytest

from skerry.testing.cluster import LocalCluster
from tests.integration.member.conftest import StartCluster
from tests.integration.member.member_sites import FEW, SITES, TICKS

pytestmark = pytest.mark.sail

# All rows of `few` go to each part of `ticks`.
JOINED = f"FROM ticks AS t JOIN few AS f ON t.id % {FEW} = f.id"
GROUPED = f"SELECT t.kind, count(*) AS n, max(f.name) AS most {JOINED} GROUP BY t.kind ORDER BY t.kind"
TOP = f"SELECT t.id, f.name {JOINED} ORDER BY t.id DESC, f.name LIMIT 7"
TINY = {"batch_rows": 16, "first_credits_bytes": 1, "spool_memory_bytes": 4096}


def check(cluster: LocalCluster, at: str) -> None:
    with cluster.connect(at) as connection, connection.cursor() as cursor:
        for sql in (GROUPED, TOP):
            found = cursor.execute(sql).fetchall()
            assert found == cursor.execute(sql, planning={"rules": "none"}).fetchall()
            assert len(found) == 7
        (text,) = cursor.execute(f"EXPLAIN ANALYZE FORMAT JSON {GROUPED}").fetchall()[0]
        lines = [line for (line,) in cursor.execute(f"EXPLAIN ANALYZE {GROUPED}").fetchall()]
    ran = json.loads(text)
    scans = [each for each in ran["fragments"] if each["reads"] == [{"table": "few"}]]
    assert sorted(each["member"] for each in scans) == sorted(SITES)
    for each in scans:
        others = [site for site in SITES if site != each["member"]]
        assert sorted(to["member"] for to in each["output"]["to"]) == sorted(others)
        assert each["actual"]["rows"] == FEW
        first, second = (to["member"] for to in each["output"]["to"])
        told = f"to {first} and {second}, through the driver (~{FEW} rows, "
        assert any(told in line and "to each)" in line for line in lines), lines
    # Every link has carried the rows of its scan once; those to the initiator the groups too.
    sent = {(each["from"], each["to"]): each["rows"] for each in ran["links_used"]}
    assert sent == {
        (one, other): FEW + (7 if other == at else 0) for one in SITES for other in SITES if one != other
    }, ran
    joins = [each for each in ran["fragments"] if {"table": "ticks"} in each["reads"]]
    assert len(ran["fragments"]) == len(scans) + len(joins) == 6
    assert ran["rows"] == 7


def test_a_scan_that_two_members_want_runs_once(start_sail: StartCluster) -> None:
    check(start_sail(), "oslo")


def test_over_a_relay_in_tiny_batches_from_disk(start_sail: StartCluster) -> None:
    """Each receiver has credits of its own, and its own way: oslo and tromso reach each other through bergen."""
    links = [{"between": ["oslo", "bergen"], "mbit": 100}, {"between": ["bergen", "tromso"], "mbit": 5}]
    cluster = start_sail(more={"links": links}, limits=TINY)
    with cluster.connect("tromso") as connection, connection.cursor() as cursor:
        found = cursor.execute(GROUPED).fetchall()
        lines = [line for (line,) in cursor.execute(f"EXPLAIN {GROUPED}").fetchall()]
    assert sum(n for _, n, _ in found) == 3 * 3 * TICKS
    told = [line for line in lines if "to each)" in line]
    assert any("tromso (by way of bergen" in line for line in told), lines

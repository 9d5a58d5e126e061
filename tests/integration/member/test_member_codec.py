"""Queries over slow links: the same rows, fewer bytes."""

from __future__ import annotations

import pytest

from tests.integration.member.conftest import StartCluster
from tests.integration.member.member_sites import TICKS, nothing_left

pytestmark = pytest.mark.sail

ROWS = "SELECT id, note FROM bergen.ticks"
JOINED = "SELECT a.id, a.note, b.name FROM bergen.ticks a JOIN oslo.few b ON a.id % 100 = b.id ORDER BY a.id"


def test_a_slow_link_carries_fewer_bytes_of_the_same_rows(start_sail: StartCluster) -> None:
    """To the client and to Spark."""
    seen = {}
    for codec in ("none", "lz4", "zstd", "auto"):
        link = {"between": ["oslo", "bergen"], "mbit": 100, "codec": codec}
        links = [link, {"between": ["oslo", "tromso"], "mbit": 1000}]
        cluster = start_sail(more={"links": links})
        for sql in (ROWS, JOINED):
            with cluster.connect("oslo") as connection, connection.cursor() as cursor:
                rows = sorted(cursor.execute(sql).fetchall())
                nothing_left(cluster)  # then all counts are in
                seen[sql, codec] = (rows, sum(link.size_bytes for link in cursor.status().links))
    for sql in (ROWS, JOINED):
        plain, _ = seen[sql, "none"]
        assert len(plain) == TICKS
        assert all(rows == plain for (asked, _), (rows, _) in seen.items() if asked == sql)
        sizes = {codec: size for (asked, codec), (_, size) in seen.items() if asked == sql}
        assert sizes["zstd"] < sizes["lz4"] < sizes["none"], sizes
        assert abs(sizes["auto"] - sizes["zstd"]) * 20 < sizes["zstd"], sizes

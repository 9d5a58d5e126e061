"""The audit of queries over real members: tables, rows and bytes as they were."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import skerry
from tests.integration.member.conftest import StartCluster
from tests.integration.member.member_sites import FEW, wait_until

pytestmark = pytest.mark.sail

JOIN = "SELECT t.id, f.name FROM oslo.ticks t JOIN bergen.few f ON t.id = f.id"


def ended(folder: Path, count: int) -> list[dict[str, Any]]:
    """The lines of statements that are over, once there are so many."""
    path, found = folder / "audit/oslo.jsonl", []

    def are_there() -> bool:
        found[:] = [line for line in map(json.loads, path.read_text().splitlines()) if line["event"] == "statement"]
        return len(found) >= count

    wait_until(are_there, f"{count} statements are written")
    assert len(found) == count
    return found


def test_a_line_says_what_a_query_read_gave_and_sent(start_sail: StartCluster, tmp_path: Path) -> None:
    cluster = start_sail(more={"audit": {"path": str(tmp_path / "audit"), "required": True}})
    with cluster.connect("oslo") as connection:
        cursor = connection.cursor().execute(JOIN)
        assert len(cursor.fetchall()) == FEW
        (line,) = ended(tmp_path, 1)
        links = [{"from": link.sender, "to": link.receiver, "bytes": link.size_bytes} for link in cursor.status().links]
        assert line["links"] == links
        assert any(link["bytes"] for link in links)
        assert line["tables"] == ["bergen.few", "oslo.ticks"]
        assert (line["rows"], line["outcome"], line["statement"]) == (FEW, "done", JOIN)
        with pytest.raises(skerry.Error):
            connection.cursor().execute("SELECT CAST(name AS INT) FROM bergen.few").fetchall()
        plan = connection.cursor().execute(f"EXPLAIN ANALYZE {JOIN}").fetchall()
        connection.cursor().execute("DESCRIBE bergen.few").fetchall()
        _, failed, tried, described = sorted(ended(tmp_path, 4), key=lambda each: str(each["time"]))
        assert (failed["outcome"], failed["code"], failed["rows"]) == ("failed", 101, 0)
        assert failed["tables"] == ["bergen.few"]
        assert (tried["outcome"], tried["rows"], tried["tables"]) == ("done", len(plan), line["tables"])
        assert sum(link["bytes"] for link in tried["links"])
        assert (described["tables"], described["rows"], described["links"]) == (["bergen.few"], 2, [])

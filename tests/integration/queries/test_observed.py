"""A guess that was wrong is not made again: the second run of a query is planned by what the first one sent."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from skerry.spark.engine import Engine
from skerry.testing.cluster import LocalCluster
from skerry.testing.nasty import SITES, SampleTable
from skerry.testing.sites import write_config
from tests.integration.member.member_sites import stats_of, wait_until

ORDERS, CUSTOMERS = 4000, 1000
# Every note is one of those asked for, which nobody would guess.
SQL = (
    "SELECT c_nation, max(o_note) AS m FROM orders JOIN customer ON o_cust = c_id"
    " WHERE o_note LIKE 'note%' AND o_note LIKE '%note%' GROUP BY c_nation"
)


def make_tables(root: Path) -> tuple[SampleTable, ...]:
    rows = {
        ("orders", "oslo"): {
            "o_cust": pa.array([n % CUSTOMERS for n in range(ORDERS)]),
            "o_note": pa.array([f"note {n} with enough letters to be worth its way" for n in range(ORDERS)]),
        },
        ("customer", "bergen"): {
            "c_id": pa.array(range(CUSTOMERS)),
            "c_nation": pa.array([n % 5 for n in range(CUSTOMERS)]),
        },
    }
    found = []
    for (name, site), columns in rows.items():
        folder = root / site / name
        folder.mkdir(parents=True)
        pq.write_table(pa.table(columns), folder / "a.parquet")
        found.append(SampleTable(name, site, str(folder)))
    return tuple(found)


@pytest.mark.sail
def test_the_second_run_sends_less(sail_engine: Engine, tmp_path: Path) -> None:
    links = [{"between": [one, other], "mbit": 0.1} for one in SITES for other in SITES if one < other]
    tables = make_tables(tmp_path)
    path = write_config(tmp_path / "skerry.yaml", tmp_path, tables, spark={"sail": True}, links=links)
    cluster = LocalCluster(str(path), engine=sail_engine)
    cluster.start()
    try:
        with cluster.connect("tromso") as connection, connection.cursor() as cursor:
            cursor.execute(f"EXPLAIN {SQL}").fetchall()  # who has no table asks nobody before
        _wait_for_statistics(cluster)
        runs = [_run(cluster) for _ in range(3)]
        assert runs[1]["bytes"] < runs[0]["bytes"] / 2, runs
        assert runs[2]["plan"] == runs[1]["plan"]
        assert runs[0]["rows"] == runs[1]["rows"] == 5
    finally:
        cluster.stop()


def _run(cluster: LocalCluster) -> dict[str, Any]:
    with cluster.connect("tromso") as connection, connection.cursor() as cursor:
        told = json.loads(cursor.execute(f"EXPLAIN ANALYZE FORMAT JSON {SQL}").fetchall()[0][0])
    sent = [each["actual"]["bytes"] for each in told["fragments"] if each["member"] != each["output"]["to"]]
    return {"bytes": sum(sent), "rows": told["rows"], "plan": told["plan_id"]}


def _wait_for_statistics(cluster: LocalCluster) -> None:
    """Better guesses are not what is looked at here."""
    for name, site in (("orders", "oslo"), ("customer", "bergen")):
        wait_until(lambda name=name, site=site: stats_of(cluster, "tromso", site, name), "statistics")

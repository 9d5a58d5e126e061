"""Tables of our own, written by what Spark computes: all rows of one moment, all of them or none."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import skerry
from skerry.client.dbapi import Cursor
from skerry.config import load
from skerry.spark.engine import Engine
from skerry.testing.cluster import LocalCluster
from tests.integration.member.member_sites import PATIENT, nothing_left, write_sites


@pytest.fixture(scope="module")
def cluster(
    sail_engine: Engine, fault_tables: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LocalCluster]:
    """Three sites, and a member that only asks."""
    folder = tmp_path_factory.mktemp("computed")
    more = {"state": str(folder / "state")}
    path = write_sites(folder / "skerry.yaml", fault_tables, limits=PATIENT, lite=("kiosk",), more=more)
    with LocalCluster(load(str(path)), engine=sail_engine) as cluster:
        yield cluster
        nothing_left(cluster)


def refused(cursor: Cursor, sql: str) -> str:
    with pytest.raises(skerry.Error) as caught:
        cursor.execute(sql)
    return str(caught.value)


def test_rows_come_from_queries(cluster: LocalCluster) -> None:
    oslo, kiosk = cluster.connect("oslo").cursor(), cluster.connect("kiosk").cursor()
    oslo.execute(
        "CREATE TABLE Copy (id INT, name STRING NOT NULL DEFAULT 'none', amount DECIMAL(6,2)) PRIMARY KEY (id)"
        " DISTRIBUTED BY (id)"
    )
    # ids are BIGINT there, and names of a site.
    assert kiosk.execute("INSERT INTO copy (id, name) SELECT id, name FROM oslo.few WHERE id < 40").rowcount == 40
    assert oslo.execute("SELECT count(*), sum(id), min(name), sum(amount) FROM copy").fetchall() == [
        (40, 780, "oslo 0", None)
    ]
    print(oslo.execute("EXPLAIN INSERT INTO copy (id, name) SELECT id, name FROM few").fetchall())
    print(oslo.execute("EXPLAIN INSERT INTO copy (id) VALUES (1), (2), (3)").fetchall())
    assert oslo.execute("UPDATE copy SET amount = id * 1.5, name = upper(name) WHERE id % 2 = 0").rowcount == 20
    assert oslo.execute("DELETE FROM copy WHERE id IN (SELECT id FROM bergen.few WHERE id > 30)").rowcount == 9
    print(kiosk.execute("SELECT * FROM copy ORDER BY id").fetchall())
    assert kiosk.execute("UPDATE copy SET id = id + 1").rowcount == 31
    assert kiosk.execute("UPDATE copy c SET name = f.name FROM tromso.few f WHERE f.id = c.id").rowcount == 31
    print(refused(kiosk, "UPDATE copy c SET name = f.name FROM few f WHERE f.id = c.id"))
    print(kiosk.execute("SELECT * FROM copy ORDER BY id").fetchall())
    print(refused(kiosk, "UPDATE copy SET name = nullif(id, 3)"))
    print(refused(kiosk, "UPDATE copy SET name = CAST(NULL AS STRING) where id < 3"))
    print(refused(kiosk, "INSERT INTO copy (id) SELECT name FROM few"))
    print(refused(kiosk, "INSERT INTO copy (id) SELECT * FROM few"))
    print(refused(kiosk, "INSERT INTO copy (id) SELECT 3000000000 FROM oslo.few WHERE id = 1"))
    print(refused(kiosk, "INSERT INTO copy (id, amount) SELECT 1000+ id, 123456.0 FROM oslo.few WHERE id = 1"))
    print(refused(kiosk, "INSERT INTO copy (id) SELECT id FROM ticks WHERE id < 150000 and id > -5 union all select id + 100000 from ticks"))
    print(kiosk.execute("INSERT INTO copy VALUES (1+1, concat('a','b'), 2.345) ON CONFLICT DO REPLACE").rowcount)
    print(kiosk.execute("SELECT * FROM copy WHERE id = 2").fetchall())
    print(kiosk.execute("TRUNCATE TABLE copy").rowcount)
    print(kiosk.execute("SELECT * FROM copy ORDER BY id").fetchall())

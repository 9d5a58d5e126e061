"""Tables of our own, read: from any member, at one moment, with and without rows that no file holds yet."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import skerry
from skerry.config import load
from skerry.model.commits import Part, TransactionId, Versions
from skerry.model.ids import QueryId
from skerry.model.sharded import BucketMap, Definition, OwnColumn, OwnTable
from skerry.spark.engine import Engine
from skerry.tables.bucket import buckets_of
from skerry.tables.columns import arrow_schema
from skerry.tables.writes import deletes_of, writes_of
from skerry.testing.cluster import LocalCluster
from tests.integration.member.member_sites import PATIENT, nothing_left, write_sites
from tests.unit.tables.table_samples import TYPES

MEMBERS = ("oslo", "bergen")


class World:
    def __init__(self, cluster: LocalCluster, twin: Path) -> None:
        self.twin = twin
        self.cluster = cluster
        self.attempts = iter(range(1, 10_000))

    def define(self, table: OwnTable) -> None:
        groups = ((0, 8000, "oslo"), (8000, table.buckets, "bergen"))
        for name in MEMBERS:
            self.cluster.call(
                self.cluster.members[name].own_tables.put(Definition(table, BucketMap(table.id, 1, groups)))
            )
        self.cluster.members["kiosk"].own_tables._learn(Definition(table, BucketMap(table.id, 1, groups)))

    def write(self, table: OwnTable, rows: list[dict[str, Any]], *, deletes: bool = False) -> None:
        batch = pa.RecordBatch.from_pylist(rows, arrow_schema(table))
        whole = list(table.members) if not table.distributed_by else []
        for name in MEMBERS:
            here = batch
            if not whole:
                places = buckets_of([batch.column(each) for each in table.distributed_by], table.buckets)
                here = batch.filter(pa.array((places < 8000) == (name == "oslo")))
            made = deletes_of(table, here.select(list(table.primary_key))) if deletes else writes_of(table, here)
            own = self.cluster.members[name].own_tables
            txn = TransactionId(QueryId(name, uuid.uuid4().hex))
            part = Part(tuple(made), versions=(Versions(table.id, table.version, 1),))
            if made:

                async def commit() -> Any:
                    return await own._core.submit(txn, own.now(), {name: part})

                print(self.cluster.call(commit()))

    def flush(self, table: OwnTable) -> None:
        for name in MEMBERS:
            self.cluster.call(self.cluster.members[name].own_tables.flush(table.id))


@pytest.fixture
def world(sail_engine: Engine, fault_tables: Any, tmp_path: Path) -> Iterator[World]:
    twin = tmp_path / "twin"
    twin.mkdir()
    pq.write_table(pa.table({"a": [1]}), twin / "rows.parquet")
    tables = {"oslo": fault_tables["oslo"] | {"twin": twin}, "bergen": fault_tables["bergen"]}
    path = write_sites(
        tmp_path / "skerry.yaml", tables, limits=PATIENT, lite=("kiosk",), more={"state": str(tmp_path / "state")}
    )
    with LocalCluster(load(path), engine=sail_engine) as cluster:
        yield World(cluster, twin)
        nothing_left(cluster)


def test_reads(world: World) -> None:
    wide = OwnTable(
        1,
        "Wide",
        1,
        (
            OwnColumn("id", "bigint"),
            OwnColumn("k.y", "double"),
            *(OwnColumn(f"c{n}", kind) for n, kind in enumerate(TYPES)),
        ),
        ("k.y", "id"),
        ("id",),
        MEMBERS,
    )
    codes = OwnTable(2, "codes", 1, (OwnColumn("id", "bigint"), OwnColumn("name", "string")), ("id",), (), MEMBERS)
    for table in (wide, codes):
        world.define(table)

    def row(n: int, note: int = 0) -> dict[str, Any]:
        return {"id": n, "k.y": [0.0, -0.0, float("nan"), 1.5][n % 4]} | {
            f"c{i}": ([None, *values])[(n + note) % (len(values) + 1)] for i, values in enumerate(TYPES.values())
        }

    cursor = world.cluster.connect("kiosk").cursor()
    want: dict[int, dict[str, Any]] = {}

    def check() -> None:
        rows = pa.Table.from_pylist(list(want.values()), arrow_schema(wide))
        pq.write_table(rows, world.twin / "rows.parquet", store_schema=False)
        for columns in ("*", "`k.y`, c8, c15, c16, c17"):
            own, files = (cursor.execute(f"SELECT {columns} FROM {t} ORDER BY id").fetchall() for t in ("wide", "twin"))
            assert repr(own) == repr(files)
        assert cursor.execute("SELECT count(*), count(DISTINCT id) FROM wide").fetchall() == [(len(want), len(want))]
        assert cursor.execute("SELECT count(*) FROM wide w JOIN ticks t ON w.id = t.id").fetchall() == [(len(want),)]

    check()
    for n in range(40):
        want[n] = row(n)
    world.write(wide, list(want.values()))
    world.write(codes, [{"id": n, "name": f"code {n}"} for n in range(5)])
    check()
    world.flush(wide)
    check()
    for n in range(0, 60, 3):
        want[n] = row(n, 1)
    world.write(wide, [want[n] for n in range(0, 60, 3)])
    gone = [want.pop(n) for n in (0, 1, 2, 7, 57)]
    world.write(wide, gone, deletes=True)
    check()
    for name in ("oslo", "bergen", "kiosk"):
        at = world.cluster.connect(name).cursor()
        assert at.execute("SELECT count(*), max(name) FROM codes").fetchall() == [(5, "code 4")]
        assert at.execute("SELECT c.name FROM codes c JOIN wide w ON c.id = w.id ORDER BY 1").fetchall() == [
            ("code 3",),
            ("code 4",),
        ]
        print(at.execute("EXPLAIN SELECT c.name FROM codes c JOIN wide w ON c.id = w.id").fetchall())
        print(at.execute("SHOW TABLES").fetchall())
        print(at.execute("DESCRIBE EXTENDED wide").fetchall())
        print(at.execute("DESCRIBE EXTENDED codes").fetchall())
    world.flush(wide)
    check()

"""Tables whose files are in an object store: Apache Spark and Sail read the same rows as from a disk, and little is asked."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import skerry
from skerry.client.dbapi import Connection
from skerry.spark.engine import Engine
from skerry.testing.cluster import LocalCluster
from tests.servers.store import KEY, SECRET, Store

CONFIG = """
cluster: stores
data_root: s3a://lake/tables
limits: {{look_again_s: {again}}}
members:
  oslo:
    address: 127.0.0.1:7101
    spark: {spark}
    storage:
      s3: {{endpoint: "{endpoint}", path_style: true, access_key: {{env: STORE_KEY}}, secret_key: {{file: "{secret}"}}}}
    tables:
      orders: {{format: parquet, path: orders}}
      some: {{format: parquet, path: "orders/day=1*/a*.parquet"}}
      lines: {{format: csv, path: "s3a://lake/lines", options: {{header: true}}, columns: {{n: int, t: string}}}}
      one: {{format: parquet, path: "s3a://lake/tables/odd [x]{{y}} %20/a b.parquet"}}
      nothing: {{format: parquet, path: empty}}
      no_bucket: {{format: parquet, path: "s3a://no-such-bucket/t"}}
"""


def orders(first: int) -> pa.Table:
    return pa.table({"id": pa.array(range(first, first + 1000)), "name": [f"n{i}" for i in range(first, first + 1000)]})


def fill(bucket: Path) -> None:
    for day in (10, 11, 20):
        folder = bucket / "tables" / "orders" / f"day={day}"
        folder.mkdir(parents=True)
        pq.write_table(orders(day * 1000), folder / "a.parquet")
        (folder / "_SUCCESS").write_bytes(b"")
        (folder / ".a.parquet.crc").write_bytes(b"x")
    hidden = bucket / "tables" / "orders" / "_temporary"
    hidden.mkdir()
    pq.write_table(orders(0), hidden / "a.parquet")
    (bucket / "lines").mkdir()
    (bucket / "lines" / "a.csv").write_text("n,t\n1,x\n2,\n")
    odd = bucket / "tables" / "odd [x]{y} %20"
    odd.mkdir()
    pq.write_table(orders(5), odd / "a b.parquet")


def cluster_of(store: Store, engine: Engine, folder: Path, spark: str, again: float = 0) -> LocalCluster:
    secret = folder / "secret"
    secret.write_text(f"{SECRET}\n")
    secret.chmod(0o600)
    file = folder / "skerry.yaml"
    file.write_text(CONFIG.format(spark=spark, endpoint=store.endpoint, secret=secret, again=again))
    return LocalCluster(str(file), engine=engine)


@pytest.fixture(scope="module")
def bucket(store: Store) -> Iterator[Path]:
    path = store.bucket("lake")
    fill(path)
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("STORE_KEY", KEY)
        yield path
    shutil.rmtree(path)


def rows(connection: Connection, sql: str) -> list[tuple[object, ...]]:
    with connection.cursor() as cursor:
        return list(map(tuple, cursor.execute(sql).fetchall()))


def requests(store: Store, since: int) -> int:
    """How often the store was asked to list."""
    with open(store.log, "rb") as log:
        log.seek(since)
        return len(re.findall(rb"(?i)LIST BUCKET|listbucket", log.read()))


@pytest.mark.spark
def test_spark_reads_a_store_as_a_disk(store: Store, bucket: Path, s3_engine: Engine, tmp_path: Path) -> None:
    with cluster_of(store, s3_engine, tmp_path, "{}") as cluster:
        connection = cluster.connect()
        assert rows(connection, "SELECT count(*), min(id), sum(day) FROM orders") == [(3000, 10000, 41000)]
        assert rows(connection, "SELECT count(*), count(DISTINCT day) FROM some") == [(2000, 2)]
        assert rows(connection, "SELECT * FROM lines ORDER BY n") == [(1, "x"), (2, None)]
        assert rows(connection, "SELECT count(*), max(name) FROM one") == [(1000, "n999")]
        plan = "\n".join(str(row[0]) for row in rows(connection, "EXPLAIN SELECT * FROM orders WHERE id < 10100"))
        assert SECRET not in plan

        pq.write_table(orders(30000), bucket / "tables" / "orders" / "day=20" / "b.parquet")
        assert rows(connection, "SELECT count(*), max(id) FROM orders") == [(4000, 30999)]
        os.unlink(bucket / "tables" / "orders" / "day=20" / "b.parquet")
        assert rows(connection, "SELECT count(*) FROM orders") == [(3000,)]

        for table, words in {
            "nothing": "no file under s3a://lake/tables/empty",
            "no_bucket": "no bucket no-such",
        }.items():
            with pytest.raises(skerry.Error) as refusal:
                rows(connection, f"SELECT * FROM {table}")
            text = str(refusal.value)
            assert words in text
            assert f"table {table}" in text
            assert "oslo" in text
            assert "\n" not in text

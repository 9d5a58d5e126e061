"""Tables whose files are in an object store: Apache Spark and Sail read the rows that a disk would give."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import skerry
from skerry.cli.check import checked
from skerry.client.dbapi import Connection
from skerry.model.errors import ConfigError
from skerry.model.sources import S3Store, Secret, Storage
from skerry.spark import SparkSettings, start_engine
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
      flat: {{format: parquet, path: flat}}
      globbed: {{format: parquet, path: "orders/d=1*/a*.parquet"}}
      lines: {{format: csv, path: "s3a://lake/lines", options: {{header: true}}, columns: {{n: int, t: string}}}}
      one: {{format: parquet, path: "s3a://lake/tables/odd {{y}} %20+é/a b.parquet"}}
      nothing: {{format: parquet, path: empty}}
      no_bucket: {{format: parquet, path: "s3a://no-such-bucket/t"}}
"""


def orders(first: int) -> pa.Table:
    return pa.table({"id": pa.array(range(first, first + 1000)), "name": [f"n{i}" for i in range(first, first + 1000)]})


@pytest.fixture(scope="module")
def lake(store: Store) -> Iterator[Store]:
    store.bucket("lake")
    for day in (10, 11, 20):
        store.put(f"lake/tables/orders/d={day}/a.parquet", orders(day * 1000))
        store.put(f"lake/tables/orders/d={day}/_SUCCESS", b"x")
        store.put(f"lake/tables/flat/{day}.parquet", orders(day * 1000))
    store.put("lake/tables/orders/_temporary/a.parquet", orders(0))
    store.put("lake/tables/orders/.hidden.parquet", b"no Parquet")
    store.put("lake/lines/a.csv", b"n,t\n1,x\n2,\n")
    store.put("lake/tables/odd {y} %20+é/a b.parquet", orders(5))
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("STORE_KEY", KEY)
        yield store


def cluster_of(
    store: Store, engine: Engine, folder: Path, *, spark: str = "{}", again: float = 0, key: str = SECRET
) -> LocalCluster:
    secret = folder / "secret"
    secret.write_text(f"{key}\n")
    secret.chmod(0o600)
    file = folder / "skerry.yaml"
    file.write_text(CONFIG.format(spark=spark, endpoint=store.endpoint, secret=secret, again=again))
    return LocalCluster(str(file), engine=engine)


def rows(connection: Connection, sql: str) -> list[tuple[object, ...]]:
    with connection.cursor() as cursor:
        return list(map(tuple, cursor.execute(sql).fetchall()))


def refused(connection: Connection, sql: str) -> str:
    with pytest.raises(skerry.Error) as refusal:
        rows(connection, sql)
    text = str(refusal.value)
    assert "oslo" in text
    assert "\n" not in text
    assert SECRET not in text
    assert KEY not in text
    return text


def check_faults(connection: Connection) -> None:
    text = refused(connection, "SELECT * FROM nothing")
    assert "table nothing: no file under s3a://lake/tables/empty" in text
    text = refused(connection, "SELECT * FROM no_bucket")
    assert "table no_bucket: s3a://no-such-bucket/t: there is no bucket no-such-bucket" in text


@pytest.mark.spark
def test_spark_reads_a_store_as_a_disk(lake: Store, s3_engine: Engine, tmp_path: Path) -> None:
    with cluster_of(lake, s3_engine, tmp_path) as cluster:
        connection = cluster.connect()
        assert rows(connection, "SELECT count(*), min(id), sum(d) FROM orders") == [(3000, 10000, 41000)]
        assert rows(connection, "SELECT count(*), count(DISTINCT d) FROM globbed") == [(2000, 2)]
        assert rows(connection, "SELECT * FROM lines ORDER BY n") == [(1, "x"), (2, None)]
        assert rows(connection, "SELECT count(*), max(name) FROM one") == [(1000, "n999")]
        plan = "\n".join(str(row[0]) for row in rows(connection, "EXPLAIN SELECT * FROM orders WHERE id < 10100"))
        assert SECRET not in plan

        lake.put("lake/tables/orders/d=20/b.parquet", orders(30000))
        assert rows(connection, "SELECT count(*), max(id) FROM orders") == [(4000, 30999)]
        lake.delete("lake/tables/orders/d=20/b.parquet")
        assert rows(connection, "SELECT count(*) FROM orders") == [(3000,)]
        check_faults(connection)


@pytest.mark.sail
def test_sail_reads_a_store_as_a_disk(lake_for_sail: Engine, lake: Store, tmp_path: Path) -> None:
    with cluster_of(lake, lake_for_sail, tmp_path, spark="{sail: true}") as cluster:
        connection = cluster.connect()
        assert rows(connection, "SELECT * FROM lines ORDER BY n") == [(1, "x"), (2, None)]
        assert rows(connection, "SELECT count(*), max(name) FROM one") == [(1000, "n999")]
        assert rows(connection, "SELECT count(*), min(id), max(id) FROM flat") == [(3000, 10000, 20999)]
        assert "no columns of directories" in refused(connection, "SELECT * FROM orders")
        check_faults(connection)


@pytest.fixture(scope="module")
def lake_for_sail(lake: Store) -> Iterator[Engine]:
    """A Sail of its own: it has the store's keys from its start."""
    where = S3Store(
        lake.endpoint, path_style=True, access_key=Secret(env="STORE_KEY"), secret_key=Secret(env="STORE_SECRET")
    )
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("STORE_SECRET", SECRET)
        engine = start_engine(SparkSettings(sail=True, storage=Storage(where)))
    yield engine
    engine.stop()


@pytest.mark.sail
def test_check_looks_into_the_store(lake_for_sail: Engine, lake: Store, tmp_path: Path) -> None:
    cluster_of(lake, lake_for_sail, tmp_path, spark="{sail: true}")
    with pytest.raises(ConfigError) as caught:
        checked(str(tmp_path / "skerry.yaml"))
    told = caught.value.message.splitlines()
    assert len(told) == 4, told
    for words in (
        "tables.orders.path: Sail makes no columns of directories",
        "tables.globbed.path: Sail makes no columns of directories",
        "tables.nothing.path: no file under s3a://lake/tables/empty",
        "tables.no_bucket.path: s3a://no-such-bucket/t: there is no bucket no-such-bucket",
    ):
        assert any(words in line for line in told), told
    assert SECRET not in caught.value.message


@pytest.mark.sail
def test_a_listing_is_kept_for_a_while(lake_for_sail: Engine, lake: Store, tmp_path: Path) -> None:
    lake.put("lake/lines/a.csv", b"n,t\n1,x\n2,\n")
    with cluster_of(lake, lake_for_sail, tmp_path, spark="{sail: true}", again=3600) as cluster:
        connection = cluster.connect()
        assert rows(connection, "SELECT count(*) FROM lines") == [(2,)]
        lake.put("lake/lines/b.csv", b"n,t\n3,y\n")
        assert rows(connection, "SELECT count(*) FROM lines") == [(2,)]
    with cluster_of(lake, lake_for_sail, tmp_path, spark="{sail: true}") as cluster:
        connection = cluster.connect()
        assert rows(connection, "SELECT count(*) FROM lines") == [(3,)]
        lake.delete("lake/lines/b.csv")
        assert rows(connection, "SELECT count(*) FROM lines") == [(2,)]


@pytest.mark.sail
def test_a_store_that_refuses_or_is_away(lake_for_sail: Engine, lake: Store, tmp_path: Path) -> None:
    with cluster_of(lake, lake_for_sail, tmp_path, spark="{sail: true}", key="another") as cluster:
        assert "the store refuses the credentials" in refused(cluster.connect(), "SELECT * FROM lines")
    with cluster_of(lake, lake_for_sail, tmp_path, spark="{sail: true}") as cluster:
        connection = cluster.connect()
        assert rows(connection, "SELECT count(*) FROM lines") == [(2,)]
        lake.stop()
        assert "the store does not answer" in refused(connection, "SELECT * FROM lines")
        lake.start()
        lake.bucket("lake")
        assert rows(connection, "SELECT count(*) FROM lines") == [(2,)]

"""Tables that a site's own Spark knows: a Hive metastore, Delta by path and by catalog, Avro.

Packages must be there before a JVM starts, so these tests have a Spark of their own; it is started once.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from skerry.client.dbapi import Connection
from skerry.config import load
from skerry.member.boot import engine_for
from skerry.model.errors import SiteError
from skerry.spark.engine import Engine
from skerry.testing.cluster import LocalCluster
from tests.conftest import SPARK_CONF

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1200)]

DELTA = "io.delta:delta-spark_4.2_2.13:4.4.0"
AVRO = "org.apache.spark:spark-avro_2.13:4.1.1"

PASSWORD = "hunter-of-the-north"
STOCK = (
    *("CAST(id AS INT) id", "CAST(id AS STRING) name", "CAST(id * 1.5 AS DECIMAL(9,2)) price"),
    "DATE'2024-01-01' + CAST(id AS INT) day",
)

CONFIG = """\
cluster: lakes
data_root: .
views:
  by_shop: SELECT w, count(*) AS n FROM moved GROUP BY w
members:
  oslo:
    address: 127.0.0.1:7301
    spark:
      master: local[2]
      packages: [{DELTA}, {AVRO}]
      conf: {CONF}
    catalogs:
      shop:
        type: jdbc
        settings: {{url: "jdbc:derby:memory:shop;create=true", driver: org.apache.derby.iapi.jdbc.AutoloadedDriver}}
        secrets: {{user: {{env: SHOP_USER}}, password: {{file: shop.password}}}}
      spark_catalog:
        type: hive
        settings: {{javax.jdo.option.ConnectionURL: "jdbc:derby:;databaseName={folder}/metastore;create=true"}}
    schemas:
      sales: {{namespace: sales}}
      web: {{catalog: shop, namespace: web, leaves: never}}
    tables:
      stock: {{format: delta, path: oslo/stock}}
      events: {{format: avro, path: oslo/events}}
      orders: {{table: sales.orders}}
      lines: {{table: spark_catalog.sales.lines}}
      odd: {{table: shop.web.`odd``name.x`}}
      moved: {{table: sales.moved}}
      gone: {{table: sales.gone}}
    views:
      late: SELECT id, day FROM stock WHERE id > 5
  bergen:
    address: 127.0.0.1:7302
    spark:
      packages: [{DELTA}]
    schemas:
      sales: {{namespace: bergen_sales}}
    catalogs:
      spark_catalog:
        type: hive
    tables:
      stock: {{format: delta, path: bergen/stock}}
      moved: {{format: delta, path: bergen/moved}}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("lakes")


@pytest.fixture(scope="module")
def engine(folder: Path) -> Iterator[Engine]:
    file = folder / "skerry.yaml"
    file.write_text(CONFIG.format(DELTA=DELTA, AVRO=AVRO, CONF=repr(SPARK_CONF), folder=folder))
    (folder / "shop.password").write_text(PASSWORD + "\n")
    config = load(file)
    engine = engine_for(config.member("oslo"), config.limits)
    try:
        with pytest.MonkeyPatch.context() as patched:
            patched.setenv("SHOP_USER", "web")
            engine.start()
    except SiteError as error:
        if "cannot be fetched" in error.message:
            pytest.skip(f"no network to a Maven repository: {error.message}")
        raise
    yield engine
    engine.stop()


@pytest.fixture(scope="module")
def session(engine: Engine, folder: Path) -> Any:
    spark: Any = engine.session  # type: ignore[attr-defined]
    (folder / "oslo").mkdir()
    (folder / "bergen").mkdir()
    spark.sql("CREATE DATABASE sales")
    for place, first in (("oslo", 0), ("bergen", 100)):
        frame = spark.range(first, first + 10).selectExpr(*STOCK)
        frame.write.format("delta").save(str(folder / place / "stock"))
    spark.range(100, 103).selectExpr("id", "'b' w").write.format("delta").save(str(folder / "bergen" / "moved"))
    spark.range(7).selectExpr("id", "id % 2 = 0 even").write.format("avro").save(str(folder / "oslo" / "events"))
    spark.range(20).selectExpr("id", "'x' s").write.saveAsTable("sales.orders")
    spark.sql("CREATE TABLE sales.lines (a INT, b CHAR(3)) PARTITIONED BY (p STRING) STORED AS ORC")
    spark.sql("INSERT INTO sales.lines VALUES (1, 'x', 'q'), (2, 'y', 'r')")
    spark.sql("CREATE DATABASE bergen_sales")
    spark.sql("CREATE TABLE bergen_sales.orders USING parquet AS SELECT id + 1000 id, 'y' s FROM range(5)")
    spark.sql("CREATE TABLE bergen_sales.only_here USING parquet AS SELECT 1 one")
    spark.sql("CREATE NAMESPACE shop.web")
    spark.sql("CREATE TABLE shop.web.`odd``name.x` (`a b` INT, `c``d` STRING, `select` INT)")
    spark.sql("INSERT INTO shop.web.`odd``name.x` VALUES (1, 'x', 2)")
    spark.sql("CREATE TABLE shop.web.heading (`# Detailed Table Information` INT, `Provider` STRING, `*/` INT)")
    spark.sql("INSERT INTO shop.web.heading VALUES (1, 'delta', 3)")
    spark.sql(
        "CREATE TABLE sales.moved (id BIGINT, w STRING) USING delta TBLPROPERTIES ("
        "'delta.columnMapping.mode' = 'name', 'delta.enableDeletionVectors' = 'true')"
    )
    spark.sql("INSERT INTO sales.moved SELECT id, 'a' FROM range(10)")
    return spark


@pytest.fixture(scope="module")
def cluster(engine: Engine, session: Any, folder: Path) -> Iterator[LocalCluster]:
    with LocalCluster(str(folder / "skerry.yaml"), engine=engine) as cluster:
        yield cluster


@pytest.fixture
def oslo(cluster: LocalCluster) -> Iterator[Connection]:
    with cluster.connect("oslo") as connection:
        yield connection


def ask(connection: Connection, sql: str) -> list[tuple[Any, ...]]:
    return connection.cursor().execute(sql).fetchall()


def test_all_kinds_of_tables_answer_as_spark_does(oslo: Connection, session: Any) -> None:
    assert ask(oslo, "SELECT count(*), min(id), max(id) FROM stock") == [(20, 0, 109)]
    assert ask(oslo, "SELECT sum(id) FROM events WHERE even") == [(12,)]
    assert ask(oslo, "SELECT a, b, p FROM lines ORDER BY a") == [(1, "x  ", "q"), (2, "y  ", "r")]
    assert ask(oslo, "SELECT `a b`, `c``d`, `select` FROM odd") == [(1, "x", 2)]
    assert ask(oslo, "SELECT w, count(*) FROM moved GROUP BY w ORDER BY w") == [("a", 10), ("b", 3)]
    with pytest.raises(Exception, match=r"site oslo: table gone: .*cannot be found"):
        ask(oslo, "SELECT * FROM gone")


def test_a_change_is_seen_by_the_next_query(oslo: Connection, session: Any, folder: Path) -> None:
    before = ask(oslo, "SELECT count(*) FROM oslo.moved")
    session.sql("DELETE FROM sales.moved WHERE id = 3")
    assert ask(oslo, "SELECT count(*) + 1 FROM oslo.moved") == before  # by a deletion vector: its files are the same
    session.sql("INSERT INTO sales.moved VALUES (50, 'c'), (51, NULL)")
    assert ask(oslo, "SELECT count(*) - 1 FROM oslo.moved") == before
    session.sql("INSERT INTO sales.lines VALUES (3, 'z', 's')")
    assert ask(oslo, "SELECT max(p) FROM lines") == [("s",)]
    session.sql("INSERT INTO sales.orders VALUES (100, 'new')")
    assert ask(oslo, "SELECT max(id) FROM orders") == [(100,)]
    session.range(1000, 1001).selectExpr("CAST(id AS INT) id").write.format("delta").mode("append").save(
        str(folder / "oslo" / "stock")
    )
    assert ask(oslo, "SELECT max(id), count(*), count(name) FROM oslo.stock") == [(1000, 11, 10)]


def test_delta_tells_rows_and_values_by_its_log(oslo: Connection, cluster: LocalCluster) -> None:
    lines = dict(ask(oslo, "DESCRIBE EXTENDED bergen.stock"))
    assert (lines["  format"], lines["  rows"], lines["  statistics"]) == ("delta", "10", "delta")


def test_an_older_version_is_a_table_beside_the_one_of_now(oslo: Connection, session: Any, folder: Path) -> None:
    first = "SELECT count(*), max(w) FROM oslo.moved VERSION AS OF 0"
    assert ask(oslo, first) == [(0, None)]
    path = str(folder / "bergen" / "stock")
    session.sql("SELECT 200").selectExpr("200 AS id", "'new' AS extra").write.format("delta").mode("append").option(
        "mergeSchema", "true"
    ).save(path)
    now = "SELECT count(*), count(extra) FROM bergen.stock"
    assert ask(oslo, now) == [(11, 1)]
    assert ask(oslo, "SELECT count(*) FROM bergen.stock VERSION AS OF 0") == [(10,)]
    joined = (
        "SELECT n.id FROM bergen.stock n LEFT ANTI JOIN bergen.stock FOR VERSION AS OF 0 AS o ON n.id = o.id ORDER BY 1"
    )
    assert ask(oslo, joined) == [(200,)]
    with pytest.raises(Exception, match="extra"):  # it came later
        ask(oslo, "SELECT extra FROM bergen.stock VERSION AS OF 0")
    with pytest.raises(
        Exception, match=r"site bergen: table stock VERSION AS OF 9: its log has versions 0 to 1, since"
    ):
        ask(oslo, "SELECT * FROM bergen.stock VERSION AS OF 9")
    with pytest.raises(Exception, match="its log has versions 0 to 1, since"):
        ask(oslo, "SELECT * FROM bergen.stock TIMESTAMP AS OF '2001-01-01'")
    with pytest.raises(Exception, match="AS OF is for tables of our own and those of Delta: "):
        ask(oslo, "SELECT * FROM events VERSION AS OF 1")
    assert ask(oslo, "SELECT count(*) FROM bergen.stock TIMESTAMP AS OF '2100-01-01'") == [(11,)]


def test_a_schema_offers_what_its_namespace_has(oslo: Connection, session: Any) -> None:
    assert ask(oslo, "SELECT count(*), max(id) FROM sales.orders WHERE s = 'y'") == [(5, 1004)]
    assert ask(oslo, "SELECT count(*) FROM sales.orders WHERE s = 'x'") == [(20,)]
    assert ask(oslo, "SELECT count(*) FROM bergen.sales.orders") == [(5,)]
    assert ask(oslo, "SELECT one FROM sales.only_here") == [(1,)]
    session.sql("CREATE TABLE bergen_sales.fresh USING parquet AS SELECT 7 seven")
    assert ask(oslo, "SELECT sales.fresh.seven FROM sales.fresh") == [(7,)]
    session.sql("DROP TABLE bergen_sales.fresh")
    with pytest.raises(Exception, match="fresh"):
        ask(oslo, "SELECT * FROM sales.fresh")
    with pytest.raises(Exception, match=r"unknown table sales\.ordres; did you mean sales\.orders"):
        ask(oslo, "SELECT * FROM sales.ordres")
    names = {row[0]: row for row in ask(oslo, "SHOW TABLES IN sales")}
    assert "sales.nothing" not in names
    assert {"sales.orders", "sales.lines", "sales.moved", "sales.only_here"} <= set(names)
    assert ("sales",) in ask(oslo, "SHOW SCHEMAS")
    assert ask(oslo, "DESCRIBE sales.only_here") == [("one", "int")]
    assert ask(oslo, "SELECT count(*) FROM sales.moved VERSION AS OF 0") == [(0,)]


def test_names_of_a_catalog_are_data(oslo: Connection) -> None:
    assert ask(oslo, "SELECT `a b`, `c``d`, `select` FROM web.`odd``name.x`") == [(1, "x", 2)]
    assert ask(oslo, "SELECT w.`select` + 1 FROM oslo.web.`odd``name.x` w") == [(3,)]
    assert ask(oslo, "SELECT * FROM web.heading WHERE `*/` = 3") == [(1, "delta", 3)]
    assert dict(ask(oslo, "DESCRIBE EXTENDED web.heading"))["  leaves"] == "never"
    with pytest.raises(Exception, match="unknown table"):
        ask(oslo, "SELECT * FROM `web.heading`")
    with pytest.raises(Exception, match="unknown table"):  # Hive's metastore would find it, and rules would not
        ask(oslo, "SELECT * FROM sales.`only_here `")


def test_a_view_is_read_like_a_table(oslo: Connection) -> None:
    late = "SELECT count(*) FROM oslo.late JOIN events USING (id)"
    assert ask(oslo, late) == [(1,)]
    assert ask(oslo, "SELECT n FROM by_shop WHERE w = 'b'") == [(3,)]
    told = [line for (line,) in ask(oslo, f"EXPLAIN {late}")]
    assert told[0] == "view oslo.late stands for: SELECT id, day FROM stock WHERE id > 5"


def test_rows_of_a_marked_schema_do_not_leave(cluster: LocalCluster) -> None:
    with cluster.connect("bergen") as bergen, pytest.raises(Exception, match="never"):
        ask(bergen, "SELECT * FROM web.`odd``name.x`")


def test_a_table_whose_folder_vanished_is_named_and_others_answer(oslo: Connection, folder: Path) -> None:
    log = folder / "oslo" / "stock" / "_delta_log"
    log.rename(log.with_name("_elsewhere"))
    try:
        with pytest.raises(
            Exception, match=r"site oslo: table stock: no Delta table at oslo/stock: it has no _delta_log"
        ):
            ask(oslo, "SELECT count(*) FROM stock")
        assert ask(oslo, "SELECT count(*) FROM events") == [(7,)]
    finally:
        log.with_name("_elsewhere").rename(log)


def test_no_command_line_has_a_secret(engine: Engine) -> None:
    pid = engine.jvm_pid  # type: ignore[attr-defined]
    assert PASSWORD not in Path(f"/proc/{pid}/cmdline").read_text()

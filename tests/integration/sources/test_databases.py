# ruff: noqa: E501 (tables and lists of conditions)
"""Tables of PostgreSQL: the rows and answers that the same values in Parquet files give, and what reaches the database."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import skerry
from skerry.client.dbapi import Connection
from skerry.spark.engine import Engine
from skerry.testing.cluster import LocalCluster
from tests.servers.postgres import PASSWORD, USER, Postgres

pytestmark = pytest.mark.spark

# In a collation of words: 'a' < 'B', where Spark compares bytes and says 'B' < 'a'.
TABLES = """
CREATE COLLATION words (provider = icu, locale = 'en-US');
CREATE COLLATION nocase (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
CREATE SCHEMA sales;
CREATE TYPE mood AS ENUM ('zz', 'aa');
CREATE DOMAIN small AS int;
CREATE TABLE sales.kinds (id int, i2 smallint, i8 bigint, n numeric, n2 numeric(10,2), wide numeric(7,-2), f4 real,
  f8 double precision, b boolean, t text COLLATE words, ci text COLLATE nocase, vc varchar(10), c5 char(5), by bytea,
  d date, ts timestamp, tz timestamptz, tm time, u uuid, js jsonb, li int[], grid int[][], m mood, p small, "We""ird, `x`" int);
INSERT INTO sales.kinds VALUES
 (1, 1, 9007199254740993, 1.5, 10.25, 1200, 0.1, 'NaN', true, 'a', 'Ab', 'x', 'ab', '\\x00ff', '2024-03-31',
  '2024-03-31 02:30:00.123456', '2024-10-27 00:30:00+00', '12:34:56.789', 'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11', '{"a": 1}',
  '{1,NULL,3}', '{{1,2},{3,4}}', 'zz', 5, 7),
 (2, -1, -5, -0.000000000000000001, -99999999.99, -100, -1.5, '-0', false, 'B', 'aB', 'Zürich', 'ab c', '', '0001-01-01',
  '1500-02-28 00:00:00', '1969-12-31 23:59:59.999999+00', '00:00:00', 'b0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '[]',
  '{}', '{}', 'aa', -5, NULL),
 (3, NULL, NULL, 12345678901234567890, 0, NULL, 'Infinity', 'Infinity', NULL, 'ä', 'AB', 'it''s \\ %_', '', NULL, '9999-12-31',
  '9999-12-31 23:59:59.999999', '9999-12-31 00:00:00+00', NULL, NULL, NULL, NULL, NULL, NULL, NULL, 3),
 (4, 0, 0, NULL, NULL, 0, 0, 0, true, NULL, NULL, NULL, NULL, '\\x00', '1970-01-01',
  '1970-01-01 00:00:00', '2024-10-27 01:30:00+00', '23:59:59', NULL, '{}', '{0}', NULL, 'aa', 0, NULL);
CREATE TABLE sales.many AS SELECT g AS id, (g % 7)::int AS k, 'n' || (g % 100) AS name, (g * 1.25)::numeric(12,2) AS total
  FROM generate_series(1, 20000) g;
CREATE VIEW sales.seen AS SELECT id, name FROM sales.many WHERE k = 3;
CREATE TABLE sales.brief AS SELECT * FROM sales.many WHERE id < 10;
CREATE TABLE sales.wide_numbers (a int, n numeric(50,5));
CREATE TABLE "sales"."x""; DROP TABLE sales.many; --" (a int);
INSERT INTO "sales"."x""; DROP TABLE sales.many; --" VALUES (42);
ANALYZE;
"""

# As Spark takes the same values from a file: kinds that it has no type for are text.
TYPES = {
    **{
        "id": "int",
        "i2": "smallint",
        "i8": "bigint",
        "n": "decimal(38,18)",
        "n2": "decimal(10,2)",
        "wide": "decimal(9,0)",
    },
    **{"f4": "float", "f8": "double", "b": "boolean", "t": "string", "ci": "string", "vc": "string", "c5": "string"},
    **{"by": "binary", "d": "date", "ts": "timestamp_ntz", "tz": "timestamp", "tm": "string", "u": "string"},
    **{"js": "string", "li": "array<int>", "grid": "string", "m": "string", "p": "int", 'We"ird, `x`': "int"},
}

CONFIG = """
cluster: sources
data_root: {root}
members:
  oslo:
    address: 127.0.0.1:7101
    databases:
      shop: {{jdbc: "{url}", user: {user}, password: {{env: SHOP_PASSWORD}}}}
    tables:
      kinds: {{database: shop, table: sales.kinds}}
      many: {{database: shop, table: sales.many, partition: {{column: id, parts: 3}}}}
      seen: {{database: shop, table: sales.seen}}
      odd: {{database: shop, table: 'sales.`x"; DROP TABLE sales.many; --`'}}
      chosen: {{database: shop, table: sales.wide_numbers, columns: {{n: "decimal(38,5)", a: string}}}}
      wide_numbers: {{database: shop, table: sales.wide_numbers}}
      missing: {{database: shop, table: sales.no_such}}
      brief: {{database: shop, table: sales.brief}}
  bergen:
    address: 127.0.0.1:7102
    tables:
      copied: {{format: parquet, path: copied}}
"""


@pytest.fixture(scope="module")
def cluster(
    postgres: Postgres, spark_engine: Engine, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LocalCluster]:
    postgres.run("postgres", "CREATE DATABASE shop")
    postgres.run("shop", TABLES)
    folder = tmp_path_factory.mktemp("databases")
    (folder / "copied").mkdir()
    pq.write_table(pa.table({"x": pa.array([1], pa.int32())}), folder / "copied" / "a.parquet")
    file = folder / "skerry.yaml"
    file.write_text(CONFIG.format(root=folder, url=postgres.url("shop"), user=USER))
    with LocalCluster(str(file), engine=spark_engine) as running:
        yield running


@pytest.fixture(scope="module")
def connection(cluster: LocalCluster) -> Connection:
    return cluster.connect("bergen")


def rows(connection: Connection, sql: str) -> list[tuple[object, ...]]:
    with connection.cursor() as cursor:
        return list(map(tuple, cursor.execute(sql).fetchall()))


def test_columns_have_the_types_that_hold_their_values(connection: Connection) -> None:
    assert {name: kind for name, kind, *_ in rows(connection, "DESCRIBE oslo.kinds")} == TYPES


@pytest.fixture(scope="module")
def copied(connection: Connection, cluster: LocalCluster) -> str:
    """The rows of `kinds` in a Parquet file: what a condition means to Spark, a database has no part in."""
    with connection.cursor() as cursor:
        table = cursor.execute("SELECT * FROM kinds").fetch_arrow_table()
    path = Path(cluster.config.data_root) / "kinds.parquet"
    pq.write_table(table, path)
    return str(path)


def test_values_are_those_of_the_database(copied: str) -> None:
    found = {
        name: column.to_pylist()
        for name, column in zip(pq.read_schema(copied).names, pq.read_table(copied), strict=True)
    }
    order = sorted(range(4), key=lambda row: found["id"][row])
    found = {name: [values[row] for row in order] for name, values in found.items()}
    assert [str(each) for each in found["n"]] == [
        "1.500000000000000000", "-1E-18", "12345678901234567890.000000000000000000", "None"
    ]  # fmt: skip
    assert [str(each) for each in found["ts"]] == [
        "2024-03-31 02:30:00.123456", "1500-02-28 00:00:00", "9999-12-31 23:59:59.999999", "1970-01-01 00:00:00"
    ]  # fmt: skip
    assert found["tz"][0].isoformat().startswith("2024-10-27T00:30:00")
    assert [str(each) for each in found["d"]] == ["2024-03-31", "0001-01-01", "9999-12-31", "1970-01-01"]
    assert found["c5"] == ["ab", "ab c", "", None]  # without what fills it up
    assert found["li"] == [[1, None, 3], [], None, [0]]
    assert found["grid"][0] == "{{1,2},{3,4}}"
    assert found["u"][0] == "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"
    assert found["by"] == [b"\0\xff", b"", None, b"\0"]
    assert found["wide"] == [1200, -100, None, 0]
    assert found["tm"] == ["12:34:56.789", "00:00:00", None, "23:59:59"]
    assert found["vc"][2] == "it's \\ %_"


CONDITIONS = (
    *("t < 'b'", "t BETWEEN 'A' AND 'Z'", "t >= 'a'", "t = 'b'", "t LIKE 'ä%'", "ci = 'ab'", "ci IN ('AB', 'ab')"),
    *("c5 = 'ab'", "c5 = 'ab   '", "c5 >= 'ab'", "vc LIKE '%\\\\%\\\\_'", "vc = 'it\\'s \\\\ %_'", "vc < 'a'", "m < 'b'"),
    *("u = 'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'", "u = 'nonsense'", "u > 'a'", "js = '{\"a\": 1}'", "tm > '1'"),
    *("f8 = double('NaN')", "f8 > 1", "f8 = double('Infinity')", "f8 >= 0", "f8 <=> 0.0D", "NOT f8 > 1", "f4 = 0.1"),
    *("f4 = float('0.1')", "f4 > 0.1", "f4 = float('Infinity')", "n > 1.4", "n = -1e-18BD", "n < 0", "n2 > 10", "wide < 0"),
    *("by = X'00FF'", "by > X'00'", "by = X''", "li = array(1, NULL, 3)", "li = array()", "b", "NOT b", "b <=> NULL"),
    *("d = date'0001-01-01'", "d > date'9999-01-01'", "ts = timestamp_ntz'2024-03-31 02:30:00.123456'"),
    *("ts < timestamp_ntz'1500-03-01 00:00:00'", "tz >= timestamp'2024-10-27 01:00:00'", "tz < timestamp'1970-01-01'"),
    *("tz = timestamp'2024-10-27 02:30:00+02'", "i8 = 9007199254740993", "i8 > 9007199254740992.5", "i8 = -5.0", "p < 0"),
    *("i2 IN (1, NULL)", "i2 NOT IN (1, 5)", "i2 IS NULL OR p = 5", "cast(i2 AS string) = '1'", "cast(d AS string) < '1'"),
    *("upper(t) = 'A'", "length(c5) = 2", "i2 + 1 > 1", "n2 / 3 > 3.4166", "`We\"ird, ``x```= 7", "year(d) = 1970"),
)  # fmt: skip


def test_conditions_mean_what_they_mean_of_a_file(connection: Connection, copied: str, spark_engine: Engine) -> None:
    session = spark_engine.session.newSession()  # type: ignore[attr-defined]
    session.read.parquet(copied).createOrReplaceTempView("kinds")
    # Spark leaves out a file by its statistics, of which Arrow's know no NaN.
    session.conf.set("spark.sql.parquet.filterPushdown", "false")
    for some in batched(CONDITIONS, 14):  # each reads the table by itself
        sql = " UNION ALL ".join(f"SELECT {n} AS n, id FROM kinds WHERE {one}" for n, one in enumerate(some))
        wanted = sorted(tuple(row) for row in session.sql(sql).collect())
        assert sorted(rows(connection, sql)) == wanted, some
    ordered = "SELECT id, min(t) OVER (), max(m) OVER () FROM kinds ORDER BY t, f8, id LIMIT 3"
    assert rows(connection, ordered) == [tuple(row) for row in session.sql(ordered).collect()]


def test_columns_and_conditions_reach_the_database(connection: Connection, postgres: Postgres) -> None:
    since = postgres.mark()
    assert rows(connection, "SELECT sum(total) FROM many WHERE id > 19990 AND name = 'n95'")[0][0] == 19995 * 1.25
    asked = postgres.asked(since)
    reads = [query for query in asked if "19990" in query]
    assert len(reads) == 3, asked  # the parts
    for query in reads:
        assert re.match('SELECT "total" FROM ', query)
        assert "\"name\" = 'n95'" in query
    assert sum('"id" < ' in query or '"id" >= ' in query for query in reads) == 3


def test_statistics_come_from_the_database(connection: Connection, postgres: Postgres) -> None:
    since = postgres.mark()
    plan = "\n".join(str(row[0]) for row in rows(connection, "EXPLAIN SELECT * FROM many WHERE id <= 200"))
    assert re.search(r"\b(19\d|20\d) rows", plan), plan
    assert not postgres.asked(since)  # no rows were read for it


def test_rows_are_read_as_they_are_now(connection: Connection, postgres: Postgres) -> None:
    before = rows(connection, "SELECT count(*), max(id) FROM many")
    postgres.run("shop", "INSERT INTO sales.many VALUES (-1, 3, 'new', 0), (1000000, 3, 'new', 0)")
    assert rows(connection, "ANALYZE TABLE many COMPUTE STATISTICS FOR ALL COLUMNS") is not None
    postgres.run("shop", "INSERT INTO sales.many VALUES (2000000, 3, 'new', 0)")
    assert before == [(20000, 20000)]
    assert rows(connection, "SELECT count(*), max(id), min(id) FROM many") == [(20003, 2000000, -1)]
    assert rows(connection, "SELECT count(*) FROM many WHERE id = 2000000") == [(1,)]
    postgres.run("shop", "DELETE FROM sales.many WHERE name = 'new'")
    assert rows(connection, "SELECT count(*) FROM many") == [(20000,)]
    assert rows(connection, "SELECT count(*) FROM seen") == [(2857,)]


def test_names_and_types_of_the_configuration(connection: Connection, postgres: Postgres) -> None:
    assert rows(connection, "SELECT a FROM odd") == [(42,)]
    postgres.run("shop", "INSERT INTO sales.wide_numbers VALUES (1, 12345678901234567890123456789012.12345)")
    assert [(str(n), a) for n, a in rows(connection, "SELECT * FROM chosen")] == [
        ("12345678901234567890123456789012.12345", "1")
    ]
    assert rows(connection, "SELECT count(*) FROM many WHERE name = 'n1'") == [(200,)]


def batched(texts: Sequence[str], count: int) -> Iterator[Sequence[str]]:
    return (texts[start : start + count] for start in range(0, len(texts), count))


def refused(connection: Connection, sql: str) -> str:
    with pytest.raises(skerry.Error) as refusal:
        rows(connection, sql)
    # Errors of a statement show where in it they are, below.
    text, _, rest = str(refusal.value).partition("\n")
    assert "\tat" not in rest
    assert "Exception" not in rest
    assert "PSQLException" not in text
    assert "org." not in text
    assert "wörd" not in text
    return text


def test_what_cannot_be_read_is_said_of_its_table_alone(connection: Connection) -> None:
    text = refused(connection, "SELECT * FROM wide_numbers")
    assert "oslo" in text
    assert "wide_numbers" in text
    assert "n has 50 digits" in text
    assert "columns" in text
    text = refused(connection, "SELECT * FROM missing")
    assert "oslo" in text
    assert "missing" in text
    assert "database shop has no table sales.no_such" in text
    assert rows(connection, "SELECT x FROM copied") == [(1,)]


def test_faults_of_a_database_are_one_sentence(connection: Connection, postgres: Postgres) -> None:
    count = "SELECT count(*), max(name) FROM brief"
    assert rows(connection, count) == [(9, "n9")]

    postgres.run("shop", "ALTER TABLE sales.brief RENAME COLUMN name TO called")  # meanwhile, as a query sees it
    assert "name" in refused(connection, count)
    assert rows(connection, "SELECT count(*), max(called) FROM brief") == [(9, "n9")]

    postgres.run("shop", "DROP TABLE sales.brief")
    text = refused(connection, "SELECT count(*), max(called) FROM brief")
    assert "oslo" in text
    assert "brief" in text

    postgres.run("shop", f"ALTER ROLE {USER} PASSWORD 'another'")
    text = refused(connection, "SELECT max(a) FROM odd")
    assert "oslo" in text
    assert "database shop" in text
    assert "password" in text
    postgres.run("shop", f"ALTER ROLE {USER} PASSWORD '{PASSWORD.replace(chr(39), chr(39) * 2)}'")
    assert rows(connection, "SELECT a FROM odd") == [(42,)]

    postgres.stop()
    try:
        text = refused(connection, "SELECT max(id) FROM many")
        assert "oslo" in text
        assert "database shop" in text
        assert rows(connection, "SELECT x FROM copied") == [(1,)]
    finally:
        postgres.start()
    assert rows(connection, "SELECT max(id) FROM many") == [(20000,)]

"""Tables of our own, written by what Spark computes: by rows of one moment, all of them or none."""

from __future__ import annotations

import asyncio
import datetime as dt
import json
import threading
import uuid
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import skerry
from skerry.client.dbapi import Cursor
from skerry.config import load
from skerry.member.query import Instruction, QueryCore
from skerry.member.requests import CountAnswer, RunStatement
from skerry.model.caller import Caller
from skerry.model.errors import UserError
from skerry.model.ids import QueryId
from skerry.spark.engine import Engine
from skerry.tables.columns import arrow_type
from skerry.testing.cluster import LocalCluster
from skerry.wire.messages import Message, PlanRequest
from tests.integration.member.member_sites import PATIENT, nothing_left, slow_query, write_sites
from tests.unit.tables.table_samples import TYPES

# Every type, beside a table of files with the same columns.
COLUMNS = {"id": "bigint", **{f"c{number}": kind for number, kind in enumerate(TYPES)}}
WIDE = pa.schema([pa.field(name, arrow_type(kind)) for name, kind in COLUMNS.items()])
RULES = """
roles:
  reader: [{on: '*', select: true}]
  clerk: [{on: goods, own: true, select: [id], insert: true, update: true, delete: true}]
  blind: [{on: goods, own: true, insert: true}]
  boss: [{on: goods, own: true, define: true}]
users: {anna: [reader], bill: [clerk], carl: [reader, clerk], dora: [blind], eve: [boss]}
"""


@pytest.fixture(scope="module")
def twin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("twin")
    samples = [[None, *values] for values in TYPES.values()]
    rows = [(number, *(values[number % len(values)] for values in samples)) for number in range(9)]
    table = pa.Table.from_pylist([dict(zip(COLUMNS, row, strict=True)) for row in rows], WIDE)
    pq.write_table(table, folder / "rows.parquet", store_schema=False)
    return folder


@pytest.fixture(scope="module")
def cluster(
    sail_engine: Engine, fault_tables: Any, twin: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LocalCluster]:
    """Three sites, and a member that only asks."""
    folder = tmp_path_factory.mktemp("computed")
    tables = {**fault_tables, "oslo": {**fault_tables["oslo"], "twin": twin}}
    more = {"state": str(folder / "state")}
    path = write_sites(folder / "skerry.yaml", tables, limits=PATIENT, lite=("kiosk",), more=more)
    with LocalCluster(load(str(path)), engine=sail_engine) as cluster:
        yield cluster
        nothing_left(cluster)


def changed(cursor: Cursor, sql: str) -> int | str:
    """How many rows, or why none."""
    try:
        return cursor.execute(sql).rowcount
    except skerry.Error as error:
        return str(error)


CREATE = "(id INT, name STRING NOT NULL DEFAULT 'none', amount DECIMAL(6,2)) PRIMARY KEY (id)"


WRONG = {
    "UPDATE copy c SET name = f.name FROM few f WHERE f.id = c.id": "rows of FROM match the row of id = ",
    "UPDATE copy SET name = nullif(name, 'X')": "column name of Copy is NOT NULL, and NULL is given in 1 of",
    "UPDATE copy SET id = 1": "two rows would get the same primary key",
    "UPDATE copy SET id = 9 WHERE name = 'X'": "a row with the same primary key exists",
    "INSERT INTO copy (id) SELECT name FROM few": "column id of Copy is int, and takes no string",
    "INSERT INTO copy (id) SELECT * FROM oslo.few": "the query gives 2 columns, table Copy takes 1",
    "INSERT INTO copy (id) SELECT id + 3000000000 FROM oslo.few": "3000000000",
    "INSERT INTO copy (id, amount) SELECT id + 100, id * 10000 FROM oslo.few": "10000",
    "INSERT INTO copy (id) SELECT id + 100 FROM oslo.few UNION ALL SELECT 9": "same primary key exists",
    "INSERT INTO copy (id, name) SELECT id, name FROM few WHERE id > 9 ON CONFLICT DO REPLACE": "two rows of the",
    "UPDATE copy SET name = note FROM oslo.ticks t WHERE t.id < 15000": "MERGE_CARDINALITY_VIOLATION",
    "INSERT INTO few (id) SELECT id FROM ticks": "which Skerry only reads",
    "UPDATE copy SET name = sha2(unknown_column, 1)": "unknown_column",
}


def check_changes(cursors: list[Cursor]) -> None:
    """Statements of all kinds, each by another member; whatever is refused leaves nothing behind."""
    turn = iter(cursors * 20)

    def does(sql: str) -> int | str:
        return changed(next(turn), sql)

    does(f"CREATE TABLE Copy {CREATE} DISTRIBUTED BY (id)")
    # ids are BIGINT there: only Spark may say whether one fits into INT.
    assert does("INSERT INTO copy (id, name) SELECT id, name FROM oslo.few WHERE id BETWEEN 1 AND 6") == 6
    assert does("INSERT INTO copy VALUES (7, upper('x'), 2.345), (8, DEFAULT, NULL)") == 2
    assert does("UPDATE copy SET amount = id * 1.5, name = DEFAULT WHERE id % 2 = 0 AND id < 8") == 3
    assert does("UPDATE copy c SET name = f.name FROM bergen.few f WHERE f.id = c.id AND f.id IN (1, 3)") == 2
    assert does("UPDATE copy SET id = id + 1 WHERE id > 5") == 3  # 6, 7, 8 become 7, 8, 9
    assert does("DELETE FROM copy WHERE id IN (SELECT id + 1 FROM oslo.few WHERE id = 4)") == 1
    rows = [
        *[(1, "bergen 1", None), (2, "none", Decimal("3.00")), (3, "bergen 3", None), (4, "none", Decimal("6.00"))],
        *[(7, "none", Decimal("9.00")), (8, "X", Decimal("2.35")), (9, "none", None)],
    ]
    for cursor in cursors:
        assert cursor.execute("SELECT * FROM copy ORDER BY id").fetchall() == rows

    for sql, why in WRONG.items():
        assert why in str(does(sql)), sql
    assert cursors[0].execute("SELECT * FROM copy ORDER BY id").fetchall() == rows

    assert does("INSERT INTO copy (id) SELECT id FROM oslo.few WHERE id < 10 ON CONFLICT DO NOTHING") == 3  # 0, 5, 6
    assert does("INSERT INTO copy SELECT id, NULL || 'x', 1 FROM copy WHERE id < 0 ON CONFLICT DO REPLACE") == 0
    assert does("INSERT INTO copy SELECT id, name, amount + 1 FROM copy ON CONFLICT DO REPLACE") == 10
    assert cursors[0].execute("SELECT count(*), sum(amount) FROM copy").fetchall() == [(10, Decimal("24.35"))]
    assert does("UPDATE copy SET amount = NULL") == 10
    assert does("DELETE FROM copy WHERE amount IS NULL AND id > 3") == 6
    assert does("TRUNCATE TABLE copy") == 4
    assert does("DELETE FROM copy") == 0


def test_changes_of_all_kinds(cluster: LocalCluster) -> None:
    cursors = [cluster.connect(name).cursor() for name in ("oslo", "kiosk", "bergen", "tromso")]
    check_changes(cursors)
    # A copy at every member is written everywhere, and counted once.
    cursors[0].execute(f"CREATE TABLE everywhere {CREATE} DISTRIBUTED GLOBALLY")
    assert changed(cursors[1], "INSERT INTO everywhere (id) SELECT id FROM oslo.few WHERE id < 5") == 5
    assert changed(cursors[2], "UPDATE everywhere SET amount = id / 2, id = id + 1") == 5
    assert changed(cursors[3], "DELETE FROM everywhere WHERE amount > 1") == 2
    for name in ("oslo", "bergen", "tromso"):
        own = cursors[0].execute(f"SELECT id, amount FROM {name}.everywhere ORDER BY id").fetchall()
        assert own == [(1, Decimal(0)), (2, Decimal("0.5")), (3, Decimal(1))]
    # More than a member looks at in its loop.
    assert changed(cursors[1], "INSERT INTO everywhere (id) SELECT id + 4 FROM oslo.ticks WHERE id < 5000") == 5000
    assert changed(cursors[2], "UPDATE everywhere SET amount = id % 7 WHERE id > 3") == 5000
    whole = cursors[3].execute("SELECT sum(amount), count(*) FROM tromso.everywhere WHERE id > 3").fetchall()
    assert whole == [(sum(number % 7 for number in range(4, 5004)), 5000)]
    # EXPLAIN tells the way.
    told = [line for (line,) in cursors[1].execute("EXPLAIN INSERT INTO copy (id) SELECT id FROM few").fetchall()]
    assert told[:2] == [
        "writes table Copy by Spark: a query gives the rows",
        "  rows come to kiosk, and go to oslo, bergen, tromso: by the hash of id",
    ]
    assert any("reads table few" in line for line in told)
    told = [line for (line,) in cursors[1].execute("explain DELETE FROM everywhere WHERE id IN (1, 2)").fetchall()]
    assert told[0] == "writes table everywhere as tuples, without Spark: 2 keys"
    for sql, by, more in (
        ("UPDATE everywhere SET amount = 1 WHERE id = 1", "tuples", []),
        ("UPDATE everywhere SET amount = amount WHERE id = 1", "spark", ["query"]),
    ):
        for analyze in ("", "ANALYZE "):
            ((told_json,),) = cursors[1].execute(f"EXPLAIN {analyze}FORMAT JSON {sql}").fetchall()
            found = json.loads(told_json)
            assert (list(found), found["write"]["by"]) == (["write", *more], by)
            assert [each["member"] for each in found["write"]["members"]] == ["oslo", "bergen", "tromso"]
            assert found["write"].get("rows", 1) == 1
    # EXPLAIN ANALYZE does it, once, and tells what was done.
    first, *parts, did = [
        line
        for (line,) in cursors[1].execute("EXPLAIN ANALYZE INSERT INTO everywhere (id) VALUES (-1), (-2)").fetchall()
    ]
    assert first == "wrote table everywhere as tuples, without Spark: 2 rows of constants"
    assert [part.partition(" bytes")[0].rpartition(",")[0] for part in parts] == [
        f"  kiosk → {member}: 2 rows" for member in ("oslo", "bergen", "tromso")
    ]
    assert did.startswith("  2 rows changed in ")
    sql = "EXPLAIN ANALYZE UPDATE everywhere SET amount = coalesce(amount, 0) + 10 WHERE id < 0"
    told = [line for (line,) in cursors[1].execute(sql).fetchall()]
    assert told[0] == "wrote table everywhere by Spark: a value is computed by Spark (2 runs of the query)"
    assert told[1].startswith("  kiosk → oslo: 2 rows, ")
    assert told[4].startswith("  2 rows changed in ")
    assert any(line.startswith("result: 2 rows in ") for line in told)
    assert cursors[0].execute("SELECT id, amount FROM everywhere WHERE id < 0 ORDER BY id").fetchall() == [
        (-2, 10),
        (-1, 10),
    ]
    # One that is given up leaves nothing.
    slow = f"INSERT INTO copy (id, name) SELECT 1, digest FROM ({slow_query('oslo')})"
    timer = threading.Timer(0.3, cursors[0].cancel)
    timer.start()
    assert "was cancelled" in str(changed(cursors[0], slow))
    timer.join()
    assert cursors[1].execute("SELECT count(*) FROM copy").fetchall() == [(0,)]


def test_tables_made_of_queries(cluster: LocalCluster) -> None:
    kiosk, oslo = cluster.connect("kiosk").cursor(), cluster.connect("oslo").cursor()
    query = "SELECT kind, count(*) AS n, max(note) AS `last note` FROM ticks WHERE id < ? GROUP BY kind"
    made = "CREATE TABLE by_kind PRIMARY KEY (kind) DISTRIBUTED BY (kind) AS "
    assert kiosk.execute(made + query, [50_000]).rowcount == 7
    rows = oslo.execute("SELECT * FROM by_kind ORDER BY kind").fetchall()
    assert rows == oslo.execute(f"{query} ORDER BY kind", [50_000]).fetchall()
    assert oslo.execute("DESCRIBE by_kind").fetchall() == [("kind", "int"), ("n", "bigint"), ("last note", "string")]
    ((shown,),) = kiosk.execute("SHOW CREATE TABLE by_kind").fetchall()
    assert "`kind` INT NOT NULL,\n  `n` BIGINT,\n" in shown
    assert "exists already" in str(changed(oslo, f"{made} SELECT 1 AS kind"))
    assert changed(oslo, f"{made.replace('TABLE', 'TABLE IF NOT EXISTS')} SELECT 1 AS kind") == 0
    # Without rows it is empty; with rows that it cannot hold it is not there.
    globally = "CREATE TABLE nothing PRIMARY KEY (k) DISTRIBUTED GLOBALLY AS "
    for sql, why in {
        "SELECT id AS k FROM few": "two rows of the query have the same primary key",
        "SELECT nullif(id, 3) AS k FROM oslo.few": "column k of nothing is NOT NULL",
        "SELECT 1 AS k, NULL AS x": "column x of the query is void, which no table holds",
        "SELECT 1 AS a": "the table has no column k",
        "SELECT 1 AS k, 2 AS K": "two columns are called K",
    }.items():
        assert why in str(changed(kiosk, globally + sql)), sql
    assert "unknown table" in str(changed(oslo, "TRUNCATE TABLE nothing"))
    assert changed(kiosk, f"{globally} SELECT id AS k FROM oslo.few WHERE id < 0") == 0
    assert changed(oslo, "INSERT INTO nothing SELECT 1") == 1


def test_values_of_every_type(cluster: LocalCluster) -> None:
    cursor = cluster.connect("bergen").cursor()
    columns = ", ".join(f"`{name}` {kind}" for name, kind in COLUMNS.items())
    cursor.execute(f"CREATE TABLE wide ({columns}) PRIMARY KEY (id) DISTRIBUTED BY (id)")

    def same(own: str, other: str) -> None:
        mine, theirs = (cursor.execute(f"SELECT * FROM {name} ORDER BY id").fetchall() for name in (own, other))
        assert repr(mine) == repr(theirs)

    assert changed(cursor, "INSERT INTO wide SELECT * FROM twin") == 9
    same("wide", "twin")
    assert changed(cursor, f"UPDATE wide SET {', '.join(f'{name} = {name}' for name in COLUMNS)}") == 9
    names = list(COLUMNS)[1:]
    assert changed(cursor, f"UPDATE wide SET {', '.join(f'{name} = {name}' for name in names)}") == 9
    same("wide", "twin")
    assert changed(cursor, f"UPDATE wide SET {', '.join(f'{name} = NULL' for name in names)} WHERE id = 0") == 1
    same("wide", "twin")
    # What a column takes of other types is cast by Spark; what it does not take is refused, also without any row.
    cursor.execute(
        "CREATE TABLE cast_to (id INT, s STRING, t TIMESTAMP, d DATE, f DOUBLE, a ARRAY<BIGINT>, n SMALLINT)"
        " PRIMARY KEY (id) DISTRIBUTED BY (id)"
    )
    moment = "TIMESTAMP '2024-02-29 12:30:00 UTC'"
    assert changed(cursor, f"INSERT INTO cast_to SELECT 1, 2.50, DATE '2024-02-29', {moment}, 3, array(4), 5.5D") == 1
    assert cursor.execute("SELECT * FROM cast_to").fetchall() == [
        (1, "2.50", dt.datetime(2024, 2, 29, tzinfo=dt.UTC), dt.date(2024, 2, 29), 3.0, [4], 5)
    ]
    for column, value in {"n": "'5'", "a": "array('4')", "f": "true", "t": "17", "d": "'2024-02-29'"}.items():
        assert "takes no" in str(changed(cursor, f"INSERT INTO cast_to (id, {column}) SELECT 2, {value} WHERE 1 > 2"))


def test_floating_point_numbers_in_decimal_columns(cluster: LocalCluster) -> None:
    """As in Apache Spark, by every way; Sail's own cast gives other digits."""
    cursor = cluster.connect("oslo").cursor()
    cursor.execute(
        "CREATE TABLE exact (id INT, d DECIMAL(38, 10), p DECIMAL(10, 2),"
        " at TIMESTAMP DEFAULT TIMESTAMP '2024-01-01 00:00:00+02:00') PRIMARY KEY (id) DISTRIBUTED BY (id)"
    )
    whole, cent = Decimal("1000000000000000000000000000"), Decimal("1.01")
    assert changed(cursor, "INSERT INTO exact (id, d, p) VALUES (1, 1e27, 1.005D)") == 1
    assert cursor.execute("INSERT INTO exact (id, d, p) VALUES (2, ?, ?)", [1e27, 1.005]).rowcount == 1
    query = "SELECT 3L, x, y FROM (SELECT 1e27 AS x, 1.005D AS y)"  # the number is cast by the engine, the others not
    assert changed(cursor, f"INSERT INTO exact (id, d, p) {query}") == 1
    assert changed(cursor, "INSERT INTO exact (id, d, p, at) VALUES (4, 0, 0, DEFAULT)") == 1
    assert changed(cursor, "UPDATE exact SET d = 1e27, p = CAST(p AS DOUBLE) + 1.005D WHERE id = 4") == 1
    merged = (
        "MERGE INTO exact AS t USING (SELECT id FROM range(4, 6)) AS s ON t.id = s.id"
        " WHEN MATCHED THEN UPDATE SET p = 1.005D WHEN NOT MATCHED THEN INSERT (id, d, p) VALUES (s.id, 1e27, 1.005D)"
    )
    assert changed(cursor, merged) == 2
    assert "NUMERIC_VALUE_OUT_OF_RANGE" in str(changed(cursor, "INSERT INTO exact (id, d) VALUES (9, 1e28)"))
    found = cursor.execute("SELECT id, d, p, CAST(at AS STRING) FROM exact ORDER BY id").fetchall()
    assert found == [(number, whole, cent, "2023-12-31 22:00:00") for number in range(1, 6)]
    cursor.execute("DROP TABLE exact")


def test_no_update_is_lost(cluster: LocalCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    oslo = cluster.connect("oslo").cursor()
    oslo.execute("CREATE TABLE counters (id INT, n INT) PRIMARY KEY (id) DISTRIBUTED BY (id)")
    oslo.execute("INSERT INTO counters VALUES (1, 0), (2, 0), (3, 0)")
    counts: list[int | str] = []

    def count(name: str) -> None:
        with cluster.connect(name) as connection:
            counts.extend(changed(connection.cursor(), "UPDATE counters SET n = n + 1") for _ in range(3))

    threads = [threading.Thread(target=count, args=(name,)) for name in ("oslo", "oslo", "bergen", "kiosk")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counts == [3] * 12
    assert oslo.execute("SELECT DISTINCT n FROM counters").fetchall() == [(12,)]

    # Between the read and the commit of a statement come others: by key, deleted, new. It is computed again.
    own = cluster.members["oslo"].own_tables
    submit, other = own.submit, cluster.connect("bergen").cursor()
    between = [
        "UPDATE counters SET n = 100 WHERE id = 1",
        "DELETE FROM counters WHERE id = 2",
        "INSERT INTO counters VALUES (4, 40)",
    ]

    async def late(*args: Any, **kwargs: Any) -> Any:
        if between:
            await asyncio.to_thread(changed, other, between.pop(0))
        return await submit(*args, **kwargs)

    monkeypatch.setattr(own, "submit", late)
    assert changed(oslo, "INSERT INTO counters SELECT id, n + 1 FROM counters ON CONFLICT DO REPLACE") == 2
    # The first two were in its way; the third is of a row that it had not read.
    assert sorted(oslo.execute("SELECT id, n FROM counters").fetchall()) == [(1, 101), (3, 13), (4, 40)]
    assert between == []


def test_reading_needs_a_readers_right_and_writing_a_writers(
    sail_engine: Engine, fault_tables: Any, tmp_path: Path
) -> None:
    more = {"state": str(tmp_path / "state"), "access": {"rules": "rules.yaml"}}
    tables = {name: fault_tables[name] for name in ("oslo", "bergen")}
    (tmp_path / "rules.yaml").write_text(RULES)
    path = write_sites(tmp_path / "skerry.yaml", tables, limits=PATIENT, more=more)
    with LocalCluster(load(str(path)), engine=sail_engine) as cluster:
        service = cluster.members["bergen"].service

        def does(user: str, sql: str, transaction: str = "") -> str:
            statement = RunStatement(QueryId("bergen", uuid.uuid4().hex), sql, transaction=transaction)
            try:
                answer = cluster.call(
                    service.execute(Caller(user, "native", "127.0.0.1:1", uuid.uuid4().hex), statement)
                )
            except UserError as error:
                return error.message
            assert isinstance(answer, CountAnswer)
            return answer.transaction or str(answer.rows)

        assert does("eve", "CREATE TABLE goods (id INT, n INT) PRIMARY KEY (id) DISTRIBUTED BY (id)") == "0"
        insert = "INSERT INTO goods (id) SELECT id FROM oslo.few WHERE id < 9"
        assert does("anna", insert) == "user anna may not insert rows of table goods"
        assert "unknown table oslo.few" in does("bill", insert)
        assert does("carl", insert) == "9"
        # Who reads nothing may write what it says itself.
        assert does("dora", "INSERT INTO goods VALUES (100 + 1, 1)") == "1"
        assert "needs the right to all of the table" in does("dora", "TRUNCATE TABLE goods")
        assert "needs the right to all of the table" in does("bill", "UPDATE goods SET n = 1 WHERE id > 3")
        assert does("carl", "UPDATE goods SET n = n + 1 WHERE id > 3") == "6"
        assert does("anna", "DELETE FROM goods WHERE n IS NULL") == "user anna may not delete rows of table goods"
        assert does("carl", "DELETE FROM goods WHERE n IS NULL") == "9"
        # MERGE needs what each of its clauses does.
        merge = "MERGE INTO goods USING oslo.few f ON goods.id = f.id WHEN"
        assert does("dora", f"{merge} MATCHED THEN DELETE") == "user dora may not delete rows of table goods"
        assert "needs the right to all of the table" in does(
            "dora", f"{merge} NOT MATCHED THEN INSERT (id) VALUES (f.id)"
        )
        assert does("carl", f"{merge} NOT MATCHED AND f.id < 2 THEN INSERT (id) VALUES (f.id)") == "2"
        # In a transaction too: each member checks each statement, and the commit asks for no more than was said.
        begun = does("dora", "BEGIN")
        assert does("dora", "INSERT INTO goods VALUES (102, 2), (103, 3)", begun) == "2"
        assert (
            does("dora", "UPDATE goods SET n = 1 WHERE id = 102", begun)
            == "user dora may not update rows of table goods"
        )
        assert "not open" in does("bill", "INSERT INTO goods VALUES (104, 4)", begun)
        assert does("dora", "COMMIT", begun) == "0"
        begun = does("carl", "BEGIN")
        assert does("carl", "UPDATE goods SET n = n + 1 WHERE id > 101", begun) == "2"
        assert does("carl", "COMMIT", begun) == "0"
        nothing_left(cluster)


@pytest.mark.spark
def test_apache_spark_does_the_same(spark_engine: Engine, fault_tables: Any, tmp_path: Path) -> None:
    tables = {name: fault_tables[name] for name in ("oslo", "bergen")}
    more = {"state": str(tmp_path / "state")}
    path = write_sites(tmp_path / "skerry.yaml", tables, limits=PATIENT, more=more)
    with LocalCluster(load(str(path)), engine=spark_engine) as cluster:
        bergen, oslo = (cluster.connect(name).cursor() for name in ("bergen", "oslo"))
        bergen.execute(f"CREATE TABLE Copy {CREATE} DISTRIBUTED BY (id)")
        # Cast by Spark, and refused by it.
        assert changed(oslo, "INSERT INTO copy SELECT id, name, id / 8 FROM oslo.few WHERE id < 4") == 4
        assert "CAST_OVERFLOW" in str(changed(oslo, "INSERT INTO copy (id) SELECT id + 3000000000 FROM oslo.few"))
        assert changed(bergen, "UPDATE copy SET id = id + 1, name = NULL || name, amount = NULL WHERE id > 9") == 0
        assert changed(bergen, "UPDATE copy SET amount = amount + 1 WHERE id IN (SELECT id FROM few WHERE id > 1)") == 2
        rows = [(0, "0.00"), (1, "0.13"), (2, "1.25"), (3, "1.38")]
        found = oslo.execute("SELECT * FROM copy ORDER BY id").fetchall()
        assert found == [(number, f"oslo {number}", Decimal(amount)) for number, amount in rows]
        merge = (
            "MERGE INTO copy t USING (SELECT id, name FROM oslo.few WHERE id BETWEEN 3 AND 5) s ON t.id = s.id "
            "WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (id, name) VALUES (id, upper(name)) "
            "WHEN NOT MATCHED BY SOURCE AND id < ? THEN UPDATE SET amount = NULL"
        )
        assert bergen.execute(merge, [2]).rowcount == 5
        found = oslo.execute("SELECT id, name, amount FROM copy ORDER BY id").fetchall()
        kept = [(0, "oslo 0", None), (1, "oslo 1", None), (2, "oslo 2", Decimal("1.25"))]
        assert found == [*kept, (4, "OSLO 4", None), (5, "OSLO 5", None)]
        # What a transaction has written is read by itself alone.
        oslo.execute("FLUSH TABLE copy")
        bergen.execute("BEGIN")
        assert changed(bergen, "INSERT INTO copy VALUES (9, 'nine', 9)") == changed(
            bergen, "DELETE FROM copy WHERE id = 1"
        )
        assert changed(bergen, "UPDATE copy SET amount = 7 WHERE id IN (0, 9)") == 2
        seen = "SELECT id, CAST(amount AS INT) FROM copy ORDER BY id"
        assert bergen.execute(seen).fetchall() == [(0, 7), (2, 1), (4, None), (5, None), (9, 7)]
        assert oslo.execute(seen).fetchall() == [(0, None), (1, None), (2, 1), (4, None), (5, None)]
        bergen.execute("ROLLBACK")
        check_values(oslo, "ticks")
        check_caps(cluster, "oslo")


def check_caps(cluster: LocalCluster, at: str) -> None:
    """A query ends while it runs, by rows of an edge or by seconds of Spark; one that writes has written nothing."""
    with cluster.connect(at) as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE TABLE capped {CREATE} DISTRIBUTED BY (id)")

        def fails(sql: str, why: str, **caps: float) -> None:
            with pytest.raises(skerry.OperationalError, match=why) as caught:
                cursor.execute(sql, **caps).fetchall()
            assert caught.value.code == 400

        most = "SELECT count(*) FROM oslo.ticks a JOIN bergen.few b ON a.note < b.name"
        one = r"site (oslo|bergen): fragment [0-9]+ gave more than 99 rows to its edge \(edge_rows\)"
        assert cursor.execute(most, edge_rows=20_000).fetchone() is not None
        fails(most, one, edge_rows=99)
        # Each site gives no more than it may, all of them together do.
        all_rows = "SELECT id, name FROM few WHERE id < 50"
        fails(all_rows, "edge [0-9]+ got more than 99 rows, from fragment [0-9]+ at [a-z]+ and", edge_rows=99)
        assert len(cursor.execute(all_rows, edge_rows=150).fetchall()) >= 100
        fails("INSERT INTO capped (id, name) SELECT id, name FROM oslo.few", one, edge_rows=99)
        fails("INSERT INTO capped (id, name) SELECT id, note FROM bergen.ticks", one, edge_rows=99)
        fails(slow_query("bergen"), r"took more than 0.3 s of Spark.* \(spark_s\)", spark_s=0.3)
        insert = f"INSERT INTO capped SELECT 1, digest, 1 FROM ({slow_query('oslo')})"
        fails(insert, r"took more than 0.3 s of Spark.* \(spark_s\)", spark_s=0.3)
        assert cursor.execute("SELECT count(*) FROM capped").fetchone() == (0,)
        assert (
            cursor.execute("INSERT INTO capped (id, name) SELECT id, name FROM oslo.few", edge_rows=100).rowcount == 100
        )
        nothing_left(cluster)


def test_caps_end_what_takes_too_much(cluster: LocalCluster) -> None:
    check_caps(cluster, "kiosk")


def check_values(cursor: Cursor, table: str) -> None:
    """Rows that a statement lists travel beside its text, and mean what they mean in it."""
    rows = [(number * 3, f"it's {number}", None if number % 2 else "x") for number in range(200)]
    listed = ", ".join(
        f"({number}, '{name.replace(chr(39), chr(39) * 2)}', {'NULL' if kind is None else repr(kind)})"
        for number, name, kind in rows
    )
    joined = f"FROM {table} t JOIN (VALUES {listed}) AS v(id, name, tag) ON t.id = v.id"
    plan = "\n".join(row[0] for row in cursor.execute(f"EXPLAIN SELECT v.id {joined}").fetchall())
    assert "200 rows of VALUES (values_1)" in plan
    found = cursor.execute(
        f"SELECT v.id, v.name, tag, typeof(v.id) {joined} WHERE tag IS NULL ORDER BY v.id"
    ).fetchall()
    ids = {each for (each,) in cursor.execute(f"SELECT id FROM {table}").fetchall()}
    assert found == [(*row, "int") for row in rows if row[0] in ids and row[2] is None]
    counts = cursor.execute(f"SELECT tag, count(*), min(v.name) {joined} GROUP BY tag ORDER BY tag").fetchall()
    assert [count for _, count, _ in counts] == [
        sum(row[0] in ids and row[2] == kind for row in rows) for kind in (None, "x")
    ]


def test_values_travel_as_rows(cluster: LocalCluster) -> None:
    with cluster.connect("kiosk") as connection, connection.cursor() as cursor:
        check_values(cursor, "ticks")
        check_values(cursor, "bergen.few")
        cursor.execute(f"CREATE TABLE listed {CREATE} DISTRIBUTED BY (id)")
        rows = ", ".join(f"({number}, 'n{number}')" for number in range(300))
        insert = f"INSERT INTO listed (id, name) SELECT a, upper(b) FROM (VALUES {rows}) AS v(a, b) WHERE a > 9"
        assert cursor.execute(insert).rowcount == 290
        assert cursor.execute("SELECT count(*), max(id), max(name) FROM listed").fetchall() == [(290, 299, "N99")]
        assert cursor.execute(f"DELETE FROM listed WHERE id IN (SELECT col1 FROM (VALUES {rows}))").rowcount == 290


def test_a_write_asks_for_a_plan_that_is_no_longer_kept(cluster: LocalCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    receive = QueryCore.receive

    def counted(core: QueryCore, sender: str, message: Message, now: float) -> list[Instruction]:
        asked.extend([sender] if isinstance(message, PlanRequest) else [])
        return receive(core, sender, message, now)

    monkeypatch.setattr(QueryCore, "receive", counted)
    with cluster.connect("kiosk") as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE TABLE missed {CREATE} DISTRIBUTED BY (id)")
        changes = [
            "INSERT INTO missed (id, name) SELECT id, name FROM bergen.few WHERE id < 9 ON CONFLICT DO REPLACE",
            "UPDATE missed SET name = upper(name) WHERE id IN (SELECT id FROM bergen.few WHERE id < 5)",
            "DELETE FROM missed WHERE name LIKE '%7%' OR id IN (SELECT id + 100 FROM bergen.few)",
        ]
        for is_kept in (False, True, False):
            if not is_kept:
                for member in cluster.members.values():
                    member.plans._plans.clear()
            asked.clear()
            assert [cursor.execute(sql).rowcount for sql in changes] == [9, 5, 1]
            assert ("bergen" in asked) is not is_kept
        assert cursor.execute("SELECT count(*), min(name) FROM missed").fetchall() == [(8, "BERGEN 0")]


def test_merge(cluster: LocalCluster) -> None:
    with cluster.connect("kiosk") as connection, connection.cursor() as cursor:

        def rows() -> list[tuple[Any, ...]]:
            return cursor.execute("SELECT * FROM acc ORDER BY id").fetchall()

        create = "(id INT, name STRING DEFAULT 'none', amount DECIMAL(10,2)) PRIMARY KEY (id) DISTRIBUTED BY (id)"
        cursor.execute(f"CREATE TABLE acc {create}")
        cursor.execute("INSERT INTO acc VALUES (1, 'one', 1), (2, 'two', 2), (3, 'three', 3), (4, 'four', 4)")
        source = (
            "(SELECT * FROM VALUES (1, 'a', 10), (2, 'b', NULL), (5, 'e', 50), (6, 'f', -1) AS v(id, name, amount)) s"
        )
        sql = f"""MERGE INTO acc AS t USING {source} ON t.id = s.id
          WHEN MATCHED AND s.amount IS NULL THEN DELETE
          WHEN MATCHED THEN UPDATE SET t.amount = t.amount + s.amount, name = upper(s.name)
          WHEN NOT MATCHED AND s.amount > 0 THEN INSERT (amount, id) VALUES (s.amount, s.id)
          WHEN NOT MATCHED BY SOURCE AND t.id = 3 THEN UPDATE SET name = DEFAULT
          WHEN NOT MATCHED BY SOURCE AND t.id > 100 THEN DELETE"""
        assert changed(cursor, sql) == 4
        merged = [(1, "A", Decimal(11)), (3, "none", Decimal(3)), (4, "four", Decimal(4)), (5, "none", Decimal(50))]
        assert rows() == merged
        # All columns by name, from a table at another site; the key is set to what it is.
        both = "MERGE INTO acc USING (SELECT id, name, 7 AS amount FROM oslo.few WHERE id IN (5, 6)) s ON acc.id = s.id"
        assert changed(cursor, f"{both} WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *") == 2
        merged = [*merged[:3], (5, "oslo 5", Decimal(7)), (6, "oslo 6", Decimal(7))]
        assert rows() == merged
        told = cursor.execute(f"EXPLAIN ANALYZE {both} WHEN MATCHED THEN UPDATE SET amount = ?", [7]).fetchall()
        assert told[0] == (
            "wrote table acc by Spark: MERGE reads the table and what is merged into it (2 runs of the query)",
        )
        assert any(line.startswith("  2 rows changed in ") for (line,) in told)
        # Keys are set: rows move, also to where another goes or moves from. One that is replaced counts once.
        swap = "MERGE INTO acc t USING (SELECT 3 AS id UNION ALL SELECT 4 UNION ALL SELECT 6) s ON t.id = s.id"
        moved = (
            f"{swap} WHEN MATCHED AND t.id = 6 THEN DELETE WHEN MATCHED THEN UPDATE SET id = t.id + IF(t.id = 3, 1, 2)"
        )
        assert changed(cursor, moved) == 2
        merged = [merged[0], (4, *merged[1][1:]), merged[3], (6, *merged[2][1:])]
        assert rows() == merged
        twice = "MERGE INTO acc USING (SELECT explode(array(5, 5, 9)) AS id) s ON acc.id = s.id WHEN MATCHED"
        for wrong, why in {
            f"{twice} THEN UPDATE SET amount = 1": "2 rows of USING match the row of id = 5",
            f"{twice} AND s.id > 1 THEN DELETE": "2 rows of USING match the row of id = 5",
            f"{swap} WHEN MATCHED THEN UPDATE SET id = 9": "two rows would get the same primary key, id = 9",
            f"{swap} WHEN MATCHED THEN UPDATE SET id = 5": "two rows would get the same primary key, id = 5",
            f"{swap} WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id + 2)": "a row with the same primary key exists",
            f"{both} WHEN MATCHED AND acc.id > 0 THEN UPDATE SET amount = s.name": "takes no string",
            f"{both} WHEN MATCHED THEN UPDATE SET amount = s.id / (s.id - 5)": "ivision by zero",
            "MERGE INTO few USING acc ON few.id = acc.id WHEN MATCHED THEN DELETE": "which Skerry only reads",
        }.items():
            assert why in str(changed(cursor, wrong)), wrong
        assert rows() == merged
        # Values of a clause that is not met are not computed.
        lazy = f"{both} WHEN MATCHED AND s.id <> 5 THEN UPDATE SET amount = s.id / (s.id - 5)"
        assert changed(cursor, lazy) == 1
        assert changed(cursor, f"{twice} THEN DELETE") == 1
        assert rows() == [merged[0], merged[1], (6, "four", Decimal(6))]
        cursor.execute("DROP TABLE acc")


def test_merges_at_once_insert_a_row_once(cluster: LocalCluster) -> None:
    with cluster.connect("oslo") as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TABLE tallies (id INT, n INT) PRIMARY KEY (id) DISTRIBUTED GLOBALLY")
        upsert = (
            "MERGE INTO tallies t USING (SELECT id FROM oslo.few WHERE id < 3) s ON t.id = s.id "
            "WHEN MATCHED THEN UPDATE SET n = t.n + 1 WHEN NOT MATCHED THEN INSERT (id, n) VALUES (id, 1)"
        )
        counts: list[int | str] = []

        def count(name: str) -> None:
            with cluster.connect(name) as connection, connection.cursor() as cursor:
                counts.extend(changed(cursor, upsert) for _ in range(2))

        threads = [threading.Thread(target=count, args=(name,)) for name in ("oslo", "bergen", "kiosk")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert counts == [3] * 6
        assert cursor.execute("SELECT * FROM tallies ORDER BY id").fetchall() == [(0, 6), (1, 6), (2, 6)]

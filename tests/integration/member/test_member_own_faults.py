"""Tables of our own when something goes wrong around them: statements said again, loads by every door that are cut off,
tables that are never filled, rules about columns and copies."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import skerry
import skerry.aio
from skerry.cli.main import main
from skerry.config import load
from skerry.member.requests import RunStatement
from skerry.model.caller import Caller
from skerry.model.errors import SiteError, UserError
from skerry.model.ids import QueryId
from skerry.model.rights import EVERYTHING
from skerry.model.sharded import Create, Making, OwnColumn, OwnTable
from skerry.spark.engine import Engine
from skerry.testing.cluster import LocalCluster
from tests.integration.member.member_sites import PATIENT, nothing_left, wait_until, write_sites
from tests.integration.member.test_member_own_loads import left_in
from tests.integration.member.test_member_own_reads import wait_for

MANY = 5000  # more than tuples: they are staged
RULES = """
roles:
  reader:
    - {on: goods, own: true, select: true, masks: {secret: "'*'"}}
    - {on: oslo.flags, own: true, select: true, where: id > 1}
    - {on: bergen.flags, own: true, select: true}
  clerk: [{on: goods, own: true, insert: true}]
  boss: [{on: '*', select: true, insert: true, define: true}]
users: {anna: [reader], bill: [boss], carl: [clerk]}
"""


def rows(first: int, upto: int) -> pa.Table:
    return pa.table({"id": pa.array(range(first, upto), pa.int32()), "n": pa.repeat(7, upto - first)})


def test_statements_that_are_said_again_after_restarts(two_sites: LocalCluster) -> None:
    """Through a member without a disk: it has forgotten all, and the keeper was restarted too."""
    said: list[tuple[QueryId, str, int]] = []
    with two_sites.connect("kiosk") as connection:
        cursor = connection.cursor()
        for sql, count in (
            ("CREATE TABLE t (id INT, n INT) PRIMARY KEY (id) DISTRIBUTED BY (id)", 0),
            ("CREATE TABLE gone (id INT) PRIMARY KEY (id) DISTRIBUTED BY (id)", 0),
            ("INSERT INTO t SELECT id, 0 FROM range(3)", 3),
            ("UPDATE t SET n = n + 1 WHERE n = 0", 3),
            ("CREATE TABLE twin PRIMARY KEY (id) DISTRIBUTED GLOBALLY AS SELECT id FROM t", 3),
            ("DELETE FROM t WHERE id = 2", 1),
            ("ALTER TABLE t ADD COLUMN more INT", 0),
            ("DROP TABLE gone", 0),
        ):
            assert cursor.execute(sql).rowcount == count
            said.append((cursor.query_id, sql, count))
        assert cursor.load("t", rows(10, 12)).rowcount == 2
        loaded = cursor.query_id
    for member in ("kiosk", "oslo"):
        two_sites.stop_member(member)
    # Nothing is sent to a member that is down, so nothing is in doubt.
    with two_sites.connect("bergen") as connection:
        cursor = connection.cursor()
        texts = (f"INSERT INTO t (id) VALUES ({number})" for number in range(100, 200))
        at_oslo = next(text for text in texts if "oslo" in str(cursor.execute(f"EXPLAIN {text}").fetchall()))
        for sql, why in (
            (at_oslo, "site oslo is down: .*nothing was written"),
            ("CREATE TABLE late (id INT) PRIMARY KEY (id) DISTRIBUTED BY (id)", "oslo keeps .*nothing was changed"),
            ("DROP TABLE t", "oslo keeps the definitions of tables, .*nothing was changed"),
        ):
            with pytest.raises(skerry.OperationalError, match=why) as down:
                cursor.execute(sql)
            assert (sql, down.value.code) == (sql, SiteError.code)
    for member in ("oslo", "kiosk"):
        two_sites.start_member(member)
    # What is made once more by others is not touched, either.
    wait_for(lambda: two_sites.connect("bergen").cursor().execute("SELECT count(*) FROM t").fetchall())
    two_sites.connect("bergen").cursor().execute("CREATE TABLE gone (id INT) PRIMARY KEY (id) DISTRIBUTED BY (id)")
    with two_sites.connect("kiosk") as connection:
        cursor = connection.cursor()
        for query, sql, count in said:
            assert (sql, cursor.execute(sql, query_id=query).rowcount) == (sql, count)
        assert cursor.load("t", rows(10, 12), query_id=loaded).rowcount == 2
        assert cursor.execute("SELECT * FROM t ORDER BY id").fetchall() == [
            *[(0, 1, None), (1, 1, None), (10, 7, None), (11, 7, None)]
        ]
        assert cursor.execute("SELECT * FROM twin ORDER BY id").fetchall() == [(0,), (1,), (2,)]
        assert cursor.execute("SELECT * FROM gone").fetchall() == []
        # One that was never carried out is not taken for another's doing.
        with pytest.raises(skerry.ProgrammingError, match="exists already"):
            cursor.execute(said[0][1], query_id=QueryId("kiosk", "never"))
        cursor.execute("DROP TABLE twin")
        with pytest.raises(skerry.ProgrammingError, match="has made its table, which was dropped since"):
            cursor.execute(said[4][1], query_id=said[4][0])


def test_a_table_whose_statement_ended_before_its_rows_were_written(two_sites: LocalCluster) -> None:
    """Nobody sees it, and it goes: whoever decides its commit finds that there is none."""
    table = OwnTable(0, "half", 0, (OwnColumn("id", "int", is_nullable=False),), ("id",), ("id",), ("oslo", "bergen"))
    for initiator in ("bergen", "kiosk"):
        own = two_sites.members[initiator].own_tables

        async def make(own: Any = own, initiator: str = initiator) -> None:
            making = Making(QueryId(initiator, "half"), own.now())
            await own.defining.define(QueryId(initiator, "half-make"), Create(table, making=making), EVERYTHING)

        two_sites.call(make())
        cursor = two_sites.connect("oslo").cursor()
        if initiator == "kiosk":  # which may still be at work, as far as others can tell
            assert "half" not in str(cursor.execute("SHOW TABLES").fetchall())
            with pytest.raises(skerry.ProgrammingError, match="is being made by another statement"):
                cursor.execute("CREATE TABLE half (id INT) PRIMARY KEY (id) DISTRIBUTED BY (id)")
            two_sites.stop_member("kiosk")

        async def numbers() -> set[str]:
            known = two_sites.members["oslo"].own_tables
            return {each.table.name for each in known._by_id.values()}

        wait_until(lambda: "half" not in two_sites.call(numbers()), "the table is gone")
    two_sites.start_member("kiosk")


def test_loads_by_every_door(two_sites: LocalCluster, tmp_path: Path) -> None:
    cursor, other = two_sites.connect("oslo").cursor(), two_sites.connect("bergen").cursor()
    cursor.execute("CREATE TABLE spread (id INT, n INT) PRIMARY KEY (id) DISTRIBUTED BY (id)")
    cursor.execute("CREATE TABLE copied (id INT, n INT) PRIMARY KEY (id) DISTRIBUTED GLOBALLY")
    url = f"skerry://{two_sites.config.member('bergen').address}"

    async def load_both(table: str, first: int) -> list[int]:
        async with await skerry.aio.connect(url, timeout_s=60.0) as connection:
            loads = [(await connection.cursor().load(table, rows(first, first + 3))).rowcount]
            loads.append((await connection.cursor().load(table, rows(first + 3, first + MANY))).rowcount)
            return loads

    for table in ("spread", "copied"):
        assert asyncio.run(load_both(table, 0)) == [3, MANY - 3]
        pq.write_table(rows(MANY - 1, MANY + 2), tmp_path / "more.parquet")
        told = CliRunner().invoke(
            main, ["load", url, table, str(tmp_path / "more.parquet"), "--on-conflict", "nothing"]
        )
        assert "(2 rows loaded, 1 row not" in told.output, told.output
        told = CliRunner().invoke(main, ["load", url, table, str(tmp_path / "more.parquet")])
        assert told.exit_code == 1
        assert "same primary key" in told.output
        for each in (cursor, other):  # of a table with copies, each reads its own
            found = each.execute(f"SELECT count(*), count(DISTINCT id) FROM {table}").fetchall()
            assert found == [(MANY + 2, MANY + 2)]
        # Said again by its id, whatever was said before: its rows are there once.
        assert cursor.load(table, rows(MANY + 2, 3 * MANY)).rowcount == 2 * MANY - 2
        assert cursor.load(table, rows(MANY + 2, 3 * MANY), query_id=cursor.query_id).rowcount == 2 * MANY - 2
        assert other.execute(f"SELECT count(*) FROM {table}").fetchall() == [(3 * MANY,)]


def test_a_load_whose_connection_is_lost(two_sites: LocalCluster) -> None:
    """Before its last row nothing is written, and the error says so; a second try by its id does not know that."""
    cursor = two_sites.connect("oslo").cursor()
    cursor.execute("CREATE TABLE cut (id INT, n INT) PRIMARY KEY (id) DISTRIBUTED GLOBALLY")
    for is_again, kind in ((False, skerry.OperationalError), (True, skerry.OutcomeUnknown)):
        connection = two_sites.connect("bergen")

        def batches(connection: skerry.Connection = connection) -> Iterator[pa.RecordBatch]:
            for first in range(0, 100 * MANY, MANY):
                if first == 3 * MANY:
                    connection._links.home._connection.close()
                yield from rows(first, first + MANY).to_batches()

        reader = pa.RecordBatchReader.from_batches(rows(0, 0).schema, batches())
        with pytest.raises(kind) as lost:
            connection.cursor().load("cut", reader, query_id=QueryId("bergen", "cut") if is_again else None)
        assert isinstance(lost.value, skerry.OutcomeUnknown) == is_again
    assert cursor.execute("SELECT count(*) FROM cut").fetchall() == [(0,)]
    wait_until(lambda: left_in(two_sites) == [], "nothing is left of the rows")


def test_rules_name_columns_and_copies(sail_engine: Engine, fault_tables: Any, tmp_path: Path) -> None:
    file = tmp_path / "rules.yaml"
    file.write_text(RULES)
    more = {"state": str(tmp_path / "state"), "access": {"rules": "rules.yaml"}}
    tables = {name: fault_tables[name] for name in ("oslo", "bergen")}
    path = write_sites(tmp_path / "skerry.yaml", tables, limits=PATIENT, more=more)
    with LocalCluster(load(str(path)), engine=sail_engine) as two_sites:

        def does(user: str, sql: str, at: str = "bergen", **options: str) -> str:
            caller = Caller(user, "native", "127.0.0.1:1", uuid.uuid4().hex)
            statement = RunStatement(QueryId(at, uuid.uuid4().hex), sql, options=options)
            try:
                two_sites.call(two_sites.members[at].service.execute(caller, statement))
                return ""
            except UserError as error:
                return error.message

        assert does("bill", "CREATE TABLE goods (id INT, secret STRING) PRIMARY KEY (id) DISTRIBUTED BY (id)") == ""
        assert does("bill", "CREATE TABLE flags (id INT) PRIMARY KEY (id) DISTRIBUTED GLOBALLY") == ""
        assert does("anna", "SELECT * FROM goods") == ""
        # One copy is read, and which one it is must not decide what anna sees.
        assert "your rights differ between its parts" in does("anna", "SELECT * FROM flags")
        assert does("bill", "SELECT * FROM flags") == ""
        for member in ("oslo", "bergen"):  # a mask of `secret` would not hide `open`
            refused = does("bill", "ALTER TABLE goods RENAME COLUMN secret TO open", member)
            assert "a rule of role reader names a column that would get, or lose, its name" in refused
        # Rows are taken, in the first place, of who may insert, or replace.
        insert = "INSERT INTO goods (`id`) VALUES (?)"
        assert does("anna", insert, load="1") == "user anna may not insert rows of table goods"
        replaced = does("carl", f"{insert} ON CONFLICT DO REPLACE", load="1")
        assert replaced == "user carl may not update rows of table goods"
        file.write_text(RULES.replace("masks: {secret", "masks: {open"))
        # Rules that speak of a column which is not there hide nothing: then nothing is shown.
        assert "speaks of column open, which the table does not have" in does("anna", "SELECT id FROM goods")
        file.write_text(RULES.replace(""", masks: {secret: "'*'"}""", ""))
        assert does("bill", "ALTER TABLE goods RENAME COLUMN secret TO open") == ""
        file.write_text(RULES.replace("masks: {secret", "masks: {open"))
        assert does("anna", "SELECT id, open FROM goods") == ""
        nothing_left(two_sites)

"""Tables of our own, read: from any member, at one moment, with and without rows that no file holds yet."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import skerry
from skerry.client.dbapi import Cursor
from skerry.config import load
from skerry.spark.engine import Engine
from skerry.tables.clock import moment_text, seconds, timestamp_of
from skerry.tables.columns import arrow_type
from skerry.testing.cluster import LocalCluster
from tests.integration.member.member_sites import PATIENT, nothing_left, wait_until, write_sites
from tests.unit.tables.table_samples import KEY_TYPES, TYPES

# A table with rows of every type, beside a table of files that is to have the same rows.
COLUMNS = {"id": "bigint", "k.y": "string", **{f"c{number}": kind for number, kind in enumerate(KEY_TYPES)}}
WIDE = pa.schema([pa.field(name, arrow_type(kind)) for name, kind in COLUMNS.items()])
KEYS = ("", "smør", "A", "a")


@pytest.fixture(scope="module")
def twin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("twin")
    pq.write_table(WIDE.empty_table(), folder / "rows.parquet", store_schema=False)
    return folder


@pytest.fixture(scope="module")
def cluster(
    sail_engine: Engine,
    fault_tables: Mapping[str, Mapping[str, Path]],
    twin: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[LocalCluster]:
    """Two sites, and a member that only asks."""
    tables = {"oslo": {**fault_tables["oslo"], "twin": twin}, "bergen": fault_tables["bergen"]}
    folder = tmp_path_factory.mktemp("own")
    more = {"state": str(folder / "state")}
    path = write_sites(folder / "skerry.yaml", tables, limits=PATIENT, lite=("kiosk",), more=more)
    with LocalCluster(load(path), engine=sail_engine) as cluster:
        yield cluster
        nothing_left(cluster)


def row(number: int, turn: int = 0) -> tuple[Any, ...]:
    samples = ([None, *TYPES[kind]] for kind in KEY_TYPES)
    return number, KEYS[number % 4], *(values[(number + turn) % len(values)] for values in samples)


def insert(cursor: Cursor, rows: list[tuple[Any, ...]]) -> None:
    marks = ", ".join("?" * len(COLUMNS))
    for each in rows:
        cursor.execute(f"INSERT INTO wide VALUES ({marks}) ON CONFLICT DO REPLACE", each)


def wait_for(ask: Callable[[], Any]) -> Any:
    """The answer, once all members are there."""
    found: list[Any] = []

    def is_answered() -> bool:
        with contextlib.suppress(skerry.OperationalError):
            found.append(ask())
        return bool(found)

    wait_until(is_answered, "an answer")
    return found[0]


def test_rows_are_those_of_files_with_the_same(cluster: LocalCluster, twin: Path) -> None:
    cursor, other = cluster.connect("kiosk").cursor(), cluster.connect("bergen").cursor()
    columns = ", ".join(f"`{name}` {kind}" for name, kind in COLUMNS.items())
    cursor.execute(f"CREATE TABLE Wide ({columns}) PRIMARY KEY (`k.y`, id) DISTRIBUTED BY (id)")
    want: dict[int, tuple[Any, ...]] = {}

    def check() -> None:
        rows = [dict(zip(COLUMNS, each, strict=True)) for each in want.values()]
        pq.write_table(pa.Table.from_pylist(rows, WIDE), twin / "rows.parquet", store_schema=False)
        for asked in ("*", "c0, `k.y`, c13"):
            own = cursor.execute(f"SELECT {asked} FROM wide ORDER BY id").fetchall()
            assert repr(own) == repr(other.execute(f"SELECT {asked} FROM twin ORDER BY id").fetchall())
        joined = "SELECT count(*), sum(t.id) FROM wide w JOIN ticks t ON w.id = t.id AND w.`k.y` IS NOT NULL"
        assert other.execute(joined).fetchall() == [(len(want), sum(want) if want else None)]

    check()
    want |= {number: row(number) for number in range(24)}
    insert(other, list(want.values()))
    check()
    cursor.execute("FLUSH TABLE wide")
    check()
    want |= {number: row(number, 1) for number in range(0, 30, 3)}
    insert(cursor, [want[number] for number in range(0, 30, 3)])
    for number in (0, 1, 2, 7, 27):
        assert other.execute("DELETE FROM wide WHERE id = ? AND `k.y` = ?", want.pop(number)[:2]).rowcount == 1
    check()
    cursor.execute("FLUSH TABLE wide")
    check()


def test_all_members_are_read_at_one_moment(cluster: LocalCluster) -> None:
    cursor = cluster.connect("bergen").cursor()
    cursor.execute("CREATE TABLE accounts (id INT, amount INT) PRIMARY KEY (id) DISTRIBUTED BY (id)")
    cursor.execute("CREATE TABLE rates (id INT, rate INT) PRIMARY KEY (id) DISTRIBUTED GLOBALLY")
    cursor.execute("INSERT INTO rates VALUES (1, 1)")
    write = "INSERT INTO accounts VALUES {} ON CONFLICT DO REPLACE"
    whole = ", ".join(f"({number}, 10)" for number in range(20))
    cursor.execute(write.format(whole))
    parts = [cursor.execute(f"SELECT count(*) FROM {site}.accounts").fetchone() for site in ("oslo", "bergen")]
    assert sum(count for (count,) in parts) == 20
    assert all(count for (count,) in parts)
    # A key is in one place, which alone is asked.
    for number in range(20):
        assert cursor.execute("SELECT amount FROM accounts WHERE id = ?", (number,)).fetchall() == [(10,)]
    plan = cursor.execute("EXPLAIN SELECT a.amount FROM accounts a WHERE a.id IN (7) AND a.amount > 1").fetchall()
    assert sum("reads table accounts" in line for (line,) in plan) == 1
    stop = threading.Event()

    def transfer() -> None:
        writer, turn = cluster.connect("oslo").cursor(), 0
        while not stop.is_set():
            turn += 1
            moved = ", ".join(f"({number}, {10 + (turn % 7) * (-1) ** number})" for number in range(20))
            writer.execute(write.format(moved))

    thread = threading.Thread(target=transfer)
    thread.start()
    try:
        seen = set()
        for turn in range(24):
            reader = cluster.connect(("kiosk", "oslo", "bergen")[turn % 3]).cursor()
            if turn == 12:
                reader.execute("FLUSH TABLE accounts")
            sql = "SELECT sum(amount * rate), min(amount), max(amount) FROM accounts JOIN rates ON rates.id = 1"
            ((total, least, most),) = reader.execute(sql).fetchall()
            assert (total, least + most) == (200, 20)
            seen.add(least)
    finally:
        stop.set()
        thread.join()
    assert len(seen) > 1


def test_definitions_come_and_go(cluster: LocalCluster) -> None:
    oslo, bergen, kiosk = (cluster.connect(name).cursor() for name in ("oslo", "bergen", "kiosk"))
    oslo.execute("CREATE TABLE codes (id INT, name STRING) PRIMARY KEY (id) DISTRIBUTED GLOBALLY")
    oslo.execute("CREATE TABLE stock (id INT) PRIMARY KEY (id) DISTRIBUTED BY (id) IN (bergen)")
    bergen.execute("INSERT INTO codes VALUES (1, 'a'), (2, 'b')")
    bergen.execute("INSERT INTO stock VALUES (1), (2), (3)")
    joined = "SELECT c.name FROM codes c JOIN stock s ON s.id = c.id ORDER BY 1"
    for cursor in (oslo, bergen, kiosk):
        assert cursor.execute(joined).fetchall() == [("a",), ("b",)]
    # A copy is read beside the other tables.
    assert "fragment 1 at bergen: reads table codes; table stock" in str(oslo.execute("EXPLAIN " + joined).fetchall())
    shown = {row[0]: row[1:] for row in kiosk.execute("SHOW TABLES").fetchall()}
    assert shown["codes"][:2] == ("oslo, bergen", 2)
    assert shown["stock"][:2] == ("bergen", 3)
    assert {shown[name][3] for name in ("codes", "stock")} == {"skerry"}
    assert kiosk.execute("DESCRIBE stock").fetchall() == [("id", "int")]
    assert ("  buckets", "all, as at each member") in kiosk.execute("DESCRIBE EXTENDED codes").fetchall()
    # Another table of the same name is another table, for statements that were planned before, too.
    bergen.execute("DROP TABLE stock")
    with pytest.raises(skerry.ProgrammingError, match="unknown table stock"):
        kiosk.execute("SELECT * FROM stock")
    oslo.execute("CREATE TABLE stock (id BIGINT, name STRING) PRIMARY KEY (id) DISTRIBUTED BY (id)")
    assert kiosk.execute(joined).fetchall() == []
    oslo.execute("INSERT INTO stock VALUES (2, 'x'), (3, 'y')")
    assert kiosk.execute(joined).fetchall() == [("b",)]
    # Without a member its shard is missed by name; a copy is anywhere, and a key where it is.
    oslo.executemany("INSERT INTO stock VALUES (?, 'z')", [(number,) for number in range(10, 20)])
    ((here,),) = oslo.execute("SELECT max(id) FROM oslo.stock WHERE id >= 10").fetchall()
    ((there,),) = oslo.execute("SELECT max(id) FROM bergen.stock WHERE id >= 10").fetchall()
    cluster.stop_member("bergen")
    assert kiosk.execute("SELECT name FROM stock WHERE id = ?", (here,)).fetchall() == [("z",)]
    with pytest.raises(skerry.OperationalError, match="bergen"):
        kiosk.execute("SELECT name FROM stock WHERE id = ?", (there,))
    assert oslo.execute("SELECT count(*) FROM codes").fetchall() == [(2,)]
    with pytest.raises(skerry.OperationalError, match="bergen"):
        kiosk.execute("SELECT * FROM stock")
    cluster.start_member("bergen")
    assert wait_for(lambda: kiosk.execute(joined).fetchall()) == [("b",)]


def test_a_member_that_was_taken_over_reads_no_other_moment(
    cluster: LocalCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    oslo = cluster.connect("oslo").cursor()
    oslo.execute("CREATE TABLE goods (id INT) PRIMARY KEY (id) DISTRIBUTED BY (id) IN (bergen)")
    oslo.execute("INSERT INTO goods VALUES (1)")
    now = timestamp_of(time.time_ns() // 1000)
    for moment, words in ((0, "changed"), (now + seconds(60), "clock"), (-1, "goods")):
        with monkeypatch.context() as patch:
            patch.setattr(cluster.members["oslo"].own_tables, "now", lambda at_least=0, at=moment: at)
            with pytest.raises(skerry.Error, match=words):
                oslo.execute("SELECT * FROM goods")
        assert oslo.execute("SELECT * FROM goods").fetchall() == [(1,)]


def test_a_table_as_it_was(cluster: LocalCluster) -> None:
    with cluster.connect("kiosk") as connection, connection.cursor() as cursor:

        def rows(sql: str) -> list[tuple[Any, ...]]:
            return cursor.execute(sql).fetchall()

        def moment() -> int:
            async def now() -> int:
                return cluster.members["bergen"].own_tables.now()

            return cluster.call(now())

        def refused(sql: str) -> str:
            with pytest.raises(skerry.Error) as caught:
                cursor.execute(sql).fetchall()
            return str(caught.value)

        cursor.execute("CREATE TABLE past (id INT, v STRING) PRIMARY KEY (id) DISTRIBUTED BY (id)")
        cursor.execute("INSERT INTO past VALUES (1, 'a'), (2, 'a'), (3, 'a'), (4, 'a')")
        first = moment()
        at = moment_text(first + seconds(0.000001))
        time.sleep(0.002)
        cursor.execute("UPDATE past SET v = 'b' WHERE id IN (1, 2, 3)")
        cursor.execute("DELETE FROM past WHERE id = 4")
        second = moment()
        cursor.execute("FLUSH TABLE past")
        cursor.execute("ALTER TABLE past ADD COLUMN more INT DEFAULT 7")
        cursor.execute("INSERT INTO past VALUES (5, 'c', 8)")
        was = [(1, "a", 7), (2, "a", 7), (3, "a", 7), (4, "a", 7)]
        assert rows(f"SELECT * FROM past VERSION AS OF {first} AS p ORDER BY id") == was
        assert rows(f"SELECT * FROM past FOR TIMESTAMP AS OF '{at}' ORDER BY id") == was
        assert rows(f"SELECT * FROM past TIMESTAMP AS OF TIMESTAMP '{at}' ORDER BY id") == was
        both = f"FROM past VERSION AS OF {second} p JOIN past VERSION AS OF {second} q ON p.id = q.id"
        both += " JOIN few f ON f.id = p.id"
        assert rows(f"SELECT p.id, q.v, count(*) {both} GROUP BY p.id, q.v ORDER BY 1") == [
            (n, "b", 2) for n in (1, 2, 3)
        ]
        assert len(rows("SELECT * FROM past")) == 4
        assert rows("SELECT timestamp AS of FROM (SELECT 1 AS timestamp)") == [(1,)]

        assert "say the same AS OF behind table past" in refused(f"SELECT * FROM past VERSION AS OF {first}, past p")
        assert "AS OF is for tables of our own" in refused("SELECT * FROM few VERSION AS OF 1")
        named = "WITH q AS (SELECT 1) SELECT * FROM q TIMESTAMP AS OF '2024-01-01'"
        assert "AS OF stands behind a table" in refused(named)
        assert "the moment is to come" in refused("SELECT * FROM past TIMESTAMP AS OF '9999-01-01'")
        assert "in UTC" in refused("SELECT * FROM past TIMESTAMP AS OF 'yesterday'")
        assert "reads what is there now" in refused(f"DELETE FROM past VERSION AS OF {first} WHERE id = 1")
        # What was there comes back, whoever has written since.
        restore = f"INSERT INTO past SELECT * FROM past VERSION AS OF {first} ON CONFLICT DO"
        assert cursor.execute(f"{restore} NOTHING").rowcount == 1
        assert rows("SELECT id, v FROM past WHERE id > 2 ORDER BY id") == [(3, "b"), (4, "a"), (5, "c")]
        assert cursor.execute(f"{restore} REPLACE").rowcount == 4
        assert rows("SELECT * FROM past ORDER BY id") == [*was, (5, "c", 8)]

        async def trim() -> None:
            for name in ("oslo", "bergen"):
                own = cluster.members[name].own_tables
                table = own.definitions["past"].table.id
                await own.flush(table)
                assert own._flusher is not None
                await own._flusher.trim(own._shards[table], own.now())

        cluster.call(trim())
        message = refused(f"SELECT count(*) FROM past VERSION AS OF {first}")
        assert "can no longer be read as it was" in message
        oldest = int(message.partition("its history begins at ")[2].split()[0])
        assert first < oldest <= moment()
        assert rows(f"SELECT count(*) FROM past VERSION AS OF {moment()}") == [(5,)]
        # A table that was made again has nothing to do with the one before.
        ((made,),) = rows("SHOW CREATE TABLE past")
        cursor.execute("DROP TABLE past")
        cursor.execute(made)
        assert rows("SELECT count(*) FROM past") == [(0,)]
        assert "it was made later" in refused(f"SELECT count(*) FROM past VERSION AS OF {first}")
        assert "it was made later" in refused("SELECT count(*) FROM past TIMESTAMP AS OF '1950-01-01'")
        cursor.execute("DROP TABLE past")

"""Tables of our own, defined and written: at any member, by any member, over restarts and absences."""

from __future__ import annotations

import datetime as dt
import shutil
import threading
import uuid
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import pytest

import skerry
from skerry.client.rows import decode_page
from skerry.config import load
from skerry.member.requests import CountAnswer, RowsAnswer, RunStatement
from skerry.model import trace
from skerry.model.caller import Caller
from skerry.model.commits import Part, Policy, TransactionId, Versions, Write
from skerry.model.errors import OutcomeUnknown, PeerError, StaleSchema, UserError
from skerry.model.ids import QueryId
from skerry.model.limits import Limits
from skerry.model.sharded import Catalogue, Drop
from skerry.spark.engine import Engine
from skerry.testing.cluster import LocalCluster
from skerry.wire.codec import decode_schema
from skerry.wire.commit_messages import AskOutcome, Decided, Outcome, Prepare, Submit, Vote
from skerry.wire.definition_messages import Define, Definitions
from skerry.wire.messages import Message
from tests.integration.member.member_sites import PATIENT, nothing_left, wait_until, write_sites

CREATE = "CREATE TABLE Stock (id BIGINT, item STRING NOT NULL DEFAULT 'none', price DECIMAL(10,2)) PRIMARY KEY (id)"
RULES = """
roles:
  clerk: [{on: '*', select: true, insert: true}]
  boss: [{on: '*', select: true, insert: true, update: true, delete: true, define: true}]
  reader: [{on: stock, own: true, select: [id]}]
users: {anna: [clerk], bill: [boss], cara: [reader]}
"""


class Own:
    def __init__(self, cluster: LocalCluster) -> None:
        self.cluster = cluster

    def ask(self, member: str, sql: str, values: Any = ()) -> list[tuple[Any, ...]]:
        with self.cluster.connect(member) as connection:
            return connection.cursor().execute(sql, values).fetchall()

    def change(self, member: str, sql: str, values: Any = ()) -> int:
        with self.cluster.connect(member) as connection:
            return connection.cursor().execute(sql, values).rowcount

    def refused(self, member: str, sql: str) -> str:
        with pytest.raises(skerry.Error) as caught:
            self.change(member, sql)
        return str(caught.value)

    def execute(
        self, member: str, query: QueryId, sql: str, user: str = "", options: dict[str, str] | None = None
    ) -> int:
        """As a client does that says an id again, or as some user."""
        service = self.cluster.members[member].service
        caller = Caller(user, "native", "127.0.0.1:1", uuid.uuid4().hex)
        answer = self.cluster.call(service.execute(caller, RunStatement(query, sql, options=options or {})))
        assert isinstance(answer, CountAnswer)
        return answer.rows


@pytest.fixture
def own(sail_engine: Engine, fault_tables: Any, tmp_path: Path) -> Iterator[Own]:
    tables = {name: fault_tables[name] for name in ("oslo", "bergen")}
    more = {"state": str(tmp_path / "state")}
    path = write_sites(tmp_path / "skerry.yaml", tables, limits=PATIENT, lite=("kiosk",), more=more)
    with LocalCluster(load(str(path)), engine=sail_engine) as cluster:
        yield Own(cluster)
        nothing_left(cluster)


ALL = "SELECT id, item, price FROM stock ORDER BY id"


def test_a_table_is_made_written_and_read_by_any_member(own: Own, tmp_path: Path) -> None:
    own.change("kiosk", f"{CREATE} DISTRIBUTED BY (id)")
    own.change("oslo", "CREATE TABLE IF NOT EXISTS stock (other INT) PRIMARY KEY (other) DISTRIBUTED BY (other)")
    own.change("bergen", "CREATE TABLE names (id INT, name STRING) PRIMARY KEY (id) DISTRIBUTED GLOBALLY")
    assert "exists already" in own.refused("bergen", f"{CREATE} DISTRIBUTED BY (id)")
    assert "is in the configuration" in own.refused("oslo", CREATE.replace("Stock", "FEW") + " DISTRIBUTED BY (id)")

    # Rows of both members in one statement, from a member without a disk too.
    assert own.change("kiosk", "INSERT INTO stock (price, id) VALUES (1.5, 1), (2, 2), (NULL, 3), (4, 4)") == 4
    assert own.change("bergen", "INSERT INTO stock VALUES (?, ?, ?)", [5, "fünf", Decimal("5.25")]) == 1
    assert own.change("oslo", "INSERT INTO names VALUES (1, 'one'), (5, 'five')") == 2

    async def held() -> dict[str, int | None]:
        return {name: member.own_tables.size_of(1)[0] for name, member in own.cluster.members.items()}

    holders = own.cluster.call(held())
    assert holders["oslo"]
    assert holders["bergen"]
    assert holders["oslo"] + holders["bergen"] == 5

    # A connection knows its last commit, and reads no older moment, at any member; none is believed that is far ahead.
    with own.cluster.connect("bergen") as writes, own.cluster.connect("oslo") as reads:
        assert writes.last_commit == 0
        assert writes.cursor().execute("UPDATE stock SET price = 1.5 WHERE id = 1").rowcount == 1
        reads.last_commit = writes.last_commit
        assert reads.last_commit > 0
        assert reads.cursor().execute("SELECT price FROM stock WHERE id = 1").fetchall() == [(Decimal("1.5"),)]
        reads.last_commit += 3_600_000_000 << 11
        with pytest.raises(skerry.OperationalError, match="s ahead of the clock here"):
            reads.cursor().execute("SELECT 1").fetchall()

    # Policies: the same key in the table, and twice in one statement. Nothing of a refused statement stays.
    assert "same primary key exists" in own.refused("bergen", "INSERT INTO stock (id) VALUES (90), (1), (91), (92)")
    assert "two rows" in own.refused("bergen", "INSERT INTO stock (id) VALUES (93), (93)")
    assert own.change("bergen", "INSERT INTO stock VALUES (1, 'x', 9), (6, 'six', 6) ON CONFLICT DO NOTHING") == 1
    replaced = "INSERT INTO stock VALUES (2, 'two', 2), (7, 'a', 7), (7, 'b', 7) ON CONFLICT DO REPLACE"
    assert own.change("oslo", replaced) == 2
    assert "column item of Stock is NOT NULL" in own.refused("oslo", "INSERT INTO stock VALUES (8, NULL, 1)")

    # Rows that the overlay has, and rows that files have.
    for flushes in (False, True):
        if flushes:
            own.change("kiosk", "FLUSH TABLE stock")
        assert own.change("oslo", "UPDATE stock SET price = 3.5, item = DEFAULT WHERE id IN (3, 77)") == 1
        assert own.change("kiosk", f"UPDATE stock SET item = 'four{flushes}' WHERE id = 4") == 1
        assert own.change("kiosk", "UPDATE names SET name = 'ONE' WHERE id = 1") == 1
        assert own.change("bergen", "DELETE FROM stock WHERE id IN (6, 99)") == (0 if flushes else 1)
        rows = [
            *[(1, "none", Decimal("1.50")), (2, "two", Decimal(2)), (3, "none", Decimal("3.50"))],
            *[(4, f"four{flushes}", Decimal(4)), (5, "fünf", Decimal("5.25")), (7, "b", Decimal(7))],
        ]
        for member in own.cluster.members:
            assert own.ask(member, ALL) == rows
            joined = "SELECT s.id, n.name FROM stock s JOIN names n ON s.id = n.id JOIN few f ON f.id = s.id ORDER BY 1"
            assert own.ask(member, joined) == [(1, "ONE"), (1, "ONE"), (5, "five"), (5, "five")]

    # Each member tells what it holds; rows that were changed since the flush count twice.
    told = own.ask("kiosk", "SHOW TABLE STATUS stock")
    assert [(row[0], row[1], row[2], row[-1]) for row in told] == [
        ("Stock", member, 8192, None) for member in ("oslo", "bergen")
    ]
    (_, _, _, rows_here, waiting, waiting_bytes, files, size_bytes, flushed, did, *_), other = told
    assert (rows_here - waiting) + (other[3] - other[4]) == 6
    assert (waiting + other[4], waiting_bytes > 0 or other[5] > 0, files, size_bytes > 0) == (2, True, 1, True)
    assert flushed is not None
    assert did == "1 file written, 0 replaced"
    assert [row[:2] for row in own.ask("oslo", "SHOW TABLE STATUS")] == [
        *[("names", "oslo"), ("names", "bergen"), ("Stock", "oslo"), ("Stock", "bergen")]
    ]

    # executemany is one statement: all or nothing; of two that mean one row the later counts.
    def many(sql: str, values: list[Any]) -> int:
        with own.cluster.connect("kiosk") as connection:
            return connection.cursor().executemany(sql, values).rowcount

    insert = "INSERT INTO stock VALUES (?, 'many', ?)"
    assert many(insert, [(100 + place, Decimal(place) if place % 2 else place) for place in range(20)]) == 20
    with pytest.raises(skerry.IntegrityError, match="same primary key exists"):
        many(insert, [(200, 1), (100, 1), (201, 1)])
    with pytest.raises(skerry.ProgrammingError, match="values number 2 are 1, the statement has 2 parameters"):
        many(insert, [(200, 1), (201,)])
    update = "UPDATE stock SET item = :item WHERE id = :id"
    assert many(update, [{"id": 100, "item": "a"}, {"id": 101, "item": "b"}, {"id": 100, "item": "c"}]) == 2
    assert many("DELETE FROM stock WHERE id IN (?, ?)", [(102, 103), (103, 104), (999, 998)]) == 3
    found = own.ask("bergen", "SELECT count(*), min(item), max(item), sum(price) FROM stock WHERE id >= 100")
    assert found == [(17, "b", "many", Decimal("181.00"))]
    more = [(number, "many") for number in range(10_000, 15_000)]  # than constants of one set of values may be
    assert many("INSERT INTO stock (id, item) VALUES (?, ?)", more) == 5000
    assert many("UPDATE stock SET item = ? WHERE id = ?", [(item, number) for number, item in more]) == 5000
    assert many("DELETE FROM stock WHERE id = ?", [(number,) for number, _ in more]) == 5000
    for sql in ("UPDATE stock SET price = price + ? WHERE id = ?", "INSERT INTO stock (price, id) SELECT ?, ?"):
        with pytest.raises(skerry.ProgrammingError, match="executemany writes rows of constants"):
            many(sql, [(1, 100), (2, 101)])
    with pytest.raises(skerry.ProgrammingError, match="executemany writes rows of constants"):
        many("TRUNCATE TABLE stock", [(), ()])

    # What is not there is refused by name.
    assert "which Skerry only reads" in own.refused("oslo", "INSERT INTO few VALUES (1)")
    ((shown,),) = own.ask("kiosk", "SHOW CREATE TABLE stock")
    assert "DISTRIBUTED BY (`id`) IN (`oslo`, `bergen`)" in shown
    assert ("stock" in [name.lower() for name, *_ in own.ask("kiosk", "SHOW TABLES")]) is True

    # Dropped is dropped everywhere, with its files; the name is free, the number is not.
    own.change("bergen", "DROP TABLE stock")
    assert "unknown table" in own.refused("kiosk", "INSERT INTO stock (id) VALUES (1)")
    folder = tmp_path / "state" / "_faults.oslo.tables" / "1"
    wait_until(lambda: not folder.exists(), "the files are gone")
    own.change("kiosk", f"{CREATE} DISTRIBUTED BY (id) IN (bergen)")
    assert own.ask("oslo", ALL) == []
    assert own.ask("oslo", "SELECT count(*), count(DISTINCT id) FROM stock") == [(0, 0)]  # Sail groups no constants
    assert own.cluster.members["kiosk"].own_tables.definitions["stock"].table.id == 3
    assert many(insert, [(300, 1)]) == 1  # kiosk knows the text, of the table that was
    assert own.ask("bergen", ALL) == [(300, "many", Decimal(1))]


def test_columns_come_go_and_are_named_otherwise(own: Own, tmp_path: Path) -> None:
    own.change("oslo", f"{CREATE} DISTRIBUTED BY (id)")
    own.change("oslo", "INSERT INTO stock VALUES " + ", ".join(f"({n}, 'old', {n})" for n in range(40)))
    own.change("oslo", "FLUSH TABLE stock")
    own.change("oslo", "UPDATE stock SET price = 100 WHERE id IN (1, 2, 3, 4)")  # some in files, some beside them
    more = "n INT DEFAULT 7, ok BOOLEAN NOT NULL DEFAULT true, f DOUBLE DEFAULT 0.1, b BINARY DEFAULT X'00FF', d DATE"
    more += ", t TIMESTAMP DEFAULT TIMESTAMP '1969-12-31 23:59:59.5'"
    more += ", z TIMESTAMP_NTZ DEFAULT TIMESTAMP_NTZ '0001-01-01 00:00:00'"
    own.change(
        "kiosk", f"ALTER TABLE stock ADD COLUMNS ({more}, m DECIMAL(9,3) DEFAULT -1.5, s STRING DEFAULT 'it\\'s')"
    )
    own.change("bergen", "ALTER TABLE stock ADD COLUMN IF NOT EXISTS N STRING")
    values = (7, True, 0.1, b"\0\xff", None, dt.datetime(1969, 12, 31, 23, 59, 59, 500000, dt.UTC))
    values = (*values, dt.datetime(1, 1, 1), Decimal("-1.500"), "it's")
    for member in own.cluster.members:
        found = own.ask(member, "SELECT * FROM stock")
        assert {row[3:] for row in found} == {values}
        assert {row[0]: row[1:3] for row in found} == {
            n: ("old", Decimal(100 if n in (1, 2, 3, 4) else n)) for n in range(40)
        }
    # The key has another name, and what was dropped does not come back with a column of the same name.
    for sql in ("RENAME COLUMN id TO Number", "DROP COLUMN item", "DROP COLUMNS (ok, f, b, d, t, z, m, s)"):
        own.change("oslo", f"ALTER TABLE stock {sql}")
    own.change("oslo", "ALTER TABLE stock ADD COLUMN item STRING")
    assert own.change("bergen", "UPDATE stock SET item = 'new', n = n + 1 WHERE number IN (4, 5) AND item IS NULL") == 2
    assert own.change("bergen", "INSERT INTO stock (number, item) VALUES (40, 'more')") == 1
    assert "PRIMARY KEY, and stays" in own.refused("kiosk", "ALTER TABLE stock DROP COLUMN number")
    assert "give it a DEFAULT" in own.refused("kiosk", "ALTER TABLE stock ADD COLUMN x INT NOT NULL")
    own.cluster.stop_member("bergen")
    own.change("oslo", "ALTER TABLE stock RENAME COLUMN price TO cost")
    own.cluster.start_member("bergen")
    wanted = [(n, Decimal(100 if n in (1, 2, 3, 4) else n), 7, None) for n in range(40)]
    wanted[4:6] = [(4, Decimal(100), 8, "new"), (5, Decimal(5), 8, "new")]
    wanted.append((40, None, 7, "more"))
    for flushes in (False, True):
        if flushes:
            own.change("kiosk", "FLUSH TABLE stock")
        for member in own.cluster.members:
            assert own.ask(member, "SELECT number, cost, n, item FROM stock ORDER BY number") == wanted
            assert own.ask(member, "SELECT cost FROM stock WHERE number = 4") == [(Decimal(100),)]
    ((shown,),) = own.ask("bergen", "SHOW CREATE TABLE stock")
    assert "`Number` BIGINT NOT NULL,\n  `cost` DECIMAL(10,2),\n  `n` INT DEFAULT 7,\n  `item` STRING\n" in shown

    # Whoever writes meanwhile is planned again.
    def write(member: str, first: int) -> None:
        with own.cluster.connect(member) as connection:
            for n in range(first, first + 15):
                sql = f"INSERT INTO stock (number, cost) VALUES ({n}, 1), ({n + 1000}, 1)"
                counts.append(connection.cursor().execute(sql).rowcount)
            sql = f"UPDATE stock SET cost = cost + 1 WHERE number BETWEEN {first} AND {first + 14}"
            counts.append(connection.cursor().execute(sql).rowcount)

    counts: list[int] = []
    threads = [threading.Thread(target=write, args=each) for each in (("oslo", 100), ("bergen", 200), ("kiosk", 300))]
    for thread in threads:
        thread.start()
    for _ in range(2):  # no more: a statement that meets the fifth gives up
        own.change("bergen", "ALTER TABLE stock DROP COLUMN n")
        own.change("kiosk", "ALTER TABLE stock ADD COLUMN n INT DEFAULT 9")
        threads[0].join(0.3)
    for thread in threads:
        thread.join()
    assert sorted(counts) == [2] * 45 + [15] * 3
    found = own.ask("oslo", "SELECT count(*), sum(cost), min(n), max(n) FROM stock WHERE number >= 100")
    assert found == [(90, Decimal(135), 9, 9)]


def test_a_write_by_a_query_is_done_once(own: Own) -> None:
    own.change("oslo", f"{CREATE} DISTRIBUTED BY (id)")
    own.change("kiosk", "INSERT INTO stock (id, item) SELECT id, name FROM oslo.few WHERE id < 3")
    # Said again, it is answered and not run again, though what it would write has changed.
    again, longer = QueryId("bergen", uuid.uuid4().hex), "UPDATE stock SET item = concat(item, '!') WHERE id >= 1"
    assert own.execute("bergen", again, longer) == 2
    assert own.execute("bergen", again, longer, options={"again": "1"}) == 2
    with pytest.raises(UserError, match="was used before"):
        own.execute("bergen", again, longer)
    # An error of the second time tells nothing of the first.
    with pytest.raises(OutcomeUnknown, match="unknown table"):
        own.execute("bergen", again, "DELETE FROM nowhere", options={"again": "1"})
    own.change("oslo", "UPDATE stock SET id = id + 100 WHERE id = 1")
    own.cluster.stop_member("bergen")
    own.cluster.start_member("bergen")
    assert own.execute("bergen", again, longer) == 2
    assert own.ask("oslo", "SELECT id, item FROM stock ORDER BY id") == [
        (0, "oslo 0"),
        (2, "oslo 2!"),
        (101, "oslo 1!"),
    ]


def test_members_that_stop_and_come_back(own: Own, tmp_path: Path) -> None:
    own.change("oslo", f"{CREATE} DISTRIBUTED BY (id)")
    own.change("oslo", "CREATE TABLE gone (id INT) PRIMARY KEY (id) DISTRIBUTED BY (id)")
    rows = ", ".join(f"({number}, 'x', {number})" for number in range(200))
    again = QueryId("oslo", uuid.uuid4().hex)
    assert own.execute("oslo", again, f"INSERT INTO stock VALUES {rows}") == 200

    # bergen is away while tables come and go.
    own.cluster.stop_member("bergen")
    (here, away) = own.ask("kiosk", "SHOW TABLE STATUS stock")
    assert (here[1], here[-1], away[1:4]) == ("oslo", None, ("bergen", None, None))
    assert "bergen" in away[-1]
    own.change("kiosk", "CREATE TABLE later (id INT) PRIMARY KEY (id) DISTRIBUTED BY (id)")
    own.change("kiosk", "DROP TABLE gone")
    own.cluster.start_member("bergen")
    assert own.change("bergen", "INSERT INTO later VALUES (1), (2), (3), (4), (5)") == 5
    assert "unknown table" in own.refused("bergen", "INSERT INTO gone VALUES (1)")
    # A statement that was carried out is not carried out again, whatever became of those who did.
    own.cluster.stop_member("oslo")
    # Its keeper away, a table cannot be made, but rows of others are written.
    assert "oslo keeps the definitions" in own.refused(
        "bergen", "CREATE TABLE x (id INT) PRIMARY KEY (id) DISTRIBUTED BY (id)"
    )
    own.cluster.stop_member("kiosk")
    own.cluster.start_member("kiosk")
    for sql in ("SELECT count(*) FROM later", "INSERT INTO later VALUES (6)"):
        assert "oslo, which keeps the definitions of tables of our own, cannot be reached" in own.refused("kiosk", sql)
    own.cluster.start_member("oslo")
    assert own.execute("oslo", again, f"INSERT INTO stock VALUES {rows}") == 200
    assert own.ask("kiosk", "SELECT count(*), sum(price) FROM stock") == [(200, Decimal(19900))]
    assert own.ask("kiosk", "SELECT count(*) FROM later") == [(5,)]

    # A folder that is gone takes its rows with it: that is an error, after the next start too, and no shorter answer.
    own.cluster.stop_member("bergen")
    shutil.rmtree(tmp_path / "state" / "_faults.bergen.tables")
    own.change("kiosk", "ALTER TABLE later ADD COLUMN x INT")  # it is no newer table for that
    for _ in range(2):
        own.cluster.start_member("bergen")
        for sql in (
            "SELECT count(*) FROM later",
            "INSERT INTO later (id) VALUES (6), (7), (8), (9)",
            "FLUSH TABLE later",
        ):
            assert "site bergen: rows of table later are gone" in own.refused("kiosk", sql)
        own.cluster.stop_member("bergen")
    own.cluster.start_member("bergen")
    own.change("kiosk", "DROP TABLE later")
    own.change("kiosk", "CREATE TABLE later (id INT) PRIMARY KEY (id) DISTRIBUTED BY (id)")
    assert own.change("bergen", "INSERT INTO later VALUES (1), (2), (3), (4), (5)") == 5
    assert own.ask("oslo", "SELECT count(*) FROM later") == [(5,)]


def test_writers_of_the_same_rows_wait_for_each_other(own: Own) -> None:
    own.change("oslo", f"{CREATE} DISTRIBUTED BY (id)")
    counts: list[int] = []

    def write(member: str, name: str) -> None:
        with own.cluster.connect(member) as connection:
            for _ in range(8):
                values = ", ".join(f"({number}, '{name}', 1)" for number in range(8))
                sql = f"INSERT INTO stock VALUES {values} ON CONFLICT DO REPLACE"
                counts.append(connection.cursor().execute(sql).rowcount)
            for _ in range(4):
                sql = "UPDATE counter SET price = cast(price + 1 AS DECIMAL(10,2)) WHERE item = 'counter'"
                counts.append(8 * connection.cursor().execute(sql).rowcount)

    own.change("oslo", f"{CREATE.replace('Stock', 'counter')} DISTRIBUTED BY (id)")
    own.change("oslo", "INSERT INTO counter VALUES (1, 'counter', 0)")
    threads = [threading.Thread(target=write, args=each) for each in (("oslo", "a"), ("bergen", "b"), ("kiosk", "c"))]
    for thread in threads:
        thread.start()
    # All rows of a statement are seen, or none: whoever reads meanwhile finds one name.
    while any(thread.is_alive() for thread in threads):
        seen = own.ask("bergen", "SELECT count(DISTINCT item), count(*) FROM stock")
        assert seen in ([(1, 8)], [(0, 0)])
    for thread in threads:
        thread.join()
    assert counts == [8] * 36
    # No increment is lost: who read what another has changed since runs again.
    assert own.ask("kiosk", "SELECT price FROM counter") == [(Decimal(12),)]


def test_what_members_are_not_believed(own: Own) -> None:
    own.change("oslo", f"{CREATE} DISTRIBUTED BY (id)")
    own.change("oslo", "INSERT INTO stock VALUES (1, 'one', 1)")
    oslo = own.cluster.members["oslo"]
    definition = oslo.own_tables.definitions["stock"]
    versions = (Versions(1, definition.table.version, 1),)
    forged = QueryId("bergen", "forged")

    async def outcome(*writes: Write, versions: tuple[Versions, ...] = versions) -> Outcome:
        txn = TransactionId(QueryId("oslo", uuid.uuid4().hex))
        return await oslo.own_tables.submit(txn, oslo.own_tables.now(), {"oslo": Part(writes, (), versions)})

    key = {number: bytes([0x80, *bytes(6), number]) for number in range(50)}
    here = [number for number in range(50) if own.cluster.call(outcome(Write(1, key[number], None))).failure is None]
    assert 0 < len(here) < 50  # the others' buckets are elsewhere
    row = msgspec.msgpack.encode
    for wrong in (
        Write(1, b"short", None),
        Write(1, key[here[0]], b"\xc1"),
        Write(1, key[here[0]], row([here[0]])),
        Write(1, key[here[0]], row([here[0], None, None])),
        Write(1, key[here[0]], row([here[1], "another key", None])),
        Write(1, key[here[0]], row([here[0], 7, "not text"])),
        Write(1, key[here[0]], row([[9, "x"]]), Policy.REPLACE, True),
    ):
        if wrong.is_patch:
            own.cluster.call(outcome(Write(1, key[here[0]], row([here[0], "x", None]))))
        failure = own.cluster.call(outcome(wrong)).failure
        assert (failure and failure.code) == PeerError.code, wrong
    for stale in ((), (Versions(1, 99, 1),), (Versions(1, versions[0].version, 2),)):
        late = own.cluster.call(outcome(Write(1, key[here[0]], None), versions=stale))
        assert late.failure is not None
        assert late.failure.code == StaleSchema.code

    part, number = Part((Write(1, key[here[0]], None),), (), versions), TransactionId(forged)
    messages: list[tuple[str, Message]] = [
        ("bergen", Submit(TransactionId(QueryId("oslo", "q")), 1, 0, {"oslo": part}, 1)),
        ("bergen", Submit(number, 1, 0, {"bergen": part}, 1)),
        ("bergen", Submit(number, 1 << 70, 0, {"oslo": part}, 1)),
        ("bergen", Submit(number, -1, 0, {"oslo": part}, 1)),
        ("kiosk", Prepare(TransactionId(QueryId("kiosk", "q")), 1, 0, part, 1)),
        ("bergen", Prepare(TransactionId(QueryId("oslo", "q")), 1, 0, part, 1)),
        ("kiosk", Vote(number, "kiosk", 1, 1, 1)),
        ("bergen", Vote(number, "oslo", 1, 1, 1)),
        ("bergen", Decided(number, 1 << 63)),
        ("bergen", AskOutcome(QueryId("oslo", "q"), 1)),
        ("bergen", Define(QueryId("oslo", "q"), Drop(1, "stock"))),
        ("bergen", Definitions(Catalogue(99))),
    ]
    refused: list[Any] = []

    async def receive() -> None:
        trace.listeners.append(refused.append)
        try:
            for sender, message in messages:
                oslo._receive(sender, message)
        finally:
            trace.listeners.remove(refused.append)

    own.cluster.call(receive())
    codes = [event.reason.code for event in refused if isinstance(event, trace.MessageRefused)]
    assert codes == [PeerError.code] * len(messages)
    assert own.change("bergen", "INSERT INTO stock VALUES (2, 'two', 2) ON CONFLICT DO REPLACE") == 1


def test_who_may_write_and_define(sail_engine: Engine, fault_tables: Any, tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text(RULES)
    more = {"state": str(tmp_path / "state"), "access": {"rules": "rules.yaml"}}
    tables = {name: fault_tables[name] for name in ("oslo", "bergen")}
    path = write_sites(tmp_path / "skerry.yaml", tables, limits=PATIENT, more=more)
    with LocalCluster(load(str(path)), engine=sail_engine) as cluster:
        own = Own(cluster)

        def does(user: str, sql: str) -> str:
            try:
                return str(own.execute("bergen", QueryId("bergen", uuid.uuid4().hex), sql, user))
            except UserError as error:
                return error.message

        def told(user: str) -> list[tuple[Any, ...]]:
            service, caller = cluster.members["bergen"].service, Caller(user, "native", "127.0.0.1:1", uuid.uuid4().hex)
            statement = RunStatement(QueryId("bergen", uuid.uuid4().hex), "SHOW TABLE STATUS")
            answer = cluster.call(service.execute(caller, statement))
            assert isinstance(answer, RowsAnswer)
            batches = decode_page(answer.page, decode_schema(answer.schema.arrow), Limits())
            return [(row["member"], row["rows"], row["problem"]) for batch in batches for row in batch.to_pylist()]

        create = f"{CREATE} DISTRIBUTED BY (id)"
        assert does("anna", create) == "user anna may not define table Stock"
        assert does("bill", create) == "0"
        assert does("anna", "INSERT INTO stock (id) VALUES (1), (2), (3), (4)") == "4"
        replace = "INSERT INTO stock (id) VALUES (1) ON CONFLICT DO REPLACE"
        assert does("anna", replace) == "user anna may not update rows of table Stock"
        assert (
            does("anna", "UPDATE stock SET item = 'x' WHERE id = 1") == "user anna may not update rows of table Stock"
        )
        assert does("anna", "DELETE FROM stock WHERE id = 1") == "user anna may not delete rows of table Stock"
        assert does("cara", "INSERT INTO stock VALUES (1)") == "user cara may not insert rows of table Stock"
        assert does("nobody", "DELETE FROM stock WHERE id = 1").startswith("unknown table stock")
        assert does("cara", "SHOW CREATE TABLE stock").endswith("needs the right to read all its columns")
        (_, rows_here, problem), (_, others, _) = told("anna")
        assert (rows_here + others, problem) == (4, None)
        not_told = "numbers are for those who may read the whole table, or change it"
        assert told("cara") == [("oslo", None, not_told), ("bergen", None, not_told)]
        assert told("nobody") == []
        assert does("anna", "DROP TABLE stock") == "user anna may not define table Stock"
        assert (does("bill", replace), does("bill", "DELETE FROM stock WHERE id = 1")) == ("1", "1")
        assert (does("anna", "FLUSH TABLE stock"), does("bill", "DROP TABLE stock")) == ("0", "0")


def test_a_table_is_made_anew_while_a_statement_waits(own: Own) -> None:
    """Its rows are locked by a transaction that bergen alone can end; by then a query has to give what it writes."""
    create = "CREATE TABLE stock (id BIGINT, n INT) PRIMARY KEY ({}) DISTRIBUTED BY (id) IN (oslo)"
    own.change("oslo", create.format("id"))
    own.change("oslo", "INSERT INTO stock VALUES (1, 1)")
    oslo, locked = own.cluster.members["oslo"], TransactionId(QueryId("bergen", "locks"))
    definition = oslo.own_tables.definitions["stock"]
    part = Part((Write(1, bytes([0x80, *bytes(6), 1]), None),), (), (Versions(1, definition.table.version, 1),))
    own.cluster.stop_member("bergen")
    counts: list[int] = []
    waits = threading.Thread(target=lambda: counts.append(own.change("kiosk", "UPDATE stock SET n = 5 WHERE id = 1")))

    async def lock() -> None:
        oslo._receive("bergen", Prepare(locked, oslo.own_tables.now() + (1 << 35), 0, part, 1))

    own.cluster.call(lock())
    waits.start()
    core = oslo.own_tables._core._core
    wait_until(lambda: len(core._participant._taking) == 2, "the statement waits for the lock")
    own.change("oslo", "DROP TABLE stock")
    own.change("oslo", create.format("id, n"))
    own.change("oslo", "INSERT INTO stock VALUES (1, 1), (1, 2), (2, 1) ON CONFLICT DO NOTHING")
    own.change("oslo", "DELETE FROM stock WHERE id = 1 AND n = 2")
    own.cluster.start_member("bergen")
    waits.join()
    assert counts == [1]
    assert own.ask("bergen", "SELECT id, n FROM stock ORDER BY id") == [(1, 5), (2, 1)]

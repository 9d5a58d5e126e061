"""Transactions of several statements over tables of our own: one snapshot, own writes, one commit."""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest
import sqlalchemy

import skerry
import skerry.aio
from chaos.histories import Append, Outcome, Read, Transaction, Transfer, check_bank, check_lists
from skerry.client.dbapi import Connection, Cursor
from skerry.config import load
from skerry.model.commits import TransactionId
from skerry.model.errors import RolledBack, SiteError, unsure
from skerry.model.ids import QueryId
from skerry.model.progress import is_live
from skerry.spark.engine import Engine
from skerry.testing.cluster import LocalCluster
from tests.integration.client.proxy import Proxy
from tests.integration.member.member_sites import PATIENT, nothing_left, wait_until, write_sites


@pytest.fixture(scope="module")
def cluster(
    sail_engine: Engine, fault_tables: Mapping[str, Mapping[str, Path]], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LocalCluster]:
    """Three sites, and a member that only asks."""
    folder = tmp_path_factory.mktemp("transactions")
    more = {"state": str(folder / "state")}
    limits = {**PATIENT, "transactions_of_user": 6}
    path = write_sites(folder / "skerry.yaml", fault_tables, limits=limits, lite=("kiosk",), more=more)
    with LocalCluster(load(str(path)), engine=sail_engine) as cluster:
        yield cluster
        nothing_left(cluster)


def rows(cursor: Cursor, sql: str) -> list[Any]:
    return sorted(cursor.execute(sql).fetchall())


def refused(cursor: Cursor, sql: str) -> str:
    with pytest.raises(skerry.Error) as caught:
        cursor.execute(sql)
    return str(caught.value)


def test_a_transaction_reads_its_snapshot_and_its_own_writes_and_is_committed_whole(cluster: LocalCluster) -> None:
    """Through a member with tables, and one without; spread over all members, and copied to each."""
    with cluster.connect("oslo") as setup, cluster.connect("bergen") as other:
        cursor, look = setup.cursor(), other.cursor()
        for spread, name in (("BY (id)", "spread"), ("GLOBALLY", "copied")):
            cursor.execute(f"CREATE TABLE {name} (id INT, n INT, t STRING) PRIMARY KEY (id) DISTRIBUTED {spread}")
        for asked, name in (("oslo", "spread"), ("kiosk", "copied")):
            cursor.execute(f"DELETE FROM {name}")
            cursor.execute(f"INSERT INTO {name} VALUES (1, 1, 'a'), (2, 2, 'b'), (3, 3, 'c'), (4, 4, 'd')")
            cursor.execute(f"FLUSH TABLE {name}")
            cursor.execute(f"UPDATE {name} SET t = 'x' WHERE id = 3")
            before = [(1, 1, "a"), (2, 2, "b"), (3, 3, "x"), (4, 4, "d")]
            with cluster.connect(asked) as connection:
                connection.last_commit = setup.last_commit
                mine = connection.cursor()
                assert mine.execute("BEGIN").rowcount == 0
                assert "open already" in refused(mine, "START TRANSACTION")
                # What others commit since is not seen; nor do they see this.
                cursor.execute(f"INSERT INTO {name} VALUES (9, 9, 'late')")
                assert rows(mine, f"SELECT * FROM {name}") == before
                assert mine.execute(f"INSERT INTO {name} VALUES (5, 5, 'e'), (6, 6, 'f')").rowcount == 2
                assert mine.execute(f"UPDATE {name} SET n = 50 WHERE id IN (5, 7)").rowcount == 1
                assert mine.execute(f"UPDATE {name} SET n = n + 100 WHERE n < 3 OR id = 5").rowcount == 3
                assert mine.execute(f"DELETE FROM {name} WHERE id IN (2, 6, 7)").rowcount == 2
                assert mine.execute(f"DELETE FROM {name} WHERE t = 'd'").rowcount == 1
                assert mine.execute(f"UPDATE {name} SET t = 'y' WHERE id = 3").rowcount == 1
                expected = [(1, 101, "a"), (3, 3, "y"), (5, 150, "e")]
                assert rows(mine, f"SELECT * FROM {name}") == expected
                assert rows(mine, f"SELECT n FROM {name} WHERE id = 5") == [(150,)]
                assert rows(mine, f"SELECT count(*), sum(a.n) FROM {name} a JOIN {name} b ON a.id = b.id") == [(3, 254)]
                # A statement that fails leaves the transaction as it was.
                assert "same primary key" in refused(mine, f"INSERT INTO {name} VALUES (8, 8, ''), (5, 5, '')")
                assert "same primary key" in refused(mine, f"INSERT INTO {name} SELECT id, 0, '' FROM {name}")
                assert (
                    mine.execute(
                        f"INSERT INTO {name} VALUES (5, 0, 'no'), (2, 22, 'z') ON CONFLICT DO NOTHING"
                    ).rowcount
                    == 1
                )
                assert mine.execute(f"INSERT INTO {name} VALUES (3, 33, 'r') ON CONFLICT DO REPLACE").rowcount == 1
                assert mine.execute(f"INSERT INTO {name} SELECT id + 10, n, t FROM {name} WHERE id > 2").rowcount == 2
                assert mine.execute(f"UPDATE {name} SET id = 20 WHERE id = 13").rowcount == 1
                assert mine.executemany(f"INSERT INTO {name} VALUES (?, 0, '')", [(21,), (22,)]).rowcount == 2
                assert mine.execute(f"DELETE FROM {name} WHERE id > 20").rowcount == 2
                merge = f"MERGE INTO {name} t USING (SELECT 20 AS id UNION ALL SELECT 30) s ON t.id = s.id WHEN MATCHED"
                insert = "WHEN NOT MATCHED THEN INSERT (id, n) VALUES (s.id, 1)"
                assert mine.execute(f"{merge} THEN UPDATE SET n = 34 {insert}").rowcount == 2
                expected = [(1, 101, "a"), (2, 22, "z"), (3, 33, "r"), (5, 150, "e"), (15, 150, "e"), (20, 34, "r")]
                expected.append((30, 1, None))  # type: ignore[arg-type]
                assert rows(mine, f"SELECT * FROM {name}") == expected
                assert rows(look, f"SELECT * FROM {name}") == [*before, (9, 9, "late")]
                assert mine.execute("COMMIT WORK").rowcount == 0
                other.last_commit = connection.last_commit
            assert rows(look, f"SELECT * FROM {name}") == sorted([*expected, (9, 9, "late")])


def committed(connection: Connection) -> int:
    """0, or the code of the error that says why it is not."""
    try:
        connection.commit()
    except skerry.OperationalError as error:
        if error.code != RolledBack.code:
            raise
        return error.code
    return 0


def code_of(say: Callable[[], object]) -> int:
    with pytest.raises(skerry.Error) as caught:
        say()
    return caught.value.code


def test_the_first_who_commits_a_row_wins(cluster: LocalCluster) -> None:
    with cluster.connect("oslo") as one, cluster.connect("bergen") as two, cluster.connect("kiosk") as third:
        first, second, alone = one.cursor(), two.cursor(), third.cursor()
        first.execute("CREATE TABLE wins (id INT, n INT) PRIMARY KEY (id) DISTRIBUTED BY (id)")
        first.execute("INSERT INTO wins VALUES (1, 10), (2, 20), (3, 30), (4, 40)")
        two.last_commit = third.last_commit = one.last_commit

        def both(ours: str, theirs: str) -> tuple[int, int]:
            """How the second transaction, and then a third, end after the first has: 0, or their errors."""
            for cursor, sql in ((first, ours), (second, theirs), (alone, theirs)):
                cursor.execute("BEGIN TRANSACTION")
                cursor.execute(sql)
            one.commit()
            ended = []
            for connection in (two, third):
                connection.last_commit = one.last_commit
                ended.append(committed(connection))
                assert not connection.transaction
            return ended[0], ended[1]

        # Rows that both have changed: by query or by key, inserted, replaced, deleted. Nothing of the others counts.
        lost = (RolledBack.code, RolledBack.code)
        assert both("UPDATE wins SET n = n + 1 WHERE n = 10", "UPDATE wins SET n = n + 100 WHERE n < 25") == lost
        assert both("INSERT INTO wins VALUES (5, 50)", "INSERT INTO wins VALUES (5, 51), (6, 61)") == lost
        replaces = "INSERT INTO wins VALUES (2, 22), (7, 70) ON CONFLICT DO REPLACE"
        assert both("DELETE FROM wins WHERE id = 2", replaces) == lost
        assert both("UPDATE wins SET n = 31 WHERE id = 3", "DELETE FROM wins WHERE id = 3") == lost
        # Others: two commit; the third has written what the second has.
        assert both("UPDATE wins SET n = 41 WHERE id = 4", "UPDATE wins SET n = 51 WHERE id = 5") == (0, lost[0])
        assert rows(first, "SELECT * FROM wins") == [(1, 11), (3, 31), (4, 41), (5, 51)]
        # A statement alone is in the way as well; one that waits for no transaction goes on.
        second.execute("BEGIN")
        second.execute("UPDATE wins SET n = 0 WHERE id = 1")
        assert first.execute("UPDATE wins SET n = n + 1 WHERE id = 1").rowcount == 1
        assert code_of(two.commit) == RolledBack.code
        # A table that was altered since is in the way, too; so is a row that was read and is written.
        second.execute("BEGIN")
        second.execute("DELETE FROM wins WHERE id = 5")
        first.execute("ALTER TABLE wins ADD COLUMN t STRING")
        assert "has changed since" in refused(second, "SELECT count(*) FROM wins")
        assert "has changed since" in refused(second, "DELETE FROM wins WHERE id = 4")
        assert code_of(two.commit) == RolledBack.code
        assert rows(first, "SELECT id, n FROM wins") == [(1, 12), (3, 31), (4, 41), (5, 51)]
        # One that was made again has other rows, not none.
        second.execute("BEGIN")
        assert rows(second, "SELECT count(*) FROM wins") == [(4,)]
        first.execute("DROP TABLE wins")
        first.execute("CREATE TABLE wins (id INT, n INT) PRIMARY KEY (id) DISTRIBUTED BY (id)")
        assert "it was made later" in refused(second, "SELECT count(*) FROM wins")
        second.execute("ROLLBACK")
        assert rows(second, "SELECT count(*) FROM wins") == [(0,)]


def test_how_a_transaction_ends_and_what_is_no_part_of_it(
    cluster: LocalCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    member = cluster.members["oslo"]

    def is_over() -> bool:
        return len(member.transactions) == 0

    with cluster.connect("oslo") as connection, cluster.connect("oslo") as other:
        cursor, look = connection.cursor(), other.cursor()
        cursor.execute("CREATE TABLE ends (id INT, n INT) PRIMARY KEY (id) DISTRIBUTED BY (id)")
        for sql in ("COMMIT", "ROLLBACK WORK"):
            assert "no transaction is open" in refused(cursor, sql)
        with pytest.raises(skerry.NotSupportedError):
            connection.rollback()
        connection.commit()
        cursor.execute("BEGIN WORK")
        cursor.execute("INSERT INTO ends VALUES (1, 1)")
        for sql in (
            "CREATE TABLE no (a INT) PRIMARY KEY (a) DISTRIBUTED BY (a)",
            "DROP TABLE ends",
            "FLUSH TABLE ends",
        ):
            assert "cannot be part of a transaction" in refused(cursor, sql)
        assert "cannot be part of" in refused(cursor, "EXPLAIN ANALYZE INSERT INTO ends VALUES (2, 2)")
        assert "AS OF" in refused(cursor, "SELECT * FROM ends VERSION AS OF 1")
        assert "AS OF" in refused(cursor, "INSERT INTO ends SELECT * FROM ends VERSION AS OF 1")
        with pytest.raises(skerry.NotSupportedError):
            cursor.load("ends", [])
        with pytest.raises(skerry.ProgrammingError):
            connection.autocommit = False
        assert "writes table ends" in cursor.execute("EXPLAIN INSERT INTO ends VALUES (2, 2)").fetchall()[0][0]
        monkeypatch.setattr("skerry.member.transactions.TRANSACTIONS_BYTES", 100)
        assert "as much as they may" in refused(cursor, "INSERT INTO ends VALUES (2, 2)")
        monkeypatch.undo()
        monkeypatch.setattr("skerry.member.computing.COMPUTED_ROWS", 3)
        assert "which no transaction holds" in refused(cursor, "INSERT INTO ends SELECT id, 1 FROM oslo.few")
        monkeypatch.undo()
        # Shown, and ended by whoever may: from then on all is refused until ROLLBACK is said.
        (shown,) = [each for each in other.queries() if each.state.startswith("in transaction")]
        assert (shown.state, shown.query.local) == ("in transaction (1 row changed)", connection.transaction)
        assert other.status(shown.query).state == shown.state
        assert is_live(shown.state)
        other.cancel(shown.query)
        for sql in ("SELECT 1 FROM ends", "INSERT INTO ends VALUES (2, 2)"):
            assert "it was rolled back: cancelled by" in refused(cursor, sql)
        assert code_of(connection.commit) == RolledBack.code
        assert connection.transaction == ""
        # Nobody says anything for too long.
        short = msgspec.structs.replace(member.limits, transaction_idle_s=0.01)
        cursor.execute("BEGIN")
        with monkeypatch.context() as patch:
            patch.setattr(member.transactions, "_limits", short)
            wait_until(is_over, "rolled back")
        assert "no statement came for 0.01 s" in refused(cursor, "DELETE FROM ends WHERE id = 1")
        connection.rollback()
        assert cursor.execute("DELETE FROM ends WHERE id = 1").rowcount == 0
        # Too many of one user; all of them end with their connections.
        many = [cluster.connect("oslo") for _ in range(6)]
        for each in many:
            each.cursor().execute("BEGIN")
        assert "limits.transactions_of_user" in refused(cursor, "BEGIN")
        for each in many:
            each.close()
        wait_until(is_over, "rolled back with their connections")
        assert rows(look, "SELECT * FROM ends") == []


def lost(submit: Callable[..., Any], *, is_done: bool) -> Callable[..., Any]:
    """Its answer is."""

    async def submitted(txn: TransactionId, *args: Any) -> Any:
        if is_done:
            await submit(txn, *args)
        raise unsure(txn.query, SiteError("nobody has answered"))

    return submitted


def test_a_commit_is_told_again_and_a_restart_ends_what_is_open(
    cluster: LocalCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    with cluster.connect("oslo") as other:
        look = other.cursor()
        look.execute("CREATE TABLE again (id INT) PRIMARY KEY (id) DISTRIBUTED BY (id)")
        told = {}
        for name in ("bergen", "kiosk"):
            with cluster.connect(name) as connection:
                connection.last_commit = other.last_commit
                cursor = connection.cursor()
                cursor.execute("BEGIN")
                said = cursor.execute("INSERT INTO again VALUES (1), (2)" if name == "bergen" else "DELETE FROM again")
                # Said again, a statement of a transaction counts once.
                again = connection.cursor()
                sql = "INSERT INTO again VALUES (1), (2)" if name == "bergen" else "DELETE FROM again"
                assert again.execute(sql, query_id=said.query_id).rowcount == said.rowcount == 2
                query = cursor.execute("COMMIT").query_id
                told[name] = query, connection.last_commit
                for _ in range(2):
                    connection.last_commit = 0
                    again.execute("COMMIT", query_id=query)
                    assert connection.last_commit == told[name][1]
                other.last_commit = connection.last_commit
        # Nobody knows what came of it: said again by its id it is told, or carried out now.
        for name, is_done in (("kiosk", True), ("kiosk", False), ("bergen", False)):
            own = cluster.members[name].own_tables
            with cluster.connect(name) as connection, monkeypatch.context() as patch:
                connection.last_commit = other.last_commit
                cursor = connection.cursor()
                cursor.execute("BEGIN")
                cursor.execute("INSERT INTO again VALUES (7), (8) ON CONFLICT DO REPLACE")
                patch.setattr(own, "submit", lost(own.submit, is_done=is_done))
                with pytest.raises(skerry.OutcomeUnknown):
                    cursor.execute("COMMIT")
                assert not connection.transaction
                patch.undo()
                connection.cursor().execute("COMMIT", query_id=cursor.query_id)
                assert connection.last_commit > other.last_commit
                assert connection.cursor().execute("DELETE FROM again WHERE id IN (7, 8)").rowcount == 2
                other.last_commit = connection.last_commit
        connection = cluster.connect("bergen")
        cursor = connection.cursor()
        cursor.execute("BEGIN")
        cursor.execute("INSERT INTO again VALUES (3)")
        transaction, unheard = connection.transaction, QueryId("bergen", "5" * 32)
        cluster.stop_member("bergen")
        assert code_of(connection.commit) != 0
        connection.close()
        cluster.start_member("bergen")
        with cluster.connect("bergen") as back:
            query, commit_ts = told["bergen"]
            back.cursor().execute("COMMIT", query_id=query)
            assert back.last_commit == commit_ts
            assert code_of(lambda: back.cursor().execute("COMMIT", query_id=unheard)) == RolledBack.code
            back.transaction = transaction
            assert "not open at bergen" in refused(back.cursor(), "SELECT * FROM again")
            back.rollback()
            assert rows(back.cursor(), "SELECT * FROM again") == []


def test_a_client_that_is_cut_off_comes_back_or_is_rolled_back(
    cluster: LocalCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    member = cluster.members["oslo"]
    with cluster.connect("bergen") as other, Proxy(cluster.config.member("oslo").address) as proxy:
        look = other.cursor()
        look.execute("CREATE TABLE cut (id INT) PRIMARY KEY (id) DISTRIBUTED BY (id)")
        with skerry.connect(proxy.url, resume_s=30, timeout_s=30) as connection:
            connection.last_commit = other.last_commit
            cursor = connection.cursor()
            for sql in ("BEGIN", "INSERT INTO cut VALUES (1)", "INSERT INTO cut VALUES (2)", "COMMIT"):
                cursor.execute(sql)
                if sql != "COMMIT":
                    proxy.cut()
            other.last_commit = connection.last_commit
        assert rows(look, "SELECT * FROM cut") == [(1,), (2,)]
        # Who does not come back: what it had begun is gone; its commit is told by its id.
        connection = skerry.connect(proxy.url, timeout_s=30)
        cursor = connection.cursor()
        cursor.execute("BEGIN")
        cursor.execute("DELETE FROM cut WHERE id = 1")
        proxy.cut()
        wait_until(lambda: len(member.transactions) == 0, "rolled back")
        assert code_of(connection.commit) != 0
        connection.close()
        submit, gate, shown = member.own_tables.submit, threading.Event(), list[str]()

        async def late(*args: Any) -> Any:
            shown.extend(each.state for each in member.transactions.infos(None))
            await asyncio.to_thread(proxy.cut)
            await asyncio.to_thread(gate.wait)
            return await submit(*args)

        monkeypatch.setattr(member.own_tables, "submit", late)
        connection = skerry.connect(proxy.url, timeout_s=30)
        cursor = connection.cursor()
        cursor.execute("BEGIN")
        cursor.execute("DELETE FROM cut WHERE id = 2")
        with pytest.raises(skerry.OutcomeUnknown):
            cursor.execute("COMMIT")
        connection.close()
        assert shown == ["committing"]
        with cluster.connect("oslo") as back:
            threading.Timer(0.1, gate.set).start()
            back.cursor().execute("COMMIT", query_id=cursor.query_id)
            assert back.last_commit
            assert rows(back.cursor(), "SELECT * FROM cut") == [(1,)]


def test_connections_without_autocommit(cluster: LocalCluster) -> None:
    """A transaction begins with the first statement that can be part of one: PEP 249's, asyncio's, SQLAlchemy's."""
    with cluster.connect("oslo", autocommit=False) as connection, cluster.connect("oslo") as other:
        cursor, look = connection.cursor(), other.cursor()
        cursor.execute("CREATE TABLE modes (id INT, n INT) PRIMARY KEY (id) DISTRIBUTED BY (id)")
        assert not connection.transaction
        connection.rollback()
        cursor.execute("INSERT INTO modes VALUES (1, 1)")
        assert connection.transaction
        assert rows(look, "SELECT * FROM modes") == []
        assert rows(cursor, "SELECT * FROM modes") == [(1, 1)]
        connection.commit()
        cursor.execute("INSERT INTO modes VALUES (2, 2)")
        connection.rollback()
        assert rows(cursor, "SELECT * FROM modes") == [(1, 1)]
        look.execute("UPDATE modes SET n = 5 WHERE id = 1")
        assert rows(cursor, "SELECT * FROM modes") == [(1, 1)]
        with pytest.raises(skerry.NotSupportedError):
            cursor.load("modes", [])
        connection.reset()
        assert not connection.transaction
        connection.autocommit = True
        assert cursor.execute("DELETE FROM modes WHERE id = 1").rowcount == 1
        connection.commit()

        url = f"skerry://{cluster.config.member('oslo').address}"

        async def asked() -> None:
            async with skerry.aio.connect(url, autocommit=False) as each:
                await (await each.cursor().execute("INSERT INTO modes VALUES (7, 7)")).close()
                await each.commit()
                await (await each.cursor().execute("DELETE FROM modes WHERE id = 7")).close()
                await each.rollback()

        asyncio.run(asked())
        engine = sqlalchemy.create_engine(url, isolation_level="SNAPSHOT")
        text = sqlalchemy.text
        with engine.begin() as session:
            session.execute(text("INSERT INTO modes VALUES (8, 8)"))
            assert session.execute(text("SELECT count(*) FROM modes")).scalar() == 2
        with engine.connect() as session, session.begin() as begun:
            session.execute(text("DELETE FROM modes"))
            begun.rollback()
        with engine.connect() as session:
            session.execute(text("DELETE FROM modes WHERE id = 8"))
        engine.dispose()
        assert rows(look, "SELECT * FROM modes") == [(7, 7), (8, 8)]


KEYS = ("a", "b", "c")
ACCOUNTS = {"x": 100, "y": 100, "z": 100}


def test_histories_are_those_of_snapshot_isolation(cluster: LocalCluster) -> None:
    """Lists are read and appended to, and money is moved, in several statements, by clients at several members."""
    with cluster.connect("oslo") as connection:
        cursor = connection.cursor()
        cursor.execute("CREATE TABLE lists (k STRING, v STRING) PRIMARY KEY (k) DISTRIBUTED BY (k)")
        cursor.execute("CREATE TABLE bank (k STRING, v INT) PRIMARY KEY (k) DISTRIBUTED BY (k)")
        cursor.executemany("INSERT INTO lists VALUES (?, '')", [(key,) for key in KEYS])
        cursor.executemany("INSERT INTO bank VALUES (?, ?)", list(ACCOUNTS.items()))
        begun_after = connection.last_commit
    history, transfers, looks = list[Transaction](), list[Transfer](), list[dict[str, int]]()
    crashes: list[BaseException] = []

    def client(name: str, member: str, chance: random.Random) -> None:
        with cluster.connect(member) as connection:
            connection.last_commit = begun_after
            cursor = connection.cursor()
            for number in range(3):
                one, other = chance.sample(KEYS, 2)
                source, target = chance.sample(sorted(ACCOUNTS), 2)
                element, began = f"{name}{number}", time.monotonic()
                cursor.execute("BEGIN")
                cursor.execute(
                    f"SELECT k, v FROM lists WHERE k IN ('{one}', '{other}') UNION ALL SELECT k, v FROM bank"
                )
                found = dict(cursor.fetchall())
                looks.append({key: int(found[key]) for key in ACCOUNTS})
                cursor.execute("UPDATE lists SET v = ? WHERE k = ?", (f"{found[one]}{element} ", one))
                cursor.execute(f"UPDATE bank SET v = v - 1 WHERE k = '{source}'")
                cursor.execute("UPDATE bank SET v = ? WHERE k = ?", (int(found[target]) + 1, target))
                cursor.execute(f"SELECT v FROM lists WHERE k = '{one}' UNION ALL SELECT sum(v) FROM bank")
                own = [str(value) for (value,) in cursor.fetchall()]
                assert sorted(own) == sorted([f"{found[one]}{element} ", "300"])
                outcome = Outcome.DONE if committed(connection) == 0 else Outcome.REFUSED
                steps = (
                    *(Read(key, tuple(found[key].split())) for key in (one, other)),
                    Append(one, element),
                )
                history.append(Transaction(element, name, steps, outcome, began, time.monotonic()))
                transfers.append(Transfer(element, source, target, 1, outcome))

    def run(*args: Any) -> None:
        try:
            client(*args)
        except BaseException as error:
            crashes.append(error)

    threads = [
        threading.Thread(target=run, args=(member[0], member, random.Random(member)))
        for member in ("oslo", "bergen", "kiosk")
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not crashes
    with cluster.connect("oslo") as connection:
        cursor = connection.cursor()
        final = {key: tuple(value.split()) for key, value in cursor.execute("SELECT * FROM lists").fetchall()}
        balances = dict(cursor.execute("SELECT * FROM bank").fetchall())
    assert {each.outcome for each in history} == {Outcome.DONE, Outcome.REFUSED}
    assert check_lists(history, final) == []
    assert check_bank(ACCOUNTS, transfers, looks, balances) == []

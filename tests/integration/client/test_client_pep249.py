"""PEP 249, clause by clause: `CLAUSES` names the test of each; a clause without a test, or a test without one, fails.

Statements that change rows are not admitted by members yet, so counts of changed rows are seen with a scripted member
(`tests/unit/client/test_client_dbapi.py`).
"""

from __future__ import annotations

import datetime
import inspect
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from decimal import Decimal

import pytest

import skerry
from skerry.client.dbapi import Connection, Cursor
from skerry.testing.cluster import LocalCluster
from tests.integration.client.kinds import KINDS
from tests.integration.member.member_sites import FEW, TICKS, slow_query

pytestmark = pytest.mark.sail

WAIT_S = 30.0

# Clauses of PEP 249 in its order → the test that shows it.
CLAUSES = {
    "module: connect(parameters…) → Connection": "connect_gives_a_connection",
    "module: apilevel": "module_globals",
    "module: threadsafety": "threads_share_module_and_connection",
    "module: paramstyle": "parameters_by_place_and_by_name",
    "exceptions: Warning, Error and their tree": "exceptions_form_the_tree",
    "exceptions: are raised for what they are for": "exceptions_are_raised_for_what_they_are_for",
    "Connection.close(): unusable from then on, its cursors too": "closed_connection_is_unusable",
    "Connection.close(): a second call does no harm; __del__ closes": "closing_twice_and_forgetting",
    "Connection.commit(): void where nothing is to commit": "commit_does_nothing",
    "Connection.rollback(): NotSupportedError without transactions": "rollback_is_not_supported",
    "Connection.cursor()": "cursors_are_new_and_see_one_database",
    "Cursor.description: seven items, None before": "description",
    "Cursor.description: type_code equals its type object": "type_objects_equal_type_codes",
    "Cursor.rowcount: -1 before, rows after": "rowcount",
    "Cursor.callproc(): optional, NotSupportedError": "callproc_is_not_supported",
    "Cursor.close(): unusable from then on": "closed_cursor_is_unusable",
    "Cursor.execute(operation, parameters)": "parameters_by_place_and_by_name",
    "Cursor.execute(): sequences of sequences are for executemany": "executemany_takes_no_rows",
    "Cursor.executemany()": "executemany_takes_no_rows",
    "Cursor.fetchone(): one row, None at the end": "fetchone",
    "Cursor.fetchone(): Error without a result": "fetching_nothing_is_an_error",
    "Cursor.fetchmany(size=arraysize)": "fetchmany_and_arraysize",
    "Cursor.fetchmany(): Error without a result": "fetching_nothing_is_an_error",
    "Cursor.fetchall()": "fetchall",
    "Cursor.fetchall(): Error without a result": "fetching_nothing_is_an_error",
    "Cursor.nextset(): None when there is no other; Error without a result": "nextset",
    "Cursor.arraysize: 1 by default, read and write": "fetchmany_and_arraysize",
    "Cursor.fetchmany(), arraysize: Error for what is no number of rows": "sizes_are_numbers_of_rows",
    "Cursor.setinputsizes(), setoutputsize(): free to do nothing": "sizes_do_nothing",
    "types: Date, Time, Timestamp, their FromTicks, Binary": "constructors",
    "types: STRING, BINARY, NUMBER, DATETIME, ROWID": "type_objects_equal_type_codes",
    "types: NULL is None, in and out": "null_is_none_both_ways",
    "types: values keep their type, in and out": "values_keep_their_type_both_ways",
    "extension: Cursor.rownumber": "rownumber",
    "extension: Connection.Error and its kin": "exceptions_hang_on_connections",
    "extension: Cursor.connection": "cursor_knows_its_connection",
    "extension: Cursor.next(), __iter__()": "cursors_iterate",
    "extension: Cursor.lastrowid: None without row ids": "lastrowid_is_none",
    "extension: Connection.autocommit": "autocommit_is_on_unless_told",
    "extension: messages, errorhandler, scroll: left out": "what_is_optional_and_left_out",
    "two-phase commit: not there": "no_two_phase_commit",
    "context managers close": "context_managers_close",
}


@pytest.fixture
def connection(cluster: LocalCluster) -> Iterator[Connection]:
    with cluster.connect("oslo") as opened:
        yield opened


@pytest.fixture
def cursor(connection: Connection) -> Iterator[Cursor]:
    with connection.cursor() as opened:
        yield opened


def test_every_clause_has_its_test() -> None:
    tests = {name for name, _ in inspect.getmembers(sys.modules[__name__], inspect.isfunction)}
    named = {f"test_{name}" for name in CLAUSES.values()}
    assert named <= tests
    assert {name for name in tests if name.startswith("test_")} - named == {"test_every_clause_has_its_test"}


# --- module ------------------------------------------------------------------------------------------
def test_connect_gives_a_connection(cluster: LocalCluster) -> None:
    address = cluster.config.member("oslo").address
    with skerry.connect(f"skerry://{address}/bergen", timeout_s=WAIT_S) as connection:
        assert isinstance(connection, Connection)
        assert connection.cursor().execute("SELECT max(name) FROM few").fetchone() == ("bergen 99",)


def test_module_globals() -> None:
    assert (skerry.apilevel, skerry.threadsafety, skerry.paramstyle) == ("2.0", 2, "qmark")


def test_threads_share_module_and_connection(connection: Connection) -> None:
    """threadsafety 2."""
    found: dict[int, object] = {}

    def run(number: int) -> None:
        rows = connection.cursor().execute("SELECT count(*) FROM oslo.ticks WHERE kind = ?", [number]).fetchall()
        found[number] = rows[0][0]

    threads = [threading.Thread(target=run, args=(number,)) for number in range(7)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT_S)
    assert found == {kind: len(range(kind, TICKS, 7)) for kind in range(7)}


def test_parameters_by_place_and_by_name(cursor: Cursor) -> None:
    sql = "SELECT id FROM oslo.few WHERE id > ? AND name LIKE ? ORDER BY id LIMIT 2"
    assert cursor.execute(sql, (41, "oslo%")).fetchall() == [(42,), (43,)]
    assert cursor.execute("SELECT id FROM oslo.few WHERE id = :id", {"id": 7}).fetchall() == [(7,)]
    hostile = "' OR 1 = 1 --"
    assert cursor.execute("SELECT id FROM oslo.few WHERE name = ?", [hostile]).fetchall() == []


# --- exceptions --------------------------------------------------------------------------------------
def test_exceptions_form_the_tree() -> None:
    assert issubclass(skerry.Warning, Exception)
    assert not issubclass(skerry.Warning, skerry.Error)
    assert skerry.Error.__base__ is Exception
    assert skerry.InterfaceError.__base__ is skerry.DatabaseError.__base__ is skerry.Error
    for name in ("Data", "Operational", "Integrity", "Internal", "Programming", "NotSupported"):
        assert getattr(skerry, f"{name}Error").__base__ is skerry.DatabaseError


def test_exceptions_are_raised_for_what_they_are_for(cluster: LocalCluster, cursor: Cursor) -> None:
    for wrong in ("SELEC 1", "SELECT nothing FROM few", "SELECT 1 FROM nowhere"):
        with pytest.raises(skerry.ProgrammingError):
            cursor.execute(wrong)
    with pytest.raises(skerry.OperationalError, match="no member answers"):
        skerry.connect("skerry://127.0.0.1:1")
    with pytest.raises(skerry.OperationalError) as caught:
        cursor.execute(slow_query("oslo"), timeout_s=0.3)
    assert caught.value.code == 401


def test_exceptions_hang_on_connections(connection: Connection) -> None:
    names = [name for name in skerry.__all__ if name == "Warning" or name.endswith("Error")]
    assert len(names) == 10
    for name in names:
        assert getattr(connection, name) is getattr(skerry, name)


# --- connections -------------------------------------------------------------------------------------
def test_closed_connection_is_unusable(cluster: LocalCluster) -> None:
    connection = cluster.connect("oslo")
    cursor = connection.cursor().execute("SELECT id FROM few")
    connection.close()
    for use in (connection.cursor, connection.commit, connection.rollback, connection.members, cursor.fetchone):
        with pytest.raises(skerry.Error, match="connection is closed"):
            use()
    with pytest.raises(skerry.Error):
        cursor.execute("SELECT 1")


def test_closing_twice_and_forgetting(cluster: LocalCluster) -> None:
    connection = cluster.connect("oslo")
    connection.close()
    connection.close()
    assert connection.closed
    forgotten = skerry.connect(f"skerry://{cluster.config.member('oslo').address}")
    finalizer = forgotten._finalizer
    del forgotten
    assert not finalizer.alive


def test_commit_does_nothing(connection: Connection) -> None:
    cursor = connection.cursor().execute("SELECT id FROM oslo.few ORDER BY id")
    connection.commit()
    assert cursor.fetchone() == (0,)


def test_rollback_is_not_supported(connection: Connection) -> None:
    with pytest.raises(skerry.NotSupportedError):
        connection.rollback()


def test_cursors_are_new_and_see_one_database(connection: Connection) -> None:
    first, second = connection.cursor(), connection.cursor()
    assert first is not second
    first.execute("SELECT id FROM oslo.few ORDER BY id")
    second.execute("SELECT id FROM oslo.few ORDER BY id DESC")
    assert (first.fetchone(), second.fetchone(), first.fetchone()) == ((0,), (99,), (1,))


def test_autocommit_is_on_unless_told(connection: Connection) -> None:
    assert connection.autocommit is True


def test_no_two_phase_commit(connection: Connection) -> None:
    """A module whose database has none leaves the methods out."""
    assert not hasattr(connection, "tpc_begin")


def test_context_managers_close(cluster: LocalCluster) -> None:
    with cluster.connect("oslo") as connection, connection.cursor() as cursor:
        cursor.execute("SELECT id FROM few")
    with pytest.raises(skerry.Error, match="closed"):
        cursor.fetchone()
    assert connection.closed


# --- cursors -----------------------------------------------------------------------------------------
def test_description(cursor: Cursor) -> None:
    assert cursor.description is None
    cursor.execute("SELECT id AS number, name, CAST(1.5 AS DECIMAL(10, 2)) AS price FROM oslo.few")
    assert cursor.description == [
        ("number", "bigint", None, None, None, None, None),
        ("name", "string", None, None, None, None, None),
        ("price", "decimal(10,2)", None, None, 10, 2, None),
    ]
    with pytest.raises(skerry.ProgrammingError):
        cursor.execute("nonsense")
    assert cursor.description is None


def test_type_objects_equal_type_codes(cursor: Cursor) -> None:
    expected = {
        "string": skerry.STRING,
        "binary": skerry.BINARY,
        "int": skerry.NUMBER,
        "bigint": skerry.NUMBER,
        "double": skerry.NUMBER,
        "decimal": skerry.NUMBER,
        "date": skerry.DATETIME,
        "timestamp": skerry.DATETIME,
    }
    objects = (skerry.STRING, skerry.BINARY, skerry.NUMBER, skerry.DATETIME, skerry.ROWID)
    cursor.execute("SELECT * FROM oslo.kinds")
    assert cursor.description is not None
    for name, code, *_ in cursor.description:
        if name in expected:
            assert [each for each in objects if each == code] == [expected[name]]
    assert len({column[0] for column in cursor.description} & set(expected)) == len(expected)


def test_rowcount(cursor: Cursor) -> None:
    assert cursor.rowcount == -1
    cursor.execute("SELECT id FROM few")
    cursor.fetchall()
    assert cursor.rowcount == 3 * FEW


def test_callproc_is_not_supported(cursor: Cursor) -> None:
    with pytest.raises(skerry.NotSupportedError):
        cursor.callproc("anything", [1])


def test_closed_cursor_is_unusable(connection: Connection) -> None:
    cursor = connection.cursor().execute("SELECT id FROM few")
    cursor.close()
    cursor.close()
    uses = (cursor.fetchone, cursor.fetchmany, cursor.fetchall, cursor.nextset, lambda: next(cursor))
    for use in (*uses, lambda: cursor.execute("SELECT 1"), lambda: cursor.executemany("SELECT 1", [])):
        with pytest.raises(skerry.Error, match="cursor is closed"):
            use()


def test_executemany_takes_no_rows(cursor: Cursor) -> None:
    """Members admit no statement that changes rows yet; one that returns rows is refused, as PEP 249 allows."""
    with pytest.raises(skerry.ProgrammingError, match="the statement returns rows"):
        cursor.executemany("SELECT id FROM few WHERE id = ?", [[1], [2]])
    assert cursor.executemany("SELECT id FROM few WHERE id = ?", []).rowcount == 0


def test_fetchone(cursor: Cursor) -> None:
    cursor.execute("SELECT id, name FROM oslo.few WHERE id < 2 ORDER BY id")
    assert [cursor.fetchone() for _ in range(4)] == [(0, "oslo 0"), (1, "oslo 1"), None, None]


def test_fetching_nothing_is_an_error(cursor: Cursor) -> None:
    for fetch in (cursor.fetchone, cursor.fetchmany, cursor.fetchall):
        with pytest.raises(skerry.Error, match="execute a query first"):
            fetch()


def test_fetchmany_and_arraysize(cursor: Cursor) -> None:
    assert cursor.arraysize == 1
    cursor.execute("SELECT id FROM oslo.few WHERE id < 10 ORDER BY id")
    assert cursor.fetchmany() == [(0,)]
    cursor.arraysize = 3
    assert cursor.fetchmany() == [(1,), (2,), (3,)]
    assert cursor.fetchmany(size=5) == [(4,), (5,), (6,), (7,), (8,)]
    assert cursor.fetchmany(5) == [(9,)]
    assert cursor.fetchmany(5) == []


def test_sizes_are_numbers_of_rows(cursor: Cursor) -> None:
    cursor.execute("SELECT id FROM oslo.few ORDER BY id")
    with pytest.raises(skerry.InterfaceError, match="size is a number of rows"):
        cursor.fetchmany(-1)
    with pytest.raises(skerry.InterfaceError, match="arraysize is a number of rows"):
        cursor.arraysize = -1
    assert (cursor.fetchmany(0), cursor.fetchmany(1)) == ([], [(0,)])


def test_fetchall(cursor: Cursor) -> None:
    cursor.execute("SELECT id FROM ticks")
    first = cursor.fetchone()
    rows = cursor.fetchall()
    assert isinstance(rows, Sequence)
    assert sorted([first, *rows]) == [(n,) for n in range(3 * TICKS)]
    assert cursor.fetchall() == []


def test_nextset(cursor: Cursor) -> None:
    with pytest.raises(skerry.Error):
        cursor.nextset()
    cursor.execute("SELECT id FROM few")
    assert cursor.nextset() is None
    assert cursor.fetchall() == []  # what was left of the set is discarded


def test_sizes_do_nothing(cursor: Cursor) -> None:
    cursor.setinputsizes([None, 25, skerry.NUMBER])
    cursor.setoutputsize(1000)
    cursor.setoutputsize(1000, 1)
    assert cursor.execute("SELECT max(id) FROM few").fetchone() == (99,)


def test_rownumber(cursor: Cursor) -> None:
    assert cursor.rownumber is None
    cursor.execute("SELECT id FROM oslo.few ORDER BY id")
    assert cursor.rownumber == 0
    cursor.fetchmany(5)
    assert cursor.rownumber == 5
    assert cursor.fetchone() == (cursor.rownumber - 1,)


def test_cursor_knows_its_connection(connection: Connection, cursor: Cursor) -> None:
    assert cursor.connection is connection


def test_cursors_iterate(cursor: Cursor) -> None:
    cursor.execute("SELECT id FROM oslo.few ORDER BY id")
    assert iter(cursor) is cursor
    assert next(cursor) == (0,)
    assert list(cursor) == [(n,) for n in range(1, FEW)]
    with pytest.raises(StopIteration):
        next(cursor)


def test_lastrowid_is_none(cursor: Cursor) -> None:
    assert cursor.execute("SELECT id FROM few").lastrowid is None


def test_what_is_optional_and_left_out(connection: Connection, cursor: Cursor) -> None:
    """An extension that is not there must not look as if it were."""
    for name in ("errorhandler", "scroll"):
        assert not hasattr(connection, name)
        assert not hasattr(cursor, name)
    assert not hasattr(connection, "messages")  # a cursor has those of its statement


# --- types -------------------------------------------------------------------------------------------
def test_constructors() -> None:
    ticks = time.mktime((2024, 2, 29, 12, 30, 15, 0, 0, -1))
    assert skerry.Date(2024, 2, 29) == skerry.DateFromTicks(ticks) == datetime.date(2024, 2, 29)
    assert skerry.Time(12, 30, 15) == skerry.TimeFromTicks(ticks) == datetime.time(12, 30, 15)
    stamp = skerry.Timestamp(2024, 2, 29, 12, 30, 15)
    assert stamp == skerry.TimestampFromTicks(ticks) == datetime.datetime(2024, 2, 29, 12, 30, 15)
    assert skerry.Binary(b"\x00") == b"\x00"


def test_null_is_none_both_ways(cursor: Cursor) -> None:
    cursor.execute("SELECT * FROM oslo.kinds WHERE bigint IS NULL")
    assert cursor.fetchall() == [(None,) * len(KINDS)]
    assert cursor.execute("SELECT coalesce(?, id) FROM oslo.few WHERE id = 3", [None]).fetchall() == [(3,)]


def test_values_keep_their_type_both_ways(cursor: Cursor) -> None:
    cursor.execute("SELECT * FROM oslo.kinds WHERE bigint IS NOT NULL")
    assert cursor.fetchone() == tuple(values[0] for _, values in KINDS.values())
    given = [True, 1, 2**40, 1.5, Decimal("12.34"), "ø", b"\x00\xff", datetime.date(2024, 2, 29)]
    given += [datetime.datetime(2024, 2, 29, 12, 30), datetime.datetime(2024, 2, 29, 12, 30, tzinfo=datetime.UTC)]
    (row,) = cursor.execute(f"SELECT {', '.join('?' for _ in given)}", given).fetchall()
    assert list(row) == given
    assert [type(value) for value in row] == [type(value) for value in given]

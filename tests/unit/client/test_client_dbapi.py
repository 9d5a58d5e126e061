"""PEP 249, and what Skerry adds to it, over a real socket."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from decimal import Decimal
from itertools import pairwise

import pyarrow as pa
import pytest

import skerry
from skerry.client import pep249
from skerry.client.dbapi import Connection
from skerry.model import errors
from skerry.wire.client_messages import ClientClose, ClientExecute, ClientFetch
from skerry.wire.messages import Failure, Goodbye
from skerry.wire.values import from_value
from tests.unit.client.scripted_member import Answers, ScriptedMember, member_with

ROWS = 1000
NUMBERS = pa.table({"n": list(range(ROWS)), "name": [f"row {n}" for n in range(ROWS)]})
ANSWERS = {
    "numbers": NUMBERS,
    "empty": NUMBERS.slice(0, 0),
    "change": 3,
    "far": pa.table({"at": pa.array([2**62], pa.timestamp("us", "UTC"))}),
    "site down": Failure(300, "site bergen is down", "oslo", "wait"),
}


@pytest.fixture
def member() -> Iterator[ScriptedMember]:
    with member_with(Answers(ANSWERS, page_rows=64)) as scripted:
        yield scripted


@pytest.fixture
def connection(member: ScriptedMember) -> Iterator[Connection]:
    with skerry.connect(member.url + "/oslo") as opened:
        yield opened


def test_module_globals() -> None:
    assert (skerry.apilevel, skerry.threadsafety, skerry.paramstyle) == ("2.0", 2, "qmark")
    assert all(hasattr(skerry, name) for name in skerry.__all__)
    assert issubclass(skerry.Error, Exception)
    for name in ("DataError", "OperationalError", "IntegrityError", "InternalError", "ProgrammingError"):
        assert issubclass(getattr(skerry, name), skerry.DatabaseError)
        assert getattr(Connection, name) is getattr(skerry, name)
    assert skerry.Date(2024, 2, 29) == datetime.date(2024, 2, 29)
    assert skerry.Binary(b"a") == b"a"
    assert skerry.TimestampFromTicks(0).date() == skerry.DateFromTicks(0)
    assert skerry.TimestampFromTicks(0).time() == skerry.TimeFromTicks(0)


def test_every_error_has_its_class() -> None:
    classes = {code: pep249.translate(kind("m")).__class__ for code, kind in errors.BY_CODE.items()}
    assert classes == {
        1: skerry.DatabaseError,
        100: skerry.ProgrammingError,
        101: skerry.ProgrammingError,
        102: skerry.ProgrammingError,
        103: skerry.OperationalError,
        104: skerry.OperationalError,
        105: skerry.IntegrityError,
        106: skerry.OperationalError,
        200: skerry.OperationalError,
        201: skerry.OperationalError,
        300: skerry.OperationalError,
        301: skerry.OperationalError,
        302: skerry.OperationalError,
        303: skerry.OperationalError,
        304: skerry.OperationalError,
        306: skerry.OperationalError,
        305: skerry.OutcomeUnknown,
        400: skerry.OperationalError,
        401: skerry.OperationalError,
        500: skerry.InternalError,
    }


def test_fetches_in_every_way(connection: Connection) -> None:
    expected = list(zip(*NUMBERS.to_pydict().values(), strict=True))
    with connection.cursor() as cursor:
        assert cursor.execute("numbers") is cursor
        assert cursor.description is not None
        assert [column[:2] for column in cursor.description] == [("n", "bigint"), ("name", "string")]
        assert cursor.rowcount == -1
        assert cursor.fetchone() == (0, "row 0")
        assert cursor.fetchmany() == expected[1:2]
        cursor.arraysize = 10
        assert cursor.fetchmany() == expected[2:12]
        assert cursor.fetchmany(100) == expected[12:112]
        assert next(cursor) == expected[112]
        assert cursor.rownumber == 113
        assert cursor.fetch_page() == expected[113:128]
        assert cursor.fetch_page() == expected[128:192]
        assert cursor.fetchall() == expected[192:]
        assert cursor.rowcount == ROWS
        assert cursor.fetchone() is None
        assert cursor.fetchmany(5) == cursor.fetchall() == cursor.fetch_page() == list(cursor) == []


def test_fetches_arrow(connection: Connection) -> None:
    cursor = connection.cursor()
    assert cursor.execute("numbers").fetch_arrow_table().equals(NUMBERS)
    cursor.execute("numbers")
    cursor.fetchmany(3)
    assert cursor.fetch_arrow_table().equals(NUMBERS.slice(3))
    assert cursor.execute("numbers").fetch_record_batch_reader().read_all().equals(NUMBERS)
    assert cursor.execute("empty").fetch_arrow_table().equals(NUMBERS.slice(0, 0))
    assert cursor.rowcount == 0


def test_a_whole_result_is_asked_for_in_windows_of_large_pages(member: ScriptedMember, connection: Connection) -> None:
    table = connection.cursor().execute("numbers").fetch_arrow_table()
    fetches = member.of(ClientFetch)
    assert table.num_rows == ROWS
    assert {(fetch.page_rows, fetch.page_bytes) for fetch in fetches} == {(0, 8 << 20)}
    assert (fetches[0].page_number, fetches[0].pages) == (1, 4)
    assert len(fetches) < ROWS // 64
    for before, fetch in pairwise(fetches):
        assert fetch.page_number == before.page_number + before.pages


def test_who_iterates_is_sent_pages_ahead(member: ScriptedMember, connection: Connection) -> None:
    assert sum(n for n, _name in connection.cursor().execute("numbers")) == ROWS * (ROWS - 1) // 2
    assert {(fetch.page_rows, fetch.page_bytes) for fetch in member.of(ClientFetch)} == {(4096, 1 << 20)}
    assert max(fetch.pages for fetch in member.of(ClientFetch)) > 1


def test_single_rows_are_asked_for_when_they_are_needed(member: ScriptedMember, connection: Connection) -> None:
    cursor = connection.cursor().execute("numbers")
    cursor.fetchmany(64)
    cursor.status()  # whatever was asked for before this has arrived with it
    assert member.of(ClientFetch) == []
    cursor.fetchone()
    (fetch,) = member.of(ClientFetch)
    assert (fetch.page_number, fetch.page_rows, fetch.page_bytes) == (1, 4096, 1 << 20)


def test_nothing_is_closed_that_has_ended_and_everything_that_has_not(
    member: ScriptedMember, connection: Connection
) -> None:
    cursor = connection.cursor()
    cursor.execute("numbers").fetchall()
    cursor.execute("change")
    with pytest.raises(skerry.ProgrammingError):
        cursor.execute("nonsense")
    cursor.close()
    assert member.of(ClientClose) == []
    second = connection.cursor()
    second.execute("numbers")
    second.execute("numbers")
    second.close()
    closes = member.wait_for(ClientClose, 2)
    assert [close.query for close in closes] == [query.query for query in member.of(ClientExecute)[-2:]]


def test_errors_keep_everything(connection: Connection) -> None:
    with pytest.raises(skerry.ProgrammingError, match=r"^cannot parse 'nonsense'\nhint: write SELECT$") as caught:
        connection.cursor().execute("nonsense")
    error = caught.value
    assert (error.code, error.member, error.suggestion) == (101, "oslo", "write SELECT")
    assert str(error) == "cannot parse 'nonsense'"  # the hint is a note: tracebacks show it
    assert isinstance(error.__cause__, errors.SqlError)
    with pytest.raises(skerry.Error, match="site bergen is down") as other:
        connection.cursor().execute("site down")
    assert isinstance(other.value, skerry.OperationalError)


def test_parameters_schema_and_timeout_travel(member: ScriptedMember, connection: Connection) -> None:
    cursor = connection.cursor()
    cursor.execute("change", [1, Decimal("1.5"), None], timeout_s=2.5)
    cursor.execute("change", {"day": datetime.date(2024, 1, 1)})
    cursor.execute("change")
    first, second, third = member.of(ClientExecute)
    assert isinstance(first.parameters, list)
    assert [from_value(value) for value in first.parameters] == [1, Decimal("1.5"), None]
    assert isinstance(second.parameters, dict)
    assert from_value(second.parameters["day"]) == datetime.date(2024, 1, 1)
    assert third.parameters == []
    assert (first.timeout_s, second.timeout_s, first.schema_name) == (2.5, 0.0, "oslo")
    assert first.query.initiator == "oslo"
    assert len({query.query.local for query in (first, second, third)}) == 3


def test_a_fault_policy_travels(member: ScriptedMember) -> None:
    with skerry.connect(member.url, fault_policy="buffer") as connection:
        connection.cursor().execute("change")
    with skerry.connect(member.url) as connection:
        connection.cursor().execute("change")
    assert [execute.options for execute in member.of(ClientExecute)] == [{"fault_policy": "buffer"}, {}]


@pytest.mark.parametrize(
    ("parameters", "says"), [([1, object()], "parameter 2"), ({"when": object()}, "parameter :when")]
)
def test_a_parameter_that_cannot_travel_is_named(connection: Connection, parameters: object, says: str) -> None:
    with pytest.raises(skerry.ProgrammingError, match=says):
        connection.cursor().execute("change", parameters)  # type: ignore[arg-type]


def test_one_string_is_no_sequence_of_parameters(connection: Connection) -> None:
    with pytest.raises(skerry.InterfaceError):
        connection.cursor().execute("change", "abc")


def test_executemany_counts(member: ScriptedMember, connection: Connection) -> None:
    cursor = connection.cursor().executemany("change", ([number] for number in (1, 2, 3)))
    assert (cursor.rowcount, cursor.description) == (3, None)
    (asked,) = member.of(ClientExecute)  # one statement: all or nothing
    sent = [[value.value for value in values] for values in (asked.parameters, *asked.more)]
    assert (asked.expected, sent) == ("count", [[1], [2], [3]])
    assert (connection.cursor().executemany("change", iter(())).rowcount, len(member.of(ClientExecute))) == (0, 1)


def test_a_value_without_a_python_form(connection: Connection) -> None:
    cursor = connection.cursor().execute("far")
    with pytest.raises(skerry.DataError, match="fetch_arrow_table"):
        cursor.fetchone()
    assert cursor.fetch_arrow_table().num_rows == 1


def test_a_stream_that_fails_raises_the_public_error() -> None:
    answers = Answers({"numbers": NUMBERS}, page_rows=64)
    with member_with(answers) as member, skerry.connect(member.url) as connection:
        reader = connection.cursor().execute("numbers").fetch_record_batch_reader()
        reader.read_next_batch()
        member.stop()
        with pytest.raises(skerry.OperationalError, match="is gone"):
            reader.read_all()


def test_arguments_that_make_no_sense(member: ScriptedMember, connection: Connection) -> None:
    cursor = connection.cursor().execute("numbers")
    for use in (cursor.fetchmany, lambda size: setattr(cursor, "arraysize", size)):
        for wrong in (-1, "x", 1.5):
            with pytest.raises(skerry.InterfaceError, match="is a number of rows, 0 or more, not"):
                use(wrong)
    assert cursor.arraysize == 1
    for ask in (connection.status, connection.attach, connection.cancel):
        for wrong in (5, None, b"oslo/1", ("oslo", "1")):
            with pytest.raises(skerry.InterfaceError, match=r"a query id \(cursor.query_id\) is text"):
                ask(wrong)  # type: ignore[arg-type]
        for text in ("oslo", "oslo/", "/1", "oslo/1/2", "oslo/ø"):
            with pytest.raises(skerry.ProgrammingError, match="is no query id"):
                ask(text)
    for parameters in ({1: 2}, {"\ud800": 2}, {1, 2}):
        with pytest.raises(skerry.InterfaceError, match="parameter"):
            cursor.execute("numbers", parameters)  # type: ignore[arg-type]
    for sequence in (5, None):
        with pytest.raises(skerry.InterfaceError, match="executemany takes a sequence of parameters"):
            cursor.executemany("change", sequence)  # type: ignore[arg-type]
    with pytest.raises(skerry.InterfaceError, match="a member's name is text"):
        connection.queries(5)  # type: ignore[arg-type]
    assert cursor.execute("numbers").fetchone() is not None  # the connection is none the worse for it


def test_a_schema_that_is_none_is_refused_at_once(member: ScriptedMember) -> None:
    with pytest.raises(skerry.ProgrammingError, match="there is no schema nowhere; there are default, oslo"):
        skerry.connect(member.url + "/nowhere")
    member.wait_for(Goodbye)
    skerry.connect(member.url + "/OSLO").close()
    with skerry.connect(member.url + "/default") as connection:
        assert connection.schema_name == ""


def test_wrong_use(connection: Connection) -> None:
    cursor = connection.cursor()
    with pytest.raises(skerry.InterfaceError, match="execute a query first"):
        cursor.fetchone()
    with pytest.raises(skerry.InterfaceError, match="nothing was executed"):
        cursor.status()
    cursor.execute("change")
    with pytest.raises(skerry.InterfaceError, match="no rows"):
        cursor.fetchall()
    cursor.cancel()
    cursor.close()
    cursor.close()
    with pytest.raises(skerry.InterfaceError, match="cursor is closed"):
        cursor.execute("change")
    with pytest.raises(skerry.NotSupportedError):
        connection.rollback()
    connection.commit()
    open_cursor = connection.cursor().execute("numbers")
    connection.close()
    assert "closed" in repr(connection)
    for use in (connection.cursor, connection.commit, connection.members, open_cursor.fetchall):
        with pytest.raises(skerry.InterfaceError, match="connection is closed"):
            use()
    open_cursor.close()


def test_status(connection: Connection) -> None:
    cursor = connection.cursor().execute("numbers")
    status = cursor.status()
    assert (status.state, status.plan) == ("running", "the plan")
    assert status == connection.status(cursor.query_id)
    assert [fragment.state for fragment in status.fragments] == ["done", "running"]


def test_a_url_that_is_none() -> None:
    with pytest.raises(skerry.ProgrammingError, match="no Skerry URL"):
        skerry.connect("postgres://localhost:5432")

"""The service without any door: a second one needs no more than this."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar
from uuid import uuid4

import pyarrow as pa
import pytest

from skerry.member.requests import Answer, GivePage, PageSize, PrepareStatement, RowsAnswer, RunStatement
from skerry.member.server import Member
from skerry.member.service import Service
from skerry.model.caller import Caller
from skerry.model.errors import Cancelled, Overloaded, SiteError, SqlError, UserError
from skerry.model.ids import QueryId
from skerry.model.results import Page, Parameter
from skerry.testing.cluster import LocalCluster
from skerry.wire.codec import decode_batch, decode_schema
from tests.integration.member.conftest import StartCluster
from tests.integration.member.member_sites import FEW, TICKS, large_query, nothing_left, slow_query, wait_until

T = TypeVar("T")
ANN = Caller("ann", "test", "desk 7", "test 1")
BOB = Caller("", "test", "desk 8", "test 2")
ONE_BATCH = PageSize(rows=1)


class Door:
    """What a door has: the service, and the loop that it lives in."""

    def __init__(self, cluster: LocalCluster, name: str = "oslo") -> None:
        self.cluster = cluster
        self.member: Member = cluster.members[name]
        self.service: Service = self.member.service

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        return self.cluster.call(work)

    def do(self, work: Any, *arguments: Any, **named: Any) -> Any:
        """For what does not wait: in the loop's thread, as a door's calls are."""

        async def call() -> Any:
            return work(*arguments, **named)

        return self.cluster.call(call())

    def execute(self, sql: str, caller: Caller = ANN, **more: Any) -> tuple[QueryId, Answer]:
        query = QueryId(self.member.name, uuid4().hex)
        answer = self.wait(self.service.execute(caller, RunStatement(query, sql, size=ONE_BATCH, **more)))
        assert answer is not None
        return query, answer

    def begin(self, sql: str, caller: Caller = ANN) -> tuple[QueryId, asyncio.Task[Answer | None]]:
        """A statement that goes on."""
        query = QueryId(self.member.name, uuid4().hex)

        async def start() -> asyncio.Task[Answer | None]:
            return asyncio.ensure_future(self.service.execute(caller, RunStatement(query, sql)))

        task = self.wait(start())
        wait_until(lambda: query in self.member.initiated, "the query runs")
        return query, task

    def failed(self, task: asyncio.Task[Answer | None]) -> BaseException | None:
        async def error() -> BaseException | None:
            (found,) = await asyncio.gather(task, return_exceptions=True)
            return found if isinstance(found, BaseException) else None

        return self.wait(error())

    def page(self, query: QueryId, number: int, caller: Caller = ANN) -> Page:
        return self.wait(self.service.fetch(caller, GivePage(query, number, ONE_BATCH)))


@pytest.fixture
def door(start_sail: StartCluster) -> Door:
    return Door(start_sail())


def rows(answer: Answer, *pages: Page) -> list[tuple[Any, ...]]:
    schema = decode_schema(answer.schema.arrow)
    batches = [decode_batch(body, schema, 1 << 30) for page in (answer.page, *pages) for body in page.batches]
    return [tuple(row.values()) for row in pa.Table.from_batches(batches, schema).to_pylist()]


def test_pages_of_a_query_over_all_sites(door: Door) -> None:
    query, answer = door.execute("SELECT id, note FROM ticks")
    assert [column.name for column in answer.schema.columns] == ["id", "note"]
    pages: list[Page] = []
    while not (pages or [answer.page])[-1].is_last:
        number = len(pages) + 1
        door.do(door.service.arrived, ANN, query, number)
        pages.append(door.page(query, number))
    assert len(pages) > 2
    assert sorted(id for id, _ in rows(answer, *pages)) == list(range(3 * TICKS))
    with pytest.raises(Cancelled, match="has ended: all of its rows were given"):
        door.page(query, len(pages) + 1)
    wait_until(lambda: door.do(door.service.status, ANN, query).state == "done", "the receipts")


def test_parameters_and_statements_that_need_no_spark(door: Door) -> None:
    assert rows(door.execute("SHOW TABLES")[1])[0][:3] == ("few", "oslo, bergen, tromso", 3 * FEW)
    asked = door.service.prepare(ANN, PrepareStatement("SELECT name FROM few WHERE id = :id", "oslo"))
    assert door.wait(asked) == (Parameter("id", "bigint"),)
    (few, ticks) = door.wait(door.service.tables(ANN))
    assert (few.table, few.rows, ticks.table, ticks.rows) == ("few", 3 * FEW, "ticks", 3 * TICKS)
    columns = door.wait(door.service.describe(ANN, ("oslo", "few")))
    assert [(column.name, column.type) for column in columns] == [("id", "bigint"), ("name", "string")]
    with pytest.raises(SqlError, match="fwe"):
        door.wait(door.service.describe(ANN, ("fwe",)))
    assert [each.name for each in door.do(door.service.members, ANN)] == ["oslo", "bergen", "tromso"]


def test_who_asks_is_listed_and_anybody_may_cancel(door: Door) -> None:
    query, task = door.begin(slow_query("oslo"))
    (listed,) = door.do(door.service.queries, BOB)
    assert (listed.query, listed.client, listed.state) == (query, "ann at desk 7", "running")
    door.do(door.service.cancel, ANN, query)
    error = door.failed(task)
    assert isinstance(error, Cancelled)
    assert error.message == f"query {query} was cancelled by ann"
    with pytest.raises(Cancelled, match="was cancelled by ann"):
        door.do(door.service.cancel, BOB, query)
    (listed,) = door.do(door.service.queries, BOB)
    assert listed.state == "cancelled"


def test_close_ends_the_query_and_one_that_overtakes_its_execute_counts(door: Door) -> None:
    query, _ = door.execute(large_query("bergen"))
    door.do(door.service.close, ANN, query)
    with pytest.raises(Cancelled, match="was closed by its client"):
        door.page(query, 1)
    nothing_left(door.cluster)
    early = QueryId("oslo", uuid4().hex)
    door.do(door.service.close, ANN, early)
    with pytest.raises(Cancelled, match="was closed before it began"):
        door.wait(door.service.execute(ANN, RunStatement(early, "SELECT 1")))


def test_a_session_that_ends_takes_its_cursors_with_it_and_no_others(door: Door) -> None:
    ending, _ = door.execute(large_query("oslo"))
    leased, _ = door.execute(large_query("oslo"), options={"resume_s": "600"})
    staying, _ = door.execute(large_query("oslo"), BOB)
    door.do(door.service.gone, ANN, is_goodbye=False)
    with pytest.raises(Cancelled, match="its client went away"):
        door.page(ending, 1)
    assert door.page(staying, 1, BOB).rows
    # Who comes back is another session.
    back = Caller("ann", "test", "desk 9", "test 3")
    attached = door.wait(door.service.attach(back, GivePage(leased, 1, ONE_BATCH)))
    assert attached.page.number == 1
    for caller, query in ((back, leased), (BOB, staying)):
        door.do(door.service.close, caller, query)


def test_errors_are_raised_as_they_are(door: Door) -> None:
    with pytest.raises(SqlError, match="unknown table nowhere"):
        door.execute("SELECT * FROM nowhere")
    with pytest.raises(UserError, match="belongs to member bergen at"):
        door.wait(door.service.execute(ANN, RunStatement(QueryId("bergen", "a"), "SELECT 1")))
    door.cluster.stop_member("tromso")
    with pytest.raises(SiteError, match="site tromso"):
        door.execute("SELECT count(*) FROM few")
    assert door.service.open_cursors == 0


@pytest.mark.sail
def test_a_result_with_more_rows_than_one_may_have_ends(start_sail: StartCluster) -> None:
    door = Door(start_sail(limits={"result_rows": 10}))
    query, answer = door.execute("SELECT id FROM range(10)")
    assert isinstance(answer, RowsAnswer)
    assert answer.page.rows == 10
    door.do(door.service.close, ANN, query)
    with pytest.raises(Overloaded, match=r"more than 10 rows \(limits.result_rows\)"):
        door.execute("SELECT id FROM range(11)")

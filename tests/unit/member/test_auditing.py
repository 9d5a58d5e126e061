"""What a member's audit says of the statements that it was asked for, through the service and over a socket."""

from __future__ import annotations

import asyncio
import contextlib
import json
import resource
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

import skerry
from skerry.client.pep249 import Error
from skerry.config import Config, parse
from skerry.member.planning import Planned, Planner, Understood
from skerry.member.requests import Answer, CountAnswer, GivePage, PrepareStatement, RunStatement
from skerry.member.server import Member
from skerry.model.caller import Caller
from skerry.model.config import AuditConfig
from skerry.model.errors import Cancelled, ConfigError, SiteError, SqlError, Unaudited, UserError
from skerry.model.fragment import Count, LeftOut
from skerry.model.ids import QueryId
from skerry.model.progress import LinkBytes
from skerry.sql.commands import ShowSchemas
from skerry.testing.ports import free_ports
from skerry.wire.messages import Cancel, FragmentDone, Message, Progress, Receipt, Started
from tests.unit.member.member_samples import QUERY, SCHEMA, execute_of, plan_of, sealed

ROWS = plan_of("bergen", "tromso")
COUNTS = sealed(
    msgspec.structs.replace(
        ROWS, ends_in=Count((1,)), schema_info={"tromso.orders": 1}, left_out=(LeftOut("oslo", "orders", 1, "empty"),)
    )
)
ANN = Caller("ann", "native", "10.0.0.7:1", "native 1")
BOB = Caller("bob", "native", "10.0.0.8:1", "native 2")
SQL = "DELETE FROM orders WHERE name = 'Ann\nO\u2028Neal'"


class World:
    """A member whose every statement is the same change at tromso, or what the test makes of it."""

    def __init__(self, folder: Path, config: Config) -> None:
        self.path = folder / "audit" / "oslo.jsonl"
        self.member = Member(config, "oslo", None, plan=self._plan)
        self.service = self.member.service
        self.understand: Callable[[], Understood] = lambda: Planned(COUNTS, {})

    async def _plan(self, planner: Planner, statement: RunStatement) -> Understood:
        return self.understand()

    def ask(self, query: QueryId = QUERY, **options: str) -> asyncio.Task[Answer | None]:
        return asyncio.ensure_future(self.service.execute(ANN, RunStatement(query, SQL, options=options)))

    async def begin(self, **options: str) -> asyncio.Task[Answer | None]:
        task = self.ask(**options)
        while QUERY not in self.member.initiated and not task.done():
            await asyncio.sleep(0)
        return task

    def count(self, rows: int) -> None:
        initiated = self.member.initiated[QUERY]
        initiated.receive("tromso", Started(QUERY, "tromso", 1, SCHEMA))
        initiated.receive("tromso", FragmentDone(QUERY, "tromso", 1, rows, 8 * rows, 0.5))

    async def let_go(self) -> None:
        """Those that have heard of the query let go of it; where it was ended first, none has."""
        if (initiated := self.member.initiated.get(QUERY)) is None:
            return
        initiated.receive("bergen", Receipt(QUERY, "bergen"))
        initiated.receive("tromso", Progress(QUERY, "tromso", (), (LinkBytes("tromso", "bergen", 77, 3),)))
        initiated.receive("tromso", Receipt(QUERY, "tromso"))
        await initiated.wait_ended()

    async def lines(self, count: int) -> list[dict[str, Any]]:
        """Those that have been written, once there are so many."""
        async with asyncio.timeout(60):
            while len(found := self.path.read_text().splitlines() if self.path.exists() else []) < count:
                await asyncio.sleep(0.005)
        assert len(found) == count
        return [json.loads(line) for line in found]


@contextlib.asynccontextmanager
async def world(folder: Path, *, listens: bool = False, **changes: Any) -> AsyncIterator[World]:
    """One that does not listen knows of no peer that is lost, and so leaves its queries to the test."""
    ports = free_ports(3)
    members = ", ".join(
        f"{name}: {{address: '127.0.0.1:{port}', role: {role}}}"
        for (name, role), port in zip((("oslo", "lite"), ("bergen", "data"), ("tromso", "data")), ports, strict=True)
    )
    audit = AuditConfig(str(folder / "audit"), **changes)
    config = parse(f"cluster: c\nmembers: {{{members}}}\nlimits: {{stop_s: 0.5}}")
    made = World(folder, msgspec.structs.replace(config, audit=audit))
    try:
        if listens:
            await made.member.start()
        else:
            made.member._audit.start()
        yield made
    finally:
        for initiated in list(made.member.initiated.values()):
            initiated.cancel(Cancelled("the test is over"))
            for member in ("bergen", "tromso"):
                initiated.receive(member, Receipt(initiated.query, member))
        await made.member.stop()


def outcome(line: dict[str, Any]) -> tuple[str, str, int]:
    return line["event"], line["outcome"], line["code"]


def test_a_statement_is_one_line_when_its_receipts_are_there(tmp_path: Path) -> None:
    async def test() -> None:
        async with world(tmp_path) as w:
            task = await w.begin()
            w.count(3)
            assert await task == CountAnswer(3)
            await w.let_go()
            (line,) = await w.lines(1)
            assert outcome(line) == ("statement", "done", 0)
            assert (line["user"], line["door"], line["address"]) == ("ann", "native", "10.0.0.7:1")
            assert line["query"] == f"oslo/{QUERY.local}"
            assert line["statement"] == SQL
            assert line["tables"] == ["oslo.orders", "tromso.orders"]
            assert line["rows"] == 3
            assert line["links"] == [{"from": "tromso", "to": "bergen", "bytes": 77}]
            assert line["seconds"] >= 0

    asyncio.run(test())


def test_whatever_ends_a_statement_is_said(tmp_path: Path) -> None:
    async def test() -> None:
        async with world(tmp_path) as w:
            w.understand = wrong_sql
            with pytest.raises(SqlError):
                await w.ask(QueryId("oslo", "wrong"))
            with pytest.raises(UserError):
                await w.ask(QueryId("oslo", "option"), no_such="1")
            with pytest.raises(UserError):
                await w.ask(QueryId("bergen", "elsewhere"))
            w.understand = lambda: ShowSchemas(None)
            assert await w.ask(QueryId("oslo", "shown")) is not None
            found = await w.lines(4)
            assert [outcome(line)[1:] for line in found] == [
                ("refused", 101),
                ("refused", 100),
                ("refused", 100),
                ("done", 0),
            ]
            assert found[3]["rows"] == 4  # default, and three members

    asyncio.run(test())


def wrong_sql() -> Understood:
    raise SqlError("this is no SQL")


def test_a_query_that_another_ends_or_takes_over_names_both(tmp_path: Path) -> None:
    async def test() -> None:
        async with world(tmp_path) as w:
            assert await w.ask(detach="1") is None
            while QUERY not in w.member.initiated:
                await asyncio.sleep(0)
            attaching = asyncio.ensure_future(w.service.attach(BOB, GivePage(QUERY, 0)))
            await asyncio.sleep(0)
            w.service.cancel(ANN, QUERY)
            with pytest.raises(Cancelled):
                await attaching
            await w.let_go()
            await w.service.prepare(BOB, PrepareStatement("SELECT 1"))
            found = {line["event"]: line for line in await w.lines(4)}
            assert (found["cancel"]["user"], found["cancel"]["code"]) == ("ann", 0)
            assert (found["attach"]["user"], found["attach"]["code"]) == ("bob", 103)
            assert outcome(found["statement"]) == ("statement", "cancelled", 103)
            assert found["prepare"]["statement"] == "SELECT 1"

    asyncio.run(test())


def test_a_query_that_fails_at_a_site(tmp_path: Path) -> None:
    async def test() -> None:
        async with world(tmp_path) as w:
            task = await w.begin()
            w.member.initiated[QUERY].peer_lost("tromso", SiteError("site tromso is down", member="tromso"))
            with pytest.raises(SiteError):
                await task
            await w.let_go()
            (line,) = await w.lines(1)
            assert outcome(line) == ("statement", "failed", 300)

    asyncio.run(test())


def test_a_member_that_stops_leaves_a_line_for_what_was_open(tmp_path: Path) -> None:
    async def test() -> None:
        async with world(tmp_path) as w:
            await w.ask(detach="1")
            while QUERY not in w.member.initiated:
                await asyncio.sleep(0)
            await w.member.stop()
            (line,) = await w.lines(1)
            assert outcome(line) == ("statement", "failed", 302)

    asyncio.run(test())


# --- required ------------------------------------------------------------------------------------
@contextlib.contextmanager
def largest_file(size_bytes: int) -> Iterator[None]:
    """What the disk has room for."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_required_line_is_there_before_anything_runs(tmp_path: Path) -> None:
    """A member that is killed has told who asked."""

    async def test() -> None:
        async with world(tmp_path, is_required=True) as w:
            task = await w.begin()
            (line,) = await w.lines(1)
            assert (line["event"], line["user"], line["statement"]) == ("begun", "ann", SQL)
            w.count(1)
            await task
            await w.let_go()
            _, ended = await w.lines(2)
            assert (ended["query"], ended["time"]) == (line["query"], line["time"])

    asyncio.run(test())


@pytest.mark.parametrize("options", [{}, {"detach": "1"}, {"resume_s": "5"}])
def test_a_full_disk_stops_new_queries_where_an_audit_is_required(tmp_path: Path, options: dict[str, str]) -> None:
    async def test() -> None:
        async with world(tmp_path, is_required=True) as w:
            planned = []
            w.understand = lambda: planned.append(1) or ShowSchemas(None)  # type: ignore[func-returns-value]
            with largest_file(100), pytest.raises(Unaudited, match="no statement runs without it"):
                await w.ask(QueryId("oslo", "1"), **options)
            assert not planned
            with largest_file(100), pytest.raises(Unaudited, match="no statement runs without it"):
                await w.service.prepare(ANN, PrepareStatement("SELECT 1"))
            await w.ask(QueryId("oslo", "2"), **options)  # there is room again
            found = await w.lines(3 if not options else 2)
            assert [(line["event"], line["query"]) for line in found[:2]] == [
                ("statement", "oslo/1"),
                ("begun", "oslo/2"),
            ]
            assert outcome(found[0]) == ("statement", "refused", 303)

    asyncio.run(test())


def test_a_full_disk_stops_nothing_where_none_is_required(tmp_path: Path) -> None:
    async def test() -> None:
        async with world(tmp_path) as w:
            w.understand = lambda: ShowSchemas(None)
            with largest_file(100):
                assert await w.ask(QueryId("oslo", "1")) is not None
            await w.lines(1)

    asyncio.run(test())


def test_a_member_does_not_start_with_an_audit_that_it_cannot_write(tmp_path: Path) -> None:
    async def test() -> None:
        (tmp_path / "audit").write_text("a file")
        with pytest.raises(ConfigError, match=r"audit: .*oslo.jsonl cannot be written: file exists"):
            async with world(tmp_path, listens=True):
                pass

    asyncio.run(test())


# --- queries of other members --------------------------------------------------------------------
def test_a_part_in_a_query_of_another_member_is_told_and_refused_without_an_audit(tmp_path: Path) -> None:
    """A site that was taken over asks for rows without a client's statement."""

    async def test() -> None:
        text = "cluster: c\nmembers: {oslo: {address: 'h:1'}, tromso: {address: 'h:3', tables: "
        config = parse(text + "{orders: {format: csv, path: a}, other: {format: csv, path: b}}}}")
        audit = AuditConfig(str(tmp_path), is_required=True)
        member = Member(msgspec.structs.replace(config, audit=audit), "tromso", None)
        sent: list[Message] = []
        deliver, member.peers.send = member.peers.send, lambda _peer, message: sent.append(message)  # type: ignore[method-assign]
        execute = msgspec.structs.replace(
            execute_of(ROWS, "tromso"), schema_info={"tromso.orders": 1, "oslo.x": 1, "tromso.forged\n": 2}
        )
        try:
            member._audit.start()
            with largest_file(10):
                member._receive("oslo", execute)
                async with asyncio.timeout(60):
                    while member._audit.refusal_of_part() is None:
                        await asyncio.sleep(0.005)
                again = QueryId("oslo", "again")
                member._receive("oslo", msgspec.structs.replace(execute, query=again))
                codes = {each.query: each.error.code for each in sent if isinstance(each, Cancel)}
                assert codes == {QUERY: 300, again: 303}  # the first: this member has no Spark
            async with asyncio.timeout(60):
                while member._audit.refusal_of_part() is not None:
                    await asyncio.sleep(0.005)
        finally:
            member.peers.send = deliver  # type: ignore[method-assign]
            await member.stop()
        first, _ = [json.loads(line) for line in (tmp_path / "tromso.jsonl").read_text().splitlines()]
        assert (first["event"], first["initiator"], first["query"]) == ("part", "oslo", f"oslo/{QUERY.local}")
        assert first["tables"] == ["tromso.orders"]

    asyncio.run(test())


# --- over a socket -------------------------------------------------------------------------------
def test_clients_and_strangers_are_told_by_their_address(tmp_path: Path) -> None:
    async def test() -> None:
        async with world(tmp_path, listens=True) as w:
            w.understand = lambda: ShowSchemas(None)
            address = w.member.config.member("oslo").address

            def ask() -> None:
                with skerry.connect(f"skerry://{address}") as connection, connection.cursor() as cursor:
                    cursor.execute("SHOW SCHEMAS").fetchall()

            await asyncio.to_thread(ask)
            reader, writer = await asyncio.open_connection(*address.split(":"))
            writer.write(b"GET / HTTP/1.1\r\n\r\n" + bytes(64))
            await reader.read()
            writer.close()
            await writer.wait_closed()
            found = {line["event"]: line for line in await w.lines(2)}
            assert found["statement"]["address"].startswith("127.0.0.1:")
            assert found["statement"]["door"] == "native"
            assert (found["refused"]["code"], found["refused"]["more"]) == (200, 0)
            assert found["refused"]["address"].startswith("127.0.0.1:")

    asyncio.run(test())


def test_the_error_reaches_the_client_with_its_code(tmp_path: Path) -> None:
    async def test() -> None:
        async with world(tmp_path, listens=True, is_required=True) as w:
            address = w.member.config.member("oslo").address

            def ask() -> Error:
                with (
                    skerry.connect(f"skerry://{address}") as connection,
                    connection.cursor() as cursor,
                    pytest.raises(Error) as raised,
                ):
                    cursor.execute("SHOW SCHEMAS")
                return raised.value

            with largest_file(100):
                error = await asyncio.to_thread(ask)
            assert error.code == 303
            assert "make room where audit.path is" in error.suggestion

    asyncio.run(test())

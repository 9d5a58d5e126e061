"""One member's tables of our own, without any Spark: commits, upkeep, a start after a stop, a disk that fails."""

from __future__ import annotations

import asyncio
import contextlib
import os
import pickle
import shutil
import sqlite3
from collections.abc import Awaitable, Callable
from pathlib import Path

import pyarrow as pa
import pytest

from skerry.config import parse
from skerry.member import committing
from skerry.member import own as own_module
from skerry.member.background import Background
from skerry.member.computing import PlanChange, _plan
from skerry.member.own import OwnTables
from skerry.member.requests import RunStatement
from skerry.member.resources import Workers
from skerry.model.commits import Part, TransactionId, Versions
from skerry.model.errors import OutcomeUnknown, SiteError
from skerry.model.ids import QueryId
from skerry.model.rights import everything
from skerry.model.sharded import Create, OwnColumn, OwnTable
from skerry.tables import flush
from skerry.tables.columns import arrow_schema
from skerry.tables.writes import writes_of
from skerry.wire.commit_messages import Decided, Prepare, Refusal, State, Submit, Vote
from skerry.wire.definition_messages import Define, Defined
from skerry.wire.messages import Message

TABLE = OwnTable(0, "t", 0, (OwnColumn("id", "bigint", False),), ("id",), ("id",), ("oslo",))


def with_oslo(
    folder: Path, act: Callable[[OwnTables], Awaitable[None]], told: Callable[[Message], None] | None = None
) -> None:
    """`told`: what bergen hears, which is nobody else."""
    text = "cluster: c\nstate: state\nmembers: {oslo: {address: 'h:1'}, bergen: {address: 'h:2'}}"
    config = parse(text, base_dir=str(folder))

    async def run() -> None:
        background, workers = Background(), Workers("oslo", 4)

        def send(member: str, message: Message) -> None:
            if member != "oslo":
                assert told is not None
                told(message)
            elif isinstance(message, Define | Defined):
                asyncio.get_running_loop().call_soon(tables.defining.receive, member, message)

        tables = OwnTables(
            "oslo", config, send, background.own, workers, everything, lambda: (), lambda query, part, names: None
        )
        await tables.start()
        try:
            await act(tables)
        finally:
            await background.stop()
            await tables.stop()
            workers.stop()

    asyncio.run(run())


def part_of(tables: OwnTables, *numbers: int) -> Part:
    table = tables.definitions["t"].table
    batch = pa.RecordBatch.from_pylist([{"id": number} for number in numbers], arrow_schema(table))
    return Part(tuple(writes_of(table, batch)), (), (Versions(table.id, table.version, 1),))


async def insert(tables: OwnTables, name: str, *numbers: int) -> State:
    part = part_of(tables, *numbers)
    outcome = await tables.submit(TransactionId(QueryId("oslo", name)), tables.now(), {"oslo": part})
    return outcome.state


async def rows(tables: OwnTables) -> tuple[int, int]:
    """In files, and beside them."""
    table, moment = tables.definitions["t"].table, tables.now()
    found = await tables.open(tables.definitions["t"], moment)
    tables.close(table.id, moment)
    return sum(file.rows for file in (*found.plain, *found.touched)), found.rows.num_rows


def test_rows_are_flushed_by_themselves_and_found_after_a_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flush, "FLUSH_ROWS", 3)
    monkeypatch.setattr(own_module, "UPKEEP_S", 0.01)

    async def first(tables: OwnTables) -> None:
        await tables.defining.define(QueryId("oslo", "create"), Create(TABLE), everything())
        assert await insert(tables, "a", 1, 2) is State.COMMITTED
        assert await rows(tables) == (0, 2)
        assert await insert(tables, "b", 3) is State.COMMITTED
        while await rows(tables) != (3, 0):
            await asyncio.sleep(0.01)
        assert await insert(tables, "c", 4) is State.COMMITTED

    async def second(tables: OwnTables) -> None:
        assert (tables.version, await rows(tables)) == (1, (3, 1))
        # The same id again is answered, and not run.
        assert await insert(tables, "c", 5) is State.COMMITTED
        assert await rows(tables) == (3, 1)

    with_oslo(tmp_path, first)
    with_oslo(tmp_path, second)
    (folder,) = (tmp_path / "state").glob("*.tables")
    (file,) = (folder / "1").glob("*.parquet")
    file.write_bytes(file.read_bytes()[:-10])

    async def third(tables: OwnTables) -> None:
        with pytest.raises(SiteError, match="parquet"):
            await rows(tables)
        with pytest.raises(SiteError, match="parquet"):
            await tables.flush(1)
        assert await insert(tables, "d", 6) is State.ABORTED

    with_oslo(tmp_path, third)
    os.truncate(folder / "tables.sqlite", 100)
    with pytest.raises(SiteError, match=r"site oslo: .*tables.sqlite is damaged"):
        with_oslo(tmp_path, third)


def test_a_flush_waits_until_the_commits_that_it_holds_are_on_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`Committed` is written lazily. A crash after a flush without it left a commit in the past of the flush."""
    monkeypatch.setattr(committing, "COMMIT_LAZY_S", 3600.0)
    votes: list[Vote] = []
    refusals: list[Refusal] = []

    def told(message: Message) -> None:
        match message:
            case Vote():
                votes.append(message)
            case Refusal():
                refusals.append(message)

    async def act(tables: OwnTables) -> None:
        await tables.defining.define(QueryId("oslo", "create"), Create(TABLE), everything())
        txn = TransactionId(QueryId("bergen", "a"))
        tables.receive("bergen", Prepare(txn, tables.now(), 0, part_of(tables, 1), tables.now()))
        while not votes:
            await asyncio.sleep(0.01)
        tables.receive("bergen", Decided(txn, votes[0].prepare_ts + 1, 1))
        await tables.flush(1)
        assert await rows(tables) == (1, 0)
        (path,) = (tmp_path / "state").glob("*.tables/tables.sqlite*wal")
        # As after a crash: the file and its log as they are now.
        shutil.copytree(path.parent, tmp_path / "copy")
        with sqlite3.connect(tmp_path / "copy" / "tables.sqlite") as file:
            assert file.execute("SELECT commit_ts > 0 FROM transactions").fetchall() == [(1,)]
        file.close()
        # A store that fails is told to whoever asks next: it would wait for a vote, and never hear why there is none.
        store = tables._store
        assert store is not None
        store._break(SiteError("site oslo: the disk failed"), [])
        with pytest.raises(SiteError, match="nothing can be committed until it starts anew"):
            await insert(tables, "b", 2)
        tables.receive("bergen", Prepare(TransactionId(QueryId("bergen", "c")), 1, 0, part_of(tables, 3), 1))
        assert "site oslo: the disk failed" in refusals[0].failure.message

    with_oslo(tmp_path, act, told)


def test_planners_take_writes_as_they_take_queries() -> None:
    statement = RunStatement(QueryId("oslo", "q"), "DELETE FROM t", share="ann", variables={})
    message = pickle.loads(pickle.dumps(PlanChange(statement, {"t": TABLE}, ("oslo",))))
    assert (message.sql, message.share, message.variables) == ("DELETE FROM t", "ann", {})
    assert pickle.loads(pickle.dumps(_plan)) is _plan


def test_nothing_is_sent_to_a_member_without_a_connection(tmp_path: Path) -> None:
    """It is dialled. What was not sent is told for certain, what was sent is not."""
    text = "cluster: c\nstate: state\nmembers: {bergen: {address: 'h:2'}, oslo: {address: 'h:1'}}"
    config, sent, is_up = parse(text, base_dir=str(tmp_path)), list[Message](), False
    down = SiteError("site bergen is down: connection refused")

    async def run() -> None:
        nonlocal is_up
        background, workers = Background(), Workers("oslo", 4)
        dialled = asyncio.Event()

        def reach(member: str) -> bool:
            assert member == "bergen"
            if not is_up:
                dialled.set()
            return is_up

        async def lose(times: int) -> None:
            for _ in range(times):
                await dialled.wait()
                dialled.clear()
                tables.peer_lost("bergen", down)

        tables = OwnTables(
            "oslo",
            config,
            lambda _, message: sent.append(message),
            background.own,
            workers,
            everything,
            lambda: (),
            lambda *_: None,
            reach=reach,
        )
        await tables.start()

        def asked() -> list[Awaitable[object]]:
            txn = TransactionId(QueryId("oslo", f"write-{len(sent)}"))
            return [
                tables.defining.define(QueryId("oslo", f"create-{len(sent)}"), Create(TABLE), everything()),
                tables.submit(txn, tables.now(), {"bergen": Part()}),
            ]

        try:
            for each in asked():
                told, _ = await asyncio.gather(each, lose(2), return_exceptions=True)
                assert isinstance(told, SiteError)
                assert not isinstance(told, OutcomeUnknown)
                assert "connection refused; nothing was " in told.message
            # Whether one that was sent before has changed something is not told by one that was not sent.
            before, _ = await asyncio.gather(
                tables.defining.was_defined(QueryId("oslo", "q"), everything()), lose(2), return_exceptions=True
            )
            assert isinstance(before, OutcomeUnknown)
            assert sent == []
            # A connection that comes is used, and from then on nobody knows.
            tasks = [asyncio.ensure_future(each) for each in asked()]
            await dialled.wait()
            is_up = True
            tables.peer_back("bergen")
            while len(sent) < 2:
                await asyncio.sleep(0)
            assert {type(message) for message in sent} == {Define, Submit}
            is_up = False
            for _ in range(3):
                tables.peer_lost("bergen", down)
            with pytest.raises(OutcomeUnknown):
                await tasks[0]
            assert not tasks[1].done()
            for task in tasks:
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError, OutcomeUnknown):
                    await task
        finally:
            await background.stop()
            await tables.stop()
            workers.stop()

    asyncio.run(run())

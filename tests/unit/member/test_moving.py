"""Rows that move between members in one loop, without any Spark and without a wire: messages can be held back."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec
import pyarrow as pa
import pytest

from skerry.config import Config, parse
from skerry.member import moving
from skerry.member.background import Background
from skerry.member.claims import refuse_forged
from skerry.member.own import OwnTables
from skerry.member.rebalancing import Rebalancing
from skerry.member.resources import Workers
from skerry.model.commits import Policy, TransactionId
from skerry.model.errors import Overloaded, PeerError, SiteError, StaleSchema, UserError
from skerry.model.ids import QueryId
from skerry.model.rights import Rights, everything
from skerry.model.sharded import Alter, BucketMap, Create, OwnColumn, OwnTable, numbered
from skerry.tables.columns import arrow_schema
from skerry.tables.routing import routed_in_order
from skerry.wire.commit_messages import CommitMessage, Decided, State
from skerry.wire.definition_messages import Define, Defined, Definitions, KnownDefinitions
from skerry.wire.messages import Message
from skerry.wire.moving_messages import GroupSent, Rebalance, Rebalanced, SendGroup
from skerry.wire.staging_messages import DropRows, RowsStaged, StageRows
from skerry.wire.values import error_of
from tests.unit.tables.test_tables_files import replayed

pytestmark = pytest.mark.slow

NAMES = ("oslo", "bergen", "tromso")
TABLE = OwnTable(0, "t", 0, (OwnColumn("id", "bigint", False),), ("id",), ("id",), ("oslo", "bergen"))
ROWS = 300


class Site:
    """A member's tables, and what it hears."""

    def __init__(self, name: str, config: Config, sites: dict[str, Site], holds: Callable[[Message], bool]) -> None:
        self.name = name
        self.background, self.workers = Background(), Workers(name, 4)
        self.held: list[tuple[str, Message]] = []
        self.is_started = False

        def send(to: str, message: Message) -> None:
            if holds(message):
                sites[to].held.append((name, message))
            elif to in sites and sites[to].is_started:
                asyncio.get_running_loop().call_soon(sites[to].receive, name, message)

        def up() -> list[str]:
            return [other for other in sites if other != name]

        self.own = OwnTables(
            name, config, send, self.background.own, self.workers, everything, up, lambda query, part, names: None
        )
        self.rebalancing = Rebalancing(name, config, self.own, send, up, everything)

    def receive(self, sender: str, message: Message) -> None:
        refuse_forged(sender, message, self.name)
        match message:
            case Define() | Defined() | Definitions() | KnownDefinitions():
                self.own.defining.receive(sender, message)
            case StageRows() | DropRows():
                self.own.receive_rows(sender, message)
            case RowsStaged():
                self.own.bulks.receive(sender, message)
            case SendGroup():
                self.background.own(self.rebalancing.send_here(sender, message), "send")
            case Rebalance():
                self.background.own(self.rebalancing.rebalance_here(sender, message), "rebalance")
            case GroupSent() | Rebalanced():
                self.rebalancing.told(sender, message)
            case _ if isinstance(message, CommitMessage):
                self.own.receive(sender, message)

    def let_go(self) -> None:
        held, self.held = self.held, []
        for sender, message in held:
            self.receive(sender, message)

    async def numbers(self) -> list[int]:
        """Of the rows that are here now."""
        definition, moment = self.own.definitions["t"], self.own.now()
        await self.own.open(definition, moment)
        try:
            rows = self.own._shards[definition.table.id].read(moment)
        finally:
            self.own.close(definition.table.id, moment)
        return [int(number) for number in rows.column("id").to_pylist()]


Sites = dict[str, Site]


def with_sites(
    folder: Path,
    act: Callable[[Sites], Awaitable[None]],
    names: tuple[str, ...] = NAMES,
    holds: Callable[[Message], bool] = lambda _: False,
) -> None:
    members = ", ".join(f"{name}: {{address: 'h:{place}'}}" for place, name in enumerate(NAMES, 1))
    config = parse(f"cluster: c\nstate: state\nmembers: {{{members}}}", base_dir=str(folder))

    async def run() -> None:
        sites: Sites = {}
        for name in names:
            sites[name] = Site(name, config, sites, holds)
        for site in sites.values():
            await site.own.start()
            site.is_started = True
        for site in sites.values():
            site.own.meet()
        try:
            await asyncio.wait_for(act(sites), 60)
        finally:
            for site in sites.values():
                await site.background.stop()
                await site.own.stop()
                site.workers.stop()

    asyncio.run(run())


async def insert(site: Site, *numbers: int) -> State:
    """As a statement alone does, but for trying again."""
    definition = site.own.definitions["t"]
    rows = pa.RecordBatch.from_pylist([{"id": number} for number in numbers], arrow_schema(definition.table))
    parts = routed_in_order(definition, rows, Policy.FAIL, "", ()).parts
    query = QueryId(site.name, "-".join(map(str, numbers[:9])))
    outcome = await site.own.submit(TransactionId(query), site.own.now(), parts)
    if outcome.failure is not None:
        raise error_of(outcome.failure)
    return outcome.state


async def made(sites: Sites, table: OwnTable = TABLE, *, flushes: bool = True) -> None:
    await sites["oslo"].own.defining.define(QueryId("oslo", "create"), Create(table), everything())
    await insert(sites["oslo"], *range(ROWS // 2))
    for site in sites.values():
        if flushes and site.name in table.members:
            await site.own.flush(1)
    await insert(sites["oslo"], *range(ROWS // 2, ROWS))


async def all_moved(site: Site, *leaving: str) -> int:
    moves = 0
    while (await site.rebalancing.ask(leaving, everything(), is_plan=False)).moved:
        moves += 1
    return moves


async def found(sites: Sites) -> dict[str, list[int]]:
    return {name: sorted(await site.numbers()) for name, site in sites.items()}


def test_rows_move_in_parts_and_are_found_after_a_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(moving, "MOVE_BYTES", 1500)
    after: dict[str, list[int]] = {}

    async def first(sites: Sites) -> None:
        await made(sites)
        plan = (await sites["tromso"].rebalancing.ask((), everything(), is_plan=True)).left
        assert [(step.source, step.target) for step in plan] == [("oslo", "tromso"), ("bergen", "tromso")]
        assert await all_moved(sites["bergen"]) > len(plan)
        after.update(await found(sites))
        assert sorted(number for rows in after.values() for number in rows) == list(range(ROWS))
        assert all(rows for rows in after.values())
        assert {site.own.definitions["t"].buckets for site in sites.values()} == {
            sites["oslo"].own.definitions["t"].buckets
        }
        definition = sites["oslo"].own.definitions["t"]
        with pytest.raises(SiteError, match="its history begins at"):
            await sites["oslo"].own.open(definition, definition.buckets.since - 1)
        nobody = Rights()
        monkeypatch.setattr(sites["oslo"].rebalancing, "_rights_of", lambda *_: nobody)
        with pytest.raises(UserError, match="may not define table t"):
            await sites["tromso"].rebalancing.ask((), nobody, is_plan=True)

    async def second(sites: Sites) -> None:
        assert await found(sites) == after
        await insert(sites["tromso"], *range(ROWS, ROWS + 50))
        assert await all_moved(sites["oslo"], "bergen")
        assert await sites["bergen"].own.flush(1) is None
        there = await found({name: sites[name] for name in ("oslo", "tromso")})
        assert sorted(number for rows in there.values() for number in rows) == list(range(ROWS + 50))
        assert sites["oslo"].own.tables["t"].members == ("oslo", "tromso")
        for name, rows in there.items():  # as Delta's readers see it
            await sites[name].own.flush(1)
            delta, *_ = replayed(sites[name].own.folder_of(1))
            assert sorted(delta.column("id").to_pylist()) == rows
        for site in sites.values():  # nothing is left over
            named = {each.file.name for each in site.own._shards[1].manifest.named}
            there_are = {path.name for path in (tmp_path / "state" / f"_c.{site.name}.tables" / "1").glob("*.parquet")}
            assert there_are <= named

    with_sites(tmp_path, first)
    with_sites(tmp_path, second)


def test_buckets_without_rows_move(tmp_path: Path) -> None:
    """Of one row, in a file or not, most buckets have nothing."""

    async def act(sites: Sites) -> None:
        await sites["oslo"].own.defining.define(QueryId("oslo", "create"), Create(TABLE), everything())
        await all_moved(sites["bergen"], "bergen")
        await insert(sites["oslo"], 1)
        for name in ("oslo", "tromso"):
            await sites[name].own.flush(1)
        await all_moved(sites["bergen"])
        assert sorted(number for rows in (await found(sites)).values() for number in rows) == [1]

    with_sites(tmp_path, act)


def test_a_read_that_waited_for_a_move_looks_elsewhere(tmp_path: Path) -> None:
    """The target knows that it has voted, and not yet how it was decided."""
    holds: set[type[Message]] = set()

    async def act(sites: Sites) -> None:
        oslo, tromso = sites["oslo"], sites["tromso"]
        await made(sites)
        while "t" not in tromso.own.definitions:
            await asyncio.sleep(0.01)
        holds.add(Decided)
        oslo.own.defining.placed(1, NAMES)
        while len(tromso.own.definitions["t"].table.members) < 3:
            await asyncio.sleep(0.01)
        before = tromso.own.definitions["t"]
        moved = asyncio.ensure_future(all_moved(oslo))
        while not tromso.held:
            await asyncio.sleep(0.01)
        moment = oslo.own.now()
        reading = asyncio.ensure_future(tromso.own.open(before, moment))
        await asyncio.sleep(0.05)
        assert not reading.done()
        holds.clear()
        tromso.let_go()
        with pytest.raises(StaleSchema):
            await reading
        assert await moved == 2

    with_sites(tmp_path, act, holds=lambda message: type(message) in holds)


def test_the_keeper_tells_after_a_start_what_it_had_decided(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    decided: list[BucketMap] = []

    async def first(sites: Sites) -> None:
        await made(sites)
        monkeypatch.setattr(sites["oslo"].own.defining, "moved", decided.append)
        await sites["oslo"].rebalancing.ask((), everything(), is_plan=False)

    async def second(sites: Sites) -> None:
        while {site.own.definitions["t"].buckets for site in sites.values()} != {decided[0]}:
            await asyncio.sleep(0.01)
        there = await found(sites)
        assert sorted(number for rows in there.values() for number in rows) == list(range(ROWS))

    monkeypatch.setattr("skerry.member.rebalancing.DEFINE_WAIT_S", 0.1)
    with_sites(tmp_path, first)
    with_sites(tmp_path, second)


def test_a_write_that_was_quicker_than_a_move(tmp_path: Path) -> None:
    """Writes wait while rows are sent. If one comes all the same, the move comes to nothing."""
    holds: set[type[Message]] = {GroupSent}

    async def act(sites: Sites) -> None:
        oslo = sites["oslo"]
        await made(sites, flushes=False)  # no file has to be read for a write
        moved = asyncio.ensure_future(oslo.rebalancing.ask((), everything(), is_plan=False))
        while not oslo.held:
            await asyncio.sleep(0.01)
        with pytest.raises(Overloaded, match="are moving to another member"):
            await insert(oslo, *range(ROWS, 2 * ROWS))
        oslo.own.moves._frozen.clear()
        await insert(oslo, *range(2 * ROWS, 3 * ROWS))
        holds.clear()
        oslo.let_go()
        assert len((await moved).moved) == 1  # tried again
        there = await found(sites)
        assert sorted(number for rows in there.values() for number in rows) == [
            *range(ROWS),
            *range(2 * ROWS, 3 * ROWS),
        ]

    with_sites(tmp_path, act, holds=lambda message: type(message) in holds)


def test_copies_come_and_go(tmp_path: Path) -> None:
    async def act(sites: Sites) -> None:
        table = OwnTable(0, "t", 0, TABLE.columns, ("id",), (), ("oslo", "bergen"))
        await made(sites, table)
        assert await all_moved(sites["tromso"]) == 1
        await insert(sites["bergen"], ROWS)
        everywhere = list(range(ROWS + 1))
        assert await found(sites) == dict.fromkeys(NAMES, everywhere)
        assert await all_moved(sites["tromso"], "oslo") == 1
        assert sites["tromso"].own.tables["t"].members == ("bergen", "tromso")
        await insert(sites["oslo"], ROWS + 1)
        left = {name: sites[name] for name in ("bergen", "tromso")}
        assert await found(left) == {name: [*everywhere, ROWS + 1] for name in left}
        assert sites["oslo"].own._shards[1].manifest.live == ()
        assert await all_moved(sites["tromso"]) == 1  # and comes back
        assert await found(sites) == {name: [*everywhere, ROWS + 1] for name in NAMES}

    with_sites(tmp_path, act)


def test_a_member_that_hears_of_rows_before_their_table_waits_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("skerry.tables.catalogue", "skerry.member.defining"):
        monkeypatch.setattr(f"{module}.DEFINE_WAIT_S", 0.05)
    is_silent = [True]

    async def act(sites: Sites) -> None:
        oslo, query = sites["oslo"], QueryId("oslo", "load")
        create = Create(msgspec.structs.replace(TABLE, members=NAMES))
        await oslo.own.defining.define(QueryId("oslo", "create"), create, everything())
        assert "t" not in sites["tromso"].own.definitions
        is_silent[0] = False
        definition = oslo.own.definitions["t"]
        bulk = oslo.own.bulks.begin(definition, Policy.FAIL, query)
        rows = pa.RecordBatch.from_pylist([{"id": number} for number in range(100)], arrow_schema(definition.table))
        await bulk.add(lambda: rows, everything())
        parts = (await bulk.finish(everything(), is_ordered=True)).parts
        assert "tromso" in parts
        outcome = await oslo.own.submit(TransactionId(query), oslo.own.now(), parts)
        bulk.drop()
        assert outcome.state is State.COMMITTED
        assert outcome.rows == 100
        assert sorted(number for each in (await found(sites)).values() for number in each) == list(range(100))
        # The same for rows within a commit, of a table that is altered.
        is_silent[0] = True
        table = numbered(oslo.own.tables["t"])
        wider = msgspec.structs.replace(table, columns=(*table.columns, OwnColumn("v", "string")))
        await oslo.own.defining.define(QueryId("oslo", "alter"), Alter(wider), everything())
        is_silent[0] = False
        assert sites["tromso"].own.tables["t"].version < oslo.own.tables["t"].version
        assert await insert(oslo, *range(100, 200)) is State.COMMITTED

    with_sites(tmp_path, act, holds=lambda message: isinstance(message, Definitions) and is_silent[0])


def test_only_the_keeper_moves_rows(tmp_path: Path) -> None:
    async def act(sites: Sites) -> None:
        await made(sites)
        table = sites["bergen"].own.tables["t"]
        told: list[Message] = []
        sites["tromso"].rebalancing.told = lambda sender, message: told.append(message)  # type: ignore[method-assign]
        request = SendGroup("r", table.id, table.version, 1, 0, 9, "tromso", True)
        await sites["bergen"].rebalancing.send_here("tromso", request)
        await asyncio.sleep(0)
        (answer,) = told
        assert isinstance(answer, GroupSent)
        assert answer.failure is not None
        assert "does not keep definitions" in answer.failure.message
        rows = StageRows(
            QueryId("bergen", "x"), 0, 0, table.id, table.version, 1, Policy.FAIL, "", (), b"", False, (0, 9)
        )
        with pytest.raises(PeerError, match="which bergen does not have"):
            sites["oslo"].own._admit("bergen", rows)

    with_sites(tmp_path, act)

"""Tables of databases, whose rows change and versions do not: what is told of them, and how often they are asked."""

from __future__ import annotations

import asyncio
from pathlib import Path

from skerry.catalog.statistics import ANALYZED
from skerry.model.config import TableConfig
from skerry.model.errors import SiteError
from skerry.model.names import Moment
from skerry.model.sources import JdbcTable, Pinned, Told
from skerry.model.table import Column, ColumnStats, PartStats, TablePart
from tests.unit.member.table_world import World

COLUMNS = (Column("k", "int"),)
TABLE = "database: shop, table: s.t"


class Database:
    """What an engine says of one; counts how often it was asked."""

    def __init__(self) -> None:
        self.asked = 0
        self.fault = ""

    def look(self, table: TableConfig, at: Moment | None) -> Told:
        self.asked += 1
        if self.fault:
            raise SiteError(self.fault)
        assert isinstance(table.source, JdbcTable)
        stats = PartStats((ColumnStats("k", 1, 3, ndv=3.0),), "database")
        return Told(7, Pinned(table.source, "jdbc"), 100, COLUMNS, 3, stats)


def world(tmp_path: Path, table: str = TABLE, **limits: float) -> tuple[World, Database]:
    made, database = World(tmp_path, table, database="jdbc:postgresql:d", **limits), Database()
    made.spark.look = database.look  # type: ignore[method-assign]
    return made, database


async def part(world: World) -> TablePart:
    return (await world.tables.snapshot("t")).part


def test_nothing_is_proven_of_rows_that_may_change(tmp_path: Path) -> None:
    async def test() -> None:
        made, _ = world(tmp_path)
        known = await part(made)
        exact = PartStats((ColumnStats("k", 1, 3, nulls=0, ndv=3.0, is_exact=True),), ANALYZED)
        made.tables.analyzed("t", known.files_version, exact, known.rows or 0)
        found = (await part(made)).stats
        assert found is not None
        assert found.columns == (ColumnStats("k", 1, 3, nulls=None, ndv=3.0, is_exact=False),)

    asyncio.run(test())


def test_values_that_never_leave_are_not_told(tmp_path: Path) -> None:
    async def test() -> None:
        made, _ = world(tmp_path, f"{TABLE}, leaves: never")
        found = (await part(made)).stats
        assert found is not None
        assert found.columns == (ColumnStats("k", ndv=3.0),)

    asyncio.run(test())


def test_what_was_said_is_kept_for_a_while(tmp_path: Path) -> None:
    async def test() -> None:
        made, database = world(tmp_path, look_again_s=3600)
        await asyncio.gather(part(made), part(made), part(made))
        await part(made)
        assert database.asked == 1
        made.tables.forget(["t"])
        await part(made)
        assert database.asked == 2

    asyncio.run(test())


def test_a_mistake_is_not_kept(tmp_path: Path) -> None:
    async def test() -> None:
        made, database = world(tmp_path, look_again_s=3600)
        database.fault = "it is away"
        _, broken = await made.tables.all()
        assert broken == {"t": "it is away"}
        database.fault = ""
        assert (await part(made)).columns == COLUMNS

    asyncio.run(test())


def test_it_is_asked_for_each_statement_if_it_is_told_so(tmp_path: Path) -> None:
    async def test() -> None:
        made, database = world(tmp_path, look_again_s=0)
        await part(made)
        await part(made)
        assert database.asked == 2

    asyncio.run(test())

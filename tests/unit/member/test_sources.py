"""A source that does not answer: its own tables say so in time, and all others are read."""

from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path

import pytest

from skerry.catalog.listing import Listing
from skerry.config import parse
from skerry.member.resources import Workers
from skerry.member.sources import Sources, source_of
from skerry.model.config import TableConfig
from skerry.model.errors import SiteError, UserError
from skerry.model.limits import LOOKS_AT_ONCE, Limits
from skerry.model.names import Moment, older_name
from skerry.model.sources import CatalogTable, Pinned, PlainFiles, Storage, Told
from tests.unit.member.table_world import Spark


class Catalogs(Spark):
    """Answers for every catalog but `down`, which says nothing until `gate` is open."""

    def look(self, table: TableConfig, at: Moment | None) -> Told:
        assert isinstance(table.source, CatalogTable)
        if table.source.name[0] == "down":
            self.gate.wait()
        return Told(7, Pinned(table.source, "catalog"))


def table(name: str, *parts: str) -> TableConfig:
    return TableConfig("oslo", name, "catalog", "", shown_path=".".join(parts), source=CatalogTable(parts))


def test_a_catalog_that_hangs_holds_up_its_own_tables_alone(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("1\n")
    config = parse(
        "cluster: c\nmembers: {oslo: {address: 'h:1', tables: {files: {format: csv, path: a.csv}}}}", base_dir=tmp_path
    )
    files = config.members["oslo"].tables["files"]
    spark, looks = Catalogs(), Workers("look", LOOKS_AT_ONCE + 1)
    spark.gate = threading.Event()

    async def test() -> None:
        sources = Sources(str(tmp_path), Storage(), spark, Limits(look_s=0.2), looks, looks)
        asked = [table("t", "lake", "s", "t"), files, *(table(f"d{n}", "down", "s", "t") for n in range(4))]
        found = await sources.states(asked)
        assert isinstance(found["t"], Told)
        assert isinstance(found["files"], Listing)
        for number in range(4):
            error = found[f"d{number}"]
            assert isinstance(error, SiteError)
            assert error.message == (
                f"site oslo: table d{number}: catalog down has not answered in 0.2 s (limits.look_s)"
            )
        spark.gate.set()  # it is there again
        while isinstance((await sources.states(asked[-1:]))["d3"], SiteError):
            pass

    asyncio.run(test())
    looks.stop()


class Slow(Spark):
    """Takes its time, and answers."""

    def look(self, table: TableConfig, at: Moment | None) -> Told:
        time.sleep(0.1)
        return Told(7, Pinned(table.source, "catalog"))


def test_a_catalog_that_answers_is_not_late_because_many_ask(tmp_path: Path) -> None:
    looks = Workers("look", LOOKS_AT_ONCE)
    asked = [table(f"t{number}", "lake", "s", "t") for number in range(20)]
    sources = Sources(str(tmp_path), Storage(), Slow(), Limits(look_s=0.5), looks, looks)  # all of them: 1 s
    found = asyncio.run(sources.states(asked))
    looks.stop()
    assert [name for name, state in found.items() if not isinstance(state, Told)] == []


def test_what_hangs_together_waits_together() -> None:
    store = PlainFiles()
    named = [TableConfig("oslo", name, "csv", f"s3a://lake/{name}", source=store) for name in ("a", "b")]
    assert {source_of(each) for each in named} == {"store s3a://lake"}
    assert source_of(TableConfig("oslo", "a", "csv", "a", shown_path="data/a", source=store)) == "data/a"


def test_files_are_read_as_they_are_now(tmp_path: Path) -> None:
    looks = Workers("look", 1)
    files = TableConfig("oslo", older_name("files", Moment("version", 3)), "csv", ".")
    found = asyncio.run(Sources(str(tmp_path), Storage(), Spark(), Limits(), looks, looks).states([files]))
    looks.stop()
    with pytest.raises(UserError, match="site oslo: table files: AS OF is for tables of our own"):
        raise next(iter(found.values()))  # type: ignore[misc]

"""Tables: listings of files as views, their columns, their rows."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from skerry.model.errors import SiteError
from skerry.model.table import Column
from skerry.model.trace import TableBroken, cause_of
from skerry.spark.engine import Engine
from tests.integration.spark.harness import Site, files, views_of

TWO = (Column("k", "bigint"), Column("v", "string"))


def write(path: Path, *keys: int) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"k": pa.array(keys, pa.int64()), "v": [f"v{key}" for key in keys]}), path)
    return path


def test_a_table_is_described_counted_and_read(engine: Engine, tmp_path: Path) -> None:
    async def run() -> None:
        table = files(tmp_path, "things", write(tmp_path / "a.parquet", 1, 2), write(tmp_path / "b [x]*.parquet", 3))
        assert engine.describe(table) == TWO
        assert engine.count_rows(table) == 3
        async with Site(engine) as site:
            out = await site.collect("SELECT k FROM leaf WHERE v <> 'v2'", tables={"leaf": table})
            assert sorted(row["k"] for row in out.rows) == [1, 3]

    asyncio.run(run())


def test_only_the_listed_files_are_read_and_a_new_listing_replaces_the_old_view(engine: Engine, tmp_path: Path) -> None:
    async def run() -> None:
        first = files(tmp_path, "growing", write(tmp_path / "1.parquet", 1), columns=TWO)
        write(tmp_path / "2.parquet", 2)
        second = files(tmp_path, "growing", *sorted(tmp_path.iterdir()), columns=TWO, version=2)
        async with Site(engine) as site:
            for table, count in ((first, 1), (second, 2), (first, 1), (second, 2)):
                out = await site.collect("SELECT count(*) AS c FROM leaf", tables={"leaf": table})
                assert out.rows == [{"c": count}]
        views = views_of(engine).names()
        await asyncio.to_thread(engine.count_rows, second)
        assert views_of(engine).names() == views

    asyncio.run(run())


def test_directories_named_key_value_are_columns(
    engine: Engine, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    paths = [write(tmp_path / f"land={land}" / "p.parquet", key) for key, land in enumerate(("no", "se"))]
    table = files(tmp_path, "split", *paths)
    if "sail" in request.node.callspec.id:
        with pytest.raises(SiteError, match="table split: Sail makes no columns of directories such as land=no; use "):
            engine.describe(table)
        return
    assert engine.describe(table) == (*TWO, Column("land", "string"))

    async def run() -> None:
        async with Site(engine) as site:
            out = await site.collect("SELECT k, land FROM leaf ORDER BY k", tables={"leaf": table})
            assert out.rows == [{"k": 0, "land": "no"}, {"k": 1, "land": "se"}]

    asyncio.run(run())


def test_csv_with_declared_columns(engine: Engine, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("k,v\n1,x\n2,\n")
    columns = (Column("k", "int"), Column("v", "string"))
    table = files(tmp_path, "text", path, columns=columns, format="csv", options={"header": "true"})
    assert engine.describe(table) == columns

    async def run() -> None:
        async with Site(engine) as site:
            out = await site.collect("SELECT k, v FROM leaf ORDER BY k", tables={"leaf": table})
            assert out.rows == [{"k": 1, "v": "x"}, {"k": 2, "v": None}]

    asyncio.run(run())


def test_columns_are_found_in_all_rows(engine: Engine, tmp_path: Path) -> None:
    """Sail would look at the first 1,000 of a file, and a column that comes later would not be there."""
    rows, late = '{"a": 1}\n' * 1500, '{"a": 2, "late": "x"}\n'
    (tmp_path / "a.json").write_text(rows + late)
    (tmp_path / "a.csv").write_text("a\n" + "1\n" * 1500 + "x\n")
    told = files(tmp_path, "told", tmp_path / "a.json", format="json")
    read = files(tmp_path, "read", tmp_path / "a.csv", format="csv", options={"header": "true", "inferSchema": "true"})
    assert engine.describe(told) == (Column("a", "bigint"), Column("late", "string"))
    assert engine.describe(read) == (Column("a", "string"),)


def test_a_table_without_files_is_empty_if_its_columns_are_known(engine: Engine, tmp_path: Path) -> None:
    columns = (*TWO, Column("d", "decimal(10,2)"), Column("a", "array<int>"))
    table = files(tmp_path, "bare", columns=columns)
    assert engine.describe(table) == columns
    assert engine.count_rows(table) == 0
    with pytest.raises(SiteError, match="table bare: no file under"):
        engine.describe(files(tmp_path, "bare"))


def test_a_file_that_is_gone_or_broken_is_the_site_s_fault(engine: Engine, tmp_path: Path) -> None:
    broken = tmp_path / "broken.parquet"
    broken.write_bytes(b"PAR1 this is no Parquet file PAR1")
    for path in (tmp_path / "gone.parquet", broken):
        with pytest.raises(SiteError, match="table lost: ") as caught:
            engine.describe(files(tmp_path, "lost", path))
        assert "\n" not in caught.value.message

    async def run() -> None:
        async with Site(engine) as site:
            table = files(tmp_path, "lost", tmp_path / "gone.parquet", columns=TWO)
            with pytest.raises(SiteError):
                await site.collect("SELECT k FROM leaf", tables={"leaf": table})

    asyncio.run(run())


@pytest.mark.parametrize("columns", [(Column("k", "bigint"),), ()])
def test_a_record_that_makes_a_table_unreadable_is_for_whoever_asks_and_not_for_the_log(
    engine: Engine, tmp_path: Path, columns: tuple[Column, ...]
) -> None:
    path = tmp_path / "a.json"
    path.write_text('{"k": 1}\n{4711, secret\n')
    table = files(tmp_path, "strict", path, columns=columns, format="json", options={"mode": "FAILFAST"})
    with pytest.raises(SiteError, match="table strict: ") as caught:
        engine.count_rows(table)
    logged = str(TableBroken("strict", cause_of(caught.value)))
    assert re.fullmatch(r"table strict: SiteError \(code 300\)( \[[A-Z_.]+\])?", logged)

"""What somebody may see of a table: a view over the view of all of it, on every engine."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from skerry.access.sight import view_of
from skerry.model.errors import SiteError
from skerry.model.rights import Seen, Sight
from skerry.model.table import Column
from skerry.spark.engine import Engine, TableFiles
from tests.integration.spark.harness import Site, files, views_of

COLUMNS = (
    *(Column("x", "bigint"), Column("y", "bigint"), Column("s", "string"), Column("r", "string")),
    *(Column("st", "struct<a:bigint>"), Column("arr", "array<bigint>"), Column("m", "map<string,bigint>")),
)
NORTH = Sight(where="r = session_user()", masks={"s": "concat(left(s, 1), 1)"})


@pytest.fixture
def table(tmp_path: Path) -> TableFiles:
    """One row is hidden from north. It divides by zero, and is no number."""
    pairs = pa.map_(pa.string(), pa.int64())
    rows = pa.table(
        {
            "x": [1, 2, 5, 9],
            "y": [1, 2, 5, 3],
            "s": ["1", "2", "abc", "3"],
            "r": ["north", "north", "south", "north"],
            "st": [{"a": 1}, {"a": 2}, {"a": 5}, None],
            "arr": [[1], [2], [5], None],
            "m": pa.array([[("k", 1)], [], [("k", 5)], None], pairs),
        }
    )
    pq.write_table(rows, tmp_path / "t.parquet")
    return files(tmp_path, f"seen_{tmp_path.name}", tmp_path / "t.parquet", columns=COLUMNS)


def seen(table: TableFiles, *sights: Sight, user: str = "north") -> TableFiles:
    return msgspec.structs.replace(table, seen=view_of(Seen(sights), COLUMNS, user))


def test_rows_columns_types_and_masks(engine: Engine, table: TableFiles) -> None:
    async def run() -> None:
        async with Site(engine) as site:
            out = await site.collect("SELECT * FROM leaf", tables={"leaf": seen(table, NORTH)})
            assert [(each.name, each.type) for each in out.schema.columns] == [
                (each.name, each.type) for each in COLUMNS
            ]
            assert sorted((row["x"], row["s"], row["st"]) for row in out.rows if row["st"]) == [
                (1, "11", {"a": 1}),
                (2, "21", {"a": 2}),
            ]
            assert len(out.rows) == 3
            few = seen(table, Sight(frozenset({"x"})), Sight(frozenset({"y"}), where="r = 'south'"))
            out = await site.collect("SELECT * FROM leaf", tables={"leaf": few})
            assert sorted((row["x"], row["y"] or 0) for row in out.rows) == [(1, 0), (2, 0), (5, 5), (9, 0)]

    asyncio.run(run())


@pytest.mark.parametrize(
    "condition",
    [
        "1 / (x - 5) < 100",
        "x = y AND 1 / (x - 5) < 100",  # Spark infers 1 / (y - 5) < 100, and would compute it first
        "x = y AND assert_true(y <> 5) IS NULL",
        "CAST(m['k'] AS INT) IS NULL OR 1 / (st.a - 5) < 100",
        "r = 'north' AND 1 / (x - 5) < 100",
    ],
)
def test_a_hidden_row_raises_no_error(engine: Engine, table: TableFiles, condition: str) -> None:
    async def run() -> None:
        async with Site(engine) as site:
            out = await site.collect(
                f"SELECT count(*) AS c FROM leaf WHERE {condition}", tables={"leaf": seen(table, NORTH)}
            )
            assert out.rows[0]["c"] >= 2

    asyncio.run(run())


def test_rules_that_do_not_fit_are_not_quoted(engine: Engine, table: TableFiles) -> None:
    async def run() -> None:
        async with Site(engine) as site:
            with pytest.raises(SiteError, match="its rules do not fit its columns") as caught:
                await site.collect("SELECT x FROM leaf", tables={"leaf": seen(table, Sight(where="secret_column = 1"))})
            assert "secret_column" not in str(caught.value.message + caught.value.suggestion)

    asyncio.run(run())


def test_each_user_has_a_view_and_old_ones_go(
    engine: Engine, table: TableFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("skerry.spark.views.SEEN_VIEWS", 2)

    async def count(site: Site, user: str) -> int:
        out = await site.collect(
            "SELECT count(*) AS c FROM leaf", tables={"leaf": seen(table, Sight(where="r = session_user()"), user=user)}
        )
        return int(out.rows[0]["c"])

    async def run() -> None:
        async with Site(engine) as site:
            assert [await count(site, user) for user in ("north", "south", "o'hara", "north")] == [3, 1, 0, 3]
            views = views_of(engine)
            before = set(views.names())
            for number in range(5):
                with views.lease({"t": seen(table, Sight(where="r = session_user()"), user=f"user {number}")}):
                    pass
            assert len(set(views.names()) - before) == 2
            assert await count(site, "south") == 1

    asyncio.run(run())

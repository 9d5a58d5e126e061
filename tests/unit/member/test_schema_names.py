"""What a member reads of a catalog: names that rules and catalogs take for the same table, and no others."""

from __future__ import annotations

import asyncio
import math
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from skerry.config import parse
from skerry.member.keeping import Keeping
from skerry.member.lull import Lull
from skerry.member.resources import Workers
from skerry.member.running import Surroundings, snapshots
from skerry.member.sources import Sources
from skerry.member.tables import LocalTables, schema_version
from skerry.model.config import TableConfig
from skerry.model.errors import SiteError, UserError
from skerry.model.fragment import Output, SparkFragment, TableLeaf
from skerry.model.names import Moment, older_name
from skerry.model.rights import Pattern, Rights, Rule, Sight, everything
from skerry.model.sources import Pinned, Storage, Told
from skerry.plan.observed import Observed
from tests.unit.member.table_world import COLUMNS, Spark

CONFIG = """
cluster: c
members:
  oslo:
    address: h:1
    schemas: {sales: {namespace: shop}}
    databases: {shop: {jdbc: 'jdbc:postgresql://h/d'}}
    tables: {TABLES}
"""


class Metastore(Spark):
    """Takes `orders ` for `orders`, as Hive's does."""

    def look(self, table: TableConfig, at: Moment | None) -> Told:
        return Told(7, Pinned(table.source, table.format), columns=COLUMNS, rows=5)

    def tables_in(self, namespace: tuple[str, ...]) -> tuple[str, ...]:
        return ("orders", "Order Lines")


class Site:
    def __init__(self, folder: Path, tables: str = "") -> None:
        config, spark = parse(CONFIG.replace("TABLES", tables), base_dir=folder), Metastore()
        self.workers = Workers("test", 2)
        sources = Sources(str(folder), Storage(), spark, config.limits, self.workers, self.workers)
        keeping = Keeping(config, "oslo", Observed(10), self.workers, lambda work, what: None)
        self.tables = LocalTables(
            config,
            config.member("oslo"),
            spark,
            sources,
            self.workers,
            self.workers,
            Lull(),
            lambda work, what: None,
            lambda: None,
            keeping,
        )


WIDE = "".join(chr(ord(letter) + 0xFEE0) for letter in "orders")


@pytest.mark.parametrize("name", ["orders ", " orders", "orders\n", "orders\0", 'orders" --', "órders", WIDE, ""])
def test_a_name_that_a_catalog_may_take_for_another_is_no_table(name: str, tmp_path: Path) -> None:
    async def test() -> None:
        site = Site(tmp_path)
        for asked in (f"sales.{name}", older_name(f"sales.{name}", Moment("version", 3))):
            assert not site.tables.has(asked)
            assert await site.tables.named((asked,)) == ((), {})
            with pytest.raises(SiteError, match="no table"):
                site.tables.find(asked)
        await site.tables.offered()  # now it is known which there are
        assert not site.tables.has(f"sales.{name}")
        assert site.tables.find("SALES.order LINES").name == "sales.Order Lines"
        assert site.tables.find("sales.not_listed_yet").name == "sales.not_listed_yet"
        site.workers.stop()

    asyncio.run(test())


@pytest.mark.parametrize("table", ["sales.orders", older_name("sales.orders", Moment("version", 3))])
def test_a_mask_of_a_column_that_has_another_name_there_hides_nothing_so_nothing_is_read(
    table: str, tmp_path: Path
) -> None:
    def read(masked: str) -> Any:
        sight = Sight(masks={masked: "NULL"})
        rights = Rights("ann", ("seller",), rules=((Rule(Pattern(table="sales.orders"), sight),),))
        return asyncio.run(read_by(rights, Site(tmp_path), table))[0]

    assert read("s")["t"].seen is not None
    with pytest.raises(UserError, match=r"speaks of column mail, which the table does not have"):
        read("mail")


def test_an_estimate_of_a_database_bounds_no_rows(tmp_path: Path) -> None:
    """It may have been made when the table was empty; so many rows come through Spark's driver at once."""
    site = Site(tmp_path, "t: {database: shop, table: t}")
    assert asyncio.run(read_by(everything(), site, "t"))[1] == math.inf


async def read_by(rights: Rights, site: Site, table: str) -> Any:
    fragment = SparkFragment(1, "oslo", "SELECT * FROM t", (TableLeaf("t", table),), Output(1, ("oslo",)))
    around = cast(Surroundings, SimpleNamespace(identity=SimpleNamespace(member="oslo"), tables=site.tables))
    schemas = {f"oslo.{table}": schema_version(COLUMNS)}
    reading = site.tables.reading([table])
    try:
        with ExitStack() as opened:
            return await snapshots(fragment, schemas, rights, around, reading, cast(Any, None), opened)
    finally:
        site.workers.stop()

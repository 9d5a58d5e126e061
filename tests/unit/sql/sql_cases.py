"""What the tests of the SQL layer share: a catalog with the tables of a small shop, and one call to analyse."""

from __future__ import annotations

from typing import Any

from skerry.model.limits import Limits
from skerry.sql.statement import Query, Statement, analyse, render
from tests.unit.sql.sql_catalog import FakeCatalog

TABLES = {
    "orders": "o_id bigint, o_customer bigint, o_date date, o_price decimal(15,2), o_note string",
    "oslo.orders": "o_id bigint, o_customer bigint, o_date date, o_price decimal(15,2), o_note string",
    "bergen.orders": "o_id bigint, o_customer bigint, o_date date, o_price decimal(15,2), o_note string",
    "customer": "c_id bigint, c_name string, c_vip boolean, c_home struct<city:string>, c_tags array<string>",
    "item": "i_order bigint, i_part int, i_count int, i_customer bigint",
}
CATALOG = FakeCatalog(TABLES)


def statement(text: str, parameters: Any = None) -> Statement:
    return analyse(text, parameters, CATALOG, Limits())


def query(text: str, parameters: Any = None) -> Query:
    made = statement(text, parameters)
    assert isinstance(made, Query)
    return made


def rendered(text: str, parameters: Any = None) -> str:
    return render(query(text, parameters).tree)


def filters(text: str, parameters: Any = None) -> dict[str, list[str]]:
    """The pushed filters of each scan that has some, by the alias under which it stands."""
    found = query(text, parameters)
    aliases = {table.name: table.alias for table in found.tree.find_all(_table())}
    return {aliases[scan.node_name]: [render(each) for each in scan.filters] for scan in found.tables if scan.filters}


def columns(text: str) -> dict[str, list[str]]:
    found = query(text)
    aliases = {table.name: table.alias for table in found.tree.find_all(_table())}
    return {aliases[scan.node_name]: list(scan.columns) for scan in found.tables}


def _table() -> Any:
    from sqlglot import exp

    return exp.Table

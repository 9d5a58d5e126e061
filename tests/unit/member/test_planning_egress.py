"""A plan that keeps to the egress rules is looked for before a query is refused."""

from __future__ import annotations

import asyncio

import pytest

from skerry.catalog.table import Column, TablePart
from skerry.config import parse
from skerry.errors import UserError
from skerry.ids import QueryId
from skerry.member.planning import Explained, Planned, plan_statement
from skerry.member.server import Member
from skerry.wire.messages import ClientExecute

CONFIG = parse(
    """
cluster: c
members:
  oslo:
    address: 'h:1'
    tables: {small: {format: parquet, path: s, leaves: never, columns: {k: int, v: int}}}
  bergen:
    address: 'h:2'
    tables: {large: {format: parquet, path: l, columns: {k: int, w: int}}}
"""
)
JOIN = "SELECT s.v, l.w FROM small s JOIN large l ON s.k = l.k"


def planned(sql: str, at: str) -> object:
    async def run() -> object:
        member = Member(CONFIG, at, None)
        try:
            for name, rows in (("oslo", 10), ("bergen", 10_000_000)):
                (table,) = CONFIG.members[name].tables.values()
                columns = tuple(Column(each.name, each.type) for each in table.columns)
                member.catalog.learn(name, [TablePart(table.name, name, columns, rows, rows * 8, 1, 1)], {})
            return await plan_statement(member, ClientExecute(1, QueryId(at, "a"), sql, [], 0.0, 0, ""))
        finally:
            await member.stop()

    return asyncio.run(run())


def test_the_root_moves_to_the_initiator_when_its_table_may_not_leave() -> None:
    found = planned(JOIN, "oslo")
    assert isinstance(found, Planned)
    assert [(each.member, each.output.receiver) for each in found.plan.fragments] == [
        ("bergen", "oslo"),
        ("oslo", "oslo"),
    ]


def test_elsewhere_the_query_is_refused_and_explained() -> None:
    with pytest.raises(UserError, match="rows of small from oslo to bergen"):
        planned(JOIN, "bergen")
    explained = planned(f"EXPLAIN {JOIN}", "bergen")
    assert isinstance(explained, Explained)
    assert explained.refused.startswith("the query would send rows of small")
    with pytest.raises(UserError, match="rows of small"):
        planned(f"EXPLAIN ANALYZE {JOIN}", "bergen")
    with pytest.raises(UserError, match="rows of small"):
        planned("ANALYZE TABLE small", "bergen")

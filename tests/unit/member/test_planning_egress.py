"""A plan that keeps to the egress rules is looked for before a query is refused."""

from __future__ import annotations

import asyncio

import pytest

from skerry.config import Config, parse
from skerry.member.planning import Explained, Planned, plan_statement
from skerry.member.requests import RunStatement
from skerry.member.server import Member
from skerry.model.errors import UserError
from skerry.model.ids import QueryId
from skerry.model.table import Column, TablePart

TEXT = """
cluster: c
members:
  oslo:
    address: 'h:1'
    tables: {small: {format: parquet, path: s, leaves: never, columns: {k: int, v: int}}}
  bergen:
    address: 'h:2'
    tables: {large: {format: parquet, path: l, columns: {k: int, w: int}}}
"""
CONFIG = parse(TEXT)
JOIN = "SELECT s.v, l.w FROM small s JOIN large l ON s.k = l.k"


def planned(sql: str, at: str, config: Config = CONFIG, small_rows: int = 10) -> object:
    async def run() -> object:
        member = Member(config, at, None)
        try:
            for name, rows in (("oslo", small_rows), ("bergen", 10_000_000)):
                (table,) = CONFIG.members[name].tables.values()
                columns = tuple(Column(each.name, each.type) for each in table.columns)
                member.catalog.learn(name, [TablePart(table.name, name, columns, rows, rows * 8, 1, 1)], {})
            return await plan_statement(member.planner, RunStatement(QueryId(at, "a"), sql))
        finally:
            await member.stop()

    return asyncio.run(run())


def test_the_root_moves_to_the_initiator_when_its_table_may_not_leave() -> None:
    found = planned(JOIN, "oslo")
    assert isinstance(found, Planned)
    assert [(each.member, each.output.receivers) for each in found.plan.fragments] == [
        ("bergen", ("oslo",)),
        ("oslo", ("oslo",)),
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


def test_another_plan_that_no_link_allows_is_not_what_refuses() -> None:
    one_way = parse(f"{TEXT}links: [{{from: oslo, to: bergen, mbit: 10}}]")
    with pytest.raises(UserError, match="rows of small from oslo to bergen"):
        planned(JOIN, "bergen", one_way)


GROUPS = "SELECT s.v AS v, sum(l.w) AS w FROM small s JOIN large l ON s.k = l.k GROUP BY s.v"


@pytest.mark.parametrize(("leaves", "is_grouped"), [("freely", True), ("filtered", False), ("aggregated", False)])
def test_groups_that_nobody_asked_for_let_no_rows_out(leaves: str, is_grouped: bool) -> None:
    """They may be one row each; a table of the query that is free does not change that."""
    config = parse(
        TEXT.replace("leaves: never, ", "").replace("path: l,", f"path: l, leaves: {leaves},")
        + "links: [{between: [oslo, bergen], mbit: 0.01}]"
    )
    explained = planned(f"EXPLAIN {GROUPS}", "oslo", config, 5_000_000)
    assert isinstance(explained, Explained)
    assert any("are grouped there" in each.reason for each in explained.plan.fragments) is is_grouped


GUARDED = parse(
    """
cluster: c
members:
  oslo:
    address: 'h:1'
    tables:
      visits: &visits {format: parquet, path: v, leaves: aggregated, columns: {k: int, v: int}}
      open: {format: parquet, path: o, columns: {k: int, w: int}}
  bergen:
    address: 'h:2'
    tables:
      visits: *visits
      wide: {format: parquet, path: w, columns: {k: int, note: string}}
  tromso: {address: 'h:3'}
links:
- {between: [oslo, bergen], mbit: 100, query_bytes: 10 KiB}
- {between: [oslo, tromso], mbit: 100}
- {between: [bergen, tromso], mbit: 100}
"""
)
JOINED = parse(
    """
cluster: c
members:
  oslo:
    address: 'h:1'
    tables:
      orders: {format: parquet, path: o, leaves: filtered, columns: {o_id: int, o_cust: int, o_total: int}}
      items: {format: parquet, path: i, columns: {i_order: int, i_note: string}}
      visits: &visits {format: parquet, path: v, leaves: aggregated, columns: {k: int, v: int}}
  bergen:
    address: 'h:2'
    tables:
      visits: *visits
      customer: {format: parquet, path: c, columns: {c_id: int, c_name: string}}
"""
)
ROWS = {("oslo", "visits"): 1000, ("bergen", "visits"): 2, ("oslo", "open"): 2000, ("bergen", "wide"): 5000}
ROWS |= {("oslo", "orders"): 100_000, ("oslo", "items"): 200_000, ("bergen", "customer"): 1_000_000}


def guarded(sql: str, at: str, config: Config = GUARDED) -> Planned | Explained:
    async def run() -> object:
        member = Member(config, at, None)
        try:
            for name, each in config.members.items():
                parts = [
                    TablePart(table.name, name, table.columns, rows, rows * 8, 1, 1)
                    for table in each.tables.values()
                    for rows in [ROWS[name, table.name]]
                ]
                member.catalog.learn(name, parts, {})
            return await plan_statement(member.planner, RunStatement(QueryId(at, "a"), sql))
        finally:
            await member.stop()

    found = asyncio.run(run())
    assert isinstance(found, Planned | Explained)
    return found


def test_groups_leave_where_rows_may_not_whatever_that_costs() -> None:
    """Groups of two rows are more bytes than the rows: by cost, the rows would be sent as they are."""
    sql = "SELECT k, count(*) + 1 AS n, sum(v) AS s, max(v) AS m, min(v) AS l FROM visits GROUP BY k"
    plan = guarded(sql, "tromso").plan
    leaving = [each for each in plan.fragments if each.output.receivers != (each.member,)]
    assert {each.member for each in leaving} == {"oslo", "bergen"}
    assert all("GROUP BY" in each.sql for each in leaving), plan.fragments


def test_the_root_is_where_rows_have_to_stay() -> None:
    """By cost the two rows would travel; the larger table comes to them, and what leaves is groups."""
    join = "FROM bergen.visits AS a JOIN oslo.open AS o ON a.k = o.k WHERE o.w < 3"
    with pytest.raises(UserError, match="leaves: aggregated"):
        guarded(f"SELECT a.v {join}", "tromso")
    plan = guarded(f"SELECT o.w, sum(v) AS s {join} GROUP BY o.w", "tromso").plan
    assert [(each.member, each.output.receivers) for each in plan.fragments] == [
        ("oslo", ("bergen",)),
        ("bergen", ("tromso",)),
    ]
    assert plan.fragments[-1].reason == "rows of bergen may not leave it"


def test_joins_of_one_site_are_given_up_where_their_rows_may_not_leave() -> None:
    """Joined, orders has no condition that is certainly its own; by itself it has, and the groups come as well."""
    sql = (
        "SELECT o_cust, c_name, n FROM orders LEFT SEMI JOIN items ON i_order = o_id AND i_note = 'a' "
        "JOIN customer ON c_id = o_cust JOIN (SELECT k, count(*) AS n FROM visits GROUP BY k) AS g ON g.k = c_id "
        "WHERE o_total < 5"
    )
    plan = guarded(sql, "bergen", JOINED).plan
    leaving = [each.sql for each in plan.fragments if each.output.receivers != (each.member,)]
    assert any(each.endswith(" AS orders WHERE o_total < 5") for each in leaving), leaving
    assert any("count(*)" in each for each in leaving), leaving


def test_a_budget_counts_the_result_of_a_query_at_one_site() -> None:
    with pytest.raises(UserError, match=r"about \d+ bytes over the link from bergen to oslo.*most of them on edge 1"):
        guarded("SELECT * FROM wide", "oslo")
    assert guarded("SELECT * FROM wide LIMIT 5", "oslo").plan.fragments[0].estimated_rows == 5
    assert guarded("SELECT count(*) AS n FROM wide", "oslo").plan.fragments[0].estimated_rows == 1
    assert guarded("SELECT * FROM wide", "tromso").plan.fragments[0].estimated_bytes == 5000 * 28
    refused = guarded("EXPLAIN SELECT * FROM wide", "oslo")
    assert isinstance(refused, Explained)
    assert "query_bytes is 10240" in refused.refused


def test_columns_need_not_name_their_table_to_be_a_condition_on_it() -> None:
    """The join leaves as it is; without a condition both tables would have to."""
    plan = guarded(
        "SELECT o_id, i_note FROM orders JOIN items ON o_id = i_order WHERE o_total > 3", "bergen", JOINED
    ).plan
    assert [(each.member, each.output.receivers) for each in plan.fragments] == [("oslo", ("bergen",))]
    assert "o_total" in plan.fragments[0].sql
    with pytest.raises(UserError, match="rows of orders without a condition on it"):
        guarded("SELECT o_id, i_note FROM orders JOIN items ON o_id = i_order WHERE i_note > 'a'", "bergen", JOINED)

"""From a client's statement to a plan, in a member without a Spark."""

from __future__ import annotations

import asyncio

import pytest

from skerry.config import Config, parse
from skerry.member.planning import Explained, Tried, plan_statement
from skerry.member.requests import RunStatement
from skerry.member.server import Member
from skerry.model.errors import SqlError
from skerry.model.ids import QueryId
from skerry.model.table import Column, TablePart

CONFIG = parse("cluster: c\nmembers: {oslo: {address: 'h:1'}}")


def planned(sql: str, config: Config = CONFIG, *parts: TablePart) -> object:
    async def run() -> object:
        member = Member(config, "oslo", None)
        member.catalog.learn("oslo", parts, {})
        try:
            return await plan_statement(member.planner, RunStatement(QueryId("oslo", "a"), sql))
        finally:
            await member.stop()

    return asyncio.run(run())


def test_explain() -> None:
    assert isinstance(planned("EXPLAIN SELECT 1"), Explained)


def test_explain_analyze_is_a_query_to_be_run() -> None:
    tried = planned("EXPLAIN ANALYZE FORMAT JSON SELECT 1")
    assert isinstance(tried, Tried)
    assert tried.is_json
    assert len(tried.planned.plan.fragments) == 1


def one_table() -> tuple[Config, TablePart]:
    table = "t: {format: parquet, path: t, columns: {id: bigint}}"
    config = parse(f"cluster: c\nmembers: {{oslo: {{address: 'h:1', tables: {{{table}}}}}}}")
    return config, TablePart("t", "oslo", (Column("id", "bigint"),), 1000, 8000, 1, 1)


@pytest.mark.parametrize("operator", ["OR", "AND"])
def test_a_long_row_of_conditions(operator: str) -> None:
    conditions = f" {operator} ".join(f"id <> {n}" for n in range(2000))
    assert planned(f"SELECT count(*) FROM t WHERE {conditions}", *one_table())


def test_a_row_of_unions_that_is_too_long_is_the_statements_fault() -> None:
    with pytest.raises(SqlError, match="too many UNIONs in a row"):
        planned(" UNION ALL ".join(["SELECT id FROM t"] * 1000), *one_table())

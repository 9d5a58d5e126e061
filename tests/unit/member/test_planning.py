"""From a client's statement to a plan, in a member without a Spark."""

from __future__ import annotations

import asyncio

from skerry.config import parse
from skerry.ids import QueryId
from skerry.member.planning import Explained, Tried, plan_statement
from skerry.member.server import Member
from skerry.wire.client_messages import ClientExecute

CONFIG = parse("cluster: c\nmembers: {oslo: {address: 'h:1'}}")


def planned(sql: str) -> object:
    async def run() -> object:
        member = Member(CONFIG, "oslo", None)
        try:
            return await plan_statement(member, ClientExecute(1, QueryId("oslo", "a"), sql, [], 0.0, 0, ""))
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

"""From a client's statement to a plan, in a member without a Spark."""

from __future__ import annotations

import asyncio

import pytest

from skerry.config import parse
from skerry.errors import SqlError
from skerry.ids import QueryId
from skerry.member.planning import Explained, plan_statement
from skerry.member.server import Member
from skerry.wire.messages import ClientExecute

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


def test_explain_analyze_does_not_pretend_to_have_run() -> None:
    with pytest.raises(SqlError, match="EXPLAIN ANALYZE is not admitted yet"):
        planned("EXPLAIN ANALYZE SELECT 1")

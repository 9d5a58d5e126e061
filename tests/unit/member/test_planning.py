"""From a client's statement to a plan, in a member without a Spark."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Coroutine
from typing import Any

import msgspec
import pytest

from skerry.config import Config, parse
from skerry.member.planning import Explained, Planned, Tried, Understood, plan_statement
from skerry.member.requests import RunStatement
from skerry.member.server import Member
from skerry.model.errors import PeerError, SiteError, SqlError, UserError
from skerry.model.ids import QueryId
from skerry.model.results import Value
from skerry.model.rights import everything
from skerry.model.table import Column, TablePart
from skerry.model.variables import Variable
from skerry.plan.observed import Size

NUMBERS = itertools.count()
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


class Asked:
    """A member that is asked again and again, and told of changes between."""

    def __init__(self, member: Member, part: TablePart) -> None:
        self.member = member
        self.part = part

    async def plan(self, sql: str = "SELECT id FROM t WHERE id > ?", value: int = 1, **more: Any) -> Understood:
        statement = RunStatement(
            QueryId("oslo", str(next(NUMBERS))), sql, [Value("int", value)] if "?" in sql else [], **more
        )
        return await plan_statement(self.member.planner, statement)


def while_asked(story: Callable[[Asked], Coroutine[Any, Any, None]]) -> None:
    config, part = one_table()

    async def run() -> None:
        member = Member(config, "oslo", None)
        member.catalog.learn("oslo", [part], {})
        try:
            await story(Asked(member, part))
        finally:
            await member.stop()

    asyncio.run(run())


def test_the_same_statement_keeps_its_plan() -> None:
    async def story(asked: Asked) -> None:
        first = await asked.plan()
        assert await asked.plan(share="another user's") is first
        others = [await asked.plan(value=2), await asked.plan(schema_name="oslo"), await asked.plan(timeout_s=1)]
        others += [await asked.plan(options={"rules": "none"}), await asked.plan(rights=everything("ann"))]
        assert all(other is not first for other in others)
        assert await asked.plan() is first

    while_asked(story)


def test_what_a_plan_is_made_of_has_changed() -> None:
    async def story(asked: Asked) -> None:
        first = await asked.plan()
        asked.member.observed.restore([("some rows", Size(1, 1))])
        second = await asked.plan()
        assert second is not first
        columns = (*asked.part.columns, Column("name", "string"))
        asked.member.catalog.learn("oslo", [msgspec.structs.replace(asked.part, columns=columns, schema_version=2)], {})
        third = await asked.plan()
        assert isinstance(third, Planned)
        assert third.plan.schema_info == {"oslo.t": 2}
        asked.member.catalog.lose("oslo", "it is down")
        with pytest.raises(SiteError):
            await asked.plan()

    while_asked(story)


def test_now_is_the_time_of_each_query() -> None:
    async def story(asked: Asked) -> None:
        assert await asked.plan("SELECT now() FROM t") is not await asked.plan("SELECT now() FROM t")

    while_asked(story)


@pytest.mark.parametrize(
    ("more", "user", "schema"),
    [
        ({}, "", "default"),
        ({"rights": everything("ann"), "schema_name": "OSLO"}, "ann", "oslo"),
        ({"rights": everything("bob"), "schema_name": "default"}, "bob", "default"),
    ],
)
def test_who_asks_is_of_each_query(more: dict[str, Any], user: str, schema: str) -> None:
    sql = "SELECT current_user, current_schema(), current_path() FROM t"

    async def story(asked: Asked) -> None:
        first, again = await asked.plan(sql, **more), await asked.plan(sql, **more)
        assert first is not again
        assert isinstance(again, Planned)
        assert {name: value.value for name, value in again.parameters.items()} == {
            "skerry_caller": user,
            "skerry_schema": schema,
            "skerry_path": f"system.builtin,system.session,spark_catalog.{schema}",
        }

    while_asked(story)


def test_sessions_share_no_value_of_a_variable() -> None:
    sql = "SELECT id FROM t WHERE id > x"
    kinds = {"one": ("int", 1), "two": ("int", 2), "text": ("string", "1")}
    sessions = {name: {"x": Variable(kind, Value(kind, value))} for name, (kind, value) in kinds.items()}

    async def story(asked: Asked) -> None:
        plans: dict[str, Planned] = {}
        for name, variables in [*sessions.items(), *sessions.items()]:
            found = await asked.plan(sql, variables=variables)
            assert isinstance(found, Planned)
            assert plans.setdefault(name, found) is found
        bound = {name: list(each.parameters.values()) for name, each in plans.items()}
        assert bound == {name: [each["x"].value] for name, each in sessions.items()}
        # The text of a plan holds the type, and no value.
        assert plans["one"].plan.plan_id == plans["two"].plan.plan_id != plans["text"].plan.plan_id

    while_asked(story)


def test_what_a_client_says_of_its_variables_is_checked() -> None:
    async def story(asked: Asked) -> None:
        for variable in (Variable("int", Value("int", "1")), Variable("int", Value("map<int,int>", {1: 1}))):
            with pytest.raises(PeerError):
                await asked.plan("SELECT 1", variables={"x": variable})
        with pytest.raises(UserError, match="is not kept in a variable"):
            await asked.plan("SELECT 1", variables={"x": Variable("variant", Value("void"))})

    while_asked(story)

"""What a filter or mask hides is not told by plans: EXPLAIN is the same whatever the hidden rows are."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from skerry.config import Config, parse
from skerry.member.answers import answer_statement
from skerry.member.planning import Planned, Planner, Tried, plan_statement
from skerry.member.requests import RunStatement
from skerry.member.server import Member
from skerry.model.config import AccessConfig, ViewConfig
from skerry.model.errors import SqlError, UserError
from skerry.model.ids import QueryId
from skerry.model.rights import Rights
from skerry.model.table import Column, ColumnStats, PartStats, TablePart
from skerry.plan.observed import Observed, Size
from skerry.wire.codec import decode_batch, decode_schema

RULES = """
roles:
  analyst:
    - {on: orders, select: true, where: "total > 0"}
    - {on: customers, select: true, masks: {name: "''"}}
    - {on: regions, select: [id, name]}
  steward: [{on: "*", select: true}]
users: {ann: [analyst], sue: [steward]}
"""
TEXT = """
cluster: c
members:
  oslo:
    address: 'h:1'
    tables:
      orders: {format: parquet, path: o, columns: {id: int, customer: int, total: int}}
      regions: {format: parquet, path: r, columns: {id: int, name: string, secret: int}}
  bergen:
    address: 'h:2'
    tables:
      orders: {format: parquet, path: o, columns: {id: int, customer: int, total: int}}
      customers: {format: parquet, path: c, columns: {id: int, name: string, region: int}}
links: [{between: [oslo, bergen], mbit: 1}]
"""
QUERIES = [
    "SELECT * FROM orders",
    "SELECT id FROM orders WHERE total < -5",
    "SELECT customer, sum(total) FROM orders GROUP BY customer",
    "SELECT c.name, o.id FROM orders o JOIN customers c ON o.customer = c.id WHERE c.id > 5",
    "SELECT r.name, count(*) FROM orders o JOIN customers c ON o.customer = c.id JOIN regions r ON r.id = c.region "
    "GROUP BY r.name ORDER BY 2 DESC LIMIT 3",
    "SELECT name FROM customers WHERE id IN (SELECT customer FROM orders WHERE total > 7)",
    "SELECT max(total), count(DISTINCT customer) FROM orders",
]


@pytest.fixture
def config(tmp_path: Path) -> Config:
    (tmp_path / "rules.yaml").write_text(RULES)
    return msgspec.structs.replace(parse(TEXT), access=AccessConfig(rules=str(tmp_path / "rules.yaml")))


def learn(member: Member, hidden: int) -> None:
    """`hidden`: how much of everything a filter or mask hides, and so how the files are."""
    for name, config in member.config.members.items():
        parts = []
        for table in config.tables.values():
            is_plain = table.name == "regions"
            rows = 100 if is_plain else 1000 * hidden
            stats = [
                ColumnStats(each.name, -hidden, hidden, hidden, float(rows), 4.0, True)
                for each in table.columns
                if not (is_plain and each.name != "secret")
            ]
            columns = tuple(Column(each.name, each.type) for each in table.columns)
            version = 7 if is_plain else hidden
            size = 4000 if is_plain else 12_000 * hidden
            parts.append(TablePart(table.name, name, columns, rows, size, 1, version, PartStats(tuple(stats))))
        member.catalog.learn(name, parts, {})


def asked(config: Config, user: str, statements: Sequence[str], hidden: int, seen: Observed | None = None) -> list[Any]:
    """The answers to what a member answers by itself, else plans. `seen`: what queries of others were seen to give."""

    async def run() -> list[Any]:
        member = Member(config, "oslo", None)
        try:
            learn(member, hidden)
            planner = member.planner
            if seen is not None:
                planner = msgspec.structs.replace(planner, site=msgspec.structs.replace(planner.site, observed=seen))
            rights = member.rulebook.rights_of(user)
            return [await answered(planner, rights, sql) for sql in statements]
        finally:
            await member.stop()

    return asyncio.run(run())


async def answered(planner: Planner, rights: Rights, sql: str) -> Any:
    found = await plan_statement(planner, RunStatement(QueryId("oslo", "a"), sql, rights=rights))
    if isinstance(found, Planned | Tried):
        return found
    answer = answer_statement(planner.seen_by(rights), found)
    schema = decode_schema(answer.schema.arrow)
    return [decode_batch(body, schema, 1 << 20).to_pydict() for body in answer.page.batches]


EXPLAINED = [f"EXPLAIN {sql}" for sql in QUERIES]


@pytest.mark.slow
def test_explain_is_the_same_whatever_is_hidden(config: Config) -> None:
    texts = [asked(config, "ann", EXPLAINED, hidden) for hidden in (1, 40, 90_000)]
    assert texts[0] == texts[1] == texts[2]
    assert "left out" not in str(texts)
    # Whoever may see all has plans that go by all of it.
    few, many = (asked(config, "sue", EXPLAINED[2:4], hidden) for hidden in (1, 90_000))
    assert all(one != other for one, other in zip(few, many, strict=True))


def test_what_others_were_seen_to_get_is_not_told(config: Config) -> None:
    seen = Observed(1000)
    before = asked(config, "ann", EXPLAINED, 40, seen)
    for plan in asked(config, "sue", QUERIES, 40):
        assert not plan.is_veiled
        sizes = {each.id: Size(3, 99) for each in plan.plan.fragments}
        seen.learn(plan.plan, sizes, lambda _member, table: {"regions": 7}.get(table, 40))
    assert len(seen) > len(QUERIES)
    assert asked(config, "ann", EXPLAINED, 40, seen) == before


def test_what_was_seen_behind_a_filter_is_not_remembered(config: Config) -> None:
    """The run has the plan without its facts (`member/runs.py`)."""
    seen = Observed(1000)
    for plan in asked(config, "ann", QUERIES, 40):
        assert plan.is_veiled
        seen.learn(plan.plan.to_run(), {each.id: Size(3, 99) for each in plan.plan.fragments}, lambda *_: 40)
    assert len(seen) == 0
    (tried,) = asked(config, "ann", [f"EXPLAIN ANALYZE {QUERIES[0]}"], 40)
    assert tried.planned.is_veiled


def test_nor_do_commands_tell_it(config: Config) -> None:
    commands = ["SHOW TABLES", "DESCRIBE EXTENDED orders", "DESCRIBE EXTENDED customers", "SHOW COLUMNS IN regions"]
    assert asked(config, "ann", commands, 1) == asked(config, "ann", commands, 90_000)


def test_analyze_needs_the_whole_table(config: Config) -> None:
    for table in ("orders", "customers", "regions", "oslo.orders"):
        with pytest.raises(UserError, match="needs the right to read all of"):
            asked(config, "ann", [f"ANALYZE TABLE {table}"], 1)
    assert len(asked(config, "sue", ["ANALYZE TABLE orders", "ANALYZE TABLE customers"], 1)) == 2


def test_an_unknown_name_is_answered_in_the_same_words_as_a_hidden_one(config: Config) -> None:
    said = []
    for table in ("orders", "ordres"):
        with pytest.raises(SqlError) as caught:
            asked(config, "nobody", [f"SELECT 1 FROM {table}"], 1)
        said.append(caught.value.message.replace(table, "…"))
    assert said[0] == said[1]


def test_a_view_tells_nobody_of_what_is_hidden(config: Config) -> None:
    texts = {"late": "SELECT c.id FROM bergen.customers c WHERE c.region > 123", "later": "SELECT * FROM late"}
    config = msgspec.structs.replace(config, views={name: ViewConfig("", name, sql) for name, sql in texts.items()})
    for view in texts:
        with pytest.raises(SqlError) as caught:
            asked(config, "nobody", [f"SELECT * FROM {view}"], 1)
        assert caught.value.message == "view late is not to be read with your rights, or is wrong"
    with pytest.raises(SqlError) as caught:
        asked(config, "nobody", ["SELECT * FROM lat"], 1)
    assert "late" not in f"{caught.value}{caught.value.suggestion}"
    assert len(asked(config, "sue", ["SELECT * FROM later"], 1)) == 1

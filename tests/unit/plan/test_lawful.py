"""Plans under egress rules: how many are made before a query is answered or refused, and who knows of rules."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

import pytest

import skerry.member
from skerry.catalog.topology import Topology
from skerry.model.config import Leaves
from skerry.model.fragment import Plan
from skerry.model.limits import Limits
from skerry.plan import lawful
from skerry.plan.cut import Parts, Site, make_plan
from skerry.plan.egress import EgressRules
from skerry.plan.lawful import plan_query
from skerry.plan.rules import NAMES, RULES, GivenUp, Rules
from skerry.sql.statement import Query
from tests.plans.plan_cases import CATALOG, CONFIG, LIMITS, bound, site

JOIN = "SELECT o_id, c_name FROM orders JOIN customer ON o_cust = c_id"


@pytest.fixture
def tried(monkeypatch: pytest.MonkeyPatch) -> list[Rules]:
    """The rules of each plan that is made."""
    found: list[Rules] = []

    def counted(query: Query, catalog: Parts, site: Site, limits: Limits) -> Plan:
        found.append(site.rules)
        return make_plan(query, catalog, site, limits)

    monkeypatch.setattr(lawful, "make_plan", counted)
    return found


def planned(sql: str, at: str = "oslo", rules: Rules | None = None, **marks: str) -> lawful.Checked:
    names = {tuple(name.split("_")): Leaves(mark) for name, mark in marks.items()}
    egress = EgressRules({(member, table): mark for (member, table), mark in names.items()}, Topology(CONFIG))
    return plan_query(bound(sql), CATALOG, site(at, rules or Rules(), egress=egress), LIMITS)


def test_a_plan_that_breaks_no_rule_is_the_only_one(tried: list[Rules]) -> None:
    assert planned(JOIN).refused is None
    assert planned("SELECT count(*) AS n FROM customer", bergen_customer="aggregated").refused is None
    assert len(tried) == 2


def test_a_table_that_never_leaves_is_refused_by_one_plan(tried: list[Rules]) -> None:
    found = planned(JOIN, bergen_customer="never")
    assert found.refused is not None
    assert "rows of customer from bergen" in found.refused.message
    assert len(tried) == 1
    # At its own member it is read.
    assert planned(JOIN, "bergen", bergen_customer="never").refused is None
    # Of several parts one may be left out, so that others are tried.
    tried.clear()
    assert planned("SELECT id FROM events", bergen_events="never").refused is not None
    assert len(tried) > 1


def test_no_plan_is_made_twice(tried: list[Rules]) -> None:
    assert planned(JOIN, bergen_customer="aggregated").refused is not None
    assert max(Counter(tried).values()) == 1
    everything = len(tried)
    tried.clear()
    assert planned(JOIN, rules=Rules(frozenset()), bergen_customer="aggregated").refused is not None
    assert max(Counter(tried).values()) == 1
    assert len(tried) < everything


@pytest.mark.parametrize(
    ("condition", "groups"),
    [
        ("EXISTS (SELECT 1 FROM events WHERE id = o_cust)", ["id"]),
        ("NOT EXISTS (SELECT * FROM events WHERE id = o_cust AND kind = 'x' AND ts > o_date)", ["id", "ts"]),
        ("EXISTS (SELECT * FROM events WHERE kind = 'x')", []),
        ("o_cust IN (SELECT id FROM events)", ["id"]),
        ("(o_cust, o_note) NOT IN (SELECT id, kind FROM events)", ["id", "kind"]),
    ],
)
def test_a_table_with_parts_that_is_only_tested_leaves_as_groups(condition: str, groups: list[str]) -> None:
    marks = {f"{member}_events": "aggregated" for member in ("oslo", "bergen", "tromso")}
    found = planned(f"SELECT o_id FROM orders WHERE {condition}", **marks)
    assert found.refused is None
    for fragment in found.plan.jobs:
        if fragment.member != "oslo":
            assert "count(*) AS part_" in fragment.sql
            assert fragment.sql.count(" AS part_") == len(groups) + 1
            assert all(f"{name}` AS part_" in fragment.sql or f"{name} AS part_" in fragment.sql for name in groups)


def test_what_is_more_than_a_test_or_inexact_stays_refused() -> None:
    marks = {f"{member}_events": "aggregated" for member in ("oslo", "bergen", "tromso")}
    for condition in (
        "EXISTS (SELECT 1 FROM events WHERE amount = o_cust)",  # 0.0 and -0.0 are one group
        "o_cust IN (SELECT id FROM events ORDER BY ts LIMIT 3)",
        "EXISTS (SELECT 1 FROM events WHERE tags = array(o_cust))",
    ):
        assert planned(f"SELECT o_id FROM orders WHERE {condition}", **marks).refused is not None, condition


def test_groups_that_nobody_asked_for_are_given_up_at_once(tried: list[Rules]) -> None:
    planned(JOIN, bergen_customer="filtered")
    assert not any(rules.has("grouped") for rules in tried)
    tried.clear()
    planned(JOIN, oslo_events="filtered")
    assert all(rules.has("grouped") for rules in tried)


def test_parts_are_read_where_pruning_is_off(tried: list[Rules]) -> None:
    sql = "SELECT id FROM logs WHERE id > 8"
    query, where = bound(sql), site("oslo", Rules())
    assert plan_query(query, CATALOG, where, LIMITS).plan.left_out
    assert not plan_query(query, CATALOG, where, LIMITS, prunes=False).plan.left_out


def test_every_rule_says_when_it_is_given_up() -> None:
    assert {rule.name for rule in RULES} == set(NAMES)
    assert Rules().without(*GivenUp).on == frozenset()
    assert not Rules().without(GivenUp.FIRST).has("apart")


def test_members_know_no_rule_s_name_and_nothing_of_egress() -> None:
    for path in Path(skerry.member.__path__[0]).glob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert "egress" not in text.lower(), path
        tree = ast.parse(text)
        said = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
        assert said.isdisjoint(NAMES), path

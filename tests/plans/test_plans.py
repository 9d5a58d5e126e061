"""Plans as text, for a small cluster: what is cut where. SKERRY_UPDATE_PLANS=1 writes them down as they are now."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from sqlglot import exp

from skerry.model.fragment import EdgeLeaf, Plan, SparkFragment, TableLeaf
from skerry.model.table import Column
from skerry.plan.cache import fingerprint
from skerry.sql.dialect import render
from skerry.sql.lexer import tokens_of
from skerry.sql.parse import parse_query
from tests.plans.plan_cases import CATALOG, CONFIG, FOLDER, UPDATES, VERSIONS, Case, all_cases, read_cases, rewrite

if UPDATES:
    rewrite()
CASES = all_cases()
_HINT = re.compile(r"/\*\+ .*? \*/ ")


def parsed(sql: str) -> exp.Expr:
    """The tree of a fragment, read by our own grammar, which knows no hints."""
    plain = _HINT.sub("", sql)
    tree = parse_query(tokens_of(plain, 1000), plain)
    assert render(tree) == plain
    return tree


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.file.stem}: {case.title}")
def test_plan(case: Case) -> None:
    """One test of all that a plan must be: with one for each, starting tests took longer than planning."""
    assert case.explained() == case.expected
    fragments_are_sql_that_reads_its_leaves_and_nothing_else(case.plan)
    every_receiver_of_an_edge_has_its_senders(case.plan, case.at)
    nothing_is_done_twice_for_two_receivers(case.plan)
    no_member_is_sent_the_same_twice(case.plan)
    tables_are_read_where_they_are_under_their_own_names(case.plan)
    bounds_are_applied_once_and_orders_are_kept(case.plan)
    assert case.plan == case.planned_again()
    assert case.plan.plan_id == fingerprint(case.plan)


def fragments_are_sql_that_reads_its_leaves_and_nothing_else(plan: Plan) -> None:
    for fragment in plan.fragments:
        tree = parsed(fragment.sql)
        defined = {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
        named = {table.name for table in tree.find_all(exp.Table) if isinstance(table.this, exp.Identifier)}
        placeholders = {leaf.placeholder for leaf in fragment.leaves}
        assert len(placeholders) == len(fragment.leaves)
        assert placeholders <= named
        assert {name for name in named - placeholders if name.lower() not in defined} == set()
        # Replaced as text later: a placeholder stands for a table wherever it stands.
        for placeholder in placeholders:
            tables = [table for table in tree.find_all(exp.Table) if table.name == placeholder]
            assert len(re.findall(rf"\b{placeholder}\b", fragment.sql)) == len(tables)


def every_receiver_of_an_edge_has_its_senders(plan: Plan, at: str) -> None:
    """Several fragments of a receiver may read it, after it has been made and as it is."""
    readers: dict[tuple[int, str], tuple[str, ...]] = {(plan.rows.edge, at): plan.rows.senders}
    columns: dict[int, tuple[Column, ...]] = {}
    made: set[tuple[int, str]] = set()
    for fragment in plan.fragments:
        for leaf in fragment.leaves:
            if isinstance(leaf, EdgeLeaf):
                assert (leaf.edge, fragment.member) in made
                assert leaf.edge != plan.rows.edge
                assert readers.setdefault((leaf.edge, fragment.member), leaf.senders) == leaf.senders
                assert columns.setdefault(leaf.edge, leaf.columns) == leaf.columns
        made |= {(fragment.output.edge, receiver) for receiver in fragment.output.receivers}
    feeding = plan.feeding()
    assert feeding.keys() == readers.keys()
    for edge, senders in readers.items():
        assert sorted(fragment.member for fragment in feeding[edge]) == sorted(senders)
    assert [fragment.id for fragment in plan.fragments] == [*range(1, len(plan.fragments) + 1)]
    assert {edge for edge, _ in feeding} == {*range(1, len({edge for edge, _ in feeding}) + 1)}


def nothing_is_done_twice_for_two_receivers(plan: Plan) -> None:
    """But for queries that may give other rows each time, and for edges that have to stay apart at a receiver."""
    done: dict[str, SparkFragment] = {}
    receivers: dict[int, set[str]] = {}
    for edge, receiver in plan.feeding():
        receivers.setdefault(edge, set()).add(receiver)
    for fragment in plan.jobs:
        same = done.setdefault(f"{fragment.member}: {_text(fragment)}", fragment)
        if same is not fragment and "LIMIT" not in fragment.sql and not plan.is_result(fragment.output):
            assert receivers[same.output.edge] & receivers[fragment.output.edge], (same, fragment)


def _text(fragment: SparkFragment) -> str:
    text = re.sub(r"\bkey_\d+", "key", fragment.sql)
    for leaf in fragment.leaves:
        read = f"edge {leaf.edge}" if isinstance(leaf, EdgeLeaf) else f"table {leaf.table}"
        text = text.replace(leaf.placeholder, read)
    return text


def no_member_is_sent_the_same_twice(plan: Plan) -> None:
    """But for queries that may give other rows each time. A table and one of its parts are not the same."""
    sent: dict[int, list[str]] = {}
    for fragment in plan.jobs:
        for receiver in fragment.output.receivers:
            if receiver != fragment.member:
                way = f"{fragment.member} to {receiver}: {_text(fragment)}"
                sent.setdefault(fragment.output.edge, []).append(way)
    counts = Counter("; ".join(sorted(ways)) for ways in sent.values())
    assert all(count == 1 or "LIMIT" in each for each, count in counts.items()), counts


def tables_are_read_where_they_are_under_their_own_names(plan: Plan) -> None:
    for fragment in plan.fragments:
        for leaf in fragment.leaves:
            if isinstance(leaf, TableLeaf):
                version = VERSIONS[fragment.member, leaf.table]
                assert plan.schema_info[f"{fragment.member}.{leaf.table}"] == version
    assert CONFIG.members.keys() >= {fragment.member for fragment in plan.fragments}


def sorts_alike(plan: Plan, fragment: SparkFragment) -> bool:
    keys = fragment.output.keys if fragment.output.edge == plan.rows.edge else ()
    return not plan.finish.keys or not keys or keys == plan.finish.keys


def bounds_are_applied_once_and_orders_are_kept(plan: Plan) -> None:
    roots = [fragment for fragment in plan.fragments if fragment.output.edge == plan.rows.edge]
    for fragment in roots:
        tree = parsed(fragment.sql)
        has_bounds = bool(tree.args.get("limit") or tree.args.get("offset"))
        is_sorted = {"any": None, "lanes": "order", "merge": "sort"}[fragment.output.order]
        if is_sorted:
            assert tree.args.get(is_sorted)
        if fragment.output.order == "merge":
            assert fragment.output.keys
            assert not has_bounds, "SORT BY with a LIMIT keeps any rows"
        assert sorts_alike(plan, fragment)
        if len(roots) > 1:
            assert not tree.args.get("offset"), "every part would skip its own rows"
            if plan.finish.limit is not None:
                assert int(tree.args["limit"].expression.this) == plan.finish.limit + plan.finish.offset
    if len(roots) == 1 and not plan.finish.keys:
        assert (plan.finish.offset, plan.finish.limit) == (0, None)


def test_every_case_has_a_name_of_its_own() -> None:
    assert len({(case.file, case.title) for case in CASES}) == len(CASES)
    assert {file.stem for file in FOLDER.glob("*.sql")} == {case.file.stem for case in CASES}
    assert [case.title for case in read_cases(FOLDER / "driver.sql")]


def test_all_tables_of_the_topology_are_used() -> None:
    used = {
        (fragment.member, leaf.table)
        for case in CASES
        for fragment in case.plan.fragments
        for leaf in fragment.leaves
        if isinstance(leaf, TableLeaf)
    }
    assert used == VERSIONS.keys()
    assert CATALOG.names()

"""A bound tree read as relations is the same tree when it is written back."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlglot import exp

from skerry.plan import relations
from skerry.plan.relations import Opaque, Relation, relation_of, scans_of, tree_of
from skerry.sql.dialect import render
from tests.plans.plan_cases import all_cases, bound

CASES = all_cases()
PARSED = {
    "SELECT a.c_id FROM customer AS a": "Project(Scan)",
    "SELECT count(*) FROM customer WHERE c_id > 1": "Project(Aggregate(Filter(Scan)))",
    "SELECT c_nation, sum(c_id) FROM customer GROUP BY c_nation HAVING sum(c_id) > 1": (
        "Project(Filter(Aggregate(Scan)))"
    ),
    "SELECT DISTINCT c_name FROM customer ORDER BY 1 LIMIT 3": "Limit(Sort(Distinct(Project(Scan))))",
    "SELECT 1 FROM customer, nation LEFT JOIN orders ON o_id = n_id": "Project(Join(Join(Scan,Scan),Scan))",
    "SELECT x FROM (SELECT c_id AS x FROM customer) AS d": "Project(Derived(Project(Scan)))",
    "SELECT c_id FROM customer UNION ALL SELECT n_id FROM nation": "SetOperation(Project(Scan),Project(Scan))",
    "SELECT sum(c_id) OVER () FROM customer": "Project(Window(Scan))",
    "SELECT c_id FROM customer LATERAL VIEW explode(array(1)) AS x": "Opaque",
    "WITH d AS (SELECT 1 AS a) SELECT a FROM d": "Opaque",
    "SELECT 1 AS x": "Project",
}


def shown(relation: Relation | None) -> str:
    if relation is None:
        return ""
    inside = [getattr(relation, name) for name in ("input", "left", "right") if hasattr(relation, name)]
    text = ",".join(shown(each) for each in inside)
    return type(relation).__name__ + (f"({text})" if text else "")


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{Path(case.file).stem}: {case.title}")
def test_there_and_back(case) -> None:
    query = bound(case.sql, case.header.get("parameters"))
    names = {scan.node_name for scan in query.tables}
    before = render(query.tree)
    relation = relation_of(query.tree, names)
    assert render(tree_of(relation)) == before
    assert {scan.node_name for scan in scans_of(relation)} <= names
    assert render(query.tree) == before


@pytest.mark.parametrize(("sql", "expected"), PARSED.items())
def test_what_a_query_is_made_of(sql: str, expected: str) -> None:
    query = bound(sql)
    relation = relation_of(query.tree, {scan.node_name for scan in query.tables})
    assert shown(relation) == expected


def test_relations_are_values() -> None:
    tree = bound("SELECT c_id FROM customer").tree
    assert relation_of(tree, {"scan_0"}) == relation_of(tree.copy(), {"scan_0"})
    assert relation_of(exp.select("1").from_("x"), set()) != Opaque(tree)
    assert relations.Scan("scan_0", tree) == relations.Scan("scan_0", exp.Null())

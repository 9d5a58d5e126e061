"""What a fragment tells of itself is seen in the tree that it is made of."""

from __future__ import annotations

import pytest

from metamorphic.reading import parse_fragment
from skerry.model.fragment import EdgeLeaf, Facts, Leaf, Output, SparkFragment, TableLeaf
from skerry.plan.cache import fingerprint
from skerry.plan.explain import describe
from skerry.plan.maker import make_fragment
from tests.plans.plan_cases import planned

TABLE = TableLeaf("t", "orders")


def made(sql: str, *leaves: Leaf) -> SparkFragment:
    tree = parse_fragment(sql)
    assert tree is not None, sql
    return make_fragment(1, "oslo", tree, leaves, Output(1, ("oslo",)))


def facts(sql: str, *leaves: Leaf) -> Facts:
    found = made(sql, *leaves).facts
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT 1", ["values"]),
        ("SELECT a FROM t WHERE b > 1 LIMIT 3", ["scan", "filter", "limit"]),
        ("SELECT a, count(*) AS n FROM t JOIN u ON a = b GROUP BY a SORT BY n", ["scan", "join", "aggregate", "sort"]),
        ("SELECT DISTINCT a FROM t UNION ALL SELECT b FROM u", ["scan", "union", "distinct"]),
        ("SELECT rank() OVER (ORDER BY a) AS r FROM t", ["scan", "window", "sort"]),
        ("SELECT a FROM t GROUP BY a HAVING listagg(b) WITHIN GROUP (ORDER BY b) > 'x'", None),
    ],
)
def test_operators(sql: str, expected: list[str] | None) -> None:
    assert list(facts(sql).operators) == (expected or ["scan", "filter", "aggregate", "sort"])


NAMED = "SELECT kind, sum(amount) / count(*) FROM events GROUP BY kind"


def test_a_branch_that_only_gives_names_has_no_operators() -> None:
    """The planner puts the block over no rows before the groups of parts, for the names that Spark makes."""
    plan = planned(NAMED, rules="all")
    rest = plan.fragments[-1]
    assert "WHERE FALSE" in rest.sql
    assert "LIMIT 0" in rest.sql
    assert describe(plan, "oslo")["fragments"][-1]["operators"] == ["scan", "union", "aggregate"]
    # One more UNION is the query's own.
    both = planned(f"SELECT * FROM ({NAMED}) AS a JOIN (SELECT 1 AS one) AS b ON one = 1", rules="all").fragments[-1]
    assert both.facts is not None
    assert "filter" not in both.facts.operators
    assert "limit" not in both.facts.operators
    assert both.facts.has_limit, "what may stop a fragment counts, whoever wrote it"


@pytest.mark.parametrize(
    ("sql", "most"),
    [
        ("SELECT a", 0),
        ("SELECT a FROM t WHERE " + " OR ".join("a = 1" for _ in range(400)), 400),
        ("SELECT a FROM t WHERE x AND (" + " OR ".join("(a = 1 AND b = 2)" for _ in range(10)) + ")", 12),
        ("SELECT a FROM t WHERE a IN (" + ", ".join("1 + 1" for _ in range(400)) + ")", 1),
        ("SELECT " + ", ".join("a + 1" for _ in range(400)) + " FROM t", 1),
        ("SELECT CASE " + " ".join("WHEN a AND b THEN 1" for _ in range(400)) + " END + 1 + 2 FROM t", 3),
        ("SELECT a FROM t WHERE a BETWEEN 1 AND 2 AND b BETWEEN 1 AND 2", 1),
        ("SELECT 'a OR b OR c', `x OR y` FROM t", 0),
        (" UNION ALL ".join("SELECT a FROM t WHERE a OR b" for _ in range(400)), 399),
        ("SELECT " + " || ".join("a" for _ in range(400)) + " FROM t", 399),
        ("SELECT ((a + 1) * 2 - 3) FROM t", 3),
        ("SELECT " + "NOT " * 20 + "a FROM t", 20),
        ("SELECT a" + " = true" * 600 + " FROM t", 600),
        ("SELECT a" + "::int" * 100 + " FROM t", 100),
        ("SELECT a" + "[0]" * 100 + " FROM t", 100),
        ("SELECT a FROM t" + "".join(f" LATERAL VIEW explode(a) v{i} AS c{i}" for i in range(300)), 300),
        ("SELECT t.a FROM t" + "".join(f" JOIN t AS t{i} USING (a)" for i in range(300)), 300),
    ],
)
def test_operators_in_a_row(sql: str, most: int) -> None:
    assert made(sql).operator_depth == most


@pytest.mark.parametrize(
    ("sql", "is_repeatable"),
    [
        ("SELECT a FROM t WHERE a > 'rand()'", True),
        ("SELECT max(a) AS rand FROM t", True),
        ("SELECT rand() FROM t", False),
        ("SELECT a FROM t WHERE a IN (SELECT uuid() FROM t)", False),
    ],
)
def test_what_differs_each_time_is_known(sql: str, is_repeatable: bool) -> None:
    assert made(sql).is_repeatable == is_repeatable


@pytest.mark.parametrize(
    ("sql", "conditions"),
    [
        ("SELECT a, b FROM t", ()),
        ("SELECT t.`A` AS x FROM t WHERE (t.B > 1) AND `c` = 2", ("b > 1", "c = 2")),
        ("SELECT a + 1 AS b FROM t", None),
        ("SELECT DISTINCT a FROM t", None),
        ("SELECT a FROM (SELECT a FROM t) AS x", None),
    ],
)
def test_a_scan_tells_its_conditions(sql: str, conditions: tuple[str, ...] | None) -> None:
    assert facts(sql, TABLE).scan == conditions
    assert facts(sql, EdgeLeaf("t", 2, (), ("bergen",))).scan is None


def test_markers_are_named() -> None:
    assert facts("SELECT ':c', :b, a FROM t WHERE a > :a + :b").markers == ("a", "b")


def test_facts_are_no_part_of_what_is_run() -> None:
    plan = planned("SELECT c_name, o_id FROM orders JOIN customer ON o_cust = c_id WHERE o_id > 3", rules="all")
    assert all(each.facts is not None for each in plan.fragments)
    sent = plan.to_run()
    assert all(each.facts is None for each in sent.fragments)
    assert fingerprint(sent) == plan.plan_id

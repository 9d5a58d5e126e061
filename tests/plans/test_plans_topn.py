"""The first rows of every part make the answer of all rows: fragments in DuckDB, merged and bounded by the member."""

from __future__ import annotations

import re
from random import Random

import pytest

from metamorphic.in_duckdb import Runner
from skerry.catalog.topology import Topology
from skerry.config import parse
from skerry.model.fragment import Plan
from skerry.plan.cut import make_plan
from skerry.plan.rules import NO_RULES, Rules
from skerry.plan.site import Site
from tests.plans.plan_cases import CATALOG, FOLDER, LIMITS, bound, planned, slow_links
from tests.plans.plan_rows import made_up
from tests.plans.test_plans_executed import site

pytestmark = pytest.mark.slow

# Their orders leave nothing open but rows that are equal.
STATEMENTS = """
SELECT id, n_name FROM events JOIN nation ON id = n_id ORDER BY id, n_name LIMIT 3
SELECT id, n_name FROM events JOIN nation ON id = n_id ORDER BY n_name DESC NULLS FIRST, id DESC LIMIT 4 OFFSET 3
SELECT id, n_name AS id2 FROM events LEFT JOIN nation ON id = n_id ORDER BY id2 NULLS LAST, 1 DESC NULLS LAST LIMIT 5
SELECT n_name, e.id FROM nation RIGHT JOIN events AS e ON n_id = e.id AND n_name > 'a' ORDER BY 1, 2 LIMIT 7 OFFSET 2
SELECT id, kind FROM events LEFT SEMI JOIN nation ON id = n_id ORDER BY kind, id LIMIT 4
SELECT id, kind FROM events LEFT ANTI JOIN nation ON id = n_id ORDER BY kind DESC, id LIMIT 4
SELECT id, n_name FROM events JOIN nation ON id = n_id ORDER BY id, n_name LIMIT 0
SELECT id FROM events ORDER BY amount + 1, 0 - id LIMIT 3
SELECT id % 4 AS r FROM events JOIN nation ON id = n_id ORDER BY r LIMIT 6
SELECT c_name, t.id FROM (SELECT id FROM events ORDER BY id DESC LIMIT 4) AS t JOIN customer ON c_id = t.id
SELECT c_name, t.id, t.n FROM (SELECT id, n_name AS n FROM events JOIN nation ON id = n_id ORDER BY n, id LIMIT 5) AS t
    JOIN customer ON c_id = t.id
SELECT count(*) AS n, sum(id) AS s FROM (SELECT id, kind FROM events WHERE id > 2 ORDER BY 2, 1 LIMIT 9 OFFSET 1) AS t
WITH t AS (SELECT s_id, s_cust FROM sales ORDER BY s_id, s_cust LIMIT 5) SELECT a.s_id, b.s_cust FROM t AS a, t AS b
    WHERE a.s_id = b.s_cust
SELECT c_id FROM customer WHERE c_id IN (SELECT id FROM events ORDER BY id LIMIT 3)
SELECT c_id FROM customer WHERE c_id > (SELECT id FROM events WHERE id IS NOT NULL ORDER BY id LIMIT 1)
SELECT c_id FROM customer WHERE c_id > (SELECT id + 1 FROM events, nation WHERE id = n_id ORDER BY id + 1 LIMIT 1)
SELECT id, rank() OVER (ORDER BY id) AS r FROM (SELECT id FROM events ORDER BY id NULLS LAST LIMIT 6) AS t
SELECT kind FROM (SELECT kind FROM events ORDER BY kind LIMIT 9) AS t GROUP BY kind HAVING count(*) > 1
SELECT id, kind FROM events UNION ALL SELECT o_id, o_note FROM orders ORDER BY kind DESC, id LIMIT 5 OFFSET 2
SELECT n_id FROM nation JOIN events ON id = n_id UNION ALL SELECT s_id FROM sales UNION ALL SELECT o_id FROM orders
    WHERE o_id > 3 ORDER BY 1 NULLS LAST LIMIT 6
SELECT kind, id FROM (SELECT id, kind FROM events UNION ALL (SELECT c_id, c_name FROM customer UNION ALL
    SELECT o_id, o_note FROM orders)) AS u ORDER BY u.kind, id DESC LIMIT 7
SELECT c_name, u.k FROM (SELECT id AS k FROM events UNION ALL SELECT l_qty FROM lineitem ORDER BY k LIMIT 4) AS u
    JOIN customer ON c_id = k
SELECT id + 1 FROM events UNION ALL SELECT count(*) FROM orders ORDER BY 1 LIMIT 3
(SELECT id FROM events ORDER BY id LIMIT 3) UNION ALL (SELECT s_id FROM sales ORDER BY s_id DESC LIMIT 2)
"""
BOUNDED = [" ".join(text.split()) for text in STATEMENTS.strip().replace("\n    ", " ").split("\n")]
# Bounded without the rule, not at all, or not at every part, for what that costs or how a column is named.
OTHERS = """
SELECT c_id, k FROM (SELECT DISTINCT kind k, id % 3 r FROM events ORDER BY 2, k DESC LIMIT 3), customer WHERE c_id = r
SELECT c_id FROM customer WHERE c_id IN (SELECT DISTINCT id FROM events, nation WHERE id = n_id ORDER BY id LIMIT 3)
SELECT DISTINCT kind, id FROM events JOIN nation ON id = n_id ORDER BY kind || 'x', id LIMIT 4 OFFSET 1
SELECT s_id, id, n_name FROM nation, sales, events WHERE n_id = s_cust AND s_id = id ORDER BY 3, 2, 1 LIMIT 6
SELECT id, n_name FROM events JOIN nation ON id = n_id ORDER BY id, n_name
SELECT id, n_name FROM events JOIN nation ON id = n_id ORDER BY id, n_name LIMIT ALL
SELECT id AS amount FROM events ORDER BY amount LIMIT 3
SELECT id + 1 FROM events JOIN nation ON id = n_id ORDER BY id LIMIT 6
SELECT DISTINCT kind, n_name FROM events JOIN nation ON id = n_id ORDER BY 2, 1 LIMIT 3
SELECT b, a FROM (SELECT id a, kind b FROM events UNION ALL SELECT c_id, c_name FROM customer) u ORDER BY 1, 2 LIMIT 7
SELECT id FROM events UNION SELECT o_id FROM orders ORDER BY 1 LIMIT 3
""".strip().split("\n")
# Any rows will do, so many of them.
FREE = """
SELECT id, n_name FROM events JOIN nation ON id = n_id LIMIT 3
SELECT id, n_name FROM events LEFT JOIN nation ON id = n_id LIMIT 30 OFFSET 7
SELECT id FROM (SELECT id FROM events LIMIT 5) AS t WHERE 1 = 1
SELECT id FROM (SELECT id FROM events UNION ALL SELECT o_id FROM orders) AS t LIMIT 6
SELECT id, 7 AS seven FROM events JOIN nation ON id = n_id ORDER BY 2 LIMIT 4
""".strip().split("\n")
TABLES = [made_up(Random(seed)) for seed in range(4)]


@pytest.fixture(scope="module")
def runner() -> Runner:
    return Runner()


def plans(sql: str) -> list[Plan]:
    """With the rule, alone and with all others, wherever it is asked and whatever the links are."""
    sites = [site(mbit, at, Rules()) for at in ("oslo", "tromso") for mbit in (0.001, 100.0)]
    sites.append(site(0.001, "bergen", Rules(strategy="bottom-up")))
    made = [make_plan(bound(sql), CATALOG, each, LIMITS) for each in sites]
    made += [planned(sql, at, rules="topn") for at in ("oslo", "bergen", "front")]
    return list({plan.plan_id: plan for plan in made if not plan.finish.aggregate}.values())


@pytest.mark.parametrize("sql", [*BOUNDED, *OTHERS])
def test_first_rows_are_the_same(sql: str, runner: Runner) -> None:
    plain, ruled = make_plan(bound(sql), CATALOG, site(100.0, "oslo", NO_RULES), LIMITS), plans(sql)
    is_ordered = "ORDER BY" in sql.rpartition(")")[2]
    for seed, tables in enumerate(TABLES):
        expected = runner.rows(plain, tables)
        for plan in ruled:
            found, told = runner.rows(plan, tables), f"seed {seed}: {[each.sql for each in plan.fragments]}"
            assert (found if is_ordered else sorted(found, key=str)) == (
                expected if is_ordered else sorted(expected, key=str)
            ), told


@pytest.mark.parametrize("sql", FREE)
def test_any_rows_are_as_many_and_of_the_answer(sql: str, runner: Runner) -> None:
    whole = make_plan(
        bound(sql.partition(" LIMIT")[0] + (") AS t" if "LIMIT 5)" in sql else "")),
        CATALOG,
        site(100.0, "oslo", NO_RULES),
        LIMITS,
    )
    plain = make_plan(bound(sql), CATALOG, site(100.0, "oslo", NO_RULES), LIMITS)
    for tables in TABLES:
        every, count = runner.rows(whole, tables), len(runner.rows(plain, tables))
        for plan in plans(sql):
            found = runner.rows(plan, tables)
            assert len(found) == count
            assert all(found.count(row) <= every.count(row) for row in found)


@pytest.mark.parametrize("sql", BOUNDED)
def test_the_rule_fires(sql: str) -> None:
    """Else the tests above would show nothing."""
    plan = planned(sql, rules="topn", topology=slow_links())
    assert sum("LIMIT" in each.sql for each in plan.fragments) > 1 or plan.finish.limit is not None, plan.fragments
    assert plan.plan_id != planned(sql).plan_id


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT id, n_name FROM events RIGHT JOIN nation ON id = n_id ORDER BY 1, 2 LIMIT 3",
        "SELECT id, n_name FROM nation LEFT JOIN events ON id = n_id ORDER BY 1, 2 LIMIT 3",
        "SELECT id, n_name FROM events FULL JOIN nation ON id = n_id ORDER BY 1, 2 LIMIT 3",
        "SELECT n_name FROM nation LEFT ANTI JOIN events ON id = n_id ORDER BY 1 LIMIT 3",
        "SELECT n_name FROM nation LEFT SEMI JOIN events ON id = n_id ORDER BY 1 LIMIT 3",
        "SELECT id, explode(tags) AS tag FROM events JOIN nation ON id = n_id ORDER BY id LIMIT 3",
        "SELECT id FROM (SELECT explode(tags) AS id FROM events LIMIT 3) AS t",
        "SELECT id, row_number() OVER (ORDER BY id) AS r FROM events JOIN nation ON id = n_id ORDER BY r LIMIT 3",
        "SELECT o_id FROM orders WHERE EXISTS (SELECT 1 FROM events WHERE id = o_cust LIMIT 1)",
        "SELECT id FROM events ORDER BY rand(), amount LIMIT 3",
        "SELECT id FROM (SELECT id FROM events ORDER BY id LIMIT 2147483647 OFFSET 1) AS t",
        "SELECT max(id) AS m FROM events LIMIT 3",
        "SELECT id FROM events UNION ALL SELECT o_note FROM orders ORDER BY 1 LIMIT 3",
        "SELECT id FROM events UNION SELECT o_id FROM orders ORDER BY 1 LIMIT 3",
        "SELECT id FROM events EXCEPT ALL SELECT o_id FROM orders ORDER BY 1 LIMIT 3",
        "SELECT id FROM (SELECT id FROM events UNION ALL SELECT o_id FROM orders) AS u WHERE id > 3 LIMIT 3",
        "SELECT b, a FROM (SELECT id a, id b FROM events UNION ALL SELECT o_id, o_id FROM orders) u ORDER BY 1 LIMIT 3",
        "SELECT id FROM (SELECT id FROM events ORDER BY id OFFSET 3) AS t",
        # Spark calls the cast `id` too, and orders by it.
        "SELECT t.* FROM (SELECT CAST(id AS STRING), kind FROM events ORDER BY id, kind LIMIT 3) AS t",
        "SELECT t.* FROM (SELECT TRY_CAST(id AS STRING), kind FROM events ORDER BY id, kind LIMIT 3) AS t",
        "SELECT t.* FROM (SELECT id::STRING, kind FROM events ORDER BY id + 1, kind LIMIT 3) AS t",
    ],
)
def test_rows_that_are_of_no_part_alone_are_not_bounded(sql: str) -> None:
    plan = planned(sql, rules="topn", topology=slow_links())
    assert sum("LIMIT" in each.sql for each in plan.fragments) <= 1, plan.fragments
    assert plan.finish.limit is None


def test_a_member_bounds_no_more_than_it_has_room_for() -> None:
    query = bound(
        "SELECT a.id, b.s_id FROM (SELECT id FROM events ORDER BY id LIMIT 3) AS a JOIN"
        " (SELECT s_id FROM sales ORDER BY s_id LIMIT 3) AS b ON a.id = b.s_id"
    )
    bounded = []
    for capacity in (1, 2):
        text = re.sub(r"(    address: h:\d)", rf"\1\n    capacity: {capacity}", (FOLDER / "topology.yaml").read_text())
        where = Site("oslo", ("oslo", "bergen", "tromso"), Rules(frozenset({"topn"})), Topology(parse(text)))
        sent = [each.sql for each in make_plan(query, CATALOG, where, LIMITS).fragments[:-1]]
        bounded.append({key for key in ("id", "s_id") if any(f"ORDER BY {key} LIMIT" in sql for sql in sent)})
    assert bounded == [{"id"}, {"id", "s_id"}]


def test_whole_numbers_that_a_double_rounds_are_not_cut() -> None:
    """Two that are alike as doubles are told apart by the next key, so the operand's own first row may be another."""
    rounded = (
        "SELECT s_price AS x, s_id AS y FROM sales UNION ALL SELECT o_id, o_cust FROM orders ORDER BY x, y LIMIT 2"
    )
    kept = (
        "SELECT s_price AS x, s_id AS y FROM sales UNION ALL SELECT l_qty, l_order FROM lineitem ORDER BY x, y LIMIT 2"
    )
    for sql, is_cut in ((rounded, False), (kept, True)):
        plan = make_plan(bound(sql), CATALOG, site(0.001, "bergen", Rules()), LIMITS)
        bounds = sum(each.sql.count("LIMIT 2") for each in plan.fragments)
        assert (bounds > 1) is is_cut, "the union's own bound is one"

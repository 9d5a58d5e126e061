"""Plans with partial aggregates give the groups of the plan without: fragments in DuckDB, merged by the member."""

from __future__ import annotations

from random import Random

import pytest

from metamorphic.in_duckdb import Runner
from tests.plans.plan_cases import planned, slow_links
from tests.plans.plan_rows import made_up

STATEMENTS = """
SELECT count(*) AS n, count(kind) AS k, sum(id) AS s, min(ts) AS t, max(kind) AS m, avg(amount) AS a FROM events
SELECT kind, count(*) AS n, sum(amount) AS s, avg(amount) AS a, stddev(amount) AS d FROM events GROUP BY kind
SELECT avg(amount) AS mean, var_pop(id) AS v FROM events GROUP BY kind, id > 5
SELECT upper(kind) AS k, min(amount) AS m FROM events WHERE id > 2 GROUP BY kind, id % 2 ORDER BY k DESC
SELECT kind FROM events GROUP BY kind
SELECT DISTINCT kind, id % 3 AS r FROM events
SELECT kind, sum(amount) AS s FROM events GROUP BY kind HAVING count(*) > 1 ORDER BY s
SELECT kind, 10 * sum(id) / count(*) AS q, avg(id) + 1 AS a FROM events GROUP BY kind
SELECT count(DISTINCT kind) AS k, sum(DISTINCT id % 3) AS s, count(*) AS n, avg(amount) AS a FROM events
SELECT kind, count(DISTINCT id % 3) AS n, max(amount) AS m FROM events GROUP BY kind
SELECT kind, approx_count_distinct(id % 3) AS n, max(amount) AS m FROM events GROUP BY kind
SELECT approx_count_distinct(kind) AS k, approx_count_distinct(id % 3) AS r, count(DISTINCT kind) AS d FROM events
SELECT kind, approx_count_distinct(kind) AS n, count(*) AS c FROM events GROUP BY ROLLUP (kind)
SELECT o_id FROM orders WHERE o_id > (SELECT approx_count_distinct(id % 5) FROM events WHERE kind <> 'x')
SELECT n_name, approx_count_distinct(kind) AS k FROM events JOIN nation ON id = n_id GROUP BY n_name
SELECT kind, b, avg(a) AS m FROM (SELECT kind, id > 5 AS b, amount AS a FROM events) AS t GROUP BY ROLLUP (kind, b)
SELECT n_name, count(*) AS n, avg(amount) AS a FROM events JOIN nation ON id = n_id GROUP BY n_name
SELECT n_name, count(*) AS n, count(n_id) AS c FROM events LEFT JOIN nation ON id = n_id GROUP BY n_name
SELECT n_name, count(*) AS n FROM nation RIGHT JOIN events ON id = n_id GROUP BY n_name
SELECT kind, count(*) AS n FROM events LEFT ANTI JOIN nation ON id = n_id GROUP BY kind
SELECT n_name, sum(s_price) AS s FROM sales, nation WHERE s_cust = n_id GROUP BY n_name HAVING count(*) > 0
SELECT o_id FROM orders WHERE o_id IN (SELECT max(id) FROM events GROUP BY kind)
SELECT o_id FROM orders WHERE o_id > (SELECT avg(id) FROM events)
SELECT c_id, n FROM customer JOIN (SELECT s_id % 5 AS c, count(*) AS n FROM sales GROUP BY s_id % 5) AS s ON c = c_id
SELECT kind, count(*) AS n FROM events GROUP BY kind UNION ALL SELECT 'all', count(*) FROM events
WITH t AS (SELECT kind, max(id) AS m FROM events GROUP BY kind) SELECT a.kind, b.m FROM t AS a JOIN t AS b ON a.m < b.m
SELECT k, sum(a) AS s FROM (SELECT kind AS k, amount * 2 AS a FROM events WHERE id > 1) AS t GROUP BY k
""".strip().split("\n")
SLOW = slow_links()
TABLES = [made_up(Random(seed)) for seed in range(3)]


@pytest.fixture(scope="module")
def runner() -> Runner:
    return Runner()


@pytest.mark.parametrize("sql", STATEMENTS)
def test_groups_are_the_same(sql: str, runner: Runner) -> None:
    ways = [(at, rules) for at in ("oslo", "bergen") for rules in ("aggregates", "all")]
    plain, ruled = planned(sql), [planned(sql, at, rules=rules, topology=SLOW) for at, rules in ways]
    assert all(each.finish.aggregate or "AS part_0" in str(each.fragments) for each in ruled)
    for seed, tables in enumerate(TABLES):
        expected = runner.run(plain, tables)
        for plan in ruled:
            assert runner.run(plan, tables) == expected, f"seed {seed}: {[each.sql for each in plan.fragments]}"

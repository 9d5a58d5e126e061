"""What may give other rows when it is asked again is asked once, in whichever plan."""

from __future__ import annotations

import pytest

from skerry.plan.cut import make_plan
from tests.plans.plan_cases import CATALOG, LIMITS, bound
from tests.plans.test_plans_executed import VARIANTS

STATEMENTS = """
SELECT o_id, c_nation FROM orders, lineitem, (SELECT c_id AS k, c_nation FROM customer LIMIT 3) AS a WHERE o_cust = a.k
    AND l_order = a.k AND a.c_nation = 3;
SELECT o_id FROM orders, lineitem, (SELECT c_id AS k FROM customer LIMIT 3) AS a, (SELECT c_id AS k FROM customer
    LIMIT 3) AS b WHERE o_cust = a.k AND l_order = b.k;
WITH d AS (SELECT c_id AS k FROM customer WHERE rand() < 0.5) SELECT o_id FROM orders JOIN d AS a ON o_id = a.k JOIN d
    AS b ON o_cust = b.k WHERE o_total > (SELECT max(k) FROM d);
WITH a AS (SELECT c_id AS k FROM customer LIMIT 3), b AS (SELECT k + 1 AS k FROM a) SELECT x.k FROM b AS x JOIN b AS y
    ON x.k = y.k JOIN orders ON o_id = x.k;
WITH a AS (SELECT c_id AS k FROM customer LIMIT 3), b AS (WITH c AS (SELECT k FROM a) SELECT max(k) AS k FROM c)
    SELECT x.k FROM b AS x JOIN b AS y ON x.k = y.k JOIN orders ON o_id = x.k JOIN lineitem ON l_order = y.k;
SELECT o_id FROM orders WHERE o_cust IN (WITH a AS (SELECT c_id AS k FROM customer LIMIT 3) SELECT x.k FROM a AS x JOIN
    a AS y ON x.k = y.k);
(SELECT o_id FROM orders LIMIT 5) UNION (SELECT o_id FROM orders LIMIT 5) UNION (SELECT c_id FROM customer WHERE
    rand() < 0.5);
SELECT k, o_id FROM (SELECT l_order AS k FROM lineitem UNION ALL (SELECT c_id FROM customer LIMIT 2)) AS u JOIN orders
    ON o_id = k AND o_total = 2
"""


@pytest.mark.parametrize("sql", [" ".join(text.split()) for text in STATEMENTS.split(";")])
def test_a_limit_or_a_chance_is_taken_once(sql: str) -> None:
    for site in VARIANTS:
        fragments = make_plan(bound(sql), CATALOG, site, LIMITS).fragments
        for word in ("LIMIT", "rand()"):
            assert sum(fragment.sql.count(word) for fragment in fragments) == sql.count(word), [
                fragment.sql for fragment in fragments
            ]

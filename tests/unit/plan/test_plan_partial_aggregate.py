"""Which aggregates are partial, who merges them, and what is left alone because it is not certain."""

from __future__ import annotations

import pytest

from skerry.catalog.topology import Topology
from skerry.model.fragment import MergeStep, Plan, SortKey
from skerry.model.limits import Limits
from tests.plans.plan_cases import planned, slow_links

LIMITS = Limits()


SLOW = slow_links()


def plan_of(sql: str, limits: Limits = LIMITS, topology: Topology | None = SLOW) -> Plan:
    return planned(sql, rules="aggregates", limits=limits, topology=topology)


def way(sql: str, topology: Topology | None = SLOW) -> str:
    plan = plan_of(sql, topology=topology)
    if plan.finish.aggregate:
        return "member"
    return "site" if any("AS part_0" in fragment.sql for fragment in plan.fragments) else "whole"


MEMBER = """
SELECT count(*) FROM events
SELECT count(id, kind), count(1) FROM events
SELECT sum(id), sum(amount), avg(id), min(ts), max(kind) FROM events
SELECT max(DISTINCT id) FROM events
SELECT sum(ALL id) FROM events
SELECT kind, sum(id) FROM events GROUP BY kind
SELECT kind, sum(id) FROM events e WHERE e.id > 5 GROUP BY e.kind
SELECT kind k, sum(id) FROM events GROUP BY k
SELECT kind, sum(id) FROM events GROUP BY 1
SELECT kind, sum(id) FROM events GROUP BY ALL
SELECT sum(id) FROM events GROUP BY kind
SELECT upper(kind), sum(id) FROM events GROUP BY kind
SELECT kind, 1, sum(id) FROM events GROUP BY kind
SELECT kind, sum(id) FROM events GROUP BY kind ORDER BY kind
SELECT kind, sum(id) AS s FROM events GROUP BY kind ORDER BY kind LIMIT 3
SELECT k, sum(a) FROM (SELECT kind AS k, amount AS a FROM events WHERE id > 3) AS t GROUP BY k
SELECT kind FROM events GROUP BY kind
SELECT DISTINCT kind FROM events
SELECT DISTINCT kind, id > 5 AS b FROM events WHERE id < 100 ORDER BY kind LIMIT 5
SELECT n_name, count(*) FROM events JOIN nation ON id = n_id GROUP BY n_name
SELECT n_name, count(*) FROM nation, events WHERE id = n_id GROUP BY n_name
SELECT n_name, count(*) FROM events LEFT JOIN nation ON id = n_id GROUP BY n_name
SELECT n_name, count(*) FROM nation RIGHT JOIN events ON id = n_id GROUP BY n_name
SELECT kind, count(*) FROM events LEFT ANTI JOIN nation ON id = n_id GROUP BY kind
SELECT kind, count(*) FROM events LEFT SEMI JOIN nation AS n ON id = n.n_id GROUP BY kind
SELECT kind, count(*) FROM events a JOIN nation n ON a.id = n.n_id JOIN nation m ON m.n_id = n.n_id GROUP BY a.kind
SELECT Id % 2, count(*) FROM mixed GROUP BY Id % 2
""".strip().split("\n")

SITE = """
SELECT kind, sum(id) + 1 FROM events GROUP BY kind
SELECT kind, sum(id) AS s FROM events GROUP BY kind ORDER BY s
SELECT kind, sum(id) FROM events GROUP BY kind HAVING count(*) > 1
SELECT kind FROM events GROUP BY kind HAVING count(*) > 1
SELECT count(DISTINCT kind) FROM events
SELECT kind, count(DISTINCT kind) FROM events GROUP BY kind
SELECT approx_count_distinct(kind) FROM events
SELECT approx_count_distinct(kind, 0.1), count(DISTINCT kind) FROM events
SELECT approx_count_distinct(ALL kind, 1e-2d), approx_count_distinct(DISTINCT kind, 0.2) FROM events
SELECT kind, approx_count_distinct(kind) AS n FROM events GROUP BY kind ORDER BY n
SELECT kind FROM events GROUP BY kind HAVING approx_count_distinct(id % 2 = 0) > 1
SELECT kind, count(*) AS n FROM events GROUP BY CUBE (kind)
SELECT kind, count(*) AS n FROM events GROUP BY kind WITH ROLLUP
SELECT tags, count(*) FROM events GROUP BY tags
SELECT count(DISTINCT kind), sum(DISTINCT id % 7), sum(amount) FROM events
SELECT sum(id) AS s, s + 1 AS t FROM events
SELECT collect_list(id) FROM events
SELECT sum(x) FROM (SELECT DISTINCT amount AS x FROM events) AS t
SELECT DISTINCT tags FROM events
SELECT o_id FROM orders WHERE o_note IN (SELECT DISTINCT kind FROM events)
SELECT (SELECT max(id) FROM events) AS m
SELECT o_id FROM orders WHERE o_id IN (SELECT max(id) FROM events GROUP BY kind)
SELECT * FROM (SELECT kind, max(id) AS m FROM events GROUP BY kind) AS t
WITH t AS (SELECT kind, max(id) AS m FROM events GROUP BY kind) SELECT * FROM t
SELECT kind, count(*) FROM events GROUP BY kind UNION SELECT kind, 1L FROM events GROUP BY kind
SELECT s_cust, sum(s_price) FROM sales GROUP BY s_cust
""".strip().split("\n")

WHOLE = """
SELECT kind, percentile(amount, 0.5) FROM events GROUP BY kind
SELECT first(kind), count(*) FROM events
SELECT any_value(kind) FROM events
SELECT approx_count_distinct(id), approx_count_distinct(amount) FROM events
SELECT approx_count_distinct(tags) FROM events
SELECT approx_count_distinct(place) FROM events
SELECT approx_count_distinct(kind COLLATE UTF8_LCASE) FROM events
SELECT approx_count_distinct(CAST(map(kind, 1) AS MAP<STRING, INT>)) FROM events
SELECT approx_count_distinct(kind) FILTER (WHERE id > 5) FROM events
SELECT approx_count_distinct(1), count(*) FROM events
SELECT approx_count_distinct(kind), any_value(kind) FROM events
SELECT hll_sketch_agg(id) FROM events
SELECT kind, sum(id) OVER () FROM events
SELECT sum(DISTINCT id), sum(DISTINCT amount) FROM events
SELECT sum(DISTINCT amount) FILTER (WHERE id > 1) FROM events
SELECT sum(rand()) FROM events
SELECT max(place) FILTER (WHERE id IN (SELECT o_id FROM orders)) FROM events
SELECT explode(tags), count(*) FROM events GROUP BY ALL
SELECT listagg(kind) FROM events
SELECT sum(x) FROM (SELECT amount AS x FROM events LIMIT 3) AS t
SELECT o_id, (SELECT count(*) FROM events WHERE id = o_id) AS c FROM orders
SELECT DISTINCT count(*) FROM events
SELECT DISTINCT kind FROM events GROUP BY kind
SELECT DISTINCT id, amount, ts FROM events
SELECT DISTINCT 1 FROM events
SELECT DISTINCT kind AS x, upper(x) AS y FROM events
SELECT sum(id) AS s, s + 1 AS t FROM events GROUP BY ALL
SELECT DISTINCT * FROM events
SELECT id, kind FROM events
SELECT kind, count(*) FROM events GROUP BY (kind, id)
SELECT 1 FROM events GROUP BY 'x'
SELECT kind, place.city, count(*) FROM events GROUP BY kind, place.city
SELECT upper(kind) AS kind, count(*) AS n FROM events GROUP BY kind ORDER BY kind
SELECT count(*) FROM oslo.events
SELECT id, count(*) FROM events GROUP BY id, amount, kind, ts
SELECT sum(a) FROM events AS e(a, b, c, d, f, g)
SELECT count(*) FROM events JOIN orders ON id = o_id
SELECT n_name, count(id) FROM nation LEFT JOIN events ON id = n_id GROUP BY n_name
SELECT n_name, count(id) FROM events RIGHT JOIN nation ON id = n_id GROUP BY n_name
SELECT n_name, count(id) FROM events FULL JOIN nation ON id = n_id GROUP BY n_name
SELECT n_name, count(*) FROM nation LEFT ANTI JOIN events ON id = n_id GROUP BY n_name
SELECT count(*) FROM events JOIN nation USING (id)
SELECT count(*) FROM events NATURAL JOIN nation
SELECT kind, count(*) FROM events AS a JOIN nation ON a.id = n_id JOIN events AS b ON b.id = a.id GROUP BY kind
""".strip().split("\n")


@pytest.mark.parametrize("sql", MEMBER)
def test_merged_by_the_member(sql: str) -> None:
    assert way(sql) == "member"


def test_few_bytes_are_worth_no_job() -> None:
    """A job of 5 ms is as dear as 62 KB at 100 Mbit/s: nation would have to be sent to two parts of few rows."""
    sql = "SELECT n_name, count(*) FROM events JOIN nation ON id = n_id GROUP BY n_name"
    assert (way(sql), way(sql, None)) == ("member", "whole")
    assert way("SELECT kind, count(*) FROM events GROUP BY kind", None) == "member"


@pytest.mark.parametrize("sql", SITE)
def test_merged_by_spark(sql: str) -> None:
    assert way(sql) == "site"


@pytest.mark.parametrize("sql", WHOLE)
def test_left_alone(sql: str) -> None:
    assert way(sql) == "whole"


@pytest.mark.parametrize("sql", MEMBER + SITE)
def test_nothing_fires_when_the_rule_is_off(sql: str) -> None:
    plan = planned(sql, rules="-aggregates")
    assert not plan.finish.aggregate
    assert not any("part_" in fragment.sql for fragment in plan.fragments)


def test_steps_name_the_columns_they_are_made_of() -> None:
    plan = plan_of("SELECT avg(amount) AS a, count(*) AS n, stddev(amount) AS s, kind FROM events GROUP BY kind")
    assert plan.finish.aggregate == (
        MergeStep(0, "mean", (4, 5)),
        MergeStep(1, "count"),
        MergeStep(2, "stddev_samp", (5, 0, 6)),  # count and mean are there already
        MergeStep(3, "any"),
    )
    assert plan.finish.keys == (SortKey(3, False, True),)


def test_the_order_of_the_query_comes_before_the_groups() -> None:
    sql = "SELECT kind, id % 2 = 0 AS even, count(*) AS n FROM events GROUP BY id % 2 = 0, kind ORDER BY kind DESC"
    assert plan_of(sql).finish.keys == (SortKey(0, True, False), SortKey(1, False, True))


def test_more_groups_than_a_member_takes_are_merged_by_spark() -> None:
    sql = "SELECT kind, count(*) AS n FROM events GROUP BY kind"
    assert plan_of(sql).finish.aggregate
    assert not plan_of(sql, Limits(merge_groups=899)).finish.aggregate
    assert plan_of(sql, Limits(merge_groups=900)).finish.aggregate
    # A limit bounds what arrives.
    assert plan_of(sql + " LIMIT 10", Limits(merge_groups=30)).finish.aggregate


def test_names_of_the_statement_are_left_to_it() -> None:
    plan = plan_of("SELECT avg(part_0) AS part_1 FROM (SELECT amount AS part_0 FROM events) AS t")
    assert "AS skerry_part_0" in plan.fragments[0].sql

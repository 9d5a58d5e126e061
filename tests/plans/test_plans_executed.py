"""Plans with rules give the rows of the plan without: on made-up tables full of NULLs, at any cost of the links."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterable
from functools import cache
from itertools import pairwise
from random import Random

import duckdb
import pytest
from sqlglot.errors import ParseError

from metamorphic.in_duckdb import Runner
from skerry.catalog.topology import Topology
from skerry.config import parse
from skerry.model.fragment import Plan
from skerry.plan.cut import make_plan
from skerry.plan.rules import NAMES, NO_RULES, Rules
from skerry.plan.site import Site
from tests.plans.plan_cases import CATALOG, FOLDER, LIMITS, Case, all_cases, bound, linked, planned, read_cases
from tests.plans.plan_rows import made_up

pytestmark = pytest.mark.slow

# Every plan that is written down is run, but for those with parameters, and those that choose among rows.
CHOOSING = re.compile(r"LIMIT|any_value\(")
CASES = [case for case in all_cases() if not CHOOSING.search(case.sql) and "parameters" not in case.header]
# These are planned on more links and by more rules besides.
RULED = [case for case in CASES if case.file.stem.startswith("rules_") or case.file.stem == "links"]
# Spark's SQL, but not DuckDB's or sqlglot's.
BEYOND_DUCKDB = (
    "bitmap_construct_agg(bitmap_bit_position(id)) AS b FROM logs",
    "theta_sketch_agg",
    "ROLLUP (kind, id > 5)",
    "WITH ROLLUP",
    "current_date()",
    "UTF8_LCASE",
    "range(10)",
)
MORE = """
SELECT c_name, n FROM (SELECT o_cust, count(*) AS n FROM orders GROUP BY o_cust ORDER BY n DESC, o_cust LIMIT 3) AS t
    JOIN customer ON o_cust = c_id WHERE n > 0;
WITH t AS (SELECT DISTINCT o_cust AS k FROM orders ORDER BY k LIMIT 4) SELECT a.k, c_name FROM t AS a JOIN t AS b ON
    a.k = b.k JOIN customer ON c_id = a.k;
WITH t AS (SELECT DISTINCT o_cust AS k FROM orders ORDER BY k LIMIT 4), u(x) AS (SELECT c_id FROM customer WHERE c_id IN
    (SELECT k FROM t)) SELECT x, l_qty FROM u JOIN lineitem ON l_order = x WHERE x IN (SELECT k FROM t);
WITH t AS (SELECT o_cust AS k, row_number() OVER (PARTITION BY o_cust ORDER BY o_id) AS r FROM orders) SELECT k, r, c_id
    FROM t JOIN customer ON k = c_id WHERE r < 3 AND c_nation > 1;
WITH a AS (SELECT o_cust AS k FROM orders), b AS (WITH a AS (SELECT c_id AS k FROM customer), c AS (SELECT k FROM a)
    SELECT k FROM c) SELECT a.k, l_qty FROM a JOIN b ON a.k = b.k JOIN lineitem ON l_order = b.k;
WITH a AS (SELECT max(o_cust) AS k FROM orders) SELECT c_id FROM customer WHERE c_id < (WITH b AS (SELECT k FROM a WHERE
    k <> c_nation) SELECT max(k) FROM b);
(SELECT o_id FROM orders ORDER BY o_id LIMIT 5) UNION (SELECT l_order FROM lineitem ORDER BY l_order LIMIT 5);
(SELECT o_id FROM orders ORDER BY o_id LIMIT 5) UNION ALL ((SELECT DISTINCT l_order FROM lineitem ORDER BY l_order LIMIT
    5) EXCEPT ALL SELECT c_id FROM customer);
SELECT c_nation AS x, 'c' AS y FROM customer WHERE c_id > 2 UNION SELECT sum(o_total), 'o' FROM orders UNION ALL
    SELECT l_qty, 'o' FROM lineitem EXCEPT SELECT max(n_id), n_name FROM nation GROUP BY n_name;
SELECT count(*) AS n, o_cust AS k FROM orders GROUP BY o_cust INTERSECT SELECT count(*), c_nation FROM customer GROUP
    BY c_nation;
SELECT u.k, n_name FROM (SELECT o_cust AS k FROM orders WHERE o_total < 9 UNION SELECT l_order FROM lineitem) AS u JOIN
    nation ON k = n_id;
SELECT s_cust AS k FROM sales UNION SELECT id FROM events EXCEPT SELECT c_id FROM customer JOIN nation ON c_nation =
    n_id;
SELECT c_id FROM customer WHERE c_id IN (SELECT o_cust FROM orders UNION ALL SELECT l_order FROM lineitem);
SELECT d.`a b`, d.`select` FROM (SELECT max(o_total) AS `a b`, min(o_total) AS `select`, o_cust FROM orders GROUP BY
    o_cust) AS d JOIN customer ON c_id = d.o_cust;
SELECT count(*) AS n FROM (SELECT id FROM events UNION ALL SELECT c_id FROM customer) AS u LIMIT 1;
SELECT c_id, d.m FROM customer, (SELECT max(id) AS m FROM (SELECT id FROM events UNION ALL SELECT o_id FROM orders) AS u
    LIMIT 1) AS d;
SELECT sum(id) OVER () AS r FROM (SELECT id FROM events UNION ALL SELECT c_id FROM customer) AS u LIMIT 1;
SELECT o_id, c_name, n_name FROM orders, customer, nation WHERE o_cust = c_id AND c_nation = n_id AND n_name =
    'NORWAY';
SELECT c_name, count(*) AS n FROM customer, orders, lineitem WHERE c_id = o_cust AND l_order = o_id AND l_qty
    = 3 GROUP BY c_name;
SELECT a.c_id, b.c_id FROM customer a, customer b, orders WHERE a.c_id = o_cust AND b.c_id = o_id AND
    a.c_nation < b.c_nation;
SELECT c_id FROM customer WHERE c_id NOT IN (SELECT o_cust FROM orders WHERE o_total > 5);
SELECT c_id FROM customer WHERE NOT EXISTS (SELECT * FROM orders WHERE o_cust = c_id AND o_total > 5) AND
    c_nation < 6;
SELECT c_id FROM customer WHERE c_nation > (SELECT count(*) FROM orders WHERE o_cust = c_id);
SELECT o_id FROM orders WHERE o_total > (SELECT avg(l_price) FROM lineitem WHERE l_order = o_id) AND o_cust =
    3;
SELECT o_id, l_qty FROM orders LEFT JOIN lineitem ON l_order = o_id AND l_qty > 4 WHERE o_cust < 6;
SELECT o_id, l_qty FROM orders RIGHT JOIN lineitem ON l_order = o_id AND o_total > 4 JOIN customer ON c_id =
    l_order;
SELECT o_id, l_qty FROM lineitem FULL JOIN orders ON l_order = o_id AND l_qty > 4 JOIN customer ON c_id =
    coalesce(o_id, l_order);
SELECT o_id FROM orders LEFT JOIN customer ON o_cust = c_id AND c_nation = 3 LEFT JOIN nation ON n_id =
    c_nation WHERE n_name IS NULL;
SELECT o_id FROM orders LEFT SEMI JOIN customer ON o_cust = c_id AND c_nation > 2 JOIN lineitem ON l_order =
    o_id AND l_qty < 9;
SELECT o_id FROM orders LEFT ANTI JOIN customer ON o_cust = c_id AND c_nation > 2 JOIN lineitem ON l_order =
    o_id AND l_qty < 9;
SELECT o_id, s_price FROM orders JOIN sales ON s_cust = o_cust JOIN customer ON c_id = s_id WHERE c_nation = 2;
SELECT c_name, m FROM customer JOIN (SELECT s_cust, max(s_price) AS m FROM sales GROUP BY s_cust) AS d ON
    d.s_cust = c_id WHERE c_nation = 4;
WITH d AS (SELECT o_cust AS k, count(*) AS n FROM orders GROUP BY o_cust) SELECT a.k, c_name FROM d AS a JOIN
    customer ON c_id = a.k WHERE a.n >= (SELECT max(n) FROM d);
SELECT k FROM (SELECT o_cust AS k FROM orders UNION ALL SELECT o_id FROM orders) AS u JOIN customer ON c_id =
    k AND c_nation = 1;
SELECT sum(CASE WHEN c_name LIKE 'x%' THEN o_total ELSE 0 END) AS s FROM orders JOIN customer
    ON o_cust = c_id WHERE o_id < 9;
SELECT substring(c_name, 1, 1) AS k, c_nation = 3 AS three, o_id FROM orders JOIN customer ON o_cust = c_id;
SELECT o_id FROM orders, nation WHERE (o_cust = n_id AND n_name = 'x' AND o_total > 2) OR (o_cust = n_id AND
    n_name = 'y');
SELECT a.c_name, b.c_name, l_qty FROM lineitem, customer AS a, customer AS b, nation WHERE a.c_id = b.c_id AND
    l_order = a.c_id AND b.c_nation = n_id AND a.c_nation > 2;
SELECT o_id, c_id, l_order, n_id, c_nation FROM orders, customer, lineitem, nation WHERE o_cust = c_id AND l_order =
    c_id AND n_id = c_nation AND n_name <> c_name AND (l_qty > n_id OR o_total > 4);
SELECT c_name, count(*) AS n, max(n_name) AS m FROM orders JOIN customer ON o_cust = c_id JOIN nation ON c_nation = n_id
    JOIN lineitem ON l_order = o_id GROUP BY c_name HAVING count(*) > 1;
SELECT o_id FROM orders, lineitem JOIN customer ON l_order = c_id AND c_nation > 1 JOIN nation ON n_id = c_nation WHERE
    o_cust = n_id OR o_total > 5;
SELECT x.o_id, y.o_id, n_name FROM orders AS x, orders AS y, customer, nation WHERE x.o_cust = y.o_cust AND x.o_cust =
    c_id AND c_nation = n_id AND x.o_total < y.o_total;
SELECT o_id FROM orders, customer, nation WHERE o_cust = c_id AND c_nation = n_id AND EXISTS (SELECT 1 FROM lineitem,
    customer AS d WHERE l_order = o_id AND d.c_id = l_order AND d.c_nation = nation.n_id);
SELECT s.o_id, t.n FROM orders AS s, (SELECT c_id AS k, count(*) AS n FROM customer, nation, lineitem WHERE c_nation =
    n_id AND l_order = c_id GROUP BY c_id) AS t WHERE s.o_cust = t.k;
SELECT count(*) AS n FROM lineitem, customer, nation, orders WHERE c_nation = n_id AND c_id = o_cust AND n_name = 'x';
SELECT o_id, c_name, n_name, l_qty FROM orders JOIN customer ON o_cust = c_id JOIN nation ON c_nation = n_id LEFT JOIN
    lineitem ON l_order = o_id AND c_nation > 3 AND n_id < 9 WHERE c_id > 2 AND (l_qty IS NULL OR l_qty < c_nation);
SELECT a.o_id, n_name FROM orders AS a, customer AS c JOIN nation ON c.c_nation = n_id LEFT ANTI JOIN lineitem ON
    l_order = c.c_id AND n_id = l_qty JOIN orders AS b ON b.o_id = c.c_id WHERE a.o_cust = c.c_id;
SELECT n_name, count(*) AS n FROM customer JOIN nation ON c_nation = n_id LEFT SEMI JOIN orders ON o_cust = c_id AND
    o_id > n_id GROUP BY n_name;
SELECT s_id, c_name, n_name FROM sales, customer, nation WHERE s_cust = c_id AND c_nation = n_id AND n_name = 'x'
"""
# Queries in FROM, in WITH and in expressions, over several sites each.
SPREAD = """
SELECT l_order, d.n FROM (SELECT c_nation AS k, count(*) AS n, max(o_note) AS m FROM orders LEFT JOIN customer ON o_cust
    = c_id GROUP BY c_nation) AS d JOIN lineitem ON l_qty = d.k WHERE d.n > 1 AND d.m IS NOT NULL;
SELECT l_order, d.n FROM lineitem LEFT JOIN (SELECT DISTINCT c_nation AS k, c_name AS n FROM orders JOIN customer ON
    o_cust = c_id) AS d ON l_qty = d.k AND d.n <> 'x' WHERE l_price > 2;
SELECT n_name, a.m, b.m FROM nation, (SELECT c_nation AS k, max(o_total) AS m FROM orders, customer WHERE o_cust = c_id
    GROUP BY c_nation) AS a, (SELECT l_qty AS k, min(o_total) AS m FROM orders, lineitem WHERE o_id = l_order GROUP BY
    l_qty) AS b WHERE n_id = a.k AND b.k = n_id AND a.m >= b.m;
WITH t AS (SELECT o_cust AS k, sum(l_qty) AS s FROM orders JOIN lineitem ON l_order = o_id GROUP BY o_cust) SELECT
    c_name, x.s, y.s FROM customer JOIN t AS x ON x.k = c_id JOIN t AS y ON y.k = c_nation WHERE x.s > 3;
WITH t AS (SELECT o_cust AS k, sum(l_qty) AS s FROM orders JOIN lineitem ON l_order = o_id GROUP BY o_cust) SELECT
    c_name, t.s FROM customer JOIN t ON t.k = c_id WHERE t.s = (SELECT max(s) FROM t);
SELECT c_id FROM customer WHERE c_nation > (SELECT count(*) FROM orders JOIN lineitem ON l_order = o_id WHERE l_qty =
    3);
SELECT c_id FROM customer WHERE c_nation IN (SELECT l_qty FROM orders JOIN lineitem ON l_order = o_id WHERE o_total > 2)
    AND c_id NOT IN (SELECT o_cust FROM orders JOIN lineitem ON l_order = o_id WHERE o_cust IS NOT NULL AND l_qty > 5);
SELECT c_id FROM customer WHERE EXISTS (SELECT * FROM orders JOIN lineitem ON l_order = o_id WHERE o_total > 9) OR
    c_nation = 2;
SELECT l_order, d.k FROM lineitem, (SELECT o_cust AS k FROM orders UNION SELECT c_id FROM customer) AS d WHERE l_order =
    d.k;
SELECT l_order, d.n FROM lineitem JOIN (SELECT c.c_nation AS k, count(*) AS n FROM customer AS c JOIN (SELECT o_cust,
    max(o_total) AS m FROM orders JOIN nation ON n_id = o_id GROUP BY o_cust) AS o ON o.o_cust = c.c_id WHERE o.m > 2
    GROUP BY c.c_nation) AS d ON l_qty = d.k;
SELECT o_id, d.n FROM orders JOIN (SELECT c_nation AS k, count(*) AS n FROM customer JOIN lineitem ON l_order = c_id
    WHERE c_nation IN (SELECT n_id FROM nation WHERE n_name = 'x') AND l_qty > (SELECT avg(o_cust) FROM orders) GROUP BY
    c_nation) AS d ON d.k = o_cust;
SELECT o_id, d.c_name FROM orders JOIN (SELECT c_name, s_id FROM customer JOIN sales ON s_cust = c_id GROUP BY c_name,
    s_id HAVING count(*) > 0) AS d ON d.s_id = o_id;
SELECT k, n FROM (SELECT o_cust AS k, count(*) AS n FROM orders JOIN customer ON o_cust = c_id GROUP BY o_cust) AS d
    WHERE d.n > (SELECT min(l_qty) FROM lineitem JOIN nation ON n_id = l_order)
"""
# Several queries of one member each, of which it may have room for one.
CROWDED = """
SELECT l_qty, a.n, b.m FROM lineitem JOIN (SELECT o_cust, count(*) AS n FROM orders GROUP BY o_cust) AS a ON a.o_cust =
    l_order JOIN (SELECT o_date, max(o_id) AS m FROM orders GROUP BY o_date) AS b ON b.m = l_qty;
SELECT l_qty, a.n, b.m, c.k FROM lineitem JOIN (SELECT o_cust AS k, count(*) AS n FROM orders GROUP BY o_cust) AS a ON
    a.k = l_order JOIN (SELECT o_id, max(o_total) AS m FROM orders GROUP BY o_id) AS b ON b.o_id = l_qty LEFT JOIN
    (SELECT DISTINCT o_cust AS k FROM orders WHERE o_total > 2) AS c ON c.k = l_order AND c.k > 1 WHERE a.n > 0;
SELECT l_qty, a.s, b.`a b` FROM lineitem, (SELECT c_nation AS k, sum(c_id) AS s FROM customer JOIN nation ON c_nation =
    n_id GROUP BY c_nation) AS a, (SELECT max(o_total) AS `a b`, avg(o_total) AS v, o_cust FROM orders GROUP BY o_cust)
    AS b, (SELECT min(o_total) AS w FROM orders) AS e WHERE l_order = a.k AND b.o_cust = l_order AND b.v >= e.w;
SELECT l_order, d.n, e.n FROM lineitem JOIN (SELECT o_cust AS k, count(*) AS n FROM orders GROUP BY o_cust ORDER BY n
    DESC, k LIMIT 3) AS d ON d.k = l_order LEFT JOIN (SELECT o_id AS k, row_number() OVER (PARTITION BY o_cust ORDER BY
    o_id) AS n FROM orders) AS e ON e.k = l_qty AND e.n < 3;
SELECT l_order, x.n FROM lineitem JOIN (SELECT n, count(*) AS c FROM (SELECT o_cust, count(*) AS n FROM orders GROUP BY
    o_cust) AS i GROUP BY n) AS x ON x.n = l_qty JOIN (SELECT max(o_cust) AS m FROM orders) AS y ON y.m >= l_order;
WITH t AS (SELECT o_cust AS k, sum(o_total) AS s FROM orders GROUP BY o_cust) SELECT x.k, y.s, l_qty FROM t AS x JOIN t
    AS y ON x.k = y.k JOIN lineitem ON l_order = x.k JOIN (SELECT min(o_id) AS m FROM orders) AS z ON z.m <= l_order
    WHERE y.s > 1;
SELECT l_order FROM lineitem WHERE l_price > (SELECT avg(o_total) FROM orders WHERE o_id < 5) AND l_order IN (SELECT
    o_cust FROM orders WHERE o_total > 1) AND l_qty < (SELECT count(*) FROM orders WHERE o_cust = l_order AND o_id > 1);
SELECT l_order AS k, 'l' AS w FROM lineitem UNION SELECT max(o_cust), 'o' FROM orders WHERE o_total > 2 GROUP BY
    o_date UNION SELECT max(o_id), 'm' FROM orders GROUP BY o_cust EXCEPT SELECT c_id, 'o' FROM customer;
SELECT a.n, b.n, l_qty FROM lineitem LEFT JOIN (SELECT id AS k, count(*) AS n FROM oslo.events GROUP BY id) AS a ON
    a.k = l_order LEFT JOIN (SELECT id AS k, count(*) AS n FROM bergen.events GROUP BY id) AS b ON b.k = l_order JOIN
    (SELECT max(o_id) AS m FROM orders) AS c ON c.m > l_qty JOIN (SELECT max(c_id) AS m FROM customer) AS d ON d.m >
    l_qty;
SELECT kind, n, s FROM (SELECT kind, count(*) AS n FROM oslo.events GROUP BY kind) AS a JOIN (SELECT s_cust, max(s_id)
    AS s FROM oslo.sales GROUP BY s_cust) AS b ON a.n = b.s_cust JOIN (SELECT count(*) AS c FROM lineitem) AS l ON l.c >
    a.n WHERE kind IS NOT NULL
"""
STATEMENTS = [
    *dict.fromkeys([case.sql for case in RULED] + [" ".join(text.split()) for text in f"{MORE};{SPREAD}".split(";")])
]


JOINS = [" ".join(text.split()) for text in MORE.split(";")]


SITES = ("oslo", "bergen", "tromso")


@cache
def topology(mbit: float) -> Topology:
    """The fixtures' members with links of that speed."""
    text = (FOLDER / "topology.yaml").read_text()
    links = "".join(f"  - {{between: [{a}, {b}], mbit: {mbit}}}\n" for a in SITES for b in SITES if a < b)
    return Topology(parse(f"{text}\nlinks:\n{links}"))


def site(mbit: float, initiator: str, rules: Rules) -> Site:
    return Site(initiator, SITES, rules, topology(mbit))


def variants() -> list[Site]:
    every = frozenset(NAMES)
    sites = [site(0.001, at, Rules(every)) for at in ("oslo", "bergen", "tromso")]
    sites += [site(0.001, "bergen", Rules(every - {name})) for name in ("filters", "semijoin")]
    sites += [site(100.0, "bergen", Rules()), site(0.001, "tromso", Rules(strategy="bottom-up"))]
    return [*sites, site(0.001, "tromso", Rules(root="initiator"))]


VARIANTS = variants()
# For what has more than two tables.
JOINING = [
    site(0.001, at, Rules(frozenset({"joined"}), strategy))
    for at, strategy in (("oslo", "cost"), ("bergen", "bottom-up"))
]


TABLES = [made_up(Random(seed)) for seed in (1, 2)]


@pytest.fixture(scope="module")
def runner() -> Runner:
    return Runner()


def beyond_duckdb(sql: str) -> tuple[pytest.MarkDecorator, ...]:
    is_beyond = any(text in sql for text in BEYOND_DUCKDB)
    return (pytest.mark.xfail(raises=(duckdb.Error, ParseError), strict=True),) if is_beyond else ()


def same_rows(plain: Plan, plans: Iterable[Plan], runner: Runner) -> None:
    for seed, tables in enumerate(TABLES):
        expected = runner.run(plain, tables)
        for plan in plans:
            assert runner.run(plan, tables) == expected, f"seed {seed}: {[fragment.sql for fragment in plan.fragments]}"


@pytest.mark.parametrize("sql", [pytest.param(sql, marks=beyond_duckdb(sql)) for sql in STATEMENTS])
def test_rules_change_no_answer(sql: str, runner: Runner) -> None:
    query = bound(sql)
    plain = make_plan(query, CATALOG, site(100.0, "oslo", NO_RULES), LIMITS)
    sites = [*VARIANTS, *(JOINING if len(query.tables) > 2 else ())]
    plans = [case.plan for case in RULED if case.sql == sql]
    plans += [make_plan(query, CATALOG, each, LIMITS) for each in sites]
    same_rows(plain, {plan.plan_id: plan for plan in plans}.values(), runner)


def crowded(sql: str) -> list[Plan]:
    """On a chain, by both strategies, where the first member has room for one query, and the next for one or many."""
    found: list[Plan] = []
    for way in (SITES, ("bergen", "front", "oslo", "tromso")):
        links = [{"between": list(pair), "mbit": 0.01} for pair in pairwise(way)]
        for capacity in ({"oslo": 1, "bergen": 1}, {way[0]: 1}):
            rules = Rules(root="initiator"), Rules(strategy="bottom-up")
            sites = [Site("tromso", SITES, each, linked(links, capacity)) for each in rules]
            found += [make_plan(bound(sql), CATALOG, each, LIMITS) for each in sites]
    return found


@pytest.mark.parametrize("sql", [" ".join(text.split()) for text in CROWDED.split(";")])
def test_what_full_members_pass_on_changes_no_answer(sql: str, runner: Runner) -> None:
    plain = make_plan(bound(sql), CATALOG, site(100.0, "oslo", NO_RULES), LIMITS)
    plans = crowded(sql)
    assert any(": answered at " in each.reason for plan in plans for each in plan.fragments)
    same_rows(plain, {plan.plan_id: plan for plan in plans}.values(), runner)


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, marks=beyond_duckdb(case.sql), id=f"{case.file.stem}: {case.title}")
        for case in CASES
        if case not in RULED
    ],
)
def test_other_plans_as_written_down(case: Case, runner: Runner) -> None:
    same_rows(planned(case.sql), [case.plan], runner)


@pytest.mark.parametrize("name", NAMES)
def test_every_rule_has_its_module_and_plans_that_it_makes(name: str) -> None:
    """One at least of those in its file is another without the rule."""
    assert importlib.util.find_spec(f"skerry.plan.rules.{name}"), f"no {name}.py"
    own = read_cases(FOLDER / f"rules_{name}.sql")
    assert any(case.planned_again(Rules(case.rules.on - {name})).plan_id != case.plan.plan_id for case in own)


def joins_on(plan: Plan) -> bool:
    """Does a fragment beside the root read what was joined before?"""
    return any(
        re.search(r"leaf_\w+ AS joined_", fragment.sql) and fragment.output.edge != plan.rows.edge
        for fragment in plan.fragments
    )


def test_rules_do_fire() -> None:
    """Else the test above would show nothing."""
    query = bound("SELECT o_id FROM orders, customer, nation WHERE o_cust = c_id AND c_nation = n_id AND n_name = 'x'")
    plan = make_plan(query, CATALOG, site(0.001, "tromso", Rules()), LIMITS)
    assert any("SEMI JOIN" in fragment.sql for fragment in plan.fragments)
    found = [make_plan(bound(sql), CATALOG, each, LIMITS) for sql in JOINS[-13:] for each in (*VARIANTS, *JOINING)]
    joined = [plan for plan in found if any("joined there" in fragment.reason for fragment in plan.fragments)]
    assert len(joined) > 30
    assert any(joins_on(plan) for plan in joined)
    spread = [" ".join(text.split()) for text in SPREAD.split(";")]
    found = [make_plan(bound(sql), CATALOG, each, LIMITS) for sql in spread for each in VARIANTS]
    assert sum(any("a query over" in fragment.reason for fragment in plan.fragments) for plan in found) > 30
    assert planned("SELECT c_id FROM customer, orders WHERE c_id = o_id").fragments

"""What may leave a site: plans that would break a rule are refused, and the edge is named."""

from __future__ import annotations

import msgspec
import pytest

from metamorphic.reading import parse_fragment
from skerry.catalog.topology import Topology
from skerry.config import Leaves, Link
from skerry.model.errors import UserError
from skerry.model.fragment import EdgeLeaf, Leaf, Output, Plan, Rows, SparkFragment, TableLeaf
from skerry.model.table import Column
from skerry.plan.egress import ColumnsOf, EgressRules, check_egress, egress_rules
from skerry.plan.maker import make_fragment
from tests.plans.plan_cases import CONFIG, planned

TOPOLOGY = Topology(CONFIG)


COLUMNS = {"secret": "a b c s", "open": "k x b2"}


def columns_of(member: str, table: str) -> tuple[Column, ...]:
    return tuple(Column(name, "int") for name in COLUMNS[table].split())


def unknown(member: str, table: str) -> None:
    return None


def leaving(sql: str, mark: str, at: str = "bergen", columns_of: ColumnsOf = unknown) -> None:
    """Check one fragment at oslo that reads the marked table T and sends its rows elsewhere."""
    edge = EdgeLeaf("E", 3, (Column("k", "int"),), ("bergen",))
    leaves = (TableLeaf("T", "secret"), TableLeaf("U", "open"), edge)
    egress = rules(columns_of, secret=mark)
    plan = Plan("", (made(1, "oslo", sql, leaves, Output(4, (at,)), egress),), Rows(4, ("oslo",)), {})
    check_egress(plan, egress)


def made(
    number: int, member: str, sql: str, leaves: tuple[Leaf, ...], output: Output, egress: EgressRules
) -> SparkFragment:
    tree = parse_fragment(sql)
    assert tree is not None, sql
    return make_fragment(number, member, tree, leaves, output, egress=egress)


def rules(columns_of: ColumnsOf = unknown, **marks: str) -> EgressRules:
    return EgressRules({("oslo", table): Leaves(mark) for table, mark in marks.items()}, TOPOLOGY, columns_of)


RAW = [
    "SELECT `a` FROM T",
    "SELECT DISTINCT a FROM T",
    "SELECT a FROM T GROUP BY a",
    "SELECT a FROM T GROUP BY a HAVING count(*) > 1",
    "SELECT a, sum(b) OVER (PARTITION BY a) AS s FROM T",
    "SELECT collect_list(a) AS all FROM T",
    *(
        f"SELECT a, {call} AS x FROM T GROUP BY a"
        for call in (
            "max_by(b, c)",
            "min_by(b, c)",
            "first(b)",
            "last_value(b)",
            "any_value(b)",
            "mode(b)",
            "histogram_numeric(b, 100)",
            "approx_top_k(b, 5)",
            "count(*) + first(b)",
            "max(struct(b, c))",
            "max(struct(*))",
            "min((b, c))",
            "max(b || c)",
        )
    ),
    "SELECT x.a FROM (SELECT a FROM T) AS x",
    "WITH x AS (SELECT a FROM T) SELECT a FROM x",
    "SELECT u.k FROM U AS u JOIN T AS t ON t.a = u.k",
    "SELECT a FROM U UNION ALL SELECT a FROM T",
    "SELECT sum(b) AS s FROM T UNION ALL SELECT b FROM T",
    "SELECT a FROM T LIMIT 10",
    "SELECT k, (SELECT a FROM T) AS a FROM U",
    "SELECT a FROM T WHERE true",
]
FILTERED = [
    "SELECT `a` FROM T WHERE a > 3",
    "SELECT t.a FROM U AS u JOIN T AS t ON t.a = u.k WHERE t.b = 3",
    "SELECT t.a FROM U AS u JOIN T AS t ON t.a = u.k AND t.b = 3",
]
AGGREGATED = [
    "SELECT a, sum(b) AS s FROM T GROUP BY a",
    "SELECT count(*) AS n FROM T",
    "SELECT a, max(b * (1 - c)) AS m, min(CASE WHEN c = 1 THEN b END) AS n, median(b) AS o FROM T GROUP BY a",
    "SELECT max(concat(b, 'x')) AS m FROM T",
    "SELECT u.k, max(t.b) + 1 AS m FROM U AS u JOIN T AS t ON t.a = u.k GROUP BY u.k",
    "SELECT x.s FROM (SELECT a, sum(b) AS s FROM T GROUP BY a) AS x WHERE x.s > 3",
    "SELECT k FROM U WHERE k IN (SELECT a FROM T)",
    "SELECT k FROM U WHERE EXISTS (SELECT 1 FROM T AS t WHERE t.a = k)",
    "SELECT k, (SELECT max(a) FROM T) AS a FROM U",
]


@pytest.mark.parametrize("sql", RAW + FILTERED + AGGREGATED)
@pytest.mark.parametrize("mark", ["never", "aggregated", "filtered", "freely"])
def test_what_a_fragment_does_decides(sql: str, mark: str) -> None:
    done = 0 if sql in RAW else 1 if sql in FILTERED else 2
    wanted = ["freely", "filtered", "aggregated", "never"].index(mark)
    leaving(sql, mark, at="oslo")  # nothing leaves
    if done >= wanted:
        leaving(sql, mark)
        return
    with pytest.raises(UserError, match=f"from oslo to bergen .fragment 1, edge 4.*leaves: {mark}") as caught:
        leaving(sql, mark)
    assert caught.value.suggestion.startswith("ask member oslo for oslo.secret")


NAMED_OUTRIGHT = [
    "SELECT t.a FROM T AS t JOIN U AS u ON t.a = u.k WHERE t.b = 3",
    "SELECT t.a FROM T AS t WHERE t.a IN (SELECT u.k FROM U AS u)",
    "SELECT a FROM T WHERE a IN (SELECT k FROM U)",
    "SELECT t.a FROM T AS t LEFT SEMI JOIN (SELECT k FROM E) AS key_1 ON t.a = key_1.k WHERE t.b = 3",
]
BY_SCOPE = [
    "SELECT a FROM T AS t JOIN U AS u ON a = k WHERE b = 3",
    "SELECT a FROM T, U WHERE a = k AND (b = 3 OR c > b)",
    "SELECT a FROM T JOIN U ON a = k AND b = 3",
    "SELECT t.a FROM T AS t LEFT SEMI JOIN (SELECT k FROM E) AS key_1 ON t.a = key_1.k WHERE b = 3",
    "SELECT t.a FROM T AS t LEFT SEMI JOIN (SELECT k AS b FROM E) AS key_1 ON t.a = key_1.b WHERE b = 3",
    "SELECT a FROM T JOIN U ON a = k WHERE s.f = 3",
    "SELECT a FROM T JOIN U ON a = k WHERE b IN (SELECT k FROM E)",
    "SELECT a FROM T JOIN U ON a = k WHERE EXISTS (SELECT 1 FROM E WHERE k = b)",
    "SELECT a FROM T JOIN U ON a = k WHERE exists(array(b), y -> y > b)",
    "WITH x AS (SELECT a AS n FROM T) SELECT n FROM x JOIN U ON n = k WHERE n > 3",
    "SELECT n FROM (SELECT a AS n FROM T) AS x JOIN U ON n = k WHERE n > 3",
]
ON_OTHERS = [
    "SELECT a FROM T JOIN U ON a = k WHERE x = 3",
    "SELECT a FROM T JOIN U ON a = k WHERE b = x",
    "SELECT a FROM T JOIN U ON a = k WHERE nowhere = 3",
    "SELECT a FROM T LEFT JOIN U ON a = k AND b = 3",
    "SELECT a FROM T ANTI JOIN U ON a = k AND b = 3",
    "SELECT a FROM T JOIN T AS y ON T.a = y.c WHERE b = 3",
    "SELECT a FROM T JOIN (SELECT k AS b FROM U) AS y USING (b) WHERE b = 3",
    "SELECT a FROM T NATURAL JOIN U WHERE b = 3",
    "SELECT a FROM T JOIN U ON a = k WHERE EXISTS (SELECT 1 FROM E WHERE k = 3)",
    "SELECT a FROM T WHERE EXISTS (SELECT 1 FROM U WHERE x = 3)",
    "SELECT u.k, (SELECT a FROM T WHERE x = 3) AS a FROM U AS u",
    "SELECT u.k, (SELECT a FROM T WHERE u.x = 3) AS a FROM U AS u",
    "SELECT a FROM T JOIN U AS s ON a = k WHERE s.x = 3",
    "SELECT n FROM (SELECT a AS n FROM T) AS y JOIN U ON n = k WHERE x > 3",
]


@pytest.mark.parametrize("sql", NAMED_OUTRIGHT + BY_SCOPE)
def test_a_name_means_the_relation_that_has_it(sql: str) -> None:
    leaving(sql, "filtered", columns_of=columns_of)
    with pytest.raises(UserError, match="not aggregated"):
        leaving(sql, "aggregated", columns_of=columns_of)


@pytest.mark.parametrize("sql", ON_OTHERS)
def test_a_condition_on_others_is_none(sql: str) -> None:
    with pytest.raises(UserError, match="without a condition on it"):
        leaving(sql, "filtered", columns_of=columns_of)


@pytest.mark.parametrize("sql", BY_SCOPE[:6])
def test_where_columns_are_not_known_no_name_is_guessed(sql: str) -> None:
    with pytest.raises(UserError, match="without a condition on it"):
        leaving(sql, "filtered")


def test_rows_that_pass_a_fragment_of_the_same_site_are_still_the_sites() -> None:
    egress = rules(secret="aggregated")

    def plan(second: str) -> Plan:
        raw = made(1, "oslo", "SELECT a FROM T", (TableLeaf("T", "Secret"),), Output(1, ("oslo",)), egress)
        edge = EdgeLeaf("E", 1, (), ("oslo",))
        then = made(2, "oslo", second, (edge,), Output(2, ("bergen",)), egress)
        return Plan("", (then, raw), Rows(2, ("oslo",)), {})

    check_egress(plan("SELECT count(*) AS n FROM E"), egress)
    with pytest.raises(
        UserError, match=r"rows of Secret that are not aggregated from oslo to bergen \(fragment 2, edge 2\)"
    ):
        check_egress(plan("SELECT a FROM E"), egress)


def test_what_was_allowed_out_may_go_on() -> None:
    egress, table, edge = rules(secret="aggregated"), TableLeaf("T", "secret"), EdgeLeaf("E", 1, (), ("oslo",))
    first = made(1, "oslo", "SELECT count(*) AS a FROM T", (table,), Output(1, ("bergen",)), egress)
    second = made(2, "bergen", "SELECT a FROM E", (edge,), Output(2, ("tromso",)), egress)
    check_egress(Plan("", (first, second), Rows(2, ("bergen",)), {}), egress)


def test_of_a_fragment_that_tells_nothing_the_worst_is_taken() -> None:
    groups = "SELECT count(*) AS a FROM T"
    silent = SparkFragment(1, "oslo", groups, (TableLeaf("T", "secret"),), Output(1, ("bergen",)))
    with pytest.raises(UserError, match="rows of secret that are not aggregated from oslo to bergen"):
        check_egress(Plan("", (silent,), Rows(1, ("oslo",)), {}), rules(secret="aggregated"))


def test_plans_of_the_planner() -> None:
    join = "SELECT c_name, sum(o_total) AS total FROM orders JOIN customer ON o_cust = c_id GROUP BY c_name"
    marked = EgressRules({("bergen", "customer"): Leaves.NEVER}, TOPOLOGY)
    with pytest.raises(UserError, match=r"rows of customer from bergen .*members.bergen.tables.customer.leaves"):
        check_egress(planned(join, egress=marked), marked)
    check_egress(planned("SELECT c_name FROM customer", at="bergen", egress=marked), marked)
    check_egress(planned("SELECT o_id FROM orders", egress=marked), marked)


def test_a_budget_counts_all_edges_that_pass_the_link() -> None:
    links = tuple(
        Link(sender, receiver, 100.0, query_bytes=1_000 if (sender, receiver) == ("oslo", "bergen") else None)
        for sender, receiver in (("oslo", "bergen"), ("bergen", "oslo"), ("bergen", "tromso"))
    )
    topology = Topology(msgspec.structs.replace(CONFIG, links=links))
    fragments = tuple(
        SparkFragment(number, "oslo", "SELECT 1", (), Output(number, (to,)), 10, size)
        for number, to, size in ((1, "bergen", 400), (2, "tromso", 601), (3, "oslo", 5_000))
    )
    plan = Plan("", fragments, Rows(3, ("oslo",)), {})
    message = "about 1001 bytes over the link from oslo to bergen, whose query_bytes is 1000; most of them on edge 2"
    with pytest.raises(UserError, match=message):
        check_egress(plan, EgressRules({}, topology))
    check_egress(msgspec.structs.replace(plan, fragments=fragments[1:]), EgressRules({}, topology))
    # What goes to two members passes the first link to both twice.
    both = SparkFragment(1, "oslo", "SELECT 1", (), Output(1, ("bergen", "oslo", "tromso")), 10, 501)
    with pytest.raises(UserError, match=r"about 1002 bytes over the link from oslo to bergen.* most of them on edge 1"):
        check_egress(msgspec.structs.replace(plan, fragments=(both,)), EgressRules({}, topology))


def test_rules_come_from_the_configuration() -> None:
    assert egress_rules(CONFIG, TOPOLOGY).is_free
